"""What leads a search that asks the black box little, and what it has replied so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..kernels import BoolArray, Codes, IntArray
from ..predictors.decision import ScoredRows
from ..surrogate import Surrogate
from .config import Search


class Replies:
    """The replies of the black box during one search, for its later stages."""

    def __init__(self, n_asked: IntArray, n_valid: IntArray) -> None:
        self.n_asked, self.n_valid = n_asked, n_valid
        self.n_here, self.n_refused = np.zeros_like(n_asked), np.zeros_like(n_asked)
        self._kept: list[tuple[IntArray, Codes, ScoredRows]] = []

    def count(self, owner: IntArray, valid: BoolArray) -> None:
        """Count rows that were asked, by the position of their people."""
        np.add.at(self.n_asked, owner, 1)
        np.add.at(self.n_valid, owner, valid)
        np.add.at(self.n_here, owner, 1)
        np.add.at(self.n_refused, owner, ~valid)

    def laxer(self) -> Replies:
        """The same replies for stages that allow more rows, about which nobody was wrong yet."""
        same = Replies(self.n_asked, self.n_valid)
        same._kept = self._kept
        return same

    def store(self, owner: IntArray, codes: Codes, said: ScoredRows) -> None:
        """Keep what was said of rows of training values."""
        self._kept.append((owner, codes, said))

    def recall(self, people: IntArray) -> tuple[IntArray, Codes, ScoredRows] | None:
        """Replies about rows of people: whose they are, codes, and what was said, in order.

        None if there are none.
        """
        # Other threads may add to it.
        kept = self._kept.copy()
        if not kept:
            return None
        owner = np.concatenate([owner for owner, _, _ in kept])
        here = np.flatnonzero(np.isin(owner, people))
        codes = np.concatenate([codes for _, codes, _ in kept], axis=1)
        score = np.concatenate([said.score for _, _, said in kept])
        valid = np.concatenate([said.valid for _, _, said in kept])
        return owner[here], codes[:, here], ScoredRows(score[here], valid[here])


@dataclass(frozen=True, eq=False)
class Led:
    """What leads a search that asks the black box little."""

    surrogate: Surrogate
    replies: Replies
    own: ScoredRows | None = None
    max_evaluations: int | None = None

    def may_ask(self, people: IntArray) -> BoolArray:
        """For whom the black box may be asked about one more row, by position."""
        most = np.inf if self.max_evaluations is None else self.max_evaluations
        return self.replies.n_asked[people] < most

    def laxer(self) -> Led:
        """The same for stages that allow more rows."""
        return replace(self, replies=self.replies.laxer())

    def without_replies(self) -> Led:
        """The same, but nothing was replied; what was asked still counts."""
        return replace(self, replies=Replies(self.replies.n_asked, self.replies.n_valid))


def lead(
    surrogate: Surrogate | None, search: Search, n_factuals: int, own: ScoredRows | None
) -> Led | None:
    """What leads a search by sampling; None has the black box score every row."""
    most = search.max_evaluations
    if most is not None and surrogate is None:
        surrogate = Surrogate.unlearned()
    if not search.n_targets or surrogate is None or not (surrogate.is_good or most is not None):
        return None
    n_asked, n_valid = np.zeros((2, n_factuals), dtype=np.int64)
    return Led(surrogate, Replies(n_asked, n_valid), own, most)
