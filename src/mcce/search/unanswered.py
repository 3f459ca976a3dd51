"""Why people have no answer in a pool, and which of their rows came nearest.

Beyond the paper. The surrogate predicts which of a person's rows would be valid; what excludes
these, apart from the predictor, is named.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..candidates import MeasuredRows
from ..counterfactuals.people import Reason, ReasonKind
from ..kernels import IntArray
from ..predictors.decision import Decision, Interval
from .pool import Pool
from .reasons import Exclusion, kind_of


def explain_pool(
    pool: Pool, person: IntArray, n_tried: IntArray
) -> tuple[MeasuredRows, dict[int, Reason]]:
    """Why people have no answer in a pool, and which of their rows came nearest."""
    reasons, nearest = {}, list[int]()
    exclusions, decision = pool.rules.exclusions, pool.task.decision
    of_them = np.flatnonzero(np.isin(pool.person, person) & (pool.sparsity > 0))
    for whom in person.tolist():
        rows = of_them[pool.person[of_them] == whom]
        scored = rows[pool.scored[rows]]
        miss = None
        if scored.size:
            shortfall = decision.shortfall(pool.score[scored]).round(10)
            miss = int(scored[np.lexsort((scored, shortfall))[0]])
            nearest.append(miss)
        # What the surrogate predicts to be valid tells what stands in the way.
        likely = rows[(pool.chance(rows) >= 0.5) & ~pool.scored[rows]]
        pool.may_return(likely)
        by = [number for number in pool.excluded_by[likely].tolist() if number > 0]
        excluded = {exclusions[number - 1] for number in by}
        score = None if miss is None else float(pool.score[miss])
        reasons[int(pool.positions[whom])] = _pool_reason(
            decision,
            rows.size,
            int(n_tried[whom]),
            score,
            excluded,
            bool(pool.may_score(person[person == whom]).all()),
        )
    misses = np.array(nearest, dtype=np.int64)
    return pool.measured(misses, np.zeros_like(misses)), reasons


def _pool_reason(
    decision: Decision,
    n_rows: int,
    n_scored: int,
    score: float | None,
    excluded: Collection[Exclusion],
    goes_on: bool,
) -> Reason:
    """Why none of the rows that were looked at is an answer."""
    if not n_rows:
        return Reason("ruled_out", "The constraints leave nothing that may change.")
    text = f"We looked at {n_rows:,} combinations of changes. "
    if n_scored:
        counted = "the most promising one" if n_scored == 1 else f"the {n_scored} most promising"
        text += f"The predictor scored {counted} and accepted none. "
    if score is not None:
        text += _closest(decision, score)
    kind: ReasonKind = "refused" if n_scored else "unknown"
    if excluded:
        names = sorted({one.name for one in excluded})
        kind = kind_of(excluded)
        text += f"Others that it may accept are excluded by {', '.join(names)}. "
    if not goes_on:
        # With more evaluations, something else might have been found.
        kind, text = "unknown", text + "No more rows may be scored, by max_evaluations. "
    return Reason(kind, text.strip())


def _closest(decision: Decision, score: float) -> str:
    """How near the best score came."""
    desired = decision.desired
    if not isinstance(desired, Interval):
        return ""
    low, high = desired.low + decision.min_margin, desired.high - decision.min_margin
    needed = low if score < low else high
    return f"The closest reached {score:.4g} of the {needed:.4g} needed. "
