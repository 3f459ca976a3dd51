"""Training rows near people, and their cells in the place of a person's.

The distance of two rows is the sum over all features of range-scaled differences, 1 between two
levels and where one side is missing: Gower's, times the number of features. Takes encoded rows;
gives pairs of a person and a training row, or frames for the predictor.

Always true: ties go to the first training row; distances are computed in blocks of bounded memory,
and their bits do not depend on the blocks; a cell that does not change is the person's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce import Interval
from mcce.errors import ParameterError
from mcce.protocols import (
    OWN,
    BoolArray,
    EncodedRows,
    FloatArray,
    IntArray,
    scaled_gap,
)

from .baseline import Training

# Distances in one block, which then fits into the CPU cache.
BLOCK = 2**17


@dataclass(frozen=True, eq=False)
class Pairs:
    """People and training rows near them."""

    owner: IntArray
    row: IntArray
    distance: FloatArray

    def __len__(self) -> int:
        return self.owner.size

    def take(self, places: IntArray | BoolArray | slice) -> Pairs:
        """Some of the pairs."""
        return Pairs(self.owner[places], self.row[places], self.distance[places])

    @property
    def rank(self) -> IntArray:
        """Place of each pair among those of its person, from 0."""
        starts = np.flatnonzero(np.diff(self.owner, prepend=-1))
        lengths = np.diff(starts, append=len(self))
        return np.arange(len(self)) - np.repeat(starts, lengths)


def nearest_rows(
    people: EncodedRows,
    rows: EncodedRows,
    among: IntArray,
    *,
    same: bool = True,
    k: int | None = None,
    radius: float = np.inf,
) -> Pairs:
    """The training rows nearest to each person.

    Examples
    --------
    >>> from mcce import Schema
    >>> rows = Schema.learn_rows(pd.DataFrame({"sex": [0, 1, 1], "pay": [0, 6, 10]}),
    ...                          immutable=["sex"])
    >>> people = rows.schema.encode(pd.DataFrame({"sex": [0, 1], "pay": [9, 7]}))
    >>> pairs = nearest_rows(people, rows, np.arange(3), k=1)
    >>> pairs.row, pairs.distance
    (array([0, 1]), array([0.9, 0.1]))
    """
    found = [
        Pairs(who[part.owner], places[part.row], part.distance)
        for who, places in alike(people, rows, among, same=same)
        for part in _blocks(people, rows, who, places, k, radius)
    ]
    none = np.empty(0, dtype=np.int64)
    pairs = Pairs(
        np.concatenate([none, *(part.owner for part in found)]),
        np.concatenate([none, *(part.row for part in found)]),
        np.concatenate([np.empty(0), *(part.distance for part in found)]),
    )
    # The parts themselves are in order.
    return pairs.take(np.argsort(pairs.owner, kind="stable"))


def distances(one: FloatArray, other: FloatArray, is_level: BoolArray) -> FloatArray:
    """Distance of each point to each other one.

    Examples
    --------
    >>> distances(np.array([[0.5, 1.0]]), np.array([[0.75, 1.0], [0.0, 2.0]]),
    ...           np.array([False, True]))
    array([[0.25, 1.5 ]])
    """
    total = np.zeros((len(one), len(other)))
    for mine, theirs, level in zip(one.T, np.ascontiguousarray(other.T), is_level, strict=True):
        total += theirs != mine[:, None] if level else scaled_gap(theirs, mine[:, None])
    return total


def cell_gaps(people: EncodedRows, rows: EncodedRows, pairs: Pairs) -> FloatArray:
    """How far apart the two sides of each pair are in each mutable cell."""
    schema = rows.schema
    gaps = np.empty((len(pairs), schema.mutable.size))
    for place, at in enumerate(schema.mutable):
        mine, theirs = people.points[pairs.owner, at], rows.points[pairs.row, at]
        gaps[:, place] = mine != theirs if schema.is_level[at] else scaled_gap(theirs, mine)
    return gaps


def alike(
    people: EncodedRows, rows: EncodedRows, among: IntArray, *, same: bool
) -> Iterator[tuple[IntArray, IntArray]]:
    """Positions of people and of the training rows they are compared with, group by group.

    With ``same``, a group has equal immutable values; people without such a row are in none.
    """
    fixed = rows.schema.immutable
    if not same or not fixed.size:
        if among.size and len(people):
            yield np.arange(len(people)), among
        return
    pools = positions_by_key(rows.codes[fixed][:, among].T)
    for key, who in positions_by_key(people.codes[fixed].T).items():
        # No training row has the code -1 of a value that training never held.
        if key in pools:
            yield who, among[pools[key]]


def positions_by_key(codes: np.ndarray) -> dict[bytes, IntArray]:
    """Positions of equal rows of codes, ascending, by the row's bytes."""
    codes = np.ascontiguousarray(codes)
    if not codes.size:
        return {b"": np.arange(len(codes))}
    _, first, group = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    group = group.ravel()  # NumPy 2.0 gives it a second axis
    parts = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
    return {codes[one].tobytes(): part for one, part in zip(first, parts, strict=True)}


