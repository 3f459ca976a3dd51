"""Finding the relations that hold in the training data.

All training rows count, accepted or not. One half of them proposes relations, the other confirms
them; what holds with too little evidence, and what other relations imply, is left out. A relation
is enforced if it then holds in all training rows.

Always true: a relation that is enforced holds in every training row; the order of the training
rows changes nothing; the work grows with the number of columns squared at most, on a sample.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from ..errors import McceWarning, shorten
from ..kernels import check_cancellation
from ..tables.schema import EncodedRows
from .dependencies import find_dependencies
from .equivalences import MAX_LEVELS, find_equivalences
from .evidence import FoundRelation
from .implied import without_implied
from .orderings import find_orderings
from .patterns import Ordering
from .products import find_products
from .proposals import Proposal
from .relation import Equality, Relation
from .significance import MAX_CHANCE
from .sums import find_sums
from .training import TrainingColumns

# With fewer distinct rows, nothing can be confirmed.
MIN_ROWS = 40
ROWS_PER_PIECE = 100_000
FINDERS = (find_sums, find_products, find_orderings, find_equivalences, find_dependencies)
# The smallest chance that is reported.
SMALLEST = 1e-300


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
    """How many relations can be found between some columns.

    Examples
    --------
    >>> most_relations(2)
    61
    """
    # Of two columns, the conditions of an equivalence exclude each other: each is in one at most.
    per_pair = 2 + 2 + (MAX_LEVELS + 1)  # orderings and dependencies both ways, and equivalences
    return 3 * n_columns + per_pair * n_columns * (n_columns - 1) // 2


def _checked(data: TrainingColumns, proposal: Proposal, log_chance: float) -> FoundRelation:
    """A proposal, checked in all training rows."""
    relation = _tightened(data, proposal.relation)
    n_kept = int(data.weights[_holds(data, relation)].sum())
    n_rows = int(data.weights.sum())
    return FoundRelation(
        relation,
        share=n_kept / n_rows,
        n_rows=proposal.n_rows,
        p_value=max(math.exp(log_chance), SMALLEST),
        enforced=n_kept == n_rows,
    )


def _tightened(data: TrainingColumns, relation: Relation) -> Relation:
    """A strict ordering only if no training row has equal values."""
    if not isinstance(relation, Ordering) or not relation.strict:
        return relation
    weak = Ordering(relation.lower, relation.upper)
    return relation if (_holds(data, relation) == _holds(data, weak)).all() else weak


def _holds(data: TrainingColumns, relation: Relation) -> np.ndarray:
    pieces = range(0, data.n_rows, ROWS_PER_PIECE)
    held = [
        relation.holds(data.frame(relation.features, slice(start, start + ROWS_PER_PIECE)))
        for start in pieces
    ]
    return np.concatenate(held)


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
