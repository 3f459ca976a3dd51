"""Categories and columns reach a booster as what they are, or not at all."""

from __future__ import annotations

import pandas as pd
import pytest

from loans import BOXED, catboost_model, explain, lightgbm_model, loans, numbered, xgboost_model
from mcce import PredictorError
from mcce.predictors.desired import make_decision


def boosters():
    """XGBoost and LightGBM by both their interfaces."""
    first, second = xgboost_model(), lightgbm_model()
    return first, first.get_booster(), second, second.booster_


def fewer(frame):
    """People with some of the levels only, as a careless filter leaves them."""
    kept = frame[frame["job"].isin(["farmer", "judge"])]
    return kept.assign(job=kept["job"].cat.remove_unused_categories())


def other_order(frame):
    return frame.assign(job=frame["job"].cat.reorder_categories(frame["job"].cat.categories[::-1]))


def as_strings(frame):
    return frame.astype({"job": object, "sex": object})


@pytest.mark.parametrize("careless", [fewer, other_order, as_strings])
def test_levels_keep_their_meaning_whatever_the_people_s_categories_are(careless):
    people = careless(BOXED[numbered(BOXED, "binary") == 0]).head(12)
    for model in boosters():
        expected = explain(model, 1, BOXED, BOXED.loc[people.index])

        result = explain(model, 1, BOXED, people)

        plain = result.frame.astype({"job": object, "sex": object})
        pd.testing.assert_frame_equal(plain, expected.frame.astype({"job": object, "sex": object}))
        assert result.people["score"].tolist() == expected.people["score"].tolist()
        # The rows hold for the raw library too, in the categories they come back with. Strings come
        # back as strings, which it does not take.
        own = result.frame[BOXED.columns]
        rows = own.astype(BOXED.dtypes) if careless is as_strings else own
        assert (make_decision(model, 1).score(rows).valid).all()


@pytest.mark.parametrize("careless", [fewer, other_order])
def test_an_explainer_fitted_on_other_categories_than_the_predictor_shifts_no_code(careless):
    train = careless(BOXED)
    for model in boosters():
        scores = make_decision(model, (0.5, 1)).score(train).score
        whole = make_decision(model, (0.5, 1)).score(BOXED.loc[train.index]).score

        assert scores.tolist() == whole.tolist()


def test_catboost_takes_strings_and_categories_for_the_same():
    cat_model = catboost_model()
    frame = loans(boxed=True)
    people = frame[numbered(frame, "binary") == 0].head(8)
    expected = explain(cat_model, 1, frame, people)

    for train in (as_strings(frame), other_order(frame)):
        result = explain(cat_model, 1, train, people)

        assert result.frame.astype(object).equals(expected.frame.astype(object))
        assert (cat_model.predict(result.frame) == 1).all()


def test_strings_for_a_booster_trained_on_categories_are_an_error():
    for model in boosters():
        with pytest.raises(PredictorError, match=r"job|categorical_feature"):
            explain(model, 1, as_strings(BOXED), BOXED.head(2))


def test_catboost_refuses_missing_categories_and_the_columns_are_named():
    with pytest.raises(PredictorError, match=r"CatBoostError.*missing values: \['job'"):
        explain(
            catboost_model(), 1, loans(gaps=True, boxed=True).fillna({"salary": 8.0}), BOXED.head(2)
        )


def test_catboost_decides_by_a_threshold_that_was_moved():
    cat_model = catboost_model()
    frame = loans(boxed=True)
    moved = cat_model.copy()
    moved.set_probability_threshold(0.8)

    assert make_decision(cat_model).desired != (1,)
    assert make_decision(moved).desired == (1,)
    expected = moved.predict_proba(frame)[:, 1] > 0.8
    assert make_decision(moved).score(frame).valid.tolist() == expected.tolist()


