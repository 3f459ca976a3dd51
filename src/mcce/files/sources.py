"""Rows of a file or of standard input, in blocks of a given size: CSV, JSON lines, Parquet, Arrow.

A source knows its columns before the first row is read, and gives cells as they stand in the file:
texts from CSV, values from the other formats. Nothing is inferred from a block. Parquet and Arrow
files can also be read by groups of rows.

Always true: all blocks but the last have the same size; memory holds one of them; a file that is
cut off, or has a row of another length, is an error that says where.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Literal, Protocol, get_args

from ..errors import McceError, ParameterError, ReadError, missing_extra, shorten
from ..runtime.json_text import NotJsonError, UnusableJsonError, read_json
from .cell_values import holds_whole

# A level of 10,000 characters is unusual; a cell of 16 million means that a quote is not closed.
csv.field_size_limit(2**24)

Format = Literal["csv", "parquet", "arrow", "jsonl"]
FORMATS: tuple[Format, ...] = get_args(Format)
EXTENSIONS: dict[str, Format] = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
STANDARD = "-"
MAGIC = b"ARROW1"
# Rows of a group of a written file, whatever the blocks were.
GROUP_ROWS = 2**16


@dataclass(frozen=True)
class RawBlock:
    """Rows as they are in a file."""

    first: int
    columns: dict[str, Any] = field(repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), []))

    def cut(self, n_rows: int) -> Iterator[RawBlock]:
        """The same rows in smaller blocks."""
        for at in range(0, self.n_rows, n_rows):
            cells = {name: column[at : at + n_rows] for name, column in self.columns.items()}
            yield RawBlock(self.first + at, cells)

    def fingerprint(self) -> str:
        """A checksum of the cells, exact in type and bits, and of where they stand.

        Examples
        --------
        >>> one, two = RawBlock(0, {"age": [0.0]}), RawBlock(0, {"age": [-0.0]})
        >>> one.fingerprint() == one.fingerprint(), one.fingerprint() == two.fingerprint()
        (True, False)
        """
        if not all(isinstance(cells, list) for cells in self.columns.values()):
            return f"{self.first}-{arrow_fingerprint(self.columns)}"
        digest = hashlib.sha256(str(self.first).encode())
        for name, cells in self.columns.items():
            digest.update(repr((name, cells)).encode("utf-8", "backslashreplace"))
        return digest.hexdigest()


class TableColumns(Protocol):
    """What is known about a table before its rows are read."""

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        ...

    @property
    def textual(self) -> bool:
        """Whether cells are texts that stand for numbers, levels or nothing."""
        ...

    @property
    def whole(self) -> frozenset[str]:
        """Columns that the source knows to be whole numbers."""
        ...


@dataclass(frozen=True)
class KnownColumns:
    """The columns of a table that is no file, such as a frame or a request."""

    names: list[str]
    textual: bool = False
    whole: frozenset[str] = frozenset()


class Source(TableColumns, Protocol):
    """An open table."""

    def blocks(self, columns: Sequence[str], n_rows: int) -> Iterator[RawBlock]:
        """Rows of some columns, ``n_rows`` at a time."""
        ...


@contextmanager
def open_source(path: str, format_: Format, delimiter: str = ",") -> Iterator[Source]:
    """A table in a file or on standard input."""
    with open_bytes(path) as stream:
        with reading(path):
            source = _source(path, stream, format_, delimiter)
        # Outside of reading, or errors of the caller would count as errors of reading.
        yield source


def _source(path: str, stream: BinaryIO, format_: Format, delimiter: str) -> Source:
    if format_ == "csv":
        return CsvSource.open(path, stream, check_delimiter(delimiter))
    if format_ == "jsonl":
        return JsonSource.open(path, stream)
    return ArrowSource.open(path, stream, format_)


@contextmanager
def open_bytes(path: str) -> Iterator[BinaryIO]:
    """The bytes of a file, decompressed, or of standard input."""
    with reading(path):
        stream = _open(path)
    try:
        yield stream
    finally:
        if path != STANDARD:
            stream.close()


def _open(path: str) -> BinaryIO:
    """A file, or standard input, as bytes."""
    if path == STANDARD:
        if sys.stdin is None:
            raise ReadError("Cannot read standard input: this process has none. Name a file.")
        return sys.stdin.buffer
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return Path(path).open("rb")


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn errors of the system inside into a ReadError about this file."""
    try:
        yield
    except McceError:
        raise
    except OSError as error:
        why = str(error.strerror or error).rstrip(".")
        raise ReadError(f"Cannot read {shorten(path, 200)}: {why}.") from error
    except (EOFError, UnicodeDecodeError, zlib.error) as error:
        what = "it is no UTF-8" if isinstance(error, UnicodeDecodeError) else "it is cut off"
        what = "it is damaged" if isinstance(error, zlib.error) else what
        raise ReadError(f"Cannot read {shorten(path, 200)}: {what}. Write it anew.") from error


