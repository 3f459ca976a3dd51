"""Progress of long work: a bar on the terminal, and the seconds that each step took."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

from ..errors import MissingExtraError


@dataclass(frozen=True)
class Progress:
    """How far a call of ``explain`` has come.

    Parameters
    ----------
    n_factuals
        People to explain; those already decided as desired are not counted.
    n_settled
        How many of them have their answers, or nothing left to try.
    n_evaluated
        Rows scored by the predictor so far.

    Examples
    --------
    >>> def stop_after_1000_rows(progress: Progress) -> bool:
    ...     return progress.n_evaluated >= 1000
    >>> stop_after_1000_rows(Progress(n_factuals=50, n_settled=20, n_evaluated=1200))
    True
    """

    n_factuals: int
    n_settled: int
    n_evaluated: int


class ProgressBar:
    """A progress bar, drawn only if ``verbose`` is true and the output is a terminal."""

    def __init__(self, total: int, what: str, verbose: bool) -> None:
        self._bar: Any = None
        if not verbose or not sys.stderr.isatty():
            return
        try:
            from tqdm import tqdm
        except ImportError as error:
            raise MissingExtraError(
                "verbose=True draws a progress bar with tqdm, which is not installed: "
                'pip install "mcce[progress]".'
            ) from error
        self._bar = tqdm(total=total, desc=what, leave=False)

    def show(self, n_done: int) -> None:
        """Move the bar to the amount of work done so far."""
        if self._bar is not None:
            self._bar.update(n_done - self._bar.n)

    def close(self) -> None:
        """Remove the bar from the terminal."""
        if self._bar is not None:
            self._bar.close()


class Clock:
    """Wall-clock seconds by step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._first = self._last = time.perf_counter()

    def stop(self, step: str) -> None:
        """Record the seconds since the previous stop, or since the start, under a step's name."""
        now = time.perf_counter()
        self.seconds[step] = now - self._last
        self._last = now

    def total(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._first
