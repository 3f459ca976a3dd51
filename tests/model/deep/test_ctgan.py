"""The conditional GAN: its encoding, its critic, what it learns, and what it promises."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import CTGAN, MissingExtraError, ParameterError, SavedFileError, Schema
from mcce.kernels import person_keys
from mcce.model.networks.ctgan_network import GanLayout, GanNetwork, normal_noise
from mcce.model.networks.ctgan_training import GanTraining, Generator, slope_penalty
from mcce.model.networks.modes import learn_modes
from mcce.testing import check_generator

torch = pytest.importorskip("torch", reason="torch is not installed")

SMALL = {"n_hidden": 32, "n_noise": 16}


def fitted(frame, immutable=(), decision=None, seed=0, **parameters):
    rows = Schema.learn_rows(frame, immutable=list(immutable))
    decision = np.arange(len(frame)) % 2 == 0 if decision is None else decision
    return CTGAN(**{**SMALL, **parameters}).fit(rows, decision, seed=seed)


def drawn(gan, frame, n_draws, decision=None):
    """Values drawn for people, one array (n_people, n_draws) per mutable feature."""
    schema = gan.schema_
    given = schema.encode(frame).descent
    keys = person_keys(3, given[schema.immutable].T)
    sample = gan.sample(given, keys, np.arange(n_draws), decision=decision)
    return [t.to_numpy()[codes] for t, codes in zip(sample.tables, sample.codes, strict=True)]


@pytest.mark.parametrize("shape", ["one", "two", "skewed", "zeros", "missing"])
def test_numbers_survive_encoding_and_decoding(shape):
    chance = np.random.default_rng(0)
    values = {
        "one": chance.normal(5, 2, 2000),
        "two": np.concatenate([chance.normal(-9, 1, 1000), chance.normal(9, 0.5, 1000)]),
        "skewed": chance.lognormal(3, 1, 2000),
        "zeros": np.where(chance.random(2000) < 0.9, 0, chance.gamma(2, 900, 2000)),
        "missing": np.where(chance.random(2000) < 0.2, np.nan, chance.normal(size=2000)),
    }[shape]
    rows = Schema.learn_rows(pd.DataFrame({"x": values}))
    (column,) = learn_modes(rows, 0)

    codes = rows.descent[0].astype(np.int64)
    numbers = rows.schema.features[0].numbers
    for u in (None, chance.random(codes.size)):
        found, missing = column.decode(*column.encode(codes, numbers, u))

        np.testing.assert_array_equal(missing, np.isnan(values))
        error = np.abs(found - values)[~missing] / np.ptp(values[~missing])
        # What lies beyond four spreads of its mode is cut off there, if it is drawn for it.
        assert np.quantile(error, 0.998) < 0.01
        assert (found[values == 0] == 0).all()


@pytest.mark.parametrize("unit", [1e-310, 1e200, 1e307])
def test_modes_are_the_same_in_any_unit(unit):
    values = np.random.default_rng(0).normal(size=300)
    frame = pd.DataFrame({"x": values, "y": values * unit})
    plain, scaled = (learn_modes(Schema.learn_rows(frame[[name]]), 0)[0] for name in "xy")

    np.testing.assert_allclose(scaled.means / unit, plain.means, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(scaled.spreads / unit, plain.spreads, rtol=1e-9)


def test_a_number_whose_values_are_all_frequent_has_a_mode_for_each():
    values = np.where(np.arange(210) % 21 == 20, np.nan, np.arange(210) % 21)
    (column,) = learn_modes(Schema.learn_rows(pd.DataFrame({"x": values})), 0)

    np.testing.assert_array_equal(column.means, np.arange(20))
    assert not column.spreads.any()
    assert column.n_units == 21


def test_training_that_diverges_is_an_error(monkeypatch):
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=60)})
    monkeypatch.setattr("mcce.model.networks.ctgan_training.PENALTY", 1e38)

    with pytest.raises(ParameterError, match=r"diverged: learning_rate=1\.0"):
        fitted(frame, n_epochs=2, learning_rate=1.0)


def test_the_penalty_of_a_critic_with_slope_one_is_zero():
    weights = torch.tensor([0.6, 0.8, 0.0])
    real, made, u = torch.randn(7, 3), torch.randn(7, 3), torch.rand(7, 1)

    assert float(slope_penalty(torch, lambda x: x @ weights, real, made, u)) < 1e-12
    steep = slope_penalty(torch, lambda x: x @ (3 * weights), real, made, u)
    assert float(steep) == pytest.approx(4)


def test_the_network_in_use_is_the_one_that_was_trained():
    frame = pd.DataFrame(
        {"x": np.random.default_rng(0).normal(size=400), "job": list("abcd") * 100, "age": 1}
    )
    modes = learn_modes(Schema.learn_rows(frame), 0)
    layout = GanLayout((modes[2],), tuple(modes[:2]), True, 16, 32)
    generator = Generator(torch, layout, torch.Generator().manual_seed(0))
    context = np.hstack([np.ones((300, 1)), np.tile([0.0, 1.0], (300, 1))])
    for _ in range(200):
        generator.rows(torch.tensor(context, dtype=torch.float32))
    noise = np.random.default_rng(1).normal(size=(300, 16))

    found = GanNetwork.fix(layout, generator.folded()).outputs(noise, context)

    w = {name: tensor.detach().numpy() for name, tensor in generator.weights.items()}
    inputs = np.hstack([noise, context])
    for layer in range(2):
        values = inputs @ w[f"weights_{layer}"] + w[f"bias_{layer}"]
        spread = np.sqrt(generator.variances[layer].numpy() + 1e-5)
        hidden = (values - generator.means[layer].numpy()) / spread
        inputs = np.hstack([np.maximum(hidden, 0), inputs])
    np.testing.assert_allclose(found, inputs @ w["weights_2"] + w["bias_2"], atol=5e-3)


def test_noise_is_normal_and_every_row_has_its_own():
    noise = normal_noise(person_keys(0, np.arange(5000, dtype=np.int32)[:, None]), 7, 10)

    assert noise.shape == (5000, 10)
    np.testing.assert_allclose(noise.mean(axis=0), 0, atol=0.06)
    np.testing.assert_allclose(np.corrcoef(noise.T), np.eye(10), atol=0.06)
    np.testing.assert_allclose(noise.std(axis=0), 1, atol=0.05)


@pytest.mark.slow
def test_both_modes_of_a_mixture_are_recovered():
    chance = np.random.default_rng(0)
    x = np.concatenate([chance.normal(-4, 0.5, 500), chance.normal(4, 0.5, 500)])
    gan = fitted(pd.DataFrame({"x": x}), n_epochs=25, learning_rate=2e-3)

    (values,) = drawn(gan, pd.DataFrame({"x": [0.0]}), 5000)

    assert 0.3 < (values > 0).mean() < 0.7
    assert (np.abs(np.abs(values) - 4) < 2).mean() > 0.95


def test_what_is_drawn_depends_on_the_context():
    chance = np.random.default_rng(0)
    job = chance.choice(["a", "b"], 1000)
    x = np.where(job == "a", -4, 4) + chance.normal(0, 0.5, 1000)
    gan = fitted(
        pd.DataFrame({"x": x, "job": job}), ["job"], n_epochs=20, learning_rate=2e-3, pack=1
    )

    (values,) = drawn(gan, pd.DataFrame({"x": 0.0, "job": ["a", "b"]}), 1000)

    assert (values[0] < 0).mean() > 0.8
    assert (values[1] > 0).mean() > 0.8


def test_it_keeps_the_promises_of_a_generator():
    check_generator(CTGAN(**SMALL, n_epochs=2))


def test_training_is_the_same_from_run_to_run():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["a", "b"])

    one, other, third = (
        fitted(frame, ["a"], n_epochs=2, seed=seed).network_.weights for seed in (0, 0, 1)
    )

    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert not np.array_equal(one["weights_0"], third["weights_0"])


def test_a_batch_must_be_a_multiple_of_the_pack():
    with pytest.raises(ParameterError, match="batch_size must be a multiple of pack=10"):
        fitted(pd.DataFrame({"a": [1, 2]}), batch_size=512)


def test_arrays_that_it_could_not_have_learned_are_refused():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["a", "b"])
    gan = fitted(frame, ["a"], n_epochs=1)

    for spoil in ("network", "modes"):
        arrays = gan.to_arrays()
        if spoil == "network":
            arrays["network"]["bias_0"] = arrays["network"]["bias_0"] + np.pi
        else:
            arrays["modes"][0]["weights"] = -arrays["modes"][0]["weights"]
        with pytest.raises(SavedFileError):
            CTGAN(**SMALL).from_arrays(arrays, gan.schema_)


def test_without_torch_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)

    with pytest.raises(MissingExtraError, match=r'CTGAN needs torch: pip install "mcce\[deep\]"'):
        fitted(pd.DataFrame({"a": [1, 2]}))


def test_many_rows_get_fewer_epochs_unless_their_number_is_given():
    usual, given = (GanTraining(n, 500, 10, 2e-4, "cpu") for n in ("auto", 8))

    assert [usual.epochs_of(n_rows) for n_rows in (1, 4000, 40_000, 10**7)] == [300, 300, 62, 1]
    assert given.epochs_of(40_000) == 8
    with pytest.raises(ParameterError, match="n_epochs"):
        fitted(pd.DataFrame({"a": [1, 2]}), n_epochs="many")
