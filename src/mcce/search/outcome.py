"""What a search has found: candidates picked out of their blocks, and reasons for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
import pandas as pd

from ..candidates import CandidateRows
from ..kernels import BoolArray, FloatArray, IntArray
from ..tables.schema import EncodedRows


@dataclass(frozen=True, eq=False)
class Picked:
    """Candidates picked out of their blocks, one entry each.

    Parameters
    ----------
    chosen
        Whose they are, and the rows themselves.
    draw, rank
        Draw number, and place among the person's counterfactuals from 1.
    score, sparsity, gower
        What the predictor said, and what the candidate costs.
    """

    chosen: CandidateRows
    draw: IntArray
    rank: IntArray
    score: FloatArray
    sparsity: IntArray
    gower: FloatArray

    @property
    def owner(self) -> IntArray:
        """Position of each one's person among the factuals."""
        return self.chosen.owner

    @property
    def frame(self) -> pd.DataFrame:
        """The rows themselves."""
        return self.chosen.frame

    def take(self, places: IntArray | BoolArray) -> Picked:
        """Those at the given places."""
        arrays = (getattr(self, field.name)[places] for field in fields(self)[1:])
        return Picked(self.chosen.take(places), *arrays)

    def in_order(self) -> Picked:
        """The same, by person and rank."""
        return self.take(np.lexsort((self.rank, self.owner)))

    @classmethod
    def join(cls, rows: EncodedRows, parts: Sequence[Picked]) -> Picked:
        """All as one, by person and rank."""
        whole, real = np.empty(0, dtype=np.int64), np.empty(0)
        blank = cls(CandidateRows.join(rows, []), whole, whole, real, whole, real)
        arrays = (
            np.concatenate([getattr(part, field.name) for part in (blank, *parts)])
            for field in fields(cls)[1:]
        )
        return cls(CandidateRows.join(rows, [part.chosen for part in parts]), *arrays).in_order()


@dataclass(eq=False)
class Outcome:
    """What a search came to.

    Parameters
    ----------
    answers, misses
        Counterfactuals, and the nearest misses of people without any; by person, then rank.
    reasons
        Why people without an answer have none, by position among the factuals.
    n_evaluated
        Distinct candidates asked.
    n_unstable
        Counterfactuals that failed when asked again.
    stopped
        Whether the search was stopped before everybody was settled.
    seconds
        Seconds by step, added up over threads.
    proven
        People whose answers, or lack of any, no further search could better.
    """

    answers: Picked
    misses: Picked
    reasons: dict[int, str] = field(default_factory=dict)
    n_evaluated: int = 0
    n_unstable: int = 0
    stopped: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    proven: set[int] = field(default_factory=set)

    @classmethod
    def nothing(cls, rows: EncodedRows, people: IntArray, reason: str) -> Outcome:
        """The outcome for people who cannot be searched for at all."""
        nobody = Picked.join(rows, [])
        return cls(nobody, nobody, dict.fromkeys(people.tolist(), reason))

    @classmethod
    def merge(cls, rows: EncodedRows, parts: Sequence[Outcome]) -> Outcome:
        """All parts as one, by person."""
        if len(parts) == 1:
            return parts[0]
        merged = cls(
            answers=Picked.join(rows, [part.answers for part in parts]),
            misses=Picked.join(rows, [part.misses for part in parts]),
            reasons={person: why for part in parts for person, why in part.reasons.items()},
            n_evaluated=sum(part.n_evaluated for part in parts),
            n_unstable=sum(part.n_unstable for part in parts),
            stopped=any(part.stopped for part in parts),
            proven={person for part in parts for person in part.proven},
        )
        for part in parts:
            merged.add_seconds(part.seconds)
        return merged

    def without(self, people: IntArray) -> Outcome:
        """The same without the answers of some people."""
        answers = self.answers.take(~np.isin(self.answers.owner, people))
        return replace(self, answers=answers, proven=self.proven.difference(people.tolist()))

    def forget(self, people: IntArray) -> None:
        """Leave out why some people, who are looked for anew, have no answer."""
        self.misses = self.misses.take(~np.isin(self.misses.owner, people))
        for person in people.tolist():
            del self.reasons[person]

    def add_seconds(self, more: Mapping[str, float]) -> None:
        """Add to the seconds of each step."""
        for step, passed in more.items():
            self.seconds[step] = self.seconds.get(step, 0.0) + passed
