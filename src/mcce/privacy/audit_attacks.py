"""The attacks of an audit: copies and closest records, membership inference, and linkage.

Copies and distances are compared with those of the holdout: rows equal each other by chance where
there are few columns, and real rows are close to each other. Membership has three scores, each
larger for a row that is more likely a member: minus the distance to the nearest released row; the
same relative to the reference, log(d_reference / d_released); and how many values of the row the
reference lacks and the release has. Linkage, after Goethals et al., is about an attacker who knows
the quasi-identifiers of everybody: a released row whose class, the training rows with its
quasi-identifiers, is small points to few people; if all of these have its sensitive values too, it
tells them.

Always true: of equal rows, and of equal values, chance decides once; distances are those of at most
2,000 rows; a score treats members and nonmembers alike, so without a leak they can be exchanged,
and chance is that of a random order; immutable features are no quasi-identifiers, since a released
row has those of the person it was made for, who is known anyway.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ParameterError, shorten
from ..kernels import (
    BoolArray,
    Codes,
    FloatArray,
    IntArray,
    build_neighbours,
    nearest_distances,
)
from ..metrics.evaluator import Evaluator, FrameLike, ResultLike, as_evaluator, read_rows
from ..metrics.matching import find_nearest, number_rows, shared_codes
from ..metrics.privacy import Z95, mutable_numbers, wilson
from ..parameters import check_real
from ..tables.columns import is_missing
from ..tables.schema import EncodedRows, Schema
from .audit_result import Figure, effective_size, quantile_interval, sign_flip_spread
from .audited_rows import AuditedRows

MAX_COMPARED_ROWS = 2_000
# How often sides are swapped: enough to estimate a tail at three standard errors.
N_SWAPS = 1_000
RATES = {"1": 0.01, "0.1": 0.001}
N_RESAMPLES = 400
# The smallest distance, so that all have a logarithm.
MIN_DISTANCE = 1e-9
Scores = dict[str, tuple[FloatArray, FloatArray]]
# A class with fewer people is small.
SMALL_CLASS = 10
CELLS_PER_BLOCK = 2**22
IMMUTABLE = (
    "nobody can change it, so that a released row has the value of the person it was made for"
)


def share_figure(
    name: str, with_members: BoolArray, with_nonmembers: BoolArray, group: IntArray
) -> Figure:
    """The share of rows for which something holds, compared with the holdout."""
    n = with_members.size
    if not n:
        return Figure(name, *(np.nan,) * 5, n=0)
    difference = with_members.astype(np.float64) - with_nonmembers
    value, null = float(with_members.mean()), float(with_nonmembers.mean())
    spread = float(sign_flip_spread(difference, group))
    low, high = wilson(value, effective_size(group))
    return Figure(name, value, low, high, null=null, spread=spread, n=n)


def copy_figures(audited: AuditedRows) -> list[Figure]:
    """Copies of rows, and of values that point to one person."""
    number = audited.row_numbers()
    rows = [np.isin(number["released"], number[side]) for side in ("members", "nonmembers")]
    figures = [share_figure("copies", rows[0], rows[1], number["released"])]
    cells = _value_copies(audited)
    return figures if cells is None else [*figures, share_figure("value_copies", *cells)]


def _value_copies(audited: AuditedRows) -> tuple[BoolArray, BoolArray, IntArray] | None:
    """Which released numbers one member has, and one nonmember; None without such columns."""
    schema, released = audited.evaluator.schema, audited.rows["released"]
    numeric = mutable_numbers(schema)
    if not numeric:
        return None
    single: dict[str, list[BoolArray]] = {"members": [], "nonmembers": []}
    groups, n_groups = [], 0
    for at in numeric:
        kept = audited.counted[at] & ~is_missing(released.frame.iloc[:, at])
        values = audited.codes["released"][at, kept]
        for side, found in single.items():
            known, counts = np.unique(audited.codes[side][at], return_counts=True)
            found.append(np.isin(values, known[counts == 1]))
        number = np.unique(values, return_inverse=True)[1]
        groups.append(number + n_groups)
        n_groups += int(number.max(initial=-1)) + 1
    members, nonmembers = (np.concatenate(found) for found in single.values())
    return members, nonmembers, np.concatenate(groups)


def closest_figures(
    audited: AuditedRows, seed: int
) -> tuple[list[Figure], tuple[FloatArray, FloatArray]]:
    """How close released rows are to members, and the distances behind it."""
    released = audited.rows["released"]
    order = np.random.default_rng([seed, 3]).permutation(len(released))[:MAX_COMPARED_ROWS]
    points, number = audited.points(), audited.row_numbers()["released"][order]
    some, is_level = points["released"][order], audited.evaluator.schema.is_level
    nearest = [find_nearest(some, points[side], is_level, 1) for side in ("members", "nonmembers")]
    inside, outside = (distances[:, 0] for distances, _ in nearest)
    nearest_rows = [near[:, 0] for _, near in nearest]
    closer = np.where(inside == outside, 0.5, inside < outside)
    spread = _spread_of_share(closer, nearest_rows, audited.n_each)
    n = min(inside.size, 0.25 / spread**2) if spread > 0 else inside.size
    share = float(closer.mean())
    swapped = _swaps(inside, outside, nearest_rows, np.random.default_rng([seed, 6]))
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
    inside: FloatArray, outside: FloatArray, nearest_rows: list[IntArray], rng: np.random.Generator
) -> BoolArray:
    """Which distances change sides, for each of many times.

    By chance the real row that is nearest of all could as well be on the other side, and all
    released rows that it is the nearest of go with it.
    """
    nearest_of_all = np.where(inside <= outside, nearest_rows[0], -1 - nearest_rows[1])
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
        # Few or few distinct distances are not normally distributed by chance: the tail is counted.
        tail = (1 + np.sum(by_chance >= null - value)) / (1 + len(by_chance))
        beyond = NormalDist().inv_cdf(1 - float(tail)) if tail < 0.5 else 0.0
        spread = (null - value) / max(beyond, 1e-9)
    return Figure(name, value, low, high, null, spread, n=inside.size, smaller_leaks=True)


def _spread_of_share(closer: FloatArray, nearest_rows: list[IntArray], n_each: int) -> float:
    """Standard error of the share of released rows that are closer to training, by chance.

    A real row may be the nearest of many released ones. By chance it is a member or not, and all
    of these with it: the standard error is that of random labels of real rows.
    """
    weights = np.concatenate(
        [
            np.bincount(nearest_rows[0], weights=closer, minlength=n_each),
            np.bincount(nearest_rows[1], weights=1 - closer, minlength=n_each),
        ]
    )
    return float(np.sqrt(n_each / 2 * weights.var(ddof=1)) / closer.size)


def membership_scores(audited: AuditedRows) -> Scores:
    """The scores that each attack gives members and nonmembers."""
    points, levels = audited.points(), audited.evaluator.schema.is_level
    trees = [build_neighbours(points[name], levels) for name in ("released", "reference")]
    release, reference = (
        [nearest_distances(tree, points[side], 1)[:, 0] for side in ("members", "nonmembers")]
        for tree in trees
    )
    rare = [_count_rare(audited, side) for side in ("members", "nonmembers")]
    calibrated = [
        np.log((far + MIN_DISTANCE) / (near + MIN_DISTANCE))
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
        # Among scores with equally many false alarms, the last has found the most members.
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
    # With few false alarms allowed, the rates under chance are skewed to the right.
    above = (np.quantile(shuffled, 0.975, axis=0) - null) / Z95
    spread = np.maximum(shuffled.std(axis=0, ddof=1), above)
    table = np.column_stack([values, low, high, null, spread])
    # Rates below one false alarm are not informative.
    table[np.array(list(RATES.values())) * n_out < 1] = np.nan
    return [
        Figure(f"{name}_tpr_{rate}%", row[0], row[1], row[2], row[3], row[4], n=n_all)
        for rate, row in zip(RATES, table.tolist(), strict=True)
    ]


def _count_rare(audited: AuditedRows, side: str) -> FloatArray:
    """How many values of each row the reference lacks and the release has."""
    count = np.zeros(len(audited.rows[side]))
    for at in audited.evaluator.schema.mutable:
        own, known = audited.codes[side][at], audited.codes["reference"][at]
        released = audited.codes["released"][at]
        count += np.isin(own, np.setdiff1d(released, known))
    return count


@dataclass(frozen=True)
class Known:
    """What an attacker knows, checked."""

    widths: Mapping[int, float]
    sensitive: IntArray
    excluded: Mapping[Hashable, str]


def class_sizes(
    released: ResultLike,
    training: FrameLike | Evaluator,
    quasi_identifiers: Sequence[Hashable] | Mapping[Hashable, float],
    *,
    private: Sequence[Hashable] | None = None,
    immutable: Sequence[Hashable] | None = None,
) -> pd.DataFrame:
    """Count the training rows that share the quasi-identifiers of each released row.

    Parameters
    ----------
    released : frame or Counterfactuals
        The rows to measure.
    training : frame or Evaluator
        The training data; an evaluator also knows what is immutable.
    quasi_identifiers : list or mapping
        The columns that an attacker knows of everybody. A mapping says to within how much: a
        number for numeric columns, 0 or infinity for all.
    private : list, optional
        The columns that the attacker would like to know; by default all others that can change.
    immutable : list, optional
        Columns that cannot change: they are left out. An evaluator has them already.

    Returns
    -------
    DataFrame
        One row per released row, with its index: ``k``, the size of its class among training rows
        (0: there is no such person), and whether it is ``homogeneous``: not empty, and all of it
        has the private values of the released row.

    Raises
    ------
    ParameterError
        If a name is unknown, no quasi-identifier is left, or an evaluator gets ``immutable``.

    Examples
    --------
    >>> training = pd.DataFrame({"age": [20, 20, 30], "job": ["a", "b", "b"], "sum": [1, 2, 3]})
    >>> released = pd.DataFrame({"age": [20, 30, 40], "job": ["a", "b", "b"], "sum": [1, 9, 1]})
    >>> class_sizes(released, training, ["age"], private=["sum"])
       k  homogeneous
    0  2        False
    1  1        False
    2  0        False
    >>> class_sizes(released, training, {"age": 10, "job": 0}, private=["sum"])["k"].tolist()
    [1, 2, 1]
    """
    evaluator = as_evaluator(training, immutable=immutable)
    read = read_rows(released, evaluator)
    rows, index = read.after, read.explained.frame.index
    known = check_known(quasi_identifiers, private, evaluator.schema)
    codes = shared_codes([rows, evaluator.rows])
    pair = (rows, codes[0]), (evaluator.rows, codes[1])
    k, same = _count(*pair, known)
    return pd.DataFrame({"k": k, "homogeneous": (k > 0) & (same == k)}, index=index)


def check_known(
    quasi_identifiers: Any, private: Sequence[Hashable] | None, schema: Schema
) -> Known:
    """What an attacker knows, by position."""
    if isinstance(quasi_identifiers, str):
        quasi_identifiers = [quasi_identifiers]
    widths = (
        dict(quasi_identifiers)
        if isinstance(quasi_identifiers, Mapping)
        else dict.fromkeys(quasi_identifiers, 0.0)
    )
    private = [private] if isinstance(private, str) else private
    for argument, names in (("quasi_identifiers", widths), ("private", private or ())):
        unknown = [name for name in names if name not in schema.names]
        if unknown:
            raise ParameterError(
                f"{argument} names columns that are not in the training data: "
                f"{shorten(unknown, 300)}. The columns are {shorten(schema.names, 500)}."
            )
    for name, width in widths.items():
        _check_width(schema, name, width)
    fixed = {schema.names[at] for at in schema.immutable}
    excluded = {name: IMMUTABLE for name in widths if name in fixed}
    kept = {schema.names.index(n): float(w) for n, w in widths.items() if n not in fixed}
    if not kept:
        why = f"{shorten(list(excluded), 300)} cannot change" if excluded else "none was named"
        raise ParameterError(
            f"No quasi-identifier is left: {why}. Name columns that answers can change."
        )
    others = (
        [at for at in schema.mutable.tolist() if at not in kept]
        if private is None
        else [schema.names.index(name) for name in private]
    )
    return Known(kept, np.array(others, dtype=np.int64), excluded)


def names_of(schema: Schema, positions: Iterable[int]) -> tuple[Hashable, ...]:
    """Names of features by position."""
    return tuple(schema.names[at] for at in positions)


def _check_width(schema: Schema, name: Hashable, width: Any) -> None:
    check_real(f"The width of {shorten(name)}", width, "a number >= 0", infinite=True)
    kind = schema.features[schema.names.index(name)].kind
    if kind == "categorical" and width not in (0, np.inf):
        raise ParameterError(
            f"The width of {shorten(name)}, a category, must be 0 or infinity, got "
            f"{shorten(width)}."
        )


def linkage_figures(audited: AuditedRows, known: Known) -> list[Figure]:
    """Shares of released rows with small and with homogeneous classes."""
    released = audited.rows["released"], audited.codes["released"]
    counts = {
        side: _count(released, (audited.rows[side], audited.codes[side]), known)
        for side in ("members", "nonmembers")
    }
    alike = _alike(audited, known)
    (sensitive,) = number_rows([audited.codes["released"][known.sensitive]])
    whole = np.unique(np.stack([alike, sensitive]), axis=1, return_inverse=True)[1].ravel()
    (k, same), (other_k, other_same) = counts.values()
    figures = [
        share_figure("linkage_unique", k == 1, other_k == 1, alike),
        share_figure("linkage_small", _is_small(k), _is_small(other_k), alike),
    ]
    if known.sensitive.size:
        pure, other_pure = (k > 0) & (same == k), (other_k > 0) & (other_same == other_k)
        figures.append(share_figure("linkage_homogeneous", pure, other_pure, whole))
    return figures


def _alike(audited: AuditedRows, known: Known) -> IntArray:
    """Numbers of released rows, the same for those whose classes have people in common.

    Classes of numbers that are known to within a width overlap if they are less than twice that
    apart, so rows are put together by such steps.
    """
    codes, released = audited.codes["released"], audited.rows["released"]
    parts: list[FloatArray] = []
    for at, width in known.widths.items():
        if width == 0:
            parts.append(codes[at].astype(np.float64))
        elif width < np.inf:
            parts.append(np.floor(released.all_numbers[at] / (2 * width)))
    if not parts:
        return np.zeros(len(released), dtype=np.int64)
    # Missing numbers are alike.
    together = np.nan_to_num(np.stack(parts), nan=np.inf)
    return np.unique(together, axis=1, return_inverse=True)[1].ravel()


def _is_small(k: IntArray) -> BoolArray:
    return (k >= 1) & (k < SMALL_CLASS)


def _count(
    released: tuple[EncodedRows, Codes], real: tuple[EncodedRows, Codes], known: Known
) -> tuple[IntArray, IntArray]:
    """Real rows with the quasi-identifiers of each row, and those with its sensitive values too."""
    exact = [at for at, width in known.widths.items() if width == 0]
    wide = {at: width for at, width in known.widths.items() if 0 < width < np.inf}
    keys = [number_rows([released[1][at], real[1][at]]) for at in (exact, known.sensitive)]
    n_rows, n_real = len(released[0]), len(real[0])
    k, same = np.zeros(n_rows, dtype=np.int64), np.zeros(n_rows, dtype=np.int64)
    size = max(1, CELLS_PER_BLOCK // n_real)
    for start in range(0, n_rows, size):
        block = slice(start, start + size)
        fits = keys[0][0][block, None] == keys[0][1]
        for at, width in wide.items():
            own, others = released[0].all_numbers[at, block, None], real[0].all_numbers[at]
            both = np.isnan(own) & np.isnan(others)
            fits &= (np.abs(own - others) <= width) | both
        k[block] = fits.sum(axis=1)
        same[block] = (fits & (keys[1][0][block, None] == keys[1][1])).sum(axis=1)
    return k, same
