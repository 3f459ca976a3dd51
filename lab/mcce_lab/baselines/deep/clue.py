"""CLUE: away from what the predictor is uncertain about, in the code of an auto-encoder.

The method lowers the predictor's uncertainty; that the decision changes on the way is an accident,
and for many people it does not. Its auto-encoder has narrow residual networks with batch
normalisation.

Always true: every step of the search is judged as the row that it would be; a row that has
converged no longer moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...parameters import Count, Late, NotNegative, Positive, TwoOrMore
from .descent import MIN_PROBABILITY, Best, Block, LatentMethod, Step
from .networks import Coder, Layout, Trained

# The least standard deviation of a code.
MIN_INPUT_SCALE = 1e-3


class ResidualVAE(Coder):
    """Narrow residual networks with batch normalisation."""

    @classmethod
    def build(cls, layout: Layout, method: Any) -> Any:
        """Encoder and decoder."""
        import torch

        width, n_mutable, n_latent = method.width, len(layout.mutable), method.n_latent
        n_blocks = method.depth - 1
        network: Any = torch.nn.Module()
        last = torch.nn.Sequential(*_normalised(width), torch.nn.Linear(width, 2 * n_latent))
        network.encoder = _parts(torch.nn.Linear(n_mutable, width), n_blocks, width, last)
        linear = torch.nn.Linear(n_latent + len(layout.immutable), width)
        first = torch.nn.Sequential(linear, *_normalised(width))
        network.decoder = _parts(first, n_blocks, width, torch.nn.Linear(width, n_mutable))
        network.scales = torch.nn.Parameter(torch.full((n_mutable,), -2.0))
        return network

    def encode(self, points: Any) -> tuple[Any, Any]:
        """Mean and log-variance of the code of each point."""
        import torch

        given = points[:, self.layout.mutable]
        mean, scale = _apply(self.network.encoder, given).chunk(2, dim=1)
        return mean, 2 * torch.nn.functional.softplus(scale).clamp(min=MIN_INPUT_SCALE).log()

    def write(self, given: Any) -> Any:
        """The raw output for codes and immutable axes."""
        return _apply(self.network.decoder, given)


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


@dataclass(eq=False, repr=False, kw_only=True)
class CLUE(Trained, LatentMethod):
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

    weight: Late[NotNegative] = 4.0
    desired_weight: Late[NotNegative] = 0.0
    learning_rate: Late[Positive] = 0.5
    n_steps: Late[Count] = 400
    width: Count = 64
    depth: TwoOrMore = 3
    n_latent: Count = 12

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
