"""What every method that needs torch promises, whatever the data and the black box."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradients import METHODS, Logistic, credit, explain, fitted, people, quick
from loans import IMMUTABLE, JOBS, loans
from mcce import SchemaError
from mcce.baselines.deep.tools import isolated
from mcce.testing import check_explainer
from mcce.testing._cases import EDUCATION, score

torch = pytest.importorskip("torch", reason="torch is not installed")


class Halved:
    """The black box of the checks as a probability, with gradients."""

    offers_gradients = True

    def __init__(self, predictor):
        self.predictor = predictor

    def __call__(self, rows):
        return self.predictor(rows) / 2

    def encode_inputs(self, rows):
        education = rows["education"].astype(object).map(EDUCATION.index).astype(float)
        own = rows["housing"] == "own"
        numbers = rows["salary"].fillna(30), education, rows["years"], own
        return np.column_stack(numbers).astype(np.float64)

    def differentiate(self, inputs):
        slopes = torch.tensor([1 / 100, 1 / 10, 1 / 60, 1 / 5], dtype=torch.float64) / 2
        return inputs @ slopes * (self.predictor is score)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_keeps_the_promises_of_every_explainer(name):
    def make(predictor, desired, immutable):
        return quick(name, Halved(predictor), (desired[0] / 2, 1.0), immutable=immutable)

    check_explainer(make)


@pytest.mark.parametrize("name", ["CCHVAE", "REViSE", "CLUE", "CRUDS"])
def test_other_seeds_give_other_rows(name):
    other = quick(name, credit(), immutable=IMMUTABLE, random_state=1).fit(loans())

    frames = [explain(explainer, people(20)).frame for explainer in (fitted(name), other)]

    assert len(frames[0])
    assert not frames[0].equals(frames[1])


@pytest.mark.parametrize("name", ["CCHVAE", "REViSE"])
def test_more_people_than_a_block_holds_get_the_answers_they_get_alone(name):
    many = pd.concat([people(60)] * 5, ignore_index=True)
    many["age"] += np.arange(len(many)) % 7
    explainer = quick(name, credit(), immutable=["age"]).fit(loans())

    whole = explain(explainer, many)

    some = np.random.default_rng(0).permutation(len(many))[:20]
    part = explain(explainer, many.iloc[some])
    expected = whole.frame.loc[[label for label in some if label in whole.frame.index]]
    assert len(part.frame) > 5
    pd.testing.assert_frame_equal(part.frame, expected)


@pytest.mark.parametrize("name", METHODS)
def test_a_constant_black_box_ends_at_once_with_a_reason(name):
    constant = Logistic({"salary": 0.0, "owns": 0.0}, -1.0)

    result = explain(quick(name, constant).fit(loans()), people(3))

    assert (result.people["reason"] == "the predictor declines all training rows").all()
    assert result.n_evaluated == 0


@pytest.mark.parametrize("name", METHODS)
def test_people_whom_nothing_helps_get_a_reason(name):
    decided_by_age = Logistic({"age": 1.0, "salary": 0.0}, -50.0)
    explainer = quick(name, decided_by_age, immutable=["age"]).fit(loans())

    result = explain(explainer, loans().query("age < 45").head(4))

    assert (result.people["status"] == "no answer").all()
    assert result.people["reason"].str.contains("valid|decision").all()


def weights():
    number = st.floats(-2, 2).map(lambda value: round(value, 2))
    return st.fixed_dictionaries(
        {
            "age": number.map(lambda value: value / 20),
            "salary": number.map(lambda value: value / 5),
            "owns": number,
            "job": st.fixed_dictionaries(dict.fromkeys(JOBS, number)),
        }
    )


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=4)
@given(weights=weights(), immutable=st.sets(st.sampled_from(["age", "sex", "job", "salary"])))
def test_answers_are_valid_by_a_fresh_call_and_keep_immutable_cells(name, weights, immutable):
    frame = loans().head(60)
    middle = np.median(Logistic(weights, 0.0).encode_inputs(frame) @ Logistic(weights, 0).slopes)
    predictor = Logistic(weights, -float(middle))
    fast = {"n_rings": 15} if name == "CCHVAE" else {"n_steps": 15}
    explainer = quick(name, predictor, immutable=sorted(immutable), **fast).fit(frame)

    result = explain(explainer, frame.head(25))

    own = frame.head(25).iloc[result.owner].reset_index(drop=True)
    got = result.frame.reset_index(drop=True)
    assert (predictor(got) >= 0.5).all()
    pd.testing.assert_frame_equal(got[sorted(immutable)], own[sorted(immutable)])
    assert got["salary"].between(frame["salary"].min(), frame["salary"].max()).all()
    assert (got["salary"] == got["salary"].round(2)).all()  # as the column is written
    assert got["job"].isin(frame["job"]).all()


@pytest.mark.parametrize("name", METHODS)
def test_one_column_is_enough(name):
    frame, predictor = loans()[["salary"]], Logistic({"salary": 0.5}, -6.0)

    result = explain(quick(name, predictor).fit(frame), frame.head(30))

    assert (result.people["status"] != "no answer").any()
    assert (predictor(result.frame) >= 0.5).all()


@pytest.mark.parametrize("name", METHODS)
def test_no_answer_is_nearer_than_the_boundary_of_a_linear_black_box(name):
    frame = pd.DataFrame(np.random.default_rng(0).random((100, 2)).round(3), columns=["x", "y"])
    predictor, slopes = Logistic({"x": 6.0, "y": 3.0}, -5.0), np.array([6.0, 3.0])

    result = explain(quick(name, predictor).fit(frame), frame.head(40))

    own, spread = frame.to_numpy()[result.owner], np.ptp(frame.to_numpy(), axis=0)
    moved = (np.abs(result.frame.to_numpy() - own) / spread).sum(axis=1)
    # The shortest way to the boundary is along the axis with the steepest slope.
    least = (5.0 - own @ slopes) / (slopes * spread).max()
    assert len(own)
    assert (moved >= least - 1e-9).all()


@pytest.mark.parametrize("name", METHODS)
def test_a_person_without_a_number_gets_a_reason_and_changes_nobody_s_answer(name):
    some = people(6)
    without = some.index[[1, 4]]
    gaps = some.copy()
    gaps.loc[without, "salary"] = np.nan

    result, whole = explain(fitted(name), gaps), explain(fitted(name), some)

    assert result.people.loc[without, "reason"].str.startswith("a number is missing").all()
    rest = whole.frame[~whole.frame.index.isin(without, level=0)]
    pd.testing.assert_frame_equal(result.frame, rest)
    assert len(explain(fitted(name), gaps.loc[without]).frame) == 0


@pytest.mark.parametrize("name", ["CCHVAE", "Wachter"])
def test_training_rows_without_a_number_are_left_out(name):
    gaps = pd.concat([loans(), loans().head(30).assign(salary=np.nan)], ignore_index=True)
    explainer = quick(name, credit(), immutable=IMMUTABLE).fit(gaps)

    result = explain(explainer, people(6))

    pd.testing.assert_frame_equal(result.frame, explain(fitted(name), people(6)).frame)


@pytest.mark.parametrize("name", METHODS)
def test_without_a_complete_training_row_there_is_an_error(name):
    gaps = loans().astype({"age": float})
    gaps.loc[::2, "salary"], gaps.loc[1::2, "age"] = np.nan, np.nan

    with pytest.raises(SchemaError, match="every training row misses one"):
        quick(name, credit()).fit(gaps)


@pytest.mark.parametrize("name", METHODS)
def test_a_fitted_method_can_be_pickled(name):
    copy = pickle.loads(pickle.dumps(fitted(name)))

    first, second = (explain(one, people(3)).frame for one in (fitted(name), copy))

    pd.testing.assert_frame_equal(first, second)


@pytest.mark.parametrize("name", METHODS)
def test_torch_is_left_as_it_was_also_with_gradients_switched_off(name):
    expected = explain(fitted(name), people(3)).frame
    torch.manual_seed(7)
    before, n_threads = torch.get_rng_state(), torch.get_num_threads()

    with torch.no_grad():
        again = quick(name, credit(), immutable=IMMUTABLE).fit(loans())
        result = explain(again, people(3))
        assert not torch.is_grad_enabled()

    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == n_threads
    pd.testing.assert_frame_equal(result.frame, expected)


def test_threads_take_turns_with_the_random_numbers_of_torch():
    with isolated(3):
        expected = torch.rand(4)
    drawn = []

    def draw():
        with isolated(5):
            drawn.append(torch.rand(4))

    other = threading.Thread(target=draw)
    with isolated(3):
        half = torch.rand(2)
        other.start()
        other.join(timeout=0.2)
        assert not drawn
        rest = torch.rand(2)
    other.join()

    assert torch.equal(torch.cat([half, rest]), expected)
    assert len(drawn) == 1
