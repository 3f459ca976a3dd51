"""The rows that walks visited in a block of people, and what is known of each.

Each distinct row is stored once and scored at most once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..candidates import CandidateRows, Candidates, Lookup
from ..kernels import BoolArray, Codes, FloatArray, IntArray, RowTable
from ..plausibility.support import Support
from ..postprocess.validation import ROWS_PER_CALL
from ..predictors.decision import Decision
from ..protocols import RowFilter

# Scores are compared to so many decimals: the last ones may depend on how many rows a call has.
DECIMALS = 10


@dataclass(frozen=True, eq=False)
class WalkSettings:
    """What a row must satisfy, and how a walk may go.

    Parameters
    ----------
    decision
        The predictor with the desired decision.
    filters
        Rows must pass all of them.
    support, sizes
        What accepted rows look like, and the node sizes for the required share of them; sizes None
        does not require it.
    units : (n_units, n_mutable)
        Features that change only together; each is in one unit.
    extra_changes, n_wanted
        A walk is abandoned once the person has ``n_wanted`` answers with this many fewer changes.
    """

    decision: Decision
    filters: tuple[RowFilter, ...]
    support: Support
    sizes: Codes | None
    units: BoolArray
    extra_changes: int
    n_wanted: int


class VisitedRows:
    """Every row that was visited in a block of people, and what is known of it.

    Attributes
    ----------
    cells : (n_rows, 1 + n_mutable)
        Person, as numbered in the block, and codes, ``OWN`` where a cell is the person's own.
    checked, n_outside, allowed : (n_rows,)
        Whether the row was checked; if so, how many features are outside the support, and whether
        all filters pass it.
    scored, valid, score : (n_rows,)
        Whether the predictor scored the row, and if so the result.
    draw : (n_rows,)
        The candidate that first led to the row, as numbered in the block.
    step : (n_rows,)
        How many rows walks had reached before they reached this one, -1 if they never did. Only
        rows that were reached may be answers: which other draws are known depends on who shares
        them.
    """

    def __init__(self, settings: WalkSettings, candidates: Candidates) -> None:
        self.settings = settings
        self.factuals, self.people = candidates.rows, candidates.people
        self.tables = candidates.tables
        self.lookup = Lookup(candidates.rows, candidates.tables)
        width = 1 + self.factuals.schema.mutable.size
        self._numbers = RowTable(width)
        self.cells: Codes = np.empty((0, width), dtype=np.int32)
        self.n_outside: IntArray = np.empty(0, dtype=np.int64)
        self.checked, self.allowed, self.scored, self.valid = np.empty((4, 0), dtype=bool)
        self.score: FloatArray = np.empty(0)
        self.draw, self.step = np.empty((2, 0), dtype=np.int64)
        self.n_evaluated = 0

    def place(self, person: IntArray, draw: IntArray | Codes, codes: Codes) -> IntArray:
        """The number of each row; new rows are added."""
        n_known = len(self.cells)
        cells = np.concatenate([person[None].astype(np.int32), codes]).T
        numbers = self._numbers.place(cells)
        first = np.unique(numbers, return_index=True)[1]
        new = first[numbers[first] >= n_known]
        self._add(cells[new], draw[new])
        return numbers

    def reach(self, numbers: IntArray) -> None:
        """Note that walks have reached rows, in this order."""
        first = np.sort(np.unique(numbers, return_index=True)[1])
        new = numbers[first][self.step[numbers[first]] < 0]
        self.step[new] = self.step.max(initial=-1) + 1 + np.arange(new.size)

    def rows(self, numbers: IntArray) -> CandidateRows:
        """Rows by number."""
        cells = self.cells[numbers]
        codes = np.ascontiguousarray(cells[:, 1:].T)
        return CandidateRows(self.factuals, self.people[cells[:, 0]], codes, self.tables)

    def evaluate(self, numbers: IntArray) -> None:
        """Have the predictor score rows that it has not scored yet."""
        new = np.unique(numbers[~self.scored[numbers]])
        for start in range(0, new.size, ROWS_PER_CALL):
            piece = new[start : start + ROWS_PER_CALL]
            scored = self.settings.decision.score(self.rows(piece).frame)
            self.store_scores(piece, scored.score, scored.valid)
        self.n_evaluated += new.size

    def store_scores(self, numbers: IntArray, score: FloatArray, valid: BoolArray) -> None:
        """Keep the predictor's scores of rows."""
        self.score[numbers] = score
        self.valid[numbers] = valid
        self.scored[numbers] = True

    def desirability(self, numbers: IntArray) -> FloatArray:
        """How good the scores of rows are, larger being better."""
        return self.settings.decision.desirability(self.score[numbers]).round(DECIMALS)

    def check(self, numbers: IntArray) -> None:
        """Check rows against the filters and the support, unless that was done."""
        new = np.unique(numbers[~self.checked[numbers]])
        rows, settings = self.rows(new), self.settings
        self.allowed[new] = True
        for keep in settings.filters:
            self.allowed[new] &= keep.keeps(rows)
        if settings.sizes is not None:
            descent = self.lookup.descent(rows.owner, rows.codes)
            self.n_outside[new] = settings.support.n_outside(descent, settings.sizes)
        self.checked[new] = True

    def good(self, numbers: IntArray) -> BoolArray:
        """Rows that are valid, allowed and inside the support."""
        valid = self.valid[numbers]
        self.check(numbers[valid])
        return valid & self.allowed[numbers] & (self.n_outside[numbers] == 0)

    def _add(self, cells: Codes, draw: IntArray | Codes) -> None:
        no = np.zeros(len(cells), dtype=bool)
        self.cells = np.concatenate([self.cells, cells])
        self.draw = np.concatenate([self.draw, draw])
        self.n_outside = np.concatenate([self.n_outside, no.astype(np.int64)])
        self.score = np.concatenate([self.score, no.astype(np.float64)])
        self.step = np.concatenate([self.step, np.full(no.size, -1)])
        for name in ("checked", "allowed", "scored", "valid"):
            setattr(self, name, np.concatenate([getattr(self, name), no]))
