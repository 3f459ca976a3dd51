"""Where answers go: one file, a folder of parts or standard output; and what is said at the end.

Always true: output that is there is never lost without being asked for; a file appears whole and
under its name at the end alone, and until then its parts stand in a folder beside it.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ParameterError, shorten
from ..files.answer_tables import join_parts
from ..files.parts import UNSTABLE, Manifest, Number, PartsFolder, Receipt, read_manifest
from ..files.sources import STANDARD, Format, find_format, reading, require_pyarrow
from ..runtime.replacing import replacing, writing
from .terminal import printable, say, show_json, wrap


@dataclass(frozen=True)
class AnswersFile:
    """The output, as the user named it; see the options of ``mcce explain``."""

    path: str
    format: str | None = None
    prefix: str = ""
    resume: bool = False
    overwrite: bool = False


@dataclass(frozen=True)
class Target:
    """Where the output goes."""

    file: Path | None
    folder: Path | None
    format: Format

    @classmethod
    def find(cls, output: str, format_: str | None) -> Target:
        """The target that the user named."""
        target = cls._named(output, format_)
        if target.format in ("parquet", "arrow"):
            require_pyarrow(output)
        return target

    @classmethod
    def _named(cls, output: str, format_: str | None) -> Target:
        if output == STANDARD:
            return cls(None, None, find_format(output, format_, option="--output-format"))
        if output.lower().endswith(".gz"):
            raise ParameterError(
                f"Output is not compressed, got -o {shorten(output, 200)}. Leave out .gz, or write "
                "to standard output and send that through gzip."
            )
        path = Path(output)
        if output.endswith(("/", "\\")) or path.is_dir():
            return cls(
                None, path, find_format("answers.parquet", format_, option="--output-format")
            )
        found = find_format(output, format_, option="--output-format")
        # Beside the file that a link leads to: files move only within a file system.
        path = Path(os.path.realpath(path))
        return cls(path, path.with_name(f"{path.name}.parts"), found)

    def is_unfinished(self, manifest: Manifest | None) -> bool:
        """Whether the folder of parts, with this manifest, is that of a run to go on with."""
        return manifest is not None and (self.file is not None or manifest.n_parts is None)


def nothing_to_do(answers: AnswersFile, target: Target) -> bool:
    """Whether a run that would go on has ended; raises if output would be lost."""
    if target.folder is None:
        if answers.resume:
            raise ParameterError("Standard output cannot be resumed. Name a file with -o.")
        return False
    if answers.overwrite and not answers.resume:
        return False
    with reading(str(target.folder)):
        manifest = read_manifest(target.folder)
        if target.file is None:
            ended = manifest is not None and not target.is_unfinished(manifest)
        else:
            ended = manifest is None and target.file.exists()
    if answers.overwrite:
        return False
    if answers.resume:
        if ended:
            say(wrap(f"mcce: {printable(answers.path)} is there; no run is left to resume."))
        return ended
    if ended:
        raise ParameterError(
            f"{shorten(answers.path, 200)} exists already. Replace it with --overwrite, or name "
            "another output."
        )
    if manifest is not None:
        raise ParameterError(
            f"There is an unfinished run in {shorten(target.folder, 200)}. Go on with --resume, or "
            "begin anew with --overwrite."
        )
    return False


def earlier_manifest(answers: AnswersFile, target: Target, path: Path) -> Manifest | None:
    """The manifest of the run to go on with; what another one left is removed if that is asked."""
    if answers.overwrite and not (answers.resume and target.is_unfinished(read_manifest(path))):
        PartsFolder(path, "").clear()
    return read_manifest(path)


def choose_block_rows(given: int | None, manifest: Manifest | None, default: int) -> int:
    """People per block: as the user says, as in the run to go on with, or the default."""
    if given is not None:
        return given
    found = None if manifest is None else manifest.job.get("block_rows")
    return found if isinstance(found, int) and found > 0 else default


def check_block_rows(given: int | None) -> None:
    """Raise if people cannot be cut into such blocks."""
    if given is not None and given < 1:
        raise ParameterError(f"--block-rows must be at least 1, got {given}.")


def open_folder(target: Target, path: Path, job: Mapping[str, Any]) -> PartsFolder:
    """The folder of parts of a run, a new one or that of an unfinished run of the same job."""
    return PartsFolder.open(path, job, f".{target.format}")


def finish(target: Target, folder: PartsFolder, receipts: Mapping[Number, Receipt]) -> None:
    """End a run: the parts stay as a folder, or become the file that is asked for."""
    parts = folder.finish(receipts)
    if target.file is not None:
        with writing(target.file), replacing(target.file, folder.path) as stream:
            join_parts(parts, target.format, stream)
        folder.remove()


@contextmanager
def resumable(complete: Callable[[], str]) -> Iterator[None]:
    """Add to any error what is complete, and how to go on."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            error.add_note("interrupted.")
        error.add_note(f"{complete()}; the same command with --resume goes on from there.")
        raise


def count_people(totals: Counter[str]) -> int:
    """How many people are counted by status."""
    return sum(totals.values()) - totals[UNSTABLE]


@dataclass(frozen=True)
class Summary:
    """What is said at the end of a run."""

    output: str
    totals: Counter[str]
    seconds: float
    more: Mapping[str, Any] = field(default_factory=dict)
    said: str = ""

    def show(self, *, as_json: bool, quiet: bool) -> None:
        """Print it."""
        people = {name: count for name, count in self.totals.items() if name != UNSTABLE}
        n_people, n_unstable = count_people(self.totals), self.totals[UNSTABLE]
        if as_json:
            content = {"output": self.output, "n_people": n_people, "status": people}
            content |= {"n_unstable": n_unstable, "seconds": round(self.seconds, 3), **self.more}
            show_json(content, sys.stderr if self.output == STANDARD else None)
            return
        if quiet:
            return
        listed = ", ".join(f"{count:,} {status}" for status, count in sorted(people.items()))
        text = f"mcce: {n_people:,} people in {self.seconds:.1f} s: {listed or 'nobody'}."
        if n_unstable:
            text += f" The predictor is unstable: {n_unstable} answers were withdrawn."
        text += self.said
        if self.output != STANDARD:
            text += f" Answers, and reasons where there is none: {printable(self.output)}"
        say(wrap(text))
