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
from ..fitted import Fitted
from ..generate import BYTES_PER_CANDIDATE, BYTES_PER_CODE
from ..protocols import Callback
from ..runtime.progress import Clock, ProgressBar
from ..runtime.threads import physical_memory
from .config import Search
from .plan import Settings, recomputed, search
from .progress import ProgressCallback
from .result import further_measures, to_counterfactuals


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
    """Find counterfactuals for people."""
    if callback is not None and not callable(callback):
        raise ParameterError(f"callback must be None or a function, got {shorten(callback)}.")
    _check_memory(settings, fitted.schema.mutable.size)
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
        outcome = search(
            fitted, settings, constraints, rows, people, on_progress, ends, scored=scored
        )
        if isinstance(settings.search, Search) and settings.search.n_targets:
            from .remedies import name_remedies

            outcome = name_remedies(fitted, settings, constraints, rows, outcome, on_progress, ends)
    except MemoryError:
        raise ParameterError(
            f"The candidates need more memory than there is, with n_samples={_n_samples(settings)} "
            f"draws per person, memory={settings.memory!r} megabytes per block of people, and "
            f"n_jobs={settings.n_jobs!r}. Lower one of them."
        ) from None
    finally:
        bar.close()
    seconds = clock.seconds | dict(outcome.seconds) | {"total": clock.total()}
    targets = recomputed(fitted, settings, constraints)
    measures = further_measures(fitted, settings.search, outcome, targets)
    return to_counterfactuals(rows, scored, outcome, seconds, measures, targets)


def _n_samples(settings: Settings) -> int:
    return int(settings.n_samples or settings.search.n_samples)


def _check_memory(settings: Settings, n_mutable: int) -> None:
    """Raise if the candidates of one person cannot fit into memory, before trying."""
    # An exact search draws only for people beyond its budget.
    if not isinstance(settings.search, Search):
        return
    n_draws = max(_n_samples(settings), settings.search.max_samples or 0)
    n_bytes = n_draws * (BYTES_PER_CANDIDATE + BYTES_PER_CODE * n_mutable)
    if n_bytes > physical_memory():
        name = "n_samples" if n_draws == _n_samples(settings) else "max_samples"
        raise ParameterError(
            f"{name}={n_draws} draws need about {n_bytes / 2**30:.0f} GiB for each person, more "
            f"than this machine has. Lower {name}."
        )
