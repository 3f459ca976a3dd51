"""The manners of a scikit-learn predictor, for black boxes that have others.

A wrapper knows how to ask its black box; here stands what all of them do with the answer.

Always true: what the answer means (probabilities, logits, labels or one score per row) is stated
by the user or by the black box itself, never read off the numbers; an answer that cannot mean it
is an error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..errors import ParameterError, PredictorError

Output = Literal["probabilities", "logits", "labels", "score"]
FrameLike = pd.DataFrame | np.ndarray

# Room for probabilities in single precision.
SUM_TOLERANCE = 1e-3


class Wrapper(ABC):
    """A black box that can be asked like a fitted scikit-learn predictor."""

    @property
    def exclusive(self) -> bool:
        """Whether a row has one class only, so that its probabilities add up to 1."""
        return True

    @property
    @abstractmethod
    def output_(self) -> Output:
        """What the black box answers with."""

    @property
    @abstractmethod
    def labels(self) -> Sequence[Hashable] | None:
        """The classes in the order of their probabilities; None if it has none."""

    @abstractmethod
    def ask(self, rows: FrameLike) -> np.ndarray:
        """The black box's own answer about each row."""

    @property
    def _estimator_type(self) -> str | None:
        if self.labels is not None:
            return "classifier"
        return "regressor" if self.output_ == "score" else None

    @property
    def classes_(self) -> np.ndarray:
        """The classes, as scikit-learn keeps them."""
        if self.labels is None:
            raise AttributeError(f"{type(self).__name__} has no classes.")
        classes = np.empty(len(self.labels), dtype=object)
        classes[:] = list(self.labels)
        return classes

    @property
    def predict_proba(self) -> Callable[[FrameLike], np.ndarray]:
        """Probability of each class, shape (n_rows, n_classes); absent where there are none."""
        if self.output_ not in ("probabilities", "logits"):
            raise AttributeError(f"{type(self).__name__} has no probabilities.")
        return self._probabilities

    def predict(self, rows: FrameLike) -> np.ndarray:
        """The label of each row, or its score where there are no classes."""
        if hasattr(self, "predict_proba"):
            return self.classes_[self.predict_proba(rows).argmax(axis=1)]
        answer = self.ask(rows)
        return answer if self.output_ == "labels" else _numbers(answer, len(rows))

    def _probabilities(self, rows: FrameLike) -> np.ndarray:
        answer = _numbers(self.ask(rows), len(rows))
        if self.output_ == "logits":
            return _softmax(_two_columns(answer.astype(np.float64), 0.0, self.classes_.size))
        _check_range(answer)
        probabilities = _two_columns(answer, 1 - answer, self.classes_.size)
        if self.exclusive:
            _check_sums(probabilities)
        return probabilities


def is_from(predictor: Any, library: str, name: str) -> bool:
    """Whether an object is of a library's type, found without importing the library."""
    return any(
        kind.__name__ == name and kind.__module__.partition(".")[0] == library
        for kind in type(predictor).__mro__
    )


def is_number(dtype: Any) -> bool:
    """Whether cells of this dtype are numbers or booleans."""
    return not isinstance(dtype, pd.CategoricalDtype) and dtype.kind in "biuf"


def check_native(predictor: Any, library: str, name: str) -> None:
    """Raise unless a wrapper was given the object it is made for."""
    if not is_from(predictor, library, name):
        raise PredictorError(
            f"Expected a {library} {name}, got {type(predictor).__name__}. Pass a scikit-learn "
            "estimator or a callable to MCCE as it is."
        )


def check_classes(classes: Any) -> None:
    """Raise unless these are two or more different labels, or None."""
    if classes is None:
        return
    listed = isinstance(classes, (list, tuple, np.ndarray, pd.Index))
    plain = listed and all(isinstance(label, Hashable) for label in classes)
    if not plain or len(classes) < 2 or len(set(classes)) < len(classes):
        raise ParameterError(
            "classes must list two or more different labels in the order of the probabilities, "
            f'got {classes!r}. Write e.g. classes=["no", "yes"].'
        )


def check_named(classes: Any, n_classes: int, objective: str) -> None:
    """Raise unless there is a name for each class of a booster, or none at all."""
    check_classes(classes)
    if classes is not None and len(classes) != n_classes:
        raise ParameterError(
            f"classes names {len(classes)} labels, {list(classes)!r}, but the booster's objective "
            f"is {objective!r} with {n_classes} classes."
        )


def check_output(output: Any, allowed: Sequence[str], classes: Any) -> None:
    """Raise unless the output is one that is allowed, with classes where it needs them."""
    if output not in allowed:
        raise ParameterError(f"output must be one of {list(allowed)!r}, got {output!r}.")
    check_classes(classes)
    needed = output in ("probabilities", "logits")
    if needed and classes is None:
        raise ParameterError(
            f'output="{output}" needs classes: the labels in the order of the {output}, '
            'e.g. classes=["no", "yes"].'
        )
    if not needed and classes is not None:
        raise ParameterError(
            f'classes={list(classes)!r} goes with probabilities, but output is "{output}". '
            "Leave classes out or say what the output is."
        )


def _numbers(answer: Any, n_rows: int) -> np.ndarray:
    """The answer as floats, one entry or one row of them per row."""
    answer = np.asarray(answer)
    if answer.ndim not in (1, 2) or len(answer) != n_rows:
        raise PredictorError(
            f"The predictor must answer with one number or one row of numbers for each of "
            f"{n_rows} rows, got shape {answer.shape}."
        )
    if answer.dtype.kind not in "biuf":
        raise PredictorError(f"The predictor must answer with numbers, got {answer[0]!r}.")
    return answer if answer.dtype.kind == "f" else answer.astype(np.float64)


def _two_columns(second: np.ndarray, first: np.ndarray | float, n_classes: int) -> np.ndarray:
    """One column per class; where only that of the second of two came, the first beside it."""
    n_columns = 1 if second.ndim == 1 else second.shape[1]
    if n_columns not in (n_classes, n_classes - 1 if n_classes == 2 else n_classes):
        raise PredictorError(
            f"The predictor answers with {n_columns} numbers per row, but classes names "
            f"{n_classes} labels. Name one label per column, in their order; two labels also go "
            "with one column, which is that of the second."
        )
    if n_columns == n_classes:
        return second
    return np.hstack([np.broadcast_to(first, second.shape).reshape(-1, 1), second.reshape(-1, 1)])


def _check_range(probabilities: np.ndarray) -> None:
    outside = probabilities[(probabilities < 0) | (probabilities > 1)]
    if outside.size:
        raise PredictorError(
            f"The predictor gave {float(outside[0])!r} as a probability, which is not between 0 "
            'and 1. If it gives logits or another score, say so: output="logits" or "score".'
        )


def _check_sums(probabilities: np.ndarray) -> None:
    sums = probabilities.sum(axis=1)
    far = sums[np.abs(sums - 1) > SUM_TOLERANCE]
    if far.size:
        raise PredictorError(
            f"The probabilities of a row must add up to 1, got {float(far[0])!r}. If the classes "
            "do not exclude one another, wrap the one you want in a callable that gives one score "
            "per row."
        )


def _softmax(logits: np.ndarray) -> np.ndarray:
    # Infinite logits become NaN, which the decision tells about with the row.
    with np.errstate(invalid="ignore"):
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)
