"""Ranges with round ends around a number, date or duration, from narrow to wide.

Widths of numbers are 1, 2 and 5 times powers of ten, and their ends multiples of the same or of the
next smaller one. Dates get calendar days, months, quarters, years, and so on. So a range says
little about the value that it was made around, and reads well.

Always true: every range holds the value; ranges depend on the value and the training column alone;
of two consecutive widths, some range of the wider one holds any given range of the narrower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, time
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from typing import Any, TypeAlias

import pandas as pd

from ..tables.columns import is_time, plain
from ..tables.features import Feature, decimals, to_decimal

Range: TypeAlias = tuple[Any, Any]
# Decimal places below the training range at which the narrowest ranges stand.
DIGITS = 3
# Durations are counted in the largest of these that divides all of them.
UNITS = tuple(
    pd.Timedelta(text) for text in ("1 day", "1 hour", "1 minute", "1 second", "1 ms", "1 us")
)
# Calendar units of dates, and in years.
PERIODS, YEARS = ("h", "D", "M", "Q"), (1, 5, 10, 50, 100)


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
    return list(_number_ranges(to_decimal(value), least, most, decimals(feature)))


def _number_ranges(
    value: Decimal, least: Decimal, most: Decimal, places: int | None
) -> Iterator[Range]:
    """Ranges of numbers, given the training range and the decimal places of the column."""
    width = max(most, value) - min(least, value)
    if not width:
        return
    power = width.adjusted() - DIGITS
    power = power if places is None else max(power, -places)
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
    low = ((value - width) / grid).to_integral_value(ROUND_CEILING) * grid
    last = (value / grid).to_integral_value(ROUND_FLOOR) * grid
    found = []
    while low <= last:
        found.append((low, low + width))
        low += grid
    # Multiples of the width first, then those with the value in the middle.
    yield from sorted(found, key=lambda ends: (ends[0] % width != 0, abs(sum(ends) - 2 * value)))


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
    for start in _calendars(cells[-1], PERIODS[1:] if whole_days else PERIODS):
        for before, after in ((0, 1), (0, 2), (1, 1), (0, 3), (2, 1)):
            low, high = start(-before), start(after)
            if low is not None and high is not None and low < high - last <= low + 2 * width:
                yield _in_zone(low, value), _in_zone(high - last, value)


def _calendars(
    value: pd.Timestamp, periods: Sequence[str]
) -> Iterator[Callable[[int], pd.Timestamp | None]]:
    """For each calendar unit, a function from its number, 0 being that of a date, to its start."""
    for name in periods:
        yield partial(_start_of_period, value.to_period(name))
    for n_years in YEARS:
        yield partial(_start_of_years, value.year // n_years, n_years)


def _start_of_period(period: pd.Period, number: int) -> pd.Timestamp | None:
    return (period + number).start_time.as_unit("us")


def _start_of_years(place: int, n_years: int, number: int) -> pd.Timestamp | None:
    """The first day of some years; None for years that dates do not have."""
    year = (place + number) * n_years
    return pd.Timestamp(datetime(year, 1, 1)) if 1 <= year <= 9999 else None


def _in_zone(moment: pd.Timestamp, value: pd.Timestamp) -> pd.Timestamp:
    """A local time in the time zone of another."""
    if value.tz is None:
        return moment
    return moment.tz_localize(value.tz, ambiguous=True, nonexistent="shift_forward")
