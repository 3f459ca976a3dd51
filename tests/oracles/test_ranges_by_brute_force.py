"""Ranges equal brute force on small tables, whatever the batch, for random data."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from brute_force import same
from mcce import MCCE, Interval
from mcce import constraints as c
from searches import examples, explain
from tables import cases

DESIRED = Interval(0.45, np.inf, closed="left")


@st.composite
def explained(draw, max_rows=13):
    """So few rows that every value of a number can be tried."""
    case = draw(cases(max_rows=max_rows))
    numbers = case.train.select_dtypes("number").columns
    limits = [c.only_up(name) for name in numbers if name not in case.immutable]
    explainer = MCCE(
        case.score,
        DESIRED,
        immutable=case.immutable,
        constraints=limits if draw(st.booleans()) else None,
        n_samples=25,
        n_counterfactuals=draw(st.integers(1, 3)),
        random_state=draw(st.integers(0, 5)),
    )
    return case, explainer.fit(case.train), explain(explainer, case.people)


def holds(case, explainer, result, place, changes):
    """Whether a counterfactual with some other cells is valid and allowed."""
    row = result.frame.astype(object).iloc[place].to_dict() | changes
    own = result.factuals.astype(object).iloc[result.owner[place]]
    frame = pd.DataFrame([row], columns=case.people.columns, dtype=object)
    rising = explainer.constraints is not None
    for name, feature in zip(explainer.schema_.names, explainer.schema_.features, strict=True):
        limited = rising and feature.kind == "numeric" and not feature.immutable
        if limited and not same(row[name], own[name]) and not row[name] > own[name]:
            return False
    return bool(DESIRED.contains(case.score(frame))[0])


def positions(result, ranges):
    """The position of the counterfactual of each row."""
    place, number = {}, itertools.count()
    for key in result.frame.index:
        place.setdefault(key, []).append(next(number))
    changed = result.changes()
    assert len(changed) == len(ranges)
    before = result.factuals.astype(object)
    found = []
    for at in range(len(result.frame)):
        own, row = before.iloc[result.owner[at]], result.frame.astype(object).iloc[at]
        found += [at] * sum(not same(own[name], row[name]) for name in result.frame.columns)
    return found


@examples(0.4)
@given(explained())
def test_ranges_are_those_of_trying_every_value(work):
    case, explainer, result = work

    ranges = explainer.ranges(result)

    features = dict(zip(explainer.schema_.names, explainer.schema_.features, strict=True))
    for place, (_, row) in zip(positions(result, ranges), ranges.iterrows(), strict=True):
        name = row["feature"]
        known = list(features[name].known.astype(object))
        good = [level for level in known if holds(case, explainer, result, place, {name: level})]
        if row["kind"] == "categorical":
            assert set(row["others"]) == {level for level in good if not same(level, row["value"])}
            continue
        if pd.isna(row["value"]):
            assert row["low"] is None
            continue
        below = [value for value in known if value < row["value"]]
        above = [value for value in known if value > row["value"]]
        low = list(itertools.takewhile(good.__contains__, below[::-1]))
        high = list(itertools.takewhile(good.__contains__, above))
        assert row["low"] == (low[-1] if low else row["value"])
        assert row["high"] == (high[-1] if high else row["value"])
        assert row["low_open"] == (len(low) == len(below))
        assert row["high_open"] == (len(high) == len(above))
        inside = case.train[name].between(row["low"], row["high"])
        assert row["n_training"] == inside.sum()


@examples(0.3)
@given(explained())
def test_boxes_are_inside_their_ranges_and_keep_their_label(work):
    case, explainer, result = work

    ranges = explainer.ranges(result)

    ranges["place"] = positions(result, ranges)
    for place, box in ranges[ranges["box_low"].notna()].groupby("place"):
        assert len(box) >= 2
        assert (box["low"] <= box["box_low"]).all()
        assert (box["box_high"] <= box["high"]).all()
        assert (box["box_low"] <= box["value"]).all()
        assert (box["value"] <= box["box_high"]).all()
        assert (box["box_held"] <= box["box_tried"]).all()
        assert box["box_share"].between(0, 1).all()
        if box["box_share"].iloc[0] == 1:
            values = []
            for _, row in box.iterrows():
                known = pd.Series(sorted({row["value"], *case.train[row["feature"]].dropna()}))
                values.append(known[known.between(row["box_low"], row["box_high"])].tolist())
            for point in itertools.product(*values):
                changes = dict(zip(box["feature"], point, strict=True))
                assert holds(case, explainer, result, place, changes)


def only(result, places):
    """A result with some of the counterfactuals in another order."""
    return replace(result, frame=result.frame.iloc[places], owner=result.owner[places])


@examples(0.3)
@given(explained(max_rows=40), st.integers(0, 2**32 - 1))
def test_batch_and_order_change_nothing(work, seed):
    _, explainer, result = work
    places = np.random.default_rng(seed).permutation(len(result.frame))[: 1 + seed % 5]

    everything = explainer.ranges(result)
    some = explainer.ranges(only(result, places))

    place = np.array(positions(result, everything), dtype=np.int64)
    rows = [row for at in places for row in np.flatnonzero(place == at)]
    expected = everything.iloc[rows].reset_index(drop=True)
    pd.testing.assert_frame_equal(some, expected, check_exact=True)


@examples(0.2)
@given(st.integers(0, 2**16))
def test_few_rows_are_scored_and_every_end_of_a_long_range_holds(seed):
    chance, scored = np.random.default_rng(seed), []
    ends = np.sort(chance.integers(0, 1000, (2, 2)), axis=0)
    train = pd.DataFrame(chance.integers(0, 1000, (400, 2)), columns=["a", "b"])

    def inside(frame):
        scored.append(len(frame))
        return ((frame >= ends[0]) & (frame <= ends[1])).sum(axis=1)

    explainer = MCCE(inside, (1, 2), n_samples=25, random_state=0).fit(train)
    result = explain(explainer, train.head(4))
    scored.clear()

    ranges = explainer.ranges(result)

    assert sum(scored) <= 20 * len(ranges)
    for _, row in ranges.iterrows():
        for end in (row["low"], row["high"]):
            tried = result.frame.loc[[(row["factual"], row["rank"])]].copy()
            tried[row["feature"]] = end
            assert inside(tried).item() >= 1
