"""What a search returns: answers, nearest misses, and a reason for everybody else.

Always true: values never change; ``merge`` and the ``with_`` and ``without_`` methods return new
ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..kernels import IntArray
from ..postprocess.validation import Answers
from ..tables.schema import EncodedRows


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a search, or of one of its stages."""

    answers: Answers
    misses: Answers
    reasons: Mapping[int, str] = field(default_factory=dict)
    n_evaluated: int = 0
    n_unstable: int = 0
    stopped: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)
    proven: frozenset[int] = frozenset()
    misjudged: frozenset[int] = frozenset()

    @classmethod
    def empty(cls, factuals: EncodedRows, people: IntArray, reason: str) -> Outcome:
        """The outcome for factuals that cannot be searched for at all."""
        nobody = Answers.concat(factuals, [])
        return cls(nobody, nobody, dict.fromkeys(people.tolist(), reason))

    @classmethod
    def merge(cls, factuals: EncodedRows, parts: Sequence[Outcome]) -> Outcome:
        """All parts as one, by factual."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            answers=Answers.concat(factuals, [part.answers for part in parts]),
            misses=Answers.concat(factuals, [part.misses for part in parts]),
            reasons={person: why for part in parts for person, why in part.reasons.items()},
            n_evaluated=sum(part.n_evaluated for part in parts),
            n_unstable=sum(part.n_unstable for part in parts),
            stopped=any(part.stopped for part in parts),
            seconds=_sum_seconds([part.seconds for part in parts]),
            proven=frozenset[int]().union(*(part.proven for part in parts)),
            misjudged=frozenset[int]().union(*(part.misjudged for part in parts)),
        )

    def with_seconds(self, more: Mapping[str, float]) -> Outcome:
        """The outcome with further seconds added."""
        return replace(self, seconds=_sum_seconds([self.seconds, more]))

    def without_answers(self, people: IntArray) -> Outcome:
        """The outcome without the answers of some factuals."""
        answers = self.answers.take(~np.isin(self.answers.owner, people))
        return replace(self, answers=answers, proven=self.proven.difference(people.tolist()))

    def without_reasons(self, people: IntArray) -> Outcome:
        """The outcome without the reasons and misses of factuals that are searched for again."""
        again = set(people.tolist())
        return replace(
            self,
            misses=self.misses.take(~np.isin(self.misses.owner, people)),
            reasons={person: why for person, why in self.reasons.items() if person not in again},
        )


def _sum_seconds(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for step, seconds in part.items():
            total[step] = total.get(step, 0.0) + seconds
    return total
