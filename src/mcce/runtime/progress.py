"""What users see of long work: a progress bar, seconds by step, tracebacks; no stray prints.

Standard output and the filters of warnings belong to the whole process, and threads may change them
at the same time.

Always true: both are changed by the first thread that enters and restored by the last that leaves,
so that nothing stays changed, whatever the order.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any, Self


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

    def __init__(
        self,
        total: int | None,
        what: str,
        verbose: bool,
        *,
        unit: str = "it",
        leave: bool = False,
    ) -> None:
        self.n_done = 0
        self._clock = Clock()
        self._bar: Any = None
        if not verbose or not sys.stderr.isatty():
            return
        try:
            from tqdm import tqdm
        except ImportError as error:
            from ..errors import missing_extra

            raise missing_extra("tqdm", "progress", "verbose=True") from error
        self._bar = tqdm(total=total, desc=what, unit=unit, leave=leave, dynamic_ncols=True)

    def show(self, n_done: int) -> None:
        """Move the bar to the amount of work done so far."""
        if self._bar is not None:
            self._bar.update(n_done - self._bar.n)

    def reuse(self, n_done: int) -> None:
        """Move the bar to work that an earlier run has done: it does not count for the rate."""
        if self._bar is not None:
            self._bar.initial = self._bar.n = n_done
            self._bar.refresh()

    def write(self, text: str) -> None:
        """Write a text to standard error, above the bar."""
        if self._bar is None:
            sys.stderr.write(f"{text}\n")
        else:
            self._bar.write(text, file=sys.stderr)

    def close(self) -> None:
        """End the bar."""
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return self._clock.total()


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


def without_prints() -> AbstractContextManager[None]:
    """Send what is printed inside to standard error: standard output is for results."""
    return _prints.active()


def without_warnings() -> AbstractContextManager[None]:
    """Hide the warnings of mcce inside."""
    return _warnings.active()


def format_traceback(error: BaseException) -> str:
    """The traceback of an error, and that of what a predictor raised; both may quote cells."""
    both = (error, getattr(error, "original", None))
    return "".join(
        line for one in both if one is not None for line in traceback.format_exception(one)
    )


class _Shared:
    """A context of the whole process that several threads are in."""

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._n_inside = 0

    @contextmanager
    def active(self) -> Iterator[None]:
        """Enter the shared context; the last thread to leave closes it."""
        with self._lock:
            if self._n_inside == 0:
                self._context = self._make()
                self._context.__enter__()
            self._n_inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_inside -= 1
                if self._n_inside == 0:
                    self._context.__exit__(None, None, None)


@contextmanager
def _ignore_warnings() -> Iterator[None]:
    # Imported where needed: it loads scikit-learn, without which commands start faster.
    from ..errors import McceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        yield


_prints = _Shared(lambda: redirect_stdout(sys.stderr))
_warnings = _Shared(_ignore_warnings)
