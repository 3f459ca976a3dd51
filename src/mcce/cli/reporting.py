"""A run of ``mcce report``: from the request to the file.

Always true: nothing is computed before input, output and options are checked; people get the
answers that ``mcce explain`` gives them.
"""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..counterfactuals import Counterfactuals
from ..errors import ParameterError, ReadError, shorten
from ..explainer import MCCE
from ..files.people import PeopleReader
from ..files.sources import RawBlock, reading
from ..kernels import IntArray
from ..report.html.page import Provenance
from ..report.html.report_page import ReportOptions, check_options, write_page
from ..report.labels import Labels
from ..runtime.progress import without_prints, without_warnings
from .options import check_output, split_names
from .running import ExplainerFile, PeopleFile, explain_people, read_checksum
from .terminal import PeopleBar, printable, say, show_json, wrap

# More people than these do not fit one page.
MOST_PEOPLE = 50_000


@dataclass(frozen=True)
class Look:
    """What the report looks like; see the options of ``mcce report``."""

    labels: str | None = None
    language: str | None = None
    groups: Sequence[str] | None = None
    title: str | None = None
    card: str | None = None
    max_people: int = 1_000


@dataclass(frozen=True)
class ReportRequest:
    """What the user asked for; see the options of ``mcce report``."""

    explainer: ExplainerFile
    people: PeopleFile
    output: str
    overwrite: bool = False
    rows: Sequence[int] = ()
    look: Look = Look()
    as_json: bool = False
    quiet: bool = False


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The people of a report: rows for the explainer by position in the file, and their names."""

    groups: list[tuple[IntArray, pd.DataFrame]]
    names: list[Any] | None


def run(request: ReportRequest) -> None:
    """Write a report on the people of a file."""
    _check_output(request)
    labels, card = _labels(request.look), _card(request.look.card)
    explainer, rules = request.explainer.load(), request.explainer.read_rules()
    chosen = _read(request, explainer)
    n_people = sum(len(at) for at, _ in chosen.groups)
    options = ReportOptions(
        labels=labels,
        constraints=rules,
        groups=split_names(request.look.groups, list(map(str, explainer.schema_.names))),
        n_answers=request.explainer.n_counterfactuals or ReportOptions.n_answers,
        max_people=request.look.max_people,
        names=chosen.names,
        title=request.look.title,
        card=card,
        provenance=_provenance(request),
    )
    check_options(explainer, options, n_people)
    began = time.monotonic()
    with without_warnings():
        with PeopleBar(n_people, wanted=not request.quiet) as bar:
            results = [
                (at, explain_people(explainer, rows, rules, bar)) for at, rows in chosen.groups
            ]
        n_shown = min(n_people, options.max_people)
        with (
            without_prints(),
            PeopleBar(n_shown, wanted=not request.quiet, doing="write") as bar,
        ):
            write_page(explainer, results, request.output, replace(options, callback=bar.show))
    _summarize(request, [result for _, result in results], time.monotonic() - began)


def _check_output(request: ReportRequest) -> None:
    if Path(request.output).suffix.lower() not in (".html", ".htm"):
        raise ParameterError(
            f"A report is written to a file, got -o {shorten(request.output, 200)}. Name one that "
            "ends in .html."
        )
    read = [request.people.path, request.look.labels, request.look.card]
    check_output(request.output, [*read, *request.explainer.files])
    if Path(request.output).exists() and not request.overwrite:
        raise ParameterError(
            f"{shorten(request.output, 200)} exists already. Replace it with --overwrite, or name "
            "another output."
        )


def _labels(look: Look) -> Labels:
    if look.labels is None:
        return Labels.make({} if look.language is None else {"language": look.language})
    if look.language is not None:
        raise ParameterError(
            "--labels and --language do not go together: a labels file says its language itself."
        )
    return Labels.read(look.labels)


def _card(path: str | None) -> str | None:
    if path is None:
        return None
    with reading(path):
        try:
            return Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ReadError(f"{shorten(path, 200)} is no text in UTF-8.") from None


def _read(request: ReportRequest, explainer: MCCE) -> _Chosen:
    """The people who are asked for."""
    file = request.people
    with file.open() as source:
        reader = file.reader(source, explainer.schema_, file.keep or ())
        return _choose(request, reader, file.blocks(source, reader, MOST_PEOPLE))


def _choose(request: ReportRequest, reader: PeopleReader, blocks: Iterable[RawBlock]) -> _Chosen:
    """Rows and names of the people who are asked for; memory holds these and one block."""
    groups, names, n_rows = list[tuple[IntArray, pd.DataFrame]](), list[Any](), 0
    for block in blocks:
        n_rows = block.first + block.n_rows
        if n_rows > MOST_PEOPLE and not request.rows:
            raise ParameterError(
                f"A report is for at most {MOST_PEOPLE:,} people, but {_path(request)} has more. "
                "Choose some with --row, or answer all with mcce explain."
            )
        wanted = np.full(block.n_rows, not request.rows)
        wanted[[row - block.first for row in request.rows if block.first <= row < n_rows]] = True
        people = reader.read(block)
        names += [name for cells in people.kept.values() for name in compress(cells, wanted)]
        groups += [
            (block.first + at[wanted[at]], rows.iloc[np.flatnonzero(wanted[at])])
            for at, rows in people.groups
            if wanted[at].any()
        ]
    absent = [row for row in request.rows if not 0 <= row < n_rows]
    if absent:
        raise ParameterError(
            f"--row must be from 0 to {n_rows - 1}, the rows of {_path(request)}, got {absent[0]}."
        )
    if not groups:
        groups.append((np.empty(0, dtype=np.int64), reader.empty()))
    return _Chosen(groups, names if reader.kept else None)


def _path(request: ReportRequest) -> str:
    return shorten(request.people.path, 200)


def _provenance(request: ReportRequest) -> Provenance:
    """How to get the report again, and checksums of what it was made of."""
    look, people = request.look, request.people
    explainer = request.explainer
    paths = [explainer.path, people.path, explainer.predictor.name, explainer.rules]
    read = [path for path in (*paths, look.labels, look.card) if path and Path(path).is_file()]
    return Provenance(
        command=shlex.join(_command(request)),
        output=shlex.quote(request.output),
        rows=tuple(request.rows),
        files={path: read_checksum(path) for path in read},
    )


def _command(request: ReportRequest) -> list[str]:
    """The command without its output and rows; options that decide nothing are left out."""
    look, people, explainer = request.look, request.people, request.explainer
    predictor = explainer.predictor
    given: dict[str, Any] = {
        "--predictor-kind": predictor.kind,
        "--output-is": predictor.output,
        "--class": predictor.classes,
        "--format": people.format,
        "--delimiter": _unusual(people, "delimiter"),
        "--dtype": people.dtypes,
        "--name": people.keep,
        "--rules": explainer.rules,
        "--n-counterfactuals": explainer.n_counterfactuals,
        "--tolerance": _unusual(explainer, "tolerance"),
        "--key-file": explainer.key_file,
        "--labels": look.labels,
        "--language": look.language,
        "--groups": look.groups,
        "--title": look.title,
        "--card": look.card,
        "--max-people": _unusual(look, "max_people"),
    }
    words = ["mcce", "report", explainer.path, people.path, "--predictor", predictor.shown]
    words += ["--trust"] if predictor.trust else []
    for option, value in given.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        words += [word for one in values if one is not None for word in (option, str(one))]
    return words


def _unusual(options: Any, name: str) -> Any:
    """The value of an option; None if it is the default."""
    value = getattr(options, name)
    return None if value == getattr(type(options), name) else value


def _summarize(
    request: ReportRequest, results: Sequence[Counterfactuals[pd.DataFrame]], seconds: float
) -> None:
    totals = Counter(chain.from_iterable(result.people["status"] for result in results))
    n_people, n_bytes = sum(totals.values()), Path(request.output).stat().st_size
    if request.as_json:
        show_json(
            {
                "output": request.output,
                "bytes": n_bytes,
                "n_people": n_people,
                "status": dict(totals),
                "seconds": round(seconds, 3),
            }
        )
    elif not request.quiet:
        listed = ", ".join(f"{count:,} {status}" for status, count in sorted(totals.items()))
        text = f"mcce: {n_people:,} people in {seconds:.1f} s: {listed or 'nobody'}. Report: "
        say(wrap(f"{text}{printable(request.output)} ({n_bytes / 1e6:.1f} MB)"))
