"""What every relation between columns has in common.

A relation says of every row between which numbers its target lies, given the other cells. How far
the target is outside is how badly a row breaks the relation: its *excess*, 0 where it holds. Rows
come as pandas frames that have at least the columns of ``features``, or as columns that can be read
one by one. What is compared are columns and views, which compute a number from columns. The kinds
of relations are in ``kinds``, views in ``views`` and ``dates``.

Names identify relations, for ``ignore_relations``: columns and values that differ are written
differently.

Always true: where a relation is undefined, because a cell is missing or a level was never seen, it
holds; every view is computed cell by cell, whatever other rows there are.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pandas as pd

from ..errors import shorten
from ..kernels import BoolArray, FloatArray, IntArray
from ..tables.columns import (
    as_numbers,
    is_measured,
    is_missing,
    is_time,
    match_levels,
    plain,
    unit_of,
)
from ..tables.features import Feature


class Limits(NamedTuple):
    """The target of each row, and the smallest and the largest number that it may be."""

    target: FloatArray
    low: FloatArray
    high: FloatArray


class Relation(ABC):
    """Something that holds between the columns of a row."""

    @property
    def kind(self) -> str:
        """What it is called in tables."""
        return type(self).__name__.lower()

    @property
    @abstractmethod
    def name(self) -> str:
        """The relation in readable form, such as ``total = months * price``."""

    @property
    @abstractmethod
    def operands(self) -> tuple[Hashable, ...]:
        """The columns and views that it compares."""

    @property
    def features(self) -> tuple[Hashable, ...]:
        """Every column that it mentions."""
        return tuple(dict.fromkeys(name for one in self.operands for name in columns_of(one)))

    @property
    def target(self) -> Hashable | None:
        """The column that follows from the others; None if there is none."""
        return getattr(self, "result", None)

    # Whether a deviation is a share of the formula.
    relative: bool = False

    @property
    def tolerance(self) -> float | None:
        """The largest deviation of an equality; None if it is none."""
        return None

    @abstractmethod
    def limits(self, rows: Rows) -> Limits:
        """What the target is and may be, NaN where that is undefined."""

    @np.errstate(over="ignore", invalid="ignore")
    def excess(self, rows: Rows) -> FloatArray:
        """How badly each row breaks the relation; 0 where it holds or is undefined."""
        target, low, high = self.limits(rows)
        outside = np.maximum(low - target, target - high)
        return np.where(outside > 0, outside, 0.0)

    def holds(self, rows: Rows) -> BoolArray:
        """Whether the relation holds in each row."""
        return self.excess(rows) == 0


class View(ABC):
    """A number of each row that is computed from columns and other views."""

    of: tuple[Hashable, ...]

    @property
    @abstractmethod
    def name(self) -> str:
        """The view in readable form, such as ``month(arrival)``."""

    @abstractmethod
    def numbers(self, rows: Rows) -> FloatArray:
        """The number of each row, NaN where it is undefined."""


def columns_of(operand: Hashable) -> tuple[Hashable, ...]:
    """The columns that an operand is computed from; a column is its own."""
    if not isinstance(operand, View):
        return (operand,)
    return tuple(name for one in operand.of for name in columns_of(one))


class ReadableColumns(Protocol):
    """Rows without a frame, of which single columns can be read."""

    def __len__(self) -> int:
        """Number of rows."""
        ...

    def read(
        self, feature: Hashable, read: Callable[[pd.Series[Any]], np.ndarray], key: Hashable
    ) -> np.ndarray:
        """What a function gives for the cells of a column, cell by cell."""
        ...


Rows: TypeAlias = pd.DataFrame | ReadableColumns


def read_cells(
    rows: Rows, feature: Hashable, read: Callable[[pd.Series[Any]], np.ndarray], key: Hashable
) -> np.ndarray:
    """What a function gives for the cells of a column; ``key`` tells functions apart."""
    if isinstance(rows, pd.DataFrame):
        return read(rows[feature])
    return rows.read(feature, read, key)


def numbers_of(rows: Rows, operand: Hashable) -> FloatArray:
    """Cells as float64, NaN for missing; dates and durations in nanoseconds."""
    if isinstance(operand, View):
        return operand.numbers(rows)
    return read_cells(rows, operand, numbers_of_cells, None)


def find_values(rows: Rows, operand: Hashable, values: Sequence[Any]) -> IntArray:
    """Number of each cell's value in a list without repeats; None is missing, -1 is no value."""
    if isinstance(operand, View):
        return match_values(pd.Series(operand.numbers(rows)), values)
    # 1 and 1.0 are equal, but not alike.
    key = tuple((type(value), value) for value in values)
    return read_cells(rows, operand, lambda cells: match_values(cells, values), key)


