"""What to relax so that people without an answer get one, found by searching without it.

Beyond the paper. A bound, a constraint or, with the training data to fit again, an immutable column
is left out, one at a time, and the same search is run. ``MCCE.relax`` lists what helps whom; after
``explain``, a brief search adds to the reason of each person the first thing that does. An answer
that keeps even what was left out had only been missed: nothing was in its way.

Always true: what helps a person depends on no other person.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Context
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from ..candidates import CandidateRows, MeasuredRows
from ..constraints.collection import Constraints
from ..counterfactuals.parts import Reason, ReasonKind
from ..fitted import Fitted
from ..kernels import BoolArray, IntArray
from ..postprocess.filters import HasKnownPairs, IsPlausible
from ..runtime.progress import ProgressBar
from ..tables.schema import OWN
from .config import ExplainSettings
from .plan import find_answers, row_rules
from .prerequisites import kept_relations, plausibility_model
from .reasons import kind_of
from .stage import Monitor, SearchOutcome, SearchRequest, make_request

# Imported where it is used: the paper's search needs none of this.
if TYPE_CHECKING:
    from ..plausibility.model import PlausibilityModel

# Draws of a brief search, and the most constraints that it lifts in turn.
N_BRIEF_SAMPLES, MAX_LIFTED = 100, 8
# After so many seconds, one thing that helps is enough for whoever waits.
SECONDS = 1.0
# By parameter that excludes rows: the value that lifts it, and the kind of reason if that helps. A
# margin has the kind "unknown", because the predictor accepts rows with a smaller one.
BOUNDS: dict[str, tuple[Any, ReasonKind]] = {
    "min_plausibility": (0.0, "implausible"),
    "max_sparsity": (None, "too_many_changes"),
    "max_distance": (None, "too_far"),
    "margin": (0.0, "unknown"),
    "copies": ("allow", "ruled_out"),
}
# Fits an explainer again, with these columns immutable.
FitAgain: TypeAlias = Callable[[Sequence[Hashable]], Fitted]
ONE_DIGIT = Context(prec=1, rounding=ROUND_DOWN)


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Something that may be in the way, and the search for people at some positions without it."""

    kind: Literal["bound", "constraint", "immutable"]
    name: str
    find: Callable[[IntArray], SearchOutcome]
    # What a reason says if the search finds an answer.
    in_words: str = ""
    reason_kind: ReasonKind = "unknown"


def relaxations(request: SearchRequest, max_constraints: int | None = None) -> Iterator[Relaxation]:
    """A search without each of its bounds and constraints that may be in the way."""
    settings, constraints = request.settings, request.constraints
    for name, (free, reason_kind) in BOUNDS.items():
        value = getattr(settings.search, name, free)
        # Copies that come last exclude no answer, and nor does the default margin.
        if value not in (free, "last", None):
            change: dict[str, Any] = {name: free}
            lifted = replace(settings, search=replace(settings.search, **change))
            find = partial(find_answers, replace(request, settings=lifted))
            yield Relaxation("bound", name, find, f"{name}={value!r}", reason_kind)
    if request.without_survival is not None:
        find = partial(find_answers, request.without_survival)
        yield Relaxation("bound", "survival", find, "the required survival")
    for constraint in constraints.limiting[:max_constraints]:
        find = partial(find_answers, replace(request, constraints=constraints.without(constraint)))
        in_words = f"the constraint {constraint.name!r}"
        yield Relaxation("constraint", constraint.name, find, in_words, kind_of(constraint))


