"""The decision: a predictor and a desired set make a score and a yes or no for every row.

Paper, footnote to the introduction: a decision is derived from the prediction f(x) by the
interval c. This is the only module that calls f.

Always true: which method of the predictor is called is settled once and written in ``method``;
what comes back is checked (one score per row, none of them NaN) before anybody uses it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.utils import get_tags

from .errors import McceError, ParameterError, PredictorError
from .frames import PANDAS, Door
from .interval import Interval
from .kernels import BoolArray, FloatArray
from .predictors import adapt, check_rows

Method = Literal["predict_proba", "decision_function", "predict", "call"]


@dataclass(frozen=True)
class Scored:
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
    door: Door = PANDAS

    def __repr__(self) -> str:
        name, columns = type(self.predictor).__name__, f"[:, {list(self.columns)}]"
        score = f"{name}.{self.method}{columns if self.columns else ''}"
        if isinstance(self.desired, Interval):
            return f"Decision({score} in {self.desired!r})"
        asked = "call" if self.method == "call" else "predict"
        labels = f"{name}.{asked} in {list(self.desired)!r}"
        return f"Decision({labels}, score {score})" if self.columns else f"Decision({labels})"

    def score(self, frame: pd.DataFrame) -> Scored:
        """Score and validity of each row of a frame with the training columns."""
        if frame.empty:
            return Scored(np.empty(0), np.empty(0, dtype=bool))
        if isinstance(self.desired, Interval):
            scores = self._scores(frame)
            return Scored(scores, self.desired.contains(scores))
        labels = self._labels(frame)
        valid = labels.isin(list(self.desired)).to_numpy(dtype=bool)
        return Scored(self._scores(frame) if self.columns else valid.astype(np.float64), valid)

    @property
    def graded(self) -> bool:
        """Whether scores tell more than the decision does."""
        return isinstance(self.desired, Interval) or bool(self.columns)

    def merit(self, scores: FloatArray) -> FloatArray:
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

        Interval: the merit of the score. Labels: the largest probability of a desired one less the
        largest of another, NaN where the predictor gives no probabilities.
        """
        if isinstance(self.desired, Interval):
            return self.merit(scores)
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
        rows = self.door.for_predictor(frame)
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


def decide(
    predictor: Any,
    desired: Any = None,
    *,
    score_class: Hashable | None = None,
    door: Door = PANDAS,
) -> Decision:
    """Settle how a predictor is called and what is desired of it.

    Parameters
    ----------
    predictor
        A fitted scikit-learn estimator or pipeline, a boosting model, an ONNX session, one of
        ``mcce.predictors``, or a callable from a frame to scores.
    desired
        A tuple of two numbers (a closed interval of the score), an :class:`Interval`, or a label
        or list of labels. None: [0.5, 1] for a binary classifier.
    score_class
        The class whose probability is the score; the second one unless given.
    door
        The kind of frame that the predictor is handed.

    Examples
    --------
    >>> decide(lambda frame: frame["salary"] / 1000, (70, 100))
    Decision(function.call in Interval [70, 100])
    """
    wanted = _read_desired(desired)
    if isinstance(predictor, type):
        raise PredictorError(
            f"predictor is the class {predictor.__name__}. Pass a fitted instance of it."
        )
    predictor = adapt(predictor)
    has = [name for name in _METHODS if callable(getattr(predictor, name, None))]
    if not has and not callable(predictor):
        raise PredictorError(
            f"predictor must be a fitted estimator with one of {list(_METHODS)!r}, or a callable "
            f"from a frame to scores, got {type(predictor).__name__}."
        )
    if _type_of(predictor) == "classifier" or "predict_proba" in has:
        wanted, method, columns = _for_classifier(predictor, wanted, score_class, has)
        return Decision(predictor, wanted, method, columns, door)
    if wanted is None:
        raise ParameterError(
            "desired is needed: a regressor or a plain callable has no natural decision. "
            "Pass e.g. desired=(0.5, 1.0)."
        )
    if score_class is not None:
        raise ParameterError("score_class is only for classifiers with classes_.")
    if not isinstance(wanted, Interval):
        _check_labels(wanted, _type_of(predictor))
    return Decision(predictor, wanted, "predict" if "predict" in has else "call", (), door)


_METHODS: tuple[Method, ...] = ("predict_proba", "decision_function", "predict")


def _type_of(predictor: Any) -> str | None:
    """What the predictor claims to be: "classifier", "regressor", something else or nothing."""
    if hasattr(predictor, "__sklearn_tags__"):
        return str(get_tags(predictor).estimator_type)
    return getattr(predictor, "_estimator_type", None)


