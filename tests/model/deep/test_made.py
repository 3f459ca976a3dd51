"""The masked autoregressive network: its masks, what it learns, and what it is used without."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from mcce import MADE, MissingExtraError, ParameterError, SavedFileError, Schema, TreeChain
from mcce.kernels import person_keys
from mcce.model.networks.autoregression import Autoregression, Layout, Network
from mcce.model.networks.made_training import MaskedNetwork
from mcce.testing import check_generator

torch = pytest.importorskip("torch", reason="torch is not installed")

LAYOUT = Layout(context=(3, 2), drawn=(2, 4, 3), n_hidden=20)


def fitted(frame, immutable=(), decision=None, seed=0, **parameters):
    rows = Schema.learn_rows(frame, immutable=list(immutable))
    decision = np.ones(len(frame), dtype=bool) if decision is None else decision
    return MADE(**{"n_hidden": 64, **parameters}).fit(rows, decision, seed=seed)


def drawn(made, frame, n_draws):
    """Values drawn for people, one array (n_people, n_draws) per mutable feature."""
    schema = made.schema_
    given = schema.encode(frame).descent
    sample = made.sample(given, person_keys(3, given[schema.immutable].T), np.arange(n_draws))
    return [t.to_numpy()[codes] for t, codes in zip(sample.tables, sample.codes, strict=True)]


def blocks(slopes, layout):
    """Whether the output of each feature depends on each column, (n_drawn, n_columns)."""
    by_output = np.add.reduceat(np.abs(slopes), layout.outputs[:-1], axis=0)
    return np.add.reduceat(by_output, layout.offsets[:-1], axis=1) > 0


def test_an_output_depends_on_the_context_and_earlier_features_alone():
    network = MaskedNetwork(torch, LAYOUT, torch.Generator().manual_seed(0))
    inputs = torch.rand(int(LAYOUT.offsets[-1]), generator=torch.Generator().manual_seed(1))

    slopes = torch.autograd.functional.jacobian(lambda x: network.logits(x[None])[0], inputs)

    expected = [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]
    np.testing.assert_array_equal(blocks(slopes.numpy(), LAYOUT), np.array(expected, dtype=bool))


def test_one_feature_after_another_gives_what_the_whole_network_gives():
    network = MaskedNetwork(torch, LAYOUT, torch.Generator().manual_seed(0))
    fixed = Network.fix(LAYOUT, {n: w.detach().numpy() for n, w in network.weights.items()})
    chance = np.random.default_rng(0)
    cells = np.array([chance.integers(0, n, 50) for n in (*LAYOUT.context, *LAYOUT.drawn)])
    inputs = torch.zeros(50, int(LAYOUT.offsets[-1]))
    inputs.scatter_(1, torch.tensor(cells.T + LAYOUT.offsets[:-1]), 1.0)

    steps = Autoregression(fixed, cells[:2])
    found = []
    for feature in range(3):
        found.append(steps.logits(feature))
        steps.put(feature, cells[2 + feature])

    whole = network.logits(inputs).detach().numpy()
    np.testing.assert_allclose(np.hstack(found), whole, atol=2e-3)


def test_probabilities_of_all_states_sum_to_one():
    chance = np.random.default_rng(0)
    frame = pd.DataFrame(chance.integers(0, 2, (200, 3)), columns=list("abc"))
    made = fitted(frame, n_epochs=5)
    states = pd.DataFrame(list(itertools.product([0, 1], repeat=3)), columns=list("abc"))

    likelihood = np.exp(made.log_likelihood(made.schema_.encode(states)))

    assert (likelihood > 0).all()
    assert likelihood.sum() == pytest.approx(1, abs=1e-9)


def test_it_learns_an_exclusive_or():
    chance = np.random.default_rng(0)
    frame = pd.DataFrame(chance.integers(0, 2, (2000, 2)), columns=["a", "b"])
    frame["c"] = frame["a"] ^ frame["b"]
    made = fitted(frame, ["a"], n_epochs=10, learning_rate=4e-3)

    loss = -made.log_likelihood(made.schema_.encode(frame)).mean()

    assert loss - np.log(2) < 0.05  # b is a coin, c is known


def test_independent_columns_have_their_margins():
    chance = np.random.default_rng(0)
    gain = np.where(chance.random(3000) < 0.8, 0.0, np.round(chance.gamma(2, 50, 3000), 1))
    frame = pd.DataFrame({"gain": gain, "job": chance.choice(["a", "b"], 3000, p=[0.9, 0.1])})
    made = fitted(frame, n_epochs=8)

    gains, jobs = drawn(made, frame.head(1), 20_000)

    assert (gains == 0).mean() == pytest.approx(0.8, abs=0.02)
    assert (jobs == "b").mean() == pytest.approx(0.1, abs=0.02)
    np.testing.assert_allclose(
        np.quantile(gains[gains > 0], [0.1, 0.5, 0.9]),
        np.quantile(gain[gain > 0], [0.1, 0.5, 0.9]),
        rtol=0.1,
    )


def test_values_between_those_of_training_are_written_like_them():
    chance = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "price": np.round(chance.gamma(2, 500, 600), 2),
            "count": chance.integers(0, 10_000, 600).astype("int32"),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(chance.integers(0, 999, 600), "D"),
        }
    )
    made = fitted(frame, n_epochs=1)

    price, count, when = drawn(made, frame.head(1), 2000)

    np.testing.assert_array_equal(np.round(price, 2), price)
    assert count.dtype == np.int32
    assert frame["price"].min() <= price.min() < price.max() <= frame["price"].max()
    assert not set(np.unique(price)) <= set(frame["price"])
    assert not set(np.unique(count)) <= set(frame["count"])
    assert set(when.ravel()) <= set(frame["when"].to_numpy())


def test_its_likelihood_of_new_rows_is_about_that_of_the_trees_or_higher():
    def sample(n_rows, seed):
        chance = np.random.default_rng(seed)
        a = chance.integers(0, 5, n_rows)
        b = (a + chance.integers(0, 3, n_rows)) % 5
        return pd.DataFrame({"a": a, "b": b, "c": (a * b + chance.integers(0, 2, n_rows)) % 6})

    frame, new = sample(2000, 0), sample(1000, 1)
    made = fitted(frame, ["a"], n_epochs=15, learning_rate=4e-3)
    rows = Schema.learn_rows(frame, immutable=["a"])
    trees = TreeChain(min_samples_leaf=20).fit(rows, np.ones(len(frame), dtype=bool))

    likelihoods = [one.log_likelihood(rows.schema.encode(new)).mean() for one in (made, trees)]

    truth = -np.log(3) - np.log(2)
    assert likelihoods[0] > likelihoods[1] - 0.05
    assert likelihoods[0] == pytest.approx(truth, abs=0.15)


def test_it_keeps_the_promises_of_a_generator():
    check_generator(MADE(n_hidden=16, n_bins=16, n_epochs=4))


def test_training_is_the_same_from_run_to_run_and_leaves_torch_as_it_was():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["a", "b"])
    torch.manual_seed(5)
    before = torch.get_rng_state()

    one, other = (fitted(frame, ["a"], n_epochs=3).network_.weights for _ in range(2))

    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert torch.equal(before, torch.get_rng_state())
    third = fitted(frame, ["a"], n_epochs=3, seed=1).network_.weights
    assert not np.array_equal(one["into"], third["into"])


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        ("mask", "drawn after it"),
        ("grid", "fixed point"),
        ("shape", "dtypes or shapes"),
        ("cells", "cells"),
    ],
)
def test_arrays_that_it_could_not_have_learned_are_refused(spoil, reason):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3)), columns=list("abc"))
    made = fitted(frame, ["a"], n_epochs=1, n_hidden=8)
    arrays = made.to_arrays()
    if spoil == "cells":
        arrays["cells"][0]["starts"] = arrays["cells"][0]["starts"][::-1].copy()
    else:
        network = {name: weights.copy() for name, weights in arrays["network"].items()}
        network["into"][-1, 0] += {"mask": 1.0, "grid": 0.0, "shape": 0.0}[spoil]
        network["into_bias"][0] += 1e-9 * (spoil == "grid")
        if spoil == "shape":
            network["out"] = network["out"][:, 1:]
        arrays["network"] = network

    with pytest.raises(SavedFileError, match=reason):
        MADE(n_hidden=8).from_arrays(arrays, made.schema_)


@pytest.mark.parametrize(
    "parameters",
    [{"n_hidden": 0}, {"n_bins": 1}, {"dropout": 1.0}, {"learning_rate": 0}, {"device": "tpu"}],
)
def test_parameters_that_cannot_work_are_refused(parameters):
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        fitted(pd.DataFrame({"a": [1, 2]}), **parameters)


def test_without_torch_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)

    with pytest.raises(MissingExtraError, match=r'MADE needs torch: pip install "mcce\[deep\]"'):
        fitted(pd.DataFrame({"a": [1, 2]}))