def add_remedies(request: SearchRequest, outcome: SearchOutcome) -> SearchOutcome:
    """The outcome with reasons that name what would help, and with answers that were missed.

    Where only the required plausibility is in the way, the best such row is the nearest miss.
    """
    is_bounded = request.settings.search.by_sampling.max_evaluations is not None
    if request.monitor.stopped or not request.fitted.n_desired or is_bounded:
        return outcome
    started = time.perf_counter()
    factuals, reasons = request.factuals, dict(outcome.reasons)
    answers, misses = outcome.answers, outcome.misses
    positions = np.array(sorted(reasons), dtype=np.int64)
    for relaxation in relaxations(_brief(request), MAX_LIFTED):
        is_over = request.monitor.stopped or time.monotonic() >= request.deadline
        if is_over or not positions.size:
            break
        relaxed, kind = relaxation.find(positions).answers, relaxation.reason_kind
        keeps_all = _keep_everything(request, relaxed)
        # A proof is about rows that the model could draw, which these need not be.
        missed = relaxed.take(keeps_all & ~np.isin(relaxed.owner, sorted(outcome.proven)))
        answers = MeasuredRows.concat(factuals, [answers, missed])
        relaxed = relaxed.take(~keeps_all)
        remedies = [f"Without {relaxation.in_words}"] * relaxed.owner.size
        if kind == "implausible":
            remedies = _with_plausibility(plausibility_model(request.fitted), relaxed.rows)
            nearest = replace(relaxed, rank=np.zeros_like(relaxed.rank))
            others = misses.take(~np.isin(misses.owner, relaxed.owner))
            misses = MeasuredRows.concat(factuals, [others, nearest])
        for position, remedy in zip(relaxed.owner.tolist(), remedies, strict=True):
            text = f"{reasons[position].text} {remedy} there would be an answer."
            reasons[position] = Reason(kind, text)
        positions = np.setdiff1d(positions, [*relaxed.owner, *missed.owner])
    explained = replace(
        outcome,
        answers=answers,
        misses=misses.take(~np.isin(misses.owner, answers.owner)),
        reasons={key: reason for key, reason in reasons.items() if key not in answers.owner},
    )
    return explained.with_seconds({"remedies": time.perf_counter() - started})


def _brief(request: SearchRequest) -> SearchRequest:
    """The same request with few draws, for one answer of each person and no reasons."""
    settings, search = request.settings, request.settings.search.by_sampling
    n_samples = min(N_BRIEF_SAMPLES, settings.n_samples or N_BRIEF_SAMPLES)
    settings = replace(settings, n_samples=n_samples, n_counterfactuals=1, diversity=None)
    settings = replace(settings, search=replace(search, max_samples=n_samples))
    brief = replace(request, settings=settings, gives_reasons=False, widens=False)
    plain = request.without_survival
    return brief if plain is None else replace(brief, without_survival=_brief(plain))


def _keep_everything(request: SearchRequest, relaxed: MeasuredRows) -> BoolArray:
    """Which answers of a relaxed search keep everything that the search itself requires."""
    constraints, settings = request.constraints, request.settings
    search, fitted = settings.search.by_sampling, request.fitted
    relations = kept_relations(fitted, settings, constraints)
    enforced = [found for found in relations if found.enforced]
    rules = row_rules(fitted, search, constraints, enforced, {})
    keeps: BoolArray = rules.first_broken(relaxed.rows) == 0
    for breaks in constraints.broken(relaxed.rows).values():
        keeps &= ~breaks
    if (search.margin or request.without_survival is not None) and keeps.any():
        decision = fitted.decision.with_margin(search.margin or 0.0)
        keeps[keeps] = decision.score(relaxed.take(keeps).frame).valid
    return keeps


def _with_plausibility(model: PlausibilityModel, rows: CandidateRows) -> list[str]:
    """The required plausibility with which each row would be an answer, rounded down."""
    reached = model.measures(rows)["plausibility"]
    # Any requirement excludes pairs that nobody has.
    reached[~HasKnownPairs(IsPlausible(model, 0.0)).keeps(rows)] = 0.0
    rounded = [float(ONE_DIGIT.create_decimal(repr(share))) for share in reached.tolist()]
    return [f"With min_plausibility={share:g}" for share in rounded]


