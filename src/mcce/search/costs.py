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
    """What rows cost their people, shape (n_rows,) each.

    Parameters
    ----------
    sparsity
        Changed features.
    n_actions
        Those of them that do not follow from others.
    gower, distance
        The Gower distance, and the one of the ranking.
    """

    sparsity: IntArray
    n_actions: IntArray
    gower: FloatArray
    distance: FloatArray


def row_costs(block: Candidates, ranking: Ranking, recomputed: list[int]) -> RowCosts:
    """What each person's only candidate costs.

    Parameters
    ----------
    block
        People with one candidate each.
    ranking
        What counts as a change, and the distance.
    recomputed
        Places of the mutable features that only follow from others.

    Returns
    -------
    RowCosts
        One entry per person.
    """
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
    """Visited rows as candidates of people.

    Parameters
    ----------
    candidates
        The block of people.
    values
        The value of each code.
    cells : (n_rows, 1 + n_mutable)
        Person, as numbered in the block, and codes, ``OWN`` where a cell is the person's own.
    person, place : (n_rows,)
        Person and candidate that each row becomes. Places without a row hold the person's own one.

    Returns
    -------
    Candidates
        Every person is alone in a group.
    """
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
