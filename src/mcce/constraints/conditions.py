"""Conditions on the columns of a frame, such as ``years_employed <= age - 16``, and formulas.

A formula is arithmetic that gives a number, such as ``months * price``. Both may come from a file,
so they must be safe to read and to compute. No text is ever handed to Python's parser or compiler:
the small grammar below is all there is. It is read once from left to right, so time and memory grow
with its length, which is bounded. Columns cannot be written to, and arithmetic is done in floating
point.

Always true: a tree holds columns, constants, and operations that suit their operands as far as they
are known. Strings can only be compared, so no value is larger than a column. Constants are numbers
of 64 bits, booleans, strings or None. A comparison with a missing value is false, whichever its
operator: ``not (x > 1)`` is true where x is missing, and ``missing(x)`` finds missing values. A
formula is undefined, NaN, where a column is missing or the result is not finite.
"""

from __future__ import annotations

import keyword
import math
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
import pandas as pd
from pandas.api import types

from ..errors import ConstraintError, shorten
from ..kernels import BoolArray, FloatArray
from ..tables.columns import is_missing, is_time

# Checked before or while a text is parsed, wherever it comes from.
MAX_CONDITION = 4_000  # characters
MAX_CONDITION_NESTING = 20  # parentheses, functions and signs inside each other
MAX_NUMBER = 100  # characters of a number or a date, also in rule files

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
FUNCTIONS = {"abs": 1, "min": 2, "max": 2, "missing": 1}  # min and max take more, too
_IN_FORMULAS = ("abs", "min", "max")
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
_PRECEDENCE = (
    {"or": 1, "and": 2}
    | dict.fromkeys(_COMPARISONS, 4)
    | {"+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6}
)
_NOT, _COMPARISON, _SIGN = 3, 4, 7
_WORDS = {"True": True, "False": False, "None": None}
_NUMBERS_IN_OBJECTS = ("integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty")
# What the functions of formulas compute; conditions have them too.
ON_NUMBERS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "min": lambda *values: reduce(np.minimum, values),
    "max": lambda *values: reduce(np.maximum, values),
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\n": "", "\\": "\\", "'": "'", '"': '"'}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_TOKEN = re.compile(
    r"""[ \t\f\r\n]*+(?:
    (?P<column>`[^`]++`)
    | (?P<string>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")
    | (?P<number>0[xXoObB]\w*+|\.?[0-9](?:[eE][-+]|[\w.])*+)
    | (?P<name>(?:[A-Za-z_]|[^\x00-\x7f])(?:\w|[^\x00-\x7f])*+)
    | (?P<operator><=|>=|==|!=|//|\*\*|[-+*/%<>()\[\],])
    | (?P<end>\Z)
    | (?P<other>.))""",
    re.VERBOSE | re.DOTALL,
)


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


def parse(
    text: str, kind: Literal["condition", "formula"] = "condition"
) -> tuple[Node, tuple[str, ...]]:
    """The tree of a condition or formula and the names of its columns.

    Examples
    --------
    >>> parse("debt <= 2 * 3")
    (Comparison(first=Column(name='debt'), steps=(('<=', Constant(value=6)),)), ('debt',))
    """
    if len(text) > MAX_CONDITION:
        raise ConstraintError(
            f"A {kind} may have {MAX_CONDITION} characters, got {len(text)}: {shorten(text)}. "
            f"{'Split it, or pass a function' if kind == 'condition' else 'Shorten it'}."
        )
    parser = _Parser(text, kind)
    try:
        tree = parser.parse()
    except RecursionError:
        # Only where the caller has used up Python's stack.
        raise ConstraintError(f"{shorten(text)} is nested too deeply to be read here.") from None
    if not parser.names:
        todo = "Compare a column with something" if kind == "condition" else "Name one"
        raise ConstraintError(f"{shorten(text)} names no column. {todo}.")
    return tree, tuple(parser.names)


@dataclass(frozen=True)
class Column:
    """The cells of a column."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A number, string, boolean or None."""

    value: bool | float | str | None


