"""The stages of a search, from what ``fit`` learned and one call's settings, and their run.

Always true: every counterfactual was valid in a final, fresh call of the predictor on the rows that
are returned. People whose answer the label rule accepts and the predictor refuses are searched for
again without the rule.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ..candidates import MeasuredRows
from ..constraints.collection import Constraints, GivenRows
from ..constraints.limits import FactualLimits
from ..constraints.of_rows import MaxChanges
from ..encodings import ColumnCache
from ..errors import ConstraintError
from ..fitted import Fitted
from ..kernels import Int32Array, IntArray, times_seen_before
from ..postprocess.filters import (
    HasKnownPairs,
    IsEncouraged,
    IsNoCopy,
    IsPlausible,
    KeepsRelation,
    ObeysConstraint,
    RowFilter,
    RowRules,
)
from ..postprocess.ranking import Ranking
from ..postprocess.validation import ScoreStore
from ..predictors.decision import Decision, Interval
from .config import BY_ACTIONS, DEFAULTS, RANK_BY, Copies, ExactSearch, Search
from .paper import PaperStage
from .prerequisites import (
    check_search,
    kept_relations,
    kept_training_rows,
    plausibility_model,
    weighted,
)
from .reasons import NO_DESIRED
from .stage import UNSTABLE, SearchOutcome, SearchRequest, SearchTask, Stage

# Imported where they are used: the paper's search needs none of these.
if TYPE_CHECKING:
    from ..postprocess.margins import Margins
    from ..relations.consequences import ComputedColumn, Consequences
    from ..relations.relation import FoundRelation
    from .exact import ExactStage
    from .loop import PoolStage

# Searches per person, at most, if answers fail the final call.
MAX_WITHDRAWN = 8


def find_answers(request: SearchRequest, positions: IntArray) -> SearchOutcome:
    """Counterfactuals for the factuals at these positions, and reasons why others have none."""
    fitted, settings, constraints = request.fitted, request.settings, request.constraints
    factuals, search = request.factuals, settings.search.sampling_search
    check_search(fitted, settings, constraints)
    computed: list[ComputedColumn] = []
    consequences = None
    if search.consequences == "recompute":
        from ..relations.consequences import Consequences, computed_columns

        computed = computed_columns(kept_relations(fitted, settings, constraints), constraints)
        consequences = Consequences(computed, factuals, constraints) if computed else None
    if fitted.n_desired == 0:
        reasons = dict.fromkeys(positions.tolist(), NO_DESIRED)
        return replace(SearchOutcome.merge(factuals, []), reasons=reasons, computed=computed)
    decision = fitted.decision.with_margin(search.margin or 0.0)
    is_exact = isinstance(settings.search, ExactSearch)
    task = SearchTask(
        request,
        # A proof needs the label of every row.
        decision=replace(decision, rule=None if is_exact else fitted.label_rule),
        factual_limits=_factual_limits(request, consequences, constraints),
        scores=ScoreStore(len(factuals), fitted.schema.mutable.size, search.max_evaluations),
        consequences=consequences,
    )
    outcome = _run_with_default_margin(task, positions)
    if outcome.misjudged:
        # Starts with an empty store: earlier decisions came from the label rule.
        certain = replace(task, decision=replace(decision, rule=None), scores=task.scores.cleared())
        misjudged = np.array(sorted(outcome.misjudged), dtype=np.int64)
        outcome = _update(certain, outcome, _run_stages(certain, misjudged), misjudged)
    if search.is_paper and constraints.discouraged:
        outcome = replace(outcome, answers=_discouraged_last(constraints, outcome.answers))
    return replace(outcome, computed=computed)


def _run_with_default_margin(task: SearchTask, positions: IntArray) -> SearchOutcome:
    """The first stage with the default margin, then all without it for those it leaves out."""
    found = default_margin(task.request.fitted, task.settings.search)
    if found is None:
        return _run_stages(task, positions)
    # Scores alone decide unless labels are desired.
    desired = task.decision.desired
    strict = replace(
        task,
        request=replace(task.request, gives_reasons=False, widens=False),
        decision=replace(found[0], rule=task.decision.rule),
        scores=task.scores if isinstance(desired, Interval) else task.scores.cleared(),
    )
    # A margin matters less than relations, and than what is not to be advised.
    outcome = _run_confirmed(strict, _stages(strict)[0], positions)
    left = np.setdiff1d(positions, outcome.answers.owner)
    if not left.size or task.request.monitor.stopped:
        return outcome
    outcome = replace(outcome, misjudged=frozenset())
    if isinstance(desired, Interval):
        task.scores.decide_again(desired)
    return outcome.updated(_run_stages(task, left), left)


def default_margin(fitted: Fitted, search: Search | ExactSearch) -> tuple[Decision, float] | None:
    """The decision with the default margin of a search, and the margin; None for none."""
    if search.margin is not None or search.sampling_search.max_evaluations is not None:
        return None
    share = DEFAULTS[search.sampling_search.name].margin
    return margins_of(fitted).require(share)


def margins_of(fitted: Fitted) -> Margins:
    """The margins of scores, by what fit learned."""
    from ..postprocess.margins import Margins

    return Margins(fitted.decision, fitted.label_rule, fitted.surrogate)


def _factual_limits(
    request: SearchRequest, consequences: Consequences | None, constraints: Constraints
) -> FactualLimits:
    """What constraints mean for the factuals of a request."""
    search = request.settings.search
    return FactualLimits(
        constraints,
        request.factuals,
        whole=isinstance(search, ExactSearch),
        keep_unseen=isinstance(search, ExactSearch) and search.keep_unseen,
        also=[] if consequences is None else consequences.mentioned,
    )


def _discouraged_last(constraints: Constraints, answers: MeasuredRows) -> MeasuredRows:
    """Each person's answers, those with discouraged changes after all others."""
    last = ~IsEncouraged(constraints).keeps(answers.rows)
    answers = answers.take(np.lexsort((answers.rank, last, answers.owner)))
    return replace(answers, rank=1 + times_seen_before(answers.owner))


