"""How much memory the machine has."""

from __future__ import annotations

import math
import os


def physical_memory() -> float:
    """Bytes of the machine's memory; infinite where the system does not say.

    Examples
    --------
    >>> physical_memory() > 0
    True
    """
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return math.inf
