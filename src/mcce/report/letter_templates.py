"""Templates of letters: what a law, or a company, wants to stand around the explanation.

A template is a text with placeholders. Some are filled with what was computed, see ``COMPUTED``;
all others are fields, which the caller passes for everybody or one by one. A part in brackets is
left out if a field in it is False.

Always true: every field is filled, in every letter, or an error names it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from ..constraints.files import read_text
from ..errors import ConstraintError, ParameterError, did_you_mean, shorten
from ..tables.text import one_line
from .language import Language, fill, optional_placeholders, placeholders

# What a letter says of a decision, the score and what it takes, and the data that were used.
COMPUTED = {"declined", "reasons", "answers", "closing", "score", "rule", "data"}
MAX_FIELD = 2_000


@dataclass(frozen=True)
class LetterTemplate:
    """A template and the language of its fields."""

    text: str
    language: Language

    @classmethod
    def read(cls, given: Any, language: Language) -> Self:
        """The template of a jurisdiction in a language, or one in a text file."""
        if isinstance(given, os.PathLike) or (isinstance(given, str) and given.endswith(".txt")):
            try:
                return cls(read_text(Path(given), "template"), language)
            except ConstraintError as error:
                raise ParameterError(str(error)) from None
        folder = files(__package__).joinpath("templates", "letters")
        known = sorted(file.name.removesuffix(".txt") for file in folder.iterdir())
        file = folder.joinpath(f"{given}.{language.code}.txt")
        if not isinstance(given, str) or f"{given}.{language.code}" not in known:
            listed = ", ".join("{!r} in {!r}".format(*name.split(".")) for name in known)
            raise ParameterError(
                f"template must be the name of a jurisdiction that has a letter in the language of "
                f"the labels, or the path of a .txt file, got {shorten(given)} in "
                f"{language.code!r}. There are {listed}."
            )
        return cls(file.read_text(encoding="utf-8"), language)

    @property
    def fields(self) -> list[str]:
        """The placeholders that the caller fills."""
        return sorted(placeholders(self.text) - COMPUTED)

    def read_fields(
        self, given: Mapping[str, Any] | None, people: pd.Index[Any]
    ) -> list[dict[str, str | None]]:
        """The fields of everybody's letter; None for one whose part is left out."""
        passed = {} if given is None else given
        if not isinstance(passed, Mapping):
            raise ParameterError(f"fields must be a dict of texts by name, got {shorten(given)}.")
        unknown = [name for name in passed if name not in self.fields]
        if unknown:
            raise ParameterError(
                f"fields names {shorten(unknown[0])}, which the template does not use."
                f"{did_you_mean(unknown[0], self.fields)} Its fields are {self.fields!r}."
            )
        missing = [name for name in self.fields if name not in passed]
        if missing:
            raise ParameterError(
                f"The template needs the fields {missing!r}, which are missing. Pass a text for "
                "everybody, or a list with one for each person, in fields; False leaves out a part "
                f"that may be left out: {optional_placeholders(self.text)!r}."
            )
        columns = {name: self._column(name, passed[name], people) for name in self.fields}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _column(self, name: str, given: Any, people: pd.Index[Any]) -> list[str | None]:
        """One field of everybody's letter."""
        listed = isinstance(given, (Sequence, np.ndarray, pd.Series)) and not isinstance(given, str)
        cells = list(given) if listed else [given] * len(people)
        if len(cells) != len(people):
            raise ParameterError(
                f"fields[{name!r}] must be a text, or one for each of {len(people)} people, got "
                f"{len(cells)}."
            )
        return [self._cell(name, cell, label) for cell, label in zip(cells, people, strict=True)]

    def _cell(self, name: str, cell: Any, label: Hashable) -> str | None:
        if cell is False and name in optional_placeholders(self.text):
            return None
        if isinstance(cell, date):
            return self.language.value(cell)
        lines = [one_line(line) for line in str(cell).splitlines()]
        text = "\n".join(line for line in lines if line)
        if not isinstance(cell, (str, int)) or isinstance(cell, bool) or not text:
            raise ParameterError(
                f"fields[{name!r}] must be a text, got {shorten(cell)} for {shorten(label)}."
            )
        if len(text) > MAX_FIELD:
            raise ParameterError(
                f"fields[{name!r}] may have {MAX_FIELD} characters, got {len(text)} for "
                f"{shorten(label)}."
            )
        return text

    def write(self, values: Mapping[str, str | None]) -> str:
        """A letter."""
        return re.sub(r"\n{3,}", "\n\n", fill(self.text, **values)).strip()
