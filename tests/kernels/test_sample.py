"""Draws: golden, uniform, and counted by nothing but their own name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

from mcce.kernels.reference import (
    DRAWS_VERSION,
    Columns,
    Forest,
    Growth,
    Numbers,
    descend,
    fixed_point,
    grow_tree,
    join,
    leaf_frequency,
    person_keys,
    sample,
)
from mcce.kernels.reference._random import draw_keys, mix, pick

GOLDEN = Path(__file__).parents[1] / "golden" / "draws.json"


def draws_by_plain_integers(seed, codes, draw, position):
    """The definition once more, in Python's own integers."""
    word = 2**64 - 1

    def scramble(x):
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & word
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & word
        return x ^ (x >> 31)

    golden = 0x9E3779B97F4A7C15
    state = scramble((seed + golden) & word)
    for part in (*codes, draw, position):
        state = scramble(((state ^ part) + golden) & word)
    return state


def test_draws_are_those_of_the_golden_file():
    golden = json.loads(GOLDEN.read_text())

    assert golden["draws_version"] == DRAWS_VERSION
    for row in golden["draws"]:
        keys = person_keys(row["seed"], np.array([row["codes"]], dtype=np.int32).reshape(1, -1))
        row_keys = draw_keys(keys, np.array([row["draw"]]))
        picked = pick(row_keys, row["position"], np.array([[row["count"]]]))
        assert picked.item() == row["picked"]


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1])
def test_draws_follow_their_definition_in_plain_integers(seed):
    codes, draw, position, count = [3, 0, 41], 999, 7, 1000

    keys = person_keys(seed, np.array([codes], dtype=np.int32))
    picked = pick(draw_keys(keys, np.array([draw])), position, np.array([[count]])).item()

    expected = (draws_by_plain_integers(seed, codes, draw, position) >> 32) * count >> 32
    assert picked == expected


def test_mixing_is_one_to_one():
    words = np.arange(200_000, dtype=np.uint64)

    assert np.unique(mix(words)).size == words.size


def grown(n_train=600):
    chance = np.random.default_rng(3)
    group = chance.integers(0, 2, n_train)
    first = chance.integers(0, 5, n_train)
    second = np.minimum(first + chance.integers(0, 4, n_train), 7)
    codes = np.vstack([group, first, second]).astype(np.int32)
    columns = Columns(codes, np.zeros(3, bool), np.ones(3, bool), codes.max(axis=1) + 1)
    trees = [
        grow_tree(
            columns,
            np.arange(response),
            Numbers(fixed_point(codes[response].astype(float))),
            codes[response],
            Growth(min_samples_leaf=40),
        )
        for response in (1, 2)
    ]
    n_levels = columns.n_codes * columns.by_set
    return Forest(join(trees, columns.by_set), np.array([1, 2]), n_levels)


@pytest.mark.parametrize("seed", range(5))
def test_values_are_drawn_as_often_as_they_stand_in_the_leaf(seed):
    forest = grown()
    trees = forest.trees
    given = np.array([[0, 1], [0, 0], [0, 0]], dtype=np.int32)
    keys = person_keys(seed, given[:1].T)

    codes = sample(forest, given, keys, np.arange(20_000))

    for group in range(2):
        drawn = np.vstack([np.full((1, 20_000), group, np.int32), codes[:, group]])
        for tree, response in ((0, 1), (1, 2)):
            leaves = descend(trees, tree, drawn, forest.n_levels > 0)
            for leaf in np.unique(leaves):
                start, count = trees.start[leaf], trees.count[leaf]
                held, expected = np.unique(trees.values[start : start + count], return_counts=True)
                here = drawn[response, leaves == leaf]
                observed = np.array([(here == value).sum() for value in held])
                assert observed.sum() == here.size
                assert (
                    held.size == 1
                    or chisquare(observed, expected * here.size / count).pvalue > 1e-4
                )


def test_draws_of_different_features_and_numbers_are_uncorrelated():
    keys = draw_keys(person_keys(0, np.zeros((1, 1), np.int32)), np.arange(50_000)).ravel()
    wide = np.full(keys.size, 2**32)
    a, b = pick(keys, 0, wide) / 2**32, pick(keys, 1, wide) / 2**32

    assert abs(np.corrcoef(a, b)[0, 1]) < 0.02
    assert abs(np.corrcoef(a[1:], a[:-1])[0, 1]) < 0.02
    assert chisquare(np.histogram(a, 64, (0, 1))[0]).pvalue > 1e-4


def test_every_row_drawn_has_its_value_in_the_leaf():
    forest = grown()
    trees = forest.trees
    given = np.array([[1], [0], [0]], dtype=np.int32)

    drawn = sample(forest, given, person_keys(9, given[:1].T), np.arange(500))[:, 0]
    codes = np.vstack([np.ones((1, 500), np.int32), drawn])

    for tree, response in ((0, 1), (1, 2)):
        leaf = descend(trees, tree, codes, forest.n_levels > 0)
        hits, size = leaf_frequency(trees, leaf, codes[response])
        assert (hits > 0).all()
        assert np.array_equal(size, trees.count[leaf])
    assert (leaf_frequency(trees, leaf, np.full(500, -1, np.int32))[0] == 0).all()
