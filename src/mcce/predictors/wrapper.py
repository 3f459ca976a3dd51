"""Black boxes with the methods of a scikit-learn predictor.

A wrapper knows how to query its black box; what all of them do with the output is here.

Always true: what the output of a wrapped black box means (probabilities, logits, labels or one
score per row) is stated by the user or by the black box itself, never guessed from the numbers.
Output that cannot mean that is an error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from ..errors import ParameterError, PredictorError, shorten
from ..parameters import check_choice
from .calls import FrameLike, count_rows, read_output, to_numbers

Output = Literal["probabilities", "logits", "labels", "score"]
NumericOutput = Literal["logits", "probabilities", "score"]

# Probabilities in single precision do not add up to exactly 1.
SUM_TOLERANCE = 1e-3


class Wrapper(ABC):
    """A black box with the methods of a fitted scikit-learn predictor."""

    output: Output
    # In the order of their probabilities; None if there are none.
    classes: Sequence[Hashable] | None
    # Whether a row has exactly one class, so that its probabilities add up to 1.
    exclusive: bool = True

    @abstractmethod
    def _query(self, rows: FrameLike) -> np.ndarray:
        """Output of the black box for the rows."""

    @property
    def _estimator_type(self) -> str | None:
        if self.classes is not None:
            return "classifier"
        return "regressor" if self.output == "score" else None

    @property
    def classes_(self) -> np.ndarray:
        """The classes in the order of their probabilities; absent if there are none."""
        if self.classes is None:
            raise AttributeError(f"{type(self).__name__} has no classes.")
        classes = np.empty(len(self.classes), dtype=object)
        classes[:] = list(self.classes)
        return classes

    @property
    def predict_proba(self) -> Callable[[FrameLike], np.ndarray]:
        """Probability of each class, shape (n_rows, n_classes); absent if there are none."""
        if self.output not in ("probabilities", "logits"):
            raise AttributeError(f"{type(self).__name__} has no probabilities.")
        return self._probabilities

    def predict(self, rows: FrameLike) -> np.ndarray:
        """The label of each row, or its score if there are no classes.

        Parameters
        ----------
        rows
            A frame or an array with the columns that the black box was trained on.

        Returns
        -------
        (n_rows,)
            Labels or scores.

        Raises
        ------
        PredictorError
            If the output of the black box cannot be what it should.
        """
        if hasattr(self, "predict_proba"):
            return self.classes_[self.predict_proba(rows).argmax(axis=1)]
        output = self._query(rows)
        return output if self.output == "labels" else _check_numbers(output, len(rows))

    def _probabilities(self, rows: FrameLike) -> np.ndarray:
        output = _check_numbers(self._query(rows), len(rows))
        if self.output == "logits":
            return _softmax(_two_columns(output.astype(np.float64), 0.0, self.classes_.size))
        _check_range(output)
        probabilities = _two_columns(output, 1 - output, self.classes_.size)
        if self.exclusive:
            _check_sums(probabilities)
        return probabilities


@dataclass(frozen=True, eq=False)
class BoosterWrapper(Wrapper):
    """A native booster of a library, which knows its objective and so what its numbers mean."""

    booster: Any
    classes: Sequence[Hashable] | None = None
    output: Output = field(init=False, repr=False)
    library: ClassVar[str]

    def __post_init__(self) -> None:
        check_native(self.booster, self.library, "Booster")
        objective, output, n_classes = self._describe()
        check_classes(self.classes)
        if self.classes is not None and len(self.classes) != n_classes:
            raise ParameterError(
                f"classes names {len(self.classes)} labels, {shorten(list(self.classes))}, but the "
                f"booster's objective {objective!r} has {n_classes} classes. Name each class once, "
                "or leave classes out."
            )
        object.__setattr__(self, "output", output)
        object.__setattr__(
            self, "classes", self.classes or (range(n_classes) if n_classes else None)
        )

    @abstractmethod
    def _describe(self) -> tuple[str, Output, int]:
        """The objective, what its numbers mean, and the number of classes; 0 if it has none."""


def is_from(predictor: Any, library: str, name: str) -> bool:
    """Whether an object is of a library's type; does not import the library."""
    return any(
        base.__name__ == name and base.__module__.partition(".")[0] == library
        for base in type(predictor).__mro__
    )


