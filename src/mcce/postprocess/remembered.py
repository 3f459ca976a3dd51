"""Scores of rows that several searches for the same people have in common.

Always true: a row that is remembered is not scored again; rows with values that training never held
are not remembered.
"""

from __future__ import annotations

import threading

import numpy as np

from ..candidates import CandidateRows
from ..kernels import BoolArray, FloatArray, IntArray, RowTable
from ..predictors.decision import Decision, ScoredRows

# Bytes per row beside its codes.
BYTES_PER_ROW = 64


class RememberedScores:
    """The predictor's scores of rows, by person and codes."""

    def __init__(self, n_mutable: int, memory: float) -> None:
        self._table = RowTable(1 + n_mutable)
        self._most = int(memory * 1e6 / (BYTES_PER_ROW + 4 * (1 + n_mutable)))
        self._n = 0
        self._known: BoolArray = np.zeros(0, dtype=bool)
        self._valid: BoolArray = np.zeros(0, dtype=bool)
        self._score: FloatArray = np.zeros(0)
        self._lock = threading.Lock()

    def score(self, decision: Decision, selected: CandidateRows) -> ScoredRows:
        """Score and decision of each row, by the predictor only where they are not known."""
        n_rows = selected.owner.size
        if selected.tables is not selected.rows.tables or self._n + n_rows > self._most:
            return decision.score(selected.frame)
        with self._lock:
            numbers = self._place(selected)
            unknown = np.flatnonzero(~self._known[numbers])
        new = unknown[np.unique(numbers[unknown], return_index=True)[1]]
        # Without the lock: threads search for different people, whose rows are not the same.
        scored = decision.score(selected.take(new).frame) if new.size else None
        with self._lock:
            if scored is not None:
                self._known[numbers[new]] = True
                self._score[numbers[new]], self._valid[numbers[new]] = scored.score, scored.valid
            return ScoredRows(self._score[numbers], self._valid[numbers])

    def _place(self, selected: CandidateRows) -> IntArray:
        """The number of each row; new rows are added."""
        cells = np.concatenate([selected.owner[None].astype(np.int32), selected.codes]).T
        numbers = self._table.place(cells)
        self._n = max(self._n, int(numbers.max(initial=-1)) + 1)
        if self._n > self._known.size:
            size = 2 * self._n
            self._known, self._valid = _grown(self._known, size), _grown(self._valid, size)
            self._score = _grown(self._score, size)
        return numbers


def _grown(values: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([values, np.zeros(size - values.size, dtype=values.dtype)])


def score_rows(
    decision: Decision, selected: CandidateRows, remembered: RememberedScores | None
) -> ScoredRows:
    """Score and decision of each row, remembered or not."""
    if remembered is None:
        return decision.score(selected.frame)
    return remembered.score(decision, selected)
