"""Answers widened greedily, cell by cell, until each has a crowd that is large enough.

The crowd are the training people whose quasi-identifiers lie in the cells of an answer; pureness is
the share of the values inside that the predictor accepts. The values of a number are the training
values inside its range. All combinations of values are scored if they are few, otherwise random
ones. The answer's other values stay as they are; columns that follow from others follow, and
combinations in which one would leave its own cell cannot occur, so they do not count.

Always true: counts are exact; a step brings people inside, or nearer, so that it ends at the latest
with everything; draws depend on the seed and the answer's own values alone, so an answer's cells do
not depend on the others, which are scored in the same predictor calls.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ..analysis.answers import AnswerVariants, EncodedAnswers, Requirements
from ..candidates import CandidateRows
from ..kernels import BoolArray, Codes, IntArray, draw_keys, person_keys, pick
from ..predictors.decision import ROWS_PER_CALL
from ..tables.columns import differ
from ..tables.schema import OWN, EncodedRows
from .anonymity_generalization import NO_RUN, AnswerValue, Cell, Widening, answer_values

# Rows that are scored to choose a cell.
ROWS_TO_CHOOSE = 100
# Wider cells that are tried at a time, in all, and of each feature.
AT_ONCE, MAX_TRIED_CELLS, MAX_TRIED_OF_FEATURE = 3, 18, 8
# The same in all, once nothing is pure enough.
MAX_LAST_CELLS = 6
# Gains count people who miss the fewest cells first, then those who miss more.
N_LEVELS = 3
# The number of an answer, and the cell of each quasi-identifier.
Widened: TypeAlias = tuple[int, Sequence[Cell]]


@dataclass(frozen=True, eq=False)
class AnonymityRequest:
    """The checked arguments of ``anonymize``."""

    k: int
    names: tuple[Hashable, ...]
    training: EncodedRows
    min_pureness: float


@dataclass(frozen=True, eq=False)
class AnswersToWiden:
    """Answers, which of their mutable features are widened, and what is required of rows."""

    answers: EncodedAnswers
    places: Sequence[int]
    requirements: Requirements


@dataclass
class WidenedAnswer:
    """An answer that is being widened."""

    answer: int
    own: list[AnswerValue]
    cells: list[Cell]
    crowd: int
    is_pure: bool = True


class Widener:
    """Widens answers."""

    def __init__(
        self, request: AnonymityRequest, to_widen: AnswersToWiden, meter: PurenessMeter
    ) -> None:
        self.answers, self.places, self.meter = to_widen.answers, to_widen.places, meter
        self._k, self._min_pureness = request.k, request.min_pureness
        schema = self.answers.rows.schema
        self.positions = [int(schema.mutable[place]) for place in self.places]
        self.features = [schema.features[position] for position in self.positions]
        self.widenings = [Widening(feature) for feature in self.features]
        n_codes = [feature.n_codes for feature in self.features]
        self.crowd = Crowd.of(request.training.codes[self.positions], n_codes)

    def run(self) -> list[WidenedAnswer]:
        """The answers, each with a crowd that is large enough."""
        rows, widened = self.answers.rows, []
        columns = [answer_values(rows.frame.iloc[:, at], rows.codes[at]) for at in self.positions]
        for answer in range(len(self.answers)):
            own = [column[answer] for column in columns]
            cells = [w.start(value) for w, value in zip(self.widenings, own, strict=True)]
            widened.append(WidenedAnswer(answer, own, cells, self.count(cells)))
        while small := [one for one in widened if one.crowd < self._k]:
            for one, cells in zip(small, self._choose(small), strict=True):
                one.cells, one.crowd = cells, self.count(cells)
        for at in range(len(self.features)):
            self._narrow(widened, at)
        return widened

    def count(self, cells: Sequence[Cell]) -> int:
        """How many training people are in some cells."""
        return self.crowd.count(self._inside(cells))

    def blurs(self, answer: int, at: int, cell: Cell) -> bool:
        """Whether a cell of a changed feature holds the person's own value as well."""
        factuals, owner = self.answers.factuals, self.answers.owner[answer]
        own = factuals.tree_codes[self.positions[at], owner]
        changed = self.answers.changed[self.places[at], answer]
        return bool(changed) and (
            cell.is_whole or cell.run[0] <= own <= cell.run[1] or own in cell.levels
        )

    def shown_cells(self, one: WidenedAnswer, cells: Sequence[Cell]) -> list[Cell]:
        """The cells that the person is shown: what does not change stays as it is."""
        shown = []
        for at, cell in enumerate(cells):
            if not self.answers.changed[self.places[at], one.answer]:
                cell = self.widenings[at].start(one.own[at])
            elif not self.features[at].ordered:
                owner = self.answers.owner[one.answer]
                mine = self.answers.factuals.codes[self.positions[at], owner]
                others = tuple(code for code in cell.codes.tolist() if code != mine)
                cell = replace(cell, run=NO_RUN, levels=others)
            shown.append(cell)
        return shown

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
                # Cells that are not pure rarely become pure when widened.
                if number not in chosen and (one.is_pure or level == 0)
            }
            for start in range(0, MAX_TRIED_CELLS, AT_ONCE):
                tried = [
                    (number, move)
                    for number, theirs in moves.items()
                    if number not in chosen
                    for move in theirs[start : start + AT_ONCE]
                ]
                shares = self._shares([(small[number], move.cells) for number, move in tried])
                for (number, move), share in zip(tried, shares, strict=True):
                    if number not in best or share - move.cost > best[number][0]:
                        best[number] = share - move.cost, move.cells
                    if number not in chosen and not move.blurs and share >= self._min_pureness:
                        chosen[number] = move.cells
        for number, one in enumerate(small):
            one.is_pure &= number in chosen
        return [chosen.get(number, best[number][1]) for number in range(len(small))]

    def _narrow(self, widened: Sequence[WidenedAnswer], at: int) -> None:
        """Undo steps that later ones made needless, in one feature of all answers."""
        tried: list[tuple[WidenedAnswer, list[Cell]]] = []
        for one in widened:
            counts = self.crowd.by_code(self._inside(one.cells), at)
            inner = self.widenings[at].narrower(one.own[at], one.cells[at])
            enough = [cell for cell in inner if counts[cell.codes].sum() >= self._k][:AT_ONCE]
            if enough:
                # The last one is the present cell: nothing may become less pure.
                every = [*enough, one.cells[at]]
                tried += [(one, [*one.cells[:at], cell, *one.cells[at + 1 :]]) for cell in every]
        with_shares = list(zip(tried, self._shares(tried), strict=True))
        now = {one.answer: share for (one, _), share in with_shares}
        # The narrowest comes last, and stays.
        for (one, cells), share in reversed(with_shares):
            if share >= min(self._min_pureness, now[one.answer]):
                one.cells, one.crowd = cells, self.count(cells)

    def _shares(self, tried: Sequence[tuple[WidenedAnswer, list[Cell]]]) -> list[float]:
        """How pure cells are at least: all of them, and those that the person is shown."""
        cells = [(one.answer, cells) for one, cells in tried]
        cells += [(one.answer, self.shown_cells(one, cells)) for one, cells in tried]
        measured = self.meter.measure(cells, ROWS_TO_CHOOSE)
        shares = [one.share - one.error if one.n_scored else 0.0 for one in measured]
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
            moves += sorted(theirs, key=lambda pair: pair[0])[:MAX_TRIED_OF_FEATURE]
        moves.sort(key=lambda pair: pair[0])
        return [move for _, move in moves[: MAX_TRIED_CELLS if one.is_pure else MAX_LAST_CELLS]]

    def _distance(self, one: WidenedAnswer, at: int, cell: Cell) -> float:
        """Distance of a run to the answer; for a changed value, closeness to the person's."""
        position, answers = self.positions[at], self.answers
        middle = (cell.run[0] + cell.run[1]) / 2
        if answers.changed[self.places[at], one.answer]:
            own = int(answers.factuals.tree_codes[position, answers.owner[one.answer]])
            return -abs(middle - own)
        return abs(middle - int(answers.rows.tree_codes[position, one.answer]))


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


