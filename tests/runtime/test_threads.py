"""Threads in order, and a progress bar only where somebody can see it."""

from __future__ import annotations

import contextlib
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, MissingExtraError, PredictorError
from mcce.kernels import CancelledError
from mcce.runtime import threads
from mcce.runtime.threads import in_caller, is_caller, map_ordered, one_at_a_time
from mcce.search import sampling


def test_results_come_in_the_order_of_the_items():
    def slow_first(item):
        time.sleep(0.02 if item == 0 else 0.0)
        return item * item

    assert list(map_ordered(slow_first, range(6), 3)) == [0, 1, 4, 9, 16, 25]


def test_no_more_items_are_taken_than_threads_can_hold():
    taken = []

    def items():
        for item in range(20):
            taken.append(item)
            yield item

    results = map_ordered(lambda item: item, items(), 2)
    next(results)

    assert len(taken) <= 2
    results.close()


def test_an_error_in_a_thread_reaches_the_caller():
    def fail(item):
        raise RuntimeError(f"item {item}")

    with pytest.raises(RuntimeError, match="item 0"):
        list(map_ordered(fail, range(4), 2))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_task_that_uses_up_an_iterator_does_not_end_the_results(n_jobs):
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(map_ordered(lambda _: next(iter([])), range(4), n_jobs))


def test_a_task_has_functions_called_where_its_result_is_taken():
    def task(item):
        return item, is_caller(), in_caller(lambda: (item, threading.get_ident(), is_caller()))

    for n_jobs in (1, 3):
        for item, own, called in map_ordered(task, range(10), n_jobs):
            assert own == (n_jobs == 1)
            assert called == (item, threading.get_ident(), True)


def test_tasks_within_tasks_have_functions_called_by_the_first_caller():
    def task(_):
        return set(map_ordered(lambda _: in_caller(threading.get_ident), range(4), 2))

    assert list(map_ordered(task, range(3), 2)) == [{threading.get_ident()}] * 3


