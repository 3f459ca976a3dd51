"""Many rows for one server: requests in flight, a rate, and a server that has had enough."""

from __future__ import annotations

import _thread
import copy
import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from counting_server import CountingServer, most_rows
from loans import loans, merit
from mcce import MCCE, ParameterError, PredictorError, TimeLimitError
from mcce.predictors import Remote, make_decision
from mcce.predictors.pacing import Pace
from mcce.runtime.threads import map_ordered

X = pd.DataFrame({"x": np.arange(60) / 64})


def double(rows):
    return [2 * row["x"] for row in rows]


def by_merit(rows):
    frame = pd.DataFrame(rows)
    return merit(frame.assign(salary=frame["salary"].astype(float))).tolist()


def remote(server, **settings):
    return Remote(server.url, **{"backoff": 0.0, "timeout": 10.0} | settings)


@pytest.mark.parametrize("in_flight", [None, 1, 2, 7])
@pytest.mark.parametrize("batch_size", [1, 7, 60, 1000])
def test_predictions_do_not_depend_on_how_they_are_sent(in_flight, batch_size):
    # Later requests are answered sooner.
    with CountingServer(double, lambda number: time.sleep(0.02 * (number % 3 == 1)) or 200) as it:
        predicted = remote(it, in_flight=in_flight, batch_size=batch_size).predict(X)

    assert predicted.tolist() == (2 * X["x"]).tolist()


@pytest.mark.parametrize("settings", [{"in_flight": 3}, {"rows_per_second": 5000.0}])
@pytest.mark.parametrize("search", ["paper", "balanced"])
def test_answers_are_those_of_the_function_behind_the_server(settings, search):
    frame = loans(gaps=True)
    people = frame[merit(frame) < 0.5].head(12)
    given = {"immutable": ["sex"], "search": search, "n_samples": 200, "random_state": 0}
    expected = MCCE(merit, (0.5, 9.0), **given).fit(frame).explain(people)

    with CountingServer(by_merit) as server:
        predictor = remote(server, batch_size=50, **settings)
        result = MCCE(predictor, (0.5, 9.0), **given).fit(frame).explain(people)

    pd.testing.assert_frame_equal(result.frame, expected.frame)
    pd.testing.assert_frame_equal(result.measures, expected.measures)


@pytest.mark.parametrize("safe", [True, False])
def test_threads_of_a_search_call_only_a_predictor_that_is_safe(safe):
    class Threaded:
        thread_safe = safe

        def __call__(self, rows):
            return np.full(len(rows), float(threading.get_ident()))

    decision = make_decision(Threaded(), (0.0, np.inf))
    callers = [
        scored.score[0] for scored in map_ordered(lambda _: decision.score(X), range(4), n_jobs=2)
    ]

    assert (float(threading.get_ident()) in callers) is not safe


def test_threads_of_a_search_call_a_remote_only_within_limits():
    assert Remote("http://127.0.0.1/", in_flight=2).thread_safe
    assert Remote("http://127.0.0.1/", rows_per_second=200).thread_safe
    assert not Remote("http://127.0.0.1/").thread_safe


def test_as_many_requests_are_in_flight_as_allowed_and_no_more():
    together = threading.Barrier(3)
    with CountingServer(double, lambda _: together.wait(10) * 0 + 200) as server:
        remote(server, in_flight=3, batch_size=5).predict(X)

    assert max(server.at_a_time) == 3
    assert len(server.at_a_time) == 12


def test_threads_and_copies_share_the_requests_in_flight():
    with CountingServer(double, lambda _: time.sleep(0.01) or 200) as server:
        predictor = remote(server, in_flight=2, batch_size=5)
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
    with CountingServer(double, lambda number: 503 if number <= 8 else 200) as server:
        remote(server, in_flight=4, batch_size=5, retries=8).predict(X)

    # Those that were under way already may have failed together.
    assert max(server.at_a_time[4:9]) == 1


def test_a_pause_holds_back_requests_of_other_threads():
    with CountingServer(double, lambda number: 503 if number == 1 else 200) as server:
        predictor = remote(server, backoff=0.3)
        first = threading.Thread(target=predictor.predict, args=[X.head(1)])
        first.start()
        while not predictor._pace._failing:
            time.sleep(0.001)
        predictor.predict(X.head(1))
        first.join()

    assert server.arrivals[1][0] - server.arrivals[0][0] >= 0.29


@pytest.fixture
def before():
    """Threads of pools that other tests have left."""
    return workers()


