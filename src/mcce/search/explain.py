"""Steps 2 and 3 of the paper as one function, from people to the result.

Always true: everything comes from the arguments. An explainer that is fitted again meanwhile, by
another thread or by its own predictor, changes nothing here.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from ..constraints.collection import Constraints
from ..counterfactuals import Counterfactuals
from ..errors import ParameterError, shorten
from ..execution.progress import Clock, ProgressBar
from ..fitted import Fitted
from ..protocols import Callback
from .plan import Settings, search
from .progress import ProgressCallback
from .result import further_measures, to_counterfactuals, warn_of_gaps


def explain(
    fitted: Fitted,
    settings: Settings,
    X: Any,
    constraints: Constraints,
    *,
    max_seconds: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> Counterfactuals[Any]:
    """Find counterfactuals for people.

    Parameters
    ----------
    fitted, settings, constraints
        What ``fit`` learned, and what this call requests.
    X
        The people.
    max_seconds, callback
        Time limit of the search, and the user's callback.
    verbose
        Whether to show progress.

    Returns
    -------
    Counterfactuals
        Counterfactuals, their measures, and what became of everybody.
    """
    if callback is not None and not callable(callback):
        raise ParameterError(f"callback must be None or a function, got {shorten(callback)}.")
    clock = Clock()
    rows = fitted.schema.encode(X)
    clock.stop("encode")
    scored = fitted.decision.score(rows.frame)
    clock.stop("decision")
    people = np.flatnonzero(~scored.valid)
    bar = ProgressBar(people.size, "explain", verbose)
    ends = math.inf if max_seconds is None else time.monotonic() + max_seconds
    on_progress = ProgressCallback(bar, callback, ends)
    try:
        outcome = search(fitted, settings, constraints, rows, people, on_progress, ends)
    finally:
        bar.close()
    seconds = clock.seconds | dict(outcome.seconds) | {"total": clock.total()}
    measures = further_measures(fitted, settings.search, outcome)
    result = to_counterfactuals(rows, scored, outcome, seconds, measures)
    warn_of_gaps(result)
    return result
