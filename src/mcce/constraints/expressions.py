"""Conditions on the columns of a frame, such as ``years_employed <= age - 16``.

A condition may come from a file, so it must be safe to read: it is parsed, never handed to Python,
and only arithmetic, comparisons, ``and``, ``or``, ``not``, ``in`` and a few functions are allowed.

Always true: a comparison with a missing value is false, whichever operator it has. So
``not (x > 1)`` is true where x is missing, and ``missing(x)`` finds missing values.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ConstraintError, shorten
from ..kernels import BoolArray

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda cells, values: _isin(cells, values),
    ast.NotIn: lambda cells, values: ~_isin(cells, values),
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "min": lambda *values: reduce(np.minimum, values),
    "max": lambda *values: reduce(np.maximum, values),
    "missing": pd.isna,
}
_LEAVES = (ast.Name, ast.Constant, ast.List, ast.Tuple, ast.Load)
_LOGIC = (ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd)
_VALUES = (bool, int, float, str, type(None))
_ALLOWED = (*_LEAVES, *_LOGIC, ast.BinOp, ast.Compare, ast.Call, *_ARITHMETIC, *_COMPARISONS)


@dataclass(frozen=True)
class Expression:
    """A condition on the columns of a frame.

    Parameters
    ----------
    text
        The condition. A column whose name is not a plain word stands between backticks.

    Attributes
    ----------
    names : tuple of str
        Names of the columns that the condition reads.

    Raises
    ------
    ConstraintError
        If the text is not a condition, uses something that is not allowed, or names no column.

    Examples
    --------
    >>> condition = Expression("years_employed <= age - 16")
    >>> condition(pd.DataFrame({"age": [20, 40], "years_employed": [8, 8]}))
    array([False,  True])
    """

    text: str
    names: tuple[str, ...] = field(init=False)
    _tree: ast.Expression = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        quoted: dict[str, str] = {}

        def placeholder(match: re.Match[str]) -> str:
            quoted.setdefault(f"quoted_{len(quoted)}_", match[1])
            return next(word for word, name in quoted.items() if name == match[1])

        try:
            tree = ast.parse(re.sub(r"`([^`]+)`", placeholder, self.text.strip()), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ConstraintError(f"{self.text!r} is not a condition: {error}.") from error
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                node.id = quoted.get(node.id, node.id)
        object.__setattr__(self, "names", tuple(dict.fromkeys(self._check(tree))))
        object.__setattr__(self, "_tree", tree)

    def __call__(self, frame: pd.DataFrame) -> BoolArray:
        """Whether the condition holds for each row."""
        try:
            value = pd.Series(self._evaluate(self._tree.body, frame), index=frame.index)
        except ConstraintError:
            raise
        except Exception as error:
            # The message of the error may quote a cell.
            raise ConstraintError(
                f"{self.text!r} cannot be computed from columns of dtypes "
                f"{shorten({name: str(frame[name].dtype) for name in self.names}, 200)} "
                f"({type(error).__name__}). Compare numbers with numbers and text with text."
            ) from None
        if not pd.api.types.is_bool_dtype(value.dtype):
            raise ConstraintError(
                f"{self.text!r} gives values of dtype {value.dtype}, not true or false. Compare "
                "them with something."
            )
        return value.fillna(False).to_numpy(dtype=bool)

    def _check(self, tree: ast.Expression) -> list[str]:
        """Names of the columns; raises for what is not allowed."""
        functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        after_in = {id(values) for node in ast.walk(tree) for values in _values_after_in(node)}
        names = []
        for node in ast.walk(tree):
            a_list = isinstance(node, (ast.List, ast.Tuple)) and id(node) not in after_in
            odd = isinstance(node, ast.Constant) and not isinstance(node.value, _VALUES)
            if not isinstance(node, _ALLOWED) or a_list or odd:
                part = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
                raise ConstraintError(
                    f"{self.text!r} contains {part!r}, which is not allowed. A condition may use "
                    "columns, numbers, strings, + - * / // %, comparisons, and, or, not, in [...] "
                    f"and the functions {', '.join(_FUNCTIONS)}."
                )
            if id(node) in after_in and any(
                isinstance(inner, ast.Name) for inner in ast.walk(node)
            ):
                raise ConstraintError(
                    f"{self.text!r}: after in and not in, list values such as ['a', 'b'], not "
                    f"columns, got {ast.unparse(node)!r}."
                )
            if isinstance(node, ast.Name) and id(node) not in functions:
                names.append(node.id)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                self._check_call(node)
        if not names:
            raise ConstraintError(
                f"{self.text!r} names no column. Compare a column with something."
            )
        return names

    def _check_call(self, node: ast.Call) -> None:
        """Raise unless an allowed function is called with as many arguments as it takes."""
        if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS:
            raise ConstraintError(
                f"{self.text!r} calls {ast.unparse(node.func)!r}, which is not allowed. The "
                f"functions are {', '.join(_FUNCTIONS)}."
            )
        several = node.func.id in ("min", "max")
        if (len(node.args) < 2) if several else (len(node.args) != 1):
            raise ConstraintError(
                f"{self.text!r}: {node.func.id} takes {'two or more' if several else 'one'} "
                f"argument{'s' if several else ''}, got {len(node.args)}."
            )

    def _to_booleans(self, value: Any, node: ast.expr) -> Any:
        """An operand of ``and``, ``or`` or ``not``, which must be true or false."""
        if not isinstance(value, pd.Series) or not pd.api.types.is_bool_dtype(value.dtype):
            raise ConstraintError(
                f"{self.text!r}: {ast.unparse(node)!r} is not true or false. Compare it with "
                "something."
            )
        return value.fillna(False).astype(bool)

    def _evaluate(self, node: ast.expr, frame: pd.DataFrame) -> Any:
        def value(inner: ast.expr) -> Any:
            return self._evaluate(inner, frame)

        if isinstance(node, ast.Name):
            return frame[node.id]
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.List, ast.Tuple)):
            return [value(inner) for inner in node.elts]
        if isinstance(node, ast.BoolOp):
            join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
            return reduce(join, [self._to_booleans(value(inner), inner) for inner in node.values])
        if isinstance(node, ast.UnaryOp):
            inner = value(node.operand)
            if isinstance(node.op, ast.Not):
                return ~self._to_booleans(inner, node.operand)
            return inner if isinstance(node.op, ast.UAdd) else -inner
        if isinstance(node, ast.BinOp):
            return _ARITHMETIC[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.Compare):
            sides = [value(inner) for inner in (node.left, *node.comparators)]
            steps = zip(node.ops, sides, sides[1:], strict=False)
            return reduce(operator.and_, [_compare(op, a, b) for op, a, b in steps])
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        return _FUNCTIONS[node.func.id](*[value(inner) for inner in node.args])


def _values_after_in(node: ast.AST) -> list[ast.expr]:
    """What stands after ``in`` and ``not in`` in a comparison."""
    if not isinstance(node, ast.Compare):
        return []
    pairs = zip(node.ops, node.comparators, strict=True)
    return [values for op, values in pairs if isinstance(op, (ast.In, ast.NotIn))]


def _compare(op: ast.cmpop, left: Any, right: Any) -> Any:
    """A comparison, which is false if a value on either side is missing."""
    result = _COMPARISONS[type(op)](left, right)
    missing = pd.isna(left) | (False if isinstance(right, list) else pd.isna(right))
    if not isinstance(result, pd.Series):
        return result
    return result.fillna(False).astype(bool) & ~missing


def _isin(cells: pd.Series[Any], values: Any) -> pd.Series[Any]:
    return cells.isin(values if isinstance(values, list) else [values])
