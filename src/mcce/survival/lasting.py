"""The predictor and a committee as one: only what most retrained models accept too is valid.

Beyond the paper. A search for answers that last looks for rows whose required margin is at least 0,
with a surrogate of this margin. What it finds is then scored by the predictor alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..kernels import FloatArray
from ..plausibility.surrogate import Surrogate
from ..predictors.decision import Decision, Interval, ScoredRows
from ..tables.schema import Schema
from .committee import (
    Committee,
    MarginScale,
    Retrain,
    Survival,
    TrainingData,
    are_retrained,
    retrain_models,
    train_trees,
)


@dataclass(frozen=True, eq=False)
class LastingPredictor:
    """The required margin of rows: negative where the predictor or too many models refuse them."""

    decision: Decision
    committee: Committee
    share: float
    schema: Schema

    def __call__(self, frame: pd.DataFrame) -> FloatArray:
        """The required margin of rows with the columns of the training data."""
        scored, rows = self.decision.score(frame), self.schema.encode(frame)
        return self.committee.required_margin(rows, scored, self.share)


@dataclass(frozen=True, eq=False)
class Lasting:
    """What a search for answers that last uses instead of the decision and its surrogate."""

    committee: Committee
    share: float
    decision: Decision
    surrogate: Surrogate | None

    @classmethod
    def learn(
        cls,
        data: TrainingData,
        scale: MarginScale,
        survival: Survival,
        retrain: Retrain | None,
        decide: Callable[[Any], Decision],
        seed: int,
    ) -> Lasting:
        """The committee, and a surrogate of the margin that it requires."""
        if are_retrained(scale.decision.predictor, data.labels, retrain):
            models = retrain_models(data, survival, scale, retrain, decide, seed)
            committee = Committee(models, scale)
        else:
            committee = Committee(train_trees(data, survival, scale, seed), scale)
        predictor = LastingPredictor(scale.decision, committee, survival.share, data.rows.schema)
        decision = Decision(predictor, Interval(0.0, math.inf), "call")
        surrogate = None
        if survival.share:
            margin = committee.required_margin(data.rows, data.scored, survival.share)
            surrogate = Surrogate.fit(data.rows, ScoredRows(margin, margin >= 0), decision)
        return cls(committee, survival.share, decision, surrogate)
