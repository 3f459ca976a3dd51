"""Answers rounded for reading, and checked again as they are rounded.

Beyond the paper. The numbers of an answer are rounded one after the other, each as coarsely as the
row allows: the row with the rounded number, and with what follows from it, is put to the predictor
and to all requirements of the search again. Where a rounding breaks one, a finer one is tried, down
to the number as it is.

Always true: a row that is shown was accepted by the predictor as it stands; nobody's rounding
depends on anybody else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain

import numpy as np
import pandas as pd

from ..analysis.answers import Answers
from ..analysis.checking import RowChecks
from ..caching import cached_property
from ..candidates import CandidateRows
from ..kernels import BoolArray, Codes, FloatArray, IntArray
from ..search.consequences import Consequences
from ..search.values import GrowingTables
from ..tables.dtypes import cast_like
from ..tables.features import Feature
from ..tables.resolution import decimals, is_single, known_numbers
from ..tables.schema import EncodedRows
from .ladder import NumberToRound, Rung
from .language import to_decimal

ANSWERS_AT_ONCE = 2_000


@dataclass(frozen=True, eq=False)
class RoundedColumn:
    """A column whose numbers are rounded.

    Parameters
    ----------
    feature
        The column.
    rounding
        Multiple to round to; None chooses one by the size of the change.
    least_change
        How far a number must move to count as changed.
    """

    feature: Feature
    rounding: float | None
    least_change: float

    def decimal(self, number: float) -> Decimal:
        """A number of the column, with the fewest digits that stand for it."""
        single = is_single(self.feature.table.dtype)
        return to_decimal(np.float32(number) if single else np.float64(number))

    def number(self, value: float, own: float) -> NumberToRound:
        """A number of an answer, NaN for an own value that is missing."""
        return NumberToRound(
            value=self.decimal(value),
            own=None if np.isnan(own) else self.decimal(own),
            low=self._ends[0],
            high=self._ends[1],
            rounding=None if self.rounding is None else to_decimal(self.rounding),
            places=self._places,
            least_change=to_decimal(self.least_change),
        )

    @cached_property
    def _ends(self) -> tuple[Decimal, Decimal]:
        known = known_numbers(self.feature)
        return self.decimal(known.min()), self.decimal(known.max())

    @cached_property
    def _places(self) -> int | None:
        return decimals(self.feature)


@dataclass(frozen=True, eq=False)
class RoundingSettings:
    """How answers are rounded.

    Parameters
    ----------
    checks
        What rounded rows must pass.
    people, owner
        All factuals, and the position of each answer's person among them.
    consequences
        What follows from changes; None if nothing does.
    columns
        The columns to round, by place among the mutable features.
    ranges
        The smallest and the largest value that would do, each of shape (n_mutable, n_answers), NaN
        where that is not known.
    """

    checks: RowChecks
    people: EncodedRows
    owner: IntArray
    consequences: Consequences | None
    columns: Mapping[int, RoundedColumn]
    ranges: tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class RoundedAnswers:
    """Answers as they are shown.

    Parameters
    ----------
    rows
        The rounded rows.
    valid : (n_answers,)
        Whether the predictor and the constraints accept the row; others must not be shown.
    shown
        What is said of rounded numbers, by answer and place among the mutable features.
    """

    rows: list[CandidateRows]
    valid: BoolArray
    shown: Mapping[tuple[int, int], Rung]

    def as_given(self, empty: pd.DataFrame) -> pd.DataFrame:
        """The rows in the columns and dtypes of the people; ``empty`` has these without rows."""
        parts = [rows.as_given() for rows in self.rows]
        return pd.concat(parts, ignore_index=True) if parts else empty


def round_answers(settings: RoundingSettings, answers: Answers) -> RoundedAnswers:
    """Round the numbers that people would have to change.

    Parameters
    ----------
    settings
        How.
    answers
        The answers.

    Returns
    -------
    RoundedAnswers
        The same answers in the same order, rounded.
    """
    rows: list[CandidateRows] = []
    valid = np.zeros(len(answers), dtype=bool)
    shown: dict[tuple[int, int], Rung] = {}
    for start in range(0, len(answers), ANSWERS_AT_ONCE):
        some = slice(start, min(start + ANSWERS_AT_ONCE, len(answers)))
        low, high = settings.ranges
        part = replace(settings, owner=settings.owner[some], ranges=(low[:, some], high[:, some]))
        batch = _Batch(part, answers.of(some))
        batch.round_all()
        rows.append(batch.selected(np.arange(some.stop - start), batch.codes))
        valid[some] = batch.valid
        shown |= {(start + answer, row): rung for (answer, row), rung in batch.shown.items()}
    return RoundedAnswers(rows, valid, shown)


class _Batch:
    """Some answers, and how far they are rounded."""

    def __init__(self, settings: RoundingSettings, answers: Answers) -> None:
        self.settings, self.answers = settings, answers
        people, schema = settings.people, settings.people.schema
        cells = [answers.rows.frame.iloc[:, position] for position in schema.mutable]
        tables = [
            pd.concat([cast_like(own, table), table], ignore_index=True)
            for own, table in zip(cells, people.tables, strict=True)
        ]
        self.tables, self.codes = GrowingTables(people, tables), answers.codes
        self.shown: dict[tuple[int, int], Rung] = {}
        exact = self.selected(np.arange(len(answers)), self.codes)
        self.valid = settings.checks.is_valid(exact)
        self.passed = settings.checks.passed(exact)

    def selected(self, answer: IntArray, codes: Codes) -> CandidateRows:
        """Rows of some answers."""
        owner = self.settings.owner[answer]
        return CandidateRows(self.settings.people, owner, codes, self.tables.tables)

    def round_all(self) -> None:
        """Round every number, one number of all answers at a time."""
        numeric = np.zeros_like(self.answers.acted)
        numeric[list(self.settings.columns)] = True
        mutable = self.settings.people.schema.mutable
        numeric &= self.answers.acted & self.valid
        numeric &= ~np.isnan(self.answers.rows.all_numbers[mutable])
        for turn in range(int(numeric.sum(axis=0).max(initial=0))):
            places = [(answer, np.flatnonzero(column)) for answer, column in enumerate(numeric.T)]
            self._round({answer: int(rows[turn]) for answer, rows in places if rows.size > turn})

    def _round(self, places: Mapping[int, int]) -> None:
        """Round one number of each answer: rung by rung, until a row is accepted."""
        ladders = {answer: self._ladder(answer, row) for answer, row in places.items()}
        while ladders:
            tried = {answer: next(ladder, None) for answer, ladder in ladders.items()}
            rungs = [(a, rung) for a, options in tried.items() for rung in options or ()]
            self._try([(answer, places[answer], rung) for answer, rung in rungs])
            ladders = {
                answer: ladder
                for answer, ladder in ladders.items()
                if tried[answer] is not None and (answer, places[answer]) not in self.shown
            }

    def _try(self, rungs: Sequence[tuple[int, int, Rung]]) -> None:
        """Take the first value of each answer with which its row is accepted."""
        if not rungs:
            return
        ranged = [i for i, (_, _, rung) in enumerate(rungs) if rung.far is not None]
        which = np.array([*range(len(rungs)), *ranged])
        ends = [float(rung.value) for _, _, rung in rungs]
        ends += [float(rungs[i][2].far or 0) for i in ranged]
        answer, row = np.array([rung[:2] for rung in rungs])[which].T
        codes = self._with_values(answer, row, np.array(ends))
        accepted = self._accepted(answer, codes)
        refused = np.bincount(which, ~accepted, minlength=len(rungs)) > 0
        for i in np.flatnonzero(~refused).tolist():
            place = rungs[i][:2]
            if place not in self.shown:
                self.shown[place] = rungs[i][2]
                self.codes[:, place[0]] = codes[:, i]

    def _with_values(self, answer: IntArray, row: IntArray, values: FloatArray) -> Codes:
        """Answers with another value in one place each, and with what follows from it."""
        codes = self.codes[:, answer]
        for at in np.unique(row).tolist():
            here = np.flatnonzero(row == at)
            codes[at, here] = self.tables.place(at, values[here])
        consequences = self.settings.consequences
        if consequences is None:
            return codes
        return consequences.complete(self.tables, self.settings.owner[answer], codes)

    def _accepted(self, answer: IntArray, codes: Codes) -> BoolArray:
        """Rows that are valid and meet every requirement that their answer meets."""
        rows, checks = self.selected(answer, codes), self.settings.checks
        accepted = checks.is_valid(rows)
        return accepted & (checks.passed(rows) >= self.passed[:, answer]).all(axis=0)

    def _ladder(self, answer: int, row: int) -> Iterator[list[Rung]]:
        """What to try for a number of an answer: a range if one is known, then single values."""
        position = int(self.settings.people.schema.mutable[row])
        own = self.settings.people.all_numbers[position, self.settings.owner[answer]]
        column = self.settings.columns[row]
        number = column.number(self.answers.rows.all_numbers[position, answer], own)
        ends = [end[row, answer] for end in self.settings.ranges]
        if np.isnan([own, *ends]).any():
            return number.rungs()
        low, high = (column.decimal(end) for end in ends)
        is_open = low <= number.low if own > ends[1] else high >= number.high
        return chain(number.range_rungs(low, high, is_open=is_open), number.rungs())
