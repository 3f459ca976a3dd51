"""Why people have no answer: the kinds of reasons, and what they name.

Most reasons name what excludes the rows that the predictor accepts, or would. If lifting something
gives an answer, that says best what stood in the way, and its kind becomes that of the reason.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..constraints.constraint import Constraint
from ..constraints.kinds import MaxChanges
from ..counterfactuals.people import Reason, ReasonKind
from ..postprocess.filters import Bound, IsPlausible, ObeysConstraint, RowFilter
from ..predictors.decision import Decision, Interval

STOPPED = Reason("stopped", "The search was stopped before an answer was found.")
UNSTABLE = Reason(
    "unknown",
    "The predictor is unstable: it accepted rows during the search, but refused each of them in "
    "the final call.",
)
NO_DESIRED = Reason("no_desired", "No training row has the desired decision.")
# What a limit of a search makes of the reason of those whose rows it excludes.
KINDS: dict[str, ReasonKind] = {
    "min_plausibility": "implausible",
    "max_sparsity": "too_many_changes",
    "max_distance": "too_far",
    "copies": "ruled_out",
}


def is_refused(decision: Decision, best: float) -> bool:
    """Whether a best score shows that the predictor accepts nothing, whatever margin is required.

    Without a margin it does: it is that of somebody without an answer.
    """
    if not decision.min_margin:
        return True
    desired = decision.desired
    return isinstance(desired, Interval) and not desired.contains(np.array([best])).any()


def kind_of_filter(excludes: RowFilter) -> ReasonKind:
    """The kind of reason that a filter makes."""
    if isinstance(excludes, Bound):
        return KINDS[excludes.parameter]
    if isinstance(excludes, IsPlausible):
        return "implausible"
    if isinstance(excludes, ObeysConstraint):
        return kind_of_constraint(excludes.constraint)
    return "ruled_out"


def kind_of_constraint(constraint: Constraint) -> ReasonKind:
    """The kind of reason that a constraint makes."""
    return "too_many_changes" if isinstance(constraint, MaxChanges) else "ruled_out"


def kind_of_filters(excluding: Collection[RowFilter]) -> ReasonKind:
    """The kind of reason that several filters make; plausibility goes first."""
    kinds = {kind_of_filter(one) for one in excluding}
    return next(kind for kind in KINDS.values() if kind in kinds)
