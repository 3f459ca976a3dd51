"""One explainer, many threads and processes: answers are those of one fit, whole."""

from __future__ import annotations

import itertools
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import mcce
from bank import bank, score
from mcce import MCCE, PredictorError
from searches import slow

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")
# Seconds for what must happen soon, on however busy a machine.
PATIENCE = 120
PEOPLE = 15


@pytest.fixture(scope="module")
def tables():
    """Two training tables, and people."""
    return bank(150), bank(120, seed=5), bank(PEOPLE, seed=1)


def explainer(predictor=score, **settings):
    settings = {"immutable": ["sex"], "n_samples": 50, "random_state": 0} | settings
    return MCCE(predictor, (0.8, 10), **settings)


def answers(result):
    """Everything that was answered, to the bit."""
    cells = [result.frame[name].tolist() for name in result.frame]
    people = result.people[["status", "reason"]].to_numpy().tolist()
    return repr((cells, result.owner.tolist(), result.measures.to_numpy().tolist(), people))


@pytest.mark.parametrize("search", ["balanced", *slow("paper", "exact")])
def test_threads_that_explain_copy_and_save_during_refits_get_answers_of_one_fit(
    search, tables, tmp_path
):
    first, second, people = tables
    model = explainer(search=search)
    known = {answers(model.fit(table).explain(people)) for table in (second, first)}

    def saved(number):
        path = tmp_path / f"{number}.mcce"
        model.save(path)
        return mcce.load(path, score)

    def step(number):
        if number % 4 == 0:
            return answers(pickle.loads(pickle.dumps(model)).explain(people))
        if number % 4 == 1:
            return answers(saved(number).explain(people))
        return answers(model.explain(people))

    with ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(step, number) for number in range(12)]
        for table in itertools.cycle([second, first]):
            model.fit(table).set_params(n_jobs=1 + (table is first))
            if all(call.done() for call in calls):
                break

    assert {call.result() for call in calls} <= known
    assert answers(clone(model).fit(first).explain(people)) in known


@pytest.mark.parametrize("search", ["paper", "balanced"])
def test_whoever_is_being_explained_while_it_is_refitted_gets_the_old_answers(search, tables):
    first, second, people = tables
    inside, refitted, paused = threading.Event(), threading.Event(), []

    def pausing(frame):
        if paused:
            inside.set()
            assert refitted.wait(PATIENCE)
        return score(frame)

    model = explainer(pausing, search=search).fit(first)
    expected = answers(model.explain(people))
    with ThreadPoolExecutor(1) as thread:
        paused.append(True)
        call = thread.submit(model.explain, people)
        assert inside.wait(PATIENCE)
        paused.clear()
        model.fit(second)
        refitted.set()

        assert answers(call.result(PATIENCE)) == expected
    assert answers(model.explain(people)) != expected


@pytest.mark.parametrize("search", ["paper", "balanced"])
def test_a_predictor_that_refits_its_explainer_loses_nobody(search, tables):
    first, second, people = tables
    model, busy = None, []

    def refitting(frame):
        if model is not None and not busy:
            busy.append(True)
            model.fit(second)
            busy.clear()
        return score(frame)

    before = answers(explainer(search=search).fit(first).explain(people))
    fitted = explainer(refitting, search=search).fit(first)
    model = fitted

    assert answers(fitted.explain(people)) == before


@pytest.mark.parametrize("search", ["paper", "balanced"])
def test_the_predictor_is_called_from_the_caller_s_thread_only(search):
    train, people = bank(400), bank(60, seed=3)
    callers, fails, outcomes = set(), [], []

    def noting(frame):
        callers.add(threading.get_ident())
        if fails:
            raise fails[0]
        return score(frame)

    model = explainer(noting, search=search, memory=0.02)
    for n_jobs in (1, 4):
        reports = []
        result = model.set_params(n_jobs=n_jobs).fit(train).explain(people, callback=reports.append)
        outcomes.append(answers(result))
        assert [p.n_evaluated for p in reports] == sorted(p.n_evaluated for p in reports)
    fails.append(ValueError())
    with pytest.raises(PredictorError):
        model.explain(people)

    assert outcomes[0] == outcomes[1]
    assert callers == {threading.get_ident()}


class Safe:
    """A predictor that says that threads may call it."""

    thread_safe = True

    def __init__(self):
        self.callers = set()

    def __call__(self, frame):
        self.callers.add(threading.get_ident())
        return score(frame)


