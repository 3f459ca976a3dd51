"""Candidates: what step 2 hands to step 3 for one block of people, and rows selected from it.

Between the paper's sections "Generation" and "Post-processing": the data sets D_h of a block.
People who would get the same rows form a group and share their draws. Immutable features are not
stored: a candidate has those of its person by construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from .caching import cached_property
from .kernels import BoolArray, Codes, Comparison, FloatArray, Int32Array, IntArray, first_of_each
from .tables.columns import as_numbers, assemble
from .tables.dtypes import holds, to_dtype
from .tables.features import Feature
from .tables.schema import OWN, EncodedRows


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of a generator.

    Parameters
    ----------
    codes : (n_mutable, n_groups, n_draws)
        Codes of the mutable features.
    tables
        The value of each code, one table per mutable feature, ascending, missing last. None: the
        training values. A generator that invents values gives its own.

    Examples
    --------
    >>> Draws(np.zeros((2, 3, 4), dtype=np.int32)).codes.shape
    (2, 3, 4)
    """

    codes: Codes
    tables: Sequence[pd.Series[Any]] | None = None


@dataclass(frozen=True, eq=False)
class Candidates:
    """The draws of a block of people, ready to be compared with them: what a distance gets.

    Parameters
    ----------
    factuals
        The rows of all people.
    positions : (n_people,)
        Which of them are in the block.
    comparison
        Codes and numbers of draws and people; :func:`mcce.protocols.differences` reads it.
    distinct : (n_groups, n_draws)
        The first draw of each distinct candidate.
    tables
        The value of each code, one table per mutable feature.

    Examples
    --------
    >>> from mcce import L1, Schema
    >>> training = pd.DataFrame({"age": [30, 40], "salary": [10, 20]})
    >>> rows = Schema.learn_rows(training, immutable=["age"])
    >>> block = pair_rows(rows, np.array([0]), training.iloc[[1]], 1)
    >>> block.shape, L1()(block)
    ((1, 1), array([[1.]]))
    """

    factuals: EncodedRows
    positions: IntArray
    comparison: Comparison
    distinct: BoolArray
    tables: Sequence[pd.Series[Any]]

    @classmethod
    def of(
        cls,
        rows: EncodedRows,
        positions: IntArray,
        codes: Codes,
        own_codes: Codes,
        tables: Sequence[pd.Series[Any]],
        group: IntArray | None = None,
    ) -> Candidates:
        """Candidates of people; without groups, each has their own, all of them distinct.

        ``codes`` have the shape (n_mutable, n_groups, n_draws), ``own_codes`` (n_mutable,
        n_people).
        """
        comparison = Comparison(
            codes=codes,
            numbers=code_numbers(rows, tables),
            own_codes=own_codes,
            own_numbers=rows.all_numbers[rows.schema.mutable[:, None], positions],
            spreads=rows.schema.spreads,
            group=np.arange(positions.size) if group is None else group,
            n_features=len(rows.schema.features),
        )
        alone = group is None
        distinct = np.ones(codes.shape[1:], dtype=bool) if alone else first_of_each(codes)
        return cls(rows, positions, comparison, distinct, tables)

    @property
    def group(self) -> IntArray:
        """The group of each person, numbered from 0 in this block."""
        return self.comparison.group

    @property
    def shape(self) -> tuple[int, int]:
        """Number of people and of draws for each."""
        return self.positions.size, self.comparison.codes.shape[2]

    def select(self, person: IntArray, draw: IntArray | Int32Array) -> CandidateRows:
        """Candidates by person and draw, as numbered in this block."""
        return CandidateRows(
            self.factuals, self.positions[person], self.changes(person, draw), self.tables
        )

    def changes(self, person: IntArray, draw: IntArray | Int32Array) -> Codes:
        """Codes of candidates by person and draw, ``OWN`` where a cell is the person's own."""
        codes = self.comparison.codes[:, self.group[person], draw]
        return np.where(codes == self.comparison.own_codes[:, person], np.int32(OWN), codes)


