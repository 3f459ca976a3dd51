"""Two models compared, as one HTML file that needs nothing else.

Always true: the file appears whole or not at all; it holds figures, names of columns and the levels
of groups, and no cell of a person.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..comparison import ModelComparison
from ..errors import ParameterError, shorten
from .labels import Labels
from .page import Table, write_section
from .words import Words

COUNTS = ("n", "n_lost", "n_gained", "n_answered")


def write_comparison(
    comparison: ModelComparison,
    path: str | os.PathLike[str],
    labels: Labels | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
) -> None:
    """Write a comparison of two models as one HTML file, for reading and for printing.

    Parameters
    ----------
    comparison
        What :func:`mcce.compare_models` returned.
    path
        The file; one that exists is replaced.
    labels
        Words for the features, and the language, as for :func:`write_letters`.
    title
        What the page is called.

    Raises
    ------
    ParameterError, LabelsError
        If the comparison is none, the title no text, or the labels are not what they should be.
    MissingExtraError
        If Jinja2 is not installed.
    WriteError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from mcce import MCCE, compare_models
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 25, "salary": [*range(20, 70)] * 2})
    >>> old = MCCE(lambda rows: rows["salary"], (50, 99), immutable=["age"], search="near")
    >>> new = MCCE(lambda rows: rows["salary"], (54, 99), immutable=["age"], search="near")
    >>> found = compare_models(old.fit(bank), new.fit(bank), bank)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_comparison(found, Path(folder, "models.html"))
    ...     "refuses 60 of 60 answers" in Path(folder, "models.html").read_text(encoding="utf-8")
    True
    """
    if not isinstance(comparison, ModelComparison):
        raise ParameterError(
            f"comparison must be what compare_models returned, got {shorten(comparison)}."
        )
    words = Words(Labels.take(labels))
    write_section(path, "models", words, title, models=ComparisonSection(comparison, words))


class ComparisonSection:
    """A comparison, for the template."""

    def __init__(self, comparison: ModelComparison, words: Words) -> None:
        self.words = words
        # The first row is everybody.
        self._groups = comparison.groups.to_dict("records")
        self._features = comparison.features.to_dict("records")

    def say(self, key: str, **values: str) -> str:
        """A text about comparisons."""
        return self.words.say(f"models.{key}", **values)

    @property
    def outcome(self) -> str:
        """How many answers are refused."""
        row, figure = self._groups[0], self.words.figure
        if not row["n_answered"]:
            return self.say("found_none")
        n_refused = round(row["broken"] * row["n_answered"])
        counts = {"n": figure(n_refused), "all": figure(row["n_answered"])}
        return self.say("found", **counts, **self._interval(row))

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Whose decision changes, and who has an answer."""
        return [(self.say(name), self.words.figure(self._groups[0][name])) for name in COUNTS]

    @property
    def tables(self) -> list[tuple[Table, str]]:
        """The groups and the features, each with a note."""
        changes = ("old_share", "new_share", "old_change", "new_change")
        actions, shares = ("old_actions", "new_actions"), ("refused", "interval")
        groups = ["group", *COUNTS, *shares, *actions]
        return [
            (self._table("groups", groups, map(self._group, self._groups)), "groups_note"),
            (
                self._table("features", ["feature", *changes], map(self._feature, self._features)),
                "features_note",
            ),
        ]

    def _table(self, name: str, heads: list[str], rows: Any) -> Table:
        return Table(self.say(name), [self.say(f"head_{head}") for head in heads], list(rows))

    def _group(self, row: Mapping[Any, Any]) -> list[str]:
        known = self._interval(row)
        name = self.say("everybody")
        if row is not self._groups[0]:
            level = self.words.values(row["group"], [row["level"]])[0]
            name = f"{self.words.title(row['group'])}: {level}"
        return [
            name,
            *(self.words.figure(row[count]) for count in COUNTS),
            known["share"],
            self.say("from_to", **known) if row["n_answered"] else known["low"],
            *(self.words.figure(row[f"{model}_actions"], 2) for model in ("old", "new")),
        ]

    def _feature(self, row: Mapping[Any, Any]) -> list[str]:
        percent, figure = self.words.language.percent, self.words.figure
        return [
            self.words.title(row["feature"]),
            *(percent(row[f"{model}_share"]) for model in ("old", "new")),
            *(figure(row[f"{model}_change"]) for model in ("old", "new")),
        ]

    def _interval(self, row: Mapping[Any, Any]) -> dict[str, str]:
        """The share of answers that are refused, and its interval."""
        columns = {"share": "broken", "low": "broken_low", "high": "broken_high"}
        return {key: self.words.language.percent(row[name]) for key, name in columns.items()}
