"""A privacy audit as one HTML file that needs nothing else, and as a section of a report.

Always true: the file appears whole or not at all; it holds figures, names of columns and pictures,
and no cell of a person.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from ..errors import missing_extra
from ..privacy.audit_result import Figure, PrivacyAudit
from ..tables.text import short_line
from .labels import Labels
from .page import PAPER, Table, write_section
from .plots.audits import check_audit, plot_closest_records, plot_membership
from .words import Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLACES = 4
SALT = "mcce"


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
    >>> from pathlib import Path
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
    check_audit(audit)
    words = Words(Labels.take(labels))
    write_section(path, "privacy", words, title, privacy=AuditSection(audit, words))


class AuditSection:
    """An audit, for the template."""

    def __init__(self, audit: PrivacyAudit, words: Words) -> None:
        self.audit, self.words = audit, words

    def say(self, key: str, **values: str) -> str:
        """A text about audits."""
        return self.words.say(f"privacy.{key}", **values)

    @property
    def outcome(self) -> str:
        """What was found, and by how many figures."""
        findings = [figure.finding for figure in self.audit.figures]
        n_found = sum(finding in ("leak", "reversed") for finding in findings)
        n_found = n_found or findings.count("hint")
        n_judged = len(findings) - findings.count("unknown")
        counts = {"n": self.words.figure(n_found), "all": self.words.figure(n_judged)}
        known = {} if self.audit.finding == "none" else counts
        return self.say(f"found_{self.audit.finding}", **known)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What was audited."""
        counts = ("n_released", "n_copies", "n_training", "n_each", "n_reference")
        return [
            (self.say("release"), self.say(f"release_{self.audit.release}")),
            *((self.say(name), self.words.figure(getattr(self.audit, name))) for name in counts),
        ]

    @property
    def parts(self) -> list[Part]:
        """The figures by kind of attack."""
        membership = [f"{name}_" for name in self.audit.scores]
        closest = ["copies", "value_copies", "closest_", "holdout_share"]
        parts = [
            self._part("membership", membership, self._image("membership", plot_membership, 4.2)),
            self._part("closest", closest, self._image("closest", plot_closest_records, 3.4)),
        ]
        if self.audit.quasi_identifiers:
            notes = [
                self.say(key, names=", ".join(map(short_line, names)))
                for key, names in (
                    ("quasi_identifiers", self.audit.quasi_identifiers),
                    ("excluded", self.audit.excluded),
                )
                if names
            ]
            parts.append(self._part("linkage", ["linkage_"], None, notes))
        return parts

    def _image(self, name: str, plot: Callable[..., Any], height: float) -> Image:
        labels = {"language": self.words.language.code}
        return make_image(
            lambda axes: plot(self.audit, labels=labels, ax=axes), height, self.say(f"{name}_alt")
        )

    def _part(
        self, name: str, starts: Sequence[str], image: Image | None, notes: Sequence[str] = ()
    ) -> Part:
        """A heading, a picture and the figures whose names start so."""
        title = self.say(f"h_{name}")
        heads = [self.say(key) for key in ("figure", "value", "interval", "null", "verdict")]
        chosen = [f for f in self.audit.figures if f.name.startswith(tuple(starts))]
        table = Table(self.say("caption", name=title), heads, [self._row(f) for f in chosen])
        return Part(title, image, table, [self.say(f"about_{name}"), *notes])

    def _row(self, figure: Figure) -> list[str]:
        number = self.words.figure
        low, high = number(figure.low, PLACES), number(figure.high, PLACES)
        known = figure.low == figure.low
        return [
            self.name_of(figure.name),
            number(figure.value, PLACES),
            self.say("from_to", low=low, high=high) if known else low,
            number(figure.null, PLACES),
            self.say(f"verdict_{figure.finding}"),
        ]

    def name_of(self, name: str) -> str:
        """The name of a figure in words."""
        for score in self.audit.scores:
            if name.startswith(f"{score}_"):
                rest, attack = name.removeprefix(f"{score}_"), self.say(f"by_{score}")
                if rest == "auc":
                    return self.say("auc", score=attack)
                rate = float(rest.removeprefix("tpr_").removesuffix("%"))
                return self.say("tpr", score=attack, rate=self.words.figure(rate, 1))
        return self.say(name)


@dataclass(frozen=True)
class Image:
    """A picture for a light and a dark page, and what it shows in words."""

    light: str
    dark: str
    alt: str


@dataclass(frozen=True)
class Part:
    """A part of an audit: a heading, sentences, a picture if there is one, and a table."""

    title: str
    image: Image | None
    table: Table
    about: Sequence[str]


def make_image(draw: Callable[[Axes], Axes], height: float, alt: str) -> Image:
    """A picture on backgrounds of both kinds."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("matplotlib", "report", "A report") from error
    uris = {}
    # The same salt and no date: the same pictures have the same bytes.
    with mpl.rc_context({"svg.hashsalt": SALT, "svg.fonttype": "path"}):
        for name, paper in PAPER.items():
            figure = Figure(figsize=(7.5, height), facecolor=paper, layout="constrained")
            FigureCanvasSVG(figure)
            axes = figure.add_subplot()
            axes.set_facecolor(paper)
            draw(axes)
            content = BytesIO()
            figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
            code = b64encode(content.getvalue()).decode("ascii")
            uris[name] = f"data:image/svg+xml;base64,{code}"
    return Image(uris["light"], uris["dark"], alt)
