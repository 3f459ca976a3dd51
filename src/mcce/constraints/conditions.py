"""Conditions on the columns of a frame, such as ``years_employed <= age - 16``, and formulas.

A condition may compare a column with the person's own value of it: ``age - old.age <= 5``. A
formula gives a number, such as ``months * price``. Both may come from a file, so they must be safe
to read and to compute. Words and symbols are checked first, and columns and values are replaced;
what is left, :mod:`ast` parses. Python never compiles it: each node that is allowed becomes one of
the functions below, which compute with arrays in floating point. A time limit or a cancellation
ends them between two terms.

Always true: operations suit their operands, as far as these are known before there are rows.
Strings can only be compared, so no value is larger than a column. Constants are numbers of 64 bits,
booleans, strings or None. A comparison with a missing value is false, whichever its operator:
``not (x > 1)`` is true where x is missing, and ``missing(x)`` finds missing values. A formula is
undefined, NaN, where it computes with a missing value or the result is not finite.
"""

from __future__ import annotations

import ast
import keyword
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Literal, NoReturn, TypeAlias

import numpy as np
import pandas as pd
from pandas.api import types

from ..errors import ConstraintError, shorten
from ..kernels import (
    BoolArray,
    CancelledError,
    ExpiredError,
    FloatArray,
    check_cancellation,
)
from ..tables.columns import is_missing, is_time

# Of one text, wherever it comes from.
MAX_CONDITION = 4_000  # characters
MAX_OPERATORS = 1_000  # of arithmetic, comparison and logic
MAX_NESTING = 100  # operations and functions inside each other
MAX_NUMBER = 100  # characters of a number
MAX_TERMS = 10_000  # columns, values, functions and operators of all rules together

