"""Cells that are equal but not identical: of another type, or with other bits.

Equal values share a code, but a predictor may tell them apart: 0.0 and -0.0; None, NaN, NaT and NA;
1, 1.0 and True among objects. Everything here is about those pairs and costs next to nothing for
columns without them.

Always true: two cells have the same number exactly if they have the same type and bits; objects of
types not known here are identical only to themselves.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from ..kernels import BoolArray, Codes, IntArray

# Among equal objects, the first of these types represents the value; other types follow by name.
PRECEDENCE = (type(None), str, int, float, bool, type(pd.NaT), type(pd.NA))
# Types of missing cells that exist once.
GAPS = {type(None), type(pd.NaT), type(pd.NA)}


def number_identical(cells: Any) -> IntArray:
    """A number for each cell of an array, the same for identical cells.

    Examples
    --------
    >>> number_identical(np.array([0.0, -0.0, 1.0, 0.0]))
    array([0, 1, 2, 0])
    >>> number_identical(np.array([1, True, 1.0, 1], dtype=object))
    array([0, 1, 2, 0])
    """
    if is_float(cells):
        bits, masked = float_bits(cells)
        numbers = np.asarray(pd.factorize(bits)[0], dtype=np.int64)
        numbers[masked] = len(numbers)
        return pd.factorize(numbers)[0] if masked.any() else numbers
    if holds_objects(cells) and has_look_alikes(cells):
        seen: dict[Any, int] = {}
        keys = [seen.setdefault(_key(cell), len(seen)) for cell in _objects(cells)]
        return np.array(keys, dtype=np.int64)
    return np.asarray(pd.factorize(cells, use_na_sentinel=False)[0], dtype=np.int64)


def are_identical(cells: Any, first: IntArray, second: IntArray) -> BoolArray:
    """Whether the cells of an array at one list of places are those at another.

    Examples
    --------
    >>> are_identical(np.array([0.0, -0.0]), np.array([0, 0]), np.array([0, 1]))
    array([ True, False])
    """
    if not is_float(cells):
        numbers = number_identical(cells)
        return np.asarray(numbers[first] == numbers[second])
    bits, masked = float_bits(cells)
    return np.asarray((bits[first] == bits[second]) & (masked[first] == masked[second]))


def has_look_alikes(cells: Any) -> bool:
    """Whether an array may hold equal cells that are not identical.

    Examples
    --------
    >>> has_look_alikes(np.array([0.0, np.nan])), has_look_alikes(np.array([-0.0]))
    (False, True)
    """
    if is_float(cells):
        return bool(_unusual(cells).any())
    if not holds_objects(cells):
        return False
    objects = _objects(cells)
    kinds = set(map(type, objects)) - {str}
    gaps = kinds & GAPS
    # Floats are gaps in a column of text, as a rule: all of them the one NaN of NumPy.
    if float in kinds and all(cell is np.nan for cell in objects if type(cell) is float):
        gaps = gaps | {float}
    values = kinds - gaps
    return len(gaps) > 1 or len(values) > 1 or not values <= {int, bool}


def represent(cells: Any, codes: Codes | IntArray, first: IntArray) -> IntArray:
    """The row whose cell stands for each code; independent of the order of rows."""
    if not has_look_alikes(cells):
        return first
    chosen = first.copy()
    if is_float(cells):
        rows, preference = _float_preference(cells)
        order = np.lexsort((rows, preference, codes[rows]))
        rows = rows[order][np.flatnonzero(np.diff(codes[rows[order]], prepend=-1))]
        chosen[codes[rows]] = rows
        return chosen
    objects = _objects(cells)
    for row, code in enumerate(codes.tolist()):
        if _preference(objects[row]) < _preference(objects[chosen[code]]):
            chosen[code] = row
    return chosen


def is_float(cells: Any) -> bool:
    """Whether an array holds floats, in any dtype of pandas."""
    return bool(cells.dtype.kind == "f")


def holds_objects(cells: Any) -> bool:
    """Whether an array holds Python objects, as text may be stored too."""
    dtype = cells.dtype
    return bool(types.is_object_dtype(dtype)) or getattr(dtype, "storage", None) == "python"


def is_unusual(cells: Any) -> BoolArray:
    """Floats other than the usual form of their value, and objects other than text."""
    if is_float(cells):
        return _unusual(cells)
    return np.fromiter((type(cell) is not str for cell in _objects(cells)), bool, len(cells))


def float_bits(cells: Any) -> tuple[IntArray, BoolArray]:
    """The bits of floats as integers, and which cells are masked."""
    values, masked = _floats(cells)
    return values.view(f"i{values.dtype.itemsize}").astype(np.int64), masked


def usual_floats(cells: Any) -> Any:
    """Floats with +0.0 for -0.0 and one missing marker for all; other arrays as they are."""
    if not is_float(cells) or not has_look_alikes(cells):
        return cells
    values, masked = _floats(cells)
    usual = np.where(np.isnan(values), np.nan, values + 0.0).astype(values.dtype)
    if isinstance(cells.dtype, np.dtype):
        return usual
    boxed = usual.astype(object)
    boxed[masked | np.isnan(usual)] = None
    return pd.array(boxed, dtype=cells.dtype)


def _floats(cells: Any) -> tuple[np.ndarray, BoolArray]:
    """Floats as a NumPy array of their own width, and which cells are masked."""
    dtype = cells.dtype
    if isinstance(dtype, np.dtype):
        values = np.ascontiguousarray(cells)
        return values, np.zeros(values.size, dtype=bool)
    if isinstance(dtype, pd.ArrowDtype):
        arrow = cells.__arrow_array__()
        arrow = arrow.combine_chunks() if hasattr(arrow, "combine_chunks") else arrow
        return np.asarray(arrow.fill_null(0.0)), np.asarray(arrow.is_null())
    return cells.to_numpy(dtype=dtype.numpy_dtype, na_value=0.0), np.asarray(cells.isna())


def _unusual(cells: Any) -> BoolArray:
    """Floats other than the usual representation of their value."""
    values, _ = _floats(cells)
    unusual = (values == 0) & np.signbit(values)
    gaps = np.isnan(values)
    if not gaps.any():
        return unusual
    if not isinstance(cells.dtype, np.dtype):
        return unusual | gaps
    nan = np.array([np.nan], dtype=values.dtype)
    return unusual | (gaps & (float_bits(values)[0] != float_bits(nan)[0]))


def _float_preference(cells: Any) -> tuple[IntArray, IntArray]:
    """Rows of zeros and missing cells; lower for those that rather represent their value."""
    values, masked = _floats(cells)
    rows = np.flatnonzero((values == 0) | np.isnan(values))
    values, masked = values[rows], masked[rows]
    bits = float_bits(values)[0]
    nan = float_bits(np.array([np.nan], dtype=values.dtype))[0]
    preference = np.where(values == 0, np.signbit(values), bits).astype(np.int64)
    preference[bits == nan] = np.iinfo(np.int64).min + 1
    preference[masked] = np.iinfo(np.int64).min
    return rows, preference


def _objects(cells: Any) -> list[Any]:
    return list(np.asarray(cells, dtype=object))


def _preference(cell: Any) -> tuple[int, str, bytes]:
    """Lower for the objects that rather represent their value; equal only if we cannot tell."""
    kind = type(cell)
    rank = PRECEDENCE.index(kind) if kind in PRECEDENCE else len(PRECEDENCE)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return rank, name, _content(cell)


def _content(cell: Any) -> bytes:
    """What distinguishes equal cells of one type."""
    if isinstance(cell, float):
        usual = cell is np.nan or str(cell) == "0.0"
        return b"" if usual else np.float64(cell).tobytes()
    if isinstance(cell, (Decimal, datetime)):
        return repr(cell).encode("utf-8", "surrogatepass")
    return b""


def _key(cell: Any) -> Any:
    """Equal for identical cells; what is not known is identical to itself alone."""
    kind = type(cell)
    if kind in (str, bytes, int, bool, np.str_, np.bytes_, date):
        return kind, cell
    if kind is float or isinstance(cell, np.generic):
        array = np.asarray(cell)
        return kind, array.dtype.str, array.tobytes()
    if kind is Decimal:
        return kind, cell.as_tuple()
    if kind in (datetime, pd.Timestamp):
        return kind, cell.isoformat(), id(cell.tzinfo), cell.fold, getattr(cell, "unit", "")
    if kind is tuple:
        return kind, tuple(map(_key, cell))
    return kind, id(cell)
