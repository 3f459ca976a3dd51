"""Distances that can be computed by hand, and by an oracle that goes cell by cell."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from distance_oracle import Oracle
from mcce import HEOM, HVDM, IVDM, L1, Gower, Schema
from mcce.candidates import pair_rows
from mcce.distances.shares import level_shares
from mcce.kernels import reference
from mcce.testing import check_distance

EVERY = {"gower": Gower, "l1": L1, "heom": HEOM, "hvdm": HVDM, "ivdm": IVDM}


def fitted(distance, train, decision, immutable=()):
    rows = Schema.learn_rows(train, immutable=list(immutable))
    return distance.fit(rows.schema, rows, np.asarray(decision, dtype=bool)), rows.schema


def between(distance, schema, one, other):
    """Distances of the rows of two frames, one by one."""
    rows = schema.encode(one)
    frame = schema.encode(other).frame
    return distance(pair_rows(rows, np.arange(len(one)), frame, 1))[:, 0]


# Level A has the decisions (3, 1), B (1, 3); the numbers have the standard deviation 2.
LEVELS = pd.DataFrame({"level": list("AAAABBBB"), "number": [0.0, 4.0] * 4})
DECISION = [False, False, False, True, False, True, True, True]


@pytest.mark.parametrize(
    ("variant", "expected"), [("N1", 1.0), ("N2", math.sqrt(0.5)), ("N3", 1.0)]
)
def test_levels_differ_by_the_shares_of_decisions(variant, expected):
    distance, schema = fitted(HVDM(variant=variant, alpha=0), LEVELS, DECISION)

    found = between(distance, schema, LEVELS.iloc[[0]], LEVELS.iloc[[6]])

    assert found == pytest.approx(expected)
    assert round(expected, 4) in (1.0, 0.7071)


def test_numbers_differ_by_four_standard_deviations():
    distance, schema = fitted(HVDM(alpha=0), LEVELS, DECISION)

    found = between(distance, schema, LEVELS.iloc[[0]], LEVELS.iloc[[7]])

    assert found == pytest.approx(math.sqrt(0.5 + 0.25))
    assert found.round(4) == 0.8660


def test_a_prior_pulls_the_shares_of_levels_together():
    """Both decisions are as frequent, so with one more row (3.5, 1.5) / 5 and (1.5, 3.5) / 5."""
    distance, schema = fitted(HVDM(), LEVELS, DECISION)

    found = between(distance, schema, LEVELS.iloc[[0]], LEVELS.iloc[[6]])

    assert found == pytest.approx(math.sqrt(2 * 0.4**2))


@pytest.mark.parametrize(
    ("alpha", "expected"), [(0.0, math.hypot(0.75, 0.25)), (1.0, math.hypot(0.2, 0.2))]
)
def test_a_level_never_seen_has_no_shares_or_those_of_all(alpha, expected):
    train = pd.DataFrame({"level": list("AAAABBBB"), "number": 1.0})
    distance, schema = fitted(HVDM(alpha=alpha), train, DECISION)

    found = between(distance, schema, train.iloc[[0]].assign(level="C"), train.iloc[[0]])

    assert found == pytest.approx(expected)


# Ten values from 0 to 10, two in each of five bins, whose shares are 0, 0, 1/2, 1 and 1.
NUMBERS = pd.DataFrame({"number": [0.0, 1, 2, 3, 4, 5, 6, 7, 8, 10]})
TURNS = [False] * 5 + [True] * 5


def test_shares_at_a_number_are_interpolated_between_the_middles_of_bins():
    distance, schema = fitted(IVDM(alpha=0), NUMBERS, TURNS)
    people = pd.DataFrame({"number": [4.0, 6.0, 0.5, -1.5, 11.5, np.nan]})

    places = distance.axes(pair_rows(schema.encode(people), np.arange(6), people, 1)).own_places[0]

    expected = [[0.75, 0.25], [0.25, 0.75], [0.75, 0], [0, 0], [0, 0], [np.nan, np.nan]]
    assert np.allclose(places, expected, equal_nan=True)
    squared = between(distance, schema, people.iloc[[0]], people.iloc[[1]]) ** 2
    assert squared == pytest.approx(0.5)


def test_a_bin_without_rows_lies_on_the_line_between_its_neighbours():
    train = pd.DataFrame({"number": [0.0, 1.0, 9.0, 10.0]})
    distance, schema = fitted(IVDM(alpha=0), train, [False, False, True, True])
    people = pd.DataFrame({"number": [3.0, 5.0, 7.0]})

    places = distance.axes(pair_rows(schema.encode(people), np.arange(3), people, 1)).own_places[0]

    assert np.allclose(places, [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]])


MIXED = pd.DataFrame({"a": [1.0, 3.0, 5.0], "b": ["A", "B", "A"], "c": [1.0, 5.0, 2.0]})
ONE = pd.DataFrame({"a": [1.0], "b": ["A"], "c": [np.nan]})
OTHER = pd.DataFrame({"a": [3.0], "b": ["B"], "c": [5.0]})


@pytest.mark.parametrize(
    ("distance", "expected"),
    [
        (Gower(), 2.5 / 3),
        (Gower(missing="ignore"), 0.75),
        (L1(), 2.5),
        (L1(missing="ignore"), 1.5),
        (HEOM(), 1.5),
        (HEOM(missing="ignore"), math.sqrt(1.25)),
    ],
)
def test_a_missing_value_is_a_level_or_ignored(distance, expected):
    distance, schema = fitted(distance, MIXED, [True, False, True])

    assert between(distance, schema, ONE, OTHER) == pytest.approx(expected)
    assert between(distance, schema, OTHER, ONE) == pytest.approx(expected)


def test_a_mean_over_no_feature_is_infinite_unless_the_rows_are_equal():
    train = pd.DataFrame({"a": [1.0, np.nan, 2.0], "b": ["x", None, "y"]})
    distance, schema = fitted(Gower(missing="ignore"), train, [True, False, True])

    one, other = train.iloc[[1, 1, 0]], train.iloc[[0, 1, 1]]

    assert between(distance, schema, one, other).tolist() == [np.inf, 0, np.inf]


def test_immutable_features_count_in_the_mean_only_where_they_are_known():
    train = pd.DataFrame({"fixed": [1.0, np.nan, 2.0], "a": [0.0, 1.0, 2.0], "b": [0.0, 1.0, 4.0]})
    distance, schema = fitted(Gower(missing="ignore"), train, [True, False, True], ["fixed"])
    people = train.assign(a=0.0, b=0.0)

    found = between(distance, schema, people, people.assign(a=1.0))

    assert found.tolist() == [0.5 / 3, 0.5 / 2, 0.5 / 3]


def test_constant_numbers_differ_by_one():
    train = pd.DataFrame({"constant": [3.0, 3.0, 3.0, np.nan], "b": list("xyxy")})
    for kind in EVERY.values():
        distance, schema = fitted(kind(), train, [True, False, True, False])

        found = between(distance, schema, train.head(1).assign(constant=4.0), train.head(1))

        assert found == (0.5 if kind is Gower else 1.0)


@pytest.mark.parametrize("missing", ["level", "ignore"])
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("gower", {}),
        ("l1", {}),
        ("heom", {}),
        ("hvdm", {}),
        ("hvdm", {"variant": "N1", "alpha": 0.0}),
        ("hvdm", {"variant": "N3"}),
        ("ivdm", {}),
        ("ivdm", {"n_bins": 7, "alpha": 0.0}),
    ],
)
def test_it_is_what_going_cell_by_cell_gives(name, more, missing):
    train = bank(120, seed=1).astype({"education": object})
    decision = score(bank(120, seed=1)) > 0.6
    distance, schema = fitted(EVERY[name](missing=missing, **more), train, decision, ["age"])
    people = bank(30, seed=2).astype({"education": object})
    people.loc[3, ["housing", "salary"]] = ["tent", 300.0]
    others = bank(30, seed=3).astype({"education": object}).assign(age=people["age"])

    oracle = Oracle(name, train, decision, missing=missing, **more)

    expected = [
        oracle(one, other)
        for (_, one), (_, other) in zip(people.iterrows(), others.iterrows(), strict=True)
    ]
    assert np.allclose(between(distance, schema, people, others), expected, rtol=1e-12)


@pytest.mark.parametrize("missing", ["level", "ignore"])
@pytest.mark.parametrize("name", EVERY)
def test_it_passes_the_conformance_suite(name, missing):
    check_distance(EVERY[name](missing=missing))


@pytest.mark.parametrize("distance", [HVDM(variant="N1", alpha=0.0), HVDM(variant="N3"), IVDM()])
def test_variants_pass_the_conformance_suite(distance):
    check_distance(distance)


@pytest.mark.parametrize("name", EVERY)
def test_the_compiled_kernel_and_its_twin_agree(name):
    train = bank(80, seed=4)
    distance, schema = fitted(EVERY[name](), train, score(train) > 0.6)
    people = bank(10, seed=5)
    candidates = pair_rows(schema.encode(people), np.arange(10), bank(40, seed=6), 4)

    expected = reference.measure(candidates.comparison, distance.axes(candidates))

    assert np.array_equal(distance(candidates), expected)


@pytest.mark.parametrize("alpha", [1e300, 1e308])
def test_shares_of_a_prior_of_very_many_rows_are_those_of_all(alpha):
    shares = level_shares(np.array([[3, 1], [1, 5]]), alpha)

    np.testing.assert_allclose(shares, [[0.4, 0.6]] * 3)