@dataclass(frozen=True, eq=False)
class Crowd:
    """The distinct training rows, and how many people have each.

    Examples
    --------
    >>> crowd = Crowd.of(np.array([[0, 0, 1], [2, 2, 0]]), [2, 3])
    >>> crowd.count([np.array([True, False]), np.array([False, False, True])])
    2
    """

    codes: Codes
    n_people: IntArray
    n_codes: Sequence[int]

    @classmethod
    def of(cls, codes: Codes, n_codes: Sequence[int]) -> Crowd:
        """The crowd of training rows, (n_features, n_rows)."""
        distinct, n_people = np.unique(codes, axis=1, return_counts=True)
        return cls(distinct, n_people, n_codes)

    def count(self, inside: Sequence[BoolArray]) -> int:
        """How many people are inside all cells; ``inside`` has a truth value per code."""
        return int(self.n_people[self._misses(inside).sum(axis=0) == 0].sum())

    def by_code(self, inside: Sequence[BoolArray], at: int) -> IntArray:
        """How many people inside all other cells have each code of one feature."""
        misses = self._misses(inside)
        misses[at] = False
        some = ~misses.any(axis=0)
        counts = np.bincount(self.codes[at][some], self.n_people[some], minlength=self.n_codes[at])
        return counts.astype(np.int64)

    def gains(self, inside: Sequence[BoolArray], level: int = 0) -> tuple[list[IntArray], bool]:
        """How many people each value of a feature would bring nearer, and whether inside."""
        misses = self._misses(inside)
        n_misses = misses.sum(axis=0)
        numbers = np.unique(n_misses[n_misses > 0])
        number = int(numbers[level]) if level < numbers.size else -1
        counts = []
        for codes, misses_it, n_codes in zip(self.codes, misses, self.n_codes, strict=True):
            some = (n_misses == number) & misses_it
            total = np.bincount(codes[some], self.n_people[some], minlength=n_codes)
            counts.append(total.astype(np.int64))
        return counts, number == 1

    def _misses(self, inside: Sequence[BoolArray]) -> BoolArray:
        """Which values are outside of their cell, (n_features, n_distinct)."""
        pairs = zip(inside, self.codes, strict=True)
        return np.stack([~cell[codes] for cell, codes in pairs])


