"""People come back in the dtypes in which they came, whatever those of training."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from look_alikes import fingerprints
from mcce import MCCE, SchemaError
from mcce.tables.columns import is_missing, plain

N_ROWS = 24


def numbers(dtype) -> pd.Series:
    return pd.Series(np.arange(N_ROWS) % 6).astype(dtype)


NUMBERS = {
    str(dtype): numbers(dtype)
    for dtype in [
        "int8",
        "int64",
        "uint64",
        "float32",
        "float64",
        "Int64",
        "UInt8",
        "Float64",
        "int64[pyarrow]",
        "double[pyarrow]",
        "category",
        "object",
    ]
} | {"objects of floats": numbers("float64").astype(object)}
WORDS = pd.Series(["a", "b", "c", "d"] * 6)
TEXTS = {
    str(dtype): WORDS.astype(dtype)
    for dtype in ["object", "string", "string[python]", "string[pyarrow]", "category", "str"]
}
FLAGS = {
    str(dtype): pd.Series([True, False] * 12).astype(dtype)
    for dtype in ["bool", "boolean", "bool[pyarrow]", "object", "category"]
}
DAYS = pd.Series(pd.date_range("2024-01-01", periods=6).repeat(4)).reset_index(drop=True)
TIMES = {
    str(dtype): DAYS.astype(dtype)
    for dtype in ["datetime64[ns]", "datetime64[s]", "timestamp[us][pyarrow]", "object", "category"]
}


def pairs(kinds, trained=None):
    return [
        pytest.param(kinds[a], kinds[b], id=f"{a} to {b}") for a in trained or kinds for b in kinds
    ]


def score(frame: pd.DataFrame) -> np.ndarray:
    return frame["income"].to_numpy(dtype=float) / N_ROWS


def explain(trained: pd.Series, given: pd.Series, *, immutable: bool):
    train = pd.DataFrame({"income": np.arange(N_ROWS) % 12.0, "column": trained})
    people = pd.DataFrame({"income": [0.0] * 6, "column": given.head(6)})
    explainer = MCCE(
        score, (0.25, 1), immutable=["column"] if immutable else [], random_state=0, n_samples=50
    )
    return people, explainer.fit(train).explain(people)


def assert_values_of(column: pd.Series, known: pd.Series) -> None:
    levels = set(plain(known[~is_missing(known)]))
    assert set(plain(column[~is_missing(column)])) <= levels


MATRIX = [
    *pairs(NUMBERS, trained=[name for name in NUMBERS if "object" not in name]),
    *pairs(TEXTS),
    *pairs(FLAGS),
    *pairs(TIMES, trained=[name for name in TIMES if name not in ("object", "category")]),
]


@pytest.mark.parametrize("immutable", [True, False], ids=["immutable", "mutable"])
@pytest.mark.parametrize(("trained", "given"), MATRIX)
def test_every_dtype_comes_back(trained, given, immutable):
    people, result = explain(trained, given, immutable=immutable)

    column, own = result.frame["column"], people["column"].iloc[result.owner]
    assert result.frame.dtypes.equals(people.dtypes)
    assert result.factuals.dtypes.equals(people.dtypes)
    assert len(column) == 6
    if immutable:
        assert fingerprints(column) == fingerprints(own)
    assert_values_of(column, trained)


@pytest.mark.parametrize("cells", [[1, 2.0, np.int64(3), None], [1.0, 2, 3, pd.NA]])
def test_objects_that_stand_for_numbers_keep_their_types(cells):
    given = pd.Series(cells * 2, dtype=object)

    people, result = explain(numbers("int64"), given, immutable=True)

    own = people["column"].iloc[result.owner]
    assert fingerprints(result.frame["column"]) == fingerprints(own)


def test_a_category_that_stands_for_numbers_gets_the_levels_it_lacks():
    given = pd.Series([5, 4] * 3, dtype=pd.CategoricalDtype([5, 4]))

    _, result = explain(numbers("int64"), given, immutable=False)

    assert result.frame["column"].cat.categories.tolist() == [5, 4, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("given", "widened"),
    [
        (pd.Series([1, 2] * 3), "float64"),
        (pd.Series([5, 4] * 3, dtype=pd.CategoricalDtype([4, 5], ordered=True)), "float64"),
    ],
)
def test_a_dtype_that_cannot_hold_a_training_value_is_widened(given, widened):
    _, result = explain(numbers("float64") + 0.5, given, immutable=False)

    assert str(result.frame["column"].dtype) == widened
    assert str(result.frame["income"].dtype) == "float64"


def test_decimals_for_numbers_are_an_error():
    with pytest.raises(SchemaError, match="Column 'column' had dtype int64 in training"):
        explain(numbers("int64"), pd.Series([Decimal(1)] * 6), immutable=False)
