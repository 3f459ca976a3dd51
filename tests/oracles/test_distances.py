"""Distances that can be computed by hand, and by an oracle that goes cell by cell."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bank import bank, score
from brute_force import candidates, costs
from distance_oracle import Oracle, between, expected_of, fitted
from mcce import HVDM, L1, MCCE, Gower, ParameterError
from searches import explain

EVERY = {"gower": Gower, "l1": L1, "hvdm": HVDM}
# Level A has the decisions (3, 1), B (1, 3); the numbers have the standard deviation 2.
LEVELS = pd.DataFrame({"level": list("AAAABBBB"), "number": [0.0, 4.0] * 4})
DECISION = [False, False, False, True, False, True, True, True]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"variant": "N1", "alpha": 0}, 1.0),
        ({"variant": "N2", "alpha": 0}, math.sqrt(0.5)),
        ({"variant": "N3", "alpha": 0}, 1.0),
        # Both decisions are as frequent, so with one more row (3.5, 1.5) / 5 and (1.5, 3.5) / 5.
        ({"alpha": 1}, math.sqrt(2 * 0.4**2)),
        # A prior of very many rows says the same of both.
        ({"alpha": 1e308}, 0.0),
    ],
    ids=["N1", "N2", "N3", "prior", "large prior"],
)
def test_levels_differ_by_the_shares_of_decisions(settings, expected):
    distance, schema = fitted(HVDM(**settings), LEVELS, DECISION)

    found = between(distance, schema, LEVELS.iloc[[0]], LEVELS.iloc[[6]])

    assert found == pytest.approx(expected)


def test_numbers_differ_by_four_standard_deviations():
    distance, schema = fitted(HVDM(alpha=0), LEVELS, DECISION)

    found = between(distance, schema, LEVELS.iloc[[0]], LEVELS.iloc[[7]])

    assert found == pytest.approx(math.sqrt(0.5 + 0.25))


def test_a_level_never_seen_has_no_shares_or_those_of_all():
    train = pd.DataFrame({"level": list("AAAABBBB"), "number": 1.0})
    for alpha, expected in ((0.0, math.hypot(0.75, 0.25)), (1.0, math.hypot(0.2, 0.2))):
        distance, schema = fitted(HVDM(alpha=alpha), train, DECISION)

        found = between(distance, schema, train.iloc[[0]].assign(level="C"), train.iloc[[0]])

        assert found == pytest.approx(expected)


def test_levels_that_are_decided_alike_are_no_distance_apart():
    train = pd.DataFrame({"level": list("aabbcc"), "number": range(6)})
    for decision in ([True, False, True, False, True, True], [False] * 6):
        distance, schema = fitted(HVDM(alpha=0), train, decision)

        found = between(distance, schema, train.iloc[[0]], train.iloc[[0]].assign(level="b"))

        assert found == 0


MIXED = pd.DataFrame({"a": [1.0, 3.0, 5.0], "b": ["A", "B", "A"], "c": [1.0, 5.0, 2.0]})
ONE = pd.DataFrame({"a": [1.0], "b": ["A"], "c": [np.nan]})
OTHER = pd.DataFrame({"a": [3.0], "b": ["B"], "c": [5.0]})


def test_a_missing_value_is_a_level_or_ignored():
    for distance, expected in [
        (Gower(), 2.5 / 3),
        (Gower(missing="ignore"), 0.75),
        (L1(), 2.5),
        (L1(missing="ignore"), 1.5),
    ]:
        measure, schema = fitted(distance, MIXED, [True, False, True])

        assert between(measure, schema, ONE, OTHER) == pytest.approx(expected)
        assert between(measure, schema, OTHER, ONE) == pytest.approx(expected)


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


def test_weights_multiply_the_differences_of_mutable_features():
    train = pd.DataFrame({"fixed": [1.0, 2.0, 3.0], "a": [0.0, 1.0, 2.0], "b": ["x", "y", "x"]})
    for weights, expected in ((None, 1.5 / 3), ([2.0, 0.0], 1.0 / 3), ([0.0, 3.0], 3.0 / 3)):
        distance, schema = fitted(Gower(weights=weights), train, [True, False, True], ["fixed"])

        found = between(distance, schema, train.iloc[[0]], train.iloc[[0]].assign(a=1.0, b="y"))

        assert found == pytest.approx(expected)
    for wrong in ([1.0], [1.0, -1.0], [1.0, np.inf]):
        with pytest.raises(ParameterError, match="weights of Gower must be 2 finite numbers"):
            fitted(Gower(weights=wrong), train, [True, False, True], ["fixed"])


def test_constant_numbers_differ_by_one():
    train = pd.DataFrame({"constant": [3.0, 3.0, 3.0, np.nan], "b": list("xyxy")})
    for kind in EVERY.values():
        distance, schema = fitted(kind(), train, [True, False, True, False])

        found = between(distance, schema, train.head(1).assign(constant=4.0), train.head(1))

        assert found == (0.5 if kind is Gower else 1.0)


@pytest.mark.parametrize("missing", ["level", "ignore"])
@pytest.mark.parametrize("name", EVERY)
def test_it_is_what_going_cell_by_cell_gives(name, missing):
    train = bank(120, seed=1).astype({"education": object})
    decision = score(bank(120, seed=1)) > 0.6
    people = bank(30, seed=2).astype({"education": object})
    people.loc[3, ["housing", "salary"]] = ["tent", 300.0]
    others = bank(30, seed=3).astype({"education": object}).assign(age=people["age"])
    variants = [{"variant": "N1", "alpha": 0.0}, {"variant": "N3"}] if name == "hvdm" else []

    for more in ({}, *variants):
        distance, schema = fitted(EVERY[name](missing=missing, **more), train, decision, ["age"])
        found = between(distance, schema, people, others)

        oracle = Oracle(name, train, decision, missing=missing, **more)
        assert np.allclose(found, expected_of(oracle, people, others), rtol=1e-12)


@st.composite
def tables(draw):
    """Training rows, decisions and three groups of rows, all complete."""
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, most = draw(st.integers(2, 30)), draw(st.integers(1, 50))
    scale = draw(st.sampled_from([1e-300, 1.0, 1e6, 1e300]))

    def rows(n, levels):
        return pd.DataFrame(
            {
                "number": np.round(chance.normal(size=n), 1) * scale,
                "count": chance.integers(0, most, n),
                "level": chance.choice(levels, n),
            }
        )

    train = rows(n_rows, ["a", "b", "c"])
    others = [rows(6, ["a", "b", "c", "never seen", "neither"]) for _ in range(3)]
    return train, chance.random(n_rows) < 0.5, others


@pytest.mark.parametrize("name", EVERY)
@given(tables())
def test_it_is_symmetric_and_keeps_the_triangle_inequality(name, table):
    train, decision, (a, b, c) = table
    distance, schema = fitted(EVERY[name](), train, decision)

    one, two, both = (between(distance, schema, *pair) for pair in ((a, b), (b, c), (a, c)))

    assert (between(distance, schema, a, a) == 0).all()
    assert np.array_equal(one, between(distance, schema, b, a))
    assert (both <= (one + two) * (1 + 1e-12)).all()
    assert (one >= 0).all()
    if name != "hvdm":
        assert ((one == 0) == (a == b).all(axis=1)).all()


@pytest.mark.parametrize(
    "distance", [L1(), HVDM(), Gower(missing="ignore")], ids=["l1", "hvdm", "observed"]
)
def test_answers_are_the_first_of_all_draws_by_changes_and_distance(distance):
    train, people = bank(300, seed=1), bank(40, seed=2)
    people = people[score(people) < 0.8].head(6).reset_index(drop=True)
    explainer = MCCE(
        score,
        (0.8, 3.0),
        search="paper",
        distance=distance,
        immutable=["age"],
        n_samples=40,
        random_state=0,
    ).fit(train)
    given_ = {key: value for key, value in distance.get_params().items() if key != "weights"}
    oracle = Oracle(distance.title, train, score(train) >= 0.8, **given_)

    result = explain(explainer, people)

    assert len(result.frame) > 3
    for at, row in enumerate(result.frame.index.get_level_values("factual")):
        person = people.loc[[row]]
        drawn = candidates(explainer, person).drop_duplicates()
        valid = drawn[score(drawn) >= 0.8].astype(object)
        own = person.astype(object).iloc[0]
        best = min(
            (costs(explainer, other, own)[0], oracle(other, own)) for _, other in valid.iterrows()
        )
        found = result.measures.iloc[at]
        assert (found["sparsity"], found[explainer.distance_.name]) == pytest.approx(best)
