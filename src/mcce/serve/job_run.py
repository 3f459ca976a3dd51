"""The work of an upload: people of a file, block by block, into files of answers and a report.

Always true: people get the answers that ``mcce explain`` gives them; memory holds the answers of
one upload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from ..constraints import Constraint
from ..counterfactuals import Counterfactuals
from ..errors import MissingExtraError, ParameterError
from ..files.answer_tables import Layout, stream_tables
from ..files.people import PeopleReader
from ..files.sources import (
    Source,
    check_delimiter,
    estimate_rows,
    find_format,
    iterate,
    open_source,
)
from ..kernels import IntArray, check_cancellation
from ..report.html.report_page import ReportOptions, write_page
from .answering import Answerer
from .settings import ServiceSettings

TABLES, REPORT = ("answers.csv", "answers.parquet"), "report.html"
FILES = (*TABLES, REPORT)
# People who are read, answered and counted at a time.
BLOCK = 200
# People whom the report shows one by one.
MOST_SHOWN = 500
PREFIX = "mcce_"

Show = Callable[[int, int | None], None]
Results = list[tuple[IntArray, Counterfactuals[pd.DataFrame]]]


@dataclass(frozen=True)
class JobOptions:
    """How the people of an upload are answered."""

    constraints: Sequence[Constraint] = field(default_factory=tuple)
    search: str | None = None
    n_counterfactuals: int | None = None
    language: str | None = None
    name: str | None = None
    delimiter: str = ","


def check_upload(path: str, answerer: Answerer, options: JobOptions, most: int) -> None:
    """Raise if a file is no table of people with the columns of the explainer."""
    check_delimiter(options.delimiter)
    with _open(path, answerer, options):
        pass
    if path.endswith(".parquet"):
        import pyarrow.parquet as pq

        found = pq.read_metadata(path)
        size = sum(found.row_group(at).total_byte_size for at in range(found.num_row_groups))
        if size > most:
            raise ParameterError(
                f"The file {path!r} has {size} bytes once it is uncompressed, expected at most "
                f"{most}. Upload it in parts."
            )


def run_job(
    answerer: Answerer, settings: ServiceSettings, path: str, options: JobOptions, show: Show
) -> list[str]:
    """Answer the people of a file."""
    answered = _answer_all(answerer, settings.limits.job_people, path, options, show)
    report = ReportOptions(
        labels=settings.words(options.language),
        constraints=list(options.constraints),
        n_answers=options.n_counterfactuals or ReportOptions.n_answers,
        max_people=MOST_SHOWN,
        names=answered.names if options.name else None,
        title=settings.title,
        callback=lambda n_shown: check_cancellation(),
    )
    folder = Path(path).parent
    made = _write_tables(folder, answered.tables)
    return made + _write_report(answerer, answered.results, folder, report)


@dataclass(frozen=True, eq=False)
class _Answered:
    """The people of an upload: tables of answers, results by position, and names."""

    tables: list[pd.DataFrame] = field(default_factory=list)
    results: Results = field(default_factory=list)
    names: list[Any] = field(default_factory=list)


def _answer_all(
    answerer: Answerer, most: int, path: str, options: JobOptions, show: Show
) -> _Answered:
    """Answer everybody, block by block."""
    total, answered = estimate_rows(path, find_format(path)), _Answered()
    with _open(path, answerer, options) as (source, reader):
        nobody = _explain(answerer, reader.empty(), options, lambda n_done: None)
        layout = Layout.plan(reader, nobody, _prefix(reader, nobody))
        for block in iterate(path, source, reader.columns, BLOCK):
            if block.first + block.n_rows > most:
                raise ParameterError(
                    f"An upload may hold at most {most:,} people, and this one has more. Answer "
                    "them with mcce explain."
                )
            people, done = reader.read(block), block.first
            results: Results = []
            for at, rows in people.groups:
                begun = partial(_show_more, show, done, total)
                results.append((at, _explain(answerer, rows, options, begun)))
                done += len(rows)
            show(done, total)
            answered.tables.append(layout.table(people, results))
            answered.results.extend((block.first + at, result) for at, result in results)
            answered.names.extend(cell for cells in people.kept.values() for cell in cells)
    return answered


def _prefix(reader: PeopleReader, nobody: Counterfactuals[pd.DataFrame]) -> str:
    """What stands before the names of our columns, if columns of the file have such names."""
    try:
        Layout.plan(reader, nobody)
    except ParameterError:
        return PREFIX
    return ""


def _show_more(show: Show, before: int, total: int | None, n_done: int) -> None:
    show(before + n_done, total)


@contextmanager
def _open(
    path: str, answerer: Answerer, options: JobOptions
) -> Iterator[tuple[Source, PeopleReader]]:
    """The table in an upload, and how people in it are read."""
    with open_source(path, find_format(path), options.delimiter) as source:
        keep = [options.name] if options.name else []
        yield source, PeopleReader.plan(path, source, answerer.explainer.schema_, keep=keep)


def _explain(
    answerer: Answerer, rows: pd.DataFrame, options: JobOptions, show: Callable[[int], None]
) -> Counterfactuals[pd.DataFrame]:
    """The answers to some people, with progress."""

    def callback(progress: Any) -> None:
        check_cancellation()
        show(len(rows) - progress.n_factuals + progress.n_settled)

    return answerer.explain(
        rows,
        options.constraints,
        search=options.search,
        n_counterfactuals=options.n_counterfactuals,
        callback=callback,
    )


def _write_tables(folder: Path, tables: Sequence[pd.DataFrame]) -> list[str]:
    """Write the answers in all formats that can be written here."""
    if not tables:
        raise ParameterError("The file has no people.")
    table, made = pd.concat(tables, ignore_index=True), []
    for name in TABLES:
        try:
            with (folder / name).open("xb") as stream:
                stream_tables([table], find_format(name), stream)
            made.append(name)
        except ImportError:
            (folder / name).unlink(missing_ok=True)
    return made


def _write_report(
    answerer: Answerer, results: Results, folder: Path, options: ReportOptions
) -> list[str]:
    try:
        write_page(answerer.explainer, results, folder / REPORT, options)
    except MissingExtraError:
        return []
    return [REPORT]
