"""The decision: a predictor and a desired set give each row a score and a yes or no.

Paper, footnote to the introduction: a decision is derived from the prediction f(x) by the
interval c. ``Decision`` alone calls f.

Beyond the paper, desired sets may be labels. Where all labels of the training rows follow from
probabilities (``LabelRule``), a search need not call ``predict`` on every row.

Always true: which method of the predictor is called is settled once, in ``method``; its output is
checked (one score or label per row, none of them missing) before it is used. What the predictor
raises is kept in ``PredictorError.original`` and not quoted, because it may quote cells. What a
rule says of a row depends on the probabilities of that row alone; for what is returned, ``predict``
decides.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from ..errors import McceError, ParameterError, shorten
from ..kernels import BoolArray, CancelledError, ExpiredError, FloatArray
from ..tables.frames import PANDAS_ADAPTER, FrameAdapter
from .calls import (
    call,
    check_complete,
    check_rows,
    check_shape,
    predictor_error,
    read_output,
    to_labels,
    to_numbers,
)

Closed = Literal["both", "left", "right", "neither"]
Method = Literal["predict_proba", "decision_function", "predict", "call"]
# Rows that the predictor scores in one call, at most: candidates, and training rows at fit.
ROWS_PER_CALL, FIT_ROWS_PER_CALL = 100_000, 2**20
LabelMeasure = Literal["score", "margin"]
# If the margins of refused and accepted rows are this close, a hundredth of their possible range,
# the threshold between them is taken to be 0.
NARROW_MARGIN = 0.02


@dataclass(frozen=True)
class Interval:
    """An interval of desired scores, each end open or closed.

    Parameters
    ----------
    low, high
        The ends; they may be infinite.
    closed : {"both", "left", "right", "neither"}
        Which ends belong to the interval.

    Raises
    ------
    ParameterError
        If an end is not a number, or no score lies in the interval.

    Examples
    --------
    >>> Interval(0.0, 0.1, closed="left")
    Interval [0.0, 0.1)
    >>> Interval(0.0, 0.1, closed="left").contains(np.array([0.0, 0.05, 0.1]))
    array([ True,  True, False])
    """

    low: float
    high: float
    closed: Closed = "both"

    def __post_init__(self) -> None:
        for end, value in (("low", self.low), ("high", self.high)):
            if not isinstance(value, Real) or _is_no_float(value):
                raise ParameterError(f"{end} must be a number, got {shorten(value)}.")
        if self.closed not in ("both", "left", "right", "neither"):
            raise ParameterError(
                f'closed must be "both", "left", "right" or "neither", got {shorten(self.closed)}.'
            )
        if self.low > self.high or (self.low == self.high and self.closed != "both"):
            raise ParameterError(
                f"{self!r} is empty: no score lies in it. Pass the lower end first."
            )

    def __repr__(self) -> str:
        left = "[" if self.closed in ("both", "left") else "("
        right = "]" if self.closed in ("both", "right") else ")"
        return f"Interval {left}{self.low}, {self.high}{right}"

    def contains(self, scores: FloatArray) -> BoolArray:
        """Whether each score lies in the interval.

        Parameters
        ----------
        scores : (n_rows,)
            Scores.

        Returns
        -------
        (n_rows,)
            True for scores inside.

        Examples
        --------
        >>> Interval(0.5, 1.0).contains(np.array([0.4, 0.5]))
        array([False,  True])
        """
        above = scores >= self.low if self.closed in ("both", "left") else scores > self.low
        below = scores <= self.high if self.closed in ("both", "right") else scores < self.high
        return above & below

    def margin(self, scores: FloatArray) -> FloatArray:
        """Distance of each score to the nearer finite end; negative outside.

        Parameters
        ----------
        scores : (n_rows,)
            Scores.

        Returns
        -------
        (n_rows,)
            Signed distances; infinite if both ends are.

        Examples
        --------
        >>> Interval(0.0, 10.0).margin(np.array([1.0, 7.0, 12.0]))
        array([ 1.,  3., -2.])
        """
        # The distance of a score to its own end is 0, also if both are infinite.
        with np.errstate(invalid="ignore"):
            above = np.where(scores == self.low, 0.0, scores - self.low)
            below = np.where(scores == self.high, 0.0, self.high - scores)
        above = above if self.low > -math.inf else np.full_like(above, math.inf)
        below = below if self.high < math.inf else np.full_like(below, math.inf)
        return np.minimum(above, below)


def _is_no_float(value: Real) -> bool:
    """Whether a number is NaN, or too large for a float that is not infinite."""
    try:
        return math.isnan(value)
    except OverflowError:
        return True


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Probabilities of the labels, a row each."""

    numbers: np.ndarray
    columns: tuple[int, ...]

    @property
    def score(self) -> FloatArray:
        """The probability of all desired labels together, shape (n_rows,)."""
        return self.numbers[:, list(self.columns)].sum(axis=1).astype(np.float64)

    @property
    def margin(self) -> FloatArray:
        """The largest probability of a desired label minus the largest of another."""
        desired = np.isin(np.arange(self.numbers.shape[1]), self.columns)
        largest = self.numbers[:, desired].max(axis=1)
        others = self.numbers[:, ~desired].max(axis=1, initial=-math.inf)
        with np.errstate(invalid="ignore"):
            return (largest - others).astype(np.float64)


