"""What ``fit`` learned, as one frozen value.

Search, analysis and saving receive this instead of the explainer. :func:`learn` is step 1 of the
paper: it scores the training rows and fits the model, the distance, the plausibility model and the
surrogate.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .constraints.collection import Constraints
from .constraints.of_rows import warn_of_wrong_formulas
from .errors import McceWarning
from .flags import MIN_ROWS, Flag, find_flags, warn_of_flags
from .kernels import BoolArray, Codes, Int32Array, IntArray, check_cancellation, rows_as_bytes
from .model.registry import encode_training, visit_order_of, with_limited_inputs
from .predictors.decision import Decision, LabelRule, ScoredRows
from .predictors.desired import decision_on
from .protocols import Distance, Generator, is_private
from .runtime.progress import Clock
from .tables.columns import Kind
from .tables.schema import EncodedRows, Schema

# Imported where they are used: the paper's search learns none of these.
if TYPE_CHECKING:
    from .boosting.surrogate import Surrogate
    from .plausibility.model import PlausibilityModel
    from .relations.relation import FoundRelation
    from .survival.committee import MarginScale, Retrain, Survival
    from .survival.lasting import Lasting


@dataclass(frozen=True, eq=False)
class Fitted:
    """Everything that ``fit`` learned from the training data."""

    schema: Schema
    decision: Decision
    generator: Generator
    distance: Distance
    n_desired: int
    seed: int
    label_rule: LabelRule | None = None
    plausibility: PlausibilityModel | None = None
    surrogate: Surrogate | None = None
    lasting: Lasting | None = None
    relations: tuple[FoundRelation, ...] | None = None
    flags: tuple[Flag, ...] | None = None
    training_rows: np.ndarray | None = field(default=None, repr=False)
    value_counts: tuple[IntArray | Int32Array, ...] | None = field(default=None, repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def answering(self) -> Fitted:
        """The same with the decision that answers need: if they are to last, a stricter one."""
        lasting = self.lasting
        if lasting is None or not lasting.share:
            return self
        decision = lasting.decision(self.margin_scale, self.schema)
        return replace(self, decision=decision, surrogate=lasting.surrogate, label_rule=None)

    @property
    def margin_scale(self) -> MarginScale:
        """The scale on which the margins of the predictor and of retrained models compare."""
        from .survival.committee import MarginScale

        assert self.surrogate is not None
        return MarginScale(self.surrogate, self.decision)


@dataclass(frozen=True)
class Needs:
    """What a search needs from the explainer.

    For a search beyond the paper, ``fit`` learns a plausibility model, at least to measure answers.
    """

    beyond_paper: bool = False
    requires_plausibility: bool = False
    surrogate: bool = False
    relations: bool = False
    training_rows: bool = False


@dataclass(frozen=True, eq=False)
class FitRequest:
    """What ``fit`` is to learn: the parameters of an explainer, checked, and what its search needs.

    Later calls compare the parameters with ``parameters``, to notice changes.
    """

    predictor: Any
    desired: Any
    score_class: Hashable | None
    immutable: Sequence[Hashable] | None
    mutable: Sequence[Hashable] | None
    kinds: Mapping[Hashable, Kind] | None
    feature_names: Sequence[Hashable] | None
    generator: Generator
    distance: Distance
    constraints: Any
    labels: Any
    survival: Survival | None
    retrain: Retrain | None
    needs: Needs
    random_state: int | None
    n_jobs: int | None
    verbose: bool
    parameters: Mapping[str, Any]


def learn(X: Any, request: FitRequest) -> Fitted:
    """Everything that an explainer learns from training data."""
    clock, seed = Clock(), _seed(request.random_state)
    rows = encode_training(
        request.generator,
        X,
        immutable=request.immutable,
        mutable=request.mutable,
        kinds=request.kinds,
        feature_names=request.feature_names,
    )
    bound = Constraints.bind(request.constraints, rows.schema)
    _finish(clock, "encode")
    decision = decision_on(rows.schema, request.predictor, request.desired, request.score_class)
    scored, label_rule = decision.learn_rule(rows.frame)
    _finish(clock, "decision")
    flags = _find_flags(rows, decision, scored, bound, request)
    _finish(clock, "flags")
    generator = _fit_generator(rows, scored.valid, seed, request)
    _finish(clock, "model")
    private = is_private(generator)
    # With a private model, nothing else is learned: even the distance sees no row.
    known = rows.take(np.empty(0, dtype=np.int64)) if private else rows
    fitted = Fitted(
        schema=rows.schema,
        decision=decision,
        generator=generator,
        distance=request.distance.fit(rows.schema, known, scored.valid[: len(known)]),
        n_desired=int(generator.n_desired_ if is_private(generator) else scored.valid.sum()),
        seed=seed,
        parameters=request.parameters,
        seconds=clock.seconds,
    )
    if private:
        return fitted
    relations = _find_relations(rows, bound) if request.needs.relations else None
    _finish(clock, "relations")
    fitted = replace(fitted, label_rule=label_rule, flags=flags, relations=relations)
    return _learn_more(fitted, rows, scored, clock, request)


def _learn_more(
    fitted: Fitted, rows: EncodedRows, scored: ScoredRows, clock: Clock, request: FitRequest
) -> Fitted:
    """What else the search needs: models of the predictor and of accepted rows, and the rows."""
    needs = request.needs
    surrogate = _learn_surrogate(rows, scored, fitted.decision) if needs.surrogate else None
    decision = with_known_range(fitted.decision, surrogate)
    fitted = replace(fitted, decision=decision, surrogate=surrogate)
    _finish(clock, "surrogate")
    lasting = _learn_lasting(rows, scored, fitted, request)
    _finish(clock, "survival")
    # Last because it keeps the most memory.
    plausibility = _learn_plausibility(rows, scored.valid, fitted.generator, request)
    _finish(clock, "plausibility")
    return replace(
        fitted,
        lasting=lasting,
        plausibility=plausibility,
        training_rows=np.unique(rows_as_bytes(rows.codes.T)) if needs.training_rows else None,
        value_counts=tuple(_count(rows.codes[column]) for column in rows.schema.mutable),
    )


def with_known_range(decision: Decision, surrogate: Surrogate | None) -> Decision:
    """The decision, which knows whether all scores are shares, as the surrogate found."""
    if surrogate is None or surrogate.link != "logit":
        return decision
    return replace(decision, are_shares=True)


def _fit_generator(
    rows: EncodedRows, is_desired: BoolArray, seed: int, request: FitRequest
) -> Generator:
    """The model of step 1."""
    generator = request.generator
    if request.needs.beyond_paper:
        generator = with_limited_inputs(generator, request.parameters["generator"], rows.schema)
    return generator.fit(
        rows, is_desired, seed=seed, n_jobs=request.n_jobs, verbose=request.verbose
    )


def _find_flags(
    rows: EncodedRows,
    decision: Decision,
    scored: ScoredRows,
    bound: Constraints,
    request: FitRequest,
) -> tuple[Flag, ...]:
    """The flags of columns, with warnings of what looks wrong; none with a private model."""
    if is_private(request.generator):
        return ()
    warn_of_wrong_formulas(bound.derived, rows.frame, rows.schema.features, stacklevel=4)
    _warn_of_one_decision(scored.valid)
    try_inputs = request.needs.beyond_paper
    found = find_flags(rows, decision, scored, request.labels, try_inputs=try_inputs)
    named = {*(() if request.mutable is None else request.mutable)}
    named |= {name for c in bound.listed for name in c.features}
    warn_of_flags(found, rows.schema, named, stacklevel=4)
    return found


def _warn_of_one_decision(valid: BoolArray) -> None:
    """Warn if no training row is accepted, or every one."""
    some, effect = "No", "there will be no answers"
    if valid.all():
        some, effect = "Every", "there is nobody like them to explain it to"
    # Small training sets may be hand-picked, so all accepted is no surprise.
    if (valid.all() and valid.size >= MIN_ROWS) or not valid.any():
        warnings.warn(
            f"{some} training row has the desired decision, so {effect}. Check desired and "
            "score_class, and whether the predictor gets the columns that it was trained on.",
            McceWarning,
            stacklevel=5,
        )


def _finish(clock: Clock, step: str) -> None:
    """Record the seconds of a step; raise if the fit is to end."""
    check_cancellation()
    clock.stop(step)


def _learn_surrogate(rows: EncodedRows, scored: ScoredRows, decision: Decision) -> Surrogate | None:
    """The surrogate; None if there is too little to learn from."""
    from .boosting.surrogate import Surrogate

    return Surrogate.fit(rows, scored, decision)


def _learn_lasting(
    rows: EncodedRows, scored: ScoredRows, fitted: Fitted, request: FitRequest
) -> Lasting | None:
    """What answers that last are measured by; None if nobody asks, or nothing can be learned."""
    if request.survival is None or fitted.surrogate is None:
        return None
    from .survival.committee import TrainingData
    from .survival.lasting import Lasting

    def decide(predictor: Any) -> Decision:
        return decision_on(fitted.schema, predictor, request.desired, request.score_class)

    return Lasting.learn(
        TrainingData(rows, scored, request.labels),
        fitted.margin_scale,
        request.survival,
        request.retrain,
        decide,
        fitted.seed,
    )


def _learn_plausibility(
    rows: EncodedRows, is_desired: BoolArray, generator: Generator, request: FitRequest
) -> PlausibilityModel | None:
    """The plausibility model; None if no search needs it or there are no accepted rows."""
    if not request.needs.beyond_paper or not is_desired.any():
        return None
    from .plausibility.model import PlausibilityModel

    order = visit_order_of(generator, rows.schema)
    return PlausibilityModel().fit(rows, is_desired, order, request.n_jobs)


def _find_relations(rows: EncodedRows, bound: Constraints) -> tuple[FoundRelation, ...]:
    """Relations between columns, with a warning of those that keep columns from changing."""
    from .relations.discovery import (
        find_relations,
        warn_of_blocked_actions,
        warn_of_possible_formulas,
    )

    found = find_relations(rows)
    # What follows by a formula of the user's is known to them.
    declared = {derived.target for derived in bound.derived}
    others = tuple(one for one in found if one.relation.target not in declared)
    warn_of_blocked_actions(others, rows, stacklevel=5)
    warn_of_possible_formulas(others, stacklevel=5)
    return found


def _count(codes: Codes) -> Codes:
    """How many rows have each code."""
    return np.bincount(codes).astype(np.int32)


def _seed(random_state: int | None) -> int:
    """The seed itself, or a fresh one from the operating system."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    return int(random_state)
