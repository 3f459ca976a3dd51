"""The rows that walks visited in a block of people, and what is known of each.

Each distinct row is stored once and scored at most once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..candidates import CandidateRows, Candidates, Lookup
from ..constraints.collection import Constraints
from ..constraints.kinds import Together
from ..kernels import BoolArray, Codes, FloatArray, IntArray, RowTable
from ..plausibility.model import KnnDistance
from ..postprocess.filters import IsPlausible
from ..postprocess.ranking import Ranking
from ..postprocess.validation import ROWS_PER_CALL, RememberedScores, score_rows
from ..predictors.decision import Decision
from ..protocols import RowFilter
from ..tables.schema import OWN, Schema
from .consequences import Consequences
from .costs import as_block, row_costs
from .replies import Led
from .values import GrowingTables

# Scores are compared to so many decimals: the last ones may depend on how many rows a call has.
DECIMALS = 10
# One in so many numbers is few: they are sorted instead of marked.
FEW = 32
# Of more mutable features, those that the surrogate splits most often lead the search.
MAX_LEADING = 32


@dataclass(frozen=True, eq=False)
class WalkSettings:
    """What a row must satisfy, and how a walk may go."""

    decision: Decision
    filters: tuple[RowFilter, ...]
    plausible: IsPlausible | None
    units: BoolArray
    extra_changes: int
    consequences: Consequences | None = None
    remembered: RememberedScores | None = None
    led: Led | None = None


def units_of(constraints: Constraints, consequences: Consequences | None) -> BoolArray:
    """The mutable features in units that change together, shape (n_units, n_mutable)."""
    unit = np.arange(constraints.schema.mutable.size)
    for constraint in constraints.of_rows:
        if isinstance(constraint, Together):
            linked = np.isin(unit, unit[constraints.mutable_positions(constraint)])
            unit[linked] = unit[linked].min()
    units = np.unique(unit)[:, None] == unit
    if consequences is not None:
        units[:, consequences.rows] = False
    return units[units.any(axis=1)]


def leading_units(settings: WalkSettings, schema: Schema) -> BoolArray:
    """The units whose changes the surrogate notices most; all of them if few features are mutable.

    Among many features it looks at few, and the others cannot make a row valid.
    """
    surrogate = None if settings.led is None else settings.led.surrogate
    if surrogate is None or not surrogate.is_good or schema.mutable.size <= MAX_LEADING:
        return np.ones(len(settings.units), dtype=bool)
    noticed = np.isin(schema.mutable, surrogate.inputs(MAX_LEADING))
    for target in reversed(() if settings.consequences is None else settings.consequences.targets):
        noticed[target.actions] |= noticed[target.row]
    return settings.units @ noticed


class VisitedRows:
    """Every row that was visited in a block of people, and what is known of it."""

    def __init__(self, settings: WalkSettings, candidates: Candidates) -> None:
        self.settings, self.candidates = settings, candidates
        self.factuals, self.people = candidates.rows, candidates.people
        self.values = GrowingTables(candidates.rows, candidates.tables)
        width = 1 + self.factuals.schema.mutable.size
        self._numbers = RowTable(width)
        # Numbers of rows by those of their actions alone.
        self._actions = RowTable(width)
        self._completed: IntArray = np.empty(0, dtype=np.int64)
        self._lookup: Lookup | None = None
        self.cells: Codes = np.empty((0, width), dtype=np.int32)
        self.person: IntArray = np.empty(0, dtype=np.int64)
        self.checked, self.allowed, self.scored, self.valid = np.empty((4, 0), dtype=bool)
        self.assessed, self.plausible = np.empty((2, 0), dtype=bool)
        self.priced: BoolArray = np.empty(0, dtype=bool)
        self.sparsity, self.n_actions = np.empty((2, 0), dtype=np.int64)
        self.score, self.gower, self.distance = np.empty((3, 0))
        self.knn_distance: FloatArray = np.empty(0)
        self.copy: BoolArray = np.empty(0, dtype=bool)
        self.draw, self.step = np.empty((2, 0), dtype=np.int64)
        self.n_evaluated = 0

    def place(self, person: IntArray, draw: IntArray | Codes, codes: Codes) -> IntArray:
        """The number of each row, with what follows from its changes; new rows are added."""
        cells = np.concatenate([person[None].astype(np.int32), codes]).T
        consequences = self.settings.consequences
        if consequences is None:
            return self._place(cells, draw)
        # What follows is computed once for each set of changes.
        cells[:, [1 + at for at in consequences.rows]] = OWN
        actions = self._actions.place(cells)
        new = _new(actions, self._completed.size)
        if new.size:
            whose, changes = self.people[person[new]], np.ascontiguousarray(cells[new, 1:].T)
            cells[new, 1:] = consequences.complete(self.values, whose, changes).T
            self._completed = append(self._completed, self._place(cells[new], draw[new]))
        return self._completed[actions]

    def _place(self, cells: Codes, draw: IntArray | Codes) -> IntArray:
        n_known, numbers = len(self.cells), self._numbers.place(cells)
        new = _new(numbers, n_known)
        self._add(cells[new], draw[new])
        return numbers

    def reach(self, numbers: IntArray) -> None:
        """Note that walks have reached rows, in this order."""
        new = numbers[self.step[numbers] < 0]
        new = new[np.sort(np.unique(new, return_index=True)[1])]
        self.step[new] = self.step.max(initial=-1) + 1 + np.arange(new.size)

    def rows(self, numbers: IntArray) -> CandidateRows:
        """Rows by number."""
        cells = self.cells[numbers]
        codes = np.ascontiguousarray(cells[:, 1:].T)
        return CandidateRows(self.factuals, self.people[cells[:, 0]], codes, self.values.tables)

    @property
    def recomputed(self) -> list[int]:
        """Places of the mutable features that only follow from others."""
        return [] if self.settings.consequences is None else self.settings.consequences.rows

    @property
    def lookup(self) -> Lookup:
        """The encodings of all values so far."""
        if self._lookup is None or self._lookup.tables is not self.values.tables:
            self._lookup = Lookup(self.factuals, self.values.tables)
        return self._lookup

    def evaluate(self, numbers: IntArray) -> None:
        """Have the predictor score rows that it has not scored yet."""
        new = self._without(self.scored, numbers)
        for start in range(0, new.size, ROWS_PER_CALL):
            piece = new[start : start + ROWS_PER_CALL]
            how = self.settings
            scored = score_rows(how.decision, self.rows(piece), how.remembered)
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
        """Check rows against the filters, unless that was done."""
        new = self._without(self.checked, numbers)
        if not new.size:
            return
        rows = self.rows(new)
        self.allowed[new] = True
        for keep in self.settings.filters:
            self.allowed[new] &= keep.keeps(rows)
        self.checked[new] = True

    def assess(self, numbers: IntArray) -> None:
        """Look at how plausible rows are, unless that was done."""
        new = self._without(self.assessed, numbers)
        if not new.size:
            return
        keep = self.settings.plausible
        self.plausible[new] = True if keep is None else keep.keeps(self.rows(new))
        self.assessed[new] = True

    def trust(self, numbers: IntArray) -> None:
        """Take rows for plausible that passed the same check before."""
        self.assessed[numbers] = self.plausible[numbers] = True

    def price(self, ranking: Ranking, numbers: IntArray) -> None:
        """Compute what rows cost, unless that was done; always by the same ranking."""
        new = self._without(self.priced, numbers)
        if not new.size:
            return
        alone = np.arange(new.size), np.zeros_like(new)
        block = as_block(self.candidates, self.values, self.cells[new], *alone)
        costs = row_costs(block, ranking, self.recomputed)
        self.sparsity[new], self.n_actions[new] = costs.sparsity, costs.n_actions
        self.gower[new], self.distance[new] = costs.gower, costs.distance
        self.priced[new] = True

    def measure(self, knn_distance: KnnDistance, numbers: IntArray) -> None:
        """Measure how far rows are from accepted ones, unless that was done."""
        new = self._without(~np.isnan(self.knn_distance), numbers)
        if new.size:
            # Rows that share cells come together: they are measured faster.
            new = new[np.argsort(self.cells[new, 0], kind="stable")]
            rows = self.rows(new)
            points = self.lookup.points(rows.owner, rows.codes)
            self.knn_distance[new], self.copy[new] = knn_distance(points)

    def good(self, numbers: IntArray) -> BoolArray:
        """Rows that are valid, allowed and plausible."""
        good = self.valid[numbers]
        self.check(numbers[good])
        good &= self.allowed[numbers]
        self.assess(numbers[good])
        return good & self.plausible[numbers]

    @staticmethod
    def _without(done: BoolArray, numbers: IntArray) -> IntArray:
        """Which of the numbers are not done yet, ascending, each once."""
        if FEW * numbers.size < done.size:
            return np.unique(numbers[~done[numbers]])
        asked = np.zeros_like(done)
        asked[numbers] = True
        return np.flatnonzero(asked & ~done)

    def _add(self, cells: Codes, draw: IntArray | Codes) -> None:
        self.cells = append(self.cells, cells)
        self.person = append(self.person, cells[:, 0].astype(np.int64))
        self.draw = append(self.draw, draw)
        self.step = append(self.step, np.full(len(cells), -1))
        no = np.zeros(len(cells), dtype=bool)
        for name in ("checked", "allowed", "assessed", "plausible", "scored", "valid", "copy"):
            setattr(self, name, append(getattr(self, name), no))
        self.priced = append(self.priced, no)
        for name in ("score", "gower", "distance"):
            setattr(self, name, append(getattr(self, name), np.zeros(len(cells))))
        for name in ("sparsity", "n_actions"):
            setattr(self, name, append(getattr(self, name), np.zeros(len(cells), dtype=np.int64)))
        self.knn_distance = append(self.knn_distance, np.full(len(cells), np.nan))


def _new(numbers: IntArray, n_known: int) -> IntArray:
    """Where numbers beyond the known ones first appear, which they do in ascending order."""
    largest = np.maximum.accumulate(np.maximum(numbers, n_known - 1))
    return np.flatnonzero(np.diff(largest, prepend=n_known - 1))


def append(array: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Both arrays as one, with room for as many entries again, so that few of many are copied."""
    size, room = len(array) + len(more), array.base
    if room is None or room.ndim != array.ndim or len(room) < size:
        room = np.empty((2 * size, *array.shape[1:]), dtype=array.dtype)
        room[: len(array)] = array
    room[len(array) : size] = more
    return room[:size]
