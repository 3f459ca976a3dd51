"""Rows as points of a cube, for baselines that move through space.

A number is its place in the training range, from 0 to 1; a level is an indicator for each level.
:meth:`Space.project` turns any point into one that is a row: numbers within the training range and
rounded as the column is written, one level per feature, immutable features as they were.

Always true: a cell that a point leaves as it was keeps its bits in :meth:`Space.compose`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce.errors import SchemaError
from mcce.kernels import BoolArray, FloatArray, IntArray
from mcce.tables.columns import is_time
from mcce.tables.dtypes import to_dtype
from mcce.tables.features import Feature, resolution
from mcce.tables.schema import OWN, EncodedRows, Schema

# A number that moves by less of its range does not change.
LEAST_MOVE = 1e-9


@dataclass(frozen=True, eq=False)
class Space:
    """The cube of a table's rows.

    Parameters
    ----------
    schema
        The columns of the table.
    feature : (n_axes,)
        Position of the feature that each axis belongs to.
    level : (n_axes,)
        Code of the level that an axis indicates, -1 for a number.
    least, spread, unit : (n_axes,)
        Training minimum and range of a number, and what it is a multiple of; 0, 1 and 0 for levels,
        and a unit of 0 for numbers with too many decimals to tell.
    """

    schema: Schema
    feature: IntArray
    level: IntArray
    least: FloatArray
    spread: FloatArray
    unit: FloatArray

    @classmethod
    def learn(cls, rows: EncodedRows) -> Space:
        """The cube of training rows.

        Parameters
        ----------
        rows
            The training rows.

        Returns
        -------
        Space

        Raises
        ------
        SchemaError
            If a number is missing in all rows, or a date may change: they have no place in a cube.
        """
        axes: list[tuple[int, int, float, float, float]] = []
        for at, feature in enumerate(rows.schema.features):
            if feature.kind == "categorical":
                axes += [(at, code, 0.0, 1.0, 0.0) for code in range(feature.n_codes)]
                continue
            unit = 0.0 if is_time(feature.table.dtype) else resolution(feature)
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
        """Rows as points, shape (n_rows, n_axes); an unknown level as the last known one.

        Raises
        ------
        SchemaError
            If a number is missing.
        """
        points = np.empty((len(rows), self.n_axes))
        for axis, (at, level) in enumerate(zip(self.feature, self.level, strict=True)):
            if level >= 0:
                last = rows.schema.features[at].n_codes - 1
                points[:, axis] = np.minimum(rows.descent[at], last) == level
            else:
                _check_complete(rows, at)
                points[:, axis] = (rows.all_numbers[at] - self.least[axis]) / self.spread[axis]
        return points

    def project(self, points: FloatArray, own: FloatArray) -> FloatArray:
        """The rows nearest to points of people.

        Parameters
        ----------
        points, own : (n_points, n_axes)
            Any points, and those of the people they belong to.

        Returns
        -------
        (n_points, n_axes)
            Points that are rows. A number outside of the training range may stay where it was, or
            on the way to the range.
        """
        numbers = self.is_number
        placed = np.clip(points, np.minimum(own, 0.0), np.maximum(own, 1.0))
        value, unit = placed * self.spread + self.least, np.where(self.unit > 0, self.unit, 1.0)
        written = (np.rint(value / unit) * unit - self.least) / self.spread
        placed = np.where(numbers & (self.unit > 0), written, placed)
        for axes in self.groups:
            best = points[:, axes].argmax(axis=1)
            placed[:, axes] = best[:, None] == np.arange(axes.size)
        kept = ~self.is_mutable | (numbers & (np.abs(placed - own) <= LEAST_MOVE))
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
        """Projected points as rows of a frame.

        Parameters
        ----------
        people
            The people.
        owner : (n_points,)
            Position of each point's person.
        points : (n_points, n_axes)
            Projected points.

        Returns
        -------
        pandas.DataFrame
            The rows, columns in schema order: own cells, except where they change.
        """
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
        return to_dtype(pd.Series(value), people.frame.dtypes.iloc[self.feature[axis]])

    def _by_feature(self, marked: BoolArray) -> BoolArray:
        """Whether any axis of a feature is marked."""
        found = np.zeros((len(marked), len(self.schema.features)), dtype=bool)
        for axis, at in enumerate(self.feature):
            found[:, at] |= marked[:, axis]
        return found


def _least(feature: Feature) -> float:
    """The least number of a feature, if there is any and it may be moved where it is mutable."""
    numbers = feature.numbers
    if numbers is None or np.isnan(numbers).all():
        raise SchemaError(
            f"This method needs numbers, but {feature.name!r} is missing in all rows. Leave the "
            "column out, or use NearestUnlike, NICE or MCCE."
        )
    if not feature.immutable and is_time(feature.table.dtype):
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
