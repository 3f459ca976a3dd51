"""Which relations follow from others, and so need not be listed.

The columns of some rows are permuted, so that no relation holds there but by chance. Columns that
stronger relations compute or determine are filled in, and rows that break one of these are left
out. If the rest keeps another relation, that one follows. Only relations between its columns, and
those of one other relation beside them, are used: so a chain is found, and hardly any row is left
out for other reasons.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..kernels import BoolArray, check_cancellation
from .evidence import TrainingColumns, count_passing, defined
from .kinds import NOISE, Dependency, Equation, Equivalence, Ordering
from .orderings import MIN_EXCLUDED
from .relation import FoundRelation, Relation, match_values, numbers_of
from .views import Amounts, Product, Sum

# Rows that are permuted, and the smallest share of them from which can be told what follows.
ROWS_TO_PERMUTE, MIN_LEFT = 2000, 0.02
# A relation follows from others if at most this share of the rows that break it keep those.
MAX_NEW = 0.05
# Orderings and bounds on two columns that are listed.
MAX_ORDERINGS = 50
# The order in which relations are listed; bounds on formulas come second.
LISTED = Equation, None, Ordering, Equivalence, Dependency


def without_implied(
    data: TrainingColumns, found: Iterable[FoundRelation]
) -> tuple[FoundRelation, ...]:
    """The relations that do not follow from others; of orderings, those that say most."""
    rows, known, kept = _permuted(data), list[Known](), list[FoundRelation]()
    taken = set[object]()
    for item in sorted(found, key=lambda item: _rank(data, rows, item)):
        check_cancellation()
        relation = item.relation
        keys = _keys(relation)
        is_kept = taken.isdisjoint(keys) and not _follows(item, known, rows)
        if is_kept:
            kept.append(item)
            taken |= keys
        known.append(Known(item, {*relation.features}, is_kept))
    orderings = [item for item in kept if isinstance(item.relation, Ordering)]
    left_out = set(orderings[MAX_ORDERINGS:])
    return tuple(sorted((item for item in kept if item not in left_out), key=_place))


def _keys(relation: Relation) -> set[object]:
    """What no two listed relations have in common.

    Of the equalities of a column, and of the bounds on it, one sum and one product are enough; and
    one of each set of columns.
    """
    if not isinstance(relation, Equation):
        return set()
    kind, is_bound = type(relation.formula), relation.is_bound
    return {(relation.result, kind, is_bound), (frozenset(relation.features), is_bound)}


class Known(NamedTuple):
    """A relation that others may follow from, its columns, and whether it is listed."""

    found: FoundRelation
    features: set[Hashable]
    is_kept: bool


def _permuted(data: TrainingColumns) -> TrainingColumns:
    """Some rows, each column permuted by itself."""
    some = data.at(slice(0, ROWS_TO_PERMUTE))
    orders = (np.random.default_rng(at).permutation(len(some)) for at in range(len(some.codes)))
    return replace(some, codes=np.take_along_axis(some.codes, np.array([*orders]), axis=1))


def _filled_in(
    rows: TrainingColumns, relations: Sequence[Known]
) -> tuple[TrainingColumns, BoolArray, BoolArray]:
    """Rows with what relations compute and determine.

    Which rows keep all relations, and in which of them nothing is beyond the training range.
    """
    inside = np.ones(len(rows), dtype=bool)
    # What others imply is kept anyway, and may be known less exactly.
    for relation in (one.found.relation for one in relations if one.is_kept):
        if isinstance(relation, Equation) and not relation.is_bound:
            feature, numbers = rows.feature(relation.result), relation.formula.numbers(rows)
            numbers = numbers if feature.decimals is None else np.round(numbers, feature.decimals)
            inside &= ~(
                (numbers < feature.known_numbers[0]) | (numbers > feature.known_numbers[-1])
            )
            own = numbers_of(rows, relation.result)
            cells = pd.Series(np.where(np.isnan(numbers), own, numbers))
        elif isinstance(relation, Dependency):
            table, expected = rows.feature(relation.result).table, relation.expected(rows)
            code_of = np.argsort(match_values(table, relation.results))[-len(relation.results) :]
            codes = np.where(expected >= 0, code_of[expected], rows.codes_of(relation.result))
            cells = table.take(codes)
        else:
            continue
        rows = replace(rows, filled={**rows.filled, relation.result: cells})
    kept = np.all([one.found.relation.holds(rows) for one in relations], axis=0)
    return rows, kept, kept & inside


def _follows(item: FoundRelation, known: Sequence[Known], rows: TrainingColumns) -> bool:
    """Whether rows that keep some known relations keep another one, too."""
    features = {*item.relation.features}
    # What holds in all rows follows from that alone, but for what a table says of single values.
    is_any = not item.enforced or isinstance(item.relation, Equivalence)
    usable = [one for one in known if one.found.enforced or is_any]
    others = {frozenset(one.features - features) for one in usable if one.features & features}
    n_breaking = np.count_nonzero(~item.relation.holds(rows)) if others else 0
    most = MIN_EXCLUDED if _is_bound(item.relation) else MAX_NEW * n_breaking / len(rows)
    for more in sorted(others, key=len):
        filled, *kept = _filled_in(rows, [one for one in usable if one.features <= features | more])
        breaks = ~item.relation.holds(filled)
        for mask in kept:
            n_kept, n_new = np.count_nonzero(mask), np.count_nonzero(mask & breaks)
            if n_kept >= MIN_LEFT * len(rows) and n_new <= most * n_kept:
                return True
    return False


def _place(item: FoundRelation) -> int:
    """Where a relation is listed."""
    return LISTED.index(type(item.relation)) or int(item.relation.kind == "bound")


def _is_bound(relation: Relation) -> bool:
    return isinstance(relation, Ordering) or relation.kind == "bound"


def _rank(data: TrainingColumns, rows: TrainingColumns, item: FoundRelation) -> tuple[Any, ...]:
    """A key by which relations come before those that may follow from them.

    Exact equalities come first, then equivalences with a column of two values, which say the same
    as a dependency; then dependencies, the shortest first, equalities that say less, other
    equivalences, and bounds, the tightest first.
    """
    relation, is_broken = item.relation, not item.enforced
    if isinstance(relation, Equation) and not relation.is_bound:
        is_table = len(relation.formula.of) == 1 and isinstance(relation.formula.of[0], Amounts)
        is_exact = relation.high in (0.0, data.half_unit(relation.result)) and not is_table
        quality = -round(item.share, 2), *_quality(data, relation)
        return (0 if is_exact else 3, is_broken, *quality)
    if isinstance(relation, Dependency):
        return (2, is_broken, len(relation.values))
    if isinstance(relation, Equivalence):
        is_table = any(data.feature(name).n_codes == 2 for name in relation.features)
        values = *relation.first.values, *relation.second.values
        return (1 if is_table else 4, is_broken, len(values), None not in values)
    # Those that exclude about as many rows are listed by simplicity.
    excluded = round(np.count_nonzero(~relation.holds(rows)) / len(rows) / MIN_EXCLUDED)
    is_plain = isinstance(relation, Ordering) and relation.is_plain
    return (5, is_broken, -excluded, len(relation.features), not is_plain, _n_odd(relation))


def _quality(data: TrainingColumns, relation: Equation) -> tuple[float, ...]:
    """A key by which to choose among the ways to write one equality; the smallest is best.

    First those of few columns, those that are defined in most rows, and those that are exact; then
    the one that most tells values of the target apart, has the fewest subtractions and fractions,
    is a product, and whose target has the widest range.
    """
    target, low, high = defined(relation.limits(data))
    passing = 1 - count_passing(target, low, high)[1]
    return (
        float(len(relation.features)),
        -round(target.size / len(data), 2),
        float(relation.high > 0),
        float(np.round(np.log2(passing + NOISE), 1)) if relation.high else 0.0,
        float(_n_odd(relation)),
        float(relation.kind == "ratio"),
        -float(np.ptp(target)) if target.size else 0.0,
    )


def _n_odd(relation: Relation) -> int:
    """How many subtractions, fractions and amounts a formula has."""
    formula = relation.formula if isinstance(relation, Equation) else Sum((), ())
    weights = formula.weights if isinstance(formula, Sum) else ()
    n_amounts = sum(len(one.amounts) for one in formula.of if isinstance(one, Amounts))
    if isinstance(formula, Product) and formula.factor != 1:
        weights = (-1.0, formula.factor)
    return n_amounts + sum((one < 0) + (abs(one) < 1) for one in weights)
