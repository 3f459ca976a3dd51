"""The decision: a predictor and a desired set make a score and a yes or no for every row.

Paper, footnote to the introduction: a decision is derived from the prediction f(x) by the
interval c. This is the only module that calls f.

Always true: which method of the predictor is called is settled once and written in ``method``;
what comes back is checked (one score per row, none of them NaN) before anybody uses it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from ..errors import McceError, PredictorError
from ..kernels import BoolArray, FloatArray
from ..tables.frames import PANDAS_ADAPTER, FrameAdapter
from .adapters import check_rows
from .interval import Interval

Method = Literal["predict_proba", "decision_function", "predict", "call"]


@dataclass(frozen=True)
class ScoredRows:
    """What the predictor says of each row: its score and whether it is decided as desired."""

    score: FloatArray
    valid: BoolArray


@dataclass(frozen=True, eq=False)
class Decision:
    """A predictor together with what is desired of it.

    Parameters
    ----------
    predictor
        The black box f.
    desired
        The interval of desired scores, or the tuple of desired labels.
    method
        How f is asked for scores: one of its methods, or ``"call"`` for a plain callable.
    columns
        Columns of the probabilities that are summed to the score; empty if there are none.
    door
        The kind of frame that f is handed, which is that of the training data.
    """

    predictor: Any
    desired: Interval | tuple[Hashable, ...]
    method: Method
    columns: tuple[int, ...] = ()
    adapter: FrameAdapter = PANDAS_ADAPTER

    def __repr__(self) -> str:
        name, columns = type(self.predictor).__name__, f"[:, {list(self.columns)}]"
        score = f"{name}.{self.method}{columns if self.columns else ''}"
        if isinstance(self.desired, Interval):
            return f"Decision({score} in {self.desired!r})"
        asked = "call" if self.method == "call" else "predict"
        labels = f"{name}.{asked} in {list(self.desired)!r}"
        return f"Decision({labels}, score {score})" if self.columns else f"Decision({labels})"

    def score(self, frame: pd.DataFrame) -> ScoredRows:
        """Score and validity of each row of a frame with the training columns."""
        if frame.empty:
            return ScoredRows(np.empty(0), np.empty(0, dtype=bool))
        if isinstance(self.desired, Interval):
            scores = self._scores(frame)
            return ScoredRows(scores, self.desired.contains(scores))
        labels = self._labels(frame)
        valid = labels.isin(list(self.desired)).to_numpy(dtype=bool)
        return ScoredRows(self._scores(frame) if self.columns else valid.astype(np.float64), valid)

    @property
    def has_scores(self) -> bool:
        """Whether scores tell more than the decision does."""
        return isinstance(self.desired, Interval) or bool(self.columns)

    def desirability(self, scores: FloatArray) -> FloatArray:
        """How good scores are, the higher the better, also beyond what is desired.

        Interval: the distance to the nearer end, negative outside; an end that a probability cannot
        pass is none. Labels: their probability.
        """
        if not isinstance(self.desired, Interval):
            return scores
        low, high = self.desired.low, self.desired.high
        if self.columns:
            low, high = (-math.inf if low <= 0 else low), (math.inf if high >= 1 else high)
        return Interval(low, high).margin(scores)

    def shortfall(self, scores: FloatArray) -> FloatArray:
        """How far each score is from what is desired; 0 is there."""
        interval = self.desired if isinstance(self.desired, Interval) else Interval(1.0, math.inf)
        return interval.shortfall(scores)

    def margin(self, frame: pd.DataFrame, scores: FloatArray) -> FloatArray:
        """How far inside the desired set each row of a frame is, given their scores.

        Interval: its desirability. Labels: the largest probability of a desired one less the
        largest of another, NaN where the predictor gives no probabilities.
        """
        if isinstance(self.desired, Interval):
            return self.desirability(scores)
        if not self.columns or frame.empty:
            return np.full(len(frame), np.nan)
        answer = self._ask(self.method, frame)
        wanted = np.isin(np.arange(answer.shape[1]), self.columns)
        return (answer[:, wanted].max(axis=1) - answer[:, ~wanted].max(axis=1)).astype(np.float64)

    def _scores(self, frame: pd.DataFrame) -> FloatArray:
        answer = self._ask(self.method, frame)
        if self.columns:
            self._check_shape(answer, len(frame), at_least=max(self.columns) + 1)
            answer = answer[:, list(self.columns)].sum(axis=1)
        elif answer.shape == (len(frame), 1):
            answer = answer.ravel()
        self._check_shape(answer, len(frame))
        if answer.dtype.kind not in "biuf" and not all(isinstance(a, Real) for a in answer):
            raise PredictorError(
                f"{self.method} of the predictor must give numbers, got {answer[0]!r}. "
                "If it gives labels, pass the desired label or list of labels as desired."
            )
        scores = answer.astype(np.float64)
        n_nan = int(np.isnan(scores).sum())
        if n_nan:
            raise PredictorError(
                f"{self.method} of the predictor gave NaN for {n_nan} of {len(frame)} rows, first "
                f"for {frame.iloc[int(np.argmax(np.isnan(scores)))].to_dict()!r}. "
                "A score must be a number for every row."
            )
        return scores

    def _labels(self, frame: pd.DataFrame) -> pd.Series[Any]:
        answer = self._ask("call" if self.method == "call" else "predict", frame)
        if answer.shape == (len(frame), 1):
            answer = answer.ravel()
        self._check_shape(answer, len(frame))
        fractions = answer[answer != np.floor(answer)] if answer.dtype.kind == "f" else answer[:0]
        if fractions.size:
            raise PredictorError(
                f"desired names labels, {self.desired!r}, but the predictor gives numbers such as "
                f"{fractions[0]!r}. For an interval of scores pass a tuple of two numbers."
            )
        return pd.Series(answer)

    def _check_shape(self, answer: np.ndarray, n_rows: int, *, at_least: int | None = None) -> None:
        """One entry per row, or one row of at least so many columns per row."""
        if at_least is None:
            expected, fits = f"({n_rows},)", answer.shape == (n_rows,)
        else:
            expected = f"({n_rows}, {at_least} or more)"
            fits = answer.ndim == 2 and len(answer) == n_rows and answer.shape[1] >= at_least
        if not fits:
            raise PredictorError(
                f"{self.method} of the predictor must give an array of shape {expected} for "
                f"{n_rows} rows, got shape {answer.shape}.{_shape_hint(answer)}"
            )

    def _ask(self, method: Method, frame: pd.DataFrame) -> np.ndarray:
        """The predictor's own words; it gets a copy, so that it may do with it what it likes."""
        function = self.predictor if method == "call" else getattr(self.predictor, method)
        rows = self.adapter.rows_for_predictor(frame)
        try:
            check_rows(self.predictor, rows)
            answer = function(rows)
        except McceError:
            raise
        except SklearnNotFittedError as error:
            raise PredictorError(
                f"The predictor is not fitted ({error}). Fit it first: mcce explains it, "
                "it does not train it."
            ) from error
        except Exception as error:
            raise PredictorError(
                f"The predictor failed on {len(frame)} rows: {type(error).__name__}: {error}"
                f"{_missing_hint(frame)}"
            ) from error
        try:
            return np.asarray(answer)
        except Exception as error:
            raise PredictorError(
                f"{method} of the predictor gave a {type(answer).__name__} that NumPy cannot read: "
                f"{error} Wrap the predictor in a callable that gives an array (for torch: "
                ".detach().cpu().numpy())."
            ) from error


def _missing_hint(frame: pd.DataFrame) -> str:
    holding = [name for name, column in frame.items() if column.isna().any()]
    if not holding:
        return ""
    return (
        f" These columns hold missing values: {holding!r}. If the predictor refuses them, put an "
        "imputer in front of it or drop the rows."
    )


def _shape_hint(answer: np.ndarray) -> str:
    if answer.ndim != 2:
        return ""
    return (
        " Pick one column of it, e.g. predictor=lambda frame: black_box.predict_proba(frame)[:, 1]."
    )
