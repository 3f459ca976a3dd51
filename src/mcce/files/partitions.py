"""Many files as partitions: which files are meant, and how each is cut.

Parquet and Arrow files are cut by their groups of rows, each of which can be read by itself. CSV
and JSON lines can only be read from the beginning, so that a file is one partition.

Always true: the partitions of a file are all its rows, each once; how a file is cut depends on that
file and the rows per block alone, and so do the numbers of its partitions, whatever other files are
like.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from itertools import pairwise
from pathlib import Path

from ..errors import ParameterError, ReadError, shorten
from .sources import (
    DETECTED,
    STANDARD,
    Dialect,
    Format,
    KnownColumns,
    RawBlock,
    Source,
    find_format,
    numbered,
    open_source,
    reading,
)

# A group is decoded from its beginning: in more pieces, that would cost more than it saves.
MAX_PIECES = 16
# Footers that are read at a time; on shared file systems, each is a wait.
MAX_SCANS = 8


@dataclass(frozen=True)
class Partition:
    """Rows of a file that one worker answers; None rows are all of them."""

    file: int
    path: str
    format: Format
    first: int = 0
    n_rows: int | None = None

    def blocks(self, source: Source, columns: Sequence[str], n_rows: int) -> Iterator[RawBlock]:
        """The rows, ``n_rows`` at a time."""
        if self.n_rows is None or source.groups is None:
            return source.blocks(columns, n_rows)
        cells = source.groups.read(columns, n_rows, self.first, self.n_rows)
        return numbered(cells, self.first)

    @property
    def shown(self) -> str:
        """The file and the rows, counted from 1, for users."""
        if not self.n_rows:
            return shorten(self.path, 200)
        return f"{shorten(self.path, 200)}, rows {self.first + 1} to {self.first + self.n_rows}"


@dataclass(frozen=True)
class PeopleFile:
    """What is known about a file before its rows are read; ``sizes`` are those of its groups."""

    path: str
    format: Format
    columns: KnownColumns
    sizes: tuple[int, ...] | None = None
    error: ReadError | None = None

    @classmethod
    def scan(cls, path: str, format_: Format, dialect: Dialect = DETECTED) -> PeopleFile:
        """Read the names of the columns, and how many rows there are, if that is quickly known."""
        try:
            with open_source(path, format_, dialect) as source:
                sizes = None if source.groups is None else source.groups.sizes()
                known = KnownColumns(source.names, source.textual, source.whole, source.decimal)
                return cls(path, format_, known, None if sizes is None else tuple(sizes))
        except ReadError as error:
            return cls(path, format_, KnownColumns([]), error=error)

    def holds_whole(self, name: str) -> bool:
        """Whether a column may hold whole numbers, also where the file cannot be read."""
        known = self.columns
        return name in known.whole if name in known.names else self.format != "csv"

    def partitions(self, place: int, block_rows: int) -> list[Partition]:
        """The partitions of the file, which is the one at this place.

        Examples
        --------
        >>> sizes = (300, 100, 80, 5000)
        >>> file = PeopleFile("people.parquet", "parquet", KnownColumns([]), sizes)
        >>> [(one.first, one.n_rows) for one in file.partitions(0, 200)][:5]
        [(0, 150), (150, 150), (300, 180), (480, 312), (792, 313)]
        """
        if self.sizes is None:
            return [Partition(place, self.path, self.format)]
        pieces = list(_pieces(self.sizes, block_rows)) or [(0, 0)]
        return [Partition(place, self.path, self.format, *piece) for piece in pieces]


def find_files(names: Sequence[str]) -> list[str]:
    """The files that a user means by names, patterns and folders, as full paths."""
    found = [os.path.abspath(path) for name in names for path in _files_of_name(name)]
    times = Counter(os.path.realpath(path) for path in found)
    twice = [path for path, count in times.items() if count > 1]
    if twice:
        raise ParameterError(
            f"Files are named twice: {shorten(twice, 300)}. Name each once, or their rows would "
            "count twice."
        )
    return found


def scan_files(paths: Sequence[str], format_: str | None, dialect: Dialect) -> list[PeopleFile]:
    """What is known about files before their rows are read."""
    formats = [find_format(path, format_) for path in paths]
    with ThreadPoolExecutor(MAX_SCANS) as pool:
        return list(pool.map(partial(PeopleFile.scan, dialect=dialect), paths, formats))


def is_single(name: str) -> bool:
    """Whether a name stands for one file or standard input, not for a folder or a pattern.

    Examples
    --------
    >>> is_single("people.csv"), is_single("lake/*.parquet"), is_single(".")
    (True, False, False)
    """
    return not Path(name).is_dir() and not (glob.has_magic(name) and not Path(name).exists())


def _files_of_name(name: str) -> list[str]:
    """The files that one name means."""
    if name == STANDARD:
        raise ParameterError("Standard input is one stream and cannot be one of several files.")
    with reading(name):
        if is_single(name):
            Path(name).stat()
            return [name]
        matched = [name] if Path(name).is_dir() else _matching(name)
        # A pattern may match a folder and the files in it.
        found = {
            os.path.abspath(path)
            for at in matched
            for path in (_files_in(at) if Path(at).is_dir() else [at])
        }
    if not found:
        raise ReadError(f"There are no files in {shorten(name, 200)}. Check the name.")
    return sorted(found)


def _matching(pattern: str) -> list[str]:
    """Paths that match a pattern, without hidden names that it does not spell out."""
    wanted = Path(pattern).parts
    spelled = [part for part in wanted if _is_hidden(part)]
    fixed = next(at for at, part in enumerate(wanted) if glob.has_magic(part))
    if "**" in wanted:
        # glob skips folders that it cannot read; this raises.
        list(_files_in(str(Path(*wanted[:fixed]))))

    def is_meant(path: str) -> bool:
        hidden = filter(_is_hidden, Path(path).parts[fixed:])
        return all(any(fnmatch(part, one) for one in spelled) for part in hidden)

    return list(filter(is_meant, glob.glob(pattern, recursive=True)))


def _files_in(folder: str, above: frozenset[str] = frozenset()) -> Iterator[str]:
    """Files of a folder and of its folders, also by links, without those that are not data."""
    real = os.path.realpath(folder)
    # A link to a folder that it is in: these files are known.
    if real in above:
        return
    with os.scandir(folder) as entries:
        shown = [entry for entry in entries if not _is_hidden(entry.name)]
    for entry in shown:
        if entry.is_dir():
            yield from _files_in(entry.path, above | {real})
        else:
            yield entry.path


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", ".")) and name not in (".", "..")


def _pieces(sizes: Sequence[int], block_rows: int) -> Iterator[tuple[int, int]]:
    """First row and number of rows of pieces: small groups together, large ones cut evenly."""
    first = n_rows = 0
    for size in sizes:
        if n_rows and n_rows + size > block_rows:
            yield first, n_rows
            first, n_rows = first + n_rows, 0
        n_rows += size
        n_pieces = min(-(-n_rows // block_rows), MAX_PIECES)
        if n_pieces > 1:
            ends = [first + n_rows * at // n_pieces for at in range(n_pieces + 1)]
            yield from ((low, high - low) for low, high in pairwise(ends))
            first, n_rows = ends[-1], 0
    if n_rows:
        yield first, n_rows
