"""Boosted trees: the compiled kernels equal their twins, and both keep to their rules."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forests import assert_equal
from mcce.kernels import native, reference
from mcce.kernels.reference import LEAF, Boosting


def bins_of(n_bins, n_rows, chance):
    bins = [np.minimum(chance.geometric(2 / (n + 1), n_rows) - 1, n - 1) for n in n_bins]
    return np.array(bins, dtype=np.uint8).reshape(len(n_bins), n_rows)


@st.composite
def problems(draw):
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows = draw(st.sampled_from([0, 1, 5, 60, 500]))
    n_bins = draw(st.lists(st.sampled_from([1, 2, 7, 64, 255, 256]), max_size=6))
    bins = bins_of(n_bins, n_rows, chance)
    largest = draw(st.sampled_from([1, 3, 1000, 2**55 // (n_rows + 1)]))
    units = chance.integers(-largest, largest, n_rows, endpoint=True)
    if draw(st.booleans()) and len(bins):
        units = units // 2 + (bins[0] > 0) * (largest // 2)
    boosting = Boosting(
        n_trees=draw(st.integers(0, 8)),
        max_leaves=draw(st.sampled_from([0, 1, 2, 3, 16, 32])),
        min_samples_leaf=draw(st.sampled_from([1, 2, 20, 2**40])),
        shrinkage=draw(st.sampled_from([1, 3, 8])),
    )
    return bins, np.array(n_bins, dtype=np.int32), units, boosting


def ensemble_of(nodes, n_bins, n_codes, chance):
    """Trees of every other column, whose codes have random bins."""
    tables = [chance.integers(0, n, n_codes, dtype=np.uint8) for n in n_bins]
    return native.Ensemble(
        nodes,
        np.arange(n_bins.size, dtype=np.int32) * 2,
        np.arange(n_bins.size + 1) * n_codes,
        np.concatenate([np.empty(0, dtype=np.uint8), *tables]),
    )


@given(problems())
def test_trees_are_equal(problem):
    assert_equal(native.boost(*problem), reference.boost(*problem))


@given(problems(), st.integers(0, 1100), st.integers(0, 2**32 - 1))
def test_predictions_are_equal(problem, n_rows, seed):
    chance, n_bins = np.random.default_rng(seed), problem[1]
    ensemble = ensemble_of(native.boost(*problem), n_bins, 40, chance)
    codes = chance.integers(0, 40, (2 * n_bins.size, n_rows), dtype=np.int32)

    predicted = native.predict_units(ensemble, codes)

    assert np.array_equal(predicted, reference.predict_units(ensemble, codes))
    some = np.arange(codes.shape[1])[::-2].copy()
    assert np.array_equal(native.predict_units(ensemble, codes, some), predicted[some])
    assert np.array_equal(reference.predict_units(ensemble, codes, some), predicted[some])


@pytest.mark.parametrize("kernels", [native, reference])
def test_the_order_of_rows_changes_no_bit(kernels):
    chance = np.random.default_rng(0)
    n_bins = np.array([9, 200, 40], dtype=np.int32)
    bins = bins_of(n_bins, 700, chance)
    units = chance.integers(-(2**44), 2**44, 700)
    mixed = chance.permutation(700)

    nodes = kernels.boost(bins, n_bins, units, Boosting(n_trees=6))

    shuffled = kernels.boost(bins[:, mixed].copy(), n_bins, units[mixed], Boosting(n_trees=6))
    assert_equal(nodes, shuffled)


def test_a_cut_lies_halfway_to_the_next_bin_of_the_node():
    bins = np.array([[2] * 20 + [9] * 20], dtype=np.uint8)
    units = np.repeat([-8, 8], 20)

    nodes = native.boost(bins, np.array([10], dtype=np.int32), units, Boosting(n_trees=1))

    assert nodes.cut[0] == 5
    assert nodes.value.tolist() == [0, -1, 1]


def test_of_equal_inputs_the_first_is_split_on():
    one = np.repeat(np.arange(4, dtype=np.uint8), 20)

    nodes = native.boost(
        np.array([one, one]),
        np.array([4, 4], dtype=np.int32),
        np.repeat([-900, 10, 20, 800], 20),
        Boosting(n_trees=1),
    )

    assert set(nodes.feature[nodes.feature != LEAF]) == {0}


def test_leaves_have_enough_rows_and_are_not_too_many():
    chance = np.random.default_rng(2)
    n_bins = np.full(4, 100, dtype=np.int32)
    bins, units = bins_of(n_bins, 900, chance), chance.integers(-999, 1000, 900)
    boosting = Boosting(n_trees=5, max_leaves=7, min_samples_leaf=30)

    nodes = native.boost(bins, n_bins, units, boosting)

    bounds = [*nodes.roots, nodes.feature.size]
    for root, end in pairwise(bounds):
        at = np.full(900, root)
        for _ in range(7):
            goes_left = bins[nodes.feature[at], np.arange(900)] <= nodes.cut[at]
            at = np.where(nodes.feature[at] == LEAF, at, nodes.left[at] + ~goes_left)
        leaves, sizes = np.unique(at, return_counts=True)
        assert leaves.size == (nodes.feature[root:end] == LEAF).sum() <= 7
        assert sizes.min() >= 30


def small_ensemble():
    bins = np.repeat(np.arange(4, dtype=np.uint8), 20)[None]
    n_bins = np.array([4], dtype=np.int32)
    nodes = native.boost(bins, n_bins, np.repeat([-900, 10, 20, 800], 20), Boosting(n_trees=2))
    return ensemble_of(nodes, n_bins, 5, np.random.default_rng(0))


NODE_CHANGES = [
    lambda n: {"left": np.zeros_like(n.left)},
    lambda n: {"left": np.full_like(n.left, n.left.size)},
    lambda n: {"feature": np.ones_like(n.feature)},
    lambda n: {"cut": np.full_like(n.cut, 255)},
    lambda n: {"cut": n.cut[:-1]},
    lambda n: {"roots": n.roots - 1},
    lambda n: {"roots": n.roots + 1000},
    lambda n: {"roots": n.roots[:-1]},
    lambda n: {"roots": n.roots[:0]},
    lambda n: {"left": np.where(n.left, n.left.size - 2, 0).astype(np.int32)},
]


@pytest.mark.parametrize("change", NODE_CHANGES)
def test_trees_that_could_not_have_been_grown_are_refused(change):
    ensemble = small_ensemble()
    broken = replace(ensemble, nodes=replace(ensemble.nodes, **change(ensemble.nodes)))

    with pytest.raises(ValueError, match=r"node|child|cut|root|leaves"):
        native.predict_units(broken, np.zeros((1, 3), dtype=np.int32))


@pytest.mark.parametrize("code", [-1, 5, 2**31 - 1])
def test_codes_that_an_input_does_not_have_are_refused(code):
    with pytest.raises(ValueError, match="code"):
        native.predict_units(small_ensemble(), np.full((1, 3), code, dtype=np.int32))


def test_bins_and_responses_that_do_not_fit_are_refused():
    bins, n_bins = np.full((1, 50), 7, dtype=np.uint8), np.array([7], dtype=np.int32)

    with pytest.raises(ValueError, match="bin"):
        native.boost(bins, n_bins, np.zeros(50, dtype=np.int64), Boosting())
    with pytest.raises(ValueError, match="too large"):
        native.boost(bins, n_bins + 1, np.full(50, 2**60), Boosting())


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, replace])
def test_copies_leave_the_compiled_half_behind_and_give_the_same(copied):
    ensemble, codes = small_ensemble(), np.arange(5, dtype=np.int32)[None]
    predicted = native.predict_units(ensemble, codes)

    other = copied(pickle.loads(pickle.dumps(ensemble)))

    assert "bound" not in vars(other)
    assert np.array_equal(native.predict_units(other, codes), predicted)
