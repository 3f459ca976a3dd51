"""Missing values end to end: kept, changed to, changed from, in every dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from mcce import MCCE, PredictorError
from searches import bounded

N_TRAIN = 48
DAYS = pd.to_datetime(["2024-01-05", "2024-01-01"])
SIZES = pd.CategoricalDtype(["small", "large", "never"], ordered=True)
LOOSE = pd.CategoricalDtype(["a", "b", "never"])

# Two values and a dtype that holds them and a missing one.
COLUMNS: dict[str, tuple[list[Any], Any]] = {
    "float64": ([1.5, 0.5], "float64"),
    "float32": ([1.5, 0.5], "float32"),
    "Int64": ([2**60 + 1, 2**60], "Int64"),
    "Float64": ([1.5, 0.5], "Float64"),
    "boolean": ([True, False], "boolean"),
    "objects that are booleans": ([True, False], object),
    "objects that are strings": (["a", "b"], object),
    "string": (["a", "b"], "string"),
    "text as pandas infers it": (["a", "b"], pd.Series(["a"]).dtype),
    "category": (["a", "b"], LOOSE),
    "ordered category": (["large", "small"], SIZES),
    "datetime": (list(DAYS), "datetime64[ns]"),
    "datetime in seconds": (list(DAYS), "datetime64[s]"),
    "datetime with a zone": (list(DAYS.tz_localize("Europe/Oslo")), "datetime64[us, Europe/Oslo]"),
    "timedelta": ([DAYS[0] - DAYS[1], DAYS[1] - DAYS[1]], "timedelta64[ns]"),
}
ARROW = {
    "Arrow int8": ([2, 1], "int8"),
    "Arrow double": ([1.5, 0.5], "float64"),
    "Arrow bool": ([True, False], "bool_"),
    "Arrow string": (["a", "b"], "string"),
    "Arrow date": ([day.date() for day in DAYS], "date32"),
}
NAMES = [*COLUMNS, *ARROW]


def column(name: str, gaps: Any) -> pd.Series:
    """The two values in turn, missing where there are gaps."""
    if name in ARROW:
        pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
        values, dtype = ARROW[name][0], pd.ArrowDtype(getattr(pa, ARROW[name][1])())
    else:
        values, dtype = COLUMNS[name]
    cells = [None if gap else values[i % 2] for i, gap in enumerate(gaps)]
    return pd.Series(cells, dtype=dtype)


def table(name: str, gaps: Any) -> pd.DataFrame:
    cells = column(name, gaps)
    return pd.DataFrame({"column": cells, "points": np.arange(len(cells)) * 7 % N_TRAIN})


def every(n: int) -> np.ndarray:
    return np.arange(N_TRAIN) % n == 0


def points(frame: pd.DataFrame) -> Any:
    return frame["points"] / N_TRAIN


def explainer(predictor: Any = points, desired: Any = (0.5, 1.0), **settings: Any) -> MCCE:
    return MCCE(predictor, desired, n_samples=100, random_state=0, **settings)


WHERE = {
    "in training only": (every(3), every(N_TRAIN + 1) & False),
    "in people only": (every(3) & False, every(3)),
    "in both": (every(3), every(4)),
    "everywhere in people": (every(3), every(1)),
}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", NAMES)
def test_a_missing_immutable_cell_stays_missing_and_the_others_stay_what_they_are(name, where):
    in_training, in_people = WHERE[where]
    given = table(name, in_people)[:20]

    model = explainer(immutable=["column"]).fit(table(name, in_training))
    result = model.explain(given)

    assert len(result.frame) > 5
    pd.testing.assert_series_equal(result.frame.dtypes, given.dtypes)
    own = given["column"].iloc[result.owner].set_axis(result.frame.index)
    pd.testing.assert_series_equal(result.frame["column"], own, check_exact=True)
    pd.testing.assert_frame_equal(result.factuals, given, check_names=False)
    flagged = result.people["unseen_immutable"] == "column"
    unknown = given["column"].isna() & (not in_training.any())
    assert flagged.tolist() == unknown.tolist()


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", NAMES)
def test_a_mutable_cell_keeps_its_dtype_and_takes_training_values_only(name, where):
    in_training, in_people = WHERE[where]
    train, given = table(name, in_training), table(name, in_people)[:20]
    before = given.copy(deep=True)

    result = explainer(search=bounded(rank_by=["distance"])).fit(train).explain(given)

    assert len(result.frame) > 5
    pd.testing.assert_series_equal(result.frame.dtypes, given.dtypes)
    pd.testing.assert_frame_equal(given, before)
    own = given["column"].iloc[result.owner].isna().to_numpy()
    returned = result.frame["column"].isna().to_numpy()
    changed = result.changes()
    turned = changed[changed["feature"] == "column"]
    assert int((own != returned).sum()) <= len(turned)
    if not in_training.any():
        assert turned["after"].notna().all()


@pytest.mark.parametrize("name", NAMES)
def test_missing_can_be_the_answer(name):
    train, given = table(name, every(3)), table(name, every(1) & False)[:10]

    result = explainer(lambda frame: frame["column"].isna().astype(float)).fit(train).explain(given)

    assert result.frame["column"].isna().all()
    pd.testing.assert_series_equal(result.frame.dtypes, given.dtypes)
    # One of two columns, and one side missing: 1 / 2.
    only = result.measures[result.measures["sparsity"] == 1]
    assert len(only) >= 3
    assert only["gower"].tolist() == [0.5] * len(only)
    changes = result.changes()
    assert changes.loc[changes["feature"] == "column", "after"].isna().all()


@pytest.mark.parametrize("name", NAMES)
def test_a_value_can_be_the_answer_to_missing(name):
    train, given = table(name, every(3)), table(name, every(1))[:10]

    result = (
        explainer(lambda frame: frame["column"].notna().astype(float)).fit(train).explain(given)
    )

    assert result.frame["column"].isin(train["column"].dropna()).all()
    pd.testing.assert_series_equal(result.frame.dtypes, given.dtypes)


@pytest.mark.parametrize(
    ("trained", "given", "dtype"),
    [("int64", "float64", "float64"), ("int64", "Int64", "Int64"), ("bool", "boolean", "boolean")],
)
def test_a_column_without_gaps_in_training_makes_room_for_the_gaps_of_people(trained, given, dtype):
    train = pd.DataFrame({"column": pd.Series([1, 0] * 24).astype(trained), "points": range(48)})
    people = pd.DataFrame({"column": pd.array([1, None], "Int64"), "points": [1, 2]})
    people["column"] = people["column"].astype(given)

    result = explainer(immutable=["column"]).fit(train).explain(people)

    assert str(result.frame["column"].dtype) == dtype
    assert result.frame["column"].isna().tolist() == [False, True]


@pytest.fixture
def loans() -> pd.DataFrame:
    chance = np.random.default_rng(3)
    income = chance.normal(50, 15, 200).round()
    return pd.DataFrame(
        {
            "income": np.where(chance.random(200) < 0.15, np.nan, income),
            "debt": np.where(chance.random(200) < 0.15, np.nan, chance.integers(0, 40, 200)),
            "job": np.where(
                chance.random(200) < 0.15, None, chance.choice(["clerk", "nurse"], 200)
            ).astype(object),
        }
    )


def granted(loans: pd.DataFrame) -> pd.Series:
    return loans["income"].fillna(40) - loans["debt"].fillna(10) > 30


@pytest.mark.slow
def test_a_predictor_that_accepts_missing_values_explains_people_with_them(loans):
    numbers = loans[["income", "debt"]]
    trees = HistGradientBoostingClassifier(max_iter=30).fit(numbers, granted(loans))
    declined = numbers[~trees.predict(numbers)]

    result = explainer(trees, None, immutable=["debt"]).fit(numbers).explain(declined)

    assert declined.isna().any().all()
    assert trees.predict(result.frame).all()
    own = declined["debt"].iloc[result.owner].set_axis(result.frame.index)
    pd.testing.assert_series_equal(result.frame["debt"], own)
    assert (result.people["status"] == "answered").mean() > 0.9


def test_a_pipeline_that_imputes_explains_people_with_missing_values(loans):
    impute = make_column_transformer(
        (SimpleImputer(add_indicator=True), ["income", "debt"]),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["job"]),
    )
    pipeline = make_pipeline(impute, LogisticRegression(max_iter=1000)).fit(loans, granted(loans))
    declined = loans[~pipeline.predict(loans)]

    result = explainer(pipeline, None, immutable=["job"]).fit(loans).explain(declined)

    assert declined.isna().any().all()
    assert len(result.frame) == len(declined)
    assert pipeline.predict(result.frame).all()
    assert result.frame["job"].isna().sum() == declined["job"].isna().sum()


def test_the_error_of_a_predictor_that_refuses_missing_values_names_their_columns(loans):
    whole = loans[["income", "debt"]].dropna()
    linear = LogisticRegression(max_iter=1000).fit(whole, granted(whole))
    numbers = loans[["income", "debt"]]

    with pytest.raises(PredictorError, match=r"missing values: \['income', 'debt'\].*imputer"):
        explainer(linear, None).fit(numbers)
    model = explainer(linear, None).fit(whole)
    only_income = numbers[numbers["income"].isna() & numbers["debt"].notna()]
    with pytest.raises(PredictorError, match=r"missing values: \['income'\].*imputer"):
        model.explain(only_income)


def test_people_without_gaps_are_never_answered_with_one_where_training_has_none(loans):
    whole = loans[["income", "debt"]].dropna()
    linear = LogisticRegression(max_iter=1000).fit(whole, granted(whole))

    result = explainer(linear, None).fit(whole).explain(whole[~linear.predict(whole)])

    assert not result.frame.isna().any().any()
    assert len(result.frame) > 10
