"""People in a file, block by block, as rows that an explainer takes.

A block is cut into groups by which cells their columns cannot hold: a missing whole number, a new
level. So the dtypes that a predictor sees for a person depend on that person's own cells alone.

Always true: columns are read by the fitted schema; nobody's row depends on the size of blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ParameterError, ReadError, SchemaError, shorten
from ..kernels import IntArray
from ..tables.columns import plain
from ..tables.features import Feature
from ..tables.schema import Schema
from .cells import MISSING, CellError, ColumnReader, make_reader
from .sources import RawBlock, Source


@dataclass(frozen=True)
class People:
    """A block of people.

    Parameters
    ----------
    first
        Position of the first person in the file, counted from 0.
    n_rows
        How many there are.
    groups
        Positions in the block, and the rows of these people for the explainer.
    kept
        Cells of the columns that are only copied to the output, by name.
    """

    first: int
    n_rows: int
    groups: list[tuple[IntArray, pd.DataFrame]] = field(repr=False)
    kept: Mapping[str, list[Any]] = field(repr=False)


@dataclass(frozen=True)
class PeopleReader:
    """Makes blocks of people from rows of a file; :meth:`plan` makes one for a source.

    Parameters
    ----------
    path
        The file, for errors.
    readers
        How the columns of the explainer are read, in their order, by name in the file.
    kept
        Columns that are only copied to the output, and how they are read.
    ignored
        Columns that nobody asked for.
    """

    path: str
    readers: Mapping[str, ColumnReader]
    kept: Mapping[str, ColumnReader]
    ignored: tuple[str, ...]

    @classmethod
    def plan(
        cls,
        path: str,
        source: Source,
        schema: Schema,
        *,
        keep: Sequence[str] = (),
        dtypes: Mapping[str, Any] | None = None,
    ) -> PeopleReader:
        """How the people in a source are read.

        Parameters
        ----------
        path, source
            The file, and its open table.
        schema
            The columns of the explainer.
        keep
            Columns that are not features, to be copied to the output.
        dtypes
            Other dtypes than those of training, by column name.

        Returns
        -------
        PeopleReader
            The plan.

        Raises
        ------
        SchemaError
            If columns are missing.
        """
        features = {str(feature.name): feature for feature in schema.features}
        missing = [name for name in [*features, *keep] if name not in source.names]
        if missing:
            raise SchemaError(
                f"{shorten(path, 200)} lacks the columns {shorten(missing, 500)}. It has "
                f"{shorten(list(source.names), 500)}; names are compared exactly."
            )
        given = _check_dtypes(dtypes or {}, features)
        readers = {
            name: make_reader(
                feature.name,
                given.get(name, feature.table.dtype),
                feature.table,
                textual=source.textual,
            )
            for name, feature in features.items()
        }
        kept = {name: _kept_reader(name, name in source.whole) for name in keep}
        ignored = [name for name in source.names if name not in readers and name not in kept]
        return cls(path, readers, kept, tuple(ignored))

    @property
    def columns(self) -> list[str]:
        """The columns of the file that are read."""
        return list(dict.fromkeys([*self.readers, *self.kept]))

    def read(self, block: RawBlock) -> People:
        """A block of people.

        Raises
        ------
        ReadError
            If a cell does not fit its column.
        """
        values = {name: self._values(reader, block) for name, reader in self.readers.items()}
        kept = {name: self._values(reader, block) for name, reader in self.kept.items()}
        return People(block.first, block.n_rows, list(self._groups(block, values)), kept)

    def empty(self) -> pd.DataFrame:
        """No people, in the columns and dtypes of all."""
        cells = {r.name: r.column([], wide=False) for r in self.readers.values()}
        return pd.DataFrame(cells)

    def _values(self, reader: ColumnReader, block: RawBlock) -> list[Any]:
        try:
            return reader.values(block.columns[str(reader.name)])
        except CellError as error:
            first, last = block.first + 1, block.first + block.n_rows
            raise ReadError(
                f"Column {shorten(str(reader.name), 200)} of {shorten(self.path, 200)}, row "
                f"{block.first + error.position + 1} (in the block of rows {first} to {last}): "
                f"expected {error.expected}, as in the training data. Mend the cell, or read "
                "the column in another dtype (--dtype)."
            ) from None

    def _groups(
        self, block: RawBlock, values: Mapping[str, list[Any]]
    ) -> Iterator[tuple[IntArray, pd.DataFrame]]:
        """People by which of their cells need a wider dtype."""
        wide = np.stack([r.wide(values[name]) for name, r in self.readers.items()])
        patterns, which = np.unique(wide.T, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            at = np.flatnonzero(which.ravel() == number)
            columns = {
                reader.name: reader.column([values[name][place] for place in at], wide=bool(flag))
                for (name, reader), flag in zip(self.readers.items(), pattern, strict=True)
            }
            frame = pd.DataFrame(columns)
            frame.index = pd.Index(at)
            yield at, frame


def _check_dtypes(dtypes: Mapping[str, Any], features: Mapping[str, Feature]) -> dict[str, Any]:
    unknown = [name for name in dtypes if name not in features]
    if unknown:
        raise ParameterError(
            f"dtype names columns that the explainer does not know: {shorten(unknown, 200)}. It "
            f"knows {shorten(list(features), 500)}."
        )
    return {name: _with_levels(pandas_dtype(name, dtypes[name]), features[name]) for name in dtypes}


def _with_levels(dtype: Any, feature: Feature) -> Any:
    """The dtype; a category without levels gets those of training."""
    if isinstance(dtype, pd.CategoricalDtype) and dtype.categories is None:
        return pd.CategoricalDtype(list(plain(feature.known)))
    return dtype


def pandas_dtype(name: str, dtype: Any) -> Any:
    """A dtype that the user named for a column.

    Raises
    ------
    ParameterError
        If pandas does not know it.

    Examples
    --------
    >>> pandas_dtype("age", "float64")
    dtype('float64')
    """
    try:
        return pd.api.types.pandas_dtype(dtype)
    except (TypeError, ValueError):
        raise ParameterError(
            f"{shorten(dtype)} is no dtype of pandas, for column {shorten(name)}. Use one such as "
            "int64, float64, bool, str or category."
        ) from None


def _kept_reader(name: str, whole: bool) -> ColumnReader:
    """Whole numbers as such, anything else as text."""
    dtype = pd.Int64Dtype() if whole else np.dtype(object)
    reader = make_reader(name, dtype, pd.Series([], dtype=dtype), textual=False)
    if whole:
        return reader
    return ColumnReader(name, dtype, str, "text", MISSING - {""})
