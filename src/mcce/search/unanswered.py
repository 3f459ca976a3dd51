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
from ..postprocess.filters import RowFilter
from ..predictors.decision import Decision, Interval
from .pool import DECIMALS, LIKELY, Pool, best_of_each
from .reasons import is_refused, kind_of_filter, kind_of_filters

# Why rows are excluded, in plain words, beside the name of what excludes them.
IN_WORDS: dict[ReasonKind, str] = {
    "implausible": " (too unusual)",
    "too_many_changes": " (too many changes)",
    "too_far": " (too far from the person's own values)",
}


class Tried(NamedTuple):
    """What was tried for a person, what excluded promising rows, and whether more may be tried."""

    n_rows: int
    n_scored: int
    n_withdrawn: int
    best: float | None
    excluding: set[RowFilter]
    goes_on: bool


def reasons_and_misses(
    pool: Pool, person: IntArray, n_scored: IntArray
) -> tuple[MeasuredRows, dict[int, Reason]]:
    """Why people have no answer in a pool, and which of their rows came nearest."""
    decision = pool.task.decision
    rows = np.flatnonzero(np.isin(pool.person, person) & (pool.sparsity > 0))
    scored = rows[pool.scored[rows]]
    shortfall = decision.shortfall(pool.score[scored]).round(DECIMALS)
    misses = scored[best_of_each(pool.person[scored], shortfall, scored)]
    best = dict(zip(pool.person[misses].tolist(), pool.score[misses].tolist(), strict=True))
    excluding = _excluding(pool, rows, person)
    n_rows, n_withdrawn = (
        np.bincount(pool.person[some], minlength=pool.positions.size).tolist()
        for some in (rows, _withdrawn(pool, scored))
    )
    constrained = bool(pool.task.request.constraints.limiting)
    reasons = {}
    for whom, goes_on in zip(person.tolist(), pool.may_score(person).tolist(), strict=True):
        counts = n_rows[whom], int(n_scored[whom]), n_withdrawn[whom]
        tried = Tried(*counts, best.get(whom), excluding[whom], goes_on)
        reason = _pool_reason(decision, tried) if tried.n_rows else _nothing_to_change(constrained)
        reasons[int(pool.positions[whom])] = reason
    return pool.measured(misses, np.zeros_like(misses)), reasons


def _excluding(pool: Pool, rows: IntArray, person: IntArray) -> dict[int, set[RowFilter]]:
    """What excludes the promising rows of each person."""
    checks = pool.rules.row_rules.checks
    likely = rows[(pool.chance(rows) >= LIKELY) & ~pool.scored[rows]]
    likely = likely[~pool.may_return(likely)]
    excluding: dict[int, set[RowFilter]] = {whom: set() for whom in person.tolist()}
    for whom, number in zip(pool.person[likely], pool.excluded_by[likely], strict=True):
        excluding[int(whom)].add(checks[number - 1])
    return excluding


def _withdrawn(pool: Pool, scored: IntArray) -> IntArray:
    """Rows that the predictor accepted first and refused in the final call."""
    owner = pool.positions[pool.person[scored]].astype(np.int32)
    keys = np.concatenate([owner[None], pool.actions(scored)]).T
    return scored[pool.task.scores.are_withdrawn(keys)]


def _nothing_to_change(constrained: bool) -> Reason:
    """Why there is no row at all."""
    if constrained:
        text = "The constraints and the values in the training data leave nothing that may change."
    else:
        text = (
            "There is nothing to change: in the training data, each column that may change has "
            "no other value, or follows from others."
        )
    return Reason("ruled_out", text)


def _pool_reason(decision: Decision, tried: Tried) -> Reason:
    """Why none of the rows that were looked at is an answer."""
    noun = "combination" if tried.n_rows == 1 else "combinations"
    sentences = [f"We looked at {tried.n_rows:,} {noun} of changes."]
    kind: ReasonKind = "unknown"
    if tried.best is not None:
        sentences += _what_the_predictor_said(decision, tried, tried.best)
        if not tried.n_withdrawn and is_refused(decision, tried.best):
            kind = "refused"
    elif not tried.excluding and tried.goes_on:
        sentences.append("None of them keeps all constraints and limits of the search.")
    if tried.excluding:
        kind = kind_of_filters(tried.excluding)
        named = sorted(
            {one.name + IN_WORDS.get(kind_of_filter(one), "") for one in tried.excluding}
        )
        promising = "Other promising ones" if tried.n_scored else "Promising ones"
        sentences.append(f"{promising} are excluded by {', '.join(named)}.")
    if not tried.goes_on:
        # With more evaluations, something else might have been found.
        kind = "unknown"
        sentences.append("The limit max_evaluations was reached.")
    return Reason(kind, " ".join(sentences))


def _what_the_predictor_said(decision: Decision, tried: Tried, best: float) -> list[str]:
    """How many rows the predictor scored, whether it accepted any, and the best score."""
    n_scored, n_withdrawn = tried.n_scored, tried.n_withdrawn
    some = f"the {n_scored:,} most promising" if n_scored < tried.n_rows else "all of them"
    if n_scored == 1:
        some = "the most promising one" if tried.n_rows > 1 else "it"
    if n_withdrawn:
        return [
            f"The predictor scored {some}. It accepted {n_withdrawn:,} at first, but refused "
            f"{'it' if n_withdrawn == 1 else 'them'} in the final call: it is unstable."
        ]
    margin = " by the required margin" if decision.min_margin else ""
    accepted = "did not accept it" if n_scored == 1 else "accepted none"
    said = f"The predictor scored {some} and {accepted}{margin}."
    return [said, *_best_score(decision, best)]


def _best_score(decision: Decision, score: float) -> list[str]:
    """The best score, and which would be enough."""
    desired, bounds = decision.desired, decision.score_bounds
    if not isinstance(desired, Interval) or bounds is None:
        return []
    low, high = bounds
    # With a margin, the ends themselves are enough, whether or not the interval is open.
    low_open = not decision.min_margin and desired.closed in ("right", "neither")
    high_open = not decision.min_margin and desired.closed in ("left", "neither")
    if score < low or (low_open and score == low):
        needed, bound = "more than" if low_open else "at least", low
    elif score > high or (high_open and score == high):
        needed, bound = "less than" if high_open else "at most", high
    else:
        return []
    margin = f", with margin={decision.min_margin:g}" if decision.min_margin else ""
    shown, least = _told_apart(score, bound)
    return [f"The best score was {shown}; {needed} {least} is needed{margin}."]


def _told_apart(one: float, other: float) -> tuple[str, str]:
    """Two numbers with four digits, or as many as it takes to show that they differ."""
    texts = [(f"{one:.{digits}g}", f"{other:.{digits}g}") for digits in range(4, 18)]
    return next((pair for pair in texts if pair[0] != pair[1]), texts[0])
