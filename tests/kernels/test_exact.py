"""All rows that a person could get, listed by cost: alike in both kernels, and in pieces."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forests import forest_of, limits_of, stays_of
from mcce.kernels import native, reference
from mcce.kernels.reference import Person


@given(
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.booleans(),
    st.integers(1, 3),
    st.sampled_from([1, 7, 100_000]),
    st.sampled_from([10, 10**9]),
)
@settings(max_examples=40)
def test_rows_are_listed_alike_by_both_kernels(seed, by_set, limited, n_changes, n_best, most):
    chance = np.random.default_rng(seed)
    sizes, chain, given_codes, own = forest_of(chance, by_set, 1)
    limits = limits_of((4, 1), sizes, chain.responses, chance) if limited else None
    costs = np.round(chance.random(sum(sizes)), 1)
    offsets = np.cumsum([0, *sizes[:-1]])
    stays = stays_of(own, chance)[:, 0]
    person = Person(given_codes[:, 0], own[:, 0], stays, limits, costs, offsets)
    budget = {"n_changes": n_changes, "n_best": min(n_best, 200), "max_nodes": most}

    ours = native.enumerate_rows(chain, person, **budget)
    theirs = reference.enumerate_rows(chain, person, **budget)

    assert ours.n_nodes == theirs.n_nodes
    assert ours.complete == theirs.complete
    assert np.array_equal(ours.totals, theirs.totals)
    assert np.array_equal(ours.codes, theirs.codes)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 2), st.integers(1, 9))
@settings(max_examples=30)
def test_rows_listed_piece_by_piece_are_those_listed_at_once(seed, by_set, n_changes, n_best):
    chance = np.random.default_rng(seed)
    sizes, chain, given_codes, own = forest_of(chance, by_set, 1)
    costs = np.round(chance.random(sum(sizes)), 1)
    own, stays = own[:, 0], stays_of(own, chance)[:, 0]
    person = Person(given_codes[:, 0], own, stays, None, costs, np.cumsum([0, *sizes[:-1]]))
    budget = {"n_changes": n_changes, "max_nodes": 10**9}

    whole = native.enumerate_rows(chain, person, n_best=10**6, **budget)
    after, pieces = None, [np.empty((3, 0), dtype=np.int32)]
    for _ in range(40):
        piece = native.enumerate_rows(chain, person, n_best=n_best, after=after, **budget)
        if not piece.totals.size:
            break
        pieces.append(piece.codes)
        after = piece.totals[-1], piece.codes[:, -1]

    together = np.concatenate(pieces, axis=1)
    assert np.array_equal(together, whole.codes[:, : together.shape[1]])
    assert together.shape[1] == min(whole.totals.size, 40 * n_best)
