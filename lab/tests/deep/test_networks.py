"""MADE and GANs: what they learn, what they promise, and that torch is needed to fit alone."""

from __future__ import annotations

import itertools
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

from generated import (
    check_batches,
    check_exact_is_refused,
    check_saving,
    check_searches,
    draw,
    explainer_with,
)
from mcce import ParameterError, SavedFileError, Schema
from mcce.testing import check_generator
from mcce_lab.generators import CTGAN, MADE, ConditionalGAN

torch = pytest.importorskip("torch", reason="torch is not installed")

SMALL_GAN = {"n_hidden": 32, "n_noise": 16}
TINY = {
    "made": MADE(n_hidden=16, n_bins=16, n_epochs=4),
    "ctgan": CTGAN(**SMALL_GAN, n_epochs=2),
    "cgan": ConditionalGAN(**SMALL_GAN, n_epochs=2),
}
USUAL = {
    "made": MADE(n_hidden=32, n_bins=16, n_epochs=15),
    "ctgan": CTGAN(**SMALL_GAN, n_epochs=8),
    "cgan": ConditionalGAN(**SMALL_GAN, n_epochs=8),
}
NAMES = list(TINY)


def made(frame, immutable=(), seed=0, **parameters):
    rows = Schema.learn_rows(frame, immutable=list(immutable))
    decision = np.ones(len(frame), dtype=bool)
    return MADE(**{"n_hidden": 64, **parameters}).fit(rows, decision, seed=seed)


def gan(frame, immutable=(), seed=0, kind=CTGAN, **parameters):
    rows = Schema.learn_rows(frame, immutable=list(immutable))
    decision = np.arange(len(frame)) % 2 == 0
    return kind(**{**SMALL_GAN, **parameters}).fit(rows, decision, seed=seed)


@pytest.mark.parametrize("name", NAMES)
def test_a_network_keeps_the_promises_of_a_generator(name):
    check_generator(TINY[name])


def test_probabilities_of_all_states_sum_to_one():
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (200, 3)), columns=list("abc"))
    network = made(frame, n_epochs=5)
    states = pd.DataFrame(list(itertools.product([0, 1], repeat=3)), columns=list("abc"))

    likelihood = np.exp(network.log_likelihood(network.schema_.encode(states)))

    assert (likelihood > 0).all()
    assert likelihood.sum() == pytest.approx(1, abs=1e-9)


def test_made_learns_an_exclusive_or():
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (2000, 2)), columns=["a", "b"])
    frame["c"] = frame["a"] ^ frame["b"]
    network = made(frame, ["a"], n_epochs=10, learning_rate=4e-3)

    loss = -network.log_likelihood(network.schema_.encode(frame)).mean()

    assert loss - np.log(2) < 0.05  # b is a coin, c is known


def test_draws_of_made_follow_its_likelihood():
    chance = np.random.default_rng(0)
    a = chance.integers(0, 3, 1500)
    frame = pd.DataFrame({"a": a, "b": (a + chance.integers(0, 2, 1500)) % 3})
    network = made(frame, n_epochs=6)
    states = pd.DataFrame(list(itertools.product(range(3), repeat=2)), columns=["a", "b"])

    values = np.stack([one[0] for one in draw(network, frame.head(1), 20_000)])

    expected = np.exp(network.log_likelihood(network.schema_.encode(states)))
    found = [(state == values.T).all(axis=1).mean() for state in states.to_numpy()]
    np.testing.assert_allclose(found, expected, atol=0.015)


def test_independent_columns_have_their_margins():
    chance = np.random.default_rng(0)
    gain = np.where(chance.random(3000) < 0.8, 0.0, np.round(chance.gamma(2, 50, 3000), 1))
    frame = pd.DataFrame({"gain": gain, "job": chance.choice(["a", "b"], 3000, p=[0.9, 0.1])})

    gains, jobs = draw(made(frame, n_epochs=8), frame.head(1), 20_000)

    assert (gains == 0).mean() == pytest.approx(0.8, abs=0.02)
    assert (jobs == "b").mean() == pytest.approx(0.1, abs=0.02)
    shares = [0.1, 0.5, 0.9]
    expected = np.quantile(gain[gain > 0], shares)
    np.testing.assert_allclose(np.quantile(gains[gains > 0], shares), expected, rtol=0.1)


