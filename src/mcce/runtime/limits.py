"""A time limit of work that cannot return part of its result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import TimeLimitError
from ..kernels import ExpiredError, cancellable


@contextmanager
def time_limit(what: str, max_seconds: float | None) -> Iterator[None]:
    """Raise if the work in the block takes too long.

    Kernels notice every few milliseconds; between them, ``kernels.check_cancellation`` does.
    """
    try:
        with cancellable(max_seconds):
            yield
    except ExpiredError as error:
        raise TimeLimitError(
            f"{what} takes longer than max_seconds={max_seconds!r} and was stopped; what was "
            "learned before is unchanged. Allow more seconds, or use fewer rows or columns."
        ) from error
