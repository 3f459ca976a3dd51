"""Ctrl-C and time limits end the work at once, and what was fitted before stands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, McceError, ParameterError, Search, TimeLimitError
from mcce.kernels import check_cancellation
from mcce.plausibility.neighbours import KnnDistance
from mcce.runtime.limits import time_limit

# Seconds until a child process that does not end is killed; far more than any of them takes.
KILLED_AFTER = 300
SALARY = {"desired": (70_000, 1e9), "immutable": ["age"], "random_state": 0}
needs_timers = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="needs the interval timers of POSIX"
)

# A tree that takes seconds to grow.
LARGE_TREE = """
import os, signal, threading
import numpy as np
from mcce.runtime.threads import map_ordered
from mcce.kernels import Columns, Growth, Numbers, fixed_point, grow_tree

chance, n_rows = np.random.default_rng(0), 400_000
codes = chance.integers(0, 200_000, (6, n_rows), dtype=np.int32)
yes = np.ones(6, dtype=bool)
columns = Columns(codes, ~yes, yes, np.full(6, 200_000))
response = Numbers(fixed_point(chance.normal(size=n_rows)))
columns.narrow

def grow_large_tree():
    return grow_tree(columns, np.arange(6), response, codes[0], Growth(min_samples_leaf=1))
"""

# A signal is handled again and again during one call of a kernel; one that did not look for signals
# would let it be handled once, after the call.
ONE_KERNEL = """
n_handled = 0

def handle(*_):
    global n_handled
    n_handled += 1
    if n_handled == 4:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
try:
    grow_large_tree()
except KeyboardInterrupt:
    print("interrupted")
"""

# Both trees that are growing when the interrupt comes are abandoned, and none is begun after it.
# A child of a shell's background job would ignore the signal.
TWO_THREADS = """
signal.signal(signal.SIGINT, signal.default_int_handler)
begun, grown = [], []
both = threading.Barrier(2)

def grow(item):
    begun.append(item)
    if both.wait() == 0:
        os.kill(os.getpid(), signal.SIGINT)
    grown.append(grow_large_tree())

try:
    list(map_ordered(grow, range(20), 2))
except KeyboardInterrupt:
    for thread in set(threading.enumerate()) - {threading.current_thread()}:
        thread.join()
    print("interrupted", len(begun), len(grown))
"""

# In a process of its own, as an interrupt may come at any moment. The refit that one comes too late
# for is complete; it is not counted.
REFITS = """
import signal, sys
import numpy as np
import pandas as pd
from mcce import MCCE

chance = np.random.default_rng(7)
age = chance.integers(20, 70, 1000)
salary = 4000 * (7 + age // 8 + chance.integers(0, 12, 1000))
bank = pd.DataFrame({"age": age, "sex": chance.choice(["f", "m"], 1000), "salary": salary})
people, other = bank[bank["salary"] < 40_000].head(5), bank.assign(salary=bank["salary"] + 7)
explainer = MCCE(
    lambda frame: frame["salary"],
    (50_000, 1e9),
    immutable=["age"],
    random_state=0,
    n_samples=100,
    n_jobs=int(sys.argv[1]),
).fit(bank)
old, expected = explainer.fitted_, explainer.explain(people).frame
armed, n_stood = False, 0

def interrupt(*_):
    if armed:
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
while n_stood < 40:
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-3, 0.04))
        explainer.fit(other)
    except KeyboardInterrupt:
        pass
    except RuntimeError as error:
        # What a lock of Python's own raises that was interrupted while it let go.
        assert isinstance(error.__context__, KeyboardInterrupt)
    armed = False
    if explainer.fitted_ is old:
        n_stood += 1
        pd.testing.assert_frame_equal(explainer.explain(people).frame, expected)
    explainer.fitted_ = old
