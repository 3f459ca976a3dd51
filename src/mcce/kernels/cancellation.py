"""Ending kernels early: by a time limit, by another thread, or by Ctrl-C.

Kernels look every few milliseconds whether the current :class:`Cancellation` is cancelled or past
its deadline. In the main thread they also let Python handle signals, a bit less often.

Always true: a kernel that ends early has changed nothing; one that does not gives the same result
with and without a limit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context

from ._native import Cancellation, CancelledError, ExpiredError, Watch

__all__ = [
    "Cancellation",
    "CancelledError",
    "ExpiredError",
    "cancellable",
    "check_cancellation",
    "context_with",
    "inner_cancellation",
    "watch",
]

_current: ContextVar[Cancellation | None] = ContextVar("mcce_cancellation", default=None)


@contextmanager
def cancellable(max_seconds: float | None = None) -> Iterator[Cancellation]:
    """Let kernels called in the block be cancelled, or give up after some seconds.

    A block within another one also ends when that one is to end.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.kernels import cancellable, first_of_each
    >>> with cancellable() as cancellation:
    ...     cancellation.cancel()
    ...     first_of_each(np.zeros((1, 1, 2), dtype=np.int32))
    Traceback (most recent call last):
        ...
    mcce.kernels._native.CancelledError: the work was cancelled
    """
    cancellation = inner_cancellation(max_seconds)
    before = _current.set(cancellation)
    try:
        yield cancellation
    finally:
        _current.reset(before)


def check_cancellation() -> None:
    """Raise ``CancelledError`` or ``ExpiredError`` if the current work is to end."""
    current = _current.get()
    if current is not None:
        current.check()


def inner_cancellation(max_seconds: float | None = None) -> Cancellation:
    """A cancellation within the current one, which stays the current one."""
    return Cancellation(max_seconds, _current.get())


def context_with(cancellation: Cancellation) -> Context:
    """A copy of the current context in which a cancellation is the current one."""
    context = copy_context()
    context.run(_current.set, cancellation)
    return context


def watch() -> Watch:
    """The cancellation and signals that a kernel called now must check."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    return Watch(_current.get(), in_main_thread)
