"""How a service is run: its names, words, limits and secret, and the people its page offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pandas as pd

from ..constraints.constraint import Constraint
from ..counterfactuals.records import as_records, plain_value
from ..errors import ParameterError
from ..explainer import MCCE
from ..kernels import IntArray
from ..parameters import check_count, check_real
from ..report.labels import Labels
from ..report.receipts import Origin
from ..tables.text import short_line

# The fewest characters of a token.
MIN_TOKEN = 16


@dataclass(frozen=True)
class ServiceLimits:
    """How much one request may hold, and how much the service does at a time.

    Parameters
    ----------
    people, answers
        The most people of a request, and the most counterfactuals of each.
    seconds
        The longest search of a request; it then ends with what was found.
    bytes, upload_bytes
        The largest body of a request, and of an upload.
    threads
        Threads that search; one more scores people.
    queue, batch
        Requests that may wait, and people who share a search.
    patience
        Seconds after which a request is answered without a result, if a predictor hangs.
    jobs, job_people
        Uploads that are kept at a time, and the most people of one.
    job_seconds, kept_seconds
        How long an upload may take once it is begun, and how long it is kept afterwards.
    """

    people: int = 100
    answers: int = 10
    seconds: float = 10.0
    bytes: int = 1_000_000
    upload_bytes: int = 64_000_000
    threads: int = 2
    queue: int = 64
    batch: int = 64
    patience: float = 30.0
    jobs: int = 16
    job_people: int = 50_000
    job_seconds: float = 1_800.0
    kept_seconds: float = 3_600.0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.type == "int":
                check_count(one.name, value)
            else:
                check_real(one.name, value, "a finite number above 0", zero=False)
        if self.patience <= self.seconds:
            raise ParameterError(
                f"patience must be more than seconds, or no search could take {self.seconds} s, "
                f"got {self.patience}."
            )


@dataclass(frozen=True)
class ServiceSettings:
    """How a service is run.

    Parameters
    ----------
    title
        What the page and the API are called; None is a title of the language.
    labels
        The words for features by code of their language; the first is the language of the page.
    people
        People to choose from, if there are some.
    limits
        How much a request may hold, and how much is done at a time.
    token
        A secret that requests must name, of at least 16 characters; None lets everybody in.
    hosts
        Names under which the service may be called; None is any. This protects against DNS
        rebinding.
    origin
        What tells the explainer and the predictor from others: SHA-256 checksums of their files.
        None computes it as if the explainer were saved now.
    rules
        Constraints on everybody's answers, beside those of the explainer. Receipts list them;
        with one that JSON cannot hold, such as a function, there are no receipts.
    key
        A secret that signs receipts; None leaves them unsigned.
    folder
        Where uploads and their results are kept; None is a folder that goes with the service.
        Several workers need one that they share.
    """

    title: str | None = None
    labels: Mapping[str, Labels] = field(default_factory=lambda: {"en": Labels()})
    people: Directory | None = field(default=None, repr=False)
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    token: str | None = field(default=None, repr=False)
    hosts: Sequence[str] | None = None
    origin: Origin | None = None
    rules: Sequence[Constraint] = ()
    key: bytes | None = field(default=None, repr=False)
    folder: Path | None = None

    def __post_init__(self) -> None:
        if not self.labels:
            raise ParameterError("labels must name at least one language, got none.")
        if self.token is not None and (len(self.token) < MIN_TOKEN or not self.token.isascii()):
            raise ParameterError(
                f"token must have at least {MIN_TOKEN} characters, all of them ASCII, got "
                f"{len(self.token)}. Make one with: openssl rand -hex 32."
            )

    @property
    def language(self) -> str:
        """Code of the language of the page."""
        return next(iter(self.labels))

    def words(self, language: str | None) -> Labels:
        """The words of a language.

        Parameters
        ----------
        language
            Its code; None is that of the page.

        Returns
        -------
        Labels
            The labels of the language; where there are none, features go by the names of columns.
        """
        code = language or self.language
        return self.labels.get(code) or Labels.make({"language": code})


class Directory:
    """People to choose from, who come block by block."""

    def __init__(self, explainer: MCCE) -> None:
        self._explainer = explainer
        self._listed: list[dict[str, Any]] = []
        self._people: dict[int, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._listed)

    def add(self, groups: Sequence[tuple[IntArray, pd.DataFrame]], names: Sequence[str]) -> None:
        """Add a block of people: rows by their places in the block, and everybody's name."""
        first = len(self)
        self._listed += [
            {"row": row, "name": short_line(name)} for row, name in enumerate(names, first)
        ]
        for at, frame in groups:
            scored = self._explainer.decision_.score(self._explainer.schema_.encode(frame).frame)
            columns = as_records(frame), scored.score.tolist(), scored.valid.tolist()
            for row, person, score, desired in zip((first + at).tolist(), *columns, strict=True):
                self._listed[row] |= {"score": plain_value(score), "desired": desired}
                self._people[row] = person

    def find(self, query: str, offset: int, limit: int) -> dict[str, Any]:
        """People whose name holds a text, some at a time."""
        wanted = query.casefold().strip()
        found = [one for one in self._listed if wanted in one["name"].casefold()]
        shown = found[offset:][:limit]
        return {"n_people": len(self), "n_found": len(found), "people": shown}

    def person(self, row: int) -> dict[str, Any]:
        """A person."""
        return {"row": row, "name": self._listed[row]["name"], "person": self._people[row]}
