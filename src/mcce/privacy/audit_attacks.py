"""The attacks of an audit: copies and closest records, membership inference, and linkage.

Copies and distances are compared with those of the holdout: rows equal each other by chance where
there are few columns, and real rows are close to each other. Membership has three scores, each
larger for a row that is more likely a member: minus the distance to the nearest released row; the
same relative to the reference, log(d_reference / d_released); and how many values of the row the
reference lacks and the release has. Linkage, after Goethals et al., is about an attacker who knows
the quasi-identifiers of everybody: a released row whose class, the training rows with its
quasi-identifiers, is small points to few people; if all of these have its sensitive values too, it
tells them.

Chance is the same everywhere: without a leak, members and nonmembers can be exchanged. Figures of
released rows exchange the two sides, and figures of scores put all scores in random order.

Always true: of equal rows, and of equal values, chance decides once; distances are those of at most
2,000 rows; immutable features are no quasi-identifiers, since a released row has those of the
person it was made for, who is known anyway.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from ..confidence import Z95, wilson
from ..errors import ParameterError, SchemaError, shorten
from ..kernels import (
    BoolArray,
    Codes,
    FloatArray,
    IntArray,
    build_neighbours,
    nearest_distances,
)
from ..metrics.evaluator import Evaluator, FrameLike, ResultLike, as_evaluator, pair, read_rows
from ..metrics.matching import find_nearest, number_rows, shared_codes, shared_points
from ..metrics.privacy import mutable_numbers
from ..parameters import check_real
from ..tables.columns import changed_cells, is_missing
from ..tables.roles import check_names
from ..tables.schema import EncodedRows, Schema
from .audit_result import Figure

# Real rows that each set needs, and released rows whose distances are measured, at most.
MIN_AUDIT_ROWS, MAX_COMPARED_ROWS = 20, 2_000
# Shares of false alarms, and how often scores are resampled and put in random order.
RATES, N_RESAMPLES = {"1": 0.01, "0.1": 0.001}, 400
# The smallest distance, so that all have a logarithm.
MIN_DISTANCE = 1e-9
Scores = dict[str, tuple[FloatArray, FloatArray]]
# Numbers of people in a small class.
SMALL = range(1, 10)
CELLS_PER_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class AuditedRows:
    """What was released, and real rows that the release may tell apart.

    Members are training rows, nonmembers are rows of the holdout, and there are equally many of
    both. The reference is what an attacker knows of the population. Codes are equal where cells
    are, in all sets of rows, also of values that training lacks. ``counted`` says which released
    cells count: those that differ from the people they were made for.
    """

    evaluator: Evaluator
    rows: Mapping[str, EncodedRows]
    codes: Mapping[str, Codes]
    counted: BoolArray
    n_holdout: int

    @classmethod
    def read(
        cls,
        evaluator: Evaluator,
        released: ResultLike,
        holdout: FrameLike,
        reference: FrameLike,
        factuals: FrameLike | None,
        seed: int,
    ) -> AuditedRows:
        """The rows of an audit, checked; of the larger of training and holdout a sample."""
        real = {
            "training": evaluator.rows,
            "holdout": evaluator.read(holdout, "holdout"),
            "reference": evaluator.read(reference, "reference"),
        }
        _check_sizes(real)
        _check_disjoint(real)
        rng, rows = (
            np.random.default_rng([seed, 1]),
            {"released": evaluator.read(released, "released")},
        )
        n_each = min(len(real["training"]), len(real["holdout"]))
        for name, side in (("members", "training"), ("nonmembers", "holdout")):
            rows[name] = real[side]
            if len(real[side]) > n_each:
                some = rng.permutation(len(real[side]))[:n_each]
                rows[name] = real[side].take(np.sort(some))
        rows["reference"] = real["reference"]
        counted = np.ones(rows["released"].codes.shape, dtype=bool)
        if factuals is not None:
            pairs = pair(factuals, released, evaluator)
            counted = changed_cells(pairs.before.frame, pairs.after.frame)
        codes = dict(zip(rows, shared_codes(list(rows.values())), strict=True))
        return cls(evaluator, rows, codes, counted, len(real["holdout"]))

    @property
    def n_each(self) -> int:
        """Number of members, and of nonmembers."""
        return len(self.rows["members"])

    def row_numbers(self) -> dict[str, IntArray]:
        """A number for each row of each set, the same for equal rows."""
        return dict(zip(self.codes, number_rows(list(self.codes.values())), strict=True))

    def points(self) -> dict[str, FloatArray]:
        """Every set as points of shape (n_rows, n_features)."""
        return dict(zip(self.rows, shared_points(list(self.rows.values())), strict=True))


def _check_sizes(given: Mapping[str, EncodedRows]) -> None:
    for name, rows in given.items():
        if len(rows) < MIN_AUDIT_ROWS:
            raise SchemaError(
                f"An audit needs at least {MIN_AUDIT_ROWS} rows in each of training, holdout and "
                f"reference, but {name} has {len(rows)}. Some hundreds tell much more."
            )


def _check_disjoint(given: dict[str, EncodedRows]) -> None:
    """Raise if rows of one set are in another, beyond what equal people explain.

    All rows are compared, not a sample: of a holdout inside a much larger training set, hardly any
    row would be in a sample of the latter.
    """
    codes = shared_codes(list(given.values()))
    number = dict(zip(given, number_rows(codes), strict=True))
    for name, others in combinations(reversed(given), 2):
        small, large = sorted((number[name], number[others]), key=len)
        n_equal = int(np.isin(small, large).sum())
        values, counts = np.unique(large, return_counts=True)
        twins = counts[np.searchsorted(values, large)] > 1
        n_expected = float(twins.mean()) * len(small)
        most = n_expected + 5 * np.sqrt(2 * n_expected) + max(3, 0.01 * len(small))
        if n_equal > most:
            which = name if small is number[name] else others
            raise SchemaError(
                f"{name} and {others} share rows: {n_equal} of {len(small)} rows of {which} are in "
                "both, where people who are equal by chance explain about "
                f"{n_expected:.0f}. Pass rows of other people."
            )


def attack(
    audited: AuditedRows, known: AttackerKnowledge | None, seed: int
) -> tuple[list[Figure], Scores, tuple[FloatArray, FloatArray]]:
    """All figures, those of linkage if an attacker knows something; scores and distances."""
    scores, (closest, distances) = membership_scores(audited), closest_figures(audited, seed)
    figures = [*copy_figures(audited), *closest, *membership_figures(scores, seed)]
    figures += [] if known is None else linkage_figures(audited, known)
    return figures, scores, distances


def share_figure(
    name: str, inside: np.ndarray, outside: np.ndarray, group: IntArray, *, both_ways: bool = False
) -> Figure:
    """The share of rows for which something holds of members, compared with nonmembers.

    By chance, the two sides of all rows of a group can be exchanged.
    """
    n = inside.size
    if not n:
        return Figure(name, *(np.nan,) * 5, n=0)
    value, number = float(inside.mean()), np.unique(group, return_inverse=True)[1]
    differences = np.bincount(number, weights=inside.astype(np.float64) - outside)
    return Figure(
        name,
        value,
        *wilson(value, _effective_size(group)),
        null=float(outside.mean()),
        spread=float(np.sqrt(np.sum(differences**2)) / n),
        n=n,
        both_ways=both_ways,
    )


def _effective_size(group: IntArray) -> float:
    """How many independent rows tell as much as rows in groups that are alike."""
    counts = np.unique(group, return_counts=True)[1].astype(np.float64)
    return float(counts.sum() ** 2 / np.sum(counts**2))


def copy_figures(audited: AuditedRows) -> list[Figure]:
    """Copies of rows, and of released numbers that point to one person."""
    number = audited.row_numbers()
    rows = [np.isin(number["released"], number[side]) for side in ("members", "nonmembers")]
    figures = [share_figure("copies", rows[0], rows[1], number["released"])]
    released, n_features = audited.rows["released"], len(audited.counted)
    single: dict[str, list[BoolArray]] = {"members": [], "nonmembers": []}
    groups = []
    for at in mutable_numbers(audited.evaluator.schema):
        kept = audited.counted[at] & ~is_missing(released.frame.iloc[:, at])
        values = audited.codes["released"][at, kept]
        for side, found in single.items():
            known, counts = np.unique(audited.codes[side][at], return_counts=True)
            found.append(np.isin(values, known[counts == 1]))
        groups.append(values.astype(np.int64) * n_features + at)
    if groups:
        cells = [np.concatenate(found) for found in (*single.values(), groups)]
        figures.append(share_figure("value_copies", *cells))
    return figures


def closest_figures(
    audited: AuditedRows, seed: int
) -> tuple[list[Figure], tuple[FloatArray, FloatArray]]:
    """How often released rows are closest to members, and the distances behind it."""
    released = audited.rows["released"]
    order = np.random.default_rng([seed, 3]).permutation(len(released))[:MAX_COMPARED_ROWS]
    points = audited.points()
    some, is_level = points["released"][order], audited.evaluator.schema.is_level
    nearest = [find_nearest(some, points[side], is_level, 1) for side in ("members", "nonmembers")]
    (inside, its_member), (outside, its_other) = ((d[:, 0], at[:, 0]) for d, at in nearest)
    # By chance the real row that is nearest of all could as well be on the other side, and all
    # released rows that it is the nearest of go with it.
    group = np.where(inside <= outside, its_member, -1 - its_other)
    closer = np.where(inside == outside, 0.5, inside < outside)
    half = np.full(closer.size, 0.5)
    figures = [
        share_figure("closest_zero", inside == 0, outside == 0, group),
        share_figure("holdout_share", closer, half, group, both_ways=True),
    ]
    return figures, (inside, outside)


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


def _count_rare(audited: AuditedRows, side: str) -> FloatArray:
    """How many values of each row the reference lacks and the release has."""
    count = np.zeros(len(audited.rows[side]))
    for at in audited.evaluator.schema.mutable:
        own, known = audited.codes[side][at], audited.codes["reference"][at]
        released = audited.codes["released"][at]
        count += np.isin(own, np.setdiff1d(released, known))
    return count


def membership_figures(scores: Scores, seed: int) -> list[Figure]:
    """AUC and true-positive rates of each score: bootstrap intervals, and random orders."""
    figures = []
    for name, (members, nonmembers) in scores.items():
        is_member = np.repeat([True, False], [members.size, nonmembers.size])
        distinct, group = np.unique(-np.concatenate([members, nonmembers]), return_inverse=True)
        order = np.argsort(group, kind="stable")
        is_member, starts = is_member[order], np.searchsorted(group[order], range(distinct.size))
        values = _curve(starts, is_member * 1.0, ~is_member * 1.0)
        rng = np.random.default_rng([seed, 2])
        resampled, shuffled = np.empty((2, N_RESAMPLES, values.size))
        for at in range(N_RESAMPLES):
            weights = rng.poisson(1.0, is_member.size).astype(np.float64)
            resampled[at] = _curve(starts, weights * is_member, weights * ~is_member)
            lots = rng.permutation(is_member)
            shuffled[at] = _curve(starts, lots * 1.0, ~lots * 1.0)
        null = shuffled.mean(axis=0)
        # With few false alarms allowed, the rates under chance are skewed to the right.
        above = (np.quantile(shuffled, 0.975, axis=0) - null) / Z95
        spread = np.maximum(shuffled.std(axis=0, ddof=1), above)
        table = np.stack([values, *np.quantile(resampled, [0.025, 0.975], axis=0), null, spread])
        # That of the area is known, and rates below one false alarm are not informative.
        table[3, 0] = 0.5
        table[:, 1:][:, np.array(list(RATES.values())) * nonmembers.size < 1] = np.nan
        names = [f"{name}_auc", *(f"{name}_tpr_{rate}%" for rate in RATES)]
        for one, row in zip(names, table.T.tolist(), strict=True):
            value, low, high, chance, width = row
            is_area = one == names[0]
            figures.append(
                Figure(one, value, low, high, chance, width, is_member.size, both_ways=is_area)
            )
    return figures


def _curve(starts: IntArray, inside: FloatArray, outside: FloatArray) -> FloatArray:
    """The area under the curve, and the share of members found at each of the ``RATES``.

    Scores are in groups of equal ones, the largest first; among these, the attacker draws lots.
    ``inside`` and ``outside`` are weights of all rows, 0 for those of the other side.
    """
    found, alarms = (
        np.append(0.0, np.cumsum(np.add.reduceat(side, starts)) / max(side.sum(), 1e-300))
        for side in (inside, outside)
    )
    area = np.sum(np.diff(alarms) * (found[1:] + found[:-1]) / 2)
    # Among scores with equally many false alarms, the last has found the most members.
    last = np.append(np.diff(alarms) > 0, True)
    rates = np.interp(list(RATES.values()), alarms[last], found[last])
    return np.append(area, rates)


@dataclass(frozen=True)
class AttackerKnowledge:
    """What an attacker knows, checked."""

    widths: Mapping[int, float]
    sensitive: IntArray
    excluded: tuple[Hashable, ...]


def class_sizes(
    released: ResultLike,
    training: FrameLike | Evaluator,
    quasi_identifiers: Sequence[Hashable] | Mapping[Hashable, float],
    *,
    private: Sequence[Hashable] | None = None,
) -> pd.DataFrame:
    """Count the training rows that share the quasi-identifiers of each released row.

    Parameters
    ----------
    released : frame or Counterfactuals
        The rows to measure.
    training : frame or Evaluator
        The training data; an evaluator also knows what is immutable and left out.
    quasi_identifiers : list or mapping
        The columns that an attacker knows of everybody. A mapping says to within how much: a
        number for numeric columns, 0 or infinity for all.
    private : list, optional
        The columns that the attacker would like to know; by default all others that can change.

    Returns
    -------
    DataFrame
        One row per released row, with its index: ``k``, the size of its class among training rows
        (0: there is no such person), and whether it is ``homogeneous``: not empty, and all of it
        has the private values of the released row.

    Raises
    ------
    SchemaError, ParameterError
        If a name is unknown, or no quasi-identifier is left.

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
    evaluator = as_evaluator(training)
    read = read_rows(released, evaluator)
    rows, index = read.after, read.explained.frame.index
    known = check_known(quasi_identifiers, private, evaluator.schema)
    codes = shared_codes([rows, evaluator.rows])
    pair = (rows, codes[0]), (evaluator.rows, codes[1])
    k, same = _count(*pair, known)
    return pd.DataFrame({"k": k, "homogeneous": (k > 0) & (same == k)}, index=index)


