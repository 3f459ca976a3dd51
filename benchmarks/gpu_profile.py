"""Where the time of ``explain`` goes with a network on a GPU, against the same network on the CPU.

``python benchmarks/gpu_profile.py --data ../shared/data`` fits MCCE on Adult with a small (3 layers
of 64) and a large (8 of 2048) torch network, explains people drawn column by column, and prints the
seconds of each step: drawing, ranking, making frames for the predictor, encoding them, moving them
to the device, and the network itself; and how long the predictor worked while threads drew and
ranked. With several threads, seconds of steps add up to more than those of the run. Writes
``out/bench/gpu_profile.csv``. Runs that would begin after ``--seconds`` are left out.
"""

from __future__ import annotations

import argparse
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from mcce import MCCE, McceWarning
from mcce.predictors import Torch
from mcce.search import paper
from mcce.tables.schema import EncodedRows
from mcce_lab.datasets import load
from measure import OUT, log

NETWORKS = {"small": (3, 64), "large": (8, 2048)}
N_STEPS = 300
STEPS = ("generate", "rank", "frames", "encode", "move", "forward")


class Spans:
    """When each step began and ended, in any thread."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, float, float]] = []
        self._lock = threading.Lock()

    @contextmanager
    def span(self, step: str) -> Iterator[None]:
        """Note a step."""
        started = time.perf_counter()
        yield
        with self._lock:
            self.noted.append((step, started, time.perf_counter()))

    def noting(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose calls are noted."""

        def noted(*given: Any, **named: Any) -> Any:
            with self.span(step):
                return function(*given, **named)

        return noted

    def seconds(self, step: str) -> float:
        """All calls of a step together."""
        return sum(end - start for name, start, end in self.noted if name == step)

    def overlap(self, step: str, others: tuple[str, ...]) -> float:
        """Seconds of a step in which some other step ran too."""
        times = np.array(sorted({edge for _, *edges in self.noted for edge in edges}))
        if not times.size:
            return 0.0
        busy = [self._busy(names, times) for names in ((step,), others)]
        return float(np.diff(times)[(busy[0] & busy[1])[:-1]].sum())

    def _busy(self, names: tuple[str, ...], times: np.ndarray) -> np.ndarray:
        """Whether one of the steps runs after each of the times."""
        change = np.zeros(times.size, dtype=int)
        for name, start, end in self.noted:
            if name in names:
                change[np.searchsorted(times, start)] += 1
                change[np.searchsorted(times, end)] -= 1
        return np.cumsum(change) > 0


SPANS = Spans()


