"""Finding what goes with what: equivalences of two conditions, and tables of values.

An equivalence is a missing cell, level or special number that goes with some values of another
column. How many rows have each pair of a value and a condition is one product of matrices, so the
work grows with the number of columns squared.

A dependency is a column whose value another one determines. Only values of the determinant that
occur again count: a nearly unique column determines everything by accident. Which value goes with
which is learned from one half of the rows and checked in the other, where a permuted column is
right as often as that value occurs. A part of a date, such as its month, is a determinant like a
column; so is how many limits a number exceeds, if a column of few values changes at these alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np

from ..kernels import Codes, IntArray, check_cancellation
from ..tables.columns import is_time
from .dates import DATE_PARTS, DateView
from .evidence import MAX_BROKEN, Recipe, TrainingColumns
from .fitting import short_between
from .kinds import Dependency, Equivalence
from .relation import View, columns_of, numbers_of, values_of
from .views import HasValue, Steps

# Rows and conditions for equivalences at most, and products of cells; rows for dependencies, and
# conditions that are compared with all others at once.
ROWS_TO_MATCH, MAX_CONDITIONS, MAX_PRODUCTS = 20_000, 4000, 30_000_000_000
ROWS_TO_SCREEN, CONDITIONS_PER_PIECE = 2000, 256
# Up to this share of the rows in which a condition holds, or does not, may be broken.
MAX_BROKEN_OF_SIDE = 0.1
# A condition must hold, and fail, in this many rows.
MIN_ROWS = 3
# Levels of a column that are conditions, and numbers of one that are all special.
MAX_LEVELS, FEW_NUMBERS = 50, 12
# Of other columns, the most frequent numbers are special, beside the smallest and the largest.
N_FREQUENT = 2
# Columns with more values than this are no determinant: the table would be as long as the data.
MAX_VALUES = 1000
# Steps of a number at most, and rows on which they are screened.
MAX_STEPS, ROWS_TO_STEP = 8, 512
# Of sorted rows, so many neighbours must have the same determinant. They may differ this often, and
# this often compared with chance.
MIN_AGAIN, MAX_DIFFERENT, MAX_DIFFERENT_BY_CHANCE = 10, 0.05, 0.3


def find_equivalences(half: TrainingColumns) -> Iterator[Recipe]:
    """Equivalences of a condition on one column and some values of another."""
    conditions = _conditions(half.at(slice(0, ROWS_TO_MATCH)))[:MAX_CONDITIONS]
    if not conditions:
        return
    n_rows = min(len(half), ROWS_TO_MATCH, MAX_PRODUCTS // len(conditions) ** 2)
    codes = half.codes[:, :n_rows]
    holds = np.array([codes[column] == code for column, code in conditions], dtype=np.float32)
    of_column = np.array([column for column, _ in conditions])
    columns, starts = np.unique(of_column, return_index=True)
    n_holding = holds.sum(axis=1)
    most = np.minimum(
        MAX_BROKEN * n_rows, MAX_BROKEN_OF_SIDE * np.minimum(n_holding, n_rows - n_holding)
    )
    for start in range(0, len(conditions), CONDITIONS_PER_PIECE):
        check_cancellation()
        piece = slice(start, start + CONDITIONS_PER_PIECE)
        # Values that mostly go with a condition are taken together.
        gained = np.maximum(2 * (holds[piece] @ holds.T) - n_holding, 0)
        broken = n_holding[piece, None] - np.add.reduceat(gained, starts, axis=1)
        is_near = (broken <= most[piece, None]) & (columns != of_column[piece, None])
        for number, other in np.argwhere(is_near).tolist():
            special = [code for at, code in conditions if at == columns[other]]
            column, code = conditions[start + number]
            yield partial(_equivalence, column, code, int(columns[other]), special)


def _conditions(some: TrainingColumns) -> list[tuple[int, int]]:
    """Columns and codes that enough rows have, and enough have not."""
    conditions = []
    for column, feature in enumerate(some.schema.features):
        counts = np.bincount(some.codes[column], minlength=feature.n_codes)
        n_known, n_codes = feature.n_codes - feature.has_missing, feature.n_codes
        chosen = {n_codes - 1} if feature.has_missing else set()
        if n_codes <= (MAX_LEVELS if feature.kind == "categorical" else FEW_NUMBERS):
            chosen |= {*range(n_codes)}
        elif feature.name in some.numbers:
            frequent = np.argsort(-counts[:n_known], kind="stable")[:N_FREQUENT]
            chosen |= {0, n_known - 1, *frequent.tolist()}
        enough = [code for code in chosen if MIN_ROWS <= counts[code] <= len(some) - MIN_ROWS]
        conditions += [(column, code) for code in sorted(enough)]
    return conditions


def _equivalence(
    column: int, code: int, other: int, special: Sequence[int], data: TrainingColumns, margin: float
) -> Equivalence | None:
    """A condition on one column, and the values of the other that mostly go with it."""
    first, second = data.schema.features[column], data.schema.features[other]
    holds = data.codes[column] == code
    n_rows, n_holding = (
        np.bincount(own, minlength=second.n_codes)
        for own in (data.codes[other], data.codes[other, holds])
    )
    values = tuple(values_of(second)[one] for one in special if 2 * n_holding[one] > n_rows[one])
    sides = HasValue((first.name,), (values_of(first)[code],)), HasValue((second.name,), values)
    if len(values) == 1 and other < column:
        sides = sides[::-1]
    return Equivalence(*sides) if values else None


def find_dependencies(half: TrainingColumns) -> Iterator[Recipe]:
    """Dependencies on a column that is no time, on a part of a date, and on steps of a number."""
    features = half.schema.features
    results = [f.name for f in features if f.n_codes > 1 and not is_time(f.table.dtype)]
    for name in results:
        codes, has_few = half.codes_of(name), half.feature(name).n_codes <= MAX_VALUES
        if name in half.numbers:
            in_steps = _nearly_determined(half, name, codes, results, in_steps=True)
            yield from (partial(_dependency_on_steps, name, result) for result in in_steps)
        if has_few:
            determined = _nearly_determined(half, name, codes, results)
            yield from (partial(_dependency, name, result) for result in determined)
    for part, date in product(DATE_PARTS, half.dates):
        view = DateView(part, (date,))
        values = np.unique(view.numbers(half), return_inverse=True)[1]
        for result in _nearly_determined(half, view, values, results):
            yield partial(_dependency, view, result)


def _nearly_determined(
    half: TrainingColumns,
    left: Hashable,
    codes: IntArray | Codes,
    results: Sequence[Hashable],
    in_steps: bool = False,
) -> list[Hashable]:
    """Columns that hardly differ between rows of the same value, in steps of the next one."""
    check_cancellation()
    n_rows = min(len(half), ROWS_TO_STEP if in_steps else ROWS_TO_SCREEN)
    order = np.argsort(codes[:n_rows], kind="stable")
    again = np.flatnonzero((np.diff(codes[order]) == 0) | in_steps)
    if again.size < MIN_AGAIN:
        return []
    own = half.codes[[half.schema.position_of[name] for name in results], :n_rows]
    differs = (own[:, order[again]] != own[:, order[again + 1]]).mean(axis=1)
    return [
        results[at]
        for at in np.flatnonzero(differs <= MAX_DIFFERENT).tolist()
        if results[at] not in columns_of(left)
        and differs[at] <= MAX_DIFFERENT_BY_CHANCE * _chance_of_difference(own[at])
    ]


def _chance_of_difference(codes: Codes) -> float:
    shares = np.bincount(codes) / codes.size
    return float(1 - (shares * shares).sum())


def _dependency(
    left: Hashable, result: Hashable, data: TrainingColumns, margin: float
) -> Dependency:
    """The value of a column that goes most often with each value of another, or of a view."""
    if isinstance(left, View):
        numbers, codes = np.unique(left.numbers(data), return_inverse=True)
        values = [None if np.isnan(number) else float(number) for number in numbers]
    else:
        values, codes = values_of(data.feature(left)), data.codes_of(left).astype(np.int64)
    expected = most_frequent(codes, data.codes_of(result))
    of_result = values_of(data.feature(result))
    pairs = tuple((values[code], of_result[other]) for code, other in expected.items())
    return Dependency(left, result, pairs)


def most_frequent(left: IntArray | Codes, right: Codes) -> dict[int, int]:
    """The value that most often goes with each one on the left, the first of equals."""
    pairs, counts = np.unique(left.astype(np.int64) << 32 | right, return_counts=True)
    lefts, rights = pairs >> 32, pairs & 0xFFFFFFFF
    # Of repeated keys, a dictionary keeps the last one.
    order = np.lexsort((-rights, counts, lefts))
    return dict(zip(lefts[order].tolist(), rights[order].tolist(), strict=True))


def _dependency_on_steps(
    number: Hashable, result: Hashable, data: TrainingColumns, margin: float
) -> Dependency | None:
    """The dependency on how many limits a number exceeds."""
    limits = _limits(data, number, result)
    return _dependency(Steps((number,), limits), result, data, margin) if limits else None


def _limits(data: TrainingColumns, number: Hashable, result: Hashable) -> tuple[float, ...]:
    """Short numbers at which the value of a column changes; none unless it does so in steps."""
    numbers = numbers_of(data, number)
    order = np.argsort(numbers, kind="stable")[: np.count_nonzero(~np.isnan(numbers))]
    ascending, codes = numbers[order], data.codes_of(result)[order]
    last = np.flatnonzero(np.diff(codes))
    lengths = np.diff(last, prepend=-1, append=codes.size - 1)
    below, above = ascending[last], ascending[last + 1]
    if last.size > MAX_STEPS or (below == above).any() or lengths.min() < MIN_ROWS:
        return ()
    highest = np.nextafter(above, -np.inf)
    return tuple(map(short_between, below.tolist(), highest.tolist()))
