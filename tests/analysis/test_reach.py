"""How far something holds: equal to trying every step, with few tests."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mcce.analysis.reach import find_reach


def search(lines, n_tests):
    """Reach and counts for lines of True and False with a start each, and what was tested."""
    tested = [[] for _ in lines]

    def test(start, step):
        for which, by in zip(start.tolist(), step.tolist(), strict=True):
            tested[which].append(by)
        pairs = zip(start.tolist(), step.tolist(), strict=True)
        held = np.array([lines[which][0][lines[which][1] + by] for which, by in pairs])
        return held, np.ones_like(held)

    farthest = np.array([[at for _, at in lines], [len(line) - 1 - at for line, at in lines]])
    reach, counted = find_reach(farthest, np.full(len(lines), n_tests), test)
    return reach.T.tolist(), counted.tolist(), tested


def everything_around(line, at):
    """How far the line is True in both directions."""
    low, high = at, at
    while low > 0 and line[low - 1]:
        low -= 1
    while high < len(line) - 1 and line[high + 1]:
        high += 1
    return [at - low, high - at]


@st.composite
def lines(draw, max_size=40):
    line = draw(st.lists(st.booleans(), min_size=1, max_size=max_size))
    at = draw(st.integers(0, len(line) - 1))
    return [*line[:at], True, *line[at + 1 :]], at


@st.composite
def intervals(draw, max_size=2000):
    n = draw(st.integers(1, max_size))
    low, at, high = sorted(draw(st.integers(0, n - 1)) for _ in range(3))
    return [low <= place <= high for place in range(n)], at


@given(st.lists(lines(max_size=19), min_size=1, max_size=5))
def test_with_a_test_for_every_step_the_ends_are_those_of_trying_everything(some):
    reach, _, _ = search(some, 19)

    assert reach == [everything_around(*one) for one in some]


@given(st.lists(lines(), min_size=1, max_size=5), st.integers(0, 25))
def test_ends_were_tested_and_held_and_so_did_every_tested_step_before(some, n_tests):
    reach, counted, tested = search(some, n_tests)

    for (line, at), (below, above), count, steps in zip(some, reach, counted, tested, strict=True):
        assert len(steps) == count <= n_tests
        assert len(set(steps)) == len(steps)
        assert {-below, above} <= {0, *steps}
        assert all(line[at + by] for by in steps if -below <= by <= above)


@given(intervals(), st.integers(2, 19))
def test_what_holds_in_an_interval_is_never_exceeded_and_almost_found(one, n_tests):
    ((below, above),) = search([one], n_tests)[0]
    most_below, most_above = everything_around(*one)

    assert below <= most_below
    assert above <= most_above
    if n_tests == 19:
        # The last of 19 tests halve what is left of the ends.
        assert most_below - below <= len(one[0]) / 8
        assert most_above - above <= len(one[0]) / 8


@given(st.lists(lines(), min_size=2, max_size=5), st.integers(1, 12))
def test_what_else_is_searched_for_changes_nothing(some, n_tests):
    together = search(some, n_tests)

    alone = [search([one], n_tests) for one in some]

    assert together[0] == [reach[0] for reach, _, _ in alone]
    assert together[2] == [tested[0] for _, _, tested in alone]


def test_tests_that_do_not_count_are_free():
    def test(start, step):
        return step < 50, np.zeros(step.size, dtype=bool)

    reach, counted = find_reach(np.array([[30], [80]]), np.array([1]), test)

    assert reach.T.tolist() == [[30, 49]]
    assert counted.tolist() == [0]
