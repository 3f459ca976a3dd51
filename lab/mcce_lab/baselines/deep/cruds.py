"""CRUDS: only the part of a person's code that knows the decision moves.

Its auto-encoder writes a row as z, which an adversary must not be able to tell the decision from,
and w, which has another prior for each decision (Klys et al. 2018, conditional subspace VAE).

Always true: every step of the search is judged as the row that it would be; the random numbers of
a person depend on nothing but their row and the seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mcce.protocols import BoolArray, FloatArray

from ...networks import Goal, isolated, train
from ...parameters import Count, Late, NotNegative, Positive, TwoOrMore
from ..baseline import Declined, Found, Training
from ..space import Space
from .descent import Best, Block, Descent, GradientMethod, Patient, Step, search
from .networks import (
    Layout,
    RMSprop,
    Trained,
    draw,
    gaussian_kl,
    gaussian_kl_between,
    in_blocks,
    layers,
)

# Weights of the parts of the loss: error, divergence of z and of w, and what the adversary knows.
ERROR, Z_DIVERGENCE, W_DIVERGENCE, SECRECY, ADVERSARY = 40.0, 0.2, 1.0, 110.0, 100.0


@dataclass(frozen=True, eq=False)
class SubspaceVAE:
    """A trained auto-encoder with two codes."""

    layout: Layout
    network: Any

    @classmethod
    def fit(
        cls,
        space: Space,
        points: FloatArray,
        accepted: BoolArray,
        method: CRUDS,
    ) -> SubspaceVAE:
        """Train on points and decisions."""
        layout = Layout.of(space, method.device)
        with isolated(method.random_state) as torch:
            untrained = cls(layout, _network(layout, method).to(layout.device))
            network = untrained.network
            others = list(network.adversary.parameters())
            mine = [p for p in network.parameters() if all(p is not other for other in others)]
            goals = [
                Goal(lambda batch, _: untrained.loss(*batch).sum(), mine),
                Goal(lambda batch, _: untrained.adversary_loss(*batch).sum(), others),
            ]
            decisions = torch.eye(2)[torch.tensor(accepted, dtype=torch.int64)]
            tensors: Sequence[Any] = [torch.from_numpy(points), decisions]
            return cls(layout, train(network, tensors, goals, method, rate=LEARNING_RATE))

    def encode(self, points: Any) -> tuple[Any, Any]:
        """Mean and log-variance of the code z of each point."""
        return self.network.z(points[:, self.layout.mutable]).chunk(2, dim=1)

    def prior(self, decisions: Any) -> tuple[Any, Any]:
        """Mean and log-variance of the code w of decisions, one-hot."""
        return self.network.prior(decisions).chunk(2, dim=1)

    def decode(self, z: Any, w: Any, own: Any) -> Any:
        """Points of codes, with the immutable axes of their people."""
        import torch

        raw = self.network.decoder(torch.cat([z, self.layout.given(own), w], dim=1))
        return self.layout.place(self.layout.write(raw), own)

    def loss(self, points: Any, decisions: Any) -> Any:
        """The loss of all networks except the adversary, by row."""
        import torch

        target = points[:, self.layout.mutable]
        z_mean, z_spread = self.encode(points)
        w_mean, w_spread = self.network.w(torch.cat([target, decisions], dim=1)).chunk(2, dim=1)
        z = draw(z_mean, z_spread)
        decoded = self.decode(z, draw(w_mean, w_spread), points)
        return (
            ERROR * (decoded - points).square().mean(dim=1)
            + Z_DIVERGENCE * gaussian_kl(z_mean, z_spread)
            + W_DIVERGENCE * gaussian_kl_between(w_mean, w_spread, *self.prior(decisions))
            + SECRECY * _known(self.guess(z, points))
        )

    def adversary_loss(self, points: Any, decisions: Any) -> Any:
        """The loss of the adversary, by row."""
        import torch

        z = draw(*self.encode(points)).detach()
        guess = self.guess(z, points)
        return ADVERSARY * torch.nn.functional.binary_cross_entropy(
            guess, decisions.to(guess.dtype), reduction="none"
        ).mean(dim=1)

    def guess(self, z: Any, points: Any) -> Any:
        """The adversary's probability of each decision, given codes."""
        import torch

        return torch.sigmoid(self.network.adversary(torch.cat([z, self.layout.given(points)], 1)))


def _known(guess: Any) -> Any:
    """Minus the entropy of guesses, the mean over decisions, by row."""
    guess = guess.clamp(1e-6, 1 - 1e-6)
    return (guess * guess.log() + (1 - guess) * (1 - guess).log()).mean(dim=1)


