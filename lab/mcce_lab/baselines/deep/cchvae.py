"""C-CHVAE: growing rings around a person's code in an auto-encoder.

Always true: the predictor is only called, never differentiated; the first ring with a valid row
ends the search; the random numbers of a person depend on nothing but their row and the seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np

from mcce.protocols import BoolArray, FloatArray, IntArray, check_whole

from ...networks import import_torch, isolated
from ...parameters import Count, Late, NotNegative, Positive, Widths
from ..baseline import Baseline, Declined, Found, Training
from ..space import Space, complete_rows, search_complete
from .descent import PaperPreset, Projection
from .networks import INCOMPLETE, ConditionalVAE, Trained, in_blocks

NOTHING = "no ring around the person's code has a valid row"
# Rows that are decoded and scored at once.
MAX_ROWS = 50_000


@dataclass(eq=False, repr=False, kw_only=True)
class CCHVAE(Trained, PaperPreset, Baseline):
    """A near row with the desired decision, by random steps in the code of an auto-encoder.

    Codes around that of the person are drawn from rings of growing radius and decoded; the first
    ring with a valid row gives the answer, the valid row nearest to the person. Any predictor will
    do.

    Parameters
    ----------
    predictor
        As for :class:`mcce.MCCE`; no gradients are needed.
    desired
        As for :class:`mcce.MCCE`.
    immutable
        Names of the columns that cannot change.
    kinds
        ``"numeric"`` or ``"categorical"`` by column name, if the dtype is misleading.
    n_samples
        Codes per ring.
    step
        Width of a ring.
    n_rings
        The largest number of rings.
    norm : {1, 2}
        How the length of a step in the latent space, and the distance of rows, is measured.
    hidden, n_latent, kl_weight
        Hidden layers of the auto-encoder, numbers in a code and weight of the divergence.
    n_epochs, batch_size, early_stopping
        How the auto-encoder is trained, with Adam at 0.001; early stopping looks at held-out rows.
    random_state
        Seed of the auto-encoder and of the codes.
    device
        Where networks are trained and rows are moved: ``"cpu"``, ``"cuda"`` or e.g. ``"cuda:0"``.
        Every answer is confirmed by the predictor all the same, but answers of different devices
        need not be equal.

    References
    ----------
    Pawelczyk, Broelemann and Kasneci (2020). Learning model-agnostic counterfactual explanations
    for tabular data. The Web Conference 2020.

    Examples
    --------
    >>> explainer = CCHVAE(predictor, desired="accepted", immutable=["age"])  # doctest: +SKIP
    >>> explainer.fit(train).explain(people).changes()  # doctest: +SKIP
    """

    PAPER: ClassVar[Mapping[str, Any]] = {
        "n_samples": 100,
        "step": 0.1,
        "n_rings": 1000,
        "norm": 1,
        "hidden": (512, 256),
        "n_latent": 8,
        "kl_weight": 0.3,
        "n_epochs": 5,
        "batch_size": 32,
        "early_stopping": False,
    }

    n_samples: Late[Count] = 100
    step: Late[Positive] = 0.1
    n_rings: Late[Count] = 100
    norm: Late[Annotated[int, partial(check_whole, least=1, most=2)]] = 1
    hidden: Widths = (128, 64)
    n_latent: Count = 8
    kl_weight: NotNegative = 0.3

    def _learn(self, training: Training, y: Any) -> None:
        import_torch("CCHVAE", self.device)
        self.space_ = Space.learn(training.rows)
        points = self.space_.encode(complete_rows(training, self.space_).rows)
        self.vae_ = ConditionalVAE.fit(self.space_, points, self)

    def _search(self, declined: Declined) -> Found:
        return search_complete(declined, self.space_, self._search_rings, INCOMPLETE)

    def _search_rings(self, declined: Declined) -> Found:
        own, random = self.space_.encode(declined.rows), declined.generators(self.random_state)
        answers, left = own.copy(), np.arange(len(declined))
        with isolated(0) as torch:
            points = torch.as_tensor(own, device=self.vae_.layout.device)
            codes = in_blocks(lambda some: self.vae_.encode(some)[0], points).cpu().numpy()
            n_people = max(1, MAX_ROWS // self.n_samples)
            for ring in range(self.n_rings):
                if not left.size:
                    break
                done = []
                for people in np.split(left, range(n_people, left.size, n_people)):
                    drawn = [self._draw(random[person], ring) for person in people]
                    around = np.repeat(codes[people], self.n_samples, axis=0) + np.vstack(drawn)
                    done.append(self._try(declined, own, people, around, answers))
                left = left[~np.concatenate(done)]
        found = np.setdiff1d(np.arange(len(declined)), left)
        rows = self.space_.compose(declined.rows, found, answers[found])
        return Found(found, rows, dict.fromkeys(left.tolist(), NOTHING))

    def _draw(self, random: np.random.Generator, ring: int) -> FloatArray:
        return draw_ring(random, ring, self.n_samples, self.n_latent, self.step, self.norm)

    def _try(
        self,
        declined: Declined,
        own: FloatArray,
        people: IntArray,
        codes: FloatArray,
        answers: FloatArray,
    ) -> BoolArray:
        """Write the nearest valid row of each person to ``answers``; whether there is one."""
        import torch

        owner = np.repeat(people, self.n_samples)
        given = torch.from_numpy(own[owner])
        device = self.vae_.layout.device
        decoded = in_blocks(
            self.vae_.decode, torch.from_numpy(codes).to(device), given.to(device)
        ).cpu()
        points = Projection.of(self.space_, "cpu")(decoded, given).numpy()
        valid = declined.score(self.space_.compose(declined.rows, owner, points)).valid
        gap = np.abs(points - own[owner]) ** self.norm
        cost = np.where(self.space_.is_number, gap, gap / 2).sum(axis=1)
        cost = np.where(valid, cost, np.inf).reshape(people.size, self.n_samples)
        found: BoolArray = cost.min(axis=1) < np.inf
        best = cost.argmin(axis=1)
        chosen = points.reshape(people.size, self.n_samples, -1)[np.arange(people.size), best]
        answers[people[found]] = chosen[found]
        return found


def draw_ring(
    random: np.random.Generator, ring: int, n_samples: int, n_latent: int, step: float, norm: int
) -> FloatArray:
    """Steps in the latent space whose length lies in a ring."""
    direction = random.standard_normal((n_samples, n_latent))
    direction /= np.linalg.norm(direction, ord=norm, axis=1, keepdims=True)
    return direction * random.uniform(ring * step, (ring + 1) * step, (n_samples, 1))