def _run_stages(task: SearchTask, positions: IntArray) -> SearchOutcome:
    """Run one stage after the other, each for those still without an answer."""
    first, *others = _stages(task)
    outcome = _run_confirmed(task, first, positions)
    for stage in others:
        left = outcome.reasons.keys() - outcome.proven
        if not left or task.request.monitor.stopped:
            break
        positions = np.array(sorted(left), dtype=np.int64)
        outcome = outcome.updated(_run_confirmed(task, stage, positions), positions)
    return outcome


def _run_confirmed(task: SearchTask, stage: Stage, positions: IntArray) -> SearchOutcome:
    """Run one stage until every answer survives a fresh call of the predictor.

    An answer that fails is withdrawn, and its person is searched for again without it.
    """
    outcome, failed = _confirm(task, stage.run(positions))
    for _ in range(MAX_WITHDRAWN - 1):
        if not failed.size or task.request.monitor.stopped:
            break
        again, failed_again = _confirm(task, stage.run(failed))
        outcome, failed = _update(task, outcome, again, failed), failed_again
    return outcome


def _update(
    task: SearchTask, before: SearchOutcome, again: SearchOutcome, positions: IntArray
) -> SearchOutcome:
    """Both outcomes as one: for some factuals the later one, unless it has fewer answers."""
    answers = before.answers
    withdrawn = task.scores.are_withdrawn(answers.key) & np.isin(answers.owner, positions)
    before = before.with_answers(~withdrawn)
    n_before, n_again = (
        np.bincount(outcome.answers.owner, minlength=len(task.factuals))[positions]
        for outcome in (before, again)
    )
    return before.updated(again, positions[n_again >= n_before])


