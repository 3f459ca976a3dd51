"""Output in parts: a folder that is valid at any moment, whatever ends the run.

A run of any length, in one process or on many machines, cuts its input into blocks and writes one
part for each. The folder holds ``_manifest.json``, the parts ``part-000000.csv``, … and a receipt
``_part-000000.json`` for each complete one. Whoever reads the folder as one table, as Spark, Arrow
and others do, skips names that begin with an underscore.

Always true: every file appears whole or not at all, the receipt after its part; a part counts only
with a receipt that fits its bytes and its input; parts of one folder have one job. So a run that
was killed at any moment goes on by writing the parts that do not count yet.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import ParameterError, shorten
from .manifest import Manifest, Receipt
from .replacing import DRAFT, replacing, writing

MANIFEST = "_manifest.json"
OURS = re.compile(rf"_?part-\d{{6,}}\.\w+|{re.escape(DRAFT)}[0-9a-f]{{16}}")


@dataclass(frozen=True)
class PartsFolder:
    """A folder of parts; :meth:`open` makes or continues one.

    Parameters
    ----------
    path
        The folder.
    suffix
        How the names of parts end, such as ``".csv"``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = PartsFolder.open(Path(folder, "answers"), {"block_rows": 2}, ".txt")
    ...     receipt = Receipt(0, 2, "ab12", "", {})
    ...     receipt = parts.write(0, receipt, lambda stream: stream.write(b"x"))
    ...     parts.complete(0, "ab12") == receipt, parts.complete(0, "cd34"), parts.complete(1, "")
    (True, None, None)
    """

    path: Path
    suffix: str

    @classmethod
    def open(cls, path: Path, job: Mapping[str, Any], suffix: str) -> PartsFolder:
        """The folder of a job: a new one, or that of an unfinished run of the same job.

        Parameters
        ----------
        path
            The folder.
        job
            Everything that decides the output.
        suffix
            How the names of parts end.

        Returns
        -------
        PartsFolder
            The folder, with its manifest.

        Raises
        ------
        ParameterError
            If the folder has parts of another job, or files of others.
        ReadError
            If its manifest cannot be read.
        WriteError
            If it cannot be written to.
        """
        manifest = read_manifest(path)
        if manifest is not None:
            manifest.check_job(job)
            return cls(path, suffix)
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
            strangers = [file.name for file in path.iterdir() if not OURS.fullmatch(file.name)]
            if strangers:
                raise ParameterError(
                    f"The folder {shorten(path)} holds other files: {shorten(strangers)}. Name a "
                    "new or an empty one."
                )
            parts = cls(path, suffix)
            parts._put(MANIFEST, Manifest(job).to_json())
        return parts

    def complete(self, number: int, fingerprint: str) -> Receipt | None:
        """The receipt of a part that is complete and answers this input; otherwise None."""
        try:
            receipt = Receipt.from_json((self.path / self._receipt(number)).read_bytes())
            if receipt is None or receipt.fingerprint != fingerprint:
                return None
            return receipt if checksum(self.part(number)) == receipt.sha256 else None
        except FileNotFoundError:
            return None

    def write(self, number: int, receipt: Receipt, fill: Callable[[BinaryIO], object]) -> Receipt:
        """Write a part, and then its receipt.

        Parameters
        ----------
        number
            Which part, counted from 0.
        receipt
            What it answers; the checksum is filled in here.
        fill
            Writes the content of the part to a stream.

        Returns
        -------
        Receipt
            The receipt with the checksum.

        Raises
        ------
        WriteError
            If there is no room, or the folder cannot be written to.
        """
        with writing(self.path):
            with replacing(self.part(number)) as stream:
                fill(stream)
            receipt = replace(receipt, sha256=checksum(self.part(number)))
            self._put(self._receipt(number), receipt.to_json())
        return receipt

    def finish(self, job: Mapping[str, Any], n_parts: int) -> list[Path]:
        """Mark the folder as complete, without what it holds beyond its parts.

        Parameters
        ----------
        job
            As in :meth:`open`.
        n_parts
            How many parts there are.

        Returns
        -------
        list of Path
            The parts in order.
        """
        kept = {name for at in range(n_parts) for name in (self.part(at).name, self._receipt(at))}
        with writing(self.path):
            self._remove(kept)
            self._put(MANIFEST, Manifest(job, n_parts).to_json())
        return [self.part(number) for number in range(n_parts)]

    def remove(self) -> None:
        """Remove the folder and all that this module put there, and nothing else."""
        with writing(self.path):
            # First, since a folder without a manifest is no run to go on with.
            (self.path / MANIFEST).unlink(missing_ok=True)
            self._remove(set())
            if not any(self.path.iterdir()):
                self.path.rmdir()

    def part(self, number: int) -> Path:
        """The file of a part."""
        return self.path / f"part-{number:06d}{self.suffix}"

    def _receipt(self, number: int) -> str:
        return f"_part-{number:06d}.json"

    def _put(self, name: str, content: bytes) -> None:
        with replacing(self.path / name) as stream:
            stream.write(content)

    def _remove(self, kept: set[str]) -> None:
        for file in self.path.iterdir():
            if OURS.fullmatch(file.name) and file.name not in kept:
                file.unlink(missing_ok=True)


def read_manifest(path: Path) -> Manifest | None:
    """The manifest of a folder of parts; None if there is none.

    Raises
    ------
    ReadError
        If it cannot be read.
    """
    try:
        return Manifest.from_json((path / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None


def checksum(path: str | Path) -> str:
    """The SHA-256 checksum of a file, read piece by piece.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
