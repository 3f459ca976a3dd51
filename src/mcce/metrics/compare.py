"""All measures of counterfactuals at once: one row per method.

Paper, Experiment 1: its tables, with more columns. Means alone flatter a method that fails on hard
cases, so coverage comes first, and ``paired`` keeps only factuals that every method explains.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..errors import ParameterError
from ..kernels import IntArray
from .costs import coverage, gower, l1, redundancy, sparsity, success, violation, ynn
from .evaluator import (
    Among,
    Evaluator,
    ExplainedRows,
    FrameLike,
    ResultLike,
    Training,
    as_evaluator,
    read_pairs,
)
from .plausibility import contradictory_pairs, knn_distance
from .privacy import copies, mutable_numbers, value_copies

SHARES = ("success", "ynn", "contradictory", "copies", "value_copies")
# A measure that is ready to be called, or None where it is undefined.
MeasureCall: TypeAlias = Callable[[], ArrayLike] | None


def compare(
    factuals: FrameLike,
    counterfactuals: ResultLike | Mapping[Hashable, ResultLike],
    training: Training,
    *,
    paired: bool = False,
    tolerance: float = 0.0,
    k: int = 5,
) -> pd.DataFrame:
    """Compute all measures of the counterfactuals of one or more methods.

    Parameters
    ----------
    factuals : frame
        The rows to explain.
    counterfactuals : frame, Counterfactuals or mapping
        The result of ``explain``; or one row per factual, all cells missing where there is no
        counterfactual; or a mapping from method names to either.
    training : frame or Evaluator
        The training data. An evaluator also knows what is immutable, and the predictor, with which
        plausibility is measured against the training rows that have the desired decision.
    paired : bool
        Whether to measure only factuals that every method explains.
    tolerance : float
        As for :func:`sparsity`.
    k : int
        Number of nearest training rows.

    Returns
    -------
    DataFrame
        One row per method. ``n_factuals``, ``n_answered`` (factuals), ``coverage`` and
        ``n_measured`` (rows), then means over these rows and, with the suffix ``_sd``, sample
        standard deviations. Undefined values are NaN: without a predictor, immutable features,
        two categories, or training rows with the desired decision.

    Raises
    ------
    ParameterError
        If the mapping is empty.

    Examples
    --------
    >>> training = pd.DataFrame({"age": range(20, 60), "job": ["a", "b"] * 20})
    >>> people = training.iloc[:2]
    >>> table = compare(people, people.assign(age=[30, 21]), training)
    >>> table[["coverage", "sparsity", "sparsity_sd", "copies"]].round(2)
                     coverage  sparsity  sparsity_sd  copies
    counterfactuals       1.0       0.5         0.71     1.0
    """
    evaluator = as_evaluator(training)
    options = {"tolerance": tolerance, "k": k}
    methods = _by_method(counterfactuals)
    read = {name: read_pairs(factuals, rows) for name, rows in methods.items()}
    owners = {name: np.unique(explained.owner) for name, (_, explained) in read.items()}
    common = reduce(np.intersect1d, owners.values())
    lines = []
    for name, (people, explained) in read.items():
        measured = common if paired else owners[name]
        counts = {
            "n_factuals": len(people),
            "n_answered": owners[name].size,
            "coverage": coverage(factuals, methods[name]),
        }
        lines.append(counts | _summarise(people, explained, measured, evaluator, options))
    return pd.DataFrame(lines, index=list(read))


def _by_method(counterfactuals: Any) -> dict[Hashable, Any]:
    """Counterfactuals by the name of their method."""
    if not isinstance(counterfactuals, Mapping):
        return {"counterfactuals": counterfactuals}
    if not counterfactuals:
        raise ParameterError("counterfactuals is an empty mapping. Name at least one method.")
    return dict(counterfactuals)


def _summarise(
    people: pd.DataFrame,
    explained: ExplainedRows,
    measured: IntArray,
    evaluator: Evaluator,
    options: Mapping[str, Any],
) -> dict[str, float]:
    """Means and standard deviations over the counterfactuals of some factuals."""
    kept = np.isin(explained.owner, measured)
    before = people.iloc[explained.owner[kept]]
    after = explained.frame[kept].set_axis(before.index)
    measures = _measures(before, after, evaluator, **options)
    summary: dict[str, float] = {"n_measured": len(after)}
    for name, measure in measures.items():
        values = np.asarray(measure(), dtype=float) if measure and len(after) else np.empty(0)
        summary[name] = float(values.mean()) if values.size else np.nan
        if name not in SHARES:
            summary[f"{name}_sd"] = float(values.std(ddof=1)) if values.size > 1 else np.nan
    return summary


def _measures(
    before: pd.DataFrame, after: pd.DataFrame, evaluator: Evaluator, *, tolerance: float, k: int
) -> dict[str, MeasureCall]:
    schema, has_predictor = evaluator.schema, evaluator.decision is not None
    pairs, rows = (before, after, evaluator), (after, evaluator)
    among: Among = "desired" if has_predictor else "all"
    comparable = not has_predictor or bool(evaluator.desired.any())
    distance = partial(knn_distance, *rows, k=k, among=among)
    n_categories = sum(feature.kind == "categorical" for feature in schema.features)
    measures: dict[str, tuple[bool, Callable[[], ArrayLike]]] = {
        "sparsity": (True, partial(sparsity, *pairs, tolerance=tolerance)),
        "l1": (True, partial(l1, *pairs)),
        "gower": (True, partial(gower, *pairs)),
        "violation": (schema.immutable.size > 0, partial(violation, *pairs, tolerance=tolerance)),
        "success": (has_predictor, partial(success, *rows)),
        "redundancy": (has_predictor, partial(redundancy, *pairs)),
        "ynn": (has_predictor, partial(ynn, *rows, k=k)),
        "knn_distance": (comparable, distance),
        "knn_distance_ranks": (comparable, partial(distance, scale="ranks")),
        "contradictory": (n_categories > 1, lambda: contradictory_pairs(*rows) > 0),
        "copies": (True, partial(copies, *rows)),
        "value_copies": (
            bool(mutable_numbers(schema)),
            lambda: [value_copies(*rows, factuals=before)],
        ),
    }
    return {name: call if defined else None for name, (defined, call) in measures.items()}
