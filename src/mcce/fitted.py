"""What ``fit`` learned, as one frozen value.

Search, analysis and saving receive this instead of the explainer. :func:`learn` is step 1 of the
paper: it scores the training rows and fits the model, the distance, the plausibility model and the
surrogate.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .constraints.collection import Constraints
from .constraints.derived import warn_of_wrong_formulas
from .errors import NotFittedError
from .kernels import BoolArray, Codes, IntArray, check_cancellation, rows_as_bytes
from .model import (
    encode_training,
    is_private,
    limit_inputs,
    visit_order_of,
    warn_of_useless_columns,
)
from .plausibility.model import PlausibilityModel
from .predictors.decision import Decision, LabelRule, ScoredRows
from .predictors.desired import decision_on
from .protocols import Distance, Generator
from .relations import FoundRelation
from .relations.discovery import find_relations, warn_of_blocked_actions
from .runtime.progress import Clock
from .surrogate import Surrogate
from .tables.columns import Kind
from .tables.schema import EncodedRows, Schema


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
    relations: tuple[FoundRelation, ...] | None = None
    training_rows: np.ndarray | None = field(default=None, repr=False)
    value_counts: tuple[IntArray | Codes, ...] | None = field(default=None, repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


def plausibility_model(fitted: Fitted) -> PlausibilityModel:
    """What accepted rows look like, if fit has learned it."""
    if fitted.plausibility is None:
        raise NotFittedError(
            "fit did not learn what accepted rows look like: its search is the paper's, no "
            "training row has the desired decision, or the explainer was saved by an earlier "
            "version of mcce. Fit again with search='balanced' or any other but 'paper'."
        )
    return fitted.plausibility


def learn(
    X: Any,
    *,
    predictor: Any,
    desired: Any,
    immutable: Sequence[Hashable] | None,
    mutable: Sequence[Hashable] | None,
    kinds: Mapping[Hashable, Kind] | None,
    score_class: Hashable | None,
    feature_names: Sequence[Hashable] | None,
    generator: Generator,
    distance: Distance,
    constraints: Any,
    plausibility: bool,
    surrogate: bool,
    relations: bool,
    training_rows: bool,
    random_state: int | None,
    n_jobs: int | None,
    verbose: bool,
    parameters: Mapping[str, Any],
) -> Fitted:
    """Everything that an explainer learns from training data."""
    clock, seed = Clock(), _seed(random_state)
    names = {"immutable": immutable, "mutable": mutable, "feature_names": feature_names}
    rows = encode_training(generator, X, kinds=kinds, **names)
    _check_columns(rows, constraints, is_private(generator))
    _finish(clock, "encode")
    decision = decision_on(rows.schema, predictor, desired, score_class)
    scored, label_rule = decision.learn_rule(rows.frame)
    _finish(clock, "decision")
    generator = limit_inputs(generator, parameters["generator"], rows.schema, plausibility)
    generator = generator.fit(rows, scored.valid, seed=seed, n_jobs=n_jobs, verbose=verbose)
    _finish(clock, "model")
    if is_private(generator):
        return _public_part(rows, decision, generator, distance, seed, parameters, clock)
    wanted = {"plausibility": plausibility, "surrogate": surrogate, "relations": relations}
    return Fitted(
        schema=rows.schema,
        decision=decision,
        generator=generator,
        distance=distance.fit(rows.schema, rows, scored.valid),
        n_desired=int(scored.valid.sum()),
        seed=seed,
        label_rule=label_rule,
        **_learn_beyond_paper(rows, scored, decision, generator, wanted, clock, n_jobs),
        training_rows=np.unique(rows_as_bytes(rows.exact.T)) if training_rows else None,
        value_counts=tuple(_count(rows.exact[at]) for at in rows.schema.mutable),
        parameters=parameters,
        seconds=clock.seconds,
    )


def _public_part(
    rows: EncodedRows,
    decision: Decision,
    generator: Generator,
    distance: Distance,
    seed: int,
    parameters: Mapping[str, Any],
    clock: Clock,
) -> Fitted:
    """What an explainer with a private model keeps: nothing that was read from rows without noise.

    Not the rule of labels, which follows from the scores of training rows, nor how often values
    occur. The distance is fitted on no rows at all.
    """
    nothing = rows.take(np.empty(0, dtype=np.int64))
    return Fitted(
        schema=rows.schema,
        decision=decision,
        generator=generator,
        distance=distance.fit(rows.schema, nothing, np.empty(0, dtype=bool)),
        n_desired=int(generator.n_desired_),  # type: ignore[attr-defined]
        seed=seed,
        parameters=parameters,
        seconds=clock.seconds,
    )


def _check_columns(rows: EncodedRows, constraints: Any, private: bool) -> None:
    """Raise for constraints that cannot hold, and warn of columns that look wrong."""
    bound = Constraints.bind(constraints, rows.schema)
    if private:
        return
    warn_of_useless_columns(rows, stacklevel=4)
    warn_of_wrong_formulas(bound.derived, rows.frame, rows.schema.features, stacklevel=4)


def _finish(clock: Clock, step: str) -> None:
    """Note the time of a step, unless the fit is to end."""
    check_cancellation()
    clock.stop(step)


def _learn_beyond_paper(
    rows: EncodedRows,
    scored: ScoredRows,
    decision: Decision,
    generator: Generator,
    wanted: Mapping[str, bool],
    clock: Clock,
    n_jobs: int | None,
) -> dict[str, Any]:
    """Fields of :class:`Fitted` that searches beyond the paper need, as far as they are wanted."""
    # What keeps most comes last, so that the others work in memory that it does not take yet.
    steps: dict[str, Callable[[], Any]] = {
        "relations": lambda: _find_relations(rows),
        "surrogate": lambda: Surrogate.fit(rows, scored, decision),
        "plausibility": lambda: _learn_plausibility(rows, scored.valid, generator, n_jobs),
    }
    learned = {}
    for name, learn_it in steps.items():
        learned[name] = learn_it() if wanted[name] else None
        _finish(clock, name)
    return learned


def _learn_plausibility(
    rows: EncodedRows, is_desired: BoolArray, generator: Generator, n_jobs: int | None
) -> PlausibilityModel | None:
    """What accepted rows look like; None if there are none."""
    if not is_desired.any():
        return None
    order = visit_order_of(generator, rows.schema)
    return PlausibilityModel().fit(rows, is_desired, order, n_jobs)


def _find_relations(rows: EncodedRows) -> tuple[FoundRelation, ...]:
    """Relations between columns, with a warning of those that keep columns from changing."""
    found = find_relations(rows)
    warn_of_blocked_actions(found, rows, stacklevel=6)
    return found


def _count(codes: Codes) -> Codes:
    """How many rows have each code."""
    return np.bincount(codes).astype(np.int32)


def _seed(random_state: int | None) -> int:
    """The seed itself, or a fresh one from the operating system."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    return int(random_state)
