"""Logarithms of p-values, against SciPy and far beyond where p-values underflow."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from scipy.stats import chi2

from mcce.model.chi_square import log_survival


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 12, 39, 40, 200, 561, 5000])
def test_the_logarithm_is_that_of_scipy(freedom):
    statistics = np.concatenate(
        [np.geomspace(1e-9, 1e5, 60), np.linspace(0.2, 3.0, 30) * freedom, [799.0, 800.0, 801.0]]
    )

    ours = np.array([log_survival(float(c), freedom) for c in statistics])
    theirs = chi2.logsf(statistics, freedom)

    finite = np.isfinite(theirs)
    assert finite.sum() > 60
    np.testing.assert_allclose(ours[finite], theirs[finite], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("freedom", [1, 2, 5, 80])
def test_larger_statistics_have_smaller_p_values_where_p_underflows(freedom):
    logs = [log_survival(c, freedom) for c in (2e3, 2e4, 2e5, 2e6)]

    assert all(math.exp(log) == 0.0 for log in logs[1:])
    assert logs == sorted(logs, reverse=True)
    assert all(math.isfinite(log) for log in logs)


def test_nothing_is_as_likely_as_no_dependence_at_all():
    assert log_survival(0.0, 3) == 0.0
    assert log_survival(1e-300, 3) <= 0.0


@pytest.mark.parametrize("freedom", [2001, 2002, 1_000_001, 10**8])
def test_very_many_degrees_of_freedom_take_neither_memory_nor_digits(freedom):
    away = np.array([-6.0, -1.0, 0.0, 1.0, 6.0, 12.0])
    statistics = np.append(freedom + away * math.sqrt(2.0 * freedom), [0.001, 1.0, freedom / 10])

    tracemalloc.start()
    ours = np.array([log_survival(float(c), freedom) for c in statistics])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    np.testing.assert_allclose(ours, chi2.logsf(statistics, freedom), rtol=1e-6, atol=1e-7)
    assert peak < 2**24
