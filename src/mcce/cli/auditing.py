"""A run of ``mcce privacy-audit``: from the request to the figures and the page.

Always true: nothing is computed before the output is checked; real rows are read by the columns of
the explainer, as people are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..errors import ParameterError, ReadError, shorten
from ..explainer import MCCE
from ..files.people import PeopleReader
from ..files.sources import find_format, iterate, open_source
from ..privacy import PrivacyAudit, audit
from ..privacy.result import MEANINGS, as_json, interval, number
from ..report import write_privacy_report
from ..runtime.progress import without_prints
from .options import check_output, split_names
from .running import BLOCK_ROWS, ExplainerFile
from .terminal import printable, say, show, show_json, table, wrap


@dataclass(frozen=True)
class RealRows:
    """The files of real rows; see the options of ``mcce privacy-audit``."""

    training: str
    holdout: str
    reference: str | None = None
    format: str | None = None
    delimiter: str = ","


@dataclass(frozen=True)
class Attack:
    """What is released and measured; see the options of ``mcce privacy-audit``."""

    release: str = "answers"
    n_people: int = 1_000
    quasi_identifiers: Sequence[str] | None = None
    private: Sequence[str] | None = None
    seed: int = 0


@dataclass(frozen=True)
class Page:
    """The page, if one is wanted."""

    path: str | None = None
    overwrite: bool = False
    language: str = "en"


@dataclass(frozen=True)
class AuditRequest:
    """What the user asked for; see the options of ``mcce privacy-audit``."""

    explainer: ExplainerFile
    rows: RealRows
    attack: Attack = Attack()
    page: Page = Page()
    as_json: bool = False
    quiet: bool = False


def run(request: AuditRequest) -> None:
    """Audit an explainer."""
    _check_page(request)
    explainer = request.explainer.load()
    files = request.rows
    training, holdout = (
        _read(request, explainer, path) for path in (files.training, files.holdout)
    )
    reference = None if files.reference is None else _read(request, explainer, files.reference)
    known, attack = [str(name) for name in explainer.schema_.names], request.attack
    with without_prints():
        found = audit(
            explainer,
            training,
            holdout,
            reference,
            release=attack.release,  # type: ignore[arg-type]
            n_people=attack.n_people,
            quasi_identifiers=split_names(attack.quasi_identifiers, known),
            private=split_names(attack.private, known),
            random_state=attack.seed,
        )
    if request.page.path is not None:
        write_privacy_report(found, request.page.path, {"language": request.page.language})
    _show(request, found)


def _check_page(request: AuditRequest) -> None:
    path, rows = request.page.path, request.rows
    if path is None:
        return
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise ParameterError(
            f"The page is written to a file, got -o {shorten(path, 200)}. Name one that ends in "
            ".html."
        )
    check_output(path, [rows.training, rows.holdout, rows.reference, *request.explainer.files])
    if Path(path).exists() and not request.page.overwrite:
        raise ParameterError(
            f"{shorten(path, 200)} exists already. Replace it with --overwrite, or name another "
            "output."
        )


def _read(request: AuditRequest, explainer: MCCE, path: str) -> pd.DataFrame:
    """All rows of a file, in the columns of the explainer."""
    kind = find_format(path, request.rows.format)
    parts: list[pd.DataFrame] = []
    with open_source(path, kind, request.rows.delimiter) as source:
        reader = PeopleReader.plan(path, source, explainer.schema_)
        for block in iterate(path, source, reader.columns, BLOCK_ROWS):
            parts += [rows.set_axis(at + block.first) for at, rows in reader.read(block).groups]
    if not parts:
        raise ReadError(f"{shorten(path, 200)} has no rows. Name a file with some.")
    return pd.concat(parts).sort_index()


def _show(request: AuditRequest, found: PrivacyAudit) -> None:
    """The figures on standard output, and the outcome on standard error."""
    path = request.page.path
    if request.as_json:
        show_json(as_json(found) | ({} if path is None else {"output": path}))
        return
    rows = [
        (f.name, number(f.value), interval(f), number(f.null), f.finding) for f in found.figures
    ]
    show(table(["figure", "value", "95 % interval", "without a leak", "finding"], rows))
    if request.quiet:
        return
    for name in found.leaks:
        say(wrap(f"mcce: leak by {name}: {MEANINGS[name]}."))
    said = found.summary()
    if found.excluded:
        names = ", ".join(map(str, found.excluded))
        said += f" Not used as quasi-identifiers, since nobody can change them: {names}."
    if path is not None:
        said += f" Page: {path}"
    say(wrap(f"mcce: {printable(said)}"))
