"""Answers widened greedily: cell by cell, until each has a crowd that is large enough.

Takes answers; all of them put their questions to the predictor in the same calls.

Always true: a step brings people inside, or nearer, so that it ends at the latest with everything;
an answer's cells do not depend on the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..kernels import BoolArray
from ..tables.schema import EncodedRows
from .answers import EncodedAnswers
from .cell_table import own_values
from .crowd import Crowd
from .pureness import PurenessMeter
from .widening import NO_RUN, Cell, Own, Widening

# Rows that are scored to choose a cell.
ROWS_TO_CHOOSE = 100
# Wider cells that are tried at a time, in all, and of each feature.
AT_ONCE, MOST_TRIES, MOST_OF_FEATURE = 3, 18, 8
# The same in all, once nothing is pure enough.
FEW_TRIES = 6
# Whom they bring nearer: the people who miss the fewest cells, then those who miss more.
N_LEVELS = 3


@dataclass
class WidenedAnswer:
    """An answer that is being widened."""

    answer: int
    own: list[Own]
    cells: list[Cell]
    crowd: int
    is_pure: bool = True


class Widener:
    """Widens answers."""

    def __init__(
        self,
        k: int,
        min_pureness: float,
        training: EncodedRows,
        answers: EncodedAnswers,
        rows: Sequence[int],
        meter: PurenessMeter,
    ) -> None:
        schema = answers.rows.schema
        self.answers, self.rows, self.meter = answers, rows, meter
        self._k, self._min_pureness = k, min_pureness
        self.positions = [int(schema.mutable[row]) for row in rows]
        self.features = [schema.features[position] for position in self.positions]
        self.widenings = [Widening(feature) for feature in self.features]
        n_codes = [feature.n_codes for feature in self.features]
        self.crowd = Crowd.of(training.exact[self.positions], n_codes)

    def run(self) -> list[WidenedAnswer]:
        """The answers, each with a crowd that is large enough."""
        rows, everybody = self.answers.rows, []
        columns = [
            own_values(feature, rows.frame.iloc[:, at], rows.exact[at])
            for feature, at in zip(self.features, self.positions, strict=True)
        ]
        for answer in range(len(self.answers)):
            own = [column[answer] for column in columns]
            cells = [w.start(value) for w, value in zip(self.widenings, own, strict=True)]
            everybody.append(WidenedAnswer(answer, own, cells, self.count(cells)))
        while small := [one for one in everybody if one.crowd < self._k]:
            for one, cells in zip(small, self._choose(small), strict=True):
                one.cells, one.crowd = cells, self.count(cells)
        for at in range(len(self.features)):
            self._narrow(everybody, at)
        return everybody

    def count(self, cells: Sequence[Cell]) -> int:
        """How many training people are in some cells."""
        return self.crowd.count(self._inside(cells))

    def blurs(self, answer: int, at: int, cell: Cell) -> bool:
        """Whether a cell of a changed feature holds the person's own value as well."""
        factuals, owner = self.answers.factuals, self.answers.owner[answer]
        own = factuals.descent[self.positions[at], owner]
        changed = self.answers.changed[self.rows[at], answer]
        return bool(changed) and (
            cell.is_whole or cell.run[0] <= own <= cell.run[1] or own in cell.levels
        )

    def told(self, one: WidenedAnswer, cells: Sequence[Cell]) -> list[Cell]:
        """The cells as the person is told: what does not change stays as it is."""
        found = []
        for at, cell in enumerate(cells):
            if not self.answers.changed[self.rows[at], one.answer]:
                cell = self.widenings[at].start(one.own[at])
            elif not self.features[at].ordered:
                owner = self.answers.owner[one.answer]
                mine = self.answers.factuals.exact[self.positions[at], owner]
                others = tuple(code for code in cell.codes.tolist() if code != mine)
                cell = replace(cell, run=NO_RUN, levels=others)
            found.append(cell)
        return found

    def _inside(self, cells: Sequence[Cell]) -> list[BoolArray]:
        return [c.inside(f.n_codes) for c, f in zip(cells, self.features, strict=True)]

    def _choose(self, small: Sequence[WidenedAnswer]) -> list[list[Cell]]:
        """The next cells of each: the first that are pure enough, otherwise the best."""
        chosen: dict[int, list[Cell]] = {}
        best: dict[int, tuple[float, list[Cell]]] = {}
        for level in range(N_LEVELS):
            moves = {
                number: self._moves(one, level)
                for number, one in enumerate(small)
                # What is not pure once hardly becomes so.
                if number not in chosen and (one.is_pure or level == 0)
            }
            for start in range(0, MOST_TRIES, AT_ONCE):
                asked = [
                    (number, move)
                    for number, theirs in moves.items()
                    if number not in chosen
                    for move in theirs[start : start + AT_ONCE]
                ]
                shares = self._shares([(small[number], move.cells) for number, move in asked])
                for (number, move), share in zip(asked, shares, strict=True):
                    if number not in best or share - move.cost > best[number][0]:
                        best[number] = share - move.cost, move.cells
                    if number not in chosen and not move.blurs and share >= self._min_pureness:
                        chosen[number] = move.cells
        for number, one in enumerate(small):
            one.is_pure &= number in chosen
        return [chosen.get(number, best[number][1]) for number in range(len(small))]

    def _narrow(self, everybody: Sequence[WidenedAnswer], at: int) -> None:
        """Take back what later steps made needless, in one feature of all answers."""
        tried: list[tuple[WidenedAnswer, list[Cell]]] = []
        for one in everybody:
            counts = self.crowd.by_code(self._inside(one.cells), at)
            inner = self.widenings[at].narrower(one.own[at], one.cells[at])
            enough = [cell for cell in inner if counts[cell.codes].sum() >= self._k][:AT_ONCE]
            if enough:
                # The last is as it is now: nothing may become less pure.
                every = [*enough, one.cells[at]]
                tried += [(one, [*one.cells[:at], cell, *one.cells[at + 1 :]]) for cell in every]
        found = list(zip(tried, self._shares(tried), strict=True))
        now = {one.answer: share for (one, _), share in found}
        # The narrowest comes last, and stays.
        for (one, cells), share in reversed(found):
            if share >= min(self._min_pureness, now[one.answer]):
                one.cells, one.crowd = cells, self.count(cells)

    def _shares(self, tried: Sequence[tuple[WidenedAnswer, list[Cell]]]) -> list[float]:
        """How pure cells are at least: all of them, and what the person is told."""
        cells = [(one.answer, cells) for one, cells in tried]
        cells += [(one.answer, self.told(one, cells)) for one, cells in tried]
        found = self.meter.measure(cells, ROWS_TO_CHOOSE)
        shares = [one.share - one.error if one.n_scored else 0.0 for one in found]
        return [min(pair) for pair in zip(shares[: len(tried)], shares[len(tried) :], strict=True)]

    def _moves(self, one: WidenedAnswer, level: int) -> list[_Move]:
        """Wider cells of an answer, those that bring most people for their loss first."""
        counts, enough = self.crowd.gains(self._inside(one.cells), level)
        needed = self._k - one.crowd
        moves: list[tuple[tuple[float, ...], _Move]] = []
        for at, widening in enumerate(self.widenings):
            theirs = []
            for cell, gain in widening.wider(one.own[at], one.cells[at], counts[at]):
                cells = [*one.cells[:at], cell, *one.cells[at + 1 :]]
                move = _Move(
                    cells, cell.loss - one.cells[at].loss, self.blurs(one.answer, at, cell)
                )
                useful = min(gain, needed) if enough else gain
                rank = (*_order(move, useful, cell), self._distance(one, at, cell), at)
                theirs.append((rank, move))
            moves += sorted(theirs, key=lambda pair: pair[0])[:MOST_OF_FEATURE]
        moves.sort(key=lambda pair: pair[0])
        return [move for _, move in moves[: MOST_TRIES if one.is_pure else FEW_TRIES]]

    def _distance(self, one: WidenedAnswer, at: int, cell: Cell) -> float:
        """How far a run is from the answer; of a changed value, how near to the person's."""
        position, answers = self.positions[at], self.answers
        middle = (cell.run[0] + cell.run[1]) / 2
        if answers.changed[self.rows[at], one.answer]:
            own = int(answers.factuals.descent[position, answers.owner[one.answer]])
            return -abs(middle - own)
        return abs(middle - int(answers.rows.descent[position, one.answer]))


@dataclass(frozen=True)
class _Move:
    """Cells to try: what one more loses, and whether a change can no longer be seen."""

    cells: list[Cell]
    cost: float
    blurs: bool


def _order(move: _Move, useful: int, cell: Cell) -> tuple[float, ...]:
    """The best first: many people for the loss and, about equally many, round and in one step."""
    rate = math.inf if move.cost <= 0 else round(2 * math.log2(useful / move.cost))
    return move.blurs, -rate, not cell.is_round, -useful, move.cost
