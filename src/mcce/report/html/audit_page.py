"""A privacy audit as one HTML file that needs nothing else, and as a section of a report.

Always true: the file appears whole or not at all; it holds figures, names of columns and pictures,
and no cell of a person.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ParameterError, shorten
from ...privacy import Figure, PrivacyAudit
from ...runtime.replacing import replacing, writing
from ...tables.text import plain
from ...version import __version__
from ..labels import Labels
from ..plots import plot_closest_records, plot_membership
from .page import (
    MAX_TITLE,
    Image,
    PageWords,
    TableView,
    find_template,
    make_image,
    page_style,
    source_hash,
)

PLACES = 4


def write_privacy_report(
    audit: PrivacyAudit,
    path: str | os.PathLike[str],
    labels: Labels | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
) -> None:
    """Write a privacy audit as one HTML file, for reading and for printing.

    Parameters
    ----------
    audit
        What :func:`mcce.privacy.audit` returned.
    path
        The file; one that exists is replaced.
    labels
        As for :func:`write_letters`; of these, the language counts.
    title
        What the page is called.

    Raises
    ------
    ParameterError
        If the audit is none, or the title no text.
    MissingExtraError
        If Jinja2 or matplotlib is not installed.
    WriteError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> from mcce.privacy import audit_rows
    >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
    >>> found = audit_rows(people[:100], people[:100], people[100:200], people[200:])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_privacy_report(found, Path(folder, "privacy.html"))
    ...     "A leak was found." in Path(folder, "privacy.html").read_text(encoding="utf-8")
    True
    """
    if not isinstance(audit, PrivacyAudit):
        raise ParameterError(
            f"audit must be what mcce.privacy.audit returned, got {shorten(audit)}."
        )
    if title is not None and not isinstance(title, str):
        raise ParameterError(f"title must be a text or None, got {shorten(title)}.")
    template, words = find_template("privacy.html"), PageWords(Labels.take(labels))
    style = page_style(words)
    text = template.render(
        say=words.say,
        language=words.language.code,
        title=plain(title or words.language.say("privacy.title"), MAX_TITLE),
        lead=words.language.say("privacy.lead"),
        heading=words.language.say("privacy.h_outcome"),
        privacy=view_privacy(audit, words),
        version=__version__,
        style=style,
        style_hash=source_hash(style),
    )
    with writing(Path(path)), replacing(Path(path)) as stream:
        stream.write(text.encode("utf-8", "backslashreplace"))


@dataclass(frozen=True)
class PartView:
    """Some figures: a heading, what they are, a picture and a table."""

    title: str
    about: str
    image: Image | None
    table: TableView
    notes: list[str]


@dataclass(frozen=True)
class PrivacyView:
    """An audit, as the page shows it."""

    finding: str
    outcome: str
    worst: str
    facts: list[tuple[str, str]]
    parts: list[PartView]
    limits_title: str
    limits: str


def view_privacy(audit: PrivacyAudit, words: PageWords) -> PrivacyView:
    """The view of an audit."""
    view = _View(audit, words)
    n_found = sum(figure.finding in ("leak", "reversed") for figure in audit.figures)
    n_found = n_found or sum(figure.finding == "hint" for figure in audit.figures)
    n_judged = sum(figure.finding != "unknown" for figure in audit.figures)
    counts = {"n": words.number(n_found), "all": words.number(n_judged)}
    outcome = {} if audit.finding == "none" else counts
    return PrivacyView(
        finding=audit.finding,
        outcome=view.say(f"found_{audit.finding}", **outcome),
        worst=view.say("worst"),
        facts=view.facts(),
        parts=[part for part in (view.membership(), view.closest(), view.linkage()) if part],
        limits_title=view.say("h_limits"),
        limits=view.say("limits"),
    )


class _View:
    """Makes the parts of a page on an audit."""

    def __init__(self, audit: PrivacyAudit, words: PageWords) -> None:
        self.audit, self.words = audit, words

    def say(self, key: str, **values: str) -> str:
        return self.words.language.say(f"privacy.{key}", **values)

    def facts(self) -> list[tuple[str, str]]:
        counts = ("n_released", "n_copies", "n_training", "n_each", "n_reference")
        return [
            (self.say("release"), self.say(f"release_{self.audit.release}")),
            *((self.say(name), self.words.number(getattr(self.audit, name))) for name in counts),
        ]

    def membership(self) -> PartView:
        image = make_image(
            lambda axes: plot_membership(self.audit, labels=self._labels, ax=axes),
            4.2,
            self.say("membership_alt"),
        )
        return self._part("membership", [f"{name}_" for name in self.audit.scores], image, [])

    def closest(self) -> PartView:
        image = make_image(
            lambda axes: plot_closest_records(self.audit, labels=self._labels, ax=axes),
            3.4,
            self.say("closest_alt"),
        )
        starts = ["copies", "value_copies", "closest_", "holdout_share"]
        return self._part("closest", starts, image, [])

    def linkage(self) -> PartView | None:
        if not self.audit.quasi_identifiers:
            return None
        notes = [self.say("quasi_identifiers", names=self._names(self.audit.quasi_identifiers))]
        if self.audit.excluded:
            notes.append(self.say("excluded", names=self._names(self.audit.excluded)))
        return self._part("linkage", ["linkage_"], None, notes)

    @property
    def _labels(self) -> dict[str, str]:
        return {"language": self.words.language.code}

    def _names(self, names: Iterable[Hashable]) -> str:
        return ", ".join(plain(name) for name in names)

    def _part(
        self, name: str, starts: list[str], image: Image | None, notes: list[str]
    ) -> PartView:
        """A heading, a picture and the figures whose names start so."""
        title = self.say(f"h_{name}")
        heads = [self.say(key) for key in ("figure", "value", "interval", "null", "verdict")]
        chosen = [f for f in self.audit.figures if f.name.startswith(tuple(starts))]
        table = TableView(
            self.say("caption", name=title), heads, [self._row(f) for f in chosen], numeric=False
        )
        return PartView(title, self.say(f"about_{name}"), image, table, notes)

    def _row(self, figure: Figure) -> list[str]:
        number = self.words.number
        low, high = number(figure.low, PLACES), number(figure.high, PLACES)
        known = figure.low == figure.low
        return [
            self._name(figure.name),
            number(figure.value, PLACES),
            self.say("from_to", low=low, high=high) if known else low,
            number(figure.null, PLACES),
            self.say(f"verdict_{figure.finding}"),
        ]

    def _name(self, name: str) -> str:
        for score in self.audit.scores:
            if name.startswith(f"{score}_"):
                rest, said = name.removeprefix(f"{score}_"), self.say(f"by_{score}")
                if rest == "auc":
                    return self.say("auc", score=said)
                rate = float(rest.removeprefix("tpr_").removesuffix("%"))
                return self.say("tpr", score=said, rate=self.words.number(rate, 1))
        return self.say(name)
