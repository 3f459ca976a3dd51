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

from ..boosting.surrogate import Surrogate
from ..kernels import FloatArray
from ..predictors.decision import Decision, Interval, ScoredRows
from ..tables.schema import Schema
from .committee import (
    Committee,
    MarginScale,
    Retrain,
    RetrainedModels,
    Survival,
    TrainingData,
    TreeModels,
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
    """What ``fit`` learned for answers that last: models, and a surrogate of what they require."""

    share: float
    trees: TreeModels | None
    retrained: RetrainedModels | None
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
        """The models, and the surrogate if a share of them is required."""
        trees, retrained = None, None
        if are_retrained(scale.decision.predictor, data.labels, retrain):
            retrained = retrain_models(data, survival, scale, retrain, decide, seed)
        else:
            trees = train_trees(data, survival, scale, seed)
        found = cls(survival.share, trees, retrained, None)
        if not survival.share:
            return found
        margin = found.committee(scale).required_margin(data.rows, data.scored, survival.share)
        required = ScoredRows(margin, margin >= 0)
        surrogate = Surrogate.fit(data.rows, required, found.decision(scale, data.rows.schema))
        return cls(survival.share, trees, retrained, surrogate)

    def committee(self, scale: MarginScale) -> Committee:
        """The models, with the scale of their margins."""
        models = self.trees or self.retrained
        assert models is not None
        return Committee(models, scale)

    def decision(self, scale: MarginScale, schema: Schema) -> Decision:
        """The decision of the predictor and the models together."""
        predictor = LastingPredictor(scale.decision, self.committee(scale), self.share, schema)
        return Decision(predictor, Interval(0.0, math.inf), "call")
