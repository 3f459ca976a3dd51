"""What a predictor prints and what warnings say, kept away where a table says it better.

Standard output and the filters of warnings belong to the whole process, and threads may change them
at the same time.

Always true: both are changed by the first thread that comes in, and restored by the last that
leaves, so that nothing stays changed, whatever the order.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from typing import Any


def without_prints() -> AbstractContextManager[None]:
    """Send what is printed inside to standard error: standard output is for results."""
    return _prints.entered()


def without_warnings() -> AbstractContextManager[None]:
    """Hide the warnings of mcce inside."""
    return _warnings.entered()


class _Shared:
    """A context of the whole process that several threads are in."""

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._n_inside = 0

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Be inside."""
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
    # Imported here: it loads scikit-learn, without which commands start faster.
    from ..errors import McceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        yield


_prints = _Shared(lambda: redirect_stdout(sys.stderr))
_warnings = _Shared(_ignore_warnings)
