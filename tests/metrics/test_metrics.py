"""Measures of counterfactuals: by hand, by brute force, for frames and for results."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import mcce
from brute_force import same
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
        metrics.isolation(after, evaluator()),
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


@pytest.mark.slow
@given(cases())
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


def test_redundancy_of_an_answer_with_one_change_is_nothing(bank):
    predictor = lambda frame: frame["salary"] / 100_000
    explainer = MCCE(predictor, (0.6, 9), immutable=["age", "sex"], random_state=0).fit(bank)
    result = explainer.explain(bank[predictor(bank) < 0.6].head(20))
    measured_by = Evaluator.fit(
        bank, immutable=["age", "sex"], predictor=predictor, desired=(0.6, 9)
    )

    needless = metrics.redundancy(result.factuals, result, measured_by)

    single = result.measures["sparsity"] == 1
    assert single.any()
    assert (needless[single.to_numpy()] == 0).all()


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
    row = metrics.compare(people, result, bank, **settings).iloc[0]
    assert row["n_measured"] == len(result.frame)
    assert row["sparsity"] == pytest.approx(result.measures["sparsity"].mean())
    assert row["l1_sd"] == pytest.approx(result.measures["l1"].std())


def test_the_authors_table_comes_out_with_their_tolerance(reference_folder):
    from reference import load

    case = load(reference_folder / "adult")
    after = case.answers[case.train.columns.tolist()]
    people = case.people.loc[after.index]

    found = metrics.sparsity(people, after, case.train, tolerance=1e-5)
    far = metrics.l1(people, after, case.train)

    stated = [name for name in case.answers.columns if name.upper() in ("L0", "L1")]
    np.testing.assert_allclose(found, case.answers[sorted(stated)[0]])
    np.testing.assert_allclose(far, case.answers[sorted(stated)[1]], atol=1e-6)


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


def test_nothing_is_changed_by_measuring():
    people, after, training = PEOPLE.copy(), answers((20, 35.0, "a"), (40, 20.0, "a")), TRAINING
    before = [frame.copy() for frame in (people, after, training)]

    metrics.compare(people, after, training, predictor=rich, desired=(30, 1000), k=2)

    for frame, was in zip((people, after, training), before, strict=True):
        pd.testing.assert_frame_equal(frame, was)


def test_other_kinds_of_frames_and_other_orders_of_columns_are_the_same_rows():
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    after = answers((20, 35.0, "b"), (40, 20.0, "a"))
    settings = {"immutable": ["age"], "desired": (30, 1000), "k": 2}

    plain = metrics.compare(PEOPLE, after, TRAINING, predictor=rich, **settings)
    turned = metrics.compare(
        PEOPLE, after[after.columns[::-1]], TRAINING, predictor=rich, **settings
    )
    polars = metrics.compare(
        pl.from_pandas(PEOPLE),
        pl.from_pandas(after),
        pl.from_pandas(TRAINING),
        predictor=lambda frame: frame["salary"].to_numpy(),
        **settings,
    )

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


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda a: metrics.l1(PEOPLE.head(1), a, TRAINING), SchemaError, "1 factuals but .* for 2"),
        (lambda a: metrics.l1(PEOPLE, a.iloc[::-1], TRAINING), SchemaError, "in another order"),
        (lambda a: metrics.l1(PEOPLE, a.drop(columns="age"), TRAINING), SchemaError, "missing"),
        (lambda a: metrics.l1(PEOPLE, a, TRAINING.head(0)), SchemaError, "minimum of 1"),
        (
            lambda a: metrics.l1(PEOPLE.head(0), a.head(0), TRAINING),
            SchemaError,
            "at least one row",
        ),
        (lambda a: metrics.l1(PEOPLE, [1, 2], TRAINING), SchemaError, "Expected a frame"),
        (
            lambda a: metrics.violation(PEOPLE, a, TRAINING),
            ParameterError,
            "needs immutable features",
        ),
        (lambda a: metrics.success(a, TRAINING), ParameterError, "needs a predictor"),
        (lambda a: metrics.redundancy(PEOPLE, a, TRAINING), ParameterError, "needs a predictor"),
        (
            lambda a: metrics.ynn(a, evaluator(), k=5),
            ParameterError,
            "k must be at most .* 4, got 5",
        ),
        (lambda a: metrics.ynn(a, evaluator(), k=0), ParameterError, "k must be a whole number"),
        (lambda a: metrics.compare(PEOPLE, {}, TRAINING), ParameterError, "empty mapping"),
        (
            lambda a: metrics.compare(PEOPLE, a, evaluator(), desired=1),
            ParameterError,
            "already has its desired",
        ),
        (lambda a: Evaluator.fit(TRAINING, desired=1), ParameterError, "need a predictor"),
        (
            lambda a: Evaluator.fit(TRAINING, immutable=["x"]),
            SchemaError,
            "immutable names columns",
        ),
    ],
)
def test_what_cannot_be_measured_is_an_error_that_says_why(call, error, says):
    after = answers((20, 35.0, "a"), (40, 20.0, "a"))

    with pytest.raises(error, match=says):
        call(after)


def test_the_module_is_there_but_only_imported_on_use():
    result = (
        "import sys, mcce; assert 'mcce.metrics' not in sys.modules; mcce.metrics.sparsity; "
        "assert not {'sklearn.ensemble', 'sklearn.neighbors'} & (set(sys.modules))"
    )
    subprocess.run([sys.executable, "-c", result], check=True)

    with pytest.raises(AttributeError, match="no attribute 'measures'"):
        _ = mcce.measures
