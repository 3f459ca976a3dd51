"""Predictors that offer gradients: what they promise, and what a torch module keeps."""

from __future__ import annotations

import numpy as np
import pytest

from loans import numbers
from mcce.predictors import Torch

torch = pytest.importorskip("torch", reason="torch is not installed")


def module(n_outputs, *, double=True):
    """A small network with every kind of part that evaluation mode changes."""
    torch.manual_seed(0)
    parts = [
        torch.nn.Linear(4, 6),
        torch.nn.BatchNorm1d(6),
        torch.nn.Tanh(),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(6, n_outputs),
    ]
    network = torch.nn.Sequential(*parts)
    return network.double() if double else network


def wrapped(output, n_outputs, *, double=True):
    classes = {"logits": ["a", "b", "c"][: max(n_outputs, 2)], "probabilities": ["no", "yes"]}
    network = module(n_outputs, double=double)
    if output == "probabilities":
        network = torch.nn.Sequential(network, torch.nn.Sigmoid())
    scaled = lambda rows: np.asarray(rows, dtype=float) / [60.0, 1.0, 20.0, 1.0]
    return Torch(network, output=output, classes=classes.get(output), encode=scaled)


KINDS = [("logits", 1), ("logits", 2), ("logits", 3), ("probabilities", 1), ("score", 1)]


@pytest.mark.parametrize(("output", "n_outputs"), KINDS)
def test_gradients_equal_finite_differences(output, n_outputs):
    predictor = wrapped(output, n_outputs)
    start = torch.tensor(predictor.encode_inputs(numbers().head(5)))

    given = start.clone().requires_grad_()
    outputs = predictor.differentiate(given).reshape(5, -1)
    for column in range(outputs.shape[1]):
        (gradient,) = torch.autograd.grad(outputs[:, column].sum(), given, retain_graph=True)
        for axis in range(4):
            step = torch.zeros(4, dtype=torch.float64)
            step[axis] = 1e-6
            up, down = (predictor.differentiate(start + s).reshape(5, -1) for s in (step, -step))
            slope = (up - down)[:, column].detach() / 2e-6
            np.testing.assert_allclose(gradient[:, axis], slope, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("double", [True, False], ids=["double", "single"])
@pytest.mark.parametrize(("output", "n_outputs"), KINDS)
def test_what_is_differentiated_is_what_the_predictor_returns(output, n_outputs, double):
    predictor = wrapped(output, n_outputs, double=double)
    rows = numbers().head(20)

    inputs = torch.tensor(predictor.encode_inputs(rows))
    outputs = predictor.differentiate(inputs)

    plain = predictor.predict if output == "score" else predictor.predict_proba
    assert outputs.dtype == torch.float64
    assert not outputs.requires_grad
    np.testing.assert_allclose(outputs.numpy(), np.reshape(plain(rows), outputs.shape), rtol=1e-6)


def test_weights_modes_and_statistics_stay_as_they_were():
    predictor = wrapped("logits", 2)
    network = predictor.module
    network.train()
    network[3].eval()
    network[0].weight.requires_grad_(False)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    given = torch.tensor(predictor.encode_inputs(numbers().head(5))).requires_grad_()

    predictor.differentiate(given).sum().backward()

    after = network.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert [part.training for part in network.modules()] == [True, True, True, True, False, True]
    needed = {name: weight.requires_grad for name, weight in network.named_parameters()}
    assert needed.pop("0.weight") is False
    assert all(needed.values())
    assert all(weight.grad is None for weight in network.parameters())
    assert given.grad is not None


def test_modes_are_restored_after_an_error():
    class Broken(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def forward(self, given):
            raise RuntimeError("broken")

    broken = Broken().train()

    with pytest.raises(RuntimeError, match="broken"):
        Torch(broken, output="score").differentiate(torch.zeros(1, 4))

    assert broken.training
    assert broken.weight.requires_grad


def test_a_wrapped_module_says_that_it_offers_gradients():
    assert wrapped("score", 1).offers_gradients is True
