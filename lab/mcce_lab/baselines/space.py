"""Rows as points of a cube, for baselines that move through space.

A number is its place in the training range, from 0 to 1; a level is an indicator for each level.
:meth:`Space.project` turns any point into one that is a row: numbers within the training range and
rounded as the column is written, one level per feature, immutable features as they were. A row
without one of its numbers has no place in a cube: such rows are left out of training, and such
people get a reason.

Always true: a cell that a point leaves as it was keeps its bits in :meth:`Space.compose`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce import Schema
from mcce.errors import SchemaError
from mcce.protocols import OWN, BoolArray, EncodedRows, Feature, FloatArray, IntArray, ScoredRows

from .baseline import Declined, Found, Training

# A number that moves by less of its range does not change.
MIN_MOVE = 1e-9


@dataclass(frozen=True, eq=False)
class Space:
    """The cube of a table's rows."""

    schema: Schema
    # Of each axis: its feature; the code of the level that it indicates, or -1 for a number.
    feature: IntArray
    level: IntArray
    # Training minimum and range of a number, and what it is a multiple of; 0 if it has too many
    # decimals to tell.
    least: FloatArray
    spread: FloatArray
    unit: FloatArray

    @classmethod
    def learn(cls, rows: EncodedRows) -> Space:
        """The cube of training rows."""
        axes: list[tuple[int, int, float, float, float]] = []
        for at, feature in enumerate(rows.schema.features):
            if feature.kind == "categorical":
                axes += [(at, code, 0.0, 1.0, 0.0) for code in range(feature.n_codes)]
                continue
            unit = 0.0 if _is_time(feature) else feature.resolution
            axes.append((at, -1, _least(feature), feature.spread or 1.0, unit))
        columns = (np.array(column) for column in zip(*axes, strict=True))
        return cls(rows.schema, *columns)

    @property
    def n_axes(self) -> int:
        """Number of axes."""
        return self.feature.size

    @property
    def is_number(self) -> BoolArray:
        """Whether an axis is that of a number, shape (n_axes,)."""
        return self.level < 0

    @property
    def is_mutable(self) -> BoolArray:
        """Whether points may move along an axis, shape (n_axes,); numbers need a range."""
        ranged = ~self.is_number | ~self.schema.is_level[self.feature]
        return np.isin(self.feature, self.schema.mutable) & ranged

    @property
    def groups(self) -> list[IntArray]:
        """The axes of each categorical feature."""
        features = np.unique(self.feature[~self.is_number])
        return [np.flatnonzero(self.feature == feature) for feature in features]

    def is_complete(self, rows: EncodedRows) -> BoolArray:
        """Which rows have a place in the cube, because no number is missing; shape (n_rows,)."""
        numbers = rows.all_numbers[self.feature[self.is_number]]
        return np.asarray(~np.isnan(numbers).any(axis=0))

    def encode(self, rows: EncodedRows) -> FloatArray:
        """Rows as points, shape (n_rows, n_axes); an unknown level as the last known one."""
        points = np.empty((len(rows), self.n_axes))
        for axis, (at, level) in enumerate(zip(self.feature, self.level, strict=True)):
            if level >= 0:
                last = rows.schema.features[at].n_codes - 1
                points[:, axis] = np.minimum(rows.tree_codes[at], last) == level
            else:
                _check_complete(rows, at)
                points[:, axis] = (rows.all_numbers[at] - self.least[axis]) / self.spread[axis]
        return points

    def project(self, points: FloatArray, own: FloatArray) -> FloatArray:
        """The rows nearest to points of people."""
        numbers = self.is_number
        placed = np.clip(points, np.minimum(own, 0.0), np.maximum(own, 1.0))
        value, unit = placed * self.spread + self.least, np.where(self.unit > 0, self.unit, 1.0)
        written = (np.rint(value / unit) * unit - self.least) / self.spread
        placed = np.where(numbers & (self.unit > 0), written, placed)
        for axes in self.groups:
            best = points[:, axes].argmax(axis=1)
            placed[:, axes] = best[:, None] == np.arange(axes.size)
        kept = ~self.is_mutable | (numbers & (np.abs(placed - own) <= MIN_MOVE))
        return np.where(kept, own, placed)

    def n_changes(self, points: FloatArray, own: FloatArray) -> IntArray:
        """Number of features in which projected points differ from their people."""
        return self._by_feature(points != own).sum(axis=1)

    def l1(self, points: FloatArray, own: FloatArray) -> FloatArray:
        """Sum over features of the range-scaled differences, 1 between two levels."""
        weight = np.where(self.is_number, 1.0, 0.5)
        return (np.abs(points - own) * weight).sum(axis=1)

    def changed(self, points: FloatArray, own: FloatArray) -> BoolArray:
        """Which features differ, shape (n_points, n_features)."""
        return self._by_feature(points != own)

    def revert(self, points: FloatArray, own: FloatArray, features: BoolArray) -> FloatArray:
        """Points with some features as they were, given (n_points, n_features)."""
        return np.where(features[:, self.feature], own, points)

    def compose(self, people: EncodedRows, owner: IntArray, points: FloatArray) -> pd.DataFrame:
        """Projected points as rows of a frame."""
        own = self.encode(people)[owner]
        codes = np.full((self.schema.mutable.size, owner.size), OWN, dtype=np.int32)
        tables: list[pd.Series[Any]] = []
        for place, at in enumerate(self.schema.mutable):
            axes = np.flatnonzero(self.feature == at)
            changed = (points[:, axes] != own[:, axes]).any(axis=1)
            table = people.tables[place]
            code = points[:, axes].argmax(axis=1)
            if self.level[axes[0]] < 0:
                table, code = (
                    self._numbers(people, axes[0], points[:, axes[0]]),
                    np.arange(owner.size),
                )
            codes[place] = np.where(changed, code, OWN)
            tables.append(table)
        return people.compose(owner, codes, tables)

    def _numbers(self, people: EncodedRows, axis: int, places: FloatArray) -> pd.Series[Any]:
        """Numbers at places of an axis, in the dtype of the people's column."""
        value, unit = places * self.spread[axis] + self.least[axis], self.unit[axis]
        if unit:
            value = np.round(np.rint(value / unit) * unit, int(max(0, -np.floor(np.log10(unit)))))
        return pd.Series(value).astype(people.frame.dtypes.iloc[self.feature[axis]])

    def _by_feature(self, marked: BoolArray) -> BoolArray:
        """Whether any axis of a feature is marked."""
        found = np.zeros((len(marked), len(self.schema.features)), dtype=bool)
        for axis, at in enumerate(self.feature):
            found[:, at] |= marked[:, axis]
        return found


