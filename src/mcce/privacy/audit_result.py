"""The result of an audit: figures, their intervals, and what no leak would give.

If one training row is replaced, differential privacy allows an event to become at most exp(epsilon)
times as likely, plus delta. So an attack that calls a row a member finds members at most at
exp(epsilon) times the rate at which it calls others so, plus delta, wherever it draws the line; and
the same with the score turned around. :func:`dp_bound` checks that.

Always true: figures hold counts and shares alone, never a cell of a person; ``scores`` and
``distances`` are numbers without the rows they belong to. With independent scores, a mechanism that
keeps its promise is called a violation with at most the chance that the confidence leaves, over all
thresholds together.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..confidence import Z95, clopper_pearson
from ..errors import ParameterError, shorten
from ..kernels import FloatArray
from ..parameters import check_real

Finding = Literal["none", "hint", "leak", "reversed", "unknown"]
# How far from the null, in standard errors, a figure must be to be called a leak.
LEAK = 3.0

# Thresholds that are tried in each direction, at most.
MAX_THRESHOLDS = 40


@dataclass(frozen=True)
class Figure:
    """One figure of an audit.

    Parameters
    ----------
    name
        Its name, a key of ``PrivacyAudit.to_frame()``.
    value, low, high
        What was measured, and its 95 % interval.
    null
        What no leak would give.
    spread
        Standard error of the value if there is no leak.
    n
        Rows, or cells, that it was measured on.
    both_ways
        Whether values beyond the null on the other side tell members, too.
    """

    name: str
    value: float
    low: float
    high: float
    null: float
    spread: float
    n: int
    both_ways: bool = False

    @property
    def excess(self) -> float:
        """How far beyond the null it is, in standard errors; above 0 towards a leak."""
        if np.isnan([self.value, self.null, self.spread]).any():
            return np.nan
        away = self.value - self.null
        if away == 0:
            return 0.0
        return float(away / self.spread) if self.spread > 0 else float(np.sign(away) * np.inf)

    @property
    def finding(self) -> Finding:
        """What the figure shows."""
        excess = self.excess
        if np.isnan(excess):
            return "unknown"
        if excess > LEAK:
            return "leak"
        if excess < -LEAK and self.both_ways:
            return "reversed"
        beyond = abs(excess) if self.both_ways else excess
        return "hint" if beyond > Z95 else "none"


@dataclass(frozen=True, eq=False)
class PrivacyAudit:
    """What an audit found; :func:`mcce.privacy.audit` makes one.

    Parameters
    ----------
    figures
        The figures, in the order of the table.
    release
        What was audited: "answers", "rows" drawn by the generator, or rows that were "given".
    n_released, n_training, n_holdout, n_reference
        Rows that were released, and real ones.
    n_each
        Members and nonmembers, equally many: the smaller of training and holdout.
    n_copies
        Released rows that equal any training row.
    scores
        What each attack says of members and of nonmembers; larger is more likely a member.
    distances
        Distance of released rows to the closest member, and to the closest nonmember.
    quasi_identifiers
        The columns that linkage was measured by.
    excluded
        Immutable quasi-identifiers, which are left out: a released row has those of the person it
        was made for.
    """

    figures: tuple[Figure, ...]
    release: str
    n_released: int
    n_training: int
    n_holdout: int
    n_reference: int
    n_each: int
    n_copies: int
    scores: Mapping[str, tuple[FloatArray, FloatArray]] = field(repr=False)
    distances: tuple[FloatArray, FloatArray] = field(repr=False)
    quasi_identifiers: tuple[Hashable, ...]
    excluded: tuple[Hashable, ...]

    def __getitem__(self, name: str) -> Figure:
        """A figure by its name."""
        return {figure.name: figure for figure in self.figures}[name]

    def to_frame(self) -> pd.DataFrame:
        """The figures as a table.

        Returns
        -------
        DataFrame
            Indexed by ``figure``: its ``value``, the 95 % interval from ``low`` to ``high``, the
            ``null`` (what no leak would give), the ``finding`` ("none", "hint", "leak",
            "reversed" or "unknown") and the number ``n`` of rows or cells behind it. Undefined
            values are NaN.
        """
        columns = ["value", "low", "high", "null", "finding", "n"]
        rows = [[getattr(figure, name) for name in columns] for figure in self.figures]
        names = pd.Index([figure.name for figure in self.figures], name="figure", dtype=object)
        return pd.DataFrame(rows, index=names, columns=columns)

    @property
    def leaks(self) -> tuple[str, ...]:
        """Names of the figures that show a leak."""
        return tuple(f.name for f in self.figures if f.finding in ("leak", "reversed"))

    @property
    def finding(self) -> Finding:
        """The gravest finding of all figures, not corrected for how many there are."""
        if self.leaks:
            return "leak"
        return "hint" if any(f.finding == "hint" for f in self.figures) else "none"

    def summary(self) -> str:
        """The outcome in a few sentences.

        Returns
        -------
        str
            What was found, and how much was released and attacked.
        """
        found = {
            "leak": f"Leaks were found by {', '.join(self.leaks)}.",
            "hint": "There are hints of leaks, none of them beyond three standard errors.",
            "none": "No leak was found by these attacks, which is no proof that there is none.",
        }[self.finding]
        if self.finding != "none":
            n_judged = sum(figure.finding != "unknown" for figure in self.figures)
            found += (
                f" This is the worst of {n_judged} figures, not corrected for how many there are."
            )
        members = (
            "all training rows"
            if self.n_each == self.n_training
            else f"a sample of {self.n_each:,} of {self.n_training:,} training rows"
        )
        return (
            f"{found} {self.n_released:,} released rows, {self.n_copies:,} of them copies of a "
            f"training row; attacked were {members} and {self.n_each:,} rows of the holdout."
        )

    def dp_bound(self, epsilon: float, *, delta: float = 0.0, confidence: float = 0.95) -> DPBound:
        """Whether the attacks stay within what differential privacy allows.

        Parameters
        ----------
        epsilon, delta
            The guarantee, for rows that are replaced.
        confidence
            Confidence with which a violation is one, over all thresholds of all scores.

        Returns
        -------
        DPBound
            The check by the score that comes nearest to a violation, or beyond.
        """
        each = 1 - (1 - confidence) / len(self.scores)
        checks = [
            dp_bound(*pair, epsilon, delta=delta, confidence=each) for pair in self.scores.values()
        ]
        return max(checks, key=lambda check: check.epsilon_low)

    def __repr__(self) -> str:
        return f"<PrivacyAudit of {self.n_released:,} {self.release} rows: {self.summary()}>"


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
        A lower bound of epsilon at this confidence; 0 if the attack shows nothing.
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
    tables = [_count_above(inside, outside, way) for way in ("high", "low")]
    table = pd.concat(tables, ignore_index=True)
    chance = (1 - confidence) / (2 * len(table))
    for rate, count, scores in (("tpr", "n_members", inside), ("fpr", "n_nonmembers", outside)):
        bounds = clopper_pearson(table[count], scores.size, chance)
        table[rate] = table.pop(count) / scores.size
        table[f"{rate}_low"], table[f"{rate}_high"] = bounds
    table["allowed"] = np.minimum(np.exp(min(epsilon, 700.0)) * table["fpr_high"] + delta, 1.0)
    table["holds"] = table["tpr_low"] <= table["allowed"]
    shown = np.log(np.maximum(table["tpr_low"] - delta, 1e-300) / table["fpr_high"])
    return DPBound(
        holds=bool(table["holds"].all()),
        epsilon=float(epsilon),
        delta=float(delta),
        confidence=float(confidence),
        epsilon_low=max(0.0, float(shown.max())),
        thresholds=table.drop(columns=["tpr_high", "fpr_low"]),
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


def _count_above(members: FloatArray, nonmembers: FloatArray, way: str) -> pd.DataFrame:
    """How many of both sides reach each threshold, or stay below; thresholds are denser there."""
    sign = 1.0 if way == "high" else -1.0
    inside, outside = np.sort(members * sign), np.sort(nonmembers * sign)
    distinct = np.unique(np.concatenate([inside, outside]))[::-1]
    ranks = np.geomspace(1, distinct.size, min(MAX_THRESHOLDS, distinct.size))
    thresholds = distinct[np.unique(ranks.round().astype(int)) - 1]
    return pd.DataFrame(
        {
            "direction": way,
            "threshold": thresholds * sign,
            "n_members": inside.size - np.searchsorted(inside, thresholds),
            "n_nonmembers": outside.size - np.searchsorted(outside, thresholds),
        }
    )
