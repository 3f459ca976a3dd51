"""Calling a black box: which wrapper it needs, which columns it knows, and why a call failed.

Scikit-learn estimators, anything that behaves like one, and callables are used as they are. Other
black boxes are recognized by the library their type comes from, without importing it.

Always true: importing this module loads no black box's library, and a predictor loads none but its
own. What a predictor raised is kept and not quoted, because it may quote cells. A remedy is only
suggested if the predictor takes rows that way; so it may be called again here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from importlib import import_module
from typing import Any, cast

import pandas as pd
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from ..errors import PredictorError, shorten
from ..runtime.threads import in_caller
from ..tables.frames import FrameAdapter
from .output import FrameLike, column_names, missing_hint

# By library: the module that knows its objects. It has what it needs of ``adapt(predictor)``,
# ``check_rows(predictor, rows)``, ``known_columns(predictor)`` and ``written_name(name)``.
LIBRARIES = {
    "catboost": "catboost",
    "lightgbm": "lightgbm",
    "onnxruntime": "onnx",
    "torch": "torch",
    "xgboost": "xgboost",
}
# Rows of a failed call that are tried once more.
N_TRIED = 100


def adapt(predictor: Any) -> Any:
    """The predictor itself, or wrapped if its library has an interface of its own."""
    for adapt_native in _offers(predictor, "adapt"):
        predictor = adapt_native(predictor)
    return predictor


def check_rows(predictor: Any, rows: FrameLike) -> None:
    """Raise if the predictor's library would silently misread the rows."""
    for check in _offers(predictor, "check_rows"):
        check(predictor, rows)


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
    native = getattr(predictor, "booster", predictor)
    for known in _offers(native, "known_columns"):
        return cast("list[str] | None", known(native))
    return column_names(getattr(predictor, "feature_names_in_", None))


def written_name(predictor: Any, name: Hashable) -> Hashable:
    """A column name as the predictor's library writes it."""
    for write in _offers(getattr(predictor, "booster", predictor), "written_name"):
        name = write(name)
    return name


def _offers(predictor: Any, function: str) -> Iterator[Callable[..., Any]]:
    """A function of the modules that know the libraries of a predictor's type and its bases."""
    names = {base.__module__.partition(".")[0] for base in type(predictor).__mro__}
    for name in names & LIBRARIES.keys():
        module = import_module(f".{LIBRARIES[name]}", __package__)
        if hasattr(module, function):
            yield getattr(module, function)


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
