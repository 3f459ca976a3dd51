"""One explainer, many threads and processes: answers are those of one fit, whole."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from bank import bank, score
from mcce import MCCE
from searches import assert_same, bounded, explain

FIRST, SECOND, PEOPLE = bank(200), bank(150, seed=5), bank(20, seed=1)
# A child process that takes longer than this hangs.
SECONDS = 120


def explainer(predictor=score, **settings):
    settings = {"immutable": ["sex"], "n_samples": 50, "random_state": 0} | settings
    return MCCE(predictor, (0.8, 10), **settings)


@pytest.mark.parametrize("search", ["paper", "balanced", "exact"])
@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
def test_threads_that_explain_during_refits_get_answers_of_one_fit(search):
    model = explainer(search=bounded(search, copies="never"))
    known = [explain(model.fit(table), PEOPLE).frame for table in (SECOND, FIRST)]
    stop, wrong, n_explained = threading.Event(), [], []

    def work():
        while not stop.is_set():
            try:
                frame = model.explain(PEOPLE).frame
                n_explained.append(1)
                if not any(frame.equals(one) for one in known):
                    wrong.append("answers of no fit")
            except Exception as error:
                wrong.append(repr(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        for table in (SECOND, FIRST):
            model.fit(table)
    stop.set()
    for thread in threads:
        thread.join()

    assert n_explained
    assert not wrong


@pytest.mark.parametrize("search", ["paper", "balanced"])
def test_a_predictor_that_refits_its_explainer_loses_nobody(search):
    def refitting(frame):
        if model is not None and not busy:
            busy.append(True)
            model.fit(SECOND)
            busy.clear()
        return score(frame)

    model, busy = None, []
    before = explain(explainer(search=search).fit(FIRST), PEOPLE)
    fitted = explainer(refitting, search=search).fit(FIRST)
    model = fitted

    assert_same(explain(fitted, PEOPLE), before)


FORK = """
import faulthandler, os, sys, threading, warnings
from bank import bank, score
from mcce import MCCE

warnings.simplefilter("ignore")
people = bank(20, seed=1)
model = MCCE(score, (0.8, 10), immutable=["sex"], n_samples=50, random_state=0, n_jobs=2)
answers = model.fit(bank(200)).explain(people).frame
stop = threading.Event()


def work():
    while not stop.is_set():
        model.explain(people)


threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
codes = []
for _ in range(12):
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later({seconds}, exit=True)
        os._exit(0 if model.explain(people).frame.equals(answers) else 3)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for thread in threads:
    thread.join()
sys.exit(max(codes))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_while_threads_explain_can_explain():
    run = subprocess.run(
        [sys.executable, "-c", FORK.format(seconds=SECONDS // 4)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=12 * SECONDS,
    )

    assert run.returncode == 0, run.stderr[-2000:]
