"""The draw of one feature from a Gaussian copula, within limits and with guidance.

A feature has one latent number, or two: whether its number is missing, and the number. Where the
own value is kept, the latent numbers are drawn from its intervals instead, so that what is drawn
afterwards goes with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcce.kernels import BoolArray, Codes
from mcce.protocols import DrawRequest

from .latents import Bounds, LatentRows
from .margins import Margin

# The place of a latent number in the chain, and its margin.
Placed = tuple[int, Margin]


class FeatureDraws:
    """Features of some rows, drawn one after another.

    Parameters
    ----------
    latents
        The latent numbers, those of the immutable features and the decision drawn.
    request
        The rows, and what their draws are restricted to.
    """

    def __init__(self, latents: LatentRows, request: DrawRequest) -> None:
        self.latents, self.request, self.group = latents, request, request.group

    def draw(self, position: int, margins: Sequence[Placed]) -> Codes:
        """Codes of a feature.

        Parameters
        ----------
        position
            Position of the feature.
        margins
            Its margins, the flag before the number.
        """
        n_codes = margins[-1][1].place.size - 1
        allowed = self.request.allowed(position, n_codes)
        codes, possible = self._codes(margins, allowed)
        own, kept = self.request.kept(position, codes, possible)
        if kept.any():
            self._keep(position, margins, kept)
        return np.where(kept, own, codes)

    def _codes(
        self, margins: Sequence[Placed], allowed: BoolArray | None
    ) -> tuple[Codes, BoolArray]:
        """A code of each row, allowed where one can be drawn, and whether it could."""
        missing = np.zeros(self.group.size, dtype=bool)
        possible = np.ones(self.group.size, dtype=bool)
        codes = np.zeros(self.group.size, dtype=np.int32)
        for at, margin in margins:
            runs = None if allowed is None else self._runs(margin, allowed)
            numbers, could = self.latents.draw(at, runs)
            drawn = margin.codes[np.searchsorted(margin.cuts[1:-1], numbers, side="right")]
            if margin.is_flag:
                missing = drawn == 1
                codes[missing] = margin.place.size - 2
                possible &= could
            else:
                codes = np.where(missing, codes, drawn).astype(np.int32)
                possible &= could | missing
        return codes, possible

    def _keep(self, position: int, margins: Sequence[Placed], kept: BoolArray) -> None:
        """Draw the latent numbers of rows that keep their value from its intervals."""
        own = self.request.given[position][self.group]
        before = [self.latents.steps[at] for at, _ in margins]
        for (at, margin), steps in zip(margins, before, strict=True):
            self.latents.draw(at, [margin.bounds(own)])
            self.latents.steps[at] = np.where(kept, self.latents.steps[at], steps)

    def _runs(self, margin: Margin, allowed: BoolArray) -> list[Bounds]:
        """The intervals that each row may draw from, adjacent ones joined."""
        if margin.is_flag:
            by_interval = np.stack([allowed[:, :-1].any(axis=1), allowed[:, -1]], axis=1)
        else:
            by_interval = allowed[:, margin.codes]
        edges = np.diff(np.pad(by_interval.astype(np.int8), ((0, 0), (1, 1))), axis=1)
        whose, start = np.nonzero(edges == 1)
        end = np.nonzero(edges == -1)[1]
        count = np.bincount(whose, minlength=len(allowed))
        nth = np.arange(whose.size) - (np.cumsum(count) - count)[whose]
        # Padded with empty intervals.
        low, high = np.full((2, max(1, int(count.max(initial=0))), len(allowed)), np.inf)
        low[nth, whose], high[nth, whose] = margin.cuts[start], margin.cuts[end]
        return [(a[self.group], b[self.group]) for a, b in zip(low, high, strict=True)]
