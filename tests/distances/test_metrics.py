"""What makes a distance a metric, on random tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import HEOM, HVDM, IVDM, L1, Gower, Schema
from mcce.candidates import pair_rows

EVERY = [Gower, L1, HEOM, HVDM, IVDM]


@st.composite
def tables(draw):
    """Training rows, decisions and three groups of rows, all complete."""
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows = draw(st.integers(2, 30))
    scale = draw(st.sampled_from([1e-300, 1.0, 1e6, 1e300]))

    def rows(n, levels):
        return pd.DataFrame(
            {
                "number": np.round(chance.normal(size=n), 1) * scale,
                "count": chance.integers(0, draw_most, n),
                "level": chance.choice(levels, n),
            }
        )

    draw_most = draw(st.integers(1, 50))
    train = rows(n_rows, ["a", "b", "c"])
    others = [rows(6, ["a", "b", "c", "never seen", "neither"]) for _ in range(3)]
    return train, chance.random(n_rows) < 0.5, others


def distances(distance, schema, one, other):
    return distance(pair_rows(schema.encode(one), np.arange(len(one)), other, 1))[:, 0]


@pytest.mark.parametrize("kind", EVERY)
@given(tables())
def test_it_is_symmetric_and_keeps_the_triangle_inequality(kind, table):
    train, decision, (a, b, c) = table
    rows = Schema.learn_rows(train)
    distance = kind().fit(rows.schema, rows, decision)

    one, two, both = (distances(distance, rows.schema, *pair) for pair in ((a, b), (b, c), (a, c)))

    assert (distances(distance, rows.schema, a, a) == 0).all()
    assert np.array_equal(one, distances(distance, rows.schema, b, a))
    assert (both <= (one + two) * (1 + 1e-12)).all()
    assert (one >= 0).all()


@pytest.mark.parametrize("kind", [Gower, L1, HEOM])
@given(tables())
def test_only_equal_rows_are_no_distance_apart(kind, table):
    train, decision, (a, b, _) = table
    rows = Schema.learn_rows(train)
    distance = kind().fit(rows.schema, rows, decision)

    found = distances(distance, rows.schema, a, b)

    assert ((found == 0) == (a == b).all(axis=1)).all()


@given(tables())
def test_heom_is_between_the_largest_gap_and_their_sum(table):
    train, decision, (a, b, _) = table
    rows = Schema.learn_rows(train)
    heom, l1 = (kind().fit(rows.schema, rows, decision) for kind in (HEOM, L1))

    total = distances(l1, rows.schema, a, b)
    found = distances(heom, rows.schema, a, b)

    assert (found <= total * (1 + 1e-12)).all()
    assert (found * np.sqrt(3) >= total * (1 - 1e-12)).all()


def test_levels_that_are_decided_alike_are_no_distance_apart():
    train = pd.DataFrame({"level": list("aabbcc"), "number": range(6)})
    rows = Schema.learn_rows(train)
    for kind in (HVDM, IVDM):
        distance = kind().fit(rows.schema, rows, np.array([True, False, True, False, True, True]))

        found = distances(distance, rows.schema, train.iloc[[0]], train.iloc[[0]].assign(level="b"))

        assert found == 0


@pytest.mark.parametrize("kind", [HVDM, IVDM])
def test_without_any_accepted_row_levels_are_no_distance_apart(kind):
    train = pd.DataFrame({"level": list("abc"), "number": [1.0, 2.0, 3.0]})
    rows = Schema.learn_rows(train)
    distance = kind(alpha=0).fit(rows.schema, rows, np.zeros(3, dtype=bool))

    assert distances(distance, rows.schema, train.iloc[[0]], train.iloc[[0]].assign(level="b")) == 0
