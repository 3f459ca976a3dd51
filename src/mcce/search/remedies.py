"""What would give people without an answer one; it is tried before it is said.

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
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ..constraints.collection import Constraints
from ..fitted import Fitted
from ..kernels import IntArray
from ..postprocess.answers import Answers
from ..protocols import Callback
from ..tables.schema import EncodedRows
from .config import ExactSearch, Search
from .direct import MAX_ROWS_FEWER
from .plan import Settings, search
from .stage import Outcome

# Draws of a short search, and the most constraints that are lifted in turn.
N_SAMPLES, MAX_LIFTED = 100, 8
# Parameters of a search that exclude rows, and what lifts each.
BOUNDS: dict[str, Any] = {
    "max_sparsity": None,
    "max_distance": None,
    "margin": 0.0,
    "copies": "allow",
}

ShortSearch = Callable[[Search, Constraints, IntArray], Outcome]
AnySearch = TypeVar("AnySearch", bound=Search | ExactSearch)


def name_remedies(
    fitted: Fitted,
    settings: Settings,
    constraints: Constraints,
    factuals: EncodedRows,
    outcome: Outcome,
    callback: Callback,
    ends: float = math.inf,
) -> Outcome:
    """The outcome with reasons that name what would help."""
    given = settings.search
    if not isinstance(given, Search) or not given.n_targets or outcome.stopped:
        return outcome
    if not fitted.n_desired or given.max_evaluations is not None:
        return outcome
    n_samples = min(N_SAMPLES, settings.n_samples or given.n_samples)
    short = replace(given, n_samples=n_samples, max_samples=n_samples)
    whole = replace(
        settings,
        n_samples=None,
        n_counterfactuals=1,
        diversity=None,
        max_direct_rows=MAX_ROWS_FEWER,
    )
    scored = []

    def run(tried: Search, rules: Constraints, people: IntArray) -> Outcome:
        how = replace(whole, search=tried)
        found = search(fitted, how, rules, factuals, people, callback, ends)
        scored.append(found.n_evaluated)
        return found

    reasons, misses = dict(outcome.reasons), outcome.misses
    people = np.array(sorted(reasons), dtype=np.int64)
    if given.min_plausibility > 0 and not given.allow_implausible:
        found, helps = _less_plausible(fitted, short, constraints, people, run)
        misses = _nearest(factuals, misses, found)
        people = _say(reasons, people, helps)
    for words, tried, rules in _lifts(short, constraints):
        if people.size:
            owner = run(tried, rules, people).answers.owner
            people = _say(reasons, people, dict.fromkeys(owner.tolist(), words))
    n_evaluated = outcome.n_evaluated + sum(scored)
    return replace(outcome, reasons=reasons, misses=misses, n_evaluated=n_evaluated)


def _less_plausible(
    fitted: Fitted, short: Search, constraints: Constraints, people: IntArray, run: ShortSearch
) -> tuple[Answers, dict[int, str]]:
    """The best rows that are not plausible enough, and which smaller value was tried and helps."""
    free = replace(short, min_plausibility=0.0)
    found = run(free, constraints, people).answers
    words = dict.fromkeys(found.owner.tolist(), "allow_implausible=True gives one")
    assert fitted.plausibility is not None
    reached = fitted.plausibility.measures(found.rows)["plausibility"]
    values = np.array([_rounded_down(value) for value in reached])
    for value in np.unique(values[values > 0]):
        theirs = found.owner[values == value]
        again = run(replace(short, min_plausibility=value), constraints, theirs).answers.owner
        words |= dict.fromkeys(again.tolist(), f"min_plausibility={value:g} gives one")
    return found, words


def _rounded_down(value: float) -> float:
    """A share to one digit, rounded down."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(value))
    return float(f"{math.floor(value / unit * (1 + 1e-12)) * unit:.1g}")


def _lifts(short: Search, constraints: Constraints) -> Iterator[tuple[str, Search, Constraints]]:
    """What may be in the way, in words, and the search without it."""
    for name, lifted in lift_bounds(short):
        words = f"lifting {name}={getattr(short, name)!r} gives one"
        yield words, lifted, constraints
    for constraint in constraints.limiting[:MAX_LIFTED]:
        words = f"lifting the constraint {constraint.name!r} gives one"
        yield words, short, constraints.without(constraint)


def lift_bounds(search: AnySearch) -> Iterator[tuple[str, AnySearch]]:
    """Each bound of a search that may be in the way, and the search without it."""
    for name, free in BOUNDS.items():
        # Copies that come last keep nobody from an answer.
        if getattr(search, name) not in (free, "last"):
            changes: dict[str, Any] = {name: free}
            yield name, replace(search, **changes)


def _say(reasons: dict[int, str], people: IntArray, words: dict[int, str]) -> IntArray:
    """Add words to people's reasons; gives those who have none yet."""
    for person, remedy in words.items():
        reasons[person] = f"{reasons[person]}; {remedy}"
    return people[~np.isin(people, sorted(words))]


def _nearest(factuals: EncodedRows, misses: Answers, found: Answers) -> Answers:
    """The nearest misses, with rows that are only not plausible enough in the first place."""
    others = misses.take(~np.isin(misses.owner, found.owner))
    return Answers.concat(factuals, [others, replace(found, rank=np.zeros_like(found.rank))])