@dataclass(frozen=True)
class Values:
    """The list after ``in``."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Arithmetic:
    """Operations of equal precedence, from left to right."""

    first: Node
    steps: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Negative:
    """Minus something."""

    inner: Node


@dataclass(frozen=True)
class Comparison:
    """Comparisons that must all hold, such as ``18 <= age < 65``."""

    first: Node
    steps: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Logic:
    """Conditions joined by ``and`` or ``or``, with the text of each."""

    symbol: str
    parts: tuple[tuple[Node, str], ...]


@dataclass(frozen=True)
class Not:
    """The opposite of a condition, with its text."""

    inner: Node
    text: str


@dataclass(frozen=True)
class Call:
    """A function and its arguments."""

    function: str
    arguments: tuple[Node, ...]


Node: TypeAlias = (
    Column | Constant | Values | Arithmetic | Negative | Comparison | Logic | Not | Call
)


class _Parser:
    """Reads one condition or formula; precedence climbing, one method call per nesting."""

    def __init__(self, text: str, kind: str) -> None:
        self.text, self.kind = text, kind
        self.names: dict[str, None] = {}
        self._tokens = scan(text)
        self._at = next(self._tokens)
        self._end = 0  # where the last token that was taken ended
        self._nesting = 0

    def parse(self) -> Node:
        start = self._at.start
        tree = self._parse(0)
        if self._at.kind != "end":
            self._refuse(self._at.text)
        return self._condition(tree, start) if self.kind == "condition" else tree

    def _take(self) -> Token:
        token = self._at
        self._end = token.end
        if token.kind != "end":
            self._at = next(self._tokens)
        return token

    def _takes(self, text: str) -> bool:
        """Take an operator if it is next."""
        if self._at.kind != "operator" or self._at.text != text:
            return False
        self._take()
        return True

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            self._unexpected(f"{text!r}")

    def _parse(self, above: int) -> Node:
        """An expression whose operators bind tighter than ``above``."""
        start = self._at.start
        tree = self._parse_first(above)
        while (symbol := self._peek_operator()) and _PRECEDENCE[symbol] > above:
            tree = self._parse_run(tree, start, symbol)
        return tree

    def _parse_inside(self, above: int) -> Node:
        """An expression inside parentheses, a function, a list, or behind a sign or ``not``."""
        self._nesting += 1
        if self._nesting > MAX_CONDITION_NESTING:
            raise ConstraintError(
                f"{shorten(self.text)} nests more than {MAX_CONDITION_NESTING} parentheses, "
                "functions or signs. Write it flatter."
            )
        tree = self._parse(above)
        self._nesting -= 1
        return tree

    def _peek_operator(self) -> str:
        """The operator that is next, if one is; a formula has only those of arithmetic."""
        text = self._at.text
        if self.kind == "formula":
            return text if self._at.kind == "operator" and text in ARITHMETIC else ""
        if self._at.kind == "name" and text == "not":
            return "not in"
        return text if self._at.kind in ("name", "operator") and text in _PRECEDENCE else ""

    def _take_operator(self) -> str:
        symbol = self._take().text
        if symbol == "not" and (self._at.kind != "name" or self._take().text != "in"):
            self._refuse("not")
        return "not in" if symbol == "not" else symbol

    def _parse_run(self, first: Node, start: int, symbol: str) -> Node:
        """Operators of equal precedence and what stands between them."""
        if symbol in ("or", "and"):
            return self._parse_logic(first, start, symbol)
        if symbol in _COMPARISONS:
            return self._parse_comparison(first)
        return self._parse_arithmetic(first, start, _PRECEDENCE[symbol])

    def _parse_logic(self, first: Node, start: int, symbol: str) -> Node:
        parts = [(self._condition(first, start), self._since(start))]
        while self._peek_operator() == symbol:
            self._take_operator()
            place = self._at.start
            inner = self._condition(self._parse(_PRECEDENCE[symbol]), place)
            parts.append((inner, self._since(place)))
        return Logic(symbol, tuple(parts))

    def _parse_comparison(self, first: Node) -> Node:
        steps = []
        while self._peek_operator() in _COMPARISONS:
            symbol = self._take_operator()
            listed = symbol in ("in", "not in")
            steps.append((symbol, self._parse_values() if listed else self._parse(_COMPARISON)))
        if _PRECEDENCE.get(self._peek_operator(), 0) > _COMPARISON:
            self._refuse(self._at.text)  # x in [1] + 2
        return Comparison(first, tuple(steps))

    def _parse_arithmetic(self, first: Node, start: int, level: int) -> Node:
        self._operand(first, start)
        steps = []
        while _PRECEDENCE.get(self._peek_operator()) == level:
            symbol = self._take_operator()
            place = self._at.start
            steps.append((symbol, self._operand(self._parse(level), place)))
        return self._fold(first, steps, start)

    def _parse_first(self, above: int) -> Node:
        """What an expression begins with: a sign, ``not``, parentheses, a function or a value."""
        token = self._at
        negates = token.kind == "name" and token.text == "not" and self.kind == "condition"
        if negates and above <= _NOT:
            self._take()
            start = self._at.start
            return Not(self._condition(self._parse_inside(_NOT), start), self._since(start))
        if token.kind == "operator" and token.text in ("-", "+"):
            self._take()
            start = self._at.start
            inner = self._operand(self._parse_inside(_SIGN), start)
            if token.text == "+":
                return inner
            return _negated(inner)
        if self._takes("("):
            inner = self._parse_inside(0)
            self._expect(")")
            return inner
        if token.kind == "operator" and token.text == "[":
            self._refuse(self.text[token.start : self.text.find("]", token.start) + 1 or None])
        return self._parse_leaf()

    def _parse_leaf(self) -> Node:
        token = self._at
        if token.kind not in ("column", "string", "number", "name"):
            self._unexpected("a column or a value")
        self._take()
        if token.kind == "string":
            return Constant(unescape(token.text[1:-1]))
        if token.kind == "number":
            return Constant(self._number(token.text))
        if token.kind == "column":
            return self._column(token.text[1:-1])
        if token.text in _WORDS:
            return Constant(_WORDS[token.text])
        if keyword.iskeyword(token.text) or not token.text.isidentifier():
            self._refuse(token.text)
        return self._parse_call(token.text) if self._takes("(") else self._column(token.text)

    def _column(self, name: str) -> Column:
        self.names[name] = None
        return Column(name)

    def _parse_call(self, function: str) -> Call:
        if function not in self._functions:
            raise ConstraintError(
                f"{shorten(self.text)} calls {shorten(function, 40)}, which is not allowed. The "
                f"functions are {', '.join(self._functions)}."
            )
        arguments: list[Node] = []
        while not self._takes(")"):
            start = self._at.start
            inner = self._parse_inside(0)
            arguments.append(inner if function == "missing" else self._operand(inner, start))
            if not self._takes(","):
                self._expect(")")
                break
        needed, several = FUNCTIONS[function], FUNCTIONS[function] > 1
        if len(arguments) < needed or (len(arguments) > needed and not several):
            raise ConstraintError(
                f"{shorten(self.text)}: {function} takes {'two or more' if several else 'one'} "
                f"argument{'s' if several else ''}, got {len(arguments)}."
            )
        return Call(function, tuple(arguments))

    def _parse_values(self) -> Values:
        """What stands after ``in``: a list of constants, or one of them."""
        start = self._at.start
        opened = next((mark for mark in ("[", "(") if self._takes(mark)), None)
        closing = {"[": "]", "(": ")", None: ""}[opened]
        values = []
        while not (closing and self._takes(closing)):
            inner = self._parse_inside(_COMPARISON if opened is None else 0)
            if not isinstance(inner, Constant):
                raise ConstraintError(
                    f"{shorten(self.text)}: after in and not in, list values such as ['a', 'b'], "
                    f"not columns, got {shorten(self._since(start), 40)}."
                )
            values.append(inner.value)
            if opened is None:
                break
            if not self._takes(","):
                self._expect(closing)
                break
        return Values(tuple(values))

    def _number(self, text: str) -> float:
        if len(text) > MAX_NUMBER:
            self._refuse(text)
        try:
            number = int(text, 0) if re.fullmatch(r"0[xXoObB]\w*|[0-9_]+", text) else float(text)
        except ValueError:
            self._refuse(text)
        return self._bounded(number, text)

    def _fold(self, first: Node, steps: list[tuple[str, Node]], start: int) -> Node:
        """Arithmetic, as one constant if it has no columns."""
        inner = [first, *(node for _, node in steps)]
        if not all(isinstance(node, Constant) for node in inner):
            return Arithmetic(first, tuple(steps))
        value: Any = first.value  # type: ignore[union-attr]
        for symbol, node in steps:
            try:
                value = ARITHMETIC[symbol](value, node.value)  # type: ignore[union-attr]
            except (ArithmeticError, TypeError):
                value = math.inf
            value = self._bounded(value, self._since(start))
        return Constant(value)

    def _bounded(self, number: float, text: str) -> float:
        """A number of 64 bits; raises if it has no finite value."""
        if isinstance(number, int) and not -(1 << 63) <= number < 1 << 63:
            number = float(number)
        if not math.isfinite(number):
            raise ConstraintError(
                f"{shorten(self.text)}: {shorten(text, 40)} is not a finite number. Write one "
                "below 1e308."
            )
        return number

    def _operand(self, node: Node, start: int) -> Node:
        """An operand of arithmetic; raises for strings and None."""
        if isinstance(node, Constant) and not isinstance(node.value, (int, float)):
            raise ConstraintError(
                f"{shorten(self.text)} computes with {shorten(self._since(start), 40)}, which is "
                "no number. Strings and None can only be compared."
            )
        return node

    def _condition(self, node: Node, start: int) -> Node:
        """An operand of ``and``, ``or`` or ``not``; raises for what is never true or false."""
        numbers = isinstance(node, Call) and node.function != "missing"
        if numbers or isinstance(node, (Constant, Arithmetic, Negative)):
            raise ConstraintError(
                f"{shorten(self.text)}: {shorten(self._since(start), 40)} is not true or false. "
                "Compare it with something."
            )
        return node

    def _since(self, start: int) -> str:
        return self.text[start : self._end]

    def _unexpected(self, wanted: str) -> NoReturn:
        token = self._at
        if token.kind == "end":
            raise ConstraintError(
                f"{shorten(self.text)} is not a {self.kind}: it ends where {wanted} should follow."
            )
        self._refuse(token.text)

    def _refuse(self, part: str) -> NoReturn:
        more = " strings,", " comparisons, and, or, not, in [...]"
        values, operators = more if self.kind == "condition" else ("", " parentheses")
        raise ConstraintError(
            f"{shorten(self.text)} contains {shorten(part, 40)}, which is not allowed there. A "
            f"{self.kind} may use columns, numbers,{values} + - * / // %,{operators} and the "
            f"functions {', '.join(self._functions)}."
        )

    @property
    def _functions(self) -> tuple[str, ...]:
        return tuple(FUNCTIONS) if self.kind == "condition" else _IN_FORMULAS


def _negated(node: Node) -> Node:
    if isinstance(node, Constant) and isinstance(node.value, (int, float)):
        return Constant(-node.value)
    return Negative(node)


@dataclass(frozen=True)
class Token:
    """A word of a condition, and where it stands."""

    kind: str
    text: str
    start: int
    end: int


def scan(text: str) -> Iterator[Token]:
    """The tokens of a condition; ``end`` comes last, ``other`` is a character of no use."""
    position, kind = 0, ""
    while kind != "end":
        match = _TOKEN.match(text, position)
        assert match is not None
        assert match.lastgroup is not None
        kind, position = match.lastgroup, match.end()
        yield Token(kind, match[kind], match.start(kind), position)


def unescape(text: str) -> str:
    """A string literal without its quotes; an unknown escape stays as it is."""

    def character(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if code:
            return chr(int(code, 16)) if int(code, 16) < 0x110000 else match[0]
        return _ESCAPES.get(match[4], match[0])

    return _ESCAPE.sub(character, text)
