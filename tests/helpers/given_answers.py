"""A grid of two numbers, and results in which one person has answers that a test writes down."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mcce import MCCE, Counterfactuals, Interval
from searches import explain

AT_LEAST_20 = Interval(20, np.inf)


def grid() -> pd.DataFrame:
    """Whole numbers a and b from 0 to 20."""
    return pd.DataFrame({"a": np.repeat(np.arange(21), 21), "b": np.tile(np.arange(21), 21)})


def total(frame: Any) -> Any:
    """The score of a row of the grid."""
    return frame["a"] + frame["b"]


def fitted(
    predictor: Any = total, desired: Any = AT_LEAST_20, train: Any = None, **settings: Any
) -> MCCE:
    """An explainer of the grid, or of another table."""
    settings = {"search": "paper", "n_samples": 50, "random_state": 0} | settings
    return MCCE(predictor, desired, **settings).fit(grid() if train is None else train)


def answered(explainer: MCCE, person: dict[str, Any], answers: list[Any]) -> Counterfactuals:
    """A result in which one person has the given counterfactuals."""
    people = pd.DataFrame([person])
    frame = pd.DataFrame(answers, columns=people.columns).astype(people.dtypes)
    index = pd.MultiIndex.from_product([[0], range(1, len(frame) + 1)], names=["factual", "rank"])
    owner = np.zeros(len(frame), dtype=np.int64)
    return replace(explain(explainer, people), frame=frame.set_axis(index), owner=owner)
