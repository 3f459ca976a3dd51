"""Columns and categories reach a predictor as what they are, or not at all."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mcce
from loans import boxed, catboost_model, explain, lightgbm_model, loans, numbered, xgboost_model
from mcce import MCCE, PredictorError, SchemaError
from mcce.predictors import make_decision

KNOWN = ["my debt", "salary"]


@pytest.fixture(scope="module")
def table():
    chance = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "region": chance.choice(["north", "south"], 60),
            "salary": chance.normal(50, 9, 60),
            "my debt": chance.normal(5, 2, 60),
        }
    )


@pytest.fixture(scope="module")
def wanted(table):
    return (table["salary"] + np.random.default_rng(1).normal(0, 3, 60) > 50).astype(int)


def pipeline(rows, wanted):
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, wanted)


def lightgbm_classifier(rows, wanted):
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    model = lightgbm.LGBMClassifier(n_estimators=9, min_child_samples=5, verbose=-1, n_jobs=1)
    return model.fit(rows, wanted)


def xgboost_classifier(rows, wanted):
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    return xgboost.XGBClassifier(n_estimators=9, n_jobs=1).fit(rows, wanted)


def catboost_classifier(rows, wanted):
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    settings = {"iterations": 9, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return catboost.CatBoostClassifier(**settings).fit(rows, wanted)


MODELS = {
    "pipeline": pipeline,
    "lightgbm": lightgbm_classifier,
    "lightgbm_booster": lambda *given: lightgbm_classifier(*given).booster_,
    "xgboost": xgboost_classifier,
    "xgboost_booster": lambda *given: xgboost_classifier(*given).get_booster(),
    "catboost": catboost_classifier,
}


@pytest.mark.parametrize("name", MODELS)
def test_a_column_that_the_predictor_does_not_know_must_be_immutable(name, table, wanted):
    model = MODELS[name](table[KNOWN], wanted)

    with pytest.raises(SchemaError, match=r"trained without the columns \['region'\].*immutable"):
        MCCE(model, immutable=["my debt"], random_state=0).fit(table)

    # As such it conditions the draws.
    result = MCCE(model, immutable=["region"], random_state=0).fit(table).explain(table)
    assert len(result.frame) > 5
    assert result.frame.columns.tolist() == table.columns.tolist()
    assert make_decision(model).score(result.frame[KNOWN]).valid.all()


@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
def test_an_explainer_with_a_column_that_the_predictor_does_not_know_is_saved_and_relaxed(
    table, wanted, tmp_path
):
    model = pipeline(table[KNOWN], wanted)
    explainer = MCCE(model, immutable=["region", "salary"], random_state=0).fit(table)

    explainer.save(tmp_path / "loans.mcce")
    loaded = mcce.load(tmp_path / "loans.mcce", model)

    assert loaded.explain(table).frame.equals(explainer.explain(table).frame)
    assert set(explainer.relax(table, table)["lifted"]) == {"min_plausibility", "salary"}


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_names_are_known_in_other_kinds_of_frames(kind, table, wanted):
    library = pytest.importorskip(kind)
    make = library.from_pandas if kind == "polars" else library.Table.from_pandas

    with pytest.raises(SchemaError, match=r"trained without the columns \['region'\]"):
        MCCE(pipeline(table[KNOWN], wanted), random_state=0).fit(make(table))


def test_columns_that_the_data_lack_are_named_at_fit(table, wanted):
    with pytest.raises(PredictorError, match=r"columns that the data lack: \['my debt'\]"):
        MCCE(pipeline(table[KNOWN], wanted), random_state=0).fit(table[["salary"]])


def test_a_column_that_the_predictor_was_trained_on_but_drops_may_be_absent(table, wanted):
    columns = ColumnTransformer([("numbers", StandardScaler(), KNOWN)])
    model = make_pipeline(columns, LogisticRegression()).fit(table, wanted)

    result = MCCE(model, random_state=0).fit(table[KNOWN]).explain(table[KNOWN])

    assert len(result.frame) > 5


def test_a_predictor_without_names_gets_every_column(table, wanted):
    seen = []

    def score(frame):
        seen.append(list(frame.columns))
        return frame["salary"] / 100

    MCCE(score, (0.5, 1.0), random_state=0).fit(table)
    array = table[KNOWN].to_numpy()
    model = LogisticRegression().fit(array, wanted)

    assert seen == [table.columns.tolist()]
    assert len(MCCE(model, random_state=0).fit(array).explain(array[:9]).people) == 9


def failure(predictor, table):
    with pytest.raises(PredictorError) as error:
        MCCE(predictor, (0.5, 1.0), random_state=0).fit(table)
    return str(error.value)


def test_missing_values_are_blamed_only_if_rows_without_them_pass():
    gaps = pd.DataFrame({"age": [25.0, np.nan, 47.0, 52.0] * 5, "salary": np.arange(20.0)})
    blamed = "missing values: ['age']"
    model = LogisticRegression().fit(gaps.fillna(0), np.arange(20) % 2)

    def fails(frame):
        raise RuntimeError

    assert blamed in failure(model, gaps)
    assert blamed in failure(lambda frame: frame["age"] / 100, gaps)
    assert "missing values" not in failure(fails, gaps)
    others = failure(lambda frame: np.where(frame["salary"] < 5, np.nan, 0.7), gaps)
    assert "returned NaN" in others
    assert "missing values" not in others


def test_pandas_is_suggested_if_the_predictor_takes_it(table, wanted):
    polars = pytest.importorskip("polars")
    half = FunctionTransformer(lambda frame: frame.assign(salary=frame["salary"] / 2))
    model = make_pipeline(half, LogisticRegression()).fit(table[KNOWN], wanted)

    def fails(frame):
        raise RuntimeError

    rows = polars.from_pandas(table[KNOWN])
    assert "pass the training data with .to_pandas()" in failure(model, rows)
    assert "to_pandas" not in failure(fails, rows)


BOOSTERS = {
    "xgboost": xgboost_model,
    "xgboost_booster": lambda: xgboost_model().get_booster(),
    "lightgbm": lightgbm_model,
    "lightgbm_booster": lambda: lightgbm_model().booster_,
}


def fewer(frame):
    """People with some of the levels only, as a careless filter leaves them."""
    kept = frame[frame["job"].isin(["farmer", "judge"])]
    return kept.assign(job=kept["job"].cat.remove_unused_categories())


def other_order(frame):
    return frame.assign(job=frame["job"].cat.reorder_categories(frame["job"].cat.categories[::-1]))


def as_strings(frame):
    return frame.astype({"job": object, "sex": object})


@pytest.mark.parametrize("careless", [fewer, other_order, as_strings])
@pytest.mark.parametrize("name", BOOSTERS)
def test_levels_keep_their_meaning_whatever_the_people_s_categories_are(name, careless):
    model = BOOSTERS[name]()
    people = careless(boxed()[numbered(boxed(), "binary") == 0]).head(8)
    expected = explain(model, 1, boxed(), boxed().loc[people.index])

    result = explain(model, 1, boxed(), people)

    pd.testing.assert_frame_equal(as_strings(result.frame), as_strings(expected.frame))
    assert result.people["score"].tolist() == expected.people["score"].tolist()
    # The rows hold for the raw library too, in the categories they come back with. Strings come
    # back as strings, which it does not take.
    own = result.frame[boxed().columns]
    rows = own.astype(boxed().dtypes) if careless is as_strings else own
    assert make_decision(model, 1).score(rows).valid.all()


@pytest.mark.parametrize("careless", [fewer, other_order])
@pytest.mark.parametrize("name", BOOSTERS)
def test_training_rows_of_other_categories_than_the_predictor_s_shift_no_code(name, careless):
    decision, train = make_decision(BOOSTERS[name](), (0.5, 1)), careless(boxed())

    whole = decision.score(boxed().loc[train.index]).score

    assert decision.score(train).score.tolist() == whole.tolist()


@pytest.mark.parametrize("name", BOOSTERS)
def test_a_new_level_of_a_person_does_not_move_the_others(name):
    model = BOOSTERS[name]()
    people = boxed()[numbered(boxed(), "binary") == 0].head(6)
    odd = people.astype({"job": object})
    odd.iloc[0, odd.columns.get_loc("job")] = "astronaut"
    alone = explain(model, 1, boxed(), people.iloc[1:])

    together = explain(model, 1, boxed(), odd)

    rest = together.frame.loc[people.index[1:]].astype({"job": object})
    pd.testing.assert_frame_equal(rest, alone.frame.astype({"job": object}))


@pytest.mark.parametrize("name", BOOSTERS)
def test_strings_for_a_booster_trained_on_categories_are_an_error(name):
    with pytest.raises(PredictorError, match=r"job|categorical_feature"):
        explain(BOOSTERS[name](), 1, as_strings(boxed()), boxed().head(2))


def test_catboost_takes_strings_and_categories_for_the_same_and_refuses_gaps():
    model, frame = catboost_model(), loans(boxed=True)
    people = frame[numbered(frame, "binary") == 0].head(8)
    expected = explain(model, 1, frame, people)

    for train in (as_strings(frame), other_order(frame)):
        result = explain(model, 1, train, people)

        assert result.frame.astype(object).equals(expected.frame.astype(object))
        assert (model.predict(result.frame) == 1).all()
    with pytest.raises(PredictorError, match=r"CatBoostError.*missing values: \['job'"):
        explain(model, 1, boxed().fillna({"salary": 8.0}), frame.head(2))


def test_catboost_decides_by_a_threshold_that_was_moved():
    frame = loans(boxed=True)
    moved = catboost_model().copy()
    moved.set_probability_threshold(0.8)

    scored = make_decision(moved).score(frame)

    assert scored.valid.tolist() == (moved.predict_proba(frame)[:, 1] > 0.8).tolist()


@pytest.mark.parametrize("name", ["lightgbm", "lightgbm_booster"])
def test_lightgbm_does_not_get_columns_in_another_order(name):
    model = BOOSTERS[name]()
    # LightGBM itself takes them by position, without a word.
    turned = boxed()[["sex", "age", "job", "owns", "salary"]]
    people = turned[numbered(boxed(), "binary") == 0].head(5)

    result = explain(model, 1, boxed(), people)

    assert result.frame.columns.tolist() == turned.columns.tolist()
    assert make_decision(model, 1).score(result.frame[boxed().columns]).valid.all()
    with pytest.raises(PredictorError, match=r"by position. It was trained with \['age', 'sex'"):
        explain(model, 1, turned, turned.head(2))


@pytest.mark.parametrize("name", ["lightgbm", "lightgbm_booster"])
def test_lightgbm_does_not_receive_levels_that_it_would_read_as_something_else(name):
    model, frame = BOOSTERS[name](), boxed()
    codes = frame.assign(job=frame["job"].cat.codes.astype("category"))
    swapped = frame.assign(sex=frame["job"], job=frame["sex"])
    more = frame.assign(owns=frame["owns"].astype("category"))
    moved = more.assign(job=frame["job"].cat.codes, owns=frame["job"])
    for rows, says in [
        (codes, r"none of the \d levels of column 'job'"),
        (swapped, r"none of the \d levels of column 'sex'"),
        (moved, "trained with column 'owns' as a number"),
        (more, "trained with 2 category columns"),
    ]:
        with pytest.raises(PredictorError, match=says):
            explain(model, 1, rows, rows.head(2))


def test_lightgbm_takes_an_ordered_category_as_it_was_trained_on_one():
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    ordered = boxed().assign(job=boxed()["job"].cat.as_ordered())
    labels = numbered(boxed(), "binary")
    model = lightgbm.LGBMClassifier(n_estimators=10, min_child_samples=3, verbose=-1, n_jobs=1)
    model.fit(ordered, labels)
    people = ordered[labels == 0].head(5)

    result = explain(model.booster_, 1, ordered, people)

    assert len(result.frame) == len(people)
    assert result.frame["job"].dtype == ordered["job"].dtype
    assert (model.predict(result.frame) == 1).all()


def test_xgboost_does_not_receive_categories_it_would_read_by_position():
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    whole = loans(boxed=True)
    coded = whole.assign(job=whole["job"].cat.codes, sex=whole["sex"].cat.codes)
    types = ["int", "c", "c", "float", "i"]
    wanted = numbered(whole, "binary")
    data = xgboost.DMatrix(coded, wanted, feature_types=types, enable_categorical=True)
    booster = xgboost.train({"objective": "binary:logistic", "nthread": 1}, data, 5)

    with pytest.raises(PredictorError, match=r"\['sex', 'job'\] are categories.*by position"):
        explain(booster, 1, whole, whole.head(2))
