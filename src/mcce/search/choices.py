"""Which values of a feature the direct search tries for a person.

All that are allowed, or of many numbers some quantiles, and of many levels the most frequent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..caching import cached_property
from ..kernels import BoolArray, Codes, Limits
from ..tables.features import Feature
from ..tables.schema import Schema

# Up to so many values of a feature are all tried; of more numbers, so many quantiles.
ALL_VALUES, N_QUANTILES = 32, 15
# Most levels of a feature.
MAX_LEVELS = 64


def frequent_codes(schema: Schema, accepted: Codes) -> tuple[Codes, ...]:
    """Quantiles of each mutable number, or all levels from the most frequent on.

    Parameters
    ----------
    schema
        The columns.
    accepted : (n_features, n_accepted)
        Codes of the accepted training rows.

    Returns
    -------
    tuple
        Codes of each mutable feature.
    """
    chosen = []
    for position in schema.mutable:
        codes, feature = accepted[position], schema.features[position]
        if feature.kind == "numeric":
            chosen.append(_quantiles(np.sort(codes)))
        else:
            counts = np.bincount(codes, minlength=feature.n_codes)
            chosen.append(np.argsort(-counts, kind="stable").astype(np.int32))
    return tuple(chosen)


def allowed_codes(limits: Limits, position: int, at: int, n_codes: int) -> BoolArray:
    """By code, whether a person's feature may change to it."""
    may = np.zeros(n_codes, dtype=bool)
    for low, high in limits.runs[limits.first[position, at] : limits.last[position, at]]:
        may[low : high + 1] = True
    low, high = limits.near[position, at]
    may[max(low, 0) : high + 1] = False
    return may


@dataclass(frozen=True, eq=False)
class Choice:
    """Codes of a feature that a person may have, and those to try alone and in combination.

    Parameters
    ----------
    feature
        The feature; None if it has no codes to choose from.
    may : (n_codes,)
        Which codes are allowed.
    frequent
        Codes to prefer if there are many.
    everything
        Whether to try all codes.
    """

    feature: Feature | None
    may: BoolArray
    frequent: Codes
    everything: bool = False

    @cached_property
    def allowed(self) -> Codes:
        """All codes that are allowed."""
        return np.flatnonzero(self.may).astype(np.int32)

    @cached_property
    def alone(self) -> Codes:
        """Codes to try as the only change."""
        if self.everything or self.feature is None or self.feature.kind != "numeric":
            return self.combined
        if self.allowed.size <= ALL_VALUES:
            return self.allowed
        return np.union1d(self.combined, _quantiles(self.allowed)).astype(np.int32)

    @cached_property
    def combined(self) -> Codes:
        """Codes to try with other changes."""
        if self.everything or self.feature is None:
            return self.allowed
        usual, grid = self.frequent[self.may[self.frequent]], self.allowed
        if self.feature.kind != "numeric":
            return usual[:MAX_LEVELS]
        if grid.size > N_QUANTILES:
            grid = np.union1d(usual, _quantiles(grid)[: max(N_QUANTILES - usual.size, 0)])
        if self.feature.has_missing and self.may[-1]:
            grid = np.union1d(grid, [self.feature.n_codes - 1])
        return grid.astype(np.int32)

    @property
    def whole(self) -> Choice:
        """All codes, in whatever combination."""
        return replace(self, everything=True)


NO_CHOICE = Choice(None, np.empty(0, dtype=bool), np.empty(0, dtype=np.int32))


def _quantiles(ascending: Codes) -> Codes:
    """Some codes at equal distances in a sorted list, without its ends."""
    if not ascending.size:
        return ascending
    places = (2 * np.arange(N_QUANTILES) + 1) * ascending.size // (2 * N_QUANTILES)
    return np.unique(ascending[places])
