"""What must hold for explainers with any generator, on data with every kind of column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from mcce import MCCE, Interval, ParameterError, load
from mcce import constraints as c
from mcce.tables.columns import differ
from searches import assert_same, explain

DESIRED = Interval(0.85, np.inf)
IMMUTABLE = ["age", "sex"]
SEARCHES = ["paper", "sparse", "balanced", "plausible", "near", "fast"]
RULES = [c.only_up("education"), c.between("years", 0, 30)]


def data(n_rows, seed=0):
    """Applicants, with a column that follows from another one, and numbers with decimals."""
    frame = bank(n_rows, seed)
    frame["months"] = 12 * frame["years"]
    frame["balance"] = np.round(np.random.default_rng(seed).gamma(2, 500, n_rows), 2)
    return frame


TRAIN, PEOPLE = data(300), data(24, seed=1)


def explainer_with(generator, search="balanced", **more):
    """A fitted explainer."""
    parameters = {"immutable": IMMUTABLE, "constraints": RULES, "random_state": 0, **more}
    return MCCE(score, DESIRED, generator=generator, search=search, **parameters).fit(TRAIN)


def check_search(explainer, search):
    """Answers are valid, keep immutable features and constraints, and the relation found."""
    explainer.set_params(search=search)
    result = explain(explainer, PEOPLE)

    before = PEOPLE.loc[result.frame.index.get_level_values(0)].reset_index(drop=True)
    after = result.frame.reset_index(drop=True)
    assert np.unique(result.owner).size >= 5
    assert (score(after) >= 0.85).all()
    for name in IMMUTABLE:
        assert not differ(before[name], after[name]).any()
    assert (after["education"] >= before["education"]).all()
    moved = after["years"] != before["years"]
    assert after["years"][moved].between(0, 30).all()
    if search != "paper":
        pd.testing.assert_series_equal(after["months"], 12 * after["years"], check_names=False)
    known = set(TRAIN["housing"]) | set(before["housing"])
    assert set(after["housing"]) <= known
    np.testing.assert_array_equal(after["balance"].round(2), after["balance"])


def check_batches(explainer):
    """Everybody gets alone what they get among others, in any order, with any threads."""
    whole = explain(explainer, PEOPLE)
    backwards = explain(explainer, PEOPLE.iloc[::-1])
    for label in PEOPLE.index[:8]:
        alone = explain(explainer, PEOPLE.loc[[label]])
        for result in (whole, backwards):
            rows = result.frame[result.frame.index.get_level_values(0) == label]
            pd.testing.assert_frame_equal(alone.frame, rows, check_exact=True)
    assert_same(explain(explainer.set_params(n_jobs=2), PEOPLE), whole)
    explainer.set_params(n_jobs=None)


def check_draws(generator, schema, frame):
    """A single group and many, few draws and many: the same draws to the last bit."""
    from mcce.kernels import person_keys

    given = schema.encode(frame).descent
    keys = person_keys(1, given[schema.immutable].T)
    whole = generator.sample(given, keys, np.arange(100)).codes
    for group in range(0, len(frame), 7):
        some = generator.sample(given[:, [group]], keys[[group]], np.arange(100)).codes
        np.testing.assert_array_equal(some[:, 0], whole[:, group])
        one = generator.sample(given[:, [group]], keys[[group]], np.array([41])).codes
        np.testing.assert_array_equal(one[:, 0, 0], whole[:, group, 41])


def check_saving(explainer, path):
    """A saved explainer opens and answers alike."""
    explainer.save(path)

    assert_same(explain(load(path, score), PEOPLE), explain(explainer, PEOPLE))


def check_exact_is_refused(generator):
    """The error names the generators that the exact search can use."""
    with pytest.raises(ParameterError, match=r"exact search .* generator=\"trees\""):
        explain(explainer_with(generator, "exact", constraints=None), PEOPLE)