def test_a_refusal_ends_all_requests(before):
    with CountingServer(double, lambda number: 400 if number == 2 else 200) as server:
        with pytest.raises(PredictorError, match="responded with 400 Bad Request"):
            remote(server, in_flight=2, batch_size=1).predict(X)
        n_sent = len(server.arrivals)
        time.sleep(0.05)

    assert len(server.arrivals) == n_sent < 10
    assert not workers() - before


def test_ctrl_c_leaves_no_request_running(before):
    released = threading.Event()
    with CountingServer(double, lambda _: released.wait(20) * 0 + 200) as server:
        threading.Timer(0.3, _thread.interrupt_main).start()
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            remote(server, in_flight=4, batch_size=5, timeout=20).predict(X)
        seconds = time.monotonic() - started
        released.set()

    assert seconds < 5
    assert len(server.arrivals) == 4
    assert not workers() - before


@pytest.mark.parametrize("settings", [{"in_flight": 4}, {"rows_per_second": 0.5}, {}])
def test_a_time_limit_ends_a_call_that_waits(settings, before):
    released = threading.Event()
    frame = loans()
    with CountingServer(by_merit, lambda _: released.wait(20) * 0 + 200) as server:
        explainer = MCCE(remote(server, timeout=20, **settings), (0.5, 9.0))
        started = time.monotonic()
        with pytest.raises(TimeLimitError):
            explainer.fit(frame, max_seconds=0.2)
        seconds = time.monotonic() - started
        released.set()

    assert seconds < 5
    assert not workers() - before


def test_a_remote_can_be_copied_cloned_and_pickled():
    with CountingServer(double) as server:
        predictor = remote(server, rows_per_second=1000, in_flight=2, headers={"Token": "x"})
        cloned = clone(MCCE(predictor, (0.5, 2.0))).predictor
        pickled = pickle.loads(pickle.dumps(predictor))
        predicted = [each.predict(X.head(3)).tolist() for each in (predictor, cloned, pickled)]

    assert predicted == [[0.0, 2 / 64, 4 / 64]] * 3
    assert cloned._pace is predictor._pace
    assert pickled._pace is not predictor._pace
    assert (pickled.rows_per_second, pickled.in_flight) == (1000, 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_was_forked_in_the_middle_of_a_turn_has_its_own():
    with CountingServer(double) as server:
        predictor = remote(server, in_flight=1)
        with predictor._pace.turn(1), predictor._pace._changed:
            child = os.fork()
            if child == 0:
                predicted = predictor.predict(X)
                os._exit(predicted.tolist() != (2 * X["x"]).tolist())
        _, status = os.waitpid(child, 0)

    assert status == 0


@pytest.mark.slow
def test_a_server_is_never_sent_more_rows_a_second_than_allowed(monkeypatch):
    frame, sent, note = pd.DataFrame({"x": np.arange(1000) / 1024}), [], Pace._note

    def noting(pace, n_rows):
        running = note(pace, n_rows)
        sent.append(pace._sent[-1])
        return running

    monkeypatch.setattr(Pace, "_note", noting)
    with CountingServer(double, lambda _: time.sleep(0.1) or 200) as server:
        predictor = remote(server, rows_per_second=200)
        with ThreadPoolExecutor(2) as threads:
            calls = [threads.submit(predictor.predict, frame[at::2]) for at in (0, 1)]
            predicted = [call.result().tolist() for call in calls]

    assert predicted == [(2 * frame["x"][at::2]).tolist() for at in (0, 1)]
    assert most_rows(sent, 1.04) <= 200
    # Requests that travel longer than others come closer together, on a busy machine.
    travelled = np.sort([at for at, _ in server.arrivals]) - [at for at, _ in sent]
    assert most_rows(server.arrivals, 1.04 - np.ptp(travelled)) <= 200
    assert 4.9 < sent[-1][0] - sent[0][0] < 7.0


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"in_flight": 0}, "in_flight must be a whole number of at least 1, got 0"),
        ({"in_flight": 1.5}, "in_flight must be a whole number"),
        ({"rows_per_second": 0}, "rows_per_second must be a finite number of at least 0.001"),
        ({"rows_per_second": float("inf")}, "rows_per_second must be a finite number"),
        ({"rows_per_second": True}, "rows_per_second must be a finite number"),
    ],
)
def test_limits_that_cannot_work_are_an_error(settings, says):
    with pytest.raises(ParameterError, match=says):
        Remote("http://127.0.0.1/", **settings)


def workers():
    """Threads of pools that still run."""
    return {thread for thread in threading.enumerate() if "ThreadPool" in thread.name}
