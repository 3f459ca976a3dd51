"""Step 3's inner loops: what each candidate costs each person, and which candidates are new.

Paper, section "Post-processing". People of one group share their candidates; every array of
people and candidates has the shape (n_people, n_draws).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._types import BoolArray, Codes, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Cells:
    """One mutable feature of a block, on both sides of the comparison.

    Parameters
    ----------
    codes : (n_groups, n_draws)
        Candidates' codes.
    numbers : (n_codes,) or None
        The value of each code, NaN for missing; None for a categorical feature.
    own_codes : (n_people,)
        The factuals' own codes, -1 where training never saw the value.
    own_numbers : (n_people,) or None
        The factuals' own values; None for a categorical feature.
    spread : float
        Training range; 0 for a categorical or constant feature.
    """

    codes: Codes
    numbers: FloatArray | None
    own_codes: Codes
    own_numbers: FloatArray | None
    spread: float


def differences(cells: Cells, group: IntArray) -> tuple[BoolArray, FloatArray]:
    """Whether each candidate's cell differs from the person's own, and by how much (Gower).

    Numeric cells differ by their distance over the training range; categorical ones, constant
    ones and those with one side missing by 1.
    """
    codes = cells.codes[group]
    changed = codes != cells.own_codes[:, None]
    if cells.numbers is None or cells.own_numbers is None or cells.spread == 0.0:
        return changed, changed.astype(np.float64)
    with np.errstate(over="ignore"):  # too far to tell is infinitely far
        gap = np.abs(cells.numbers[codes] - cells.own_numbers[:, None]) / cells.spread
    return changed, np.where(np.isnan(gap), changed, gap)


def first_of_each(codes: Codes) -> BoolArray:
    """Marks the first draw of each distinct candidate within its group.

    Parameters
    ----------
    codes : (n_columns, n_groups, n_draws)
        Candidates; groups are never compared with each other.
    """
    _, n_groups, n_draws = codes.shape
    number = np.repeat(np.arange(n_groups, dtype=np.int32), n_draws)
    rows = rows_as_bytes(np.vstack([number[None], codes.reshape(codes.shape[0], -1)]).T)
    first = np.zeros(n_groups * n_draws, dtype=bool)
    first[np.unique(rows, return_index=True)[1]] = True
    return first.reshape(n_groups, n_draws)


def rows_as_bytes(codes: Codes) -> np.ndarray:
    """Each row as one opaque value that can be sorted and looked up, shape (n_rows,)."""
    rows = np.ascontiguousarray(codes)
    return rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()
