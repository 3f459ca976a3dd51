"""What to relax so that people without an answer get one, found by searching without it.

Beyond the paper. A bound, a constraint or the required plausibility is left out, one at a time, and
the same search is run. ``MCCE.relax`` lists what helps whom; after ``explain``, a brief search
adds to the reason of each person the first thing that does.

Always true: what helps a person depends on no other person.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from ..candidates import MeasuredRows
from ..counterfactuals.people import Reason, ReasonKind
from ..fitted import Fitted
from ..kernels import IntArray
from ..tables.schema import EncodedRows
from .plan import find_answers
from .reasons import kind_of
from .stage import SearchOutcome, SearchRequest

# Draws of a brief search, and the most constraints that it lifts in turn.
N_BRIEF_SAMPLES, MAX_LIFTED = 100, 8
# Parameters of a search that exclude rows, and the value that lifts each.
BOUNDS: dict[str, Any] = {
    "min_plausibility": 0.0,
    "max_sparsity": None,
    "max_distance": None,
    "margin": 0.0,
    "copies": "allow",
}
# The kind of reason that each makes. A smaller margin is enough for the predictor, so that it did
# not refuse everything.
KINDS: dict[str, ReasonKind] = {
    "min_plausibility": "implausible",
    "max_sparsity": "too_many_changes",
    "max_distance": "too_far",
    "margin": "unknown",
    "copies": "ruled_out",
}


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Something that may be in the way, and what people at some positions get without it."""

    kind: Literal["bound", "constraint", "immutable"]
    name: str
    answers: Callable[[IntArray], SearchOutcome]
    # How a reason names it, and the kind of the reason if lifting it gives an answer.
    in_words: str = ""
    reason_kind: ReasonKind = "unknown"


def relaxations(request: SearchRequest, max_constraints: int | None = None) -> Iterator[Relaxation]:
    """A search without each of its bounds and constraints that may be in the way."""
    search, constraints = request.settings.search, request.constraints
    for name, free in BOUNDS.items():
        # Copies that come last exclude no answer.
        if getattr(search, name, free) not in (free, "last"):
            changes: dict[str, Any] = {name: free}
            settings = replace(request.settings, search=replace(search, **changes))
            answers = partial(_answers, replace(request, settings=settings))
            in_words = f"{name}={getattr(search, name)!r}"
            yield Relaxation("bound", name, answers, in_words, KINDS[name])
    for constraint in constraints.limiting[:max_constraints]:
        answers = partial(_answers, replace(request, constraints=constraints.without(constraint)))
        in_words = f"the constraint {constraint.name!r}"
        kind = kind_of(constraint)
        yield Relaxation("constraint", constraint.name, answers, in_words, kind)


def _answers(request: SearchRequest, positions: IntArray) -> SearchOutcome:
    return find_answers(replace(request, positions=positions))


def add_remedies(request: SearchRequest, outcome: SearchOutcome) -> SearchOutcome:
    """The outcome with reasons that name what would help.

    Where only the required plausibility is in the way, the best such row is the nearest miss.
    """
    settings, search = request.settings, request.settings.search.fallback
    if outcome.stopped or not request.fitted.n_desired or search.max_evaluations is not None:
        return outcome
    n_samples = min(N_BRIEF_SAMPLES, settings.n_samples or N_BRIEF_SAMPLES)
    short = replace(search, max_samples=n_samples)
    one = replace(settings, search=short, n_samples=n_samples, n_counterfactuals=1, diversity=None)
    brief = replace(request, settings=one, effort="brief")
    started = time.perf_counter()
    reasons, misses, n_evaluated = dict(outcome.reasons), outcome.misses, outcome.n_evaluated
    positions = np.array(sorted(reasons), dtype=np.int64)
    for relaxation in relaxations(brief, MAX_LIFTED):
        if not positions.size or time.monotonic() >= request.deadline:
            break
        lifted = relaxation.answers(positions)
        n_evaluated += lifted.n_evaluated
        found, remedies = lifted.answers, _remedies(request.fitted, relaxation, lifted.answers)
        for person, remedy in zip(found.owner.tolist(), remedies, strict=True):
            text = f"{reasons[person].text} {remedy} there would be an answer."
            reasons[person] = Reason(relaxation.reason_kind, text)
        if relaxation.reason_kind == "implausible":
            misses = _nearest(request.factuals, misses, found)
        positions = np.setdiff1d(positions, found.owner)
        if lifted.stopped:
            break
    explained = replace(outcome, reasons=reasons, misses=misses, n_evaluated=n_evaluated)
    return explained.with_seconds({"remedies": time.perf_counter() - started})


def _remedies(fitted: Fitted, relaxation: Relaxation, found: MeasuredRows) -> list[str]:
    """What led to each answer, in words."""
    if relaxation.reason_kind != "implausible":
        return [f"Without {relaxation.in_words}"] * found.owner.size
    assert fitted.plausibility is not None
    reached = fitted.plausibility.measures(found.rows)["plausibility"].tolist()
    return [f"With min_plausibility={_rounded_down(value):g}" for value in reached]


def _rounded_down(value: float) -> float:
    """A share to one digit, rounded down."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(value))
    return float(f"{math.floor(value / unit * (1 + 1e-12)) * unit:.1g}")


def _nearest(factuals: EncodedRows, misses: MeasuredRows, found: MeasuredRows) -> MeasuredRows:
    """The nearest misses, preferring rows that fail on plausibility alone."""
    others = misses.take(~np.isin(misses.owner, found.owner))
    return MeasuredRows.concat(factuals, [others, replace(found, rank=np.zeros_like(found.rank))])
