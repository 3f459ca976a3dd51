"""A report: the run and everybody in it, as one HTML file that needs nothing else.

Beyond the paper. Takes an explainer and what its ``explain`` returned. Everything from data passes
through the escaping of Jinja2; a policy in the page forbids requests, and scripts and styles but
its own.

Always true: the file appears whole or not at all; the same answers give the same bytes, given the
same version of matplotlib; nothing in it is loaded from elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..counterfactuals.parts import ALREADY
from ..counterfactuals.result import Counterfactuals, number_people, take_people
from ..errors import ParameterError, shorten
from ..explainer import MCCE, requirements_of
from ..kernels import IntArray
from ..parameters import check_count
from ..privacy.audit_result import PrivacyAudit
from ..runtime.files import replacing, writing
from ..tables.text import one_line, short_line
from ..version import __version__
from .audit_page import AuditSection
from .board import Appendix, Board
from .labels import Labels
from .letters import require_explainer
from .page import Provenance, checksum_of, find_template, page_frame
from .people import MAX_NAME, Axes, PeopleSection, PeopleSettings, PersonView
from .plots.audits import check_audit
from .plots.style import check_result
from .words import Words

MAX_CARD = 20_000
# People whose ranges and letters are found at a time; how many changes nothing.
BLOCK_PEOPLE = 100


@dataclass(frozen=True, eq=False)
class ReportOptions:
    """How a report is written; see :func:`write_report`."""

    labels: Labels = field(default_factory=Labels)
    constraints: Any = None
    groups: Sequence[Hashable] | None = None
    n_answers: int = 3
    max_people: int = 1_000
    names: Sequence[Any] | None = None
    title: str | None = None
    card: str | None = None
    privacy: PrivacyAudit | None = None
    provenance: Provenance = field(default_factory=Provenance)
    # Called with the number of people who are written.
    callback: Callable[[int], object] | None = None


def write_report(
    explainer: MCCE,
    result: Counterfactuals[Any],
    path: str | os.PathLike[str],
    labels: Labels | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    constraints: Any = None,
    groups: Sequence[Hashable] | None = None,
    n_answers: int = 3,
    max_people: int = 1_000,
    names: Sequence[Any] | None = None,
    title: str | None = None,
    card: str | None = None,
    privacy: PrivacyAudit | None = None,
) -> None:
    """Write a report on a run and everybody in it: one HTML file, for reading and for printing.

    Parameters
    ----------
    explainer
        The fitted explainer.
    result
        What its ``explain`` returned.
    path
        The file; one that exists is replaced.
    labels
        The words for the features, as for :func:`write_letters`; their language is that of the
        report.
    constraints
        Further constraints that were passed to ``explain``.
    groups
        Columns whose groups are compared. None is those that nobody can change and that have at
        most 12 values. Numbers with more values are cut into quarters.
    n_answers
        The most answers of each person.
    max_people
        The most people who are shown one by one, the first ones. All are counted.
    names
        What people are called, one for each; their labels if None.
    title
        What the report is called.
    card
        A text about the data: where they come from, and what to watch out for.
    privacy
        An audit of the explainer by :func:`mcce.privacy.audit`, to be shown.

    Raises
    ------
    LabelsError
        If the labels are not valid, or a feature that can change has no reason in words.
    NotFittedError, ParameterError, SchemaError
        If the explainer is not fitted, the result is not one of it, or an option has no such value.
    MissingExtraError
        If Jinja2 or matplotlib is not installed.
    WriteError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), immutable=["age"])
    >>> result = explainer.set_params(random_state=0).fit(bank).explain(bank)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(explainer, result, Path(folder, "report.html"), title="Salaries")
    ...     "<h1>Salaries</h1>" in Path(folder, "report.html").read_text(encoding="utf-8")
    True
    """
    require_explainer(explainer)
    own = check_result(result).people.index
    options = ReportOptions(
        labels=Labels.take(labels),
        constraints=constraints,
        groups=groups,
        n_answers=n_answers,
        max_people=max_people,
        names=list(own) if names is None else names,
        title=title,
        card=card,
        privacy=privacy,
    )
    write_page(explainer, [(np.arange(len(own)), result)], path, options)


def write_page(
    explainer: MCCE,
    results: Sequence[tuple[IntArray, Counterfactuals[Any]]],
    path: str | os.PathLike[str],
    options: ReportOptions,
) -> None:
    """Write a report on people whose answers came in several results."""
    template = find_template("report.html")
    check_options(explainer, options, sum(len(positions) for positions, _ in results))
    numbered = [
        number_people(_finalize(explainer, result, options).to_pandas(), positions)
        for positions, result in results
    ]
    page = _page(explainer, numbered, options)
    with writing(Path(path)), replacing(Path(path)) as stream:
        for text in template.generate(**page):
            # Names of files need not be Unicode.
            stream.write(text.encode("utf-8", "backslashreplace"))


def _finalize(
    explainer: MCCE, result: Counterfactuals[Any], options: ReportOptions
) -> Counterfactuals[Any]:
    rounding = options.labels.rounding(explainer.schema_)
    return explainer.finalize(result, rounding=rounding, constraints=options.constraints)


def check_options(explainer: MCCE, options: ReportOptions, n_people: int) -> None:
    """Raise if a report cannot be written so; before anything is computed."""
    rules = requirements_of(explainer, options.constraints).constraints
    options.labels.check(explainer.schema_, rules.frozen_for_everybody)
    check_count("n_answers", options.n_answers)
    check_count("max_people", options.max_people)
    names = options.names
    if names is not None and (isinstance(names, str) or len(names) != n_people):
        raise ParameterError(
            f"names must have one name for each of {n_people} people, got {shorten(names)}."
        )
    for name, text in (("title", options.title), ("card", options.card)):
        if text is not None and not isinstance(text, str):
            raise ParameterError(f"{name} must be a text or None, got {shorten(text)}.")
    if options.privacy is not None:
        check_audit(options.privacy, "privacy")


def _page(
    explainer: MCCE, results: Sequence[Counterfactuals[pd.DataFrame]], options: ReportOptions
) -> dict[str, Any]:
    """Everything that the template shows."""
    words, decision = Words(options.labels), explainer.decision_
    status = pd.concat([result.people["status"] for result in results]).sort_index()
    declined, rows = status.index[status != ALREADY].tolist(), status.index.tolist()
    given = rows if options.names is None else options.names
    names = {row: short_line(name, MAX_NAME) for row, name in zip(rows, given, strict=True)}
    axes, board = Axes(explainer.fitted_, words), Board(explainer, results, words, options.groups)
    settings = PeopleSettings(explainer, options.constraints, words, names, axes, options.n_answers)
    shown, listed = set(declined[: options.max_people]), list[PersonView]()
    return {
        **page_frame(words, options.title or words.say("report.title"), script="report.js"),
        "say": board.say,
        "rule": words.rule(decision),
        "board": board,
        "appendix": Appendix(explainer, words, options.constraints),
        "privacy": None if options.privacy is None else AuditSection(options.privacy, words),
        "card": "\n".join(map(one_line, (options.card or "")[:MAX_CARD].splitlines())),
        "people": _everybody(results, shown, settings, options.callback, listed),
        "listed": listed,
        "names": names,
        "shown": shown,
        "n_shown": len(shown),
        "n_declined": len(declined),
        "axes": axes,
        "provenance": options.provenance,
        "fingerprint": _checksum(results),
    }


def _everybody(
    results: Sequence[Counterfactuals[pd.DataFrame]],
    shown: Collection[int],
    settings: PeopleSettings,
    callback: Callable[[int], object] | None,
    listed: list[PersonView],
) -> Iterator[PersonView]:
    """The people who are shown, in their order; they are listed once they were."""

    def in_steps(result: Counterfactuals[pd.DataFrame]) -> Iterator[PersonView]:
        places = np.flatnonzero(result.people.index.isin(shown))
        for start in range(0, places.size, BLOCK_PEOPLE):
            some = take_people(result, places[start : start + BLOCK_PEOPLE])
            yield from PeopleSection(some, settings).views()

    for person in merge(*map(in_steps, results), key=lambda person: person.row):
        yield person
        listed.append(person)
        if callback is not None:
            callback(len(listed))


def _checksum(results: Sequence[Counterfactuals[Any]]) -> str:
    """A checksum of everybody's rows and answers."""
    people = [
        frame.astype(str).to_dict("split")
        for result in results
        for frame in (result.factuals, result.frame)
    ]
    return checksum_of([__version__, people])