_ARITHMETIC: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda cells, values: _is_in(cells, values),
    ast.NotIn: lambda cells, values: ~_is_in(cells, values),
}
_FUNCTIONS = ("abs", "min", "max", "missing")
_CONSTANTS = {"True": True, "False": False, "None": None}
_INSTEAD = {"=": "==", "&": "and", "|": "or"}
_NUMBERS_IN_OBJECTS = ("integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty")
_WORD = r"(?:[A-Za-z_]|[^\x00-\x7f])(?:\w|[^\x00-\x7f])*+"
_TOKEN = re.compile(
    rf"""(?P<column>`[^`]++`)
    | (?P<string>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")
    | (?P<number>0[xXoObB][0-9A-Za-z_]*+|\.?[0-9](?:[eE][-+]|[0-9A-Za-z_.])*+)
    | (?P<own>old\.(?:`[^`]++`|{_WORD}))
    | (?P<function>{_WORD}(?=[ \t\f\r\n]*+\())
    | (?P<name>{_WORD})
    | (?P<operator>[<>=!]=|//|[-+*/%<>])
    | (?P<mark>[()\[\], \t\f\r\n])
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
# What cannot follow a word without a space.
_JOINED = re.compile(r"[\w`'\"]|[^\x00-\x7f]")
# A backslash, and what makes it an escape; any other stays as it is.
_BACKSLASH = re.compile(
    r"""\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|[ntr\\'"])?"""
)


Columns: TypeAlias = dict[Any, Any]


@dataclass(frozen=True)
class _Part:
    """A part of a text: what is known of it before there are rows, and how it is computed."""

    kind: Literal["column", "constant", "number", "truth"]
    compute: Callable[[Columns], Any]
    value: Any = None  # of a constant; of a column, its name

    def __call__(self, columns: Columns) -> Any:
        check_cancellation()
        return self.compute(columns)


@dataclass
class Expression:
    """A text that is read once and computed on the columns of frames."""

    text: str
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ConstraintError(f"A {self.kind} must be a string, got {shorten(self.text)}.")
        if len(self.text) > MAX_CONDITION:
            raise ConstraintError(
                f"A {self.kind} may have {MAX_CONDITION} characters, got {len(self.text)}: "
                f"{shorten(self.text)}. Split it, or shorten it."
            )
        self.text = self.text.strip()
        # Columns, and those of which the person's own value is read, in the order of the text.
        self.names: dict[str, None] = {}
        self.own_names: dict[str, None] = {}
        # Columns that are compared with strings, and each of these.
        self.levels: list[tuple[str, str]] = []
        self.n_terms = self._n_operators = 0
        self._operands: dict[int, _Part] = {}
        self._is_rule = self.kind == "condition" and bool(re.match(r"if\b", self.text))
        self._whole = self._read()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text,)

    def may_mean_column(self, name: str) -> bool:
        """Whether an own value is written without backticks, as a column of this name might be."""
        tokens = _TOKEN.finditer(self.text)
        return any(token.lastgroup == "own" and token[0] == name for token in tokens)

    def _read(self) -> _Part:
        """What computes the whole.

        Columns and values become words of underscores, as long as they were, so that :mod:`ast`
        sees operators, brackets, commas and functions alone, each where it is in the text; and
        ``if ... then`` becomes ``if ...:``.
        """
        source = re.sub(r"\s", " ", _TOKEN.sub(self._replace, self.text))
        if not self.names:
            raise ConstraintError(f"{shorten(self.text)} names no column. Name one.")
        if self._n_operators > MAX_OPERATORS:
            raise ConstraintError(
                f"{shorten(self.text)} has more than {MAX_OPERATORS} operators. Shorten it."
            )
        read = self._truth if self.kind == "condition" else self._number
        match self._parse(source):
            case [ast.Expr(value=whole)]:
                return read(whole, 0)
            case [ast.If(test=premise, body=[ast.Expr(value=conclusion)])]:
                needs, then = self._truth(premise, 0), self._truth(conclusion, 0)
                return _Part("truth", lambda columns: ~needs(columns) | then(columns))
        return self._refuse(self.text)

    def _parse(self, source: str) -> list[ast.stmt]:
        if self._is_rule and ":" not in source:
            raise ConstraintError(f"{shorten(self.text)} has no then. Write if ... then ....")
        try:
            return ast.parse(source).body
        except SyntaxError as error:
            part, reason = self.text[(error.offset or 1) - 1 :], error.msg
        except (RecursionError, MemoryError):
            part, reason = self.text, "nested"
        if "nested" in reason:
            raise self._too_deep()
        if part and reason.startswith("invalid syntax"):
            self._refuse(part)
        end = "it ends where a column or a value should follow"
        raise ConstraintError(
            f"{shorten(self.text)} is not a {self.kind}: {reason if part else end}."
        )

    def _replace(self, token: re.Match[str]) -> str:
        """What stands for a word in the text that is parsed, in as many characters."""
        word, kind = token[0], token.lastgroup
        if kind == "mark":
            return word
        if kind == "other" or (kind != "operator" and _JOINED.match(self.text, token.end())):
            self._refuse(word if kind == "other" else self.text[token.start() :])
        if self._is_rule and (word == "then" or not token.start()):
            return ":   " if word == "then" else word
        self.n_terms += 1
        if kind == "operator" or word in ("and", "or", "not", "in"):
            self._n_operators += 1
            return word
        if kind == "function" and word in _FUNCTIONS:
            return word
        self._operands[token.start()] = self._operand(word, kind)
        return "_" * len(word)

    def _operand(self, word: str, kind: str | None) -> _Part:
        """The column or value that a word stands for."""
        plain = word.isidentifier() and not keyword.iskeyword(word)
        match kind:
            case "column" | "name" if plain or kind == "column":
                return self._column(word.strip("`"))
            case "own" if self.kind == "condition":
                return self._column(word[4:].strip("`"), own=True)
            case "name" if word in _CONSTANTS:
                return self._constant(_CONSTANTS[word], word)
            case "string" | "number":
                return self._constant(self._value(word, kind), word)
            case "function" if plain:
                raise ConstraintError(
                    f"{shorten(self.text)} calls {shorten(word, 40)}, which is not allowed. The "
                    f"functions are {', '.join(_FUNCTIONS)}."
                )
        return self._refuse(word)

    def _column(self, name: str, *, own: bool = False) -> _Part:
        self.names[name] = None
        if own:
            self.own_names[name] = None
        key = ("old", name) if own else name
        return _Part("column", lambda columns: columns[key], name)

    def _value(self, word: str, kind: str) -> Any:
        """A string without its quotes, or a number."""
        try:
            if kind == "string":
                known = _BACKSLASH.sub(lambda found: found[0] if found[1] else r"\\", word)
                return ast.literal_eval(known.replace("\n", r"\n"))
            if len(word) <= MAX_NUMBER:
                whole = re.fullmatch(r"0[xXoObB]\w*|[0-9_]+", word)
                return int(word, 0) if whole else float(word)
        except (ValueError, SyntaxError):
            pass
        return self._refuse(word)

    def _constant(self, value: Any, text: str) -> _Part:
        """A constant; numbers must be finite, and get 64 bits."""
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            value = float(value)
        if isinstance(value, float) and not math.isfinite(value):
            raise ConstraintError(
                f"{shorten(self.text)}: {shorten(text, 40)} is not a finite number. Write one "
                "below 1e308."
            )
        return _Part("constant", lambda _: value, value)

    def _compile(self, node: ast.expr, depth: int) -> _Part:
        """What computes a node."""
        if depth > MAX_NESTING:
            raise self._too_deep()
        depth += 1
        match node:
            case ast.Name():
                return self._operands[node.col_offset]
            case ast.BoolOp(op=symbol, values=values):
                join = np.logical_and if isinstance(symbol, ast.And) else np.logical_or
                parts = [self._truth(value, depth) for value in values]
                return _Part("truth", lambda columns: reduce(join, [p(columns) for p in parts]))
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                part = self._truth(inner, depth)
                return _Part("truth", lambda columns: ~part(columns))
            case ast.UnaryOp(op=symbol, operand=inner):
                part = self._number(inner, depth)
                if isinstance(symbol, ast.UAdd):
                    return part
                if part.kind == "constant":
                    return self._constant(-part.value, self._quote(node))
                return _Part("number", lambda columns: -part(columns))
            case ast.Compare():
                return self._comparison(node, depth)
            case ast.BinOp():
                return self._arithmetic(node, depth)
            case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in _FUNCTIONS:
                return self._call(name, given, depth)
        return self._refuse(self._quote(node))

    def _arithmetic(self, node: ast.expr, depth: int) -> _Part:
        """Operations from left to right; those of constants alone are done."""
        text, steps = self._quote(node), list[tuple[Callable[[Any, Any], Any], _Part]]()
        while isinstance(node, ast.BinOp):
            if type(node.op) not in _ARITHMETIC:
                self._refuse(self._quote(node))
            steps.insert(0, (_ARITHMETIC[type(node.op)], self._number(node.right, depth)))
            node = node.left
        first = self._number(node, depth)

        def compute(columns: Columns) -> Any:
            value = np.float64(first.value) if first.kind == "constant" else first(columns)
            for operation, part in steps:
                value = operation(value, part(columns))
            return value

        if all(part.kind == "constant" for part in (first, *(part for _, part in steps))):
            with np.errstate(all="ignore"):
                return self._constant(float(compute({})), text)
        return _Part("number", compute)

    def _comparison(self, node: ast.Compare, depth: int) -> _Part:
        """Comparisons in a row, each false if a value on either side is missing."""
        symbols = [type(symbol) for symbol in node.ops]
        parts = [self._compile(node.left, depth)]
        for symbol, inner in zip(symbols, node.comparators, strict=True):
            listed = symbol in (ast.In, ast.NotIn)
            parts.append(self._values(inner, depth) if listed else self._compile(inner, depth))
        names = [part.value for part in parts if part.kind == "column"]
        for value in (part.value for part in parts if part.kind == "constant"):
            levels = value if isinstance(value, list) else [value]
            self.levels += [(n, level) for n in names for level in levels if isinstance(level, str)]

        def compute(columns: Columns) -> Any:
            holds: Any = np.True_
            left = parts[0](columns)
            for symbol, part in zip(symbols, parts[1:], strict=True):
                right = part(columns)
                result = _COMPARISONS[symbol](left, right)
                if isinstance(result, pd.Series):
                    result = result.fillna(False).to_numpy(dtype=bool)
                missing = _is_missing(left) | (not isinstance(right, list) and _is_missing(right))
                holds, left = holds & result & ~missing, right
            return holds

        return _Part("truth", compute)

    def _values(self, node: ast.expr, depth: int) -> _Part:
        """What stands after ``in``: a list of constants, or one of them."""
        listed = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
        parts = [self._compile(inner, depth) for inner in listed]
        if not all(part.kind == "constant" for part in parts):
            raise ConstraintError(
                f"{shorten(self.text)}: after in and not in, list values such as ['a', 'b'], not "
                f"columns, got {shorten(self._quote(node), 40)}."
            )
        return self._constant([part.value for part in parts], "")

    def _call(self, name: str, arguments: Sequence[ast.expr], depth: int) -> _Part:
        read = self._compile if name == "missing" else self._number
        parts, several = [read(inner, depth) for inner in arguments], name in ("min", "max")
        if len(parts) < 1 + several or (len(parts) > 1 and not several):
            raise ConstraintError(
                f"{shorten(self.text)}: {name} takes "
                f"{'two or more arguments' if several else 'one argument'}, got {len(parts)}."
            )
        if name == "missing":
            return _Part("truth", lambda columns: _is_missing(parts[0](columns)))
        if name == "abs":
            return _Part("number", lambda columns: np.abs(parts[0](columns)))
        least = np.minimum if name == "min" else np.maximum
        return _Part("number", lambda columns: reduce(least, [part(columns) for part in parts]))

    def _number(self, node: ast.expr, depth: int) -> _Part:
        """An operand of arithmetic: integers as floats, so that nothing overflows silently."""
        part = self._compile(node, depth)
        if part.kind == "constant" and not isinstance(part.value, (int, float)):
            raise ConstraintError(
                f"{shorten(self.text)} computes with {shorten(self._quote(node), 40)}, which is no "
                "number. Strings and None can only be compared."
            )
        if part.kind in ("constant", "number"):
            return part
        return _Part("number", lambda columns: self._as_number(part(columns)))

    def _as_number(self, value: Any) -> Any:
        if not isinstance(value, pd.Series):
            numbers = np.asarray(value)
            return numbers if numbers.dtype.kind == "f" else numbers.astype(np.float64)
        if is_time(value.dtype):
            return value
        of_objects = types.is_object_dtype(value.dtype) and types.infer_dtype(value, skipna=True)
        if value.dtype.kind not in "biuf" and of_objects not in _NUMBERS_IN_OBJECTS:
            raise ConstraintError(
                f"{shorten(self.text)} computes with {shorten(value.name, 40)} of dtype "
                f"{value.dtype}, which does not hold numbers. It can only be compared."
            )
        return to_floats(value)

    def _truth(self, node: ast.expr, depth: int) -> _Part:
        """A condition, or an operand of ``and``, ``or`` or ``not``, which must be true or false."""
        part, text = self._compile(node, depth), self._quote(node)
        # Formulas get booleans as 1 and 0.
        if part.kind != "truth" and (part.kind != "column" or self.kind == "formula"):
            raise self._no_truth(text)

        def compute(columns: Columns) -> Any:
            value = part(columns)
            if not types.is_bool_dtype(value.dtype):
                raise self._no_truth(text)
            return value.fillna(False).to_numpy(bool) if isinstance(value, pd.Series) else value

        return part if part.kind == "truth" else _Part("truth", compute)

    def _too_deep(self) -> ConstraintError:
        return ConstraintError(
            f"{shorten(self.text)} nests more than {MAX_NESTING} parentheses, operations and "
            "functions. Write it flatter."
        )

    def _no_truth(self, text: str) -> ConstraintError:
        return ConstraintError(
            f"{shorten(self.text)}: {shorten(text, 40)} is not true or false. Compare it with "
            "something."
        )

    def _quote(self, node: ast.expr) -> str:
        """The part of the text that a node was read from."""
        return self.text[node.col_offset : node.end_col_offset]

    def _refuse(self, part: str) -> NoReturn:
        instead = f"Write {_INSTEAD[part]}. " if part in _INSTEAD else ""
        raise ConstraintError(
            f"{shorten(self.text)} contains {shorten(part, 40)}, which is not allowed there. "
            f"{instead}A {self.kind} may use columns, numbers, strings, + - * / // %, comparisons, "
            f"and, or, not, in [...] and the functions {', '.join(_FUNCTIONS)}."
        )


