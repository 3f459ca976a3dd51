"""The people that a page offers to choose from: names, rows and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ..counterfactuals.people import as_records, plain_value
from ..explainer import MCCE
from ..kernels import IntArray
from ..tables.text import plain


@dataclass(frozen=True, eq=False)
class Directory:
    """People to choose from."""

    people: Sequence[dict[str, Any]] = field(repr=False)
    names: Sequence[str] = field(repr=False)
    scores: Sequence[Any] = field(repr=False)
    desired: Sequence[bool] = field(repr=False)

    def __len__(self) -> int:
        return len(self.people)

    def find(self, query: str, offset: int, limit: int) -> dict[str, Any]:
        """People whose name holds a text, some at a time."""
        wanted = query.casefold().strip()
        found = [at for at, name in enumerate(self.names) if wanted in name.casefold()]
        listed = [
            {
                "row": at,
                "name": self.names[at],
                "score": self.scores[at],
                "desired": self.desired[at],
            }
            for at in found[offset : offset + limit]
        ]
        return {"n_people": len(self), "n_found": len(found), "people": listed}

    def person(self, row: int) -> dict[str, Any]:
        """A person."""
        return {"row": row, "name": self.names[row], "person": self.people[row]}


class DirectoryMaker:
    """Makes a directory of people who come block by block."""

    def __init__(self, explainer: MCCE) -> None:
        self._explainer = explainer
        self._people: list[dict[str, Any]] = []
        self._names: list[str] = []
        self._scores: list[Any] = []
        self._desired: list[bool] = []

    def add(self, groups: Sequence[tuple[IntArray, pd.DataFrame]], names: Sequence[str]) -> None:
        """Add a block of people."""
        first, n_rows = len(self._people), len(names)
        self._names += [plain(name) for name in names]
        for listed in (self._people, self._scores, self._desired):
            listed.extend([None] * n_rows)  # type: ignore[list-item]
        for at, frame in groups:
            scored = self._explainer.decision_.score(self._explainer.schema_.encode(frame).frame)
            cells = zip(
                at.tolist(),
                as_records(frame),
                scored.score.tolist(),
                scored.valid.tolist(),
                strict=True,
            )
            for place, person, score, desired in cells:
                self._people[first + place] = person
                self._scores[first + place] = plain_value(score)
                self._desired[first + place] = desired

    def made(self) -> Directory:
        """The directory."""
        return Directory(self._people, self._names, self._scores, self._desired)
