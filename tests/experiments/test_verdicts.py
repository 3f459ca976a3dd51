"""Whether a published mean counts as reproduced: one rule for both directions."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.experiments import Report
from mcce.experiments.experiment import Estimate, agreement, verdict

PUBLISHED = Estimate(2.70, 0.73, 1000)
MEANS = st.floats(0.0, 30.0).map(lambda mean: round(mean, 3))
SPREADS = st.floats(0.1, 5.0)
NUMBERS = st.integers(2, 5000)


@pytest.mark.parametrize(
    ("ours", "remark"),
    [
        (2.70, "reproduced: +0.00 [-0.07, +0.07], 0.0 standard errors"),
        (2.66, "reproduced: -0.04 [-0.11, +0.03], 1.2 standard errors"),
        (2.74, "reproduced: +0.04 [-0.03, +0.11], 1.2 standard errors"),
        (2.60, "not reproduced: -0.10 [-0.17, -0.03], 3.0 standard errors"),
        (2.80, "not reproduced: +0.10 [+0.03, +0.17], 3.0 standard errors"),
    ],
)
def test_a_mean_is_reproduced_within_two_standard_errors_up_or_down(ours, remark):
    assert agreement(PUBLISHED, Estimate(ours, 0.75, 1000)) == remark


def test_the_rounding_of_the_published_figure_is_forgiven():
    # Two standard errors are 0.066; 0.07 lies beyond them, but not beyond the rounding.
    assert verdict(0.07, 0.033).startswith("not reproduced")
    assert verdict(0.07, 0.033, rounding=0.005).startswith("reproduced")
    assert verdict(-0.07, 0.033, rounding=0.005).startswith("reproduced")


@given(MEANS, SPREADS, NUMBERS, MEANS, SPREADS, NUMBERS)
def test_cheaper_and_dearer_by_the_same_amount_have_the_same_verdict(mean, sd, n, own, own_sd, m):
    published = Estimate(mean, sd, n)

    up, down = (
        agreement(published, Estimate(mean + sign * own, own_sd, m)).partition(":")[0]
        for sign in (1, -1)
    )

    assert up == down


@given(st.floats(-3, 3), st.floats(0.01, 2.0))
def test_a_difference_is_reproduced_if_and_only_if_its_interval_holds_0(difference, error):
    text = verdict(difference, error)

    low, high = map(float, re.findall(r"[+-]\d+\.\d\d(?=[,\]])", text))
    if abs(abs(difference) - 2 * error) > 0.01:  # further than the rounding of the interval
        assert (low <= 0 <= high) == text.startswith("reproduced")


def test_without_spread_any_difference_is_too_large():
    assert verdict(0.1, 0.0) == "not reproduced: +0.10 [+0.10, +0.10], inf standard errors"
    assert verdict(0.0, 0.0).startswith("reproduced: +0.00")


@pytest.mark.parametrize(
    "ours", [Estimate(np.nan, np.nan, 0), Estimate(2.7, np.nan, 1), Estimate(np.nan, 0.1, 5)]
)
def test_what_has_no_mean_or_spread_cannot_be_compared(ours):
    assert agreement(PUBLISHED, ours) == "not comparable: too few counterfactuals"


def test_a_report_compares_both_costs_of_two_rows():
    report = Report("tiny", "A tiny one")
    costs = pd.Series({"l0": 2.7, "l0_sd": 0.7, "l1": 0.5, "l1_sd": 0.4, "n_ce": 1000})

    report.add_means("adult", costs, costs.replace(0.5, 0.8))

    table = report.comparison.set_index("what")
    assert table.index.tolist() == ["adult l0", "adult l1"]
    assert table["remark"].str.partition(":")[0].tolist() == ["reproduced", "not reproduced"]
    assert table.loc["adult l1", ["published", "ours"]].tolist() == [0.5, 0.8]
