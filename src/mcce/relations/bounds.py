"""Finding bounds: on a difference or a ratio of two columns, and on what a formula leaves over.

A bound is an extreme of the training rows, made wider by as much as the ten most extreme rows are
apart, and rounded outward to a short number. Many rows are near a hard limit, so hardly anything is
added there; where there is none, few new rows are beyond the bound. A bound is kept only if it
excludes permuted rows, so it does not follow from the ranges of its columns, and if no other
relation excludes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from ..kernels import BoolArray, FloatArray, check_cancellation
from ..tables.columns import assemble
from .evidence import Findings, Proposal, TrainingColumns, log_chance
from .fitting import MIN_CONFIRMING, AnyEquality, Fit, fit_of, short_between
from .kinds import Bound, Linear, Ordering, Product, Ratio
from .pairs import MAX_BROKEN, confirm_ordering, sketches_of
from .relation import Equality, FoundRelation, numbers_of

# A bound on two columns excludes at least this share of permuted rows that nothing else excludes.
MIN_EXCLUDED = 0.02
# A bound on a formula lets at most this share of permuted targets pass.
MAX_PASSING = 0.5
# A simpler formula may let this many times as many pass.
MAX_SIMPLER = 1.1
# This many rows tell how far beyond the most extreme one others may be.
N_EXTREME = 10
ROWS_TO_SCREEN, ROWS_TO_CONFIRM, ROWS_TO_PERMUTE = 512, 20_000, 2000
# Bounds on two columns, those that exclude most.
MAX_CANDIDATES, MAX_LISTED = 500, 50


def find_bounds(data: TrainingColumns) -> Findings:
    """Bounds on differences and ratios of two numeric columns."""
    rows, n_columns = slice(0, data.half), len(data.numeric)
    bounds = (_bound_on_pair(data, *pair, rows) for pair in _screened(data))
    tried = (
        confirm_ordering(data, bound, MIN_EXCLUDED, ROWS_TO_CONFIRM)
        for bound in bounds
        if bound is not None
    )
    return Findings.of(tried, 2 * n_columns * (n_columns - 1))


def _screened(data: TrainingColumns) -> list[tuple[int, int, bool]]:
    """Pairs of columns whose bound excludes most permuted rows, and whether that of a ratio."""
    columns, rows = data.numeric, slice(0, min(data.half, ROWS_TO_SCREEN))
    if len(columns) < 2:
        return []
    values = np.array([data.numbers(column, rows) for column in columns])
    sketches = sketches_of(values)
    is_positive = np.array([np.nanmin(data.values[column]) >= 0 for column in columns])
    ranked = []
    for (i, low), is_ratio in product(enumerate(columns), (False, True)):
        check_cancellation()
        most = np.fmax.reduce(values[i] / values if is_ratio else values[i] - values, axis=1)
        limits = sketches * most[:, None] if is_ratio else sketches + most[:, None]
        excluded = (sketches[i][:, None] > limits[:, None, :]).mean(axis=(1, 2))
        is_kept = np.isfinite(most) & (excluded >= MIN_EXCLUDED)
        if is_ratio:
            is_kept &= is_positive & (most > 0)
        is_kept[i] = False
        ranked += [(-excluded[j], low, columns[j], is_ratio) for j in np.flatnonzero(is_kept)]
    return [(low, high, is_ratio) for _, low, high, is_ratio in sorted(ranked)[:MAX_CANDIDATES]]


def tightened_bound(data: TrainingColumns, relation: Ordering) -> Ordering:
    """A bound with the extreme of all training rows."""
    low, high = (data.names.index(name) for name in relation.operands)
    rows = slice(0, data.n_rows)
    return _bound_on_pair(data, low, high, relation.factor != 1, rows) or relation


@np.errstate(all="ignore")
def _bound_on_pair(
    data: TrainingColumns, low: int, high: int, is_ratio: bool, rows: slice
) -> Ordering | None:
    """The bound on a difference or a ratio in some rows; None for none and for a plain ordering."""
    lower, upper = data.numbers(low, rows), data.numbers(high, rows)
    # A negative number over 0 bounds nothing, a positive one allows no bound.
    gap = lower / upper if is_ratio else lower - upper
    gap = gap[~np.isnan(gap) & ~np.isneginf(gap)]
    most = _outward(gap) if gap.size else np.inf
    if not math.isfinite(most) or (is_ratio and most <= 0):
        return None
    offset, factor = (0.0, most) if is_ratio else (-most, 1.0)
    names = data.names
    bound = Ordering(names[low], names[high], offset=offset, factor=factor)
    return None if bound.is_plain else bound


def _outward(numbers: FloatArray) -> float:
    """A short number at or above all, as far above as some of the largest are below it."""
    top = np.partition(numbers, -min(N_EXTREME, numbers.size))[-N_EXTREME:]
    return short_between(float(top.max()), float(2 * top.max() - top.min()))


def propose_bound(data: TrainingColumns, formula: AnyEquality) -> Proposal | None:
    """The bound on what a formula leaves over, if held-out rows confirm it."""
    best = None if isinstance(formula, Ratio) else _tightest(data, formula)
    if best is None or _is_on_pair(best):
        return None
    held = fit_of(data, best.formula, data.held_out).defined
    n_rows = held.target.size
    if n_rows < MIN_CONFIRMING:
        return None
    low, high = best.limits(held.formula)
    passing = held.n_between(low, high)
    n_broken = int(((held.target < low) | (held.target > high)).sum())
    if passing.mean() > MAX_PASSING * n_rows or n_broken > MAX_BROKEN * n_rows:
        return None
    everything = fit_of(data, best.formula, slice(0, data.n_rows)).defined
    final = _bound_on_formula(best.formula, everything, best.relative)
    if final is None or passing_share(final, everything) > MAX_PASSING:
        return None
    return Proposal(final, log_chance(passing, n_broken), n_rows)


def _tightest(data: TrainingColumns, formula: Linear | Product) -> Bound | None:
    """The bound on a formula that lets fewest permuted targets pass, or nearly so if simpler."""
    options: list[tuple[float, Bound]] = []
    for simple in _simpler(formula):
        fit = fit_of(data, simple, slice(0, data.half)).defined
        bounds = (_bound_on_formula(simple, fit, relative) for relative in (False, True))
        options += [(passing_share(bound, fit), bound) for bound in bounds if bound is not None]
    least = min((share for share, _ in options), default=0.0)
    return next((bound for share, bound in options if share <= MAX_SIMPLER * least), None)


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


def _is_on_pair(bound: Bound) -> bool:
    """Whether it bounds a difference or a ratio of two columns, which are found by themselves."""
    formula = bound.formula
    if isinstance(formula, Product) or formula.amounts or formula.constant:
        return False
    return len(formula.terms) == 1 and (bound.relative or formula.terms[0][1] == 1)


def passing_share(bound: Bound, fit: Fit) -> float:
    """The share of permuted targets that a bound lets pass."""
    return float(fit.n_between(*bound.limits(fit.formula)).mean() / max(fit.target.size, 1))


def _bound_on_formula(formula: Linear | Product, fit: Fit, relative: bool) -> Bound | None:
    """The bound that holds in some rows; None if they have none."""
    if relative:
        is_zero = fit.formula == 0
        if (fit.formula < 0).any() or fit.target[is_zero].any():
            return None
        rest = fit.target[~is_zero] / fit.formula[~is_zero]
    elif isinstance(formula, Product):
        # Its error grows with it.
        return None
    else:
        rest = fit.target - fit.formula
    if not rest.size or not np.isfinite(rest).all():
        return None
    return Bound(formula, -_outward(-rest) + 0.0, _outward(rest), relative)


@np.errstate(all="ignore")
def informative_orderings(
    data: TrainingColumns, found: Sequence[FoundRelation], formulas: Sequence[FoundRelation]
) -> list[FoundRelation]:
    """Orderings, and the bounds that exclude permuted rows which nothing else excludes.

    A bound takes the place of an ordering that it implies.
    """
    rows = _permuted(data)
    excluded = {
        item.relation: item.relation.excess(rows) > 0
        for item in found
        if isinstance(item.relation, Ordering) and item.enforced
    }
    plain = [relation for relation in excluded if relation.is_plain]
    weakest_first = sorted(
        excluded.keys() - plain, key=lambda bound: (excluded[bound].mean(), bound.name)
    )
    for bound in weakest_first:
        check_cancellation()
        own = excluded.pop(bound)
        is_new = own & ~_implied(bound, excluded, rows)
        follows = any(_follows(bound, item, rows) for item in formulas)
        if is_new.mean() >= MIN_EXCLUDED and not follows:
            excluded[bound] = own
    strongest_first = [bound for bound in reversed(weakest_first) if bound in excluded]
    for bound in strongest_first[MAX_LISTED:]:
        del excluded[bound]
    for ordering in plain:
        bounds = [one for one in excluded if one.operands == ordering.operands and one != ordering]
        if not (excluded[ordering] & ~_implied(ordering, bounds, rows)).any():
            del excluded[ordering]
    return [item for item in found if item.relation in excluded or not item.enforced]


def _permuted(data: TrainingColumns) -> TrainingColumns:
    """Some rows, permuted column by column."""
    some = data.at(slice(0, ROWS_TO_PERMUTE))
    codes = [
        own[np.random.default_rng(column).permutation(some.n_rows)]
        for column, own in enumerate(some.codes)
    ]
    return replace(some, codes=np.array(codes))


def _implied(relation: Ordering, others: Iterable[Ordering], rows: TrainingColumns) -> BoolArray:
    """Rows that others exclude, each by itself or two by way of a column between."""
    starts = [other for other in others if other.lower == relation.lower]
    ends = [other for other in others if other.upper == relation.upper]
    chains = [first for first in starts if first.upper == relation.upper]
    for first, second in product(starts, ends):
        if first.upper == second.lower:
            offset = first.offset + first.factor * second.offset
            factor = first.factor * second.factor
            chains.append(replace(relation, strict=False, offset=offset, factor=factor))
    implied = np.zeros(len(rows), dtype=bool)
    for chain in chains:
        implied |= chain.excess(rows) > 0
    return implied


def _follows(bound: Ordering, item: FoundRelation, rows: TrainingColumns) -> bool:
    """Whether rows that keep a formula, and the range of its target, keep a bound too."""
    formula = item.relation.formula if isinstance(item.relation, Bound) else item.relation
    if not item.enforced or not {*bound.operands} <= {*formula.operands}:
        return False
    assert isinstance(formula, Equality)
    target, computed = numbers_of(rows, formula.result), formula.compute(rows)
    is_inside = (computed >= np.nanmin(target)) & (computed <= np.nanmax(target))
    names = bound.operands
    cells = [computed if name == formula.result else numbers_of(rows, name) for name in names]
    kept = assemble(cells, pd.Index(names, dtype=object, tupleize_cols=False))
    return not is_inside.any() or float((bound.excess(kept)[is_inside] > 0).mean()) < MIN_EXCLUDED
