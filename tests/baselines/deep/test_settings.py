"""Parameters that cannot work, settings of the paper, devices, black boxes without gradients."""

from __future__ import annotations

import copy
import inspect

import numpy as np
import pytest

from gradients import METHODS, NEEDS_GRADIENTS, Logistic, credit, explain, people, quick
from loans import loans
from mcce import Interval, NotFittedError, ParameterError, PredictorError, SchemaError, baselines
from mcce.predictors import Torch

torch = pytest.importorskip("torch", reason="torch is not installed")

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
    given = {"immutable": ["age"], "kinds": {"age": "numeric"}}

    explainer = kind.paper(predictor, (0.5, 1.0), **given)

    got = explainer.get_params(deep=False)
    assert {key: got[key] for key in got.keys() - SHARED} == PAPER[name]
    assert kind.PAPER.keys() == inspect.signature(kind).parameters.keys() - SHARED
    assert {key: got[key] for key in given} == given
    assert got["predictor"] is predictor


COUNT, NUMBER, POSITIVE = [0, -1, 1.5, True, "3", None], [-0.1, np.nan, np.inf, "1", None], [0, 0.0]
FLAG, WIDTHS = [None, "yes", 2], [(), 3, "16", (0,), (1.5,), None]
TRAINED = {"n_epochs": COUNT, "batch_size": [*COUNT, 1], "early_stopping": FLAG}
SEED = {"random_state": [-1, 1.5, None, 2**63, "0"]}
WRONG = {
    "Wachter": {
        "weights": [(), 0.5, "1", None, (-1,), (np.nan,), ("a",)],
        "learning_rate": [*NUMBER, *POSITIVE],
        **{"n_steps": COUNT, "patience": COUNT},
    },
    "CCHVAE": {
        **{"n_samples": COUNT, "step": [*NUMBER, *POSITIVE], "n_rings": COUNT},
        **{
            "norm": [0, 3, "1", None, True, np.ones(2)],
            "hidden": WIDTHS,
            "n_latent": COUNT,
            "kl_weight": NUMBER,
        },
        **TRAINED,
        **SEED,
    },
    "REViSE": {
        **{"weight": NUMBER, "learning_rate": [*NUMBER, *POSITIVE], "n_steps": COUNT},
        **{"patience": COUNT, "hidden": WIDTHS, "n_latent": COUNT, "kl_weight": NUMBER},
        **TRAINED,
        **SEED,
    },
    "CLUE": {
        **{"weight": NUMBER, "desired_weight": NUMBER, "learning_rate": [*NUMBER, *POSITIVE]},
        **{"n_steps": COUNT, "width": COUNT, "depth": [*COUNT, 1], "n_latent": COUNT},
        **TRAINED,
        **SEED,
    },
    "CRUDS": {
        **{"weight": NUMBER, "learning_rate": [*NUMBER, *POSITIVE], "n_steps": COUNT},
        **{"patience": COUNT, "n_starts": COUNT, "hidden": COUNT, "n_latent": COUNT},
        "n_decision": COUNT,
        **TRAINED,
        **SEED,
    },
    "CEM": {
        **{"sparsity": NUMBER, "realism": NUMBER, "margin": NUMBER},
        **{"constant": [*NUMBER, *POSITIVE], "n_rounds": COUNT, "n_steps": COUNT},
        **{
            "learning_rate": [*NUMBER, *POSITIVE],
            "sign": ["up", None, 1, np.ones(2)],
            "hidden": WIDTHS,
        },
        **TRAINED,
        **SEED,
    },
}
DEVICES = ["gpu", "CUDA", "cuda:", "cuda:-1", "mps", "", None, 0, torch.device("cpu")]


@pytest.mark.parametrize("name", METHODS)
def test_a_parameter_that_cannot_work_is_an_error_that_names_it(name):
    kind = getattr(baselines, name)
    of_all = {"predictor", "desired", "immutable", "kinds"}
    assert {*WRONG[name], "device"} == inspect.signature(kind).parameters.keys() - of_all

    for parameter, values in {**WRONG[name], "device": DEVICES}.items():
        for value in values:
            with pytest.raises(ParameterError, match=f"{parameter} must"):
                kind(credit(), (0.5, 1.0), **{parameter: value}).fit(loans())


