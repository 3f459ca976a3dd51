"""Single columns: kinds, codes of every dtype, and what cannot be a feature."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

from mcce import SchemaError
from mcce.tables.features import Feature

DAYS = pd.to_datetime(["2024-03-01", "2024-01-01", "2024-02-01"])


def learn(values, dtype=None, kind=None) -> Feature:
    column = pd.Series(values, dtype=dtype, name="column")
    return Feature.learn(column, kind=kind, immutable=False)


def codes(feature: Feature, values, dtype=None) -> tuple[list[int], list[int]]:
    exact, descent = feature.encode(pd.Series(values, dtype=dtype or feature.table.dtype))
    return exact.tolist(), descent.tolist()


@pytest.mark.parametrize(
    ("values", "dtype", "kind"),
    [
        ([1, 2], "int8", "numeric"),
        ([1, 2], "uint64", "numeric"),
        ([1.5, 2.0], "float32", "numeric"),
        ([1, None], "Int64", "numeric"),
        ([1.5, None], "Float64", "numeric"),
        (DAYS, None, "numeric"),
        (DAYS.tz_localize("Europe/Oslo"), None, "numeric"),
        (DAYS - DAYS[0], None, "numeric"),
        (["a", "b"], None, "categorical"),
        (["a", None], object, "categorical"),
        (["a", None], "string", "categorical"),
        ([True, False], None, "categorical"),
        ([True, None], object, "categorical"),
        ([True, None], "boolean", "categorical"),
        ([1, 2], "category", "categorical"),
        ([None, None], object, "categorical"),
        ([np.nan, np.nan], None, "numeric"),
    ],
)
def test_the_kind_follows_the_dtype(values, dtype, kind):
    assert learn(values, dtype).kind == kind


def test_the_kind_can_be_declared():
    assert learn([7030, 1000], kind="categorical").kind == "categorical"
    assert learn([True, False], kind="numeric").numbers.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([3, 1, 2, 1], None),
        ([3.5, -1.0, 0.0, -1.0], "float32"),
        ([3, 1, 2, 1], "Int64"),
        ([0.3, 0.1, 0.2, 0.1], "Float64"),
        ([2**60 + 3, 2**60 + 1, 2**60 + 2, 2**60 + 1], None),
        ([2**63 + 3, 2**63 + 1, 2**63 + 2, 2**63 + 1], "uint64"),
        ([2**60 + 3, 2**60 + 1, 2**60 + 2, 2**60 + 1], "Int64"),
        ([*DAYS, DAYS[1]], None),
        ([*DAYS, DAYS[1]], "datetime64[s]"),
        ([*DAYS.tz_localize("Europe/Oslo"), DAYS[1].tz_localize("Europe/Oslo")], None),
        ([*(DAYS - DAYS[0]), DAYS[1] - DAYS[0]], None),
        (["c", "a", "b", "a"], None),
        (["c", "a", "b", "a"], object),
        (["c", "a", "b", "a"], "string"),
        (["c", "a", "b", "a"], "category"),
        ([30, 10, 20, 10], "category"),
    ],
)
def test_a_code_is_the_rank_among_the_distinct_training_values(values, dtype):
    feature = learn(values, dtype)

    exact, descent = codes(feature, values, dtype)

    assert exact == descent == [2, 0, 1, 0]
    assert feature.n_codes == 3


def test_false_comes_before_true():
    for dtype in ("bool", "boolean", object):
        assert codes(learn([True, False, True], dtype), [True, False]) == ([1, 0], [1, 0])


def test_an_ordered_category_keeps_its_order_and_leaves_out_unused_levels():
    size = pd.CategoricalDtype(["small", "never", "medium", "large"], ordered=True)
    feature = learn(["large", "small", "medium"], size)

    exact, descent = codes(feature, ["small", "medium", "large", "never"])

    assert feature.ordered
    assert exact == [0, 1, 2, -1]
    assert descent == [0, 1, 2, 3]


def test_the_levels_of_a_plain_category_are_sorted_whatever_its_own_order():
    feature = learn(["a", "b"], pd.CategoricalDtype(["b", "never", "a"]))

    assert not feature.ordered
    assert feature.table.tolist() == ["a", "b"]


def test_an_unseen_number_takes_the_nearest_code_and_midpoints_the_lower():
    feature = learn([10, 20, 40])

    exact, descent = codes(feature, [-99, 14, 15, 16, 30, 31, 99])

    assert exact == [-1] * 7
    assert descent == [0, 0, 0, 1, 1, 2, 2]


def test_an_unseen_number_is_compared_in_its_own_dtype():
    feature = learn([1, 2])

    exact, descent = codes(feature, [1.0, 1.5, 1.6, 2.0], "float64")

    assert exact == [0, -1, -1, 1]
    assert descent == [0, 0, 1, 1]


def test_nearest_does_not_overflow_at_the_ends_of_the_integers():
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    signed = learn([low, 0, high])
    unsigned = learn([0, 2**64 - 1], "uint64")

    assert codes(signed, [low + 1, -2, high - 1])[1] == [0, 1, 2]
    assert codes(unsigned, [2**63 - 1, 2**63], "uint64")[1] == [0, 1]


def test_nearest_does_not_overflow_at_the_ends_of_the_floats():
    feature = learn([-4e307, 4e307])

    assert codes(feature, [-1.7e308, 1.7e308])[1] == [0, 1]


def test_an_unseen_level_is_one_past_the_last_code():
    plain = learn(["a", "b"])
    with_missing = learn(["a", None], object)

    assert codes(plain, ["b", "z"]) == ([1, -1], [1, 2])
    assert codes(with_missing, ["a", "z", None]) == ([0, -1, 1], [0, 2, 1])


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([2.0, np.nan, 1.0], None),
        ([2, None, 1], "Int64"),
        ([2.0, None, 1.0], "Float64"),
        ([DAYS[0], pd.NaT, DAYS[1]], None),
        ([DAYS[0] - DAYS[1], pd.NaT, DAYS[1] - DAYS[0]], None),
        (["b", None, "a"], object),
        (["b", np.nan, "a"], object),
        (["b", None, "a"], "string"),
        (["b", None, "a"], "category"),
        ([True, None, False], "boolean"),
        ([True, None, False], object),
    ],
)
def test_missing_is_the_last_code(values, dtype):
    feature = learn(values, dtype)

    exact, descent = codes(feature, values, dtype)

    assert exact == descent == [1, 2, 0]
    assert feature.has_missing


def test_missing_that_training_never_held_descends_as_the_largest():
    assert codes(learn([1.0, 2.0]), [np.nan]) == ([-1], [1])
    assert codes(learn(["a", "b"]), [None]) == ([-1], [2])


def test_all_signs_of_missing_are_one_value():
    feature = learn([None, np.nan, pd.NA, "a"], object)

    assert feature.n_codes == 2
    assert codes(feature, [pd.NA, None, np.nan, "a"], object)[0] == [1, 1, 1, 0]


def test_not_a_number_inside_a_nullable_float_is_missing():
    zeros = pd.Series([0.0, 1.0, None], dtype="Float64", name="column")
    ratio = zeros / zeros

    feature = learn(ratio)

    assert feature.n_codes == 2
    assert codes(feature, ratio)[0] == [1, 0, 1]
    assert np.isnan(feature.numbers[1])


def test_minus_zero_is_zero():
    feature = learn([0.0, -0.0, 1.0])

    assert feature.n_codes == 2
    assert codes(feature, [-0.0, 0.0]) == ([0, 0], [0, 0])


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([5, 5], None), (["a", "a"], None), ([DAYS[0]] * 2, None), ([True, True], None)],
)
def test_a_constant_column_has_one_code_and_no_spread(values, dtype):
    feature = learn(values, dtype)

    assert (feature.n_codes, feature.spread) == (1, 0.0)
    assert codes(feature, values) == ([0, 0], [0, 0])


@pytest.mark.parametrize(
    ("missing", "dtype"),
    [
        (np.nan, "float64"),
        (None, object),
        (None, "Int64"),
        (None, "string"),
        (None, "boolean"),
        (None, "category"),
        (pd.NaT, "datetime64[ns]"),
        (pd.NaT, "timedelta64[ns]"),
    ],
)
def test_a_column_of_nothing_but_missing_has_one_code(missing, dtype):
    feature = learn([missing] * 3, dtype)

    assert (feature.n_codes, feature.has_missing, feature.spread) == (1, True, 0.0)
    assert codes(feature, [missing] * 2) == ([0, 0], [0, 0])


def test_dates_and_durations_are_measured_in_their_own_unit():
    dates = learn(DAYS.astype("datetime64[s]"))
    durations = learn((DAYS - DAYS[1]).astype("timedelta64[s]"))

    assert dates.spread == durations.spread == 60 * 86400


def test_levels_that_training_declared_categorical_may_be_numbers():
    feature = learn([7030, 1000, 1000], kind="categorical")

    assert codes(feature, [1000, 7030, 1001]) == ([0, 1, -1], [0, 1, 2])
    assert feature.numbers is None


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_an_error_that_counts_the_rows(value):
    with pytest.raises(SchemaError, match="'column' holds infinity in 2 of 3 rows"):
        learn([value, 1.0, value])


def test_infinity_may_be_a_level():
    assert learn([np.inf, 1.0], kind="categorical").n_codes == 2


def test_a_range_beyond_float64_is_an_error():
    with pytest.raises(SchemaError, match=r"range of column 'column' is too wide"):
        learn([-1e308, 1e308])


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1, 2], r"holds integer values.*pd.to_numeric"),
        ([1, "a"], r"holds mixed-integer values"),
        ([decimal.Decimal(1)], r"holds decimal values.*pd.to_numeric"),
        ([datetime.date(2024, 1, 1)], r"holds date values.*pd.to_datetime"),
        ([b"a"], r"holds bytes values.*astype\(str\)"),
    ],
)
def test_objects_that_are_not_text_must_be_converted_or_declared(values, says):
    with pytest.raises(SchemaError, match=rf"'column' has dtype object and {says}"):
        learn(values, object)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1j, 2j]),
        pd.Series([0, 1], dtype="Sparse[int]"),
        pd.Series(pd.period_range("2024", periods=2, freq="M")),
        pd.Series(pd.interval_range(0, 2)),
        pd.Series(np.array([0, 1], dtype=np.longdouble)),
    ],
    ids=lambda column: str(column.dtype),
)
def test_a_dtype_that_is_neither_numeric_nor_categorical_is_an_error(column):
    with pytest.raises(SchemaError, match=r"neither numeric nor categorical. Convert it"):
        learn(column)


def test_text_declared_numeric_is_an_error():
    with pytest.raises(SchemaError, match=r"'column' is declared numeric.*pd.to_numeric"):
        learn(["1", "2"], kind="numeric")


def test_levels_that_cannot_be_sorted_are_an_error():
    with pytest.raises(SchemaError, match=r"'column' cannot be sorted; .*astype\(str\)"):
        learn([1, "a"], object, kind="categorical")


def test_levels_that_cannot_be_compared_are_an_error():
    with pytest.raises(SchemaError, match=r"'column' cannot be compared; .* \['list'\]"):
        learn([["a"], ["b"]], object, kind="categorical")
