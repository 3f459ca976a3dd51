"""CEM: proximal gradient steps on the row itself, with an auto-encoder that judges realism.

Dhurandhar et al. call the answer a pertinent negative. Its constant, how much the decision counts
against the distance, is found by bisection.

Always true: every step of the search is judged as the row that it would be; each person has a
bisection of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from mcce.protocols import FloatArray

from ...networks import Goal, isolated, train
from ...parameters import Count, Late, NotNegative, Positive, Widths
from ..baseline import Training
from ..space import Space
from .descent import Best, Block, GradientMethod, Step
from .networks import Trained, blocks, layers, snap


@dataclass(frozen=True, eq=False)
class AutoEncoder:
    """A trained auto-encoder of all axes."""

    network: Any

    @classmethod
    def fit(cls, space: Space, points: FloatArray, method: CEM) -> AutoEncoder:
        """Train on points of shape (n_train, n_axes), with the squared error."""
        with isolated(method.random_state) as torch:
            hidden, n_axes = list(method.hidden), space.n_axes
            inner = layers([n_axes, *hidden, *hidden[:-1], n_axes])
            network = torch.nn.Sequential(inner, torch.nn.Sigmoid()).to(method.device)

            def loss(batch: Sequence[Any], _: int) -> Any:
                return (network(batch[0]) - batch[0]).square().sum()

            goal = Goal(loss, list(network.parameters()))
            return cls(train(network, [torch.from_numpy(points)], [goal], method))

    def reproduce(self, points: Any) -> Any:
        """Points as the auto-encoder reconstructs them."""
        return self.network(points)


FACTOR = 10.0


class Bisection:
    """The constant of each row: larger until it is enough, then between the nearest two."""

    def __init__(self, n_rows: int, constant: float, device: Any) -> None:
        import torch

        first = float(constant)
        self.constant = torch.full((n_rows,), first, dtype=torch.float64, device=device)
        self.lower = torch.zeros_like(self.constant)
        self.upper = torch.full_like(self.constant, torch.inf)

    def narrow(self, enough: Any) -> None:
        """Choose the next constants."""
        import torch

        self.upper = torch.where(enough, self.constant, self.upper)
        self.lower = torch.where(enough, self.lower, self.constant)
        larger, middle = FACTOR * self.constant, (self.lower + self.upper) / 2
        self.constant = torch.where(self.upper.isfinite(), middle, larger)


class Kept(Best):
    """The cheapest valid point of each row; no row stops before the end."""

    @property
    def stopped(self) -> Any:
        """No row."""
        import torch

        return torch.zeros_like(self.cost, dtype=torch.bool)


@dataclass(frozen=True, eq=False)
class Proximal:
    """Rounds of proximal gradient steps."""

    smooth: Callable[[Block, Any], Any]
    sparsity: float
    margin: float
    rate: float
    n_steps: int
    positive: bool

    def run(self, block: Block, bisection: Bisection, n_rounds: int) -> Best:
        """Search for the best constants and points of all rows."""
        import torch

        best = Kept(block.own)
        all_rows = torch.arange(len(block.own), device=block.own.device)
        for _ in range(n_rounds):
            enough = torch.zeros_like(all_rows, dtype=torch.bool)
            for places, filled in blocks(all_rows):
                part = best.take(filled)
                hit = self._round(block.take(filled), bisection.constant[filled], part)
                best.put(places, part)
                # Each step scores the point ahead, for its gradient, and the one it moves to.
                best.n_scored += 2 * len(places) * self.n_steps
                enough[places] = hit[: len(places)]
            bisection.narrow(enough)
        return best

    def _round(self, block: Block, constant: Any, best: Best) -> Any:
        """Take the steps of a round; whether a row was a hit."""
        import torch

        # The variable is the difference from the person, which is exactly 0 at first.
        moves = torch.zeros_like(block.own)
        ahead, hit = moves, torch.zeros_like(constant, dtype=torch.bool)
        for time in range(self.n_steps):
            rate = self.rate * (1 - time / self.n_steps) ** 0.5
            before, gradient = moves, self._gradient(block, constant, ahead)
            moves = snap(self.prox(block, ahead - rate * gradient, rate))
            ahead = moves + time / (time + 3) * (moves - before)
            hit = hit | self._judge(block, moves, best)
        return hit

    def _gradient(self, block: Block, constant: Any, moves: Any) -> Any:
        """Gradient of the smooth part, the decision included."""
        import torch

        moves = moves.detach().requires_grad_()
        rows, outputs = block.score(block.own + moves)
        short = (self.margin - block.scorer.margin(outputs)).clamp(min=0.0)
        value = constant * short + self.smooth(block, rows)
        return torch.autograd.grad(value.sum(), moves)[0]

    def prox(self, block: Block, moves: Any, rate: float) -> Any:
        """The point of the L1 distance and the limits that is nearest to a step."""
        import torch

        threshold = rate * self.sparsity * block.projection.weight
        shrunk = moves.sign() * (moves.abs() - threshold).clamp(min=0.0)
        own = block.own
        least = own.clamp(max=0.0) - own
        if self.positive:
            least = torch.where(block.projection.number, 0.0, least)
        return shrunk.clamp(least, own.clamp(min=1.0) - own)

    def _judge(self, block: Block, moves: Any, best: Best) -> Any:
        """Remember the cheapest hits; which rows are hits."""
        import torch

        with torch.no_grad():
            rows, outputs = block.score(block.own + moves)
            distance = block.projection.squared(rows, block.own)
            distance = distance + self.sparsity * block.projection.l1(rows, block.own)
            hit = (block.scorer.margin(outputs) >= self.margin) & block.scorer.valid(outputs)
            best.update(Step(distance, rows, hit, distance))
        return hit


@dataclass(eq=False, repr=False, kw_only=True)
class CEM(Trained, GradientMethod):
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

    sparsity: Late[NotNegative] = 0.9
    realism: Late[NotNegative] = 1.0
    margin: Late[NotNegative] = 0.02
    constant: Late[Positive] = 10.0
    n_rounds: Late[Count] = 9
    n_steps: Late[Count] = 100
    learning_rate: Late[Positive] = 0.01
    sign: Late[Literal["free", "positive"]] = "free"
    hidden: Widths = (20, 10, 7)

    def _train(self, space: Space, training: Training) -> None:
        points = space.encode(training.rows)
        self.autoencoder_ = AutoEncoder.fit(space, points, self)

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
