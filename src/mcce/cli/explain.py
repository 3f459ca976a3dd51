"""``mcce explain``: answers to people in files, block by block, into a file or a folder.

One file is answered in this process, block by block. Several files, a folder or an engine share the
work among processes; then partitions that failed are listed, and the others are complete.

Always true: nothing is computed before input, output and settings are checked; what is written does
not depend on the engine or the number of workers; existing output is never lost unless the user
wants that (:mod:`.output`).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import McceError, ParameterError, ReadError, SchemaError, shorten
from ..execution.workers import (
    PARTITION_ROWS,
    Failure,
    FilesTask,
    Outcome,
    PackedExplainer,
    ReadPlan,
    explain_partitions,
    find_executor,
)
from ..explainer import MCCE
from ..files.answer_tables import Layout, stream_tables
from ..files.partitions import (
    Partition,
    PeopleFile,
    find_files,
    is_single,
    names_checksum,
    scan_files,
)
from ..files.parts_folder import (
    FAILURES,
    UNSTABLE,
    Answered,
    BlockRun,
    PartRecord,
    PartsFolder,
    locked_folder,
)
from ..files.people_reader import PeopleReader, PeopleTable
from ..files.sources import (
    STANDARD,
    Format,
    estimate_rows,
    find_format,
)
from ..files.training import read_training
from ..runtime.files import writing
from ..runtime.progress import ProgressBar, without_warnings
from ..tables.schema import Schema
from ..version import __version__
from .arguments import ExplainArguments
from .inputs import (
    BLOCK_ROWS,
    check_output_path,
    explain_people,
    load_explainer,
    open_people,
    read_checksum,
    read_dtypes,
    read_rounding,
    read_rules_file,
    split_names,
)
from .output import Destination
from .predictors import PredictorLoader, predictor_checksum, split_limits
from .terminal import (
    can_draw,
    describe_status,
    notify,
    paragraph,
    people_bar,
    printable,
    show_json,
)

# Failures that are shown as they happen; a file lists all in the end.
MAX_SHOWN_FAILURES = 5
# Begins to answer, given a folder and people per block. Returns the number of partitions, which is
# None in one process, and the outcome of each part.
Begin = Callable[[PartsFolder, int], tuple[int | None, Iterator[Outcome]]]


def run(arguments: ExplainArguments) -> None:
    """Explain people, in this process or shared among several."""
    destination = Destination.find(arguments)
    if arguments.block_rows is not None and arguments.block_rows < 1:
        raise ParameterError(f"--block-rows must be at least 1, got {arguments.block_rows}.")
    _check_anonymity(arguments)
    shared = arguments.engine is not None or arguments.workers is not None
    if shared or len(arguments.people) > 1 or not is_single(arguments.people[0]):
        _run_shared(arguments, destination)
    else:
        _run_here(arguments, destination)


def _run_here(arguments: ExplainArguments, destination: Destination) -> None:
    """Explain the people of one file in this process."""
    path, table = arguments.people[0], arguments.table
    kind = find_format(path, table.format)
    check_output_path(arguments.output, [path, arguments.training, *_inputs(arguments)])
    if destination.is_complete():
        return
    explainer = load_explainer(arguments.explainer, arguments.predictor, arguments.run)
    with open_people(path, explainer.schema_, table, partial(_kept, arguments)) as people:
        _show_ignored(arguments, people.reader)
        bar = people_bar(estimate_rows(path, kind), wanted=not arguments.run.quiet)
        with without_warnings(), bar:
            work = _plan_blocks(arguments, explainer, people.reader, bar)
            if destination.folder is None:
                _stream(arguments, work, people, destination.format, bar)
                return
            run_key = _run_key(arguments, destination.format, work.layout, [kind])
            run_key |= _anonymity_key(arguments) | {"block_rows": BLOCK_ROWS}

            def begin(folder: PartsFolder, block_rows: int) -> tuple[None, Iterator[Outcome]]:
                blocks = people.raw_blocks(block_rows)
                parts = enumerate(work.write_parts(blocks, folder, destination.format))
                return None, (Outcome(Partition(n, path, kind), done) for n, done in parts)

            _write_parts(arguments, destination, run_key, bar, begin)


def _inputs(arguments: ExplainArguments) -> list[str | None]:
    """The files that are read beside those of people, by name; None where there is none."""
    explainer, key_file = arguments.explainer, arguments.run.key_file
    made_of = [explainer.path, arguments.predictor.name, explainer.rules, key_file]
    return [*made_of, arguments.labels]


def _kept(arguments: ExplainArguments, known: Collection[str]) -> list[str]:
    """The columns to copy, those of the key first."""
    key = split_names("--key", arguments.key, known) or []
    return list(dict.fromkeys([*key, *(split_names("--keep", arguments.keep, known) or [])]))


def _show_ignored(arguments: ExplainArguments, reader: PeopleReader) -> None:
    """Show which columns are not used."""
    if reader.ignored and not arguments.run.quiet:
        notify(f"columns that are not used: {shorten(list(reader.ignored), 300)}.")


def _plan_blocks(
    arguments: ExplainArguments, explainer: MCCE, reader: PeopleReader, bar: ProgressBar
) -> BlockRun:
    """How blocks are answered, after a trial with nobody."""
    explain = partial(
        explain_people,
        explainer,
        rules=read_rules_file(arguments.explainer.rules),
        bar=bar,
        rounding=read_rounding(arguments.labels, explainer.schema_),
        anonymity=_anonymity(arguments, explainer.schema_),
    )
    empty_result, numbered = explain(reader.empty()), not arguments.key
    layout = Layout.plan(reader, empty_result, arguments.prefix, numbered=numbered)
    return BlockRun(explain, reader, layout)


def _stream(
    arguments: ExplainArguments,
    work: BlockRun,
    people: PeopleTable,
    format_: Format,
    bar: ProgressBar,
) -> None:
    """Answers on standard output, as they come."""
    answered = Answered(work, people.raw_blocks(arguments.block_rows or BLOCK_ROWS))
    with bar, writing(Path("standard output")):
        stream_tables(answered, format_, sys.stdout.buffer)
    _summarize(arguments, answered.counts, bar.seconds)


def _check_anonymity(arguments: ExplainArguments) -> None:
    """Raise unless the options of anonymous answers go together."""
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


def _anonymity(arguments: ExplainArguments, schema: Schema) -> dict[str, Any]:
    """Arguments of ``anonymize``; none if answers are not to be anonymous."""
    path, table = arguments.training, arguments.table
    if arguments.anonymity is None or path is None:
        return {}
    known = [str(name) for name in schema.names]
    dtypes = {n: dtype for n, dtype in read_dtypes(table.dtypes).items() if n in known}
    rows = read_training(path, find_format(path), delimiter=table.delimiter, dtypes=dtypes)
    pureness = arguments.min_pureness
    return {
        "anonymity": arguments.anonymity,
        "quasi_identifiers": split_names("--quasi-identifiers", arguments.quasi_identifiers, known),
        # Columns that fit did not use, such as the outcome, are left out.
        "training": rows[[name for name in rows.columns if name in known]],
        **({} if pureness is None else {"min_pureness": pureness}),
    }


def _anonymity_key(arguments: ExplainArguments) -> dict[str, Any]:
    """The part of the run key for anonymous answers; empty for others."""
    if arguments.anonymity is None or arguments.training is None:
        return {}
    return {
        "anonymity": arguments.anonymity,
        "quasi_identifiers": list(arguments.quasi_identifiers or ()),
        "training": read_checksum(arguments.training),
        "min_pureness": arguments.min_pureness,
    }


def _run_shared(arguments: ExplainArguments, destination: Destination) -> None:
    """Explain the people of files on several processes."""
    executor = find_executor(arguments.engine or "local", arguments.workers)
    paths = _check_shared(arguments)
    if destination.is_complete():
        return
    explainer = load_explainer(arguments.explainer, arguments.predictor, arguments.run)
    rules = read_rules_file(arguments.explainer.rules)
    files = scan_files(paths, arguments.table.format, arguments.table.delimiter)
    with without_warnings():
        read_plan, layout = _plan_files(arguments, explainer, rules, files)
    # Neither the rows of a partition nor the key depend on the engine.
    run_key = _run_key(arguments, destination.format, layout, [file.format for file in files])
    run_key["people"] = {"n_files": len(files), "sha256": names_checksum(files)}
    run_key["block_rows"] = PARTITION_ROWS

    def begin(folder: PartsFolder, block_rows: int) -> tuple[int, Iterator[Outcome]]:
        partitions = [
            partition
            for at, file in enumerate(files)
            for partition in file.partitions(at, block_rows)
        ]
        choice = split_limits(arguments.predictor, arguments.workers or 1)
        loader, tolerance = PredictorLoader.here(choice), arguments.explainer.tolerance
        packed = PackedExplainer.pack(explainer, loader, tolerance=tolerance)
        rounding = read_rounding(arguments.labels, explainer.schema_)
        task = FilesTask(
            packed, read_plan, layout, folder, destination.format, block_rows, rounding, rules
        )
        return len(partitions), explain_partitions(executor, task, partitions)

    assert destination.folder is not None
    destination = replace(destination, folder=destination.folder.resolve())
    bar = people_bar(_count_rows(arguments, files), wanted=not arguments.run.quiet)
    _write_parts(arguments, destination, run_key, bar, begin)


def _check_shared(arguments: ExplainArguments) -> list[str]:
    """The files, if they and the settings go together."""
    if arguments.people == [STANDARD]:
        raise ParameterError(
            "Standard input is one stream and cannot be shared among workers. Name files, or leave "
            "out --engine and --workers."
        )
    paths = find_files(arguments.people)
    for path in paths:
        find_format(path, arguments.table.format)
    if arguments.output == STANDARD:
        raise ParameterError(
            "Workers write files, not standard output. Name a file or a folder with -o, or leave "
            "out --engine, --workers and other files."
        )
    if arguments.anonymity is not None:
        raise ParameterError(
            "--anonymity counts training people in one process. Name one file of people, and leave "
            "out --engine and --workers."
        )
    if arguments.run.jobs is not None:
        raise ParameterError("--jobs is for one process. Say --workers, the number of processes.")
    predictor, workers = arguments.predictor, arguments.workers
    if (predictor.rows_per_second, predictor.in_flight) != (None, None) and workers is None:
        raise ParameterError(
            "--rows-per-second and --in-flight are split among all workers. Say how many there are "
            "with --workers; of a cluster that runs already, at least as many processes as it has."
        )
    split_limits(predictor, workers or 1)
    if len(paths) > 1 and not arguments.key:
        raise ParameterError(
            f"There are {len(paths)} files, so that the number of a row does not identify a "
            "person. Name the columns that do, such as --key customer."
        )
    check_output_path(arguments.output, [*paths, *_inputs(arguments)])
    return paths


def _plan_files(
    arguments: ExplainArguments, explainer: MCCE, rules: Any, files: Sequence[PeopleFile]
) -> tuple[ReadPlan, Layout]:
    """How people are read and answers are written in all files alike."""
    table = arguments.table
    keep = _kept(arguments, {name for file in files for name in file.names})
    whole = frozenset(name for name in keep if all(file.holds_whole(name) for file in files))
    read_plan = ReadPlan(tuple(keep), whole, read_dtypes(table.dtypes), table.delimiter)
    reader = _first_reader(explainer, read_plan, files)
    _show_ignored(arguments, reader)
    empty_result = explainer.explain(reader.empty(), constraints=rules)
    empty_result = explainer.finalize(empty_result, constraints=rules)
    return read_plan, Layout.plan(
        reader, empty_result, arguments.prefix, numbered=not arguments.key
    )


def _first_reader(
    explainer: MCCE, read_plan: ReadPlan, files: Sequence[PeopleFile]
) -> PeopleReader:
    """How the first readable file is read; if there is none, raise the error of the first."""
    failure: McceError | None = None
    for file in files:
        try:
            if file.error is not None:
                raise file.error
            return read_plan.reader(file.path, file, explainer.schema_)
        except (ReadError, SchemaError) as error:
            failure = failure or error
    assert failure is not None
    raise failure


def _count_rows(arguments: ExplainArguments, files: Sequence[PeopleFile]) -> int | None:
    """About how many people there are, for the bar; None if that is not quickly known."""
    if arguments.run.quiet or not can_draw():
        return None
    sizes = [
        estimate_rows(file.path, file.format) if file.sizes is None else sum(file.sizes)
        for file in files
        if file.error is None
    ]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _run_key(
    arguments: ExplainArguments, format_: Format, layout: Layout, inputs: Collection[Format]
) -> dict[str, Any]:
    """Everything that decides the output, except the people and the block size."""
    explainer, table = arguments.explainer, arguments.table
    return {
        "mcce": __version__,
        "explainer": read_checksum(explainer.path),
        "predictor": predictor_checksum(arguments.predictor),
        "rules": None if explainer.rules is None else read_checksum(explainer.rules),
        "labels": None if arguments.labels is None else read_checksum(arguments.labels),
        "n_counterfactuals": explainer.n_counterfactuals,
        "columns": {name: str(dtype) for name, dtype in layout.dtypes.items()},
        "format": format_,
        "dtypes": read_dtypes(table.dtypes),
        "delimiter": table.delimiter,
        "input_formats": sorted(set(inputs)),
    }


def _write_parts(
    arguments: ExplainArguments,
    destination: Destination,
    run_key: Mapping[str, Any],
    bar: ProgressBar,
    begin: Begin,
) -> None:
    """Write the parts, and the file if one is wanted; ``run_key`` has the default block size."""
    assert destination.folder is not None
    with locked_folder(destination.folder):
        # Another run may have ended since this one began.
        if destination.is_complete():
            return
        folder, block_rows = destination.open_folder(
            destination.folder, run_key, arguments.block_rows
        )
        n_partitions, outcomes = begin(folder, block_rows)
        tally = _Tally(arguments, bar, n_partitions)
        with bar, _resumable(tally.describe):
            for outcome in outcomes:
                tally.add(outcome)
        if not tally.failed:
            destination.finish(folder, dict(sorted(tally.records.items())))
        _conclude(arguments, tally, folder)


@dataclass
class _Tally:
    """Outcomes of parts so far; ``n_partitions`` if processes share the work."""

    arguments: ExplainArguments
    bar: ProgressBar
    n_partitions: int | None
    n_shown: int = 0
    records: dict[Any, PartRecord] = field(default_factory=dict)
    n_reused: int = 0
    totals: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[Partition, Failure]] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count a part, and show it if it failed."""
        if outcome.failure is not None:
            self._show(outcome.partition, outcome.failure, again=outcome.again)
            self.failed += [] if outcome.again else [(outcome.partition, outcome.failure)]
        if outcome.done is None:
            return
        record, bar = outcome.done.record, self.bar
        self.records[outcome.partition.number] = record
        self.totals.update(record.counts)
        self.n_reused += outcome.done.reused
        # In one process, people are counted as they are answered.
        if outcome.done.reused or self.n_partitions is not None:
            bar.n_done += record.n_rows
        # Parts of an earlier run come first, and do not count for the rate.
        (bar.reuse if self.n_reused == len(self.records) else bar.show)(bar.n_done)

    def _show(self, partition: Partition, failure: Failure, *, again: bool) -> None:
        """Show a failure, up to a few of them."""
        self.n_shown += 1
        if self.arguments.run.as_json or self.n_shown > MAX_SHOWN_FAILURES + 1:
            return
        what = "failed, to be tried again" if again else "failed"
        text = f"{what}: {partition.shown}: {printable(failure.reason)}"
        trace = printable(failure.traceback, lines=True) if self.arguments.run.debug else ""
        if self.n_shown > MAX_SHOWN_FAILURES:
            trace = ""
            text = "further failures are not shown; those that last are listed at the end."
        self.bar.write(f"{trace}{paragraph(text)}")

    def describe(self) -> str:
        """How many are complete."""
        n_people = _count(self.totals)
        if self.n_partitions is None:
            return f"The answers to the first {n_people} people are complete"
        done = f"{len(self.records)} of {self.n_partitions} partitions are complete"
        return f"{done}, the answers to {n_people:,} people"


