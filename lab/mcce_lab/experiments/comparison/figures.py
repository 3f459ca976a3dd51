"""Fronts: what fewer changes cost in realism and distance, method by method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ..report.figures import (
    COLOURS,
    OURS,
    legend_below,
    panels,
)
from .methods import METHODS, SEARCHES
from .summary import front

AXES = ("l1", "outlier_factor", "isolation", "density")
TITLES = {
    "l1": "l1, range-scaled",
    "outlier_factor": "local outlier factor",
    "isolation": "isolation forest",
    "density": "minus log density, compressed",
}
# One marker for each of our searches; rivals of a family share a marker and differ in colour.
SEARCH_MARKERS = dict(zip(SEARCHES, "*vosP^", strict=True))
MARKERS = {"real rows": "p", "NICE": "s", "sampling": "^", "gradients": "D", "packages": "X"}
TICKS = [1, 2, 3, 5, 10, 20]
# Means over fewer people say little of a method.
LEAST_COVERAGE = 0.5


def draw_fronts(table: pd.DataFrame) -> Any:
    """Sparsity against l1 and three judges, a row of panels per data set and kind of predictor.

    Parameters
    ----------
    table
        The measures by method.

    Returns
    -------
    Figure
        Lines join the settings of ours that none of ours beats; bars are 95 % intervals. Methods
        that answer fewer than half of the people are left out.
    """
    table = table[table["coverage"] >= LEAST_COVERAGE]
    from matplotlib.ticker import LogLocator

    cases = list(table.groupby(["dataset", "box"], sort=False))
    figure, axes = panels(len(cases), len(AXES), size=(3.6, 3.0))
    looks = _looks()
    ours = [method.name for method in METHODS if method.is_ours]
    for line, ((name, box), rows) in zip(axes, cases, strict=True):
        for panel, axis in zip(line, AXES, strict=True):
            for _, row in rows.iterrows():
                _draw_point(panel, row, axis, looks[row["method"]])
            some = rows[rows["method"].isin(ours)]
            best = some[front(some, "sparsity", axis)].sort_values("sparsity")
            panel.plot(best["sparsity"], best[axis], color=OURS, linewidth=1, zorder=1)
            panel.set_xscale("log")
            panel.set_xticks(TICKS, [str(tick) for tick in TICKS])
            panel.minorticks_off()
            panel.set_xlabel("changes per answer")
            panel.set_ylabel(TITLES[axis])
            panel.set_title(f"{name}, {box}")
        line[0].set_yscale("log")
        line[0].yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
        line[0].yaxis.set_major_formatter("{x:g}")
        line[0].yaxis.set_minor_formatter("{x:g}")
    legend_below(figure, axes, n_columns=6)
    return figure


def _draw_point(panel: Any, row: pd.Series[Any], axis: str, look: Mapping[str, Any]) -> None:
    ends = [
        [[row[name] - row[f"{name}_low"]], [row[f"{name}_high"] - row[name]]]
        for name in ("sparsity", axis)
    ]
    panel.errorbar(row["sparsity"], row[axis], xerr=ends[0], yerr=ends[1], elinewidth=0.6, **look)


def _looks() -> dict[str, dict[str, Any]]:
    """Colour, marker and label of each method."""
    others = [shade for shade in COLOURS if shade != OURS]
    looks: dict[str, dict[str, Any]] = {}
    for family in dict.fromkeys(method.family for method in METHODS):
        for at, method in enumerate(m for m in METHODS if m.family == family):
            look: dict[str, Any] = {"color": OURS, "label": method.name}
            if family == "MCCE":
                look |= {"fmt": SEARCH_MARKERS[method.name.removeprefix("MCCE ")], "zorder": 3}  # type: ignore[index]
            elif method.is_ours:
                look |= {"fmt": ".", "alpha": 0.5, "label": "MCCE, other settings"}
            else:
                look |= {"fmt": MARKERS[family], "color": others[at % len(others)]}
            looks[method.name] = look
    return looks
