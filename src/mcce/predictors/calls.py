"""Calling a black box: which wrapper it needs, what it returned, and why a call failed.

Scikit-learn estimators, anything that behaves like one, and callables are used as they are. Other
black boxes are recognized by the library their type comes from, without importing it. Output comes
as lists, frames, masked and nullable arrays, and is read as arrays.

Always true: importing this module loads no black box's library, and a predictor loads none but its
own. A masked, null or NaN entry is missing, never a number or a label. What a predictor raised is
kept and not quoted, because it may quote cells; nor is what it returned. A remedy is only suggested
if the predictor takes rows that way; so it may be called again here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from importlib import import_module
from numbers import Real
from typing import Any, TypeAlias, cast

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from ..errors import PredictorError, shorten
from ..kernels import BoolArray, FloatArray
from ..runtime.threads import in_caller
from ..tables.frames import FrameAdapter

FrameLike: TypeAlias = pd.DataFrame | np.ndarray

# By library: the module that knows its objects. Each module defines those of ``adapt(predictor)``,
# ``check_rows(predictor, rows)``, ``known_columns(predictor)`` and ``written_name(name)`` in which
# the library differs from scikit-learn.
LIBRARIES = {
    "catboost": "catboost",
    "lightgbm": "lightgbm",
    "onnxruntime": "onnx",
    "torch": "torch",
    "xgboost": "xgboost",
}
# Rows of a failed call that are tried once more.
N_TRIED = 100
# Units of times that pandas has.
UNITS = ("s", "ms", "us", "ns")


def adapt(predictor: Any) -> Any:
    """The predictor itself, or wrapped if its library has an interface of its own."""
    return _of_library(predictor, "adapt", lambda given: given)(predictor)


def check_rows(predictor: Any, rows: FrameLike) -> None:
    """Raise if the predictor's library would silently misread the rows."""
    _of_library(predictor, "check_rows", lambda *_: None)(predictor, rows)


def call(predictor: Any, function: Callable[[Any], Any], rows: Any) -> Any:
    """Call a function of the predictor on rows.

    It is called in the thread that takes the results of this task, since few black boxes are made
    for several; in this one if the predictor has the attribute ``thread_safe``.
    """
    if getattr(predictor, "thread_safe", False) is True:
        return function(rows)
    return in_caller(lambda: function(rows))


def known_columns(predictor: Any) -> list[str] | None:
    """The columns that a predictor was trained on, in order; None if it does not say."""
    native = _native(predictor)
    return cast("list[str] | None", _of_library(native, "known_columns", _named_at_fit)(native))


def written_name(predictor: Any, name: Hashable) -> Hashable:
    """A column name as the predictor's library writes it."""
    return cast(
        "Hashable", _of_library(_native(predictor), "written_name", lambda given: given)(name)
    )


def _native(predictor: Any) -> Any:
    """The booster in a wrapper of ours; anything else as it is."""
    is_ours = type(predictor).__module__.startswith(f"{__package__}.")
    return getattr(predictor, "booster", predictor) if is_ours else predictor


def _named_at_fit(predictor: Any) -> list[str] | None:
    return column_names(getattr(predictor, "feature_names_in_", None))


def _of_library(predictor: Any, name: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the module that knows the library of a predictor's type or its bases."""
    for base in type(predictor).__mro__:
        library = base.__module__.partition(".")[0]
        if library in LIBRARIES:
            module = import_module(f".{LIBRARIES[library]}", __package__)
            return getattr(module, name, otherwise)
    return otherwise


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
    missing = np.zeros(entries.shape, dtype=bool) if missing is None else missing
    if entries.dtype.kind == "f" and not missing.any():
        return entries
    present = entries[~missing]
    numbers = np.full(entries.shape, np.nan, entries.dtype if entries.dtype.kind == "f" else float)
    if entries.dtype.kind in "biuf" or (entries.dtype == object and all(map(_is_real, present))):
        try:
            numbers[~missing] = present
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


def predictor_error(
    failure: Exception,
    predictor: Any,
    function: Callable[[Any], Any],
    frame: pd.DataFrame,
    adapter: FrameAdapter,
) -> PredictorError:
    """The error to raise when a predictor fails."""
    kind = type(failure).__name__
    if isinstance(failure, SklearnNotFittedError):
        return PredictorError(
            f"The predictor is not fitted ({kind}). Fit it first: mcce explains a predictor, it "
            "does not train it."
        ).keeping(failure)
    hint = _columns_hint(predictor, frame) or _input_hint(failure, function, frame, adapter)
    return PredictorError(
        f"The predictor failed on {len(frame)} rows with a {kind}. Its message may quote data, so "
        "it is not shown: see the attribute original of this error, e.g. with "
        f"traceback.print_exception(error.original).{hint}"
    ).keeping(failure)


def _columns_hint(predictor: Any, frame: pd.DataFrame) -> str:
    trained, given = known_columns(predictor), list(frame.columns)
    written = [written_name(predictor, name) for name in given]
    if trained is None or trained == written:
        return ""
    lacking = [name for name in trained if name not in set(written)]
    if lacking:
        return (
            f" It was trained on columns that the data lack: {shorten(lacking, 500)}. Fit the "
            "explainer on all columns of the predictor."
        )
    return (
        f" It was trained on the columns {shorten(trained, 500)}, but got "
        f"{shorten(given, 500)}. Fit the explainer on the columns of the predictor."
    )


def _input_hint(
    failure: Exception, function: Callable[[Any], Any], frame: pd.DataFrame, adapter: FrameAdapter
) -> str:
    """What to do if the predictor takes rows without missing values, or pandas frames."""
    incomplete = frame.isna().any(axis=1).to_numpy(dtype=bool)
    if incomplete.all() and re.search("nan|missing|null", str(failure), re.IGNORECASE):
        return missing_hint(frame)
    if incomplete.any():
        parts = [frame.loc[mask].head(N_TRIED) for mask in (incomplete, ~incomplete)]
        taken = [_succeeds(function, adapter.rows_for_predictor(part)) for part in parts]
        if len(parts[1]) and taken == [False, True]:
            return missing_hint(frame)
    texts = [name for name, column in frame.items() if column.dtype.kind == "O"]
    if texts and _succeeds(function, frame.head(N_TRIED).astype(dict.fromkeys(texts, "category"))):
        return (
            f" These columns hold strings, and the predictor takes them as categories: {texts!r}. "
            "Convert them with astype('category') before fit."
        )
    kind = getattr(adapter, "library", None)
    if kind is None or not _succeeds(function, frame.head(N_TRIED).copy()):
        return ""
    return (
        f" It fails on a {kind} frame, but not on the same rows in pandas: pass the training data "
        "with .to_pandas()."
    )


def _succeeds(function: Callable[[Any], Any], rows: Any) -> bool:
    """Whether the predictor accepts rows at all."""
    try:
        in_caller(lambda: function(rows))
    except Exception:
        return False
    return True