@dataclass(frozen=True)
class Pureness:
    """The share of accepted values inside the cells of an answer."""

    share: float
    error: float
    n_scored: int
    n_combinations: int


class PurenessMeter:
    """Measures the pureness of widened answers."""

    def __init__(self, to_widen: AnswersToWiden, seed: int) -> None:
        self._answers, self._places, required = (
            to_widen.answers,
            to_widen.places,
            to_widen.requirements,
        )
        follow = {column.place for column in required.computed}
        self._drawn = [place for place in self._places if place not in follow]
        self._requirements = required
        self._variants = AnswerVariants(self._answers, required.computed, required.constraints)
        self._keys = person_keys(seed, self._answers.rows.tree_codes.T)

    def measure(self, widened: Sequence[Widened], most: int) -> list[Pureness]:
        """The pureness of some widened answers."""
        measured: list[Pureness] = []
        at_once = max(1, ROWS_PER_CALL // most)
        for start in range(0, len(widened), at_once):
            measured += self._measure(widened[start : start + at_once], most)
        return measured

    def _measure(self, widened: Sequence[Widened], most: int) -> list[Pureness]:
        choices = [self._choices(*one) for one in widened]
        n_combinations = [math.prod(one.size for one in some) for some in choices]
        answers = [answer for answer, _ in widened]
        parts = [self._codes(*one, most) for one in zip(answers, choices, strict=True)]
        of = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
        rows = self._variants.make(
            np.array(answers, dtype=np.int64)[of], np.concatenate(parts, axis=1)
        )
        can_occur = self._can_occur(rows, of, widened)
        accepted = np.zeros(of.size, dtype=bool)
        accepted[can_occur] = self._requirements.score(rows.take(can_occur)).valid
        n_scored = np.bincount(of[can_occur], minlength=len(parts)).tolist()
        n_accepted = np.bincount(of[accepted], minlength=len(parts)).tolist()
        return [
            _pureness(*counts, is_sample=counts[2] > most)
            for counts in zip(n_accepted, n_scored, n_combinations, strict=True)
        ]

    def _codes(self, answer: int, choices: Sequence[Codes], most: int) -> Codes:
        """All combinations of values, or as many random ones as there may be."""
        n_combinations = math.prod(some.size for some in choices)
        numbers = np.arange(min(n_combinations, most))
        drawn = draw_keys(self._keys[[answer]], numbers)[0]
        codes = np.repeat(self._answers.codes[:, [answer]], numbers.size, axis=1)
        stride = 1
        for place, some in zip(self._drawn, choices, strict=True):
            if n_combinations <= most:
                chosen = numbers // stride % some.size
                stride *= some.size
            else:
                chosen = pick(drawn, place, np.full(numbers.size, some.size))
            codes[place] = some[chosen]
        return codes

    def _choices(self, answer: int, cells: Sequence[Cell]) -> list[Codes]:
        """The values of each cell as codes of variants; the answer's own stays as it is."""
        answers, listed = self._answers, []
        for place, cell in zip(self._places, cells, strict=True):
            if place in self._drawn:
                position, codes = answers.rows.schema.mutable[place], cell.codes
                exact, own = answers.rows.codes[position, answer], answers.codes[place, answer]
                mine = answers.factuals.codes[position, answers.owner[answer]]
                others = np.where(codes == mine, OWN, len(answers) + codes)
                some = np.where(codes == exact, own, others).astype(np.int32)
                listed.append(some if exact >= 0 else np.append(some, own))
        return listed

    def _can_occur(
        self, rows: CandidateRows, of: IntArray, widened: Sequence[Widened]
    ) -> BoolArray:
        """Rows in which every column that follows from others is inside its cell."""
        can_occur = np.ones(of.size, dtype=bool)
        schema = self._answers.rows.schema
        answers = np.array([answer for answer, _ in widened], dtype=np.int64)
        for at, place in enumerate(self._places):
            if place in self._drawn:
                continue
            position = schema.mutable[place]
            feature, column = schema.features[position], rows.frame.iloc[:, position]
            exact, near = feature.encode(column)
            # A value that training never held counts as its nearest one, unless it is the answer's.
            code = np.where(exact >= 0, exact, np.minimum(near, feature.n_codes - 1))
            inside = np.stack([cells[at].inside(feature.n_codes) for _, cells in widened])
            own = self._answers.rows.frame.iloc[:, position].iloc[answers[of]]
            same = ~differ(column.reset_index(drop=True), own.reset_index(drop=True))
            can_occur &= inside[of, code] | same
        return can_occur


def _pureness(n_accepted: int, n_scored: int, n_combinations: int, *, is_sample: bool) -> Pureness:
    share = n_accepted / n_scored if n_scored else float("nan")
    error = float(np.sqrt(share * (1 - share) / n_scored)) if is_sample and n_scored else 0.0
    return Pureness(share, error, n_scored, n_combinations)
