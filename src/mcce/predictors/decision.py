"""The decision: a predictor and a desired set give each row a score and a yes or no.

Paper, footnote to the introduction: a decision is derived from the prediction f(x) by the
interval c. This is the only module that calls f.

Always true: which method of the predictor is called is settled once, in ``method``; its output is
checked (one score or label per row, none of them missing) before it is used. What the predictor
raises is kept in ``PredictorError.original`` and not quoted, because it may quote cells.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..errors import McceError, ParameterError, PredictorError, shorten
from ..kernels import BoolArray, FloatArray
from ..tables.frames import PANDAS_ADAPTER, FrameAdapter
from .adapters import check_rows
from .failures import failed, missing_hint
from .interval import Interval
from .output import count_rows, read_output, to_numbers

Method = Literal["predict_proba", "decision_function", "predict", "call"]


@dataclass(frozen=True)
class ScoredRows:
    """What the predictor says about each row.

    Parameters
    ----------
    score : (n_rows,)
        The score f(x).
    valid : (n_rows,)
        Whether the decision is the desired one.
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
        if frame.empty:
            return ScoredRows(np.empty(0), np.empty(0, dtype=bool))
        if isinstance(self.desired, Interval):
            scores = self._scores(frame)
            valid = self.desired.contains(scores)
        else:
            valid = self._labels(frame).isin(list(self.desired)).to_numpy(dtype=bool)
            scores = self._scores(frame) if self.columns else valid.astype(np.float64)
        return ScoredRows(scores, valid & self._is_firm(frame, scores))

    def with_margin(self, min_margin: float) -> Decision:
        """The same decision, but rows must be so far inside the desired set to be valid.

        Parameters
        ----------
        min_margin
            The smallest :meth:`margin` of a valid row.

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
                f"margin must be at most {most:g}, got {shorten(min_margin)}: no score is farther "
                f"inside {self.desired!r}. If one end does not matter, pass an Interval that is "
                "infinite there."
            )
        return replace(self, min_margin=float(min_margin))

    def desirability(self, scores: FloatArray) -> FloatArray:
        """How desirable scores are; larger is better, also beyond the desired set.

        For an interval, the distance to its nearer end, negative outside; an end that a
        probability cannot pass does not count. For labels, their probability.

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
        if not isinstance(self.desired, Interval):
            return scores
        low, high = self.desired.low, self.desired.high
        if self.columns:
            low, high = (-math.inf if low <= 0 else low), (math.inf if high >= 1 else high)
        return Interval(low, high).margin(scores)

    def shortfall(self, scores: FloatArray) -> FloatArray:
        """Distance of each score to the desired set; 0 inside.

        Parameters
        ----------
        scores : (n_rows,)
            Scores.

        Returns
        -------
        (n_rows,)
            Distances.

        Examples
        --------
        >>> Decision(len, Interval(0.5, 1.0), "call").shortfall(np.array([0.25, 0.75]))
        array([0.25, 0.  ])
        """
        interval = self.desired if isinstance(self.desired, Interval) else Interval(1.0, math.inf)
        return interval.shortfall(scores)

    def margin(self, frame: pd.DataFrame, scores: FloatArray) -> FloatArray:
        """How far inside the desired set each row is.

        For an interval, the desirability of the score. For labels, the largest probability of a
        desired label minus the largest of another; NaN without probabilities.

        Parameters
        ----------
        frame
            Rows with the columns of the training data, in their order.
        scores : (n_rows,)
            Their scores.

        Returns
        -------
        (n_rows,)
            Margins; negative outside the desired set.

        Examples
        --------
        >>> frame = pd.DataFrame({"salary": [25, 75]})
        >>> decision = Decision(lambda rows: rows["salary"] / 100, Interval(0.5, 1.0), "call")
        >>> decision.margin(frame, decision.score(frame).score)
        array([-0.25,  0.25])
        """
        if isinstance(self.desired, Interval):
            return self.desirability(scores)
        if not self.columns or frame.empty:
            return np.full(len(frame), np.nan)
        # Every desired column, and at least one that is not.
        output = self._numbers(frame, at_least=max(*self.columns, len(self.columns)) + 1)
        desired = np.isin(np.arange(output.shape[1]), self.columns)
        return (output[:, desired].max(axis=1) - output[:, ~desired].max(axis=1)).astype(np.float64)

    def _is_firm(self, frame: pd.DataFrame, scores: FloatArray) -> BoolArray | Literal[True]:
        """Which rows are far enough inside."""
        return not self.min_margin or self.margin(frame, scores) >= self.min_margin

    def _largest_margin(self) -> float:
        """The largest margin that a row can have."""
        if not isinstance(self.desired, Interval):
            return 1.0
        low, high = self.desired.low, self.desired.high
        middle = (max(low, 0.0) + min(high, 1.0)) / 2
        best = float(self.desirability(np.array([0.0, middle, 1.0])).max())
        return best if self.columns else (high - low) / 2

    @property
    def _label_method(self) -> Literal["call", "predict"]:
        return "call" if self.method == "call" else "predict"

    def _scores(self, frame: pd.DataFrame) -> FloatArray:
        if not self.columns:
            return self._numbers(frame).astype(np.float64)
        output = self._numbers(frame, columns=list(self.columns), at_least=max(self.columns) + 1)
        return output.sum(axis=1).astype(np.float64)

    def _numbers(
        self, frame: pd.DataFrame, *, columns: Any = slice(None), at_least: int | None = None
    ) -> np.ndarray:
        """One number per row, or some columns of at least so many numbers; none missing."""
        name = _named(self.method)
        entries, missing = self._call_predictor(self.method, frame)
        if at_least is None and entries.shape == (len(frame), 1):
            entries, missing = entries.ravel(), missing.ravel()
        self._check_shape(entries, len(frame), at_least=at_least)
        if at_least is not None:
            entries, missing = entries[:, columns], missing[:, columns]
        self._check_complete(missing, "a number", name, frame)
        return to_numbers(entries, missing, name)

    def _labels(self, frame: pd.DataFrame) -> pd.Series[Any]:
        entries, missing = self._call_predictor(self._label_method, frame)
        if entries.shape == (len(frame), 1):
            entries, missing = entries.ravel(), missing.ravel()
        self._check_shape(entries, len(frame))
        name = _named(self._label_method)
        boxed = entries.dtype == object
        hashable = not boxed or all(isinstance(entry, Hashable) for entry in entries)
        if not hashable or entries.dtype.kind not in "biufOUSmM":
            raise PredictorError(
                f"{name} must return labels such as strings or numbers, got "
                f"{'objects of another type' if boxed else f'dtype {entries.dtype}'}."
            )
        self._check_complete(missing, "a label", name, frame)
        if entries.dtype.kind == "f" and (fractions := entries != np.floor(entries)).any():
            raise PredictorError(
                f"desired names labels, {shorten(self.desired)}, but the predictor returned "
                f"fractions for {count_rows(fractions)}. For an interval of scores, pass a tuple "
                "of two numbers."
            )
        # As objects, because the strings of pandas 3 hold no lone surrogates.
        return pd.Series(entries, dtype=object if entries.dtype.kind in "OUS" else entries.dtype)

    def _check_complete(
        self, missing: BoolArray, entry: str, name: str, frame: pd.DataFrame
    ) -> None:
        if missing.any():
            affected = np.flatnonzero(missing.reshape(len(frame), -1).any(axis=1))
            rows = frame.iloc[affected]
            related = bool(rows.isna().any(axis=1).all())
            raise PredictorError(
                f"{name} returned NaN, null or masked for {count_rows(missing)}. It must return "
                f"{entry} for every row.{missing_hint(rows) if related else ''}"
            )

    def _check_shape(self, output: np.ndarray, n_rows: int, *, at_least: int | None = None) -> None:
        """Raise unless there is one entry, or a row of enough columns, for each row."""
        if at_least is None:
            expected, fits = f"({n_rows},)", output.shape == (n_rows,)
        else:
            expected = f"({n_rows}, {at_least} or more)"
            fits = output.ndim == 2 and len(output) == n_rows and output.shape[1] >= at_least
        if not fits:
            raise PredictorError(
                f"{_named(self.method)} must return an array of shape {expected} for {n_rows} "
                f"rows, got shape {output.shape}.{_shape_hint(output)}"
            )

    def _call_predictor(self, method: Method, frame: pd.DataFrame) -> tuple[np.ndarray, BoolArray]:
        """Output of the predictor for a copy of the rows, which it may change; what is missing."""
        function = self.predictor if method == "call" else getattr(self.predictor, method)
        if self.names is not None:
            frame = frame[list(self.names)]
        rows = self.adapter.rows_for_predictor(frame)
        try:
            check_rows(self.predictor, rows)
            output = function(rows)
        except McceError:
            raise
        except Exception as error:
            failure = error
        else:
            return read_output(output, _named(method))
        # Outside of the block, so that no traceback shows the failure.
        raise failed(failure, self.predictor, function, frame, self.adapter)


def _named(method: Method) -> str:
    """How a method of the predictor is called in errors."""
    return "The predictor" if method == "call" else f"{method} of the predictor"


def _shape_hint(output: np.ndarray) -> str:
    if output.ndim != 2:
        return ""
    return " Select one column, e.g. predictor=lambda frame: black_box.predict_proba(frame)[:, 1]."
