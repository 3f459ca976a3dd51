"""The margins and correlations of a Gaussian copula as arrays, and checks of those from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mcce.errors import SavedFileError
from mcce.kernels import FloatArray, IntArray
from mcce.tables.features import Feature
from mcce.tables.schema import Schema

from .correlation import is_correlation
from .margins import ANYWHERE, Margin


def pack_margins(margins: list[Margin]) -> list[dict[str, Any]]:
    """The arrays of margins by name."""
    return [{"place": margin.place, "cuts": margin.cuts[1:-1]} for margin in margins]


def unpack_margins(arrays: Mapping[str, Any], schema: Schema) -> tuple[list[Margin], FloatArray]:
    """Margins and correlations that could have been learned of these columns.

    Parameters
    ----------
    arrays
        What ``to_arrays`` gave.
    schema
        The columns of the training data.

    Raises
    ------
    SavedFileError
        If they could not.
    """
    plain, correlations = arrays["margins"], arrays["correlations"]
    places = [(at, f, flag) for at, f in enumerate(schema.features) for flag in _flags(f)]
    n_margins = len(places) + 1
    if not isinstance(plain, list) or len(plain) != n_margins:
        raise SavedFileError("the margins are not those of its columns")
    margins = [
        _margin(one, at, feature.n_codes, flag)
        for one, (at, feature, flag) in zip(plain, places, strict=False)
    ]
    margins.append(_margin(plain[-1], len(schema.features), 2, None))
    whole = isinstance(correlations, np.ndarray) and correlations.dtype == np.float64
    if not whole or correlations.shape != (n_margins, n_margins):
        raise SavedFileError("the correlations have another dtype or shape")
    if not is_correlation(correlations):
        raise SavedFileError("the correlations are not those of anything")
    return margins, correlations


def _flags(feature: Feature) -> tuple[bool | None, ...]:
    """Which margins a feature has: True is a flag, False a number beside it, None one alone."""
    flagged = feature.kind == "numeric" and feature.has_missing and feature.n_codes > 1
    return (True, False) if flagged else (None,)


def _margin(plain: Any, position: int, n_codes: int, flag: bool | None) -> Margin:
    """One margin; the last code of a column with a flag is missing."""
    if not isinstance(plain, Mapping) or set(plain) != {"place", "cuts"}:
        raise SavedFileError("a margin has other parts")
    place, cuts = plain["place"], plain["cuts"]
    known = np.arange(n_codes - (flag is False))
    n_intervals = 2 if flag else known.size
    sound = (
        isinstance(place, np.ndarray)
        and isinstance(cuts, np.ndarray)
        and (place.dtype, cuts.dtype) == (np.int64, np.float64)
        and (place.shape, cuts.shape) == ((n_codes + 1,), (n_intervals - 1,))
        and bool(np.isfinite(cuts).all() and (np.diff(cuts) >= 0).all())
        and bool((place[known.size :] == ANYWHERE).all())
    )
    if not sound or not _is_placed(place[: known.size], bool(flag)):
        raise SavedFileError("the intervals of a margin are not those of a column")
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    return Margin(position, bool(flag), place, ends)


def _is_placed(place: IntArray, is_flag: bool) -> bool:
    """Whether every code has an interval: of a flag one for all but the last, else one each."""
    if is_flag:
        return bool((place[:-1] == 0).all() and place[-1] == 1)
    return np.array_equal(np.sort(place), np.arange(place.size))
