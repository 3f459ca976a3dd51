"""Why people have no answer in a pool, and which of their rows came nearest.

Beyond the paper. The surrogate predicts which of a person's rows would be valid; what excludes
these, apart from the predictor, is named.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..candidates import MeasuredRows
from ..counterfactuals.people import Reason, ReasonKind
from ..kernels import IntArray
from ..predictors.decision import Decision, Interval
from .pool import DECIMALS, LIKELY, Pool, best_of_each
from .reasons import Exclusion, exclusion_of, kind_of


class Tried(NamedTuple):
    """What was tried for a person, what excluded promising rows, and if there are tries left."""

    n_rows: int
    n_scored: int
    closest: float | None
    excluded: set[Exclusion]
    goes_on: bool


def reasons_and_misses(
    pool: Pool, person: IntArray, n_tried: IntArray
) -> tuple[MeasuredRows, dict[int, Reason]]:
    """Why people have no answer in a pool, and which of their rows came nearest."""
    decision = pool.task.decision
    exclusions = [exclusion_of(check) for check in pool.rules.row_rules.checks]
    rows = np.flatnonzero(np.isin(pool.person, person) & (pool.sparsity > 0))
    n_rows = np.bincount(pool.person[rows], minlength=pool.positions.size)
    scored = rows[pool.scored[rows]]
    shortfall = decision.shortfall(pool.score[scored]).round(DECIMALS)
    misses = scored[best_of_each(pool.person[scored], shortfall, scored)]
    closest = dict(zip(pool.person[misses].tolist(), pool.score[misses].tolist(), strict=True))
    # What the surrogate predicts to be valid tells what stands in the way.
    likely = rows[(pool.chance(rows) >= LIKELY) & ~pool.scored[rows]]
    likely = likely[~pool.may_return(likely)]
    excluded: dict[int, set[Exclusion]] = {whom: set() for whom in person.tolist()}
    for whom, number in zip(pool.person[likely], pool.excluded_by[likely], strict=True):
        excluded[int(whom)].add(exclusions[number - 1])
    reasons = {}
    for whom, goes_on in zip(person.tolist(), pool.may_score(person).tolist(), strict=True):
        counts = int(n_rows[whom]), int(n_tried[whom])
        tried = Tried(*counts, closest.get(whom), excluded[whom], goes_on)
        reasons[int(pool.positions[whom])] = _pool_reason(decision, tried)
    return pool.measured(misses, np.zeros_like(misses)), reasons


def _pool_reason(decision: Decision, tried: Tried) -> Reason:
    """Why none of the rows that were looked at is an answer."""
    if not tried.n_rows:
        return Reason("ruled_out", "The constraints leave nothing that may change.")
    text = f"We looked at {tried.n_rows:,} combinations of changes. "
    n_scored = tried.n_scored
    if n_scored:
        many = f"The predictor scored the {n_scored} most promising and accepted none. "
        one = "The predictor scored the most promising one and did not accept it. "
        text += one if n_scored == 1 else many
    if tried.closest is not None:
        text += _closest(decision, tried.closest)
    kind: ReasonKind = "refused" if n_scored else "unknown"
    if tried.excluded:
        names = sorted({one.name for one in tried.excluded})
        kind = kind_of(tried.excluded)
        text += f"Other promising rows are excluded by {', '.join(names)}. "
    if not tried.goes_on:
        # With more evaluations, something else might have been found.
        kind, text = "unknown", text + "The limit max_evaluations was reached. "
    return Reason(kind, text.strip())


def _closest(decision: Decision, score: float) -> str:
    """How near the best score came."""
    desired = decision.desired
    if not isinstance(desired, Interval):
        return ""
    low, high = desired.low + decision.min_margin, desired.high - decision.min_margin
    if score < low:
        return f"The closest reached {score:.4g} of the {low:.4g} needed. "
    return f"The closest reached {score:.4g}, where at most {high:.4g} would do. "
