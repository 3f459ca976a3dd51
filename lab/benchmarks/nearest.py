"""How near the answers of "nearest" are to the nearest that there are, for a small forest.

The predictor is a forest of 20 trees of depth 4 on all columns as numbers and indicators. For it,
the smallest l1 distance (differences by range, levels by 0 or 1) at which the mean vote is at
least a half is the optimum of a mixed-integer linear program: which training values lie between
the same two thresholds makes no difference to the forest, so a feature has one choice for each of
these intervals, at the cost of its value nearest to the person's own.

Prints a Markdown table and writes it to ``out/bench/nearest.md``. The ratio is the distance of the
answer over the optimum; a person's answer need not be plausible here, since the program cannot ask
for that. Usage: ``PYTHONPATH=benchmarks python lab/benchmarks/nearest.py [--cases german fico]
[--people 50]``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp  # type: ignore[import-untyped]
from scipy.sparse import lil_array  # type: ignore[import-untyped]
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cases import load
from mcce import MCCE, McceWarning, Search
from mcce_lab.experiments.cells import Draw
from measure import Table, log, write

N_TREES, DEPTH, ENOUGH, SECONDS = 20, 4, 0.5, 60.0
Floats = NDArray[np.float64]


class Forest:
    """A small forest on encoded columns, and the values that each column may have."""

    def __init__(self, rows: pd.DataFrame, labels: NDArray[np.bool_]) -> None:
        self.columns = list(rows.columns)
        # One row of encoded columns for each value of a feature: a number, or an indicator each.
        self.values: dict[str, Floats] = {}
        self.levels: dict[str, list[Any]] = {}
        self.start: dict[str, int] = {}
        width = 0
        for name in self.columns:
            column = rows[name]
            if pd.api.types.is_numeric_dtype(column.dtype):
                self.values[name] = np.unique(column.to_numpy(dtype=np.float64))[:, None]
            else:
                self.levels[name] = sorted(column.unique(), key=str)
                self.values[name] = np.eye(len(self.levels[name]))
            self.start[name] = width
            width += self.values[name].shape[1]
        self.model = RandomForestClassifier(N_TREES, max_depth=DEPTH, random_state=0)
        self.model.fit(self.encode(rows), labels)

    def encode(self, rows: pd.DataFrame) -> Floats:
        """Numbers as they are, levels as indicators."""
        parts = [self.encode_one(name, rows[name]) for name in self.columns]
        return np.concatenate(parts, axis=1)

    def encode_one(self, name: str, column: pd.Series[Any]) -> Floats:
        """The encoded columns of one feature."""
        if name not in self.levels:
            return np.asarray(column.to_numpy(dtype=np.float64))[:, None]
        at = pd.Index(self.levels[name]).get_indexer(pd.Index(column))
        return self.values[name][at]

    def __call__(self, rows: pd.DataFrame) -> Floats:
        """The mean vote."""
        return np.asarray(self.model.predict_proba(self.encode(rows))[:, 1])

    def distances(self, name: str, own: pd.Series[Any]) -> Floats:
        """How far each value of a feature is from a person's own."""
        values, mine = self.values[name], self.encode_one(name, own)
        if name in self.levels:
            return (values != mine).any(axis=1).astype(np.float64)
        spread = float(np.ptp(values))
        return np.abs(values - mine)[:, 0] / (spread or 1.0)

    def optimum(self, person: pd.DataFrame, mutable: Sequence[str]) -> float:
        """The smallest distance of a row that the forest accepts; infinite if there is none."""
        costs, passes = self._choices(person, mutable)
        offsets = dict.fromkeys(costs, 0)
        total = 0
        for name, cost in costs.items():
            offsets[name], total = total, total + cost.size
        feature_of = {
            at + k: name
            for name, at in self.start.items()
            for k in range(self.values[name].shape[1])
        }
        leaves: list[tuple[list[tuple[str, NDArray[np.bool_]]], float, int]] = []
        for number, tree in enumerate(self.model.estimators_):
            leaves += self._leaves(tree.tree_, passes, feature_of, number)
        n = total + len(leaves)
        n_links = sum(len(path) for path, _, _ in leaves)
        matrix = lil_array((len(costs) + N_TREES + 1 + n_links, n))
        low, high = np.zeros(matrix.shape[0]), np.full(matrix.shape[0], np.inf)
        for row, (name, cost) in enumerate(costs.items()):
            matrix[row, offsets[name] : offsets[name] + cost.size] = 1
            low[row] = high[row] = 1
        at = len(costs) + N_TREES + 1
        for number, (path, vote, tree) in enumerate(leaves):
            matrix[len(costs) + tree, total + number] = 1
            matrix[len(costs) + N_TREES, total + number] = vote
            for name, inside in path:
                matrix[at, offsets[name] + np.flatnonzero(inside)] = 1
                matrix[at, total + number] = -1
                at += 1
        low[len(costs) : len(costs) + N_TREES] = high[len(costs) : len(costs) + N_TREES] = 1
        low[len(costs) + N_TREES] = ENOUGH * N_TREES + 1e-6
        cost = np.concatenate([*costs.values(), np.zeros(len(leaves))])
        whole = np.concatenate([np.ones(total), np.zeros(len(leaves))])
        found = milp(
            cost,
            integrality=whole,
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix.tocsr(), low, high),
            options={"time_limit": SECONDS, "mip_rel_gap": 1e-4},
        )
        return float(found.fun) if found.status == 0 else float("nan")

    def _choices(
        self, person: pd.DataFrame, mutable: Sequence[str]
    ) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """The cost of each choice of a feature, and its encoded columns.

        Numbers between the same thresholds are one choice.
        """
        used = [tree.tree_ for tree in self.model.estimators_]
        costs, values = {}, {}
        for name in self.columns:
            own = self.encode_one(name, person[name])
            if name not in mutable:
                costs[name], values[name] = np.zeros(1), own
                continue
            distance, theirs = self.distances(name, person[name]), self.values[name]
            if name not in self.levels:
                at = self.start[name]
                cuts = np.unique(
                    np.concatenate([tree.threshold[tree.feature == at] for tree in used])
                )
                interval = np.searchsorted(cuts, theirs[:, 0].astype(np.float32))
                order = np.lexsort((distance, interval))
                _, first = np.unique(interval[order], return_index=True)
                distance, theirs = distance[order[first]], theirs[order[first]]
            costs[name] = np.concatenate([[0.0], distance])
            values[name] = np.concatenate([own, theirs])
        return costs, values

    def _leaves(
        self, tree: Any, values: dict[str, Floats], feature_of: dict[int, str], number: int
    ) -> list[tuple[list[tuple[str, NDArray[np.bool_]]], float, int]]:
        """Each leaf with the choices that lead to it, by feature, and its vote."""
        found = []
        left: list[tuple[int, dict[str, NDArray[np.bool_]]]] = [(0, {})]
        while left:
            node, path = left.pop()
            if tree.children_left[node] < 0:
                counts = tree.value[node][0]
                found.append(([*path.items()], float(counts[1] / counts.sum()), number))
                continue
            column = int(tree.feature[node])
            name = feature_of[column]
            theirs = values[name][:, column - self.start[name]].astype(np.float32)
            below = theirs <= tree.threshold[node]
            for child, inside in (
                (tree.children_left[node], below),
                (tree.children_right[node], ~below),
            ):
                both = inside & path.get(name, np.ones(inside.size, dtype=bool))
                left.append((int(child), {**path, name: both}))
        return found


