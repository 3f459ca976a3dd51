"""Conditions made to hang, crash or exhaust whatever computes them.

``hostile_conditions(seed, n)`` repeats with its seed; ``read_hostile_rules.py`` computes them under
limits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator


def hostile_conditions(seed: int, n: int) -> Iterator[str]:
    """The first ``n`` conditions of a seed."""
    for number in range(n):
        chance = random.Random(f"{seed} {number}")
        yield CONDITION_RECIPES[number % len(CONDITION_RECIPES)](chance)


def any_size(chance: random.Random, largest: int) -> int:
    """A size between 1 and the largest; each order of magnitude is as likely."""
    return round(largest ** chance.random())


def _chain(joint: str, largest: int = 50_000) -> Callable[[random.Random], str]:
    return lambda chance: joint.join(["age"] * any_size(chance, largest)) + " > 1"


def _wrapped(opening: str, closing: str) -> Callable[[random.Random], str]:
    def make(chance: random.Random) -> str:
        depth = any_size(chance, 100_000)
        return f"{opening * depth}age > 1{closing * depth}"

    return make


def _fixed(*texts: str) -> Callable[[random.Random], str]:
    return lambda chance: chance.choice(texts)


def _random_tokens(chance: random.Random) -> str:
    words = "age years salary housing 1 2.5 'own' ( ) [ ] , + - * / // % < <= == != in not and or"
    words += " abs( missing( min( max( True None `age` . ** := lambda if else # \\ \n 1e5 0x1f ' \""
    return " ".join(chance.choices(words.split(" "), k=any_size(chance, 300)))


CONDITION_RECIPES: tuple[Callable[[random.Random], str], ...] = (
    _chain(" + "),
    _chain(" < "),
    _chain(" or "),
    _chain(" > 1 and "),
    _chain(" ** "),
    _chain(" if age else "),
    _wrapped("(", ")"),
    _wrapped("-", ""),
    _wrapped("not ", ""),
    _wrapped("abs(", ")"),
    _wrapped("[", "]"),
    _wrapped("lambda: ", ""),
    _wrapped("`", "`"),
    _wrapped("-(", ")"),
    _fixed(
        "housing != 'a' * 500000000", "housing * 500000000 == 'x'", "500000000 * housing == 'x'"
    ),
    _fixed("age < 9**9**9", "age < 1 << 9999999999", "age < 10 ** 10 ** 10", "age < 1e999"),
    _fixed("housing + housing == 'a'", "housing % 9 == 'a'", "'%999999999d' % age == 'a'"),
    _fixed("-housing == 'a'", "abs(housing) > 1", "min(housing, 'a') == 'a'", "housing < 3"),
    _fixed("age / 0 > 1", "age // 0 > 1", "age % 0 > 1", "0 / 0 > age", "age > 1 / 0"),
    _fixed("age.real > 1", "age[0] > 1", "(x := age) > 1", "f'{age:999999999}' == 'a'", "*age"),
    _fixed(
        "age * 9223372036854775807 > 0", "age * 1e308 * 1e308 > 0", "-9223372036854775808 < age"
    ),
    _fixed("abs(age, years) > 1", "min(age, out=years) > 1", "missing()", "exec('1')", "age()"),
    _fixed("age > 1\x00", "age > '\ud800'", "age > '\\ud800'", "`\ud800` > 1", "\ufeffage > 1"),
    _fixed("age in " + "[1]" * 9, "age in [[1]]", "age in 'abc'", "age in [years]", "1 in [1]", ""),
    _fixed(
        "age == 3j", "age is None", "age == ...", "age == b'a'", "'a' 'b' == housing", "age == None"
    ),
    lambda chance: f"age < {'9' * any_size(chance, 200_000)}",
    lambda chance: f"age < 1{'*9999999999' * any_size(chance, 10_000)}",
    lambda chance: f"housing == '{'a' * any_size(chance, 2_000_000)}'",
    lambda chance: f"age in [{'1, ' * any_size(chance, 200_000)}]",
    lambda chance: f"age > 1{' ' * any_size(chance, 2_000_000)}",
    lambda chance: f"age > 1 #{'a' * any_size(chance, 2_000_000)}",
    lambda chance: f"min({'age, ' * any_size(chance, 50_000)}1) > 1",
    lambda chance: f"{'`' * any_size(chance, 100_000)} > 1",
    lambda chance: f"{'a' * any_size(chance, 100_000)} > 1",
    _random_tokens,
    _random_tokens,
)
