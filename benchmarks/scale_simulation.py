"""A simulated night: partitions on workers that are slow, stop, and come back.

``python benchmarks/scale_simulation.py --seconds 90 --workers 25``: 1,000 partitions of so many
CPU seconds each by default, in the order of their names. What a partition takes varies, some are
stragglers, workers are lost at random and replaced after a while, and what a lost worker had to do
begins anew. Printed over many nights: how long the last partition takes, beside what as many
workers would need that never wait.
"""

from __future__ import annotations

import argparse
import heapq
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Night:
    """What a simulated night is made of.

    Parameters
    ----------
    n_partitions, seconds
        How many partitions there are, and what one takes in the middle.
    n_workers
        How many run at a time.
    spread
        Standard deviation of the logarithm of what a partition takes.
    stragglers, times
        Share of the partitions that take so many times as long: a busy neighbour, a slow disk.
    lost_per_hour
        How often an hour a worker is lost.
    replaced
        Seconds until another one has started in its place.
    failing
        Share of tries that fail by themselves: a connection, a file that is not there yet.
    tries
        How often a partition is tried before it is reported.
    """

    n_partitions: int = 1_000
    seconds: float = 90.0
    n_workers: int = 25
    spread: float = 0.2
    stragglers: float = 0.02
    times: float = 4.0
    lost_per_hour: float = 0.05
    replaced: float = 60.0
    failing: float = 0.002
    tries: int = 3

    def run(self, chance: np.random.Generator) -> dict[str, float]:
        """One night: hours until the end, hours of work that was lost, and what happened."""
        takes = self.seconds * np.exp(self.spread * chance.standard_normal(self.n_partitions))
        takes[chance.random(self.n_partitions) < self.stragglers] *= self.times
        # From when on a partition can be begun, which one, and which try it is.
        waiting = [(0.0, place, 1) for place in range(self.n_partitions)]
        free = [0.0] * self.n_workers
        heapq.heapify(free)
        lost, end, n_lost, n_reported = 0.0, 0.0, 0, 0
        while waiting:
            since, place, tried = heapq.heappop(waiting)
            now = max(heapq.heappop(free), since)
            until_lost = chance.exponential(3600 / max(self.lost_per_hour, 1e-12))
            if until_lost < takes[place]:
                n_lost, lost = n_lost + 1, lost + until_lost
                heapq.heappush(free, now + until_lost + self.replaced)
                heapq.heappush(waiting, (now + until_lost, place, tried))
                continue
            done = now + takes[place]
            heapq.heappush(free, done)
            if chance.random() < self.failing:
                lost += takes[place]
                if tried < self.tries:
                    heapq.heappush(waiting, (done, place, tried + 1))
                else:
                    n_reported += 1
            end = max(end, done)
        ideal = takes.sum() / self.n_workers
        return {
            "hours": end / 3600,
            "ideal": ideal / 3600,
            "over": end / ideal - 1,
            "lost work": lost / takes.sum(),
            "workers lost": n_lost,
            "reported": n_reported,
        }


def main() -> None:
    """Print the middle and the worst of many nights."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in vars(Night()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    parser.add_argument("--nights", type=int, default=200)
    options = vars(parser.parse_args())
    n_nights = options.pop("nights")
    chance = np.random.default_rng(0)
    nights = [Night(**options).run(chance) for _ in range(n_nights)]
    for name in nights[0]:
        values = np.array([night[name] for night in nights])
        low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
        print(f"{name}: {middle:.3g} (90 % of nights: {low:.3g} to {high:.3g})")


if __name__ == "__main__":
    main()
