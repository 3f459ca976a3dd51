"""What pages are made of: templates, pictures, tables, and where a report comes from.

Always true: a page loads nothing, and runs no script but its own; equal content has equal checksums
on every machine.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import missing_extra
from ..tables.text import short_line
from ..version import __version__
from .plots.style import DARK, LIGHT
from .words import Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Backgrounds of the page, as in its style sheet.
PAPER = {"light": "#ffffff", "dark": "#1d2328"}
SALT = "mcce"
MAX_TITLE = 120


@dataclass(frozen=True)
class Image:
    """A picture for a light and a dark page, and what it shows in words."""

    light: str
    dark: str
    alt: str


@dataclass(frozen=True)
class Table:
    """A table: what it shows, its heads, and rows of texts, the first of each being its head."""

    caption: str
    heads: list[str]
    rows: list[list[str]]
    numeric: bool = True


@dataclass(frozen=True)
class Part:
    """A part of a section: a heading, a picture, a table and sentences above them."""

    title: str
    image: Image | None
    table: Table
    about: Sequence[str] = ()


def find_template(name: str) -> Any:
    """A template by name; raises MissingExtraError without Jinja2."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise missing_extra("Jinja2", "report", "A report") from error
    made = Environment(
        autoescape=True,
        loader=FunctionLoader(_read),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return made.get_template(name)


def page_frame(words: Words, title: str, *, script: str | None = None) -> dict[str, Any]:
    """What the frame of every page shows; ``script`` is the name of a file."""
    style, code = _style(words), "" if script is None else _read(script)
    return {
        "words": words,
        "say": lambda key, **values: words.say(f"report.{key}", **values),
        "language": words.language.code,
        "title": short_line(title, MAX_TITLE),
        "version": __version__,
        "style": style,
        "script": code,
        "hashes": {"style": _source_hash(style), "script": _source_hash(code)},
    }


def _read(name: str) -> str:
    """A template, script or style of the pages."""
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _style(words: Words) -> str:
    """The style sheet, with the colours of pictures and the heads that narrow tables show."""
    variables = {
        kind: "".join(f"--{name}:{colour};" for name, colour in vars(theme).items())
        for kind, theme in (("light", LIGHT), ("dark", DARK))
    }
    light, dark = (f":root{{--card:{PAPER[kind]};{variables[kind]}}}" for kind in variables)
    dark = f"@media screen and (prefers-color-scheme:dark){{{dark}}}"
    heads = "".join(f"--{k}:{json.dumps(words.say(f'report.{k}'))};" for k in ("now", "after"))
    return f"{light}{dark}:root{{{heads}}}\n{_read('report.css')}"


def _source_hash(text: str) -> str:
    """How a policy of the page names a script or style."""
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


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


@dataclass(frozen=True)
class Provenance:
    """How a report was made.

    Examples
    --------
    >>> made = Provenance("mcce report bank.mcce people.csv", "report.html")
    >>> made.run
    'mcce report bank.mcce people.csv -o report.html'
    >>> made.of_person(17)
    'mcce report bank.mcce people.csv --row 17 -o person-17.html'
    >>> Provenance().of_person(17)
    'explainer.explain(people.iloc[[17]])'
    """

    command: str | None = None
    output: str = "report.html"
    rows: Sequence[int] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def run(self) -> str:
        """The command that makes the report again."""
        if self.command is None:
            return "write_report(explainer, explainer.explain(people), path)"
        rows = "".join(f" --row {row}" for row in self.rows)
        return f"{self.command}{rows} -o {self.output}"

    def of_person(self, row: int) -> str:
        """The command that gives one person the same answers again."""
        if self.command is None:
            return f"explainer.explain(people.iloc[[{row}]])"
        return f"{self.command} --row {row} -o person-{row}.html"


def checksum_of(content: Any) -> str:
    """A checksum of plain values, cells included.

    Examples
    --------
    >>> checksum_of({"age": np.int64(25)}) == checksum_of({"age": 25})
    True
    """
    text = json.dumps(content, default=_json_value, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _json_value(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else str(cell)