def _read_desired(desired: Any) -> Interval | tuple[Hashable, ...] | None:
    """An interval or a tuple of labels."""
    if desired is None or isinstance(desired, Interval):
        return desired
    if isinstance(desired, tuple):
        numbers = [end for end in desired if isinstance(end, Real) and not isinstance(end, bool)]
        if len(desired) != 2 or len(numbers) != 2:
            raise ParameterError(
                "A tuple as desired means an interval and needs two numbers, got "
                f"{desired!r}. For labels pass a list."
            )
        return Interval(*desired)
    if isinstance(desired, (list, set, frozenset)):
        if not desired:
            raise ParameterError(
                f"desired is empty, got {desired!r}: nothing could ever be desired. "
                "Name at least one label."
            )
        return tuple(desired)
    if np.isscalar(desired) and not isinstance(desired, complex):
        return (desired,)
    raise ParameterError(
        "desired must be a tuple of two numbers, an mcce.Interval, a label or a list of labels, "
        f"got {desired!r}."
    )


def _for_classifier(
    predictor: Any,
    wanted: Interval | tuple[Hashable, ...] | None,
    score_class: Hashable | None,
    has: Sequence[Method],
) -> tuple[Interval | tuple[Hashable, ...], Method, tuple[int, ...]]:
    """What is desired of a classifier, the method to call and the columns to sum."""
    classes = _classes(predictor)
    if wanted is None and score_class is None and len(classes) == 2 and _has_threshold(predictor):
        wanted = (classes[1],)
    if isinstance(wanted, tuple):
        places = _label_places(wanted, classes, score_class)
        labels = tuple(classes[place] for place in places)
        if "predict_proba" in has:
            return labels, "predict_proba", places
        return labels, "predict", ()
    if score_class is None and len(classes) != 2:
        raise ParameterError(
            f"The predictor has {len(classes)} classes {classes!r}. Name the desired ones "
            "(desired=[...]), or the one whose probability is the score (score_class=...)."
        )
    place = 1 if score_class is None else _place(score_class, classes, "score_class")
    if "predict_proba" in has:
        return wanted or Interval(0.5, 1.0), "predict_proba", (place,)
    if place != 1 or len(classes) != 2:
        raise ParameterError(
            f"The predictor gives no probabilities, so score_class={score_class!r} has no score. "
            "Pass it as desired instead."
        )
    if "decision_function" in has:
        return wanted or Interval(0.0, math.inf, "neither"), "decision_function", ()
    if wanted is not None:
        raise ParameterError(
            f"The predictor gives labels only, so no score can be in {wanted!r}. "
            f"Pass one or more of its classes {classes!r} as desired."
        )
    return (classes[1],), "predict", ()


def _has_threshold(predictor: Any) -> bool:
    """Whether a classifier, or the last step of a pipeline, decides by a threshold of its own."""
    last = predictor.steps[-1][1] if hasattr(predictor, "steps") else predictor
    fixed = hasattr(last, "threshold") and hasattr(last, "pos_label")
    moved = getattr(last, "get_probability_threshold", lambda: 0.5)() != 0.5
    return fixed or hasattr(last, "best_threshold_") or moved


def _label_places(
    labels: tuple[Hashable, ...], classes: list[Hashable], score_class: Hashable | None
) -> tuple[int, ...]:
    """Places of the desired labels among the classes."""
    if score_class is not None:
        raise ParameterError(
            f"score_class={score_class!r} goes with an interval of scores, but desired names "
            f"labels {list(labels)!r}. Leave score_class out."
        )
    # In the order of the classes, since the order of a sum shows in its last bit.
    places = tuple(sorted({_place(label, classes, "desired") for label in labels}))
    if len(places) == len(classes):
        raise ParameterError(
            f"desired names all classes of the predictor, {classes!r}, so that everything is "
            "desired. Leave one out, or pass a tuple of two numbers for an interval of scores."
        )
    return places


def _classes(predictor: Any) -> list[Hashable]:
    classes = getattr(predictor, "classes_", None)
    if classes is None:
        raise PredictorError(
            f"The predictor {type(predictor).__name__} is a classifier without classes_: it is "
            "not fitted, or it needs to be wrapped in a callable that gives one score per row."
        )
    if len({np.ndim(label) for label in classes} - {0}):
        raise PredictorError(
            f"The predictor {type(predictor).__name__} has several outputs, got classes_ "
            f"{classes!r}. Wrap the one you want in a callable that gives one score per row."
        )
    return list(np.asarray(classes).tolist())


def _check_labels(labels: tuple[Hashable, ...], type_of: str | None) -> None:
    """Labels for a predictor that does not tell its classes."""
    fractional = [x for x in labels if isinstance(x, float) and not x.is_integer()]
    if type_of == "regressor" or fractional:
        why = "the predictor is a regressor" if type_of == "regressor" else "a label is whole"
        raise ParameterError(
            f"desired names labels {list(labels)!r}, but {why}. For an interval of scores pass a "
            "tuple of two numbers, e.g. desired=(0.5, 1.0)."
        )
    unhashable = [label for label in labels if not isinstance(label, Hashable)]
    if unhashable:
        raise ParameterError(f"desired must list plain labels, got {unhashable[0]!r} among them.")


def _place(label: Hashable, classes: list[Hashable], argument: str) -> int:
    if label not in classes:
        raise ParameterError(
            f"{argument} names {label!r}, which is not among the predictor's classes {classes!r}. "
            "For an interval of scores pass a tuple of two numbers."
        )
    return classes.index(label)


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
