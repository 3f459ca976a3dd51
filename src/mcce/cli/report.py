"""``mcce report``: one HTML file about people in a file and their answers.

Always true: nothing is computed before input, output and options are checked; people get the
answers that ``mcce explain`` gives them.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from itertools import chain, compress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..counterfactuals.parts import ALREADY
from ..errors import ParameterError, ReadError, shorten
from ..execution.workers import AnswerSettings
from ..explainer import MCCE
from ..files.people_reader import People, PeopleReader
from ..files.sources import reading
from ..kernels import IntArray
from ..report.page import Provenance
from ..report.report_page import ReportOptions, check_options, write_page
from ..runtime.progress import without_prints, without_warnings
from .arguments import ReportArguments, inputs_of, option_names
from .inputs import (
    check_page,
    explain_people,
    load_explainer,
    open_people,
    read_checksum,
    read_labels,
    read_rules_file,
    split_names,
)
from .predictors import predictor_files, public_name
from .terminal import conclude, describe_status, people_bar

# More people than these do not fit one page.
MAX_REPORT_PEOPLE = 50_000
# Options of the output and the machine, and what the printed command adds itself.
LEFT_OUT = {"--output", "--overwrite", "--row", "--predictor", "--rows-per-second"}
LEFT_OUT |= {"--jobs", "--json", "--quiet", "--debug"}
# Rows for the explainer by position in the file, and the names of these people.
NamedPeople = tuple[list[tuple[IntArray, pd.DataFrame]], list[Any] | None]


def run(arguments: ReportArguments) -> None:
    """Write a report on the people of a file."""
    output = arguments.output
    check_page("A report", output, inputs_of(arguments), overwrite=arguments.overwrite)
    labels, card = read_labels(arguments.labels, arguments.language), _card(arguments.card)
    explainer = load_explainer(arguments.explainer, arguments.predictor, arguments.run, output)
    rules, wanted = read_rules_file(arguments.explainer.rules), not arguments.run.quiet
    groups, names = _read(arguments, explainer)
    n_people = sum(len(at) for at, _ in groups)
    options = ReportOptions(
        labels=labels,
        constraints=rules,
        groups=split_names("--groups", arguments.groups, list(map(str, explainer.schema_.names))),
        n_answers=arguments.explainer.n_counterfactuals or ReportOptions.n_answers,
        max_people=arguments.max_people,
        names=names,
        title=arguments.title,
        card=card,
        provenance=_provenance(arguments),
    )
    check_options(explainer, options, n_people)
    with without_warnings():
        with people_bar(n_people, wanted=wanted) as bar:
            settings = AnswerSettings(rules, labels.rounding(explainer.schema_))
            results = [(at, explain_people(explainer, settings, bar, rows)) for at, rows in groups]
        totals = Counter(chain.from_iterable(result.people["status"] for _, result in results))
        n_shown = min(n_people - totals[ALREADY], options.max_people)
        with without_prints(), people_bar(n_shown, wanted=wanted, doing="write") as pages:
            write_page(explainer, results, output, replace(options, callback=pages.show))
    n_bytes, seconds = Path(output).stat().st_size, round(bar.seconds, 3)
    content = {"output": output, "bytes": n_bytes, "n_people": sum(totals.values())}
    content |= {"status": dict(totals), "seconds": seconds}
    text = f"{describe_status(totals, seconds)} Report: {output} ({n_bytes / 1e6:.1f} MB)"
    conclude(arguments.run, content, text)


def _card(path: str | None) -> str | None:
    if path is None:
        return None
    with reading(path):
        try:
            return Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ReadError(f"{shorten(path, 200)} is no text in UTF-8.") from None


def _read(arguments: ReportArguments, explainer: MCCE) -> NamedPeople:
    """The people who are wanted, and their names."""
    keep = [arguments.name] if arguments.name else []
    schema, table = explainer.schema_, arguments.table
    with open_people(arguments.people, schema, table, lambda names: keep) as (source, reader):
        return _choose(arguments, reader, reader.blocks(source, MAX_REPORT_PEOPLE))


def _choose(
    arguments: ReportArguments, reader: PeopleReader, blocks: Iterable[People]
) -> NamedPeople:
    """Rows and names of the people who are wanted; memory holds these and one block."""
    groups, names, n_rows = list[tuple[IntArray, pd.DataFrame]](), list[Any](), 0
    path, chosen = shorten(arguments.people, 200), arguments.row_numbers or []
    for block in blocks:
        n_rows = block.first + block.n_rows
        if n_rows > MAX_REPORT_PEOPLE and not chosen:
            raise ParameterError(
                f"A report is for at most {MAX_REPORT_PEOPLE:,} people, but {path} has more. "
                "Choose some with --row, or answer all with mcce explain."
            )
        wanted = np.full(block.n_rows, not chosen)
        wanted[[row - block.first for row in chosen if block.first <= row < n_rows]] = True
        names += [name for cells in block.kept.values() for name in compress(cells, wanted)]
        groups += [
            (block.first + at[wanted[at]], rows.iloc[np.flatnonzero(wanted[at])])
            for at, rows in block.groups
            if wanted[at].any()
        ]
    absent = [row for row in chosen if not 0 <= row < n_rows]
    if absent:
        raise ParameterError(
            f"--row must be from 0 to {n_rows - 1}, the rows of {path}, got {absent[0]}."
        )
    if not groups:
        groups.append((np.empty(0, dtype=np.int64), reader.empty()))
    return groups, names if reader.kept else None


def _provenance(arguments: ReportArguments) -> Provenance:
    """How to get the report again, and checksums of what it was made of."""
    files = [path for path in _made_of(arguments) if Path(path).is_file()]
    return Provenance(
        command=shlex.join(_command(arguments)),
        output=shlex.quote(arguments.output),
        rows=tuple(arguments.row_numbers or ()),
        files={path: read_checksum(path) for path in files},
    )


def _made_of(arguments: ReportArguments) -> Iterator[str]:
    """The files that decide what the report says."""
    yield from (path for path in inputs_of(arguments) if path != arguments.run.key_file)
    yield from (os.path.relpath(path) for path in predictor_files(arguments.predictor))


def _command(arguments: ReportArguments) -> list[str]:
    """The command without its output and rows."""
    predictor = ["--predictor", public_name(arguments.predictor)]
    given = [arguments.explainer.path, arguments.people, *predictor, *_options(arguments)]
    return ["mcce", "report", *given]


def _options(arguments: Any) -> Iterator[str]:
    """The options that are given, as words, without those that decide nothing."""
    for one in fields(arguments):
        value = getattr(arguments, one.name)
        if "group" in one.metadata:
            yield from _options(value)
        elif value != one.default and (name := option_names(one)[:1]) and name[0] not in LEFT_OUT:
            for part in value if isinstance(value, list) else [value]:
                yield from name if part is True else (*name, str(part))
