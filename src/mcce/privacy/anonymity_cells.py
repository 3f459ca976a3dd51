"""Cells: the values that stand for one value of an answer, how they become wider, and their words.

A number stands for a range with round ends, a level of an ordered category for a run of levels, any
other level for a set of them. Missing is one more level; of numbers and ordered levels it joins
last, with everything else. Widths of numbers are 1, 2 and 5 times powers of ten, and their ends
multiples of the same or of the next smaller one; dates get calendar days, months, quarters, years,
and so on. So a range says little about the value that it was made around, and reads well.

Always true: a cell holds the answer's own value, and a wider one all that the narrower holds;
ranges depend on the value and the training column alone; the loss of a cell is 0 for a single
value, 1 for all values, and between them its width or its number of further levels as a share of
all. It tells of the training column, so it is never released.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ..kernels import BoolArray, IntArray
from ..tables.columns import as_comparable, is_missing, is_time, plain, unit_of
from ..tables.features import Feature, is_float32, to_decimal
from ..tables.text import short_line

# Levels that are tried next, those with the most people.
MAX_NEXT_LEVELS = 3
# Levels on either side of a level of an ordered category that a run may have.
LONGEST_RUN = 50
# A run of no codes.
NO_RUN = (0, -1)
# A set of more levels is named by what is not in it, if that is shorter.
MAX_NAMED_LEVELS = 3
MISSING, ANY = "missing", "any"
Range: TypeAlias = tuple[Any, Any]
# Decimal places below the training range at which the narrowest ranges stand.
DIGITS = 3
# Durations are counted in the largest of these that divides all of them.
UNITS = tuple(
    pd.Timedelta(text) for text in ("1 day", "1 hour", "1 minute", "1 second", "1 ms", "1 us")
)
# Calendar units of dates: periods of pandas, or numbers of years.
PERIODS = ("h", "D", "M", "Q", 1, 5, 10, 50, 100)


@dataclass(frozen=True)
class AnswerValue:
    """A value of an answer."""

    code: int
    value: Any


@dataclass(frozen=True)
class Cell:
    """Values that replace one value."""

    run: tuple[int, int] = NO_RUN
    levels: tuple[int, ...] = ()
    loss: float = 0.0
    low: Any = None
    high: Any = None
    is_whole: bool = False
    is_round: bool = True

    @property
    def codes(self) -> IntArray:
        """All training codes inside, ascending."""
        run = np.arange(self.run[0], self.run[1] + 1)
        return run if not self.levels else np.sort(np.append(run, self.levels))

    def inside(self, n_codes: int) -> BoolArray:
        """Whether each training code is inside."""
        inside = np.zeros(n_codes, dtype=bool)
        inside[self.codes] = True
        return inside

    def covers(self, other: Cell) -> bool:
        """Whether a run holds all of another."""
        return self.run[0] <= other.run[0] and self.run[1] >= other.run[1]


# A wider cell, and how many of the counted people it has inside.
Wider: TypeAlias = tuple[Cell, int]


class WidenedColumn:
    """A column that is widened, and its cells, from a single value to all.

    ``place`` is its place among the mutable features, None if it is immutable.
    """

    def __init__(self, feature: Feature, position: int, place: int | None) -> None:
        self.feature, self.position, self.place = feature, position, place
        self._n_known = len(feature.known)
        self._ranges: dict[AnswerValue, list[Cell]] = {}

    def start(self, own: AnswerValue) -> Cell:
        """The cell of a single value."""
        if own.value is None or not self.feature.ordered:
            return Cell(levels=(own.code,) if own.code >= 0 else ())
        run = (own.code, own.code) if own.code >= 0 else NO_RUN
        return Cell(run, low=own.value, high=own.value)

    def wider(self, own: AnswerValue, cell: Cell, counts: IntArray) -> list[Wider]:
        """Wider cells with more people."""
        if cell.is_whole or not counts.any():
            return []
        if self.feature.ordered:
            cells = [wide for wide in self._inner_ranges(own) if wide.covers(cell)]
        else:
            cells = list(self._sets(own, cell, counts))
        before, found = np.concatenate([[0], np.cumsum(counts)]), []
        for wide in [*cells, self._whole()]:
            gain = before[wide.run[1] + 1] - before[wide.run[0]] + counts[list(wide.levels)].sum()
            if gain > 0:
                found.append((wide, int(gain)))
        return found

    def narrower(self, own: AnswerValue, cell: Cell) -> list[Cell]:
        """Cells inside another one, the narrowest first."""
        found = [self.start(own)]
        if not self.feature.ordered:
            levels = set(cell.codes.tolist())
            for code in levels - {own.code}:
                left = tuple(sorted(levels - {code}))
                found.append(Cell(levels=left, loss=self._share(len(left), own)))
        else:
            found += self._inner_ranges(own)
        inside = [one for one in found if one.loss < cell.loss and cell.covers(one)]
        return sorted(inside, key=lambda one: (one.loss, not one.is_round, one.run, one.levels))

    def _whole(self) -> Cell:
        """The cell of all values."""
        missing = (self._n_known,) if self.feature.has_missing else ()
        return Cell((0, self._n_known - 1), missing, 1.0, is_whole=True)

    def _inner_ranges(self, own: AnswerValue) -> list[Cell]:
        """All ranges around a value but the whole."""
        if own.value is None or (own.code < 0 and self.feature.kind == "categorical"):
            return []
        if own not in self._ranges:
            numeric = self.feature.kind == "numeric"
            cells = _number_cells(self.feature, own) if numeric else self._runs(own)
            self._ranges[own] = list(cells)
        return self._ranges[own]

    def _sets(self, own: AnswerValue, cell: Cell, counts: IntArray) -> Iterator[Cell]:
        """Sets with one more level, for the levels with the most people."""
        most = np.argsort(-counts, kind="stable")[:MAX_NEXT_LEVELS]
        for code in most[counts[most] > 0].tolist():
            levels = tuple(sorted((*cell.levels, code)))
            if len(levels) < self.feature.n_codes:
                yield Cell(levels=levels, loss=self._share(len(levels), own))

    def _runs(self, own: AnswerValue) -> Iterator[Cell]:
        """Runs of levels around one."""
        known = self.feature.known.array
        lows = range(max(0, own.code - LONGEST_RUN), own.code + 1)
        highs = range(own.code, min(self._n_known, own.code + LONGEST_RUN + 1))
        for low, high in itertools.product(reversed(lows), highs):
            n_levels = high - low + 1
            if 1 < n_levels < self._n_known:
                yield Cell((low, high), (), self._share(n_levels, own), known[low], known[high])

    def _share(self, n_levels: int, own: AnswerValue) -> float:
        unseen = own.code < 0
        return (n_levels + unseen - 1) / (self.feature.n_codes + unseen - 1)


def _number_cells(feature: Feature, own: AnswerValue) -> Iterator[Cell]:
    """The ranges with round ends around a number, one of those with the same people."""
    ranges = round_ranges(feature, own.value)
    if not ranges:
        return
    dtype = feature.table.dtype
    known = as_comparable(feature.known, dtype)
    lows, highs = (_comparable([ends[at] for ends in ranges], dtype) for at in (0, 1))
    value = _comparable([own.value], dtype)[0]
    least, most = min(known[0], value), max(known[-1], value)
    firsts, lasts = np.searchsorted(known, lows), np.searchsorted(known, highs, side="right") - 1
    seen = set()
    for at, (low, high) in enumerate(ranges):
        run = int(firsts[at]), int(lasts[at])
        low_open, high_open = lows[at] <= least, highs[at] >= most
        if run in seen or (low_open and high_open):
            continue
        seen.add(run)
        width = min(highs[at], most) - max(lows[at], least)
        ends = None if low_open else _cell(low, dtype), None if high_open else _cell(high, dtype)
        is_round = not isinstance(low, Decimal) or low % (high - low) == 0
        yield Cell(run, (), float(width / (most - least)), *ends, is_round=is_round)


def _comparable(ends: list[Any], dtype: Any) -> np.ndarray:
    """Ends of ranges for comparing with training values of a dtype."""
    if is_time(dtype):
        return np.array([_count_units(end, dtype) for end in ends], dtype=object)
    if dtype.kind in "iu":
        return np.array([int(end) for end in ends], dtype=object)
    numbers = np.array([float(end) for end in ends])
    return numbers.astype(np.float32).astype(np.float64) if is_float32(dtype) else numbers


def _count_units(end: Any, dtype: Any) -> Fraction:
    """A date or duration in the unit of a dtype, without rounding."""
    own = (pd.Timestamp if dtype.kind == "M" else pd.Timedelta)(end).asm8
    return Fraction(int(own.astype(np.int64)) * unit_of(own.dtype), unit_of(dtype))


def _cell(end: Any, dtype: Any) -> Any:
    """The end of a range as a cell of its column."""
    if not isinstance(end, Decimal):
        return end
    return int(end) if dtype.kind in "iu" else float(end)


def describe_cell(feature: Feature, own: AnswerValue, cell: Cell) -> dict[str, Any]:
    """The row of a cell in the table of cells.

    Examples
    --------
    >>> feature = Feature.learn(pd.Series([4, 12, 24], name="months"), kind=None, immutable=False)
    >>> describe_cell(feature, AnswerValue(1, 12), Cell((0, 1), loss=0.5, high=15))["text"]
    'at most 15'
    """
    row: dict[str, Any] = {"kind": "range", "low": cell.low, "high": cell.high, "levels": None}
    row["missing"] = False
    if cell.is_whole:
        return row | {"kind": "any", "missing": feature.has_missing, "text": ANY}
    if not feature.ordered:
        return row | _describe_set(feature, own, cell)
    if own.value is None:
        return row | {"kind": "value", "missing": True, "text": MISSING}
    if cell.loss == 0:
        return row | {"kind": "value", "text": _text(own.value)}
    if feature.kind == "categorical":
        row["levels"] = plain(feature.known.iloc[cell.codes]).tolist()
    if cell.low is None or cell.high is None:
        text = f"at most {_text(cell.high)}" if cell.low is None else f"at least {_text(cell.low)}"
    else:
        text = f"{_text(cell.low)} to {_text(cell.high)}"
    return row | {"text": text}


def _describe_set(feature: Feature, own: AnswerValue, cell: Cell) -> dict[str, Any]:
    levels = [own.value] if own.code < 0 and own.value is not None else []
    missing = own.value is None or (feature.has_missing and feature.n_codes - 1 in cell.levels)
    inside = np.isin(np.arange(len(feature.known)), cell.levels)
    levels += plain(feature.known[inside]).tolist()
    texts, others = [*map(_text, levels)], [*map(_text, plain(feature.known[~inside]))]
    if feature.has_missing or missing:
        (texts if missing else others).append(MISSING)
    if len(texts) > MAX_NAMED_LEVELS and len(others) < len(texts):
        text = f"{ANY} but {_listed(others)}"
    else:
        text = _listed(texts)
    kind = "value" if len(texts) == 1 else "levels"
    return {"kind": kind, "levels": levels, "missing": bool(missing), "text": text}


def _text(value: Any) -> str:
    """A cell as text, without trailing zeros or a 00:00 time."""
    if isinstance(value, (float, np.floating)):
        return f"{to_decimal(value):f}"
    if isinstance(value, pd.Timestamp) and value.time() == time():
        return f"{value:%Y-%m-%d}"
    return short_line(value)


def _listed(texts: Sequence[str]) -> str:
    *first, last = texts
    return f"{', '.join(first)} or {last}" if first else last


def answer_values(column: pd.Series[Any], exact: np.ndarray) -> list[AnswerValue]:
    """The values of a column of answers."""
    missing = is_missing(column)
    cells = [None if none else column.iloc[at] for at, none in enumerate(missing.tolist())]
    return [AnswerValue(int(code), cell) for code, cell in zip(exact, cells, strict=True)]


def round_ranges(feature: Feature, value: Any) -> list[Range]:
    """Ranges with round ends that hold a value, up to the width of the training column.

    Examples
    --------
    >>> months = pd.Series([4, 12, 24, 72], name="months")
    >>> feature = Feature.learn(months, kind=None, immutable=False)
    >>> [(int(low), int(high)) for low, high in round_ranges(feature, 24)][5:]
    [(20, 25), (21, 26), (22, 27), (23, 28), (19, 24), (24, 29), (20, 30), (15, 25), (20, 40),
    (10, 30), (0, 50), (-10, 40), (10, 60), (-20, 30), (20, 70)]
    """
    known = feature.known
    if known.empty or known.dtype.kind == "b":
        return []
    if known.dtype.kind == "M":
        return list(_date_ranges(known, pd.Timestamp(value)))
    if is_time(known.dtype):
        return _duration_ranges(known, pd.Timedelta(value))
    least, most = to_decimal(known.iloc[0]), to_decimal(known.iloc[-1])
    return list(_number_ranges(to_decimal(value), least, most, feature.decimals))


def _number_ranges(
    value: Decimal, least: Decimal, most: Decimal, n_decimals: int | None
) -> Iterator[Range]:
    """Ranges of numbers, given the training range and the decimal places of the column."""
    width = max(most, value) - min(least, value)
    if not width:
        return
    power = width.adjusted() - DIGITS
    power = power if n_decimals is None else max(power, -n_decimals)
    first = power
    while (unit := Decimal(10) ** power) <= width:
        # Half a width apart, but not finer than the column itself.
        half = unit / 2 if power > first else unit
        for digit, grid in ((1, half), (2, unit), (5, unit)):
            if digit * unit <= width:
                yield from _around(value, digit * unit, grid)
        power += 1


def _around(value: Decimal, width: Decimal, grid: Decimal) -> Iterator[Range]:
    """Ranges of a width that hold a value and begin at a multiple of the grid."""
    first = int(((value - width) / grid).to_integral_value(ROUND_CEILING))
    last = int((value / grid).to_integral_value(ROUND_FLOOR))
    lows = [number * grid for number in range(first, last + 1)]
    # Multiples of the width first, then those with the value in the middle.
    for low in sorted(lows, key=lambda low: (low % width != 0, abs(2 * low + width - 2 * value))):
        yield low, low + width


def _duration_ranges(known: pd.Series[Any], value: pd.Timedelta) -> list[Range]:
    """Ranges of durations, in days, hours, minutes or seconds."""
    cells = [pd.Timedelta(cell) for cell in [*plain(known), value]]
    unit = next((one for one in UNITS if all(not cell % one for cell in cells)), UNITS[-1])
    own, least, most = (Decimal(cell // unit) for cell in (value, cells[0], cells[-2]))
    return [
        (int(low) * unit, int(high) * unit) for low, high in _number_ranges(own, least, most, 0)
    ]


def _date_ranges(known: pd.Series[Any], value: pd.Timestamp) -> Iterator[Range]:
    """Calendar days, months, quarters, years, …, one or several of them."""
    # In microseconds, since nanoseconds end in the year 2262.
    cells = [pd.Timestamp(c).tz_localize(None).as_unit("us") for c in [*plain(known), value]]
    width = max(cells) - min(cells)
    whole_days = all(cell.time() == time() for cell in cells)
    # The last day is inside, and the first moment after it is not.
    last = pd.Timedelta(1, "D" if whole_days else "us").as_unit("us")
    for period in PERIODS[1:] if whole_days else PERIODS:
        for before, after in ((0, 1), (0, 2), (1, 1), (0, 3), (2, 1)):
            low, high = (_start(cells[-1], period, number) for number in (-before, after))
            if low is not None and high is not None and low < high - last <= low + 2 * width:
                yield _in_zone(low, value), _in_zone(high - last, value)


def _start(value: pd.Timestamp, period: str | int, number: int) -> pd.Timestamp | None:
    """When the period of a date begins, or one before or after; None if dates end before that."""
    if isinstance(period, str):
        return (value.to_period(period) + number).start_time.as_unit("us")
    year = (value.year // period + number) * period
    return pd.Timestamp(datetime(year, 1, 1)) if 1 <= year <= 9999 else None


def _in_zone(moment: pd.Timestamp, value: pd.Timestamp) -> pd.Timestamp:
    """A local time in the time zone of another."""
    if value.tz is None:
        return moment
    return moment.tz_localize(value.tz, ambiguous=True, nonexistent="shift_forward")
