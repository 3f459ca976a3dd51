"""The bound of differential privacy, on mechanisms whose epsilon is known."""

from __future__ import annotations

import numpy as np
import pytest

from mcce import ParameterError, privacy


def responses(epsilon, n, seed):
    """Randomized response: members say yes with exp(epsilon) times the odds of nonmembers."""
    rng = np.random.default_rng(seed)
    share = np.exp(epsilon) / (1 + np.exp(epsilon))
    return rng.random(n) < share, rng.random(n) < 1 - share


def test_a_mechanism_that_keeps_its_promise_is_rarely_blamed():
    blamed = [
        not privacy.dp_bound(*responses(1.0, 400, seed), 1.0, confidence=0.9).holds
        for seed in range(100)
    ]

    assert np.mean(blamed) < 0.1


def test_half_the_noise_is_noticed():
    check = privacy.dp_bound(*responses(1.0, 4000, 0), 0.5)

    assert not check.holds
    assert 0.5 < check.epsilon_low < 1.0
    assert not check.thresholds["holds"].all()


def test_the_bound_holds_at_every_threshold_of_gaussian_scores():
    rng = np.random.default_rng(0)
    members, nonmembers = rng.normal(0.5, 1, 3000), rng.normal(0, 1, 3000)

    loose, tight = (privacy.dp_bound(members, nonmembers, e) for e in (2.5, 0.1))

    assert loose.holds
    assert not tight.holds
    assert loose.thresholds.groupby("direction").size().gt(20).all()
    assert (loose.thresholds["tpr_low"] <= loose.thresholds["tpr"]).all()
    assert (loose.thresholds["fpr_high"] >= loose.thresholds["fpr"]).all()


def test_a_score_that_is_turned_around_is_noticed_too():
    told, others = responses(2.0, 2000, 1)

    assert not privacy.dp_bound(~told, ~others, 0.5).holds


def test_delta_allows_rare_events():
    members, nonmembers = np.arange(1000) < 30, np.zeros(1000)

    assert not privacy.dp_bound(members, nonmembers, 0.0).holds
    assert privacy.dp_bound(members, nonmembers, 0.0, delta=0.05).holds


def test_equal_scores_show_nothing():
    check = privacy.dp_bound(np.ones(50), np.ones(50), 0.0)

    assert check.holds
    assert check.epsilon_low < 0.2


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (([], [1.0], 1), {}, "members must be one score for each of at least one row"),
        (([1.0], [np.nan], 1), {}, "nonmembers has scores that are NaN"),
        (([1.0], ["a"], 1), {}, "nonmembers must be one score"),
        (([1.0], [1.0], -1), {}, "epsilon must be a finite number >= 0, got -1"),
        (([1.0], [1.0], 1), {"delta": 2}, "delta must be a number from 0 to 1, got 2"),
        (([1.0], [1.0], 1), {"confidence": 0}, "confidence must be a number above 0"),
    ],
)
def test_wrong_arguments_are_named(arguments, options, words):
    with pytest.raises(ParameterError, match=words):
        privacy.dp_bound(*arguments, **options)
