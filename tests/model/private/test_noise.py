"""Noise is what it says: exact distributions, from random words alone."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from mcce import ParameterError
from mcce.model.private.growing import add_noise
from mcce.model.private.ledger import Budget
from mcce.model.private.noise import (
    Words,
    choose,
    exponential_coins,
    gaussian,
    geometric,
    rate_of,
    variance_of,
)

N = 200_000


def deviates(drawn, weights):
    """Largest distance of a frequency from its probability, in standard errors."""
    total = sum(weights.values())
    counted = Counter(drawn.tolist())
    shares = {value: weight / total for value, weight in weights.items()}
    return max(
        abs(counted[value] / drawn.size - p) / math.sqrt(p * (1 - p) / drawn.size)
        for value, p in shares.items()
        if p * drawn.size > 20
    )


@pytest.mark.parametrize("rate", [0.05, 0.7, 3.0])
def test_geometric_noise_has_its_distribution(rate):
    drawn = geometric(Words(1), rate, N)

    weights = {z: math.exp(-rate * abs(z)) for z in range(-400, 401)}
    assert deviates(drawn, weights) < 4.5


@pytest.mark.parametrize("sigma", [0.8, 3.3, 90.0])
def test_gaussian_noise_has_its_distribution(sigma):
    drawn = gaussian(Words(2), variance_of(sigma), N)

    weights = {z: math.exp(-(z**2) / (2 * sigma**2)) for z in range(-900, 901)}
    assert deviates(drawn, weights) < 4.5
    assert np.std(drawn) == pytest.approx(sigma, rel=0.01)


@pytest.mark.parametrize("fraction", [(0, 1), (1, 3), (1, 1), (7, 3), (25, 2)])
def test_coins_fall_with_their_probability(fraction):
    above, below = fraction
    fell = exponential_coins(Words(3), np.full(N, above), below).mean()

    p = math.exp(-above / below)
    assert abs(fell - p) <= 4 * math.sqrt(p * (1 - p) / N) + 1e-5 * (p < 1e-4)


def test_choices_have_the_probabilities_of_the_exponential_mechanism():
    utilities = np.array([3, 5, 0, 5])

    drawn = choose(Words(4), utilities, 0.6, N)

    weights = {at: math.exp(0.6 * int(u)) for at, u in enumerate(utilities)}
    assert deviates(drawn, weights) < 4.5
    assert set(choose(Words(4), utilities, math.inf, 10)) == {1}


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_the_spread_of_noise_is_that_of_the_budget(relation):
    changed = 2 if relation == "replace" else 1
    counts = np.zeros(1, dtype=np.int64)

    pure = add_noise(counts, Budget(0.5, "geometric", relation), Words(5), N)
    wide = add_noise(counts, Budget(0.01, "gaussian", relation), Words(6), N)

    p = math.exp(-0.5 / changed)
    assert np.std(pure) == pytest.approx(math.sqrt(2 * p) / (1 - p), rel=0.02)
    assert np.std(wide) == pytest.approx(math.sqrt(changed / 0.02), rel=0.01)


def test_numbers_below_a_bound_are_uniform_and_reach_all_of_it():
    drawn = Words(7).below(6, 60_000)

    assert deviates(drawn, dict.fromkeys(range(6), 1.0)) < 4.5
    assert (Words(8).below(3 * 2**61, 40) < 3 * 2**61).all()


def test_rates_are_rounded_to_more_noise():
    for value in (0.1, 1 / 3, 7.77, 1e-5):
        above, below = rate_of(value)
        assert value * (1 - 2e-6) < above / below <= value
        assert variance_of(1 / value) >= Fraction(1 / value) ** 2 if 1 / value < 2000 else True
    with pytest.raises(ParameterError, match="Pass another epsilon"):
        rate_of(1e-9)
    with pytest.raises(ParameterError, match="Pass another epsilon or delta"):
        variance_of(1e5)


def test_words_without_a_seed_never_repeat():
    assert not np.array_equal(Words().take(4), Words().take(4))
    assert np.array_equal(Words(3).take(4), Words(3).take(4))
