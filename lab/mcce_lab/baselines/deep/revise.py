"""REViSE: gradient descent in the code of an auto-encoder.

Always true: every step of the search is judged as the row that it would be; only the code moves,
never the immutable features that the decoder is given.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

from mcce.protocols import Kind, check_count, check_real, check_whole

from .descent import Best, Block, LatentMethod, Patient, Step
from .networks import ConditionalVAE, VAESettings


class REViSE(LatentMethod):
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
    AFTER_FIT = frozenset({"weight", "learning_rate", "n_steps", "patience"})
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

    def __init__(
        self,
        predictor: Any,
        desired: Any = None,
        *,
        immutable: Sequence[Hashable] | None = None,
        kinds: Mapping[Hashable, Kind] | None = None,
        weight: float = 0.5,
        learning_rate: float = 0.1,
        n_steps: int = 1500,
        patience: int = 100,
        hidden: Sequence[int] = (128, 64),
        n_latent: int = 8,
        kl_weight: float = 0.1,
        n_epochs: int = 50,
        batch_size: int = 512,
        early_stopping: bool = True,
        random_state: int = 0,
        device: str = "cpu",
    ) -> None:
        super().__init__(predictor, desired, immutable=immutable, kinds=kinds)
        self.weight = weight
        self.learning_rate = learning_rate
        self.n_steps = n_steps
        self.patience = patience
        self.hidden = hidden
        self.n_latent = n_latent
        self.kl_weight = kl_weight
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.random_state = random_state
        self.device = device

    def _check(self) -> None:
        check_real("weight", self.weight, "a number of at least 0")
        check_real("learning_rate", self.learning_rate, "a number > 0", zero=False)
        check_count("n_steps", self.n_steps)
        check_count("patience", self.patience)
        check_whole("random_state", self.random_state, 0, 2**63 - 1)
        self._settings().check()

    def _settings(self) -> VAESettings:
        return VAESettings.of(self)

    def _best(self, own: Any) -> Best:
        return Patient(own, self.patience)

    def _objective(self, block: Block, codes: Any) -> Step:
        rows, outputs = block.score(self.vae_.decode(codes, block.own))
        distance = block.projection.l1(rows, block.own)
        value = block.scorer.loss(outputs) + self.weight * distance
        return Step(value, rows, block.scorer.valid(outputs), value)