def check_known(quasi_identifiers: Any, private: Any, schema: Schema) -> AttackerKnowledge:
    """What an attacker knows, by position."""
    frame = pd.DataFrame(columns=pd.Index(schema.names, dtype=object))
    with_widths = isinstance(quasi_identifiers, Mapping)
    names = list(quasi_identifiers) if with_widths else quasi_identifiers
    widths = dict.fromkeys(check_names(names, frame, "quasi_identifiers"), 0.0)
    widths |= quasi_identifiers if with_widths else {}
    for name, width in widths.items():
        check_real(f"The width of {shorten(name)}", width, "a number >= 0", infinite=True)
        kind = schema.features[schema.position_of[name]].kind
        if kind == "categorical" and width not in (0, np.inf):
            raise ParameterError(
                f"The width of {shorten(name)}, a category, must be 0 or infinity, got "
                f"{shorten(width)}."
            )
    fixed = {schema.names[at] for at in schema.immutable}
    excluded = tuple(name for name in widths if name in fixed)
    kept = {schema.position_of[n]: float(w) for n, w in widths.items() if n not in fixed}
    if not kept:
        why = f"{shorten(list(excluded), 300)} cannot change" if excluded else "none was named"
        raise ParameterError(
            f"No quasi-identifier is left: {why}. Name columns that answers can change."
        )
    sensitive = [at for at in schema.mutable.tolist() if at not in kept]
    if private is not None:
        sensitive = [schema.position_of[n] for n in check_names(private, frame, "private")]
    return AttackerKnowledge(kept, np.array(sensitive, dtype=np.int64), excluded)


