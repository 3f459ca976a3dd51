"""How networks are trained, and what the auto-encoders promise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.baselines.deep.clue_model import ResidualSettings, ResidualVAE
from mcce.baselines.deep.layout import gaussian_kl, gaussian_kl_between
from mcce.baselines.deep.tools import isolated
from mcce.baselines.deep.training import PATIENCE, Goal, TrainingPlan, train
from mcce.baselines.deep.vae import ConditionalVAE, VAESettings
from mcce.baselines.space import Space
from mcce.tables.schema import Schema

torch = pytest.importorskip("torch", reason="torch is not installed")


def scripted(heldout, *, n_epochs, early_stopping=True):
    """Train one weight that counts steps, while held-out losses follow a list."""
    model = torch.nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(0.0)
    losses, epochs = iter(heldout), []

    def loss(batch, epoch):
        if not model.training:
            return torch.tensor(next(losses))
        epochs.append(epoch)
        return -model.weight.sum() * len(batch[0])  # Adam raises the weight at each step

    plan = TrainingPlan(n_epochs, 32, early_stopping, learning_rate=1.0)
    rows = torch.zeros(40, 1, dtype=torch.float64)
    with isolated(0):
        trained = train(model, [rows], [Goal(loss, [model.weight])], plan)
    return trained, epochs


def test_training_stops_after_epochs_without_progress_and_keeps_the_best_weights():
    trained, epochs = scripted([5.0, 4.0, 3.0, *[3.5] * 20], n_epochs=20)

    assert max(epochs) + 1 == 3 + PATIENCE
    n_steps = len(epochs) // (3 + PATIENCE) * 3
    assert float(trained.weight.detach()) == pytest.approx(n_steps, rel=1e-3)


def test_without_early_stopping_the_last_weights_are_kept_and_no_row_is_held_out():
    trained, epochs = scripted([], n_epochs=12, early_stopping=False)

    assert max(epochs) == 11
    assert float(trained.weight.detach()) == pytest.approx(len(epochs), rel=1e-3)


def test_a_trained_network_is_frozen_in_evaluation_mode_and_double_precision():
    trained, _ = scripted([1.0], n_epochs=1)

    assert not trained.training
    assert not trained.weight.requires_grad
    assert trained.weight.dtype == torch.float64


def test_small_data_get_smaller_batches_and_one_row_alone_is_no_batch():
    model, sizes = torch.nn.Linear(1, 1), []

    def loss(batch, _):
        sizes.append(len(batch[0]))
        return model(batch[0]).sum()

    goal = Goal(loss, list(model.parameters()))
    with isolated(0):
        train(model, [torch.zeros(65, 1)], [goal], TrainingPlan(1, 512, early_stopping=False))

    assert sizes == [32, 32]


def twins():
    """Columns that repeat each other, so that a code can know them."""
    random = np.random.default_rng(0)
    level = random.choice(["a", "b", "c"], 400)
    number = random.random(400).round(3)
    frame = pd.DataFrame({"age": number, "pay": number, "job": level, "work": level})
    return frame.assign(fixed=random.choice(["x", "y"], 400))


def learned(kind, settings, immutable):
    rows = Schema.learn_rows(twins(), immutable=list(immutable))
    space = Space.learn(rows)
    points = space.encode(rows)
    return space, points, kind.fit(space, points[:300], settings, seed=0)


CASES = {
    "C-CHVAE": (ConditionalVAE, VAESettings((32,), 4, 0.1, TrainingPlan(15, 32))),
    "CLUE": (ResidualVAE, ResidualSettings(32, 2, 4, TrainingPlan(15, 32))),
}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("immutable", [(), ("fixed", "age")], ids=["all mutable", "two immutable"])
def test_an_auto_encoder_knows_more_than_the_shares_of_levels(kind, immutable):
    space, points, vae = learned(*CASES[kind], immutable)
    heldout = torch.tensor(points[300:])

    with torch.no_grad():
        decoded = vae.decode(vae.encode(heldout)[0], heldout).numpy()

    fixed = ~space.is_mutable
    assert (decoded[:, fixed] == points[300:, fixed]).all()
    levels = ~space.is_number & space.is_mutable
    surprise = -(points[300:, levels] * np.log(decoded[:, levels])).sum(axis=1).mean()
    shares = points[:300, levels].mean(axis=0)
    assert surprise < -(points[300:, levels] * np.log(shares)).sum(axis=1).mean()
    assert ((decoded >= 0) & (decoded <= 1)).all()
    for axes in space.groups:
        np.testing.assert_allclose(decoded[:, axes].sum(axis=1), 1.0)


def test_a_decoder_reads_the_code_and_the_immutable_axes():
    space, _, vae = learned(*CASES["C-CHVAE"], ("fixed",))

    assert vae.network.decoder[0].in_features == 4 + 2
    assert vae.network.trunk[0][0].in_features == space.n_axes - 2


def test_the_divergence_is_that_of_gaussians_and_zero_for_equal_ones():
    random = torch.Generator().manual_seed(0)
    draw = lambda: torch.randn(6, 3, generator=random, dtype=torch.float64)
    mean, spread, to_mean, to_spread = draw(), draw(), draw(), draw()
    normal = lambda m, v: torch.distributions.MultivariateNormal(m, v.exp().diag_embed())
    standard = normal(torch.zeros_like(mean), torch.zeros_like(mean))
    divergence = torch.distributions.kl_divergence

    between = gaussian_kl_between(mean, spread, to_mean, to_spread)
    from_standard = gaussian_kl(mean, spread)

    expected = divergence(normal(mean, spread), normal(to_mean, to_spread))
    np.testing.assert_allclose(between, expected, rtol=1e-5)
    np.testing.assert_allclose(from_standard, divergence(normal(mean, spread), standard), rtol=1e-5)
    assert (from_standard > 0).all()
    assert not gaussian_kl(torch.zeros(2, 3), torch.zeros(2, 3)).any()
    assert not gaussian_kl_between(mean, spread, mean, spread).any()
