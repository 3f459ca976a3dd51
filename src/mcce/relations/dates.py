"""Dates, their parts and the days between two, as relations compare them.

A date is a column of dates, a column of texts such as 2024-01-31, or three columns: a year, a month
by number or name, and a day.

Always true: a view is computed cell by cell; where a cell is missing or no date, it is undefined.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from ..kernels import FloatArray
from ..tables.columns import as_numbers, is_measured, is_missing, is_time, plain
from ..tables.features import Feature
from ..tables.schema import Schema
from .relation import View, numbers_of, numbers_of_cells, quote_column, read_cells

DAY = 86_400e9
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
ISO_DATE = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.*)?"
YEARS = (1800, 2200)
# Dates of a table that are compared, at most.
MAX_DATES = 5
# From the few values of a month to the many of a day of the year.
DATE_PARTS = ("year", "weekday", "month", "day", "week", "week from Sunday", "day of year")


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


def find_views(schema: Schema) -> list[DateView]:
    """Dates that are no columns of dates, and days between two dates."""
    holds = [(_content(feature), feature.name) for feature in schema.features]
    texts = [DateView("date", (name,)) for content, name in holds if content == "text"]
    parts = [
        [name for content, name in holds if content == part] for part in ("year", "month", "day")
    ]
    # Of several years, it is not known which goes with a month and a day.
    is_one = [len(names) for names in parts] == [1, 1, 1]
    written = [*texts, DateView("date", tuple(name for [name] in parts))] if is_one else texts
    dates = [*(name for content, name in holds if content == "date"), *written][:MAX_DATES]
    return [*written, *(DateView("days", pair) for pair in permutations(dates, 2))]


def _content(feature: Feature) -> str | None:
    """What a column holds of dates, by its values."""
    known = feature.known_numbers if feature.is_number else np.empty(0)
    if feature.table.dtype.kind == "M":
        return "date"
    if feature.kind == "categorical" and len(feature.known) > 2:
        first = plain(feature.known)[0]
        if isinstance(first, str) and re.fullmatch(ISO_DATE, first):
            return "text" if feature.known.astype(str).str.fullmatch(ISO_DATE).all() else None
        return None if np.isnan(_read_months(feature.known)).any() else "month"
    if known.size < 2 or (known != np.rint(known)).any():
        return None
    low, high = known[0], known[-1]
    if YEARS[0] <= low and high <= YEARS[1]:
        return "year"
    if low == 1 and 28 <= high <= 31 and known.size >= 28:
        return "day"
    return "month" if (low, high, known.size) == (1, 12, 12) else None


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
    days = np.floor(np.nan_to_num(dates) / DAY).astype(np.int64).astype("M8[D]")
    index = pd.DatetimeIndex(days.astype("M8[s]"))
    weekday, of_year = index.day_of_week, index.day_of_year
    numbers: Any
    if what == "week":
        numbers = index.isocalendar()["week"]
    elif what == "week from Sunday":
        numbers = (of_year + 6 + (weekday - of_year + 2) % 7) // 7
    else:
        numbers = weekday if what == "weekday" else getattr(index, what.replace(" ", "_"))
    return np.where(np.isnan(dates), np.nan, np.asarray(numbers, dtype=np.float64))
