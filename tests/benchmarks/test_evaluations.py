"""Rows and times per person, and a predictor that takes its time."""

from __future__ import annotations

import time

import pandas as pd
import pytest

from evaluations import CostlyPredictor, Evaluations, quantile, tables


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100)])
def test_a_quantile_is_one_of_the_values(share, value):
    assert quantile(range(1, 101), share) == value


def test_rows_of_few_people_have_the_largest_as_their_high_quantile():
    assert quantile([3, 1, 2], 0.95) == 3


def test_a_costly_predictor_returns_the_same_scores_later():
    rows = pd.DataFrame({"a": range(50)})
    predictor = CostlyPredictor(lambda frame: frame["a"].to_numpy() / 50, seconds=1e-4)
    started = time.process_time()

    scores = predictor(rows)

    assert scores.tolist() == [at / 50 for at in range(50)]
    assert time.process_time() - started >= 50 * 1e-4


def test_rows_together_and_alone_are_told_apart():
    one = Evaluations("toy", "sparse", 4, 0.1, 5.5, 1.0, [2, 4, 6, 20], [1.0] * 4, [2.0] * 4)

    rows, times = tables([one], [])

    assert rows.rows == [["toy", "sparse", "4", "5.5", "8.0", "5", "20", "20"]]
    assert times.rows[0][-4:] == ["1.0", "1.0", "2.0", "2.0"]
