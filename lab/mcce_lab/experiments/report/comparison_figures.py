"""Histograms and correlations of generated and real rows.

Paper, figures of Experiment 3 and of the appendix "Quality of generated data".
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from ...metrics import correlations
from .figures import (
    GREY,
    OTHER,
    OURS,
    legend_below,
    panels,
)

N_BINS = 24
N_COLUMNS = 4
# Quantile of the real numbers where the last bin ends; it holds all larger values too.
LAST_BIN = 0.995
# Absolute correlations in the key of circle sizes.
KEY = (0.1, 0.5, 1.0)
DIAMETER = 0.95  # of the circle of correlation 1, in cells


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
    figure, axes = panels(n_rows, N_COLUMNS, size=(2.6, 1.7))
    for axis, name in zip(axes.ravel(), real.columns, strict=False):
        if pd.api.types.is_numeric_dtype(real[name].dtype):
            _numbers(axis, generated[name], real[name])
        else:
            _levels(axis, generated[name], real[name])
        axis.set_title(str(name), fontsize=8)
        axis.tick_params(labelsize=6)
        axis.grid(False)
    for axis in axes.ravel()[len(real.columns) :]:
        axis.set_axis_off()
    figure.supylabel("share of rows", fontsize=9)
    note = "horizontal: value of the feature; the last bin of a number holds all larger values"
    legend_below(figure, axes, note=note)
    return figure


def _numbers(axis: Any, new: pd.Series[Any], old: pd.Series[Any]) -> None:
    axis.locator_params(axis="x", nbins=4, integer=True)
    low, high = old.quantile([0.0, LAST_BIN])
    edges = np.linspace(low, high if high > low else low + 1, N_BINS + 1)
    shares = {"weights": np.full(len(old), 1 / len(old))}
    axis.hist(old.clip(upper=edges[-1]), edges, color=GREY, alpha=0.6, label="real", **shares)
    axis.hist(
        new.clip(upper=edges[-1]),
        edges,
        weights=np.full(len(new), 1 / len(new)),
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
    axis.set_xticks(places, [str(level) for level in shares.index])


def draw_correlations(generated: pd.DataFrame, real: pd.DataFrame) -> Any:
    """Correlations of real rows, of generated rows, and their difference.

    The area of a circle is the absolute correlation, as in the paper.
    """
    ours, theirs = (correlations(rows, real, method="pearson") for rows in (generated, real))
    figure, axes = panels(1, 3, size=(4.2, 5.9))
    heads = "real", "generated", "generated - real"
    for axis, head, matrix in zip(axes[0], heads, (theirs, ours, ours - theirs), strict=True):
        _circles(axis, matrix.to_numpy())
        axis.set_title(f"correlations, {head}", fontsize=9)
        names = [str(name) for name in real.columns]
        axis.set_xticks(range(len(names)), names, fontsize=6, rotation=90)
    axes[0][0].set_yticks(range(len(names)), names, fontsize=6)
    for size in KEY:
        axes[0][0].plot([], [], "o", color=GREY, markeredgewidth=0, label=_key_label(size))
    legend_below(figure, axes, n_columns=5)
    _fit_size_key(figure, axes[0][0])
    return figure


def _key_label(size: float) -> str:
    return f"|correlation| {size}"


def _fit_size_key(figure: Any, axis: Any) -> None:
    """Draw the circles of the key as large as those of the panels."""
    figure.canvas.draw()  # settles the layout, and with it the width of a cell, in points below
    left, right = axis.transData.transform([(0, 0), (1, 0)])[:, 0]
    cell = (right - left) * 72 / figure.dpi
    (legend,) = figure.legends
    entries = zip(legend.get_texts(), legend.legend_handles, strict=True)
    circles = {text.get_text(): handle for text, handle in entries}
    for size in KEY:
        circles[_key_label(size)].set_markersize(cell * DIAMETER * np.sqrt(size))


def _circles(axis: Any, matrix: np.ndarray) -> None:
    """One circle per pair, blue above 0 and orange below."""
    from matplotlib.collections import EllipseCollection

    n = len(matrix)
    column, row = np.meshgrid(np.arange(n), np.arange(n))
    for sign, colour, label in ((1, OURS, "positive"), (-1, OTHER, "negative")):
        here = sign * matrix > 0
        width = np.sqrt(np.abs(matrix[here])) * DIAMETER
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