def match_values(cells: pd.Series[Any], values: Sequence[Any]) -> IntArray:
    """Number of each cell in a list of values without repeats; see :func:`find_values`."""
    missing = is_missing(cells)
    known = {value: number for number, value in enumerate(values) if value is not None}
    if is_measured(cells.dtype) and all(isinstance(value, float) for value in known):
        place = pd.Index([*known], dtype=np.float64).get_indexer(as_numbers(cells))
        numbers = np.where(place >= 0, np.array([*known.values(), -1])[place], -1)
    else:
        # Integers are levels, which float64 may merge.
        numbers = np.full(len(cells), -1, dtype=np.int64)
        numbers[~missing] = match_levels(known, cells[~missing] if missing.any() else cells)
    if None in values:
        numbers[missing] = values.index(None)
    return numbers


def values_of(feature: Feature) -> list[Any]:
    """The value of each code as a relation writes it: a float, a level, or None for missing."""
    if feature.numbers is not None:
        return [None if np.isnan(number) else float(number) for number in feature.numbers]
    levels: list[Any] = list(plain(feature.known))
    return [*levels, None] if feature.has_missing else levels


def numbers_of_cells(cells: pd.Series[Any]) -> FloatArray:
    """Numbers, dates and durations as float64, NaN for missing."""
    numbers = as_numbers(cells)
    return numbers * unit_of(cells.dtype) if is_time(cells.dtype) else numbers


def quote_column(name: Hashable) -> str:
    """A column name, between backticks unless it is a plain word; a view by its own name."""
    if isinstance(name, View):
        return name.name
    text = str(name)
    return text if text.isidentifier() else f"`{_bounded(text, 60)}`"


def quote_value(value: Any) -> str:
    """A value of a column, shortened."""
    if value is None:
        return "missing"
    if isinstance(value, float):
        short = quote_number(value)
        return short if float(short) == value else repr(value)
    return _bounded(repr(value), 40) if isinstance(value, str) else shorten(value, 40)


def quote_number(number: float) -> str:
    """A number with as many digits as it needs, at most 7."""
    return f"{number:.7g}"


def _bounded(text: str, most: int) -> str:
    """At most ``most`` characters; texts that differ stay different, by a checksum."""
    if len(text) <= most:
        return text
    checksum = zlib.crc32(text.encode(errors="surrogatepass"))
    return f"{text[: most - 11]}...{checksum:08x}"


@dataclass(frozen=True)
class FoundRelation:
    """A relation that holds in all or nearly all training rows."""

    relation: Relation
    share: float
    n_rows: int
    p_value: float
    enforced: bool


def table_of_relations(found: Sequence[FoundRelation]) -> pd.DataFrame:
    """One row for each relation, with the evidence."""
    relations = [item.relation for item in found]
    columns: dict[str, tuple[list[Any], Any]] = {
        "relation": ([r.name for r in relations], object),
        "kind": ([r.kind for r in relations], object),
        "target": ([r.target for r in relations], object),
        "features": ([list(r.features) for r in relations], object),
        "holds": ([item.share for item in found], float),
        "n_rows": ([item.n_rows for item in found], "int64"),
        "p_value": ([item.p_value for item in found], float),
        "tolerance": ([r.tolerance for r in relations], float),
        "relative": ([r.tolerance is not None and r.relative for r in relations], bool),
        "enforced": ([item.enforced for item in found], bool),
    }
    return pd.DataFrame({name: pd.Series(cells, dtype=d) for name, (cells, d) in columns.items()})
