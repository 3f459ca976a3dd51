"""Rule files and conditions made to hang, crash or exhaust whatever reads them."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from bank import bank, score
from fuzz_child import measured
from mcce import MCCE, ConstraintError, McceError
from mcce import constraints as c

RULES = """\
[[rules]]
only_up = "age"
[[rules]]
change = {feature = "salary", at_most = "20 %"}
[[rules]]
transitions = {feature = "housing", allowed = {rent = ["own"], boat = ["rent", "own"]}}
[[rules]]
relation = {name = "works from 16 on", holds = "years <= age - 16"}
"""
MAX_SECONDS, MAX_MB, MAX_WORDS = 2.0, 200.0, 600
# The address sanitizer surrounds and keeps every allocation, and checks every access.
FACTOR = 4.0 if "libasan" in os.environ.get("LD_PRELOAD", "") else 1.0
WORDS = (
    *("age", "years", "salary", "housing", "1", "2.5", "'own'", "True", "None", "`age`", "1e5"),
    *("(", ")", "[", "]", ",", "+", "-", "*", "/", "//", "%", "<", "<=", "==", "!=", "in", "not"),
    *("and", "or", "abs(", "missing(", "min(", "max(", ".", "**", ":=", "lambda", "if", "else"),
    *("#", "\\", "\n", "0x1f", "'", '"'),
)
FIXED = (
    *("housing != 'a' * 500000000", "housing * 500000000 == 'x'", "500000000 * housing == 'x'"),
    *("age < 9**9**9", "age < 1 << 9999999999", "age < 10 ** 10 ** 10", "age < 1e999"),
    *("housing + housing == 'a'", "housing % 9 == 'a'", "'%999999999d' % age == 'a'"),
    *("-housing == 'a'", "abs(housing) > 1", "min(housing, 'a') == 'a'", "housing < 3"),
    *("age / 0 > 1", "age // 0 > 1", "age % 0 > 1", "0 / 0 > age", "age > 1 / 0"),
    *("age.real > 1", "age[0] > 1", "(x := age) > 1", "f'{age:999999999}' == 'a'", "*age"),
    *("age * 9223372036854775807 > 0", "age * 1e308 * 1e308 > 0", "-9223372036854775808 < age"),
    *("abs(age, years) > 1", "min(age, out=years) > 1", "missing()", "exec('1')", "age()"),
    *("age > 1\x00", "age > '\ud800'", "age > '\\ud800'", "`\ud800` > 1", "\ufeffage > 1"),
    *("age in [1][1][1]", "age in [[1]]", "age in 'abc'", "age in [years]", "1 in [1]", ""),
    *("age == 3j", "age is None", "age == ...", "age == b'a'", "'a' 'b' == housing"),
)


def sizes(largest: int) -> st.SearchStrategy[int]:
    """Sizes up to the largest; each order of magnitude is as likely."""
    return st.floats(0.0, 1.0).map(lambda share: round(largest**share))


def repeated(form: str, part: str, largest: int) -> st.SearchStrategy[str]:
    return sizes(largest).map(lambda n: form.replace("…", part * n))


def wrapped(opening: str, closing: str, inner: str = "age > 1") -> st.SearchStrategy[str]:
    return sizes(100_000).map(lambda n: f"{opening * n}{inner}{closing * n}")


CONDITIONS = st.one_of(
    st.sampled_from(FIXED),
    st.lists(st.sampled_from(WORDS), max_size=300).map(" ".join),
    st.sampled_from([" + ", " < ", " or ", " > 1 and ", " ** ", " if age else "]).flatmap(
        lambda joint: sizes(50_000).map(lambda n: joint.join(["age"] * n) + " > 1")
    ),
    *(wrapped(*pair) for pair in ["()", ("-", ""), ("not ", ""), ("abs(", ")"), "[]"]),
    *(wrapped(*pair) for pair in [("lambda: ", ""), "``", ("-(", ")")]),
    repeated("age < …", "9", 200_000),
    repeated("age < 1…", "*9999999999", 10_000),
    repeated("housing == '…'", "a", 2_000_000),
    repeated("age in […]", "1, ", 200_000),
    repeated("age > 1…", " ", 2_000_000),
    repeated("age > 1 #…", "a", 2_000_000),
    repeated("min(…1) > 1", "age, ", 50_000),
    repeated("… > 1", "`", 100_000),
    repeated("… > 1", "a", 100_000),
)


@st.composite
def _long_texts(draw: Any) -> str:
    text = draw(st.sampled_from(["a", "a ", "'", "\\", "é", "-", "a=", '"', "\\u0041", "\t", "[["]))
    text *= draw(sizes(1_500_000))
    places = [
        f"# {text}\n{RULES}",
        f"[[rules]]\nonly_up = '{text}'",
        f'[[rules]]\nonly_up = """{text}"""',
        f"[[rules]]\n'{text}' = 'age'",
        f"[[rules]]\nlevels = {{feature = 'housing', allowed = ['{text}']}}",
        f"[[rules]]\nrelation = {{name = '{text}', holds = 'age > 1'}}",
        text,
    ]
    return draw(st.sampled_from(places))


@st.composite
def _numbers(draw: Any) -> str:
    number = draw(st.sampled_from(["9", "-1", "0x", "0b1", "1.", "1e", "1_0", ".1", "+7"]))
    number += draw(st.sampled_from("019")) * draw(sizes(200_000))
    rule = draw(st.sampled_from(["weight", "step", "change", "between", "levels"]))
    name = {"change": "at_most", "between": "low", "levels": "allowed"}.get(rule, rule)
    feature = draw(st.sampled_from(["age", "housing"]))
    whole = f"{rule} = {{feature = '{feature}', {name} = {number}}}"
    return f"[[rules]]\n{draw(st.sampled_from([whole, f'max_changes = {number}']))}"


@st.composite
def _damaged(draw: Any) -> bytes:
    data = bytearray(RULES.encode())
    for _ in range(draw(st.integers(1, 8))):
        data[draw(st.integers(0, len(data) - 1))] = draw(
            st.sampled_from(b"{}[]&*!'\"#,:-\n\t =.0\\")
        )
    return bytes(data)


RAW = RULES.encode()
FILES = st.one_of(
    *(wrapped("rules = " + pair[0], pair[1], "1") for pair in ["[]", ("{a=", "}"), ("[{a=", "}]")]),
    repeated("a… = 1", ".a", 100_000),
    repeated("[a…]", " . a", 100_000),
    repeated("[[rules]]\na… = 'age'", ".'.'", 100_000),
    repeated("…", "[[rules]]\n", 30_000),
    sizes(30_000).map(lambda n: "".join(f"[a{i}]\n" for i in range(n))),
    repeated("[[rules]]\n…", "only_up = 'age'\n", 20_000),
    _long_texts(),
    _numbers(),
    _damaged(),
    CONDITIONS.map(
        lambda text: f"[[rules]]\nrelation = {{name = 'x', holds = {json.dumps(text)}}}"
    ),
    st.binary(max_size=2000),
    sizes(2_000_000).map(lambda n: b"\x00" * n),
    st.sampled_from(
        [
            *(RULES.encode(name) for name in ("utf-16", "utf-32", "utf-8-sig")),
            *(RAW + b"\x00", RAW.replace(b"age", b"a\xed\xa0\x80e"), RAW.replace(b"\n", b"\r")),
            *(b"\xff\xfe" + RAW, b"", b"\xef\xbb\xbf", RAW.replace(b"age", "a\u2028g".encode())),
        ]
    ),
).map(lambda made: made if isinstance(made, bytes) else made.encode("utf-8", "surrogatepass"))


def use_file(path: Path) -> tuple[str, float, float]:
    """What becomes of an explainer with the rules of a file, and what that takes."""
    _warm()
    return measured(lambda: _outcome(lambda: path))


def use_condition(text: str) -> tuple[str, float, float]:
    """What becomes of an explainer with a condition, and what that takes."""
    _warm()
    return measured(lambda: _outcome(lambda: [c.relation("x", text)]))


@cache
def _warm() -> None:
    """Import all that is needed, before anything is measured."""
    _outcome(lambda: [c.relation("x", "age > 1")])


def _outcome(make: Callable[[], Any]) -> str:
    """``accepted``, or ``refused`` in a few printable words; anything else is wrong."""
    train = bank(60)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            explainer = MCCE(score, (0.8, 10), constraints=make(), n_samples=20)
            explainer.fit(train).explain(train.head(3))
    except ConstraintError as error:
        fine = len(str(error)) <= MAX_WORDS and str(error).isprintable()
        return "refused" if fine else f"{len(str(error))} letters: {str(error)[:300]!r}"
    except McceError as error:
        return "refused" if len(str(error)) < 4000 else f"{len(str(error))} letters"
    return "accepted"