def unreadable(path: str, kind: str, error: Exception) -> ReadError:
    """The error for a file that a library cannot read."""
    return ReadError(
        f"Cannot read {shorten(path, 200)} as {kind}: {shorten(error, 200).rstrip('.')}."
    )


def iterate(path: str, source: Source, columns: Sequence[str], n_rows: int) -> Iterator[RawBlock]:
    """Rows of some columns, ``n_rows`` at a time; errors are ReadErrors."""
    blocks = source.blocks(columns, n_rows)
    while True:
        with reading(path):
            block = next(blocks, None)
        if block is None:
            return
        yield block


def estimate_rows(path: str, format_: Format) -> int | None:
    """About how many rows a file has, for a progress bar; None if that is not quickly known."""
    if path == STANDARD or path.lower().endswith(".gz"):
        return None
    with reading(path):
        # A pipe can be read only once.
        if not Path(path).is_file():
            return None
        if format_ == "parquet":
            require_pyarrow(path)
            from pyarrow.parquet import read_metadata

            return int(read_metadata(path).num_rows)
        if format_ == "arrow":
            return None
        with Path(path).open("rb") as stream:
            lines = sum(part.count(b"\n") for part in iter(lambda: stream.read(2**20), b""))
        return max(lines - (format_ == "csv"), 0)


def find_format(path: str, given: str | None = None, *, option: str = "--format") -> Format:
    """The format of a file.

    Examples
    --------
    >>> find_format("people.parquet"), find_format("people.csv.gz"), find_format("-", "jsonl")
    ('parquet', 'csv', 'jsonl')
    """
    if given is not None:
        if given not in FORMATS:
            raise ParameterError(f"{option} must be one of {FORMATS!r}, got {shorten(given)}.")
        return given
    plain = PurePath(path)
    plain = plain.with_suffix("") if plain.suffix.lower() == ".gz" else plain
    found = EXTENSIONS.get(plain.suffix.lower())
    if found is None:
        raise ParameterError(
            f"The format of {shorten(path)} is not clear from its name. Say it with {option}: "
            f"{', '.join(FORMATS)}. Known extensions are {', '.join(EXTENSIONS)}."
        )
    return found


def check_delimiter(delimiter: str) -> str:
    """The delimiter of a CSV file, if it can be one.

    Examples
    --------
    >>> check_delimiter(";")
    ';'
    """
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise ParameterError(
            f"--delimiter must be one character, such as ; or a tab ($'\\t' in most shells), got "
            f"{shorten(delimiter)}."
        )
    return delimiter


def require_pyarrow(path: str) -> Any:
    """The library pyarrow, which Parquet and Arrow files need."""
    try:
        import pyarrow
    except ImportError as error:
        raise missing_extra(
            "pyarrow",
            "parquet",
            shorten(path),
            instead="CSV and JSON lines need no other library.",
        ) from error
    return pyarrow