def test_a_predictor_that_is_safe_is_called_by_threads():
    safe, train, people = Safe(), bank(400), bank(60, seed=3)
    model = explainer(safe, search="balanced", n_jobs=2, memory=0.02).fit(train)
    plain = explainer(search="balanced").fit(train)

    assert answers(model.explain(people)) == answers(plain.explain(people))
    assert safe.callers - {threading.get_ident()}


PACKAGE = str(Path(mcce.__file__).parent)


class InterruptAt:
    """Ctrl-C at the n-th call of a function of mcce, whichever it is; counts them all."""

    def __init__(self, number=None):
        self.number, self.n_calls = number, 0

    def __call__(self, frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.n_calls += 1
            if self.n_calls == self.number:
                raise KeyboardInterrupt

    def __enter__(self):
        sys.setprofile(self)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_old_fit_stands_wherever_a_refit_or_an_explanation_is_interrupted(n_jobs, tables):
    first, second, people = tables
    model = explainer(search="balanced", n_jobs=n_jobs).fit(first)
    old, expected = model.fitted_, answers(model.explain(people))

    for name, call in (
        ("fit", lambda: model.fit(second)),
        ("explain", lambda: model.explain(people)),
    ):
        with InterruptAt() as counting:
            call()
        model.fitted_ = old
        # More calls than the first ones, which read parameters, and never the last.
        for number in np.linspace(1, 0.98 * counting.n_calls, 7).astype(int).tolist():
            with pytest.raises(KeyboardInterrupt), InterruptAt(number):
                call()
            assert model.fitted_ is old, f"{name} interrupted at call {number}"
            assert answers(model.explain(people)) == expected


@pytest.mark.parametrize("where", ["predictor", "callback"])
def test_an_interrupt_from_outside_code_leaves_the_explainer_as_it_was(where, tables):
    first, second, people = tables
    armed = []

    def interrupting(frame):
        if armed:
            raise KeyboardInterrupt
        return score(frame)

    def interrupt(progress):
        raise KeyboardInterrupt

    model = explainer(interrupting, n_jobs=2).fit(first)
    expected = answers(model.explain(people))

    if where == "predictor":
        armed.append(True)
        for call in (lambda: model.fit(second), lambda: model.explain(people)):
            with pytest.raises(KeyboardInterrupt):
                call()
        armed.clear()
    else:
        with pytest.raises(KeyboardInterrupt):
            model.explain(people, callback=interrupt)

    assert answers(model.explain(people)) == expected


@pytest.mark.slow
def test_a_spawned_process_gives_the_same_answers(tables):
    first, _, people = tables
    model = explainer(n_jobs=2).fit(first)

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        result = processes.submit(MCCE.explain, model, people).result(PATIENCE)

    assert answers(result) == answers(model.explain(people))
    pd.testing.assert_frame_equal(result.frame, model.explain(people).frame)


# A thread is kept inside the predictor while children are forked, two others explain without end.
FORK = """
import faulthandler, os, sys, threading, warnings
from bank import bank, score
from mcce import MCCE

warnings.simplefilter("ignore")
people = bank(15, seed=1)
inside, stop, held = threading.Event(), threading.Event(), threading.local()


def holding(frame):
    if getattr(held, "is_me", False):
        inside.set()
        stop.wait()
    return score(frame)


model = MCCE(holding, (0.8, 10), immutable=["sex"], n_samples=50, random_state=0, n_jobs=2)
answers = model.fit(bank(150)).explain(people).frame


def hold():
    held.is_me = True
    model.explain(people)


def work():
    while not stop.is_set():
        model.explain(people)


threads = [threading.Thread(target=target) for target in (hold, work, work)]
for thread in threads:
    thread.start()
inside.wait()
codes = []
for _ in range(6):
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        os._exit(0 if model.explain(people).frame.equals(answers) else 3)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for thread in threads:
    thread.join()
sys.exit(max(codes))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""),
    reason="its allocator may be locked by another thread at a fork, and then is so in the child",
)
def test_a_child_forked_while_threads_explain_can_explain():
    run = subprocess.run(
        [sys.executable, "-c", FORK.replace("PATIENCE", str(PATIENCE))],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE,
        check=False,
    )

    assert run.returncode == 0, run.stderr[-2000:]
