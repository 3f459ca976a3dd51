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
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import McceWarning, shorten
from ..kernels import check_cancellation
from ..tables.schema import EncodedRows
from .dependencies import MAX_LEVELS, find_dependencies, find_equivalences
from .evidence import MAX_CHANCE, Evidence, Recipe, TrainingColumns, confirm
from .formulas import find_formulas
from .implied import without_implied
from .kinds import Equation
from .orderings import find_orderings
from .relation import FoundRelation, Relation, View

# With fewer distinct rows, nothing can be confirmed.
MIN_ROWS = 40
FINDERS = find_formulas, find_orderings, find_equivalences, find_dependencies
# Rows for discovery are half of all: the others may deviate slightly more.
MARGIN = 1.25
# The smallest chance that is reported.
SMALLEST_P_VALUE = 1e-300


def find_relations(rows: EncodedRows) -> tuple[FoundRelation, ...]:
    """Relations between the columns of training rows, with the evidence."""
    data = TrainingColumns.of(rows)
    if len(data) < MIN_ROWS:
        return ()
    # Deviations of numbers that overflow are infinite or undefined, which confirms nothing.
    with np.errstate(all="ignore"):
        found = [
            one
            for recipe, evidence in _confirmed(data)
            if (one := _checked(data, recipe, evidence))
        ]
        return without_implied(data, found)


def most_relations(n_columns: int) -> int:
    """How many relations can be found between some columns."""
    # Of each column sums and products, as equalities and bounds. Of each pair orderings and bounds
    # on differences and ratios both ways, dependencies, and equivalences of any value.
    per_pair = 6 + 2 + 2 * (MAX_LEVELS + 1)
    return 6 * n_columns + per_pair * n_columns * (n_columns - 1) // 2


def _confirmed(data: TrainingColumns) -> list[tuple[Recipe, Evidence]]:
    """What held-out rows confirm of the relations that are found in the other half."""
    n_half = (len(data) + 1) // 2
    half, held_out = data.at(slice(0, n_half)), data.at(slice(n_half, None))
    tried, confirmed = set[Relation](), list[tuple[Recipe, Evidence]]()
    for find in FINDERS:
        for recipe in find(half):
            relation = recipe(half, MARGIN)
            if relation is not None and relation not in tried:
                check_cancellation()
                tried.add(relation)
                evidence = confirm(relation, held_out)
                if evidence is not None:
                    confirmed.append((recipe, evidence))
    by_chance = math.log(MAX_CHANCE / max(len(tried), 1))
    return [
        (recipe, replace(one, log_chance=one.log_chance + math.log(len(tried))))
        for recipe, one in confirmed
        if one.log_chance < by_chance
    ]


def _checked(data: TrainingColumns, recipe: Recipe, evidence: Evidence) -> FoundRelation | None:
    """The relation that all training rows give, and how many of them keep it."""
    check_cancellation()
    relation = recipe(data, 1.0)
    if relation is None:
        return None
    n_kept, n_rows = int(data.weights[data.holds(relation)].sum()), int(data.weights.sum())
    p_value = max(math.exp(evidence.log_chance), SMALLEST_P_VALUE)
    share, enforced = n_kept / n_rows, n_kept == n_rows
    return FoundRelation(relation, share, evidence.n_rows, p_value, enforced)


def warn_of_blocked_actions(
    found: Sequence[FoundRelation], rows: EncodedRows, *, stacklevel: int
) -> None:
    """Warn of mutable columns from which an immutable one is computed."""
    immutable = {feature.name for feature in rows.schema.features if feature.immutable}
    for relation in (one.relation for one in found if one.enforced and _is_equality(one)):
        actions = [name for name in relation.features if name not in immutable]
        if relation.target in immutable and actions:
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
        if _is_equality(one)
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


def _is_equality(found: FoundRelation) -> bool:
    return isinstance(found.relation, Equation) and not found.relation.is_bound
