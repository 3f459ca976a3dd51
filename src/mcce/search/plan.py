"""From the parameters of an explainer to the plan of a search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..constraints.collection import Constraints
from ..constraints.rows import MaxChanges, Together
from ..distances import Gower
from ..errors import ConstraintError, NotFittedError, ParameterError
from ..generate import GUIDANCE_NEEDED
from ..kernels import BoolArray
from ..model import require
from ..parameters import RANK_BY
from ..plausibility.model import PlausibilityModel
from ..postprocess.filters import ExcludeTrainingRows, InSupport, ObeysConstraint
from ..postprocess.ranking import Ranking
from ..protocols import Callback, CandidateFilter, Distance, RowFilter
from .config import ExactSearch, Search, find_search
from .exact import Exact
from .greedy import Terms
from .runner import Plan, Walking
from .selection import Choice

if TYPE_CHECKING:
    from ..explainer import MCCE


def resolve_search(explainer: MCCE) -> Search:
    """The search of an explainer, with the numbers of draws that it says itself."""
    search = find_search(explainer.search).draws
    n_samples = explainer.n_samples or search.n_samples
    max_samples = explainer.max_samples or max(search.max_samples or n_samples, n_samples)
    if max_samples < n_samples:
        raise ParameterError(
            f"max_samples must be at least n_samples, {n_samples}, got {max_samples!r}."
        )
    return replace(search, n_samples=n_samples, max_samples=max_samples)


def make_plan(explainer: MCCE, constraints: Constraints, callback: Callback) -> Plan:
    """The plan of one call of ``explain``."""
    search = resolve_search(explainer)
    most = search.max_samples or search.n_samples
    ranking = _ranking(explainer, search, constraints, most)
    exact = _exact(explainer, constraints, ranking)
    if search.keep:
        require(explainer.generator_, "guidance", GUIDANCE_NEEDED)  # before anything is drawn
    return Plan(
        generator=explainer.generator_,
        decision=explainer.decision_,
        ranking=ranking,
        constraints=constraints,
        n_samples=search.n_samples,
        max_samples=most,
        seed=explainer.seed_,
        memory=explainer.memory,
        n_jobs=explainer.n_jobs,
        callback=callback,
        walking=_walking(explainer, search, constraints, ranking) if search.targets else None,
        keep=search.keep,
        exact=exact,
    )


def _exact(explainer: MCCE, constraints: Constraints, ranking: Ranking) -> Exact | None:
    search = find_search(explainer.search)
    if not isinstance(search, ExactSearch):
        return None
    generator = require(
        explainer.generator_, "enumeration", "The exact search lists all rows that can be drawn"
    )
    distance = ranking.distance
    taken = {
        "rank_by": (tuple(explainer.rank_by), RANK_BY),
        "tolerance": (explainer.tolerance, 0.0),
        "diversity": (explainer.diversity, None),
        "distance": ("gower" if type(distance) is Gower else distance.name, "gower"),
    }
    for name, (given, needed) in taken.items():
        if given != needed:
            raise ParameterError(
                "The exact search proves which rows have the fewest changes and then the least "
                f"Gower distance, so {name} must be {needed!r}, got {given!r}. Leave it out, or "
                "take another search."
            )
    n_mutable = constraints.schema.mutable.size
    weights = np.ones(n_mutable) if constraints.weights is None else constraints.weights
    # What bounds the changes of all features also tells where to end.
    of_all = [c.n for c in constraints.of_rows if isinstance(c, MaxChanges) and not c.features]
    bounds = [most for most in (explainer.max_sparsity, *of_all) if most is not None]
    return Exact(
        generator=generator,
        decision=explainer.decision_,
        rules=tuple(_row_filters(explainer, constraints)),
        n_counterfactuals=explainer.n_counterfactuals,
        max_sparsity=min(bounds, default=None),
        max_distance=explainer.max_distance,
        weights=weights,
        max_rows=search.max_rows,
        max_nodes=search.max_nodes,
    )


def _walking(
    explainer: MCCE, search: Search, constraints: Constraints, ranking: Ranking
) -> Walking:
    accepted = _plausibility(explainer)
    if tuple(explainer.rank_by) != ("sparsity", "distance"):
        raise ParameterError(
            f"rank_by={explainer.rank_by!r} is for searches that rank draws, but the search is "
            f'{explainer.search!r}. Leave rank_by out, or take search="paper".'
        )
    support = accepted.support_
    sizes = None if search.support is None else support.sizes(search.support)
    last = replace(
        ranking,
        n_counterfactuals=max(search.targets, ranking.n_counterfactuals),
        diversity=None,
    )
    # Fewer changes are made on the way, so that what bounds them is not asked of targets at first.
    rules = [rule for rule in ranking.rules if not _bounds_changes(rule)]
    if sizes is not None:
        rules.append(InSupport(support, sizes))
    return Walking(
        targets=replace(last, rules=tuple(rules), max_sparsity=None, max_distance=None),
        last_targets=last,
        terms=Terms(
            decision=explainer.decision_,
            rules=tuple(_row_filters(explainer, constraints)),
            support=support,
            sizes=sizes,
            units=_units(constraints),
            slack=search.slack,
            n_wanted=ranking.n_wanted,
        ),
        choice=Choice(search.prefer, search.slack, accepted.knn_distance_, ranking),
    )


def _bounds_changes(rule: CandidateFilter) -> bool:
    return isinstance(rule, ObeysConstraint) and isinstance(rule.constraint, MaxChanges)


def _units(constraints: Constraints) -> BoolArray:
    """The mutable features in units that change together."""
    n_mutable = constraints.schema.mutable.size
    unit = np.arange(n_mutable)
    for constraint in constraints.of_rows:
        if isinstance(constraint, Together):
            linked = np.isin(unit, unit[constraints.mutable_positions(constraint)])
            unit[linked] = unit[linked].min()
    return np.unique(unit)[:, None] == unit


def _plausibility(explainer: MCCE) -> PlausibilityModel:
    if explainer.plausibility_ is None:
        raise NotFittedError(
            f"search was set to {explainer.search!r} after a fit that did not learn what accepted "
            "rows look like. Fit again."
        )
    return explainer.plausibility_


def _ranking(explainer: MCCE, search: Search, constraints: Constraints, most: int) -> Ranking:
    rules: list[CandidateFilter] = list(_row_filters(explainer, constraints))
    if search.support is not None and not search.targets:
        support = _plausibility(explainer).support_
        rules.append(InSupport(support, support.sizes(search.support)))
    n_counterfactuals = min(explainer.n_counterfactuals, most)
    return Ranking(
        n_counterfactuals=n_counterfactuals,
        rank_by=tuple(explainer.rank_by),
        distance=_distance(explainer, constraints),
        tolerance=explainer.tolerance,
        max_sparsity=explainer.max_sparsity,
        max_distance=explainer.max_distance,
        rules=tuple(rules),
        diversity=explainer.diversity if n_counterfactuals > 1 else None,
    )


def _row_filters(explainer: MCCE, constraints: Constraints) -> list[RowFilter]:
    rules: list[RowFilter] = [
        ObeysConstraint(constraints, constraint) for constraint in constraints.of_rows
    ]
    if explainer.exclude_training_rows:
        if explainer.training_rows_ is None:
            raise NotFittedError(
                "exclude_training_rows was set after fit, which did not keep the training "
                "rows. Fit again."
            )
        rules.append(ExcludeTrainingRows(explainer.training_rows_))
    return rules


def _distance(explainer: MCCE, constraints: Constraints) -> Distance:
    distance = explainer.distance_
    if constraints.weights is None:
        return distance
    if not isinstance(distance, Gower):
        raise ConstraintError(
            f"Weights are those of the Gower distance, but distance is {distance.name!r}. "
            "Leave the weights or the distance out."
        )
    return Gower(constraints.weights)
