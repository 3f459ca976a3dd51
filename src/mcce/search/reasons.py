"""Why people have no answer, in sentences that need no statistics.

Most reasons name what excludes the rows that the predictor accepts or, as far as can be predicted,
would accept. If there is an answer once a bound or constraint is lifted, ``relaxing.py`` adds that
to the text, and the reason becomes one of that kind.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..constraints.constraint import Constraint
from ..constraints.of_rows import MaxChanges
from ..counterfactuals.parts import Reason, ReasonKind
from ..postprocess.filters import (
    HasKnownPairs,
    IsPlausible,
    IsWithinBound,
    ObeysConstraint,
    RowFilter,
)
from ..predictors.decision import Decision, Interval

NO_DESIRED = Reason("no_desired", "No training row has the desired decision.")
NOTHING_TO_CHANGE = Reason(
    "ruled_out",
    "There is nothing to change: every column is fixed, follows from others, or has no other "
    "allowed value in the training data.",
)
# What reasons add to the names of checks, by kind. If checks of several kinds exclude rows, the
# reason is of the kind that comes first here.
KIND_IN_WORDS: dict[ReasonKind, str] = {
    "implausible": " (too unusual)",
    "too_many_changes": " (too many changes)",
    "too_far": " (too far from the person's own values)",
    "ruled_out": "",
}


def reason_of(
    decision: Decision,
    *,
    n_rows: int,
    n_scored: int,
    best_score: float | None,
    excluding: Collection[RowFilter],
    n_accepted: int = 0,
    may_go_on: bool = True,
    must_last: bool = False,
) -> Reason:
    """Why none of a person's rows is an answer.

    ``excluding`` holds the checks that exclude accepted rows, or rows predicted to be accepted. If
    answers ``must_last``, scores are margins that no user knows.
    """
    if not n_rows:
        return NOTHING_TO_CHANGE
    noun = "combination" if n_rows == 1 else "combinations"
    kind: ReasonKind = "unknown"
    sentences = [f"We looked at {n_rows:,} {noun} of values."]
    excluded = "Other promising ones" if n_scored else "Promising ones"
    if n_accepted:
        excluded = f"Those that the predictor accepted ({n_accepted:,})"
    elif best_score is not None:
        is_refused = not must_last and _is_refused(decision, best_score)
        kind = "refused" if is_refused else "unknown"
        sentences.append(_what_was_scored(decision, n_rows, n_scored, must_last=must_last))
        sentences += [] if must_last else _best_score(decision, best_score)
    elif not excluding and may_go_on:
        sentences.append("None of them keeps all constraints and limits of the search.")
    if excluding:
        kinds = {kind_of(check) for check in excluding}
        kind = next((first for first in KIND_IN_WORDS if first in kinds), "ruled_out")
        names = {check.name + KIND_IN_WORDS[kind_of(check)] for check in excluding}
        sentences.append(f"{excluded} are excluded by {', '.join(sorted(names))}.")
    if not may_go_on:
        # With more evaluations, something else might have been found.
        kind = "unknown"
        sentences.append("The limit max_evaluations was reached.")
    return Reason(kind, " ".join(sentences))


def kind_of(excludes: RowFilter | Constraint) -> ReasonKind:
    """The kind of reason for a filter or constraint that excludes rows."""
    if isinstance(excludes, ObeysConstraint):
        excludes = excludes.constraint
    if isinstance(excludes, (IsPlausible, HasKnownPairs)):
        return "implausible"
    if isinstance(excludes, IsWithinBound) and excludes.distance is not None:
        return "too_far"
    return "too_many_changes" if isinstance(excludes, (IsWithinBound, MaxChanges)) else "ruled_out"


def _what_was_scored(decision: Decision, n_rows: int, n_scored: int, *, must_last: bool) -> str:
    """How many rows the predictor scored; it accepted none."""
    margin = f" with margin={decision.min_margin:g}" if decision.min_margin else ""
    margin = " with the required survival" if must_last else margin
    if n_scored == 1:
        scored = "it" if n_rows == 1 else "the most promising one"
        return f"The predictor scored {scored} and did not accept it{margin}."
    scored = "all of them" if n_scored == n_rows else f"the {n_scored:,} most promising"
    return f"The predictor scored {scored} and accepted none{margin}."


def _is_refused(decision: Decision, best_score: float) -> bool:
    """Whether the predictor accepts nothing, and would not with a smaller margin either."""
    if not decision.min_margin:
        return True
    desired = decision.desired
    return isinstance(desired, Interval) and not desired.contains(np.array([best_score])).any()


def _best_score(decision: Decision, score: float) -> list[str]:
    """The best score, and which would be enough; nothing for labels."""
    desired, bounds = decision.desired, decision.score_bounds
    if not isinstance(desired, Interval) or bounds is None:
        return []
    low, high = bounds
    # With a margin, the ends themselves are enough, whether or not the interval is open.
    closed = "both" if decision.min_margin else desired.closed
    if score <= low:
        needed, bound = "at least" if closed in ("both", "left") else "more than", low
    elif score >= high:
        needed, bound = "at most" if closed in ("both", "right") else "less than", high
    else:
        return []
    # Four decimals, or as many as it takes to show that they differ.
    for n_decimals in range(4, 18):
        shown = np.format_float_positional(score, n_decimals, trim="-")
        enough = np.format_float_positional(bound, n_decimals, trim="-")
        if shown != enough:
            break
    return [f"The best score was {shown}; {needed} {enough} is needed."]
