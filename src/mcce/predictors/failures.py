"""The errors for a predictor that raised one or left rows out, and what to do about them.

Always true: what the predictor raised is kept and not quoted, because it may quote cells. A remedy
is only suggested if the predictor takes rows that way; so it may be called again here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from ..errors import PredictorError, shorten
from ..kernels import BoolArray
from ..runtime.threads import in_caller
from ..tables.frames import FrameAdapter
from .adapters import known_columns, written_name
from .output import count_rows

# Rows of a failed call that are tried once more.
N_TRIED = 100


def failed(
    failure: Exception,
    predictor: Any,
    function: Callable[[Any], Any],
    frame: pd.DataFrame,
    adapter: FrameAdapter,
) -> PredictorError:
    """The error for what a predictor raised."""
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
    """Whether the predictor takes rows at all."""
    try:
        in_caller(lambda: function(rows))
    except Exception:
        return False
    return True
