"""What a worker does with a partition of people: read it by the schema, explain, make the table.

Always true: all partitions have the columns and dtypes of one layout, whatever is found in them;
rows of people stay in their order; the predictor sees a person's cells in the dtypes of training,
however an engine stores them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from ..errors import ParameterError, shorten
from ..explainer import MCCE
from ..files.answer_tables import Layout, arrow_schema, arrow_table
from ..files.people import PeopleReader
from ..files.sources import KnownColumns, RawBlock, check_unique
from ..files.values import holds_whole
from ..parameters import check_whole
from ..runtime.quiet import without_warnings
from .shipment import Shipment

PEOPLE = "the people"
# Explaining is up to twice as cheap per person as in blocks of 5,000.
BLOCK_ROWS = 20_000
# What objects may be that Python has a type of its own for.
SCALARS = (np.bool_, np.integer, np.floating)


@dataclass(frozen=True)
class PartitionTask:
    """Answers to partitions of people; :meth:`plan` makes one."""

    shipment: Shipment
    key: tuple[str, ...]
    whole: frozenset[str]
    layout: Layout
    constraints: Any = None

    @classmethod
    def plan(
        cls,
        explainer: MCCE,
        shipment: Shipment,
        columns: Mapping[str, bool],
        key: str | Sequence[str],
        *,
        constraints: Any = None,
        prefix: str = "",
    ) -> PartitionTask:
        """The task for people with these columns, after a trial with nobody."""
        keys = (key,) if isinstance(key, str) else tuple(key)
        if not keys:
            raise ParameterError("key must name the column that identifies a person, got none.")
        whole = frozenset(name for name in keys if columns.get(name, False))
        reader = _reader(explainer, list(columns), keys, whole)
        with without_warnings():
            nobody = explainer.explain(reader.empty(), constraints=constraints)
        layout = Layout.plan(reader, nobody, prefix, numbered=False)
        return cls(shipment, keys, whole, layout, constraints)

    def table(self, columns: Mapping[str, Any]) -> pd.DataFrame:
        """The table of answers to a partition."""
        # The table says better than warnings who has no answer, and why.
        with self.shipment.opened() as explainer, without_warnings():
            reader = _reader(explainer, list(columns), self.key, self.whole)
            people = reader.read(
                RawBlock(0, {name: _cells(columns[name]) for name in reader.columns})
            )
            results = [
                (at, explainer.explain(rows, constraints=self.constraints))
                for at, rows in people.groups
            ]
        return self.layout.table(people, results)

    def frame(self, people: pd.DataFrame) -> pd.DataFrame:
        """The table of answers to a partition that is a pandas frame."""
        check_unique(PEOPLE, [str(name) for name in people.columns])
        return self.table({str(name): column for name, column in people.items()})

    def arrow(self, people: Any) -> Any:
        """The answers to an Arrow table, as an Arrow table."""
        check_unique(PEOPLE, people.column_names)
        table = self.table(dict(zip(people.column_names, people.columns, strict=True)))
        return arrow_table(table, self.arrow_schema)

    @property
    def nobody(self) -> pd.DataFrame:
        """A table of answers without rows."""
        return pd.DataFrame({n: pd.Series([], dtype=d) for n, d in self.layout.dtypes.items()})

    @property
    def arrow_schema(self) -> Any:
        """The schema of the table of answers, in Arrow."""
        return arrow_schema(self.nobody)


def columns_of(frame: pd.DataFrame) -> dict[str, bool]:
    """The columns of a frame, for :meth:`PartitionTask.plan`.

    Examples
    --------
    >>> columns_of(pd.DataFrame({"customer": [7], "salary": [1.5]}))
    {'customer': True, 'salary': False}
    """
    return {str(name): holds_whole(dtype) for name, dtype in frame.dtypes.items()}


def with_index(
    frame: pd.DataFrame, key: str | Sequence[str] | None
) -> tuple[pd.DataFrame, str | Sequence[str]]:
    """A frame and its key; without a key, the labels of the index become columns that are one.

    Examples
    --------
    >>> with_index(pd.DataFrame({"salary": [40, 50]}, index=["a", "b"]), None)[0]
      index  salary
    0     a      40
    1     b      50
    """
    if key is not None:
        return frame, key
    names = [f"index{at or ''}" if n is None else str(n) for at, n in enumerate(frame.index.names)]
    count = Counter([*names, *map(str, frame.columns)])
    taken = [name for name in dict.fromkeys(names) if count[name] > 1]
    if taken:
        raise ParameterError(
            f"The labels of the index would be columns, but several would be named "
            f"{shorten(taken)}. Name the columns that identify a person with key, or rename the "
            "levels of the index."
        )
    return frame.rename_axis(index=names).reset_index(), names


def check_key(key: Any, columns: Sequence[str]) -> str | Sequence[str]:
    """The key that an engine without an index needs."""
    if key is None:
        raise ParameterError(
            "key must name the column that identifies a person, such as a customer number: rows "
            f"have no order here. There are {shorten(list(columns), 500)}."
        )
    return key


def check_block_rows(block_rows: Any) -> None:
    """Raise unless people can be cut into blocks of so many."""
    check_whole("block_rows", block_rows, 1, 2**31 - 1)


def _reader(
    explainer: MCCE, names: list[str], key: tuple[str, ...], whole: frozenset[str]
) -> PeopleReader:
    return PeopleReader.plan(
        PEOPLE,
        KnownColumns(names, whole=whole),
        explainer.fitted_.schema,
        keep=key,
        remedy="Mend the cell, or convert the column.",
    )


def _cells(column: Any) -> Any:
    """A column of pandas as one of Arrow, or as a list of cells where Arrow would change them.

    Arrow would give objects of several types one type that depends on the others of a partition,
    and store periods and intervals as numbers.
    """
    if not isinstance(column, pd.Series):
        return column
    dtype = column.dtype
    levels = pd.Series(dtype.categories) if isinstance(dtype, pd.CategoricalDtype) else column
    if _is_plain(levels):
        try:
            import pyarrow as pa

            return pa.chunked_array([pa.array(column, from_pandas=True)])
        except (ImportError, TypeError, ValueError, OverflowError, NotImplementedError):
            pass
    return [cell.item() if isinstance(cell, SCALARS) else cell for cell in column.tolist()]


def _is_plain(column: pd.Series[Any]) -> bool:
    """Whether a column holds truths, numbers, moments or texts alone."""
    if types.is_object_dtype(column.dtype):
        return types.infer_dtype(column, skipna=True) == "string"
    return column.dtype.kind in "biufmMU" or isinstance(column.dtype, pd.StringDtype)
