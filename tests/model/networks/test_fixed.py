"""Networks in fixed point: sums are exact, and choices follow probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mcce import SavedFileError
from mcce.model.networks.fixed import LARGEST, check_weights, choose, fix, fix_weights, log_shares


def test_products_are_exact_in_any_order():
    chance = np.random.default_rng(0)
    weights = fix_weights(chance.normal(0, 30, (500, 3)), reach=500 * LARGEST)
    inputs = fix(chance.normal(0, 400, (7, 500)))
    order = chance.permutation(500)

    found = inputs @ weights

    exact = [[math.fsum(row * column) for column in weights.T] for row in inputs]
    np.testing.assert_array_equal(found, exact)
    np.testing.assert_array_equal(found, inputs[:, order] @ weights[order])
    np.testing.assert_array_equal(found[2:3], inputs[2:3] @ weights)


def test_weights_are_bounded_by_what_they_are_multiplied_with():
    assert fix_weights([1e9, -1e9], reach=2.0**16).tolist() == [128, -128]


def test_weights_off_the_grid_are_refused():
    with pytest.raises(SavedFileError, match="fixed point"):
        check_weights(np.array([0.1]), (1,))


def test_classes_are_chosen_by_their_probabilities():
    logits = np.log([[0.2, 0.5, 0.3]]).repeat(10_000, axis=0)
    u = (np.arange(10_000) + 0.5) / 10_000

    chosen = choose(logits, u)

    np.testing.assert_allclose(np.bincount(chosen) / 10_000, [0.2, 0.5, 0.3], atol=1e-3)
    np.testing.assert_allclose(np.exp(log_shares(logits[:1] + 7)), [[0.2, 0.5, 0.3]])


def test_classes_without_probability_are_never_chosen():
    share = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])

    chosen = choose(np.zeros((2, 3)), np.array([1 - 2.0**-53, 0.5]), share)

    assert chosen.tolist() == [1, -1]
