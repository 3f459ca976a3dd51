"""Cells that stand for values: round ends, runs and sets of levels, and who is inside."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.analysis.crowd import Crowd
from mcce.analysis.round_ends import round_ranges
from mcce.analysis.widening import Own, Widening
from mcce.tables.features import Feature


def learn(values, dtype=None):
    return Feature.learn(pd.Series(values, name="x", dtype=dtype), kind=None, immutable=False)


def numbers_of(kind, size):
    whole = {"small": st.integers(-50, 50), "huge": st.integers(10**17, 10**17 + 50)}
    return st.lists(whole[kind], min_size=size, max_size=30)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30), st.integers(0, 4), st.data())
def test_ranges_of_floats_hold_the_value(values, places, data):
    feature = learn(np.round(values, places) + 0.0)
    value = data.draw(st.sampled_from(feature.known.tolist()))

    for low, high in round_ranges(feature, value):
        assert low <= high
        assert float(low) <= value <= float(high)


@given(st.sampled_from(["small", "huge"]), st.data())
def test_cells_of_whole_numbers_hold_what_their_ends_say(kind, data):
    values = data.draw(numbers_of(kind, 2))
    feature = learn(values, np.int64)
    widening, value = Widening(feature), data.draw(st.sampled_from(values))
    code = feature.known.tolist().index(value)
    own, counts = Own(code, value), np.ones(feature.n_codes, dtype=np.int64)
    counts[code] = 0

    for cell, gain in widening.wider(own, widening.start(own), counts):
        inside = [
            (cell.low is None or cell.low <= number) and (cell.high is None or number <= cell.high)
            for number in feature.known.tolist()
        ]
        assert cell.inside(feature.n_codes).tolist() == inside
        assert inside[code]
        assert gain == sum(inside) - 1
        assert 0 < cell.loss <= 1
        assert cell.is_whole == (cell.loss == 1)


@given(numbers_of("small", 2), st.data())
def test_of_two_widths_the_wider_has_a_range_around_the_narrower(values, data):
    feature = learn(values, np.int64)
    value = data.draw(st.sampled_from(values))
    ranges = round_ranges(feature, value)
    widest = max((high - low for low, high in ranges), default=0)

    for low, high in ranges:
        wider = [ends for ends in ranges if ends[1] - ends[0] > high - low]
        assert high - low == widest or any(a <= low and high <= b for a, b in wider)


def test_floats_of_32_bits_are_compared_as_their_column_does():
    feature = learn([0.1, 0.2, 0.3, 0.7], np.float32)
    own, counts = Own(1, np.float32(0.2)), np.array([1, 0, 1, 1])

    cells = [cell for cell, _ in Widening(feature).wider(own, Widening(feature).start(own), counts)]

    # As a float of 64 bits, the training value 0.3 would be beyond the end.
    (cell,) = [one for one in cells if (one.low, one.high) == (0.2, 0.3)]
    assert cell.run == (1, 2)


@pytest.mark.parametrize("zone", [None, "Europe/Oslo"])
def test_dates_get_calendar_ranges(zone):
    days = pd.date_range("2001-03-04", "2019-09-09", freq="41D", tz=zone).to_series(name="x")
    feature = Feature.learn(days.reset_index(drop=True), kind=None, immutable=False)

    ranges = round_ranges(feature, days.iloc[50])

    shown = {(f"{low:%Y-%m-%d}", f"{high:%Y-%m-%d}") for low, high in ranges}
    assert f"{days.iloc[50]:%Y-%m-%d}" == "2006-10-14"
    assert {
        ("2006-10-01", "2006-10-31"),
        ("2006-10-01", "2006-12-31"),
        ("2006-01-01", "2006-12-31"),
        ("2005-01-01", "2009-12-31"),
        ("2000-01-01", "2009-12-31"),
    } <= shown
    assert all(low <= days.iloc[50] <= high for low, high in ranges)


def test_moments_of_one_day_get_hours():
    moments = pd.to_datetime(
        pd.Series(["2024-05-01 08:15", "2024-05-01 09:45", "2024-05-01 17:00"])
    )

    ranges = round_ranges(learn(moments), moments[1])

    assert (pd.Timestamp("2024-05-01 09:00"), pd.Timestamp("2024-05-01 09:59:59.999999")) in ranges


def test_durations_get_round_numbers_of_their_unit():
    days = pd.Series(pd.to_timedelta([3, 11, 24, 80], "D"))

    ranges = round_ranges(learn(days), days[1])

    assert (pd.Timedelta("10 days"), pd.Timedelta("20 days")) in ranges


def test_a_column_of_one_value_has_no_ranges():
    assert round_ranges(learn([5, 5]), 5) == []


def test_ordered_levels_get_neighbours_and_others_get_sets():
    levels = pd.Categorical(["a", "b", "c", "d"], ordered=True)
    ordered, plain = Widening(learn(levels)), Widening(learn(["a", "b", "c", "d"], object))
    counts = np.array([1, 0, 3, 2])

    runs = [cell.run for cell, _ in ordered.wider(Own(1, "b"), ordered.start(Own(1, "b")), counts)]
    sets = [c.levels for c, _ in plain.wider(Own(1, "b"), plain.start(Own(1, "b")), counts)]

    assert sorted(runs) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]
    assert sets[:3] == [(1, 2), (1, 3), (0, 1)]


@given(
    n_features=st.integers(1, 4),
    n_rows=st.integers(1, 30),
    seed=st.integers(0, 1000),
)
def test_crowds_are_counted_as_by_hand(n_features, n_rows, seed):
    chance = np.random.default_rng(seed)
    codes = chance.integers(0, 4, (n_features, n_rows)).astype(np.int32)
    inside = [chance.random(4) < 0.5 for _ in range(n_features)]
    crowd = Crowd.of(codes, [4] * n_features)

    misses = [[not inside[at][codes[at, row]] for at in range(n_features)] for row in range(n_rows)]
    assert crowd.count(inside) == sum(not any(row) for row in misses)
    for level, number in enumerate(sorted({sum(row) for row in misses} - {0})):
        counts, enough = crowd.gains(inside, level)
        assert enough == (number == 1)
        for at in range(n_features):
            near = [row for row in range(n_rows) if sum(misses[row]) == number and misses[row][at]]
            assert counts[at].tolist() == [sum(codes[at, r] == c for r in near) for c in range(4)]
    others = [row for row in range(n_rows) if not any(misses[row][1:])]
    by_code = [sum(codes[0, row] == code for row in others) for code in range(4)]
    assert crowd.by_code(inside, 0).tolist() == by_code
