"""What visited rows cost their people: changes and distances."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..candidates import Candidates
from ..distances import is_plain_gower
from ..kernels import Codes, FloatArray, IntArray, differences
from ..postprocess.ranking import Ranking
from ..tables.schema import OWN
from .values import GrowingTables


@dataclass(frozen=True, eq=False)
class RowCosts:
    """What rows cost their people, shape (n_rows,) each."""

    sparsity: IntArray
    n_actions: IntArray
    gower: FloatArray
    distance: FloatArray


def row_costs(block: Candidates, ranking: Ranking, recomputed: list[int]) -> RowCosts:
    """What each person's only candidate costs."""
    n_people = block.people.size
    sparsity, n_consequences = np.zeros((2, n_people), dtype=np.int64)
    total = np.zeros(n_people)
    for feature in block.comparison.changed_features:
        numeric = block.comparison.numbers[feature] is not None
        differs, gaps = differences(block.comparison, feature)
        changed, gap = differs[:, 0], gaps[:, 0]
        if feature in recomputed:
            n_consequences += changed
        counts = changed & (gap > ranking.tolerance) if ranking.tolerance and numeric else changed
        sparsity += counts
        total += gap
    gower = total / block.comparison.n_features
    measure = ranking.distance
    distance = gower if is_plain_gower(measure) else measure(block)[:, 0]
    return RowCosts(sparsity, sparsity - n_consequences, gower, distance)


def as_block(
    candidates: Candidates, values: GrowingTables, cells: Codes, person: IntArray, place: IntArray
) -> Candidates:
    """Visited rows as candidates of people."""
    whose = np.empty(int(person.max(initial=-1)) + 1, dtype=np.int64)
    whose[person] = cells[:, 0]
    own = candidates.comparison.own_codes[:, whose]
    codes = np.repeat(own[:, :, None], int(place.max(initial=0)) + 1, axis=2)
    changed = cells[:, 1:].T
    codes[:, person, place] = np.where(changed == OWN, own[:, person], changed)
    known = candidates.comparison.numbers
    comparison = replace(
        candidates.comparison.of(whose),
        codes=codes,
        numbers=[None if own is None else values.numbers(at) for at, own in enumerate(known)],
        group=np.arange(whose.size),
    )
    return replace(
        candidates,
        tables=values.tables,
        people=candidates.people[whose],
        comparison=comparison,
        draws=np.arange(codes.shape[2]),
        distinct=np.ones(codes.shape[1:], dtype=bool),
    )
