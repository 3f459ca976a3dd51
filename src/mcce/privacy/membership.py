"""Membership inference: telling from the release who was in the training data.

Three scores, each larger for a row that is more likely a member: minus the distance to the nearest
released row; the same relative to the reference, log(d_reference / d_released); and how many values
of the row the reference lacks and the release has.

Always true: a score treats members and nonmembers alike, so without a leak they can be exchanged.
Chance is then exactly that of a random order, by which the null and its standard error are found.
"""

from __future__ import annotations

import numpy as np

from ..kernels import FloatArray, IntArray, build_neighbours, nearest
from .intervals import Z95
from .result import Figure
from .sides import Sides

RATES = {"1": 0.01, "0.1": 0.001}
N_RESAMPLES = 400
# Distances of 0 have a logarithm, too.
LEAST_DISTANCE = 1e-9

Scores = dict[str, tuple[FloatArray, FloatArray]]


def membership_scores(sides: Sides) -> Scores:
    """What each attack says of members and nonmembers."""
    points, levels = sides.points(), sides.evaluator.schema.is_level
    trees = {name: build_neighbours(points[name], levels) for name in ("released", "reference")}
    release, reference = (
        [nearest(trees[name], points[side], 1)[:, 0] for side in ("members", "nonmembers")]
        for name in ("released", "reference")
    )
    rare = [_count_rare(sides, side) for side in ("members", "nonmembers")]
    calibrated = [
        np.log((far + LEAST_DISTANCE) / (near + LEAST_DISTANCE))
        for far, near in zip(reference, release, strict=True)
    ]
    return {
        "distance": (-release[0], -release[1]),
        "calibrated": (calibrated[0], calibrated[1]),
        "rare_values": (rare[0], rare[1]),
    }


def membership_figures(scores: Scores, seed: int) -> list[Figure]:
    """AUC and true-positive rates of each score."""
    figures = []
    for name, (members, nonmembers) in scores.items():
        figures.append(_auc_figure(name, members, nonmembers))
        figures += _rate_figures(name, _Ranked(members, nonmembers), seed)
    return figures


def auc(members: FloatArray, nonmembers: FloatArray) -> tuple[float, float, float]:
    """Area under the curve, its standard error, and the one that chance alone would have.

    The first is that of DeLong; the second is sqrt((a + b + 1) / (12 a b)), less where scores are
    equal.

    Examples
    --------
    >>> area, _, chance = auc(np.arange(10.0) + 0.5, np.arange(10.0))
    >>> round(area, 2), round(chance, 3)
    (0.55, 0.132)
    """
    above = _placements(members, nonmembers)
    below = _placements(nonmembers, members)
    n_in, n_out = members.size, nonmembers.size
    spread = np.sqrt(above.var(ddof=1) / n_in + below.var(ddof=1) / n_out)
    n_all = n_in + n_out
    ties = np.unique(np.concatenate([members, nonmembers]), return_counts=True)[1].astype(float)
    less = 1 - np.sum(ties**3 - ties) / (float(n_all) ** 3 - n_all)
    chance = np.sqrt((n_all + 1) / (12 * n_in * n_out) * less)
    return float(above.mean()), float(spread), float(chance)


def _placements(scores: FloatArray, others: FloatArray) -> FloatArray:
    """Share of the others below each score, equal ones counted half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, scores, side="left")
    up_to = np.searchsorted(ordered, scores, side="right")
    placed: FloatArray = (below + up_to) / (2 * others.size)
    return placed


def _auc_figure(name: str, members: FloatArray, nonmembers: FloatArray) -> Figure:
    area, spread, chance = auc(members, nonmembers)
    return Figure(
        f"{name}_auc",
        area,
        max(0.0, area - Z95 * spread),
        min(1.0, area + Z95 * spread),
        null=0.5,
        spread=chance,
        n=members.size + nonmembers.size,
        both_ways=True,
    )


class _Ranked:
    """Scores in groups of equal ones, the largest first."""

    def __init__(self, members: FloatArray, nonmembers: FloatArray) -> None:
        self.is_member = np.repeat([True, False], [members.size, nonmembers.size])
        distinct, group = np.unique(-np.concatenate([members, nonmembers]), return_inverse=True)
        order = np.argsort(group, kind="stable")
        self.is_member = self.is_member[order]
        self.starts: IntArray = np.searchsorted(group[order], np.arange(distinct.size))

    def rates(self, inside: FloatArray, outside: FloatArray) -> FloatArray:
        """Share of members that are found at each of the ``RATES`` of false alarms.

        Among equal scores, the attacker draws lots. ``inside`` and ``outside`` are weights of all
        rows, 0 for those of the other side.
        """
        found = np.cumsum(np.add.reduceat(inside, self.starts)) / max(inside.sum(), 1e-300)
        alarms = np.cumsum(np.add.reduceat(outside, self.starts)) / max(outside.sum(), 1e-300)
        # Of scores with the same false alarms, the last has found the most.
        last = np.append(np.diff(alarms) > 0, True)
        found, alarms = found[last], alarms[last]
        if alarms[0] > 0:
            found, alarms = np.append(0.0, found), np.append(0.0, alarms)
        return np.interp(list(RATES.values()), alarms, found)


def _rate_figures(name: str, ranked: _Ranked, seed: int) -> list[Figure]:
    """True-positive rates, their bootstrap intervals, and what random orders give."""
    is_member = ranked.is_member
    n_all, n_out = is_member.size, int((~is_member).sum())
    values = ranked.rates(is_member * 1.0, ~is_member * 1.0)
    rng = np.random.default_rng([seed, 2])
    resampled, shuffled = np.empty((2, N_RESAMPLES, len(RATES)))
    for at in range(N_RESAMPLES):
        weights = rng.poisson(1.0, n_all).astype(np.float64)
        resampled[at] = ranked.rates(weights * is_member, weights * ~is_member)
        lots = rng.permutation(is_member)
        shuffled[at] = ranked.rates(lots * 1.0, ~lots * 1.0)
    low, high = np.quantile(resampled, [0.025, 0.975], axis=0)
    null = shuffled.mean(axis=0)
    # The rates of chance lean to the right where few false alarms are allowed.
    above = (np.quantile(shuffled, 0.975, axis=0) - null) / Z95
    spread = np.maximum(shuffled.std(axis=0, ddof=1), above)
    table = np.column_stack([values, low, high, null, spread])
    # Less than one false alarm tells nothing.
    table[np.array(list(RATES.values())) * n_out < 1] = np.nan
    return [
        Figure(f"{name}_tpr_{rate}%", row[0], row[1], row[2], row[3], row[4], n=n_all)
        for rate, row in zip(RATES, table.tolist(), strict=True)
    ]


def _count_rare(sides: Sides, side: str) -> FloatArray:
    """How many values of each row the reference lacks and the release has."""
    count = np.zeros(len(sides.rows[side]))
    for at in sides.evaluator.schema.mutable:
        own, known = sides.codes[side][at], sides.codes["reference"][at]
        released = sides.codes["released"][at]
        count += np.isin(own, np.setdiff1d(released, known))
    return count