print("stood", n_stood)
"""


def output_of(script, *arguments):
    child = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=KILLED_AFTER,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1] / "src")},
    )
    assert not child.returncode, child.stderr
    return child.stdout.split()


@needs_timers
def test_signals_are_handled_while_a_tree_grows():
    assert output_of(LARGE_TREE + ONE_KERNEL) == ["interrupted"]


@needs_timers
def test_an_interrupt_leaves_no_thread_growing():
    assert output_of(LARGE_TREE + TWO_THREADS) == ["interrupted", "2", "0"]


@needs_timers
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_old_fit_stands_after_interrupted_refits(n_jobs):
    assert output_of(REFITS, n_jobs) == ["stood", "40"]


def salaries(frame):
    return frame["salary"]


def test_a_fit_that_takes_too_long_raises_and_the_old_one_stands(bank):
    explainer = MCCE(salaries, **SALARY).fit(bank)
    old = explainer.fitted_

    with pytest.raises(TimeLimitError, match=r"fit takes longer than max_seconds=1e-09"):
        explainer.fit(bank, max_seconds=1e-9)

    assert explainer.fitted_ is old
    assert issubclass(TimeLimitError, McceError)
    assert issubclass(TimeLimitError, TimeoutError)


def test_a_slow_predictor_counts_towards_the_time_limit_of_a_fit(bank):
    # The clock is not read by the test: the predictor ends only when the time is up.
    def score(frame):
        try:
            while True:
                check_cancellation()
        except TimeoutError:
            return frame["salary"]

    with pytest.raises(TimeLimitError):
        MCCE(score, **SALARY).fit(bank, max_seconds=0.2)


def test_a_limit_that_is_not_reached_changes_nothing(bank):
    people = bank[bank["salary"] < 50_000].head(5)

    free = MCCE(salaries, **SALARY).fit(bank)
    limited = MCCE(salaries, **SALARY, max_seconds=3600.0).fit(bank, max_seconds=3600)

    expected = free.explain(people).frame
    pd.testing.assert_frame_equal(limited.explain(people).frame, expected)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "1", True])
def test_a_time_limit_of_a_fit_that_is_none_is_refused(bank, seconds):
    with pytest.raises(ParameterError, match="max_seconds must be a number of seconds"):
        MCCE(salaries, **SALARY).fit(bank, max_seconds=seconds)


def test_an_error_within_a_time_limit_stays_what_it_is():
    with pytest.raises(ZeroDivisionError), time_limit("division", 3600):
        _ = 1 / 0


@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
@pytest.mark.parametrize("search", ["paper", "balanced", "fast", "exact"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_explaining_with_little_time_returns_what_was_found(bank, search, n_jobs):
    people = bank[bank["salary"] < 50_000]
    explainer = MCCE(salaries, **SALARY, search=search, n_jobs=n_jobs, memory=1.0).fit(bank)
    expected = explainer.explain(people)

    for seconds in np.geomspace(1e-6, 0.3, 12):
        result = explainer.set_params(max_seconds=float(seconds)).explain(people)

        assert len(result.missing) + len(np.unique(result.owner)) == len(people)
        assert result.missing["reason"].str.len().gt(0).all()
        if search == "paper" or not result.stopped:
            answered = np.isin(expected.owner, result.owner)
            pd.testing.assert_frame_equal(result.frame, expected.frame[answered])


@pytest.mark.parametrize("prefer", ["balanced", "sparsity", "knn_distance", "distance"])
def test_selecting_among_visited_rows_ends_with_the_time(bank, monkeypatch, prefer):
    people = bank[bank["salary"] < 50_000].head(20)
    search = Search.preset("balanced", prefer=prefer)
    explainer = MCCE(salaries, **SALARY, search=search).fit(bank)
    measure, calls = KnnDistance.__call__, []

    def measure_slowly(knn_distance, points):
        calls.append(len(points))
        killed = time.monotonic() + KILLED_AFTER
        while len(calls) == 1 and time.monotonic() < killed:
            check_cancellation()
        return measure(knn_distance, points)

    monkeypatch.setattr(KnnDistance, "__call__", measure_slowly)
    result = explainer.set_params(max_seconds=2.0).explain(people)

    assert result.stopped
    assert len(np.unique(result.owner)) == len(people)
    assert (result.frame["salary"] >= 70_000).all()
    assert calls[1:] == [len(people)]  # the measures of the answers
