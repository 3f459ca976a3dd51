"""Histograms and correlations of generated and real rows.

Paper, figures of Experiment 3 and of the appendix "Quality of generated data".
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from ...metrics import correlations
from .figures import GREY, OTHER, OURS, legend_below, panels

N_BINS = 24
N_COLUMNS = 6


def largest_gap(generated: pd.DataFrame, real: pd.DataFrame) -> tuple[Hashable, float]:
    """The feature whose distribution differs most, and by how much.

    For numbers the largest difference of the distribution functions, for levels that of a share.

    Examples
    --------
    >>> real = pd.DataFrame({"a": [1, 2, 3, 4], "b": [1, 1, 1, 1]})
    >>> largest_gap(real.assign(a=[1, 1, 1, 4]), real)
    ('a', 0.5)
    """
    gaps = {name: _gap(generated[name], real[name]) for name in real.columns}
    worst = max(gaps, key=gaps.__getitem__)
    return worst, gaps[worst]


def _gap(new: pd.Series[Any], old: pd.Series[Any]) -> float:
    shares = pd.concat([s.value_counts(normalize=True) for s in (new, old)], axis=1).fillna(0.0)
    difference = shares.iloc[:, 0] - shares.iloc[:, 1]
    if pd.api.types.is_numeric_dtype(old.dtype):
        difference = difference.sort_index().cumsum()
    return round(float(difference.abs().max()), 12)


def draw_histograms(generated: pd.DataFrame, real: pd.DataFrame) -> Any:
    """A histogram of every feature: real rows as bars, generated ones as a line."""
    n_rows = -(-len(real.columns) // N_COLUMNS)
    figure, axes = panels(n_rows, N_COLUMNS, size=(1.9, 1.45))
    for axis, name in zip(axes.ravel(), real.columns, strict=False):
        if pd.api.types.is_numeric_dtype(real[name].dtype):
            _numbers(axis, generated[name], real[name])
        else:
            _levels(axis, generated[name], real[name])
        axis.set_title(_short(str(name)), fontsize=7)
        axis.tick_params(labelsize=6)
        axis.set_yticks([])
        axis.spines["left"].set_visible(False)
        axis.grid(False)
    for axis in axes.ravel()[len(real.columns) :]:
        axis.set_axis_off()
    legend_below(figure, axes)
    return figure


def _numbers(axis: Any, new: pd.Series[Any], old: pd.Series[Any]) -> None:
    axis.locator_params(axis="x", nbins=4, integer=True)
    low, high = old.quantile([0.0, 0.995])
    edges = np.linspace(low, high if high > low else low + 1, N_BINS + 1)
    axis.hist(old.clip(upper=edges[-1]), edges, density=True, color=GREY, alpha=0.6, label="real")
    axis.hist(
        new.clip(upper=edges[-1]),
        edges,
        density=True,
        histtype="step",
        color=OURS,
        linewidth=1.1,
        label="generated",
    )


def _levels(axis: Any, new: pd.Series[Any], old: pd.Series[Any]) -> None:
    shares = old.value_counts(normalize=True, sort=False)
    drawn = new.value_counts(normalize=True).reindex(shares.index, fill_value=0.0)
    places = np.arange(len(shares))
    axis.bar(places, shares, 0.7, color=GREY, alpha=0.6, label="real")
    axis.bar(places, drawn, 0.7, fill=False, edgecolor=OURS, linewidth=1.1, label="generated")
    axis.set_xticks(places, [_short(str(level), 9) for level in shares.index])


def draw_correlations(generated: pd.DataFrame, real: pd.DataFrame) -> Any:
    """Correlations of real rows, of generated rows, and their difference.

    The area of a circle is the absolute correlation, as in the paper.
    """
    ours, theirs = (correlations(rows, real, method="pearson") for rows in (generated, real))
    figure, axes = panels(1, 3, size=(3.4, 3.5))
    heads = "real", "generated", "generated - real"
    for axis, head, matrix in zip(axes[0], heads, (theirs, ours, ours - theirs), strict=True):
        _circles(axis, matrix.to_numpy())
        axis.set_title(head, fontsize=9)
    _label(axes[0][0], [str(name) for name in real.columns])
    legend_below(figure, axes)
    return figure


def _circles(axis: Any, matrix: np.ndarray) -> None:
    """One circle per pair, blue above 0 and orange below."""
    from matplotlib.collections import EllipseCollection

    n = len(matrix)
    column, row = np.meshgrid(np.arange(n), np.arange(n))
    for sign, colour, label in ((1, OURS, "positive"), (-1, OTHER, "negative")):
        here = sign * matrix > 0
        width = np.sqrt(np.abs(matrix[here])) * 0.95
        circles = EllipseCollection(
            width,
            width,
            np.zeros(width.size),
            units="x",
            offsets=np.column_stack([column[here], row[here]]),
            offset_transform=axis.transData,
            facecolors=colour,
        )
        axis.add_collection(circles)
        axis.plot([], [], "o", color=colour, label=label)
    axis.set(xlim=(-0.6, n - 0.4), ylim=(n - 0.4, -0.6), aspect="equal", xticks=[], yticks=[])
    axis.tick_params(length=0)
    axis.grid(False)


def _label(axis: Any, names: list[str]) -> None:
    axis.set_yticks(range(len(names)), [_short(name) for name in names], fontsize=5)


def _short(name: str, most: int = 20) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
