"""Linkage: how many training people fit what an attacker knows of a released row.

After Goethals et al. The attacker knows the quasi-identifiers of everybody. A released row whose
class, the training rows with its quasi-identifiers, is small points to few people; if all of these
have the row's private values too, it tells them.

Always true: immutable features are no quasi-identifiers, since a released row has those of the
person it was made for, who is known anyway.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ParameterError, shorten
from ..kernels import BoolArray, Codes, FloatArray, IntArray, rows_as_bytes
from ..metrics.evaluator import Evaluator, FrameLike, ResultLike, as_evaluator, read_rows
from ..parameters import check_real
from ..tables.schema import EncodedRows, Schema
from .closest import share_figure
from .result import Figure
from .sides import Sides, shared_codes

# A class with fewer people is small.
SMALL = 10
CELLS_PER_BLOCK = 2**22
IMMUTABLE = (
    "nobody can change it, so that a released row has the value of the person it was made for"
)


@dataclass(frozen=True)
class Known:
    """What an attacker knows, checked."""

    widths: Mapping[int, float]
    private: IntArray
    excluded: Mapping[Hashable, str]


def class_sizes(
    released: ResultLike,
    training: FrameLike | Evaluator,
    quasi_identifiers: Sequence[Hashable] | Mapping[Hashable, float],
    *,
    private: Sequence[Hashable] | None = None,
    immutable: Sequence[Hashable] | None = None,
) -> pd.DataFrame:
    """Count the training rows that share the quasi-identifiers of each released row.

    Parameters
    ----------
    released : frame or Counterfactuals
        The rows to measure.
    training : frame or Evaluator
        The training data; an evaluator also knows what is immutable.
    quasi_identifiers : list or mapping
        The columns that an attacker knows of everybody. A mapping says to within how much: a
        number for numeric columns, 0 or infinity for all.
    private : list, optional
        The columns that the attacker would like to know; by default all others that can change.
    immutable : list, optional
        Columns that cannot change, for a frame: they are left out.

    Returns
    -------
    DataFrame
        One row per released row, with its index: ``k``, the size of its class among training rows
        (0: there is no such person), and whether it is ``homogeneous``: not empty, and all of it
        has the private values of the released row.

    Raises
    ------
    ParameterError
        If a name is unknown, or no quasi-identifier is left.

    Examples
    --------
    >>> training = pd.DataFrame({"age": [20, 20, 30], "job": ["a", "b", "b"], "sum": [1, 2, 3]})
    >>> released = pd.DataFrame({"age": [20, 30, 40], "job": ["a", "b", "b"], "sum": [1, 9, 1]})
    >>> class_sizes(released, training, ["age"], private=["sum"])
       k  homogeneous
    0  2        False
    1  1        False
    2  0        False
    >>> class_sizes(released, training, {"age": 10, "job": 0}, private=["sum"])["k"].tolist()
    [1, 2, 1]
    """
    evaluator = training if isinstance(training, Evaluator) else _evaluator(training, immutable)
    explained, rows = read_rows(released, evaluator)
    known = check_known(quasi_identifiers, private, evaluator.schema)
    codes = shared_codes([rows, evaluator.rows])
    pair = (rows, codes[0]), (evaluator.rows, codes[1])
    k, same = _count(*pair, known)
    return pd.DataFrame({"k": k, "homogeneous": (k > 0) & (same == k)}, index=explained.frame.index)


def _evaluator(training: FrameLike, immutable: Sequence[Hashable] | None) -> Evaluator:
    if immutable is None:
        return as_evaluator(training)
    return Evaluator.fit(training, immutable=immutable)


def check_known(
    quasi_identifiers: Any, private: Sequence[Hashable] | None, schema: Schema
) -> Known:
    """What an attacker knows, by position."""
    if isinstance(quasi_identifiers, str):
        quasi_identifiers = [quasi_identifiers]
    widths = (
        dict(quasi_identifiers)
        if isinstance(quasi_identifiers, Mapping)
        else dict.fromkeys(quasi_identifiers, 0.0)
    )
    private = [private] if isinstance(private, str) else private
    for argument, names in (("quasi_identifiers", widths), ("private", private or ())):
        unknown = [name for name in names if name not in schema.names]
        if unknown:
            raise ParameterError(
                f"{argument} names columns that are not in the training data: "
                f"{shorten(unknown, 300)}. The columns are {shorten(schema.names, 500)}."
            )
    for name, width in widths.items():
        _check_width(schema, name, width)
    fixed = {schema.names[at] for at in schema.immutable}
    excluded = {name: IMMUTABLE for name in widths if name in fixed}
    kept = {schema.names.index(n): float(w) for n, w in widths.items() if n not in fixed}
    if not kept:
        why = f"{shorten(list(excluded), 300)} cannot change" if excluded else "none was named"
        raise ParameterError(
            f"No quasi-identifier is left: {why}. Name columns that answers can change."
        )
    others = (
        [at for at in schema.mutable.tolist() if at not in kept]
        if private is None
        else [schema.names.index(name) for name in private]
    )
    return Known(kept, np.array(others, dtype=np.int64), excluded)


def names_of(schema: Schema, positions: Iterable[int]) -> tuple[Hashable, ...]:
    """Names of features by position."""
    return tuple(schema.names[at] for at in positions)


def _check_width(schema: Schema, name: Hashable, width: Any) -> None:
    check_real(f"The width of {shorten(name)}", width, "a number >= 0", infinite=True)
    kind = schema.features[schema.names.index(name)].kind
    if kind == "categorical" and width not in (0, np.inf):
        raise ParameterError(
            f"The width of {shorten(name)}, a category, must be 0 or infinity, got "
            f"{shorten(width)}."
        )


def linkage_figures(sides: Sides, known: Known) -> list[Figure]:
    """Shares of released rows with small and with homogeneous classes."""
    released = sides.rows["released"], sides.codes["released"]
    counts = {
        side: _count(released, (sides.rows[side], sides.codes[side]), known)
        for side in ("members", "nonmembers")
    }
    alike = _alike(sides, known)
    private = sides.row_numbers(known.private)["released"] if known.private.size else alike
    whole = np.unique(np.stack([alike, private]), axis=1, return_inverse=True)[1].ravel()
    (k, same), (other_k, other_same) = counts.values()
    figures = [
        share_figure("linkage_unique", k == 1, other_k == 1, alike),
        share_figure("linkage_small", _is_small(k), _is_small(other_k), alike),
    ]
    if known.private.size:
        pure, other_pure = (k > 0) & (same == k), (other_k > 0) & (other_same == other_k)
        figures.append(share_figure("linkage_homogeneous", pure, other_pure, whole))
    return figures


def _alike(sides: Sides, known: Known) -> IntArray:
    """Numbers of released rows, the same for those whose classes have people in common.

    Classes of numbers that are known to within a width overlap if they are less than twice that
    apart, so rows are put together by such steps.
    """
    codes, released = sides.codes["released"], sides.rows["released"]
    parts: list[FloatArray] = []
    for at, width in known.widths.items():
        if width == 0:
            parts.append(codes[at].astype(np.float64))
        elif width < np.inf:
            parts.append(np.floor(released.all_numbers[at] / (2 * width)))
    if not parts:
        return np.zeros(len(released), dtype=np.int64)
    # Missing numbers are alike.
    together = np.nan_to_num(np.stack(parts), nan=np.inf)
    return np.unique(together, axis=1, return_inverse=True)[1].ravel()


def _is_small(k: IntArray) -> BoolArray:
    return (k >= 1) & (k < SMALL)


def _count(
    released: tuple[EncodedRows, Codes], real: tuple[EncodedRows, Codes], known: Known
) -> tuple[IntArray, IntArray]:
    """Real rows with the quasi-identifiers of each row, and those with its private values too."""
    exact = [at for at, width in known.widths.items() if width == 0]
    wide = {at: width for at, width in known.widths.items() if 0 < width < np.inf}
    keys = [_keys(released[1], real[1], exact), _keys(released[1], real[1], known.private)]
    numbers = [_numbers(released[0], wide), _numbers(real[0], wide)]
    n_rows, n_real = len(released[0]), len(real[0])
    k, same = np.zeros(n_rows, dtype=np.int64), np.zeros(n_rows, dtype=np.int64)
    size = max(1, CELLS_PER_BLOCK // n_real)
    for start in range(0, n_rows, size):
        block = slice(start, start + size)
        fits = keys[0][0][block, None] == keys[0][1]
        for own, others, width in zip(numbers[0], numbers[1], wide.values(), strict=True):
            gap = np.abs(own[block, None] - others)
            both = np.isnan(own[block, None]) & np.isnan(others)
            fits &= (gap <= width) | both
        k[block] = fits.sum(axis=1)
        same[block] = (fits & (keys[1][0][block, None] == keys[1][1])).sum(axis=1)
    return k, same


def _keys(own: Codes, others: Codes, positions: Any) -> tuple[IntArray, IntArray]:
    """Numbers of rows that are equal where some features are."""
    n_own = own.shape[1]
    if not len(positions):
        return np.zeros(n_own, dtype=np.int64), np.zeros(others.shape[1], dtype=np.int64)
    together = np.concatenate([own[positions], others[positions]], axis=1)
    number = np.unique(rows_as_bytes(together.T), return_inverse=True)[1]
    return number[:n_own], number[n_own:]


def _numbers(rows: EncodedRows, wide: Mapping[int, float]) -> list[FloatArray]:
    return [rows.all_numbers[at] for at in wide]
