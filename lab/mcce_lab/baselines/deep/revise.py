"""REViSE: gradient descent in the code of an auto-encoder.

Always true: every step of the search is judged as the row that it would be; only the code moves,
never the immutable features that the decoder is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...parameters import Count, Late, NotNegative, Positive, Widths
from .descent import Best, Block, LatentMethod, Patient, Step
from .networks import ConditionalVAE, Trained


@dataclass(eq=False, repr=False, kw_only=True)
class REViSE(Trained, LatentMethod):
    """A near row with the desired decision that an auto-encoder can write.

    It minimises -log f(e) + weight * L1(e, x) over codes of a conditional variational auto-encoder,
    where e is the decoded row and f the probability of the desired decision, and keeps the best
    valid row on the way.

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
    weight
        Weight of the distance.
    learning_rate
        Step size of Adam in the latent space.
    n_steps
        The largest number of steps.
    patience
        Steps without progress after which a search stops.
    hidden, n_latent, kl_weight
        Hidden layers of the auto-encoder, numbers in a code and weight of the divergence.
    n_epochs, batch_size, early_stopping
        How the auto-encoder is trained, with Adam at 0.001; early stopping looks at held-out rows.
    random_state
        Seed of the auto-encoder.
    device
        Where networks are trained and rows are moved: ``"cpu"``, ``"cuda"`` or e.g. ``"cuda:0"``.
        Every answer is confirmed by the predictor all the same, but answers of different devices
        need not be equal.

    References
    ----------
    Joshi, Koyejo, Vijitbenjaronk, Kim and Ghosh (2019). Towards realistic individual recourse and
    actionable explanations in black-box decision making systems. arXiv:1907.09615.

    Examples
    --------
    >>> explainer = REViSE(predictor, desired="accepted", immutable=["age"])  # doctest: +SKIP
    >>> explainer.fit(train).explain(people).changes()  # doctest: +SKIP
    """

    _vae_class = ConditionalVAE
    NOTHING: ClassVar[str] = "no step of the search in the latent space was valid"
    PAPER: ClassVar[Mapping[str, Any]] = {
        "weight": 0.5,
        "learning_rate": 0.1,
        "n_steps": 1500,
        "patience": 1500,
        "hidden": (512, 256),
        "n_latent": 8,
        "kl_weight": 0.3,
        "n_epochs": 5,
        "batch_size": 32,
        "early_stopping": False,
    }

    weight: Late[NotNegative] = 0.5
    learning_rate: Late[Positive] = 0.1
    n_steps: Late[Count] = 1500
    patience: Late[Count] = 100
    hidden: Widths = (128, 64)
    n_latent: Count = 8
    kl_weight: NotNegative = 0.1

    def _best(self, own: Any) -> Best:
        return Patient(own, self.patience)

    def _objective(self, block: Block, codes: Any) -> Step:
        rows, outputs = block.score(self.vae_.decode(codes, block.own))
        distance = block.projection.l1(rows, block.own)
        value = block.scorer.loss(outputs) + self.weight * distance
        return Step(value, rows, block.scorer.valid(outputs), value)
