"""Why people have no answer: the kinds of reasons, and what they name.

Most reasons name what excludes the rows that the predictor accepts, or would. If lifting something
gives an answer, that says best what stood in the way, and its kind becomes that of the reason.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ..constraints.constraint import Constraint
from ..constraints.kinds import MaxChanges
from ..counterfactuals.people import Reason, ReasonKind
from ..postprocess.filters import Bound, IsPlausible, ObeysConstraint, RowFilter

STOPPED = Reason("stopped", "The search was stopped before an answer was found.")
UNSTABLE = Reason(
    "unknown", "The predictor accepted rows at first, and refused each of them in the final call."
)
NO_DESIRED = Reason("no_desired", "No training row has the desired decision.")
BOUND_KINDS: dict[str, ReasonKind] = {"max_sparsity": "too_many_changes", "max_distance": "too_far"}


class Exclusion(NamedTuple):
    """What excludes rows from the answers, and the kind of reason that it makes."""

    kind: ReasonKind
    name: str


def exclusion_of(keep: RowFilter) -> Exclusion:
    """What a filter excludes by."""
    if isinstance(keep, Bound):
        return Exclusion(BOUND_KINDS[keep.parameter], keep.name)
    if isinstance(keep, IsPlausible):
        return Exclusion("implausible", keep.name)
    if isinstance(keep, ObeysConstraint):
        return Exclusion(constraint_kind(keep.constraint), keep.name)
    return Exclusion("ruled_out", keep.name)


def constraint_kind(constraint: Constraint) -> ReasonKind:
    """The kind of reason that a constraint makes."""
    return "too_many_changes" if isinstance(constraint, MaxChanges) else "ruled_out"


def kind_of(excluded: Collection[Exclusion]) -> ReasonKind:
    """The kind of a reason that several exclusions make; plausibility goes first."""
    kinds = {one.kind for one in excluded}
    first = "implausible", *BOUND_KINDS.values()
    return next((kind for kind in first if kind in kinds), "ruled_out")
