"""What the draws of some rows are to keep: limits, and own values.

Shared by the generators without trees, however they draw. The rows are the draws of some groups,
group after group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ..caching import cached_property
from ..candidates import Draws
from ..kernels import BoolArray, Codes, Guide, IntArray, Limits, WordArray, draw_keys, happens
from ..tables.schema import Schema
from .responses import with_decision


@dataclass(frozen=True, eq=False)
class DrawRequest:
    """Rows to be drawn, and what is wanted of them."""

    given: Codes
    keys: WordArray
    draws: IntArray
    limits: Limits | None = None
    guide: Guide | None = None

    @cached_property
    def row_keys(self) -> WordArray:
        """The random key of each row."""
        return draw_keys(self.keys, self.draws).ravel()

    @cached_property
    def group(self) -> IntArray:
        """The group of each row."""
        return np.repeat(np.arange(self.keys.size), self.draws.size)

    def of(self, groups: slice, draws: slice) -> DrawRequest:
        """Some draws of some groups."""
        limits, guide = self.limits, self.guide
        if limits is not None:
            limits = replace(
                limits,
                own=limits.own[:, groups],
                first=limits.first[:, groups],
                last=limits.last[:, groups],
                near=limits.near[:, groups],
            )
        if guide is not None:
            guide = replace(guide, own=guide.own[:, groups], stays=guide.stays[:, groups])
        given, keys = self.given[:, groups], self.keys[groups]
        return DrawRequest(given, keys, self.draws[draws], limits, guide)

    def drawn(self, draw: Callable[[DrawRequest], Codes], n_mutable: int, n_rows: int) -> Codes:
        """Codes of all rows, drawn some at a time: (n_mutable, n_groups, n_draws)."""
        codes = np.empty((n_mutable, self.keys.size, self.draws.size), dtype=np.int32)
        n_draws = max(1, min(self.draws.size, n_rows))
        n_groups = max(1, n_rows // n_draws)
        for group in range(0, self.keys.size, n_groups):
            for first in range(0, self.draws.size, n_draws):
                some = slice(group, group + n_groups), slice(first, first + n_draws)
                part = codes[:, *some]
                part[...] = draw(self.of(*some)).reshape(part.shape)
        return codes

    def allowed(self, position: int, n_codes: int) -> BoolArray | None:
        """Which codes of a feature each group may have, (n_groups, n_codes); None for all."""
        if self.limits is None or not (self.limits.first[position] >= 0).any():
            return None
        first, last = self.limits.first[position], self.limits.last[position]
        allowed = np.ones((first.size, n_codes), dtype=bool)
        for group in np.flatnonzero(first >= 0):
            allowed[group] = False
            for low, high in self.limits.runs[first[group] : last[group]]:
                allowed[group, low : high + 1] = True
        return allowed

    def kept(self, position: int, codes: Codes, possible: BoolArray) -> tuple[Codes, BoolArray]:
        """The own code of each row, and whether it is kept."""
        own = np.full(codes.size, -1, dtype=np.int32)
        kept = np.zeros(codes.size, dtype=bool)
        if self.limits is not None:
            bound = (self.limits.first[position] >= 0)[self.group]
            own = np.where(bound, self.limits.own[position][self.group], own)
            low, high = self.limits.near[position][self.group].T
            kept = bound & (~possible | ((low <= codes) & (codes <= high)))
        if self.guide is not None:
            own = self.guide.own[position][self.group]
            stays = self.guide.stays[position][self.group] != -1
            kept |= stays & happens(self.row_keys, position + len(self.given), self.guide.often)
        return own.astype(np.int32), kept


class RequestedDraws:
    """A generator that draws what a :class:`DrawRequest` asks for, by ``_draw``; a mixin."""

    schema_: Schema

    def _draw(self, request: DrawRequest) -> Codes:
        """Codes of the rows of a request, shape (n_mutable, n_rows)."""
        raise NotImplementedError

    def _rows_at_once(self) -> int:
        """The most rows of a request."""
        raise NotImplementedError

    def _drawn_tables(self) -> Sequence[pd.Series[Any]] | None:
        """What the codes index, one table per mutable feature; None is the training values."""
        return None

    def sample(
        self,
        given: Codes,
        keys: WordArray,
        draws: IntArray,
        *,
        decision: BoolArray | None = None,
    ) -> Draws:
        """Draws for each group of immutable codes."""
        return self.sample_guided(given, keys, draws, None, None, decision=decision)

    def sample_within(
        self, given: Codes, keys: WordArray, draws: IntArray, limits: Limits | None
    ) -> Draws:
        """Draws within the limits of each group."""
        return self.sample_guided(given, keys, draws, limits, None)

    def sample_guided(
        self,
        given: Codes,
        keys: WordArray,
        draws: IntArray,
        limits: Limits | None,
        guide: Guide | None,
        *,
        decision: BoolArray | None = None,
    ) -> Draws:
        """Draws within limits that keep a group's own values where they can."""
        request = DrawRequest(with_decision(given, decision), keys, draws, limits, guide)
        codes = request.drawn(self._draw, self.schema_.mutable.size, self._rows_at_once())
        return Draws(codes, self._drawn_tables())
