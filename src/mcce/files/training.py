"""Training rows in files, as pandas reads them: whole, or in blocks if they do not fit in memory.

Dtypes that nobody named are inferred from all rows, or from each block;
:mod:`mcce.files.training_sample` says how blocks must agree. For people, see
:mod:`mcce.files.people_reader`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import pandas as pd

from ..errors import McceError, ParameterError, ReadError, SchemaError, shorten
from .cell_values import MISSING, CellError, make_reader
from .people_reader import pandas_dtype
from .sources import (
    STANDARD,
    ArrowSource,
    CsvSource,
    Format,
    check_delimiter,
    find_format,
    iterate,
    open_bytes,
    open_source,
    reading,
    rebatch,
    require_pyarrow,
    unreadable,
)

# Rows read at a time; how many changes nothing.
BLOCK_ROWS = 2**16
# Numbers are read as Python does, so that a person's 0.1 is that of training; pandas 3.1 always
# does so, and warns about the option.
PANDAS = tuple(map(int, pd.__version__.split(".")[:2]))
AS_PYTHON: dict[str, Any] = {} if PANDAS >= (3, 1) else {"float_precision": "round_trip"}
ARROW: tuple[Format, ...] = ("parquet", "arrow")


def read_training(
    path: str,
    format_: Format,
    *,
    delimiter: str = ",",
    dtypes: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Training rows, whole."""
    given = _plan_dtypes(dtypes)
    with reading(path):
        if format_ == "csv":
            frame = _read_csv(path, delimiter, given)
        elif format_ == "jsonl":
            (frame,) = _json_blocks(path, sys.maxsize)
        else:
            frame = _read_arrow(path, format_)
    return _with_dtypes(path, format_, frame, given)


def iterate_training(
    paths: Sequence[str],
    format_: str | None = None,
    *,
    delimiter: str = ",",
    dtypes: Mapping[str, str] | None = None,
) -> Iterator[pd.DataFrame]:
    """Training rows of files, one after the other, in blocks."""
    kinds = [find_format(path, format_) for path in paths]
    given = _plan_dtypes(dtypes)
    categories = _categories(list(zip(paths, kinds, strict=True)))
    for path, kind in zip(paths, kinds, strict=True):
        if path == STANDARD:
            raise ParameterError(
                "A sample cannot be drawn from standard input, which can be read only once. Name "
                "files."
            )
        for frame in _blocks(path, kind, delimiter, given):
            rows = _with_dtypes(path, kind, frame, given)
            yield rows.astype(
                {n: t for n, t in categories.items() if n in rows and _fits(rows[n], t)}
            )


def _plan_dtypes(dtypes: Mapping[str, str] | None) -> dict[str, Any]:
    """The dtypes that users named, by column name."""
    return {name: pandas_dtype(name, dtype) for name, dtype in (dtypes or {}).items()}


def _with_dtypes(
    path: str, format_: Format, frame: pd.DataFrame, given: Mapping[str, Any]
) -> pd.DataFrame:
    """Rows with the dtypes that users named, where pandas did not give them yet."""
    unknown = [name for name in given if name not in frame.columns]
    if unknown:
        raise SchemaError(
            f"{shorten(path, 200)} lacks the columns {shorten(unknown, 300)}. It has "
            f"{shorten(list(frame.columns), 500)}; names are compared exactly."
        )
    names = given if format_ != "csv" else _as_text(given)
    return frame.assign(**{name: _converted(path, frame[name], given[name]) for name in names})


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


def _read_csv(path: str, delimiter: str, dtypes: Mapping[str, Any]) -> pd.DataFrame:
    content = _checked_csv(path, delimiter)
    with _csv_errors(path, dtypes):
        return pd.read_csv(content, **_csv_options(delimiter, dtypes))


def _checked_csv(path: str, delimiter: str) -> BytesIO:
    """The bytes of a file whose rows all have one cell for each of its columns.

    Pandas fills short rows, cuts long ones and renames columns, where people's files are refused.
    """
    check_delimiter(delimiter)
    with open_bytes(path) as stream:
        content = stream.read()
    source = CsvSource.open(path, BytesIO(content), delimiter)
    for _ in source.blocks([], BLOCK_ROWS):
        pass
    return BytesIO(content)


def _csv_options(delimiter: str, dtypes: Mapping[str, Any]) -> dict[str, Any]:
    """How pandas is to read CSV."""
    return {
        "sep": delimiter,
        "dtype": {**dtypes, **_as_text(dtypes)},
        "keep_default_na": False,
        "na_values": sorted(MISSING),
        "encoding": "utf-8-sig",
        "low_memory": False,
        "index_col": False,
        **AS_PYTHON,
    }


