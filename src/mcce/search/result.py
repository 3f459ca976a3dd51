"""From the outcome of a search to the result that users see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..counterfactuals import Counterfactuals, ResultRows, make_counterfactuals
from ..predictors.decision import ScoredRows
from ..tables.schema import EncodedRows
from .outcome import Outcome, Picked


def to_counterfactuals(
    rows: EncodedRows,
    scored: ScoredRows,
    outcome: Outcome,
    seconds: Mapping[str, float],
    measures: Mapping[str, np.ndarray],
) -> Counterfactuals[Any]:
    """The result of a search for the people in ``rows``.

    Parameters
    ----------
    rows, scored
        The factuals, and what the predictor says of them.
    outcome
        What the search has found.
    seconds
        Seconds by step, and ``total``.
    measures
        Further measures of the answers, by name.
    """
    return make_counterfactuals(
        rows,
        scored,
        _result_rows(rows, outcome.answers, measures),
        _result_rows(rows, outcome.misses, {}),
        outcome.reasons,
        n_evaluated=outcome.n_evaluated,
        n_unstable=outcome.n_unstable,
        stopped=outcome.stopped,
        timings=seconds,
    )


def _result_rows(rows: EncodedRows, found: Picked, more: Mapping[str, np.ndarray]) -> ResultRows:
    measures = {"score": found.score, "sparsity": found.sparsity, "gower": found.gower, **more}
    return ResultRows(rows.as_given(found.frame), found.owner, found.rank, measures)
