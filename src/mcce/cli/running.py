"""A run of ``mcce explain``: from the request to the summary.

Always true: nothing is computed before input, output and settings are checked; the output appears
whole and under its name at the end alone; until then its parts stand in a folder beside it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..constraints.files import read_constraints
from ..counterfactuals import Counterfactuals
from ..errors import McceWarning, ParameterError, shorten
from ..execution.manifest import Manifest
from ..execution.parts import PartsFolder, alone, checksum, read_manifest
from ..execution.progress import Progress
from ..execution.replacing import replacing, writing
from ..explainer import MCCE
from ..files.answers import Layout
from ..files.formats import STANDARD, Format, find_format, require_pyarrow
from ..files.people import PeopleReader
from ..files.run import UNSTABLE, BlockRun, Done
from ..files.sources import Source, estimate_rows, iterate, open_source, reading
from ..files.writing import SUFFIXES, join_parts, stream_tables
from ..loading import load
from ..version import __version__
from .options import check_output, read_dtypes, read_key, split_names
from .predictors import PredictorChoice
from .terminal import PeopleBar, printable, say, show_json, without_prints, wrap

BLOCK_ROWS = 5000


@dataclass(frozen=True)
class ExplainerFile:
    """An explainer and how it is used, as the user said; see the options of ``mcce explain``."""

    path: str
    predictor: PredictorChoice
    rules: str | None = None
    n_counterfactuals: int | None = None
    tolerance: float = 1e-9
    jobs: int | None = None
    key_file: str | None = None

    @property
    def files(self) -> list[str | None]:
        """What is read for it, by name; None where nothing is."""
        return [self.path, self.predictor.name, self.rules, self.key_file]

    def load(self) -> MCCE:
        """The explainer with its predictor."""
        key = read_key(self.key_file)
        with without_prints():
            explainer = load(self.path, self.predictor.load(), tolerance=self.tolerance, key=key)
        if self.n_counterfactuals is not None:
            explainer.set_params(n_counterfactuals=self.n_counterfactuals)
        # A limit of time per block would make answers depend on blocks and the machine.
        return explainer.set_params(n_jobs=self.jobs, max_seconds=None, verbose=False)

    def read_rules(self) -> Any:
        """The further constraints; None without any."""
        return None if self.rules is None else read_constraints(self.rules)


@dataclass(frozen=True)
class PeopleFile:
    """The people, as the user named them; see the options of ``mcce explain``."""

    path: str
    format: str | None = None
    delimiter: str = ","
    dtypes: Sequence[str] | None = None
    keep: Sequence[str] | None = None


@dataclass(frozen=True)
class AnswersFile:
    """The output, as the user named it; see the options of ``mcce explain``."""

    path: str
    format: str | None = None
    prefix: str = ""
    resume: bool = False
    overwrite: bool = False


@dataclass(frozen=True)
class Request:
    """What the user asked for; see the options of ``mcce explain``."""

    explainer: ExplainerFile
    people: PeopleFile
    answers: AnswersFile
    block_rows: int | None = None
    as_json: bool = False
    quiet: bool = False


@dataclass(frozen=True)
class Target:
    """Where the output goes.

    Parameters
    ----------
    file
        The file that is asked for; None for a folder of parts or standard output.
    folder
        Where the parts are; None for standard output.
    format
        The format.
    """

    file: Path | None
    folder: Path | None
    format: Format

    @classmethod
    def find(cls, output: str, format_: str | None) -> Target:
        """The target that the user named."""
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


def run(request: Request) -> None:
    """Explain the people of a file.

    Parameters
    ----------
    request
        What the user asked for.

    Raises
    ------
    McceError
        If something cannot be read, computed or written; parts that were written stay.
    """
    target = Target.find(request.answers.path, request.answers.format)
    if target.format in ("parquet", "arrow"):
        require_pyarrow(request.answers.path)
    kind = find_format(request.people.path, request.people.format)
    check_output(request.answers.path, [request.people.path, *request.explainer.files])
    if _nothing_to_do(request.answers, target):
        return
    explainer = request.explainer.load()
    with open_source(request.people.path, kind, request.people.delimiter) as source:
        reader = PeopleReader.plan(
            request.people.path,
            source,
            explainer.fitted_.schema,
            keep=split_names(request.people.keep, source.names) or (),
            dtypes=read_dtypes(request.people.dtypes),
        )
        if reader.ignored and not request.quiet:
            say(wrap(f"mcce: columns that are not used: {shorten(list(reader.ignored), 300)}."))
        n_people = estimate_rows(request.people.path, kind)
        with without_warnings(), PeopleBar(n_people, wanted=not request.quiet) as bar:
            work = _plan(request, explainer, reader, bar)
            totals = _write(request, target, work, source, bar)
    _summarize(request, totals, bar)


def _nothing_to_do(answers: AnswersFile, target: Target) -> bool:
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


def explain_people(
    explainer: MCCE, rows: pd.DataFrame, rules: Any, bar: PeopleBar
) -> Counterfactuals[pd.DataFrame]:
    """The answers to some people, with progress."""

    def show(progress: Progress) -> None:
        # People who need no answer are settled at once.
        bar.show(bar.done + len(rows) - progress.n_factuals + progress.n_settled)

    with without_prints():
        result = explainer.explain(rows, constraints=rules, callback=show)
    bar.done += len(rows)
    bar.show(bar.done)
    return result.to_pandas()


def _plan(request: Request, explainer: MCCE, reader: PeopleReader, bar: PeopleBar) -> BlockRun:
    """How blocks are answered, after a trial with nobody."""
    rules = request.explainer.read_rules()

    def explain(rows: pd.DataFrame) -> Counterfactuals[pd.DataFrame]:
        return explain_people(explainer, rows, rules, bar)

    return BlockRun(
        explain, reader, Layout.plan(reader, explain(reader.empty()), request.answers.prefix)
    )


def _write(
    request: Request, target: Target, work: BlockRun, source: Source, bar: PeopleBar
) -> Counter[str]:
    """Write the output, and count what became of people."""
    if request.block_rows is not None and request.block_rows < 1:
        raise ParameterError(f"--block-rows must be at least 1, got {request.block_rows}.")
    if target.folder is None:
        block_rows = request.block_rows or BLOCK_ROWS
        blocks = iterate(request.people.path, source, work.reader.columns, block_rows)
        return _stream(work, blocks, target.format)
    with alone(target.folder):
        # Another run may have ended since this one began.
        if _nothing_to_do(request.answers, target):
            return Counter()
        return _write_parts(request, target, target.folder, work, source, bar)


def _write_parts(
    request: Request, target: Target, path: Path, work: BlockRun, source: Source, bar: PeopleBar
) -> Counter[str]:
    """Write the parts, and the file if one is asked for."""
    if request.answers.overwrite and not (
        request.answers.resume and target.is_unfinished(read_manifest(path))
    ):
        PartsFolder(path, "").clear()
    block_rows = request.block_rows or _block_rows(read_manifest(path))
    blocks = iterate(request.people.path, source, work.reader.columns, block_rows)
    job = _job(request, target, work, block_rows)
    folder = PartsFolder.open(path, job, SUFFIXES[target.format])
    totals: Counter[str] = Counter()
    n_parts = 0
    with _resumable(request, totals):
        for done in work.write_parts(blocks, folder, target.format):
            _count(totals, done, bar)
            n_parts += 1
    parts = folder.finish(job, n_parts)
    if target.file is not None:
        with writing(target.file), replacing(target.file, folder.path) as stream:
            join_parts(parts, target.format, stream)
        folder.remove()
    return totals


def _block_rows(manifest: Manifest | None) -> int:
    """People per block, as in the run to go on with."""
    found = None if manifest is None else manifest.job.get("block_rows")
    return found if isinstance(found, int) and found > 0 else BLOCK_ROWS


def _stream(work: BlockRun, blocks: Iterator[Any], format_: Format) -> Counter[str]:
    """Answers on standard output, as they come."""
    totals: Counter[str] = Counter()

    def tables() -> Iterator[pd.DataFrame]:
        some = False
        for block in blocks:
            table, counts = work.answer(block)
            totals.update(counts)
            some = True
            yield table
        if not some:
            yield work.nobody()[1]

    with writing(Path("standard output")):
        stream_tables(tables(), format_, sys.stdout.buffer)
    return totals


def _count(totals: Counter[str], done: Done, bar: PeopleBar) -> None:
    totals.update(done.counts)
    if done.reused:
        bar.done += done.n_rows
        bar.reuse(bar.done)


@contextmanager
def _resumable(request: Request, totals: Counter[str]) -> Iterator[None]:
    """Add to any error how many people are answered, and how to go on."""
    try:
        yield
    except BaseException as error:
        n_people = sum(totals.values()) - totals[UNSTABLE]
        if isinstance(error, KeyboardInterrupt):
            error.add_note("interrupted.")
        error.add_note(
            f"The answers to the first {n_people} people are complete; the same command with "
            "--resume goes on from there."
        )
        raise


@contextmanager
def without_warnings() -> Iterator[None]:
    """Hide the warnings that the output says better: who has no answer, and why."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        yield


