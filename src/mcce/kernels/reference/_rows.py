"""Numbers for distinct rows of codes."""

from __future__ import annotations

import numpy as np

from .._types import Codes, IntArray


class RowTable:
    """Distinct rows, numbered in the order of their first appearance."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._numbers: dict[bytes, int] = {}

    def place(self, rows: Codes) -> IntArray:
        """Number of each row, shape (n_rows,); rows never seen before get the next numbers."""
        if rows.shape[1] != self.width:
            raise ValueError("the rows have another width than the table")
        numbers = (self._numbers.setdefault(row.tobytes(), len(self._numbers)) for row in rows)
        return np.fromiter(numbers, dtype=np.int64, count=len(rows))