def _conclude(arguments: ExplainArguments, tally: _Tally, folder: PartsFolder) -> None:
    """Show the counts by status; raise if partitions failed."""
    failed = sorted(tally.failed, key=lambda one: one[0].number)
    listed = [_report(partition, failure) for partition, failure in failed]
    details, text = {}, ""
    if tally.n_partitions is not None:
        reused = f", {tally.n_reused} of them from an earlier run" if tally.n_reused else ""
        text = f" {tally.n_partitions} partitions{reused}."
        details = {"n_partitions": tally.n_partitions, "n_reused": tally.n_reused, "failed": listed}
    if not failed or arguments.run.as_json:
        _summarize(arguments, tally.totals, tally.bar.seconds, details, text)
    if not failed:
        return
    folder.list_failures(listed)
    _, first = failed[0]
    raise first.kind(
        f"{len(failed)} of {tally.n_partitions} partitions failed; "
        f"{shorten(folder.path / FAILURES, 200)} lists them. The others are complete. The same "
        "command with --resume tries those that failed again."
    )


def _report(partition: Partition, failure: Failure) -> dict[str, Any]:
    """A failure, for machines."""
    rows = {"path": partition.path, "first": partition.first, "n_rows": partition.n_rows}
    return rows | {"kind": failure.kind.__name__, "reason": failure.reason}


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


def _summarize(
    arguments: ExplainArguments,
    totals: Counter[str],
    seconds: float,
    details: Mapping[str, Any] | None = None,
    text: str = "",
) -> None:
    """Show the counts by status."""
    people = {name: count for name, count in totals.items() if name != UNSTABLE}
    n_unstable, output = totals[UNSTABLE], arguments.output
    if arguments.run.as_json:
        content = {"output": output, "n_people": _count(totals), "status": people}
        content |= {"n_unstable": n_unstable, "seconds": round(seconds, 3), **(details or {})}
        show_json(content, sys.stderr if output == STANDARD else None)
    elif not arguments.run.quiet:
        shown = f"{describe_status(people, seconds)}"
        if n_unstable:
            shown += f" The predictor is unstable: {n_unstable} answers were withdrawn."
        shown += text
        if output != STANDARD:
            shown += f" Answers, and reasons where there is none: {printable(output)}"
        notify(shown)
