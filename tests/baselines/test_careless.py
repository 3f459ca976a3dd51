"""What a hurried user does with a baseline: it works, or a clear error says why not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import McceWarning, NotFittedError, ParameterError, PredictorError, SchemaError
from mcce.baselines import FACE, NICE, GrowingSpheres, NearestUnlike
from row_methods import FORMS, explain

TRAIN = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "k": list("aabb"), "n": [1, 2, 3, 4]})
KINDS = [NearestUnlike, NICE, GrowingSpheres, FACE]


def score(rows):
    return np.asarray(rows["x"])


def method(kind, **settings):
    return kind(score, (2.0, 9.0), **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_explaining_before_fitting_says_what_to_call(kind):
    with pytest.raises(NotFittedError, match=f"This {kind.__name__} is not fitted. Call fit first"):
        method(kind).explain(TRAIN)


def test_paths_before_fitting_says_what_to_call():
    with pytest.raises(NotFittedError, match=r"Call fit first\."):
        method(FACE).paths(TRAIN)


@pytest.mark.parametrize("kind", KINDS)
def test_a_parameter_that_changes_after_fit_is_refused(kind):
    fitted = method(kind).fit(TRAIN)

    with pytest.raises(NotFittedError, match=r"immutable was changed after fit.*Fit again\."):
        fitted.set_params(immutable=["k"]).explain(TRAIN)
    assert len(explain(fitted.fit(TRAIN), TRAIN.head(1)).people) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("people", "says"),
    [
        (TRAIN.drop(columns="k"), "'k'"),
        (TRAIN.assign(more=1), "'more'"),
        (TRAIN.iloc[0], "got a Series"),
        (TRAIN.assign(x="word"), "'x'"),
    ],
    ids=["missing", "unknown", "a row", "of another kind"],
)
def test_people_with_other_columns_are_refused_by_name(kind, people, says):
    with pytest.raises(SchemaError, match=says):
        method(kind).fit(TRAIN).explain(people)


@pytest.mark.parametrize(
    ("kind", "settings", "says"),
    [
        (NearestUnlike, {"rows": "all"}, 'rows must be one of "same", "any", got \'all\''),
        (NearestUnlike, {"justified": "yes"}, "justified must be True or False, got 'yes'"),
        (NICE, {"reward": "sparse"}, 'reward must be one of "sparsity", "proximity"'),
        (NICE, {"starts": None}, 'starts must be one of "same", "any", got None'),
        (NICE, {"n_starts": 0}, "n_starts must be a whole number from 1 to .*, got 0"),
        (NICE, {"justified": 1}, "justified must be True or False, got 1"),
        (NICE, {"random_state": None}, "random_state must be a whole number from 0"),
        (GrowingSpheres, {"n_samples": 2.5}, "n_samples must be a whole number from 1"),
        (GrowingSpheres, {"radius": 0.0}, r"radius must be a finite number > 0, got 0\.0"),
        (GrowingSpheres, {"radius": float("inf")}, "radius must be a finite number > 0, got inf"),
        (GrowingSpheres, {"max_shells": -1}, "max_shells must be a whole number from 1"),
        (GrowingSpheres, {"random_state": -1}, "random_state must be a whole number from 0"),
        (FACE, {"n_neighbors": 0}, "n_neighbors must be a whole number from 1 to .*, got 0"),
        (FACE, {"radius": -1.0}, r"radius must be None or a number > 0, got -1\.0"),
        (FACE, {"cost": "cheap"}, 'cost must be one of "unit", "distance", "density", got'),
        (FACE, {"min_score": "high"}, "min_score must be None or a number, got 'high'"),
        (FACE, {"min_score": float("nan")}, "min_score must be None or a number, got nan"),
        (FACE, {"min_density": 1.5}, r"min_density must be a number from 0 to 1, got 1\.5"),
        (FACE, {"immutable": ["sex"]}, "'sex'"),
        (FACE, {"immutable": ["x", "k", "n"]}, "All 3 columns are immutable"),
    ],
)
def test_a_parameter_that_cannot_work_is_named_with_what_was_expected(kind, settings, says):
    with pytest.raises(ValueError, match=says):
        method(kind, **settings).fit(TRAIN)


@pytest.mark.parametrize("kind", [NearestUnlike, NICE])
def test_justified_rows_need_outcomes(kind):
    justified = method(kind, justified=True)

    with pytest.raises(ParameterError, match=r"each of the 4 training rows, got None.*fit\(X, y\)"):
        justified.fit(TRAIN)
    with pytest.raises(ParameterError, match="got 3 values"):
        justified.fit(TRAIN, [True, True, False])
    with pytest.raises(ParameterError, match="y must hold booleans or numbers"):
        justified.fit(TRAIN, list("abcd"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_predictor_that_fails_is_named(kind):
    def broken(rows):
        raise KeyError("no such column")

    with pytest.raises(PredictorError, match="predictor"):
        kind(broken, (2.0, 9.0)).fit(TRAIN)


@pytest.mark.parametrize("name", FORMS)
def test_an_empty_frame_gets_an_empty_result(name):
    result = FORMS[name](score, (2.0, 9.0)).fit(TRAIN).explain(TRAIN.head(0))

    assert result.frame.empty
    pd.testing.assert_series_equal(result.frame.dtypes, TRAIN.dtypes)


@pytest.mark.parametrize("kind", KINDS)
def test_people_who_are_accepted_need_no_answer(kind):
    result = method(kind).fit(TRAIN).explain(TRAIN.tail(2))

    assert result.people["status"].tolist() == ["already desired"] * 2
    assert result.n_evaluated == 0


@pytest.mark.parametrize("name", FORMS)
def test_unseen_levels_and_missing_cells_of_people_are_no_error(name):
    people = pd.DataFrame({"x": [0.0, 0.5], "k": ["z", None], "n": [1, 9]})

    result = explain(FORMS[name](score, (2.0, 9.0)).fit(TRAIN), people)

    assert (score(result.frame) >= 2.0).all()
    assert len(result.frame) + len(result.missing) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_other_kinds_of_frames_come_back_as_they_are(kind):
    polars = pytest.importorskip("polars")
    expected = method(kind).fit(TRAIN).explain(TRAIN.head(2))

    people = polars.from_pandas(TRAIN.head(2))
    result = method(kind).fit(polars.from_pandas(TRAIN)).explain(people)

    assert isinstance(result.frame, polars.DataFrame)
    assert result.frame.to_dicts() == expected.frame.to_dict("records")


def test_paths_of_another_kind_of_frame_are_pandas():
    polars = pytest.importorskip("polars")
    fitted = method(FACE).fit(polars.from_pandas(TRAIN))

    paths = fitted.paths(polars.from_pandas(TRAIN.head(2)))

    expected = method(FACE).fit(TRAIN).paths(TRAIN.head(2))
    assert paths.index.equals(expected.index)
    assert paths.to_dict("list") == expected.to_dict("list")


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_are_frames_with_numbers_as_names(kind):
    array = TRAIN[["x", "n"]].to_numpy()

    result = kind(lambda rows: rows[:, 0], (2.0, 9.0)).fit(array).explain(array[:2])

    assert len(result.frame) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_columns_is_that_of_the_people(kind):
    people = TRAIN.head(2)[["n", "x", "k"]]

    result = method(kind).fit(TRAIN).explain(people)

    assert list(result.frame.columns) == ["n", "x", "k"]
    assert (score(result.frame) >= 2.0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_a_column_can_be_declared(kind):
    fitted = method(kind, kinds={"n": "categorical"}).fit(TRAIN)

    assert fitted.training_.rows.schema.features[2].kind == "categorical"
    assert set(fitted.explain(TRAIN.head(2)).frame["n"]) <= {1, 2, 3, 4}


@pytest.mark.parametrize("name", FORMS)
def test_people_without_an_answer_are_one_warning_at_the_line_of_the_call(name):
    fitted = FORMS[name](lambda rows: np.zeros(len(rows)), (2.0, 9.0)).fit(TRAIN)

    with pytest.warns(McceWarning) as warned:
        fitted.explain(TRAIN.head(3))

    (only,) = warned
    assert str(only.message) == "3 of 3 people have no counterfactual; result.missing says why."
    assert only.filename == __file__


def test_paths_leave_people_out_without_a_warning():
    fitted = FACE(lambda rows: np.zeros(len(rows)), (2.0, 9.0)).fit(TRAIN)

    assert fitted.paths(TRAIN).empty


def test_a_predictor_that_changes_its_mind_about_people_and_answers_is_no_error():
    n_calls = []

    def fickle(rows):
        n_calls.append(len(rows))
        # Training, the people; then people and the answers that are left, in turn.
        scores = [score(rows), [0, 0], [9, 0], [0, 0], [0, 0], [0], [0, 0]]
        return np.array(scores[len(n_calls) - 1], dtype=float)

    fitted = NearestUnlike(fickle, (2.0, 9.0)).fit(TRAIN)

    result = explain(fitted, TRAIN.head(2))

    assert len(result.frame) == 0
    assert result.people["status"].tolist() == ["no answer", "no answer"]
    assert result.missing["reason"].str.len().gt(0).all()


@pytest.mark.parametrize("name", FORMS)
def test_people_very_far_from_the_training_rows_are_no_error(name):
    people = pd.DataFrame({"x": [0.0, 0.0], "k": ["a", "b"], "n": [1.0, 1e200]})

    result = explain(FORMS[name](score, (2.0, 9.0)).fit(TRAIN), people)

    assert (score(result.frame) >= 2.0).all()
    assert len(result.frame) + len(result.missing) == 2
