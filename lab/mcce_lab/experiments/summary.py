"""Tables of the comparison, from the saved cells.

Intervals are 95 % percentile intervals of a bootstrap over networks, seeds and people: networks and
seeds are drawn with replacement, each crossed with the other, then people within each cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from mcce.protocols import FloatArray

from ..metrics import JUDGES
from .cells import METHODS, SEARCHES
from .report import COLOURS, OURS, legend_below, panels

N_BOOTSTRAP = 1000
MEASURES = (
    *("sparsity", "l1", "redundancy", "plausibility", "copy", "contradictions"),
    *JUDGES,
)
# What changes are weighed against, and the least people for a verdict.
AGAINST = ("l1", *JUDGES)
MIN_IN_COMMON = 20
CASE = ["dataset", "box"]
CELL = [*CASE, "network", "seed"]


def by_method(people: pd.DataFrame, methods: pd.DataFrame) -> pd.DataFrame:
    """Every measure of every method on every data set, with intervals."""
    lines = []
    runs_of = dict(list(methods.groupby([*CASE, "method"])))
    for keys, rows in compress(people).groupby([*CASE, "method"], sort=False):
        runs, answered = runs_of[keys], rows[rows["sparsity"].notna()]
        # CPU seconds of one seed, which one machine ran without a break.
        first = runs[runs["seed"] == runs["seed"].min()]
        line: dict[str, Any] = {
            **dict(zip([*CASE, "method"], keys, strict=True)),
            "cells": len(runs),
            "people": len(rows),
            "coverage": len(answered) / len(rows),
            "valid": answered["valid"].mean(),
            "violation": answered["violation"].mean(),
            "fit_cpu": first["fit_cpu"].mean(),
            "search_cpu": first["search_cpu"].mean(),
            "rows_per_person": runs["rows_per_person"].mean(),
            **_with_interval("detectability", runs, runs["detectability"]),
        }
        for measure in MEASURES:
            line |= _with_interval(measure, answered, answered[measure])
        lines.append(line)
    return pd.DataFrame(lines)


def compress(people: pd.DataFrame) -> pd.DataFrame:
    """The same with densities as sign(x) log(1 + |x|): few huge ones would outweigh the others."""
    raw = people["density"]
    return people.assign(density=np.sign(raw) * np.log1p(raw.abs()))


def paired(people: pd.DataFrame, base: str) -> pd.DataFrame:
    """Each method beside a base on the people whom both answer: means and the difference."""
    lines = []
    for keys, rows in compress(people).groupby(CASE, sort=False):
        tables = _by_person(rows, MEASURES)
        for name in dict.fromkeys(rows["method"]):
            if base not in set(rows["method"]):
                continue
            line: dict[str, Any] = dict(zip(CASE, keys, strict=True)) | {"method": name}
            for measure, table in tables.items():
                both = table[[name, base]].dropna() if name != base else table[[base]].dropna()
                gap = both[name] - both[base]
                line["common_people"] = len(both)
                line |= {measure: both[name].mean(), f"{measure}_base": both[base].mean()}
                cells = gap.index.to_frame(index=False)
                line |= _with_interval(f"{measure}_difference", cells, gap.to_numpy())
            lines.append(line)
    return pd.DataFrame(lines)


def dominance(people: pd.DataFrame, ours: Sequence[str], rivals: Sequence[str]) -> pd.DataFrame:
    """Which rivals a setting of ours dominates, by each judge and by l1.

    Both are compared on the people whom both answer. Ours dominates if its means of changes and of
    the judge are no larger and one of them is smaller beyond a 95 % interval; so does a rival.
    """
    lines = []
    for keys, rows in compress(people).groupby(CASE, sort=False):
        tables, there = _by_person(rows, ("sparsity", *AGAINST)), set(rows["method"])
        answers = tables["sparsity"].notna()
        present = [name for name in ours if name in there]
        for rival in (name for name in rivals if name in there):
            verdicts = {name: _verdicts(tables, name, rival) for name in present}
            common = [int((answers[name] & answers[rival]).sum()) for name in present]
            for judge in AGAINST:
                lines.append(
                    {
                        **dict(zip(CASE, keys, strict=True)),
                        "rival": rival,
                        "judge": judge,
                        "dominated_by": "; ".join(n for n, v in verdicts.items() if v[judge] < 0),
                        "dominates": "; ".join(n for n, v in verdicts.items() if v[judge] > 0),
                        "common_people": min(common, default=0),
                    }
                )
    return pd.DataFrame(lines)


def _by_person(rows: pd.DataFrame, measures: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Each measure with a row per person and a column per method."""
    return {
        measure: rows.pivot_table(measure, [*CELL, "person"], "method", dropna=False)
        for measure in measures
    }


def _verdicts(tables: dict[str, pd.DataFrame], ours: str, rival: str) -> dict[str, int]:
    """By judge: -1 if ours dominates, 1 if the rival does, otherwise 0."""
    gaps = {}
    for measure, table in tables.items():
        gap = (table[ours] - table[rival]).dropna()
        if len(gap) < MIN_IN_COMMON:
            return dict.fromkeys(AGAINST, 0)
        gaps[measure] = interval(gap.index.to_frame(), gap.to_numpy())
    return {judge: _dominates(gaps["sparsity"], gaps[judge]) for judge in AGAINST}