class Condition(Expression):
    """A condition that is true or false in each row of a frame.

    Examples
    --------
    >>> condition = Condition("years_employed <= age - 16")
    >>> condition(pd.DataFrame({"age": [20, 40], "years_employed": [8, 8]}))
    array([False,  True])
    >>> Condition(None)
    Traceback (most recent call last):
        ...
    mcce.errors.ConstraintError: A condition must be a string, got None.
    """

    kind: ClassVar[str] = "condition"

    def __call__(self, frame: pd.DataFrame, own: pd.DataFrame | None = None) -> BoolArray:
        """Whether the condition holds for each row, given the own row of each person."""
        columns: Columns = {name: _cells(frame[name]) for name in self.names}
        if own is not None:
            own = own.set_axis(frame.index)
            columns |= {("old", name): _cells(own[name]) for name in self.own_names}
        try:
            with np.errstate(all="ignore"):
                return np.array(np.broadcast_to(self._whole(columns), len(frame)))
        except (ConstraintError, CancelledError, ExpiredError):
            raise
        except Exception as error:
            # Not chained, and without its message: that may quote cells.
            dtypes = {name: str(frame[name].dtype) for name in self.names}
            raise ConstraintError(
                f"{shorten(self.text)} cannot be computed for columns of these dtypes: "
                f"{shorten(dtypes, 150)} ({type(error).__name__}). Compare numbers with numbers, "
                "strings with strings and dates with dates."
            ) from None


class Formula(Expression):
    """A number computed from the columns of a frame.

    Examples
    --------
    >>> formula = Formula("months * price")
    >>> formula(pd.DataFrame({"months": [6, 12], "price": [25.5, None]}))
    array([153.,  nan])
    """

    kind: ClassVar[str] = "formula"

    def __call__(self, frame: pd.DataFrame) -> FloatArray:
        """The result for each row."""
        columns = {name: to_floats(frame[name]) for name in self.names}
        with np.errstate(all="ignore"):
            value = self._whole(columns)
        return np.where(np.isfinite(value), value, np.nan)


def to_floats(column: pd.Series[Any]) -> FloatArray:
    """Numbers and booleans as float64, NaN for missing."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)


def check_terms(n_terms: int) -> None:
    """Raise for more terms than all rules together may have."""
    if n_terms > MAX_TERMS:
        raise ConstraintError(
            f"Conditions and formulas may have {MAX_TERMS} columns, values and operators together, "
            f"got {n_terms}. Leave some out, or pass functions."
        )


def _cells(column: pd.Series[Any]) -> Any:
    """A column of plain numbers or booleans as an array; any other as it is."""
    plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf"
    return column.to_numpy() if plain else column


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