def put_in(
    people: EncodedRows,
    rows: EncodedRows,
    owner: IntArray,
    row: IntArray,
    copied: BoolArray | None = None,
) -> pd.DataFrame:
    """People with mutable cells of training rows."""
    mutable = rows.schema.mutable
    codes = rows.codes[mutable][:, row]
    keep = codes == people.codes[mutable][:, owner]
    if copied is not None:
        keep |= ~copied.T
    return people.compose(owner, np.where(keep, np.int32(OWN), codes), people.tables)


def usable_rows(training: Training, y: Any, *, justified: bool) -> IntArray:
    """Positions of the accepted rows; with ``justified`` of those with the desired outcome."""
    if not justified:
        return training.accepted
    outcome = None if y is None else pd.Series(np.asarray(y).ravel()).infer_objects()
    if outcome is None or len(outcome) != len(training.rows):
        got = "None" if outcome is None else f"{len(outcome)} values"
        raise ParameterError(
            f"justified=True needs the true outcome of each of the {len(training.rows)} training "
            f"rows, got {got}. Call fit(X, y), or pass justified=False."
        )
    return training.accepted[_is_desired(outcome, training)[training.accepted]]


def _is_desired(outcome: pd.Series[Any], training: Training) -> BoolArray:
    """Which outcomes are desired."""
    desired = training.decision.desired
    if pd.api.types.is_bool_dtype(outcome.dtype):
        return outcome.to_numpy(dtype=bool)
    if not isinstance(desired, Interval):
        return outcome.isin(list(desired)).to_numpy(dtype=bool)
    if not pd.api.types.is_numeric_dtype(outcome.dtype):
        raise ParameterError(
            f"y must hold booleans or numbers where {desired!r} is desired, got values of the "
            f"dtype {outcome.dtype}. Pass y == the desired outcome."
        )
    return desired.contains(outcome.to_numpy(dtype=np.float64))


def _blocks(
    people: EncodedRows,
    rows: EncodedRows,
    who: IntArray,
    places: IntArray,
    k: int | None,
    radius: float,
) -> Iterator[Pairs]:
    """The nearest of one group, by positions within it."""
    points, is_level = rows.points[places], rows.schema.is_level
    size = max(1, BLOCK // places.size)
    for start in range(0, who.size, size):
        part = who[start : start + size]
        found = _select(distances(people.points[part], points, is_level), k, radius)
        yield Pairs(found.owner + start, found.row, found.distance)


def _select(gaps: FloatArray, k: int | None, radius: float) -> Pairs:
    """The k nearest within the radius in each row of a matrix, ties to the first column."""
    if k == 1 and np.isinf(radius):
        row = gaps.argmin(axis=1)
        return Pairs(np.arange(len(gaps)), row, gaps[np.arange(len(gaps)), row])
    limit = np.full(len(gaps), radius)
    if k is not None and k < gaps.shape[1]:
        limit = np.minimum(limit, np.partition(gaps, k - 1, axis=1)[:, k - 1])
    owner, row = np.nonzero(gaps <= limit[:, None])
    distance = gaps[owner, row]
    order = np.lexsort((row, distance, owner))
    pairs = Pairs(owner[order], row[order], distance[order])
    return pairs if k is None else pairs.take(pairs.rank < k)
