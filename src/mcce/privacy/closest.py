"""Copies of rows and values, and how close released rows are to training rows.

Each is compared with the same figure for the holdout: rows equal each other by chance where there
are few columns, and real rows are close to each other.

Always true: of equal rows, and of equal values, chance decides once; a share of released rows is
that of all of them, distances are those of at most 2,000.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from ..kernels import BoolArray, FloatArray, IntArray, rows_as_bytes
from ..metrics.plausibility import nearest
from ..tables.columns import is_missing
from .intervals import effective_size, quantile_interval, sign_flip_spread, wilson
from .result import Figure
from .sides import Sides

MOST_ROWS = 2_000
# How often sides are swapped: so often that three standard errors can be told.
N_SWAPS = 1_000


def share_figure(
    name: str, with_members: BoolArray, with_nonmembers: BoolArray, group: IntArray
) -> Figure:
    """The share of rows for which something holds, beside that with the holdout."""
    n = with_members.size
    if not n:
        return Figure(name, *(np.nan,) * 5, n=0)
    difference = with_members.astype(np.float64) - with_nonmembers
    value, null = float(with_members.mean()), float(with_nonmembers.mean())
    spread = float(sign_flip_spread(difference, group))
    low, high = wilson(value, effective_size(group))
    return Figure(name, value, low, high, null=null, spread=spread, n=n)


def copy_figures(sides: Sides) -> list[Figure]:
    """Copies of rows, and of values that point to one person."""
    number = sides.row_numbers()
    rows = [np.isin(number["released"], number[side]) for side in ("members", "nonmembers")]
    figures = [share_figure("copies", rows[0], rows[1], number["released"])]
    cells = _value_copies(sides)
    return figures if cells is None else [*figures, share_figure("value_copies", *cells)]


def n_copies(sides: Sides) -> int:
    """Number of released rows that equal any training row, also one that is no member."""
    released, training = sides.rows["released"], sides.evaluator.rows
    return int(np.isin(rows_as_bytes(released.exact.T), rows_as_bytes(training.exact.T)).sum())


def _value_copies(sides: Sides) -> tuple[BoolArray, BoolArray, IntArray] | None:
    """Which released numbers one member has, and one nonmember; None without such columns."""
    schema, released = sides.evaluator.schema, sides.rows["released"]
    numeric = [at for at in schema.mutable.tolist() if schema.features[at].kind == "numeric"]
    if not numeric:
        return None
    single: dict[str, list[BoolArray]] = {"members": [], "nonmembers": []}
    groups, n_groups = [], 0
    for at in numeric:
        kept = sides.counted[at] & ~is_missing(released.frame.iloc[:, at])
        values = sides.codes["released"][at, kept]
        for side, found in single.items():
            known, counts = np.unique(sides.codes[side][at], return_counts=True)
            found.append(np.isin(values, known[counts == 1]))
        number = np.unique(values, return_inverse=True)[1]
        groups.append(number + n_groups)
        n_groups += int(number.max(initial=-1)) + 1
    members, nonmembers = (np.concatenate(found) for found in single.values())
    return members, nonmembers, np.concatenate(groups)


def closest_figures(sides: Sides, seed: int) -> tuple[list[Figure], tuple[FloatArray, FloatArray]]:
    """How close released rows are to members, and the distances behind it."""
    released = sides.rows["released"]
    order = np.random.default_rng([seed, 3]).permutation(len(released))[:MOST_ROWS]
    some, number = released.take(order), sides.row_numbers()["released"][order]
    found = [
        nearest(sides.evaluator, some, sides.rows[side], 1) for side in ("members", "nonmembers")
    ]
    inside, outside = (distances[:, 0] for distances, _ in found)
    places = [near[:, 0] for _, near in found]
    closer = np.where(inside == outside, 0.5, inside < outside)
    spread = _spread_of_share(closer, places, sides.n_each)
    n = min(inside.size, 0.25 / spread**2) if spread > 0 else inside.size
    share = float(closer.mean())
    swapped = _swaps(inside, outside, places, np.random.default_rng([seed, 6]))
    figures = [
        _quantile_figure("closest_median", inside, outside, 0.5, n, swapped),
        _quantile_figure("closest_q05", inside, outside, 0.05, n, swapped),
        share_figure("closest_zero", inside == 0, outside == 0, number),
        Figure(
            "holdout_share", share, *wilson(share, n), 0.5, spread, n=inside.size, both_ways=True
        ),
    ]
    return figures, (inside, outside)


def _swaps(
    inside: FloatArray, outside: FloatArray, places: list[IntArray], rng: np.random.Generator
) -> BoolArray:
    """Which distances change sides, for each of many times.

    By chance the real row that is nearest of all could as well be on the other side, and all
    released rows that it is the nearest of go with it.
    """
    nearest_of_all = np.where(inside <= outside, places[0], -1 - places[1])
    group = np.unique(nearest_of_all, return_inverse=True)[1]
    swapped: BoolArray = (rng.random((N_SWAPS, int(group.max()) + 1)) < 0.5)[:, group]
    return swapped


def _quantile_figure(
    name: str,
    inside: FloatArray,
    outside: FloatArray,
    q: float,
    n: float,
    swapped: BoolArray,
) -> Figure:
    value, low, high = quantile_interval(inside, q, n)
    null = float(np.quantile(outside, q))
    by_chance = np.quantile(np.where(swapped, inside, outside), q, axis=1) - np.quantile(
        np.where(swapped, outside, inside), q, axis=1
    )
    spread = float(by_chance.std())
    if null > value:
        # Chance is not normal where distances are few or take few values: its own tail counts.
        tail = (1 + np.sum(by_chance >= null - value)) / (1 + len(by_chance))
        beyond = NormalDist().inv_cdf(1 - float(tail)) if tail < 0.5 else 0.0
        spread = (null - value) / max(beyond, 1e-9)
    return Figure(name, value, low, high, null, spread, n=inside.size, smaller_leaks=True)


def _spread_of_share(closer: FloatArray, places: list[IntArray], n_each: int) -> float:
    """Standard error of the share of released rows that are closer to training, by chance.

    A real row may be the nearest of many released ones. By chance it is a member or not, and all
    of these with it: the standard error is that of random labels of real rows.
    """
    weights = np.concatenate(
        [
            np.bincount(places[0], weights=closer, minlength=n_each),
            np.bincount(places[1], weights=1 - closer, minlength=n_each),
        ]
    )
    return float(np.sqrt(n_each / 2 * weights.var(ddof=1)) / closer.size)
