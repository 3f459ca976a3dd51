"""Rows of a file or of standard input, in blocks of a given size: CSV, JSON lines, Parquet, Arrow.

A source knows its columns before the first row is read, and gives cells as they stand in the file:
texts from CSV, values of Python's types from the other formats. Nothing is inferred from a block.
How a CSV file is written is found out from its beginning, unless the user says it.

Always true: all blocks but the last have the same size; memory holds one of them; a row that is too
long, a file that is cut off or has a row of another length is an error that says where.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain, islice, pairwise
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Literal, TextIO, get_args

from pandas.api import types

from ..errors import McceError, ParameterError, ReadError, missing_extra, shorten
from ..runtime.json_text import NotJsonError, UnusableJsonError, read_json

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
# What a CSV file may be written with; a comma wins only if no other one separates cells.
DELIMITERS = ";\t|,"
# Bytes and rows of a CSV file by which it is found out how it is written.
HEAD_BYTES, HEAD_ROWS = 2**18, 200
WITH_COMMA = re.compile(r"\s*[+-]?[0-9]+,[0-9]+\s*", re.ASCII)
WITH_POINT = re.compile(r"\s*[+-]?[0-9]*\.[0-9]+\s*", re.ASCII)
# A level of 10,000 characters is unusual; a row of 16 million means that a quote is not closed.
MAX_ROW = 2**24
csv.field_size_limit(MAX_ROW)
# Tables of people become a tenth or a fiftieth of their size by gzip, never a thousandth.
MAX_EXPANSION, SMALL_BYTES = 200, 2**27
MAGIC = b"ARROW1"
# Rows of a group of a written file, whatever the blocks were.
GROUP_ROWS = 2**16


@dataclass(frozen=True)
class RawBlock:
    """Rows as they are in a file."""

    first: int
    columns: Mapping[str, list[Any]] = field(repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), []))

    def head(self) -> RawBlock:
        """The first row alone."""
        return RawBlock(self.first, {name: cells[:1] for name, cells in self.columns.items()})

    def fingerprint(self) -> str:
        """A checksum of the cells, exact in type and bits, and of where they stand.

        Examples
        --------
        >>> one, two = RawBlock(0, {"age": [0.0]}), RawBlock(0, {"age": [-0.0]})
        >>> one.fingerprint() == one.fingerprint(), one.fingerprint() == two.fingerprint()
        (True, False)
        """
        digest = hashlib.sha256(str(self.first).encode())
        for name, cells in self.columns.items():
            digest.update(repr((name, cells)).encode("utf-8", "backslashreplace"))
        return digest.hexdigest()


@dataclass(frozen=True)
class Dialect:
    r"""How a CSV file is written; None is found out from its beginning.

    Examples
    --------
    >>> Dialect().completed("Navn;Inntekt\nKåre;1,5\n".encode("cp1252"))
    Dialect(delimiter=';', decimal=',', encoding='cp1252')
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '\r\n"'):
            raise ParameterError(
                f"--delimiter must be one character, such as ; or a tab ($'\\t' in most shells), "
                f"got {shorten(self.delimiter)}."
            )
        if self.decimal not in (None, ".", ","):
            raise ParameterError(f"--decimal must be . or , and not {shorten(self.decimal)}.")
        try:
            "".encode(self.encoding or "utf-8")
        except (LookupError, ValueError):
            raise ParameterError(
                f"--encoding must be one that Python knows, such as utf-8, cp1252 or utf-16, got "
                f"{shorten(self.encoding)}."
            ) from None

    def completed(self, head: bytes) -> Dialect:
        """The dialect of a file that begins with these bytes."""
        encoding = self.encoding or _encoding_of(head)
        # A byte order mark is no part of a name.
        encoding = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        text = head.decode(encoding, "ignore")
        delimiter = self.delimiter or _delimiter_of(text)
        decimal = self.decimal or ("." if delimiter == "," else _decimal_of(text, delimiter))
        return Dialect(delimiter, decimal, encoding)

    @property
    def unusual(self) -> str:
        """What is not as in most CSV files, in words."""
        marks = {",": "decimal commas", ".": "decimal points"}
        shown = [f"{self.delimiter!r} between cells", marks[self.decimal or "."]]
        shown = shown if (self.delimiter, self.decimal) != (",", ".") else []
        return ", ".join(shown + ([] if self.encoding == "utf-8-sig" else [str(self.encoding)]))


