"""Output in parts: a folder that is valid at any moment, whatever ends the run.

A run of any length, in one process or on many machines, cuts its input into blocks and writes one
part for each. The folder holds ``_manifest.json``, the parts ``part-000000.csv``, … (of many files
``part-000000-000000.csv``, …) and a receipt ``_part-000000.json`` for each complete one. Whoever
reads the folder as one table, as Spark, Arrow and others do, skips names that begin with an
underscore.

Always true: every file appears whole or not at all, the receipt after its part; a part counts only
with a receipt that fits its bytes and its input; parts of one folder have one job, and one run at a
time writes them (:func:`alone`): a worker that outlives its run writes nothing once another has
begun. So a run that was killed at any moment goes on by writing the parts that do not count yet.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from ..errors import ParameterError, WriteError, shorten
from ..runtime.replacing import DRAFT, replacing, writing
from .manifest import Manifest, Receipt

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

MANIFEST, FAILURES = "_manifest.json", "_failures.json"
OURS = re.compile(
    rf"_?part-\d{{6,}}(-\d{{6,}})?\.\w+|{re.escape(DRAFT)}[0-9a-f]{{16}}|{re.escape(FAILURES)}"
)
# Which part, counted from 0; of many files, which file and which part of it.
Number = int | tuple[int, int]


@dataclass(frozen=True)
class PartsFolder:
    """A folder of parts; :meth:`open` makes or continues one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = PartsFolder.open(Path(folder, "answers"), {"block_rows": 2}, ".txt")
    ...     receipt = Receipt(0, 2, "ab12", "", {})
    ...     receipt = parts.write(0, lambda stream: stream.write(b"x") and receipt)
    ...     parts.complete(0, "ab12") == receipt, parts.complete(0, "cd34"), parts.complete(1, "")
    (True, None, None)
    """

    path: Path
    suffix: str
    job: Mapping[str, Any] = field(default_factory=dict)
    run: str = field(default_factory=lambda: uuid4().hex)

    @classmethod
    def open(cls, path: Path, job: Mapping[str, Any], suffix: str) -> PartsFolder:
        """The folder of a job: a new one, or that of an unfinished run of the same job."""
        manifest, parts = read_manifest(path), cls(path, suffix, job)
        if manifest is not None:
            manifest.check_job(job)
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
            strangers = _strangers([file.name for file in path.iterdir()])
            if strangers and manifest is None:
                raise ParameterError(
                    f"The folder {shorten(path)} holds other files: {shorten(strangers)}. Name a "
                    "new or an empty one."
                )
            parts._put(MANIFEST, Manifest(job, parts.run).to_json())
        return parts

    def complete(self, number: Number, fingerprint: str) -> Receipt | None:
        """The receipt of a part that is complete and answers this input; otherwise None."""
        try:
            receipt = self._read(number)
            if receipt is None or receipt.fingerprint != fingerprint:
                return None
            return receipt if checksum(self.part(number)) == receipt.sha256 else None
        # What cannot be read is computed again.
        except OSError:
            return None

    def write(self, number: Number, fill: Callable[[BinaryIO], Receipt]) -> Receipt:
        """Write a part, and then its receipt."""
        with writing(self.path):
            with replacing(self.part(number)) as stream:
                receipt = fill(stream)
                stream.flush()
                # Of the draft, which nobody else writes.
                receipt = replace(receipt, sha256=checksum(stream.name))
                self._check_run()
            self._put(self._receipt(number), receipt.to_json())
        return receipt

    def list_failures(self, failures: Sequence[Mapping[str, Any]]) -> None:
        """Write down which parts are missing, and why; :meth:`finish` removes the list."""
        with writing(self.path):
            self._put(FAILURES, json.dumps(list(failures), indent=1).encode() + b"\n")

    def finish(self, receipts: Mapping[Number, Receipt]) -> list[Path]:
        """Mark the folder as complete, without what it holds beyond its parts."""
        kept = {name for at in receipts for name in (self.part(at).name, self._receipt(at))}
        with writing(self.path):
            self._check_run()
            for number, receipt in receipts.items():
                found = self._read(number)
                if found is None or found.fingerprint != receipt.fingerprint:
                    raise WriteError(
                        f"{shorten(self.part(number), 200)} was replaced by a worker of an earlier "
                        "run. The same command with --resume writes it again."
                    )
            self._remove(kept)
            self._put(MANIFEST, Manifest(self.job, self.run, len(receipts)).to_json())
        return [self.part(number) for number in receipts]

    def clear(self) -> None:
        """Remove all that this module put into the folder, and nothing else."""
        with writing(self.path):
            ours = [file.name for file in self.path.iterdir() if OURS.fullmatch(file.name)]
            receipts = {name for name in ours if name.startswith("_")}
            paired = [name for name in ours if _receipt_of(name) in receipts]
            single = [name for name in ours if name not in receipts and name not in paired]
            # A folder without a manifest is no run to go on with, and at no moment has it a part
            # without a receipt, which would be somebody else's.
            if not (self.path / MANIFEST).exists():
                single = [name for name in single if name.startswith(DRAFT)]
            for name in [*single, MANIFEST, *paired, *receipts]:
                (self.path / name).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder and all that this module put there, and nothing else."""
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

    def _receipt(self, number: Number) -> str:
        return _receipt_of(self.part(number).name)

    def _read(self, number: Number) -> Receipt | None:
        return Receipt.from_json((self.path / self._receipt(number)).read_bytes())

    def _put(self, name: str, content: bytes) -> None:
        with replacing(self.path / name) as stream:
            stream.write(content)

    def _remove(self, kept: set[str]) -> None:
        for file in self.path.iterdir():
            if OURS.fullmatch(file.name) and file.name not in kept:
                file.unlink(missing_ok=True)


def read_manifest(path: Path) -> Manifest | None:
    """The manifest of a folder of parts; None if there is none."""
    try:
        return Manifest.from_json((path / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None


def checksum(path: str | Path) -> str:
    """The SHA-256 checksum of a file, read piece by piece."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Make a folder and keep other runs out of it inside; a run that is killed lets go of it.

    Where the system has no locks, as on Windows and some network drives, nobody is kept out.
    """
    is_new = not path.exists()
    handle = _lock(path)
    try:
        yield
    finally:
        # One that is empty says nothing; others stay.
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
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), path.stat()):
            return handle
    except FileNotFoundError:
        pass  # the run that held the folder has just removed it
    except BlockingIOError:
        os.close(handle)
        raise ParameterError(
            f"Another run is writing to {shorten(path, 200)}. Wait until it has ended, or name "
            "another output."
        ) from None
    except OSError:
        os.close(handle)
        return None
    os.close(handle)
    return _lock(path)


def _strangers(names: Sequence[str]) -> list[str]:
    """Names of files that no run can have left in a folder without a manifest."""
    known = set(names)
    return [
        name
        for name in names
        if not OURS.fullmatch(name) or (name.startswith("part-") and _receipt_of(name) not in known)
    ]


def _receipt_of(part: str) -> str:
    return f"_{Path(part).stem}.json"
