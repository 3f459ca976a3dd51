"""The distances HEOM and IVDM of Wilson and Martinez (1997)."""

from __future__ import annotations

from typing import Any, ClassVar

from mcce.candidates import Candidates
from mcce.distances import FeatureDistance
from mcce.distances.feature_distance import Missing, Places
from mcce.distances.shares import bin_shares, read_shares
from mcce.distances.value_difference import ValueDifference
from mcce.kernels import FloatArray, Summation
from mcce.parameters import check_whole
from mcce.tables.features import Feature
from mcce.tables.schema import Schema

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


class IVDM(ValueDifference):
    """Interpolated value difference metric: numbers too by what the predictor decides.

    The root of the sum of squares over features. Levels are compared as in :class:`HVDM`. The
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
    array_names: ClassVar[tuple[str, ...]] = ("shares",)

    def __init__(self, *, n_bins: int = 5, alpha: float = 1.0, missing: Missing = "level") -> None:
        self.n_bins = n_bins
        self.alpha = alpha
        self.missing = missing

    def check(self, schema: Schema) -> None:
        """Raise for a parameter that cannot be used."""
        super().check(schema)
        check_whole("n_bins", self.n_bins, 1, MAX_BINS)

    def _learn_shares(self, feature: Feature, counts: Any) -> FloatArray | None:
        if feature.spread == 0:
            return super()._learn_shares(feature, counts)
        return bin_shares(feature, counts, self.n_bins, self.alpha)

    def _n_shares(self, feature: Feature) -> int:
        return super()._n_shares(feature) if feature.spread == 0 else self.n_bins + 2

    def _table(self, feature: Feature, shares: FloatArray) -> FloatArray:
        if feature.spread == 0:
            return super()._table(feature, shares)
        assert feature.numbers is not None
        return read_shares(feature, shares, feature.numbers)

    def _places(self, candidates: Candidates, feature: int) -> Places | None:
        comparison, schema = candidates.comparison, candidates.rows.schema
        numbers, shares = comparison.numbers[feature], self.shares_[feature]
        if numbers is None or shares is None:
            return super()._places(candidates, feature)
        column = schema.features[schema.mutable[feature]]
        own = read_shares(column, shares, comparison.own_numbers[feature])
        if numbers is column.numbers:
            table = self._tables[feature]
            assert table is not None
            return table, own
        return read_shares(column, shares, numbers), own