@pytest.mark.parametrize("name", METHODS)
def test_a_device_that_is_not_there_is_an_error(name):
    absent = f"cuda:{torch.cuda.device_count()}"

    with pytest.raises(ParameterError, match=rf"device='{absent}' is not there.*device=\"cpu\""):
        quick(name, credit(), device=absent).fit(loans())


@pytest.mark.parametrize("name", METHODS)
def test_networks_and_searches_use_the_device(name):
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    explainer = quick(name, credit(), immutable=["age"], device="cuda").fit(loans())

    result = explain(explainer, people())

    where = explainer.vae_.layout.device if name == "CCHVAE" else explainer.scorer_.device
    assert where.type == "cuda"
    assert len(result.frame)
    assert (credit()(result.frame) >= 0.5).all()


@pytest.mark.parametrize("name", NEEDS_GRADIENTS)
def test_a_black_box_without_gradients_is_an_error_that_names_other_methods(name):
    black_box = credit()

    with pytest.raises(PredictorError, match=f"{name} needs gradients.*function.*or CCHVAE"):
        quick(name, lambda rows: black_box(rows)).fit(loans())


def test_cchvae_takes_any_black_box():
    black_box = credit()
    same = quick("CCHVAE", black_box).fit(loans()).explain(people(4)).frame

    result = quick("CCHVAE", lambda rows: black_box(rows)).fit(loans()).explain(people(4))

    assert result.frame.equals(same)


def test_an_encoding_that_is_not_affine_is_an_error():
    class Squared(Logistic):
        def encode_inputs(self, rows):
            return super().encode_inputs(rows) ** 2

    with pytest.raises(PredictorError, match="Squared are not an affine function of its columns"):
        quick("Wachter", Squared({"salary": 0.01}, -1.0)).fit(loans())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m: m[:-1],
        lambda m: m[:, 0],
        lambda m: m[:, :0],
        lambda m: m * np.nan,
        lambda m: [["word"] for _ in m],
        lambda m: [[1.0], [1.0, 2.0]],
    ],
)
def test_inputs_that_are_no_matrix_of_the_rows_are_an_error(wrong):
    class Wrong(Logistic):
        def __call__(self, rows):
            return credit()(rows)

        def encode_inputs(self, rows):
            return wrong(super().encode_inputs(rows))

    with pytest.raises(PredictorError, match="encode_inputs of the predictor Wrong must return"):
        quick("Wachter", Wrong({"salary": 0.3}, -4.0)).fit(loans())


@pytest.mark.parametrize("name", NEEDS_GRADIENTS)
@pytest.mark.parametrize(
    "wrong",
    [
        lambda output: output[:-1],
        lambda output: output.detach().numpy(),
        lambda output: torch.stack([1 - output, output], dim=1),
        lambda output: None,
    ],
    ids=["too few", "an array", "several columns", "nothing"],
)
def test_an_output_that_is_not_the_predictor_s_is_an_error(name, wrong):
    class Wrong(Logistic):
        def differentiate(self, inputs):
            return wrong(super().differentiate(inputs))

    method = quick(name, Wrong({"salary": 0.3}, -4.0)).fit(loans())

    with pytest.raises(PredictorError, match="differentiate of the predictor Wrong must return a"):
        method.explain(people(2))


@pytest.mark.parametrize("step", ["encode_inputs", "differentiate"])
def test_what_a_predictor_raises_is_kept_and_not_quoted(step):
    def fail(given):
        raise KeyError("a cell")

    class Broken(Logistic):
        def __call__(self, rows):
            return credit()(rows)

    setattr(Broken, step, staticmethod(fail))

    with pytest.raises(PredictorError, match=r"failed on \d+ rows with a KeyError") as raised:
        quick("Wachter", Broken({"salary": 0.3}, -4.0)).fit(loans()).explain(people(2))

    assert isinstance(raised.value.original, KeyError)
    assert "a cell" not in str(raised.value)


