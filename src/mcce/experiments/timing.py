"""CPU seconds of the three steps, as the paper's tables of computation times have them.

One thread, and the processor's time: other work on the machine hardly counts.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from ..datasets import Dataset
from ..explainer import MCCE

STEPS = ("model", "generate", "postprocess", "total")


def step_seconds(
    predict: Callable[[pd.DataFrame], Any],
    data: Dataset,
    people: pd.DataFrame,
    *,
    desired: Any,
    n_samples: int,
    seed: int = 0,
) -> dict[str, float]:
    """CPU seconds of ``STEPS`` for explaining some people.

    A call's CPU seconds are shared among its steps as the clock on the wall shares them. As in the
    paper, the model step leaves out the predictor's decisions on the training rows.
    """
    gc.collect()
    explainer = MCCE(
        predict,
        desired,
        immutable=data.immutable or None,
        n_samples=n_samples,
        n_jobs=1,
        random_state=seed,
    )
    # Threads of BLAS spin while they wait, which would be counted as work.
    with threadpool_limits(1):
        fit, _ = cpu_seconds(lambda: explainer.fit(data.features))
        explain, result = cpu_seconds(lambda: explainer.explain(people))
    model = fit * (1.0 - _share(explainer.timings_, "decision"))
    generate = explain * _share(result.timings, "generate")
    told = model, generate, explain - generate, model + explain
    return dict(zip(STEPS, told, strict=True))


def cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a piece of work, and what it gave."""
    started = time.process_time()
    given = work()
    return time.process_time() - started, given


def growth(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The exponent b of seconds = a * size ** b, by least squares of their logarithms.

    Examples
    --------
    >>> round(growth([1, 10, 100], [3.0, 300.0, 30000.0]), 6)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _share(seconds: Mapping[str, float], step: str) -> float:
    """The part of a step in what was taken."""
    total = sum(taken for name, taken in seconds.items() if name != "total")
    return seconds.get(step, 0.0) / total if total else 0.0
