"""Parquet and Arrow files: rows in blocks, and tables written in parts."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import ReadError, shorten
from .formats import Format, require_pyarrow
from .sources import RawBlock, check_unique

MAGIC = b"ARROW1"
# Rows of a group of a written file, whatever the blocks were.
GROUP_ROWS = 2**16


@dataclass(frozen=True)
class ArrowSource:
    """A Parquet file, or an Arrow file or stream."""

    path: str
    schema: Any
    batches: Any = field(repr=False)
    textual: bool = False

    @classmethod
    def open(cls, path: str, stream: BinaryIO, format_: Format) -> ArrowSource:
        """The table in a stream; Parquet on standard input is read whole."""
        pa = require_pyarrow(path)
        seekable: Any = stream
        if format_ == "parquet" and stream is sys.stdin.buffer:
            seekable = io.BytesIO(stream.read())
        try:
            if format_ == "parquet":
                from pyarrow.parquet import ParquetFile

                file = ParquetFile(seekable)
                schema, batches = file.schema_arrow, _of_parquet(file)
            else:
                schema, batches = _of_arrow(pa, seekable)
        except (pa.ArrowException, OSError) as error:
            raise ReadError(
                f"Cannot read {shorten(path, 200)} as {format_}: {shorten(error, 200)}."
            ) from error
        check_unique(path, schema.names)
        return cls(path, schema, batches)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    @property
    def whole(self) -> frozenset[str]:
        """Columns of whole numbers."""
        from pyarrow import types

        return frozenset(one.name for one in self.schema if types.is_integer(one.type))

    def blocks(self, columns: Sequence[str], n_rows: int) -> Iterator[RawBlock]:
        """Rows of some columns, ``n_rows`` at a time."""
        pa = require_pyarrow(self.path)
        first = 0
        try:
            for table in rebatch(self.batches(list(columns)), n_rows):
                cells = {name: table.column(name).to_pylist() for name in columns}
                yield RawBlock(first, cells)
                first += table.num_rows
        except pa.ArrowException as error:
            raise ReadError(
                f"Cannot read {shorten(self.path, 200)} after row {first}: {shorten(error, 200)}."
            ) from error


def rebatch(batches: Iterable[Any], n_rows: int) -> Iterator[Any]:
    """Tables of exactly so many rows but the last, of batches of any size."""
    import pyarrow as pa

    waiting: list[Any] = []
    n_waiting = 0
    for batch in batches:
        waiting.append(batch)
        n_waiting += batch.num_rows
        while n_waiting >= n_rows:
            joined = pa.Table.from_batches(waiting)
            yield joined.slice(0, n_rows)
            waiting = joined.slice(n_rows).to_batches()
            n_waiting -= n_rows
    if n_waiting:
        yield pa.Table.from_batches(waiting)


def count_rows(path: str) -> int:
    """Number of rows of a Parquet file."""
    require_pyarrow(path)
    from pyarrow.parquet import read_metadata

    return int(read_metadata(path).num_rows)


def _of_parquet(file: Any) -> Any:
    return lambda columns: file.iter_batches(batch_size=4096, columns=columns)


def _of_arrow(pa: Any, stream: Any) -> tuple[Any, Any]:
    """The schema, and a function from columns to batches."""
    is_file = stream is not sys.stdin.buffer and stream.read(len(MAGIC)) == MAGIC
    if not is_file:
        if stream is not sys.stdin.buffer:
            stream.seek(0)
        reader = pa.ipc.open_stream(stream)
        return reader.schema, lambda columns: (batch.select(columns) for batch in reader)
    file = pa.ipc.open_file(stream)
    numbers = range(file.num_record_batches)
    return file.schema, lambda columns: (file.get_batch(at).select(columns) for at in numbers)


def open_writer(schema: Any, format_: Format, stream: BinaryIO) -> Any:
    """A writer of Parquet, or of an Arrow file."""
    import pyarrow as pa

    if format_ == "arrow":
        return pa.ipc.new_file(stream, schema)
    from pyarrow.parquet import ParquetWriter

    return ParquetWriter(stream, schema)


def join_arrow(parts: Sequence[Path], format_: Format, stream: BinaryIO) -> None:
    """Write all parts as one file, in groups of a fixed size."""
    with parts[0].open("rb") as content:
        schema = ArrowSource.open(str(parts[0]), content, format_).schema
    with open_writer(schema, format_, stream) as writer:
        for table in rebatch(_all_batches(parts, format_), GROUP_ROWS):
            writer.write_table(table.combine_chunks())


def _all_batches(parts: Sequence[Path], format_: Format) -> Iterator[Any]:
    for part in parts:
        with part.open("rb") as content:
            source = ArrowSource.open(str(part), content, format_)
            yield from source.batches(source.names)
