"""Distances that are sums over features: the compiled kernel equals its twin."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.kernels import Comparison, Measure, Summation, native, reference

N_CODES = 6


@st.composite
def measured(draw):
    """A comparison, and places on the axes of a distance."""
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, n_groups, n_draws, n_people = (draw(st.integers(1, most)) for most in (5, 3, 40, 6))
    places, own_places, spreads = [], [], []
    for _ in range(m):
        n_dims = draw(st.sampled_from([0, 1, 1, 2]))
        spreads.append(draw(st.sampled_from([0.0, 0.5, 3.0])))
        if not n_dims:
            places.append(None)
            own_places.append(None)
            continue
        table = chance.normal(size=(N_CODES, n_dims))
        own = chance.normal(size=(n_people, n_dims))
        if spreads[-1] == 0 and n_dims == 1:
            table[:], own[:] = 0.0, 0.0
        if draw(st.booleans()):
            table[-1] = np.nan
            own[chance.random(n_people) < 0.3] = np.nan
        places.append(table)
        own_places.append(own)
    comparison = Comparison(
        codes=chance.integers(0, N_CODES, (m, n_groups, n_draws), np.int32),
        numbers=[None] * m,
        own_codes=chance.integers(-1, N_CODES, (m, n_people), np.int32),
        own_numbers=np.full((m, n_people), np.nan),
        spreads=np.zeros(m),
        group=np.sort(chance.integers(0, n_groups, n_people)),
        n_features=m,
    )
    how = Summation(*(draw(st.booleans()) for _ in range(4)))
    weights = chance.choice([0.0, 1.0, 1.3], m)
    n_present = chance.integers(0, m + 2, n_people).astype(float)
    return comparison, Measure(places, own_places, np.array(spreads), weights, n_present, how)


@given(measured())
def test_distances_are_equal(work):
    comparison, axes = work

    found = native.measure(comparison, axes)

    assert np.array_equal(found, reference.measure(comparison, axes))
    assert not np.isnan(found).any()


@given(measured(), st.booleans(), st.integers(1, 50), st.none() | st.sampled_from([0.0, 0.5, 2.0]))
def test_rankings_by_them_are_equal(work, by_sparsity, n_best, max_distance):
    comparison, axes = work
    rank_by = ("sparsity", "distance") if by_sparsity else ("distance", "sparsity")
    allowed = np.ones((comparison.group.size, comparison.codes.shape[2]), dtype=bool)
    settings = {"rank_by": rank_by, "n_best": n_best, "max_distance": max_distance, "axes": axes}

    found = native.rank(comparison, allowed, **settings)
    expected = reference.rank(comparison, allowed, **settings)

    for name in ("draw", "sparsity", "distance", "gower", "n_allowed"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))


@given(measured())
def test_some_people_have_the_distances_that_they_have_among_all(work):
    comparison, axes = work
    some = np.arange(comparison.group.size)[::2]

    found = native.measure(comparison.of(some), axes.of(some))

    assert np.array_equal(found, native.measure(comparison, axes)[some])


def example():
    comparison = Comparison(
        codes=np.zeros((1, 1, 4), dtype=np.int32),
        numbers=[None],
        own_codes=np.ones((1, 2), dtype=np.int32),
        own_numbers=np.zeros((1, 2)),
        spreads=np.ones(1),
        group=np.zeros(2, dtype=np.int64),
        n_features=1,
    )
    axes = Measure(
        [np.zeros((2, 1))], [np.zeros((2, 1))], *np.ones((2, 1)), np.ones(2), Summation()
    )
    return comparison, axes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"places": [None]}, "only one side"),
        ({"places": [np.zeros((2, 3))], "own_places": [np.zeros((2, 3))]}, "one or two"),
        ({"places": [np.zeros((2, 2))]}, "one or two"),
        ({"own_places": [np.zeros((1, 1))]}, "one or two"),
        ({"places": [np.zeros(2)]}, "tables of float64"),
        ({"spreads": np.ones(2)}, "differ in size"),
        ({"n_present": np.ones(3), "own_places": [np.zeros((3, 1))]}, "other rows"),
        ({"places": [np.zeros((0, 1))]}, "no place"),
    ],
)
def test_places_that_do_not_fit_are_refused(changes, said):
    comparison, axes = example()
    native.measure(comparison, axes)

    with pytest.raises(ValueError, match=said):
        native.measure(comparison, replace(axes, **changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"group": np.ones(2, dtype=np.int64)}, "group"),
        ({"own_codes": np.ones((1, 3), dtype=np.int32)}, "own codes"),
        ({"codes": np.full((1, 1, 4), -1, dtype=np.int32)}, "no place"),
        ({"codes": np.full((1, 1, 4), 9, dtype=np.int32)}, "no place"),
    ],
)
def test_candidates_that_do_not_fit_are_refused(changes, said):
    comparison, axes = example()

    with pytest.raises(ValueError, match=said):
        native.measure(replace(comparison, **changes), axes)


def test_a_code_without_a_place_is_refused_in_a_ranking_too():
    comparison, axes = example()
    beyond = replace(comparison, codes=comparison.codes + 7)

    with pytest.raises(ValueError, match="no number"):
        native.rank(beyond, np.ones((2, 4), bool), rank_by=("sparsity",), n_best=4, axes=axes)
