"""Columns as networks see them: in cells, or in modes; and draws from the probabilities of cells.

Cells are levels, frequent numbers, bins of numbers, and missing. A number that is frequent enough
is a cell of its own, an atom; the others are put into bins of about equally many rows. What is
drawn from a bin is uniform between its ends, at the resolution of the column. So a value need not
be one of training, except for atoms and where a column has few values. Dates, durations and numbers
that float64 cannot hold stay training values.

Modes are what a generative adversarial network sees (Xu, Skoularidou, Cuesta-Infante and
Veeramachaneni 2019). A number is one of several modes, those of a mixture of normal distributions,
and its place in it: ``(number - mean) / (4 * spread)``. Values that many rows share are modes of
their own, and so is missing. A level, and a number with few values, is a mode without a place.

A cell is drawn by its probability, then one of its values, all alike. Of a group with limits, a
cell counts by the share of its values that the group may have, and one of these is drawn. Where
there is none, or the code drawn counts as the own one, the own value is kept.

Always true: the cells of a column ascend with its values, missing last; every cell holds a value;
modes depend on the training rows and the seed alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mcce import Schema
from mcce.errors import SavedFileError
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

# The most values that can be drawn from one bin, and the largest number that float64 holds exactly.
VALUES_PER_BIN, LARGEST_EXACT = 64, 2**53
# Numbers with so few values are levels; values of so large a share of the rows are modes.
N_LEVELS, ATOM_SHARE = 20, 0.05
# Of the mixture: components at most, the least weight of a mode, and rows to learn it from.
N_COMPONENTS, MIN_WEIGHT, N_ROWS = 10, 0.005, 10_000
# Places are bounded, and count in four spreads.
FARTHEST_PLACE, SPREADS = 0.99, 4.0


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
    if not isinstance(plain, list) or len(plain) != len(schema.features):
        raise SavedFileError("the cells are not those of its columns")
    return [
        _unpack_column(one, feature) for one, feature in zip(plain, schema.features, strict=True)
    ]


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
    if not isinstance(plain, Mapping) or set(plain) != {"cell_of", "starts", "values"}:
        raise SavedFileError("the cells of a column have other parts")
    dtypes = {"cell_of": np.int64, "starts": np.int64, "values": np.float64}
    for name, dtype in dtypes.items():
        part = plain[name]
        if not isinstance(part, np.ndarray) or part.ndim != 1 or part.dtype != dtype:
            raise SavedFileError("the cells of a column have other dtypes or shapes")
    cell_of, starts, values = (plain[name] for name in dtypes)
    is_own = bool(values.size)
    n_values = values.size if is_own else feature.n_codes
    n_cells = starts.size - 1
    sound = (
        n_cells > 0
        and cell_of.size == feature.n_codes + 1
        and (starts[0], starts[-1]) == (0, n_values)
        and bool((np.diff(starts) > 0).all())
        and np.array_equal(np.unique(cell_of), np.arange(n_cells + 1))
        and bool((np.diff(cell_of) >= 0).all())
        and (not is_own or _is_table(feature, values))
    )
    if not sound:
        raise SavedFileError("the cells of a column are not those of its values")
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


@dataclass(frozen=True, eq=False)
class ColumnModes:
    """The modes of a column.

    Parameters
    ----------
    n_levels
        Number of codes of a column whose values are levels; 0 for one with modes.
    weights, means, spreads : (n_modes,)
        Of the modes of a number; the spread of a single value is 0.
    has_missing
        Whether there is one more mode, for missing.
    """

    n_levels: int
    weights: FloatArray
    means: FloatArray
    spreads: FloatArray
    has_missing: bool

    @property
    def has_place(self) -> bool:
        """Whether a value has a place in its mode."""
        return not self.n_levels

    @property
    def n_units(self) -> int:
        """Number of modes or levels."""
        return self.n_levels or self.means.size + self.has_missing

    def encode(
        self, codes: IntArray, numbers: FloatArray | None, u: FloatArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """The mode and the place of each cell."""
        if self.n_levels or numbers is None:
            return codes.astype(np.int64), np.zeros(codes.size)
        values = numbers[codes]
        missing = np.isnan(values)
        filled = np.where(missing, 0.0, values)
        likely = self._likely(filled)
        if u is None:
            mode = likely.argmax(axis=1)
        else:
            below = np.cumsum(likely, axis=1)
            mode = (below <= (u * below[:, -1])[:, None]).sum(axis=1)
            mode = np.minimum(mode, self.means.size - 1)
        spread = self.spreads[mode]
        place = (filled - self.means[mode]) / np.where(spread > 0, SPREADS * spread, 1.0)
        place = np.where(missing | (spread == 0), 0.0, place)
        mode = np.where(missing, self.means.size, mode)
        return mode, np.clip(place, -FARTHEST_PLACE, FARTHEST_PLACE)

    def decode(self, mode: IntArray, place: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The number of each mode and place, and whether it is missing."""
        missing = mode >= self.means.size
        at = np.minimum(mode, self.means.size - 1)
        bounded = np.clip(place, -FARTHEST_PLACE, FARTHEST_PLACE)
        return self.means[at] + SPREADS * self.spreads[at] * bounded, missing

    def _likely(self, values: FloatArray) -> FloatArray:
        """How likely each mode is to hold each value, up to a constant: (n_rows, n_modes)."""
        single = self.spreads == 0
        spreads = np.where(single, 1.0, self.spreads)
        gap = (values[:, None] - self.means) / spreads
        logs = np.log(self.weights) - np.log(spreads) - 0.5 * gap * gap
        logs = np.where(single, -np.inf, logs)
        exact = single & (values[:, None] == self.means)
        logs[exact.any(axis=1)] = -np.inf
        logs[exact] = 0.0
        return np.exp(logs - logs.max(axis=1, keepdims=True))


