"""CLUE: away from what the predictor is uncertain about, in the code of an auto-encoder.

The method lowers the predictor's uncertainty; that the decision changes on the way is an accident,
and for many people it does not. Its auto-encoder has narrow residual networks with batch
normalisation.

Always true: every step of the search is judged as the row that it would be; a row that has
converged no longer moves.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mcce.protocols import FloatArray, Kind, check_count, check_real, check_whole

from ...networks import isolated
from ..space import Space
from .descent import MIN_PROBABILITY, Best, Block, LatentMethod, Step
from .networks import Goal, Layout, TrainingPlan, gaussian_kl, noise_like, train

# The least standard deviation of a code.
MIN_INPUT_SCALE = 1e-3


@dataclass(frozen=True)
class ResidualSettings:
    """The size of the networks, and how they are trained."""

    width: int
    depth: int
    n_latent: int
    plan: TrainingPlan

    def check(self) -> None:
        """Raise for a value that cannot work."""
        check_count("width", self.width)
        check_count("depth", self.depth, least=2)
        check_count("n_latent", self.n_latent)
        self.plan.check()


@dataclass(frozen=True, eq=False)
class ResidualVAE:
    """A trained auto-encoder."""

    layout: Layout
    network: Any

    @classmethod
    def fit(
        cls, space: Space, points: FloatArray, settings: ResidualSettings, seed: int
    ) -> ResidualVAE:
        """Train on points of shape (n_train, n_axes)."""
        layout = Layout.of(space, settings.plan.device)
        with isolated(seed) as torch:
            untrained = cls(layout, _network(layout, settings).to(layout.device))

            def loss(batch: Sequence[Any], _: int) -> Any:
                return untrained.loss(batch[0]).sum()

            goal = Goal(loss, list(untrained.network.parameters()))
            tensors = [torch.from_numpy(points)]
            return cls(layout, train(untrained.network, tensors, [goal], settings.plan))

    def encode(self, points: Any) -> tuple[Any, Any]:
        """Mean and standard deviation of the code of each point."""
        import torch

        given = points[:, self.layout.mutable]
        mean, scale = _apply(self.network.encoder, given).chunk(2, dim=1)
        return mean, torch.nn.functional.softplus(scale).clamp(min=MIN_INPUT_SCALE)

    def decode(self, codes: Any, own: Any) -> Any:
        """Points of codes, with the immutable axes of their people."""
        return self.layout.place(self.layout.write(self._raw(codes, own)), own)

    def loss(self, points: Any) -> Any:
        """Minus the evidence lower bound of each point."""
        mean, scale = self.encode(points)
        raw = self._raw(mean + noise_like(mean) * scale, points)
        target = points[:, self.layout.mutable]
        surprise = self.layout.surprise(raw, target, self.network.scales)
        return surprise + gaussian_kl(mean, 2 * scale.log())

    def _raw(self, codes: Any, own: Any) -> Any:
        import torch

        given = torch.cat([codes, self.layout.given(own)], dim=1)
        return _apply(self.network.decoder, given)


def _network(layout: Layout, settings: ResidualSettings) -> Any:
    """The parts, untrained, and the log-scales of numbers."""
    import torch

    width, n_mutable, n_latent = settings.width, len(layout.mutable), settings.n_latent
    n_blocks = settings.depth - 1
    network: Any = torch.nn.Module()
    last = torch.nn.Sequential(*_normalised(width), torch.nn.Linear(width, 2 * n_latent))
    network.encoder = _parts(torch.nn.Linear(n_mutable, width), n_blocks, width, last)
    linear = torch.nn.Linear(n_latent + len(layout.immutable), width)
    first = torch.nn.Sequential(linear, *_normalised(width))
    network.decoder = _parts(first, n_blocks, width, torch.nn.Linear(width, n_mutable))
    network.scales = torch.nn.Parameter(torch.full((n_mutable,), -2.0))
    return network


def _parts(first: Any, n_blocks: int, width: int, last: Any) -> Any:
    """A first layer, blocks that add to their input, and a last layer."""
    import torch

    blocks = [
        torch.nn.Sequential(*_normalised(width), torch.nn.Linear(width, width))
        for _ in range(n_blocks)
    ]
    return torch.nn.ModuleList([first, *blocks, last])


def _normalised(width: int) -> list[Any]:
    import torch

    return [torch.nn.LeakyReLU(0.01), torch.nn.BatchNorm1d(width)]


def _apply(parts: Any, given: Any) -> Any:
    first, *blocks, last = parts
    hidden = first(given)
    for block in blocks:
        hidden = hidden + block(hidden)
    return last(hidden)


# A row has converged if its objective changed by less than this, as a share of the first one or in
# itself, over so many steps.
MIN_CHANGE_SHARE, MIN_CHANGE, WINDOW = 0.01, 1e-3, 3


class CLUE(LatentMethod):
    """A near row about which the predictor is more certain, if its decision is the desired one.

    It minimises H(f(e)) + weight * L1(e, x) / p + desired_weight * -log f(e) over codes of an
    auto-encoder, where H is the entropy of the predictor's probabilities and p the number of
    features. Of all steps with the desired decision the nearest is the answer.

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
    desired_weight
        Weight of the desired decision: 0 is the published method, and anything above makes it look
        for the desired decision.
    learning_rate
        Step size of Adam in the latent space.
    n_steps
        The largest number of steps.
    width, depth, n_latent
        Width and number of the auto-encoder's layers, and numbers in a code.
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
    Antorán, Bhatt, Adel, Weller and Hernández-Lobato (2021). Getting a CLUE: a method for
    explaining uncertainty estimates. ICLR 2021.

    Examples
    --------
    >>> explainer = CLUE(predictor, desired="accepted", immutable=["age"])  # doctest: +SKIP
    >>> explainer.fit(train).explain(people).changes()  # doctest: +SKIP
    """

    _vae_class = ResidualVAE
    NOTHING: ClassVar[str] = "the decision never changed while the predictor became more certain"
    AFTER_FIT = frozenset({"weight", "desired_weight", "learning_rate", "n_steps"})
    PAPER: ClassVar[Mapping[str, Any]] = {
        "weight": 4.0,
        "desired_weight": 0.0,
        "learning_rate": 0.5,
        "n_steps": 400,
        "width": 10,
        "depth": 3,
        "n_latent": 12,
        "n_epochs": 1,
        "batch_size": 64,
        "early_stopping": True,
    }

    def __init__(
        self,
        predictor: Any,
        desired: Any = None,
        *,
        immutable: Sequence[Hashable] | None = None,
        kinds: Mapping[Hashable, Kind] | None = None,
        weight: float = 4.0,
        desired_weight: float = 0.0,
        learning_rate: float = 0.5,
        n_steps: int = 400,
        width: int = 64,
        depth: int = 3,
        n_latent: int = 12,
        n_epochs: int = 50,
        batch_size: int = 512,
        early_stopping: bool = True,
        random_state: int = 0,
        device: str = "cpu",
    ) -> None:
        super().__init__(predictor, desired, immutable=immutable, kinds=kinds)
        self.weight = weight
        self.desired_weight = desired_weight
        self.learning_rate = learning_rate
        self.n_steps = n_steps
        self.width = width
        self.depth = depth
        self.n_latent = n_latent
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.random_state = random_state
        self.device = device

    def _check(self) -> None:
        check_real("weight", self.weight, "a number of at least 0")
        check_real("desired_weight", self.desired_weight, "a number of at least 0")
        check_real("learning_rate", self.learning_rate, "a number > 0", zero=False)
        check_count("n_steps", self.n_steps)
        check_whole("random_state", self.random_state, 0, 2**63 - 1)
        self._settings().check()

    def _settings(self) -> ResidualSettings:
        plan = TrainingPlan(self.n_epochs, self.batch_size, self.early_stopping, device=self.device)
        return ResidualSettings(self.width, self.depth, self.n_latent, plan)

    def _best(self, own: Any) -> Best:
        return Converging(own)

    def _objective(self, block: Block, codes: Any) -> Step:
        rows, outputs = block.score(self.vae_.decode(codes, block.own))
        distance = block.projection.l1(rows, block.own)
        n_features = len(block.scorer.space.schema.features)
        value = entropy(outputs) + self.weight / n_features * distance
        if self.desired_weight:
            value = value + self.desired_weight * block.scorer.loss(outputs)
        return Step(value, rows, block.scorer.valid(outputs), distance)


class Converging(Best):
    """Rows stop when their objective has hardly changed over some steps."""

    def __init__(self, own: Any) -> None:
        import torch

        super().__init__(own)
        # The first objective, then the last ones, the oldest first.
        self.history = torch.full_like(self.cost, torch.nan)[:, None].repeat(1, WINDOW + 2)
        self.converged = torch.zeros_like(self.cost, dtype=torch.bool)
        self.time = torch.zeros_like(self.cost, dtype=torch.int64)

    @property
    def stopped(self) -> Any:
        """Which rows have converged."""
        return self.converged

    def update(self, step: Step) -> None:
        """Remember the rows that are valid and nearer; stop those that have converged."""
        import torch

        super().update(step)
        value = step.value.detach()
        first = torch.where(self.time == 0, value, self.history[:, 0])
        latest = torch.cat([self.history[:, 2:], value[:, None]], dim=1)
        self.history = torch.cat([first[:, None], latest], dim=1)
        change = (latest[:, -1] - latest[:, 0]).abs()
        limit = (MIN_CHANGE_SHARE * first).clamp(min=MIN_CHANGE)
        self.converged = self.converged | ((self.time > WINDOW) & (change < limit))
        self.time = self.time + 1


def entropy(outputs: Any) -> Any:
    """Entropy of probabilities in nats, shape (n_rows,)."""
    certain = outputs.clamp(min=MIN_PROBABILITY)
    return -(outputs * certain.log()).sum(dim=1)