@dataclass(frozen=True)
class LabelRule:
    """A rule that derives the label of a row from its probabilities."""

    measure: LabelMeasure
    low: float
    high: float

    @classmethod
    def learn(
        cls,
        probabilities: Probabilities | None,
        is_desired: BoolArray,
        *,
        own_threshold: bool = False,
    ) -> LabelRule | None:
        """The rule that holds for every row; None if there is none.

        The predicted label is usually the most probable one: a threshold of 0 on the margin. If
        the rows leave hardly any room for another, it is taken to be exactly that.
        """
        if probabilities is None or is_desired.all() or not is_desired.any():
            return None
        names: tuple[LabelMeasure, ...] = ("margin", "score")
        for name in names:
            values = getattr(probabilities, name)
            low, high = float(values[~is_desired].max()), float(values[is_desired].min())
            if name == "margin" and not own_threshold and low <= 0 <= high <= low + NARROW_MARGIN:
                return cls(name, 0.0, 0.0)
            if low <= high and math.isfinite(low) and math.isfinite(high):
                return cls(name, low, high)
        return None

    def divide(self, probabilities: Probabilities) -> tuple[BoolArray, BoolArray]:
        """Which rows are accepted, and for which others ``predict`` must be called."""
        values = getattr(probabilities, self.measure)
        is_desired = values > self.high
        # Not with <=: if a margin is NaN, ``predict`` must decide.
        return is_desired, ~is_desired & ~(values < self.low)


def has_threshold(predictor: Any) -> bool:
    """Whether a classifier, or the last step of a pipeline, has a threshold of its own."""
    last = predictor.steps[-1][1] if isinstance(predictor, Pipeline) else predictor
    fixed = hasattr(last, "threshold") and hasattr(last, "pos_label")
    moved = getattr(last, "get_probability_threshold", lambda: 0.5)() != 0.5
    return fixed or hasattr(last, "best_threshold_") or moved


@dataclass(frozen=True)
class ScoredRows:
    """The predictor's score and decision of each row.

    Parameters
    ----------
    score : (n_rows,)
        The score f(x).
    valid : (n_rows,)
        Whether the decision is the desired one.

    Examples
    --------
    >>> ScoredRows(np.array([0.2, 0.8]), np.array([False, True])).valid
    array([False,  True])
    """

    score: FloatArray
    valid: BoolArray