def learn_modes(rows: EncodedRows, seed: int) -> list[ColumnModes]:
    """The modes of every column."""
    features = enumerate(rows.schema.features)
    return [_column_modes(f, rows.tree_codes[at].astype(np.int64), seed + at) for at, f in features]


def pack_modes(columns: list[ColumnModes]) -> list[dict[str, Any]]:
    """The arrays of modes by name."""
    names = ("weights", "means", "spreads")
    return [{name: getattr(column, name) for name in names} for column in columns]


def unpack_modes(plain: Any, schema: Schema) -> list[ColumnModes]:
    """Modes that could have been learned of these columns; raises SavedFileError for others."""
    if not isinstance(plain, list) or len(plain) != len(schema.features):
        raise SavedFileError("the modes are not those of its columns")
    return [_unpack(one, feature) for one, feature in zip(plain, schema.features, strict=True)]


def _is_levels(feature: Feature) -> bool:
    return feature.kind == "categorical" or feature.n_codes <= N_LEVELS


def _levels(feature: Feature) -> ColumnModes:
    none = np.empty(0)
    return ColumnModes(feature.n_codes, none, none, none, feature.has_missing)


def _column_modes(feature: Feature, codes: IntArray, seed: int) -> ColumnModes:
    if _is_levels(feature) or feature.numbers is None:
        return _levels(feature)
    numbers = feature.numbers
    counts = np.bincount(codes, minlength=feature.n_codes) * ~np.isnan(numbers)
    atoms = counts >= ATOM_SHARE * max(1, int(counts.sum()))
    rest = codes[~atoms[codes] & ~np.isnan(numbers[codes])]
    weights, means, spreads = _mixture(numbers[rest], feature.spread, seed)
    share = rest.size / max(1, int(counts.sum()))
    return ColumnModes(
        0,
        np.concatenate([weights * share, counts[atoms] / counts.sum()]),
        np.concatenate([means, numbers[atoms]]),
        np.concatenate([spreads, np.zeros(int(atoms.sum()))]),
        feature.has_missing,
    )


def _mixture(
    values: FloatArray, scale: float, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights, means and spreads of the modes of some numbers, by mean; none of no numbers."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    if not values.size:
        return np.empty(0), np.empty(0), np.empty(0)
    # In units of a power of two, which is exact, so that no square is too large or too small.
    unit = np.ldexp(1.0, min(int(np.frexp(np.abs(values).max())[1]), 1023))
    values = values / unit
    centre, width = values.mean(), values.std()
    if values.size < 2 or not width > 0:
        centre = centre * unit
        return np.ones(1), np.array([centre]), np.array([min(max(abs(centre), 1.0) * 1e-3, scale)])
    some = np.random.default_rng(seed).permutation(values.size)[:N_ROWS]
    scaled = np.sort(values[some] - centre) / width
    mixture = BayesianGaussianMixture(
        n_components=min(N_COMPONENTS, np.unique(scaled).size),
        weight_concentration_prior=0.001,
        random_state=seed % 2**32,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(scaled[:, None])
    kept = mixture.weights_ >= MIN_WEIGHT
    order = np.argsort(mixture.means_[kept, 0])
    weights = mixture.weights_[kept][order]
    means = (mixture.means_[kept, 0][order] * width + centre) * unit
    spreads = np.sqrt(mixture.covariances_[kept, 0, 0][order]) * width * unit
    return weights / weights.sum(), means, spreads


def _unpack(plain: Any, feature: Feature) -> ColumnModes:
    if not isinstance(plain, Mapping) or set(plain) != {"weights", "means", "spreads"}:
        raise SavedFileError("the modes of a column have other parts")
    parts = [plain[name] for name in ("weights", "means", "spreads")]
    for part in parts:
        sound = isinstance(part, np.ndarray) and part.dtype == np.float64 and part.ndim == 1
        if not sound or part.size != parts[0].size or not np.isfinite(part).all():
            raise SavedFileError("the modes of a column have other dtypes or shapes")
    if _is_levels(feature):
        if parts[0].size:
            raise SavedFileError("a column of levels has modes")
        return _levels(feature)
    weights, means, spreads = parts
    if not weights.size or (weights <= 0).any() or (spreads < 0).any():
        raise SavedFileError("the modes of a column are not those of numbers")
    return ColumnModes(0, weights, means, spreads, feature.has_missing)


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