def holds_numbers(dtype: Any) -> bool:
    """Whether cells of this dtype are numbers or booleans."""
    return not isinstance(dtype, pd.CategoricalDtype) and dtype.kind in "biuf"


def categories_in(rows: Any) -> list[Hashable]:
    """Names of the columns that are categories; an array has none."""
    dtypes = rows.dtypes.items() if isinstance(rows, pd.DataFrame) else ()
    return [name for name, dtype in dtypes if isinstance(dtype, pd.CategoricalDtype)]


def check_native(predictor: Any, library: str, name: str) -> None:
    """Raise unless a wrapper got the type of object that it wraps."""
    if not is_from(predictor, library, name):
        raise PredictorError(
            f"Expected a {library} {name}, got {type(predictor).__name__}. Pass scikit-learn "
            "estimators and callables to MCCE directly, without a wrapper."
        )


def check_classes(classes: Any) -> None:
    """Raise unless classes are two or more different labels, or None."""
    if classes is None:
        return
    listed = isinstance(classes, (list, tuple, np.ndarray, pd.Index))
    hashable = listed and all(isinstance(label, Hashable) for label in classes)
    if not hashable or len(classes) < 2 or len(set(classes)) < len(classes):
        raise ParameterError(
            "classes must list two or more different labels in the order of the probabilities, "
            f'got {shorten(classes)}. Write e.g. classes=["no", "yes"].'
        )


def check_output(output: Any, allowed: Sequence[str], classes: Any) -> None:
    """Raise unless the output is one that is allowed, with classes if it needs them."""
    check_choice("output", output, allowed)
    check_classes(classes)
    needed = output in ("probabilities", "logits")
    if needed and classes is None:
        raise ParameterError(
            f'output="{output}" needs classes: the labels in the order of the {output}, '
            'e.g. classes=["no", "yes"].'
        )
    if not needed and classes is not None:
        raise ParameterError(
            f"classes={shorten(list(classes))} needs probabilities or logits, but output is "
            f'"{output}". Leave classes out or change output.'
        )


def _check_numbers(output: Any, n_rows: int) -> np.ndarray:
    """The output as floats, one number or one row of numbers per row; NaN for missing."""
    entries, missing = read_output(output)
    if entries.ndim not in (1, 2) or len(entries) != n_rows:
        raise PredictorError(
            f"The predictor must return one number or one row of numbers for each of {n_rows} "
            f"rows, got shape {entries.shape}."
        )
    return to_numbers(entries, missing)


def _two_columns(second: np.ndarray, first: np.ndarray | float, n_classes: int) -> np.ndarray:
    """One column per class; adds the first of two classes if only the second is there."""
    n_columns = 1 if second.ndim == 1 else second.shape[1]
    if n_columns not in (n_classes, n_classes - 1 if n_classes == 2 else n_classes):
        raise PredictorError(
            f"The predictor returns {n_columns} numbers per row, but classes names {n_classes} "
            "labels. Name one label per column, in the order of the columns. For two labels, one "
            "column is enough: that of the second."
        )
    if n_columns == n_classes:
        return second
    return np.hstack([np.broadcast_to(first, second.shape).reshape(-1, 1), second.reshape(-1, 1)])


def _check_range(probabilities: np.ndarray) -> None:
    outside = (probabilities < 0) | (probabilities > 1)
    if outside.any():
        raise PredictorError(
            "The predictor returned numbers outside of 0 and 1 as probabilities for "
            f"{count_rows(outside)}. If it returns logits or another score, pass "
            'output="logits" or "score".'
        )


def _check_sums(probabilities: np.ndarray) -> None:
    far = np.abs(probabilities.sum(axis=1) - 1) > SUM_TOLERANCE
    if far.any():
        raise PredictorError(
            "The probabilities of a row must add up to 1, which they do not for "
            f"{count_rows(far)}. If a row can have several classes, wrap the black box in a "
            "callable that returns one score per row."
        )


def _softmax(logits: np.ndarray) -> np.ndarray:
    # Infinite logits become NaN, which the decision reports together with the row.
    with np.errstate(invalid="ignore"):
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)
