"""Predictors that fail in every way: an error of ours comes out, or a result that loses nobody.

Afterwards the predictor works again, and the explainer must give its old answers.
"""

from __future__ import annotations

import copy
import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bank import bank, score
from fuzz_child import examples, few_or_many
from mcce import MCCE, McceError

SEARCHES = ["paper", "balanced", "sparse", "near", "plausible", "exact"]


class Failing:
    """A predictor that works until a call, fails in its way from then on, and can be repaired."""

    def __init__(self, way, last_good):
        self.way, self.last_good = way, last_good
        self.n_calls, self.broken, self.inside = 0, True, False
        self.kept = np.zeros(100_000)
        # What it may do with the explainer that calls it.
        self.back = lambda: None

    def __call__(self, rows):
        self.n_calls += 1
        if not self.broken or self.n_calls <= self.last_good:
            return score(rows)
        return self.way(self, rows, np.asarray(score(rows.copy())))


class Unreadable:
    """Something that NumPy cannot read."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")


class Liar:
    """Says it has other rows than it has."""

    shape = (3,)

    @property
    def __array_interface__(self):
        return {"shape": (2,), "typestr": "<f8", "data": None, "version": 3}


def raises(error):
    def way(self, rows, scores):
        raise error("the predictor fails")

    return way


def returns(make):
    return lambda self, rows, scores: make(scores)


def writes_cells(self, rows, scores):
    for place in range(rows.shape[1]):
        rows.isetitem(place, rows.iloc[::-1, place].to_numpy())
    rows.drop(rows.index[:1], inplace=True)  # noqa: PD002
    return scores


def writes_arrays(self, rows, scores):
    for name in rows:
        array = rows[name].array
        for target in (array, getattr(array, "_ndarray", None), getattr(array, "_data", None)):
            try:
                target[...] = target[0]
            except (TypeError, ValueError, IndexError, AttributeError, KeyError):
                continue
    return scores


def writes_names(self, rows, scores):
    rows.columns = [f"other {place}" for place in range(rows.shape[1])]
    rows.index = pd.Index(["same"] * len(rows))
    return pd.Series(scores, index=rows.index)


def changes_its_mind(self, rows, scores):
    return scores + np.random.default_rng(self.n_calls).normal(0, 0.5, scores.shape)


def keeps_its_output(self, rows, scores):
    """Returns one array again and again, and writes into it later."""
    self.kept[: scores.size] = scores
    return self.kept[: scores.size]


def calls_back(self, rows, scores):
    if not self.inside:
        self.inside = True
        try:
            self.back()
        finally:
            self.inside = False
    return scores


def recurses(self, rows, scores):
    return recurses(self, rows, scores)


ERRORS = (
    *(ValueError, KeyError, MemoryError, RecursionError, StopIteration, OSError, AssertionError),
    *(KeyboardInterrupt, UnicodeError, ArithmeticError, Warning),
)
# They score rows as before: the answers must be those of a predictor that works.
HARMLESS = {
    "a column": returns(lambda s: s[:, None]),
    "numbers as objects": returns(lambda s: s.astype(object)),
    "writes cells": writes_cells,
    "writes arrays": writes_arrays,
    "keeps its output": keeps_its_output,
}
WAYS = HARMLESS | {
    **{error.__name__: raises(error) for error in ERRORS},
    "NaN": returns(lambda s: np.where(s > np.median(s), np.nan, s)),
    "infinity": returns(lambda s: np.where(s > np.median(s), np.inf, -np.inf)),
    "a mask": returns(lambda s: np.ma.masked_array(s, mask=np.arange(s.size) % 2 == 0)),
    "one masked": returns(lambda s: np.ma.masked),
    "one less": returns(lambda s: s[:-1]),
    "one more": returns(lambda s: np.append(s, s[:1])),
    "none": returns(lambda s: s[:0]),
    "a scalar": returns(lambda s: 0.5),
    "None": returns(lambda s: None),
    "nothing but None": returns(lambda s: [None] * s.size),
    "two columns": returns(lambda s: np.stack([s, s], axis=1)),
    "three dimensions": returns(lambda s: s[:, None, None]),
    "ragged lists": returns(lambda s: [[1.0]] * (s.size - 1) + [[1.0, 2.0]]),
    "strings": returns(lambda s: s.astype(str)),
    "surrogates": returns(lambda s: np.array(["\ud800"] * s.size, dtype=object)),
    "bytes": returns(lambda s: s.astype("S8")),
    "objects": returns(lambda s: np.array([object() for _ in s], dtype=object)),
    "big integers": returns(lambda s: np.array([10**400] * s.size, dtype=object)),
    "complex numbers": returns(lambda s: s + 1j),
    "dates": returns(lambda s: s.astype("datetime64[s]")),
    "float16": returns(lambda s: s.astype("float16")),
    "read-only": returns(lambda s: np.broadcast_to(s[0], s.shape)),
    "a record": returns(lambda s: s.astype([("score", "f8")])),
    "NA": returns(lambda s: pd.array([None, *s[1:]], dtype="Float64")),
    "a sparse series": returns(lambda s: pd.Series(s).astype("Sparse[float]")),
    "a category": returns(lambda s: pd.Series(s).astype("category")),
    "a dict": returns(lambda s: {"score": s}),
    "a set": returns(lambda s: set(s.tolist())),
    "a generator": returns(lambda s: (x for x in s)),
    "unreadable": returns(lambda s: Unreadable()),
    "a liar": returns(lambda s: Liar()),
    "an error as a value": returns(lambda s: ValueError("returned")),
    "writes names": writes_names,
    "changes its mind": changes_its_mind,
    "alternates": lambda self, rows, s: s if self.n_calls % 2 else s.max() - s,
    "depends on company": lambda self, rows, s: s - s.mean(),
    "calls back": calls_back,
    "recurses": recurses,
}
# What a predictor may do with the explainer that calls it, and the rows it was given.
BACK = {
    "explains": lambda explainer: explainer.explain(tables()[1].head(3)),
    "fits": lambda explainer: explainer.fit(tables()[0]),
    "pickles": lambda explainer: pickle.dumps(explainer.fitted_.generator),
    "copies": copy.deepcopy,
    "sets": lambda explainer: explainer.set_params(n_jobs=1),
}


@cache
def tables():
    return bank(60), bank(6, seed=1)


def answers(result):
    people = result.people["status"].tolist()
    return repr((result.frame.to_numpy(object).tolist(), result.owner.tolist(), people))


def attempt(call, way):
    """The result of a call; None if it ends in an error of ours, or in an interrupt of its own."""
    try:
        return call()
    except McceError as error:
        length = len(str(error))
    except KeyboardInterrupt:
        assert way == "KeyboardInterrupt"
        return None
    assert 15 < length < 4000
    return None


def check_nobody_is_lost(result):
    _, people = tables()
    status = result.people["status"].to_numpy()
    n_answers = np.bincount(result.owner, minlength=len(people))
    assert len(status) == len(people)
    assert (result.people["reason"][status == "no answer"] != "").all()
    assert np.array_equal(status == "answered", n_answers > 0)
    assert (result.frame["sex"].to_numpy() == people["sex"].to_numpy()[result.owner]).all()


@few_or_many
@pytest.mark.filterwarnings("ignore")
def test_a_predictor_that_fails_breaks_nothing(share):
    train, people = tables()
    given_cells = repr((train.to_numpy(object).tolist(), people.to_numpy(object).tolist()))

    @examples(share, 0.6)
    @given(
        way=st.sampled_from(sorted(WAYS)),
        last_good=st.integers(0, 5),
        search=st.sampled_from(SEARCHES),
        n_jobs=st.integers(1, 2),
        back=st.sampled_from(sorted(BACK)),
    )
    @example(way="big integers", last_good=1, search="paper", n_jobs=1, back="sets")
    @example(way="calls back", last_good=1, search="balanced", n_jobs=2, back="fits")
    def check(way, last_good, search, n_jobs, back):
        failing = Failing(WAYS[way], last_good)
        explainer = MCCE(failing, (0.8, 10), immutable=["sex"], search=search, n_samples=20)
        explainer.set_params(random_state=0, n_jobs=n_jobs)
        if last_good == 0:
            attempt(lambda: explainer.fit(train), way)
            return
        failing.broken = False
        expected = answers(explainer.fit(train).explain(people))
        failing.broken, failing.n_calls = True, 0
        failing.back = lambda: BACK[back](explainer)

        result = attempt(lambda: explainer.explain(people), way)

        if result is not None:
            check_nobody_is_lost(result)
            assert way not in HARMLESS or answers(result) == expected
        failing.broken = False
        assert answers(explainer.explain(people)) == expected
        now = repr((train.to_numpy(object).tolist(), people.to_numpy(object).tolist()))
        assert now == given_cells

    check()
