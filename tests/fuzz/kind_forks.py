"""Forks while another thread explains: the child explains, too, and nothing hangs."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np

from fuzz_report import Report
from shared_explainer import answers_of, two_fits

N_FORKS = 12
# Seconds by the wall clock until a child counts as hung; it needs a fraction of one.
HANGS_AFTER = 40.0


def run(seed: int, options: dict[str, Any], report: Report) -> None:
    """Fork a few times; each child explains and compares."""
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        # Its allocator may be locked by another thread at a fork, and then is so in the child.
        report.counts["left out with the address sanitizer"] += 1
        return
    chance = np.random.default_rng([9, seed])
    fits = two_fits(chance)
    explainer, over = fits.explainer(), threading.Event()

    def explain() -> None:
        while not over.is_set():
            explainer.explain(fits.people)
            explainer.fit(fits.trains[0])

    threads = [threading.Thread(target=explain) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(N_FORKS):
            time.sleep(float(chance.random()) * 0.02)
            child = os.fork()
            if child == 0:
                _be_a_child(explainer, fits)
            status = _wait(child)
            report.counts["forks"] += 1
            report.check(status == 0, f"{fits.settings}: a child ended with {status}")
            if status == "hung":
                break
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _be_a_child(explainer: Any, fits: Any) -> None:
    """Explain and end, without anything that would run at the end of the parent."""
    try:
        answers = answers_of(explainer.explain(fits.people))
        os._exit(0 if answers == fits.answers[0] else 3)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(4)


def _wait(child: int) -> Any:
    """The exit status of a child; a dump of its threads and "hung" if it does not end."""
    deadline = time.monotonic() + HANGS_AFTER
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGUSR1)
    time.sleep(0.5)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"
