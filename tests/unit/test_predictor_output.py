"""Predictors that return, write or do what they should not: an answer or a clear error."""

from __future__ import annotations

import pickle
import traceback
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from loans import loans, merit
from mcce import MCCE, PredictorError
from mcce.predictors import make_decision

X = pd.DataFrame({"x": [0.25, 0.5, 0.75]})
NUMBERS = [0.25, 0.5, 0.75]
MASK = [False, True, False]


def score(output, desired=(0.5, 1.0)):
    return make_decision(lambda frame: output, desired).score(X)


def test_a_missing_score_is_an_error_that_counts_rows():
    arrow = pytest.importorskip("pyarrow")
    for output in (
        np.ma.array(NUMBERS, mask=MASK),
        np.ma.array([1, 2, 3], mask=MASK),
        np.ma.array([[0.25], [0.5], [0.75]], mask=[[False], [True], [False]]),
        pd.array([0.25, None, 0.75], dtype="Float64"),
        pd.Series([0.25, None, 0.75], dtype="double[pyarrow]"),
        [0.25, None, 0.75],
        [0.25, pd.NaT, 0.75],
        np.array([0.25, np.nan, 0.75], dtype=np.float16),
        arrow.chunked_array([[0.25], [None, 0.75]]),
    ):
        with pytest.raises(PredictorError, match="masked for 1 of 3 rows, first at position 1 of"):
            score(output)


def test_a_missing_label_is_an_error_that_counts_rows():
    for output in (
        np.ma.array(["no", "yes", "no"], mask=MASK),
        pd.array(["no", None, "yes"], dtype="string"),
        pd.Categorical(["no", None, "yes"]),
        np.array(["no", None, "yes"], dtype=object),
        np.array([0, np.nan, 1]),
    ):
        with pytest.raises(PredictorError, match=r"1 of 3 rows, .*It must return a label"):
            score(output, ["yes", 1])


def test_numbers_in_any_container_are_scores():
    for output in (
        np.ma.array(NUMBERS, mask=False),
        np.array(NUMBERS, dtype=np.float32),
        np.array(NUMBERS, dtype=np.longdouble),
        np.array(NUMBERS, dtype=">f8"),
        np.array([Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]),
        np.array(NUMBERS, dtype=object),
        NUMBERS,
        tuple(NUMBERS),
        pd.Series(NUMBERS, index=[7, 7, 7]),
        pd.Series(NUMBERS, dtype="Float64"),
        pd.DataFrame({"score": NUMBERS}),
        memoryview(np.array(NUMBERS)),
    ):
        scored = score(output)

        assert type(scored.score) is np.ndarray
        assert scored.score.dtype == np.float64
        assert scored.score.tolist() == NUMBERS
        assert scored.valid.tolist() == [False, True, True]