def _confirm(task: SearchTask, outcome: SearchOutcome) -> tuple[SearchOutcome, IntArray]:
    """The outcome with fresh scores, without answers that fail them; and whose answers failed.

    The latter leaves out people with an answer that the label rule misjudged. The reason of people
    who lost all their answers is UNSTABLE, and nothing of them is proven.
    """
    started = time.perf_counter()
    answers = outcome.answers
    # By their values alone, whatever the search knows of their codes.
    given = GivenRows(task.factuals, answers.owner, answers.frame)
    broken = task.request.constraints.broken(given)
    for name, breaks in broken.items():
        if breaks.any():
            raise ConstraintError(
                f"{name!r} does not hold for {int(breaks.sum())} of {breaks.size} answers, "
                "although it did when it was first checked. A condition must give the same result "
                "for a row each time."
            )
    fresh, wrong = task.decision.confirm(answers.frame, answers.score)
    rejected = answers.take(~fresh.valid & ~wrong)
    task.scores.withdraw(rejected.owner, rejected.key)
    confirmed = replace(outcome, answers=replace(answers, score=fresh.score))
    confirmed = confirmed.with_answers(fresh.valid)
    failed = set(rejected.owner.tolist())
    lost = failed.difference(confirmed.answers.owner.tolist())
    lost |= {position for position in outcome.reasons if task.scores.unstable[position]}
    misjudged = frozenset(answers.owner[wrong].tolist())
    confirmed = replace(
        confirmed,
        reasons=dict(outcome.reasons) | dict.fromkeys(sorted(lost - misjudged), UNSTABLE),
        n_unstable=rejected.owner.size,
        proven=outcome.proven - failed - lost - misjudged,
        misjudged=misjudged,
    )
    again = np.array(sorted(failed - misjudged), dtype=np.int64)
    return confirmed.with_seconds({"confirm": time.perf_counter() - started}), again


def _stages(task: SearchTask) -> list[Stage]:
    """The stages, first with all relations found, then only with those that are enforced.

    Relations that a few training rows break are dropped only if nothing else is found. The exact
    search uses the enforced ones alone: its proof is about one set of rows. Discouraged changes are
    left to the last stages. Reasons are left to the very last: they take further scores.
    """
    search, constraints = task.settings.search, task.request.constraints
    kept = kept_relations(task.request.fitted, task.settings, constraints)
    enforced = [found for found in kept if found.enforced]
    all_first = len(enforced) < len(kept) and not isinstance(search, ExactSearch)
    tasks, in_turn = [task], [kept, enforced] if all_first else [enforced]
    if constraints.discouraged and not search.sampling_search.is_paper:
        limits = _factual_limits(task.request, task.consequences, constraints.without_discouraged)
        tasks.insert(0, replace(task, factual_limits=limits, excludes_discouraged=True))
    stages: list[PaperStage | PoolStage] = []
    for one_task, relations in product(tasks, in_turn):
        if search.sampling_search.is_paper:
            stages += _paper_stages(one_task, relations)
        else:
            stages.append(_pool_stage(one_task, relations))
    last = replace(stages[-1], gives_reasons=task.request.gives_reasons)
    in_order: list[Stage] = [*stages[:-1], last]
    if isinstance(search, ExactSearch):
        in_order.insert(0, _exact_stage(task, search, stages[0], enforced))
    return in_order


def _paper_stages(task: SearchTask, relations: Sequence[FoundRelation]) -> Iterator[PaperStage]:
    """The paper's search, with copies of training rows only where there is nothing else."""
    search = task.settings.search.sampling_search
    n_samples, max_samples = search.resolve_samples(task.settings.n_samples)
    in_turn: tuple[Copies | None, ...] = "never", "allow"
    for copies in in_turn if search.copies == "last" else [search.copies]:
        ranking = _ranking(task, replace(search, copies=copies), relations)
        stage = PaperStage(task, ranking, n_samples)
        yield stage
        yield from stage.with_more_draws(max_samples)


def _pool_stage(task: SearchTask, relations: Sequence[FoundRelation]) -> PoolStage:
    """The search beyond the paper."""
    from ..boosting.surrogate import Surrogate
    from .costs import COSTS
    from .loop import PoolStage
    from .pool import PoolSearch

    search, fitted = task.settings.search.sampling_search, task.request.fitted
    model = fitted.plausibility
    n_samples, max_samples = search.resolve_samples(task.settings.n_samples)
    # A search sets what was left out.
    assert search.extra_changes is not None
    return PoolStage(
        PoolSearch(
            task,
            ranking=_ranking(task, search, relations),
            cost=COSTS[search.name],
            fewest_first=DEFAULTS[search.name].fewest_first,
            extra_changes=search.extra_changes,
            copies_last=search.copies == "last",
            count_actions=search.rank_by == BY_ACTIONS,
            n_samples=n_samples,
            max_samples=max_samples,
            surrogate=fitted.surrogate or Surrogate.uninformed(),
            knn_model=None if model is None else model.knn_distance_,
            accepted_counts=_accepted_counts(fitted),
        )
    )


