"""What a black box returns, as arrays, and as the methods of a scikit-learn predictor.

Output comes as lists, frames, masked and nullable arrays. A wrapper knows how to query its black
box; what all of them do with the output is here.

Always true: a masked, null or NaN entry is missing, never a number or a label; no error quotes an
entry, because a predictor may return cells. What the output of a wrapped black box means
(probabilities, logits, labels or one score per row) is stated by the user or by the black box
itself, never guessed from the numbers. Output that cannot mean that is an error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from numbers import Real
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import pandas as pd

from ..errors import ParameterError, PredictorError, shorten
from ..kernels import BoolArray, FloatArray

Output = Literal["probabilities", "logits", "labels", "score"]
NumericOutput = Literal["logits", "probabilities", "score"]
FrameLike: TypeAlias = pd.DataFrame | np.ndarray

# Probabilities in single precision do not add up to exactly 1.
SUM_TOLERANCE = 1e-3
# Units of times that pandas has.
UNITS = ("s", "ms", "us", "ns")


def read_output(output: Any, name: str = "The predictor") -> tuple[np.ndarray, BoolArray]:
    """The entries of an output, and which of them are missing."""
    try:
        if isinstance(output, np.ma.MaskedArray):
            entries = np.asarray(output.data)
            return entries, np.ma.getmaskarray(output) | _is_missing(entries)
        entries = np.asarray(output)
        return entries, _is_missing(entries)
    except Exception as error:
        failure = error
    raise PredictorError(
        f"{name} returned a {type(output).__name__} that NumPy cannot read "
        f"({type(failure).__name__}). Wrap the predictor in a callable that returns an array (for "
        "torch: .detach().cpu().numpy())."
    ).keeping(failure)


def to_numbers(
    entries: np.ndarray, missing: BoolArray | None = None, name: str = "The predictor"
) -> FloatArray:
    """Entries as floats, NaN for missing ones; the entries themselves if they are that.

    Floats stay in their precision, so that sums of them have the bits that the predictor gives.
    """
    if missing is None:
        missing = np.zeros(entries.shape, dtype=bool)
    if entries.dtype.kind == "f" and not missing.any():
        return entries
    if entries.dtype.kind in "biuf":
        numbers = entries.astype(entries.dtype if entries.dtype.kind == "f" else np.float64)
        numbers[missing] = np.nan
        return numbers
    numbers = np.full(entries.shape, np.nan)
    if entries.dtype == object and all(_is_real(entry) for entry in entries[~missing]):
        try:
            numbers[~missing] = [float(entry) for entry in entries[~missing]]
        except OverflowError:
            pass
        else:
            return numbers
    raise PredictorError(
        f"{name} must return numbers that float64 can hold, got {_kind(entries, missing)}. "
        "If it returns labels, pass the desired label or list of labels as desired."
    )


def to_labels(entries: np.ndarray, name: str, desired: Any) -> pd.Series[Any]:
    """Entries as labels."""
    boxed = entries.dtype == object
    hashable = not boxed or all(isinstance(entry, Hashable) for entry in entries)
    if not hashable or entries.dtype.kind not in "biufOUSmM":
        raise PredictorError(
            f"{name} must return labels such as strings or numbers, got "
            f"{'objects of another type' if boxed else f'dtype {entries.dtype}'}."
        )
    if entries.dtype.kind == "f" and (fractions := entries != np.floor(entries)).any():
        raise PredictorError(
            f"desired names labels, {shorten(desired)}, but the predictor returned "
            f"fractions for {count_rows(fractions)}. For an interval of scores, pass a tuple "
            "of two numbers."
        )
    if entries.dtype.kind in "mM" and np.datetime_data(entries.dtype)[0] not in UNITS:
        return pd.Series(list_labels(entries), dtype=object)
    # As objects, because the strings of pandas 3 hold no lone surrogates.
    return pd.Series(entries, dtype=object if entries.dtype.kind in "OUS" else entries.dtype)


def list_labels(entries: np.ndarray) -> list[Any]:
    """Labels as plain objects, equal for equal times of one unit."""
    if entries.dtype.kind in "mM" and np.datetime_data(entries.dtype)[0] == "ns":
        # NumPy lists them as integers, which equal no time.
        return list(pd.Series(entries))
    return list(entries.tolist())


def check_shape(output: np.ndarray, n_rows: int, name: str, *, at_least: int | None = None) -> None:
    """Raise unless there is one entry, or a row of enough columns, for each row."""
    if at_least is None:
        expected, fits = f"({n_rows},)", output.shape == (n_rows,)
    else:
        expected = f"({n_rows}, {at_least} or more)"
        fits = output.ndim == 2 and len(output) == n_rows and output.shape[1] >= at_least
    if not fits:
        raise PredictorError(
            f"{name} must return an array of shape {expected} for {n_rows} rows, got shape "
            f"{output.shape}.{_shape_hint(output)}"
        )


def check_complete(missing: BoolArray, entry: str, name: str, frame: pd.DataFrame) -> None:
    """Raise if entries are missing."""
    if missing.any():
        affected = np.flatnonzero(missing.reshape(len(frame), -1).any(axis=1))
        rows = frame.iloc[affected]
        related = bool(rows.isna().any(axis=1).all())
        raise PredictorError(
            f"{name} returned NaN, null or masked for {count_rows(missing)}. It must return "
            f"{entry} for every row.{missing_hint(rows) if related else ''}"
        )


def missing_hint(frame: pd.DataFrame) -> str:
    """What to do about missing values, with the columns that have some."""
    incomplete = [name for name, column in frame.items() if column.isna().any()]
    return (
        f" These columns have missing values: {incomplete!r}. If the predictor cannot handle them, "
        "put an imputer in front of it or drop the rows."
    )


def count_rows(flagged: BoolArray) -> str:
    """How many rows are flagged and where the first one is, for errors."""
    row_numbers = np.flatnonzero(flagged if flagged.ndim == 1 else flagged.any(axis=1))
    counted = f"{row_numbers.size} of {len(flagged)} rows"
    return f"{counted}, first at position {row_numbers[0]} of those it was given"


def _is_missing(entries: np.ndarray) -> BoolArray:
    if entries.dtype.kind == "f":
        return np.isnan(entries)
    if entries.dtype.kind not in "cOmM":
        return np.zeros(entries.shape, dtype=bool)
    return np.asarray(pd.isna(entries), dtype=bool).reshape(entries.shape)


def _is_real(entry: Any) -> bool:
    return isinstance(entry, Real) and not isinstance(entry, np.timedelta64)


def _kind(entries: np.ndarray, missing: BoolArray) -> str:
    if entries.dtype != object:
        return f"an array of dtype {entries.dtype}"
    kinds = sorted({type(entry).__name__ for entry in entries[~missing]})
    return f"objects of type {', '.join(kinds[:5])}"


def _shape_hint(output: np.ndarray) -> str:
    if output.ndim != 2:
        return ""
    return " Select one column, e.g. predictor=lambda frame: black_box.predict_proba(frame)[:, 1]."


class Wrapper(ABC):
    """A black box with the methods of a fitted scikit-learn predictor."""

    output: Output
    classes: Sequence[Hashable] | None

    @property
    def _output(self) -> Output:
        """What the output of the black box means."""
        return self.output

    @property
    def _labels(self) -> Sequence[Hashable] | None:
        """The classes in the order of their probabilities; None if there are none."""
        return self.classes

    @property
    def _exclusive(self) -> bool:
        """Whether a row has exactly one class, so that its probabilities add up to 1."""
        return True

    @abstractmethod
    def _query(self, rows: FrameLike) -> np.ndarray:
        """Output of the black box for the rows."""

    @property
    def _estimator_type(self) -> str | None:
        if self._labels is not None:
            return "classifier"
        return "regressor" if self._output == "score" else None

    @property
    def classes_(self) -> np.ndarray:
        """The classes in the order of their probabilities; absent if there are none."""
        if self._labels is None:
            raise AttributeError(f"{type(self).__name__} has no classes.")
        classes = np.empty(len(self._labels), dtype=object)
        classes[:] = list(self._labels)
        return classes

    @property
    def predict_proba(self) -> Callable[[FrameLike], np.ndarray]:
        """Probability of each class, shape (n_rows, n_classes); absent if there are none."""
        if self._output not in ("probabilities", "logits"):
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
        return output if self._output == "labels" else _check_numbers(output, len(rows))

    def _probabilities(self, rows: FrameLike) -> np.ndarray:
        output = _check_numbers(self._query(rows), len(rows))
        if self._output == "logits":
            return _softmax(_two_columns(output.astype(np.float64), 0.0, self.classes_.size))
        _check_range(output)
        probabilities = _two_columns(output, 1 - output, self.classes_.size)
        if self._exclusive:
            _check_sums(probabilities)
        return probabilities


class BoosterWrapper(Wrapper):
    """A native booster of a library, which knows its objective and so what its numbers mean."""

    library: ClassVar[str]
    booster: Any

    def __post_init__(self) -> None:
        check_native(self.booster, self.library, "Booster")
        check_class_names(self.classes, self._n_classes, self._objective)

    @property
    @abstractmethod
    def _objective(self) -> str:
        """Name of the objective; empty if it is the user's own function."""

    @property
    @abstractmethod
    def _n_classes(self) -> int:
        """Number of classes of the objective; 0 if it has none."""

    @property
    def _labels(self) -> Sequence[Hashable] | None:
        if self.classes is not None or not self._n_classes:
            return self.classes
        return range(self._n_classes)


