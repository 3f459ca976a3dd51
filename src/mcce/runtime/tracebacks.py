"""Where errors happened, for those who ask: tracebacks may quote cells."""

from __future__ import annotations

import traceback


def format_traceback(error: BaseException) -> str:
    """The traceback of an error, and that of what a predictor raised."""
    both = (error, getattr(error, "original", None))
    return "".join(
        line for one in both if one is not None for line in traceback.format_exception(one)
    )
