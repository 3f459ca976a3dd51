"""The distances HEOM and IVDM of Wilson and Martinez (1997)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mcce import HVDM, FeatureDistance, Schema
from mcce.protocols import (
    BoolArray,
    Candidates,
    EncodedRows,
    Feature,
    FloatArray,
    Summation,
    check_whole,
)

__all__ = ["HEOM", "IVDM"]

MAX_BINS = 10_000


class HEOM(FeatureDistance):
    """Heterogeneous Euclidean-overlap metric: root of the sum of squared range-scaled differences.

    One large change costs more than several small ones that add up to the same (Wilson and
    Martinez, 1997).

    Parameters
    ----------
    missing : {"level", "ignore"}
        Whether a missing cell is 1 away from any other cell, or adds nothing.

    Examples
    --------
    >>> HEOM().name
    'heom'
    """

    title = "heom"
    summation = Summation(squared=True)


class IVDM(FeatureDistance):
    """Interpolated value difference metric: numbers too by what the predictor decides.

    The root of the sum of squares over features. Levels are compared as in :class:`mcce.HVDM`. The
    training range of a number is cut in bins, and the shares of training rows with each decision
    are interpolated between their middles. So a step costs most where the decision turns, and
    nothing where it stays the same. Shares fall to 0 beyond the middles of the outer bins.

    Parameters
    ----------
    n_bins
        Number of bins, equally wide.
    alpha
        Each level and bin counts as if it had so many more training rows, with the shares of all
        rows. The shares of a bin without rows are interpolated.
    missing : {"level", "ignore"}
        Whether a missing cell is 1 away from any other cell, or adds nothing.

    Examples
    --------
    >>> IVDM(n_bins=10)
    IVDM(n_bins=10)
    """

    title = "ivdm"
    summation = Summation(squared=True)
    array_names: ClassVar[tuple[str, ...]] = ("levels", "bins")

    def __init__(
        self,
        *,
        n_bins: int = 5,
        alpha: float = 1.0,
        missing: Literal["level", "ignore"] = "level",
    ) -> None:
        self.n_bins = n_bins
        self.alpha = alpha
        self.missing = missing

    def check(self, schema: Schema) -> None:
        """Raise for a parameter that cannot be used.

        Parameters
        ----------
        schema
            The columns.

        Raises
        ------
        ParameterError
            If a parameter cannot be used.
        """
        super().check(schema)
        HVDM(alpha=self.alpha).check(schema)
        check_whole("n_bins", self.n_bins, 1, MAX_BINS)

    def fit(self, schema: Schema, rows: EncodedRows, is_desired: BoolArray) -> Self:
        """Learn how the decision depends on the value of each mutable feature.

        Parameters
        ----------
        schema
            The columns.
        rows
            The training rows.
        is_desired : (n_train,)
            True where the predictor decides as desired.

        Returns
        -------
        IVDM
            Itself.

        Raises
        ------
        ParameterError
            If a parameter cannot be used.
        """
        self.check(schema)
        self.levels_ = HVDM(alpha=self.alpha, missing=self.missing).fit(schema, rows, is_desired)
        bins = [
            _bin_shares(schema.features[at], rows.codes[at], is_desired, self.n_bins, self.alpha)
            for at in schema.mutable[schema.spreads > 0]
        ]
        self.bins_ = np.array(bins).reshape(len(bins), self.n_bins + 2, 2)
        return self

    def to_arrays(self) -> Mapping[str, Any]:
        """What was learned, as arrays.

        Returns
        -------
        dict
            The shares of levels, and those of the bins of each number that varies.
        """
        return {"levels": dict(self.levels_.to_arrays()), "bins": self.bins_}

    def from_arrays(self, arrays: Mapping[str, Any], schema: Schema) -> Self:
        """Take what :meth:`to_arrays` gave, as if fitted.

        Parameters
        ----------
        arrays
            What :meth:`to_arrays` gave.
        schema
            The columns of the training data.

        Returns
        -------
        IVDM
            Itself.

        Raises
        ------
        ValueError
            For arrays that ``fit`` could not have learned.
        """
        self.check(schema)
        levels, bins = arrays["levels"], arrays["bins"]
        shape = (int((schema.spreads > 0).sum()), self.n_bins + 2, 2)
        if not isinstance(levels, Mapping) or set(levels) != set(HVDM.array_names):
            raise ValueError("the shares of its levels have other parts")
        if not isinstance(bins, np.ndarray) or bins.dtype != np.float64 or bins.shape != shape:
            raise ValueError(f"the shares of its bins are no numbers of shape {shape}")
        if not ((bins >= 0).all() and (bins.sum(axis=2) <= 1 + 1e-9).all()):
            raise ValueError("the shares of its bins are no shares")
        self.levels_ = HVDM(alpha=self.alpha, missing=self.missing).from_arrays(levels, schema)
        self.bins_ = bins
        return self

    def coordinates(
        self, candidates: Candidates, place: int
    ) -> tuple[FloatArray, FloatArray] | None:
        """Levels and numbers at the shares of decisions that they have.

        Parameters
        ----------
        candidates
            People and their candidates.
        place
            Place of the feature among the mutable ones.

        Returns
        -------
        tuple of arrays or None
            As for :class:`mcce.FeatureDistance`.
        """
        comparison, schema = candidates.comparison, candidates.factuals.schema
        numbers = comparison.numbers[place]
        if numbers is None:
            return self.levels_.coordinates(candidates, place)
        shares = self.bins_[int((schema.spreads[:place] > 0).sum())]
        feature = schema.features[schema.mutable[place]]
        own = comparison.own_numbers[place]
        return _read_shares(feature, shares, numbers), _read_shares(feature, shares, own)


def _bin_shares(
    feature: Feature, codes: Any, is_desired: BoolArray, n_bins: int, alpha: float
) -> FloatArray:
    """Shares of the decisions at the middle of each bin of a number, declined first.

    Bins are equally wide and cover the training range. One bin on either side of it has shares of
    0; those of a bin without rows lie on the line between its neighbours with some.
    """
    known = codes < feature.n_codes - feature.has_missing
    assert feature.numbers is not None
    place = _bin_places(feature, feature.numbers[codes[known]], n_bins)
    bins = np.minimum(np.floor(place).astype(np.int64), n_bins - 1)
    counts = np.bincount(bins * 2 + is_desired[known], minlength=2 * n_bins).reshape(n_bins, 2)
    there = np.flatnonzero(counts.sum(axis=1))
    total = np.bincount(is_desired.astype(np.int64), minlength=2)
    prior = alpha * (total / max(int(total.sum()), 1))
    size = counts[there].sum(axis=1, keepdims=True) + alpha
    shares = (counts[there] + prior) / size
    inside = [np.interp(np.arange(n_bins), there, share) for share in shares.T]
    return np.pad(np.stack(inside, axis=1), ((1, 1), (0, 0)))


def _read_shares(feature: Feature, shares: FloatArray, numbers: FloatArray) -> FloatArray:
    """Shares of the decisions at numbers, on the lines between the middles of bins."""
    n_bins = len(shares) - 2
    place, middles = _bin_places(feature, numbers, n_bins), np.arange(n_bins + 2) - 0.5
    return np.stack([np.interp(place, middles, share, 0.0, 0.0) for share in shares.T], axis=1)


def _bin_places(feature: Feature, numbers: FloatArray, n_bins: int) -> FloatArray:
    """Numbers in widths of a bin, 0 at the smallest training value."""
    assert feature.numbers is not None
    with np.errstate(over="ignore"):
        return (numbers - feature.numbers[0]) / feature.spread * n_bins
