"""What must hold for explainers with any generator, on data with every kind of column."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from mcce import MCCE, Interval, ParameterError, load
from mcce import constraints as c
from mcce.protocols import DrawRequest
from searches import assert_same, explain

DESIRED = Interval(0.85, np.inf)
IMMUTABLE = ["age", "sex"]
SEARCHES = ["paper", "sparse", "balanced", "plausible", "near", "nearest"]


@cache
def _data(n_rows, seed):
    frame = bank(n_rows, seed)
    frame["months"] = 12 * frame["years"]
    frame["balance"] = np.round(np.random.default_rng(seed).gamma(2, 500, n_rows), 2)
    return frame


def people(n_people=16):
    """People to explain, with a column that follows from another one, and decimals."""
    return _data(24, 1).head(n_people).copy()


def explainer_with(generator, search="balanced", **more):
    """A fitted explainer."""
    rules = [c.only_up("education"), c.between("years", 0, 30)]
    parameters = {"immutable": IMMUTABLE, "constraints": rules, "random_state": 0, **more}
    explainer = MCCE(score, DESIRED, generator=generator, search=search, **parameters)
    return explainer.fit(_data(300, 0).copy())


def check_searches(explainer):
    """Answers are valid, keep immutable features and constraints, and the relation found."""
    training = _data(300, 0)
    for search in SEARCHES:
        result = explain(explainer.set_params(search=search), people(24))

        before = people(24).loc[result.frame.index.get_level_values(0)].reset_index(drop=True)
        after = result.frame.reset_index(drop=True)
        assert np.unique(result.owner).size >= 5
        assert (score(after) >= 0.85).all()
        pd.testing.assert_frame_equal(after[IMMUTABLE], before[IMMUTABLE], check_exact=True)
        assert (after["education"] >= before["education"]).all()
        moved = after["years"] != before["years"]
        assert after["years"][moved].between(0, 30).all()
        if search != "paper":
            pd.testing.assert_series_equal(after["months"], 12 * after["years"], check_names=False)
        assert set(after["housing"]) <= set(training["housing"]) | set(before["housing"])
        np.testing.assert_array_equal(after["balance"].round(2), after["balance"])


def check_batches(explainer):
    """Everybody gets alone what they get among others, in any order, with any threads."""
    explainer.set_params(search="balanced")
    whole = explain(explainer, people())
    backwards = explain(explainer, people().iloc[::-1])
    for label in people().index[:4]:
        alone = explain(explainer, people().loc[[label]])
        for result in (whole, backwards):
            rows = result.frame[result.frame.index.get_level_values(0) == label]
            pd.testing.assert_frame_equal(alone.frame, rows, check_exact=True)
    assert_same(explain(explainer.set_params(n_jobs=2), people()), whole)
    explainer.set_params(n_jobs=None)


def draw(generator, frame, n_draws, **more):
    """Values drawn for people, one array (n_people, n_draws) per mutable feature."""
    given = generator.schema_.encode(frame).tree_codes
    keys = np.random.default_rng(3).integers(1, 2**62, len(frame)).astype(np.uint64)
    sample = generator.sample(DrawRequest(given, keys, np.arange(n_draws), **more))
    schema = generator.schema_
    tables = sample.tables or [schema.features[at].table for at in schema.mutable]
    pairs = zip(tables, sample.codes, strict=True)
    return [table.to_numpy()[codes] for table, codes in pairs]


def check_saving(explainer, path):
    """A saved explainer opens and answers alike."""
    explainer.set_params(search="balanced").save(path)

    assert_same(explain(load(path, score), people()), explain(explainer, people()))


def check_exact_is_refused(generator):
    """The error names the generators that the exact search can use."""
    with pytest.raises(ParameterError, match=r"exact search .* generator=\"trees\""):
        explain(explainer_with(generator, "exact", constraints=None), people())
