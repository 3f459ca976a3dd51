"""Answers in parts: a folder that is valid at any moment, whatever ends the run.

A run of any length, in one process or on many machines, answers its people block by block and
writes one part for each: ``part-000000-000000000000.csv`` of the first file from row 0 on, and a
record ``_part-….json`` of what it holds. ``_manifest.json`` is there before the first part and goes
after the last. Programs that read the folder as one table, such as Spark and Arrow, skip names that
begin with an underscore.

The manifest has the run key: everything that decides the output. A run continues, here or on
another machine, only with the same key. Each continuation gets a new run name, so workers of an
earlier one can tell that theirs has ended.

Always true: every file appears whole or not at all, the record after its part; a part counts only
with a record that fits its bytes and its input; parts of one folder have one key, and one run at a
time writes them (:func:`locked_folder`). So a run that was killed at any moment continues by
writing the parts that do not count yet.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from uuid import uuid4

from ..errors import ParameterError, ReadError, WriteError, shorten
from ..runtime.files import DRAFT, checksum, replacing, writing
from ..runtime.json_text import read_json

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

MANIFEST, FAILURES = "_manifest.json", "_failures.json"
DRAFTS = re.compile(rf"{re.escape(DRAFT)}[0-9a-f]{{16}}")
OURS = re.compile(rf"_?part-\d{{6,}}-\d{{12,}}\.\w+|{re.escape(FAILURES)}|{DRAFTS.pattern}")
# Which file, and from which of its rows on.
Number = tuple[int, int]
FORMAT, VERSION = "mcce parts", 3
# Settings that are named in the error about another run key.
MAX_SHOWN_SETTINGS = 5
Kept = TypeVar("Kept", "Manifest", "PartRecord")


@dataclass(frozen=True)
class PartRecord:
    """A part that is complete; ``score`` is that of its first person."""

    n_rows: int
    fingerprint: str
    counts: Mapping[str, int]
    score: float | None = None
    sha256: str = ""


@dataclass(frozen=True)
class Manifest:
    """The run key of a folder of parts, its run, and whether it is complete."""

    run_key: Mapping[str, Any]
    run: str
    n_parts: int | None = None
    format: str = FORMAT
    version: int = VERSION

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


def read_manifest(path: Path) -> Manifest | None:
    """The manifest of a folder of parts; None if there is none."""
    try:
        found = _load(Manifest, (path / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    if found is None or (found.format, found.version) != (FORMAT, VERSION):
        raise ReadError(
            f"The manifest of an unfinished run cannot be read: expected {FORMAT!r} of version "
            f"{VERSION}. Begin anew, or go on with the version of mcce that started the run."
        )
    return found


@dataclass(frozen=True)
class PartsFolder:
    """A folder of parts; :meth:`open` makes or continues one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = PartsFolder.open(Path(folder, "answers"), {"block_rows": 2}, ".txt")
    ...     record = PartRecord(2, "ab12", {})
    ...     record = parts.write((0, 0), lambda stream: stream.write(b"x") and record)
    ...     parts.complete((0, 0), "ab12") == record, parts.complete((0, 2), "")
    (True, None)
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
            names = [file.name for file in path.iterdir()]
            # Parts are written after the manifest and removed before it.
            foreign = [n for n in names if not (OURS if manifest else DRAFTS).fullmatch(n)]
            if foreign and manifest is None:
                raise ParameterError(
                    f"The folder {shorten(path)} holds other files: {shorten(foreign)}. Name a "
                    "new or an empty one."
                )
            parts._put(MANIFEST, Manifest(run_key, parts.run))
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
            self._put(self._record_name(number), record)
        return record

    def list_failures(self, failures: Sequence[Mapping[str, Any]]) -> None:
        """Write down which parts are missing, and why; :meth:`finish` removes the list."""
        with writing(self.path), replacing(self.path / FAILURES) as stream:
            stream.write(json.dumps(list(failures), indent=1).encode() + b"\n")

    def finish(self, records: Mapping[Number, PartRecord]) -> list[Path]:
        """Mark the folder as complete, without what it holds beyond its parts."""
        kept = {name for at in records for name in (self.part(at).name, self._record_name(at))}
        with writing(self.path):
            self._check_run()
            for number, record in records.items():
                if self._read(number) != record:
                    raise WriteError(
                        f"{shorten(self.part(number), 200)} was replaced by a worker of an earlier "
                        "run. The same command with --resume writes it again."
                    )
            self._remove(kept)
            self._put(MANIFEST, Manifest(self.run_key, self.run, len(records)))
        return [self.part(number) for number in records]

    def clear(self) -> None:
        """Remove everything that this module wrote into the folder, and nothing else."""
        with writing(self.path):
            if (self.path / MANIFEST).exists():
                self._remove(set())
                (self.path / MANIFEST).unlink()

    def remove(self) -> None:
        """Remove the folder and everything that this module wrote there, and nothing else."""
        self.clear()
        with writing(self.path):
            if not any(self.path.iterdir()):
                self.path.rmdir()

    def part(self, number: Number) -> Path:
        """The file of a part."""
        file, first = number
        return self.path / f"part-{file:06d}-{first:012d}{self.suffix}"

    def _remove(self, kept: set[str]) -> None:
        for file in self.path.iterdir():
            if OURS.fullmatch(file.name) and file.name not in kept:
                file.unlink(missing_ok=True)

    def _check_run(self) -> None:
        """Raise in a worker that outlived its run, if another one has taken over the folder."""
        manifest = read_manifest(self.path)
        if manifest is None or manifest.run != self.run:
            raise WriteError(f"The folder {shorten(self.path, 200)} is no longer that of this run.")

    def _record_name(self, number: Number) -> str:
        return f"_{self.part(number).stem}.json"

    def _read(self, number: Number) -> PartRecord | None:
        return _load(PartRecord, (self.path / self._record_name(number)).read_bytes())

    def _put(self, name: str, content: Manifest | PartRecord) -> None:
        with replacing(self.path / name) as stream:
            stream.write(json.dumps(asdict(content), indent=1, sort_keys=True).encode() + b"\n")


def _load(kind: type[Kept], text: bytes) -> Kept | None:
    """What a JSON text holds; None if it holds something else."""
    try:
        return kind(**read_json(text))
    except (ValueError, TypeError):
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
