"""Black boxes for any table: smooth, stepped or sensitive to every bit of a cell.

Every one scores a row by its own cells alone, and gives the same for the same row in any process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from cell_bits import bits, exact_numbers, meaning
from mcce import Interval

Chance = np.random.Generator


@dataclass(frozen=True)
class BlackBox:
    """A predictor, what is desired of it, and which rows have that by the test's own reckoning."""

    predictor: Any
    desired: Any
    accepts: Callable[[Any], np.ndarray]
    # The score that is shown to users, where the predictor gives one.
    scores: Callable[[Any], np.ndarray] | None = None


@dataclass(frozen=True)
class Scorer:
    """A number for each row of any kind of frame: the weighted mean of a number for each cell."""

    weights: tuple[float, ...]
    # For each column the centre and the width of its numbers; None hashes the cells.
    scales: tuple[tuple[float, float] | None, ...]
    grain: float
    # Whether cells of equal value score the same, whatever their types and bits are.
    by_value: bool = False

    def __call__(self, rows: Any) -> np.ndarray:
        frame = as_pandas(rows)
        total = np.zeros(len(frame))
        for place, (weight, scale) in enumerate(zip(self.weights, self.scales, strict=True)):
            column = frame.iloc[:, place]
            if scale is None:
                total += weight * hashed(column, by_value=self.by_value)
            else:
                total += weight * squeezed(column, scale)
        return np.floor(total / self.grain) * self.grain if self.grain else total


def as_pandas(rows: Any) -> pd.DataFrame:
    """Any kind of frame in pandas, written without the code of mcce."""
    if isinstance(rows, pd.DataFrame):
        return rows
    if isinstance(rows, np.ndarray):
        return pd.DataFrame(rows)
    table = rows.to_arrow() if hasattr(rows, "to_arrow") else rows
    for place, field in enumerate(table.schema):
        # Old versions of pyarrow cannot turn the dictionaries of polars into objects.
        if hasattr(field.type, "value_type") and hasattr(field.type, "index_type"):
            decoded = table.column(place).cast(field.type.value_type)
            table = table.set_column(place, field.name, decoded)
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def hashed(column: pd.Series, *, by_value: bool) -> np.ndarray:
    """A number in [0, 1) that depends on every bit of a cell, or on its value alone."""
    if len(column) == 0:
        return np.empty(0)
    _, first, number = np.unique(bits(column), return_index=True, return_inverse=True)
    some = column.iloc[first].astype(object)
    if by_value:
        words = [repr(meaning(cell)) for cell in some]
    else:
        words = [f"{type(cell).__name__} {cell!r}" for cell in some]
    return np.array([crc32(word.encode("utf-8", "replace")) / 2**32 for word in words])[number]


def squeezed(column: pd.Series, scale: tuple[float, float]) -> np.ndarray:
    """A number in [-1, 1] that rises with the cell; a missing one is in the middle."""
    if len(column) == 0:
        return np.empty(0)
    _, first, number = np.unique(bits(column), return_index=True, return_inverse=True)
    cells = [np.nan if cell is None else float(cell) for cell in exact_numbers(column.iloc[first])]
    with np.errstate(all="ignore"):
        risen = np.tanh((np.array(cells) - scale[0]) / scale[1])
    return np.where(np.isnan(risen), 0.0, risen)[number]


def random_scorer(
    chance: Chance, train: pd.DataFrame, numeric: list[bool], by_value: bool
) -> Scorer:
    by_bits = chance.random() < 0.3
    scales: list[tuple[float, float] | None] = []
    for place, is_numeric in enumerate(numeric):
        cells = [float(x) for x in exact_numbers(train.iloc[:, place]) if x is not None] or [0.0]
        if not is_numeric or by_bits:
            scales.append(None)
        else:
            with np.errstate(all="ignore"):
                width = float(np.std(cells))
            scales.append((float(np.median(cells)), width if 0 < width < 1e300 else 1.0))
    weights = chance.normal(0, 1, len(numeric))
    grain = float(chance.choice([0.0, 0.0, 0.25, 1.0]))
    return Scorer(tuple(weights.tolist()), tuple(scales), grain, by_value)


def random_box(
    chance: Chance, train: Any, numeric: list[bool], *, by_value: bool = False
) -> BlackBox:
    """A black box that accepts some of the training rows, rarely all or none."""
    score = random_scorer(chance, as_pandas(train), numeric, by_value)
    levels = np.sort(score(train))
    threshold = float(levels[int(len(levels) * chance.choice([0.4, 0.6, 0.8, 0.9]))])
    threshold += float(chance.choice([0.0] * 18 + [-1e9, 1e9]))
    makers = [_interval, _interval, _labels, _probabilities]
    return makers[int(chance.integers(len(makers)))](chance, score, threshold)


def _interval(chance: Chance, score: Scorer, threshold: float) -> BlackBox:
    closed = ["both", "left", "right", "neither"][int(chance.integers(4))]
    high = [np.inf, threshold + 0.5, threshold][int(chance.choice(3, p=[0.6, 0.3, 0.1]))]
    desired = Interval(threshold, high, closed="both" if high == threshold else closed)  # type: ignore[arg-type]

    def accepts(rows: Any) -> np.ndarray:
        scores = score(rows)
        above = scores >= threshold if desired.closed in ("both", "left") else scores > threshold
        below = scores <= high if desired.closed in ("both", "right") else scores < high
        return above & below

    returned = [score, lambda rows: score(rows)[:, None], lambda rows: score(rows).tolist()]
    wanted: Any = (threshold, high) if closed == "both" else desired
    predictor = returned[int(chance.integers(3))]
    if closed != "both" and high == threshold:
        wanted = desired
    return BlackBox(predictor, wanted, accepts, score)


def _labels(chance: Chance, score: Scorer, threshold: float) -> BlackBox:
    names = [["no", "yes", "perhaps"], [0, 1, 2], [False, True, True], ["", "no", "\ud83d"]]
    labels = np.array(names[int(chance.integers(4))], dtype=object)

    def predict(rows: Any) -> np.ndarray:
        scores = score(rows)
        return labels[(scores >= threshold).astype(int) + (scores >= threshold + 0.4)]

    many = bool(chance.random() < 0.5)
    desired: Any = list(labels[1:]) if many else labels[1]
    wanted = set(desired) if many else {desired}
    return BlackBox(predict, desired, lambda rows: np.array([x in wanted for x in predict(rows)]))


class Classifier:
    """A classifier in the manner of scikit-learn, on top of a scorer."""

    def __init__(self, score: Scorer, threshold: float) -> None:
        self.score, self.threshold = score, threshold
        self.classes_ = np.array(["declined", "granted"])

    def predict_proba(self, rows: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            granted = 1 / (1 + np.exp(self.threshold - self.score(rows)))
        return np.stack([1 - granted, granted], axis=1)

    def predict(self, rows: Any) -> np.ndarray:
        return self.classes_[(self.predict_proba(rows)[:, 1] >= 0.5).astype(int)]


def _probabilities(chance: Chance, score: Scorer, threshold: float) -> BlackBox:
    model = Classifier(score, threshold)
    desired = [None, "granted", (0.5, 1.0), ["granted"]][int(chance.integers(4))]
    return BlackBox(
        model,
        desired,
        lambda rows: model.predict_proba(rows)[:, 1] >= 0.5,
        lambda rows: model.predict_proba(rows)[:, 1],
    )
