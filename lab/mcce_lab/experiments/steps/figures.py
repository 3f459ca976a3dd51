"""Figures of the experiments with replaced steps."""

from __future__ import annotations

from typing import Any

from ..experiment import Tables
from ..report.figures import (
    COLOURS,
    GREY,
    legend_below,
    panels,
)

PANELS = {
    ("realism", "accuracy_%"): "accuracy of a forest, %",
    ("answers", "l1"): "L1 of answers",
    ("answers", "knn_distance"): "distance to accepted rows",
    ("privacy", "calibrated_auc"): "AUC of membership",
}


def draw_dots(tables: Tables, what: str) -> Any:
    """One panel per data set and measure, a dot with its interval for each of what was run."""
    names = list(dict.fromkeys(tables["realism"]["dataset"]))
    figure, axes = panels(len(names), len(PANELS), size=(2.7, 2.2))
    for line, name in zip(axes, names, strict=True):
        for axis, (place, title) in zip(line, PANELS.items(), strict=True):
            rows = _rows(tables, place[0], name)
            for number, (_, row) in enumerate(rows.iterrows()):
                value, reach = _interval(row, place[1])
                colour = COLOURS[number % len(COLOURS)]
                axis.errorbar(value, number, xerr=reach, fmt="o", color=colour)
            axis.set_yticks(range(len(rows)), rows[what])
            axis.invert_yaxis()
            axis.grid(axis="y", visible=False)
            axis.locator_params(axis="x", nbins=5)
            axis.set(title=name, xlabel=title)
    return figure


def draw_epsilons(tables: Tables, base: str) -> Any:
    """One panel per data set and measure, by epsilon, with a line for the trees without noise."""
    names = list(dict.fromkeys(tables["realism"]["dataset"]))
    figure, axes = panels(len(names), len(PANELS), size=(2.7, 2.2))
    for line, name in zip(axes, names, strict=True):
        for axis, (place, title) in zip(line, PANELS.items(), strict=True):
            rows = _rows(tables, place[0], name)
            private = rows[rows["trees"] != base]
            epsilon = private["trees"].str.removeprefix("epsilon ").astype(float)
            points = [_interval(row, place[1]) for _, row in private.iterrows()]
            values, reaches = zip(*points, strict=True)
            axis.errorbar(
                epsilon, values, yerr=reaches, fmt="o-", color=COLOURS[0], label="private trees"
            )
            without = rows.loc[rows["trees"] == base, place[1]].iloc[0]
            axis.axhline(without, color=GREY, label="trees without noise")
            axis.set_xscale("log")
            axis.set_xticks(list(epsilon), [f"{one:g}" for one in epsilon])
            axis.minorticks_off()
            axis.set(title=f"{name}: {title}", xlabel="epsilon")
            axis.title.set_fontsize(8)
    legend_below(figure, axes)
    return figure


def _rows(tables: Tables, table: str, dataset: str) -> Any:
    """The rows of a data set; of answers those of the paper's search."""
    rows = tables[table]
    rows = rows[rows["dataset"] == dataset]
    return rows[rows["search"] == "paper"] if "search" in rows else rows


def _interval(row: Any, measure: str) -> tuple[float, float]:
    """A value, and half of its interval."""
    reach = row[f"{measure}_high"] - row[measure]
    return row[measure], reach if reach == reach else 0.0
