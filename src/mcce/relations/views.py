"""What relations compare beside columns: dates, their parts, days between two, steps of a number.

A date is a column of dates, a column of texts such as 2024-01-31, or three columns: a year, a month
by number or name, and a day.

Always true: a view is computed cell by cell; where a cell is missing or no date, it is undefined.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from ..kernels import FloatArray
from ..tables.columns import as_numbers, is_measured, is_missing, is_time, plain
from ..tables.features import Feature
from ..tables.schema import Schema
from .relation import View, numbers_of, numbers_of_cells, quote_column, quote_number, read_cells

DAY = 86_400e9
# A Thursday.
EPOCH_WEEKDAY = 3
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
ISO_DATE = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.*)?"
YEARS = (1800, 2200)
# Dates of a table that are compared, at most.
MAX_DATES = 5
# From the few values of a month to the many of a day of the year.
PARTS = (
    *("year", "weekday", "month", "day", "week", "week from Sunday", "week from Monday"),
    "day of year",
)


@dataclass(frozen=True)
class DateView(View):
    """A date in nanoseconds, the days from the second of two dates to the first, or a part.

    Examples
    --------
    >>> DateView("week", (DateView("date", ("year", "month", "day")),)).name
    'week(date(year, month, day))'
    >>> DateView("days", ("departure", "arrival")).name
    'days(departure - arrival)'
    """

    what: str
    of: tuple[Hashable, ...]

    @property
    def reversed(self) -> DateView:
        """The days from the first of two dates to the second."""
        return DateView(self.what, self.of[::-1])

    @property
    def name(self) -> str:
        """Such as ``month(arrival)``; a column of texts is named as it is."""
        if self.what == "date" and len(self.of) == 1:
            return quote_column(self.of[0])
        between = " - " if self.what == "days" else ", "
        return f"{self.what}({between.join(map(quote_column, self.of))})"

    def numbers(self, rows: Any) -> FloatArray:
        """The number of each row, NaN where it is undefined."""
        if self.what == "date" and len(self.of) == 1:
            return read_cells(rows, self.of[0], _read_dates, "date")
        if self.what == "date":
            month = read_cells(rows, self.of[1], _read_months, "month")
            return _joined(numbers_of(rows, self.of[0]), month, numbers_of(rows, self.of[-1]))
        dates = [numbers_of(rows, one) for one in self.of]
        return (dates[0] - dates[1]) / DAY if self.what == "days" else _part(self.what, dates[0])


@dataclass(frozen=True)
class Steps(View):
    """How many limits a number exceeds.

    Examples
    --------
    >>> Steps(("area",), (0.0,)).name
    'area > 0'
    """

    of: tuple[Hashable, ...]
    limits: tuple[float, ...]

    @property
    def name(self) -> str:
        """Such as ``age > 18, 30, 65``."""
        return f"{quote_column(self.of[0])} > {', '.join(map(quote_number, self.limits))}"

    def numbers(self, rows: Any) -> FloatArray:
        """The number of limits below each cell, NaN where it is missing."""
        cells = numbers_of(rows, self.of[0])
        return np.where(np.isnan(cells), np.nan, np.searchsorted(self.limits, cells))


def find_views(schema: Schema) -> Iterator[DateView]:
    """Dates that are no columns of dates, years of single dates, and days between two dates."""
    single: list[Hashable] = []
    for feature in schema.features:
        if feature.table.dtype.kind == "M":
            single.append(feature.name)
        elif _has_dates(feature):
            single.append(DateView("date", (feature.name,)))
    joined = [DateView("date", names) for names in _joinable(schema)]
    dates = [*single, *joined][:MAX_DATES]
    yield from (one for one in dates if isinstance(one, DateView))
    yield from (DateView("year", (one,)) for one in dates if one in single)
    yield from (DateView("days", pair) for pair in permutations(dates, 2))


def _has_dates(feature: Feature) -> bool:
    """Whether all levels are written like 2024-01-31."""
    if feature.kind != "categorical" or feature.known.empty:
        return False
    first = plain(feature.known)[0]
    if not isinstance(first, str) or not first[:4].isdigit():
        return False
    return bool(feature.known.astype(str).str.fullmatch(ISO_DATE).all())


def _joinable(schema: Schema) -> Iterator[tuple[Hashable, ...]]:
    """Columns of a year, a month and a day, unless there are several of a kind."""
    years, months, days = list[Hashable](), list[Hashable](), list[Hashable]()
    for feature in schema.features:
        low, high = _whole_range(feature)
        if YEARS[0] <= low < high <= YEARS[1]:
            years.append(feature.name)
        elif low == 1 and 28 <= high <= 31 and feature.n_codes >= 28:
            days.append(feature.name)
        elif (low, high, feature.n_codes) == (1, 12, 12) or _has_names_of_months(feature):
            months.append(feature.name)
    if len(years) == len(months) == len(days) == 1:
        yield (years[0], months[0], days[0])


def _whole_range(feature: Feature) -> tuple[float, float]:
    """The range of a column of whole numbers; that of others is empty."""
    known = feature.known_numbers
    if not feature.is_number or not known.size or (known != np.rint(known)).any():
        return np.inf, -np.inf
    return float(known[0]), float(known[-1])


def _has_names_of_months(feature: Feature) -> bool:
    """Whether the levels of a column are names of months."""
    if feature.kind != "categorical" or not 2 < feature.n_codes <= 13:
        return False
    return not np.isnan(_read_months(feature.known)).any()


def _read_dates(cells: pd.Series[Any]) -> FloatArray:
    """Dates of cells, in nanoseconds."""
    if is_time(cells.dtype):
        return numbers_of_cells(cells)
    text = pd.Series(plain(cells), dtype=object).where(~is_missing(cells), None).astype(str)
    dates = pd.to_datetime(text, format="ISO8601", errors="coerce", utc=True)
    return np.where(dates.isna(), np.nan, dates.to_numpy("M8[us]").astype(np.float64) * 1000)


def _read_months(cells: pd.Series[Any]) -> FloatArray:
    """Numbers of months by number or by name, NaN for anything else."""
    if is_measured(cells.dtype):
        numbers = as_numbers(cells)
        return np.where((numbers >= 1) & (numbers <= 12), numbers, np.nan)
    short = [str(cell)[:3].lower() for cell in plain(cells)]
    return np.array([MONTHS.index(one) + 1.0 if one in MONTHS else np.nan for one in short])


def _joined(year: FloatArray, month: FloatArray, day: FloatArray) -> FloatArray:
    """Dates in nanoseconds, NaN for those that no calendar has."""
    exists = (year >= YEARS[0]) & (year <= YEARS[1]) & (day >= 1) & (day <= 31) & (month >= 1)
    months = np.where(exists, (year - 1970) * 12 + month - 1, 0).astype("M8[M]")
    dates = months.astype("M8[D]") + np.where(exists, day - 1, 0).astype("m8[D]")
    exists &= dates.astype("M8[M]") == months
    return np.where(exists, dates.astype(np.float64) * DAY, np.nan)


def _part(what: str, dates: FloatArray) -> FloatArray:
    """A part of dates that are given in nanoseconds."""
    whole = np.floor(np.where(np.isnan(dates), 0.0, dates) / DAY).astype(np.int64)
    weekday = (whole + EPOCH_WEEKDAY) % 7
    if what == "week":
        # The Thursday of a week is in the year that the week belongs to.
        whole = whole - weekday + 3
    day = whole.astype("M8[D]")
    month, year = day.astype("M8[M]"), day.astype("M8[Y]")
    of_year = (day - year.astype("M8[D]")).astype(np.int64)
    first = (whole - of_year + EPOCH_WEEKDAY) % 7
    number = {
        "year": year.astype(np.int64) + 1970,
        "month": month.astype(np.int64) % 12 + 1,
        "day": (day - month.astype("M8[D]")).astype(np.int64) + 1,
        "weekday": weekday + 1,
        "day of year": of_year + 1,
        "week": of_year // 7 + 1,
        "week from Monday": (of_year + first) // 7 + 1,
        "week from Sunday": (of_year + (first + 1) % 7) // 7 + 1,
    }[what]
    return np.where(np.isnan(dates), np.nan, number)
