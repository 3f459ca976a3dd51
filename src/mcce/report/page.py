"""What pages are made of: templates, pictures, tables, and where a report comes from.

Always true: a page loads nothing, and runs no script but its own; equal content has equal checksums
on every machine.
"""

from __future__ import annotations

import hashlib
import json
import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ParameterError, missing_extra, shorten
from ..runtime.files import replacing, writing
from ..tables.text import short_line
from ..version import __version__
from .plots.style import DARK, LIGHT
from .words import Words

# Backgrounds of the page, as in its style sheet.
PAPER = {"light": "#ffffff", "dark": "#1d2328"}
MAX_TITLE = 120


@dataclass(frozen=True)
class Table:
    """A table: what it shows, its heads, and rows of texts, the first of each being its head.

    ``bars`` are shares that are drawn beside the rows.
    """

    caption: str
    heads: list[str]
    rows: list[list[str]]
    bars: Sequence[float] = ()


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
        "language": words.language.code,
        "title": short_line(title, MAX_TITLE),
        "version": __version__,
        "style": style,
        "script": code,
        "hashes": {"style": _source_hash(style), "script": _source_hash(code)},
    }


def write_section(
    path: str | os.PathLike[str], name: str, words: Words, title: str | None, **section: Any
) -> None:
    """Write a page that is one section, of which ``name`` is the template and the words."""
    if title is not None and not isinstance(title, str):
        raise ParameterError(f"title must be a text or None, got {shorten(title)}.")
    frame = page_frame(words, title or words.say(f"{name}.title"))
    text = find_template(f"{name}.html").render(**frame, **section)
    with writing(Path(path)), replacing(Path(path)) as stream:
        stream.write(text.encode("utf-8", "backslashreplace"))


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
    keys = ("now", "after", "would_do")
    heads = "".join(f"--{key}:{json.dumps(words.say(f'report.{key}'))};" for key in keys)
    return f"{light}{dark}:root{{{heads}}}\n{_read('report.css')}"


def _source_hash(text: str) -> str:
    """How a policy of the page names a script or style."""
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


@dataclass(frozen=True)
class Provenance:
    """How a report was made.

    Examples
    --------
    >>> made = Provenance("mcce report bank.mcce people.csv", "report.html")
    >>> made.run
    'mcce report bank.mcce people.csv -o report.html'
    >>> made.of_person
    'mcce report bank.mcce people.csv --row ROW -o person-ROW.html'
    >>> Provenance().of_person
    'explainer.explain(people.iloc[[ROW]])'
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

    @property
    def of_person(self) -> str:
        """The command that gives one person the same answers again, in which ROW is their row."""
        if self.command is None:
            return "explainer.explain(people.iloc[[ROW]])"
        return f"{self.command} --row ROW -o person-ROW.html"


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
