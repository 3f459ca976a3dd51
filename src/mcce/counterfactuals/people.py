"""What became of everybody: one row per factual, whether there is an answer or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..kernels import FloatArray
from ..predictors.decision import ScoredRows
from ..tables.schema import EncodedRows
from .rows import ResultRows

ANSWERED, ALREADY, UNANSWERED = "answered", "already desired", "no answer"


def make_people(
    rows: EncodedRows,
    scored: ScoredRows,
    answers: ResultRows,
    misses: ResultRows,
    reasons: Mapping[int, str],
) -> pd.DataFrame:
    """The table ``people`` of a result; see :class:`~mcce.Counterfactuals`."""
    n_factuals = len(rows)
    n_found = np.bincount(answers.owner, minlength=n_factuals)
    status = np.array([UNANSWERED, ANSWERED, ALREADY], dtype=object)
    reason = np.full(n_factuals, "", dtype=object)
    reason[list(reasons)] = list(reasons.values())
    nearest = {name: np.full(n_factuals, np.nan) for name in ("score", "sparsity", "gower")}
    for name, values in nearest.items():
        values[misses.owner] = misses.measures[name]
    return pd.DataFrame(
        {
            "status": _strings(status[np.where(scored.valid, 2, n_found > 0)]),
            "reason": _strings(reason),
            "score": scored.score,
            "n_counterfactuals": n_found,
            "unseen_immutable": _strings(_unseen_immutable(rows)),
            "nearest_score": nearest["score"],
            "nearest_sparsity": _whole_numbers(nearest["sparsity"]),
            "nearest_gower": nearest["gower"],
        }
    )


def _strings(texts: np.ndarray) -> pd.Series[Any]:
    """A column of strings as objects; pandas 3 would choose another dtype."""
    return pd.Series(texts, dtype=object)


def _whole_numbers(values: FloatArray) -> Any:
    """Whole numbers, missing where NaN."""
    unknown = np.isnan(values)
    return pd.arrays.IntegerArray(np.where(unknown, 1.0, values).astype(np.int64), unknown)


def summarize(
    people: pd.DataFrame, measures: pd.DataFrame, n_evaluated: int, timings: Mapping[str, float]
) -> pd.DataFrame:
    """One row: how many people have which status, means of their best answers, and the cost."""
    status = people["status"]
    first = measures[measures.index.get_level_values("rank") == 1]
    n_to_explain = len(people) - int((status == ALREADY).sum())
    return pd.DataFrame(
        {
            "n_factuals": [len(people)],
            "n_answered": [int((status == ANSWERED).sum())],
            "n_already_desired": [int((status == ALREADY).sum())],
            "n_no_answer": [int((status == UNANSWERED).sum())],
            "sparsity": [first["sparsity"].mean()],
            "gower": [first["gower"].mean()],
            "l1": [first["l1"].mean()],
            "evaluated_per_person": [n_evaluated / n_to_explain if n_to_explain else 0.0],
            "seconds": [timings.get("total", np.nan)],
        }
    )


def _unseen_immutable(rows: EncodedRows) -> np.ndarray:
    """Names of the immutable features with a value that training never held."""
    immutable = rows.schema.immutable
    names = [str(rows.schema.names[position]) for position in immutable]
    unseen_names = np.full(len(rows), "", dtype=object)
    for person in np.flatnonzero(rows.unseen[immutable].any(axis=0)):
        unseen = rows.unseen[immutable, person]
        unseen_names[person] = ", ".join(n for n, flag in zip(names, unseen, strict=True) if flag)
    return unseen_names
