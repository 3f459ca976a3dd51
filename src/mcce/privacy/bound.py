"""Whether an attack stays within what differential privacy allows.

If one training row is replaced, an event becomes at most exp(epsilon) times as likely, plus delta.
So an attack that calls a row a member finds members at most at exp(epsilon) times the rate at which
it calls others so, plus delta, wherever it draws the line; and the same with the score turned
around.

Always true: with independent scores, a mechanism that keeps its promise is called a violation with
at most the chance that the confidence leaves, over all thresholds together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ParameterError, shorten
from ..kernels import FloatArray
from ..parameters import check_real
from .intervals import clopper_pearson

# Thresholds that are tried in each direction, at most.
MOST_THRESHOLDS = 40


@dataclass(frozen=True, eq=False)
class DPBound:
    """How an attack compares with a guarantee of differential privacy.

    Parameters
    ----------
    holds
        Whether no threshold shows a violation with confidence.
    epsilon, delta, confidence
        The guarantee, and the confidence of all thresholds together.
    epsilon_low
        The attack shows that epsilon is at least so much, with this confidence; 0 if it shows
        nothing.
    thresholds
        One row per threshold and direction: ``direction`` ("high" calls scores from the threshold
        on members, "low" those below), ``threshold``, ``tpr`` with its lower bound ``tpr_low``,
        ``fpr`` with its upper bound ``fpr_high``, the most that is allowed, ``allowed``, and
        whether it ``holds``.
    """

    holds: bool
    epsilon: float
    delta: float
    confidence: float
    epsilon_low: float
    thresholds: pd.DataFrame = field(repr=False)


def dp_bound(
    members: Any,
    nonmembers: Any,
    epsilon: float,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> DPBound:
    """Check that members are found at most as often as differential privacy allows.

    Parameters
    ----------
    members, nonmembers
        What an attack says of rows that were in the training data, and of others: larger is more
        likely a member. ``PrivacyAudit.scores`` has three of them.
    epsilon, delta
        The guarantee for rows that are replaced. One for rows that are added or removed allows
        twice its epsilon here, and (1 + exp(epsilon)) times its delta, since a member is compared
        with somebody in its place.
    confidence
        Confidence with which a violation is one, over all thresholds together.

    Returns
    -------
    DPBound
        Whether the bound holds, and what the attack shows of epsilon.

    Raises
    ------
    ParameterError
        If there are no scores, or a parameter cannot have its value.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> told = rng.random(2000) < 0.75
    >>> check = dp_bound(told[:1000], ~told[1000:], 1.1)
    >>> check.holds, 0.5 < check.epsilon_low < 1.1
    (True, True)
    >>> dp_bound(told[:1000], ~told[1000:], 0.3).holds
    False
    """
    check_real("epsilon", epsilon, "a finite number >= 0")
    check_real("delta", delta, "a number from 0 to 1", most=1.0)
    check_real("confidence", confidence, "a number above 0 and below 1", zero=False, most=1.0)
    inside, outside = (
        _check_scores(name, scores)
        for name, scores in (("members", members), ("nonmembers", nonmembers))
    )
    tables = [
        _count(inside * sign, outside * sign).assign(direction=direction, sign=sign)
        for direction, sign in (("high", 1.0), ("low", -1.0))
    ]
    table = pd.concat(tables, ignore_index=True)
    chance = (1 - confidence) / (2 * len(table))
    table["tpr_low"] = clopper_pearson(table["n_members"], inside.size, chance)[0]
    table["fpr_high"] = clopper_pearson(table["n_nonmembers"], outside.size, chance)[1]
    table["tpr"] = table["n_members"] / inside.size
    table["fpr"] = table["n_nonmembers"] / outside.size
    table["allowed"] = np.minimum(np.exp(min(epsilon, 700.0)) * table["fpr_high"] + delta, 1.0)
    table["holds"] = table["tpr_low"] <= table["allowed"]
    table["threshold"] = table["threshold"] * table["sign"]
    shown = np.log(np.maximum(table["tpr_low"] - delta, 1e-300) / table["fpr_high"])
    columns = ["direction", "threshold", "tpr", "tpr_low", "fpr", "fpr_high", "allowed", "holds"]
    return DPBound(
        holds=bool(table["holds"].all()),
        epsilon=float(epsilon),
        delta=float(delta),
        confidence=float(confidence),
        epsilon_low=max(0.0, float(shown.max())),
        thresholds=table[columns],
    )


def _check_scores(name: str, scores: Any) -> FloatArray:
    values = np.asarray(scores)
    if values.ndim != 1 or not values.size or values.dtype.kind not in "biuf":
        raise ParameterError(
            f"{name} must be one score for each of at least one row, got {shorten(scores)}."
        )
    values = values.astype(np.float64)
    if np.isnan(values).any():
        raise ParameterError(f"{name} has scores that are NaN. Leave these rows out.")
    return values


def _count(members: FloatArray, nonmembers: FloatArray) -> pd.DataFrame:
    """How many of both score at least each of some thresholds, more of them at the top."""
    distinct = np.unique(np.concatenate([members, nonmembers]))[::-1]
    ranks = np.geomspace(1, distinct.size, min(MOST_THRESHOLDS, distinct.size))
    thresholds = distinct[np.unique(ranks.round().astype(int)) - 1]
    counts = [
        np.sort(scores).size - np.searchsorted(np.sort(scores), thresholds, side="left")
        for scores in (members, nonmembers)
    ]
    return pd.DataFrame(
        {"threshold": thresholds, "n_members": counts[0], "n_nonmembers": counts[1]}
    )
