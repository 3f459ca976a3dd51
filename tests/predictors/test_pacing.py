"""When requests may go out, on a clock that only waiting moves."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.kernels import CancelledError, cancellable
from mcce.predictors.pacing import LEFT_OUT, PART, SLACK, Pace

RATES = st.floats(0.2, 5000.0) | st.integers(1, 30)


class Clock:
    """Moves when somebody waits."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def wait(self, _, seconds):
        self.now = max(self.now + seconds, np.nextafter(self.now, np.inf))


def paced(rows_per_second=None, in_flight=None):
    clock = Clock()
    return Pace(rows_per_second, in_flight, clock=clock, wait=clock.wait), clock


def send(pace, clock, n_rows):
    with pace.turn(n_rows):
        return clock.now


@st.composite
def runs(draw):
    """A rate, and requests that come after breaks, none with more rows than a full one."""
    rate = draw(RATES)
    full = Pace(rate).n_rows(draw(st.integers(1, 2000)))
    breaks = st.floats(0.0, draw(st.sampled_from([1e-9, 0.05, 3.0])))
    return rate, draw(st.lists(st.tuples(breaks, st.integers(1, full)), max_size=80))


def window(rate):
    """Seconds in which rows are counted, and the most of them."""
    return (1.0, rate) if rate >= PART or rate == int(rate) else (PART / rate, PART)


def sent_in(run):
    rate, requests = run
    pace, clock = paced(rate)
    wanted, sent = [], []
    for seconds, n_rows in requests:
        clock.now += seconds
        wanted.append(clock.now)
        sent.append(send(pace, clock, n_rows))
    return rate, np.array(wanted), np.array(sent), np.array([n for _, n in requests], dtype=int)


@given(runs())
def test_no_span_gets_more_than_the_rate_and_one_request(run):
    rate, _, sent, n_rows = sent_in(run)

    for first in range(sent.size):
        seconds = sent[first:] - sent[first]
        before = np.cumsum(n_rows[first:]) - n_rows[first:]
        assert (before <= rate * seconds + 1e-6 * rate).all()


@given(runs(), st.randoms())
def test_no_second_gets_more_than_the_rate_however_long_requests_travel(run, chance):
    rate, _, sent, n_rows = sent_in(run)
    seconds, most = window(rate)
    arrived = sent + [chance.uniform(0.0, SLACK * seconds) for _ in sent]

    for start in arrived:
        within = (arrived >= start) & (arrived < start + seconds - 1e-6)
        assert n_rows[within].sum() <= most


@given(runs())
def test_nobody_waits_longer_than_the_rate_takes(run):
    rate, wanted, sent, n_rows = sent_in(run)
    seconds, most = window(rate)
    span = seconds * (1 + SLACK)

    for at in range(sent.size):
        # The first of the moments at which the request fits after all before it.
        times = np.sort([wanted[at], *sent[:at] + n_rows[:at] / rate, *sent[:at] + span])
        recent = [n_rows[:at][sent[:at] + span > time + 1e-9].sum() for time in times]
        spaced = [(sent[:at] + n_rows[:at] / rate <= time + 1e-9).all() for time in times]
        fits = (np.array(recent) + n_rows[at] <= most) & spaced
        assert sent[at] <= times[(times >= wanted[at]) & fits].min() + 1e-6


@given(RATES, st.integers(1, 2000), st.integers(1, 300))
def test_full_requests_take_hardly_longer_than_the_rate_allows(rate, most, n_requests):
    pace, clock = paced(rate)
    n_rows = pace.n_rows(most)
    started = clock.now

    for _ in range(n_requests):
        send(pace, clock, n_rows)

    assert 1 <= n_rows <= most
    # A row that is not whole, and what full requests leave out.
    lost = 1 + LEFT_OUT + 1 / max(rate, PART) + 0.001
    assert clock.now - started <= (n_requests * n_rows / rate) * (1 + SLACK) * lost + 1e-6


@pytest.mark.parametrize("rate", [3, 3.5, 200])
def test_a_process_that_takes_over_waits_until_earlier_rows_count_no_more(rate):
    seconds, most = window(rate)
    pace, clock = paced(rate)
    before = [send(pace, clock, 1) for _ in range(int(most))]

    other = Pace(rate, clock=clock, wait=clock.wait)
    other.hold_back()

    assert send(other, clock, 1) - before[-1] >= seconds * (1 + SLACK) - 1e-9


def test_without_a_rate_nothing_is_held_back():
    pace, _ = paced(in_flight=1)

    pace.hold_back()

    assert may_start(pace)


def test_two_hundred_rows_a_second_go_out_twenty_at_a_time():
    pace, clock = paced(200)
    started = clock.now

    sent = [send(pace, clock, 20) - started for _ in range(22)]

    assert pace.n_rows(1000) == 20
    assert np.allclose(sent[:10], np.arange(10) * 0.1)
    assert np.allclose(sent[10:20], 1.05 + np.arange(10) * 0.1)
    assert np.allclose(sent[20:], 2.1 + np.arange(2) * 0.1)


@pytest.mark.parametrize(
    ("rate", "most", "n_rows"),
    [(200, 1000, 20), (200, 7, 7), (5, 1000, 1), (38, 1000, 2), (997, 1000, 99), (1e6, 1000, 1000)],
)
def test_full_requests_fill_a_second(rate, most, n_rows):
    assert Pace(rate).n_rows(most) == n_rows


def test_a_failure_holds_back_everybody_and_then_all_but_one():
    pace, clock = paced(in_flight=4)
    with pace.turn(1), pace.turn(1):
        pace.pause(7.0)
    failed = clock.now

    with pace.turn(1) as n_failures:
        assert clock.now == pytest.approx(failed + 7)
        assert not may_start(pace)
        pace.go_on(n_failures)
        assert may_start(pace)


def test_a_request_from_before_the_failure_does_not_end_the_caution():
    pace, clock = paced(in_flight=4)
    with pace.turn(1) as before:
        pace.pause(7.0)
        pace.go_on(before)
    clock.now += 7.0

    with pace.turn(1):
        assert not may_start(pace)
        pace.go_on(before)
        assert not may_start(pace)


def test_the_longest_pause_counts():
    pace, clock = paced()
    started = clock.now
    pace.pause(7.0)
    pace.pause(2.0)

    assert send(pace, clock, 1) == pytest.approx(started + 7)


def test_no_more_are_in_flight_than_allowed():
    pace, _ = paced(in_flight=2)

    with pace.turn(1):
        assert may_start(pace)
        with pace.turn(1):
            assert not may_start(pace)
        assert may_start(pace)


def test_a_request_that_failed_makes_room():
    pace, _ = paced(in_flight=1)

    with pytest.raises(ValueError, match="no"), pace.turn(1):
        raise ValueError("no")

    assert may_start(pace)


def test_a_wait_can_be_cancelled():
    pace = Pace(rows_per_second=0.01)
    with pace.turn(1):
        pass

    with cancellable() as cancellation:
        threading.Timer(0.05, cancellation.cancel).start()
        with pytest.raises(CancelledError), pace.turn(1):
            pass


def test_copies_share_the_pace_and_pickles_have_their_own():
    pace = Pace(200.0, 3)

    assert copy.deepcopy({"pace": pace})["pace"] is pace
    other = pickle.loads(pickle.dumps(pace))
    assert other is not pace
    assert (other.rows_per_second, other.in_flight) == (200.0, 3)


def may_start(pace):
    """Whether a request need not wait."""
    return pace._seconds_left(1) <= 0
