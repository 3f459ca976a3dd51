"""A privacy audit as one HTML file that needs nothing else.

Always true: the file appears whole or not at all; it holds figures, names of columns and pictures,
and no cell of a person.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import ParameterError, shorten
from ...privacy import PrivacyAudit
from ...runtime.replacing import replacing, writing
from ...tables.text import plain
from ...version import __version__
from ..labels import Labels
from .privacy import view_privacy
from .words import PageWords
from .writing import MAX_TITLE, find_template, page_style, source_hash


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
