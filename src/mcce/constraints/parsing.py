"""Parses conditions such as ``years_employed <= age - 16``, and formulas, into small trees.

A formula is arithmetic that gives a number, such as ``months * price``. No text is ever handed to
Python's parser or compiler: the grammar below is all there is. It is read once from left to right,
so time and memory grow with its length, which is bounded.

Always true: a tree holds columns, constants, and operations that suit their operands as far as they
are known. Strings can only be compared, so no value is larger than a column. Constants are numbers
of 64 bits, booleans, strings or None.
"""

from __future__ import annotations

import keyword
import math
import operator
import re
from collections.abc import Callable
from typing import Any, Literal, NoReturn

from ..errors import ConstraintError, shorten
from .bounds import MAX_CONDITION, MAX_CONDITION_NESTING, MAX_NUMBER
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
    Token,
    Values,
    scan,
    unescape,
)

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
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=", "in", "not in")
_PRECEDENCE = (
    {"or": 1, "and": 2}
    | dict.fromkeys(_COMPARISONS, 4)
    | {"+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6}
)
_NOT, _COMPARISON, _SIGN = 3, 4, 7
_WORDS = {"True": True, "False": False, "None": None}


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
