"""A chain of parametric conditionals: closed forms, promises, likelihood and files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from generated import check_batches, check_saving, check_searches, draw, explainer_with
from mcce import ParameterError, SavedFileError, Schema
from mcce.testing import check_generator
from mcce_lab.generators import ParametricChain


def fitted(frame, immutable=(), decision=None, **parameters):
    rows = Schema.learn_rows(frame, immutable=list(immutable))
    decision = np.arange(len(frame)) % 2 == 0 if decision is None else decision
    return ParametricChain(**parameters).fit(rows, decision)


def test_it_keeps_the_promises_of_a_generator():
    check_generator(ParametricChain())


def test_a_number_is_linear_in_what_is_given_with_normal_errors():
    chance = np.random.default_rng(0)
    x, accepted = chance.normal(size=20_000), chance.random(20_000) < 0.5
    y = 3 * x + 5 * accepted + chance.normal(0, 2, 20_000)
    chain = fitted(pd.DataFrame({"x": x, "y": y}), ["x"], accepted, penalty=0.0)

    (values,) = draw(chain, pd.DataFrame({"x": [-1.0, 1.0], "y": 0.0}), 5000)

    np.testing.assert_allclose(values.mean(axis=1), [2.0, 8.0], atol=0.12)
    np.testing.assert_allclose(values.std(axis=1), 2.0, atol=0.1)


def test_levels_follow_a_logistic_regression():
    chance = np.random.default_rng(0)
    x = chance.normal(size=30_000)
    odds = np.exp(np.stack([np.zeros_like(x), 1 + 2 * x, -1 - x], axis=1))
    shares = odds / odds.sum(axis=1, keepdims=True)
    level = np.array(["a", "b", "c"])[(chance.random(30_000)[:, None] > shares.cumsum(1)).sum(1)]
    chain = fitted(pd.DataFrame({"x": x, "level": level}), ["x"])

    (levels,) = draw(chain, pd.DataFrame({"x": [0.5], "level": "a"}), 20_000)

    expected = np.exp([0.0, 2.0, -1.5])
    found = pd.Series(levels[0]).value_counts(normalize=True)[["a", "b", "c"]]
    np.testing.assert_allclose(found, expected / expected.sum(), atol=0.02)


def test_whether_a_number_is_missing_depends_on_the_other_columns():
    chance = np.random.default_rng(0)
    x = chance.normal(size=4000)
    y = np.where(x + chance.normal(size=4000) > 1.5, np.nan, x)
    chain = fitted(pd.DataFrame({"x": x, "y": y}), ["x"])

    (values,) = draw(chain, pd.DataFrame({"x": [-1.5, 1.5], "y": 0.0}), 2000)

    missing = np.isnan(values).mean(axis=1)
    assert missing[0] < 0.02 < 0.4 < missing[1]


def test_draws_follow_the_likelihood():
    chance = np.random.default_rng(0)
    frame = pd.DataFrame({"a": chance.integers(0, 4, 900), "b": chance.choice(["p", "q"], 900)})
    frame.loc[::9, "a"] = np.nan
    chain = fitted(frame)
    states = pd.DataFrame(
        [(a, b) for a in (0.0, 1.0, 2.0, 3.0, np.nan) for b in "pq"], columns=["a", "b"]
    )

    found = np.exp(chain.log_likelihood(chain.schema_.encode(states)))

    assert found.sum() == pytest.approx(1)
    a, b = draw(chain, frame.head(1), 30_000)
    for share, (value, level) in zip(found, states.itertuples(index=False), strict=True):
        same = np.isnan(a) if np.isnan(value) else a == value
        assert (same & (b == level)).mean() == pytest.approx(share, abs=0.015)


def test_columns_that_never_vary_or_are_never_known_are_no_error():
    frame = pd.DataFrame({"x": range(40), "fee": 3.0, "gone": np.nan, "one": "a"})

    x, fee, gone, one = draw(fitted(frame), frame.head(1), 20)

    assert set(x.ravel()) <= set(range(40))
    assert set(fee.ravel()) == {3.0}
    assert np.isnan(gone.astype(float)).all()
    assert set(one.ravel()) == {"a"}


@pytest.mark.parametrize("part", ["moments", "weights", "error", "cells"])
def test_arrays_that_it_could_not_have_learned_are_refused(part):
    chain = fitted(pd.DataFrame({"x": [1.0, 2.0, np.nan, 4.0] * 9, "y": list("abab") * 9}), ["y"])
    arrays = chain.to_arrays()
    if part == "cells":
        arrays["cells"] = arrays["cells"][:-1]
    elif part == "moments":
        arrays["moments"] = -arrays["moments"]
    else:
        (only,) = arrays["conditionals"]
        arrays["conditionals"] = [{**only, part: -only[part][:1]}]

    with pytest.raises(SavedFileError):
        ParametricChain().from_arrays(arrays, chain.schema_)


def test_a_penalty_below_zero_is_refused():
    with pytest.raises(ParameterError, match="penalty must be a number of at least 0"):
        fitted(pd.DataFrame({"x": [1.0, 2.0]}), penalty=-1)


@pytest.fixture(scope="module")
def explainer():
    return explainer_with("parametric")


def test_every_search_keeps_its_promises_with_it(explainer):
    check_searches(explainer)


def test_nobody_depends_on_others_or_on_a_file(explainer, tmp_path):
    check_batches(explainer)
    check_saving(explainer, tmp_path / "explainer.mcce")
