"""What leads a search that asks the black box little, and what it has replied so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..kernels import Codes, IntArray
from ..predictors.decision import ScoredRows
from ..surrogate import Surrogate


class Replies:
    """The replies of the black box during one search, for its later stages.

    Parameters
    ----------
    n_asked : (n_factuals,)
        Rows asked for each person so far.
    """

    def __init__(self, n_asked: IntArray) -> None:
        self.n_asked = n_asked
        self._kept: list[tuple[IntArray, Codes, ScoredRows]] = []

    def count(self, owner: IntArray) -> None:
        """Count rows that were asked, by the position of their people."""
        np.add.at(self.n_asked, owner, 1)

    def store(self, owner: IntArray, codes: Codes, said: ScoredRows) -> None:
        """Keep what was said of rows of training values."""
        self._kept.append((owner, codes, said))

    def recall(self, people: IntArray) -> list[tuple[IntArray, Codes, ScoredRows]]:
        """Replies about rows of people: whose they are, codes, and what was said, in order."""
        found = []
        for owner, codes, said in self._kept:
            here = np.flatnonzero(np.isin(owner, people))
            if here.size:
                theirs = ScoredRows(said.score[here], said.valid[here])
                found.append((owner[here], codes[:, here], theirs))
        return found


@dataclass(frozen=True, eq=False)
class Led:
    """What leads a search that asks the black box little.

    Parameters
    ----------
    surrogate
        Imitates the black box.
    replies
        What the black box has replied so far.
    own
        What it said of all factuals; None if it was not asked.
    max_evaluations
        Rows that it may be asked about for each person; None for any number.
    """

    surrogate: Surrogate
    replies: Replies
    own: ScoredRows | None = None
    max_evaluations: int | None = None

    def without_replies(self) -> Led:
        """The same, but nothing was replied; what was asked still counts."""
        return replace(self, replies=Replies(self.replies.n_asked))