def test_lightgbm_does_not_get_columns_in_another_order():
    lgb_model = lightgbm_model()
    # LightGBM itself takes them by position, without a word.
    turned = BOXED[["sex", "age", "job", "owns", "salary"]]
    for model in (lgb_model, lgb_model.booster_):
        with pytest.raises(
            PredictorError, match=r"by position. It was trained with \['age', 'sex'"
        ):
            explain(model, 1, turned, turned.head(2))
        people = turned[numbered(BOXED, "binary") == 0].head(5)
        result = explain(model, 1, BOXED, people)
        assert result.frame.columns.tolist() == turned.columns.tolist()
        assert (lgb_model.predict(result.frame[BOXED.columns]) == 1).all()


def test_lightgbm_does_not_receive_levels_it_would_all_read_as_missing():
    lgb_model = lightgbm_model()
    codes = BOXED.assign(job=BOXED["job"].cat.codes.astype("category"))
    swapped = BOXED.assign(sex=BOXED["job"], job=BOXED["sex"])
    more = BOXED.assign(owns=BOXED["owns"].astype("category"))
    moved = more.assign(job=BOXED["job"].cat.codes)
    moved["owns"] = BOXED["job"]
    for model in (lgb_model, lgb_model.booster_):
        with pytest.raises(PredictorError, match=r"none of the \d levels of column 'job'"):
            explain(model, 1, codes, codes.head(2))
        with pytest.raises(PredictorError, match=r"none of the \d levels of column 'sex'"):
            explain(model, 1, swapped, swapped.head(2))
        with pytest.raises(PredictorError, match="trained with column 'owns' as a number"):
            explain(model, 1, moved, moved.head(2))
        with pytest.raises(PredictorError, match="trained with 2 category columns"):
            explain(model, 1, more, more.head(2))


def test_lightgbm_takes_an_ordered_category_as_it_was_trained_on_one():
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    ordered = BOXED.assign(job=BOXED["job"].cat.as_ordered())
    labels = numbered(BOXED, "binary")
    model = lightgbm.LGBMClassifier(n_estimators=10, min_child_samples=3, verbose=-1, n_jobs=1)
    model.fit(ordered, labels)
    people = ordered[labels == 0].head(5)

    for predictor in (model, model.booster_):
        result = explain(predictor, 1, ordered, people)

        assert len(result.frame) == len(people)
        assert result.frame["job"].dtype == ordered["job"].dtype
        assert (model.predict(result.frame) == 1).all()


def test_lightgbm_does_not_take_an_ordered_category_for_a_number():
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    frame = BOXED.assign(sex=BOXED["sex"].cat.codes)
    model = lightgbm.LGBMClassifier(n_estimators=10, min_child_samples=3, verbose=-1, n_jobs=1)
    model.fit(frame, numbered(BOXED, "binary"))
    moved = frame.assign(salary=frame["job"].cat.as_ordered(), job=frame["job"].cat.codes)

    with pytest.raises(PredictorError, match="trained with column 'salary' as a number"):
        explain(model, 1, moved, moved.head(2))


def test_xgboost_does_not_receive_categories_it_would_read_by_position():
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    whole = loans(boxed=True)
    coded = whole.assign(job=whole["job"].cat.codes, sex=whole["sex"].cat.codes)
    booster = xgboost.train(
        {"objective": "binary:logistic", "nthread": 1},
        xgboost.DMatrix(
            coded,
            numbered(whole, "binary"),
            feature_types=["int", "c", "c", "float", "i"],
            enable_categorical=True,
        ),
        5,
    )

    with pytest.raises(PredictorError, match=r"\['sex', 'job'\] are categories.*by position"):
        explain(booster, 1, whole, whole.head(2))
    assert make_decision(booster, 1).score(coded).valid.any()


def test_a_new_level_of_a_person_does_not_move_the_others():
    people = BOXED[numbered(BOXED, "binary") == 0].head(6)
    odd = people.astype({"job": object})
    odd.iloc[0, odd.columns.get_loc("job")] = "astronaut"
    for model in boosters():
        alone = explain(model, 1, BOXED, people.iloc[1:])

        together = explain(model, 1, BOXED, odd)

        rest = together.frame.loc[people.index[1:]].astype({"job": object})
        pd.testing.assert_frame_equal(rest, alone.frame.astype({"job": object}))
