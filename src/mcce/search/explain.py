"""``explain`` as one function, from a frame of people to the result: steps 2 and 3 of the paper.

Always true: everything comes from the arguments. An explainer that is fitted again meanwhile, by
another thread or by its own predictor, changes nothing here.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from ..candidates import MeasuredRows
from ..constraints.collection import Constraints
from ..counterfactuals.parts import UNANSWERED, ResultRows
from ..counterfactuals.result import Counterfactuals, make_counterfactuals
from ..distances import measure_rows
from ..errors import McceWarning, ParameterError, shorten
from ..fitted import Fitted
from ..generate import BYTES_PER_CANDIDATE, BYTES_PER_CODE
from ..kernels import IntArray
from ..postprocess.margins import measure_margins
from ..protocols import Callback, Progress, is_private
from ..runtime.progress import Clock, ProgressBar
from ..runtime.threads import physical_memory
from .config import ExactSearch, ExplainSettings, Search
from .plan import default_margin, find_answers, margins_of
from .stage import Monitor, SearchOutcome, SearchRequest, make_request

# Immutable values are usual if on average this many accepted rows have the same ones.
N_PEERS = 5


def explain(
    fitted: Fitted,
    settings: ExplainSettings,
    X: Any,
    constraints: Constraints,
    callback: Callback | None = None,
) -> Counterfactuals[Any]:
    """Find counterfactuals for people."""
    if callback is not None and not callable(callback):
        raise ParameterError(f"callback must be None or a function, got {shorten(callback)}.")
    _check_memory(settings, fitted.schema.mutable.size)
    clock = Clock()
    deadline = math.inf if settings.max_seconds is None else time.monotonic() + settings.max_seconds
    rows = fitted.schema.encode(X)
    clock.stop("encode")
    scored = fitted.decision.score(rows.frame)
    clock.stop("decision")
    positions = np.flatnonzero(~scored.valid)
    bar = ProgressBar(positions.size, "explain", settings.verbose)
    monitor = Monitor(positions.size, _watch(bar, callback, deadline))
    request = make_request(fitted, settings, constraints, rows, scored, monitor)
    request = replace(request, deadline=deadline)
    try:
        outcome, stopped = _search(request, positions)
    finally:
        bar.close()
    return make_counterfactuals(
        rows,
        scored,
        result_rows(fitted, settings, outcome),
        _as_result_rows(_as_scored(fitted, outcome.misses), {}),
        outcome.reasons,
        n_evaluated=monitor.n_evaluated,
        n_unstable=outcome.n_unstable,
        stopped=stopped,
        timings=clock.seconds | dict(outcome.seconds) | {"total": clock.total()},
        consequences=tuple(one.feature.name for one in outcome.following if not one.is_free),
        losses=tuple(one.feature.name for one in outcome.following if one.is_free),
        min_margin=_min_margin(fitted, settings.search),
    )


def _as_scored(fitted: Fitted, rows: MeasuredRows) -> MeasuredRows:
    """Rows with the scores of the predictor alone."""
    if fitted.answering is fitted:
        return rows
    return replace(rows, score=fitted.decision.score(rows.frame).score)


def _search(request: SearchRequest, positions: IntArray) -> tuple[SearchOutcome, bool]:
    """The outcome with what would help people without an answer, and whether it was stopped."""
    settings = request.settings
    search = settings.search.by_sampling
    try:
        outcome = find_answers(request, positions)
        stopped = request.monitor.stopped
        if outcome.reasons and not search.is_paper:
            from .relaxing import add_remedies

            outcome = add_remedies(request, outcome)
    except MemoryError:
        n_samples = search.resolve_samples(settings.n_samples)[0]
        raise ParameterError(
            f"The candidates need more memory than there is, with n_samples={n_samples} "
            f"draws per person, memory={settings.memory!r} megabytes per block of people, and "
            f"n_jobs={settings.n_jobs!r}. Lower one of them."
        ) from None
    return outcome, stopped


def _watch(bar: ProgressBar, callback: Callback | None, deadline: float) -> Callback:
    """Shows progress, calls the user's callback, and enforces the time limit."""

    def on_progress(progress: Progress) -> bool | None:
        bar.show(progress.n_settled)
        stop = callback(progress) if callback is not None else None
        return stop or time.monotonic() >= deadline

    return on_progress


