"""Update the progress bar, call the user's callback, enforce the time limit."""

from __future__ import annotations

import time

from ..protocols import Callback, Progress
from ..runtime.progress import ProgressBar


class ProgressCallback:
    """A callback that shows progress, calls the user's callback and enforces the time limit."""

    def __init__(self, bar: ProgressBar, callback: Callback | None, ends: float) -> None:
        self._bar = bar
        self._callback = callback
        self._ends = ends

    def __call__(self, progress: Progress) -> bool | None:
        """Whether to stop the search."""
        self._bar.show(progress.n_settled)
        stop = self._callback(progress) if self._callback is not None else None
        return stop or time.monotonic() >= self._ends