def main() -> None:
    """Measure the selected cases."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="+", default=["german", "fico"])
    parser.add_argument("--people", type=int, default=50)
    options = parser.parse_args()
    warnings.simplefilter("ignore", McceWarning)
    lines: list[list[str]] = []
    with threadpool_limits(1):
        for name in options.cases:
            ratios, n_rows, n_missing = measure(name, options.people)
            lines.append(
                [
                    name,
                    str(len(ratios)),
                    str(n_missing),
                    f"{np.median(ratios):.3f}",
                    f"{np.quantile(ratios, 0.9):.3f}",
                    f"{np.mean(ratios):.3f}",
                    f"{n_rows:.1f}",
                ]
            )
    head = ["case", "people", "without answer", "median ratio", "90 %", "mean", "rows a person"]
    shown = Table("Distance of the answers over the optimum", head, lines)
    write([shown], "nearest")
    print(shown.markdown())


def measure(name: str, n_people: int) -> tuple[Floats, float, int]:
    """Ratios of people with an answer, rows scored a person, and how many have no answer."""
    case = load(name)
    if case is None:
        raise FileNotFoundError(f"The data of {name} are missing in ../shared.")
    draw = Draw.of(case, 400, seed=20)
    train = draw.train
    forest = Forest(train, case.decide(train))
    people = draw.people[forest(draw.people) < ENOUGH].head(n_people)
    explainer = MCCE(
        forest,
        (ENOUGH, 1.0),
        immutable=case.immutable,
        search=Search("nearest", min_plausibility=0.0),
        random_state=0,
    )
    result = explainer.fit(train).explain(people)
    l1 = pd.Series(result.measures["l1"].to_numpy(), index=result.owner)
    ratios = []
    for at in l1.index:
        best = forest.optimum(people.iloc[[at]], case.mutable)
        ratios.append(l1[at] / best)
        log(f"{name}: {at} {l1[at]:.4f}, at best {best:.4f}")
    known = np.array([ratio for ratio in ratios if np.isfinite(ratio)])
    return known, result.n_evaluated / len(people), len(people) - len(l1)


if __name__ == "__main__":
    main()
