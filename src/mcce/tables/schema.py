"""The columns of the training data, and the conversion between frames and codes.

Paper, start of section "Generating counterfactual explanations": mutable and immutable features.
A frame is encoded once on the way in, and decoded once on the way out.

Equal cells become one here, and the predictor sees that one: 0.0 for -0.0, the training cell for
an equal object, one marker for every missing cell.

Always true: a code is the rank of a value among the sorted distinct training values, missing
last; a cell that does not change is returned as it was passed, never decoded; results have the
columns, order, dtypes and index of the factuals; inputs are never changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from ..caching import cached_property
from ..errors import SchemaError, shorten
from ..kernels import BoolArray, Codes, FloatArray, IntArray, gower_gap
from . import columns
from .columns import Kind, changed_cells
from .dtypes import align_dtype, choose_columns, to_dtype
from .features import Feature
from .frames import PANDAS_ADAPTER, ArrayAdapter, FrameAdapter, check_feature_names, read_frame
from .roles import check_kinds, immutable_columns

# Instead of a code among draws: the factual's own cell.
OWN = -1
# Tables with more columns are wide.
WIDE_COLUMNS = 32


@dataclass(frozen=True, eq=False)
class Schema:
    """The columns of the training data, in order.

    Parameters
    ----------
    features
        The columns.
    adapter
        Converts frames to the type of the training data.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [36, 52, 36], "sex": ["f", "m", "f"]})
    >>> schema = Schema.learn(frame, immutable=["sex"])
    >>> [(feature.name, feature.kind, feature.n_codes) for feature in schema.features]
    [('age', 'numeric', 2), ('sex', 'categorical', 2)]
    """

    features: tuple[Feature, ...]
    adapter: FrameAdapter = PANDAS_ADAPTER

    @classmethod
    def learn(
        cls,
        data: Any,
        *,
        immutable: Sequence[Hashable] | None = None,
        mutable: Sequence[Hashable] | None = None,
        kinds: Mapping[Hashable, Kind] | None = None,
    ) -> Schema:
        """The schema of training data.

        Parameters
        ----------
        data
            A frame, or a 2-D array, whose columns are then called x0, x1, ...
        immutable, mutable
            Names of the columns that cannot change, or of those that can; one of them.
        kinds
            ``"numeric"`` or ``"categorical"`` by column name, if the dtype is misleading.

        Returns
        -------
        Schema

        Raises
        ------
        SchemaError
            If the data or an argument cannot be used.

        Examples
        --------
        >>> Schema.learn(pd.DataFrame({"age": [36, 52], "job": ["a", "b"]})).names
        ['age', 'job']
        """
        return cls.learn_rows(data, immutable=immutable, mutable=mutable, kinds=kinds).schema

    @classmethod
    def learn_rows(
        cls,
        data: Any,
        *,
        immutable: Sequence[Hashable] | None = None,
        mutable: Sequence[Hashable] | None = None,
        kinds: Mapping[Hashable, Kind] | None = None,
        feature_names: Sequence[Hashable] | None = None,
    ) -> EncodedRows:
        """Training data, encoded with their own schema.

        Parameters
        ----------
        data
            A frame, or a 2-D array, whose columns are then called x0, x1, ... unless named.
        immutable, mutable
            Names of the columns that cannot change, or of those that can; one of them.
        kinds
            ``"numeric"`` or ``"categorical"`` by column name, if the dtype is misleading.
        feature_names
            Names for the columns of an array, in order.

        Returns
        -------
        EncodedRows
            The rows; their schema is ``rows.schema``.

        Raises
        ------
        SchemaError
            If the data or an argument cannot be used.
        """
        frame, adapter = read_frame(data, check_feature_names(feature_names, data))
        fixed = set(immutable_columns(immutable, mutable, frame))
        declared = check_kinds(kinds, frame)
        if frame.empty:
            lack = "0 sample(s)" if frame.shape[1] else "0 feature(s)"
            raise SchemaError(
                f"The training data have {lack} (shape={frame.shape}) while a minimum of 1 is "
                "required. Pass at least one row and one column."
            )
        features, codes = [], np.empty(frame.shape[::-1], dtype=np.int32)
        for column, (name, series) in enumerate(frame.items()):
            kind, is_fixed = declared.get(name), name in fixed
            feature, codes[column] = Feature.learn_codes(series, kind=kind, immutable=is_fixed)
            features.append(feature)
        own, labels = frame.reset_index(drop=True), (frame.index, frame.columns)
        given = [column for _, column in own.items()]
        cells = list(map(columns.canonical, given, [f.table for f in features], codes))
        if not _is_same(cells, given):
            own = columns.assemble(cells, own.columns)
        return EncodedRows(cls(tuple(features), adapter), own, *labels, codes, codes, adapter, own)

    @property
    def names(self) -> list[Hashable]:
        """Column names in order."""
        return [feature.name for feature in self.features]

    @cached_property
    def position_of(self) -> dict[Hashable, int]:
        """Position of each column by its name."""
        return {name: position for position, name in enumerate(self.names)}

    def feature(self, name: Hashable) -> Feature:
        """The column of a name.

        Parameters
        ----------
        name
            The name of a column.

        Returns
        -------
        Feature
            The column.
        """
        return self.features[self.position_of[name]]

    @property
    def is_wide(self) -> bool:
        """Whether there are so many columns that each is modelled from a few others."""
        return len(self.features) > WIDE_COLUMNS

    @cached_property
    def mutable(self) -> IntArray:
        """Positions of the mutable features."""
        return np.flatnonzero([not feature.immutable for feature in self.features])

    @cached_property
    def immutable(self) -> IntArray:
        """Positions of the immutable features."""
        return np.flatnonzero([feature.immutable for feature in self.features])

    @cached_property
    def is_level(self) -> BoolArray:
        """Whether the differences of a feature are 0 or 1: categorical and constant ones."""
        return np.array([feature.spread == 0 for feature in self.features])

    @cached_property
    def spreads(self) -> FloatArray:
        """Training range of each mutable feature, 0 for categorical and constant ones."""
        return np.array([self.features[column].spread for column in self.mutable])

    @cached_property
    def n_codes(self) -> IntArray:
        """Number of codes of each feature."""
        return np.array([feature.n_codes for feature in self.features])

    @cached_property
    def n_levels(self) -> IntArray:
        """Number of levels of each feature that training held, missing included; 0 for numbers."""
        levels = [f.n_codes if f.kind == "categorical" else 0 for f in self.features]
        return np.array(levels, dtype=np.int64)

    def encode(self, data: Any) -> EncodedRows:
        """Data with these columns, in any order, as codes.

        Parameters
        ----------
        data
            A frame of any supported type, or a 2-D array.

        Returns
        -------
        EncodedRows
            The rows.

        Raises
        ------
        SchemaError
            If the data have other columns, or values that do not fit the training data.

        Examples
        --------
        >>> schema = Schema.learn(pd.DataFrame({"age": [36, 52, 70]}))
        >>> schema.encode(pd.DataFrame({"age": [70, 36, 40]})).codes
        array([[ 2,  0, -1]], dtype=int32)
        """
        named = isinstance(self.adapter, ArrayAdapter) and self.adapter.named
        given, adapter = read_frame(data, self.names if named else None)
        converted = adapter.needs_conversion or self.adapter.needs_conversion
        self._check_names(given, adapter)
        frame = given.reset_index(drop=True)
        by_name = dict(frame.items())
        codes = np.empty((len(self.features), len(given)), dtype=np.int32)
        tree_codes = np.empty_like(codes)
        seen, kept = list[Any](), list[Any]()
        for column, feature in enumerate(self.features):
            own, table = by_name[feature.name], feature.table
            cells = align_dtype(own, table, feature.kind)
            codes[column], tree_codes[column] = feature.encode(cells)
            for_predictor, for_user = choose_columns(
                own, cells, table, immutable=feature.immutable, converted=converted
            )
            seen.append(columns.canonical(for_predictor, table, codes[column]))
            kept.append(for_user)
        if not _is_same(seen, by_name.values()):
            number_of = {name: number for number, name in enumerate(by_name)}
            names = given.columns.take([number_of[name] for name in self.names])
            frame = columns.assemble(seen, names)
        returned = frame if _is_same(seen, kept) else columns.assemble(kept, frame.columns)
        # One array serves as both if every value is in the training data.
        tree_codes = codes if (codes >= 0).all() else tree_codes
        axes = given.index, given.columns
        return EncodedRows(self, frame, *axes, codes, tree_codes, adapter, returned)

    def _check_names(self, frame: pd.DataFrame, adapter: FrameAdapter) -> None:
        """Raise unless the columns are those of the training data, in any order."""
        trained, given = set(self.names), set(frame.columns)
        missing = [name for name in self.names if name not in given]
        extra = [name for name in frame.columns if name not in trained]
        if not missing and not extra:
            return
        if isinstance(adapter, ArrayAdapter) and not isinstance(self.adapter, ArrayAdapter):
            raise SchemaError(
                "The explainer was fitted on a frame but got an array without column names. "
                f"Pass a frame with the columns {shorten(self.names, 500)}."
            )
        raise SchemaError(
            "The columns differ from those of the training data: missing "
            f"{shorten(missing, 500)}, extra {shorten(extra, 500)}. Pass exactly the columns "
            f"{shorten(self.names, 500)}, in any order."
        )


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows of data as codes; :meth:`Schema.encode` makes them.

    Parameters
    ----------
    schema
        The columns.
    frame
        The rows, in the columns and dtypes of training.
    index, given_columns
        Index and columns of the frame that was given.
    codes : (n_features, n_rows)
        Codes of the cells; -1 for a value that is not in the training data.
    tree_codes : (n_features, n_rows)
        The same for models: of an unseen number the code of the nearest, of an unseen level one
        past the last code.
    adapter, returned
        The kind of frame that was given, and the rows in the dtypes of that frame.

    Examples
    --------
    >>> schema = Schema.learn(pd.DataFrame({"age": [36, 52, 70]}))
    >>> rows = schema.encode(pd.DataFrame({"age": [70, 40]}))
    >>> rows.codes, rows.tree_codes
    (array([[ 2, -1]], dtype=int32), array([[2, 0]], dtype=int32))
    """

    schema: Schema
    frame: pd.DataFrame = field(repr=False)
    index: pd.Index[Any] = field(repr=False)
    given_columns: pd.Index[Any] = field(repr=False)
    codes: Codes = field(repr=False)
    tree_codes: Codes = field(repr=False)
    adapter: FrameAdapter = field(repr=False)
    returned: pd.DataFrame = field(repr=False)

    @classmethod
    def from_codes(cls, schema: Schema, codes: Codes) -> EncodedRows:
        """Rows of training values, from their codes."""
        pairs = zip(schema.features, codes, strict=True)
        cells = [columns.unwrapped(feature.table).take(row) for feature, row in pairs]
        frame = columns.assemble(cells, pd.Index(schema.names, dtype=object))
        return cls(schema, frame, frame.index, frame.columns, codes, codes, PANDAS_ADAPTER, frame)

    def __len__(self) -> int:
        return len(self.frame)

    def take(self, row_numbers: IntArray) -> EncodedRows:
        """Some of the rows, by their numbers from 0."""
        rows = replace(
            self,
            frame=self.frame.take(row_numbers).reset_index(drop=True),
            index=self.index.take(row_numbers),
            codes=self.codes[:, row_numbers],
        )
        returned, tree_codes = rows.frame, rows.codes
        if self.returned is not self.frame:
            returned = self.returned.take(row_numbers).reset_index(drop=True)
        if self.tree_codes is not self.codes:
            tree_codes = self.tree_codes[:, row_numbers]
        return replace(rows, returned=returned, tree_codes=tree_codes)

    def groups(self, features: Iterable[int]) -> IntArray:
        """A number for each row, the same for rows with equal cells in some features."""
        group = np.zeros(len(self), dtype=np.int64)
        for column in features:
            numbers = pd.factorize(self.cells[column], use_na_sentinel=False)[0]
            pairs = group * (int(numbers.max(initial=0)) + 1) + numbers
            group = np.unique(pairs, return_inverse=True)[1]
        return group

    def numbers(self, column: int) -> FloatArray | None:
        """Values of a numeric feature, NaN for missing; None for a categorical one."""
        feature = self.schema.features[column]
        if feature.kind == "categorical":
            return None
        # Dates of people may be in another unit than those of training.
        return columns.as_numbers(self.frame.iloc[:, column], feature.table.dtype)

    def own(self, column: int, factuals: IntArray) -> pd.Series[Any]:
        """Own cells of some factuals in one column."""
        return pd.Series(self.cells[column].take(factuals))

    @cached_property
    def all_numbers(self) -> FloatArray:
        """Values of all features, NaN for missing and for levels, shape (n_features, n_rows)."""
        values = np.full((len(self.schema.features), len(self)), np.nan)
        for column, feature in enumerate(self.schema.features):
            if feature.kind == "numeric":
                values[column] = self.numbers(column)
        return values

    @cached_property
    def points(self) -> FloatArray:
        """The rows as points in the space of all features, shape (n_rows, n_features)."""
        points = np.empty((len(self), len(self.schema.features)))
        for column, feature in enumerate(self.schema.features):
            points[:, column] = feature.coordinates(self.codes[column], self.numbers(column))
        return points

    @cached_property
    def unseen(self) -> BoolArray:
        """Whether a cell's value is not in the training data, shape (n_features, n_rows)."""
        return self.codes < 0

    @cached_property
    def tables(self) -> list[pd.Series[Any]]:
        """Value of each code of each mutable feature, in the dtypes of these rows."""
        features = [self.schema.features[column] for column in self.schema.mutable]
        dtypes = self.frame.dtypes.iloc[self.schema.mutable]
        return [to_dtype(f.table, dtype) for f, dtype in zip(features, dtypes, strict=True)]

    def as_given(self) -> pd.DataFrame:
        """The rows with the column order and dtypes of the user's frame."""
        return self.in_given_order(self.returned)

    def in_given_order(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A frame in schema order with the column order of the user's frame."""
        order = self.frame.columns.get_indexer(self.given_columns)
        return frame if (np.diff(order) > 0).all() else frame.iloc[:, order]

    def compose(
        self, owner: IntArray, codes: Codes, tables: Sequence[pd.Series[Any]]
    ) -> pd.DataFrame:
        """A frame of candidates: the factual's own cells, except where they change."""
        if not owner.size:
            return self.frame.iloc[:0]
        drawn = zip(self.schema.mutable, self._cell_sources(tables), codes, strict=True)
        cells = {
            column: source.take(np.where(row == OWN, owner, row + np.int64(len(self))))
            for column, source, row in drawn
        }
        cells |= {column: self.cells[column].take(owner) for column in self.schema.immutable}
        in_order = [cells[column] for column in range(len(cells))]
        return columns.assemble(in_order, self.frame.columns)

    @cached_property
    def cells(self) -> list[Any]:
        """The columns as arrays."""
        return [columns.unwrapped(series) for _, series in self.frame.items()]

    def _cell_sources(self, tables: Sequence[pd.Series[Any]]) -> list[Any]:
        """All cells that a mutable feature may have: those of the factuals, then its table."""
        known = zip(self.schema.mutable, tables, self.tables, self._training_sources, strict=True)
        return [
            kept if new is old else self._cell_source(column, new)
            for column, new, old, kept in known
        ]

    @cached_property
    def _training_sources(self) -> list[Any]:
        """Per mutable feature, the cells of the factuals and then the training values."""
        pairs = zip(self.schema.mutable, self.tables, strict=True)
        return [self._cell_source(column, table) for column, table in pairs]

    def _cell_source(self, column: int, table: pd.Series[Any]) -> Any:
        return columns.stack(self.cells[column], columns.unwrapped(table))


def _is_same(first: Iterable[object], second: Iterable[object]) -> bool:
    """Whether two lists hold the same objects."""
    return all(one is other for one, other in zip(first, second, strict=True))


def gower_gaps(before: EncodedRows, after: EncodedRows) -> FloatArray:
    """How far apart cells are in shares of the training range, shape (n_features, n_rows)."""
    differs = changed_cells(before.frame, after.frame)
    return np.array(
        [
            gower_gap(
                measured_numbers(after, column),
                measured_numbers(before, column),
                feature.spread,
                differs[column],
            )
            for column, feature in enumerate(after.schema.features)
        ]
    )


def measured_numbers(rows: EncodedRows, column: int) -> FloatArray | None:
    """Values of a feature in the unit of training; None for categories and constant numbers."""
    return rows.all_numbers[column] if rows.schema.features[column].spread else None


def check_same_order(factuals: pd.Index[Any], answers: pd.Index[Any]) -> None:
    """Raise if labels show that rows, which are matched by position, are in another order."""
    numbered = answers.equals(pd.RangeIndex(len(answers)))
    if numbered or factuals.equals(answers) or not (factuals.is_unique and answers.is_unique):
        return
    # Labels of other kinds, such as those of answers by rank, are not compared.
    if set(factuals) <= set(answers):
        raise SchemaError(
            "factuals and counterfactuals have the same labels in another order, but rows are "
            "matched by position. Pass counterfactuals.loc[factuals.index]."
        )