def relaxation_table(
    fitted: Fitted,
    settings: ExplainSettings,
    X: Any,
    constraints: Constraints,
    fit_again: FitAgain | None,
    only: Sequence[str] | None,
) -> Any:
    """One row for each person without an answer and each thing that could be lifted.

    Without ``fit_again``, immutable columns are not tried. What ``only`` names is tried in its
    order, with few draws; None is all.
    """
    factuals = fitted.schema.encode(X)
    scored = fitted.decision.score(factuals.frame)
    declined = np.flatnonzero(~scored.valid)
    # No time limit: a stopped search would blame things that are not in the way.
    monitor = Monitor(declined.size, lambda progress: None)
    request = make_request(fitted, settings, constraints, factuals, scored, monitor)
    request = replace(request, gives_reasons=False)
    positions = np.array(sorted(find_answers(request, declined).reasons), dtype=np.int64)
    tried = sorted(relaxations(request), key=lambda relaxation: relaxation.kind == "bound")
    if fit_again is not None:
        tried += _without_immutable(request, X, fit_again)
    if only is not None:
        by_name = {relaxation.name: relaxation for relaxation in relaxations(_brief(request))}
        tried = [by_name[name] for name in only if name in by_name]
    if not positions.size:
        tried = []
    sparsity, gower = _measure_best(request, tried, positions, None if only is None else SECONDS)
    tried = tried[: len(sparsity)]
    position = np.tile(positions, len(tried))
    of_each = [relaxation for relaxation in tried for _ in positions]
    table = pd.DataFrame(
        {
            "factual": factuals.index.to_flat_index().take(position),
            "lifted": pd.Series([relaxation.name for relaxation in of_each], dtype=str),
            "kind": pd.Series([relaxation.kind for relaxation in of_each], dtype=str),
            "answered": ~np.isnan(sparsity.ravel()),
            "sparsity": pd.array(sparsity.ravel(), dtype="Int64"),
            "gower": gower.ravel(),
            "position": position,
        }
    )
    # What helps most comes first.
    order = ["position", "answered", "sparsity"]
    table = table.sort_values(order, ascending=[True, False, True], ignore_index=True)
    return factuals.adapter.table_to_native(table.drop(columns="position"))


def _measure_best(
    request: SearchRequest,
    tried: Sequence[Relaxation],
    positions: IntArray,
    seconds: float | None,
) -> np.ndarray:
    """Sparsity and Gower distance of the best answers, shape (2, n_tried, n_people); else NaN.

    After some seconds, what helps one person at least is enough.
    """
    started = time.monotonic()
    costs = np.full((2, len(tried), positions.size), np.nan)
    bar = ProgressBar(len(tried), "relax", request.settings.verbose)
    for number, relaxation in enumerate(tried):
        answers = relaxation.find(positions).answers
        best = answers.take(answers.rank == 1)
        if relaxation.kind != "immutable":
            best = best.take(~_keep_everything(request, best))
        costs[:, number, np.searchsorted(positions, best.owner)] = best.sparsity, best.gower
        bar.show(number + 1)
        is_late = seconds is not None and time.monotonic() - started > seconds
        if is_late and not np.isnan(costs[0]).all():
            costs = costs[:, : number + 1]
            break
    bar.close()
    return costs


def _without_immutable(request: SearchRequest, X: Any, fit_again: FitAgain) -> list[Relaxation]:
    """A search with each immutable column mutable that the predictor knows."""
    schema, known = request.fitted.schema, request.fitted.decision.names
    immutable = schema.immutable.tolist()

    def find(column: int, positions: IntArray) -> SearchOutcome:
        fitted = fit_again([schema.names[other] for other in immutable if other != column])
        bound = Constraints.bind(request.constraints.listed, fitted.schema)
        factuals = fitted.schema.encode(X)
        scored = request.scored
        if request.without_survival is not None:
            # What is fitted again for one column trains no models anew.
            scored = request.without_survival.scored
        lifted = replace(
            request,
            fitted=fitted,
            constraints=bound,
            factuals=factuals,
            scored=scored,
            without_survival=None,
        )
        outcome = find_answers(lifted, positions)
        # An answer that changes the column shows that it was in the way.
        place = int(np.searchsorted(fitted.schema.mutable, column))
        changes_it = outcome.answers.rows.codes[place] != OWN
        return replace(outcome, answers=outcome.answers.take(changes_it))

    return [
        Relaxation("immutable", str(schema.names[column]), partial(find, column))
        for column in immutable
        if known is None or schema.names[column] in known
    ]
