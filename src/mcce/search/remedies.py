"""What to lift so that people without an answer get one, found by searching without it.

Beyond the paper. Takes the outcome of a search with targets. For everybody without an answer a
short search is run without one thing at a time: the required plausibility, a bound, or a
constraint. The first that gives an answer is added to the reason. Where only plausibility is in the
way, the best such row is the nearest miss.

Always true: nobody's remedy depends on anybody else; a person has few rows scored for it, and none
where ``max_evaluations`` bounds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from ..constraints.collection import Constraints
from ..counterfactuals.people import Reason, ReasonKind
from ..fitted import Fitted
from ..kernels import IntArray
from ..postprocess.validation import Answers
from ..tables.schema import EncodedRows
from .config import ExactSearch, Search
from .direct import MAX_ROWS_FEWER
from .plan import SearchRequest, search
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
ShortSearch = Callable[[AnySearch, Constraints, IntArray], Answers]


def name_remedies(request: SearchRequest, outcome: SearchOutcome) -> SearchOutcome:
    """The outcome with reasons that name what would help."""
    fitted, settings, constraints = request.fitted, request.settings, request.constraints
    full = settings.search
    assert isinstance(full, Search)
    if outcome.stopped or not fitted.n_desired or full.max_evaluations is not None:
        return outcome
    n_samples = min(N_SAMPLES, settings.n_samples or full.n_samples)
    short = replace(full, n_samples=n_samples, max_samples=n_samples)
    one = replace(settings, n_samples=None, n_counterfactuals=1, diversity=None)
    brief = replace(request, scored=None, max_direct_rows=MAX_ROWS_FEWER)
    n_evaluated = outcome.n_evaluated

    def run(tried: AnySearch, rules: Constraints, people: IntArray) -> Answers:
        nonlocal n_evaluated
        relaxed = replace(one, search=tried)
        short_outcome = search(replace(brief, settings=relaxed, constraints=rules, people=people))
        n_evaluated += short_outcome.n_evaluated
        return short_outcome.answers

    reasons, misses = dict(outcome.reasons), outcome.misses
    people = np.array(sorted(reasons), dtype=np.int64)
    if full.min_plausibility > 0 and not full.allow_implausible:
        implausible, helps = _less_plausible(fitted, short, constraints, people, run)
        misses = _nearest(request.factuals, misses, implausible)
        people = _add_remedies(reasons, people, helps, "implausible")
    for relaxation in lift_each(short, constraints, MAX_LIFTED):
        if people.size:
            owner = run(relaxation.search, relaxation.constraints, people).owner
            named = f"the constraint {relaxation.name!r}"
            if relaxation.kind == "bound":
                named = f"{relaxation.name}={getattr(short, relaxation.name)!r}"
            helps = dict.fromkeys(owner.tolist(), f"lifting {named}")
            people = _add_remedies(reasons, people, helps, relaxation.reason_kind)
    return replace(outcome, reasons=reasons, misses=misses, n_evaluated=n_evaluated)


def _less_plausible(
    fitted: Fitted, short: Search, constraints: Constraints, people: IntArray, run: ShortSearch
) -> tuple[Answers, dict[int, str]]:
    """The best rows that are not plausible enough, and which smaller value was tried and helps."""
    free = replace(short, min_plausibility=0.0)
    found = run(free, constraints, people)
    helps = dict.fromkeys(found.owner.tolist(), "allow_implausible=True")
    assert fitted.plausibility is not None
    reached = fitted.plausibility.measures(found.rows)["plausibility"]
    values = np.array([_rounded_down(value) for value in reached])
    for value in np.unique(values[values > 0]):
        theirs = found.owner[values == value]
        again = run(replace(short, min_plausibility=value), constraints, theirs).owner
        helps |= dict.fromkeys(again.tolist(), f"min_plausibility={value:g}")
    return found, helps


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
        # Copies that come last keep nobody from an answer.
        if getattr(search, name) not in (free, "last"):
            changes: dict[str, Any] = {name: free}
            why = BOUND_KINDS.get(name, "unknown")
            yield Relaxation("bound", name, replace(search, **changes), constraints, why)
    for constraint in constraints.limiting[:max_constraints]:
        rest, why = constraints.without(constraint), constraint_kind(constraint)
        yield Relaxation("constraint", constraint.name, search, rest, why)


def _add_remedies(
    reasons: dict[int, Reason], people: IntArray, helps: dict[int, str], kind: ReasonKind
) -> IntArray:
    """Add what helps to people's reasons; gives those whom nothing has helped yet."""
    for person, remedy in helps.items():
        reasons[person] = with_remedy(reasons[person], kind, remedy)
    return people[~np.isin(people, sorted(helps))]


def _nearest(factuals: EncodedRows, misses: Answers, found: Answers) -> Answers:
    """The nearest misses, with rows that are only not plausible enough in the first place."""
    others = misses.take(~np.isin(misses.owner, found.owner))
    return Answers.concat(factuals, [others, replace(found, rank=np.zeros_like(found.rank))])