@dataclass(frozen=True, eq=False)
class CandidateRows:
    """Candidates of any people; the frame is built when it is first used.

    Parameters
    ----------
    factuals
        The rows of all people.
    owner : (n_rows,)
        The person of each candidate.
    codes : (n_mutable, n_rows)
        Codes of the mutable features, ``OWN`` where a cell is the person's own.
    tables
        The value of each code, one table per mutable feature: ``factuals.tables`` for
        those of training.

    Examples
    --------
    >>> from mcce import Schema
    >>> frame = pd.DataFrame({"age": [30, 40], "salary": [10, 20]})
    >>> rows = Schema.learn_rows(frame, immutable=["age"])
    >>> CandidateRows(rows, np.array([0]), np.array([[1]], np.int32), rows.tables).frame
       age  salary
    0   30      20
    """

    factuals: EncodedRows
    owner: IntArray
    codes: Codes
    tables: Sequence[pd.Series[Any]]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The candidates as rows."""
        return self.factuals.compose(self.owner, self.codes, self.tables)

    def as_given(self) -> pd.DataFrame:
        """The candidates with the column order and dtypes of the user's frame.

        A column whose dtype cannot hold the values of a generator has the dtype for the predictor.
        """
        rows, tables = self.factuals, self.tables
        if rows.returned is rows.frame:
            return rows.in_given_order(self.frame)
        own = [cells for _, cells in rows.returned.items()]
        trained = tables is rows.tables
        for column, table in zip(rows.schema.mutable, tables, strict=True):
            if not trained and not holds(own[column].dtype, table):
                own[column] = to_dtype(own[column], rows.frame.dtypes.iloc[column])
        given = replace(rows, frame=assemble(own, rows.frame.columns))
        if trained:
            values = given.tables
        else:
            mutable = zip(rows.schema.mutable, tables, strict=True)
            values = [to_dtype(table, own[column].dtype) for column, table in mutable]
        return rows.in_given_order(given.compose(self.owner, self.codes, values))

    def changed(self, positions: Sequence[int]) -> BoolArray:
        """Which of some features each row changes, shape (n_positions, n_rows)."""
        mutable = self.factuals.schema.mutable
        of_mutable = np.isin(positions, mutable)
        places = np.searchsorted(mutable, np.asarray(positions)[of_mutable])
        changed = np.zeros((len(positions), self.owner.size), dtype=bool)
        changed[of_mutable] = self.codes[places] != OWN
        return changed

    def take(self, index: IntArray | BoolArray | slice) -> CandidateRows:
        """The rows at these indices, or where a mask is true."""
        return replace(self, owner=self.owner[index], codes=self.codes[:, index])

    def compacted(self) -> CandidateRows:
        """The same rows, with only those values of a generator's own tables that are used."""
        if self.tables is self.factuals.tables:
            return self
        changes = self.codes != OWN
        of_features = zip(self.tables, self.codes, changes, strict=True)
        tables = [table.iloc[codes[changed]] for table, codes, changed in of_features]
        codes = np.where(changes, np.cumsum(changes, axis=1, dtype=np.int32) - 1, np.int32(OWN))
        return replace(self, codes=codes, tables=tables)

    @classmethod
    def join(cls, rows: EncodedRows, parts: Sequence[CandidateRows]) -> CandidateRows:
        """All parts as one; tables other than those of training are concatenated."""
        owner = np.concatenate([np.empty(0, dtype=np.int64), *(part.owner for part in parts)])
        if all(part.tables is rows.tables for part in parts):
            none = np.empty((rows.schema.mutable.size, 0), dtype=np.int32)
            codes = np.concatenate([none, *(part.codes for part in parts)], axis=1)
            return cls(rows, owner, codes, rows.tables)
        sizes = np.array([[len(table) for table in part.tables] for part in parts])
        starts = np.cumsum(sizes, axis=0) - sizes
        moved = [
            np.where(part.codes == OWN, OWN, part.codes + start[:, None]).astype(np.int32)
            for part, start in zip(parts, starts, strict=True)
        ]
        tables = [
            pd.concat(of_feature, ignore_index=True)
            for of_feature in zip(*(part.tables for part in parts), strict=True)
        ]
        return cls(rows, owner, np.concatenate(moved, axis=1), tables)