def is_from(predictor: Any, library: str, name: str) -> bool:
    """Whether an object is of a library's type; does not import the library."""
    return any(
        base.__name__ == name and base.__module__.partition(".")[0] == library
        for base in type(predictor).__mro__
    )


def column_names(names: Any, numbered: str | None = None) -> list[str] | None:
    """Names that are strings, unless they are those that a library gives to unnamed columns."""
    if names is None or isinstance(names, str) or not hasattr(names, "__len__"):
        return None
    listed = list(names)
    if not all(isinstance(name, str) for name in listed):
        return None
    if numbered is not None and listed == [f"{numbered}{at}" for at in range(len(listed))]:
        return None
    return [str(name) for name in listed]


def holds_numbers(dtype: Any) -> bool:
    """Whether cells of this dtype are numbers or booleans."""
    return not isinstance(dtype, pd.CategoricalDtype) and dtype.kind in "biuf"


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


def check_class_names(classes: Any, n_classes: int, objective: str) -> None:
    """Raise unless each class of a booster has a name, or none has."""
    check_classes(classes)
    if classes is not None and len(classes) != n_classes:
        raise ParameterError(
            f"classes names {len(classes)} labels, {shorten(list(classes))}, but the booster's "
            f"objective {objective!r} has {n_classes} classes. Name each class once, or leave "
            "classes out."
        )


def check_output(output: Any, allowed: Sequence[str], classes: Any) -> None:
    """Raise unless the output is one that is allowed, with classes if it needs them."""
    if output not in allowed:
        raise ParameterError(f"output must be one of {list(allowed)!r}, got {shorten(output)}.")
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
