"""Random tables, predictors and settings for the property tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

KINDS = ("small ints", "floats", "strings", "booleans", "ordered", "numbers with gaps", "maybe")


@dataclass(frozen=True)
class Case:
    """Training data, people, and a black box that scores any row made of such values."""

    train: pd.DataFrame
    people: pd.DataFrame
    immutable: list[str]
    weights: dict[str, float]

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        """A deterministic score in [0, 1) that depends on every column and bends."""
        total = np.zeros(len(frame))
        for name, weight in self.weights.items():
            total += np.sin(weight * (1.0 + _as_numbers(frame[name])))
        return total - np.floor(total)


def _as_numbers(series: pd.Series) -> np.ndarray:
    """Any cell as a number, the same whatever the other cells are."""
    known = {"low": 0.0, "mid": 1.0, "high": 2.0, "a": 3.0, "b": 4.0, "c": 5.0, "d": 6.0}
    cells = series.astype(object)
    return np.array([-1.0 if pd.isna(c) else float(known.get(c, c)) for c in cells])


@st.composite
def cases(draw: Any, max_rows: int = 40, max_columns: int = 4) -> Case:
    """A table of random kinds; people are partly new, with values training never saw."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=max_columns))
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_train, n_people = draw(st.integers(1, max_rows)), draw(st.integers(1, 6))
    names = [f"c{i}" for i in range(len(kinds))]
    columns = {
        name: _column(kind, n_train + n_people, chance)
        for name, kind in zip(names, kinds, strict=True)
    }
    table = pd.DataFrame(columns)
    mutable = draw(st.sampled_from(names))
    immutable = [name for name in names if name != mutable and draw(st.booleans())]
    weights = {name: float(chance.uniform(0.5, 3.0)) for name in names}
    return Case(table.iloc[:n_train], table.iloc[n_train:], immutable, weights)


def _column(kind: str, n_rows: int, chance: np.random.Generator) -> Any:
    if kind == "small ints":
        return chance.integers(0, 5, n_rows)
    if kind == "floats":
        return np.round(chance.normal(size=n_rows), 1)
    if kind == "strings":
        return chance.choice(["a", "b", "c", "d"], n_rows, p=[0.5, 0.3, 0.15, 0.05])
    if kind == "booleans":
        return chance.random(n_rows) < 0.4
    if kind == "ordered":
        return pd.Categorical(
            chance.choice(["low", "mid", "high"], n_rows), ["low", "mid", "high"], ordered=True
        )
    if kind == "numbers with gaps":
        return np.where(chance.random(n_rows) < 0.2, np.nan, chance.integers(0, 9, n_rows))
    return pd.array(
        [
            None if gap else word
            for gap, word in zip(chance.random(n_rows) < 0.2, "abcd" * n_rows, strict=False)
        ],
        dtype="string",
    )
