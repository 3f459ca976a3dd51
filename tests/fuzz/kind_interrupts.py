"""Interrupts at random moments: the old fit stands, and answers are the same as before.

An interrupt comes as a signal, as from Ctrl-C, or is raised in another thread.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz_report import Report
from shared_explainer import answers_of, two_fits

N_TRAIN = 3000
N_INTERRUPTS = 4


def run(seed: int, options: dict[str, Any], report: Report) -> None:
    """Interrupt a few refits and explanations of one explainer."""
    chance = np.random.default_rng([8, seed])
    fits = two_fits(chance, N_TRAIN)
    explainer = fits.explainer()
    calls = {
        "refits": lambda: explainer.fit(fits.trains[1]),
        "explanations": lambda: explainer.explain(fits.people),
    }
    for name, call in calls.items():
        start = time.perf_counter()
        call()
        seconds = time.perf_counter() - start
        for _ in range(N_INTERRUPTS):
            explainer.fit(fits.trains[0])
            old, interrupt = explainer.fitted_, [by_signal, by_thread][int(chance.integers(2))]
            late = interrupt(call, float(chance.random()) * seconds)
            if late is None:
                report.counts[f"{name} that ended before"] += 1
                continue
            report.counts[f"interrupted {name}"] += 1
            report.peak("seconds until an interrupt counts", late)
            stands = explainer.fitted_ is old
            # An interrupt may also come after the new fit took the place of the old one.
            report.counts["interrupted after the new fit stood"] += not stands
            answers = answers_of(explainer.explain(fits.people))
            expected = fits.answers[0 if stands else 1]
            report.check(answers == expected, f"{fits.settings}: {name}: other answers")


def by_signal(call: Callable[[], Any], delay: float) -> float | None:
    """Seconds from the signal to KeyboardInterrupt; None if the call ended before it."""
    sent: list[float] = []
    done = threading.Event()

    def send() -> None:
        if not done.wait(delay):
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Thread(target=send)
    interrupted = None
    try:
        timer.start()
        call()
        done.set()
        timer.join()
        # A signal that was sent while the call ended is handled here.
        time.sleep(0.001)
    except KeyboardInterrupt:
        interrupted = None if done.is_set() else time.perf_counter() - sent[0]
    finally:
        done.set()
        signal.signal(signal.SIGINT, before)
    timer.join()
    return interrupted


def by_thread(call: Callable[[], Any], delay: float) -> float | None:
    """The same, raised in a thread of its own."""
    outcome: list[float | None] = []

    def work() -> None:
        ended = False
        try:
            call()
            ended = True
            time.sleep(0.001)
        except KeyboardInterrupt:
            outcome.append(None if ended else time.perf_counter())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(delay)
    if not thread.is_alive():
        return None
    sent = time.perf_counter()
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt)
    )
    thread.join()
    return outcome[0] - sent if outcome and outcome[0] is not None else None
