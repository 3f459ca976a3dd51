"""The surrogate of one search, and the predictor's scores so far, which its later stages reuse."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..kernels import BoolArray, Codes, IntArray
from ..plausibility.surrogate import Surrogate
from ..predictors.decision import ScoredRows
from .config import Search


class ScoreHistory:
    """The predictor's scores of rows during one search, for its later stages."""

    def __init__(self, n_scored: IntArray, n_valid: IntArray) -> None:
        self.n_scored, self.n_valid = n_scored, n_valid
        self.n_scored_here, self.n_refused = np.zeros_like(n_scored), np.zeros_like(n_scored)
        self._kept: list[tuple[IntArray, Codes, ScoredRows]] = []

    def count(self, owner: IntArray, valid: BoolArray) -> None:
        """Count rows that were scored, by the position of their people."""
        np.add.at(self.n_scored, owner, 1)
        np.add.at(self.n_valid, owner, valid)
        np.add.at(self.n_scored_here, owner, 1)
        np.add.at(self.n_refused, owner, ~valid)

    def relaxed(self) -> ScoreHistory:
        """The history for stages that allow more rows, of which none was refused yet."""
        same = ScoreHistory(self.n_scored, self.n_valid)
        same._kept = self._kept
        return same

    def store(self, owner: IntArray, codes: Codes, scored: ScoredRows) -> None:
        """Keep the scores of rows of training values."""
        self._kept.append((owner, codes, scored))

    def recall(self, positions: IntArray) -> tuple[IntArray, Codes, ScoredRows] | None:
        """Owners, codes and scores of the rows of people, in order; None if there are none."""
        # Other threads may add to it.
        kept = self._kept.copy()
        if not kept:
            return None
        owner = np.concatenate([owner for owner, _, _ in kept])
        here = np.flatnonzero(np.isin(owner, positions))
        codes = np.concatenate([codes for _, codes, _ in kept], axis=1)
        score = np.concatenate([scored.score for _, _, scored in kept])
        valid = np.concatenate([scored.valid for _, _, scored in kept])
        return owner[here], codes[:, here], ScoredRows(score[here], valid[here])


@dataclass(frozen=True, eq=False)
class SurrogateRun:
    """The surrogate of one search, and the predictor's scores so far."""

    surrogate: Surrogate
    history: ScoreHistory
    factual_scores: ScoredRows | None = None
    max_evaluations: int | None = None

    def may_score(self, positions: IntArray) -> BoolArray:
        """Whether the predictor may score another row of people, by position."""
        most = np.inf if self.max_evaluations is None else self.max_evaluations
        return self.history.n_scored[positions] < most

    def relaxed(self) -> SurrogateRun:
        """The run for stages that allow more rows."""
        return replace(self, history=self.history.relaxed())

    def without_scores(self) -> SurrogateRun:
        """The run without scores; how many rows were scored still counts."""
        return replace(self, history=ScoreHistory(self.history.n_scored, self.history.n_valid))


def start_surrogate(
    surrogate: Surrogate | None, search: Search, n_factuals: int, factual_scores: ScoredRows | None
) -> SurrogateRun | None:
    """The surrogate of a search with targets; without one, the predictor scores every row."""
    most = search.max_evaluations
    if most is not None and surrogate is None:
        surrogate = Surrogate.unlearned()
    if surrogate is None or not (surrogate.is_good or most is not None):
        return None
    n_scored, n_valid = np.zeros((2, n_factuals), dtype=np.int64)
    return SurrogateRun(surrogate, ScoreHistory(n_scored, n_valid), factual_scores, most)