def _exact_stage(
    task: SearchTask, search: ExactSearch, first: Stage, relations: Sequence[FoundRelation]
) -> ExactStage:
    """The exact search; the stages after it are for people beyond the budget.

    With a time limit, the first of these also runs before the proof, so that people without a proof
    still get answers.
    """
    from .exact import ExactStage

    fitted, constraints = task.request.fitted, task.request.constraints
    sampling_search = search.sampling_search
    rules = row_rules(fitted, sampling_search, constraints, relations, task.column_cache)
    # A bound on the changes of all features also bounds the proof.
    bounds = [] if rules.max_sparsity is None else [rules.max_sparsity]
    bounds += [c.n for c in constraints.of_rows if isinstance(c, MaxChanges) and not c.features]
    rules = replace(rules, max_sparsity=min(bounds, default=None))
    preferred: list[RowFilter] = [IsEncouraged(constraints)] if constraints.discouraged else []
    if search.copies == "last":
        preferred.append(IsNoCopy(kept_training_rows(fitted, search)))
    quick_stage = first if math.isfinite(task.request.deadline) else None
    return ExactStage(task, search, rules, preferred, quick_stage)


def _ranking(task: SearchTask, search: Search, relations: Sequence[FoundRelation]) -> Ranking:
    request, settings = task.request, task.settings
    n_counterfactuals = settings.n_counterfactuals
    if search.is_paper:
        n_counterfactuals = min(n_counterfactuals, search.resolve_samples(settings.n_samples)[1])
    rules = row_rules(request.fitted, search, request.constraints, relations, task.column_cache)
    if task.excludes_discouraged:
        # Limits are about what is drawn, not about columns that follow from it.
        rules = replace(rules, filters=[*rules.filters, IsEncouraged(request.constraints)])
    return Ranking(
        n_counterfactuals=n_counterfactuals,
        rank_by=search.rank_by if search.is_paper else RANK_BY,
        rules=rules,
        tolerance=search.tolerance,
        diversity=settings.diversity if n_counterfactuals > 1 else None,
    )


def _accepted_counts(fitted: Fitted) -> tuple[IntArray | Int32Array, ...]:
    """How many accepted rows have each value of each mutable feature; else how many of all."""
    schema = fitted.schema
    n_codes = [schema.features[column].n_codes for column in schema.mutable]
    if fitted.plausibility is not None:
        codes = fitted.plausibility.codes_[schema.mutable]
        of_features = zip(codes, n_codes, strict=True)
        return tuple(np.bincount(own, minlength=n) for own, n in of_features)
    if fitted.value_counts is not None:
        return fitted.value_counts
    return tuple(np.ones(n, dtype=np.int64) for n in n_codes)


def row_rules(
    fitted: Fitted,
    search: Search,
    constraints: Constraints,
    relations: Sequence[FoundRelation],
    column_cache: ColumnCache,
) -> RowRules:
    """What the rows that a search returns must keep, apart from being valid."""
    distance = weighted(fitted.distance, constraints)
    filters: list[RowFilter] = [
        ObeysConstraint(constraint, fitted.schema) for constraint in constraints.of_rows
    ]
    if search.copies == "never":
        filters.append(IsNoCopy(kept_training_rows(fitted, search)))
    filters += [KeepsRelation(found.relation, column_cache) for found in relations]
    plausible = None
    # Without an accepted row, nothing is returned.
    if search.min_plausibility and fitted.n_desired:
        plausible = IsPlausible(plausibility_model(fitted), search.min_plausibility)
        filters.append(HasKnownPairs(plausible))
    return RowRules(distance, search.max_sparsity, search.max_distance, filters, plausible)