def test_values_between_those_of_training_are_written_like_them():
    chance = np.random.default_rng(0)
    days = pd.to_timedelta(chance.integers(0, 999, 600), "D")
    frame = pd.DataFrame(
        {
            "price": np.round(chance.gamma(2, 500, 600), 2),
            "count": chance.integers(0, 10_000, 600).astype("int32"),
            "hundreds": 100 * chance.integers(-400, 600, 600),
            "maybe": pd.Series(chance.integers(0, 500, 600)).mask(chance.random(600) < 0.2),
            "when": pd.Timestamp("2020-01-01") + days,
            "huge": 2**60 + chance.integers(0, 900, 600),
        }
    )

    found = dict(zip(frame, draw(made(frame, n_epochs=1), frame.head(1), 2000), strict=True))

    np.testing.assert_array_equal(np.round(found["price"], 2), found["price"])
    assert found["count"].dtype == np.int32
    assert not (found["hundreds"] % 100).any()
    for name in ("price", "count", "hundreds"):
        assert frame[name].min() <= found[name].min() < found[name].max() <= frame[name].max()
        assert not set(np.unique(found[name])) <= set(frame[name]), "new values"
    assert 0.05 < np.isnan(found["maybe"]).mean() < 0.4
    for name in ("when", "huge"):
        assert set(found[name].ravel()) <= set(frame[name].to_numpy()), "float64 cannot hold more"


@pytest.mark.parametrize("name", NAMES)
def test_training_is_the_same_from_run_to_run_and_leaves_torch_as_it_was(name):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["a", "b"])
    fit = made if name == "made" else partial(gan, kind=type(TINY[name]))
    torch.manual_seed(5)
    before = torch.get_rng_state()

    one, other, third = (fit(frame, ["a"], n_epochs=2, seed=seed) for seed in (0, 0, 1))

    values = [draw(network, frame.head(3), 50)[0].tolist() for network in (one, other, third)]
    assert values[0] == values[1] != values[2]
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("kind", [CTGAN, ConditionalGAN])
def test_both_modes_of_a_mixture_are_recovered_and_depend_on_the_context(kind):
    chance = np.random.default_rng(0)
    job = chance.choice(["a", "b"], 1000)
    x = np.where(job == "a", -4, 4) + chance.normal(0, 0.5, 1000)
    frame = pd.DataFrame({"x": x, "job": job})
    more = {"pack": 1, "n_epochs": 20} if kind is CTGAN else {"n_epochs": 50}
    network = gan(frame, ["job"], kind=kind, learning_rate=2e-3, **more)

    (values,) = draw(network, pd.DataFrame({"x": 0.0, "job": ["a", "b"]}), 1000)

    assert (values[0] < 0).mean() > 0.8
    assert (values[1] > 0).mean() > 0.8
    assert (np.abs(np.abs(values) - 4) < 2).mean() > 0.9


def test_arrays_that_a_network_could_not_have_learned_are_refused():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3)), columns=list("abc"))
    one, two = made(frame, ["a"], n_epochs=1, n_hidden=8), gan(frame, ["a"], n_epochs=1)

    def spoiled(network, part, change):
        arrays = network.to_arrays()
        arrays["network"] = {name: weights.copy() for name, weights in arrays["network"].items()}
        change(arrays["network"] if part == "network" else arrays[part][0])
        return type(network)(n_hidden=network.n_hidden).from_arrays(arrays, network.schema_)

    def mask(weights):
        weights["into"][-1, 0] += 1.0

    def grid(weights):
        weights["bias_0"] = weights["bias_0"] + np.pi

    def turn(cells):
        cells["starts"] = cells["starts"][::-1].copy()

    def negate(modes):
        modes["weights"] = -modes["weights"]

    for network, part, change in [
        (one, "network", mask),
        (one, "cells", turn),
        (two, "network", grid),
        (two, "modes", negate),
    ]:
        with pytest.raises(SavedFileError):
            spoiled(network, part, change)


def test_parameters_that_cannot_work_are_refused():
    frame = pd.DataFrame({"a": [1, 2]})
    wrong = [{"n_hidden": 0}, {"n_bins": 1}, {"dropout": 1.0}, {"learning_rate": 0}]
    for parameters in [*wrong, {"device": "tpu"}]:
        with pytest.raises(ParameterError, match=next(iter(parameters))):
            made(frame, **parameters)
    with pytest.raises(ParameterError, match="batch_size must be a multiple of pack=10"):
        gan(frame, batch_size=512)
    with pytest.raises(ParameterError, match="n_epochs"):
        gan(frame, n_epochs="many")


@pytest.fixture(scope="module", params=NAMES)
def explainer(request):
    return explainer_with(USUAL[request.param])


def test_every_search_that_draws_keeps_its_promises(explainer):
    check_searches(explainer)


def test_nobody_depends_on_others(explainer):
    check_batches(explainer)


def test_the_exact_search_says_which_generators_it_can_use():
    check_exact_is_refused(TINY["made"])


def test_a_saved_explainer_answers_alike_and_needs_no_torch(explainer, tmp_path):
    path = tmp_path / "explainer.mcce"
    check_saving(explainer, path)
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from generated import explain, people, score\n"
        "from mcce import load\n"
        f"result = explain(load({str(path)!r}, score), people())\n"
        "print(len(result.frame), 'torch' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    n_rows, imported = done.stdout.split()
    assert int(n_rows) > 0
    assert imported == "False"
