"""Conditions on the columns of a frame, such as ``years_employed <= age - 16``.

A condition may come from a file, so it must be safe to read and to compute: it is parsed by a small
grammar (``parsing``), and computed on columns that cannot be written to. No value is larger than
a column: strings can only be compared, and arithmetic is done in floating point.

Always true: a comparison with a missing value is false, whichever operator it has. So
``not (x > 1)`` is true where x is missing, and ``missing(x)`` finds missing values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from ..errors import ConstraintError, shorten
from ..kernels import BoolArray
from ..tables.columns import is_missing, is_time
from .formulas import ON_NUMBERS
from .parsing import ARITHMETIC, parse
from .syntax import (
    Arithmetic,
    Call,
    Column,
    Comparison,
    Constant,
    Logic,
    Negative,
    Node,
    Not,
    Values,
)

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "in": lambda cells, values: _is_in(cells, values),
    "not in": lambda cells, values: ~_is_in(cells, values),
}
_NUMBERS_IN_OBJECTS = ("integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty")


@dataclass(frozen=True)
class Expression:
    """A condition on the columns of a frame.

    Examples
    --------
    >>> condition = Expression("years_employed <= age - 16")
    >>> condition(pd.DataFrame({"age": [20, 40], "years_employed": [8, 8]}))
    array([False,  True])
    """

    text: str
    names: tuple[str, ...] = field(init=False)
    _tree: Node = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        tree, names = parse(self.text)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_tree", tree)

    def __call__(self, frame: pd.DataFrame) -> BoolArray:
        """Whether the condition holds for each row."""
        columns = {name: _read_only(frame[name]) for name in self.names}
        try:
            with np.errstate(all="ignore"):
                value = self._to_booleans(self._evaluate(self._tree, columns), self.text)
            return np.array(np.broadcast_to(value, len(frame)))
        except ConstraintError:
            raise
        except Exception as error:
            # Not chained, and without its message: that may quote cells.
            dtypes = {name: str(column.dtype) for name, column in columns.items()}
            raise ConstraintError(
                f"{shorten(self.text)} cannot be computed for columns of these dtypes: "
                f"{shorten(dtypes, 150)} ({type(error).__name__}). Compare numbers with numbers, "
                "strings with strings and dates with dates."
            ) from None

    def _evaluate(self, node: Node, columns: dict[str, pd.Series[Any]]) -> Any:
        if isinstance(node, Column):
            return columns[node.name]
        if isinstance(node, Constant):
            return node.value
        if isinstance(node, Values):
            return list(node.values)
        if isinstance(node, Logic):
            join = np.logical_and if node.symbol == "and" else np.logical_or
            return reduce(
                join,
                (
                    self._to_booleans(self._evaluate(inner, columns), text)
                    for inner, text in node.parts
                ),
            )
        if isinstance(node, Not):
            return ~self._to_booleans(self._evaluate(node.inner, columns), node.text)
        if isinstance(node, Comparison):
            return self._compare(node, columns)
        if isinstance(node, Call) and node.function == "missing":
            return _is_missing(self._evaluate(node.arguments[0], columns))
        return self._compute(node, columns)

    def _compute(self, node: Node, columns: dict[str, pd.Series[Any]]) -> Any:
        """Numbers, or dates and durations."""

        def number(inner: Node) -> Any:
            return self._to_numbers(self._evaluate(inner, columns))

        if isinstance(node, Negative):
            return -number(node.inner)
        if isinstance(node, Call):
            return ON_NUMBERS[node.function](*[number(inner) for inner in node.arguments])
        assert isinstance(node, Arithmetic)
        value = number(node.first)
        for word, inner in node.steps:
            value = ARITHMETIC[word](value, number(inner))
        return value

    def _compare(self, node: Comparison, columns: dict[str, pd.Series[Any]]) -> Any:
        """Comparisons in a row, each false if a value on either side is missing."""
        holds: Any = np.True_
        left = self._evaluate(node.first, columns)
        for word, inner in node.steps:
            right = self._evaluate(inner, columns)
            result = _COMPARISONS[word](left, right)
            missing = _is_missing(left)
            if not isinstance(right, list):
                missing = missing | _is_missing(right)
            if isinstance(result, pd.Series):
                result = result.fillna(False).to_numpy(dtype=bool)
            holds = np.logical_and(holds, np.logical_and(result, np.logical_not(missing)))
            left = right
        return holds

    def _to_numbers(self, value: Any) -> Any:
        """An operand of arithmetic: integers as floats, so that nothing overflows silently."""
        if not isinstance(value, pd.Series):
            is_truth = isinstance(value, (bool, np.bool_, np.ndarray)) and _is_bool(value)
            return np.asarray(value, dtype=np.float64) if is_truth else value
        dtype = value.dtype
        if is_time(dtype):
            return value
        objects = types.is_object_dtype(dtype) and types.infer_dtype(value, skipna=True)
        if not (dtype.kind in "biuf" or objects in _NUMBERS_IN_OBJECTS):
            raise ConstraintError(
                f"{shorten(self.text)} computes with {shorten(value.name, 40)} of dtype {dtype}, "
                "which does not hold numbers. It can only be compared."
            )
        if isinstance(dtype, np.dtype) and dtype.kind == "f":
            return value.to_numpy()
        return value.to_numpy(dtype=np.float64, na_value=np.nan)

    def _to_booleans(self, value: Any, text: str) -> Any:
        """A condition, or an operand of ``and``, ``or`` or ``not``, which must be true or false."""
        if isinstance(value, pd.Series) and types.is_bool_dtype(value.dtype):
            return value.fillna(False).to_numpy(dtype=bool)
        if isinstance(value, pd.Series) or not _is_bool(value):
            raise ConstraintError(
                f"{shorten(self.text)}: {shorten(text, 40)} is not true or false. Compare it with "
                "something."
            )
        return np.asarray(value, dtype=bool)


def _is_missing(value: Any) -> Any:
    """Whether cells are missing; NaN in a nullable float is, whatever pandas says."""
    return is_missing(value) if isinstance(value, pd.Series) else np.asarray(pd.isna(value))


def _is_in(cells: Any, values: list[Any]) -> BoolArray:
    """Whether each cell is one of the values; a date is compared with strings as by ``==``."""
    column = pd.Series(cells)
    if not is_time(column.dtype):
        return column.isin(values).to_numpy(dtype=bool)
    # Whether isin reads strings as dates depends on the version of pandas.
    equal = ((column == value).fillna(False).to_numpy(dtype=bool) for value in values)
    return reduce(np.logical_or, equal, np.zeros(len(column), dtype=bool))


def _is_bool(value: Any) -> bool:
    return np.asarray(value).dtype.kind == "b"


def _read_only(column: pd.Series[Any]) -> pd.Series[Any]:
    """The cells of a column, which nothing can write to through this Series."""
    if not isinstance(column.dtype, np.dtype):
        return column.copy()
    cells = column.to_numpy().view()
    cells.flags.writeable = False
    return pd.Series(cells, index=column.index, name=column.name, copy=False)
