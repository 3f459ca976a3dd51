"""Which values of a feature the direct search tries for a person.

All that are allowed, or of many numbers some quantiles, and of many levels the most frequent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..caching import cached_property
from ..kernels import BoolArray, Codes, IntArray, Limits
from ..tables.features import Feature
from ..tables.schema import Schema

# Up to so many values of a feature are all tried; of more numbers, so many quantiles.
ALL_VALUES, N_QUANTILES = 32, 15
# Most levels of a feature.
MAX_LEVELS = 64


def frequent_codes(schema: Schema, accepted: Codes) -> tuple[Codes, ...]:
    """Quantiles of each mutable number, or all levels from the most frequent on."""
    chosen = []
    for position in schema.mutable:
        feature = schema.features[position]
        counts = np.bincount(accepted[position], minlength=feature.n_codes)
        if feature.kind == "numeric":
            places = _even_places(accepted.shape[1])
            found = np.searchsorted(np.cumsum(counts), places, side="right")
            chosen.append(np.unique(found).astype(np.int32))
        else:
            chosen.append(np.argsort(-counts, kind="stable").astype(np.int32))
    return tuple(chosen)


def allowed_runs(limits: Limits | None, position: int, at: int, n_codes: int, own: int) -> Codes:
    """Codes that a person's feature may change to: first and end of each run, ascending."""
    runs, left_out = [(0, n_codes)], [(own, own)]
    if limits is not None and limits.first[position, at] >= 0:
        given = limits.runs[limits.first[position, at] : limits.last[position, at]]
        runs = [(low, high + 1) for low, high in given.tolist()]
        low, high = limits.near[position, at].tolist()
        left_out.append((max(low, 0), high))
    for low, high in left_out:
        if 0 <= low <= high:
            halves = [((a, min(b, low)), (max(a, high + 1), b)) for a, b in runs]
            runs = [(a, b) for both in halves for a, b in both if a < b]
    return np.array(runs, dtype=np.int32).reshape(-1, 2)


@dataclass(frozen=True, eq=False)
class Choice:
    """Codes of a feature that a person may have, and those to try alone and in combination."""

    feature: Feature | None
    runs: Codes
    frequent: Codes
    everything: bool = False

    @cached_property
    def n_allowed(self) -> int:
        """How many codes are allowed; counting them takes no time, making them may."""
        return int((self.runs[:, 1] - self.runs[:, 0]).sum())

    @cached_property
    def allowed(self) -> Codes:
        """All codes that are allowed."""
        none = np.empty(0, dtype=np.int32)
        return np.concatenate([none, *(np.arange(*run, dtype=np.int32) for run in self.runs)])

    @cached_property
    def quantiles(self) -> Codes:
        """Some allowed codes at equal distances."""
        ends = np.cumsum(self.runs[:, 1] - self.runs[:, 0])
        places = _even_places(self.n_allowed)
        run = np.searchsorted(ends, places, side="right")
        return _merge(self.runs[run, 1] - (ends[run] - places))

    def may(self, codes: Codes) -> BoolArray:
        """Whether codes are allowed."""
        run = np.searchsorted(self.runs[:, 0], codes, side="right") - 1
        return (run >= 0) & (codes < np.append(self.runs[:, 1], 0)[run])

    @cached_property
    def alone(self) -> Codes:
        """Codes to try as the only change."""
        if self.everything or self.feature is None or self.feature.kind != "numeric":
            return self.combined
        if self.n_allowed <= ALL_VALUES:
            return self.allowed
        return _merge(self.combined, self.quantiles)

    @cached_property
    def combined(self) -> Codes:
        """Codes to try with other changes."""
        if self.everything or self.feature is None:
            return self.allowed
        usual = self.frequent[self.may(self.frequent)]
        if self.feature.kind != "numeric":
            return usual[:MAX_LEVELS]
        if self.n_allowed > N_QUANTILES:
            grid = _merge(usual, self.quantiles[: max(N_QUANTILES - usual.size, 0)])
        else:
            grid = self.allowed
        missing = np.array([self.feature.n_codes - 1], dtype=np.int32)
        if self.feature.has_missing and self.may(missing).all():
            grid = _merge(grid, missing)
        return grid

    @property
    def whole(self) -> Choice:
        """All codes, in whatever combination."""
        return replace(self, everything=True)


NO_CHOICE = Choice(None, np.empty((0, 2), dtype=np.int32), np.empty(0, dtype=np.int32))


def _even_places(n: int) -> IntArray:
    """Places at equal distances in a list of a length, without its ends."""
    return (2 * np.arange(N_QUANTILES if n else 0) + 1) * n // (2 * N_QUANTILES)


def _merge(*codes: IntArray | Codes) -> Codes:
    """The distinct codes of some short lists, ascending."""
    return np.array(sorted({code for some in codes for code in some.tolist()}), dtype=np.int32)
