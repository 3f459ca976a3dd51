"""The benchmark of ranges: points inside hold, and ranges that are too wide are found out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ranges
from mcce import Interval
from mcce.experiments.case import Case

RANDOM = np.random.default_rng(0)
TRAIN = pd.DataFrame(
    {"a": RANDOM.integers(0, 40, 500), "b": RANDOM.integers(0, 40, 500), "c": ["x", "y"] * 250}
)


def total(frame):
    return (frame["a"] + frame["b"]).to_numpy() / 80


CASE = Case("toy", TRAIN, TRAIN[total(TRAIN) < 0.3], ["c"], total, Interval(0.6, 1.0))


@pytest.fixture
def check(monkeypatch):
    monkeypatch.setattr(ranges, "N_POINTS", 300)
    return ranges.Checker(CASE, "paper", n_people=10, n_train=400)


def test_points_inside_ranges_and_boxes_hold_for_a_score_without_holes(check):
    rng = np.random.default_rng(0)

    assert len(check) == 10
    assert check.n_asked <= 20 * len(check.table)
    assert ranges.try_ranges(check, rng, distinct=True) == 1
    assert ranges.try_ranges(check, rng, distinct=False) == 1
    boxes = ranges.try_boxes(check, rng)
    assert boxes["boxes"] > 0
    assert boxes["box %"] > boxes["label %"]
    assert boxes["kept %"] == 100


def test_ranges_that_are_too_wide_are_found_out(check):
    check.table["low"] = check.table["low"].mask(check.table["low"].notna(), 0)

    assert ranges.try_ranges(check, np.random.default_rng(0), distinct=True) < 0.9


def test_a_line_of_the_table_has_all_figures(check, monkeypatch):
    monkeypatch.setattr(ranges, "load", lambda name: None)
    assert ranges.measure("toy", "paper", 10, 400) is None

    monkeypatch.setattr(ranges, "load", lambda name: CASE)
    line = ranges.measure("toy", "paper", 10, 400)

    assert line["answers"] == 10
    assert line["distinct %"] == line["people %"] == 100
    assert line["rows"] <= 20
    assert line["most"] <= 19