def _is_time(feature: Feature) -> bool:
    """Whether a feature holds dates or durations."""
    return feature.table.dtype.kind in "mM"


def _least(feature: Feature) -> float:
    """The least number of a feature, if there is any and it may be moved where it is mutable."""
    numbers = feature.numbers
    if numbers is None or np.isnan(numbers).all():
        raise SchemaError(
            f"This method needs numbers, but {feature.name!r} is missing in all rows. Leave the "
            "column out, or use NearestUnlike, NICE or MCCE."
        )
    if not feature.immutable and _is_time(feature):
        raise SchemaError(
            f"This method cannot move the date or duration {feature.name!r}. Declare it immutable, "
            "pass it as a number, or use NearestUnlike, NICE or MCCE."
        )
    return float(np.nanmin(numbers))


def _check_complete(rows: EncodedRows, at: int) -> None:
    """Raise if a number is missing."""
    missing = int(np.isnan(rows.all_numbers[at]).sum())
    if missing:
        raise SchemaError(
            f"This method needs complete numbers, but {rows.schema.features[at].name!r} is missing "
            f"in {missing} of {len(rows)} rows. Fill it in, leave the rows out, or use "
            "NearestUnlike, NICE or MCCE."
        )


def complete_rows(training: Training, space: Space) -> Training:
    """The training rows without missing numbers."""
    places = np.flatnonzero(space.is_complete(training.rows))
    if places.size == len(training.rows):
        return training
    if not places.size:
        raise SchemaError(
            "This method learns from rows without missing numbers, but every training row misses "
            "one. Fill them in, leave out the columns that miss most, or use NearestUnlike, NICE "
            "or MCCE."
        )
    scored = ScoredRows(training.scored.score[places], training.scored.valid[places])
    return Training(training.rows.take(places), scored, training.decision)


def search_complete(
    declined: Declined, space: Space, search: Callable[[Declined], Found], reason: str
) -> Found:
    """Search for the people without missing numbers."""
    complete = space.is_complete(declined.rows)
    if complete.all():
        return search(declined)
    reasons = dict.fromkeys(np.flatnonzero(~complete).tolist(), reason)
    who = np.flatnonzero(complete)
    if not who.size:
        return Found(who, declined.rows.frame.iloc[:0], reasons)
    found = search(some := declined.take(who))
    declined.n_evaluated += some.n_evaluated
    reasons |= {int(who[person]): why for person, why in found.reasons.items()}
    return Found(who[found.owner], found.frame, reasons)


def undo_needless(
    space: Space, declined: Declined, owner: IntArray, points: FloatArray
) -> FloatArray:
    """Valid points with as many features put back as can be, one at a time."""
    own, points = space.encode(declined.rows)[owner], points.copy()
    moves = np.zeros((len(points), len(space.schema.features)))
    for axis, at in enumerate(space.feature):
        moves[:, at] = np.maximum(moves[:, at], np.abs(points[:, axis] - own[:, axis]))
    order = np.argsort(moves, axis=1, kind="stable")
    for rank in range(order.shape[1]):
        feature = order[:, rank]
        # A row whose only change this is would become the declined person.
        several = space.n_changes(points, own) > 1
        tried = np.flatnonzero(several & (moves[np.arange(len(moves)), feature] > 0))
        if not tried.size:
            continue
        undone = np.arange(order.shape[1]) == feature[tried, None]
        shorter = space.revert(points[tried], own[tried], undone)
        valid = declined.score(space.compose(declined.rows, owner[tried], shorter)).valid
        points[tried[valid]] = shorter[valid]
    return points