def _network(layout: Layout, method: CRUDS) -> Any:
    """The parts, untrained, each with one hidden layer."""
    import torch

    n_mutable, n_given = len(layout.mutable), len(layout.immutable)
    hidden, n_z, n_w = method.hidden, method.n_latent, method.n_decision
    network: Any = torch.nn.Module()
    network.z = layers([n_mutable, hidden, 2 * n_z])
    network.w = layers([n_mutable + 2, hidden, 2 * n_w])
    network.prior = layers([2, hidden, 2 * n_w])
    network.decoder = layers([n_z + n_given + n_w, hidden, n_mutable])
    network.adversary = layers([n_z + n_given, hidden, 2])
    return network


LEARNING_RATE = 5e-4


@dataclass(eq=False, repr=False, kw_only=True)
class CRUDS(Trained, GradientMethod):
    """A row with the desired decision that is otherwise like the person.

    An auto-encoder writes a row as two codes: one that knows nothing of the decision, which stays,
    and one for the decision, over which -log f(e) + weight * L2(e, x) squared is minimised, f being
    the probability of the desired decision. Of all steps of several starts the best valid one is
    the answer.

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
        Step size of RMSprop in the latent space.
    n_steps
        The largest number of steps.
    patience
        Steps without progress after which a search stops.
    n_starts
        Starts per person: the mean of the prior for the desired decision, and draws from it.
    hidden, n_latent, n_decision
        Width of each network's hidden layer, and numbers in the two codes.
    n_epochs, batch_size, early_stopping
        How the auto-encoder is trained, with Adam at 0.0005; early stopping looks at held-out rows.
        It learns the predictor's decisions.
    random_state
        Seed of the auto-encoder and of the starts.
    device
        Where networks are trained and rows are moved: ``"cpu"``, ``"cuda"`` or e.g. ``"cuda:0"``.
        Every answer is confirmed by the predictor all the same, but answers of different devices
        need not be equal.

    References
    ----------
    Downs, Chu, Yacoby, Doshi-Velez and Pan (2020). CRUDS: counterfactual recourse using
    disentangled subspaces. ICML Workshop on Human Interpretability in Machine Learning.

    Examples
    --------
    >>> explainer = CRUDS(predictor, desired="accepted", immutable=["age"])  # doctest: +SKIP
    >>> explainer.fit(train).explain(people).changes()  # doctest: +SKIP
    """

    NOTHING: ClassVar[str] = "no step of the search in the decision's latent space was valid"
    PAPER: ClassVar[Mapping[str, Any]] = {
        "weight": 0.001,
        "learning_rate": 0.008,
        "n_steps": 2000,
        "patience": 2000,
        "n_starts": 1,
        "hidden": 16,
        "n_latent": 8,
        "n_decision": 2,
        "n_epochs": 5,
        "batch_size": 32,
        "early_stopping": False,
    }

    weight: Late[NotNegative] = 0.3
    learning_rate: Late[Positive] = 0.03
    n_steps: Late[Count] = 2000
    patience: Late[Count] = 100
    n_starts: Late[Count] = 8
    hidden: Count = 64
    n_latent: Count = 16
    n_decision: Count = 2
    batch_size: TwoOrMore = 256

    def _train(self, space: Space, training: Training) -> None:
        points = space.encode(training.rows)
        self.vae_ = SubspaceVAE.fit(space, points, training.scored.valid, self)

    def _descend(self, declined: Declined) -> Found:
        shape = self.n_starts, self.n_decision
        noise = [random.standard_normal(shape) for random in declined.generators(self.random_state)]
        for starts in noise:
            starts[0] = 0.0  # the mean itself
        return search(
            declined,
            self.scorer_,
            self._find,
            self.NOTHING,
            extra={"noise": np.vstack(noise)},
            n_copies=self.n_starts,
        )

    def _find(self, block: Block) -> Best:
        import torch

        codes = in_blocks(lambda own: self.vae_.encode(own)[0], block.own)
        desired = torch.tensor([[0.0, 1.0]], dtype=torch.float64, device=block.own.device)
        mean, log_variance = self.vae_.prior(desired)
        start = mean + block.extra["noise"] * (0.5 * log_variance).exp()
        descent = Descent(self._objective, RMSprop(self.learning_rate), self.n_steps)
        return descent.run(block.adding(z=codes), start, Patient(block.own, self.patience))

    def _objective(self, block: Block, w: Any) -> Step:
        rows, outputs = block.score(self.vae_.decode(block.extra["z"], w, block.own))
        distance = block.projection.squared(rows, block.own)
        value = block.scorer.loss(outputs) + self.weight * distance
        return Step(value, rows, block.scorer.valid(outputs), value)
