"""Columns that Arrow stores are columns like any other."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, SchemaError, TreeChain
from mcce.tables.columns import is_missing, plain
from mcce.tables.dtypes import align_dtype
from mcce.tables.features import Feature

pa = pytest.importorskip("pyarrow")

MONTHS = [datetime.datetime(2024, month, 1) for month in (3, 1, 2)]
ZONED = [month.replace(tzinfo=datetime.UTC) for month in MONTHS]

# Cells whose ranks are 1, 2 (missing), 0.
CELLS = {
    "int64": ([2**60 + 2, None, 2**60 + 1], pa.int64()),
    "int8": ([2, None, 1], pa.int8()),
    "uint64": ([2**63 + 2, None, 2**63 + 1], pa.uint64()),
    "double": ([0.2, None, 0.1], pa.float64()),
    "float": ([0.2, None, 0.1], pa.float32()),
    "string": (["b", None, "a"], pa.string()),
    "large string": (["b", None, "a"], pa.large_string()),
    "bool": ([True, None, False], pa.bool_()),
    "timestamp": ([MONTHS[0], None, MONTHS[1]], pa.timestamp("us")),
    "timestamp with a zone": ([ZONED[0], None, ZONED[1]], pa.timestamp("ns", tz="UTC")),
    "date": ([MONTHS[0].date(), None, MONTHS[1].date()], pa.date32()),
    "duration": ([MONTHS[0] - MONTHS[1], None, MONTHS[1] - MONTHS[0]], pa.duration("us")),
}
CATEGORICAL = {"string", "large string", "bool"}


def arrow(name: str) -> pd.Series:
    cells, kind = CELLS[name]
    return pd.Series(cells, dtype=pd.ArrowDtype(kind), name="column")


@pytest.mark.parametrize("name", CELLS)
def test_kinds_and_codes_are_those_of_any_column(name):
    column = arrow(name)

    feature = Feature.learn(column, kind=None, immutable=False)
    exact, descent = feature.encode(column)

    assert feature.kind == ("categorical" if name in CATEGORICAL else "numeric")
    assert exact.tolist() == descent.tolist() == [1, 2, 0]
    assert feature.has_missing


@pytest.mark.parametrize("immutable", [[], ["column"]], ids=["mutable", "immutable"])
@pytest.mark.parametrize("name", CELLS)
def test_a_frame_comes_back_with_its_dtypes(name, immutable):
    column = pd.concat([arrow(name)] * 8, ignore_index=True)
    train = pd.DataFrame({"column": column, "points": np.arange(24)})
    before = train.copy(deep=True)
    chain = TreeChain(min_samples_leaf=1)
    model = MCCE(lambda frame: frame["points"] / 24, (0.5, 1), generator=chain, random_state=0)
    model.set_params(n_samples=30, n_counterfactuals=2, immutable=immutable).fit(train)

    result = model.explain(train.head(6))

    assert len(result.frame) == 12
    pd.testing.assert_series_equal(result.frame.dtypes, train.dtypes)
    pd.testing.assert_frame_equal(result.factuals, before.head(6), check_names=False)
    pd.testing.assert_frame_equal(train, before)
    assert len(result.changes()) == result.measures["sparsity"].sum()


def test_an_unseen_date_takes_the_nearest_code():
    feature = Feature.learn(arrow("date"), kind=None, immutable=False)
    given = pd.Series([datetime.date(2024, 1, 20)], dtype=feature.table.dtype)

    exact, descent = feature.encode(given)

    assert (exact.tolist(), descent.tolist()) == ([-1], [0])


@pytest.mark.parametrize(
    ("name", "plain_dtype"),
    [
        ("int64", "Int64"),
        ("int8", "Int64"),
        ("int8", "float64"),
        ("double", "float64"),
        ("string", "string"),
        ("string", object),
        ("bool", "boolean"),
        ("bool", object),
        ("timestamp", "datetime64[ns]"),
        ("timestamp with a zone", "datetime64[ns, UTC]"),
        ("duration", "timedelta64[ns]"),
    ],
)
def test_arrow_and_plain_columns_meet_without_loss(name, plain_dtype):
    stored = arrow(name)
    usual = pd.Series([None if pd.isna(cell) else cell for cell in stored], dtype=object)
    usual = usual.astype(plain_dtype).rename("column")
    for trained, given in [(stored, usual), (usual, stored)]:
        feature = Feature.learn(trained, kind=None, immutable=False)

        met = align_dtype(given, feature.table, feature.kind)

        exact, _ = feature.encode(met)
        assert exact.tolist() == [1, 2, 0]
        assert is_missing(met).tolist() == [False, True, False]
        assert plain(met)[[0, 2]].tolist() == plain(given)[[0, 2]].tolist()


def test_integers_beyond_float64_do_not_meet_floats():
    feature = Feature.learn(arrow("int64"), kind=None, immutable=False)
    given = pd.Series([0.5], dtype=pd.ArrowDtype(pa.float64()), name="column")

    with pytest.raises(SchemaError, match="no dtype holds both without loss"):
        align_dtype(given, feature.table, feature.kind)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["a"], pa.dictionary(pa.int32(), pa.string())),
        ([[1]], pa.list_(pa.int64())),
        ([None], pa.null()),
        ([b"a"], pa.binary()),
        ([datetime.time(12)], pa.time64("us")),
    ],
)
def test_an_arrow_type_that_is_no_feature_is_an_error(cells, kind):
    column = pd.Series(cells, dtype=pd.ArrowDtype(kind), name="column")

    with pytest.raises(SchemaError, match="neither numeric nor categorical"):
        Feature.learn(column, kind=None, immutable=False)


def test_a_column_of_the_null_type_is_nothing_but_missing():
    feature = Feature.learn(pd.Series([1, 2], name="column"), kind=None, immutable=False)
    given = pd.Series([None, None], dtype=pd.ArrowDtype(pa.null()), name="column")

    met = align_dtype(given, feature.table, feature.kind)

    assert met.isna().all()
    assert met.dtype == np.float64
