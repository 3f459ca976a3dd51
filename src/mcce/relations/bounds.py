"""Finding bounds: on a difference or a ratio of two columns, and on what a formula leaves over.

A bound is an extreme of the training rows, made wider by as much as the ten most extreme rows are
apart, and rounded outward to a number that one can read. At a hard limit many rows are near it, so
hardly anything is added; in a tail, few new rows are beyond. A bound is kept only if it excludes
rows whose columns are permuted, so that it does not follow from the ranges of its columns, and not
from other relations either.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pandas as pd

from ..kernels import BoolArray, FloatArray, check_cancellation
from ..tables.columns import assemble
from .evidence import Findings, Proposal, TrainingColumns, log_chance
from .fitting import MIN_CONFIRMING, AnyEquality, Fit, fit_of
from .kinds import Bound, Linear, Ordering, Product
from .pairs import MAX_BROKEN, confirm_ordering, sketches_of
from .relation import Equality, FoundRelation, numbers_of

# A bound on two columns excludes at least this share of permuted rows that nothing else excludes.
MIN_EXCLUDED = 0.02
# A bound on a formula lets at most this share of permuted targets pass.
MAX_PASSING = 0.5
# A simpler formula may let this many times as many pass.
MAX_SIMPLER = 1.1
# So many rows say how far beyond the most extreme one others may be.
N_EXTREME = 10
ROWS_TO_SCREEN, ROWS_TO_CONFIRM, ROWS_TO_PERMUTE = 512, 20_000, 2000
# Bounds on two columns, those that exclude most.
MAX_CANDIDATES, MAX_LISTED = 500, 50
# An offset and a factor: lower + offset <= factor * upper.
Edge: TypeAlias = tuple[float, float]


def find_bounds(data: TrainingColumns) -> Findings:
    """Bounds on differences and ratios of two numeric columns."""
    rows = slice(0, data.half)
    n_columns, names = len(data.numeric), data.schema.names

    def tried() -> Iterator[Proposal | None]:
        for low, high, is_ratio in _screened(data):
            edge = _edge(data.numbers(low, rows), data.numbers(high, rows), is_ratio)
            if edge not in (None, (0.0, 1.0)):
                relation = Ordering(names[low], names[high], False, *edge)
                yield confirm_ordering(data, relation, MIN_EXCLUDED, ROWS_TO_CONFIRM)

    return Findings.of(tried(), 2 * n_columns * (n_columns - 1))


def _screened(data: TrainingColumns) -> list[tuple[int, int, bool]]:
    """Pairs of columns, and whether for their ratio, that exclude most permuted rows."""
    positions, rows = data.numeric, slice(0, min(data.half, ROWS_TO_SCREEN))
    if len(positions) < 2:
        return []
    values = np.array([data.numbers(at, rows) for at in positions])
    sketches = sketches_of(values)
    is_positive = np.array([np.nanmin(data.values[at]) >= 0 for at in positions])
    ranked = []
    for place, low in enumerate(positions):
        check_cancellation()
        own = sketches[place][:, None]
        most = np.fmax.reduce(values[place] - values, axis=1)
        bounds = [(sketches + most[:, None], np.isfinite(most))]
        most = np.fmax.reduce(values[place] / values, axis=1)
        bounds.append((sketches * most[:, None], is_positive & np.isfinite(most) & (most > 0)))
        for is_ratio, (bound, usable) in enumerate(bounds):
            usable[place] = False
            at = np.flatnonzero(usable)
            excluded = (own > bound[at, None, :]).mean(axis=(1, 2))
            ranked += [
                (-share, low, positions[other], bool(is_ratio))
                for share, other in zip(excluded.tolist(), at.tolist(), strict=True)
                if share >= MIN_EXCLUDED
            ]
    return [pair for _, *pair in sorted(ranked)[:MAX_CANDIDATES]]  # type: ignore[misc]


def tightened_bound(data: TrainingColumns, relation: Ordering) -> Ordering:
    """A bound with the extreme of all training rows."""
    low, high = (data.schema.names.index(name) for name in relation.features)
    rows = slice(0, data.n_rows)
    edge = _edge(data.numbers(low, rows), data.numbers(high, rows), relation.factor != 1)
    if edge in (None, (0.0, 1.0)):
        return relation
    return replace(relation, offset=edge[0], factor=edge[1])


@np.errstate(all="ignore")
def _edge(lower: FloatArray, upper: FloatArray, is_ratio: bool) -> Edge | None:
    """The bound on the difference or the ratio in some rows; None if they have none."""
    # A negative number over 0 bounds nothing, a positive one allows no bound.
    gap = lower / upper if is_ratio else lower - upper
    gap = gap[~np.isnan(gap) & ~np.isneginf(gap)]
    most = _outward(gap) if gap.size else np.inf
    if not math.isfinite(most) or (is_ratio and most <= 0):
        return None
    return (0.0, most) if is_ratio else (-most + 0.0, 1.0)


def _outward(numbers: FloatArray) -> float:
    """A short number at or above all, as far above as some of the largest are below it."""
    n_extreme = min(N_EXTREME, numbers.size)
    top = np.partition(numbers, numbers.size - n_extreme)[numbers.size - n_extreme :]
    low, high = float(top.max()), float(2 * top.max() - top.min())
    size = max(abs(low), abs(high))
    if low <= 0 <= high:
        return 0.0
    # Shorter ones of these are no floats, or lose digits.
    if not 1e-290 < size < math.inf:
        return low
    power = math.floor(math.log10(size))
    for unit in range(power, power - 15, -1):
        number = float(f"{math.ceil(low / 10.0**unit * (1 - math.copysign(1e-10, low)))}e{unit}")
        if number <= high:
            return number
    return low


def propose_bound(data: TrainingColumns, formula: AnyEquality) -> Proposal | None:
    """The bound on what a formula leaves over, if held-out rows confirm it."""
    if not isinstance(formula, (Linear, Product)):
        return None
    options: list[tuple[float, Bound]] = []
    for simple in _simpler(formula):
        fit = fit_of(data, simple, slice(0, data.half)).defined
        bounds = [_bound(simple, fit, relative) for relative in (False, True)]
        options += [(passing_share(one, fit), one) for one in bounds if one is not None]
    if not options:
        return None
    least = min(share for share, _ in options)
    best = next(one for share, one in options if share <= MAX_SIMPLER * least)
    held = fit_of(data, best.formula, data.held_out).defined
    if _is_of_pair(best) or held.target.size < MIN_CONFIRMING:
        return None
    low, high = best.limits(held.formula)
    n_broken = int(((held.target < low) | (held.target > high)).sum())
    passing = held.n_between(low, high)
    n_rows = held.target.size
    if passing.mean() > MAX_PASSING * n_rows or n_broken > MAX_BROKEN * n_rows:
        return None
    everything = fit_of(data, best.formula, slice(0, data.n_rows)).defined
    final = _bound(best.formula, everything, best.relative)
    if final is None or passing_share(final, everything) > MAX_PASSING:
        return None
    return Proposal(final, log_chance(passing, n_broken), n_rows)


def _simpler(formula: Linear | Product) -> Iterator[Linear | Product]:
    """A formula with shorter weights, the shortest first, and as it is."""
    if isinstance(formula, Product):
        yield replace(formula, factor=1.0)
        return
    for n_decimals in (0, 1):
        terms = tuple((name, round(weight, n_decimals)) for name, weight in formula.terms)
        if all(weight for _, weight in terms):
            yield replace(formula, terms=terms, constant=0.0)
            yield replace(formula, terms=terms)
    yield formula


def _is_of_pair(bound: Bound) -> bool:
    """Whether it bounds a difference or a ratio of two columns, which are found by themselves."""
    formula = bound.formula
    if isinstance(formula, Product) or formula.amounts or formula.constant:
        return False
    return len(formula.terms) == 1 and (bound.relative or formula.terms[0][1] == 1)


def passing_share(bound: Bound, fit: Fit) -> float:
    """The share of permuted targets that a bound lets pass."""
    return float(fit.n_between(*bound.limits(fit.formula)).mean() / max(fit.target.size, 1))


def _bound(formula: Linear | Product, fit: Fit, relative: bool) -> Bound | None:
    if relative:
        zero = fit.formula == 0
        if (fit.formula < 0).any() or fit.target[zero].any():
            return None
        left = fit.target[~zero] / fit.formula[~zero]
    else:
        left = fit.target - fit.formula
    # The error of a product grows with it.
    is_odd = isinstance(formula, Product) and not relative
    if is_odd or not left.size or not np.isfinite(left).all():
        return None
    return Bound(formula, -_outward(-left) + 0.0, _outward(left), relative)


@np.errstate(all="ignore")
def best_bounds(
    data: TrainingColumns, found: Iterable[FoundRelation], equalities: Iterable[FoundRelation]
) -> list[FoundRelation]:
    """One bound on a formula for each target and set of columns, without equalities of them."""
    exact = [{*item.relation.features} for item in equalities if item.enforced]
    ranked = []
    for place, item in enumerate(found):
        bound, features = item.relation, {*item.relation.features}
        if isinstance(bound, Bound) and not any(
            one <= features or features <= one for one in exact
        ):
            fit = fit_of(data, bound.formula, slice(0, data.n_rows)).defined
            ranked.append((len(features), passing_share(bound, fit), place, item))
    kept: dict[object, FoundRelation] = {}
    for *_, item in sorted(ranked):
        keys = {frozenset(item.relation.features), ("target", item.relation.target)}
        if not keys & kept.keys():
            kept |= dict.fromkeys(keys, item)
    return list(dict.fromkeys(kept.values()))


@np.errstate(all="ignore")
def informative_orderings(
    data: TrainingColumns,
    orderings: Iterable[FoundRelation],
    found: Iterable[FoundRelation],
    formulas: Iterable[FoundRelation],
) -> list[FoundRelation]:
    """Orderings, and the bounds that exclude permuted rows which nothing else excludes.

    A bound takes the place of an ordering that it implies.
    """
    rows = _permuted(data)
    items = {item.relation: item for item in orderings}
    plain = [one for one in items if isinstance(one, Ordering) and items[one].enforced]
    for item in found:
        if isinstance(item.relation, Ordering) and not item.relation.is_plain and item.enforced:
            items[item.relation] = item
    known = [one for one in items if isinstance(one, Ordering) and items[one].enforced]
    excluded = {one: one.excess(rows) > 0 for one in known}
    weakest_first = sorted(
        (one for one in known if not one.is_plain),
        key=lambda one: (excluded[one].mean(), one.name),
    )
    for one in weakest_first:
        check_cancellation()
        own = excluded.pop(one)
        new = own & ~_implied(one, excluded, rows)
        if new.mean() >= MIN_EXCLUDED and not any(_follows(one, item, rows) for item in formulas):
            excluded[one] = own
    strongest = [one for one in reversed(weakest_first) if one in excluded]
    for one in strongest[MAX_LISTED:]:
        del excluded[one]
    for one in plain:
        tighter = [other for other in excluded if other.features == one.features and other != one]
        if not (excluded[one] & ~_implied(one, tighter, rows)).any():
            del excluded[one]
    return [item for one, item in items.items() if one in excluded or not item.enforced]


def _permuted(data: TrainingColumns) -> pd.DataFrame:
    """Some rows, permuted column by column."""
    schema, n_rows = data.schema, min(data.n_rows, ROWS_TO_PERMUTE)
    cells = [
        data.frame([name], np.random.default_rng(at).permutation(n_rows)).iloc[:, 0].array
        for at, name in enumerate(schema.names)
    ]
    return assemble(cells, pd.Index(schema.names, dtype=object, tupleize_cols=False))


def _implied(one: Ordering, others: Iterable[Ordering], rows: pd.DataFrame) -> BoolArray:
    """Rows that others exclude, one of them alone or two by a column between."""
    below: dict[Hashable, list[Ordering]] = {}
    for other in others:
        if other.upper == one.upper:
            below.setdefault(other.lower, []).append(other)
    implied = np.zeros(len(rows), dtype=bool)
    for first in (other for other in others if other.lower == one.lower):
        if first.upper == one.upper:
            implied |= first.excess(rows) > 0
        for second in below.get(first.upper, ()):
            offset = first.offset + first.factor * second.offset
            factor = first.factor * second.factor
            both = replace(one, strict=False, offset=offset, factor=factor)
            implied |= both.excess(rows) > 0
    return implied


def _follows(one: Ordering, item: FoundRelation, rows: pd.DataFrame) -> bool:
    """Whether rows that keep a formula, and the range of its target, keep an ordering too."""
    formula = item.relation.formula if isinstance(item.relation, Bound) else item.relation
    if not item.enforced or not {*one.features} <= {*formula.features}:
        return False
    assert isinstance(formula, Equality)
    target, given = numbers_of(rows, formula.result), formula.compute(rows)
    inside = (given >= np.nanmin(target)) & (given <= np.nanmax(target))
    again = rows.copy()
    again.isetitem(list[Hashable](rows.columns).index(formula.result), given)
    return float((one.excess(again)[inside] > 0).mean()) < MIN_EXCLUDED if inside.any() else True
