"""A case that ends its process: how the runner is tested."""

from __future__ import annotations

import os
from typing import Any

from fuzz_report import Report


def run(seed: int, options: dict[str, Any], report: Report) -> None:
    """End the process, as a fault in compiled code would, if the seed is odd."""
    if seed % 2:
        os.abort()
