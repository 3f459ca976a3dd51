"""Small pictures of single changes, as numbers for an SVG of a few hundred bytes.

A thousand people have thousands of them: too many for figures of matplotlib. They stand on the
same lines (:mod:`mcce.report.plots.tracks`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...fitted import Fitted
from ...tables.columns import is_measured
from ...tables.features import Feature
from ..label_checks import level_key
from ..plots.tracks import Track
from .words import PageWords

# Pixels: the whole picture, the line inside it, its height, and the bars above it.
WIDTH, LEFT, RIGHT, BASE, BARS = 230, 22, 208, 26, 20
# Accepted people of whom the bars are made.
MOST_ACCEPTED = 1_000


@dataclass(frozen=True)
class Dumbbell:
    """Where everything stands in the picture of one change, in pixels."""

    before: float
    after: float
    low: float | None
    high: float | None
    bars: str
    ends: tuple[str, ...]


class Dumbbells:
    """Draws changes."""

    def __init__(self, fitted: Fitted, words: PageWords) -> None:
        self._fitted, self._words = fitted, words
        self._features = {feature.name: feature for feature in fitted.schema.features}
        self._accepted: dict[Hashable, pd.Series[Any] | None] = {}
        self._drawn: dict[tuple[Any, ...], Dumbbell] = {}

    @property
    def shows_accepted(self) -> bool:
        """Whether accepted people stand behind the lines."""
        return self._fitted.plausibility is not None

    @property
    def frame(self) -> dict[str, int]:
        """Where the lines of all pictures stand, for the template."""
        return {"width": WIDTH, "left": LEFT, "right": RIGHT, "base": BASE}

    def draw(self, name: Hashable, cells: Sequence[Any], ends: Sequence[Any]) -> Dumbbell:
        """The picture of a change."""
        key = (name, *map(level_key, (*cells, *ends)))
        if key not in self._drawn:
            self._drawn[key] = self._draw(self._features[name], [*cells, *ends])
        return self._drawn[key]

    def _draw(self, feature: Feature, cells: Sequence[Any]) -> Dumbbell:
        if feature.name not in self._accepted:
            self._accepted[feature.name] = self._accepted_cells(feature)
        words = self._words.cells
        levels = list(words.labels.of(feature.name).levels)
        track = Track.make(_column(feature, cells), self._accepted[feature.name], levels)
        places = [_pixel(place) for place in track.places.tolist()]
        before, after, *reach = places
        low, high = reach or (None, None)
        named = words.values(feature.name, list(track.ends)) if track.ends else []
        return Dumbbell(before, after, low, high, _bars(track), tuple(named))

    def _accepted_cells(self, feature: Feature) -> pd.Series[Any] | None:
        model = self._fitted.plausibility
        if model is None:
            return None
        position = self._fitted.schema.names.index(feature.name)
        codes = model.codes_[position]
        codes = codes[:: max(1, codes.size // MOST_ACCEPTED)]
        return feature.table.iloc[codes].reset_index(drop=True)


def _column(feature: Feature, cells: Sequence[Any]) -> pd.Series[Any]:
    """Cells as a column that has the kind of its feature."""
    if feature.kind == "numeric":
        column = pd.Series(list(cells))
        return column if is_measured(column.dtype) else column.astype(feature.table.dtype)
    if isinstance(feature.table.dtype, pd.CategoricalDtype):
        levels = list(feature.table.dtype.categories)
        known = dict.fromkeys([*levels, *(cell for cell in cells if cell is not None)])
        return pd.Series(pd.Categorical(list(cells), categories=list(known)))
    return pd.Series(list(cells), dtype=object)


def _pixel(place: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * place, 1)


def _bars(track: Track) -> str:
    """The bars as one path; neighbours share their sides."""
    width = (RIGHT - LEFT) * track.width
    path, end = list[str](), -1.0
    for place, height in zip(track.bars.tolist(), track.heights.tolist(), strict=True):
        start = LEFT + (RIGHT - LEFT) * place - width / 2
        if not height:
            continue
        if abs(start - end) > 0.01:
            path.append(f"{f'V{BASE}' if path else ''}M{start:.4g} {BASE}")
        path.append(f"V{BASE - max(1, round(BARS * height))}h{width:.3g}")
        end = start + width
    return "".join([*path, f"V{BASE}"] if path else path)
