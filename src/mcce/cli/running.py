"""A run of ``mcce explain``: from the request to the summary.

One file is answered in this process, block by block. Several files, a folder or an engine share the
work among processes; then partitions that failed are listed, and the others are complete.

Always true: nothing is computed before input, output and settings are checked; what is written does
not depend on the engine or the number of workers; existing output is never lost unless the user
asks for it; a file appears whole and under its name at the end alone, and until then its parts
stand in a folder beside it.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from ..constraints.files import read_constraints
from ..counterfactuals import Counterfactuals
from ..errors import McceError, ParameterError, ReadError, SchemaError, shorten
from ..execution.workers import (
    PARTITION_ROWS,
    Failure,
    FilesTask,
    Outcome,
    PackedExplainer,
    Reading,
    explain_units,
    find_executor,
)
from ..explainer import MCCE, load
from ..files.answer_tables import Layout, join_parts, stream_tables
from ..files.parts import (
    FAILURES,
    UNSTABLE,
    Answered,
    BlockRun,
    Manifest,
    Number,
    PartsFolder,
    Receipt,
    alone,
    checksum,
    read_manifest,
)
from ..files.people import PeopleReader
from ..files.sources import (
    STANDARD,
    Format,
    RawBlock,
    Source,
    estimate_rows,
    find_format,
    iterate,
    open_source,
    reading,
    require_pyarrow,
)
from ..files.units import FileOfPeople, Unit, find_files, is_single, look_into, names_checksum
from ..privacy import anonymize
from ..runtime.progress import Progress, without_prints, without_warnings
from ..runtime.replacing import replacing, writing
from ..tables.schema import Schema
from ..version import __version__
from .anonymity import AnonymityChoice
from .options import check_output, read_dtypes, read_key, split_names
from .predictors import PredictorChoice, PredictorLoader
from .terminal import PeopleBar, can_draw, printable, say, show_json, wrap

BLOCK_ROWS = 5000
# Failures that are shown as they happen; a file lists all in the end.
MOST_SHOWN = 5


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

    def job(self, format_: Format, layout: Layout, block_rows: int) -> dict[str, Any]:
        """Everything that decides the output, but for the people and how they are read."""
        return {
            "mcce": __version__,
            "explainer": read_checksum(self.path),
            "predictor": self.predictor.fingerprint(),
            "rules": None if self.rules is None else read_checksum(self.rules),
            "n_counterfactuals": self.n_counterfactuals,
            "columns": {name: str(dtype) for name, dtype in layout.dtypes.items()},
            "format": format_,
            "block_rows": block_rows,
        }


@dataclass(frozen=True)
class PeopleFile:
    """The people, as the user named them; see the options of ``mcce explain``."""

    path: str
    format: str | None = None
    delimiter: str = ","
    dtypes: Sequence[str] | None = None
    keep: Sequence[str] | None = None
    key: Sequence[str] | None = None

    def open(self) -> AbstractContextManager[Source]:
        """The table of people."""
        return open_source(self.path, find_format(self.path, self.format), self.delimiter)

    def reader(self, source: Source, schema: Schema, keep: Sequence[str] = ()) -> PeopleReader:
        """How the people are read, with columns to copy."""
        dtypes = read_dtypes(self.dtypes)
        return PeopleReader.plan(self.path, source, schema, keep=keep, dtypes=dtypes)

    def blocks(self, source: Source, reader: PeopleReader, n_rows: int) -> Iterator[RawBlock]:
        """The rows, some at a time."""
        return iterate(self.path, source, reader.columns, n_rows)

    def kept(self, known: Collection[str]) -> list[str]:
        """The columns to copy, those of the key first."""
        names = [split_names(texts, known) or [] for texts in (self.key, self.keep)]
        return list(dict.fromkeys(chain.from_iterable(names)))

    def job(self, formats: Collection[Format]) -> dict[str, Any]:
        """What decides how people are read, in files of these formats."""
        return {
            "dtypes": read_dtypes(self.dtypes),
            "delimiter": self.delimiter,
            "input_formats": sorted(set(formats)),
        }


@dataclass(frozen=True)
class AnswersFile:
    """The output, as the user named it; see the options of ``mcce explain``."""

    path: str
    format: str | None = None
    prefix: str = ""
    resume: bool = False
    overwrite: bool = False


@dataclass(frozen=True)
class Sharing:
    """Which files there are, and who shares the work; see the options of ``mcce explain``."""

    names: Sequence[str]
    engine: str | None = None
    workers: int | None = None

    @property
    def wanted(self) -> bool:
        """Whether processes share the work: if the user says so, or people are not in one file."""
        if self.engine is not None or self.workers is not None or len(self.names) > 1:
            return True
        return not is_single(self.names[0])


@dataclass(frozen=True)
class Request:
    """What the user asked for; see the options of ``mcce explain``."""

    explainer: ExplainerFile
    people: PeopleFile
    answers: AnswersFile
    sharing: Sharing
    block_rows: int | None = None
    as_json: bool = False
    quiet: bool = False
    debug: bool = False
    anonymity: AnonymityChoice = field(default_factory=AnonymityChoice)


def run(request: Request) -> None:
    """Explain people, in this process or shared among several."""
    target = Destination.find(request.answers.path, request.answers.format)
    if request.block_rows is not None and request.block_rows < 1:
        raise ParameterError(f"--block-rows must be at least 1, got {request.block_rows}.")
    request.anonymity.check()
    if request.sharing.wanted:
        _run_shared(request, target)
    else:
        _run_here(request, target)


def explain_people(
    explainer: MCCE,
    rows: pd.DataFrame,
    rules: Any,
    bar: PeopleBar,
    anonymity: Mapping[str, Any] | None = None,
) -> Counterfactuals[pd.DataFrame]:
    """The answers to some people, with progress; ``anonymity`` are arguments of ``anonymize``."""

    def show(progress: Progress) -> None:
        # People who need no answer are settled at once.
        bar.show(bar.done + len(rows) - progress.n_factuals + progress.n_settled)

    with without_prints():
        result = explainer.explain(rows, constraints=rules, callback=show)
        if anonymity:
            result = anonymize(explainer, result, constraints=rules, **anonymity)
    bar.done += len(rows)
    bar.show(bar.done)
    return result.to_pandas()


def read_checksum(path: str) -> str:
    """The checksum of a file that the user named; what goes wrong is a ReadError."""
    with reading(path):
        return checksum(path)


def _run_here(request: Request, target: Destination) -> None:
    """Explain the people of one file in this process."""
    people = request.people
    kind = find_format(people.path, people.format)
    read = [people.path, request.anonymity.training, *request.explainer.files]
    check_output(request.answers.path, read)
    if _nothing_to_do(request.answers, target):
        return
    explainer = request.explainer.load()
    with people.open() as source:
        reader = people.reader(source, explainer.schema_, people.kept(source.names))
        if not request.quiet:
            _say_ignored(reader)
        n_people = estimate_rows(people.path, kind)
        with without_warnings(), PeopleBar(n_people, wanted=not request.quiet) as bar:
            work = _plan_blocks(request, explainer, reader, bar)
            if target.folder is None:
                blocks = people.blocks(source, reader, request.block_rows or BLOCK_ROWS)
                totals = _stream(work, blocks, target.format)
            else:
                with alone(target.folder):
                    # Another run may have ended since this one began.
                    if _nothing_to_do(request.answers, target):
                        return
                    totals = _write_parts(request, target, target.folder, work, source, bar)
    summary = Summary(request.answers.path, totals, bar.seconds)
    summary.show(as_json=request.as_json, quiet=request.quiet)


def _say_ignored(reader: PeopleReader) -> None:
    """Say which columns are not used."""
    if reader.ignored:
        say(wrap(f"mcce: columns that are not used: {shorten(list(reader.ignored), 300)}."))


def _plan_blocks(
    request: Request, explainer: MCCE, reader: PeopleReader, bar: PeopleBar
) -> BlockRun:
    """How blocks are answered, after a trial with nobody."""
    rules, people = request.explainer.read_rules(), request.people
    anonymity = request.anonymity.arguments(explainer.schema_, people.delimiter, people.dtypes)

    def explain(rows: pd.DataFrame) -> Counterfactuals[pd.DataFrame]:
        return explain_people(explainer, rows, rules, bar, anonymity)

    nobody, numbered = explain(reader.empty()), not people.key
    layout = Layout.plan(reader, nobody, request.answers.prefix, numbered=numbered)
    return BlockRun(explain, reader, layout)


def _stream(work: BlockRun, blocks: Iterator[RawBlock], format_: Format) -> Counter[str]:
    """Answers on standard output, as they come."""
    answered = Answered(work, blocks)
    with writing(Path("standard output")):
        stream_tables(answered, format_, sys.stdout.buffer)
    return answered.counts


def _write_parts(
    request: Request,
    target: Destination,
    path: Path,
    work: BlockRun,
    source: Source,
    bar: PeopleBar,
) -> Counter[str]:
    """Write the parts, and the file if one is asked for."""
    people = request.people
    job = request.anonymity.job() | people.job([find_format(people.path, people.format)])
    block_rows, folder = _open_folder(request, target, path, work.layout, BLOCK_ROWS, job)
    blocks = people.blocks(source, work.reader, block_rows)
    totals: Counter[str] = Counter()
    receipts: dict[Number, Receipt] = {}
    with _resumable(lambda: f"The answers to the first {_count(totals)} people are complete"):
        for number, done in enumerate(work.write_parts(blocks, folder, target.format)):
            receipts[number] = done.receipt
            totals.update(done.receipt.counts)
            if done.reused:
                bar.done += done.receipt.n_rows
                bar.reuse(bar.done)
    _finish(target, folder, receipts)
    return totals


def _run_shared(request: Request, target: Destination) -> None:
    """Explain the people of files on several processes."""
    executor = find_executor(request.sharing.engine or "local", request.sharing.workers)
    paths = _check_shared(request)
    if _nothing_to_do(request.answers, target):
        return
    explainer, rules = request.explainer.load(), request.explainer.read_rules()
    files = look_into(paths, request.people.format, request.people.delimiter)
    with without_warnings():
        reading_, layout = _plan_files(request, explainer, rules, files)
    assert target.folder is not None
    with alone(target.folder):
        # Another run may have ended since this one began.
        if _nothing_to_do(request.answers, target):
            return
        # Neither the rows of a partition nor the job depend on who does the work.
        job = request.people.job([file.format for file in files])
        job["people"] = {"n_files": len(files), "sha256": names_checksum(files)}
        path = target.folder.resolve()
        block_rows, folder = _open_folder(request, target, path, layout, PARTITION_ROWS, job)
        units = [unit for at, file in enumerate(files) for unit in file.units(at, block_rows)]
        predictor = request.explainer.predictor.shared_by(request.sharing.workers or 1)
        load_predictor = PredictorLoader.here(predictor)
        packed = PackedExplainer.pack(
            explainer, load_predictor, tolerance=request.explainer.tolerance
        )
        task = FilesTask(packed, reading_, layout, folder, target.format, block_rows, rules)
        with PeopleBar(_count_rows(request, files), wanted=not request.quiet) as bar:
            tally = _Tally(len(units), bar, silent=request.as_json, debug=request.debug)
            with _resumable(tally.say):
                for outcome in explain_units(executor, task, units):
                    tally.add(outcome)
        if not tally.failed:
            _finish(target, folder, {unit.number: tally.receipts[unit.number] for unit in units})
        _conclude(request, tally, folder)


def _check_shared(request: Request) -> list[str]:
    """The files, if they and the settings go together."""
    if list(request.sharing.names) == [STANDARD]:
        raise ParameterError(
            "Standard input is one stream and cannot be shared among workers. Name files, or leave "
            "out --engine and --workers."
        )
    paths = find_files(request.sharing.names)
    for path in paths:
        find_format(path, request.people.format)
    if request.answers.path == STANDARD:
        raise ParameterError(
            "Workers write files, not standard output. Name a file or a folder with -o, or leave "
            "out --engine, --workers and other files."
        )
    if request.anonymity.k is not None:
        raise ParameterError(
            "--anonymity counts training people in one process. Name one file of people, and leave "
            "out --engine and --workers."
        )
    if request.explainer.jobs is not None:
        raise ParameterError("--jobs is for one process. Say --workers, the number of processes.")
    predictor, workers = request.explainer.predictor, request.sharing.workers
    if (predictor.rows_per_second, predictor.in_flight) != (None, None) and workers is None:
        raise ParameterError(
            "--rows-per-second and --in-flight are split among all workers. Say how many there are "
            "with --workers; of a cluster that runs already, at least as many processes as it has."
        )
    predictor.shared_by(workers or 1)
    if len(paths) > 1 and not request.people.key:
        raise ParameterError(
            f"There are {len(paths)} files, so that the number of a row does not identify a "
            "person. Name the columns that do, such as --key customer."
        )
    check_output(request.answers.path, [*paths, *request.explainer.files])
    return paths


def _plan_files(
    request: Request, explainer: MCCE, rules: Any, files: Sequence[FileOfPeople]
) -> tuple[Reading, Layout]:
    """How people are read and answers are written in all files alike."""
    people = request.people
    keep = people.kept({name for file in files for name in file.names})
    whole = frozenset(name for name in keep if all(file.holds_whole(name) for file in files))
    reading_ = Reading(tuple(keep), whole, read_dtypes(people.dtypes), people.delimiter)
    reader = _first_reader(explainer, reading_, files)
    if not request.quiet:
        _say_ignored(reader)
    nobody = explainer.explain(reader.empty(), constraints=rules)
    numbered = not people.key
    return reading_, Layout.plan(reader, nobody, request.answers.prefix, numbered=numbered)


def _first_reader(
    explainer: MCCE, reading_: Reading, files: Sequence[FileOfPeople]
) -> PeopleReader:
    """How the first readable file is read; if there is none, raise the error of the first."""
    failure: McceError | None = None
    for file in files:
        try:
            if file.error is not None:
                raise file.error
            return reading_.plan(file.path, file, explainer.schema_)
        except (ReadError, SchemaError) as error:
            failure = failure or error
    assert failure is not None
    raise failure


def _count_rows(request: Request, files: Sequence[FileOfPeople]) -> int | None:
    """About how many people there are, for the bar; None if that is not quickly known."""
    if request.quiet or not can_draw():
        return None
    readable = [file for file in files if file.error is None]
    sizes = [
        estimate_rows(file.path, file.format) if file.sizes is None else sum(file.sizes)
        for file in readable
    ]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


@dataclass
class _Tally:
    """What became of partitions so far."""

    n_units: int
    bar: PeopleBar
    silent: bool = False
    debug: bool = False
    n_shown: int = 0
    receipts: dict[Number, Receipt] = field(default_factory=dict)
    n_reused: int = 0
    totals: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[Unit, Failure]] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count a partition, and say so if it failed."""
        if outcome.failure is not None:
            self._show(outcome.unit, outcome.failure, again=outcome.again)
            self.failed += [] if outcome.again else [(outcome.unit, outcome.failure)]
        if outcome.done is None:
            return
        receipt = outcome.done.receipt
        self.receipts[outcome.unit.number] = receipt
        self.totals.update(receipt.counts)
        self.bar.done += receipt.n_rows
        self.n_reused += outcome.done.reused
        # What an earlier run has written comes first, and does not count for the rate.
        (self.bar.reuse if self.n_reused == len(self.receipts) else self.bar.show)(self.bar.done)

    def _show(self, unit: Unit, failure: Failure, *, again: bool) -> None:
        """Say what failed, as long as that is not said too often."""
        self.n_shown += 1
        if self.silent or self.n_shown > MOST_SHOWN + 1:
            return
        what = "failed, to be tried again" if again else "failed"
        said = f"{what}: {unit.shown}: {printable(failure.reason)}"
        more = "further failures are not shown; those that last are listed at the end."
        if self.debug and self.n_shown <= MOST_SHOWN:
            self.bar.say(printable(failure.traceback, lines=True).rstrip())
        self.bar.say(wrap(f"mcce: {said if self.n_shown <= MOST_SHOWN else more}"))

    def say(self) -> str:
        """How many are complete."""
        done = f"{len(self.receipts)} of {self.n_units} partitions are complete"
        return f"{done}, the answers to {_count(self.totals):,} people"


