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
from typing import Any

import numpy as np
import pandas as pd

from ..analysis.answers import EncodedAnswers, Requirements, Trials, chunks
from ..analysis.ranges import FoundRanges, RangeSettings, ranges_of, rows_at_once, tabulate
from ..caching import cached_property
from ..candidates import CandidateRows
from ..kernels import BoolArray, Codes, FloatArray, IntArray
from ..tables.features import Feature, decimals, is_single, known_numbers, to_decimal
from ..tables.schema import Schema
from .ladder import NumberToRound, Rung
from .ranges import Choices


@dataclass(frozen=True, eq=False)
class RoundedColumn:
    """A column whose numbers are rounded."""

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
    """How answers are rounded."""

    requirements: Requirements
    columns: Mapping[int, RoundedColumn]
    ranges: RangeSettings | None


@dataclass(frozen=True, eq=False)
class RoundedAnswers:
    """Answers as they are shown."""

    rows: list[CandidateRows]
    valid: BoolArray
    shown: Mapping[tuple[int, int], Rung]
    levels: Mapping[tuple[int, int], list[Any]]
    ranges: list[pd.DataFrame]

    def as_given(self) -> pd.DataFrame:
        """The rows in the columns and dtypes of the people."""
        return pd.concat([rows.as_given() for rows in self.rows], ignore_index=True)

    def levels_by_column(self, schema: Schema) -> dict[int, dict[int, list[Any]]]:
        """Which other levels would do, by column and answer."""
        by_column: dict[int, dict[int, list[Any]]] = {}
        for (answer, row), others in self.levels.items():
            by_column.setdefault(int(schema.mutable[row]), {})[answer] = others
        return by_column


def round_answers(settings: RoundingSettings, answers: EncodedAnswers) -> RoundedAnswers:
    """Round the numbers that people would have to change."""
    rows: list[CandidateRows] = []
    valid = np.zeros(len(answers), dtype=bool)
    shown: dict[tuple[int, int], Rung] = {}
    levels: dict[tuple[int, int], list[Any]] = {}
    ranges: list[pd.DataFrame] = []
    for some in chunks(rows_at_once(answers)):
        batch = _Batch(settings, answers.of(some))
        batch.round_all()
        rows.append(batch.rows())
        valid[some] = batch.valid
        shown |= {(some.start + at, row): rung for (at, row), rung in batch.shown.items()}
        ranges += batch.tables(some.start)
        others = batch.choices.levels
        levels |= {(some.start + at, row): values for (at, row), values in others.items()}
    return RoundedAnswers(rows, valid, shown, levels, ranges)


class _Batch:
    """Some answers, and how far they are rounded."""

    def __init__(self, settings: RoundingSettings, answers: EncodedAnswers) -> None:
        self.settings, self.answers = settings, answers
        self.trials = Trials(settings.requirements, answers)
        self.valid = self.trials.valid & self.trials.obeys
        self.codes = answers.codes
        self.shown: dict[tuple[int, int], Rung] = {}
        self.numeric = np.zeros_like(answers.acted)
        self.numeric[list(settings.columns)] = True
        self.numeric &= answers.acted & self.valid
        self.numeric &= ~np.isnan(answers.rows.all_numbers[answers.rows.schema.mutable])
        self.choices = Choices.none(answers.acted.shape)
        self.found: FoundRanges | None = None
        if settings.ranges is not None:
            self.found = ranges_of(settings.ranges, self.trials)
            self.choices = Choices.of(self.found, self.numeric)

    def rows(self) -> CandidateRows:
        """The answers as they are shown; those without a rounded number as they came."""
        made = self.trials.make(np.arange(len(self.answers)), self.codes)
        rounded = np.isin(np.arange(len(self.answers)), [answer for answer, _ in self.shown])
        return replace(made, codes=np.where(rounded, made.codes, self.answers.codes))

    def tables(self, first: int) -> list[pd.DataFrame]:
        """The ranges of the answers, of which the first has this number; none without them."""
        how = self.settings.ranges
        return (
            [] if how is None or self.found is None else [tabulate(self.found, how.fitted, first)]
        )

    def round_all(self) -> None:
        """Round every number, one number of all answers at a time."""
        places = [(answer, np.flatnonzero(column)) for answer, column in enumerate(self.numeric.T)]
        for turn in range(int(self.numeric.sum(axis=0).max(initial=0))):
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
        accepted, _ = self.trials.hold(answer, codes)
        refused = np.bincount(which, ~accepted, minlength=len(rungs)) > 0
        for i in np.flatnonzero(~refused).tolist():
            place = rungs[i][:2]
            if place not in self.shown:
                self.shown[place] = rungs[i][2]
                self.codes[:, place[0]] = codes[:, i]

    def _with_values(self, answer: IntArray, row: IntArray, values: FloatArray) -> Codes:
        """Answers with another value in one place each."""
        codes = self.codes[:, answer]
        for at in np.unique(row).tolist():
            here = np.flatnonzero(row == at)
            codes[at, here] = self.trials.place(at, values[here])
        return codes

    def _ladder(self, answer: int, row: int) -> Iterator[list[Rung]]:
        """What to try for a number of an answer: a range if one is known, then single values."""
        answers = self.answers
        position = int(answers.rows.schema.mutable[row])
        own = answers.factuals.all_numbers[position, answers.owner[answer]]
        column = self.settings.columns[row]
        number = column.number(answers.rows.all_numbers[position, answer], own)
        ends = self.choices.ends[:, row, answer]
        if np.isnan([own, *ends]).any():
            return number.rungs()
        low, high = (column.decimal(end) for end in ends)
        is_open = low <= number.low if own > ends[1] else high >= number.high
        return chain(number.range_rungs(low, high, is_open=is_open), number.rungs())