@contextmanager
def _csv_errors(path: str, dtypes: Mapping[str, Any]) -> Iterator[None]:
    """Turn errors of pandas about a CSV file into a ReadError."""
    try:
        yield
    except (McceError, UnicodeDecodeError):
        raise
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ReadError(
            f"Cannot read {shorten(path, 200)} as CSV: {shorten(error, 200)}."
        ) from error
    except (ValueError, OverflowError):
        raise ReadError(
            f"{shorten(path, 200)} has cells that do not fit the dtypes "
            f"{shorten({name: str(dtype) for name, dtype in dtypes.items()}, 300)}. Name others."
        ) from None


def _read_arrow(path: str, format_: Format) -> pd.DataFrame:
    """A table with the dtypes of its file, categories included."""
    pa = require_pyarrow(path)
    if path == STANDARD:
        raise ParameterError(
            f"Training rows as {format_} cannot come from standard input. Name a file, or send "
            "CSV or JSON lines."
        )
    from pyarrow import feather, parquet

    read = parquet.read_table if format_ == "parquet" else feather.read_table
    try:
        frame: pd.DataFrame = read(path).to_pandas().reset_index(drop=True)
    except pa.ArrowException as error:
        raise unreadable(path, format_, error) from error
    return frame


def _blocks(
    path: str, kind: Format, delimiter: str, dtypes: Mapping[str, Any]
) -> Iterator[pd.DataFrame]:
    if kind == "csv":
        return _csv_blocks(path, delimiter, dtypes)
    return _json_blocks(path, BLOCK_ROWS) if kind == "jsonl" else _arrow_blocks(path, kind)


def _csv_blocks(path: str, delimiter: str, dtypes: Mapping[str, Any]) -> Iterator[pd.DataFrame]:
    # Once to check that all rows have one cell for each column, and once for their cells.
    with open_source(path, "csv", delimiter) as source:
        for _ in iterate(path, source, [], BLOCK_ROWS):
            pass
    with open_bytes(path) as stream, _csv_errors(path, dtypes), reading(path):
        yield from pd.read_csv(stream, chunksize=BLOCK_ROWS, **_csv_options(delimiter, dtypes))


def _json_blocks(path: str, n_rows: int) -> Iterator[pd.DataFrame]:
    with open_source(path, "jsonl") as source:
        for block in iterate(path, source, source.names, n_rows):
            yield pd.DataFrame(block.columns)


def _arrow_blocks(path: str, kind: Format) -> Iterator[pd.DataFrame]:
    for table in _arrow_tables(path, kind):
        yield table.to_pandas().reset_index(drop=True)


def _arrow_tables(path: str, kind: Format, *, dictionaries: bool = False) -> Iterator[Any]:
    """Tables of all columns of a file, or of those with dictionaries alone."""
    pa = require_pyarrow(path)
    with open_bytes(path) as stream, reading(path):
        source = ArrowSource.open(path, stream, kind)
        fields = [field for field in source.schema if pa.types.is_dictionary(field.type)]
        names = [field.name for field in fields] if dictionaries else source.names
        try:
            yield from rebatch(source.groups.batches(names), BLOCK_ROWS) if names else ()
        except pa.ArrowException as error:
            raise unreadable(path, kind, error) from error


def _categories(files: Iterable[tuple[str, Format]]) -> dict[str, pd.CategoricalDtype]:
    """Categories of each column that has them, of all files: a block may know only some."""
    found: dict[str, dict[Any, None]] = {}
    ordered: dict[str, bool] = {}
    for path, kind in files:
        for table in _arrow_tables(path, kind, dictionaries=True) if kind in ARROW else ():
            for name in table.column_names:
                column = table.column(name)
                ordered[name] = column.type.ordered
                for chunk in column.chunks:
                    found.setdefault(name, {}).update(dict.fromkeys(chunk.dictionary.to_pylist()))
    return {
        name: pd.CategoricalDtype([cell for cell in cells if cell is not None], ordered[name])
        for name, cells in found.items()
    }


def _fits(column: pd.Series[Any], dtype: pd.CategoricalDtype) -> bool:
    """Whether a column has levels, and all of them are in a category: others would be lost."""
    own = column.dtype
    return isinstance(own, pd.CategoricalDtype) and set(own.categories) <= set(dtype.categories)