def _check_memory(settings: ExplainSettings, n_mutable: int) -> None:
    """Raise if the candidates of one person cannot fit into memory, before trying."""
    # An exact search draws only for people beyond its budget.
    if isinstance(settings.search, ExactSearch):
        return
    n_samples, max_samples = settings.search.by_sampling.resolve_samples(settings.n_samples)
    n_bytes = max_samples * (BYTES_PER_CANDIDATE + BYTES_PER_CODE * n_mutable)
    if n_bytes > physical_memory():
        name = "n_samples" if max_samples == n_samples else "max_samples"
        raise ParameterError(
            f"{name}={max_samples} draws need about {n_bytes / 2**30:.0f} GiB for each person, "
            f"more than this machine has. Lower {name}."
        )


def result_rows(fitted: Fitted, settings: ExplainSettings, outcome: SearchOutcome) -> ResultRows:
    """The answers of an outcome, with all their measures."""
    outcome = replace(outcome, answers=_as_scored(fitted, outcome.answers))
    return _as_result_rows(outcome.answers, _further_measures(fitted, settings, outcome))


def _min_margin(fitted: Fitted, search: Search | ExactSearch) -> float:
    """The margin that was asked for, by the user or by default."""
    found = default_margin(fitted, search)
    return float(search.margin or 0.0) if found is None else found[1]


def _as_result_rows(answers: MeasuredRows, more: dict[str, np.ndarray]) -> ResultRows:
    measures = {"score": answers.score, "sparsity": answers.sparsity, "gower": answers.gower}
    return ResultRows(answers.rows.as_given(), answers.owner, answers.rank, measures | more)


def _further_measures(
    fitted: Fitted, settings: ExplainSettings, outcome: SearchOutcome
) -> dict[str, np.ndarray]:
    """Actions, the chosen distance, whether answers are proven, and how plausible they are."""
    measures = measure_margins(
        margins_of(fitted), fitted.value_counts, outcome.answers.rows, outcome.answers.score
    )
    model, needs = fitted.plausibility, settings.search.needs
    # If no training row is accepted, there is no model of accepted rows: how plausible is unknown.
    no_accepted = not fitted.n_desired and needs.beyond_paper and not is_private(fitted.generator)
    if outcome.following or model is not None or no_accepted:
        rows, measures["n_actions"] = outcome.answers.rows, outcome.answers.sparsity.copy()
        for one in outcome.following:
            measures["n_actions"] -= one.follows(rows.codes[one.place], rows.tables[one.place])
    # These two are always measured.
    if fitted.distance.name not in ("gower", "l1"):
        measures[fitted.distance.name] = measure_rows(fitted.distance, outcome.answers.rows)
    if isinstance(settings.search, ExactSearch):
        measures["proven"] = np.isin(outcome.answers.owner, sorted(outcome.proven))
    if fitted.lasting is not None:
        factuals = outcome.answers.rows.factuals
        encoded = factuals.schema.encode(outcome.answers.frame)
        measures |= fitted.lasting.committee(fitted.margin_scale).measures(encoded)
    if model is not None:
        measures |= model.measures(outcome.answers.rows)
    elif no_accepted:
        from ..plausibility.model import MEASURES

        n = outcome.answers.owner.size
        measures |= {name: np.full(n, np.nan).astype(dtype) for name, dtype in MEASURES.items()}
    return measures


def warn_of_gaps(result: Counterfactuals[Any], fitted: Fitted, search: Search) -> None:
    """One warning per call for what a user must not overlook, at the line that calls ``explain``.

    To find that line, a public ``explain`` must call this itself.
    """
    result = result.to_pandas()
    messages = []
    n_missing = int((result.people["status"] == UNANSWERED).sum())
    if n_missing:
        messages.append(
            f"{n_missing} of {len(result.people)} people have no counterfactual; "
            "result.missing says why."
        )
    if result.n_unstable:
        messages.append(
            f"The predictor is unstable: {result.n_unstable} counterfactuals were valid at first "
            "but not in the final call, and were withdrawn."
        )
    alone = result.measures.get("no_reference_group")
    if alone is not None and alone.any() and search.min_plausibility and _has_peers(fitted):
        immutable = [feature.name for feature in fitted.schema.features if feature.immutable]
        messages.append(
            f"min_plausibility says little of {int(alone.sum())} of {len(alone)} counterfactuals: "
            f"no accepted training row has the person's {shorten(immutable, 200)} "
            "(no_reference_group in result.measures)."
        )
    if messages:
        warnings.warn(" ".join(messages), McceWarning, stacklevel=3)


def _has_peers(fitted: Fitted) -> bool:
    """Whether accepted rows usually share their immutable values."""
    # Where most have values of their own, such as an age in days, it says nothing of a person.
    model = fitted.plausibility
    return model is not None and fitted.n_desired >= N_PEERS * len(model.reference_groups_)
