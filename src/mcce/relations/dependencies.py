"""Finding functional dependencies: a column whose value another one determines.

Only values of the determinant that occur again count: a nearly unique column determines everything
by accident. Which value goes with which is learned from one half of the rows and checked in the
other, where a permuted column is right as often as that value occurs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..kernels import Codes, IntArray, check_cancellation
from ..tables.columns import is_time
from .cells import values_of
from .patterns import Dependency
from .proposals import Findings, Proposal
from .significance import log_chance
from .training import TrainingColumns

MAX_ROWS = 2000
MAX_BROKEN = 0.02
# Columns with more values than this are no determinant: the table would be as long as the data.
MAX_VALUES = 1000
# Neighbours with the same determinant may differ this often, and this often compared with chance.
MAX_DIFFERENT = 0.05
MAX_RELATIVE = 0.3


def find_dependencies(data: TrainingColumns) -> Findings:
    """Dependencies between any two columns but times."""
    usable = [
        at
        for at, feature in enumerate(data.schema.features)
        if feature.n_codes > 1 and not is_time(feature.table.dtype)
    ]
    proposals = []
    for left, right in _screened(data, usable):
        check_cancellation()
        proposal = _confirmed(data, left, right)
        if proposal is not None:
            proposals.append(proposal)
    return Findings(tuple(proposals), len(usable) * (len(usable) - 1))


def _screened(data: TrainingColumns, usable: list[int]) -> Iterator[tuple[int, int]]:
    """Pairs whose second value hardly differs between rows that share the first."""
    codes = data.codes[usable, : min(data.half, MAX_ROWS)]
    chance = np.array([_chance_of_difference(column) for column in codes])
    for place, left in enumerate(usable):
        check_cancellation()
        if data.schema.features[left].n_codes > MAX_VALUES:
            continue
        order = np.argsort(codes[place], kind="stable")
        again = np.flatnonzero(np.diff(codes[place, order]) == 0)
        if again.size < 10:
            continue
        different = (codes[:, order[again]] != codes[:, order[again + 1]]).mean(axis=1)
        determined = (different <= MAX_DIFFERENT) & (different <= MAX_RELATIVE * chance)
        determined[place] = False
        for other in np.flatnonzero(determined):
            yield left, usable[other]


def _chance_of_difference(column: Codes) -> float:
    shares = np.bincount(column) / column.size
    return float(1 - (shares * shares).sum())


def _confirmed(data: TrainingColumns, left: int, right: int) -> Proposal | None:
    features = data.schema.features
    n_left = features[left].n_codes
    expected = most_frequent(data.codes[left, : data.half], data.codes[right, : data.half], n_left)
    given, found = data.codes[left, data.held_out], data.codes[right, data.held_out]
    known = expected[given] >= 0
    told, found = expected[given[known]], found[known]
    n_broken = int((told != found).sum())
    if not told.size or n_broken > MAX_BROKEN * told.size:
        return None
    counts = np.bincount(found, minlength=features[right].n_codes)
    chance = log_chance(counts[told], n_broken)
    all_expected = most_frequent(data.codes[left], data.codes[right], n_left)
    pairs = zip(values_of(features[left]), all_expected, strict=True)
    results = values_of(features[right])
    values = tuple((value, results[code]) for value, code in pairs if code >= 0)
    relation = Dependency(features[left].name, features[right].name, values)
    return Proposal(relation, chance, int(told.size))


def most_frequent(given: Codes, found: Codes, n_values: int) -> IntArray:
    """The value that most often goes with each given one, the first of equals; -1 for none."""
    pairs, counts = np.unique(given.astype(np.int64) << 32 | found, return_counts=True)
    order = np.lexsort((pairs & 0xFFFFFFFF, -counts, pairs >> 32))
    left, first = np.unique((pairs >> 32)[order], return_index=True)
    expected = np.full(n_values, -1, dtype=np.int64)
    expected[left] = (pairs & 0xFFFFFFFF)[order][first]
    return expected
