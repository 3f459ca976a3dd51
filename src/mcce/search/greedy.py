"""From targets to answers: walk towards each, then put back what is not needed.

Beyond the paper. A person's targets are valid candidates. The walk goes from the person towards
each of them, one feature at a time, by the one that raises the score most, until the row is good:
valid, inside the support and allowed. The target itself ends it too. Then single changes are put
back while the row stays as good. All people and targets of a block move together, one call of the
predictor per round.

Always true: no row is asked twice, be it as a draw or on the way; nobody's way depends on anybody
else's; every row that is arrived at is valid, and allowed and inside the support if its target is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..candidates import CandidateRows, Candidates, Lookup
from ..kernels import BoolArray, Codes, FloatArray, IntArray, first_equal
from ..plausibility.support import Support
from ..postprocess.validation import ROWS_PER_CALL, Picks, PredictionCache
from ..predictors.decision import Decision
from ..protocols import RowFilter
from ..tables.schema import OWN

# Scores are compared to so many decimals: the last may hang on how many rows a call has.
DECIMALS = 10


@dataclass(frozen=True, eq=False)
class Terms:
    """What a row must be, and how a walk may go.

    Parameters
    ----------
    decision
        The black box with what is desired.
    rules
        Rows must pass all of them.
    support, sizes
        What real accepted rows look like, for some share of them; None: it is not asked for.
    units : (n_units, n_mutable)
        Features that change only together; each is in one unit.
    slack, n_wanted
        A walk is given up if the person has so many answers of so many changes less.
    """

    decision: Decision
    rules: tuple[RowFilter, ...]
    support: Support | None
    sizes: Codes | None
    units: BoolArray
    slack: int
    n_wanted: int


class Register:
    """Every row that was looked at in a block of people, and what is known of it.

    Attributes
    ----------
    cells : (n_rows, 1 + n_mutable)
        Person, as numbered in the block, and codes, ``OWN`` where a cell is the person's own.
    looked_at, n_outside, allowed : (n_rows,)
        Whether it is known how many features are outside the support and whether all rules let the
        row pass, and that.
    asked, valid, score : (n_rows,)
        Whether the predictor was asked, and if so what it said.
    draw : (n_rows,)
        The candidate that first led to the row, as numbered in the block.
    came : (n_rows,)
        How many rows walks had come to before they came to this one, -1 if they never did. Only
        such rows may be answers: which other draws are known depends on who shares them.
    """

    def __init__(self, terms: Terms, candidates: Candidates) -> None:
        self.terms = terms
        self.rows, self.people, self.tables = candidates.rows, candidates.people, candidates.tables
        self.lookup = Lookup(candidates.rows, candidates.tables)
        self.cells: Codes = np.empty((0, 1 + self.rows.schema.mutable.size), dtype=np.int32)
        self.n_outside: IntArray = np.empty(0, dtype=np.int64)
        self.looked_at, self.allowed, self.asked, self.valid = np.empty((4, 0), dtype=bool)
        self.score: FloatArray = np.empty(0)
        self.draw, self.came = np.empty((2, 0), dtype=np.int64)
        self.n_evaluated = 0

    def place(self, person: IntArray, draw: IntArray | Codes, codes: Codes) -> IntArray:
        """The number of each row here; what is new is put down."""
        n_known = len(self.cells)
        cells = np.concatenate([person[None].astype(np.int32), codes]).T
        first = first_equal(np.concatenate([self.cells, cells]))[n_known:]
        new = np.flatnonzero(first == n_known + np.arange(first.size))
        number = np.empty(first.size, dtype=np.int64)
        number[new] = n_known + np.arange(new.size)
        self._put_down(cells[new])
        self.draw = np.concatenate([self.draw, draw[new]])
        return np.where(first < n_known, first, number[np.maximum(first - n_known, 0)])

    def come_to(self, numbers: IntArray) -> None:
        """Note that walks have come to rows, in this order."""
        first = np.sort(np.unique(numbers, return_index=True)[1])
        new = numbers[first][self.came[numbers[first]] < 0]
        self.came[new] = self.came.max(initial=-1) + 1 + np.arange(new.size)

    def chosen(self, numbers: IntArray) -> CandidateRows:
        """Rows by number."""
        cells = self.cells[numbers]
        codes = np.ascontiguousarray(cells[:, 1:].T)
        return CandidateRows(self.rows, self.people[cells[:, 0]], codes, self.tables)

    def ask(self, numbers: IntArray) -> None:
        """Ask the predictor about rows, those that it was not asked about yet."""
        new = np.unique(numbers[~self.asked[numbers]])
        for start in range(0, new.size, ROWS_PER_CALL):
            piece = new[start : start + ROWS_PER_CALL]
            scored = self.terms.decision.score(self.chosen(piece).frame)
            self.learn(piece, scored.score, scored.valid)
        self.n_evaluated += new.size

    def learn(self, numbers: IntArray, score: FloatArray, valid: BoolArray) -> None:
        """Note what the predictor said of rows."""
        self.score[numbers] = score
        self.valid[numbers] = valid
        self.asked[numbers] = True

    def merit(self, numbers: IntArray) -> FloatArray:
        """How good the scores of rows are."""
        return self.terms.decision.desirability(self.score[numbers]).round(DECIMALS)

    def look_at(self, numbers: IntArray) -> None:
        """Find out whether rows are inside the support and allowed, if that is not known."""
        new = np.unique(numbers[~self.looked_at[numbers]])
        chosen = self.chosen(new)
        self.allowed[new] = True
        for rule in self.terms.rules:
            self.allowed[new] &= rule.keeps(chosen)
        if self.terms.support is not None and self.terms.sizes is not None:
            descent = self.lookup.descent(chosen.owner, chosen.codes)
            self.n_outside[new] = self.terms.support.n_outside(descent, self.terms.sizes)
        self.looked_at[new] = True

    def good(self, numbers: IntArray) -> BoolArray:
        """Rows that are valid, inside the support and allowed."""
        valid = self.valid[numbers]
        self.look_at(numbers[valid])
        return valid & self.allowed[numbers] & (self.n_outside[numbers] == 0)

    def _put_down(self, cells: Codes) -> None:
        no = np.zeros(len(cells), dtype=bool)
        self.cells = np.concatenate([self.cells, cells])
        self.n_outside = np.concatenate([self.n_outside, no.astype(np.int64)])
        self.score = np.concatenate([self.score, no.astype(np.float64)])
        self.came = np.concatenate([self.came, np.full(no.size, -1)])
        for name in ("looked_at", "allowed", "asked", "valid"):
            setattr(self, name, np.concatenate([getattr(self, name), no]))


class Walk:
    """The ways of a block of people towards their targets.

    Attributes
    ----------
    person, draw : (n_walks,)
        Whose way each is and towards which candidate, as numbered in the block.
    targets : (n_mutable, n_walks)
        That candidate's codes.
    at : (n_walks,)
        Where it has come to, by number in the register.
    arrived, given_up : (n_walks,)
        How it has ended.
    """

    def __init__(
        self, terms: Terms, cache: PredictionCache, targets: Picks, unstable: BoolArray
    ) -> None:
        self.terms = terms
        self.register = Register(terms, cache.candidates)
        self.person, self.draw = targets.person, targets.draw
        self.n_people = cache.candidates.people.size
        self._remember(cache, unstable)
        self.targets: Codes = cache.candidates.select(self.person, self.draw).codes
        everybody, graded = np.arange(self.person.size), terms.decision.has_scores
        start = np.full_like(self.targets, OWN) if graded else self.targets
        self._place(everybody, self.targets)
        self.at: IntArray = self._place(everybody, start)
        # Of an unstable predictor even the person's own row may be a target.
        self.arrived: BoolArray = (start == self.targets).all(axis=0)
        self.given_up: BoolArray = np.zeros(self.person.size, dtype=bool)
        self._reverting: IntArray | None = None

    def _remember(self, cache: PredictionCache, unstable: BoolArray) -> None:
        """Put down what the predictor has said of candidates, unless it says now this, now that."""
        candidates, people = cache.candidates, np.unique(self.person)
        group = candidates.group[people]
        who, draw = np.nonzero(cache.known[group] & ~unstable[people])
        codes = candidates.select(people[who], draw).codes
        row = self.register.place(people[who], draw, codes)
        self.register.learn(row, cache.score[group[who], draw], cache.valid[group[who], draw])

    @property
    def ended(self) -> bool:
        """Whether nobody moves any more."""
        return self._reverting is not None and not self._reverting.size

    def next_round(self) -> None:
        """One step of everybody: forth as long as somebody has not arrived, then back."""
        walking = np.flatnonzero(~self.arrived & ~self.given_up)
        if walking.size:
            self._step(walking)
            self._give_up()
            return
        if self._reverting is None:
            self._reverting = np.flatnonzero(self.arrived)
        self._reverting = self._revert(self._reverting)

    def _step(self, walking: IntArray) -> None:
        """Copy one more unit of features from the target: one that ends the walk, or the best."""
        register, here, there = self.register, self._codes(walking), self.targets[:, walking]
        walk, unit = self._moves(here != there)
        codes = np.where(self.terms.units[unit].T, there[:, walk], here[:, walk])
        row = self._place(walking[walk], codes)
        register.ask(row)
        order = np.lexsort((unit, -register.merit(row), ~register.good(row), walk))
        best = order[_opens(walk[order])]
        self.at[walking] = row[best]
        ends = register.good(row[best]) | (codes[:, best] == there).all(axis=0)
        self.arrived[walking[ends]] = True

    def _give_up(self) -> None:
        """Leave ways that have become longer than others of the person are, by the slack."""
        n_changes, most = self.n_changes, self.targets.shape[0]
        arrived, person = np.flatnonzero(self.arrived), self.person
        n_arrived = np.bincount(person[arrived], minlength=self.n_people)
        fewest = np.full(self.n_people, most)
        np.minimum.at(fewest, person[arrived], n_changes[arrived])
        enough = (n_arrived >= self.terms.n_wanted)[person]
        too_long = n_changes >= fewest[person] + self.terms.slack
        self.given_up |= enough & too_long & ~self.arrived

    def _revert(self, walks: IntArray) -> IntArray:
        """Put back one unit of features where the row stays as good; gives those who went on."""
        register, here = self.register, self._codes(walks)
        walk, unit = self._moves(here != OWN)
        codes = np.where(self.terms.units[unit].T, OWN, here[:, walk])
        changed = (codes != OWN).any(axis=0)
        walk, unit, codes = walk[changed], unit[changed], codes[:, changed]
        row, now = self._place(walks[walk], codes), self.at[walks[walk]]
        register.look_at(np.concatenate([row, now]))
        as_good = register.allowed[row] >= register.allowed[now]
        as_good &= register.n_outside[row] <= register.n_outside[now]
        register.ask(row[as_good])
        left = np.flatnonzero(as_good & register.valid[row])
        walk, unit, row = walk[left], unit[left], row[left]
        order = np.lexsort((unit, -register.merit(row), register.n_outside[row], walk))
        best = order[_opens(walk[order])]
        self.at[walks[walk[best]]] = row[best]
        return walks[walk[best]]

    def _place(self, walks: IntArray, codes: Codes) -> IntArray:
        row = self.register.place(self.person[walks], self.draw[walks], codes)
        self.register.come_to(row)
        return row

    def _moves(self, differs: BoolArray) -> tuple[IntArray, IntArray]:
        """All moves of everybody: which way, and which unit of features."""
        walk, unit = np.nonzero((self.terms.units @ differs).T)
        return walk, unit

    def _codes(self, walks: IntArray) -> Codes:
        return np.ascontiguousarray(self.register.cells[self.at[walks], 1:].T)

    @property
    def n_changes(self) -> IntArray:
        """Changed features of each way so far."""
        return np.asarray((self.register.cells[self.at, 1:] != OWN).sum(axis=1))


def _opens(numbers: IntArray) -> IntArray:
    """Where a new number begins in an ascending list."""
    return np.flatnonzero(np.diff(numbers, prepend=-1))