DETECTED = Dialect()


def _encoding_of(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        # The last character may be cut.
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _delimiter_of(text: str) -> str:
    """What separates cells: most rows have as many as the first, and there are many."""

    def plausibility(delimiter: str) -> tuple[bool, int, int]:
        sizes = [len(row) for row in _head_rows(text, delimiter)] or [1]
        return sizes[0] > 1, sizes.count(sizes[0]), sizes[0]

    best = max(DELIMITERS, key=plausibility)
    return best if plausibility(best)[0] else ","


def _decimal_of(text: str, delimiter: str) -> str:
    cells = [cell for row in _head_rows(text, delimiter) for cell in row]
    points = any(map(WITH_POINT.fullmatch, cells))
    return "," if not points and any(map(WITH_COMMA.fullmatch, cells)) else "."


def _head_rows(text: str, delimiter: str) -> list[list[str]]:
    """The first rows of a CSV file, up to what is no CSV."""
    rows: list[list[str]] = []
    with suppress(csv.Error):
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        rows.extend(row for row in islice(reader, HEAD_ROWS) if row)
    return rows


@dataclass(frozen=True)
class KnownColumns:
    """What is known about a table before its rows are read.

    ``textual`` cells are texts that stand for numbers, levels or nothing; ``whole`` are the columns
    that are known to be whole numbers.
    """

    names: list[str]
    textual: bool = False
    whole: frozenset[str] = frozenset()
    decimal: str = "."


@dataclass(frozen=True, kw_only=True)
class Source(KnownColumns):
    """An open table; ``groups`` of a Parquet or Arrow file can be read by themselves."""

    path: str
    read: Callable[[Sequence[str], int], Iterator[dict[str, list[Any]]]] = field(repr=False)
    dialect: Dialect | None = None
    groups: ArrowGroups | None = field(default=None, repr=False)

    def blocks(self, columns: Sequence[str], n_rows: int) -> Iterator[RawBlock]:
        """Rows of some columns, ``n_rows`` at a time; errors are ReadErrors."""
        with reading(self.path):
            yield from numbered(self.read(columns, n_rows))


def numbered(cells: Iterable[dict[str, list[Any]]], first: int = 0) -> Iterator[RawBlock]:
    """Blocks of rows that follow each other."""
    for columns in cells:
        block = RawBlock(first, columns)
        yield block
        first += block.n_rows


@contextmanager
def open_source(path: str, format_: Format, dialect: Dialect = DETECTED) -> Iterator[Source]:
    """A table in a file or on standard input."""
    with open_bytes(path, text=format_ in ("csv", "jsonl")) as stream:
        with reading(path):
            if format_ == "csv":
                source = _open_csv(path, stream, dialect)
            elif format_ == "jsonl":
                source = _open_jsonl(path, stream)
            else:
                source = _open_arrow(path, stream, format_)
        # Outside of reading, or errors of the caller would count as errors of reading.
        yield source


@contextmanager
def open_bytes(path: str, *, text: bool = False) -> Iterator[Any]:
    """The bytes of a file, decompressed, or of standard input; of a text, one can peek at them."""
    with reading(path):
        packed = None
        if path == STANDARD:
            if sys.stdin is None:
                raise ReadError("Cannot read standard input: this process has none. Name a file.")
            stream: Any = sys.stdin.buffer
        else:
            stream = Path(path).open("rb")  # noqa: SIM115 -- closed below
    try:
        if path.lower().endswith(".gz"):
            packed, stream = stream, gzip.GzipFile(fileobj=stream)
        bounded = text or packed is not None
        yield io.BufferedReader(_Bytes(path, stream, packed), HEAD_BYTES) if bounded else stream
    finally:
        if path != STANDARD:
            (packed or stream).close()


class _Bytes(io.RawIOBase):
    """The bytes of a stream, which stays open; refuses gzip that expands beyond all measure."""

    def __init__(self, path: str, stream: BinaryIO, packed: BinaryIO | None) -> None:
        self._path, self._stream, self._packed = path, stream, packed
        self._n_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, whatever pieces a pipe comes in."""
        n_read, view = 0, memoryview(buffer)
        while n_read < len(view) and (piece := self._stream.read(len(view) - n_read)):
            view[n_read : n_read + len(piece)] = piece
            n_read += len(piece)
        self._n_bytes += n_read
        packed = self._n_bytes if self._packed is None else MAX_EXPANSION * self._packed.tell()
        if self._n_bytes > max(packed, SMALL_BYTES):
            raise ReadError(
                f"{shorten(self._path, 200)} expands to more than {MAX_EXPANSION} times its size, "
                "as no table does. If it is meant, decompress it first."
            )
        return n_read


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
    except UnicodeError as error:
        raise ReadError(
            f"Cannot read {shorten(path, 200)}: it is no {getattr(error, 'encoding', 'text')}, or "
            "only up to some row. Write it as UTF-8, or say what it is (--encoding)."
        ) from error
    except (EOFError, zlib.error) as error:
        what = "it is damaged" if isinstance(error, zlib.error) else "it is cut off"
        raise ReadError(f"Cannot read {shorten(path, 200)}: {what}. Write it anew.") from error


def estimate_rows(path: str, format_: Format) -> int | None:
    """About how many rows a file has, for a progress bar; None if that is not quickly known."""
    # A pipe can be read only once.
    if format_ == "arrow" or path.lower().endswith(".gz") or not Path(path).is_file():
        return None
    with reading(path):
        if format_ == "parquet":
            require_pyarrow(path)
            from pyarrow.parquet import read_metadata

            return int(read_metadata(path).num_rows)
        with Path(path).open("rb") as stream:
            lines = sum(part.count(b"\n") for part in iter(partial(stream.read, 2**20), b""))
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


def require_pyarrow(path: str) -> Any:
    """The library pyarrow, which Parquet and Arrow files need."""
    try:
        import pyarrow
    except ImportError as error:
        raise missing_extra("pyarrow", "cli", shorten(path)) from error
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


class _BoundedLines:
    """The lines of a text, of which those of one row together may not be too long."""

    def __init__(self, path: str, text: TextIO) -> None:
        self._path, self._text = path, text
        self.n_lines = self._n_chars = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(MAX_ROW + 1 - self._n_chars)
        self._n_chars += len(line)
        if self._n_chars > MAX_ROW:
            raise ReadError(
                f"Cannot read {shorten(self._path, 200)} after line {self.n_lines}: a row has more "
                f"than {MAX_ROW:,} characters. Is a quote not closed, or is this no text?"
            )
        if not line:
            raise StopIteration
        self.n_lines += 1
        return line

    def end_row(self) -> None:
        """Begin a new row."""
        self._n_chars = 0


def _open_csv(path: str, stream: Any, dialect: Dialect) -> Source:
    """A CSV file with a line of column names."""
    head = stream.peek(HEAD_BYTES)
    dialect = dialect.completed(head)
    if b"\0" in head and dialect.encoding != "utf-16":
        raise ReadError(f"{shorten(path, 200)} is no text. Save it as CSV.")
    text = io.TextIOWrapper(stream, encoding=dialect.encoding, newline="")
    rows = _csv_rows(path, _BoundedLines(path, text), str(dialect.delimiter))
    found = next(rows, None)
    if found is None:
        raise ReadError(f"{shorten(path, 200)} is empty: expected a line of column names.")
    names = check_unique(path, found)

    def read(columns: Sequence[str], n_rows: int) -> Iterator[dict[str, list[Any]]]:
        at = [names.index(name) for name in columns]
        while some := list(islice(rows, n_rows)):
            cells = list(zip(*some, strict=True))
            yield {names[place]: list(cells[place]) for place in at}

    decimal = str(dialect.decimal)
    return Source(names, True, decimal=decimal, path=path, read=read, dialect=dialect)


def _csv_rows(path: str, lines: _BoundedLines, delimiter: str) -> Iterator[list[str]]:
    """The line of names, and rows with as many cells; empty lines are skipped."""
    n_rows, n_columns = 0, 0
    try:
        for row in csv.reader(lines, delimiter=delimiter, strict=True):
            lines.end_row()
            if not row:
                continue
            if n_columns not in (0, len(row)):
                raise ReadError(
                    f"Row {n_rows} of {shorten(path, 200)} (it ends in line {lines.n_lines}) has "
                    f"{len(row)} cells, but there are {n_columns} columns. Quote cells that hold "
                    f"the delimiter, {delimiter!r}."
                )
            n_rows, n_columns = n_rows + 1, len(row)
            yield row
    except csv.Error as error:
        raise ReadError(
            f"Cannot read {shorten(path, 200)} as CSV after row {max(n_rows - 1, 0)}, in line "
            f"{lines.n_lines}: {error}."
        ) from error


def _open_jsonl(path: str, stream: Any) -> Source:
    """JSON lines: one object per row, all with the keys of the first."""
    rows = _json_rows(path, io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""))
    first = next(rows, None)
    if first is None:
        raise ReadError(f"{shorten(path, 200)} is empty: expected one JSON object per line.")
    whole = frozenset(name for name, cell in first.items() if type(cell) is int)
    left = chain([first], rows)

    def read(columns: Sequence[str], n_rows: int) -> Iterator[dict[str, list[Any]]]:
        n_read = 0
        while some := list(islice(left, n_rows)):
            for row in some:
                n_read += 1
                missing = [name for name in columns if name not in row]
                if missing:
                    raise ReadError(
                        f"Row {n_read} of {shorten(path, 200)} lacks the columns "
                        f"{shorten(missing, 200)}. Write null for a missing value."
                    )
            yield {name: [row[name] for row in some] for name in columns}

    return Source(list(first), whole=whole, path=path, read=read)


def _json_rows(path: str, text: TextIO) -> Iterator[dict[str, Any]]:
    lines = _BoundedLines(path, text)
    for line in lines:
        lines.end_row()
        if line.strip():
            yield _json_row(path, lines.n_lines, line)


def _json_row(path: str, number: int, line: str) -> dict[str, Any]:
    where = f"Line {number} of {shorten(path, 200)}"
    try:
        row = read_json(line, nan=True)
    except UnusableJsonError as error:
        raise ReadError(
            f"{where} has {error}. Write each value once, and characters whole."
        ) from None
    except NotJsonError:
        row = None
    if not isinstance(row, dict):
        raise ReadError(
            f'{where} is no JSON object. Write one object per line, such as {{"age": 36}}.'
        )
    return row


def _open_arrow(path: str, stream: Any, format_: Format) -> Source:
    """A Parquet file, or an Arrow file or stream; only a stream need not be sought in."""
    pa = require_pyarrow(path)
    try:
        if format_ == "arrow" and not _begins_with(stream, MAGIC):
            groups = _stream_groups(path, stream)
        else:
            stream = stream if stream.seekable() else io.BytesIO(stream.read())
            opened = _parquet_groups if format_ == "parquet" else _file_groups
            groups = opened(path, stream)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, f" as {format_}", error) from error
    names = check_unique(path, groups.schema.names)
    whole = frozenset(one.name for one in groups.schema if holds_whole(one.type))
    return Source(names, whole=whole, path=path, read=groups.read, groups=groups)


def _begins_with(stream: Any, magic: bytes) -> bool:
    if not stream.seekable():
        return bool(stream.peek(len(magic)).startswith(magic))
    found = stream.read(len(magic))
    stream.seek(0)
    return bool(found == magic)


def _unreadable(path: str, where: str, error: Exception) -> ReadError:
    """The error for what Arrow cannot read; it raises OSError for damaged messages, too."""
    if isinstance(error, McceError):
        return error  # type: ignore[return-value]
    why = shorten(error, 200).rstrip(".")
    return ReadError(f"Cannot read {shorten(path, 200)}{where}: {why}.")


@dataclass(frozen=True)
class ArrowGroups:
    """Groups of rows of a Parquet or Arrow file.

    ``sizes`` are the rows of each, None for a stream, whose groups come once and in order;
    ``batches`` gives some columns of some groups, or of all.
    """

    path: str
    schema: Any
    sizes: Callable[[], list[int] | None]
    batches: Callable[[list[str], Sequence[int] | None], Iterable[Any]]

    def read(
        self, columns: Sequence[str], n_rows: int, first: int = 0, count: int | None = None
    ) -> Iterator[dict[str, list[Any]]]:
        """Cells of some columns, ``n_rows`` at a time; only the groups that hold them are read."""
        for table in self.tables(columns, n_rows, first, count):
            yield {name: table.column(name).to_pylist() for name in columns}

    def tables(
        self, columns: Sequence[str], n_rows: int, first: int = 0, count: int | None = None
    ) -> Iterator[Any]:
        """Rows of some columns as tables of Arrow."""
        pa = require_pyarrow(self.path)
        at = first
        try:
            which, skip = (None, 0) if count is None else self._held(first, count)
            for table in rebatch(_cut(self.batches(list(columns), which), skip, count), n_rows):
                yield table
                at += table.num_rows
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self.path, f" after row {at}", error) from error

    def _held(self, first: int, count: int) -> tuple[list[int], int]:
        """The groups that hold some rows, and how many rows they have before them."""
        ends = list(accumulate(self.sizes() or [0], initial=0))
        if ends[-1] < first + count:
            raise ReadError(
                f"{shorten(self.path, 200)} has {ends[-1]} rows, but it had {first + count} or "
                "more when the run began. Leave files alone while they are read."
            )
        held = [
            at
            for at, (low, high) in enumerate(pairwise(ends))
            if low < first + count and high > first
        ]
        return held, first - ends[held[0]] if held else 0


def _parquet_groups(path: str, stream: Any) -> ArrowGroups:
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(stream)
    n_rows = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
    return ArrowGroups(
        path,
        file.schema_arrow,
        lambda: n_rows,
        lambda names, which: file.iter_batches(GROUP_ROWS, row_groups=which, columns=names),
    )


def _file_groups(path: str, stream: Any) -> ArrowGroups:
    from pyarrow import ipc

    schema = ipc.open_file(stream).schema

    def batches(names: list[str], which: Sequence[int] | None) -> Iterator[Any]:
        fields = [schema.get_field_index(name) for name in names]
        file = ipc.open_file(stream, options=ipc.IpcReadOptions(included_fields=fields))
        held = range(file.num_record_batches) if which is None else which
        return (file.get_batch(at).select(names) for at in held)

    def sizes() -> list[int]:
        return [batch.num_rows for batch in batches(schema.names[:1], None)]

    return ArrowGroups(path, schema, sizes, batches)


def _stream_groups(path: str, stream: Any) -> ArrowGroups:
    from pyarrow import ipc

    reader = ipc.open_stream(stream)
    return ArrowGroups(
        path,
        reader.schema,
        lambda: None,
        lambda names, which: (batch.select(names) for batch in reader),
    )


def _cut(batches: Iterable[Any], skip: int, count: int | None) -> Iterator[Any]:
    """The batches without some rows; those after them are not read."""
    left = count
    for batch in batches:
        if left == 0:
            return
        piece = batch.slice(min(skip, batch.num_rows), left)
        skip = max(skip - batch.num_rows, 0)
        left = None if left is None else left - piece.num_rows
        yield piece


def holds_whole(kind: Any) -> bool:
    """Whether a dtype of pandas, or a type of Arrow, has whole numbers that all fit int64.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> holds_whole(pd.UInt32Dtype()), holds_whole(np.dtype("uint64"))
    (True, False)
    """
    if not hasattr(kind, "kind"):
        from pyarrow.types import is_integer, is_uint64

        return bool(is_integer(kind) and not is_uint64(kind))
    return types.is_integer_dtype(kind) and not (kind.kind == "u" and kind.itemsize == 8)


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
