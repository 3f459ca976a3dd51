"""The baselines without networks, and plain Python that says what they should return."""

from __future__ import annotations

import heapq
import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from mcce import McceWarning
from mcce_lab.baselines import (
    FACE,
    NICE,
    GrowingSpheres,
    NearestUnlike,
)

# Few random points and neighbours: the tables of tests are small.
Spheres = partial(GrowingSpheres, n_samples=60)
FORMS: dict[str, Callable[..., Any]] = {
    "nearest": NearestUnlike,
    "nearest-any": partial(NearestUnlike, rows="any"),
    "nice": NICE,
    "nice-starts": partial(NICE, starts="any", n_starts=5),
    "nice-near": partial(NICE, reward="proximity"),
    "spheres": Spheres,
    "face": FACE,
    "face-distance": partial(FACE, cost="distance", n_neighbors=5),
    "face-radius": partial(FACE, cost="unit", radius=1.5),
}
# Those that answer everybody who shares immutable values with an accepted training row.
SURE = ("nearest", "nice", "nice-near")


def explain(method: Any, people: Any) -> Any:
    """A result without the warning about people who have no answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return method.explain(people)


def answers(result: Any) -> dict[Any, list[tuple]]:
    """The cells of everybody's answers, by label, missing ones as None."""
    found: dict[Any, list[tuple]] = {}
    frame = result.frame.astype(object)
    for (label, _), row in zip(frame.index, frame.itertuples(index=False), strict=True):
        found.setdefault(label, []).append(tuple(None if pd.isna(c) else c for c in row))
    return found


def same(one: Any, other: Any) -> bool:
    """Equal, two missing cells being equal."""
    return bool(pd.isna(one) and pd.isna(other)) or bool(
        not pd.isna(one) and not pd.isna(other) and one == other
    )


def l1(row: pd.Series, person: pd.Series, train: pd.DataFrame) -> float:
    """Sum of range-scaled differences, 1 for levels, missing cells and constant numbers."""
    return sum(gap(row[name], person[name], train[name]) for name in train)


def gap(one: Any, other: Any, column: pd.Series) -> float:
    """How far two cells of a column are apart."""
    if same(one, other):
        return 0.0
    number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    spread = float(column.max() - column.min()) if number else 0.0
    if not spread > 0 or pd.isna(one) or pd.isna(other):
        return 1.0
    return abs(float(one) - float(other)) / spread


def shares(row: pd.Series, person: pd.Series, immutable: list[str]) -> bool:
    """Whether a row has the immutable values of a person."""
    return all(same(row[name], person[name]) for name in immutable)


def dijkstra(steps: dict[int, dict[int, float]], start: int) -> dict[int, float]:
    """The cost of the cheapest path from a node to each that can be reached."""
    cost, heap = {}, [(0.0, start)]
    while heap:
        so_far, node = heapq.heappop(heap)
        if node in cost:
            continue
        cost[node] = so_far
        for other, step in steps.get(node, {}).items():
            heapq.heappush(heap, (so_far + step, other))
    return cost


def cheapest(costs: dict[int, float], targets: list[int]) -> float:
    """The least cost of a target; infinite if none can be reached."""
    return min((costs[target] for target in targets if target in costs), default=math.inf)


def bits(column: pd.Series) -> list[Any]:
    """Cells such that 0.0 and -0.0, and None and NaN, are told apart."""
    return [
        np.float64(cell).tobytes() if isinstance(cell, float) else (type(cell), cell)
        for cell in column.astype(object)
    ]
