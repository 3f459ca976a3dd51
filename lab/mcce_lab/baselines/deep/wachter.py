"""Wachter et al. 2018: gradient descent on the row itself.

Always true: every step of the search is judged as the row that it would be; the answer is the
cheapest valid one of all weights of the distance, without changes that it does not need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from mcce.errors import ParameterError, shorten
from mcce.protocols import FloatArray, IntArray, check_real

from ...parameters import Count, Device, Late, Positive
from ..baseline import Declined, Found
from ..space import undo_needless
from .descent import Best, Block, Descent, GradientMethod, Patient, Step, search
from .networks import Adam

HALVES = tuple(2.0**-power for power in range(10))


def _check_weights(name: str, weights: Any) -> None:
    if not isinstance(weights, (list, tuple)) or not weights:
        raise ParameterError(f"{name} must list one or more numbers, got {shorten(weights)}.")
    for weight in weights:
        check_real(f"each of {name}", weight, "a number of at least 0")


@dataclass(eq=False, repr=False, kw_only=True)
class Wachter(GradientMethod):
    """The nearest row with the desired decision by gradient descent.

    It minimises -log f(e) + weight * L1(e, x) over rows e, f being the probability of the desired
    decision, for several weights at once, and keeps the valid row with the least L1. Changes that
    it does not need are undone at the end.

    Parameters
    ----------
    predictor
        A predictor that offers gradients: :class:`mcce.predictors.Torch`, or one of your own
        (:class:`mcce.predictors.Differentiable`).
    desired
        As for :class:`mcce.MCCE`: a label, or an interval of probabilities that begins at 0 or
        ends at 1.
    immutable
        Names of the columns that cannot change.
    kinds
        ``"numeric"`` or ``"categorical"`` by column name, if the dtype is misleading.
    weights
        Weights of the distance, each a search of its own.
    learning_rate
        Step size of Adam, as a share of a number's range.
    n_steps
        The largest number of steps.
    patience
        Steps without progress after which a search stops.
    device
        Where networks are trained and rows are moved: ``"cpu"``, ``"cuda"`` or e.g. ``"cuda:0"``.
        Every answer is confirmed by the predictor all the same, but answers of different devices
        need not be equal.

    References
    ----------
    Wachter, Mittelstadt and Russell (2018). Counterfactual explanations without opening the black
    box: automated decisions and the GDPR. Harvard Journal of Law & Technology 31(2).

    Examples
    --------
    >>> explainer = Wachter(predictor, desired="accepted", immutable=["age"])  # doctest: +SKIP
    >>> explainer.fit(train).explain(people).changes()  # doctest: +SKIP
    """

    NOTHING: ClassVar[str] = "no step of the gradient descent was valid"
    PAPER: ClassVar[Mapping[str, Any]] = {
        "weights": (0.01,),
        "learning_rate": 0.01,
        "n_steps": 1000,
        "patience": 1000,
    }

    weights: Late[Annotated[Sequence[float], _check_weights]] = HALVES
    learning_rate: Late[Positive] = 0.03
    n_steps: Late[Count] = 1000
    patience: Late[Count] = 50
    device: Device = "cpu"

    def _descend(self, declined: Declined) -> Found:
        weights = np.tile(np.array(self.weights, dtype=np.float64), len(declined))

        def finish(owner: IntArray, points: FloatArray) -> FloatArray:
            return undo_needless(self.scorer_.space, declined, owner, points)

        return search(
            declined,
            self.scorer_,
            self._find,
            self.NOTHING,
            extra={"weight": weights},
            n_copies=len(self.weights),
            finish=finish,
        )

    def _find(self, block: Block) -> Best:
        import torch

        stepper = Adam(self.learning_rate, amsgrad=True)
        descent = Descent(_objective, stepper, self.n_steps, clamp=_stay_inside)
        # The variable is the difference from the person, which is exactly 0 at first.
        return descent.run(block, torch.zeros_like(block.own), Patient(block.own, self.patience))


def _objective(block: Block, moves: Any) -> Step:
    rows, outputs = block.score(block.own + moves)
    distance = block.projection.l1(rows, block.own)
    value = block.scorer.loss(outputs) + block.extra["weight"] * distance
    return Step(value, rows, block.scorer.valid(outputs), distance)


def _stay_inside(block: Block, moves: Any) -> Any:
    """Moves that do not leave the training range, or lead back into it."""
    own = block.own
    return moves.clamp(own.clamp(max=0.0) - own, own.clamp(min=1.0) - own)
