"""Answers in parts: a folder that is valid at any moment, whatever ends the run.

A run of any length, in one process or on many machines, cuts its input into blocks, answers each by
itself and writes one part for each. The folder holds ``_manifest.json``, the parts
``part-000000.csv``, … (of many files ``part-000000-000000.csv``, …) and a record
``_part-000000.json`` for each complete one. Programs that read the folder as one table, such as
Spark and Arrow, skip names that begin with an underscore.

The manifest has the run key: everything that decides the output. A run continues, here or on
another machine, only with the same key. Each continuation gets a new run name, so workers of an
earlier one can tell that theirs has ended.

Always true: every file appears whole or not at all, the record after its part; a part counts only
with a record that fits its bytes and its input; parts of one folder have one key, and one run at a
time writes them (:func:`alone`). So a run that was killed at any moment continues by writing the
parts that do not count yet.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import pandas as pd

from ..counterfactuals.result import Counterfactuals
from ..errors import ParameterError, ReadError, WriteError, shorten
from ..runtime.files import DRAFT, checksum, replacing, writing
from ..runtime.json_text import read_json
from .answer_tables import Layout, count_status, stream_tables
from .people_reader import PeopleReader
from .sources import Format, RawBlock

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

# Counterfactuals that were withdrawn, beside the people by status.
UNSTABLE = "unstable"
MANIFEST, FAILURES = "_manifest.json", "_failures.json"
OURS = re.compile(
    rf"_?part-\d{{6,}}(-\d{{6,}})?\.\w+|{re.escape(DRAFT)}[0-9a-f]{{16}}|{re.escape(FAILURES)}"
)
# Which part, counted from 0; of many files, which file and which part of it.
Number = int | tuple[int, int]
FORMAT, VERSION = "mcce parts", 2
# Settings that are named in the error about another run key.
MAX_SHOWN_SETTINGS = 5


@dataclass(frozen=True)
class BlockRun:
    """How blocks of people become tables of answers."""

    explain: Callable[[pd.DataFrame], Counterfactuals[pd.DataFrame]]
    reader: PeopleReader
    layout: Layout

    def answer(self, block: RawBlock) -> tuple[pd.DataFrame, dict[str, int]]:
        """The table of answers to a block, and its counts."""
        people = self.reader.read(block)
        results = [(at, self.explain(frame)) for at, frame in people.groups]
        table = self.layout.table(people, results)
        counts = count_status(table, self.layout.prefix)
        return table, counts | {UNSTABLE: sum(result.n_unstable for _, result in results)}

    def write_parts(
        self, blocks: Iterable[RawBlock], folder: PartsFolder, format_: Format
    ) -> Iterator[Done]:
        """Write one part per block, except for complete ones."""
        for number, block in enumerate(self.at_least_one(blocks)):
            yield self.write_part([block], folder, number, block.fingerprint(), format_)

    def write_part(
        self,
        blocks: Iterable[RawBlock],
        folder: PartsFolder,
        number: Number,
        fingerprint: str,
        format_: Format,
    ) -> Done:
        """Write one part, unless it is complete; memory holds one block."""
        record = folder.complete(number, fingerprint)
        if record is not None:
            return Done(record, reused=True)

        def fill(stream: BinaryIO) -> PartRecord:
            answered = Answered(self, blocks)
            stream_tables(answered, format_, stream)
            return PartRecord(
                answered.first, answered.n_rows, fingerprint, "", dict(answered.counts)
            )

        return Done(folder.write(number, fill))

    def at_least_one(self, blocks: Iterable[RawBlock]) -> Iterator[RawBlock]:
        """The blocks; one empty block if there are none."""
        empty = RawBlock(0, {name: [] for name in self.reader.columns})
        found = iter(blocks)
        yield next(found, empty)
        yield from found


@dataclass(frozen=True)
class Done:
    """A block that is answered."""

    record: PartRecord
    reused: bool = False


class Answered:
    """Tables of answers, one per block, and counts of those so far."""

    def __init__(self, work: BlockRun, blocks: Iterable[RawBlock]) -> None:
        self._work, self._blocks = work, blocks
        self.first, self.n_rows = 0, 0
        self.counts: Counter[str] = Counter()

    def __iter__(self) -> Iterator[pd.DataFrame]:
        for place, block in enumerate(self._work.at_least_one(self._blocks)):
            table, counts = self._work.answer(block)
            self.first = self.first if place else block.first
            self.n_rows += block.n_rows
            self.counts.update(counts if block.n_rows else {})
            yield table


@dataclass(frozen=True)
class PartsFolder:
    """A folder of parts; :meth:`open` makes or continues one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = PartsFolder.open(Path(folder, "answers"), {"block_rows": 2}, ".txt")
    ...     record = PartRecord(0, 2, "ab12", "", {})
    ...     record = parts.write(0, lambda stream: stream.write(b"x") and record)
    ...     parts.complete(0, "ab12") == record, parts.complete(0, "cd34"), parts.complete(1, "")
    (True, None, None)
    """

    path: Path
    suffix: str
    run_key: Mapping[str, Any] = field(default_factory=dict)
    run: str = field(default_factory=lambda: uuid4().hex)

    @classmethod
    def open(cls, path: Path, run_key: Mapping[str, Any], suffix: str) -> PartsFolder:
        """The folder of a run: a new one, or that of an unfinished run with the same key."""
        manifest, parts = read_manifest(path), cls(path, suffix, run_key)
        if manifest is not None:
            manifest.check_run_key(run_key)
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
            foreign = _foreign_files([file.name for file in path.iterdir()])
            if foreign and manifest is None:
                raise ParameterError(
                    f"The folder {shorten(path)} holds other files: {shorten(foreign)}. Name a "
                    "new or an empty one."
                )
            parts._put(MANIFEST, Manifest(run_key, parts.run).to_json())
        return parts

    def complete(self, number: Number, fingerprint: str) -> PartRecord | None:
        """The record of a part that is complete and answers this input; otherwise None."""
        try:
            record = self._read(number)
            if record is None or record.fingerprint != fingerprint:
                return None
            return record if checksum(self.part(number)) == record.sha256 else None
        # A part that cannot be read is computed again.
        except OSError:
            return None

    def write(self, number: Number, fill: Callable[[BinaryIO], PartRecord]) -> PartRecord:
        """Write a part, and then its record."""
        with writing(self.path):
            with replacing(self.part(number)) as stream:
                record = fill(stream)
                stream.flush()
                # The checksum is of the draft, which no other run writes.
                record = replace(record, sha256=checksum(stream.name))
                self._check_run()
            self._put(self._record_name(number), record.to_json())
        return record

    def list_failures(self, failures: Sequence[Mapping[str, Any]]) -> None:
        """Write down which parts are missing, and why; :meth:`finish` removes the list."""
        with writing(self.path):
            self._put(FAILURES, json.dumps(list(failures), indent=1).encode() + b"\n")

    def finish(self, records: Mapping[Number, PartRecord]) -> list[Path]:
        """Mark the folder as complete, without what it holds beyond its parts."""
        kept = {name for at in records for name in (self.part(at).name, self._record_name(at))}
        with writing(self.path):
            self._check_run()
            for number, record in records.items():
                found = self._read(number)
                if found is None or found.fingerprint != record.fingerprint:
                    raise WriteError(
                        f"{shorten(self.part(number), 200)} was replaced by a worker of an earlier "
                        "run. The same command with --resume writes it again."
                    )
            for file in self.path.iterdir():
                if OURS.fullmatch(file.name) and file.name not in kept:
                    file.unlink(missing_ok=True)
            self._put(MANIFEST, Manifest(self.run_key, self.run, len(records)).to_json())
        return [self.part(number) for number in records]

    def clear(self) -> None:
        """Remove everything that this module wrote into the folder, and nothing else."""
        with writing(self.path):
            ours = [file.name for file in self.path.iterdir() if OURS.fullmatch(file.name)]
            records = {name for name in ours if name.startswith("_")}
            paired = [name for name in ours if _record_of(name) in records]
            single = [name for name in ours if name not in records and name not in paired]
            # A folder without a manifest cannot be resumed, and never holds a part of ours without
            # a record: such a file belongs to somebody else.
            if not (self.path / MANIFEST).exists():
                single = [name for name in single if name.startswith(DRAFT)]
            for name in [*single, MANIFEST, *paired, *records]:
                (self.path / name).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder and everything that this module wrote there, and nothing else."""
        self.clear()
        with writing(self.path):
            if not any(self.path.iterdir()):
                self.path.rmdir()

    def part(self, number: Number) -> Path:
        """The file of a part."""
        numbers = (number,) if isinstance(number, int) else number
        return self.path / f"part-{'-'.join(f'{one:06d}' for one in numbers)}{self.suffix}"

    def _check_run(self) -> None:
        """Raise in a worker that outlived its run, if another one has taken over the folder."""
        manifest = read_manifest(self.path)
        if manifest is None or manifest.run != self.run:
            raise WriteError(f"The folder {shorten(self.path, 200)} is no longer that of this run.")

    def _record_name(self, number: Number) -> str:
        return _record_of(self.part(number).name)

    def _read(self, number: Number) -> PartRecord | None:
        return PartRecord.from_json((self.path / self._record_name(number)).read_bytes())

    def _put(self, name: str, content: bytes) -> None:
        with replacing(self.path / name) as stream:
            stream.write(content)


