"""Finding the relations that hold in the training data.

All training rows count, accepted or not. One half of them proposes relations, the other confirms
them; what holds with too little evidence is left out. A relation is enforced if it then holds in
all training rows. What other relations imply is left out, so that the list stays short.

Always true: a relation that is enforced holds in every training row; the order of the training
rows changes nothing; the work grows with the number of columns squared at most, on a sample.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from ..errors import McceWarning, shorten
from ..kernels import check_cancellation
from ..tables.schema import EncodedRows
from .bounds import find_bounds, informative_orderings, passing_share, tightened_bound
from .evidence import MAX_CHANCE, Proposal, TrainingColumns
from .fitting import fit_of, quality
from .formulas import find_products, find_sums
from .kinds import Bound, Dependency, Equivalence, Linear, Ordering, Product, Ratio
from .pairs import MAX_LEVELS, find_dependencies, find_equivalences, find_orderings
from .relation import Equality, FoundRelation, Relation, View
from .views import DateView

# With fewer distinct rows, nothing can be confirmed.
MIN_ROWS = 40
FINDERS = (
    find_sums,
    find_products,
    find_orderings,
    find_bounds,
    find_equivalences,
    find_dependencies,
)
# The smallest chance that is reported.
SMALLEST_P_VALUE = 1e-300


def find_relations(rows: EncodedRows) -> tuple[FoundRelation, ...]:
    """Relations between the columns of training rows, with the evidence."""
    data = TrainingColumns.of(rows)
    if data.n_rows < MIN_ROWS:
        return ()
    # Deviations of numbers that overflow are infinite or undefined, which confirms nothing.
    with np.errstate(all="ignore"):
        findings = [find(data) for find in FINDERS]
    n_tried = sum(finding.n_tried for finding in findings)
    found: list[FoundRelation] = []
    for finding in findings:
        for proposal in finding.proposals:
            log_chance = proposal.log_chance + math.log(max(n_tried, 1))
            if log_chance < math.log(MAX_CHANCE):
                check_cancellation()
                found.append(_checked(data, proposal, log_chance))
    return without_implied(data, found)


def most_relations(n_columns: int) -> int:
    """How many relations can be found between some columns."""
    # The conditions on a column exclude each other, so each is in one equivalence at most.
    # Orderings, bounds on differences and ratios, and dependencies both ways; and equivalences.
    per_pair = 2 + 4 + 2 + (MAX_LEVELS + 1)
    return 6 * n_columns + per_pair * n_columns * (n_columns - 1) // 2


def _checked(data: TrainingColumns, proposal: Proposal, log_chance: float) -> FoundRelation:
    """A proposal, checked in all training rows."""
    relation = _tightened(data, proposal.relation)
    n_kept = int(data.weights[data.holds(relation)].sum())
    n_rows = int(data.weights.sum())
    return FoundRelation(
        relation,
        share=n_kept / n_rows,
        n_rows=proposal.n_rows,
        p_value=max(math.exp(log_chance), SMALLEST_P_VALUE),
        enforced=n_kept == n_rows,
    )


def _tightened(data: TrainingColumns, relation: Relation) -> Relation:
    """A strict ordering only if no training row has equal values; bounds by all rows."""
    if isinstance(relation, Ordering) and not relation.is_plain:
        return tightened_bound(data, relation)
    if not isinstance(relation, Ordering) or not relation.strict:
        return relation
    weak = Ordering(relation.lower, relation.upper)
    return relation if (data.holds(relation) == data.holds(weak)).all() else weak


def warn_of_blocked_actions(
    found: tuple[FoundRelation, ...], rows: EncodedRows, *, stacklevel: int
) -> None:
    """Warn of mutable columns from which an immutable one is computed."""
    immutable = {feature.name for feature in rows.schema.features if feature.immutable}
    for relation in (one.relation for one in found if one.enforced):
        actions = [name for name in relation.features if name not in immutable]
        if isinstance(relation, Equality) and relation.target in immutable and actions:
            warnings.warn(
                f"{shorten(relation.target)} is computed from {shorten(actions)} but is immutable, "
                "so answers hardly change them. Make it mutable, so that it follows, or leave the "
                "relation out with ignore_relations.",
                McceWarning,
                stacklevel=stacklevel + 1,
            )


def warn_of_possible_formulas(found: Sequence[FoundRelation], *, stacklevel: int) -> None:
    """Offer the formulas that hold in nearly all rows, if they can be declared."""
    possible = [
        # Rounded down: they do not hold in all rows.
        f"{one.relation.name} ({math.floor(1000 * one.share) / 10:.1f} %)"
        for one in found
        if isinstance(one.relation, Equality)
        and not one.enforced
        and not any(isinstance(operand, View) for operand in one.relation.operands)
    ]
    if possible:
        warnings.warn(
            f"possible: {'; '.join(possible)}: declare {'it' if len(possible) == 1 else 'them'} "
            "with derived(...)",
            McceWarning,
            stacklevel=stacklevel + 1,
        )


def without_implied(
    data: TrainingColumns, found: Sequence[FoundRelation]
) -> tuple[FoundRelation, ...]:
    """The relations that do not follow from others."""
    found = _without_parts(found)
    equalities = _equalities(data, found)
    bounds = _bounds(data, found, equalities)
    views = {one for one in _sources(equalities) if isinstance(one, View)}
    found = [item for item in found if views.isdisjoint(item.relation.operands)]
    others = [item for item in found if not _within(item, equalities)]
    compared = [*_orderings(others), *_bounds_on_pairs(found, equalities)]
    orderings = informative_orderings(data, compared, [*equalities, *bounds])
    binary = {feature.name for feature in data.schema.features if feature.n_codes == 2}
    dependencies = _dependencies(data, others)
    equivalences = _equivalences(others, dependencies, binary)
    pairs = [{*item.relation.features} for item in equivalences]
    paired = [pair for pair in pairs if pair <= binary]
    dependencies = [item for item in dependencies if {*item.relation.features} not in paired]
    return (*equalities, *bounds, *orderings, *equivalences, *dependencies)


def _without_parts(found: Sequence[FoundRelation]) -> list[FoundRelation]:
    """Without what holds loosely of parts of a date; the dates themselves are compared."""
    relations = [item.relation for item in found if item.enforced]
    parts = {
        name
        for one in relations
        if isinstance(one, Dependency) and isinstance(one.determinant, DateView)
        for name in one.features
        if name not in one.determinant.of
    }
    return [
        item
        for item in found
        if parts.isdisjoint(item.relation.operands)
        or isinstance(item.relation, (Dependency, Equivalence))
        or (_is_exact(item) and item.enforced)
    ]


def _equalities(data: TrainingColumns, found: Sequence[FoundRelation]) -> list[FoundRelation]:
    """The best way to write each equality, and one equality of a kind for each target."""
    ranked = []
    for number, item in enumerate(found):
        relation = item.relation
        if isinstance(relation, (Linear, Product, Ratio)):
            rank = (not item.enforced, -round(item.share, 2), len(relation.features))
            ranked.append(((*rank, *quality(data, relation), -number), item))
    kept: list[FoundRelation] = []
    for item in _first_of_each(item for _, item in sorted(ranked, key=lambda pair: pair[0])):
        features = {*item.relation.features}
        if item.enforced or not any(features <= {*one.relation.features} for one in kept):
            kept.append(item)
    return kept


@np.errstate(all="ignore")
def _bounds(
    data: TrainingColumns, found: Sequence[FoundRelation], equalities: Sequence[FoundRelation]
) -> list[FoundRelation]:
    """One bound on a formula for each target and set of columns, without equalities of them."""
    exact = [{*item.relation.features} for item in equalities if item.enforced]
    ranked = []
    for number, item in enumerate(found):
        bound, features = item.relation, {*item.relation.features}
        has_equality = any(other <= features or features <= other for other in exact)
        if isinstance(bound, Bound) and not has_equality:
            fit = fit_of(data, bound.formula, slice(0, data.n_rows)).defined
            ranked.append((len(features), passing_share(bound, fit), number, item))
    return _first_of_each(item for *_, item in sorted(ranked))


def _first_of_each(items: Iterable[FoundRelation]) -> list[FoundRelation]:
    """The first relation of each set of columns, and the first sum and other one of each target."""
    kept: list[FoundRelation] = []
    taken: set[object] = set()
    for item in items:
        is_sum = isinstance(item.relation, Linear)
        keys = {frozenset(item.relation.features), (is_sum, item.relation.target)}
        if not keys & taken:
            kept.append(item)
            taken |= keys
    return kept


def _bounds_on_pairs(
    found: Sequence[FoundRelation], equalities: Sequence[FoundRelation]
) -> list[FoundRelation]:
    """Bounds on two columns, neither of which is computed from a single other one.

    Such a column has the bounds of that other one.
    """
    source = _sources(equalities)
    return [
        item
        for item in found
        if isinstance(item.relation, Ordering)
        and not item.relation.is_plain
        and item.enforced
        and not source.keys() & {*item.relation.operands}
    ]


def _within(item: FoundRelation, equalities: Sequence[FoundRelation]) -> bool:
    """Whether all columns of a relation are those of an equality that is at least as certain.

    A formula says how its target depends on its columns, not how these depend on each other. But
    it implies orderings: the sign of a difference tells which of two columns is larger.
    """
    source = _sources(equalities)
    features = {source.get(name, name) for name in item.relation.operands}
    if len(features) == 1:
        return True
    ordered = isinstance(item.relation, Ordering)
    return any(
        features <= {source.get(name, name) for name in other.relation.operands}
        and (ordered or source.get(other.relation.target, other.relation.target) in features)
        and (_is_exact(other) or not item.enforced)
        and (other.enforced or not item.enforced)
        for other in equalities
    )


def _sources(equalities: Sequence[FoundRelation]) -> dict[Hashable, Hashable]:
    """For each column that is computed from a single other one, one that stands for them all.

    They may be computed from each other in a circle, where cells are missing in some of them.
    """
    source: dict[Hashable, Hashable] = {}
    for item in equalities:
        operands = item.relation.operands
        if item.enforced and _is_exact(item) and len(operands) == 2:
            first, second = (_root(source, operand) for operand in operands)
            # A column rather than a view stands for both.
            if isinstance(second, View):
                first, second = second, first
            if first != second:
                source[first] = second
    days = [view for view in source if isinstance(view, DateView)]
    source |= {view.reversed: view for view in days if view.what == "days"}
    return {name: _root(source, name) for name in source}


def _root(parents: Mapping[Hashable, Hashable], item: Hashable) -> Hashable:
    while item in parents:
        item = parents[item]
    return item


def _is_exact(item: FoundRelation) -> bool:
    return isinstance(item.relation, Equality) and item.relation.tolerance == 0


def _orderings(found: Sequence[FoundRelation]) -> list[FoundRelation]:
    """Orderings that two others do not imply."""
    orderings = {
        item.relation: item
        for item in found
        if isinstance(item.relation, Ordering) and item.relation.is_plain
    }
    pairs = {(one.lower, one.upper) for one, item in orderings.items() if item.enforced}
    # Equal columns are ordered both ways; that is an equality.
    pairs -= {(high, low) for low, high in pairs}
    above: dict[Hashable, set[Hashable]] = {}
    for low, high in pairs:
        above.setdefault(low, set()).add(high)
    return [
        item
        for one, item in orderings.items()
        if not any(one.upper in above.get(middle, ()) for middle in above.get(one.lower, ()))
    ]


def _dependencies(data: TrainingColumns, found: Sequence[FoundRelation]) -> list[FoundRelation]:
    """Dependencies that a chain of others does not imply."""
    ranked = [
        ((not item.enforced, len(item.relation.values)), item.relation, item)
        for item in found
        if isinstance(item.relation, Dependency)
    ]
    kept: list[FoundRelation] = []
    determined: dict[Hashable, set[Hashable]] = {}
    for _, relation, item in sorted(ranked, key=lambda one: one[0]):
        # What a part of a date determines, the date does.
        start, end = relation.features[:-1], relation.features[-1:]
        if end not in _reachable(determined, start):
            kept.append(item)
            if item.enforced:
                determined.setdefault(start, set()).add(end)
    return kept


def _reachable(edges: dict[Hashable, set[Hashable]], start: Hashable) -> set[Hashable]:
    seen: set[Hashable] = set()
    left = [start]
    while left:
        for name in edges.get(left.pop(), ()):
            if name not in seen:
                seen.add(name)
                left.append(name)
    return seen


def _equivalences(
    found: Sequence[FoundRelation], dependencies: Sequence[FoundRelation], binary: set[Hashable]
) -> list[FoundRelation]:
    """Equivalences that neither a dependency nor a chain of others implies.

    Two binary columns have one, and no dependency beside it.
    """
    implying: dict[frozenset[Hashable], bool] = {}
    for item in dependencies:
        pair = frozenset(item.relation.features)
        if not pair <= binary:
            implying[pair] = implying.get(pair, False) or item.enforced
    same_as: dict[Hashable, Hashable] = {}
    kept: list[FoundRelation] = []
    seen: set[frozenset[Hashable]] = set()
    for item in sorted(found, key=lambda item: not item.enforced):
        relation, pair = item.relation, frozenset(item.relation.features)
        is_implied = pair in implying and (implying[pair] or not item.enforced)
        if not isinstance(relation, Equivalence) or is_implied:
            continue
        first, second = _root(same_as, relation.first), _root(same_as, relation.second)
        if first == second or (pair in seen and pair <= binary):
            continue
        kept.append(item)
        seen.add(pair)
        if item.enforced:
            same_as[second] = first
    return kept