def test_an_error_of_a_called_function_reaches_its_task_and_then_the_caller():
    caught = []

    def task(item):
        try:
            in_caller(lambda: 1 // item)
        except ZeroDivisionError as error:
            caught.append(error)
            raise

    with pytest.raises(ZeroDivisionError):
        list(map_ordered(task, range(4), 2))
    assert len(caught) == 1


@pytest.mark.parametrize("ends", ["interrupt", "close"])
def test_nobody_waits_for_a_call_once_results_are_not_taken(ends):
    ended, before = [], set(threading.enumerate())

    def interrupt():
        raise KeyboardInterrupt

    def task(item):
        try:
            return in_caller(interrupt if ends == "interrupt" and item == 2 else lambda: item)
        except CancelledError:
            ended.append(item)
            raise

    results = map_ordered(task, range(50), 4)
    if ends == "interrupt":
        with pytest.raises(KeyboardInterrupt):
            list(results)
        assert 2 in ended
    else:
        next(results)
        results.close()
    left = set(threading.enumerate()) - before
    assert not any(one.name.startswith("ThreadPool") for one in left)


def test_nobody_waits_for_a_call_that_an_interrupt_took_from_the_queue(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(threads._Calls, "_serve", staticmethod(interrupt))

    with pytest.raises(KeyboardInterrupt):
        list(map_ordered(lambda item: in_caller(lambda: item), range(8), 4))


def test_blocks_of_a_led_search_in_threads_change_nothing(bank, monkeypatch):
    monkeypatch.setattr(sampling, "MIN_DRAWS", 300)
    idents, outcomes = set(), []

    def score(frame):
        idents.add(threading.get_ident())
        return frame["salary"] - 0.01 * frame["salary"] * (frame["age"] % 7)

    people = bank[score(bank) < 50_000]
    for n_jobs in (1, 4):
        explainer = MCCE(score, (70_000, 1e9), immutable=["age"], n_jobs=n_jobs, random_state=0)
        reports = []
        explainer.set_params(search="balanced").fit(bank)
        outcomes.append(explainer.explain(people, callback=lambda p, to=reports: to.append(p)))
        assert idents == {threading.get_ident()}
        assert [p.n_evaluated for p in reports] == sorted(p.n_evaluated for p in reports)

    one, four = outcomes
    assert one.n_evaluated == four.n_evaluated > 0
    pd.testing.assert_frame_equal(one.frame, four.frame)
    pd.testing.assert_frame_equal(one.measures, four.measures)
    assert one.missing.equals(four.missing)


def test_the_predictor_is_called_from_the_caller_s_thread_only(bank):
    idents = set()

    def score(frame):
        idents.add(threading.get_ident())
        return frame["salary"]

    explainer = MCCE(score, (70_000, 1e9), immutable=["age"], n_jobs=4, memory=1.0, random_state=0)
    explainer.fit(bank).explain(bank[bank["salary"] < 50_000])

    assert idents == {threading.get_ident()}


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_predictor_that_fails_is_called_from_the_caller_s_thread_only(bank, monkeypatch, failure):
    monkeypatch.setattr(sampling, "MIN_DRAWS", 300)
    calls, fails = [], []

    def score(frame):
        calls.append(threading.get_ident())
        if fails:
            raise failure
        return frame["salary"]

    # Of strings it is tried whether the predictor takes them as categories.
    bank = bank.assign(town=np.where(bank["age"] % 2, "east", "west").astype(object))
    explainer = MCCE(score, (70_000, 1e9), immutable=["age"], n_jobs=4, random_state=0)
    explainer.set_params(search="balanced").fit(bank)

    with pytest.raises((PredictorError, KeyboardInterrupt)):
        explainer.explain(bank[bank["salary"] < 50_000], callback=fails.append)
    assert set(calls) == {threading.get_ident()}


def explain_some(bank, verbose):
    explainer = MCCE(lambda f: f["salary"], (70_000, 1e9), random_state=0, verbose=verbose)
    return explainer.fit(bank).explain(bank[bank["salary"] < 50_000])


def test_a_bar_is_drawn_on_a_terminal_and_nowhere_else(bank, capsys, monkeypatch):
    pytest.importorskip("tqdm")

    explain_some(bank, verbose=True)
    silent = capsys.readouterr()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    explain_some(bank, verbose=False)
    unasked = capsys.readouterr()
    explain_some(bank, verbose=True)
    drawn = capsys.readouterr()

    assert silent.err == silent.out == unasked.err == unasked.out == drawn.out == ""
    assert "model" in drawn.err
    assert "explain" in drawn.err


def test_a_bar_without_its_library_names_the_extra(bank, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "tqdm", None)

    with pytest.raises(MissingExtraError, match=r"pip install \"mcce\[progress\]\""):
        explain_some(bank, verbose=True)


def test_interrupting_changes_nothing_and_the_explainer_goes_on(bank):
    people = bank[bank["salary"] < 50_000]
    explainer = MCCE(lambda f: f["salary"], (70_000, 1e9), random_state=0).fit(bank)
    expected = explainer.explain(people).frame

    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explainer.explain(people, callback=interrupt)

    pd.testing.assert_frame_equal(explainer.explain(people).frame, expected)


def most_inside(n_threads, context):
    """The most threads that were in a function at the same time."""
    inside, most, start = [], [], threading.Barrier(n_threads)

    def function():
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.01)
        inside.pop()

    def work():
        with context():
            start.wait()
            in_caller(lambda: in_caller(function))

    running = [threading.Thread(target=work) for _ in range(n_threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert len(most) == n_threads
    return max(most)


def test_threads_take_turns_where_they_are_told_to():
    assert most_inside(4, one_at_a_time) == 1
    assert most_inside(4, contextlib.nullcontext) > 1


def test_turns_are_taken_by_the_thread_that_takes_results():
    with one_at_a_time():
        called = list(map_ordered(lambda _: in_caller(threading.get_ident), range(4), 2))

    assert set(called) == {threading.get_ident()}