@dataclass(frozen=True, eq=False)
class Decision:
    """A predictor together with the decision that is desired of it.

    ``MCCE`` makes one from its ``predictor``, ``desired`` and ``score_class``; it is
    ``explainer.decision_`` after fit.

    Parameters
    ----------
    predictor
        The black box f.
    desired
        The interval of desired scores, or the tuple of desired labels.
    method
        How the predictor is called: the name of one of its methods, or ``"call"`` for a callable.
    columns
        Columns of the probabilities that are summed to the score; empty if there are none.
    adapter
        Gives the predictor the type of frame that the training data have.
    min_margin
        How far inside the desired set a row must be to be valid.
    names
        The columns that the predictor gets, in its order; None hands over all of them.
    rule
        Which labels follow from probabilities; None calls ``predict`` on every row.
    are_shares
        Whether all scores lie between 0 and 1, so that none can pass these ends. Probabilities do,
        and ``fit`` finds out for other scores.

    Examples
    --------
    >>> decision = Decision(lambda frame: frame["salary"] / 100, Interval(0.5, 1.0), "call")
    >>> decision
    Decision(function.call in Interval [0.5, 1.0])
    >>> decision.score(pd.DataFrame({"salary": [30, 60]})).valid
    array([False,  True])
    """

    predictor: Any
    desired: Interval | tuple[Hashable, ...]
    method: Method
    columns: tuple[int, ...] = ()
    adapter: FrameAdapter = PANDAS_ADAPTER
    min_margin: float = 0.0
    names: tuple[Hashable, ...] | None = None
    rule: LabelRule | None = None
    are_shares: bool = False

    def __post_init__(self) -> None:
        if self.columns:
            object.__setattr__(self, "are_shares", True)

    def __repr__(self) -> str:
        name, columns = type(self.predictor).__name__, f"[:, {list(self.columns)}]"
        score = f"{name}.{self.method}{columns if self.columns else ''}"
        if isinstance(self.desired, Interval):
            return f"Decision({score} in {self.desired!r})"
        labels = f"{name}.{self._label_method} in {list(self.desired)!r}"
        return f"Decision({labels}, score {score})" if self.columns else f"Decision({labels})"

    @property
    def has_scores(self) -> bool:
        """Whether scores say more than the decision itself does."""
        return isinstance(self.desired, Interval) or bool(self.columns)

    def score(self, frame: pd.DataFrame) -> ScoredRows:
        """Score and decision of each row.

        Parameters
        ----------
        frame
            Rows with the columns of the training data, in their order.

        Returns
        -------
        ScoredRows
            ``score`` and ``valid``, one entry per row. Without scores, ``score`` is 0 or 1.

        Raises
        ------
        PredictorError
            If the predictor fails, or returns anything but one score or label per row.

        Examples
        --------
        >>> decision = Decision(lambda frame: frame["salary"] / 100, Interval(0.5, 1.0), "call")
        >>> decision.score(pd.DataFrame({"salary": [30, 60]})).score
        array([0.3, 0.6])
        """
        return self._evaluate(frame)[0]

    def score_margins(self, frame: pd.DataFrame) -> tuple[ScoredRows, FloatArray]:
        """Score and decision of each row, and how far inside the desired set it is.

        The margin for an interval is the desirability of the score. For labels, it is the largest
        probability of a desired label minus the largest of another; NaN without probabilities.

        Parameters
        ----------
        frame
            Rows with the columns of the training data, in their order.

        Returns
        -------
        scored : ScoredRows
            As from :meth:`score`.
        margins : (n_rows,)
            Negative outside the desired set.

        Examples
        --------
        >>> decision = Decision(lambda rows: rows["salary"] / 100, Interval(0.5, 1.0), "call")
        >>> decision.score_margins(pd.DataFrame({"salary": [25, 75]}))[1]
        array([-0.25,  0.25])
        """
        scored, probabilities = self._evaluate(frame)
        if probabilities is not None:
            return scored, self._margins(frame, probabilities)
        unknown = np.full(len(frame), np.nan)
        return scored, self.desirability(scored.score) if self.has_scores else unknown

    def learn_rule(self, frame: pd.DataFrame) -> tuple[ScoredRows, LabelRule | None]:
        """Score and decision of the training rows, and which labels follow from probabilities.

        Parameters
        ----------
        frame
            The training rows.

        Returns
        -------
        scored : ScoredRows
            As from :meth:`score`.
        rule : LabelRule or None
            None if the decision needs no labels, or they do not follow from probabilities.
        """
        # A million rows at a time, to bound the copies that the predictor makes.
        starts = range(0, max(len(frame), 1), FIT_ROWS_PER_CALL)
        blocks = (frame.iloc[at : at + FIT_ROWS_PER_CALL].reset_index(drop=True) for at in starts)
        evaluated = [self._evaluate(block) for block in blocks]
        scored = ScoredRows(
            np.concatenate([block.score for block, _ in evaluated]),
            np.concatenate([block.valid for block, _ in evaluated]),
        )
        known = [one.numbers for _, one in evaluated if one is not None]
        probabilities = Probabilities(np.concatenate(known), self.columns) if known else None
        own = has_threshold(self.predictor)
        return scored, LabelRule.learn(probabilities, scored.valid, own_threshold=own)

    def confirm(self, frame: pd.DataFrame, scores: FloatArray) -> tuple[ScoredRows, BoolArray]:
        """Decision of each row by a fresh call without the rule, and which rows it misjudges.

        Parameters
        ----------
        frame
            Rows with the columns of the training data, in their order.
        scores : (n_rows,)
            Their scores, which stay as they are where a label is enough to decide.

        Returns
        -------
        scored : ScoredRows
            Score and decision of each row.
        misjudged : (n_rows,)
            Rows that the rule accepts and ``predict`` does not.
        """
        if self.rule is None or self.min_margin or frame.empty:
            fresh = replace(self, rule=None).score(frame)
        else:
            fresh = ScoredRows(scores, self._has_desired_label(frame))
        misjudged, refused = np.zeros(len(frame), dtype=bool), np.flatnonzero(~fresh.valid)
        if self.rule is not None and refused.size:
            rows = frame.iloc[refused].reset_index(drop=True)
            probabilities = self._probabilities(rows)
            is_desired, _ = self.rule.divide(probabilities)
            misjudged[refused] = is_desired & self._has_margin(rows, probabilities)
        return fresh, misjudged

    def with_margin(self, min_margin: float) -> Decision:
        """The same decision, but rows must be at least this far inside the desired set to be valid.

        Parameters
        ----------
        min_margin
            The smallest margin (:meth:`score_margins`) of a valid row.

        Returns
        -------
        Decision
            The stricter decision.

        Raises
        ------
        ParameterError
            If no row can have such a margin, or there are no scores to tell.

        Examples
        --------
        >>> decision = Decision(lambda frame: frame["salary"] / 100, Interval(0.5, 1.0), "call")
        >>> decision.with_margin(0.125).score(pd.DataFrame({"salary": [55, 75]})).valid
        array([False,  True])
        """
        if min_margin == 0:
            return self
        if not self.has_scores:
            raise ParameterError(
                f"margin must be 0 for labels without probabilities, got {shorten(min_margin)}. "
                "Pass a predictor with predict_proba, or an interval of scores as desired."
            )
        most = self._largest_margin()
        if min_margin > most:
            raise ParameterError(
                f"margin must be at most {most}, got {shorten(min_margin)}: no score is farther "
                f"inside {self.desired!r}. If one end does not matter, pass an Interval that is "
                "infinite there."
            )
        return replace(self, min_margin=float(min_margin))

    def desirability(self, scores: FloatArray) -> FloatArray:
        """How desirable scores are; larger is better, also beyond the desired set.

        For an interval, the distance to its nearer end, negative outside; an end that no
        score can pass does not count. For labels, their probability.

        Parameters
        ----------
        scores : (n_rows,)
            Scores.

        Returns
        -------
        (n_rows,)
            Desirability of each score.

        Examples
        --------
        >>> Decision(len, Interval(0.5, 1.0), "call").desirability(np.array([0.25, 0.625]))
        array([-0.25 ,  0.125])
        """
        ends = self.ends
        return scores if ends is None else Interval(*ends).margin(scores)

    def shortfall(self, scores: FloatArray) -> FloatArray:
        """How far each score is from one that is enough, the required margin included.

        For an interval, the distance to it, or to the scores that are ``min_margin`` inside. For
        labels, the distance of their probability to 1.

        Parameters
        ----------
        scores : (n_rows,)
            Scores.

        Returns
        -------
        (n_rows,)
            Distances; 0 for scores that are enough, and at an open end.

        Examples
        --------
        >>> decision = Decision(len, Interval(0.5, 1.0), "call")
        >>> decision.shortfall(np.array([0.25, 0.75]))
        array([0.25, 0.  ])
        >>> decision.with_margin(0.125).shortfall(np.array([0.25, 0.75]))
        array([0.375, 0.   ])
        """
        enough = self.min_margin if isinstance(self.desired, Interval) else 1.0
        return np.maximum(enough - self.desirability(scores), 0.0)

    @property
    def score_bounds(self) -> tuple[float, float] | None:
        """Lowest and highest score that is enough, with the required margin; None for labels."""
        if self.ends is None:
            return None
        low, high = self.ends
        return low + self.min_margin, high - self.min_margin

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of the interval, infinite where no score can pass them."""
        if not isinstance(self.desired, Interval):
            return None
        low, high = self.desired.low, self.desired.high
        if self.are_shares:
            low, high = (-math.inf if low <= 0 else low), (math.inf if high >= 1 else high)
        return low, high

    def _largest_margin(self) -> float:
        """The largest margin that a row can have."""
        if not isinstance(self.desired, Interval):
            return 1.0
        low, high = self.desired.low, self.desired.high
        middle = (max(low, 0.0) + min(high, 1.0)) / 2
        best = float(self.desirability(np.array([0.0, middle, 1.0])).max())
        return best if self.are_shares else (high - low) / 2

    @property
    def _label_method(self) -> Literal["call", "predict"]:
        return "call" if self.method == "call" else "predict"

    def _evaluate(self, frame: pd.DataFrame) -> tuple[ScoredRows, Probabilities | None]:
        """Score and decision of each row, and the probabilities of labels if they decide."""
        if frame.empty:
            return ScoredRows(np.empty(0), np.empty(0, dtype=bool)), None
        if isinstance(self.desired, Interval):
            scores = self._probabilities(frame).score if self.columns else self._numbers(frame)
            firm = not self.min_margin or self.desirability(scores) >= self.min_margin
            return ScoredRows(scores, self.desired.contains(scores) & firm), None
        if not self.columns:
            valid = self._has_desired_label(frame)
            return ScoredRows(valid.astype(np.float64), valid), None
        probabilities = self._probabilities(frame)
        return ScoredRows(probabilities.score, self._accepts(frame, probabilities)), probabilities

    def _accepts(self, frame: pd.DataFrame, probabilities: Probabilities) -> BoolArray:
        """Which rows are valid; ``predict`` is called where probabilities do not decide."""
        firm = self._has_margin(frame, probabilities)
        valid, unclear = np.zeros_like(firm), firm
        if self.rule is not None:
            valid, unclear = (rows & firm for rows in self.rule.divide(probabilities))
        if unclear.all():
            return self._has_desired_label(frame)
        if unclear.any():
            rows = frame.iloc[np.flatnonzero(unclear)].reset_index(drop=True)
            valid[unclear] = self._has_desired_label(rows)
        return valid

    def _has_margin(self, frame: pd.DataFrame, probabilities: Probabilities) -> BoolArray:
        """Which rows have the required margin."""
        if not self.min_margin:
            return np.ones(len(frame), dtype=bool)
        return self._margins(frame, probabilities) >= self.min_margin

    def _margins(self, frame: pd.DataFrame, probabilities: Probabilities) -> FloatArray:
        """The margin of each row, if all probabilities are known."""
        # Every desired column, and at least one that is not.
        name, missing = _named(self.method), np.isnan(probabilities.numbers)
        check_shape(probabilities.numbers, len(frame), name, at_least=len(self.columns) + 1)
        check_complete(missing, "a number", name, frame)
        return probabilities.margin

    def _probabilities(self, frame: pd.DataFrame) -> Probabilities:
        """Probabilities of all labels; none missing in the columns that are summed."""
        name, (entries, missing) = _named(self.method), self._call_predictor(self.method, frame)
        check_shape(entries, len(frame), name, at_least=max(self.columns) + 1)
        check_complete(missing[:, self.columns], "a number", name, frame)
        return Probabilities(to_numbers(entries, missing, name), self.columns)

    def _numbers(self, frame: pd.DataFrame) -> FloatArray:
        entries = self._one_entry(self.method, frame, "a number")
        return to_numbers(entries, name=_named(self.method)).astype(np.float64)

    def _has_desired_label(self, frame: pd.DataFrame) -> BoolArray:
        entries = self._one_entry(self._label_method, frame, "a label")
        labels = to_labels(entries, _named(self._label_method), self.desired)
        return labels.isin(list(cast("tuple[Any]", self.desired))).to_numpy(dtype=bool)

    def _one_entry(self, method: Method, frame: pd.DataFrame, entry: str) -> np.ndarray:
        """What the predictor returns, one entry per row, none missing."""
        entries, missing = self._call_predictor(method, frame)
        if entries.shape == (len(frame), 1):
            entries, missing = entries.ravel(), missing.ravel()
        check_shape(entries, len(frame), _named(method))
        check_complete(missing, entry, _named(method), frame)
        return entries

    def _call_predictor(self, method: Method, frame: pd.DataFrame) -> tuple[np.ndarray, BoolArray]:
        """Output of the predictor for a copy of the rows, which it may change; what is missing."""
        function = self.predictor if method == "call" else getattr(self.predictor, method)
        if self.names is not None:
            frame = frame[list(self.names)]
        rows = self.adapter.rows_for_predictor(frame)
        try:
            check_rows(self.predictor, rows)
            output = call(self.predictor, function, rows)
        except (McceError, CancelledError, ExpiredError):
            raise
        except Exception as error:
            failure = error
        else:
            return read_output(output, _named(method))
        # Outside of the block, so that no traceback shows the failure.
        raise predictor_error(failure, self.predictor, function, frame, self.adapter)


def _named(method: Method) -> str:
    """How a method of the predictor is called in errors."""
    return "The predictor" if method == "call" else f"{method} of the predictor"