def _job(request: Request, target: Target, work: BlockRun, block_rows: int) -> dict[str, Any]:
    """Everything that decides the output, but for the people themselves."""
    explainer = request.explainer
    return {
        "mcce": __version__,
        "explainer": read_checksum(explainer.path),
        "predictor": explainer.predictor.fingerprint(),
        "rules": None if explainer.rules is None else read_checksum(explainer.rules),
        "n_counterfactuals": explainer.n_counterfactuals,
        "columns": {name: str(dtype) for name, dtype in work.layout.dtypes.items()},
        "dtypes": read_dtypes(request.people.dtypes),
        "format": target.format,
        "block_rows": block_rows,
    }


def read_checksum(path: str) -> str:
    """The checksum of a file that the user named; what goes wrong is a ReadError."""
    with reading(path):
        return checksum(path)


def _summarize(request: Request, totals: Counter[str], bar: PeopleBar) -> None:
    n_unstable = totals.pop(UNSTABLE, 0)
    n_people, seconds = sum(totals.values()), bar.seconds
    if request.as_json:
        show_json(
            {
                "output": request.answers.path,
                "n_people": n_people,
                "status": dict(totals),
                "n_unstable": n_unstable,
                "seconds": round(seconds, 3),
            },
            sys.stderr if request.answers.path == STANDARD else None,
        )
        return
    if request.quiet:
        return
    listed = ", ".join(f"{count:,} {status}" for status, count in sorted(totals.items()))
    text = f"mcce: {n_people:,} people in {seconds:.1f} s: {listed or 'nobody'}."
    if n_unstable:
        text += f" The predictor is unstable: {n_unstable} answers were withdrawn."
    if request.answers.path != STANDARD:
        text += f" Answers, and reasons where there is none: {printable(request.answers.path)}"
    say(wrap(text))
