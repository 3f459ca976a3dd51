"""Why people have no answer: the kind of each reason, and its text.

Most reasons name what excludes the rows that the predictor accepts, or would. If lifting something
gives an answer, that says best what stood in the way, and its kind becomes that of the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from ..candidates import MeasuredRows
from ..constraints.constraint import Constraint
from ..constraints.kinds import MaxChanges
from ..counterfactuals.people import Reason, ReasonKind
from ..kernels import BoolArray, Codes, FloatArray, IntArray, Listing
from ..postprocess.filters import IsPlausible, ObeysConstraint, RowFilter
from ..postprocess.ranking import RankedCandidates, Ranking
from ..postprocess.validation import LazyValidation, SelectedDraws

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


def exclusion_of(keep: RowFilter | IsPlausible) -> Exclusion:
    """What a filter excludes by."""
    if isinstance(keep, IsPlausible):
        return Exclusion("implausible", keep.name)
    if isinstance(keep, ObeysConstraint):
        return Exclusion(constraint_kind(keep.constraint), keep.name)
    return Exclusion("ruled_out", keep.name)


def bound_exclusion(name: str, bound: float | None) -> Exclusion:
    """What a bound of a search excludes by."""
    return Exclusion(BOUND_KINDS[name], f"{name}={bound}")


def constraint_kind(constraint: Constraint) -> ReasonKind:
    """The kind of reason that a constraint makes."""
    return "too_many_changes" if isinstance(constraint, MaxChanges) else "ruled_out"


def beyond_bounds(
    ranking: Ranking, sparsity: Codes | IntArray, distance: FloatArray
) -> dict[Exclusion, BoolArray]:
    """Which rows each bound excludes."""
    beyond = {}
    for name, cost in (("max_sparsity", sparsity), ("max_distance", distance)):
        bound = getattr(ranking, name)
        if bound is not None:
            beyond[bound_exclusion(name, bound)] = cost > bound
    return beyond


class CountedDraws(NamedTuple):
    """How many draws a person has, in words; the valid ones, and what excludes how many of them."""

    text: str
    n_valid: int
    excluded: dict[Exclusion, int]


def count_draws(
    ranked: RankedCandidates, person: IntArray, listing: Listing, valid: BoolArray
) -> Iterator[CountedDraws]:
    """What became of people's candidates."""
    ranking, draw = ranked.ranking, listing.draw.astype(np.int64)
    excluded = {
        exclusion_of(keep): ~np.take_along_axis(ranked.passed[keep.name][person], draw, axis=1)
        for keep in ranking.filters
    }
    if ranking.plausible is not None:
        plausible = ranked.plausible(person, listing.draw, valid)
        excluded[exclusion_of(ranking.plausible)] = valid & ~plausible
    excluded |= beyond_bounds(ranking, listing.sparsity, listing.distance)
    allowed = np.arange(valid.shape[1]) < listing.n_allowed[:, None]
    for out in excluded.values():
        allowed &= ~out
    for row, n_valid in enumerate(valid.sum(axis=1)):
        n_distinct, n_allowed = listing.n_allowed[row], int(allowed[row].sum())
        text = f"{valid.shape[1]} draws ({n_distinct} distinct, {n_allowed} allowed)"
        counts = {one: int((out[row] & valid[row]).sum()) for one, out in excluded.items()}
        yield CountedDraws(text, int(n_valid), {one: n for one, n in counts.items() if n})


def explain_misses(validation: LazyValidation) -> tuple[MeasuredRows, dict[int, Reason]]:
    """Why people without a valid candidate have none, and which came nearest."""
    ranked = validation.ranked
    person = np.flatnonzero(validation.settled & (validation.n_valid == 0))
    listing, listed, valid, score = validation.list_all(person)
    shortfall = validation.decision.shortfall(score)
    nearest = np.arange(person.size), np.lexsort((shortfall, ~valid, ~listed), axis=-1)[:, 0]
    values = score[nearest], listing.sparsity[nearest], listing.gower[nearest]
    selected = SelectedDraws(person, listing.draw[nearest], np.zeros_like(person), *values)
    reasons = map(draws_reason, count_draws(ranked, person, listing, valid))
    positions = ranked.candidates.positions[person].tolist()
    return validation.to_measured(selected), dict(zip(positions, reasons, strict=True))


def draws_reason(draws: CountedDraws) -> Reason:
    """Why nothing that was drawn is an answer."""
    if not draws.n_valid:
        return Reason("refused", f"No valid candidate among {draws.text}.")
    named = ", ".join(f"{one.name} ({count})" for one, count in draws.excluded.items())
    text = f"All {draws.n_valid} valid candidates among {draws.text} are excluded by {named}."
    return Reason(kind_of(draws.excluded), text)


def kind_of(excluded: Collection[Exclusion]) -> ReasonKind:
    """The kind of a reason that several exclusions make; plausibility goes first."""
    kinds = {one.kind for one in excluded}
    first = "implausible", *BOUND_KINDS.values()
    return next((kind for kind in first if kind in kinds), "ruled_out")


def proof_reason(
    max_sparsity: int | None, max_distance: float | None, n_rows: int, n_allowed: int
) -> Reason:
    """What is proven of a person without an answer, and how many rows show it."""
    within = "" if max_sparsity is None else f" with at most {max_sparsity} changes"
    within += "" if max_distance is None else f" within a distance of {max_distance}"
    text = f"Proven: no row that the model could draw{within} is valid and allowed "
    return Reason("proven", f"{text}({n_rows} rows, {n_allowed} allowed).")


def with_remedy(reason: Reason, kind: ReasonKind, remedy: str) -> Reason:
    """The reason with what was tried and gives an answer."""
    return Reason(kind, f"{reason.text} There is an answer {remedy}.")