@dataclass(frozen=True, eq=False)
class MeasuredRows:
    """Answers, misses or rows evaluated for a proof, with their scores and costs."""

    rows: CandidateRows
    # Identifies each row among all that were scored.
    key: Codes
    rank: IntArray
    score: FloatArray
    sparsity: IntArray
    gower: FloatArray

    @property
    def owner(self) -> IntArray:
        """Position of each row's factual."""
        return self.rows.owner

    @property
    def frame(self) -> pd.DataFrame:
        """The rows as a frame."""
        return self.rows.frame

    def take(self, index: IntArray | BoolArray) -> MeasuredRows:
        """The rows at these indices, or where a mask is true."""
        arrays = (getattr(self, field.name)[index] for field in fields(self)[1:])
        return MeasuredRows(self.rows.take(index), *arrays)

    def sort(self) -> MeasuredRows:
        """The rows by factual, then rank."""
        return self.take(np.lexsort((self.rank, self.owner)))

    @classmethod
    def empty(cls, factuals: EncodedRows) -> MeasuredRows:
        """No rows of these factuals."""
        whole, real = np.empty(0, dtype=np.int64), np.empty(0)
        key = np.empty((0, 1 + factuals.schema.mutable.size), dtype=np.int32)
        return cls(CandidateRows.join(factuals, []), key, whole, real, whole, real)

    @classmethod
    def concat(cls, factuals: EncodedRows, parts: Sequence[MeasuredRows]) -> MeasuredRows:
        """All parts as one, by factual, then rank."""
        arrays = (
            np.concatenate([getattr(part, field.name) for part in (cls.empty(factuals), *parts)])
            for field in fields(cls)[1:]
        )
        return cls(CandidateRows.join(factuals, [part.rows for part in parts]), *arrays).sort()


def pair_rows(
    rows: EncodedRows, positions: IntArray, frame: pd.DataFrame, n_draws: int
) -> Candidates:
    """Given rows as the candidates of people, for a distance to compare."""
    schema, n_people = rows.schema, positions.size
    tables: list[pd.Series[Any]] = []
    codes = np.empty((schema.mutable.size, n_people, n_draws), dtype=np.int32)
    own_codes = np.empty((schema.mutable.size, n_people), dtype=np.int32)
    for place, column in enumerate(schema.mutable):
        feature = schema.features[column]
        own = rows.own(column, positions)
        cells = pd.concat([own, frame.iloc[:, column]], ignore_index=True)
        learned, coded = Feature.learn_codes(cells, kind=feature.kind, immutable=False)
        own_codes[place] = coded[:n_people]
        codes[place] = coded[n_people:].reshape(codes[place].shape)
        tables.append(learned.table)
    return Candidates.of(rows, positions, codes, own_codes, tables)


def code_numbers(rows: EncodedRows, tables: Sequence[pd.Series[Any]]) -> list[FloatArray | None]:
    """The value of each code of mutable features; None for constant and for categorical ones."""
    features = [rows.schema.features[column] for column in rows.schema.mutable]
    return [
        table_numbers(feature, table, trained) if feature.spread else None
        for feature, table, trained in zip(features, tables, rows.tables, strict=True)
    ]


def table_numbers(
    feature: Feature, table: pd.Series[Any], trained: pd.Series[Any]
) -> FloatArray | None:
    """The value of each code in a table of a feature; None for a categorical feature."""
    if table is trained or feature.numbers is None:
        return feature.numbers
    return as_numbers(table, feature.table.dtype)
