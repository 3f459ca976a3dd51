"""Figures of reports: one style, legible in print and for the colour-blind.

Matplotlib is imported on first use and needs no display.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcce.errors import MissingExtraError

# The palette of Okabe and Ito is safe for all kinds of colour vision.
OURS, OTHER, PUBLISHED, GREY = "#0072B2", "#D55E00", "#000000", "#999999"
COLOURS = (OURS, OTHER, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", GREY, PUBLISHED)
STYLE: Mapping[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "legend.frameon": False,
    "svg.hashsalt": "mcce",
    "svg.fonttype": "none",
}


def panels(n_rows: int, n_columns: int, *, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure and its axes, shape (n_rows, n_columns); ``size`` of each in inches."""
    matplotlib = require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(
            figsize=(size[0] * n_columns, size[1] * n_rows), layout="constrained", dpi=150
        )
        FigureCanvasAgg(figure)
        axes = figure.subplots(n_rows, n_columns, squeeze=False)
    return figure, axes


def legend_below(figure: Any, axes: Any, *, n_columns: int = 4, note: str | None = None) -> None:
    """One legend below all panels, under a note; equal labels appear once."""
    entries: dict[str, Any] = {}
    for panel in axes.ravel():
        handles, labels = panel.get_legend_handles_labels()
        entries |= {label: entries.get(label, h) for label, h in zip(labels, handles, strict=True)}
    figure.legend(
        entries.values(),
        entries.keys(),
        title=note,
        loc="outside lower center",
        ncols=n_columns,
        frameon=False,
    )


def save(figure: Any, path: Path) -> None:
    """Write a figure as PNG and SVG; the path has no suffix."""
    matplotlib = require_matplotlib()
    with matplotlib.rc_context(STYLE):
        figure.savefig(path.with_name(f"{path.name}.png"), dpi=150)
        figure.savefig(path.with_name(f"{path.name}.svg"), metadata={"Date": None})


def require_matplotlib() -> Any:
    """Import matplotlib, or raise an error that names the extra."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError(
            'Experiments need matplotlib for figures: pip install "mcce[experiments]".'
        ) from error
    return matplotlib
