"""Fronts: what fewer changes cost in realism and distance, method by method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ..report.figures import COLOURS, GREY, OURS, legend_below, panels
from .methods import METHODS
from .summary import front

AXES = ("l1", "outlier_factor", "density")
TITLES = {
    "l1": "l1: sum of range-scaled changes",
    "outlier_factor": "local outlier factor",
    "density": "minus log density",
}
MARKERS = {"MCCE": "o", "MCCE settings": ".", "rows": "s", "sampling": "^", "gradients": "D"}


def draw_fronts(table: pd.DataFrame) -> Any:
    """Sparsity against l1 and two judges, a row of panels per data set and kind of predictor.

    Parameters
    ----------
    table
        The measures by method.

    Returns
    -------
    Figure
        Lines join the settings of ours that none of ours beats; bars are 95 % intervals.
    """
    cases = list(table.groupby(["dataset", "box"], sort=False))
    figure, axes = panels(len(cases), len(AXES), size=(4.4, 3.2))
    family = {method.name: method.family for method in METHODS}
    colour = _colours(table)
    for line, ((name, box), rows) in zip(axes, cases, strict=True):
        for panel, axis in zip(line, AXES, strict=True):
            _draw_points(panel, rows, axis, family, colour)
            ours = rows[rows["method"].map(family).isin(["MCCE", "MCCE settings"])]
            best = ours[front(ours, "sparsity", axis)].sort_values("sparsity")
            panel.plot(best["sparsity"], best[axis], color=OURS, linewidth=1, zorder=1)
            panel.set_xlabel("changes per answer")
            panel.set_ylabel(TITLES[axis])
            panel.set_title(f"{name}, {box}")
    legend_below(figure, axes, n_columns=5)
    return figure


def _draw_points(
    panel: Any, rows: pd.DataFrame, axis: str, family: Mapping[str, str], colour: dict[str, str]
) -> None:
    for _, row in rows.iterrows():
        kind = family.get(row["method"], "rows")
        settings = kind == "MCCE settings"
        panel.errorbar(
            row["sparsity"],
            row[axis],
            xerr=[
                [row["sparsity"] - row["sparsity_low"]],
                [row["sparsity_high"] - row["sparsity"]],
            ],
            yerr=[[row[axis] - row[f"{axis}_low"]], [row[f"{axis}_high"] - row[axis]]],
            fmt=MARKERS[kind],
            color=OURS if settings else colour[row["method"]],
            elinewidth=0.6,
            alpha=0.6 if settings else 1.0,
            label="MCCE, other settings" if settings else row["method"],
        )


def _colours(table: pd.DataFrame) -> dict[str, str]:
    """A colour for each method; ours share one hue."""
    names = list(dict.fromkeys(table["method"]))
    ours = [name for name in names if name.startswith("MCCE ")]
    others = [name for name in names if name not in ours]
    palette = [shade for shade in COLOURS if shade not in (OURS,)]
    colours = dict.fromkeys(ours, OURS)
    colours |= {name: palette[at % len(palette)] for at, name in enumerate(others)}
    return colours | dict.fromkeys([n for n in names if n not in colours], GREY)
