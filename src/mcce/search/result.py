"""From the outcome of a search to the result that users see."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..counterfactuals import UNANSWERED, Counterfactuals, ResultRows, make_counterfactuals
from ..distances import measure_rows
from ..errors import McceWarning, shorten
from ..fitted import Fitted
from ..postprocess.answers import Answers
from ..postprocess.filters import IsPlausible
from ..predictors.decision import ScoredRows
from ..tables.schema import OWN, EncodedRows, Schema
from .config import ExactSearch, Search
from .followers import Target
from .outcome import Outcome


def to_counterfactuals(
    rows: EncodedRows,
    scored: ScoredRows,
    outcome: Outcome,
    seconds: Mapping[str, float],
    measures: Mapping[str, np.ndarray],
    targets: Sequence[Target] = (),
) -> Counterfactuals[Any]:
    """The result of a search for the people in ``rows``."""
    return make_counterfactuals(
        rows,
        scored,
        _result_rows(outcome.answers, measures),
        _result_rows(outcome.misses, {}),
        outcome.reasons,
        n_evaluated=outcome.n_evaluated,
        n_unstable=outcome.n_unstable,
        stopped=outcome.stopped,
        timings=seconds,
        consequences=tuple(target.feature.name for target in targets),
    )


def _result_rows(answers: Answers, more: Mapping[str, np.ndarray]) -> ResultRows:
    measures = {
        "score": answers.score,
        "sparsity": answers.sparsity,
        "gower": answers.gower,
        **more,
    }
    return ResultRows(answers.rows.as_given(), answers.owner, answers.rank, measures)


def further_measures(
    fitted: Fitted, search: Search | ExactSearch, outcome: Outcome, targets: Sequence[Target] = ()
) -> dict[str, np.ndarray]:
    """Actions, the chosen distance, whether answers are proven, and how plausible they are."""
    measures: dict[str, np.ndarray] = {}
    if targets or fitted.plausibility is not None:
        followed = outcome.answers.rows.codes[[target.row for target in targets]] != OWN
        measures["n_actions"] = outcome.answers.sparsity - followed.sum(axis=0)
    # These two are measured in any case.
    if fitted.distance.name not in ("gower", "l1"):
        measures[fitted.distance.name] = measure_rows(fitted.distance, outcome.answers.rows)
    if isinstance(search, ExactSearch):
        measures["proven"] = np.isin(outcome.answers.owner, sorted(outcome.proven))
    if fitted.plausibility is not None:
        measures |= fitted.plausibility.measures(outcome.answers.rows)
        if isinstance(search, Search) and search.allow_implausible:
            check = IsPlausible(fitted.plausibility, search.min_plausibility)
            measures["plausible"] = check.keeps(outcome.answers.rows)
    return measures


def warn_of_gaps(result: Counterfactuals[Any], schema: Schema) -> None:
    """One warning per call for what a user must not overlook, at the line that calls ``explain``.

    Called by a public ``explain`` itself, or the line would be another.
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
    if alone is not None and alone.any():
        immutable = [feature.name for feature in schema.features if feature.immutable]
        messages.append(
            f"{int(alone.sum())} counterfactuals are for people whose values of the immutable "
            f"columns {shorten(immutable, 200)} occur in no accepted training row together, so "
            "nothing is known of what is usual for them (no_reference_group in result.measures)."
        )
    if messages:
        warnings.warn(" ".join(messages), McceWarning, stacklevel=3)
