"""Columns in cells, as networks see them, and draws from the probabilities of cells.

Cells are levels, frequent numbers, bins of numbers, and missing. A number that is frequent enough
is a cell of its own, an atom; the others are put into bins of about equally many rows. What is
drawn from a bin is uniform between its ends, at the resolution of the column. So a value need not
be one of training, except for atoms and where a column has few values. Dates, durations and numbers
that float64 cannot hold stay training values.

A cell is drawn by its probability, then one of its values, all alike. Of a group with limits, a
cell counts by the share of its values that the group may have, and one of these is drawn. Where
there is none, or the code drawn counts as the own one, the own value is kept.

Always true: the cells of a column ascend with its values, missing last; every cell holds a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mcce import Schema
from mcce.protocols import (
    BoolArray,
    Codes,
    DrawRequest,
    EncodedRows,
    Feature,
    FloatArray,
    IntArray,
    pick,
    uniforms,
)

from .base import demand, listed, take

# The most values that can be drawn from one bin, and the largest number that float64 holds exactly.
VALUES_PER_BIN, LARGEST_EXACT = 64, 2**53


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """The cells of a column.

    Parameters
    ----------
    cell_of : (n_codes + 1,)
        The cell of each training value; the last entry, for unseen levels, is one past the cells.
    starts : (n_cells + 1,)
        Where the values of each cell begin in the table.
    table
        All values that can be drawn, ascending, missing last.
    is_own
        Whether the table is not that of the training values.
    """

    cell_of: IntArray
    starts: IntArray
    table: pd.Series[Any]
    is_own: bool

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.starts.size - 1

    @cached_property
    def sizes(self) -> IntArray:
        """Number of values of each cell."""
        return np.diff(self.starts)

    def numbers(self, feature: Feature) -> FloatArray:
        """The values of the table as numbers, NaN for missing."""
        is_own = self.is_own or feature.numbers is None
        return to_numbers(self.table) if is_own else np.asarray(feature.numbers)


def learn_cells(rows: EncodedRows, n_bins: int) -> list[ColumnCells]:
    """The cells of every column."""
    features = zip(rows.schema.features, rows.tree_codes, strict=True)
    return [_column_cells(feature, codes, n_bins) for feature, codes in features]


def pack_cells(columns: list[ColumnCells]) -> list[dict[str, Any]]:
    """The arrays of cells by name; training values are not repeated."""
    return [
        {
            "cell_of": column.cell_of,
            "starts": column.starts,
            "values": to_numbers(column.table) if column.is_own else np.empty(0),
        }
        for column in columns
    ]


def unpack_cells(plain: Any, schema: Schema) -> list[ColumnCells]:
    """Cells that could have been learned of these columns; raises SavedFileError for others."""
    parts = listed(plain, len(schema.features), "the cells")
    return [_unpack_column(*pair) for pair in zip(parts, schema.features, strict=True)]


def group_codes(counts: IntArray, n_bins: int) -> IntArray:
    """The first code of each cell of a numeric column.

    Examples
    --------
    >>> group_codes(np.array([50, 1, 2, 1, 2, 30, 2, 2]), 4)
    array([0, 1, 5, 6])
    """
    if counts.size <= n_bins:
        return np.arange(counts.size)
    is_atom = counts * n_bins > counts.sum()
    n_others = int(counts[~is_atom].sum())
    room = n_others / max(1, n_bins - int(is_atom.sum()))
    starts, held = [0], 0
    for code in range(1, counts.size):
        held += int(counts[code - 1])
        if is_atom[code] or is_atom[code - 1] or held >= room:
            starts.append(code)
            held = 0
    return np.array(starts)


def _column_cells(feature: Feature, codes: Codes, n_bins: int) -> ColumnCells:
    if feature.kind == "categorical":
        starts = np.arange(feature.n_codes + 1)
        return ColumnCells(starts, starts, feature.table, False)
    n_known = feature.n_codes - feature.has_missing
    counts = np.bincount(codes, minlength=feature.n_codes)[:n_known]
    first = group_codes(counts, n_bins) if n_known else np.empty(0, dtype=np.int64)
    cell_of = np.searchsorted(first, np.arange(n_known), side="right") - 1
    missing = [first.size] * feature.has_missing
    n_cells = first.size + feature.has_missing
    cell_of = np.concatenate([cell_of, missing, [n_cells]]).astype(np.int64)
    if first.size == n_known or not _can_invent(feature):
        starts = np.concatenate([first, [n_known] * feature.has_missing, [feature.n_codes]])
        return ColumnCells(cell_of, starts.astype(np.int64), feature.table, False)
    values, starts = _invent(feature, first)
    return ColumnCells(cell_of, starts, _own_table(feature, values), True)


def _can_invent(feature: Feature) -> bool:
    """Whether numbers between the training values can be written into the column."""
    numbers = feature.numbers
    if numbers is None or feature.table.dtype.kind not in "iuf":
        return False
    return bool(np.nanmax(np.abs(numbers), initial=0.0) <= LARGEST_EXACT)


def _invent(feature: Feature, first: IntArray) -> tuple[FloatArray, IntArray]:
    """The values of all cells but missing, and where those of each cell begin."""
    numbers = feature.known_numbers
    places = _places(feature)
    lows, highs = numbers[first], numbers[np.append(first[1:], numbers.size) - 1]
    cells = [_spread(low, high, places) for low, high in zip(lows, highs, strict=True)]
    cells = [np.unique(to_numbers(_cast(feature, values))) for values in cells]
    sizes = [values.size for values in cells] + [1] * feature.has_missing
    return np.concatenate(cells), np.append(0, np.cumsum(sizes))


def _places(feature: Feature) -> int | None:
    """Decimal places that training values have; less than 0 if all are multiples of 10."""
    places, numbers = feature.decimals, feature.known_numbers
    largest = np.abs(numbers).max(initial=0.0)
    if places != 0:
        return places
    while 10.0 ** (1 - places) <= largest and not np.any(numbers % 10.0 ** (1 - places)):
        places -= 1
    return places


def to_numbers(table: pd.Series[Any]) -> FloatArray:
    """Numbers that are neither dates nor durations, NaN for missing."""
    return table.to_numpy(dtype=np.float64, na_value=np.nan)


def _spread(low: float, high: float, places: int | None) -> FloatArray:
    """Numbers that stand for a bin: all that can be written, or some at equal distances."""
    if low == high:
        return np.array([low])
    n_steps = np.inf if places is None else np.round((high - low) * 10.0**places)
    if n_steps < VALUES_PER_BIN:
        values = low + np.arange(n_steps + 1) * 10.0 ** -float(places or 0)
    else:
        middles = (np.arange(VALUES_PER_BIN) + 0.5) / VALUES_PER_BIN
        values = low + (high - low) * middles
    return np.clip(values if places is None else np.round(values, places), low, high)


def _cast(feature: Feature, values: FloatArray) -> pd.Series[Any]:
    """Numbers in the dtype of a column."""
    whole = feature.table.dtype.kind in "iu"
    numbers = pd.Series(np.rint(values).astype(np.int64) if whole else values)
    return numbers.astype(feature.table.dtype)


def _own_table(feature: Feature, values: FloatArray) -> pd.Series[Any]:
    """A table of invented values, and missing where training has it."""
    table = _cast(feature, values)
    if feature.has_missing:
        table = pd.concat([table, feature.table.iloc[-1:]], ignore_index=True)
    return pd.Series(table.astype(feature.table.dtype).array, name=feature.name)


def _unpack_column(plain: Any, feature: Feature) -> ColumnCells:
    parts = {"cell_of": np.int64, "starts": np.int64, "values": np.float64}
    cell_of, starts, values = take(plain, "the cells of a column", **parts)
    is_own, n_cells = bool(values.size), starts.size - 1
    n_values = values.size if is_own else feature.n_codes
    sound = (
        n_cells > 0
        and cell_of.size == feature.n_codes + 1
        and (starts[0], starts[-1]) == (0, n_values)
        and bool((np.diff(starts) > 0).all())
        and np.array_equal(np.unique(cell_of), np.arange(n_cells + 1))
        and bool((np.diff(cell_of) >= 0).all())
        and (not is_own or _is_table(feature, values))
    )
    demand(sound, "the cells of a column are not those of its values")
    known = values[: values.size - feature.has_missing]
    table = _own_table(feature, known) if is_own else feature.table
    return ColumnCells(cell_of, starts, table, is_own)


def _is_table(feature: Feature, values: FloatArray) -> bool:
    """Whether numbers can be the values of a column: ascending, in its range, missing last."""
    if not _can_invent(feature) or feature.numbers is None:
        return False
    known = values[: values.size - feature.has_missing]
    if feature.has_missing and not np.isnan(values[-1]):
        return False
    low, high = np.nanmin(feature.numbers), np.nanmax(feature.numbers)
    inside = np.isfinite(known).all() and (known >= low).all() and (known <= high).all()
    if not (known.size and inside and (np.diff(known) > 0).all()):
        return False
    return np.array_equal(to_numbers(_cast(feature, known)), known)


def draw_cells(
    request: DrawRequest, position: int, column: ColumnCells, logits: FloatArray
) -> tuple[Codes, IntArray]:
    """Codes in the table of a column, and the cells that they are in."""
    u = uniforms(request.row_keys, position)
    allowed = request.allowed(position, len(column.table))
    if allowed is None:
        cells = choose(logits, u)
        codes = _pick(request, position, column.starts[cells], column.sizes[cells])
        possible = np.ones(cells.size, dtype=bool)
    else:
        codes, cells, possible = _within(request, position, column, logits, u, allowed)
    own, kept = request.kept(position, codes, possible)
    shown = column.cell_of[request.given[position]][request.group]
    return np.where(kept, own, codes), np.where(kept, shown, cells)


def _within(
    request: DrawRequest,
    position: int,
    column: ColumnCells,
    logits: FloatArray,
    u: FloatArray,
    allowed: BoolArray,
) -> tuple[Codes, IntArray, BoolArray]:
    """Allowed codes, the cells that they are in, and where there are any."""
    group = request.group
    counted: IntArray = np.cumsum(allowed, axis=1, dtype=np.int64)
    before = np.pad(counted, ((0, 0), (1, 0)))
    n_allowed = np.diff(before[:, column.starts], axis=1)
    chosen = choose(logits, u, (n_allowed / column.sizes)[group])
    cells = np.maximum(chosen, 0)
    first, sizes = before[group, column.starts[cells]], n_allowed[group, cells]
    nth = _pick(request, position, first, np.maximum(sizes, 1))
    codes = np.empty(nth.size, dtype=np.int32)
    for number, codes_before in enumerate(before):
        rows = group == number
        codes[rows] = np.searchsorted(codes_before, nth[rows], side="right") - 1
    return np.minimum(codes, len(column.table) - 1), cells, chosen >= 0


def _pick(request: DrawRequest, position: int, first: IntArray, sizes: IntArray) -> Codes:
    """One of a number of codes from the first, for each row."""
    word = position + 2 * (len(request.given) + 1)
    return (first + pick(request.row_keys, word, sizes)).astype(np.int32)


def draw_nearest(
    request: DrawRequest,
    position: int,
    column: ColumnCells,
    feature: Feature,
    numbers: FloatArray,
    missing: BoolArray,
) -> tuple[Codes, BoolArray]:
    """Codes of the values nearest to numbers, and where the own value is kept instead."""
    values = column.numbers(feature)
    known = values[: values.size - feature.has_missing]
    nearest = np.searchsorted(middles(known), numbers)
    codes = np.where(missing, values.size - 1, nearest).astype(np.int32)
    allowed = request.allowed(position, values.size)
    possible = np.ones(codes.size, dtype=bool)
    if allowed is not None:
        possible = allowed[request.group, codes]
    own, kept = request.kept(position, codes, possible)
    return np.where(kept, own, codes), kept


def middles(known: FloatArray) -> FloatArray:
    """Numbers half way between ascending ones."""
    return known[1:] / 2 + known[:-1] / 2


def choose(logits: FloatArray, u: FloatArray, share: FloatArray | None = None) -> IntArray:
    """A class of each row by its probabilities, -1 where all are 0."""
    weight = np.exp(logits - logits.max(axis=1, keepdims=True))
    if share is not None:
        weight *= share
    below = np.cumsum(weight, axis=1)
    total = below[:, -1]
    chosen = (below <= (u * total)[:, None]).sum(axis=1)
    # The last class with any probability, should rounding lead beyond it.
    last = weight.shape[1] - 1 - (weight[:, ::-1] > 0).argmax(axis=1)
    return np.where(total > 0, np.minimum(chosen, last), -1)


def log_shares(logits: FloatArray) -> FloatArray:
    """Logarithms of the probabilities of each row."""
    centred = logits - logits.max(axis=1, keepdims=True)
    return centred - np.log(np.exp(centred).sum(axis=1, keepdims=True))
