"""How much is tried, and a process in which what may crash, hang or take too much is tried."""

from __future__ import annotations

import faulthandler
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

import pytest
from hypothesis import settings

# Seconds after which a call counts as hung, with sanitizers and on a busy machine.
HANGS_AFTER = 240
few_or_many = pytest.mark.parametrize(
    "share", ["few", pytest.param("many", marks=pytest.mark.slow)]
)


def examples(share: str, weight: float = 1.0) -> settings:
    """As many examples as the profile says, a part of them for "few"; fewer of costly ones."""
    part = {"few": 0.3, "many": 1.0}[share] * weight
    return settings(max_examples=max(5, int(part * settings().max_examples)))


class Child:
    """A process for one call after the other; another one takes its place if it dies."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function returns there; its end, whatever the reason, fails the test."""
        if self._pool is None:
            spawn = get_context("spawn")
            self._pool = ProcessPoolExecutor(1, spawn, initializer=faulthandler.enable)
        try:
            return self._pool.submit(_guarded, function, *arguments).result()
        except BrokenProcessPool:
            self.close()
            raise AssertionError("the process died or hung; its last words are above") from None

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


def _guarded(function: Callable[..., Any], *arguments: Any) -> Any:
    faulthandler.dump_traceback_later(HANGS_AFTER, exit=True)
    try:
        return function(*arguments)
    finally:
        faulthandler.cancel_dump_traceback_later()


def measured(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a function returns, and the seconds of CPU and the MB of memory that it took."""
    import resource  # not on Windows

    peak, seconds = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    result = function()
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    return result, time.process_time() - seconds, taken / 1024
