"""The normal distribution against scipy, which is no run-time requirement."""

from __future__ import annotations

import numpy as np
import pytest

from mcce.model.copula.normal import cdf, pdf, ppf, within

norm = pytest.importorskip("scipy.stats", reason="scipy is what it is compared with").norm


def test_probabilities_are_those_of_scipy_far_into_the_tails():
    x = np.linspace(-37, 9, 20_001)

    assert np.abs(cdf(x) / norm.cdf(x) - 1).max() < 1e-12
    assert np.abs(pdf(x) - norm.pdf(x)).max() < 1e-15
    np.testing.assert_array_equal(cdf(np.array([-np.inf, 0.0, np.inf])), [0, 0.5, 1])


def test_quantiles_are_those_of_scipy_far_into_the_tails():
    p = np.concatenate([np.logspace(-300, -1, 5000), np.linspace(0.001, 0.999, 5001)])
    p = p[p != 0.5]

    assert np.abs(ppf(p) / norm.ppf(p) - 1).max() < 1e-13
    assert np.abs(ppf(1 - 2.0**-40) + ppf(2.0**-40)) < 1e-4
    np.testing.assert_array_equal(ppf(np.array([0.0, 0.5, 1.0])), [-np.inf, 0, np.inf])


@pytest.mark.parametrize("ends", [(-1, 2), (3, np.inf), (-np.inf, -5), (8, 8.5), (-9, -8.9)])
def test_draws_from_an_interval_are_quantiles_of_the_truncated_distribution(ends):
    u = np.linspace(0.001, 0.999, 999)
    low, high = (np.full(u.size, float(end)) for end in ends)

    numbers, mass = within(low, high, u)

    sign = -1 if ends[0] > 0 else 1
    a, b = sorted([sign * ends[0], sign * ends[1]])
    share = (norm.cdf(sign * numbers) - norm.cdf(a)) / (norm.cdf(b) - norm.cdf(a))
    np.testing.assert_allclose(share, u if sign > 0 else 1 - u, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(mass, norm.cdf(b) - norm.cdf(a), rtol=1e-10)


def test_an_interval_without_probability_gives_its_nearer_end():
    numbers, mass = within(np.array([50.0, -60.0]), np.array([60.0, -50.0]), np.array([0.3, 0.3]))

    np.testing.assert_array_equal(numbers, [50, -50])
    np.testing.assert_array_equal(mass, 0)


def test_a_number_does_not_depend_on_the_others():
    p = np.random.default_rng(0).random(1000)

    np.testing.assert_array_equal(ppf(p), [ppf(p[at : at + 1])[0] for at in range(p.size)])
    np.testing.assert_array_equal(cdf(p), [cdf(p[at : at + 1])[0] for at in range(p.size)])
