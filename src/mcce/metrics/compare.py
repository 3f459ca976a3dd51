"""All measures of counterfactuals at once: one row per method.

Paper, Experiment 1: its tables, with what they leave out. Means alone flatter a method that fails
on hard people, so coverage stands first, and ``paired`` looks only at people all have answered.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ParameterError
from ..tables.columns import Kind
from .contradictions import contradictory_pairs
from .costs import coverage, gower, l1, sparsity, violation
from .evaluator import Among, Evaluator, read_people
from .plausibility import distinct, isolation, knn_distance, outlier_factor
from .privacy import copies, value_copies
from .validity import redundancy, success, ynn

SHARES = ("success", "ynn", "contradictory", "copies", "value_copies")


def compare(
    factuals: Any,
    counterfactuals: Any,
    training: Any,
    *,
    immutable: Sequence[Hashable] | None = None,
    kinds: Mapping[Hashable, Kind] | None = None,
    predictor: Any = None,
    desired: Any = None,
    score_class: Hashable | None = None,
    paired: bool = False,
    tolerance: float = 0.0,
    k: int = 5,
    random_state: int = 0,
) -> pd.DataFrame:
    """One row of all measures per method.

    Parameters
    ----------
    factuals
        The people.
    counterfactuals
        One row per person, all missing where there is no answer, or the result of ``explain``; or
        a mapping of the names of several methods to theirs.
    training
        The training data: a frame, or an :class:`Evaluator`, which has the next five arguments
        already.
    immutable, kinds, predictor, desired, score_class
        As for :class:`mcce.MCCE`. With a predictor, plausibility is judged by the training rows
        that it decides as desired, otherwise by all.
    paired
        Whether only people whom all methods have answered are measured.
    tolerance
        As for :func:`sparsity`.
    k
        Nearest training rows that are looked at.
    random_state
        Seeds the isolation forest.

    Returns
    -------
    DataFrame
        ``n_factuals``, ``n_answered`` (people), ``coverage``, ``n_measured`` (rows), then means
        over these rows and, where ``_sd`` follows, sample standard deviations. NaN where a
        measure means nothing: without a predictor, immutable features, two categories, or training
        rows with the desired decision.

    Examples
    --------
    >>> training = pd.DataFrame({"age": range(20, 60), "job": ["a", "b"] * 20})
    >>> people = training.iloc[:2]
    >>> told = compare(people, people.assign(age=[30, 21]), training)
    >>> told[["coverage", "sparsity", "sparsity_sd", "copies"]].round(2)
                     coverage  sparsity  sparsity_sd  copies
    counterfactuals       1.0       0.5         0.71     1.0
    """
    settings = {
        "immutable": immutable,
        "kinds": kinds,
        "predictor": predictor,
        "desired": desired,
        "score_class": score_class,
    }
    evaluator = _judge(training, settings)
    methods = _named(counterfactuals)
    read = {name: read_people(factuals, rows) for name, rows in methods.items()}
    owners = {name: np.unique(answers.owner) for name, (_, answers) in read.items()}
    common = reduce(np.intersect1d, owners.values())
    told = []
    for name, (people, answers) in read.items():
        measured = np.isin(answers.owner, common if paired else owners[name])
        before = people.iloc[answers.owner[measured]]
        after = answers.frame[measured].set_axis(before.index)
        counts = {
            "n_factuals": len(people),
            "n_answered": owners[name].size,
            "coverage": coverage(factuals, methods[name]),
            "n_measured": len(after),
        }
        measures = _measures(before, after, evaluator, tolerance, k, random_state)
        told.append(counts | _means(measures, len(after)))
    return pd.DataFrame(told, index=list(read))


def _judge(training: Any, settings: dict[str, Any]) -> Evaluator:
    if not isinstance(training, Evaluator):
        return Evaluator.fit(training, **settings)
    given = [name for name, setting in settings.items() if setting is not None]
    if given:
        raise ParameterError(
            f"training is a Judge, which has its {', '.join(given)} already. Pass them to "
            "metrics.Judge.fit, or pass the training frame here."
        )
    return training


def _named(counterfactuals: Any) -> dict[Hashable, Any]:
    """Answers by the name of their method."""
    if not isinstance(counterfactuals, Mapping):
        return {"counterfactuals": counterfactuals}
    if not counterfactuals:
        raise ParameterError("counterfactuals is an empty mapping. Name at least one method.")
    return dict(counterfactuals)


def _measures(
    before: pd.DataFrame,
    after: pd.DataFrame,
    evaluator: Evaluator,
    tolerance: float,
    k: int,
    random_state: int,
) -> dict[str, Callable[[], Any] | None]:
    """Every measure of some answers, to be called; None where it means nothing."""
    pair, kinds = (
        (before, after, evaluator),
        [feature.kind for feature in evaluator.schema.features],
    )
    asks = evaluator.decision is not None
    among: Among = "desired" if asks else "all"
    can_judge = not asks or bool(evaluator.desired.any())
    near = partial(knn_distance, after, evaluator, k=k, among=among)
    n_neighbours = min(20, distinct(evaluator, among).size - 1) if can_judge else 0
    outlying = partial(outlier_factor, after, evaluator, k=n_neighbours, among=among)
    numeric = any(kinds[position] == "numeric" for position in evaluator.schema.mutable)
    broken = partial(violation, *pair, tolerance=tolerance)
    return {
        "sparsity": partial(sparsity, *pair, tolerance=tolerance),
        "l1": partial(l1, *pair),
        "gower": partial(gower, *pair),
        "violation": broken if evaluator.schema.immutable.size else None,
        "success": partial(success, after, evaluator) if asks else None,
        "redundancy": partial(redundancy, *pair) if asks else None,
        "ynn": partial(ynn, after, evaluator, k=k) if asks else None,
        "knn_distance": near if can_judge else None,
        "nearness_ranks": partial(near, scale="ranks") if can_judge else None,
        "outlier_factor": outlying if n_neighbours else None,
        "isolation": (
            partial(isolation, after, evaluator, among=among, random_state=random_state)
            if can_judge
            else None
        ),
        "contradictory": (
            (lambda: contradictory_pairs(after, evaluator) > 0)
            if kinds.count("categorical") > 1
            else None
        ),
        "copies": partial(copies, after, evaluator),
        "value_copies": (
            (lambda: [value_copies(after, evaluator, factuals=before)]) if numeric else None
        ),
    }


def _means(measures: dict[str, Callable[[], Any] | None], n_rows: int) -> dict[str, float]:
    """The mean of each measure, and the sample standard deviation unless it is a share."""
    told: dict[str, float] = {}
    for name, measure in measures.items():
        values = np.asarray(measure(), dtype=float) if measure and n_rows else np.empty(0)
        told[name] = float(values.mean()) if values.size else np.nan
        if name not in SHARES:
            told[f"{name}_sd"] = float(values.std(ddof=1)) if values.size > 1 else np.nan
    return told