class Tensor:
    """Looks like a tensor that is still attached to its graph."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


def test_output_that_is_no_score_is_an_error_that_quotes_nothing():
    for output, says in [
        ([Decimal("0.5")] * 3, "objects of type Decimal"),
        (np.array(NUMBERS) * 1j, "dtype complex128"),
        (["Kowalski"] * 3, "dtype <U8.*labels as desired"),
        (["0.5"] * 3, "must return numbers"),
        ([b"Kowalski"] * 3, r"dtype \|S8"),
        (np.array([1, 2, 10**400], dtype=object), "numbers that float64 can hold"),
        (np.array([1, 2, 3], dtype="M8[D]"), "dtype datetime64"),
        (0.5, r"got shape \(\)"),
        (None, r"got shape \(\)"),
        (np.ma.masked, r"got shape \(\)"),
        ({"Kowalski": 1}, r"got shape \(\)"),
        (np.zeros((3, 2)), r"got shape \(3, 2\). Select one column.*\[:, 1\]"),
        (np.zeros((1, 3)), r"got shape \(1, 3\)"),
        (np.zeros(2), r"shape \(3,\) for 3 rows, got shape \(2,\)"),
        ([[1], [1, 2], [3]], r"NumPy cannot read \(ValueError\)"),
        (Tensor(), r"Tensor that NumPy cannot read \(RuntimeError\).*\.detach"),
        (np.zeros(3, dtype=[("a", float)]), "must return numbers"),
    ]:
        with pytest.raises(PredictorError, match=says) as caught:
            score(output)
        assert "Kowalski" not in str(caught.value)


def test_output_that_is_no_label_is_an_error_that_quotes_nothing():
    for output, says in [
        (np.array([0.25, 1, 0]), "fractions for 1 of 3 rows, first at position 0"),
        (np.array([{"Kowalski": 1}, {}, {}], dtype=object), "objects of another type"),
        (np.ones(3) * 1j, "got dtype complex128"),
        (["yes"], r"got shape \(1,\)"),
    ]:
        with pytest.raises(PredictorError, match=says) as caught:
            score(output, ["yes"])
        assert "Kowalski" not in str(caught.value)


class Probabilities:
    """A classifier of three classes with whatever probabilities."""

    classes_ = np.array(["a", "b", "c"])
    _estimator_type = "classifier"

    def __init__(self, output):
        self.output = output

    def predict_proba(self, frame):
        return self.output

    def predict(self, frame):
        return ["a", "b", "c"]


def test_probabilities_of_desired_classes_may_not_be_missing():
    masked = np.ma.array([[0.2, 0.3, 0.5]] * 3, mask=[[0, 0, 1], [0, 0, 0], [0, 0, 0]])
    decision = make_decision(Probabilities(masked), ["c"])

    with pytest.raises(PredictorError, match="1 of 3 rows, first at position 0"):
        decision.score(X)
    assert make_decision(Probabilities(masked), ["a"]).score(X).score.tolist() == [0.2] * 3


@pytest.mark.parametrize("output", [np.ones((3, 1)), np.ones(3), [["x"] * 3] * 3, np.ones((2, 3))])
def test_probabilities_of_another_shape_are_an_error_for_margins_too(output):
    decision = make_decision(Probabilities(output), ["b"])

    with pytest.raises(PredictorError, match="must return"):
        decision.score_margins(X)


def test_sums_of_single_precision_keep_their_bits():
    output = np.array([[0.1, 0.2, 0.7]] * 3, dtype=np.float32)

    scores = make_decision(Probabilities(output), ["a", "b"]).score(X).score

    assert scores[0] == float(np.float32(0.1) + np.float32(0.2))


def test_what_a_predictor_raises_is_kept_for_debugging_and_never_quoted():
    def broken(frame):
        raise KeyError("Kowalski")

    with pytest.raises(PredictorError, match="failed on 3 rows with a KeyError") as caught:
        make_decision(broken, (0, 1)).score(X)

    error = caught.value
    assert "Kowalski" not in "".join(traceback.format_exception(error))
    assert error.__cause__ is error.__context__ is None
    assert repr(error.original) == "KeyError('Kowalski')"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.original) == (str(error), None)


def test_no_rows_are_scored_without_calling_the_predictor():
    def untouchable(frame):
        raise AssertionError("called with no rows")

    scored = make_decision(untouchable, (0, 1)).score(X.head(0))

    assert scored.score.shape == scored.valid.shape == (0,)


@pytest.mark.parametrize("kind", ["frame", "array"])
def test_a_predictor_that_writes_into_its_rows_changes_nothing(kind):
    frame = loans()[["age", "salary"]].astype(float)
    frame = frame.sort_values("salary")
    top = frame["salary"].max()
    given = frame if kind == "frame" else frame.to_numpy()
    before = given.copy()

    def scores(rows):
        return np.asarray(rows)[:, 1] / top

    def scribbler(rows):
        result = scores(rows).copy()
        if kind == "frame":
            rows.loc[:, "salary"] = -1.0
            rows["more"] = 1
        else:
            rows[:] = -1.0
        return result

    first, second = (
        MCCE(predictor, (0.5, 9.0), random_state=0, n_samples=100).fit(given).explain(given[:5])
        for predictor in (scores, scribbler)
    )

    pd.testing.assert_frame_equal(first.frame, second.frame)
    np.testing.assert_array_equal(np.asarray(given), np.asarray(before))


def test_a_predictor_that_changes_its_mind_never_confirms_an_answer():
    frame = loans()
    people = frame[merit(frame) < 0.5].head(5)
    seen = set()

    def fickle(rows):
        keys = [tuple(row) for row in rows.astype(str).to_numpy().tolist()]
        again = np.array([key in seen for key in keys])
        seen.update(keys)
        return np.where(again, 0.0, merit(rows))

    explainer = MCCE(fickle, (0.5, 9.0), immutable=["sex", "age"], random_state=0, n_samples=50)
    explainer.fit(frame)
    with pytest.warns(UserWarning, match="no counterfactual"):
        result = explainer.explain(people)

    assert result.frame.empty
    assert len(result.missing) == 5


def test_a_predictor_that_explains_for_ever_is_an_error():
    frame = loans()

    def endless(rows):
        return explainers[0].explain(frame.head(1)) if explainers else merit(rows)

    explainers = []
    explainer = MCCE(endless, (0.5, 9.0), n_samples=10, random_state=0).fit(frame)
    explainers.append(explainer)

    with pytest.raises(PredictorError, match="RecursionError"):
        explainer.explain(frame.head(1))
