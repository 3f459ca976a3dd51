"""Many rows for one server: requests in flight, a rate, and a server that has had enough."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from counting_server import HOLD, CountingServer
from loans import loans, merit
from mcce import MCCE, PredictorError, TimeLimitError
from mcce.predictors import Remote
from mcce.predictors.transport import PART, SLACK, UNUSED_SHARE, RateLimiter

X = pd.DataFrame({"x": np.arange(60) / 64})
RATES = st.floats(0.2, 5000.0) | st.integers(1, 30)
# Seconds for what must happen soon, on however busy a machine.
PATIENCE = 120


def double(rows):
    return [2 * row["x"] for row in rows]


def by_merit(rows):
    frame = pd.DataFrame(rows)
    return merit(frame.assign(salary=frame["salary"].astype(float))).tolist()


def remote(server, **settings):
    return Remote(server.url, **{"backoff": 0.0, "timeout": PATIENCE} | settings)


@pytest.mark.parametrize("in_flight", [None, 1, 3, 7])
def test_predictions_do_not_depend_on_how_they_are_sent(in_flight):
    later = threading.Semaphore(0)

    def first_ones_last(number):
        # The first request of three is answered after the second one came, if both are under way.
        if number % 3 == 0 and in_flight not in (None, 1):
            later.acquire(timeout=0.2)
        elif number % 3 == 1:
            later.release()
        return 200

    for batch_size in (7, 60, 1000):
        with CountingServer(double, first_ones_last) as server:
            predicted = remote(server, in_flight=in_flight, batch_size=batch_size).predict(X)
        assert predicted.tolist() == (2 * X["x"]).tolist()


@pytest.mark.parametrize("settings", [{"in_flight": 3}, {"rows_per_second": 5000.0}])
def test_answers_are_those_of_the_function_behind_the_server(settings):
    frame = loans(gaps=True)
    people = frame[merit(frame) < 0.5].head(8)
    given = {"immutable": ["sex"], "search": "balanced", "n_samples": 200, "random_state": 0}
    expected = MCCE(merit, (0.5, 9.0), **given).fit(frame).explain(people)

    with CountingServer(by_merit) as server:
        predictor = remote(server, batch_size=50, **settings)
        result = MCCE(predictor, (0.5, 9.0), **given).fit(frame).explain(people)

    pd.testing.assert_frame_equal(result.frame, expected.frame)
    pd.testing.assert_frame_equal(result.measures, expected.measures)


def test_threads_of_a_search_call_a_remote_only_within_limits():
    assert Remote("http://127.0.0.1/", in_flight=2).thread_safe
    assert Remote("http://127.0.0.1/", rows_per_second=200).thread_safe
    assert not Remote("http://127.0.0.1/").thread_safe


def test_as_many_requests_are_in_flight_as_allowed_and_no_more():
    together = threading.Barrier(3)
    with CountingServer(double, lambda _: together.wait(PATIENCE) * 0 + 200) as server:
        remote(server, in_flight=3, batch_size=5).predict(X)

    assert max(server.at_a_time) == 3
    assert len(server.at_a_time) == 12


def test_threads_and_copies_share_the_requests_in_flight():
    third = threading.Event()

    def wait_for_a_third(number):
        # It cannot come while two are inside, so the wait is in vain.
        if number < 2:
            third.wait(0.5)
        else:
            third.set()
        return 200

    with CountingServer(double, wait_for_a_third) as server:
        predictor = remote(server, in_flight=2, batch_size=20)
        with ThreadPoolExecutor(4) as threads:
            calls = [threads.submit(copy.deepcopy(predictor).predict, X) for _ in range(4)]
            predicted = [call.result().tolist() for call in calls]

    assert predicted == [(2 * X["x"]).tolist()] * 4
    assert max(server.at_a_time) <= 2


@pytest.mark.parametrize("status", [429, 503, None])
def test_a_server_that_refuses_most_requests_gets_them_all_in_the_end(status):
    refused = np.random.default_rng(0).random(10_000) < 0.6

    with CountingServer(double, lambda number: status if refused[number] else 200) as server:
        predicted = remote(server, in_flight=4, batch_size=2, retries=50).predict(X)

    assert predicted.tolist() == (2 * X["x"]).tolist()
    assert len(server.arrivals) > 45


def test_after_a_failure_one_request_at_a_time_is_sent_until_one_succeeds():
    with CountingServer(double, lambda number: 503 if number < 8 else 200) as server:
        remote(server, in_flight=4, batch_size=5, retries=8).predict(X)

    # Those that were under way already may have failed together.
    assert max(server.at_a_time[4:9]) == 1


def test_a_refusal_ends_all_requests():
    inside = threading.Event()

    def refuse_the_first_row(number):
        if server.rows[number][0]["x"] == 0:
            assert inside.wait(PATIENCE)
            return 400
        inside.set()
        return HOLD

    with CountingServer(double, refuse_the_first_row) as server:
        with pytest.raises(PredictorError, match="responded with 400 Bad Request"):
            remote(server, in_flight=2, batch_size=1).predict(X)

        # The other one was kept waiting, and hangs up; nothing else was sent.
        assert server.hung_up.acquire(timeout=PATIENCE)
        assert len(server.arrivals) == 2


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs the signals of POSIX")
def test_ctrl_c_leaves_no_request_running():
    def hold(number):
        if number == 3:  # all that may be in flight are inside, and cannot end
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return HOLD

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with CountingServer(double, hold) as server:
            with pytest.raises(KeyboardInterrupt):
                remote(server, in_flight=4, batch_size=5).predict(X)

            assert all(server.hung_up.acquire(timeout=PATIENCE) for _ in range(4))
            assert len(server.arrivals) == 4
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    "settings", [{"in_flight": 4}, {"rows_per_second": 0.5}, {}], ids=["flight", "rate", "plain"]
)
def test_a_time_limit_ends_a_call_that_waits(settings):
    with CountingServer(by_merit, lambda _: HOLD) as server:
        explainer = MCCE(remote(server, **settings), (0.5, 9.0))
        with pytest.raises(TimeLimitError):
            explainer.fit(loans(), max_seconds=0.5)

        assert all(server.hung_up.acquire(timeout=PATIENCE) for _ in list(server.arrivals))


def test_a_remote_can_be_copied_cloned_and_pickled():
    with CountingServer(double) as server:
        predictor = remote(server, rows_per_second=1000, in_flight=2, headers={"Token": "x"})
        cloned = clone(MCCE(predictor, (0.5, 2.0))).predictor
        pickled = pickle.loads(pickle.dumps(predictor))
        predicted = [each.predict(X.head(3)).tolist() for each in (predictor, cloned, pickled)]

    assert predicted == [[0.0, 2 / 64, 4 / 64]] * 3
    assert (pickled.rows_per_second, pickled.in_flight) == (1000, 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_was_forked_while_a_request_was_out_has_limits_of_its_own():
    inside = threading.Event()

    def hold_the_first(number):
        inside.set()
        return HOLD if number == 0 else 200

    with CountingServer(double, hold_the_first) as server, ThreadPoolExecutor(1) as thread:
        predictor = remote(server, in_flight=1)
        waiting = thread.submit(predictor.predict, X)
        assert inside.wait(PATIENCE)
        child = os.fork()
        if child == 0:
            signal.alarm(PATIENCE)
            os._exit(predictor.predict(X).tolist() != (2 * X["x"]).tolist())
        _, status = os.waitpid(child, 0)
        server.released.set()
        predicted = waiting.result(PATIENCE).tolist()

    assert status == 0
    assert predicted == (2 * X["x"]).tolist()


def test_a_server_is_not_sent_rows_faster_than_allowed():
    with CountingServer(double) as server:
        started = time.monotonic()
        predicted = remote(server, rows_per_second=200).predict(X)

    assert predicted.tolist() == (2 * X["x"]).tolist()
    assert [n_rows for _, n_rows in server.arrivals] == [20, 20, 20]
    assert server.arrivals[-1][0] - started >= 0.2


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
    return RateLimiter(rows_per_second, in_flight, clock=clock, wait=clock.wait), clock


def send(limiter, clock, n_rows):
    with limiter.turn(n_rows):
        return clock.now


@st.composite
def runs(draw):
    """A rate, and requests that come after breaks, none with more rows than a full one."""
    rate = draw(RATES)
    full = RateLimiter(rate).n_rows(draw(st.integers(1, 2000)))
    breaks = st.floats(0.0, draw(st.sampled_from([1e-9, 0.05, 3.0])))
    return rate, draw(st.lists(st.tuples(breaks, st.integers(1, full)), max_size=60))


def window(rate):
    """Seconds in which rows are counted, and the most of them."""
    return (1.0, rate) if rate >= PART or rate == int(rate) else (PART / rate, PART)


@given(runs(), st.randoms())
def test_no_second_gets_more_than_the_rate_and_nobody_waits_longer_than_that_takes(run, chance):
    rate, requests = run
    limiter, clock = paced(rate)
    wanted, sent, n_rows = [], [], np.array([n for _, n in requests], dtype=int)
    for seconds, n in requests:
        clock.now += seconds
        wanted.append(clock.now)
        sent.append(send(limiter, clock, n))
    sent = np.array(sent)
    seconds, most = window(rate)
    span = seconds * (1 + SLACK)

    # However long requests travel, within the slack.
    arrived = sent + [chance.uniform(0.0, SLACK * seconds) for _ in sent]
    for at in range(sent.size):
        after = sent[at:] - sent[at]
        before = np.cumsum(n_rows[at:]) - n_rows[at:]
        assert (before <= rate * after + 1e-6 * rate).all()
        within = (arrived >= arrived[at]) & (arrived < arrived[at] + seconds - 1e-6)
        assert n_rows[within].sum() <= most
        # The first of the moments at which the request fits after all before it.
        times = np.sort([wanted[at], *sent[:at] + n_rows[:at] / rate, *sent[:at] + span])
        recent = [n_rows[:at][sent[:at] + span > time + 1e-9].sum() for time in times]
        spaced = [(sent[:at] + n_rows[:at] / rate <= time + 1e-9).all() for time in times]
        fits = (np.array(recent) + n_rows[at] <= most) & spaced
        assert sent[at] <= times[(times >= wanted[at]) & fits].min() + 1e-6


@given(RATES, st.integers(1, 2000), st.integers(1, 100))
def test_full_requests_take_hardly_longer_than_the_rate_allows(rate, most, n_requests):
    limiter, clock = paced(rate)
    n_rows = limiter.n_rows(most)
    started = clock.now

    for _ in range(n_requests):
        send(limiter, clock, n_rows)

    assert 1 <= n_rows <= most
    # A row that is not whole, and what full requests leave out.
    lost = 1 + UNUSED_SHARE + 1 / max(rate, PART) + 0.001
    assert clock.now - started <= (n_requests * n_rows / rate) * (1 + SLACK) * lost + 1e-6


@pytest.mark.parametrize("rate", [3, 3.5, 200])
def test_a_process_that_takes_over_waits_until_earlier_rows_count_no_more(rate):
    seconds, most = window(rate)
    limiter, clock = paced(rate)
    before = [send(limiter, clock, 1) for _ in range(int(most))]

    other = RateLimiter(rate, clock=clock, wait=clock.wait)
    other.hold_back()

    assert send(other, clock, 1) - before[-1] >= seconds * (1 + SLACK) - 1e-9


def must_wait(limiter, clock):
    """Whether a request cannot go out at once."""

    class WaitingError(Exception):
        pass

    def refuse(*_):
        raise WaitingError

    limiter._wait = refuse
    try:
        with limiter.turn(1):
            return False
    except WaitingError:
        return True
    finally:
        limiter._wait = clock.wait


def test_a_failure_holds_back_everybody_and_then_all_but_one():
    limiter, clock = paced(in_flight=4)
    with limiter.turn(1) as before, limiter.turn(1):
        limiter.pause(7.0)
        limiter.pause(2.0)
        limiter.resume(before)  # a request from before the failure says nothing
    failed = clock.now

    with limiter.turn(1) as n_failures:
        assert clock.now == pytest.approx(failed + 7)
        assert must_wait(limiter, clock)
        limiter.resume(n_failures)
        assert not must_wait(limiter, clock)


def test_a_request_that_failed_makes_room():
    limiter, clock = paced(in_flight=1)

    with pytest.raises(ValueError, match="no"), limiter.turn(1):
        raise ValueError("no")

    assert not must_wait(limiter, clock)
