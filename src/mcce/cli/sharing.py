"""A run of ``mcce explain`` that many processes share: from the request to the summary.

Always true: nothing is computed before input, output and settings are checked; what is written does
not depend on the engine nor on the number of workers; partitions that failed are listed, and the
others are complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import McceError, ParameterError, ReadError, SchemaError, shorten
from ..execution.workers import (
    BLOCK_ROWS,
    Failure,
    FilesTask,
    Outcome,
    Reading,
    Shipment,
    explain_units,
    find_executor,
)
from ..explainer import MCCE
from ..files.answer_tables import Layout
from ..files.parts import FAILURES, Number, PartsFolder, Receipt, alone
from ..files.people import PeopleReader
from ..files.sources import STANDARD, estimate_rows, find_format
from ..files.units import FileOfPeople, Unit, find_files, is_single, look_into, names_checksum
from ..runtime.quiet import without_warnings
from .options import check_output, read_dtypes
from .output import (
    Summary,
    Target,
    check_block_rows,
    choose_block_rows,
    count_people,
    earlier_manifest,
    finish,
    nothing_to_do,
    open_folder,
    resumable,
)
from .predictors import PredictorLoader
from .running import Request, run, say_ignored
from .terminal import PeopleBar, can_draw, printable, wrap

# Failures that are shown as they happen; a file lists all in the end.
MOST_SHOWN = 5


@dataclass(frozen=True)
class SharedRequest:
    """What the user asked for, and who shares the work; see the options of ``mcce explain``."""

    asked: Request
    names: Sequence[str]
    engine: str | None = None
    workers: int | None = None
    debug: bool = False


def is_shared(names: Sequence[str], engine: str | None, workers: int | None) -> bool:
    """Whether work is shared: if that is said, or people are not in one file."""
    if engine is not None or workers is not None or len(names) > 1:
        return True
    return not is_single(names[0])


def run_any(request: SharedRequest) -> None:
    """Explain people, in this process or shared; see :func:`run` and :func:`run_shared`."""
    if is_shared(request.names, request.engine, request.workers):
        run_shared(request)
    else:
        run(request.asked)


def run_shared(request: SharedRequest) -> None:
    """Explain the people of files."""
    asked = request.asked
    target = Target.find(asked.answers.path, asked.answers.format)
    executor = find_executor(request.engine or "local", request.workers)
    paths = _check(request)
    if nothing_to_do(asked.answers, target):
        return
    explainer, rules = asked.explainer.load(), asked.explainer.read_rules()
    files = look_into(paths, asked.people.format, asked.people.delimiter)
    with without_warnings():
        reading, layout = _plan(asked, explainer, rules, files)
    assert target.folder is not None
    with alone(target.folder):
        # Another run may have ended since this one began.
        if nothing_to_do(asked.answers, target):
            return
        block_rows, folder = _open(asked, target, target.folder, layout, files)
        units = [unit for at, file in enumerate(files) for unit in file.units(at, block_rows)]
        load = PredictorLoader.here(asked.explainer.predictor.shared_by(request.workers or 1))
        shipment = Shipment.pack(explainer, load, tolerance=asked.explainer.tolerance)
        task = FilesTask(shipment, reading, layout, folder, target.format, block_rows, rules)
        with PeopleBar(_count_rows(asked, files), wanted=not asked.quiet) as bar:
            tally = _Tally(len(units), bar, silent=asked.as_json, debug=request.debug)
            with resumable(tally.say):
                for outcome in explain_units(executor, task, units):
                    tally.add(outcome)
        if not tally.failed:
            finish(target, folder, {unit.number: tally.receipts[unit.number] for unit in units})
        _conclude(asked, tally, folder)


def _check(request: SharedRequest) -> list[str]:
    """The files, if they and the settings go together."""
    asked = request.asked
    check_block_rows(asked.block_rows)
    if list(request.names) == [STANDARD]:
        raise ParameterError(
            "Standard input is one stream and cannot be shared among workers. Name files, or leave "
            "out --engine and --workers."
        )
    paths = find_files(request.names)
    for path in paths:
        find_format(path, asked.people.format)
    if asked.answers.path == STANDARD:
        raise ParameterError(
            "Workers write files, not standard output. Name a file or a folder with -o, or leave "
            "out --engine, --workers and other files."
        )
    asked.anonymity.check()
    if asked.anonymity.k is not None:
        raise ParameterError(
            "--anonymity counts training people in one process. Name one file of people, and leave "
            "out --engine and --workers."
        )
    if asked.explainer.jobs is not None:
        raise ParameterError("--jobs is for one process. Say --workers, the number of processes.")
    predictor = asked.explainer.predictor
    if (predictor.rows_per_second, predictor.in_flight) != (None, None) and request.workers is None:
        raise ParameterError(
            "--rows-per-second and --in-flight are split among all workers. Say how many there are "
            "with --workers; of a cluster that runs already, at least as many processes as it has."
        )
    predictor.shared_by(request.workers or 1)
    if len(paths) > 1 and not asked.people.key:
        raise ParameterError(
            f"There are {len(paths)} files, so that the number of a row does not identify a "
            "person. Name the columns that do, such as --key customer."
        )
    check_output(asked.answers.path, [*paths, *asked.explainer.files])
    return paths


def _plan(
    asked: Request, explainer: MCCE, rules: Any, files: Sequence[FileOfPeople]
) -> tuple[Reading, Layout]:
    """How people are read and answers are written in all files alike."""
    keep = asked.people.kept({name for file in files for name in file.names})
    whole = frozenset(name for name in keep if all(file.holds_whole(name) for file in files))
    dtypes = read_dtypes(asked.people.dtypes)
    reading = Reading(tuple(keep), whole, dtypes, asked.people.delimiter)
    reader = _first_reader(explainer, reading, files)
    if not asked.quiet:
        say_ignored(reader)
    nobody = explainer.explain(reader.empty(), constraints=rules)
    numbered = not asked.people.key
    return reading, Layout.plan(reader, nobody, asked.answers.prefix, numbered=numbered)


def _first_reader(explainer: MCCE, reading: Reading, files: Sequence[FileOfPeople]) -> PeopleReader:
    """How the first file is read that can be; if none can, that is the error of the first."""
    failure: McceError | None = None
    for file in files:
        try:
            if file.error is not None:
                raise file.error
            return reading.plan(file.path, file, explainer.fitted_.schema)
        except (ReadError, SchemaError) as error:
            failure = failure or error
    assert failure is not None
    raise failure


def _open(
    asked: Request, target: Target, path: Path, layout: Layout, files: Sequence[FileOfPeople]
) -> tuple[int, PartsFolder]:
    """People per partition, and the folder of parts; neither depends on who does the work."""
    manifest = earlier_manifest(asked.answers, target, path)
    block_rows = choose_block_rows(asked.block_rows, manifest, BLOCK_ROWS)
    job = asked.explainer.job(target.format, layout, block_rows)
    job |= asked.people.job([file.format for file in files])
    job["people"] = {"n_files": len(files), "sha256": names_checksum(files)}
    return block_rows, open_folder(target, path.resolve(), job)


def _count_rows(asked: Request, files: Sequence[FileOfPeople]) -> int | None:
    """About how many people there are, for the bar; None if that is not quickly known."""
    if asked.quiet or not can_draw():
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
        return f"{done}, the answers to {count_people(self.totals):,} people"


def _conclude(asked: Request, tally: _Tally, folder: PartsFolder) -> None:
    """Say what became of everybody; raise if partitions failed."""
    failed = sorted(tally.failed, key=lambda one: one[0].number)
    listed = [_report(unit, failure) for unit, failure in failed]
    said = f" {tally.n_units} partitions"
    said += f", {tally.n_reused} of them from an earlier run." if tally.n_reused else "."
    more = {"n_partitions": tally.n_units, "n_reused": tally.n_reused, "failed": listed}
    summary = Summary(asked.answers.path, tally.totals, tally.bar.seconds, more, said)
    if not failed or asked.as_json:
        summary.show(as_json=asked.as_json, quiet=asked.quiet)
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
