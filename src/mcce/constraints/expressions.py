"""Conditions in words of the columns: ``years_employed <= age - 16``.

What a domain expert writes in a file must be safe to read, so nothing is handed to Python: the
text is parsed, and only arithmetic, comparisons, ``and``, ``or``, ``not``, ``in``, ``abs``,
``min``, ``max`` and ``missing`` are understood. A name that is no plain word stands between
backticks. A comparison with a missing value is not true, whatever it asks; so ``not (x > 1)`` holds
where x is missing, and ``missing(x)`` tells.
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

from ..errors import ConstraintError
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
    ast.In: lambda cells, levels: _isin(cells, levels),
    ast.NotIn: lambda cells, levels: ~_isin(cells, levels),
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "min": lambda *values: reduce(np.minimum, values),
    "max": lambda *values: reduce(np.maximum, values),
    "missing": pd.isna,
}
_LEAVES = (ast.Name, ast.Constant, ast.List, ast.Tuple, ast.Load)
_LOGIC = (ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd)
_ALLOWED = (*_LEAVES, *_LOGIC, ast.BinOp, ast.Compare, ast.Call, *_ARITHMETIC, *_COMPARISONS)


@dataclass(frozen=True)
class Expression:
    """A condition over the columns of a frame.

    Examples
    --------
    >>> works = Expression("years_employed <= age - 16")
    >>> works(pd.DataFrame({"age": [20, 40], "years_employed": [8, 8]}))
    array([False,  True])
    """

    text: str
    names: tuple[str, ...] = field(init=False)
    _tree: ast.Expression = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        quoted: dict[str, str] = {}

        def stand_in(match: re.Match[str]) -> str:
            quoted.setdefault(f"quoted_{len(quoted)}_", match[1])
            return next(word for word, name in quoted.items() if name == match[1])

        try:
            tree = ast.parse(re.sub(r"`([^`]+)`", stand_in, self.text.strip()), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ConstraintError(f"{self.text!r} is not a condition: {error}.") from error
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                node.id = quoted.get(node.id, node.id)
        object.__setattr__(self, "names", tuple(dict.fromkeys(self._check(tree))))
        object.__setattr__(self, "_tree", tree)

    def __call__(self, frame: pd.DataFrame) -> BoolArray:
        """Where the condition holds."""
        try:
            value = pd.Series(self._value(self._tree.body, frame), index=frame.index)
        except ConstraintError:
            raise
        except Exception as error:
            raise ConstraintError(
                f"{self.text!r} cannot be computed: {type(error).__name__}: {error}"
            ) from error
        if not pd.api.types.is_bool_dtype(value.dtype):
            raise ConstraintError(f"{self.text!r} gives {value.dtype} where yes or no is needed.")
        return value.fillna(False).to_numpy(dtype=bool)

    def _check(self, tree: ast.Expression) -> list[str]:
        """The names of the columns; what is not understood is an error."""
        functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        names = []
        for node in ast.walk(tree):
            if not isinstance(node, _ALLOWED):
                told = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
                raise ConstraintError(
                    f"{self.text!r} holds {told!r}, which is not understood. Allowed are columns, "
                    f"numbers, texts, + - * / // %, comparisons, and, or, not, in [...] and the "
                    f"functions {', '.join(_FUNCTIONS)}."
                )
            if id(node) in functions:
                if not isinstance(node, ast.Name) or node.id not in _FUNCTIONS:
                    raise ConstraintError(
                        f"{self.text!r} calls {ast.unparse(node)!r}; the functions are "
                        f"{', '.join(_FUNCTIONS)}."
                    )
            elif isinstance(node, ast.Name):
                names.append(node.id)
        if not names:
            raise ConstraintError(f"{self.text!r} names no column, so it says nothing of a row.")
        return names

    def _yes(self, value: Any, node: ast.expr) -> Any:
        """A side of and, or, not, if it is yes or no."""
        if not isinstance(value, pd.Series) or not pd.api.types.is_bool_dtype(value.dtype):
            raise ConstraintError(
                f"{self.text!r}: {ast.unparse(node)!r} is not yes or no. Compare it with something."
            )
        return value.fillna(False).astype(bool)

    def _value(self, node: ast.expr, frame: pd.DataFrame) -> Any:
        def value(inner: ast.expr) -> Any:
            return self._value(inner, frame)

        if isinstance(node, ast.Name):
            return frame[node.id]
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.List, ast.Tuple)):
            return [value(inner) for inner in node.elts]
        if isinstance(node, ast.BoolOp):
            join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
            return reduce(join, [self._yes(value(inner), inner) for inner in node.values])
        if isinstance(node, ast.UnaryOp):
            inner = value(node.operand)
            return ~self._yes(inner, node.operand) if isinstance(node.op, ast.Not) else -inner
        if isinstance(node, ast.BinOp):
            return _ARITHMETIC[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.Compare):
            sides = [value(inner) for inner in (node.left, *node.comparators)]
            steps = zip(node.ops, sides, sides[1:], strict=False)
            return reduce(operator.and_, [_compare(op, a, b) for op, a, b in steps])
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        return _FUNCTIONS[node.func.id](*[value(inner) for inner in node.args])


def _compare(op: ast.cmpop, left: Any, right: Any) -> Any:
    """A comparison, which with a missing value on either side is not true."""
    told = _COMPARISONS[type(op)](left, right)
    gaps = pd.isna(left) | (False if isinstance(right, list) else pd.isna(right))
    if not isinstance(told, pd.Series):
        return told
    return told.fillna(False).astype(bool) & ~gaps


def _isin(cells: pd.Series[Any], levels: Any) -> pd.Series[Any]:
    return cells.isin(levels if isinstance(levels, list) else [levels])
