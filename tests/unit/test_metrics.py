"""Measures of counterfactuals and of generated rows: by hand, by brute force, for any frame."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcce import MCCE, ParameterError, SchemaError, metrics
from mcce.metrics import Evaluator
from tables import cases

TRAINING = pd.DataFrame(
    {
        "age": [20, 30, 40, 60],  # range 40
        "salary": [10.0, 20.0, 30.0, 110.0],  # range 100
        "job": ["a", "b", "a", "b"],
    }
)
PEOPLE = pd.DataFrame({"age": [20, 30], "salary": [10.0, 20.0], "job": ["a", "b"]}, index=[7, 3])


def same(one, other):
    """Equal, two missing cells being equal."""
    return (pd.isna(one) and pd.isna(other)) or (
        not pd.isna(one) and not pd.isna(other) and one == other
    )


def rich(frame):
    return frame["salary"]


def evaluator(**settings):
    settings = {"immutable": ["age"], "predictor": rich, "desired": (30, 1000)} | settings
    return Evaluator.fit(TRAINING, **settings)


def answers(*rows, index=(7, 3)):
    return pd.DataFrame(list(rows), columns=["age", "salary", "job"], index=list(index))


def test_costs_that_can_be_checked_by_hand():
    after = answers((20, 35.0, "a"), (40, 20.0, "a"))

    # 25 of 100 in salary; 10 of 40 in age and another job
    assert metrics.sparsity(PEOPLE, after, TRAINING).tolist() == [1, 2]
    assert metrics.l1(PEOPLE, after, TRAINING).tolist() == [0.25, 0.25 + 1]
    assert metrics.gower(PEOPLE, after, TRAINING).tolist() == [0.25 / 3, 1.25 / 3]
    assert metrics.violation(PEOPLE, after, evaluator()).tolist() == [0, 1]
    assert metrics.success(after, evaluator()).tolist() == [1, 0]
    assert metrics.coverage(PEOPLE, after) == 1.0
    assert metrics.sparsity(PEOPLE, after, TRAINING).index.tolist() == [7, 3]


def test_a_row_whose_cells_are_all_missing_is_no_counterfactual():
    after = answers((None, None, None), (30, 30.0, "b"))

    assert metrics.coverage(PEOPLE, after) == 0.5
    for result in (
        metrics.sparsity(PEOPLE, after, TRAINING),
        metrics.success(after, evaluator()),
        metrics.redundancy(PEOPLE, after, evaluator()),
        metrics.ynn(after, evaluator(), k=1),
        metrics.knn_distance(after, evaluator(), k=1),
        metrics.copies(after, evaluator()),
    ):
        assert result.index.tolist() == [7, 3]
        assert result.isna().tolist() == [True, False]


def test_a_method_without_counterfactuals_is_measured_too():
    after = answers((None, None, None), (None, None, None))

    result = metrics.compare(PEOPLE, after, evaluator(), k=1)

    counts = ["n_answered", "coverage", "n_measured"]
    assert result.iloc[0][counts].tolist() == [0, 0, 0]
    assert result.drop(columns=["n_factuals", *counts]).isna().to_numpy().all()


def test_a_missing_cell_differs_from_a_value_by_one_and_from_another_by_zero():
    training = pd.DataFrame({"x": [1.0, 5.0], "l": ["A", "B"], "z": [5.0, 7.0]})  # range of x: 4
    one = pd.DataFrame({"x": [1.0], "l": ["A"], "z": [np.nan]})
    other = pd.DataFrame({"x": [3.0], "l": ["B"], "z": [5.0]})

    assert metrics.gower(one, other, training).tolist() == [(0.5 + 1 + 1) / 3]
    assert metrics.gower(one, one, training).tolist() == [0.0]
    assert metrics.sparsity(one, other, training).tolist() == [3]


def test_a_tolerance_hides_small_changes_and_is_off_by_default():
    # 0.0005 of a range of 100 is 5e-6; a category is never within a tolerance
    after = answers((20, 10.0005, "b"), (30, 20.0, "b"))

    assert metrics.sparsity(PEOPLE, after, TRAINING).tolist() == [2, 0]
    assert metrics.sparsity(PEOPLE, after, TRAINING, tolerance=1e-5).tolist() == [1, 0]
    with pytest.raises(ParameterError, match="tolerance must be a share of the training range"):
        metrics.sparsity(PEOPLE, after, TRAINING, tolerance=-1)


def test_a_change_too_small_for_its_distance_is_still_a_change():
    training = pd.DataFrame({"x": [0, 2**60]})
    before, after = pd.DataFrame({"x": [2**60]}), pd.DataFrame({"x": [2**60 - 1]})

    assert metrics.sparsity(before, after, training).tolist() == [1]
    assert metrics.l1(before, after, training).tolist() == [0]


def test_a_constant_number_and_unseen_values_differ_where_they_are_not_equal():
    training = pd.DataFrame({"c": [1, 1, 1], "l": ["a", "a", "b"]})
    before = pd.DataFrame({"c": [1, 2, 2], "l": ["q", "q", "q"]})
    after = pd.DataFrame({"c": [9, 2, 3], "l": ["q", "r", "a"]})

    assert metrics.l1(before, after, training).tolist() == [1, 1, 2]
    assert metrics.sparsity(before, after, training).tolist() == [1, 1, 2]


def test_dates_are_measured_in_the_unit_of_training():
    days = pd.to_datetime(["2024-01-01", "2024-01-11"])
    training = pd.DataFrame({"d": days.astype("datetime64[s]")})  # range of 10 days
    before = pd.DataFrame({"d": days[:1].astype("datetime64[ns]")})
    after = pd.DataFrame({"d": pd.to_datetime(["2024-01-06"]).astype("datetime64[us]")})

    assert metrics.gower(before, after, training).tolist() == [0.5]


@given(cases(max_rows=15))
@settings(max_examples=20)
def test_costs_equal_those_counted_cell_by_cell(case):
    people = case.people
    after = case.train.iloc[np.arange(len(people)) % len(case.train)].set_axis(people.index)
    after = after[~after.isna().all(axis=1)]
    people = people.loc[after.index]
    if after.empty:
        return
    measured_by = Evaluator.fit(case.train, immutable=case.immutable)
    n_changed, total, n_broken = [], [], []
    for (_, old), (_, new) in zip(
        people.astype(object).iterrows(), after.astype(object).iterrows(), strict=True
    ):
        gaps = {}
        for feature in measured_by.schema.features:
            a, b = old[feature.name], new[feature.name]
            if same(a, b):
                continue
            plain = pd.isna(a) or pd.isna(b) or feature.kind == "categorical"
            scale = feature.spread
            gaps[feature.name] = 1.0 if plain or not scale else abs(float(a) - float(b)) / scale
        n_changed.append(len(gaps))
        total.append(sum(gaps.values()))
        n_broken.append(len(set(gaps) & set(case.immutable)))

    assert metrics.sparsity(people, after, measured_by).tolist() == n_changed
    assert metrics.l1(people, after, measured_by).tolist() == pytest.approx(total)
    if case.immutable:
        assert metrics.violation(people, after, measured_by).tolist() == n_broken


def test_redundancy_counts_changes_that_can_be_reverted():
    # salary decides alone: a changed job is needless, a changed salary is not
    after = answers((20, 35.0, "b"), (30, 35.0, "b"))

    assert metrics.redundancy(PEOPLE, after, evaluator()).tolist() == [1, 0]


def test_redundancy_reverts_one_change_at_a_time():
    training = pd.DataFrame({"a": [0, 1], "b": [0, 1], "c": ["x", "y"]})
    either = Evaluator.fit(
        training, predictor=lambda f: ((f["a"] + f["b"]) >= 1).astype(float), desired=(1, 1)
    )
    before = pd.DataFrame({"a": [0], "b": [0], "c": ["x"]})
    after = pd.DataFrame({"a": [1], "b": [1], "c": ["y"]})

    # without a, b is enough; without b, a is enough; c never matters
    assert metrics.redundancy(before, after, either).tolist() == [3]


def test_the_predictor_gets_the_dtypes_of_training_whatever_the_counterfactuals_have():
    training = pd.DataFrame(
        {"n": [1, 2, 3], "flag": [True, False, True], "l": pd.Categorical(["a", "b", "a"])}
    )
    seen = []

    def predictor(frame):
        seen.append(frame.dtypes.astype(str).tolist())
        return frame["flag"].to_numpy(dtype=float)

    strict = Evaluator.fit(training, predictor=predictor, desired=(1, 1))
    before = training.iloc[[1, 1]]
    after = pd.DataFrame({"n": [1.0, np.nan], "flag": [True, np.nan], "l": ["a", None]})

    assert metrics.success(after, strict).tolist()[0] == 1
    # flag is needed, the others are not
    assert metrics.redundancy(before, after, strict).tolist()[0] == 2
    assert {tuple(dtypes[1:]) for dtypes in seen} == {("bool", "category")}


def test_measures_agree_with_those_of_the_result(bank):
    predictor = lambda frame: frame["salary"] / 100_000
    settings = {"immutable": ["age", "sex"], "predictor": predictor, "desired": (0.6, 9)}
    explainer = MCCE(random_state=0, n_counterfactuals=3, n_samples=200, **settings).fit(bank)
    people = bank.head(60)
    result = explainer.explain(people)

    measured_by = Evaluator.fit(bank, **settings)
    assert (metrics.sparsity(people, result, measured_by) == result.measures["sparsity"]).all()
    np.testing.assert_allclose(
        metrics.gower(people, result, measured_by), result.measures["gower"], rtol=1e-12
    )
    assert (metrics.success(result, measured_by) == 1).all()
    assert (metrics.violation(people, result, measured_by) == 0).all()
    # People who have the desired decision need no counterfactual.
    status = result.people["status"]
    assert (status == "already desired").any()
    assert (
        metrics.coverage(people, result)
        == 1 - len(result.missing) / (status != "already desired").sum()
    )
    row = metrics.compare(people, result, measured_by).iloc[0]
    assert row["n_measured"] == len(result.frame)
    assert row["sparsity"] == pytest.approx(result.measures["sparsity"].mean())
    assert row["l1_sd"] == pytest.approx(result.measures["l1"].std())


def test_methods_are_compared_over_their_own_answers_or_over_common_people():
    people = TRAINING.iloc[:3].reset_index(drop=True)
    gap = [None, None, None]
    first = pd.DataFrame([[20, 60.0, "a"], [30, 30.0, "a"], gap], columns=people.columns)
    second = pd.DataFrame([[20, 30.0, "a"], gap, [40, 40.0, "a"]], columns=people.columns)

    alone = metrics.compare(people, {"one": first, "two": second}, evaluator(), k=1)
    paired = metrics.compare(people, {"one": first, "two": second}, evaluator(), k=1, paired=True)

    assert alone.index.tolist() == ["one", "two"]
    assert alone["n_measured"].tolist() == [2, 2]
    assert alone["coverage"].tolist() == paired["coverage"].tolist() == [2 / 3, 2 / 3]
    # sparsity 1 and 2, sample sd 1/sqrt(2); 1 and 1
    assert alone["sparsity"].tolist() == [1.5, 1.0]
    assert alone["sparsity_sd"].tolist() == pytest.approx([0.5**0.5, 0.0])
    # salary 10 to 60 and 20 to 30, job; 10 to 30 and 30 to 40
    assert alone["l1"].tolist() == pytest.approx([(0.5 + 1.1) / 2, (0.2 + 0.1) / 2])
    # only the first person has both
    assert paired["n_measured"].tolist() == [1, 1]
    assert paired["l1"].tolist() == pytest.approx([0.5, 0.2])
    assert paired["l1_sd"].isna().all()


def test_undefined_measures_are_nan_in_compare():
    training = TRAINING[["age", "salary"]]
    people = training.iloc[:2]

    result = metrics.compare(people, people + 1, training, k=1).iloc[0]

    without = ["violation", "success", "redundancy", "ynn", "contradictory"]
    assert result[without].isna().all()
    assert result.drop([*without, "violation_sd", "redundancy_sd"]).notna().all()


def test_without_a_desired_training_row_the_rest_is_still_measured():
    after = answers((20, 35.0, "a"), (40, 20.0, "a"))

    result = metrics.compare(PEOPLE, after, evaluator(desired=(500, 600)), k=2).iloc[0]

    assert result[["success", "ynn", "violation"]].tolist() == [0, 0, 0.5]
    assert np.isnan(result["knn_distance"])
    with pytest.raises(ParameterError, match="No training row has the desired decision"):
        metrics.knn_distance(after, evaluator(desired=(500, 600)), k=1, among="desired")


def test_other_kinds_of_frames_and_other_orders_of_columns_are_the_same_rows():
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    after = answers((20, 35.0, "b"), (40, 20.0, "a"))
    settings = {"immutable": ["age"], "desired": (30, 1000)}
    judge = Evaluator.fit(TRAINING, predictor=rich, **settings)
    of_polars = Evaluator.fit(
        pl.from_pandas(TRAINING), predictor=lambda frame: frame["salary"].to_numpy(), **settings
    )

    plain = metrics.compare(PEOPLE, after, judge, k=2)
    turned = metrics.compare(PEOPLE, after[after.columns[::-1]], judge, k=2)
    polars = metrics.compare(pl.from_pandas(PEOPLE), pl.from_pandas(after), of_polars, k=2)

    pd.testing.assert_frame_equal(plain, turned)
    pd.testing.assert_frame_equal(plain, polars)


def test_arrays_are_rows_too():
    training, before, after = (
        np.array([[0.0, 1], [4, 3]]),
        np.array([[1.0, 1]]),
        np.array([[2.0, 3]]),
    )

    assert metrics.l1(before, after, training).tolist() == [1 / 4 + 2 / 2]
    assert metrics.coverage(before, after * np.nan) == 0


def rows(n_rows, seed, shift=0.0):
    """Two correlated numbers, one of them with gaps, and two levels that depend on them."""
    chance = np.random.default_rng(seed)
    x = chance.normal(size=n_rows)
    y = x + chance.normal(size=n_rows)
    return pd.DataFrame(
        {
            "x": x + shift,
            "y": np.where(chance.random(n_rows) < 0.1, np.nan, y),
            "l": np.where(y > 0, "up", "down"),
            "m": chance.choice(["p", "q", "r"], n_rows),
        }
    )


@given(cases())
def test_copies_equal_those_found_row_by_row(case):
    people = pd.concat([case.people, case.train.tail(2)])
    people = people[~people.isna().all(axis=1)]
    if people.empty:
        return
    table = [list(row) for row in case.train.astype(object).itertuples(index=False)]
    expected = [
        any(all(map(same, row, other)) for other in table)
        for row in people.astype(object).itertuples(index=False)
    ]

    assert metrics.copies(people, case.train).tolist() == expected


def test_value_copies_by_hand():
    training = pd.DataFrame({"x": [1, 1, 2, 3], "y": [5.0, 6.0, 6.0, np.nan], "l": ["a"] * 4})
    generated = pd.DataFrame({"x": [1, 2, 9], "y": [5.0, np.nan, 6.0], "l": ["a"] * 3})

    # x: 1 is held twice, 2 once, 9 never; y: 5 once, a missing cell is no value, 6 twice
    assert metrics.value_copies(generated, training) == 2 / 5
    # x is the person's own: 5 once, 6 twice
    assert metrics.value_copies(generated, Evaluator.fit(training, immutable=["x"])) == 1 / 2
    # changed are 2 in x and 6 in y only
    people = pd.DataFrame({"x": [1, 1, 9], "y": [5.0, np.nan, 5.0], "l": ["a"] * 3})
    assert metrics.value_copies(generated, training, factuals=people) == 1 / 2
    assert np.isnan(metrics.value_copies(people, training, factuals=people))


def test_the_closest_record_by_hand():
    training = pd.DataFrame({"x": [0.0, 10.0], "l": ["a", "b"]})
    generated = pd.DataFrame({"x": [0.0, 2.0, 4.0, 9.0], "l": ["a", "a", "b", "b"]})

    result = metrics.closest_record(generated, training)

    # 0; 2 of 10; 6 of 10 and the same level; 1 of 10
    assert result["median"] == pytest.approx((0.1 + 0.2) / 2)
    assert result["q05"] == pytest.approx(0.15 * 0.1)
    assert result["zero"] == 0.25
    assert result.index.tolist() == ["median", "q05", "zero"]


def test_the_holdout_share_by_hand():
    training, holdout = pd.DataFrame({"x": [0.0, 10.0]}), pd.DataFrame({"x": [5.0, 6.0]})
    generated = pd.DataFrame({"x": [1.0, 2.0, 2.5, 5.0]})

    result = metrics.closest_record(generated, training, holdout=holdout)

    # nearer to 0, nearer to 0, as near to 0 as to 5, nearer to 5
    assert result["holdout_share"] == (1 + 1 + 0.5 + 0) / 4
    z, share, n = 1.959964, 0.625, 4
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5 / (1 + z**2 / n)
    assert result["low"] == pytest.approx(centre - half)
    assert result["high"] == pytest.approx(centre + half)


def test_copies_lie_closer_to_training_than_to_a_holdout_and_fresh_rows_do_not():
    training, holdout = rows(600, 0), rows(900, 1)

    copied = metrics.closest_record(training.head(200), training, holdout=holdout)
    fresh = metrics.closest_record(rows(400, 2), training, holdout=holdout)

    assert copied["holdout_share"] > 0.97
    assert copied["zero"] == 1
    assert fresh["low"] < 0.5 < fresh["high"]
    assert fresh["zero"] == 0


def test_generated_rows_may_hold_levels_and_gaps_that_training_does_not_have():
    training = rows(100, 0).assign(y=lambda frame: frame["x"])
    generated = rows(100, 1)
    generated.loc[:9, "m"] = "new"
    generated.loc[10:19, "l"] = None
    evaluator = Evaluator.fit(training)

    assert metrics.copies(generated, evaluator).sum() == 0
    assert metrics.contradictory_pairs(generated, evaluator).notna().all()
    assert metrics.closest_record(generated, evaluator, holdout=generated)["holdout_share"] == 0


LINE = pd.DataFrame({"x": [0.0, 1.0, 2.0, 10.0], "l": ["a", "a", "b", "b"]})  # range 10


def test_knn_distance_by_hand():
    row = pd.DataFrame({"x": [3.0], "l": ["a"]})

    # to the rows in order: .3, .2, .1 + 1, .7 + 1
    assert metrics.knn_distance(row, LINE, k=1).tolist() == pytest.approx([0.2])
    assert metrics.knn_distance(row, LINE, k=2).tolist() == pytest.approx([(0.2 + 0.3) / 2])
    assert metrics.knn_distance(row, LINE, k=4).tolist() == pytest.approx(
        [(0.2 + 0.3 + 1.1 + 1.7) / 4]
    )


def test_knn_distance_on_ranks_by_hand():
    row = pd.DataFrame({"x": [9.0], "l": ["b"]})

    # Ranks of 0, 1, 2, 10 as shares: 1/8, 3/8, 5/8, 7/8, equal ones counted half; three of four
    # values are below 9: 6/8. So the rows with b are 1/8 away, though 9 is far nearer to 10.
    assert metrics.knn_distance(row, LINE, k=1, scale="ranks").tolist() == [1 / 8]
    assert metrics.knn_distance(row, LINE, k=2, scale="ranks").tolist() == [1 / 8]
    assert metrics.knn_distance(row, LINE, k=2).tolist() == pytest.approx([(0.1 + 0.7) / 2])


def test_knn_distance_among_rows_with_the_desired_decision():
    evaluator = Evaluator.fit(LINE, predictor=lambda frame: frame["x"], desired=(5, 99))
    row = pd.DataFrame({"x": [3.0], "l": ["a"]})

    assert metrics.knn_distance(row, evaluator, k=1, among="desired").tolist() == pytest.approx(
        [0.7 + 1]
    )


def test_ynn_by_hand():
    evaluator = Evaluator.fit(LINE, predictor=lambda frame: frame["x"], desired=(1, 5))
    rows = pd.DataFrame({"x": [0.0, 9.0], "l": ["a", "b"]})

    # nearest to (0, a): 0 and 1, of which 1 is desired; to (9, b): 10 and 2, of which 2 is
    assert metrics.ynn(rows, evaluator, k=2).tolist() == [0.5, 0.5]
    assert metrics.ynn(rows, evaluator, k=4).tolist() == [0.5, 0.5]
    assert metrics.ynn(rows, evaluator, k=3).tolist() == [2 / 3, 2 / 3]


def test_ynn_takes_euclidean_neighbours():
    # from (0, 0) the point (.6, .6) is 1.2 away by l1 and .849 by Euclid, (1, 0) is 1 away by both
    training = pd.DataFrame({"x": [0.6, 1.0, 0.0], "y": [0.6, 0.0, 1.0]})
    evaluator = Evaluator.fit(training, predictor=lambda frame: frame["y"], desired=(0.5, 0.7))
    row = pd.DataFrame({"x": [0.0], "y": [0.0]})

    assert metrics.ynn(row, evaluator, k=1).tolist() == [1.0]


def apart(evaluator, one, other):
    """The distance of two rows, cell by cell."""
    total = 0.0
    for feature in evaluator.schema.features:
        a, b = one[feature.name], other[feature.name]
        if same(a, b):
            continue
        plain = pd.isna(a) or pd.isna(b) or feature.kind == "categorical" or not feature.spread
        gap = 1.0 if plain else abs(float(a) - float(b)) / feature.spread
        total += gap
    return total


def test_missing_numbers_are_one_away_from_any_number_and_none_from_each_other():
    training = pd.DataFrame({"x": [0.0, 5.0, 10.0, np.nan]})
    rows = pd.DataFrame({"x": [np.nan, 10.0, 4.0], "y": [1, 1, 1]})

    for scale in ("range", "ranks"):
        far = metrics.knn_distance(rows, training.assign(y=1), k=1, scale=scale)
        assert far.iloc[0] == 0
        assert far.iloc[1] == 0
    assert metrics.knn_distance(rows, training.assign(y=1), k=4).iloc[0] == (0 + 1 + 1 + 1) / 4


def test_outliers_stand_out():
    chance = np.random.default_rng(0)
    training = pd.DataFrame(
        {"x": chance.normal(size=400), "y": chance.normal(size=400), "l": ["a", "b"] * 200}
    )
    rows = pd.DataFrame({"x": [0.0, 5.0], "y": [0.0, -5.0], "l": ["a", "a"]})

    usual, strange = metrics.knn_distance(rows, training)

    assert strange > 1.3 * usual


def test_contradictory_pairs_by_hand():
    # 100 rows; called 50/50, sold 50/50: independence expects 25 of each pair, never and yes 0
    training = pd.DataFrame(
        {
            "called": ["never"] * 50 + ["once"] * 50,
            "sold": ["no"] * 50 + ["yes"] * 50,
            "x": range(100),
            "rare": ["r"] * 2 + ["s"] * 98,
        }
    )
    rows = pd.DataFrame(
        {
            "called": ["never", "once", "never", "twice", "once"],
            "sold": ["yes", "yes", "no", "yes", "no"],
            "x": [1, 1, 1, 1, 1],
            # r with once is expected 50 * 2 / 100 = 1 times: too few to tell
            "rare": ["s", "r", "s", "s", "s"],
        }
    )

    assert metrics.contradictory_pairs(rows, training).tolist() == [1, 0, 0, 0, 1]
    assert metrics.contradictory_pairs(rows, training, least_expected=25).tolist()[0] == 1
    assert metrics.contradictory_pairs(rows, training, least_expected=25.1).tolist()[0] == 0
    assert metrics.contradictory_pairs(rows, training, least_expected=1).tolist()[1] == 2


def test_twenty_rows_must_be_expected_unless_told_otherwise():
    row = pd.DataFrame({"a": ["p"], "b": ["v"]})
    counts = []
    for n_each in (19, 20):
        # n_each * 2 n_each / 2 n_each rows are expected of p with v, and there is none
        training = pd.DataFrame({"a": ["p", "q"] * n_each, "b": ["u", "v"] * n_each})
        training = pd.concat([training, training])
        counts.append(metrics.contradictory_pairs(row, training).tolist())

    assert counts == [[0], [1]]


def test_rare_levels_are_not_contradictory_together():
    # 50 levels of one row each; together they never go with v, each by itself says nothing
    training = pd.DataFrame(
        {"a": ["p"] * 300 + [f"rare {i}" for i in range(50)], "b": ["u", "v"] * 150 + ["u"] * 50}
    )
    row = pd.DataFrame({"a": ["rare 3", "unheard of"], "b": ["v", "v"]})

    assert metrics.contradictory_pairs(row, training).tolist() == [0, 0]


def test_a_pair_may_be_seen_in_up_to_its_share_of_what_is_expected():
    # 200 of 400 and 200 of 400: 100 expected; seen once is 1 %, which is not under 1 %
    once = pd.DataFrame({"a": ["p"] * 200 + ["q"] * 200, "b": ["u"] * 199 + ["v"] * 200 + ["u"]})
    row = pd.DataFrame({"a": ["q"], "b": ["u"]})

    assert metrics.contradictory_pairs(row, once).tolist() == [0]
    assert metrics.contradictory_pairs(row, once, share=0.011).tolist() == [1]


@given(cases(max_rows=12), st.integers(1, 3))
@settings(max_examples=20)
def test_knn_distances_equal_those_of_brute_force(case, k):
    people = case.people[~case.people.isna().all(axis=1)]
    if people.empty:
        return
    evaluator, k = Evaluator.fit(case.train), min(k, len(case.train))
    expected = [
        np.mean(sorted(apart(evaluator, one, other) for _, other in table)[:k])
        for table in [list(case.train.astype(object).iterrows())]
        for _, one in people.astype(object).iterrows()
    ]

    assert metrics.knn_distance(people, evaluator, k=k).tolist() == pytest.approx(expected)


def test_memory_does_not_grow_with_the_number_of_rows():
    chance = np.random.default_rng(0)
    evaluator = Evaluator.fit(pd.DataFrame(chance.random((5000, 3))))
    people = pd.DataFrame(chance.random((2000, 3)))

    tracemalloc.start()
    metrics.knn_distance(people, evaluator, k=5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    # all distances at once would take 5000 * 2000 * 8 = 80 million bytes
    assert peak < 30_000_000


def test_of_equally_near_rows_the_first_are_taken():
    for values, share in (([0, 2, 4], 0.0), ([2, 0, 4], 1.0)):
        training = pd.DataFrame({"x": values})
        evaluator = Evaluator.fit(training, predictor=lambda frame: frame["x"], desired=(2, 9))

        assert metrics.ynn(pd.DataFrame({"x": [1]}), evaluator, k=1).tolist() == [share]


@given(cases(max_rows=30), st.sampled_from([0.5, 1.0, 3.0]), st.sampled_from([0.01, 0.3, 1.0]))
def test_contradictory_pairs_equal_those_counted_pair_by_pair(case, least, share):
    evaluator = Evaluator.fit(case.train)
    names = [f.name for f in evaluator.schema.features if f.kind == "categorical"]
    people = case.people[~case.people.isna().all(axis=1)]
    if len(names) < 2 or people.empty:
        return
    table = [dict(row) for _, row in case.train.astype(object).iterrows()]
    counts = []
    for _, row in people.astype(object).iterrows():
        n_bad = 0
        for i, first in enumerate(names):
            for second in names[:i]:
                has = [
                    (same(other[first], row[first]), same(other[second], row[second]))
                    for other in table
                ]
                n_a, n_b = sum(a for a, _ in has), sum(b for _, b in has)
                expected = n_a * n_b / len(table)
                seen = sum(a and b for a, b in has)
                n_bad += expected >= least and seen < share * expected
        counts.append(n_bad)

    result = metrics.contradictory_pairs(people, evaluator, share=share, least_expected=least)
    assert result.tolist() == counts


FEW = pd.DataFrame({"x": [1, 2, 3], "l": ["a", "b", "c"]})
EMPTY = FEW.head(0)
WRONG = {
    "in another order": lambda a: metrics.l1(PEOPLE, a.iloc[::-1], TRAINING),
    "1 factuals but .* for 2": lambda a: metrics.l1(PEOPLE.head(1), a, TRAINING),
    "missing": lambda a: metrics.l1(PEOPLE, a.drop(columns="age"), TRAINING),
    "at least one row": lambda a: metrics.l1(PEOPLE.head(0), a.head(0), TRAINING),
    "Expected a frame": lambda a: metrics.l1(PEOPLE, [1, 2], TRAINING),
    "needs immutable features": lambda a: metrics.violation(PEOPLE, a, TRAINING),
    "needs a predictor": lambda a: metrics.success(a, TRAINING),
    "k must be at most .* 4, got 5": lambda a: metrics.ynn(a, evaluator(), k=5),
    "k must be a whole number": lambda a: metrics.ynn(a, evaluator(), k=0),
    "empty mapping": lambda a: metrics.compare(PEOPLE, {}, TRAINING),
    "need a predictor": lambda a: Evaluator.fit(TRAINING, desired=1),
    "immutable names columns": lambda a: Evaluator.fit(TRAINING, immutable=["x"]),
    "scale must be": lambda a: metrics.knn_distance(LINE, LINE, k=1, scale="z"),
    "two categorical features": lambda a: metrics.contradictory_pairs(LINE, LINE),
    "share must be": lambda a: metrics.contradictory_pairs(LINE, LINE, share=2),
    "at least one row and column": lambda a: metrics.closest_record(FEW, FEW, holdout=EMPTY),
    "numeric feature": lambda a: metrics.value_copies(FEW[["l"]], FEW[["l"]]),
}


def test_what_cannot_be_measured_is_an_error_that_says_why():
    after = answers((20, 35.0, "a"), (40, 20.0, "a"))

    for says, call in WRONG.items():
        with pytest.raises((ParameterError, SchemaError), match=says):
            call(after)
