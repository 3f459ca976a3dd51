"""Missing values end to end: kept, changed to and changed from."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from mcce import MCCE, PredictorError, Schema, Search

N_TRAIN = 48
DAYS = pd.to_datetime(["2024-01-05", "2024-01-01"])
# Two values and a dtype that holds them and a missing one.
COLUMNS = {
    "float": ([1.5, 0.5], "float64"),
    "nullable": ([2**60 + 1, 2**60], "Int64"),
    "boolean": ([True, False], "boolean"),
    "truths": ([True, False], object),
    "objects": (["a", "b"], object),
    "string": (["a", "b"], "string"),
    "category": (["a", "b"], pd.CategoricalDtype(["a", "b", "never"])),
    "ordered": (["large", "small"], pd.CategoricalDtype(["small", "large"], ordered=True)),
    "zone": (list(DAYS.tz_localize("Europe/Oslo")), "datetime64[us, Europe/Oslo]"),
    "duration": ([DAYS[0] - DAYS[1], DAYS[1] - DAYS[1]], "timedelta64[ns]"),
    "arrow": ([1.5, 0.5], "double[pyarrow]"),
    "date": ([day.date() for day in DAYS], "date32[day][pyarrow]"),
}
SOME, NONE, ALL = np.arange(N_TRAIN) % 3 == 0, np.zeros(N_TRAIN, bool), np.ones(N_TRAIN, bool)


def table(name, gaps) -> pd.DataFrame:
    """The two values in turn, missing where there are gaps."""
    values, dtype = COLUMNS[name]
    cells = [None if gap else values[i % 2] for i, gap in enumerate(gaps)]
    column = pd.Series(cells, dtype=dtype)
    return pd.DataFrame({"column": column, "points": np.arange(len(cells)) * 7 % N_TRAIN})


def points(frame):
    return frame["points"] / N_TRAIN


def explainer(predictor=points, desired=(0.5, 1.0), **settings) -> MCCE:
    settings = {"search": "paper", "n_samples": 60, "random_state": 0} | settings
    return MCCE(predictor, desired, **settings)


@pytest.mark.parametrize("name", COLUMNS)
def test_missing_may_be_kept_be_the_answer_or_be_answered(name):
    gaps, full, empty = table(name, SOME), table(name, NONE)[:10], table(name, ALL)[:10]
    wants_gap = explainer(lambda frame: frame["column"].isna().astype(float)).fit(gaps)
    wants_value = explainer(lambda frame: frame["column"].notna().astype(float)).fit(gaps)

    to_gap, from_gap = wants_gap.explain(full), wants_value.explain(empty)

    for result in (to_gap, from_gap):
        pd.testing.assert_series_equal(result.frame.dtypes, gaps.dtypes)
    assert to_gap.frame["column"].isna().all()
    assert from_gap.frame["column"].isin(gaps["column"].dropna()).all()
    # One of two columns, and one side missing: 1 / 2.
    only = to_gap.measures[to_gap.measures["sparsity"] == 1]
    assert len(only) > 0
    assert only["gower"].tolist() == [0.5] * len(only)
    changes = to_gap.changes()
    assert changes.loc[changes["feature"] == "column", "after"].isna().all()


@pytest.mark.parametrize("name", COLUMNS)
def test_gaps_that_training_does_not_have_are_kept_and_never_drawn(name):
    train, people = table(name, NONE), table(name, SOME)[:20]
    by_distance = Search("paper", rank_by=["distance"])

    result = explainer(search=by_distance).fit(train).explain(people)

    assert len(result.frame) > 5
    pd.testing.assert_series_equal(result.frame.dtypes, people.dtypes)
    changes = result.changes()
    turned = changes[changes["feature"] == "column"]
    assert turned["after"].notna().all()
    own = people["column"].iloc[result.owner].isna().to_numpy()
    assert not (result.frame["column"].isna().to_numpy() & ~own).any()


def test_none_nan_na_and_nat_are_one_missing_value_and_zeros_of_both_signs_one_number():
    levels = pd.DataFrame({"job": pd.Series(["a", None, np.nan, pd.NA, pd.NaT], dtype=object)})
    zeros = pd.DataFrame({"debt": [0.0, -0.0, 1.0]})

    learned = Schema.learn_rows(levels, kinds={"job": "categorical"})

    assert learned.codes.tolist() == [[0, 1, 1, 1, 1]]
    assert learned.schema.encode(levels).codes.tolist() == [[0, 1, 1, 1, 1]]
    assert Schema.learn_rows(zeros).codes.tolist() == [[0, 0, 1]]


def test_the_predictor_sees_one_form_of_equal_cells_and_answers_return_the_person_s_own():
    train = {"debt": [0.0, -0.0] * 9, "job": objects("a", None, "b"), "n": objects(1, True, 2)}
    own = {"debt": [-0.0], "job": pd.Series([np.nan], dtype=object), "n": [Decimal("1.00")]}
    shown = []

    def score(frame: pd.DataFrame) -> pd.Series:
        shown.append(frame)
        return frame["points"]

    explainer = MCCE(score, (5, 9), kinds={"n": "categorical"}, random_state=0)
    explainer.fit(pd.DataFrame({**train, "points": range(18)}))
    people = pd.DataFrame({**own, "points": [1]})
    answer = explainer.explain(people).frame

    forms = {name: {*map(str, pd.concat(shown)[name])} for name in own}
    assert forms == {"debt": {"0.0"}, "job": {"a", "b", "None"}, "n": {"1", "2"}}
    kept = {name: str(answer[name].iloc[0]) for name in own}
    assert kept == {"debt": "-0.0", "job": "nan", "n": "1.00"}


def objects(*cells) -> pd.Series:
    return pd.Series(cells * 6, dtype=object)


@pytest.mark.parametrize(
    ("trained", "given"),
    [("int64", "float64"), ("int64", "Int64"), ("bool", "boolean")],
    ids=["float", "nullable", "boolean"],
)
def test_a_column_without_gaps_in_training_makes_room_for_the_gaps_of_people(trained, given):
    train = pd.DataFrame({"column": pd.Series([1, 0] * 24).astype(trained), "points": range(48)})
    people = pd.DataFrame({"column": pd.array([1, None], "Int64"), "points": [1, 2]})
    people["column"] = people["column"].astype(given)

    result = explainer(immutable=["column"]).fit(train).explain(people)

    assert str(result.frame["column"].dtype) == given
    assert result.frame["column"].isna().tolist() == [False, True]


@pytest.fixture
def loans() -> pd.DataFrame:
    chance = np.random.default_rng(3)
    income = chance.normal(50, 15, 200).round()
    jobs = chance.choice(["clerk", "nurse"], 200)
    return pd.DataFrame(
        {
            "income": np.where(chance.random(200) < 0.15, np.nan, income),
            "debt": np.where(chance.random(200) < 0.15, np.nan, chance.integers(0, 40, 200)),
            "job": np.where(chance.random(200) < 0.15, None, jobs).astype(object),
        }
    )


def granted(loans: pd.DataFrame) -> pd.Series:
    return loans["income"].fillna(40) - loans["debt"].fillna(10) > 30


@pytest.mark.parametrize("kind", ["trees", "imputer"])
def test_a_predictor_that_accepts_missing_values_explains_people_with_them(loans, kind):
    impute = make_column_transformer(
        (SimpleImputer(add_indicator=True), ["income", "debt"]),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["job"]),
    )
    if kind == "trees":
        loans, model = loans[["income", "debt"]], HistGradientBoostingClassifier(max_iter=5)
    else:
        model = make_pipeline(impute, LogisticRegression(max_iter=1000))
    model.fit(loans, granted(loans))
    declined = loans[~model.predict(loans)]

    result = explainer(model, None, immutable=["debt"]).fit(loans).explain(declined)

    assert declined.isna().any().all()
    assert model.predict(result.frame).all()
    own = declined["debt"].iloc[result.owner].set_axis(result.frame.index)
    pd.testing.assert_series_equal(result.frame["debt"], own)
    assert len(result.frame) > 0.9 * len(declined)


def test_a_predictor_that_refuses_missing_values_is_an_error_that_names_their_columns(loans):
    numbers = loans[["income", "debt"]]
    whole = numbers.dropna()
    linear = LogisticRegression(max_iter=1000).fit(whole, granted(whole))

    with pytest.raises(PredictorError, match=r"missing values: \['income', 'debt'\].*imputer"):
        explainer(linear, None).fit(numbers)
    model = explainer(linear, None).fit(whole)
    only_income = numbers[numbers["income"].isna() & numbers["debt"].notna()]
    with pytest.raises(PredictorError, match=r"missing values: \['income'\].*imputer"):
        model.explain(only_income)
    answers = model.explain(whole[~linear.predict(whole)]).frame
    assert len(answers) > 10
    assert not answers.isna().any(axis=None)