def _conclude(request: Request, tally: _Tally, folder: PartsFolder) -> None:
    """Say what became of everybody; raise if partitions failed."""
    failed = sorted(tally.failed, key=lambda one: one[0].number)
    listed = [_report(unit, failure) for unit, failure in failed]
    said = f" {tally.n_units} partitions"
    said += f", {tally.n_reused} of them from an earlier run." if tally.n_reused else "."
    more = {"n_partitions": tally.n_units, "n_reused": tally.n_reused, "failed": listed}
    summary = Summary(request.answers.path, tally.totals, tally.bar.seconds, more, said)
    if not failed or request.as_json:
        summary.show(as_json=request.as_json, quiet=request.quiet)
    if not failed:
        return
    folder.list_failures(listed)
    _, first = failed[0]
    raise first.kind(
        f"{len(failed)} of {tally.n_units} partitions failed; "
        f"{shorten(folder.path / FAILURES, 200)} lists them. The others are complete. The same "
        "command with --resume tries those that failed again."
    )


def _report(unit: Unit, failure: Failure) -> dict[str, Any]:
    """A failure, for machines."""
    rows = {"path": unit.path, "first": unit.first, "n_rows": unit.n_rows}
    return rows | {"kind": failure.kind.__name__, "reason": failure.reason}