def _dominates(*gaps: tuple[float, float, float]) -> int:
    """-1 if no mean is above 0 and one is below with its interval, 1 the other way, else 0."""
    # A mean that is worse, though not beyond its interval, is no reason to call a point dominated.
    for sign in (-1, 1):
        turned = gaps if sign < 0 else [(-mean, -high, -low) for mean, low, high in gaps]
        if all(mean <= 0 for mean, _, _ in turned) and any(high < 0 for _, _, high in turned):
            return sign
    return 0


def _with_interval(name: str, rows: pd.DataFrame, values: Any) -> dict[str, float]:
    mean, low, high = interval(rows, values)
    return {name: mean, f"{name}_low": low, f"{name}_high": high}


def interval(rows: pd.DataFrame, values: Any) -> tuple[float, float, float]:
    """Mean of values over people, and its 95 % interval over networks, seeds and people."""
    numbers = np.asarray(values, dtype=np.float64)
    there = ~np.isnan(numbers)
    if not there.any():
        return np.nan, np.nan, np.nan
    numbers, rows = numbers[there], rows[there]
    mean = float(numbers.mean())
    if numbers.size < 2:
        return mean, np.nan, np.nan
    networks, seeds = (pd.factorize(rows[name], sort=True)[0] for name in ("network", "seed"))
    total, count = np.zeros((2, N_BOOTSTRAP))
    of_network, of_seed = (
        _times(0, at, int(c.max()) + 1) for at, c in enumerate((networks, seeds))
    )
    for network, seed in sorted(set(zip(networks.tolist(), seeds.tolist(), strict=True))):
        cell = numbers[(networks == network) & (seeds == seed)]
        often = of_network[:, network] * of_seed[:, seed]
        total = total + often * (_times(1 + network, seed, cell.size) @ cell)
        count = count + often * cell.size
    means = np.divide(total, count, out=np.full(N_BOOTSTRAP, mean), where=count > 0)
    low, high = np.quantile(means, [0.025, 0.975])
    return mean, float(low), float(high)


@lru_cache(maxsize=512)
def _times(one: int, other: int, n: int) -> FloatArray:
    """How often each of n things is drawn, shape (n_bootstrap, n); always the same draws."""
    chance = np.random.default_rng([one, other])
    return chance.multinomial(n, np.full(n, 1 / n), N_BOOTSTRAP).astype(np.float64)


def front(table: pd.DataFrame, x: str, y: str) -> pd.Series[bool]:
    """Which rows no other row beats in both columns, where less is better."""
    points = table[[x, y]].to_numpy()
    no_worse = (points[:, None] <= points).all(axis=2)
    better = (points[:, None] < points).any(axis=2)
    return pd.Series(~(no_worse & better).any(axis=0), index=table.index)


AXES = {"l1": "l1, range-scaled", "isolation": "isolation forest"}
# One marker for each of our searches; rivals of a family share a marker and differ in colour.
SEARCH_MARKERS = dict(zip(SEARCHES, "*osP^", strict=True))
MARKERS = dict(
    zip(
        ["real rows", "NICE", "sampling", "gradients", "program", "packages"], "ps^DhX", strict=True
    )
)
TICKS = [1, 2, 3, 5, 10, 20]
N_COLUMNS = 4
# Means over fewer people say little of a method.
MIN_COVERAGE = 0.5


def draw_fronts(table: pd.DataFrame) -> Any:
    """Sparsity against l1, then against a judge, a panel per data set and kind of predictor."""
    table = table[table["coverage"] >= MIN_COVERAGE]
    cases = list(table.groupby(CASE, sort=False))
    n_lines = -(-len(cases) // N_COLUMNS)
    figure, axes = panels(n_lines * len(AXES), min(len(cases), N_COLUMNS), size=(3.4, 2.8))
    looks, ours = _looks(), [method.name for method in METHODS if method.is_ours]
    for axis, lines in zip(AXES, np.split(axes, len(AXES)), strict=True):
        for panel in lines.flat[len(cases) :]:
            panel.set_axis_off()
        for panel, ((name, box), rows) in zip(lines.flat, cases, strict=False):
            for _, row in rows.iterrows():
                _draw_point(panel, row, axis, looks[row["method"]])
            some = rows[rows["method"].isin(ours)]
            best = some[front(some, "sparsity", axis)].sort_values("sparsity")
            panel.plot(best["sparsity"], best[axis], color=OURS, linewidth=1, zorder=1)
            panel.set(xscale="log", xlabel="changes per answer", ylabel=AXES[axis])
            panel.set_xticks(TICKS, [str(tick) for tick in TICKS])
            panel.minorticks_off()
            panel.set_title(f"{name}, {box}")
            if axis == "l1":
                panel.set_yscale("log")
                panel.yaxis.set_major_formatter("{x:g}")
                panel.yaxis.set_minor_formatter("")
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
