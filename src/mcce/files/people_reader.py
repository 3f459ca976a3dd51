"""People in a file, block by block, as rows that an explainer takes.

A block is cut into groups by which cells their columns cannot hold: a missing whole number, or a
new level, each by itself. So what a predictor sees of a person depends on that person's own cells
alone, dtypes and the codes of categories included.

Always true: columns are read by the fitted schema; nobody's row depends on the size of blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ParameterError, ReadError, SchemaError, shorten
from ..kernels import IntArray
from ..tables.columns import plain
from ..tables.features import Feature
from ..tables.schema import Schema
from .cell_values import CellError, ColumnReader, as_column, demands, make_reader
from .sources import KnownColumns, RawBlock, Source


@dataclass(frozen=True)
class People:
    """A block of people."""

    first: int
    n_rows: int
    groups: list[tuple[IntArray, pd.DataFrame]] = field(repr=False)
    kept: Mapping[str, list[Any]] = field(repr=False)


@dataclass(frozen=True)
class PeopleReader:
    """Makes blocks of people from rows of a file; :meth:`plan` makes one for a source."""

    path: str
    readers: Mapping[str, ColumnReader]
    kept: Mapping[str, ColumnReader]
    ignored: tuple[str, ...]
    decimal: str = "."
    remedy: str = "Mend the cell, or read the column in another dtype (--dtype)."

    @classmethod
    def plan(
        cls,
        path: str,
        source: KnownColumns,
        schema: Schema,
        *,
        keep: Sequence[str] = (),
        dtypes: Mapping[str, Any] | None = None,
        whole: Collection[str] | None = None,
        remedy: str | None = None,
    ) -> PeopleReader:
        """How the people in a source are read."""
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
                decimal=source.decimal,
            )
            for name, feature in features.items()
        }
        whole = source.whole if whole is None else whole
        kept = {name: _kept_reader(name, name in whole, textual=source.textual) for name in keep}
        ignored = [name for name in source.names if name not in readers and name not in kept]
        return cls(path, readers, kept, tuple(ignored), source.decimal, remedy or cls.remedy)

    @property
    def columns(self) -> list[str]:
        """The columns of the file that are read."""
        return list(dict.fromkeys([*self.readers, *self.kept]))

    def read(self, block: RawBlock) -> People:
        """A block of people."""
        remedy = f", as in the training data. {self.remedy}"
        values = {name: self._values(r, block, remedy) for name, r in self.readers.items()}
        copied = ", to be copied. Mend the cell."
        kept = {name: self._values(r, block, copied) for name, r in self.kept.items()}
        return People(block.first, block.n_rows, list(self._groups(block.n_rows, values)), kept)

    def blocks(self, source: Source, n_rows: int) -> Iterator[People]:
        """All people of a source, in blocks."""
        return map(self.read, source.blocks(self.columns, n_rows))

    def empty(self) -> pd.DataFrame:
        """No people, in the columns and dtypes of all."""
        return pd.DataFrame({r.name: as_column([], r.dtype) for r in self.readers.values()})

    def _values(self, reader: ColumnReader, block: RawBlock, remedy: str) -> list[Any]:
        try:
            return reader.read_all(block.columns[str(reader.name)])
        except CellError as error:
            first, last = block.first + 1, block.first + block.n_rows
            raise ReadError(
                f"Column {shorten(str(reader.name), 200)} of {shorten(self.path, 200)}, row "
                f"{block.first + error.position + 1} (in the block of rows {first} to {last}): "
                f"expected {error.expected}{remedy}"
            ) from None

    def _groups(
        self, n_rows: int, values: Mapping[str, list[Any]]
    ) -> Iterator[tuple[IntArray, pd.DataFrame]]:
        """People by what their cells need beyond the dtypes of their columns."""
        which = np.zeros(n_rows, dtype=np.int64)
        for name, reader in self.readers.items():
            needs = demands(values[name], reader.dtype)
            if needs.any():
                which, _ = pd.factorize(which * (needs.max() + 1) + needs)
        n_groups = int(which.max(initial=-1)) + 1
        for number in range(n_groups):
            at = np.flatnonzero(which == number)
            columns = {}
            for name, reader in self.readers.items():
                cells = values[name]
                some = cells if n_groups == 1 else [cells[place] for place in at.tolist()]
                columns[reader.name] = as_column(some, reader.dtype)
            yield at, pd.DataFrame(columns).set_axis(pd.Index(at))


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


def _kept_reader(name: str, whole: bool, *, textual: bool) -> ColumnReader:
    """Whole numbers as such, anything else as text; NA is text, too."""
    if whole:
        dtype = pd.Int64Dtype()
        return make_reader(name, dtype, pd.Series([], dtype=dtype), textual=textual)
    missing = frozenset({""}) if textual else frozenset()
    return ColumnReader(name, np.dtype(object), _as_text, "something that has a text", missing)


def _as_text(cell: Any) -> str:
    """The text of a cell; that of an array is cut short, and some objects have none."""
    kind: Any = type(cell)
    nameless = kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
    if nameless or isinstance(cell, np.ndarray):
        raise ValueError
    return str(cell)
