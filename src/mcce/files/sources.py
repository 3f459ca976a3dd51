"""Rows of a file or of standard input, in blocks of a given size.

A source knows its columns before the first row is read, and gives cells as they stand in the file:
texts from CSV, values from JSON lines, Parquet and Arrow. Nothing is inferred from a block.

Always true: blocks have the same size but the last; memory holds one of them; a file that is cut
off, or has a row of another length, is an error that says where.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from ..errors import McceError, ReadError, shorten
from .formats import STANDARD, Format, check_delimiter

# A level of 10,000 characters is unusual, a cell of 16 million a file without its closing quote.
csv.field_size_limit(2**24)
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class RawBlock:
    """Rows as they stand in a file."""

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
            from .arrow import fingerprint

            return f"{self.first}-{fingerprint(self.columns)}"
        digest = hashlib.sha256(str(self.first).encode())
        for name, cells in self.columns.items():
            digest.update(repr((name, cells)).encode("utf-8", "backslashreplace"))
        return digest.hexdigest()


class Columns(Protocol):
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
        """Columns of whole numbers, as far as the source knows."""
        ...


class Source(Columns, Protocol):
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
        # Not inside, or errors of whoever uses the rows would be errors of reading.
        yield source


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


def iterate(path: str, source: Source, columns: Sequence[str], n_rows: int) -> Iterator[RawBlock]:
    """Rows of some columns, ``n_rows`` at a time; what goes wrong is a ReadError."""
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
        # What comes through a pipe can be read only once.
        if not Path(path).is_file():
            return None
        if format_ == "parquet":
            from .arrow import count_rows

            return count_rows(path)
        if format_ == "arrow":
            return None
        with Path(path).open("rb") as stream:
            lines = sum(part.count(b"\n") for part in iter(lambda: stream.read(2**20), b""))
        return max(lines - (format_ == "csv"), 0)


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
        """Up to so many rows, each with one cell per column; empty lines are skipped."""
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
        return cls(path, list(first), _chained(first, rows), whole)

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


def _chained(first: dict[str, Any], rest: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield first
    yield from rest


def _objects(path: str, stream: BinaryIO) -> Iterator[dict[str, Any]]:
    text = io.TextIOWrapper(stream, encoding="utf-8-sig")
    try:
        for number, line in enumerate(text, start=1):
            if line.strip():
                yield _object(path, number, line)
    finally:
        # Whoever opened the stream closes it.
        if not stream.closed:
            text.detach()


def _object(path: str, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise ReadError(
            f"Line {number} of {shorten(path, 200)} is no JSON object. Write one object per "
            'line, such as {"age": 36}.'
        )
    if SURROGATE.search(line) and not _is_unicode(row):
        raise ReadError(
            f"Line {number} of {shorten(path, 200)} has half a character: an escape from \\ud800 "
            "to \\udfff without its other half. Write the character whole."
        )
    return row


def _is_unicode(row: dict[str, Any]) -> bool:
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def is_standard_input(stream: Any) -> bool:
    """Whether a stream is standard input, which workers and services may not have."""
    return sys.stdin is not None and stream is sys.stdin.buffer


def _open(path: str) -> BinaryIO:
    """A file, or standard input, as bytes."""
    if path == STANDARD:
        if sys.stdin is None:
            raise ReadError("Cannot read standard input: this process has none. Name a file.")
        return sys.stdin.buffer
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return Path(path).open("rb")


def _source(path: str, stream: BinaryIO, format_: Format, delimiter: str) -> Source:
    if format_ == "csv":
        return CsvSource.open(path, stream, check_delimiter(delimiter))
    if format_ == "jsonl":
        return JsonSource.open(path, stream)
    from .arrow import ArrowSource

    return ArrowSource.open(path, stream, format_)
