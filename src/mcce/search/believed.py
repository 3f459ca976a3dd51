"""Visited rows of which a surrogate says what the black box would, until it is asked.

Beyond the paper. What the surrogate predicts of a row is corrected by what it got wrong for the
same person: at their own row, whose score is known, and at every row that was asked. Errors at rows
that share more cells count more. At first a row is taken for valid also if it falls short by
little; each time that is wrong, more is required of the person's rows.

Always true: nobody's beliefs depend on anybody else; a row is asked at most once; no person has
more rows asked than allowed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..candidates import Candidates
from ..kernels import BoolArray, Codes, FloatArray, IntArray, weigh_errors
from ..postprocess.filters import ExcludeUnstable
from ..postprocess.remembered import score_rows
from ..postprocess.validation import ROWS_PER_CALL
from ..predictors.decision import ScoredRows
from ..tables.schema import OWN
from .replies import Led
from .visited import DECIMALS, VisitedRows, WalkSettings, append

# An error counts half as much for each cell that differs, and against this weight of no error.
NO_ERROR = 0.1
# By how many typical errors of the surrogate a row may fall short at first, and the number of rows
# of a person that must turn out wrong until it may not.
OPTIMISM, PATIENCE = 3.0, 6
# A surrogate that was so often wrong about a person is not believed about them any more.
MAX_WRONG = 24
# Replies of a person that correct beliefs; up to as many again in the batch that reaches it.
MAX_LEARNED = 64


@dataclass(frozen=True, eq=False)
class Errors:
    """By how much the surrogate was wrong about rows of people, in the order of the replies."""

    person: IntArray
    row: IntArray
    error: FloatArray

    @classmethod
    def none(cls) -> Errors:
        """Before any reply."""
        nobody = np.empty(0, dtype=np.int64)
        return cls(nobody, nobody, np.empty(0))

    def and_also(self, more: Errors) -> Errors:
        """These, then others."""
        pairs = zip(vars(self).values(), vars(more).values(), strict=True)
        return Errors(*(np.concatenate(pair) for pair in pairs))


class BelievedRows(VisitedRows):
    """Visited rows with beliefs about their scores."""

    def __init__(
        self, settings: WalkSettings, led: Led, candidates: Candidates, unstable: ExcludeUnstable
    ) -> None:
        super().__init__(settings, candidates)
        self.led = led
        self.asked: BoolArray = np.empty(0, dtype=bool)
        self._response, self._total, self._weight, self._merit = np.empty((4, 0))
        self.n_wrong: IntArray = np.zeros(self.people.size, dtype=np.int64)
        self._n_learned: IntArray = np.zeros(self.people.size, dtype=np.int64)
        self._errors = Errors.none()
        self._closed = False
        trained = zip(candidates.tables, candidates.rows.tables, strict=True)
        others = [at for at, (table, first) in enumerate(trained) if table is not first]
        self._is_trained = set(others) <= set(self.recomputed)
        self._unstable = unstable
        self._recall()

    def _recall(self) -> None:
        """Learn from the people themselves, and from what earlier stages asked."""
        everybody = np.arange(self.people.size)
        own = self.led.own
        if own is not None:
            codes = np.full((self.cells.shape[1] - 1, everybody.size), OWN, dtype=np.int32)
            theirs = ScoredRows(own.score[self.people], np.zeros(everybody.size, dtype=bool))
            self._take_over(everybody, codes, theirs)
        if not self._is_trained:
            return
        order = np.argsort(self.people, kind="stable")
        stable = np.setdiff1d(self.people, self._unstable.person)
        known = np.isin(self.people, stable)
        self.n_wrong[known] = self.led.replies.n_refused[self.people[known]]
        found = self.led.replies.recall(stable)
        if found is not None:
            owner, codes, said = found
            person = order[np.searchsorted(self.people, owner, sorter=order)]
            self._take_over(person, codes, said)

    def _take_over(self, person: IntArray, codes: Codes, said: ScoredRows) -> None:
        numbers = self.place(person, np.full(person.size, -1), codes)
        self.evaluate(numbers)
        self._learn(numbers, said)

    @property
    def n_asked(self) -> IntArray:
        """Rows asked for each person."""
        return self.led.replies.n_asked[self.people]

    @property
    def error(self) -> float:
        """The typical error of the surrogate."""
        return self.led.surrogate.error

    def evaluate(self, numbers: IntArray) -> None:
        """Form beliefs about rows of which there are none yet."""
        new = self._without(self.scored, numbers)
        if not new.size:
            return
        rows = self.rows(new)
        descent = self.lookup.descent(rows.owner, rows.codes)
        self._response[new] = self.led.surrogate.predict(descent)
        self._correct(new, self._errors)
        self.scored[new] = True
        self.reach(new)
        self._believe(new)

    def ask(self, numbers: IntArray) -> IntArray:
        """Put rows to the black box, as far as allowed; gives the numbers of those that were."""
        new = self._without(self.asked, numbers)
        most, person = self.led.max_evaluations, self.person[new]
        if most is not None:
            new = new[n_before(person) + self.n_asked[person] < most]
        if not new.size:
            return new
        self.evaluate(new)
        rows, said = self.rows(new), self._replies_to(new)
        self.led.replies.count(rows.owner, said.valid)
        if self._is_trained:
            rows.codes[self.recomputed] = OWN
            self.led.replies.store(rows.owner, rows.codes, said)
        np.add.at(self.n_wrong, self.person[new], ~said.valid)
        # All at once: what a person's replies teach must not depend on where calls are cut.
        self._learn(new, said)
        self.n_evaluated += new.size
        return new

    def _replies_to(self, numbers: IntArray) -> ScoredRows:
        """What the black box says of rows, in calls of bounded size."""
        how, parts = self.settings, list[ScoredRows]()
        for start in range(0, numbers.size, ROWS_PER_CALL):
            rows = self.rows(numbers[start : start + ROWS_PER_CALL])
            parts.append(score_rows(how.decision, rows, how.remembered))
        score = np.concatenate([part.score for part in parts])
        return ScoredRows(score, np.concatenate([part.valid for part in parts]))

    def hope(self, person: IntArray) -> None:
        """Believe rows of people again that fall short by little, as at first."""
        self.n_wrong[person] = 0
        self._believe(np.flatnonzero(self.scored & np.isin(self.person, person)))

    def close(self) -> None:
        """Believe nothing any more: only rows that the black box has called valid are."""
        self._closed = True
        self.valid &= self.asked

    def desirability(self, numbers: IntArray) -> FloatArray:
        """How good rows are believed to be, larger being better."""
        return self._merit[numbers]

    def _learn(self, numbers: IntArray, said: ScoredRows) -> None:
        """Take over what the black box said, and correct beliefs about other rows."""
        self.store_scores(numbers, said.score, said.valid & self._is_stable(numbers))
        self.asked[numbers] = True
        response = self.led.surrogate.response(said)
        self._merit[numbers] = self._margin(response)
        person = self.person[numbers]
        # Each person's first replies teach the most.
        taught = (self._n_learned[person] < MAX_LEARNED) & (n_before(person) < MAX_LEARNED)
        np.add.at(self._n_learned, person[taught], 1)
        error = response - self._response[numbers]
        new = Errors(person[taught], numbers[taught], error[taught])
        self._errors = self._errors.and_also(new)
        touched = np.zeros(self.people.size, dtype=bool)
        touched[person] = True
        theirs = np.flatnonzero(self.scored & touched[self.person])
        self._correct(theirs, new)
        self._believe(theirs)

    def _correct(self, numbers: IntArray, errors: Errors) -> None:
        """Count errors at rows of people for other rows of theirs."""
        order = np.argsort(errors.person, kind="stable")
        person, theirs = errors.person[order], self.person[numbers]
        between = np.searchsorted(person, theirs), np.searchsorted(person, theirs, side="right")
        sums = self._total[numbers], self._weight[numbers]
        found = weigh_errors(
            self.cells, numbers, between, errors.row[order], errors.error[order], sums
        )
        self._total[numbers], self._weight[numbers] = found

    def _believe(self, numbers: IntArray) -> None:
        """What the replies so far say of rows that were not asked."""
        numbers = numbers[~self.asked[numbers]]
        person = self.person[numbers]
        correction = self._total[numbers] / (self._weight[numbers] + NO_ERROR)
        merit = self._margin(self._response[numbers] + correction)
        self._merit[numbers] = merit
        slack = OPTIMISM * self.error * (1 - self.n_wrong[person] / PATIENCE)
        trusted = self.n_wrong[person] < MAX_WRONG
        self.valid[numbers] = (merit >= -slack) & trusted & self._may_ask(person)
        self.valid[numbers] &= self._is_stable(numbers)

    def _is_stable(self, numbers: IntArray) -> BoolArray:
        """Rows that did not fail the final call, by the draws that led to them."""
        whose = self.people[self.person[numbers]]
        return ~self._unstable.has_failed(whose, self.draw[numbers])

    def _may_ask(self, person: IntArray) -> BoolArray:
        if self._closed:
            return np.zeros(person.size, dtype=bool)
        return self.led.may_ask(self.people[person])

    def _margin(self, response: FloatArray) -> FloatArray:
        return self.led.surrogate.margin(self.settings.decision, response).round(DECIMALS)

    def _add(self, cells: Codes, draw: IntArray | Codes) -> None:
        super()._add(cells, draw)
        self.asked = append(self.asked, np.zeros(len(cells), dtype=bool))
        for name in ("_response", "_total", "_weight", "_merit"):
            setattr(self, name, append(getattr(self, name), np.zeros(len(cells))))


def n_before(person: IntArray | Codes) -> IntArray:
    """How many of the entries before each are the same person's."""
    order = np.argsort(person, kind="stable")
    first = np.flatnonzero(np.diff(person[order], prepend=-1))
    sizes = np.diff(first, append=person.size)
    place = np.empty(person.size, dtype=np.int64)
    place[order] = np.arange(person.size) - np.repeat(first, sizes)
    return place