def check_unique(path: str, names: Sequence[str]) -> list[str]:
    """The names of columns, of which no two may be the same."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise ReadError(
            f"{shorten(path, 200)} has several columns of one name: {shorten(twice, 200)}. Rename "
            "all but one of each."
        )
    return list(names)


@dataclass(frozen=True)
class CsvSource:
    """A CSV file in UTF-8 with a line of column names."""

    path: str
    names: list[str]
    rows: Any = field(repr=False)
    textual: bool = True
    whole: frozenset[str] = frozenset()

    @classmethod
    def open(cls, path: str, stream: BinaryIO, delimiter: str) -> CsvSource:
        """The table in a stream."""
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        rows = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            names = next((row for row in rows if row), None)
        except csv.Error as error:
            raise ReadError(f"Cannot read {shorten(path, 200)} as CSV: {error}.") from error
        if names is None:
            raise ReadError(f"{shorten(path, 200)} is empty: expected a line of column names.")
        return cls(path, check_unique(path, names), rows)

    def blocks(self, columns: Sequence[str], n_rows: int) -> Iterator[RawBlock]:
        """Rows of some columns, ``n_rows`` at a time."""
        at = [self.names.index(name) for name in columns]
        first = 0
        while rows := self._next(first, n_rows):
            cells = list(zip(*rows, strict=True))
            yield RawBlock(first, {self.names[place]: list(cells[place]) for place in at})
            first += len(rows)

    def _next(self, first: int, n_rows: int) -> list[list[str]]:
        """Up to a number of rows, each with one cell per column; empty lines are skipped."""
        rows: list[list[str]] = []
        try:
            for row in self.rows:
                if not row:
                    continue
                if len(row) != len(self.names):
                    raise ReadError(
                        f"Row {first + len(rows) + 1} of {shorten(self.path, 200)} (it ends in "
                        f"line {self.rows.line_num}) has {len(row)} cells, but there are "
                        f"{len(self.names)} columns. Quote cells that hold the delimiter."
                    )
                rows.append(row)
                if len(rows) == n_rows:
                    break
        except csv.Error as error:
            raise ReadError(
                f"Cannot read {shorten(self.path, 200)} after row {first + len(rows)}, in line "
                f"{self.rows.line_num}: {error}."
            ) from error
        return rows


@dataclass(frozen=True)
class JsonSource:
    """JSON lines: one object per row, all with the keys of the first."""

    path: str
    names: list[str]
    rows: Iterator[dict[str, Any]] = field(repr=False)
    whole: frozenset[str]
    textual: bool = False

    @classmethod
    def open(cls, path: str, stream: BinaryIO) -> JsonSource:
        """The table in a stream."""
        rows = _objects(path, stream)
        first = next(rows, None)
        if first is None:
            raise ReadError(f"{shorten(path, 200)} is empty: expected one JSON object per line.")
        whole = frozenset(name for name, cell in first.items() if type(cell) is int)
        return cls(path, list(first), chain([first], rows), whole)

    def blocks(self, columns: Sequence[str], n_rows: int) -> Iterator[RawBlock]:
        """Rows of some columns, ``n_rows`` at a time."""
        first = 0
        while rows := list(islice(self.rows, n_rows)):
            for place, row in enumerate(rows):
                missing = [name for name in columns if name not in row]
                if missing:
                    raise ReadError(
                        f"Row {first + place + 1} of {shorten(self.path, 200)} lacks the columns "
                        f"{shorten(missing, 200)}. Write null for a missing value."
                    )
            yield RawBlock(first, {name: [row[name] for row in rows] for name in columns})
            first += len(rows)


def _objects(path: str, stream: BinaryIO) -> Iterator[dict[str, Any]]:
    text = io.TextIOWrapper(stream, encoding="utf-8-sig")
    try:
        for number, line in enumerate(text, start=1):
            if line.strip():
                yield _object(path, number, line)
    finally:
        # The caller closes the stream.
        if not stream.closed:
            text.detach()


def _object(path: str, number: int, line: str) -> dict[str, Any]:
    try:
        row = read_json(line, nan=True)
    except UnusableJsonError as error:
        raise ReadError(
            f"Line {number} of {shorten(path, 200)} has {error}. Write each value once, and "
            "characters whole."
        ) from None
    except NotJsonError:
        row = None
    if not isinstance(row, dict):
        raise ReadError(
            f"Line {number} of {shorten(path, 200)} is no JSON object. Write one object per "
            'line, such as {"age": 36}.'
        )
    return row


@dataclass(frozen=True)
class ArrowSource:
    """A Parquet file, or an Arrow file or stream."""

    path: str
    schema: Any
    groups: RowGroups = field(repr=False)
    textual: bool = False

    @classmethod
    def open(cls, path: str, stream: BinaryIO, format_: Format) -> ArrowSource:
        """The table in a stream; Parquet on standard input is read whole."""
        pa = require_pyarrow(path)
        seekable: Any = stream
        groups: RowGroups
        if format_ == "parquet" and _is_standard_input(stream):
            seekable = io.BytesIO(stream.read())
        try:
            if format_ == "parquet":
                from pyarrow.parquet import ParquetFile

                file = ParquetFile(seekable)
                schema = file.schema_arrow
                groups = ParquetGroups(seekable, file)
            else:
                schema, groups = _open_arrow(pa, seekable)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(path, format_, error) from error
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

    def read_rows(self, columns: Sequence[str], first: int, n_rows: int) -> RawBlock:
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


def _open_arrow(pa: Any, stream: Any) -> tuple[Any, RowGroups]:
    """The schema, and the record batches of a file or stream."""
    is_file = not _is_standard_input(stream) and stream.read(len(MAGIC)) == MAGIC
    if not is_file:
        if not _is_standard_input(stream):
            stream.seek(0)
        reader = pa.ipc.open_stream(stream)
        return reader.schema, ArrowStream(reader)
    schema = pa.ipc.open_file(stream).schema
    return schema, ArrowGroups(stream, schema)


def _is_standard_input(stream: Any) -> bool:
    """Whether a stream is standard input, which workers and services may not have."""
    return sys.stdin is not None and stream is sys.stdin.buffer


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


# Groups of rows of a file; all but those of a stream can be read by themselves.
RowGroups = ParquetGroups | ArrowGroups | ArrowStream


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
    """Tables of equal numbers of rows, except the last, from batches of any size."""
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


def arrow_fingerprint(columns: Mapping[str, Any]) -> str:
    """A checksum of columns, however they are cut into chunks."""
    import pyarrow as pa

    table = pa.table(dict(columns)).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.remove_metadata()) as writer:
        writer.write_table(table.replace_schema_metadata(None))
    return hashlib.sha256(sink.getvalue()).hexdigest()