def linkage_figures(audited: AuditedRows, known: AttackerKnowledge) -> list[Figure]:
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
        share_figure("linkage_small", np.isin(k, SMALL), np.isin(other_k, SMALL), alike),
    ]
    if known.sensitive.size:
        pure, other_pure = (k > 0) & (same == k), (other_k > 0) & (other_same == other_k)
        figures.append(share_figure("linkage_homogeneous", pure, other_pure, whole))
    return figures


def _alike(audited: AuditedRows, known: AttackerKnowledge) -> IntArray:
    """Numbers of released rows, the same for those whose classes have people in common.

    Classes of numbers that are known to within a width overlap if they are less than twice that
    apart, so rows are put together by such steps.
    """
    codes, released = audited.codes["released"], audited.rows["released"]
    parts = [np.zeros(len(released))]
    for at, width in known.widths.items():
        if width == 0:
            parts.append(codes[at].astype(np.float64))
        elif width < np.inf:
            parts.append(np.floor(released.all_numbers[at] / (2 * width)))
    # Missing numbers are alike.
    together = np.nan_to_num(np.stack(parts), nan=np.inf)
    return np.unique(together, axis=1, return_inverse=True)[1].ravel()


def _count(
    released: tuple[EncodedRows, Codes], real: tuple[EncodedRows, Codes], known: AttackerKnowledge
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
