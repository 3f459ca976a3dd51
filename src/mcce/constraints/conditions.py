"""Conditions on the columns of a frame, such as ``years_employed <= age - 16``, and formulas.

A condition may compare a column with the person's own value of it: ``age - old.age <= 5``.

A formula is arithmetic that gives a number, such as ``months * price``. Both may come from a file,
so they must be safe to read and to compute. Length, nesting and words are checked first, and
columns and values are replaced. Only then does :mod:`ast` parse the text; it is never compiled,
and only the nodes below are evaluated, on arrays in floating point. Columns cannot be written to.
A time limit or a cancellation ends the evaluation between two terms.

Always true: a tree holds columns, constants, and operations that suit their operands as far as they
are known. Strings can only be compared, so no value is larger than a column. Constants are numbers
of 64 bits, booleans, strings or None. A comparison with a missing value is false, whichever its
operator: ``not (x > 1)`` is true where x is missing, and ``missing(x)`` finds missing values. A
formula is undefined, NaN, where a column is missing or the result is not finite.
"""

from __future__ import annotations

import ast
import keyword
import math
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, ClassVar, NoReturn

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

# Checked before a text is parsed, wherever it comes from.
MAX_CONDITION = 4_000  # characters
MAX_CONDITION_NESTING = 20  # parentheses, functions and signs inside each other
MAX_OPERATORS = 1_000  # of arithmetic, comparison and logic
MAX_TERMS = 10_000  # columns, values, functions and operators of all rules together
MAX_NUMBER = 100  # characters of a number or a date, also in rule files

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
_NUMERIC: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "min": lambda *values: reduce(np.minimum, values),
    "max": lambda *values: reduce(np.maximum, values),
}
_SYMBOLS = {"+", "-", "*", "/", "//", "%"}
_LOGIC = {"<", "<=", ">", ">=", "==", "!=", "in", "not in", "and", "or", "not"}
_CLOSING = {"(": ")", "[": "]"}
_INSTEAD = {"=": "==", "&": "and", "|": "or"}
_CONSTANTS = {"True": True, "False": False, "None": None}
_WORDS = ("and", "or", "not", "in")
_NUMBERS_IN_OBJECTS = ("integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\n": "", "\\": "\\", "'": "'", '"': '"'}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_SPACES = " \t\f\r\n"
_SPACE = re.compile(f"[{_SPACES}]")
_WORD = r"(?:[A-Za-z_]|[^\x00-\x7f])(?:\w|[^\x00-\x7f])*+"
_TOKEN = re.compile(
    rf"""(?P<column>`[^`]++`)
    | (?P<string>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")
    | (?P<number>0[xXoObB][0-9A-Za-z_]*+|\.?[0-9](?:[eE][-+]|[0-9A-Za-z_.])*+)
    | (?P<operator><=|>=|==|!=|//|\*\*|not[{_SPACES}]++in\b|[-+*/%<>()\[\],])
    | (?P<old>old\.(?:`[^`]++`|{_WORD}))
    | (?P<function>{_WORD}(?=[{_SPACES}]*+\())
    | (?P<name>{_WORD})
    | (?P<other>[^{_SPACES}])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class _Expression:
    """A text that is read once and evaluated on the columns of frames."""

    text: str
    names: tuple[str, ...] = field(init=False)
    # Columns of which the person's own value is read.
    own_names: tuple[str, ...] = field(init=False, compare=False)
    n_terms: int = field(init=False, repr=False, compare=False)
    _tree: ast.expr = field(init=False, repr=False, compare=False)
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ConstraintError(f"A {self.kind} must be a string, got {shorten(self.text)}.")
        tree, names, n_terms = parse_condition(self.text, self.kind)
        own_names = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "own_names", tuple(dict.fromkeys(own_names)))
        object.__setattr__(self, "n_terms", n_terms)
        object.__setattr__(self, "_tree", tree)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text,)

    def _evaluate(self, node: ast.expr, columns: dict[Any, Any]) -> Any:
        check_cancellation()
        match node:
            case ast.Name(id=name):
                return columns[name]
            case ast.Attribute(attr=name):
                return columns["old", name]
            case ast.Constant(value=value):
                return value
            case ast.List(elts=items):
                return [item.value for item in items if isinstance(item, ast.Constant)]
            case ast.BoolOp(op=symbol, values=parts):
                join = np.logical_and if isinstance(symbol, ast.And) else np.logical_or
                return reduce(join, [self._booleans(part, columns) for part in parts])
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return ~self._booleans(inner, columns)
            case ast.UnaryOp(operand=inner):
                return -self._numbers(inner, columns)
            case ast.Compare():
                return self._compare(node, columns)
            case ast.Call(func=ast.Name(id="missing"), args=[inner]):
                return _is_missing(self._evaluate(inner, columns))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return _NUMERIC[name](*[self._numbers(inner, columns) for inner in arguments])
        first, steps = _chain(node)
        value = self._numbers(first, columns)
        for step in steps:
            value = _ARITHMETIC[type(step.op)](value, self._numbers(step.right, columns))
        return value

    def _compare(self, node: ast.Compare, columns: dict[Any, Any]) -> Any:
        """Comparisons in a row, each false if a value on either side is missing."""
        holds: Any = np.True_
        left = self._evaluate(node.left, columns)
        for symbol, inner in zip(node.ops, node.comparators, strict=True):
            right = self._evaluate(inner, columns)
            result = _COMPARISONS[type(symbol)](left, right)
            missing = _is_missing(left)
            if not isinstance(right, list):
                missing = missing | _is_missing(right)
            if isinstance(result, pd.Series):
                result = result.fillna(False).to_numpy(dtype=bool)
            holds = np.logical_and(holds, np.logical_and(result, np.logical_not(missing)))
            left = right
        return holds

    def _numbers(self, node: ast.expr, columns: dict[Any, Any]) -> Any:
        """An operand of arithmetic: integers as floats, so that nothing overflows silently."""
        value = self._evaluate(node, columns)
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

    def _booleans(self, node: ast.expr, columns: dict[Any, Any]) -> Any:
        """A condition, or an operand of ``and``, ``or`` or ``not``, which must be true or false."""
        value = self._evaluate(node, columns)
        if isinstance(value, pd.Series) and types.is_bool_dtype(value.dtype):
            return value.fillna(False).to_numpy(dtype=bool)
        if isinstance(value, pd.Series) or not _is_bool(value):
            _refuse_as_condition(self.text, node)
        return np.asarray(value, dtype=bool)


class Condition(_Expression):
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
        columns: dict[Any, Any] = {name: _read_only(frame[name]) for name in self.names}
        if own is not None and self.own_names:
            own = own[list(self.own_names)].set_axis(frame.index)
            columns |= {("old", name): _read_only(own[name]) for name in self.own_names}
        try:
            with np.errstate(all="ignore"):
                value = self._booleans(self._tree, columns)
            return np.array(np.broadcast_to(value, len(frame)))
        except (ConstraintError, CancelledError, ExpiredError):
            raise
        except Exception as error:
            # Not chained, and without its message: that may quote cells.
            dtypes = {name: str(columns[name].dtype) for name in self.names}
            raise ConstraintError(
                f"{shorten(self.text)} cannot be computed for columns of these dtypes: "
                f"{shorten(dtypes, 150)} ({type(error).__name__}). Compare numbers with numbers, "
                "strings with strings and dates with dates."
            ) from None

    def levels(self) -> Iterator[tuple[str, str]]:
        """The columns that are compared with strings, and each of these."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Compare):
                inner = [leaf for part in (node.left, *node.comparators) for leaf in _leaves(part)]
                strings = [one.value for one in inner if isinstance(one, ast.Constant)]
                for one in inner:
                    name = getattr(one, "id", None) or getattr(one, "attr", None)
                    if isinstance(name, str):
                        yield from ((name, text) for text in strings if isinstance(text, str))

    def may_mean_column(self, name: str) -> bool:
        """Whether an own value is written without backticks, as a column of this name might be."""
        bare = {token[0] for token in _TOKEN.finditer(self.text) if token.lastgroup == "old"}
        return name in bare


class Formula(_Expression):
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
            value = self._evaluate(self._tree, columns)
        return np.where(np.isfinite(value), value, np.nan)


def _leaves(node: ast.expr) -> list[ast.expr]:
    """An operand, or the constants of a list."""
    return node.elts if isinstance(node, ast.List) else [node]


def to_floats(column: pd.Series[Any]) -> FloatArray:
    """Numbers and booleans as float64, NaN for missing."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)


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


def _chain(node: ast.expr) -> tuple[ast.expr, list[ast.BinOp]]:
    """The first operand of arithmetic, and its operations from left to right."""
    steps: list[ast.BinOp] = []
    while isinstance(node, ast.BinOp):
        steps.append(node)
        node = node.left
    return node, steps[::-1]


def check_terms(n_terms: int) -> None:
    """Raise for more terms than all rules together may have."""
    if n_terms > MAX_TERMS:
        raise ConstraintError(
            f"Conditions and formulas may have {MAX_TERMS} columns, values and operators together, "
            f"got {n_terms}. Leave some out, or pass functions."
        )


def parse_condition(text: str, kind: str = "condition") -> tuple[ast.expr, tuple[str, ...], int]:
    """The tree of a condition or formula, the names of its columns, and the number of its terms.

    Examples
    --------
    >>> tree, names, n_terms = parse_condition("`debt now` <= 2 * 3")
    >>> ast.unparse(tree), names, n_terms
    ('debt now <= 6', ('debt now',), 5)
    """
    if len(text) > MAX_CONDITION:
        raise ConstraintError(
            f"A {kind} may have {MAX_CONDITION} characters, got {len(text)}: {shorten(text)}. "
            f"{'Split it, or pass a function' if kind == 'condition' else 'Shorten it'}."
        )
    parser = _Parser(text, kind)
    tree = parser.parse()
    if not parser.names:
        todo = "Compare a column with something" if kind == "condition" else "Name one"
        raise ConstraintError(f"{shorten(text)} names no column. {todo}.")
    return tree, tuple(parser.names), parser.n_terms


class _Parser:
    """Reads one condition or formula.

    Columns and values become words of underscores, as long as they were, so that :mod:`ast` sees
    operators, brackets, commas and functions alone.
    """

    def __init__(self, text: str, kind: str) -> None:
        self.text, self.kind = text, kind
        self.names: dict[str, None] = {}
        self.n_terms = 0  # columns, values, functions and operators
        self._logical = kind == "condition"
        self._functions = (*_NUMERIC, *(["missing"] if self._logical else []))
        self._symbols = {*_SYMBOLS, "(", ")", ",", *({*_LOGIC, "[", "]"} if self._logical else ())}
        self._operands: dict[int, ast.expr] = {}
        self._open: list[tuple[str, int]] = []  # brackets, and the signs before each
        # Where ``then`` stands in ``if ... then ...``; -1 while it is to follow.
        self._then: int | None = None
        self._n_signs = self._n_operators = 0
        self._after_operand = False

    def parse(self) -> ast.expr:
        """The tree: columns and values in place, arithmetic of constants done."""
        source = _SPACE.sub(" ", _TOKEN.sub(self._replace, self.text))
        if not self._after_operand or self._open:
            wanted = _CLOSING[self._open[-1][0]] if self._after_operand else ""
            raise ConstraintError(
                f"{shorten(self.text)} is not a {self.kind}: it ends where "
                f"{repr(wanted) if wanted else 'a column or a value'} should follow."
            )
        if self._then == -1:
            raise ConstraintError(f"{shorten(self.text)} has no then. Write if ... then ....")
        if self._then is None:
            tree = self._check(self._parse(source))
            return self._condition(tree) if self._logical else tree
        # Each part where it stands in the text; inside parentheses, spaces may come first.
        parts = source[: self._then], " " * self._then + source[self._then :]
        premise, conclusion = (self._condition(self._check(self._parse(part))) for part in parts)
        return ast.BoolOp(ast.Or(), [ast.UnaryOp(ast.Not(), premise), conclusion])

    def _parse(self, source: str) -> ast.expr:
        try:
            return ast.parse(f"({source})", mode="eval").body
        except SyntaxError as error:
            self._refuse(self.text[(error.offset or 2) - 2 :])
        except (RecursionError, MemoryError):
            # Only where the caller has used up Python's stack.
            raise ConstraintError(
                f"{shorten(self.text)} is nested too deeply to be read here."
            ) from None

    def _replace(self, token: re.Match[str]) -> str:
        """What stands for a word in the text that is parsed, in as many characters."""
        word, kind = token[0], token.lastgroup
        if kind == "operator" or word in _WORDS:
            return self._take_symbol(word)
        if self._logical and word in ("if", "then") and self._joins(word, token.start()):
            return " " * len(word)
        if self._after_operand:  # which would be read as one word with it
            self._refuse(word)
        self.n_terms += 1
        if kind == "function":
            if word in self._functions:
                self._after_operand = False
                return word
            if word.isidentifier() and not keyword.iskeyword(word):
                raise ConstraintError(
                    f"{shorten(self.text)} calls {shorten(word, 40)}, which is not allowed. The "
                    f"functions are {', '.join(self._functions)}."
                )
        self._after_operand, self._n_signs = True, 0
        self._operands[token.start() + 1] = self._operand_of(word, kind)
        return "_" * len(word)

    def _operand_of(self, word: str, kind: str | None) -> ast.expr:
        """The column or value that a word stands for."""
        match kind:
            case "column":
                return self._column(word[1:-1])
            case "old" if self._logical:
                name = word[4:].strip("`")
                self.names[name] = None
                return ast.Attribute(ast.Name("old"), name)
            case "string":
                return ast.Constant(_unescape(word[1:-1]))
            case "number":
                return ast.Constant(self._number(word))
            case "function" | "name" if word in _CONSTANTS:
                return ast.Constant(_CONSTANTS[word])
            case "name" if word.isidentifier() and not keyword.iskeyword(word):
                return self._column(word)
        return self._refuse(word)

    def _column(self, name: str) -> ast.Name:
        self.names[name] = None
        return ast.Name(name)

    def _number(self, word: str) -> float:
        whole = re.fullmatch(r"0[xXoObB]\w*|[0-9_]+", word)
        try:
            number = (int(word, 0) if whole else float(word)) if len(word) <= MAX_NUMBER else None
        except ValueError:
            number = None
        return self._refuse(word) if number is None else self._finite(number, word)

    def _joins(self, word: str, start: int) -> bool:
        """Whether this is the ``if`` at the start, or the ``then`` that belongs to it."""
        if word == "if" and self._then is None and not self.text[:start].strip(_SPACES):
            self._then = -1
            return True
        is_then = word == "then" and self._then == -1 and self._after_operand and not self._open
        if is_then:
            self._then, self._after_operand, self._n_signs = start, False, 0
        return is_then

    def _take_symbol(self, symbol: str) -> str:
        """An operator, bracket or comma that is allowed; counts what is bounded."""
        name = symbol if len(symbol) < 4 else " ".join(symbol.split())
        if name not in self._symbols:
            self._refuse(symbol)
        if name in _CLOSING.values():
            opening, self._n_signs = self._open.pop() if self._open else ("", 0)
            if _CLOSING.get(opening) != name:
                self._refuse(symbol)
            self._after_operand = True
            return symbol
        if name in _CLOSING:
            self._open.append((name, self._n_signs))
        prefix = name in ("+", "-", "not") and not self._after_operand
        self._n_signs = self._n_signs + 1 if prefix else 0
        self._after_operand = False
        if len(self._open) + sum(n for _, n in self._open) + self._n_signs > MAX_CONDITION_NESTING:
            raise ConstraintError(
                f"{shorten(self.text)} nests more than {MAX_CONDITION_NESTING} parentheses, "
                "functions or signs. Write it flatter."
            )
        if name not in _CLOSING and name != ",":
            self.n_terms += 1
            self._n_operators += 1
        if self._n_operators > MAX_OPERATORS:
            raise ConstraintError(
                f"{shorten(self.text)} has more than {MAX_OPERATORS} operators. Split it, or "
                "shorten it."
            )
        return symbol

    def _check(self, node: ast.expr) -> ast.expr:
        """A node that may be evaluated: columns and values in place, constants computed."""
        match node:
            case ast.Name():
                return ast.copy_location(self._operands[node.col_offset], node)
            case ast.UnaryOp(op=ast.Not()):
                node.operand = self._condition(self._check(node.operand))
            case ast.UnaryOp():
                node.operand = self._operand(node.operand)
                if isinstance(node.op, ast.UAdd):
                    return node.operand
                if isinstance(node.operand, ast.Constant):
                    return self._constant(-node.operand.value, node)  # type: ignore[arg-type, operator]
            case ast.BinOp():
                return self._check_arithmetic(node)
            case ast.BoolOp():
                node.values = [self._condition(self._check(part)) for part in node.values]
            case ast.Compare():
                node.left = self._check(node.left)
                node.comparators = [
                    self._check_values(inner)
                    if isinstance(symbol, ast.In | ast.NotIn)
                    else self._check(inner)
                    for symbol, inner in zip(node.ops, node.comparators, strict=True)
                ]
            case ast.Call(func=ast.Name(id=function)) if function in self._functions:
                node.args = self._check_arguments(function, node.args)
            case _:
                self._refuse(_part(self.text, node))
        return node

    def _check_arguments(self, function: str, arguments: list[ast.expr]) -> list[ast.expr]:
        """The arguments of a call, as many as the function takes."""
        check = self._check if function == "missing" else self._operand
        checked = [check(inner) for inner in arguments]
        several = function in ("min", "max")
        if len(checked) < 1 + several or (len(checked) > 1 and not several):
            raise ConstraintError(
                f"{shorten(self.text)}: {function} takes "
                f"{'two or more arguments' if several else 'one argument'}, got {len(checked)}."
            )
        return checked

    def _check_arithmetic(self, node: ast.BinOp) -> ast.expr:
        """Operations from left to right, those of constants done."""
        first, steps = _chain(node)
        value = self._operand(first)
        for step in steps:
            if type(step.op) not in _ARITHMETIC:
                self._refuse(_part(self.text, step))
            step.left, step.right = value, self._operand(step.right)
            value = step
            if isinstance(step.left, ast.Constant) and isinstance(step.right, ast.Constant):
                try:
                    number = _ARITHMETIC[type(step.op)](step.left.value, step.right.value)
                except ArithmeticError:
                    number = math.inf
                value = self._constant(number, step)
        return value

    def _check_values(self, node: ast.expr) -> ast.expr:
        """What stands after ``in``: a list of constants, or one of them."""
        listed = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
        values = [self._check(inner) for inner in listed]
        if not all(isinstance(value, ast.Constant) for value in values):
            raise ConstraintError(
                f"{shorten(self.text)}: after in and not in, list values such as ['a', 'b'], not "
                f"columns, got {shorten(_part(self.text, node), 40)}."
            )
        return ast.copy_location(ast.List(values), node)

    def _constant(self, value: float, node: ast.expr) -> ast.Constant:
        """A constant in place of a node."""
        number = self._finite(value, _part(self.text, node))
        return ast.copy_location(ast.Constant(number), node)

    def _finite(self, value: float, part: str) -> float:
        """A number that is finite and has 64 bits."""
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            value = float(value)
        if not math.isfinite(value):
            raise ConstraintError(
                f"{shorten(self.text)}: {shorten(part, 40)} is not a finite number. Write one "
                "below 1e308."
            )
        return value

    def _operand(self, node: ast.expr) -> ast.expr:
        """An operand of arithmetic; raises for strings and None."""
        node = self._check(node)
        if isinstance(node, ast.Constant) and not isinstance(node.value, (int, float)):
            raise ConstraintError(
                f"{shorten(self.text)} computes with {shorten(_part(self.text, node), 40)}, which "
                "is no number. Strings and None can only be compared."
            )
        return node

    def _condition(self, node: ast.expr) -> ast.expr:
        """An operand of ``and``, ``or`` or ``not``; raises for what is never true or false."""
        match node:
            case ast.Compare() | ast.BoolOp() | ast.Name() | ast.Attribute():
                return node
            case ast.UnaryOp(op=ast.Not()):
                return node
            case ast.Call(func=ast.Name(id="missing")):
                return node
        return _refuse_as_condition(self.text, node)

    def _refuse(self, part: str) -> NoReturn:
        more = " strings,", " comparisons, and, or, not, in [...]"
        values, operators = more if self._logical else ("", " parentheses")
        instead = f"Write {_INSTEAD[part]}. " if self._logical and part in _INSTEAD else ""
        names = ", ".join(self._functions)
        raise ConstraintError(
            f"{shorten(self.text)} contains {shorten(part, 40)}, which is not allowed there. "
            f"{instead}A {self.kind} may use columns, numbers,{values} + - * / // %,{operators} "
            f"and the functions {names}."
        )


def _part(text: str, node: ast.expr) -> str:
    """The part of a text that a node was read from."""
    assert node.end_col_offset is not None
    return text[max(node.col_offset - 1, 0) : node.end_col_offset - 1]


def _refuse_as_condition(text: str, node: ast.expr) -> NoReturn:
    raise ConstraintError(
        f"{shorten(text)}: {shorten(_part(text, node), 40)} is not true or false. Compare it with "
        "something."
    )


def _unescape(text: str) -> str:
    """A string literal without its quotes; an unknown escape stays as it is."""

    def character(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if code:
            return chr(int(code, 16)) if int(code, 16) < 0x110000 else match[0]
        return _ESCAPES.get(match[4], match[0])

    return _ESCAPE.sub(character, text)
