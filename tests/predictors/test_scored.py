"""Training rows are scored in blocks, as if at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from mcce import MCCE, PredictorError
from mcce.predictors import decision as module

ROWS = pd.DataFrame({"x": np.arange(50.0), "z": np.arange(50.0) % 7})


def model():
    return LogisticRegression().fit(ROWS, np.where(ROWS["x"] > 24, "yes", "no"))


@pytest.mark.parametrize("desired", ["yes", (0.5, 1.0)])
def test_blocks_change_nothing(desired, monkeypatch):
    whole = MCCE(model(), desired, random_state=0).fit(ROWS)
    monkeypatch.setattr(module, "MOST_ROWS", 16)

    parts = MCCE(model(), desired, random_state=0).fit(ROWS)

    assert parts.fitted_.label_rule == whole.fitted_.label_rule
    assert parts.n_desired_ == whole.n_desired_
    people = ROWS.head(5)
    pd.testing.assert_frame_equal(parts.explain(people).frame, whole.explain(people).frame)


def test_a_block_has_no_more_rows_than_it_may_and_is_numbered_from_zero(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 16)
    seen = []

    def score(rows):
        seen.append(list(rows.index))
        return rows["x"] / 50

    MCCE(score, (0.5, 1.0), random_state=0).fit(ROWS)

    assert [len(index) for index in seen] == [16, 16, 16, 2]
    assert all(index[0] == 0 for index in seen)


def test_a_predictor_that_fails_on_a_later_block_is_an_error(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 16)

    def score(rows):
        return rows["x"].where(rows["x"] < 40)

    with pytest.raises(PredictorError):
        MCCE(score, (0.5, 1.0), random_state=0).fit(ROWS)
