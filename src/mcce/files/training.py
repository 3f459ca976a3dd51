"""Training rows in files, as pandas reads them: whole, or in blocks if they do not fit in memory.

Dtypes that nobody named are inferred from all rows, or from each block;
:mod:`mcce.files.training_sample` says how blocks must agree. For people, see
:mod:`mcce.files.people_reader`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pandas as pd

from ..errors import McceError, ParameterError, ReadError, SchemaError, shorten
from .cell_values import MISSING, CellError, make_reader
from .people_reader import pandas_dtype
from .sources import STANDARD, Dialect, Format, Source, find_format, open_source

# Rows read at a time; how many changes nothing.
BLOCK_ROWS = 2**16
# Numbers are read as Python does, so that a person's 0.1 is that of training; pandas 3.1 always
# does so, and warns about the option.
PANDAS = tuple(map(int, pd.__version__.split(".")[:2]))
AS_PYTHON: dict[str, Any] = {} if PANDAS >= (3, 1) else {"float_precision": "round_trip"}


def read_training(
    paths: Sequence[str],
    format_: str | None,
    dialect: Dialect,
    dtypes: Mapping[str, str],
    *,
    whole: bool,
    note: Callable[[Source], None] = lambda source: None,
) -> Iterator[pd.DataFrame]:
    """Training rows of files: each whole, or all in blocks; ``note`` is shown what is open."""
    kinds = [find_format(path, format_) for path in paths]
    given = {name: pandas_dtype(name, dtype) for name, dtype in dtypes.items()}
    if not whole and STANDARD in paths:
        raise ParameterError(
            "A sample cannot be drawn from standard input, which can be read only once. Name files."
        )
    files = list(zip(paths, kinds, strict=True))
    categories = {} if whole else _categories(files)
    for path, kind in files:
        with open_source(path, kind, dialect) as source:
            note(source)
            for frame in _frames(source, given, None if whole else BLOCK_ROWS):
                rows = _with_dtypes(source, frame, given)
                yield rows.astype(
                    {n: t for n, t in categories.items() if n in rows and _fits(rows[n], t)}
                )


def _frames(source: Source, given: Mapping[str, Any], n_rows: int | None) -> Iterable[pd.DataFrame]:
    """The rows as pandas has them, at most so many at a time."""
    if source.textual:
        return _csv_frames(source, given, n_rows)
    if source.groups is not None:
        tables = source.groups.tables(source.names, n_rows or 2**62)
        return (table.to_pandas().reset_index(drop=True) for table in _at_least_one(source, tables))
    return (pd.DataFrame(block.columns) for block in source.blocks(source.names, n_rows or 2**62))


def _at_least_one(source: Source, tables: Iterator[Any]) -> Iterator[Any]:
    """The tables; one without rows if there are none, for its columns and their dtypes."""
    assert source.groups is not None
    first = next(tables, None)
    return chain([source.groups.schema.empty_table() if first is None else first], tables)


def _csv_frames(
    source: Source, given: Mapping[str, Any], n_rows: int | None
) -> Iterator[pd.DataFrame]:
    """The rows of a CSV file, of which pandas gets only those that have a cell for each column.

    By itself, it fills short rows, cuts long ones and renames columns.
    """
    try:
        read = pd.read_csv(
            _Rewritten(source),  # type: ignore[call-overload]
            dtype={**given, **_as_text(given)},
            decimal=source.decimal,
            keep_default_na=False,
            na_values=sorted(MISSING),
            low_memory=False,
            index_col=False,
            chunksize=n_rows,
            **AS_PYTHON,
        )
        yield from [read] if n_rows is None else read
    except McceError:
        raise
    except (ValueError, OverflowError):
        raise ReadError(
            f"{shorten(source.path, 200)} has cells that do not fit the dtypes "
            f"{shorten({name: str(dtype) for name, dtype in given.items()}, 300)}. Name others."
        ) from None


class _Rewritten:
    """The rows of a CSV file, read and written again, so that nothing in them can be misread."""

    def __init__(self, source: Source) -> None:
        self._rows = chain(
            [[source.names]],
            (zip(*b.columns.values(), strict=True) for b in source.blocks(source.names, 1000)),
        )

    def __iter__(self) -> Iterator[str]:
        """The next rows as a text, again and again."""
        return iter(self.read, "")

    def read(self, _: int = -1) -> str:
        """The next rows as a text; pandas takes what it gets until there is nothing."""
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_ALL).writerows(next(self._rows, []))
        return text.getvalue()


def _with_dtypes(source: Source, frame: pd.DataFrame, given: Mapping[str, Any]) -> pd.DataFrame:
    """Rows with the dtypes that users named, where pandas did not give them yet."""
    unknown = [name for name in given if name not in frame.columns]
    if unknown:
        raise SchemaError(
            f"{shorten(source.path, 200)} lacks the columns {shorten(unknown, 300)}. It has "
            f"{shorten(list(frame.columns), 500)}; names are compared exactly."
        )
    names = _as_text(given) if source.textual else given
    return frame.assign(
        **{name: _converted(source.path, frame[name], given[name]) for name in names}
    )


def _converted(path: str, series: pd.Series[Any], dtype: Any) -> pd.Series[Any]:
    """A column in the dtype that the user wants; missing cells stay missing."""
    text = pd.api.types.is_string_dtype(dtype) or pd.api.types.is_object_dtype(dtype)
    try:
        if dtype.kind in "mM":
            read = make_reader(series.name, dtype, series, textual=True).values
            known = {cell: read([cell])[0] for cell in series.dropna().unique()}
            return series.map(known, na_action="ignore").astype(dtype)
        return series.map(str, na_action="ignore").astype(dtype) if text else series.astype(dtype)
    except (TypeError, ValueError, OverflowError, CellError):
        raise ReadError(
            f"Column {shorten(series.name, 200)} of {shorten(path, 200)} has cells that do not fit "
            f"the dtype {dtype}. Name another one."
        ) from None


def _as_text(dtypes: Mapping[str, Any]) -> dict[str, type[str]]:
    """Columns of moments, which pandas would guess, or not read at all."""
    return {name: str for name, dtype in dtypes.items() if dtype.kind in "mM"}


def _categories(files: Iterable[tuple[str, Format]]) -> dict[str, pd.CategoricalDtype]:
    """Categories of each column that has them, of all files: a block may know only some."""
    found: dict[str, dict[Any, None]] = {}
    ordered: dict[str, bool] = {}
    for path, kind in files:
        if kind not in ("parquet", "arrow"):
            continue
        with open_source(path, kind) as source:
            assert source.groups is not None
            fields = [one for one in source.groups.schema if hasattr(one.type, "ordered")]
            ordered |= {one.name: one.type.ordered for one in fields}
            tables = source.groups.tables([one.name for one in fields], BLOCK_ROWS)
            for table in tables if fields else ():
                for name, column in zip(table.column_names, table.columns, strict=True):
                    for chunk in column.chunks:
                        levels = chunk.dictionary.to_pylist()
                        found.setdefault(name, {}).update(dict.fromkeys(levels))
    return {
        name: pd.CategoricalDtype([cell for cell in cells if cell is not None], ordered[name])
        for name, cells in found.items()
    }


def _fits(column: pd.Series[Any], dtype: pd.CategoricalDtype) -> bool:
    """Whether a column has levels, and all of them are in a category: others would be lost."""
    own = column.dtype
    return isinstance(own, pd.CategoricalDtype) and set(own.categories) <= set(dtype.categories)
