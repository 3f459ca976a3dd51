"""CPU seconds of the three steps, as in the paper's tables of computation times.

One thread and CPU time, so that other work on the machine hardly matters.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce.explainer import MCCE
from mcce.predictors.decision import Interval

from .predictors import Predictor

Result = TypeVar("Result")
CPU_AND_WALL_CLOCK = "wall clock of another machine there, CPU seconds here"
STEPS = ("model", "generate", "postprocess", "total")


def time_steps(
    predictor: Predictor,
    train: pd.DataFrame,
    factuals: pd.DataFrame,
    *,
    immutable: Sequence[str],
    desired: Interval,
    n_samples: int,
    seed: int = 0,
) -> dict[str, float]:
    """CPU seconds of ``STEPS`` for fitting and explaining some factuals.

    See :func:`split_seconds` for what the steps are.
    """
    gc.collect()
    explainer = MCCE(
        predictor,
        desired,
        immutable=list(immutable) or None,
        n_samples=n_samples,
        n_jobs=1,
        random_state=seed,
    )
    # BLAS threads spin while they wait, which would count as CPU time.
    with threadpool_limits(1):
        fit, _ = cpu_seconds(lambda: explainer.fit(train))
        explain, result = cpu_seconds(lambda: explainer.explain(factuals))
    return split_seconds(fit, explain, explainer.timings_, result.timings)


def split_seconds(
    fit: float, explain: float, fitting: Mapping[str, float], explaining: Mapping[str, float]
) -> dict[str, float]:
    """CPU seconds of ``STEPS`` from those of both calls and the wall-clock times of their parts.

    The CPU seconds of a call are split in proportion to wall-clock time. As in the paper, the model
    step leaves out the predictor calls on the training rows.

    Examples
    --------
    >>> split_seconds(3.0, 2.0, {"decision": 1.0, "trees": 2.0}, {"generate": 1.0, "search": 3.0})
    {'model': 2.0, 'generate': 0.5, 'postprocess': 1.5, 'total': 4.0}
    """
    model = fit * (1.0 - _share(fitting, "decision"))
    generate = explain * _share(explaining, "generate")
    seconds = model, generate, explain - generate, model + explain
    return dict(zip(STEPS, seconds, strict=True))


def cpu_seconds(work: Callable[[], Result]) -> tuple[float, Result]:
    """CPU seconds of a call, and its result."""
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def growth(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The exponent b of seconds = a * size ** b, by least squares of their logarithms.

    Examples
    --------
    >>> round(growth([1, 10, 100], [3.0, 300.0, 30000.0]), 6)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _share(seconds: Mapping[str, float], step: str) -> float:
    """Share of a step in the total time."""
    total = sum(taken for name, taken in seconds.items() if name != "total")
    return seconds.get(step, 0.0) / total if total else 0.0