def read_manifest(path: Path) -> Manifest | None:
    """The manifest of a folder of parts; None if there is none."""
    try:
        return Manifest.from_json((path / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextmanager
def locked_folder(path: Path) -> Iterator[None]:
    """Make a folder, and lock it inside the block; a run that is killed unlocks it.

    Without locks, as on Windows and some network drives, other runs are not kept out.
    """
    is_new = not path.exists()
    handle = _lock(path)
    try:
        yield
    finally:
        # An empty folder is removed; others stay.
        if is_new:
            with suppress(OSError):
                path.rmdir()
        if handle is not None:
            os.close(handle)


def _lock(path: Path) -> int | None:
    """The folder, open and locked; None where there are no locks."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        return None
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return _lock(path)  # another run has just removed it
    with ExitStack() as stack:
        stack.callback(os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_there = os.path.samestat(os.fstat(handle), path.stat())
        except FileNotFoundError:
            is_there = False
        except BlockingIOError:
            raise ParameterError(
                f"Another run is writing to {shorten(path, 200)}. Wait until it has ended, or name "
                "another output."
            ) from None
        except OSError:
            return None
        if is_there:
            stack.pop_all()
            return handle
    return _lock(path)  # the run that held the folder has just removed it


def _foreign_files(names: Sequence[str]) -> list[str]:
    """Names of files that no run can have left in a folder without a manifest."""
    known = set(names)
    return [
        name
        for name in names
        if not OURS.fullmatch(name) or (name.startswith("part-") and _record_of(name) not in known)
    ]


def _record_of(part: str) -> str:
    return f"_{Path(part).stem}.json"


@dataclass(frozen=True)
class Manifest:
    """The run key of a folder of parts, its run, and whether it is complete.

    Examples
    --------
    >>> manifest = Manifest({"explainer": "ab12", "block_rows": 100}, "ef56")
    >>> Manifest.from_json(manifest.to_json()) == manifest
    True
    """

    run_key: Mapping[str, Any]
    run: str
    n_parts: int | None = None

    def to_json(self) -> bytes:
        """The manifest as a JSON text."""
        return _dump({"format": FORMAT, "version": VERSION, **asdict(self)})

    @classmethod
    def from_json(cls, text: bytes) -> Manifest:
        """The manifest in a JSON text."""
        content = _parse(text, {"format": str, "version": int, "run_key": dict, "run": str})
        if content is None or content["format"] != FORMAT or content["version"] != VERSION:
            raise ReadError(
                f"The manifest of an unfinished run cannot be read: expected {FORMAT!r} of version "
                f"{VERSION}. Begin anew, or go on with the version of mcce that started the run."
            )
        return cls(content["run_key"], content["run"], content.get("n_parts"))

    def check_run_key(self, run_key: Mapping[str, Any]) -> None:
        """Raise if a run with another key would go on with these parts.

        Examples
        --------
        >>> Manifest({"block_rows": 100}, "ef56").check_run_key({"block_rows": 50})
        Traceback (most recent call last):
            ...
        mcce.errors.ParameterError: The unfinished run was started with other settings: block_rows
        was 100 and is 50 now. Use the same settings to go on, or begin anew.
        """
        other = list(_differences(self.run_key, run_key))
        if other:
            more = ["and others"] if len(other) > MAX_SHOWN_SETTINGS else []
            raise ParameterError(
                "The unfinished run was started with other settings: "
                f"{', '.join(other[:MAX_SHOWN_SETTINGS] + more)}. "
                "Use the same settings to go on, or begin anew."
            )


def _differences(was: Mapping[str, Any], now: Mapping[str, Any], of: str = "") -> Iterator[str]:
    """Differences between two run keys; of nested values, only those that differ."""
    for name in sorted(was.keys() | now.keys()):
        old, new = was.get(name), now.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _differences(old, new, f" of {name}")
        elif old != new:
            yield f"{shorten(name)[1:-1]}{of} was {shorten(old)} and is {shorten(new)} now"


@dataclass(frozen=True)
class PartRecord:
    """A part that is complete.

    Examples
    --------
    >>> record = PartRecord(0, 10, "ab12", "cd34", {"answered": 9})
    >>> PartRecord.from_json(record.to_json()) == record
    True
    """

    first: int
    n_rows: int
    fingerprint: str
    sha256: str
    counts: Mapping[str, int]

    def to_json(self) -> bytes:
        """The record as a JSON text."""
        return _dump(asdict(self))

    @classmethod
    def from_json(cls, text: bytes) -> PartRecord | None:
        """The record in a JSON text; None if it holds something else."""
        wanted = {"first": int, "n_rows": int, "fingerprint": str, "sha256": str, "counts": dict}
        content = _parse(text, wanted)
        if content is None or any(type(n) is not int for n in content["counts"].values()):
            return None
        return cls(**{name: content[name] for name in wanted})


def _dump(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=1, sort_keys=True).encode() + b"\n"


def _parse(text: bytes, wanted: Mapping[str, type]) -> dict[str, Any] | None:
    """A JSON object that has entries of these types; None for anything else."""
    try:
        content = read_json(text)
    except ValueError:
        return None
    if not isinstance(content, dict):
        return None
    fits = all(isinstance(content.get(name), type_) for name, type_ in wanted.items())
    return content if fits else None