@dataclass(frozen=True)
class Destination:
    """Where the output goes."""

    file: Path | None
    folder: Path | None
    format: Format

    @classmethod
    def find(cls, output: str, format_: str | None) -> Destination:
        """The target that the user named."""
        target = cls._named(output, format_)
        if target.format in ("parquet", "arrow"):
            require_pyarrow(output)
        return target

    @classmethod
    def _named(cls, output: str, format_: str | None) -> Destination:
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


def _nothing_to_do(answers: AnswersFile, target: Destination) -> bool:
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


def _open_folder(
    request: Request,
    target: Destination,
    path: Path,
    layout: Layout,
    default_rows: int,
    more: dict[str, Any],
) -> tuple[int, PartsFolder]:
    """People per block, and the folder of parts: a new one, or that of an unfinished run.

    People per block are as the user says, as in the unfinished run, or the default.
    """
    answers = request.answers
    if answers.overwrite and not (answers.resume and target.is_unfinished(read_manifest(path))):
        PartsFolder(path, "").clear()
    manifest = read_manifest(path)
    found = None if manifest is None else manifest.job.get("block_rows")
    known = found if isinstance(found, int) and found > 0 else default_rows
    block_rows = known if request.block_rows is None else request.block_rows
    job = request.explainer.job(target.format, layout, block_rows) | more
    return block_rows, PartsFolder.open(path, job, f".{target.format}")


def _finish(target: Destination, folder: PartsFolder, receipts: Mapping[Number, Receipt]) -> None:
    """End a run: the parts stay as a folder, or become the file that is asked for."""
    parts = folder.finish(receipts)
    if target.file is not None:
        with writing(target.file), replacing(target.file, folder.path) as stream:
            join_parts(parts, target.format, stream)
        folder.remove()


@contextmanager
def _resumable(complete: Callable[[], str]) -> Iterator[None]:
    """Add to any error what is complete, and how to go on."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            error.add_note("interrupted.")
        error.add_note(f"{complete()}; the same command with --resume goes on from there.")
        raise


def _count(totals: Counter[str]) -> int:
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
        n_people, n_unstable = _count(self.totals), self.totals[UNSTABLE]
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
