"""Parquet and Arrow files: rows in blocks or by groups, and tables written in parts."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pandas as pd

from ..errors import ReadError, shorten
from ..kernels import BoolArray, IntArray
from .cells import holds_whole
from .formats import Format, require_pyarrow
from .sources import RawBlock, check_unique, is_standard_input

MAGIC = b"ARROW1"
# Rows of a group of a written file, whatever the blocks were.
GROUP_ROWS = 2**16


@dataclass(frozen=True)
class ArrowSource:
    """A Parquet file, or an Arrow file or stream."""

    path: str
    schema: Any
    groups: Groups = field(repr=False)
    textual: bool = False

    @classmethod
    def open(cls, path: str, stream: BinaryIO, format_: Format) -> ArrowSource:
        """The table in a stream; Parquet on standard input is read whole."""
        pa = require_pyarrow(path)
        seekable: Any = stream
        groups: Groups
        if format_ == "parquet" and is_standard_input(stream):
            seekable = io.BytesIO(stream.read())
        try:
            if format_ == "parquet":
                from pyarrow.parquet import ParquetFile

                file = ParquetFile(seekable)
                schema = file.schema_arrow
                groups = ParquetGroups(seekable, file)
            else:
                schema, groups = _of_arrow(pa, seekable)
        except (pa.ArrowException, OSError) as error:
            raise ReadError(
                f"Cannot read {shorten(path, 200)} as {format_}: {shorten(error, 200).rstrip('.')}."
            ) from error
        check_unique(path, schema.names)
        return cls(path, schema, groups)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    @property
    def whole(self) -> frozenset[str]:
        """Columns of whole numbers."""
        return frozenset(one.name for one in self.schema if holds_whole(one.type))

    def blocks(self, columns: Sequence[str], n_rows: int) -> Iterator[RawBlock]:
        """Rows of some columns, ``n_rows`` at a time."""
        pa = require_pyarrow(self.path)
        first = 0
        try:
            for table in rebatch(self.groups.batches(columns), n_rows):
                yield _block(first, table)
                first += table.num_rows
        # Arrow raises OSError for damaged messages too, not only for the system's errors.
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(first, error) from error

    def sizes(self) -> list[int] | None:
        """Rows of each group that can be read by itself; None if there are no groups."""
        pa = require_pyarrow(self.path)
        try:
            return self.groups.sizes()
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(0, error) from error

    def rows(self, columns: Sequence[str], first: int, n_rows: int) -> RawBlock:
        """Some rows of some columns; only the groups that hold them are read."""
        pa = require_pyarrow(self.path)
        sizes = self.sizes() or []
        begins = list(accumulate(sizes, initial=0))
        held = [
            at
            for at, size in enumerate(sizes)
            if begins[at] + size > first and begins[at] < first + n_rows
        ]
        if begins[-1] < first + n_rows or not held:
            raise ReadError(
                f"{shorten(self.path, 200)} has {begins[-1]} rows, but it had {first + n_rows} or "
                "more when the run began. Leave files alone while they are read."
            )
        try:
            batches = self.groups.batches(columns, held)
            return _block(first, _cut(batches, first - begins[held[0]], n_rows))
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(first, error) from error

    def _unreadable(self, first: int, error: Exception) -> ReadError:
        return ReadError(
            f"Cannot read {shorten(self.path, 200)} after row {first}: {shorten(error, 200)}."
        )


class Groups(Protocol):
    """Groups of rows of a file, each of which can be read by itself."""

    def sizes(self) -> list[int] | None:
        """Rows of each; None if they can only be read one after the other."""
        ...

    def batches(self, columns: Sequence[str], which: Sequence[int] | None = None) -> Iterator[Any]:
        """Some columns of some groups, or of all, batch by batch."""
        ...


@dataclass(frozen=True)
class ParquetGroups:
    """Row groups of a Parquet file."""

    stream: Any
    file: Any

    def sizes(self) -> list[int]:
        """Rows of each."""
        metadata = self.file.metadata
        return [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]

    def batches(self, columns: Sequence[str], which: Sequence[int] | None = None) -> Iterator[Any]:
        """Some columns of some groups, or of all, batch by batch; of some, texts are levels."""
        if which is None:
            return self.file.iter_batches(GROUP_ROWS, columns=list(columns))
        from pyarrow import types
        from pyarrow.parquet import ParquetFile

        # A group is decoded from its beginning, whichever rows are wanted: levels cost a third.
        schema = self.file.schema_arrow
        kinds = {name: schema.field(name).type for name in columns}
        texts = [
            n for n, kind in kinds.items() if types.is_string(kind) or types.is_large_string(kind)
        ]
        file = ParquetFile(self.stream, metadata=self.file.metadata, read_dictionary=texts)
        return file.iter_batches(GROUP_ROWS, row_groups=list(which), columns=list(columns))


@dataclass(frozen=True)
class ArrowGroups:
    """Record batches of an Arrow file."""

    stream: Any
    schema: Any

    def sizes(self) -> list[int]:
        """Rows of each."""
        file = self._open([0])
        return [file.get_batch(at).num_rows for at in range(file.num_record_batches)]

    def batches(self, columns: Sequence[str], which: Sequence[int] | None = None) -> Iterator[Any]:
        """Some columns of some batches, or of all, one by one."""
        file = self._open([self.schema.get_field_index(name) for name in columns])
        held = range(file.num_record_batches) if which is None else which
        return (file.get_batch(at).select(list(columns)) for at in held)

    def _open(self, fields: list[int]) -> Any:
        from pyarrow import ipc

        options = ipc.IpcReadOptions(included_fields=fields)
        return ipc.open_file(self.stream, options=options)


@dataclass(frozen=True)
class ArrowStream:
    """Record batches of an Arrow stream, which come once and in order."""

    reader: Any

    def sizes(self) -> None:
        """Unknown until the stream ends."""

    def batches(self, columns: Sequence[str], which: Sequence[int] | None = None) -> Iterator[Any]:
        """Some columns of all batches, one by one."""
        return (batch.select(list(columns)) for batch in self.reader)


def _block(first: int, table: Any) -> RawBlock:
    return RawBlock(first, dict(zip(table.column_names, table.columns, strict=True)))


def _cut(batches: Iterable[Any], first: int, n_rows: int) -> Any:
    """A table of some rows; batches after them are not read."""
    import pyarrow as pa

    kept: list[Any] = []
    n_missing = n_rows
    for batch in batches:
        piece = batch.slice(min(first, batch.num_rows), n_missing)
        first = max(first - batch.num_rows, 0)
        kept.append(piece)
        n_missing -= piece.num_rows
        if not n_missing:
            break
    return pa.Table.from_batches(kept).unify_dictionaries()


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


def read_numbers(column: Any) -> tuple[np.ndarray, BoolArray] | None:
    """Numbers of a column, and which cells are missing; None if it does not hold numbers."""
    import pyarrow.compute as pc
    from pyarrow import types

    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind)):
        return None
    missing = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    filled = pc.fill_null(column, 0) if column.null_count else column
    return filled.to_numpy(zero_copy_only=False), missing


def encode_distinct(column: Any) -> tuple[list[Any], IntArray] | None:
    """Distinct cells of a column in order of appearance, and which one each cell is.

    None for columns of other types than texts, levels and whole numbers: two of their cells may be
    equal and not identical, such as 0.0 and -0.0.
    """
    import pyarrow as pa
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
        return None
    column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks() if column.num_chunks else pa.array([])
    if not types.is_dictionary(column.type):
        column = column.dictionary_encode(null_encoding="encode")
    indices = column.indices
    codes = indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    # A dictionary may list levels that no cell has.
    codes, used = pd.factorize(codes)
    cells = [*column.dictionary.to_pylist(), None]
    return [cells[code] for code in used], codes


def fingerprint(columns: Mapping[str, Any]) -> str:
    """A checksum of columns, however they are cut into chunks."""
    import pyarrow as pa

    table = pa.table(dict(columns)).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.remove_metadata()) as writer:
        writer.write_table(table.replace_schema_metadata(None))
    return hashlib.sha256(sink.getvalue()).hexdigest()


def count_rows(path: str) -> int:
    """Number of rows of a Parquet file."""
    require_pyarrow(path)
    from pyarrow.parquet import read_metadata

    return int(read_metadata(path).num_rows)


def _of_arrow(pa: Any, stream: Any) -> tuple[Any, Groups]:
    """The schema, and the record batches of a file or stream."""
    is_file = not is_standard_input(stream) and stream.read(len(MAGIC)) == MAGIC
    if not is_file:
        if not is_standard_input(stream):
            stream.seek(0)
        reader = pa.ipc.open_stream(stream)
        return reader.schema, ArrowStream(reader)
    schema = pa.ipc.open_file(stream).schema
    return schema, ArrowGroups(stream, schema)


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
            yield from source.groups.batches(source.names)
