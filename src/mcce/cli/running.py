"""A run of ``mcce explain`` on one file, in this process: from the request to the summary.

Always true: nothing is computed before input, output and settings are checked.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from ..constraints.files import read_constraints
from ..counterfactuals import Counterfactuals
from ..errors import shorten
from ..explainer import MCCE
from ..files.answer_tables import Layout, stream_tables
from ..files.parts import Answered, BlockRun, Done, Number, Receipt, alone, checksum
from ..files.people import PeopleReader
from ..files.sources import (
    Format,
    Source,
    estimate_rows,
    find_format,
    iterate,
    open_source,
    reading,
)
from ..loading import load
from ..runtime.progress import Progress
from ..runtime.quiet import without_prints, without_warnings
from ..runtime.replacing import writing
from ..version import __version__
from .anonymity import AnonymityChoice
from .options import check_output, read_dtypes, read_key, split_names
from .output import (
    AnswersFile,
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
from .predictors import PredictorChoice
from .terminal import PeopleBar, say, wrap

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
class Request:
    """What the user asked for; see the options of ``mcce explain``."""

    explainer: ExplainerFile
    people: PeopleFile
    answers: AnswersFile
    block_rows: int | None = None
    as_json: bool = False
    quiet: bool = False
    anonymity: AnonymityChoice = field(default_factory=AnonymityChoice)


def run(request: Request) -> None:
    """Explain the people of a file."""
    target = Target.find(request.answers.path, request.answers.format)
    kind = find_format(request.people.path, request.people.format)
    check_block_rows(request.block_rows)
    request.anonymity.check()
    read = [request.people.path, request.anonymity.training, *request.explainer.files]
    check_output(request.answers.path, read)
    if nothing_to_do(request.answers, target):
        return
    explainer = request.explainer.load()
    with open_source(request.people.path, kind, request.people.delimiter) as source:
        reader = PeopleReader.plan(
            request.people.path,
            source,
            explainer.fitted_.schema,
            keep=request.people.kept(source.names),
            dtypes=read_dtypes(request.people.dtypes),
        )
        if not request.quiet:
            say_ignored(reader)
        n_people = estimate_rows(request.people.path, kind)
        with without_warnings(), PeopleBar(n_people, wanted=not request.quiet) as bar:
            work = _plan(request, explainer, reader, bar)
            totals = _write(request, target, work, source, bar)
    if totals is not None:
        summary = Summary(request.answers.path, totals, bar.seconds)
        summary.show(as_json=request.as_json, quiet=request.quiet)


def say_ignored(reader: PeopleReader) -> None:
    """Say which columns nobody asked for."""
    if reader.ignored:
        say(wrap(f"mcce: columns that are not used: {shorten(list(reader.ignored), 300)}."))


def explain_people(
    explainer: MCCE, rows: pd.DataFrame, rules: Any, bar: PeopleBar, **more: Any
) -> Counterfactuals[pd.DataFrame]:
    """The answers to some people, with progress; ``more`` are further arguments of ``explain``."""

    def show(progress: Progress) -> None:
        # People who need no answer are settled at once.
        bar.show(bar.done + len(rows) - progress.n_factuals + progress.n_settled)

    with without_prints():
        result = explainer.explain(rows, constraints=rules, callback=show, **more)
    bar.done += len(rows)
    bar.show(bar.done)
    return result.to_pandas()


def _plan(request: Request, explainer: MCCE, reader: PeopleReader, bar: PeopleBar) -> BlockRun:
    """How blocks are answered, after a trial with nobody."""
    rules, people = request.explainer.read_rules(), request.people
    more = request.anonymity.arguments(explainer.schema_, people.delimiter, people.dtypes)

    def explain(rows: pd.DataFrame) -> Counterfactuals[pd.DataFrame]:
        return explain_people(explainer, rows, rules, bar, **more)

    nobody, numbered = explain(reader.empty()), not request.people.key
    layout = Layout.plan(reader, nobody, request.answers.prefix, numbered=numbered)
    return BlockRun(explain, reader, layout)


def _write(
    request: Request, target: Target, work: BlockRun, source: Source, bar: PeopleBar
) -> Counter[str] | None:
    """Write the output, and count what became of people; None if there is nothing to do."""
    if target.folder is None:
        block_rows = request.block_rows or BLOCK_ROWS
        blocks = iterate(request.people.path, source, work.reader.columns, block_rows)
        return _stream(work, blocks, target.format)
    with alone(target.folder):
        # Another run may have ended since this one began.
        if nothing_to_do(request.answers, target):
            return None
        return _write_parts(request, target, target.folder, work, source, bar)


def _write_parts(
    request: Request, target: Target, path: Path, work: BlockRun, source: Source, bar: PeopleBar
) -> Counter[str]:
    """Write the parts, and the file if one is asked for."""
    manifest = earlier_manifest(request.answers, target, path)
    block_rows = choose_block_rows(request.block_rows, manifest, BLOCK_ROWS)
    blocks = iterate(request.people.path, source, work.reader.columns, block_rows)
    job = request.explainer.job(target.format, work.layout, block_rows)
    job |= request.anonymity.job()
    kind = find_format(request.people.path, request.people.format)
    folder = open_folder(target, path, job | request.people.job([kind]))
    totals: Counter[str] = Counter()
    receipts: dict[Number, Receipt] = {}
    with resumable(lambda: f"The answers to the first {count_people(totals)} people are complete"):
        for number, done in enumerate(work.write_parts(blocks, folder, target.format)):
            _count(totals, done, bar)
            receipts[number] = done.receipt
    finish(target, folder, receipts)
    return totals


def _stream(work: BlockRun, blocks: Iterator[Any], format_: Format) -> Counter[str]:
    """Answers on standard output, as they come."""
    answered = Answered(work, blocks)
    with writing(Path("standard output")):
        stream_tables(answered, format_, sys.stdout.buffer)
    return answered.counts


def _count(totals: Counter[str], done: Done, bar: PeopleBar) -> None:
    totals.update(done.receipt.counts)
    if done.reused:
        bar.done += done.receipt.n_rows
        bar.reuse(bar.done)


def read_checksum(path: str) -> str:
    """The checksum of a file that the user named; what goes wrong is a ReadError."""
    with reading(path):
        return checksum(path)
