"""``mcce explain``: answers to people in files, block by block, into a file or a folder.

One file is answered in this process; several files, a folder or an engine share the work among
processes. Either way a :class:`~mcce.files.runs.Run` makes parts of blocks. Alone, the first error
ends the run; shared, partitions that failed are listed, and the others are complete.

Always true: nothing is computed before input, output and settings are checked; what is written does
not depend on the engine or the number of workers; existing output is never lost unless the user
wants that (:mod:`.output`).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import McceError, ParameterError, ReadError, SchemaError, shorten
from ..execution.pools import OpenPool, find_engine
from ..execution.workers import (
    PARTITION_ROWS,
    AnswerSettings,
    Failure,
    FilesTask,
    Outcome,
    PackedExplainer,
    ReadPlan,
    Task,
    explain_partitions,
    score,
)
from ..explainer import MCCE
from ..files.answer_tables import Layout, stream_tables
from ..files.partitions import Partition, PeopleFile, find_files, is_single, scan_files
from ..files.parts_folder import FAILURES, Number, PartRecord, PartsFolder, locked_folder
from ..files.people_reader import PeopleReader
from ..files.runs import UNSTABLE, Run
from ..files.sources import STANDARD, Source, estimate_rows, find_format, open_source
from ..files.training import read_training
from ..runtime.files import writing
from ..runtime.progress import ProgressBar, without_warnings
from ..tables.schema import Schema
from ..version import __version__
from .arguments import ExplainArguments, inputs_of
from .inputs import (
    BLOCK_ROWS,
    check_output_path,
    dialect_of,
    explain_people,
    load_explainer,
    read_checksum,
    read_dtypes,
    read_rounding,
    read_rules_file,
    show_dialect,
    split_names,
)
from .output import Destination
from .predictors import PredictorLoader, predictor_checksum, public_name, split_limits
from .terminal import (
    can_draw,
    conclude,
    describe_status,
    notify,
    paragraph,
    people_bar,
    printable,
)

# Failures that are shown as they happen; a file lists all in the end.
MAX_SHOWN_FAILURES = 5
# Gives the outcomes of partitions, given the folder of their parts and people per block.
Begin = Callable[[PartsFolder, int], Iterator[Outcome]]


def run(arguments: ExplainArguments) -> None:
    """Explain people, in this process or shared among several."""
    destination, table = Destination.find(arguments), arguments.table
    _check_options(arguments)
    alone = _is_alone(arguments)
    engine = None if alone else find_engine(arguments.engine or "local", arguments.workers)
    paths = list(arguments.people) if alone else find_files(arguments.people)
    kinds = [find_format(path, table.format) for path in paths]
    if not alone:
        _check_shared(arguments, len(paths))
    check_output_path(arguments.output, [*paths, *inputs_of(arguments)])
    if destination.is_complete():
        return
    given = arguments.explainer, arguments.predictor, arguments.run
    explainer = load_explainer(*given, arguments.output)
    if engine is not None:
        files = scan_files(paths, table.format, dialect_of(table))
        job = _Job.plan(arguments, explainer, files)
        _write_parts(job, destination, PARTITION_ROWS, partial(_share, job, engine, destination))
        return
    with open_source(paths[0], kinds[0], dialect_of(table)) as source:
        show_dialect(source, table, quiet=arguments.run.quiet)
        job = _Job.plan(arguments, explainer, [PeopleFile(paths[0], kinds[0], source)])
        if destination.folder is None:
            _stream(job, source, destination)
        else:
            _write_parts(job, destination, BLOCK_ROWS, partial(_here, job, source, destination))


def _is_alone(arguments: ExplainArguments) -> bool:
    """Whether one file is answered in this process."""
    shared = arguments.engine is not None or arguments.workers is not None
    return not shared and len(arguments.people) == 1 and is_single(arguments.people[0])


def _check_options(arguments: ExplainArguments) -> None:
    """Raise unless options go together, whatever the files are."""
    if arguments.block_rows is not None and arguments.block_rows < 1:
        raise ParameterError(f"--block-rows must be at least 1, got {arguments.block_rows}.")
    options = {
        "--quasi-identifiers": arguments.quasi_identifiers,
        "--training": arguments.training,
        "--min-pureness": arguments.min_pureness,
    }
    given = [option for option, value in options.items() if value]
    if arguments.anonymity is None and given:
        raise ParameterError(f"{given[0]} is for anonymous answers: add --anonymity K.")
    if arguments.anonymity is not None and not (arguments.quasi_identifiers and arguments.training):
        raise ParameterError(
            "--anonymity needs --quasi-identifiers, the columns by which people can be "
            "recognised, and --training, the file that the explainer was fitted on."
        )
    if STANDARD in arguments.people and not _is_alone(arguments):
        raise ParameterError(
            "Standard input is one stream: it cannot be shared among workers, or be one of several "
            "files. Name files, or leave out --engine and --workers."
        )


def _check_shared(arguments: ExplainArguments, n_files: int) -> None:
    """Raise unless options go together with several processes."""
    predictor, workers = arguments.predictor, arguments.workers
    if arguments.output == STANDARD:
        raise ParameterError(
            "Workers write files, not standard output. Name a file or a folder with -o, or leave "
            "out --engine, --workers and other files."
        )
    if arguments.run.jobs is not None:
        raise ParameterError("--jobs is for one process. Say --workers, the number of processes.")
    if (predictor.rows_per_second, predictor.in_flight) != (None, None) and workers is None:
        raise ParameterError(
            "--rows-per-second and --in-flight are split among all workers. Say how many there are "
            "with --workers; of a cluster that runs already, at least as many processes as it has."
        )
    split_limits(predictor, workers or 1)
    if n_files > 1 and not arguments.key:
        raise ParameterError(
            f"There are {n_files} files, so that the number of a row does not identify a "
            "person. Name the columns that do, such as --key customer."
        )


@dataclass(frozen=True)
class _Job:
    """What is to be answered, and how; ``reader`` is that of the first file that can be read."""

    arguments: ExplainArguments
    explainer: MCCE
    files: Sequence[PeopleFile]
    read_plan: ReadPlan
    reader: PeopleReader
    settings: AnswerSettings
    layout: Layout
    bar: ProgressBar

    @classmethod
    def plan(
        cls, arguments: ExplainArguments, explainer: MCCE, files: Sequence[PeopleFile]
    ) -> _Job:
        """Plan everything, after a trial with nobody."""
        table, schema = arguments.table, explainer.schema_
        names = {name for file in files for name in file.columns.names}
        key = split_names("--key", arguments.key, names) or []
        keep = dict.fromkeys([*key, *(split_names("--keep", arguments.keep, names) or [])])
        whole = frozenset(name for name in keep if all(file.holds_whole(name) for file in files))
        read_plan = ReadPlan(tuple(keep), whole, read_dtypes(table.dtypes), dialect_of(table))
        reader = _first_reader(explainer, read_plan, files)
        if reader.ignored and not arguments.run.quiet:
            notify(f"columns that are not used: {shorten(list(reader.ignored), 300)}.")
        settings = AnswerSettings(
            read_rules_file(arguments.explainer.rules),
            read_rounding(arguments.labels, schema),
            _anonymity(arguments, schema),
        )
        with without_warnings():
            nobody = settings.answer(explainer, reader.empty())
        layout = Layout.plan(reader, nobody, arguments.prefix, numbered=not arguments.key)
        wanted = not arguments.run.quiet
        bar = people_bar(_count_rows(files) if wanted else None, wanted=wanted)
        return cls(arguments, explainer, files, read_plan, reader, settings, layout, bar)

    def run(self) -> Run:
        """How people are answered in this process."""
        explain = partial(explain_people, self.explainer, self.settings, self.bar)
        tolerance = self.arguments.explainer.tolerance
        return Run(self.reader, self.layout, explain, partial(score, self.explainer), tolerance)

    def partitions(self, block_rows: int) -> list[Partition]:
        """All partitions of all files."""
        files = enumerate(self.files)
        return [one for place, file in files for one in file.partitions(place, block_rows)]

    def run_key(self) -> dict[str, Any]:
        """Everything that decides the output, except the rows of people and the size of blocks."""
        arguments, explainer = self.arguments, self.arguments.explainer
        files = {
            "rules": explainer.rules,
            "labels": arguments.labels,
            "training": arguments.training,
        }
        key: dict[str, Any] = {
            "mcce": __version__,
            "explainer": read_checksum(explainer.path),
            "predictor": public_name(arguments.predictor),
            "predictor_sha256": predictor_checksum(arguments.predictor),
            **{name: None if path is None else read_checksum(path) for name, path in files.items()},
            "n_counterfactuals": explainer.n_counterfactuals,
            "anonymity": arguments.anonymity,
            "quasi_identifiers": arguments.quasi_identifiers,
            "min_pureness": arguments.min_pureness,
            "columns": {name: str(dtype) for name, dtype in self.layout.dtypes.items()},
            "dtypes": read_dtypes(arguments.table.dtypes),
        }
        if len(self.files) > 1:
            names = "\0".join(file.path for file in self.files).encode(errors="replace")
            key["people"] = {"n_files": len(self.files), "sha256": sha256(names).hexdigest()}
        return key


def _first_reader(
    explainer: MCCE, read_plan: ReadPlan, files: Sequence[PeopleFile]
) -> PeopleReader:
    """How the first readable file is read; if there is none, raise the error of the first."""
    failure: McceError | None = None
    for file in files:
        try:
            if file.error is not None:
                raise file.error
            return read_plan.reader(file.path, file.columns, explainer)
        except (ReadError, SchemaError) as error:
            failure = failure or error
    assert failure is not None
    raise failure


def _count_rows(files: Sequence[PeopleFile]) -> int | None:
    """About how many people there are, for the bar; None if that is not quickly known."""
    if not can_draw():
        return None
    sizes = [
        estimate_rows(file.path, file.format) if file.sizes is None else sum(file.sizes)
        for file in files
        if file.error is None
    ]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _anonymity(arguments: ExplainArguments, schema: Schema) -> dict[str, Any]:
    """Arguments of ``anonymize``; none if answers are not to be anonymous."""
    path, table = arguments.training, arguments.table
    if arguments.anonymity is None or path is None:
        return {}
    known = [str(name) for name in schema.names]
    dtypes = {n: dtype for n, dtype in read_dtypes(table.dtypes).items() if n in known}
    (rows,) = read_training([path], None, dialect_of(table), dtypes, whole=True)
    pureness = arguments.min_pureness
    return {
        "anonymity": arguments.anonymity,
        "quasi_identifiers": split_names("--quasi-identifiers", arguments.quasi_identifiers, known),
        # Columns that fit did not use, such as the outcome, are left out.
        "training": rows[[name for name in rows.columns if name in known]],
        **({} if pureness is None else {"min_pureness": pureness}),
    }


def _stream(job: _Job, source: Source, destination: Destination) -> None:
    """Answers on standard output, as they come."""
    run, counts = job.run(), Counter[str]()
    blocks = source.blocks(run.reader.columns, job.arguments.block_rows or BLOCK_ROWS)
    with without_warnings(), job.bar, writing(Path("standard output")):
        stream_tables(run.tables(blocks, counts), destination.format, sys.stdout.buffer)
    _summarize(job, counts, {}, "")


def _here(
    job: _Job, source: Source, destination: Destination, folder: PartsFolder, block_rows: int
) -> Iterator[Outcome]:
    """Answer the people of one file in this process; an error ends the run."""
    run, (file,) = job.run(), job.files
    partition = Partition(0, file.path, file.format)
    blocks = source.blocks(run.reader.columns, block_rows)
    with without_warnings():
        for done in run.write_parts(blocks, folder, 0, destination.format):
            yield Outcome(partition, [done])


def _share(
    job: _Job, engine: OpenPool, destination: Destination, folder: PartsFolder, block_rows: int
) -> Iterator[Outcome]:
    """Answer the people of all files by workers."""
    arguments, explainer = job.arguments, job.arguments.explainer
    loader = PredictorLoader.here(split_limits(arguments.predictor, arguments.workers or 1))
    packed = PackedExplainer.pack(job.explainer, loader, explainer.tolerance)
    task = Task(packed, job.read_plan, job.settings, job.layout)
    with engine(FilesTask(task, folder, destination.format, block_rows), arguments.workers) as pool:
        yield from explain_partitions(pool, job.partitions(block_rows))


def _write_parts(job: _Job, destination: Destination, block_rows: int, begin: Begin) -> None:
    """Write the parts, and the file if one is wanted."""
    assert destination.folder is not None
    with locked_folder(destination.folder):
        # Another run may have ended since this one began.
        if destination.is_complete():
            return
        wanted = job.arguments.block_rows
        folder, block_rows = destination.open_folder(job.run_key(), wanted, block_rows)
        tally = _Tally(job, len(job.partitions(block_rows)))
        with job.bar, _resumable(tally.describe):
            for outcome in begin(folder, block_rows):
                tally.add(outcome)
        if not tally.failed:
            destination.finish(folder, dict(sorted(tally.records.items())))
        _conclude(tally, folder)


@dataclass
class _Tally:
    """Outcomes of partitions so far."""

    job: _Job
    n_partitions: int
    n_shown: int = 0
    n_done: int = 0
    n_reused: int = 0
    records: dict[Number, PartRecord] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[Partition, Failure]] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count a partition, and show it if it failed."""
        if outcome.failure is not None:
            self._show(outcome.partition, outcome.failure, again=outcome.again)
            self.failed += [] if outcome.again else [(outcome.partition, outcome.failure)]
        self.n_done += outcome.failure is None
        for done in outcome.done:
            bar = self.job.bar
            self.records[done.number] = done.record
            self.totals.update(done.record.counts)
            self.n_reused += done.reused
            # In this process, people are counted as they are answered.
            if done.reused or not _is_alone(self.job.arguments):
                bar.n_done += done.record.n_rows
            # Parts of an earlier run come first, and do not count for the rate.
            (bar.reuse if self.n_reused == len(self.records) else bar.show)(bar.n_done)

    def _show(self, partition: Partition, failure: Failure, *, again: bool) -> None:
        """Show a failure, up to a few of them."""
        self.n_shown += 1
        run = self.job.arguments.run
        if run.as_json or self.n_shown > MAX_SHOWN_FAILURES + 1:
            return
        what = "failed, to be tried again" if again else "failed"
        text = f"{what}: {partition.shown}: {printable(failure.reason)}"
        trace = printable(failure.traceback, lines=True) if run.debug else ""
        if self.n_shown > MAX_SHOWN_FAILURES:
            trace = ""
            text = "further failures are not shown; those that last are listed at the end."
        self.job.bar.write(f"{trace}{paragraph(text)}")

    def describe(self) -> str:
        """How many are complete."""
        n_people = _count(self.totals)
        if _is_alone(self.job.arguments):
            return f"The answers to the first {n_people} people are complete"
        done = f"{self.n_done} of {self.n_partitions} partitions are complete"
        return f"{done}, the answers to {n_people:,} people"


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


