"""What ``fit`` learned, as one frozen value.

Search, analysis and saving receive this instead of the explainer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .plausibility.model import PlausibilityModel
from .predictors.decision import Decision
from .protocols import Distance, Generator
from .tables.schema import Schema


@dataclass(frozen=True, eq=False)
class Fitted:
    """Everything that ``fit`` learned from the training data.

    Parameters
    ----------
    schema
        The columns of the training data.
    decision
        The predictor and the desired decision.
    generator, distance
        The fitted model of step 1, and the fitted distance.
    n_desired
        Number of training rows with the desired decision.
    seed
        Seed of all draws.
    plausibility
        What accepted training rows look like; None if the search does not need it.
    training_rows
        The distinct training rows as bytes; None unless copies of them are excluded.
    parameters
        The parameters that all this depends on, as they were at fit.
    seconds
        Wall-clock seconds of fitting, by step.
    """

    schema: Schema
    decision: Decision
    generator: Generator
    distance: Distance
    n_desired: int
    seed: int
    plausibility: PlausibilityModel | None = None
    training_rows: np.ndarray | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
