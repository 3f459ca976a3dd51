"""Dtypes of people and training: nothing is lost on the way in or out, or the user hears of it."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, Schema, SchemaError

DAYS = pd.to_datetime(["2024-03-01", "2024-01-01", "2024-02-01"])
OSLO = DAYS.tz_localize("Europe/Oslo")
ABC = pd.CategoricalDtype(["a", "b", "c"])
SIZES = pd.CategoricalDtype(["small", "large"], ordered=True)
SIZES_TURNED = pd.CategoricalDtype(["large", "small"], ordered=True)
N_ROWS = 12


def series(cells, dtype=None) -> pd.Series:
    return pd.Series(cells, dtype=dtype, name="column")


def meet(trained: pd.Series, given: pd.Series, kind=None) -> pd.Series:
    """The given column as the predictor of an explainer trained on the other sees it."""
    schema = Schema.learn(trained.to_frame("column"), kinds=kind and {"column": kind})
    return schema.encode(given.to_frame("column")).frame["column"]


def values(column: pd.Series) -> list:
    """Plain values of cells, None for missing ones."""
    return [None if pd.isna(cell) else cell for cell in column.astype(object)]


# Training, people, and what the predictor sees.
MEETINGS = [
    (series([2**64 - 1, 0], "uint64"), series([1, 2]), "uint64"),
    (series([2**60 + 1, -1]), series([1, 2], "uint64"), "int64"),
    (series([2**60 + 1, 1]), series([2**64 - 1], "uint64"), "uint64"),
    (series([1, 2]), series([1.5, 2.0]), "float64"),
    (series([1.5, 2.0]), series([1, 2]), "float64"),
    (series([1, 2]), series([np.nan, 2.0]), "float64"),
    (series([1, 2], "int32"), series([1, 2**40]), "int64"),
    (series([0.1], "float32"), series([0.1]), "float64"),
    (series([1, 2]), series([1, None], "Int64"), "Int64"),
    (series([1, 2]), series([2, 1], "category"), "int64"),
    (series([1, 2]), series([2, None], "category"), "float64"),
    (series([1, 2]), series([1, None], object), "float64"),
    (series([True, False]), series([True, None], object), "object"),
    (series([True, False]), series([True, None], "boolean"), "boolean"),
    (series(["a"], object), series(["b", None], "string"), "object"),
    (series(["a"], object), series(["b"], ABC), "object"),
    (series(DAYS), series(list(DAYS), object), str(DAYS.dtype)),
    (series([2, None, 1], "int8[pyarrow]"), series([1, None], "Int64"), "Int64"),
    (series(["b", "a"], "string[pyarrow]"), series(["a", "z"], object), "string"),
    (series([1, 2]), series([None, None], "null[pyarrow]"), "float64"),
]


def test_a_neighbouring_dtype_is_taken_without_loss():
    for trained, given, dtype in MEETINGS:
        met = meet(trained, given)

        assert values(met) == values(given), (trained.dtype, given.dtype)
        assert str(met.dtype) == dtype, (trained.dtype, given.dtype)


@pytest.mark.parametrize(
    ("trained", "given"),
    [
        (["a", "b"], pd.Series(["a", "b"])),
        (["a", "b"], pd.Series(["z", None], dtype=object)),
        (["a", "b"], pd.Series(["b"], dtype="category")),
    ],
    ids=["known", "unknown", "fewer"],
)
def test_a_category_takes_in_the_levels_it_lacks(trained, given):
    met = meet(series(trained, ABC), given)

    assert values(met) == values(given)
    assert met.cat.categories.tolist() == ["a", "b", "c", *(["z"] if "z" in set(given) else [])]


def test_nothing_but_missing_fits_any_training_dtype():
    for trained, dtype in [
        (series([1, 2]), "float64"),
        (series([1, None], "Int64"), "Int64"),
        (series([True, False]), "object"),
        (series(["a"], object), "object"),
        (series(["a"], "string"), "string"),
        (series(["a"], ABC), "category"),
        (series(OSLO), str(OSLO.dtype)),
    ]:
        for missing in (np.nan, None, pd.NaT, pd.NA):
            met = meet(trained, series([missing] * 2, object))

            assert str(met.dtype) == dtype
            assert met.isna().all()
    for given in (series([1]), series([0.5]), series(DAYS)):
        assert values(meet(series([np.nan]), given)) == values(given)


TEXT = series(["1", "2"])
UNLIKE = [
    (series([1, 2]), TEXT),
    (TEXT, series([1, 2])),
    (series([1, 2]), series([True, False])),
    (series([True, False]), series([1, 0])),
    (series([1, 2]), series(DAYS)),
    (series(DAYS), series([1, 2])),
    (series(DAYS), series(OSLO)),
    (series(OSLO), series(DAYS)),
    (series(DAYS), series(DAYS - DAYS[0])),
    (series(DAYS), series(DAYS.astype(str))),
    (series(DAYS.astype("datetime64[s]")), series(DAYS + pd.Timedelta(1, "ms"))),
    (series([1, 2]), series([1, "2"], object)),
    (series([1, 2]), series([Decimal(1)])),
    (series([2**60 + 1]), series([0.5])),
    (series([0.5]), series([2**60 + 1])),
    (series([0.5]), series([2**60 + 1, None], object)),
    (series([2**60 + 1], "int64[pyarrow]"), series([0.5], "double[pyarrow]")),
    (series([2**64 - 1], "uint64"), series([-1])),
    (series([1, 2]), series([1j])),
    (series(["a"], ABC), series([0, 1])),
    (series([10, 20], "category"), TEXT),
    (series([np.nan]), TEXT),
    (series(["a"], ABC), series([["a"]])),
    (series([1.0, 2.0]), series([np.inf, 1.0])),
    (series(["small", "large"], SIZES), series(["huge"], object)),
    (series(["small", "large"], SIZES), series(["small"], SIZES_TURNED)),
]


def test_a_dtype_that_would_lose_something_is_an_error_that_names_the_column():
    for trained, given in UNLIKE:
        with pytest.raises(SchemaError, match=r"(?i)column 'column'"):
            meet(trained, given)
    with pytest.raises(SchemaError, match=r"had dtype int64 in training but has .* Convert it to"):
        meet(series([1, 2]), series(["1"], object))
    assert values(meet(series([1.0, 2.0]), series([np.inf]), "categorical")) == [np.inf]


def test_nobody_has_the_training_dtypes_whatever_an_empty_frame_says():
    train = pd.DataFrame({"n": [1, 2], "s": ["a", "b"], "d": DAYS[:2], "c": [True, False]})

    rows = Schema.learn(train).encode(pd.DataFrame(columns=["n", "s", "d", "c"]))

    pd.testing.assert_series_equal(rows.frame.dtypes, train.dtypes)


def explain(trained, given, *, immutable=False):
    """People, and their answers; the training column is repeated over the rows."""
    column = pd.concat([trained] * N_ROWS, ignore_index=True).head(N_ROWS)
    train = pd.DataFrame({"points": np.arange(N_ROWS), "column": column})
    people = pd.DataFrame({"points": 0, "column": given.reset_index(drop=True)})
    explainer = MCCE(
        lambda frame: frame["points"].to_numpy(dtype=float) / N_ROWS,
        (0.5, 1),
        immutable=["column"] if immutable else [],
        search="paper",
        random_state=0,
        n_samples=30,
    )
    return people, explainer.fit(train).explain(people)


NUMBERS, WORDS, FLAGS = series([3, 1, 2]), series(["b", "c", "a"]), series([True, False, True])
TIMES = series(DAYS)
INTERVALS = pd.CategoricalDtype(pd.IntervalIndex.from_breaks([0, 1, 2, 3]))
# Values, and pairs of the dtypes in which training and people have them.
PAIRS = {
    "numbers": (
        NUMBERS,
        [
            ("int64", "int8"),
            ("int64", "float64"),
            ("int64", "category"),
            ("int64", "object"),
            ("uint64", "Float64"),
            ("float32", "float64"),
            ("float64", "Int64"),
            ("Int64", "int64[pyarrow]"),
            ("double[pyarrow]", "int64"),
            ("category", "float32"),
        ],
    ),
    "texts": (
        WORDS,
        [
            ("object", "string"),
            ("string", "category"),
            ("category", "object"),
            ("string[pyarrow]", "object"),
            ("object", "string[pyarrow]"),
            (ABC, "category"),
        ],
    ),
    "flags": (
        FLAGS,
        [("bool", "boolean"), ("boolean", "object"), ("bool", "category"), ("bool[pyarrow]", bool)],
    ),
    "times": (
        TIMES,
        [
            ("datetime64[ns]", "datetime64[s]"),
            ("datetime64[s]", "timestamp[us][pyarrow]"),
            ("datetime64[us]", "object"),
        ],
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_people_come_back_in_the_dtypes_in_which_they_came(name):
    cells, pairs = PAIRS[name]
    for trained, given in pairs:
        for immutable in (True, False):
            people, result = explain(
                cells.astype(trained), cells.astype(given), immutable=immutable
            )

            assert result.frame.dtypes.equals(people.dtypes), (trained, given)
            assert result.factuals.dtypes.equals(people.dtypes), (trained, given)
            assert len(result.frame) == 3
            assert set(values(result.frame["column"])) <= set(values(cells))
            if immutable:
                own = people["column"].iloc[result.owner]
                assert list(map(repr, result.frame["column"])) == list(map(repr, own))


COLUMNS = {
    "whole": series([2**60 + 1, 2**60 + 2, 2**60 + 3]),
    "unsigned": series([2**63 + 1, 2**63 + 2, 2**63 + 3], "uint64"),
    "small": series([3, 1, 2], "int8"),
    "single": series([0.1, 0.2, 0.3], "float32"),
    "gaps": series([0.1, np.nan, -0.0]),
    "zone": series(OSLO),
    "seconds": series([DAYS[0], DAYS[1], pd.NaT], "datetime64[s]"),
    "duration": series(DAYS - DAYS[0], "timedelta64[s]"),
    "nullable": series([2**60 + 1, None, 2**60 + 3], "Int64"),
    "object": series(["b", None, "a"], object),
    "truths": series([True, None, False], object),
    "string": series(["b", None, "a"], "string"),
    "category": series(["b", None, "a"], pd.CategoricalDtype(["b", "never", "a"])),
    "ordered": series(["large", None, "small"], SIZES),
    "intervals": series(INTERVALS.categories, INTERVALS),
    "constant": series([5, 5, 5]),
    "nothing": series([None] * 3, object),
    "never": series([pd.NaT] * 3, "datetime64[ns]"),
    "arrow": series([2**60 + 1, None, 2**60], "int64[pyarrow]"),
    "date": series([DAYS[0].date(), None, DAYS[1].date()], "date32[day][pyarrow]"),
    "time": series([DAYS[0], None, DAYS[1]], "timestamp[us][pyarrow]"),
    "delay": series([datetime.timedelta(1), None, datetime.timedelta(2)], "duration[us][pyarrow]"),
}


@pytest.mark.parametrize("immutable", [True, False], ids=["immutable", "mutable"])
def test_a_frame_comes_back_with_its_dtypes(immutable):
    for name, column in COLUMNS.items():
        people, result = explain(column, column, immutable=immutable)

        assert len(result.frame) == 3, name
        pd.testing.assert_series_equal(result.frame.dtypes, people.dtypes)
        pd.testing.assert_frame_equal(result.factuals, people, check_names=False)
        assert len(result.changes()) == result.measures["sparsity"].sum(), name
        if immutable:
            own = people["column"].iloc[result.owner].set_axis(result.frame.index)
            pd.testing.assert_series_equal(result.frame["column"], own)


def test_objects_that_stand_for_numbers_keep_their_types():
    given = series([1, 2.0, np.int64(3), None, pd.NA], object)

    _, result = explain(NUMBERS, given, immutable=True)

    assert list(map(repr, result.frame["column"])) == list(map(repr, given))


def test_a_dtype_that_cannot_hold_a_training_value_is_widened():
    _, category = explain(NUMBERS, series([3, 2], pd.CategoricalDtype([3, 2])))
    _, whole = explain(NUMBERS + 0.5, series([1, 2]))
    _, ordered = explain(NUMBERS + 0.5, series([3, 2], pd.CategoricalDtype([2, 3], ordered=True)))

    assert category.frame["column"].cat.categories.tolist() == [3, 2, 1]
    assert whole.frame["column"].dtype == ordered.frame["column"].dtype == "float64"


@pytest.mark.parametrize("given", [series([np.nan]), series([None], object)], ids=["nan", "none"])
def test_large_whole_numbers_are_not_rounded_to_make_room_for_gaps(given):
    exact = [2**60 + 1, 2**60 + 3]
    train = pd.DataFrame({"column": exact * 12})
    model = MCCE(
        lambda frame: frame["column"].notna().astype(float),
        (0.5, 1),
        search="paper",
        random_state=0,
    )

    result = model.fit(train).explain(given.to_frame("column"))

    assert result.frame["column"].isin(exact).all()
    assert str(result.frame["column"].dtype) == ("object" if given.dtype == object else "Int64")


def test_a_row_turned_into_a_frame_gives_the_same_answer():
    train = pd.DataFrame(
        {
            "points": np.arange(12),
            "share": np.arange(12) / 4,
            "sex": ["f", "m"] * 6,
            "member": [True, False] * 6,
            "since": pd.date_range("2024-01-01", periods=12),
            "size": pd.Series(["small", "large"] * 6, dtype=SIZES),
        }
    )
    model = MCCE(
        lambda frame: frame["points"] / 12, (0.5, 1), search="paper", n_samples=50, random_state=0
    )
    model.fit(train)
    person = train.iloc[3].to_frame().T

    turned = model.explain(person)

    straight = model.explain(train.iloc[[3]])
    pd.testing.assert_frame_equal(turned.frame.astype(train.dtypes), straight.frame)
    assert turned.frame.dtypes.equals(person.dtypes)
