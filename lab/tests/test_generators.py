"""The Gaussian copula against closed forms and brute force, and in an explainer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from generated import (
    check_batches,
    check_exact_is_refused,
    check_saving,
    check_searches,
    draw,
    explainer_with,
)
from mcce import MCCE, SavedFileError, Schema
from mcce.execution import explain
from mcce.testing import check_generator
from mcce_lab.generators import GaussianCopula


def correlated(n_rows, correlations, seed=0):
    """Normal rows with these correlations, shape (n_columns, n_rows)."""
    chance = np.random.default_rng(seed)
    factor = np.linalg.cholesky(np.array(correlations))
    return factor @ chance.normal(size=(len(correlations), n_rows))


def three(a, b, c):
    """Correlations of three numbers: first and second, first and third, second and third."""
    return [[1, a, b], [a, 1, c], [b, c, 1]]


def fitted(frame, immutable, decision=None):
    rows = Schema.learn_rows(frame, immutable=immutable)
    decision = np.arange(len(frame)) % 2 == 0 if decision is None else decision
    return GaussianCopula().fit(rows, decision)


def test_it_keeps_the_promises_of_a_generator():
    check_generator(GaussianCopula())


def test_a_number_given_others_has_the_conditional_mean_and_spread_of_the_normal():
    correlations = np.array(three(0.5, 0.3, 0.6))
    x, y, z = correlated(10_000, correlations)
    copula = fitted(pd.DataFrame({"x": x, "y": y, "z": z}), ["x", "y"])
    at = np.array([[1.0, -0.5], [0.5, 1.5]])

    (values,) = draw(copula, pd.DataFrame({"x": at[:, 0], "y": at[:, 1], "z": 0.0}), 4000)

    weights = np.linalg.solve(correlations[:2, :2], correlations[:2, 2])
    np.testing.assert_allclose(values.mean(axis=1), at @ weights, atol=0.07)
    spread = np.sqrt(1 - correlations[2, :2] @ weights)
    np.testing.assert_allclose(values.std(axis=1), spread, atol=0.04)


def test_levels_and_the_decision_are_conditioned_on_as_by_rejection():
    latent = correlated(20_000, three(0.7, 0.6, 0.5))
    cuts = np.array([-0.5, 0.8])
    levels = np.array(["a", "b", "c"])[np.searchsorted(cuts, latent[0])]
    frame = pd.DataFrame({"level": pd.Categorical(levels, ordered=True), "y": latent[2]})
    copula = fitted(frame, ["level"], decision=latent[1] > 0.5)

    (values,) = draw(copula, pd.DataFrame({"level": list("abc"), "y": 0.0}), 6000)

    fresh = correlated(1_000_000, three(0.7, 0.6, 0.5), seed=1)
    for number in range(3):
        kept = (np.searchsorted(cuts, fresh[0]) == number) & (fresh[1] > 0.5)
        assert values[number].mean() == pytest.approx(fresh[2][kept].mean(), abs=0.06)
        assert values[number].std() == pytest.approx(fresh[2][kept].std(), abs=0.05)


def test_correlations_do_not_depend_on_the_order_of_rows():
    latent = correlated(500, three(0.5, -0.4, 0.2))
    frame = pd.DataFrame({"x": latent[0], "y": latent[1] > 0, "z": np.round(latent[2])})
    order = np.random.default_rng(0).permutation(500)

    one = fitted(frame, ["x"], decision=latent[0] > 0)
    other = fitted(frame.iloc[order], ["x"], decision=latent[0][order] > 0)

    np.testing.assert_array_equal(one.correlations_, other.correlations_)


def test_margins_are_kept_with_their_atoms_and_levels():
    chance = np.random.default_rng(0)
    gain = np.where(chance.random(5000) < 0.9, 0, chance.integers(100, 900, 5000))
    jobs = chance.choice(["a", "b", "c"], 5000, p=[0.7, 0.2, 0.1])
    frame = pd.DataFrame({"gain": gain, "job": jobs})

    gains, jobs = draw(fitted(frame, []), frame.head(1), 20_000)

    assert (gains == 0).mean() == pytest.approx(0.9, abs=0.02)
    assert set(np.unique(gains)) <= set(gain)
    shares = pd.Series(jobs.ravel()).value_counts(normalize=True)
    np.testing.assert_allclose(shares[["a", "b", "c"]], [0.7, 0.2, 0.1], atol=0.02)


def test_unordered_levels_are_ordered_by_what_they_go_with():
    x = np.random.default_rng(0).normal(size=3000)
    job = np.array(["low", "high", "middle"])[np.where(x < -0.5, 0, np.where(x > 0.5, 1, 2))]
    copula = fitted(pd.DataFrame({"x": x, "job": job}), ["x"])

    (jobs,) = draw(copula, pd.DataFrame({"x": [-2.0, 0.0, 2.0], "job": "low"}), 500)

    for found, expected in zip(jobs, ["low", "middle", "high"], strict=True):
        assert (found == expected).mean() > 0.9


def test_whether_a_number_is_missing_depends_on_the_other_columns():
    chance = np.random.default_rng(0)
    x, y = correlated(4000, [[1, 0.8], [0.8, 1]])
    y[x + chance.normal(size=4000) > 1.5] = np.nan
    copula = fitted(pd.DataFrame({"x": x, "y": y}), ["x"])

    (values,) = draw(copula, pd.DataFrame({"x": [-1.5, 1.5], "y": 0.0}), 2000)

    missing = np.isnan(values).mean(axis=1)
    assert missing[0] < 0.02 < 0.3 < missing[1]
    assert np.nanmean(values[0]) < -0.8


def test_the_likelihood_of_two_levels_is_their_share_of_the_rows():
    latent = correlated(20_000, [[1, 0.6], [0.6, 1]])
    frame = pd.DataFrame({"x": latent[0] > 0.3, "y": latent[1] > -0.4})
    copula = fitted(frame, ["x"])
    cells = pd.DataFrame({"x": [True, True, False, False], "y": [True, False, True, False]})

    found = np.exp(copula.log_likelihood(copula.schema_.encode(cells)))

    shares = [(frame.y[frame.x == x] == y).mean() for x, y in cells.itertuples(index=False)]
    np.testing.assert_allclose(found, shares, atol=0.02)
    assert found[0] + found[1] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("spoil", ["cuts", "place", "correlations", "parts"])
def test_arrays_that_it_could_not_have_learned_are_refused(spoil):
    copula = fitted(pd.DataFrame({"x": [1.0, 2.0, np.nan, 4.0], "y": list("abab")}), ["y"])
    arrays = copula.to_arrays()
    if spoil == "correlations":
        arrays["correlations"] = np.full_like(copula.correlations_, 2.0)
    elif spoil == "parts":
        arrays["margins"] = arrays["margins"][:-1]
    else:
        arrays["margins"][1] = {**arrays["margins"][1], spoil: arrays["margins"][1][spoil][::-1]}

    with pytest.raises(SavedFileError):
        GaussianCopula().from_arrays(arrays, copula.schema_)


@pytest.fixture(scope="module")
def explainer():
    return explainer_with("copula")


def test_every_search_that_draws_keeps_its_promises(explainer):
    check_searches(explainer)
    check_exact_is_refused("copula")


def test_nobody_depends_on_others_or_on_a_file(explainer, tmp_path):
    check_batches(explainer)
    check_saving(explainer, tmp_path / "explainer.mcce")


def test_workers_take_a_generator_of_the_lab_as_an_object():
    train = bank(200, seed=1)
    explainer = MCCE(score, (0.8, 3.0), generator=GaussianCopula(), random_state=0).fit(train)
    people = train.head(4).assign(customer=range(4))

    answers = explain(explainer, people, key="customer", workers=1)

    assert set(answers["customer"].astype(int)) == set(range(4))
