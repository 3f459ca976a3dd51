"""From what ``fit`` learned and one call's settings to the stages of its search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..candidates import ColumnCache
from ..constraints.collection import Constraints
from ..constraints.kinds import MaxChanges
from ..constraints.limits import FactualLimits
from ..distances import Gower
from ..errors import NotFittedError, ParameterError, shorten
from ..fitted import Fitted, plausibility_model
from ..kernels import Codes, IntArray
from ..model.registry import require
from ..postprocess.filters import (
    ExcludeTrainingRows,
    IsPlausible,
    KeepsRelation,
    ObeysConstraint,
    RowFilter,
    RowRules,
)
from ..postprocess.ranking import Ranking
from ..postprocess.validation import ScoreStore
from ..tables.schema import EncodedRows
from .config import (
    BY_ACTIONS,
    ENUMERATION_NEEDED,
    RANK_BY,
    Copies,
    ExactSearch,
    Search,
    check_inputs,
    check_needs,
    check_private,
    kept_relations,
    weighted,
)
from .paper import PaperStage
from .reasons import NO_DESIRED
from .stage import ExplainSettings, SearchOutcome, SearchRequest, SearchTask, Stage, run_search

# Imported where they are used: the paper's search needs none of these.
if TYPE_CHECKING:
    from ..relations.relation import Relation
    from .computed import ComputedColumn
    from .consequences import Consequences
    from .exact import ExactSettings
    from .loop import PoolStage


def find_answers(request: SearchRequest) -> SearchOutcome:
    """Build the stages of a search and run them."""
    fitted, settings, constraints = request.fitted, request.settings, request.constraints
    factuals, positions = request.factuals, request.positions
    search, distance = settings.search.fallback, weighted(fitted.distance, constraints)
    check_private(fitted.generator, settings.search, fitted.distance, settings.ignore_relations)
    check_ignored(fitted, settings.ignore_relations)
    check_needs(fitted.generator, settings.search, distance, settings.diversity)
    check_inputs(fitted, settings.search)
    computed = computed_columns(fitted, settings, constraints)
    fitted = replace(fitted, decision=fitted.decision.with_margin(search.margin), distance=distance)
    if fitted.n_desired == 0:
        reasons = dict.fromkeys(positions.tolist(), NO_DESIRED)
        return replace(SearchOutcome.merge(factuals, []), reasons=reasons, computed=computed)
    consequences = _consequences(computed, factuals, constraints)
    is_exact = settings.search.is_exact
    task = SearchTask(
        request,
        # A proof needs the label of every row.
        decision=replace(fitted.decision, rule=None if is_exact else fitted.label_rule),
        factual_limits=FactualLimits(
            constraints,
            factuals,
            whole=is_exact,
            keep_unseen=isinstance(settings.search, ExactSearch) and settings.search.keep_unseen,
            also=[] if consequences is None else consequences.mentioned,
        ),
        scores=ScoreStore(len(factuals), fitted.schema.mutable.size, search.max_evaluations),
        consequences=consequences,
    )
    plan = _StagePlan(fitted, search, task)
    outcome = run_search(task, lambda task: replace(plan, task=task).all_stages(), positions)
    return replace(outcome, computed=computed)


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


def computed_columns(
    fitted: Fitted, settings: ExplainSettings, constraints: Constraints
) -> list[ComputedColumn]:
    """The columns that a search recomputes when it changes others."""
    if settings.search.fallback.consequences != "recompute":
        return []
    from .computed import followed_relations, plan_computed

    given = settings.search, settings.ignore_relations, constraints
    return plan_computed(constraints, followed_relations(fitted, *given))


def _consequences(
    computed: Sequence[ComputedColumn], factuals: EncodedRows, constraints: Constraints
) -> Consequences | None:
    if not computed:
        return None
    from .consequences import Consequences

    return Consequences(computed, factuals, constraints)


@dataclass(frozen=True, eq=False)
class _StagePlan:
    """Makes the stages of one call."""

    fitted: Fitted
    search: Search
    task: SearchTask

    @property
    def settings(self) -> ExplainSettings:
        """The settings of the call."""
        return self.task.settings

    def all_stages(self) -> list[Stage]:
        """The stages, first with all relations found, then only with those that are enforced.

        Relations that a few training rows break are dropped only if nothing else is found. The
        exact search uses the enforced ones alone: its proof is about one set of rows.
        """
        found = self.fitted.relations
        sure = tuple(one for one in found or () if one.enforced)
        is_exact = self.settings.search.is_exact
        covered = is_exact or {one.relation for one in sure}.issuperset(self._relations())
        with_all = [] if covered else self._stages(gives_reasons=False)
        enforced = self.fitted if found is None else replace(self.fitted, relations=sure)
        return [*with_all, *replace(self, fitted=enforced)._stages(gives_reasons=True)]

    def _stages(self, *, gives_reasons: bool) -> list[Stage]:
        """The stages in order, each for those who have no answer yet."""
        if self.search.is_paper:
            return self._paper_stages(gives_reasons)
        if isinstance(self.settings.search, ExactSearch):
            return self._exact_stages(self.settings.search, gives_reasons)
        return [self._pool_stage(gives_reasons)]

    def _exact_stages(self, search: ExactSearch, gives_reasons: bool) -> list[Stage]:
        """The exact search, and "near" for people beyond its budget."""
        from .exact import ExactStage

        pool = self._pool_stage(gives_reasons)
        # With a time limit, "near" runs first, so that people without a proof still get answers.
        has_limit = math.isfinite(self.task.request.deadline)
        quick_stage = replace(pool, gives_reasons=False) if has_limit else None
        return [ExactStage(self.task, self._exact_settings(search), quick_stage), pool]

    def _paper_stages(self, gives_reasons: bool) -> list[Stage]:
        """The paper's search, with copies of training rows only where there is nothing else."""
        copies_last: tuple[Copies, ...] = "never", "allow"
        in_turn = copies_last if self.search.copies == "last" else [self.search.copies]
        n_samples, most = self.search.n_draws(self.settings.n_samples)
        stages = list[PaperStage]()
        for copies in in_turn:
            ranking = self._ranking(replace(self.search, copies=copies))
            stage = PaperStage(self.task, ranking, n_samples)
            stages += [stage, *stage.with_more_draws(most)]
        # Only the last gives reasons, which take the scores of excluded draws.
        return [*stages[:-1], replace(stages[-1], gives_reasons=gives_reasons)]

    def _pool_stage(self, gives_reasons: bool) -> PoolStage:
        """The search beyond the paper."""
        from ..plausibility.surrogate import Surrogate
        from .costs import COSTS
        from .loop import PoolStage
        from .pool import PoolRules

        search, fitted = self.search, self.fitted
        ranking, model = self._ranking(search), fitted.plausibility
        n_samples, most = search.n_draws(self.settings.n_samples)
        rules = PoolRules(
            row_rules=ranking.rules,
            surrogate=fitted.surrogate or Surrogate.unlearned(),
            knn_distance=None if model is None else model.knn_distance_,
            copies_last=search.copies == "last",
            count_actions=tuple(search.rank_by) == BY_ACTIONS,
        )
        return PoolStage(
            self.task,
            rules,
            COSTS[search.name],
            search.extra_changes or 0,
            ranking,
            n_samples,
            most,
            _accepted_counts(fitted),
            gives_reasons,
        )

    def _ranking(self, search: Search) -> Ranking:
        constraints, plausible = self.task.request.constraints, None
        if search.min_plausibility:
            plausible = IsPlausible(plausibility_model(self.fitted), search.min_plausibility)
        given = self._relations(), self.task.column_cache
        rules = RowRules(
            self.fitted.distance,
            search.max_sparsity,
            search.max_distance,
            row_filters(self.fitted, search, constraints, *given),
            plausible,
        )
        n_counterfactuals = self.settings.n_counterfactuals
        if search.is_paper:
            n_counterfactuals = min(n_counterfactuals, search.n_draws(self.settings.n_samples)[1])
        return Ranking(
            n_counterfactuals=n_counterfactuals,
            rank_by=tuple(search.rank_by) if search.is_paper else RANK_BY,
            rules=rules,
            tolerance=search.tolerance,
            diversity=self.settings.diversity if n_counterfactuals > 1 else None,
        )

    def _exact_settings(self, search: ExactSearch) -> ExactSettings:
        from .exact import ExactSettings

        rules, constraints = self._ranking(self.search).rules, self.task.request.constraints
        weights = rules.distance.weights if isinstance(rules.distance, Gower) else None
        # A bound on the changes of all features also bounds the proof.
        of_all = [c.n for c in constraints.of_rows if isinstance(c, MaxChanges) and not c.features]
        bounds = [most for most in (rules.max_sparsity, *of_all) if most is not None]
        return ExactSettings(
            generator=require(self.fitted.generator, "enumeration", ENUMERATION_NEEDED),
            decision=self.task.decision,
            rules=replace(rules, max_sparsity=min(bounds, default=None)),
            not_last=_exclude_copies(self.fitted, search) if search.copies == "last" else None,
            n_counterfactuals=self.settings.n_counterfactuals,
            weights=np.ones(constraints.schema.mutable.size) if weights is None else weights,
            max_rows=search.max_rows,
            max_nodes=search.max_nodes,
        )

    def _relations(self) -> list[Relation]:
        """The relations that answers keep."""
        given = self.settings.search, self.settings.ignore_relations, self.task.request.constraints
        return kept_relations(self.fitted, *given)


def _accepted_counts(fitted: Fitted) -> tuple[IntArray | Codes, ...]:
    """How many accepted rows have each value of each mutable feature; else how many of all."""
    schema = fitted.schema
    if fitted.plausibility is not None:
        codes = fitted.plausibility.codes_
        return tuple(
            np.bincount(codes[at], minlength=schema.features[at].n_codes) for at in schema.mutable
        )
    if fitted.value_counts is not None:
        return fitted.value_counts
    return tuple(np.ones(schema.features[at].n_codes, dtype=np.int64) for at in schema.mutable)


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
        filters.append(_exclude_copies(fitted, search))
    return filters + [KeepsRelation(one, column_cache) for one in relations]


def _exclude_copies(fitted: Fitted, search: Search | ExactSearch) -> ExcludeTrainingRows:
    if fitted.training_rows is None:
        raise NotFittedError(
            f"search was set to {search!r} after fit, which did not keep the training rows. "
            "Fit again."
        )
    return ExcludeTrainingRows(fitted.training_rows)