class Network(torch.nn.Module):
    """Numbers, and codes of levels, to one score."""

    def __init__(self, n_levels: list[int], n_layers: int, width: int) -> None:
        super().__init__()
        self.n_levels = n_levels
        n_inputs = sum(max(n, 1) for n in n_levels)
        widths = [n_inputs, *[width] * n_layers]
        layers: list[torch.nn.Module] = []
        for n_in, n_out in pairwise(widths):
            layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
        self.layers = torch.nn.Sequential(*layers, torch.nn.Linear(width, 1))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Scores of rows."""
        with SPANS.span("forward"):
            parts = [
                torch.nn.functional.one_hot(column.long(), n).to(column.dtype)
                if n
                else column[:, None]
                for column, n in zip(inputs.T, self.n_levels, strict=True)
            ]
            scores: torch.Tensor = self.layers(torch.cat(parts, dim=1))
            if inputs.is_cuda:
                torch.cuda.synchronize()
        return scores


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--people", type=int, nargs=2, default=(100_000, 20_000))
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--devices", nargs="+", default=_devices())
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2, 4, 16])
    parser.add_argument("--seconds", type=float, default=3000.0)
    given = parser.parse_args()
    warnings.simplefilter("ignore", McceWarning)
    _note_steps()
    ends, lines = time.monotonic() + given.seconds, []
    data = load("adult", folder=given.data)
    searches = dict(zip(("paper", "balanced"), given.people, strict=True))
    for network, search in product(given.networks, searches):
        cases = _cases(data, network, search, searches[search], given)
        for line in cases:
            lines.append(line)
            log(" ".join(f"{v:.2f}" if isinstance(v, float) else str(v) for v in line.values()))
            OUT.mkdir(parents=True, exist_ok=True)
            table = pd.DataFrame(lines)
            table.to_csv(OUT / "gpu_profile.csv", index=False, float_format="%.3f")
            if time.monotonic() > ends:
                break
        if time.monotonic() > ends:
            break
    print(pd.DataFrame(lines).to_string(float_format="%.2f"))


def _devices() -> list[str]:
    return [*(["cuda"] if torch.cuda.is_available() else []), "cpu"]


def _note_steps() -> None:
    steps = (
        ("generate", paper, "generate"),
        ("rank", paper, "RankedCandidates"),
        ("frames", EncodedRows, "compose"),
        ("predictor", Torch, "_query"),
    )
    for step, where, name in steps:
        setattr(where, name, SPANS.noting(step, getattr(where, name)))


def _cases(
    data: Any, network: str, search: Any, n_people: int, given: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """One fit, and a run on every device with every number of threads."""
    texts = data.features.select_dtypes(exclude="number").columns
    X = data.features.astype(dict.fromkeys(texts, "category"))
    module = _train(X, data.target == data.desired, network, given.devices[0])
    predictor = Torch(module, "score", encode=SPANS.noting("encode", _codes))
    least = float(np.quantile(predictor.predict(X), 0.75))
    settings = {"immutable": data.immutable, "search": search, "random_state": 0}
    started = time.perf_counter()
    explainer = MCCE(predictor, (least, np.inf), n_jobs=-1, **settings).fit(X)
    fitted = time.perf_counter() - started
    people = _people(X, predictor, least, n_people)
    for device in given.devices:
        module.to(device)
        explainer.set_params(n_jobs=4).explain(people.head(500))
        for n_jobs in given.jobs:
            explainer.set_params(n_jobs=n_jobs)
            yield {
                "network": network,
                "search": search,
                "people": len(people),
                "device": device,
                "n_jobs": n_jobs,
                "fit": fitted,
                **_run(explainer, people),
            }


def _run(explainer: Any, people: pd.DataFrame) -> dict[str, float]:
    """Seconds of a run and of its steps."""
    SPANS.noted.clear()
    started = time.perf_counter()
    result = explainer.explain(people)
    total = time.perf_counter() - started
    inner = sum(SPANS.seconds(step) for step in ("encode", "forward"))
    steps = {step: SPANS.seconds(step) for step in STEPS}
    steps["move"] = SPANS.seconds("predictor") - inner
    return {
        "total": total,
        **steps,
        "overlap": SPANS.overlap("predictor", ("generate", "rank")),
        "forward share": steps["forward"] / total,
        "rows": result.n_evaluated,
        "answered": int((result.people["status"] == "answered").sum()),
    }


def _codes(frame: pd.DataFrame) -> np.ndarray:
    """Logarithms of numbers, and numbers of levels."""
    columns = [c.cat.codes if c.dtype == "category" else np.log1p(c) for _, c in frame.items()]
    return np.column_stack(columns).astype(np.float64)


def _train(X: pd.DataFrame, accepted: pd.Series[bool], network: str, device: str) -> Network:
    """A network that has learned a little; its shape is what counts."""
    torch.manual_seed(0)
    levels = [len(c.cat.categories) if c.dtype == "category" else 0 for _, c in X.items()]
    module = Network(levels, *NETWORKS[network]).to(device)
    codes = torch.tensor(_codes(X), dtype=torch.float32, device=device)
    wanted = torch.tensor(accepted.to_numpy(dtype=np.float32), device=device)
    optimizer = torch.optim.Adam(module.parameters(), 1e-3 if network == "small" else 1e-5)
    for _ in range(N_STEPS if device == "cuda" or network == "small" else 3):
        rows = torch.randint(len(codes), (1024,), device=device)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            module(codes[rows])[:, 0], wanted[rows]
        )
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    return module


def _people(X: pd.DataFrame, predictor: Torch, least: float, n_people: int) -> pd.DataFrame:
    """People drawn column by column who are declined."""
    chance = np.random.default_rng(0)
    n_drawn = 4 * n_people
    drawn = pd.DataFrame(
        {name: c.array.take(chance.integers(len(X), size=n_drawn)) for name, c in X.items()}
    )
    return drawn[predictor.predict(drawn) < least].head(n_people)


if __name__ == "__main__":
    main()
