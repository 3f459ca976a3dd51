"""What the error for a failed predictor call suggests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from mcce import MCCE, PredictorError

TABLE = pd.DataFrame({"age": [25.0, np.nan, 47.0, 52.0] * 5, "salary": np.arange(20.0)})
MISSING = "These columns have missing values"


def failure(predictor, table):
    with pytest.raises(PredictorError) as error:
        MCCE(predictor, (0.5, 1.0), random_state=0).fit(table)
    return str(error.value)


def test_missing_values_are_blamed_if_rows_without_them_pass():
    model = LogisticRegression().fit(TABLE.fillna(0), np.arange(20) % 2)

    assert f"{MISSING}: ['age']" in failure(model, TABLE)


def test_missing_values_are_not_blamed_for_another_failure():
    def score(frame):
        raise RuntimeError

    assert MISSING not in failure(score, TABLE)


def test_missing_values_are_not_blamed_for_rows_that_have_none():
    def score(frame):
        return np.where(frame["salary"] < 5, np.nan, 0.7)

    said = failure(score, TABLE)

    assert "returned NaN" in said
    assert MISSING not in said


def test_missing_values_are_blamed_where_every_undefined_score_has_one():
    assert f"{MISSING}: ['age']" in failure(lambda frame: frame["age"] / 100, TABLE)


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_pandas_is_suggested_if_the_predictor_takes_it(kind):
    frames = pytest.importorskip(kind)
    half = FunctionTransformer(lambda frame: frame.assign(salary=frame["salary"] / 2))
    table = TABLE.fillna(30)
    model = make_pipeline(half, LogisticRegression()).fit(table, np.arange(20) % 2)
    rows = frames.from_pandas(table) if kind == "polars" else frames.Table.from_pandas(table)

    assert "pass the training data with .to_pandas()" in failure(model, rows)


def test_pandas_is_not_suggested_if_the_predictor_fails_there_too():
    polars = pytest.importorskip("polars")

    def score(frame):
        raise RuntimeError

    assert "to_pandas" not in failure(score, polars.from_pandas(TABLE))
