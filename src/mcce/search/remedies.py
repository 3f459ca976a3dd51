"""What to lift so that people without an answer get one, found by searching without it.

Beyond the paper. Takes the outcome of a search with targets. For each person without an answer,
a short search is run without one thing at a time: the required plausibility, a bound, or a
constraint. The first that gives an answer is added to the reason. Where only plausibility is in the
way, the best such row is the nearest miss.

Always true: a person's remedy depends on no other person; few rows of a person are scored for it,
and none where ``max_evaluations`` bounds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from ..candidates import MeasuredRows
from ..constraints.collection import Constraints
from ..counterfactuals.people import Reason, ReasonKind
from ..fitted import Fitted
from ..kernels import IntArray
from ..tables.schema import EncodedRows
from .config import ExactSearch, Search
from .direct import MAX_ROWS_FEWER
from .plan import SearchRequest, find_answers
from .reasons import BOUND_KINDS, constraint_kind, with_remedy
from .stage import SearchOutcome

# Draws of a short search, and the most constraints that are lifted in turn.
N_SAMPLES, MAX_LIFTED = 100, 8
# Parameters of a search that exclude rows, and what lifts each.
BOUNDS: dict[str, Any] = {
    "max_sparsity": None,
    "max_distance": None,
    "margin": 0.0,
    "copies": "allow",
}

AnySearch: TypeAlias = Search | ExactSearch
ShortSearch = Callable[[AnySearch, Constraints, IntArray], SearchOutcome]


def name_remedies(request: SearchRequest, outcome: SearchOutcome) -> SearchOutcome:
    """The outcome with reasons that name what would help."""
    fitted, settings, constraints = request.fitted, request.settings, request.constraints
    full = settings.search.sampling
    if outcome.stopped or not fitted.n_desired or full.max_evaluations is not None:
        return outcome
    n_samples = min(N_SAMPLES, settings.n_samples or full.n_samples)
    short = replace(full, n_samples=n_samples, max_samples=n_samples)
    one = replace(settings, n_samples=None, n_counterfactuals=1, diversity=None)
    brief = replace(request, scored=None, max_direct_rows=MAX_ROWS_FEWER)

    def run(tried: AnySearch, rules: Constraints, positions: IntArray) -> SearchOutcome:
        relaxed = replace(brief, settings=replace(one, search=tried), constraints=rules)
        return find_answers(replace(relaxed, positions=positions))

    reasons, misses, n_evaluated = dict(outcome.reasons), outcome.misses, outcome.n_evaluated
    positions = np.array(sorted(reasons), dtype=np.int64)
    if full.min_plausibility > 0 and not full.allow_implausible:
        implausible, helps = _less_plausible(fitted, short, constraints, positions, run)
        misses = _nearest(request.factuals, misses, implausible.answers)
        reasons |= _with_remedies(reasons, helps, "implausible")
        positions = positions[~np.isin(positions, sorted(helps))]
        n_evaluated += implausible.n_evaluated
    for relaxation in lift_each(short, constraints, MAX_LIFTED):
        if positions.size:
            lifted = run(relaxation.search, relaxation.constraints, positions)
            named = f"the constraint {relaxation.name!r}"
            if relaxation.kind == "bound":
                named = f"{relaxation.name}={getattr(short, relaxation.name)!r}"
            helps = dict.fromkeys(lifted.answers.owner.tolist(), f"lifting {named}")
            reasons |= _with_remedies(reasons, helps, relaxation.reason_kind)
            positions = positions[~np.isin(positions, sorted(helps))]
            n_evaluated += lifted.n_evaluated
    return replace(outcome, reasons=reasons, misses=misses, n_evaluated=n_evaluated)


def _less_plausible(
    fitted: Fitted, short: Search, constraints: Constraints, positions: IntArray, run: ShortSearch
) -> tuple[SearchOutcome, dict[int, str]]:
    """The best rows that are not plausible enough, and which smaller value was tried and helps."""
    outcome = run(replace(short, min_plausibility=0.0), constraints, positions)
    found, n_evaluated = outcome.answers, outcome.n_evaluated
    helps = dict.fromkeys(found.owner.tolist(), "allow_implausible=True")
    assert fitted.plausibility is not None
    reached = fitted.plausibility.measures(found.rows)["plausibility"]
    values = np.array([_rounded_down(value) for value in reached])
    for value in np.unique(values[values > 0]):
        theirs = found.owner[values == value]
        again = run(replace(short, min_plausibility=value), constraints, theirs)
        helps |= dict.fromkeys(again.answers.owner.tolist(), f"min_plausibility={value:g}")
        n_evaluated += again.n_evaluated
    return replace(outcome, n_evaluated=n_evaluated), helps


def _rounded_down(value: float) -> float:
    """A share to one digit, rounded down."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(value))
    return float(f"{math.floor(value / unit * (1 + 1e-12)) * unit:.1g}")


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A bound or a constraint that may be in the way, and the search without it."""

    kind: Literal["bound", "constraint"]
    name: str
    search: AnySearch
    constraints: Constraints
    reason_kind: ReasonKind


def lift_each(
    search: AnySearch, constraints: Constraints, max_constraints: int | None = None
) -> Iterator[Relaxation]:
    """A search without each of its bounds and constraints that may be in the way."""
    for name, free in BOUNDS.items():
        # Copies that come last exclude no answer.
        if getattr(search, name) not in (free, "last"):
            changes: dict[str, Any] = {name: free}
            why = BOUND_KINDS.get(name, "unknown")
            yield Relaxation("bound", name, replace(search, **changes), constraints, why)
    for constraint in constraints.limiting[:max_constraints]:
        rest, why = constraints.without(constraint), constraint_kind(constraint)
        yield Relaxation("constraint", constraint.name, search, rest, why)


def _with_remedies(
    reasons: Mapping[int, Reason], helps: Mapping[int, str], kind: ReasonKind
) -> dict[int, Reason]:
    """The reasons of people who would have an answer, with what helps."""
    return {person: with_remedy(reasons[person], kind, what) for person, what in helps.items()}


def _nearest(factuals: EncodedRows, misses: MeasuredRows, found: MeasuredRows) -> MeasuredRows:
    """The nearest misses, with rows that are only not plausible enough in the first place."""
    others = misses.take(~np.isin(misses.owner, found.owner))
    return MeasuredRows.concat(factuals, [others, replace(found, rank=np.zeros_like(found.rank))])
