"""Tables of answers as files: each part a complete file, and all parts as one.

Always true: the bytes of a joined file depend on its rows alone, and not on how many parts there
were; joining holds a small piece in memory.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
from pandas.api import types

from .formats import Format

SUFFIXES: dict[Format, str] = {
    "csv": ".csv",
    "jsonl": ".jsonl",
    "parquet": ".parquet",
    "arrow": ".arrow",
}


def write_table(table: pd.DataFrame, format_: Format, stream: BinaryIO) -> None:
    """Write a table as a complete file.

    Examples
    --------
    >>> import io
    >>> stream = io.BytesIO()
    >>> write_table(pd.DataFrame({"age": [36, 52], "sex": ["f", None]}), "jsonl", stream)
    >>> print(stream.getvalue().decode())
    {"age": 36, "sex": "f"}
    {"age": 52, "sex": null}
    <BLANKLINE>
    """
    if format_ == "csv":
        write_csv(table, stream, header=True)
    elif format_ == "jsonl":
        _write_json(table, stream)
    else:
        with ArrowWriter(table, format_, stream) as writer:
            writer.write(table)


def join_parts(parts: Sequence[Path], format_: Format, stream: BinaryIO) -> None:
    """Write all parts as one file."""
    if format_ in ("csv", "jsonl"):
        for number, part in enumerate(parts):
            with part.open("rb") as content:
                if number and format_ == "csv":
                    # The line of names; one with a line break in it has quotes around it.
                    _skip_line(content)
                shutil.copyfileobj(content, stream)
        return
    from .arrow import join_arrow

    join_arrow(parts, format_, stream)


def write_csv(table: pd.DataFrame, stream: BinaryIO, *, header: bool) -> None:
    """Write rows as CSV, with or without the line of names."""
    # With this end of lines, cells with either of its characters are quoted; else, before
    # Python 3.13, those with a lone carriage return would not be, and break the row.
    table.to_csv(_Lines(stream), index=False, header=header, lineterminator="\r\n")  # type: ignore[call-overload]


class _Lines:
    """Writes rows that end in CR LF with LF alone."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, row: str) -> int:
        """Write a row."""
        line = row.removesuffix("\r\n") + "\n"
        return self._stream.write(line.encode("utf-8", "surrogatepass"))


def _skip_line(stream: BinaryIO) -> None:
    """Read past the first row of a CSV file."""
    quotes = 0
    for line in iter(stream.readline, b""):
        quotes += line.count(b'"')
        if quotes % 2 == 0:
            return


def _write_json(table: pd.DataFrame, stream: BinaryIO) -> None:
    names = list(table.columns)
    cells = [_plain(table[name]) for name in names]
    for row in zip(*cells, strict=True):
        line = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str)
        stream.write(line.encode("utf-8", "surrogatepass") + b"\n")


def _plain(series: pd.Series[Any]) -> list[Any]:
    """Cells as JSON has them: moments as texts, missing ones as None."""
    missing = series.isna().to_numpy()
    cells = series.astype(str) if series.dtype.kind in "mM" else series
    return [None if gone else cell for cell, gone in zip(cells.tolist(), missing, strict=True)]


class ArrowWriter:
    """Writes tables of one layout to a Parquet or Arrow stream."""

    def __init__(self, table: pd.DataFrame, format_: Format, stream: BinaryIO) -> None:
        from .arrow import open_writer

        self._schema = arrow_schema(table)
        self._writer = open_writer(self._schema, format_, stream)

    def __enter__(self) -> ArrowWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()

    def write(self, table: pd.DataFrame) -> None:
        """Write the rows of a table."""
        rows = arrow_table(table, self._schema)
        self._writer.write_table(rows.replace_schema_metadata(None))


def arrow_table(table: pd.DataFrame, schema: Any) -> Any:
    """A table as one of Arrow; objects that are no texts become their texts.

    Examples
    --------
    >>> rows = pd.DataFrame({"since": pd.Series(["May", 1999, None], dtype=object)})
    >>> arrow_table(rows, arrow_schema(rows)).column("since").to_pylist()
    ['May', '1999', None]
    """
    import pyarrow as pa

    def texts(series: pd.Series[Any]) -> pd.Series[Any]:
        if types.infer_dtype(series, skipna=True) in ("string", "empty"):
            return series
        return series.map(str, na_action="ignore").astype(object)

    objects = [name for name, dtype in table.dtypes.items() if types.is_object_dtype(dtype)]
    rows = table.assign(**{str(name): texts(table[name]) for name in objects})
    return pa.Table.from_pandas(rows, schema=schema, preserve_index=False)


def arrow_schema(table: pd.DataFrame) -> Any:
    """Types by dtype alone, so that a part without any value has those of the others."""
    import pyarrow as pa

    def of(series: pd.Series[Any]) -> Any:
        text = types.is_object_dtype(series.dtype)
        return pa.string() if text else pa.Array.from_pandas(series.iloc[:0]).type

    return pa.schema([pa.field(str(name), of(series)) for name, series in table.items()])


def stream_tables(tables: Iterable[pd.DataFrame], format_: Format, stream: BinaryIO) -> None:
    """Write tables of one layout as they come, as one file; at least one."""
    writer: ArrowWriter | None = None
    with ExitStack() as stack:
        for number, table in enumerate(tables):
            if format_ == "csv":
                write_csv(table, stream, header=number == 0)
            elif format_ == "jsonl":
                _write_json(table, stream)
            else:
                writer = writer or stack.enter_context(ArrowWriter(table, format_, stream))
                writer.write(table)
            stream.flush()