def test_scores_that_are_no_probabilities_are_an_error():
    class Sum(Logistic):
        def __call__(self, rows):
            return 9 * super().__call__(rows)

    with pytest.raises(ParameterError, match=r"Wachter needs probabilities, but the scores.*range"):
        quick("Wachter", Sum(credit().weights, credit().bias), (4.5, 9.0)).fit(loans())


@pytest.mark.parametrize("desired", [(0.4, 0.6), (0.0, 1.0)])
def test_probabilities_in_the_middle_cannot_be_desired(desired):
    with pytest.raises(ParameterError, match=r"REViSE needs desired probabilities that begin at 0"):
        quick("REViSE", credit(), desired).fit(loans())


@pytest.mark.parametrize("name", NEEDS_GRADIENTS)
def test_low_and_open_intervals_can_be_desired(name):
    frame = loans()
    low = Interval(0.0, 0.4, closed="left")

    result = explain(quick(name, credit(), low).fit(frame), frame[credit()(frame) > 0.4].head(20))

    assert len(result.frame)
    assert (credit()(result.frame) < 0.4).all()


def test_one_of_several_classes_can_be_desired():
    torch.manual_seed(0)
    names = ["age", "salary", "owns"]
    module = torch.nn.Linear(3, 3)
    scaled = lambda rows: np.column_stack([rows[n] for n in names]) / [60.0, 20.0, 1.0]
    predictor = Torch(module, output="logits", classes=["bad", "fair", "good"], encode=scaled)
    frame = loans()
    with torch.no_grad():
        module.bias -= module(torch.tensor(scaled(frame)).float()).mean(dim=0)

    for desired in ("good", ["fair", "bad"]):
        result = explain(quick("Wachter", predictor, desired).fit(frame), frame.head(30))

        assert len(result.frame)
        assert np.isin(predictor.predict(result.frame), desired).all()


def test_a_date_that_may_change_is_an_error():
    frame = loans().assign(since=np.datetime64("2024-01-01", "ns"))

    with pytest.raises(SchemaError, match="cannot move the date or duration 'since'"):
        quick("CCHVAE", credit()).fit(frame)


CHANGED = {
    "Wachter": {"weights": [0.2], "learning_rate": 0.1, "n_steps": 7, "patience": 3},
    "CCHVAE": {"n_samples": 11, "step": 0.3, "n_rings": 5, "norm": 2},
    "REViSE": {"weight": 0.1, "learning_rate": 0.2, "n_steps": 7, "patience": 3},
    "CLUE": {"weight": 1.0, "desired_weight": 1.0, "learning_rate": 0.2, "n_steps": 7},
    "CRUDS": {
        **{"weight": 0.1, "learning_rate": 0.2, "n_steps": 7, "patience": 3, "n_starts": 2},
    },
    "CEM": {
        **{"sparsity": 0.3, "realism": 5.0, "margin": 0.1, "constant": 2.0},
        **{"n_rounds": 2, "n_steps": 7, "learning_rate": 0.03, "sign": "positive"},
    },
}


@pytest.mark.parametrize("name", METHODS)
def test_parameters_of_the_search_may_be_changed_after_fit_and_act_as_before_it(name):
    assert set(CHANGED[name]) == getattr(baselines, name).AFTER_FIT
    fitted = quick(name, credit(), immutable=["age"]).fit(loans())

    for parameter, value in CHANGED[name].items():
        late = copy.copy(fitted).set_params(**{parameter: value})
        early = quick(name, credit(), immutable=["age"]).set_params(**{parameter: value})
        before, after = (explain(one, people()) for one in (early.fit(loans()), late))

        assert before.frame.equals(after.frame)
        assert before.people.equals(after.people)


@pytest.mark.parametrize("name", METHODS)
def test_a_parameter_that_fit_uses_may_not_be_changed_after_it(name):
    explainer = quick(name, credit(), immutable=["age"]).fit(loans())

    with pytest.raises(NotFittedError, match="immutable was changed after fit"):
        explainer.set_params(immutable=["salary"]).explain(people())
