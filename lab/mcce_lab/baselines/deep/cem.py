"""CEM: proximal gradient steps on the row itself, with an auto-encoder that judges realism.

Dhurandhar et al. call the answer a pertinent negative. Its constant, how much the decision counts
against the distance, is found by bisection.

Always true: every step of the search is judged as the row that it would be; each person has a
bisection of their own.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

from mcce.parameters import (
    check_choice,
    check_count,
    check_real,
    check_whole,
)
from mcce.tables.columns import Kind

from ..baseline import Training
from ..space import Space
from .autoencoder import AutoEncoder, AutoEncoderSettings
from .descent import Block
from .gradient_method import GradientMethod
from .proximal import Bisection, Proximal
from .training import TrainingPlan

Sign = Literal["free", "positive"]


class CEM(GradientMethod):
    """A sparse change with the desired decision that an auto-encoder can reproduce.

    It minimises c * max(0, margin - (f(e) - g(e))) + L2(e, x) squared + sparsity * L1(e, x) +
    realism * L2(e, AE(e)) squared by proximal gradient steps, f and g being the probabilities of
    the desired and the other decision and AE an auto-encoder. The constant c is found by bisection.

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
    sparsity, realism
        Weights of the L1 distance and of the auto-encoder's error.
    margin
        How much more likely the desired decision must be than the other.
    constant
        The first c.
    n_rounds, n_steps
        Rounds of the bisection, and steps in each.
    learning_rate
        The first step size of a round; it falls to 0.
    sign : {"free", "positive"}
        Whether numbers may also fall. The published method only lets them grow.
    hidden
        Hidden layers of the auto-encoder's encoder, the last being the code.
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
    Dhurandhar, Chen, Luss, Tu, Ting, Shanmugam and Das (2018). Explanations based on the missing:
    towards contrastive explanations with pertinent negatives. NeurIPS 2018.

    Examples
    --------
    >>> explainer = CEM(predictor, desired="accepted", immutable=["age"])  # doctest: +SKIP
    >>> explainer.fit(train).explain(people).changes()  # doctest: +SKIP
    """

    NOTHING: ClassVar[str] = "no step of the search reached the desired decision with the margin"
    AFTER_FIT = frozenset(
        {
            "sparsity",
            "realism",
            "margin",
            "constant",
            "n_rounds",
            "n_steps",
            "learning_rate",
            "sign",
        }
    )
    PAPER: ClassVar[Mapping[str, Any]] = {
        "sparsity": 0.9,
        "realism": 1.0,
        "margin": 0.1,
        "constant": 10.0,
        "n_rounds": 9,
        "n_steps": 100,
        "learning_rate": 0.01,
        "sign": "positive",
        "hidden": (20, 10, 7),
        "n_epochs": 5,
        "batch_size": 64,
        "early_stopping": False,
    }

    def __init__(
        self,
        predictor: Any,
        desired: Any = None,
        *,
        immutable: Sequence[Hashable] | None = None,
        kinds: Mapping[Hashable, Kind] | None = None,
        sparsity: float = 0.9,
        realism: float = 1.0,
        margin: float = 0.02,
        constant: float = 10.0,
        n_rounds: int = 9,
        n_steps: int = 100,
        learning_rate: float = 0.01,
        sign: Sign = "free",
        hidden: Sequence[int] = (20, 10, 7),
        n_epochs: int = 50,
        batch_size: int = 512,
        early_stopping: bool = True,
        random_state: int = 0,
        device: str = "cpu",
    ) -> None:
        super().__init__(predictor, desired, immutable=immutable, kinds=kinds)
        self.sparsity = sparsity
        self.realism = realism
        self.margin = margin
        self.constant = constant
        self.n_rounds = n_rounds
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.sign = sign
        self.hidden = hidden
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.random_state = random_state
        self.device = device

    def _check(self) -> None:
        for name in ("sparsity", "realism", "margin"):
            check_real(name, getattr(self, name), "a number of at least 0")
        check_real("constant", self.constant, "a number > 0", zero=False)
        check_real("learning_rate", self.learning_rate, "a number > 0", zero=False)
        check_count("n_rounds", self.n_rounds)
        check_count("n_steps", self.n_steps)
        check_choice("sign", self.sign, get_args(Sign))
        check_whole("random_state", self.random_state, 0, 2**63 - 1)
        self._settings().check()

    def _settings(self) -> AutoEncoderSettings:
        plan = TrainingPlan(self.n_epochs, self.batch_size, self.early_stopping, device=self.device)
        return AutoEncoderSettings(self.hidden, plan)

    def _train(self, space: Space, training: Training) -> None:
        points = space.encode(training.rows)
        self.autoencoder_ = AutoEncoder.fit(space, points, self._settings(), self.random_state)

    def _find(self, block: Block) -> Any:
        proximal = Proximal(
            self._smooth,
            self.sparsity,
            self.margin,
            self.learning_rate,
            self.n_steps,
            positive=self.sign == "positive",
        )
        bisection = Bisection(len(block.own), self.constant, block.own.device)
        return proximal.run(block, bisection, self.n_rounds)

    def _smooth(self, block: Block, rows: Any) -> Any:
        """The squared distance and the auto-encoder's error, by row."""
        error = block.projection.squared(rows, self.autoencoder_.reproduce(rows))
        return block.projection.squared(rows, block.own) + self.realism * error
