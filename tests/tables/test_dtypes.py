"""People whose dtypes are not those of training: nothing is lost, or the user hears about it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, SchemaError, TreeChain
from mcce.tables.columns import is_missing, plain
from mcce.tables.dtypes import align_dtype
from mcce.tables.features import Feature
from mcce.tables.schema import Schema

DAYS = pd.to_datetime(["2024-03-01", "2024-01-01", "2024-02-01"])
OSLO = DAYS.tz_localize("Europe/Oslo")
ABC = pd.CategoricalDtype(["a", "b", "c"])
SIZES = pd.CategoricalDtype(["small", "large"], ordered=True)


def meet(trained, given, kind=None) -> pd.Series:
    """The given column as it comes out of a schema trained on the other."""
    feature = Feature.learn(trained.rename("column"), kind=kind, immutable=False)
    met = align_dtype(given.rename("column"), feature.table, feature.kind)
    feature.encode(met)
    return met


def assert_same_cells(met: pd.Series, given: pd.Series) -> None:
    missing = is_missing(given)
    assert is_missing(met).tolist() == missing.tolist()
    assert plain(met[~missing]).tolist() == plain(given[~missing]).tolist()


@pytest.mark.parametrize(
    ("trained", "given", "dtype"),
    [
        (pd.Series([2**64 - 1, 0], dtype="uint64"), pd.Series([1, 2]), "uint64"),
        (pd.Series([2**64 - 1, 0], dtype="uint64"), pd.Series([1, 2], dtype=object), "uint64"),
        (pd.Series([2**60 + 1, -1]), pd.Series([1, 2], dtype="uint64"), "int64"),
        (pd.Series([2**60 + 1, 1]), pd.Series([2**64 - 1], dtype="uint64"), "uint64"),
        (pd.Series([1, 2]), pd.Series([1.5, 2.0]), "float64"),
        (pd.Series([1.5, 2.0]), pd.Series([1, 2]), "float64"),
        (pd.Series([1, 2]), pd.Series([np.nan, 2.0]), "float64"),
        (pd.Series([1, 2], dtype="int64"), pd.Series([1, 2], dtype="int32"), "int64"),
        (pd.Series([1, 2], dtype="int32"), pd.Series([1, 2**40]), "int64"),
        (pd.Series([0.1], dtype="float32"), pd.Series([0.1]), "float64"),
        (pd.Series([1, 2]), pd.Series([1, None], dtype="Int64"), "Int64"),
        (pd.Series([1, None], dtype="Int64"), pd.Series([1, 2]), "Int64"),
        (pd.Series([1, 2]), pd.Series([2, 1], dtype="category"), "int64"),
        (pd.Series([1, 2]), pd.Series([2, None], dtype="category"), "float64"),
        (pd.Series([1, 2]), pd.Series([1, 2], dtype=object), "int64"),
        (pd.Series([1, 2]), pd.Series([1, None], dtype=object), "float64"),
        (pd.Series([0.5]), pd.Series([1], dtype=object), "float64"),
        (pd.Series([True, False]), pd.Series([True, None], dtype=object), "object"),
        (pd.Series([True, False]), pd.Series([True, None], dtype="boolean"), "boolean"),
        (pd.Series([True, False]), pd.Series([True], dtype=object), "bool"),
        (pd.Series(["a"], dtype=object), pd.Series(["b", None], dtype="string"), "object"),
        (pd.Series(["a"], dtype="string"), pd.Series(["b"], dtype="category"), None),
        (pd.Series(["a"], dtype=object), pd.Series(["b"], dtype=ABC), "object"),
        (pd.Series(DAYS), pd.Series(DAYS.astype("datetime64[s]")), str(DAYS.dtype)),
        (pd.Series(DAYS.astype("datetime64[s]")), pd.Series(DAYS), "datetime64[s]"),
        (pd.Series(OSLO), pd.Series(OSLO.tz_convert("UTC")), str(OSLO.dtype)),
        (pd.Series(DAYS), pd.Series(list(DAYS), dtype=object), str(DAYS.dtype)),
    ],
)
def test_a_neighbouring_dtype_is_taken_without_loss(trained, given, dtype):
    met = meet(trained, given)

    assert_same_cells(met, given)
    assert dtype is None or str(met.dtype) == dtype


@pytest.mark.parametrize(
    ("trained", "given", "levels"),
    [
        (pd.Series(["a", "b"], dtype=ABC), pd.Series(["a", "b"]), ["a", "b", "c"]),
        (pd.Series(["a", "b"], dtype=ABC), pd.Series(["z", None], dtype=object), [*"abc", "z"]),
        (pd.Series(["a", "b"], dtype=ABC), pd.Series(["b"], dtype="category"), ["a", "b", "c"]),
        (
            pd.Series(["a", "b"], dtype=ABC),
            pd.Series(["z"], dtype=pd.CategoricalDtype(["z", "b", "a"])),
            ["z", "b", "a"],
        ),
        (pd.Series([10, 20], dtype="category"), pd.Series([20.0, np.nan]), [10, 20]),
        (pd.Series([10, 20], dtype="category"), pd.Series([5], dtype="float32"), [10, 20, 5]),
        (
            pd.Series(["large"], dtype=SIZES),
            pd.Series(["small"], dtype=object),
            list(SIZES.categories),
        ),
    ],
)
def test_a_category_takes_in_the_levels_it_lacks(trained, given, levels):
    met = meet(trained, given)

    assert_same_cells(met, given)
    assert met.cat.categories.tolist() == levels
    assert met.cat.ordered == trained.cat.ordered


def test_a_category_with_levels_in_another_order_comes_back_as_it_came():
    turned = pd.Series(["a", "b"], dtype=pd.CategoricalDtype(["c", "b", "a"]))

    met = meet(pd.Series(["a", "b", "c"], dtype=ABC), turned)

    assert met.cat.categories.tolist() == ["c", "b", "a"]


@pytest.mark.parametrize("missing", [np.nan, None, pd.NaT, pd.NA])
@pytest.mark.parametrize(
    ("trained", "dtype"),
    [
        (pd.Series([1, 2]), "float64"),
        (pd.Series([1.5]), "float64"),
        (pd.Series([1, None], dtype="Int64"), "Int64"),
        (pd.Series([True, False]), "object"),
        (pd.Series(["a"], dtype=object), "object"),
        (pd.Series(["a"], dtype="string"), "string"),
        (pd.Series(["a"], dtype=ABC), "category"),
        (pd.Series(DAYS), str(DAYS.dtype)),
        (pd.Series(OSLO), str(OSLO.dtype)),
        (pd.Series(DAYS - DAYS[0]), str((DAYS - DAYS[0]).dtype)),
    ],
)
def test_a_column_of_nothing_but_missing_fits_any_training_dtype(trained, dtype, missing):
    met = meet(trained, pd.Series([missing] * 2, dtype=object))

    assert str(met.dtype) == dtype
    assert met.isna().all()


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("given", [pd.Series([np.nan]), pd.Series([None], dtype=object)])
def test_nothing_but_missing_does_not_round_the_training_values(given, dtype):
    exact = [2**60 + 1, 2**60 + 3]
    train = pd.DataFrame({"column": pd.Series(exact * 12, dtype=dtype)})
    model = MCCE(lambda frame: frame["column"].notna().astype(float), (0.5, 1), random_state=0)

    result = model.fit(train).explain(given.to_frame("column"))

    nullable = dtype.replace("i", "I").replace("uI", "UI")
    assert result.frame["column"].isin(exact).all()
    assert str(result.frame["column"].dtype) == ("object" if given.dtype == object else nullable)


@pytest.mark.parametrize("trained", [pd.Series([np.nan]), pd.Series([None], dtype=object)])
@pytest.mark.parametrize("given", [pd.Series([1]), pd.Series([0.5]), pd.Series(DAYS)])
def test_training_of_nothing_but_missing_takes_any_numbers(trained, given):
    assert_same_cells(meet(trained, given), given)


TEXT = pd.Series(["1", "2"])
UNLIKE = [
    (pd.Series([1, 2]), TEXT),
    (TEXT, pd.Series([1, 2])),
    (pd.Series([1, 2]), pd.Series([True, False])),
    (pd.Series([True, False]), pd.Series([1, 0])),
    (pd.Series([1, 2]), pd.Series(DAYS)),
    (pd.Series(DAYS), pd.Series([1, 2])),
    (pd.Series(DAYS), pd.Series(OSLO)),
    (pd.Series(OSLO), pd.Series(DAYS)),
    (pd.Series(DAYS), pd.Series(DAYS - DAYS[0])),
    (pd.Series(DAYS), pd.Series(DAYS.astype(str))),
    (pd.Series(DAYS.astype("datetime64[s]")), pd.Series(DAYS) + pd.Timedelta(1, "ms")),
    (pd.Series([1, 2]), pd.Series([1, "2"], dtype=object)),
    (pd.Series([2**60 + 1]), pd.Series([0.5])),
    (pd.Series([0.5]), pd.Series([2**60 + 1])),
    (pd.Series([0.5]), pd.Series([2**60 + 1, None], dtype=object)),
    (pd.Series([0.5]), pd.Series([-(2**63)])),
    (pd.Series([2**64 - 1], dtype="uint64"), pd.Series([-1])),
    (pd.Series([1, 2]), pd.Series([1j])),
    (pd.Series(["a"], dtype=ABC), pd.Series([0, 1])),
    (pd.Series([10, 20], dtype="category"), TEXT),
    (pd.Series([np.nan]), TEXT),
    (pd.Series(["a"], dtype=ABC), pd.Series([["a"]])),
    (pd.Series(["a"], dtype=ABC), pd.Series(np.array([1], dtype=np.longdouble))),
]


@pytest.mark.parametrize(("trained", "given"), UNLIKE)
def test_a_dtype_that_would_lose_something_is_an_error_that_names_the_column(trained, given):
    with pytest.raises(SchemaError, match=r"column 'column'|Column 'column'"):
        meet(trained, given)


def test_the_error_says_both_dtypes_and_what_to_do():
    with pytest.raises(SchemaError, match=r"had dtype int64 in training but has .* Convert it to"):
        meet(pd.Series([1, 2]), pd.Series(["1"], dtype=object))


@pytest.mark.parametrize(
    "given",
    [
        pd.Series(["huge"], dtype=object),
        pd.Series(["small"], dtype="category"),
        pd.Series(["small"], dtype=pd.CategoricalDtype(["large", "small"], ordered=True)),
    ],
)
def test_an_ordered_category_takes_no_other_levels_and_no_other_order(given):
    with pytest.raises(SchemaError, match=r"other levels or another order.*expected"):
        meet(pd.Series(["small", "large"], dtype=SIZES), given)


def test_infinity_among_people_is_an_error_unless_it_is_a_level():
    given = pd.Series([np.inf, 1.0])

    with pytest.raises(SchemaError, match="infinity in 1 of 2 rows"):
        meet(pd.Series([1.0, 2.0]), given)
    assert meet(pd.Series([1.0, 2.0]), given, kind="categorical").tolist() == [np.inf, 1.0]


def test_nobody_has_the_training_dtypes_whatever_an_empty_frame_says():
    train = pd.DataFrame({"n": [1, 2], "s": ["a", "b"], "d": DAYS[:2], "c": [True, False]})

    rows = Schema.learn(train).encode(pd.DataFrame(columns=["n", "s", "d", "c"]))

    pd.testing.assert_series_equal(rows.frame.dtypes, train.dtypes)


@pytest.fixture
def mixed() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "points": np.arange(12),
            "share": np.arange(12) / 4,
            "sex": ["f", "m"] * 6,
            "member": [True, False] * 6,
            "since": pd.date_range("2024-01-01", periods=12),
            "size": pd.Series(["small", "large"] * 6, dtype=SIZES),
        }
    )


@pytest.mark.parametrize("columns", [["points", "share"], ["points", "sex"], None])
def test_a_row_turned_into_a_frame_gives_the_same_answer(mixed, columns):
    train = mixed if columns is None else mixed[columns]
    chain = TreeChain(min_samples_leaf=1)
    model = MCCE(lambda frame: frame["points"] / 12, (0.5, 1), generator=chain, random_state=0)
    model.fit(train)

    person = train.iloc[3].to_frame().T
    turned = model.explain(person)

    straight = model.explain(train.iloc[[3]])
    pd.testing.assert_frame_equal(turned.frame.astype(train.dtypes), straight.frame)
    assert turned.frame.dtypes.equals(person.dtypes)


def test_text_comes_back_in_the_dtype_in_which_it_came(mixed):
    train = mixed[["points", "sex"]]
    people = train.head(2).astype({"sex": object})
    model = MCCE(lambda frame: frame["points"] / 12, (0.5, 1), random_state=0).fit(train)

    result = model.explain(people)

    assert result.frame["sex"].dtype == object
    assert result.frame["sex"].map(type).eq(str).all()
