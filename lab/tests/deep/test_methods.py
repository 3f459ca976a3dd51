"""The baselines that need torch: closed forms, promises, settings and careless use."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradients import (
    IMMUTABLE,
    JOBS,
    METHODS,
    NEEDS_GRADIENTS,
    Identity,
    Logistic,
    credit,
    explain,
    fitted,
    line,
    loans,
    people,
    quick,
    step_at,
)
from mcce import (
    Interval,
    NotFittedError,
    ParameterError,
    PredictorError,
    SchemaError,
)
from mcce.predictors import Torch
from mcce.testing import check_explainer
from mcce_lab import baselines
from mcce_lab.baselines import CEM, Wachter

torch = pytest.importorskip("torch", reason="torch is not installed")


class Halved:
    """The black box of the checks as a probability, with gradients."""

    offers_gradients = True
    slope = 0.0

    def __init__(self, predictor):
        self.predictor = predictor

    def __call__(self, rows):
        return self.predictor(rows) / 2

    def encode_inputs(self, rows):
        self.slope = float(self.predictor(rows).any())
        levels = ["school", "bachelor", "master"]
        education = rows["education"].astype(object).map(levels.index).astype(float)
        numbers = rows["salary"].fillna(30), education, rows["years"], rows["housing"] == "own"
        return np.column_stack(numbers).astype(np.float64)

    def differentiate(self, inputs):
        slopes = torch.tensor([1 / 100, 1 / 10, 1 / 60, 1 / 5], dtype=torch.float64) / 2
        return inputs @ slopes * self.slope


@pytest.mark.parametrize("name", METHODS)
def test_a_method_keeps_the_promises_of_every_explainer(name):
    def make(predictor, desired, immutable):
        return quick(name, Halved(predictor), (desired[0] / 2, 1.0), immutable=immutable)

    check_explainer(make)


NUMBERS = st.floats(-2, 2).map(lambda value: round(value, 2))
WEIGHTS = st.fixed_dictionaries(
    {
        "age": NUMBERS.map(lambda value: value / 20),
        "salary": NUMBERS.map(lambda value: value / 5),
        "owns": NUMBERS,
        "job": st.fixed_dictionaries(dict.fromkeys(JOBS, NUMBERS)),
    }
)


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=4)
@given(weights=WEIGHTS, immutable=st.sets(st.sampled_from(["age", "sex", "job", "salary"])))
def test_answers_are_valid_by_a_fresh_call_and_keep_immutable_cells(name, weights, immutable):
    frame, fixed = loans().head(60), sorted(immutable)
    middle = np.median(Logistic(weights, 0.0).encode_inputs(frame) @ Logistic(weights, 0).slopes)
    predictor = Logistic(weights, -float(middle))
    fast = {"n_rings": 15} if name == "CCHVAE" else {"n_steps": 15}
    explainer = quick(name, predictor, immutable=fixed, **fast).fit(frame)

    result = explain(explainer, frame.head(25))

    own = frame.head(25).iloc[result.owner].reset_index(drop=True)
    got = result.frame.reset_index(drop=True)
    assert (predictor(got) >= 0.5).all()
    pd.testing.assert_frame_equal(got[fixed], own[fixed], check_exact=True)
    assert got["salary"].between(frame["salary"].min(), frame["salary"].max()).all()
    assert (got["salary"] == got["salary"].round(2)).all()  # as the column is written
    assert got["job"].isin(frame["job"]).all()


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
    pd.testing.assert_frame_equal(part.frame, expected, check_exact=True)


@pytest.mark.parametrize("name", METHODS)
def test_people_whom_nothing_helps_get_a_reason(name):
    decided_by_age = Logistic({"age": 1.0, "salary": 0.0}, -50.0)
    explainer = quick(name, decided_by_age, immutable=["age"]).fit(loans())
    constant = quick(name, Logistic({"salary": 0.0, "owns": 0.0}, -1.0)).fit(loans())

    result = explain(explainer, loans().query("age < 45").head(4))
    declined = explain(constant, people(3))

    assert (result.people["status"] == "no answer").all()
    assert result.people["reason"].str.contains("valid|decision").all()
    assert (declined.people["reason"] == "the predictor declines all training rows").all()
    assert declined.n_evaluated == 0


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
    no_row = loans().astype({"age": float})
    no_row.loc[::2, "salary"], no_row.loc[1::2, "age"] = np.nan, np.nan

    result, whole = explain(fitted(name), gaps), explain(fitted(name), some)

    assert result.people.loc[without, "reason"].str.startswith("a number is missing").all()
    rest = whole.frame[~whole.frame.index.isin(without, level=0)]
    pd.testing.assert_frame_equal(result.frame, rest)
    with pytest.raises(SchemaError, match="every training row misses one"):
        quick(name, credit()).fit(no_row)


@pytest.mark.parametrize("name", METHODS)
def test_a_seed_decides_and_torch_is_left_as_it_was(name):
    expected = explain(fitted(name), people(3)).frame
    torch.manual_seed(7)
    before, n_threads = torch.get_rng_state(), torch.get_num_threads()

    with torch.no_grad():
        again = quick(name, credit(), immutable=IMMUTABLE).fit(loans())
        result = explain(again, people(3))
        assert not torch.is_grad_enabled()

    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == n_threads
    pd.testing.assert_frame_equal(result.frame, expected, check_exact=True)
    copied = explain(pickle.loads(pickle.dumps(again)), people(3)).frame
    pd.testing.assert_frame_equal(copied, expected, check_exact=True)
    if "random_state" in again.get_params():
        other = quick(name, credit(), immutable=IMMUTABLE, random_state=1).fit(loans())
        frames = [explain(one, people(20)).frame for one in (again, other)]
        assert not frames[0].equals(frames[1]) or name == "CEM"


# Warnings cannot be caught in several threads at once.
@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
def test_fits_and_searches_in_several_threads_are_those_of_one():
    together = threading.Barrier(2)

    def found(seed):
        together.wait(timeout=60)
        method = quick("REViSE", credit(), immutable=IMMUTABLE, random_state=seed, n_epochs=2)
        return method.fit(loans()).explain(people(6)).frame

    with ThreadPoolExecutor(2) as pool:
        at_once = list(pool.map(found, [0, 1]))

    together = threading.Barrier(1)
    for seed, frame in enumerate(at_once):
        pd.testing.assert_frame_equal(frame, found(seed), check_exact=True)


PERSON = pd.DataFrame({"x": [0.2]})


@pytest.mark.parametrize("rate", [0.01, 0.03])
def test_wachter_ends_within_a_step_of_the_boundary(rate):
    explainer = Wachter(step_at(0.6), (0.5, 1.0), weights=(0.1,), learning_rate=rate).fit(line())
    far = Wachter(step_at(0.6), (0.5, 1.0), weights=(1000.0,), n_steps=200).fit(line())

    (answer,) = explainer.explain(PERSON).frame["x"]

    assert 0.6 <= answer <= 0.6 + 1.5 * rate
    assert len(explain(far, PERSON).frame) == 0, "nothing but the distance counts"


def test_wachter_undoes_changes_that_it_does_not_need():
    rows = np.random.default_rng(0).random((200, 3)).round(3)
    predictor = Logistic({"x": 10.0, "y": 0.01, "z": 0.01}, -6.0)
    explainer = Wachter(predictor, (0.5, 1.0), weights=(0.01,), n_steps=100)
    explainer.fit(pd.DataFrame(rows, columns=["x", "y", "z"]))
    person = pd.DataFrame({"x": [0.3], "y": [0.5], "z": [0.5]})

    assert explainer.explain(person).changes()["feature"].tolist() == ["x"]


TINY_CEM = {"hidden": (4, 2), "n_epochs": 1}


def test_cem_ends_where_the_margin_is_reached():
    # f - (1 - f) >= m from e = b + log((1 + m) / (1 - m)) / k on.
    plain = {"realism": 0.0, "sparsity": 0.1, "n_rounds": 5, "margin": 0.2, **TINY_CEM}
    explainer = CEM(step_at(0.6), (0.5, 1.0), **plain).fit(line(101))

    (answer,) = explainer.explain(pd.DataFrame({"x": [0.3]})).frame["x"]

    least = 0.6 + np.log(1.2 / 0.8) / 10
    assert least <= answer < least + 0.02


def test_cem_moves_along_the_steepest_axis():
    frame = pd.DataFrame(np.random.default_rng(0).random((100, 2)).round(3), columns=["x", "y"])
    sparse = {"realism": 0.0, "sparsity": 2.0, "n_rounds": 4, **TINY_CEM}
    explainer = CEM(Logistic({"x": 8.0, "y": 2.0}, -6.0), (0.5, 1.0), **sparse).fit(frame)

    result = explainer.explain(pd.DataFrame({"x": [0.4], "y": [0.5]}))

    assert result.changes()["feature"].tolist() == ["x"]


def test_cem_can_be_kept_from_lowering_numbers():
    falling, person = step_at(0.4, slope=-10.0), pd.DataFrame({"x": [0.6]})
    free, positive = (
        CEM(falling, (0.5, 1.0), sign=sign, n_rounds=2, n_steps=60, **TINY_CEM).fit(line(101))
        for sign in ("free", "positive")
    )

    assert len(explain(free, person).frame) == 1
    assert len(explain(positive, person).frame) == 0


def seen_through(name, predictor, frame, **parameters):
    """A fitted method whose code is the row itself."""
    explainer = quick(name, predictor, **{"n_epochs": 1, "n_latent": 1, **parameters}).fit(frame)
    explainer.vae_ = Identity(explainer.vae_.layout)
    return explainer


def crowd(n_people):
    """Rows all along the line, and people at its left end who differ in what cannot change."""
    rows = line().assign(who=0)
    return rows, pd.DataFrame({"x": 0.0, "who": np.arange(1, n_people + 1)})


def rings(n_samples, frame):
    predictor = Logistic({"x": 10.0, "who": 0.0}, -3.5 - 1e-9)
    fixed = {"immutable": ["who"], "n_samples": n_samples, "step": 0.1}
    return seen_through("CCHVAE", predictor, frame, **fixed)


def test_the_first_ring_with_a_valid_row_ends_the_search():
    frame, some = crowd(20)

    result = rings(300, frame).explain(some)

    assert ((result.frame["x"] > 0.35) & (result.frame["x"] <= 0.4)).all()
    assert result.n_evaluated == 20 * 300 * 4


def test_more_codes_per_ring_never_lead_further_on_average():
    frame, some = crowd(200)

    means = [rings(n, frame).explain(some).frame["x"].mean() for n in (5, 20)]

    assert means[1] < means[0]


def test_nothing_valid_ends_after_the_last_ring():
    frame, some = crowd(3)
    frame.loc[0, "who"] = 9  # somebody is accepted, for what cannot change
    predictor = Logistic({"x": 0.0, "who": 1.0}, -8.0)
    fixed = {"immutable": ["who"], "n_samples": 10, "n_rings": 7}

    result = explain(seen_through("CCHVAE", predictor, frame, **fixed), some)

    assert (result.people["reason"] == "no ring around the person's code has a valid row").all()
    assert result.n_evaluated == 3 * 10 * 7


@cache
def revise(weight):
    given = {"weight": weight, "learning_rate": 0.01, "n_steps": 300}
    return seen_through("REViSE", step_at(0.6), line(), **given)


def test_revise_weighs_distance_against_the_decision():
    (far,) = revise(0.0).explain(PERSON).frame["x"]
    (near,) = revise(4.5).explain(pd.DataFrame({"x": [0.5]})).frame["x"]

    assert far > 0.9, "without a weight of distance it goes to the end"
    # 10 s(-10 (e - b)) = 4.5
    assert near == pytest.approx(0.6 + np.log(10 / 4.5 - 1) / 10, abs=0.01)
    assert len(explain(revise(1000.0), PERSON).frame) == 0


def test_clue_becomes_certain_of_no_unless_the_decision_has_a_weight():
    person = pd.DataFrame({"x": [0.45]})
    given = {"weight": 0.01, "learning_rate": 0.02}
    own, wanting = (
        seen_through("CLUE", step_at(0.5, 8.0), line(), desired_weight=weight, **given)
        for weight in (0.0, 1.0)
    )

    nothing, answer = explain(own, person), wanting.explain(person)

    assert nothing.people["reason"].tolist() == [
        "the decision never changed while the predictor became more certain"
    ]
    assert answer.frame["x"].iloc[0] >= 0.5


class Shifted(Identity):
    """Two codes: z is ignored, and the first number of w is the row."""

    def prior(self, decisions):
        zeros = torch.zeros(len(decisions), 2, dtype=torch.float64)
        return zeros + 0.2, zeros

    def decode(self, z, w, own):
        return self.layout.place(w[:, :1].clamp(0, 1), own)


def test_cruds_moves_the_code_of_the_decision_across_the_boundary():
    def found(weight):
        explainer = quick("CRUDS", step_at(0.6), weight=weight, n_steps=100).fit(line())
        explainer.vae_ = Shifted(explainer.vae_.layout)
        return explainer.explain(PERSON).frame["x"].iloc[0]

    assert 0.6 <= found(3.0) < found(0.0) <= 1.0


def test_the_adversary_of_cruds_cannot_tell_the_decision():
    frame = loans()[["salary", "owns", "job"]]
    explainer = quick("CRUDS", Logistic({"salary": 1.0}, -11.0), n_epochs=15).fit(frame)
    points = torch.tensor(explainer.scorer_.space.encode(explainer.training_.rows))

    with torch.no_grad():
        z = explainer.vae_.encode(points)[0]
        guess = explainer.vae_.guess(z, points).argmax(dim=1).numpy()

    accepted = explainer.training_.scored.valid
    assert (guess == accepted).mean() < max(accepted.mean(), 1 - accepted.mean()) + 0.15


@pytest.mark.parametrize("name", ["CCHVAE", "REViSE", "CLUE"])
def test_an_auto_encoder_knows_more_than_the_shares_of_levels(name):
    """Columns repeat each other, so that a code can know them."""
    chance = np.random.default_rng(0)
    level, number = chance.choice(["a", "b", "c"], 400), chance.random(400).round(3)
    fixed = chance.choice(["x", "y"], 400)
    frame = pd.DataFrame(
        {"age": number, "pay": number, "job": level, "work": level, "fixed": fixed}
    )
    predictor = Logistic({"age": 10.0}, -5.0)
    explainer = quick(name, predictor, immutable=["fixed"], n_epochs=15).fit(frame)
    space = explainer.space_ if name == "CCHVAE" else explainer.scorer_.space
    points = torch.tensor(space.encode(explainer.training_.rows))

    with torch.no_grad():
        decoded = explainer.vae_.decode(explainer.vae_.encode(points)[0], points).numpy()

    levels = [slice(2, 5), slice(5, 8)]
    assert (decoded[:, 8:] == points.numpy()[:, 8:]).all(), "immutable axes are the person's"
    for axes in levels:
        np.testing.assert_allclose(decoded[:, axes].sum(axis=1), 1.0)
        surprise = -(points.numpy()[:, axes] * np.log(decoded[:, axes])).sum(axis=1).mean()
        shares = points.numpy()[:, axes].mean(axis=0)
        assert surprise < -(shares * np.log(shares)).sum()


NETWORK = {"hidden": (512, 256), "n_latent": 8, "kl_weight": 0.3, "n_epochs": 5, "batch_size": 32}
# What the script of the paper's comparison used.
PAPER = {
    "Wachter": {"weights": (0.01,), "learning_rate": 0.01, "n_steps": 1000, "patience": 1000},
    "CCHVAE": {
        **{"n_samples": 100, "step": 0.1, "n_rings": 1000, "norm": 1},
        **NETWORK,
        "early_stopping": False,
    },
    "REViSE": {
        **{"weight": 0.5, "learning_rate": 0.1, "n_steps": 1500, "patience": 1500},
        **NETWORK,
        "early_stopping": False,
    },
    "CLUE": {
        **{"weight": 4.0, "desired_weight": 0.0, "learning_rate": 0.5, "n_steps": 400},
        **{"width": 10, "depth": 3, "n_latent": 12},
        **{"n_epochs": 1, "batch_size": 64, "early_stopping": True},
    },
    "CRUDS": {
        **{"weight": 0.001, "learning_rate": 0.008, "n_steps": 2000, "patience": 2000},
        **{"n_starts": 1, "hidden": 16, "n_latent": 8, "n_decision": 2},
        **{"n_epochs": 5, "batch_size": 32, "early_stopping": False},
    },
    "CEM": {
        **{"sparsity": 0.9, "realism": 1.0, "margin": 0.1, "constant": 10.0},
        **{"n_rounds": 9, "n_steps": 100, "learning_rate": 0.01, "sign": "positive"},
        **{"hidden": (20, 10, 7), "n_epochs": 5, "batch_size": 64, "early_stopping": False},
    },
}
SHARED = {"predictor", "desired", "immutable", "kinds", "random_state", "device"}


@pytest.mark.parametrize("name", METHODS)
def test_the_settings_of_the_paper_name_every_parameter_and_follow_no_default(name):
    kind, predictor = getattr(baselines, name), credit()

    got = kind.paper(predictor, (0.5, 1.0), immutable=["age"]).get_params(deep=False)

    assert {key: got[key] for key in got.keys() - SHARED} == PAPER[name]
    assert PAPER[name].keys() == inspect.signature(kind).parameters.keys() - SHARED
    assert got["immutable"] == ["age"]
    assert got["predictor"] is predictor


WRONG = {
    "Wachter": {"weights": (), "learning_rate": 0.0, "n_steps": 0, "patience": "3"},
    "CCHVAE": {"n_samples": 1.5, "step": 0.0, "norm": 3, "hidden": (0,), "kl_weight": -0.1},
    "REViSE": {"weight": np.nan, "n_latent": 0, "n_epochs": 0, "batch_size": 1},
    "CLUE": {"desired_weight": -1.0, "width": 0, "depth": 1, "early_stopping": "yes"},
    "CRUDS": {"n_starts": 0, "n_decision": 0, "random_state": -1},
    "CEM": {"sparsity": "1", "constant": 0.0, "n_rounds": True, "sign": "up"},
}


@pytest.mark.parametrize("name", METHODS)
def test_a_parameter_that_cannot_work_is_an_error_that_names_it(name):
    for parameter, value in {**WRONG[name], "device": "gpu"}.items():
        with pytest.raises(ParameterError, match=f"{parameter} must"):
            getattr(baselines, name)(credit(), (0.5, 1.0), **{parameter: value}).fit(loans())
    absent = f"cuda:{torch.cuda.device_count()}"
    with pytest.raises(ParameterError, match=rf"device='{absent}' is not there"):
        quick(name, credit(), device=absent).fit(loans())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
@pytest.mark.parametrize("name", METHODS)
def test_networks_and_searches_use_the_device(name):
    explainer = quick(name, credit(), immutable=["age"], device="cuda").fit(loans())

    result = explain(explainer, people())

    where = explainer.vae_.layout.device if name == "CCHVAE" else explainer.scorer_.device
    assert where.type == "cuda"
    assert len(result.frame)


CHANGED = {
    "Wachter": {"weights": [0.2], "n_steps": 7},
    "CCHVAE": {"n_samples": 11, "norm": 2},
    "REViSE": {"weight": 0.1, "n_steps": 7},
    "CLUE": {"weight": 1.0, "n_steps": 7},
    "CRUDS": {"weight": 0.1, "n_starts": 1},
    "CEM": {"sparsity": 0.3, "n_steps": 7},
}


@pytest.mark.parametrize("name", METHODS)
def test_parameters_of_the_search_may_be_changed_after_fit_and_act_as_before_it(name):
    late = copy.copy(fitted(name)).set_params(**CHANGED[name])
    early = quick(name, credit(), immutable=IMMUTABLE).set_params(**CHANGED[name]).fit(loans())

    before, after = (explain(one, people()) for one in (early, late))

    pd.testing.assert_frame_equal(before.frame, after.frame, check_exact=True)
    with pytest.raises(NotFittedError, match="immutable was changed after fit"):
        late.set_params(immutable=["salary"]).explain(people())


def test_a_black_box_must_have_gradients_and_be_affine_in_its_columns():
    class Squared(Logistic):
        def encode_inputs(self, rows):
            return super().encode_inputs(rows) ** 2

    class Sum(Logistic):
        def __call__(self, rows):
            return 9 * super().__call__(rows)

    for name in NEEDS_GRADIENTS:
        with pytest.raises((ParameterError, PredictorError), match="gradients"):
            quick(name, lambda rows: credit()(rows)).fit(loans())
    with pytest.raises(PredictorError, match="Squared are not an affine function of its columns"):
        quick("Wachter", Squared({"salary": 0.01}, -1.0)).fit(loans())
    with pytest.raises(ParameterError, match="Wachter needs probabilities, but the scores"):
        quick("Wachter", Sum(credit().weights, credit().bias), (4.5, 9.0)).fit(loans())
    with pytest.raises(ParameterError, match="needs desired probabilities that begin at 0"):
        quick("REViSE", credit(), (0.4, 0.6)).fit(loans())
    dated = loans().assign(since=np.datetime64("2024-01-01", "ns"))
    with pytest.raises(SchemaError, match="cannot move the date or duration 'since'"):
        quick("CCHVAE", credit()).fit(dated)


def test_inputs_or_outputs_that_are_not_the_predictor_s_are_an_error():
    def wrong(step, change):
        class Wrong(Logistic):
            def __call__(self, rows):
                return credit()(rows)

        right = getattr(Logistic, step)
        setattr(Wrong, step, lambda self, given: change(right(self, given)))
        return quick("Wachter", Wrong({"salary": 0.3}, -4.0))

    for change in (lambda m: m[:-1], lambda m: m[:, 0], lambda m: m * np.nan):
        with pytest.raises(PredictorError, match="encode_inputs of the predictor Wrong must"):
            wrong("encode_inputs", change).fit(loans())
    for change in (lambda o: o[:-1], lambda o: o.detach().numpy(), lambda o: None):
        with pytest.raises(PredictorError, match="differentiate of the predictor Wrong must"):
            wrong("differentiate", change).fit(loans()).explain(people(2))

    def fail(given):
        raise KeyError("a cell")

    with pytest.raises(PredictorError, match="with a KeyError") as raised:
        wrong("differentiate", fail).fit(loans()).explain(people(2))
    assert isinstance(raised.value.original, KeyError)
    assert "a cell" not in str(raised.value), "cells of people are not quoted"


@pytest.mark.parametrize("name", NEEDS_GRADIENTS)
def test_low_and_open_intervals_can_be_desired(name):
    frame, low = loans(), Interval(0.0, 0.4, closed="left")

    result = explain(quick(name, credit(), low).fit(frame), frame[credit()(frame) > 0.4].head(20))

    assert len(result.frame)
    assert (credit()(result.frame) < 0.4).all()


def test_one_of_several_classes_can_be_desired():
    torch.manual_seed(0)
    module = torch.nn.Linear(3, 3)
    scaled = lambda rows: (
        np.column_stack([rows[n] for n in ("age", "salary", "owns")]) / [60, 20, 1]
    )
    predictor = Torch(module, output="logits", classes=["bad", "fair", "good"], encode=scaled)
    frame = loans()
    with torch.no_grad():
        module.bias -= module(torch.tensor(scaled(frame)).float()).mean(dim=0)

    for desired in ("good", ["fair", "bad"]):
        result = explain(quick("Wachter", predictor, desired).fit(frame), frame.head(30))

        assert len(result.frame)
        assert np.isin(predictor.predict(result.frame), desired).all()
