"""Threads that explain while another refits: every result is that of one of the fits."""

from __future__ import annotations

import pickle
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import mcce
from fuzz_report import Report
from shared_explainer import TwoFits, answers_of, two_fits

SPAN = 3.0


def run(seed: int, options: dict[str, Any], report: Report) -> None:
    """Explain in several threads for a while, and refit in one more."""
    chance = np.random.default_rng([7, seed])
    fits = two_fits(chance)
    explainer, lock = fits.explainer(), threading.Lock()
    deadline = time.monotonic() + options.get("span", SPAN)
    copies = Copies(fits, chance)

    def repeat(name: str, step: Callable[[int], Any]) -> None:
        try:
            number = 0
            while time.monotonic() < deadline:
                answers = step(number)
                number += 1
                with lock:
                    report.counts[name] += 1
                    fine = answers is None or answers in fits.answers
                    report.check(fine, f"{fits.settings}: {name}: the answers of no fit")
        except Exception as error:
            with lock:
                report.check(False, f"{name}: {type(error).__name__}: {str(error)[:300]}")

    def explain(number: int) -> Any:
        return answers_of(explainer.explain(fits.people))

    def refit(number: int) -> None:
        explainer.fit(fits.trains[(number + 1) % 2])
        explainer.set_params(memory=[256.0, 0.05][number % 2], n_jobs=1 + number % 2)

    steps = [("refits", refit), ("copies", lambda number: copies.step(explainer, number))]
    steps += [("explanations", explain)] * options.get("threads", 4)
    threads = [threading.Thread(target=repeat, args=step) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Copies:
    """Clones, pickles and saved files of an explainer that is being refitted."""

    def __init__(self, fits: TwoFits, chance: np.random.Generator) -> None:
        self.fits = fits
        self.folder = tempfile.TemporaryDirectory()

    def step(self, explainer: Any, number: int) -> Any:
        """The answers of a copy."""
        if number % 3 == 0:
            copied = clone(explainer).fit(self.fits.trains[0])
        elif number % 3 == 1:
            copied = pickle.loads(pickle.dumps(explainer))
        else:
            path = Path(self.folder.name) / "explainer.mcce"
            explainer.save(path)
            copied = mcce.load(path, explainer.predictor)
        return answers_of(copied.explain(self.fits.people))
