"""What a predictor returns, as an array: from lists, frames, masked and nullable arrays.

Always true: a masked, null or NaN entry is missing, never a number or a label; no error quotes an
entry, because a predictor may return cells.
"""

from __future__ import annotations

from collections.abc import Hashable
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from ..errors import PredictorError, shorten
from ..kernels import BoolArray, FloatArray

# Units of times that pandas has.
UNITS = ("s", "ms", "us", "ns")


def read_output(output: Any, name: str = "The predictor") -> tuple[np.ndarray, BoolArray]:
    """The entries of an output, and which of them are missing.

    Examples
    --------
    >>> read_output(np.ma.array([0.5, 0.7], mask=[False, True]))
    (array([0.5, 0.7]), array([False,  True]))
    """
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

    Examples
    --------
    >>> to_numbers(*read_output(pd.Series([1, None], dtype="Int64")))
    array([ 1., nan])
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
    """Entries as labels.

    Examples
    --------
    >>> to_labels(np.array(["yes", "no"]), "The predictor", ("yes",)).tolist()
    ['yes', 'no']
    """
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
    """Labels as plain objects, equal for equal times of one unit.

    Examples
    --------
    >>> list_labels(np.array(["2020", "2021"], dtype="datetime64[Y]"))
    [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]
    """
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


def count_rows(flagged: BoolArray) -> str:
    """How many rows are flagged and where the first one is, for errors.

    Examples
    --------
    >>> count_rows(np.array([False, True, True]))
    '2 of 3 rows, first at position 1 of those it was given'
    """
    rows = np.flatnonzero(flagged if flagged.ndim == 1 else flagged.any(axis=1))
    n_rows = f"{rows.size} of {len(flagged)} rows"
    return f"{n_rows}, first at position {rows[0]} of those it was given"


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
