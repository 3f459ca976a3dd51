"""Labels that follow from probabilities, so that a search need not call ``predict`` on every row.

Beyond the paper, whose desired sets are intervals. Takes the probabilities of the training rows and
the decisions by their labels; gives the threshold between refused and accepted rows, if there is
one.

Always true: what a rule says of a row depends on the probabilities of that row alone. It knows
rows beyond those of training; for all others, and for what is returned, ``predict`` decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.pipeline import Pipeline

from ..kernels import BoolArray, FloatArray

Measure = Literal["score", "margin"]
# Room between refused and accepted margins, a hundredth of their range, in which no threshold but 0
# is expected.
NARROW = 0.02


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Probabilities of the labels, a row each.

    Examples
    --------
    >>> two = Probabilities(np.array([[0.25, 0.5, 0.25], [0.625, 0.125, 0.25]]), (1, 2))
    >>> two.score
    array([0.75 , 0.375])
    >>> two.margin
    array([ 0.25 , -0.375])
    """

    numbers: np.ndarray
    columns: tuple[int, ...]

    @property
    def score(self) -> FloatArray:
        """The probability of all desired labels together, shape (n_rows,)."""
        return self.numbers[:, list(self.columns)].sum(axis=1).astype(np.float64)

    @property
    def margin(self) -> FloatArray:
        """The largest probability of a desired label minus the largest of another."""
        desired = np.isin(np.arange(self.numbers.shape[1]), self.columns)
        largest = self.numbers[:, desired].max(axis=1)
        others = self.numbers[:, ~desired].max(axis=1, initial=-math.inf)
        with np.errstate(invalid="ignore"):
            return (largest - others).astype(np.float64)

    def measure(self, name: Measure) -> FloatArray:
        """The score or the margin."""
        return self.score if name == "score" else self.margin


@dataclass(frozen=True)
class LabelRule:
    """What the probabilities of a row say of its label."""

    measure: Measure
    low: float
    high: float

    @classmethod
    def learn(
        cls,
        probabilities: Probabilities | None,
        accepted: BoolArray,
        *,
        own_threshold: bool = False,
    ) -> LabelRule | None:
        """The rule that holds for every row; None if there is none.

        The predicted label is usually the most probable one: a threshold of 0 on the margin. If
        the rows leave hardly any room for another, it is taken to be exactly that.

        Examples
        --------
        >>> rows = Probabilities(np.array([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]), (1,))
        >>> LabelRule.learn(rows, np.array([False, True, True]))
        LabelRule(measure='margin', low=-0.5, high=0.0)
        """
        if probabilities is None or accepted.all() or not accepted.any():
            return None
        names: tuple[Measure, ...] = ("margin", "score")
        for name in names:
            values = probabilities.measure(name)
            low, high = float(values[~accepted].max()), float(values[accepted].min())
            if name == "margin" and not own_threshold and low <= 0 <= high <= low + NARROW:
                return cls(name, 0.0, 0.0)
            if low <= high and math.isfinite(low) and math.isfinite(high):
                return cls(name, low, high)
        return None

    def divide(self, probabilities: Probabilities) -> tuple[BoolArray, BoolArray]:
        """Which rows are accepted, and which of the others only ``predict`` can tell about.

        Examples
        --------
        >>> rows = Probabilities(np.array([[0.875, 0.125], [0.5, 0.5], [0.375, 0.625]]), (1,))
        >>> LabelRule("score", 0.25, 0.5).divide(rows)
        (array([False, False,  True]), array([False,  True, False]))
        """
        values = probabilities.measure(self.measure)
        accepted = values > self.high
        # Not by <=: a margin may be NaN, which tells nothing.
        return accepted, ~accepted & ~(values < self.low)


def has_threshold(predictor: Any) -> bool:
    """Whether a classifier, or the last step of a pipeline, has a threshold of its own."""
    last = predictor.steps[-1][1] if isinstance(predictor, Pipeline) else predictor
    fixed = hasattr(last, "threshold") and hasattr(last, "pos_label")
    moved = getattr(last, "get_probability_threshold", lambda: 0.5)() != 0.5
    return fixed or hasattr(last, "best_threshold_") or moved
