"""What errors at known rows say of other rows."""

from __future__ import annotations

import numpy as np

from .._types import Codes, FloatArray, IntArray


def weigh_errors(
    cells: Codes,
    rows: IntArray,
    between: tuple[IntArray, IntArray],
    known: IntArray,
    error: FloatArray,
    sums: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Weighted errors: one counts half as much for each cell in which the rows differ.

    Examples
    --------
    >>> cells = np.array([[0, 0], [0, 1], [1, 1]], dtype=np.int32)
    >>> rows, known, zero = np.array([1, 2]), np.array([0]), np.zeros(2)
    >>> between = np.array([0, 0]), np.array([1, 1])
    >>> weigh_errors(cells, rows, between, known, np.array([1.0]), (zero, zero))
    (array([0.5 , 0.25]), array([0.5 , 0.25]))
    """
    total, weight = sums[0].copy(), sums[1].copy()
    for at in range(rows.size):
        for one in range(between[0][at], between[1][at]):
            share = np.ldexp(1.0, -int((cells[rows[at]] != cells[known[one]]).sum()))
            total[at] += share * error[one]
            weight[at] += share
    return total, weight
