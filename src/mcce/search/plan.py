"""From what ``fit`` learned and one call's settings to the stages of its search."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..candidates import ColumnCache
from ..constraints.collection import Constraints
from ..constraints.kinds import MaxChanges
from ..constraints.limits import FactualLimits
from ..distances import Gower
from ..errors import NotFittedError, ParameterError, shorten
from ..fitted import Fitted, plausibility_model
from ..generate import DrawPlan
from ..kernels import IntArray
from ..model.registry import require
from ..postprocess.filters import (
    ExcludeTrainingRows,
    IsPlausible,
    KeepsRelation,
    ObeysConstraint,
    RowFilter,
)
from ..postprocess.ranking import Ranking
from ..postprocess.validation import RowScores
from ..predictors.decision import ScoredRows
from ..protocols import Callback
from ..tables.schema import EncodedRows
from .config import (
    BY_ACTIONS,
    ENUMERATION_NEEDED,
    RANK_BY,
    ExactSearch,
    Search,
    check_inputs,
    check_needs,
    check_private,
    find_search,
    kept_relations,
    weighted,
)
from .reasons import NO_DESIRED, exclusion_of
from .sampling import SamplingStage
from .stage import SearchOutcome, SearchTask, run_search

# Imported where they are used: the paper's search needs none of these.
if TYPE_CHECKING:
    from ..relations.relation import Relation
    from .consequences import ComputedColumn, Consequences
    from .exact import ExactSettings, ExactStage
    from .history import SurrogateRun
    from .visited import WalkSettings
    from .walking import Walk

# Draws to undo changes from, for each answer after the first: some end in the same row.
DRAWS_PER_ANSWER = 4
# Up to this many times the first draws, targets may exceed the bounds on changes and distance,
# because a walk may make fewer changes; further targets may not.
UNBOUNDED_DRAWS = 10
# Most rows scored per person with a surrogate: before drawing more, and in the last stage.
MAX_TRIES, MAX_LAST_TRIES = 24, 600


@dataclass(frozen=True)
class ExplainSettings:
    """The parameters of an explainer that may change between ``fit`` and ``explain``."""

    search: Search | ExactSearch
    n_samples: int | None = None
    n_counterfactuals: int = 1
    diversity: float | None = None
    ignore_relations: bool | Sequence[str] = False
    memory: float = 256.0
    n_jobs: int | None = None
    max_seconds: float | None = None
    verbose: bool = False

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> ExplainSettings:
        """The settings among the parameters of an explainer."""
        named = {f.name: parameters[f.name] for f in fields(cls) if f.name in parameters}
        return cls(**named | {"search": find_search(parameters["search"])})


@dataclass(frozen=True, eq=False)
class SearchRequest:
    """One search: what ``fit`` learned, whom to explain, and the deadline."""

    fitted: Fitted
    settings: ExplainSettings
    constraints: Constraints
    factuals: EncodedRows
    # Of the factuals to explain, among all.
    positions: IntArray
    callback: Callback
    # By time.monotonic().
    deadline: float = math.inf
    # Draws all at once, without reasons.
    answers_only: bool = False
    # Scores of the factuals themselves.
    scored: ScoredRows | None = None
    # Scores of candidates, from other searches for the same people.
    row_scores: RowScores | None = None
    # Most rows scored per person by the direct search.
    max_direct_rows: int = 5_000


def find_answers(request: SearchRequest) -> SearchOutcome:
    """Build the stages of a search and run them."""
    fitted, settings, constraints = request.fitted, request.settings, request.constraints
    factuals, positions = request.factuals, request.positions
    check_private(fitted.generator, settings.search, fitted.distance, settings.ignore_relations)
    check_ignored(fitted, settings.ignore_relations)
    computed = recomputed(fitted, settings, constraints)
    if fitted.n_desired == 0:
        reasons = dict.fromkeys(positions.tolist(), NO_DESIRED)
        return replace(SearchOutcome.merge(factuals, []), reasons=reasons, computed=computed)
    sampling = _sampling_search(settings)
    fitted = replace(fitted, decision=fitted.decision.with_margin(sampling.margin))
    consequences = _consequences(computed, factuals, constraints)
    task = SearchTask(
        generator=fitted.generator,
        # A proof needs the label of every row.
        decision=replace(
            fitted.decision, rule=None if settings.search.is_exact else fitted.label_rule
        ),
        constraints=constraints,
        factual_limits=FactualLimits(
            constraints,
            factuals,
            whole=sampling.keep_probability > 0,
            keep_unseen=bool(sampling.keep_unseen),
            also=[] if consequences is None else consequences.mentioned,
        ),
        memory=settings.memory,
        n_jobs=settings.n_jobs,
        callback=request.callback,
        max_direct_rows=request.max_direct_rows,
        deadline=request.deadline,
        answers_only=request.answers_only,
        consequences=consequences,
        row_scores=request.row_scores,
        surrogate_run=_surrogate_run(fitted, sampling, len(factuals), request.scored),
    )
    plan = _StagePlan(fitted, settings, sampling, task)
    outcome = run_search(task, lambda task: replace(plan, task=task).all_stages(), positions)
    return replace(outcome, computed=computed)


def _surrogate_run(
    fitted: Fitted, sampling: Search, n_factuals: int, scored: ScoredRows | None
) -> SurrogateRun | None:
    """The surrogate of this search; None if it has no use for one."""
    if not sampling.n_targets:
        return None
    from .history import start_surrogate

    return start_surrogate(fitted.surrogate, sampling, n_factuals, scored)


def check_ignored(fitted: Fitted, ignored: bool | Sequence[str]) -> None:
    """Raise if relations are to be ignored that ``fit`` did not find."""
    if fitted.relations is None or isinstance(ignored, bool):
        return
    names = {found.relation.name for found in fitted.relations}
    unknown = [name for name in ignored if name not in names]
    if unknown:
        raise ParameterError(
            f"ignore_relations names relations that fit did not find: {shorten(unknown, 200)}. "
            "Take the names from the column 'relation' of relations_."
        )


def recomputed(
    fitted: Fitted, settings: ExplainSettings, constraints: Constraints
) -> list[ComputedColumn]:
    """The columns that a search recomputes when it changes others."""
    if settings.search.sampling.consequences != "recompute":
        return []
    from .consequences import followed_relations, plan_computed

    given = settings.search, settings.ignore_relations, constraints
    return plan_computed(constraints, followed_relations(fitted, *given))


def _consequences(
    computed: Sequence[ComputedColumn], factuals: EncodedRows, constraints: Constraints
) -> Consequences | None:
    if not computed:
        return None
    from .consequences import Consequences

    return Consequences(computed, factuals, constraints)


def _sampling_search(settings: ExplainSettings) -> Search:
    """The search by sampling, with the number of draws resolved."""
    sampling = settings.search.sampling
    n_samples = settings.n_samples or sampling.n_samples
    return replace(
        sampling, n_samples=n_samples, max_samples=max(sampling.max_samples or n_samples, n_samples)
    )


@dataclass(frozen=True, eq=False)
class _StagePlan:
    """Makes the stages of one call."""

    fitted: Fitted
    settings: ExplainSettings
    sampling: Search
    task: SearchTask

    def all_stages(self) -> Iterator[SamplingStage | ExactStage]:
        """The stages, first with all relations found, then only with those that are enforced.

        Relations that a few training rows break are dropped only if nothing else is found. The
        exact search uses the enforced ones alone: its proof is about one set of rows.
        """
        found, plan = self.fitted.relations, self
        sure = tuple(one for one in found or () if one.enforced)
        is_exact = self.settings.search.is_exact
        if not (is_exact or {one.relation for one in sure}.issuperset(self._relations())):
            for stage in self.stages():
                yield replace(stage, final=False)
            plan = replace(self, task=self.task.relaxed())
        enforced = self.fitted if found is None else replace(self.fitted, relations=sure)
        yield from replace(plan, fitted=enforced).stages()

    def stages(self) -> Iterator[SamplingStage | ExactStage]:
        """The stages in order, each with more draws for those who have no answer yet."""
        sampling = self.sampling
        if sampling.allow_implausible and sampling.min_plausibility > 0:
            strict: dict[str, Any] = {"allow_implausible": False}
            yield from self._twice(strict, strict | {"min_plausibility": 0})
            return
        if sampling.copies == "last" and not sampling.n_targets:
            yield from self._twice({"copies": "never"}, {"copies": "allow"})
            return
        settings, ranking = self.settings, self._ranking()
        check_needs(self.fitted.generator, settings.search, ranking.distance, settings.diversity)
        check_inputs(self.fitted, settings.search)
        stage = self._draws(ranking)
        if isinstance(settings.search, ExactSearch):
            from .exact import ExactStage

            # With a time limit, draws come first, for people whom the proof does not reach.
            draws = replace(stage, final=False) if math.isfinite(self.task.deadline) else None
            yield ExactStage(self.task, self._exact_settings(settings.search, ranking), draws=draws)
        n_samples, max_samples = sampling.n_samples, sampling.max_samples or sampling.n_samples
        if sampling.n_targets:
            targets, walk = _target_ranking(sampling.n_targets, ranking), self._walk(ranking)
            stage = replace(stage, ranking=_unbounded(targets), walk=walk, final=False)
            most = min(UNBOUNDED_DRAWS * n_samples, max_samples)
            *earlier, last = [stage, *stage.with_more_draws(most)]
            yield from earlier
            # Before many more draws, changes are tried directly.
            walk = replace(walk, max_tries=MAX_TRIES)
            yield replace(last, walk=replace(walk, answers_all=True))
            stage = replace(stage, ranking=targets, n_samples=most, walk=walk, final=True)
            if stage.uses_surrogate:
                # Where few draws and direct changes find nothing, a few more draws rarely do.
                walk = replace(walk, answers_all=True, max_tries=MAX_LAST_TRIES)
                yield replace(stage, n_samples=max_samples, walk=walk)
                return
        yield stage
        yield from stage.with_more_draws(max_samples)

    def _twice(
        self, first: dict[str, Any], then: dict[str, Any]
    ) -> Iterator[SamplingStage | ExactStage]:
        """The stages of a search, and for those without an answer those of a relaxed one."""
        for changes, of in ((first, self), (then, replace(self, task=self.task.relaxed()))):
            given = replace(self.settings, search=replace(self.settings.search, **changes))
            plan = replace(of, settings=given, sampling=replace(self.sampling, **changes))
            for stage in plan.stages():
                yield replace(stage, final=stage.final and changes is then)

    def _ranking(self) -> Ranking:
        sampling, filters = self.sampling, tuple(self._row_filters())
        plausible = None
        if sampling.min_plausibility > 0:
            plausible = IsPlausible(plausibility_model(self.fitted), sampling.min_plausibility)
        most = sampling.max_samples or sampling.n_samples
        n_counterfactuals = min(self.settings.n_counterfactuals, most)
        return Ranking(
            n_counterfactuals=n_counterfactuals,
            rank_by=RANK_BY if sampling.n_targets else tuple(sampling.rank_by),
            distance=weighted(self.fitted.distance, self.task.constraints),
            tolerance=sampling.tolerance,
            max_sparsity=sampling.max_sparsity,
            max_distance=sampling.max_distance,
            filters=filters,
            plausible=plausible,
            diversity=self.settings.diversity if n_counterfactuals > 1 else None,
        )

    def _draws(self, ranking: Ranking) -> SamplingStage:
        """The stage whose answers are draws; from guided ones, needless changes are undone."""
        sampling, task = self.sampling, self.task
        n_from_leaves = sampling.n_samples if sampling.back_off else None
        draw_plan = DrawPlan(self.fitted.seed, sampling.keep_probability, n_from_leaves)
        stage = SamplingStage(task, ranking, sampling.n_samples, draw_plan)
        # Undoing a change could bring back a value that training never held.
        if not (sampling.keep_probability and sampling.keep_unseen) or sampling.n_targets:
            return stage
        from .selection import SelectionSettings
        from .walking import Walk

        n_more = DRAWS_PER_ANSWER * (ranking.n_counterfactuals - 1)
        by_changes = tuple(sampling.rank_by)[:1] == RANK_BY[:1]
        extra_changes = 0 if by_changes else int(task.factuals.schema.mutable.size)
        selection = SelectionSettings("distance", extra_changes, None, ranking, copies_last=False)
        walk = Walk(self._walk_settings(ranking, n_targets=1, backwards=True), selection)
        return replace(stage, ranking=_target_ranking(1 + n_more, ranking), walk=walk)

    def _walk(self, ranking: Ranking) -> Walk:
        from .direct import DirectSettings
        from .selection import SelectionSettings
        from .walking import Walk

        sampling, model = self.sampling, plausibility_model(self.fitted)
        selection = SelectionSettings(
            sampling.prefer,
            sampling.extra_changes,
            model.knn_distance_,
            ranking,
            copies_last=sampling.copies == "last",
            count_actions=tuple(sampling.rank_by) == BY_ACTIONS,
        )
        direct = DirectSettings(
            self.fitted.schema,
            model.codes_,
            max_sparsity=sampling.max_sparsity,
            stop_at_first=sampling.max_distance is None and self.task.surrogate_run is None,
        )
        walk = self._walk_settings(ranking, n_targets=sampling.n_targets)
        return Walk(walk, selection, direct, fewest_changes=sampling.extra_changes == 0)

    def _walk_settings(
        self, ranking: Ranking, *, n_targets: int, backwards: bool = False
    ) -> WalkSettings:
        from .visited import WalkSettings, find_feature_sets

        task = self.task
        return WalkSettings(
            task=task,
            filters=tuple(self._row_filters()),
            plausible=ranking.plausible,
            feature_sets=find_feature_sets(task.constraints, task.consequences),
            extra_changes=self.sampling.extra_changes,
            n_targets=n_targets,
            backwards=backwards,
        )

    def _exact_settings(self, search: ExactSearch, ranking: Ranking) -> ExactSettings:
        from .exact import ExactSettings

        constraints = self.task.constraints
        weights = ranking.distance.weights if isinstance(ranking.distance, Gower) else None
        # A bound on the changes of all features also bounds the proof.
        of_all = [c.n for c in constraints.of_rows if isinstance(c, MaxChanges) and not c.features]
        bounds = [most for most in (search.max_sparsity, *of_all) if most is not None]
        return ExactSettings(
            generator=require(self.fitted.generator, "enumeration", ENUMERATION_NEEDED),
            decision=self.task.decision,
            filters=tuple(self._row_filters()),
            n_counterfactuals=self.settings.n_counterfactuals,
            max_sparsity=min(bounds, default=None),
            max_distance=search.max_distance,
            weights=np.ones(constraints.schema.mutable.size) if weights is None else weights,
            max_rows=search.max_rows,
            max_nodes=search.max_nodes,
        )

    def _row_filters(self) -> list[RowFilter]:
        task, relations = self.task, self._relations()
        search = self.settings.search
        return row_filters(self.fitted, search, task.constraints, relations, task.column_cache)

    def _relations(self) -> list[Relation]:
        """The relations that answers keep."""
        given = self.settings.search, self.settings.ignore_relations, self.task.constraints
        return kept_relations(self.fitted, *given)


def _target_ranking(n_targets: int, ranking: Ranking) -> Ranking:
    """How targets of walks are ranked: like answers, but more of them."""
    n_targets = max(n_targets, ranking.n_counterfactuals)
    return replace(ranking, n_counterfactuals=n_targets, diversity=None)


def _unbounded(targets: Ranking) -> Ranking:
    """Targets with any number of changes; a walk to them may make fewer."""
    kept = [keep for keep in targets.filters if exclusion_of(keep).kind != "too_many_changes"]
    return replace(targets, filters=tuple(kept), max_sparsity=None, max_distance=None)


def row_filters(
    fitted: Fitted,
    search: Search | ExactSearch,
    constraints: Constraints,
    relations: list[Relation],
    column_cache: ColumnCache,
) -> list[RowFilter]:
    """The filters of whole rows: constraints, copies of training rows, relations."""
    filters: list[RowFilter] = [
        ObeysConstraint(constraints, constraint) for constraint in constraints.of_rows
    ]
    if search.copies == "never":
        if fitted.training_rows is None:
            raise NotFittedError(
                f"search was set to {search!r} after fit, which did not keep the training "
                "rows. Fit again."
            )
        filters.append(ExcludeTrainingRows(fitted.training_rows))
    return filters + [KeepsRelation(one, column_cache) for one in relations]
