"""Formulas on the columns of a frame, such as ``months * price``.

They are read by the same grammar as conditions, and computed in float64 on copies of the columns.

Always true: a formula is undefined, NaN, where a column is missing or the result is not finite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from ..kernels import FloatArray
from .parsing import ARITHMETIC, parse
from .syntax import Arithmetic, Call, Column, Constant, Negative, Node

# What the functions of formulas compute; conditions have them too.
ON_NUMBERS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "min": lambda *values: reduce(np.minimum, values),
    "max": lambda *values: reduce(np.maximum, values),
}


@dataclass(frozen=True)
class Formula:
    """A number computed from the columns of a frame.

    Examples
    --------
    >>> formula = Formula("months * price")
    >>> formula(pd.DataFrame({"months": [6, 12], "price": [25.5, None]}))
    array([153.,  nan])
    """

    text: str
    names: tuple[str, ...] = field(init=False)
    _tree: Node = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        tree, names = parse(self.text, "formula")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_tree", tree)

    def __call__(self, frame: pd.DataFrame) -> FloatArray:
        """The result for each row."""
        columns = {name: to_floats(frame[name]) for name in self.names}
        with np.errstate(all="ignore"):
            value = _compute(self._tree, columns)
        return np.where(np.isfinite(value), value, np.nan)


def to_floats(column: pd.Series[Any]) -> FloatArray:
    """Numbers and booleans as float64, NaN for missing."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)


def _compute(node: Node, columns: dict[str, FloatArray]) -> Any:
    if isinstance(node, Column):
        return columns[node.name]
    if isinstance(node, Constant):
        return np.float64(node.value)
    if isinstance(node, Negative):
        return -_compute(node.inner, columns)
    if isinstance(node, Call):
        return ON_NUMBERS[node.function](*(_compute(a, columns) for a in node.arguments))
    assert isinstance(node, Arithmetic)
    value = _compute(node.first, columns)
    for symbol, inner in node.steps:
        value = ARITHMETIC[symbol](value, _compute(inner, columns))
    return value
