"""Distances that learn from training rows which values mean the same to the predictor.

Named in the paper's section "Post-processing": HVDM and IVDM (Wilson and Martinez, Improved
Heterogeneous Distance Functions, 1997). Two levels are as far apart as the shares of training rows
with the desired decision that have them. So a change between levels that the predictor treats alike
costs little or nothing; the number of changes, which comes first in the ranking, counts it all the
same.

Always true: places are a function of the value alone, so distances keep the triangle inequality
where nothing is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from ..caching import cached_property
from ..candidates import Candidates
from ..kernels import BoolArray, FloatArray, Summation
from ..parameters import check_choice, check_real
from ..tables.columns import is_missing
from ..tables.features import Feature
from ..tables.schema import EncodedRows, Schema
from .feature_distance import FeatureDistance, Missing, Places, own_missing
from .shares import N_CLASSES, count_decisions, known_numbers, level_shares

Variant: TypeAlias = Literal["N1", "N2", "N3"]
# A standard deviation of a number that is not constant.
SMALLEST = float(np.finfo(np.float64).smallest_subnormal)


class ValueDifference(FeatureDistance):
    """What HVDM and IVDM share: points that stand for values, by the decisions of training rows."""

    alpha: float
    shares_: list[FloatArray | None]

    def check(self, schema: Schema) -> None:
        """Raise for a parameter that cannot be used."""
        super().check(schema)
        check_real("alpha", self.alpha, "a finite number >= 0")

    def fit(self, schema: Schema, rows: EncodedRows, decision: BoolArray) -> Self:
        """Learn how the decision depends on the value of each mutable feature.

        Parameters
        ----------
        schema
            The columns.
        rows
            The training rows.
        decision : (n_train,)
            True where the predictor decides as desired.

        Returns
        -------
        ValueDifference
            Itself.

        Raises
        ------
        ParameterError
            If a parameter cannot be used.
        """
        self.check(schema)
        self.__dict__.pop("_tables", None)
        self._features = [schema.features[position] for position in schema.mutable]
        self.shares_ = []
        for position, feature in zip(schema.mutable, self._features, strict=True):
            counts = count_decisions(rows.exact[position], decision, feature.n_codes)
            self.shares_.append(self._learn_shares(feature, counts))
        return self

    def to_arrays(self) -> Mapping[str, Any]:
        """The shares, one feature after the other."""
        found = [shares for shares in self.shares_ if shares is not None]
        return {"shares": np.concatenate([np.empty((0, N_CLASSES)), *found])}

    def from_arrays(self, arrays: Mapping[str, Any], schema: Schema) -> Self:
        """Take what :meth:`to_arrays` gave, as if fitted; returns itself.

        Parameters
        ----------
        arrays
            What :meth:`to_arrays` gave.
        schema
            The columns of the training data.

        Raises
        ------
        ValueError
            For arrays that ``fit`` could not have learned.
        """
        self.check(schema)
        self.__dict__.pop("_tables", None)
        self._features = [schema.features[position] for position in schema.mutable]
        sizes = [self._n_shares(feature) for feature in self._features]
        shares = check_table(arrays["shares"], (sum(sizes), N_CLASSES), "shares")
        if (shares < 0).any() or (shares.sum(axis=1) > 1 + 1e-9).any():
            raise ValueError("the shares of a value are no shares")
        parts = np.split(shares, np.cumsum(sizes)[:-1])
        self.shares_ = [part if size else None for part, size in zip(parts, sizes, strict=True)]
        return self

    @cached_property
    def _tables(self) -> list[FloatArray | None]:
        """Per mutable feature the point of each training code; of a level never seen at the end."""
        pairs = zip(self._features, self.shares_, strict=True)
        return [None if s is None else self._table(feature, s) for feature, s in pairs]

    def _learn_shares(self, feature: Feature, counts: Any) -> FloatArray | None:
        """Shares of the values of a feature, or of its bins; None where none are needed."""
        return level_shares(counts, self.alpha) if feature.kind == "categorical" else None

    def _n_shares(self, feature: Feature) -> int:
        """How many values or bins of a feature have shares."""
        return feature.n_codes + 1 if feature.kind == "categorical" else 0

    def _table(self, feature: Feature, shares: FloatArray) -> FloatArray:
        """The point of each code."""
        table = shares * self._scale()
        if feature.has_missing:
            table[feature.n_codes - 1] = np.nan
        return table

    def _scale(self) -> float:
        """What shares are multiplied with."""
        return 1.0

    def _places(self, candidates: Candidates, feature: int) -> Places | None:
        table = self._tables[feature]
        if table is None:
            return super()._places(candidates, feature)
        rows, people, values = candidates.rows, candidates.people, candidates.tables[feature]
        position = int(rows.schema.mutable[feature])
        exact = rows.exact[position, people]
        own, unseen = table[exact], np.flatnonzero(exact < 0)
        if unseen.size:
            own[unseen[own_missing(rows, position, people[unseen])]] = np.nan
        if values is rows.tables[feature]:
            return table, own
        places = table[rows.schema.features[position].encode(values)[0]]
        places[is_missing(values)] = np.nan
        return places, own


class HVDM(ValueDifference):
    """Heterogeneous value difference metric: levels by what the predictor decides.

    The root of the sum of squares over features. Levels differ as the shares of their training rows
    with each decision do, numbers by their distance over four standard deviations (over 1 if they
    are constant in training).

    Parameters
    ----------
    variant : {"N1", "N2", "N3"}
        How far two levels are apart: the sum of the absolute differences of their shares, the root
        of the sum of their squares, or that times the root of the number of decisions, which is
        two.
    alpha
        Each level counts as if it had so many more training rows, with the shares of all rows. A
        level that training never held has these shares; with 0, it has shares of 0.
    missing : {"level", "ignore"}
        Whether a missing cell is 1 away from any other cell, or adds nothing.

    Examples
    --------
    >>> HVDM(variant="N1")
    HVDM(variant='N1')
    """

    title = "hvdm"
    summation = Summation(squared=True)
    array_names: ClassVar[tuple[str, ...]] = ("spreads", "shares")

    def __init__(
        self, *, variant: Variant = "N2", alpha: float = 1.0, missing: Missing = "level"
    ) -> None:
        self.variant = variant
        self.alpha = alpha
        self.missing = missing

    def check(self, schema: Schema) -> None:
        """Raise for a parameter that cannot be used."""
        super().check(schema)
        check_choice("variant", self.variant, ("N1", "N2", "N3"))

    def fit(self, schema: Schema, rows: EncodedRows, decision: BoolArray) -> Self:
        """Learn the shares of levels and the standard deviations of numbers.

        Parameters
        ----------
        schema
            The columns.
        rows
            The training rows.
        decision : (n_train,)
            True where the predictor decides as desired.

        Returns
        -------
        HVDM
            Itself.

        Raises
        ------
        ParameterError
            If a parameter cannot be used.
        """
        super().fit(schema, rows, decision)
        codes = rows.exact[schema.mutable]
        pairs = zip(self._features, codes, strict=True)
        self.spreads_ = np.array([4.0 * _deviation(feature, codes) for feature, codes in pairs])
        return self

    def to_arrays(self) -> Mapping[str, Any]:
        """What numbers are divided by, and the shares."""
        return {"spreads": self.spreads_, **super().to_arrays()}

    def from_arrays(self, arrays: Mapping[str, Any], schema: Schema) -> Self:
        """Take what :meth:`to_arrays` gave, as if fitted; returns itself.

        Parameters
        ----------
        arrays
            What :meth:`to_arrays` gave.
        schema
            The columns of the training data.

        Raises
        ------
        ValueError
            For arrays that ``fit`` could not have learned.
        """
        super().from_arrays(arrays, schema)
        spreads = check_table(arrays["spreads"], (schema.mutable.size,), "spreads")
        if ((spreads > 0) != (schema.spreads > 0)).any() or (spreads < 0).any():
            raise ValueError("the standard deviations are not those of its columns")
        self.spreads_ = spreads
        return self

    def _summation(self) -> Summation:
        return replace(super()._summation(), city_block=self.variant == "N1")

    def _spreads(self, schema: Schema) -> FloatArray:
        return self.spreads_

    def _scale(self) -> float:
        return np.sqrt(float(N_CLASSES)) if self.variant == "N3" else 1.0


def check_table(values: Any, shape: tuple[int, ...], what: str) -> FloatArray:
    """A finite array of floats that came from a file; raises ValueError for others."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.shape != shape:
        raise ValueError(f"its {what} are no numbers of shape {shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"its {what} are not finite")
    return values


def _deviation(feature: Feature, codes: Any) -> float:
    """Standard deviation of a number in training, 0 for levels and constants."""
    if feature.spread == 0:
        return 0.0
    numbers = known_numbers(feature)
    counts = np.bincount(codes, minlength=feature.n_codes)[: numbers.size]
    # In shares of the range, so that no square is too large for a float.
    scaled = (numbers - numbers[0]) / feature.spread
    mean = np.average(scaled, weights=counts)
    share = float(np.sqrt(np.average((scaled - mean) ** 2, weights=counts)))
    return max(feature.spread * share, SMALLEST)
