"""What each kind of relation says of a row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.relations import Condition, Dependency, Equivalence, Linear, Ordering, Product, Ratio
from mcce.relations.significance import log_chance


def test_a_price_list_adds_amounts_by_level_and_knows_missing():
    bill = Linear("bill", amounts=(("plan", (("a", 0.0), ("b", 5.0), (None, 2.0))),), constant=20.0)
    frame = pd.DataFrame({"plan": ["a", "b", None, "new"], "bill": [20.0, 24.0, 22.0, 99.0]})

    assert bill.compute(frame)[:3].tolist() == [20, 25, 22]
    assert bill.deviation(frame)[1] == -1
    # A level that training never held has no price, so nothing can be said.
    assert bill.holds(frame).tolist() == [True, False, True, True]


def test_the_name_of_a_price_list_shows_a_few_levels():
    prices = tuple((level, float(at)) for at, level in enumerate("abcdef"))
    bill = Linear("bill", amounts=(("plan", prices), ("car", prices[:3]), ("dog", prices[:2])))

    assert bill.name == (
        "bill = plan {'a': 0, 'b': 1, 'c': 2, ...} + car {'a': 0, 'b': 1, 'c': 2} + dog {...}"
    )
    assert bill.compute(pd.DataFrame({"plan": ["f"], "car": ["c"], "dog": ["b"]})).tolist() == [8]


def test_what_differs_is_written_differently_however_long_it_is():
    long = "a name of more than sixty characters, as sometimes in surveys, "
    values = [f"{long}1", f"{long}2", 1234567.01, 1234567.02, 0.1, 1e-310, "1", 1, True, None]

    names = [Ordering(f"{long}{end}", "b").name for end in "12"]
    names += [Condition("a", value).name for value in values]

    assert len(set(names)) == len(names)
    assert max(len(name) for name in names) < 70


def test_a_tolerance_is_absolute_or_a_share_of_the_formula():
    frame = pd.DataFrame({"m": [2.0, 20.0], "p": [10.0, 10.0], "t": [23.0, 203.0]})

    assert Product("t", "m", "p", tolerance=4.0).holds(frame).tolist() == [True, True]
    shares = Product("t", "m", "p", tolerance=0.1, relative=True)
    assert shares.holds(frame).tolist() == [False, True]
    assert shares.excess(frame).tolist() == [1.0, 0.0]


def test_a_ratio_by_zero_is_undefined_and_holds():
    frame = pd.DataFrame({"d": [1.0, 1.0], "i": [0.0, 2.0], "r": [7.0, 7.0]})

    assert Ratio("r", "d", "i").holds(frame).tolist() == [True, False]
    assert np.isnan(Ratio("r", "d", "i").compute(frame)[0])


def test_equal_values_break_a_strict_ordering_only():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, None], "b": [2.0, 2.0, 1.0, 1.0]})

    assert Ordering("a", "b").holds(frame).tolist() == [True, True, False, True]
    assert Ordering("a", "b", strict=True).holds(frame).tolist() == [True, False, False, True]


def test_an_equivalence_compares_missing_cells_levels_and_numbers():
    frame = pd.DataFrame({"n": [0, 1, 0, 1], "s": ["x", "y", None, None]})

    assert Equivalence(Condition("n", 0.0), Condition("s", "x")).holds(frame).tolist() == [
        True,
        True,
        False,
        True,
    ]
    assert Condition("s", None)(frame).tolist() == [False, False, True, True]


@pytest.mark.parametrize("dtype", ["category", "object", "string"])
def test_a_dependency_says_nothing_of_a_value_it_does_not_know(dtype):
    frame = pd.DataFrame({"c": ["Oslo", "Oslo", "Rome"], "l": ["N", "S", "S"]}).astype(dtype)

    relation = Dependency("c", "l", (("Oslo", "N"),))

    assert relation.holds(frame).tolist() == [True, False, True]


def test_names_that_are_no_words_are_quoted():
    assert Ordering("days late", "total").name == "`days late` <= total"


def test_the_bound_is_at_least_the_share_of_permutations_that_pass():
    random = np.random.default_rng(0)
    for n_broken in (0, 1, 2):
        n_rows, n_draws = 8, 20_000
        passes = random.random((n_rows, n_rows)) < 0.4
        np.fill_diagonal(passes, True)
        orders = np.array([random.permutation(n_rows) for _ in range(n_draws)])
        kept = passes[np.arange(n_rows), orders].sum(axis=1) >= n_rows - n_broken

        assert np.log(max(kept.mean(), 1e-9)) <= log_chance(passes.sum(axis=1), n_broken) + 1e-9