def _conclude(tally: _Tally, folder: PartsFolder) -> None:
    """Show the counts by status; raise if partitions failed."""
    arguments = tally.job.arguments
    failed = sorted(tally.failed, key=lambda one: (one[0].file, one[0].first))
    listed = [_report(partition, failure) for partition, failure in failed]
    details: dict[str, Any] = {"n_reused": tally.n_reused}
    text = ""
    if not _is_alone(arguments):
        details |= {"n_partitions": tally.n_partitions, "failed": listed}
        text += f" {tally.n_partitions} partition{'s' if tally.n_partitions != 1 else ''}."
    if tally.n_reused:
        text += f" {tally.n_reused} parts are from an earlier run.{_not_compared(arguments)}"
    if not failed or arguments.run.as_json:
        _summarize(tally.job, tally.totals, details, text)
    if not failed:
        return
    folder.list_failures(listed)
    _, first = failed[0]
    raise first.kind(
        f"{len(failed)} of {tally.n_partitions} partitions failed; "
        f"{shorten(folder.path / FAILURES, 200)} lists them. The others are complete. The same "
        "command with --resume tries those that failed again."
    )


def _not_compared(arguments: ExplainArguments) -> str:
    """What of a predictor could have changed unseen since an earlier run."""
    name = public_name(arguments.predictor)
    if Path(name).is_file():
        return ""
    return (
        f" Of the predictor {name}, the modules of this folder and the score of one "
        "person of each part are as they were then; whatever else it reads was not compared."
    )


def _report(partition: Partition, failure: Failure) -> dict[str, Any]:
    """A failure, for machines."""
    rows = {"path": partition.path, "first": partition.first, "n_rows": partition.n_rows}
    return rows | {"kind": failure.kind.__name__, "reason": failure.reason}


def _count(totals: Counter[str]) -> int:
    """How many people are counted by status."""
    return sum(totals.values()) - totals[UNSTABLE]


def _summarize(job: _Job, totals: Counter[str], details: Mapping[str, Any], text: str) -> None:
    """Show the counts by status."""
    people = {name: count for name, count in totals.items() if name != UNSTABLE}
    n_unstable, output, seconds = totals[UNSTABLE], job.arguments.output, job.bar.seconds
    content = {"output": output, "n_people": _count(totals), "status": people}
    content |= {"n_unstable": n_unstable, "seconds": round(seconds, 3), **details}
    shown = describe_status(people, seconds)
    if n_unstable:
        shown += f" The predictor is unstable: {n_unstable} answers were withdrawn."
    is_stream = output == STANDARD
    where = "" if is_stream else f" Answers, and reasons where there is none: {output}"
    conclude(job.arguments.run, content, f"{shown}{text}{where}", sys.stderr if is_stream else None)
