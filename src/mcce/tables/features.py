"""One column of the training data: its kind, its values, their codes and their decimal places.

Whole numbers have resolution 1, prices mostly 0.01. A column whose numbers have more digits than
can be told from noise has resolution 0: nothing is rounded.

Always true: a code is the rank of a value among the sorted distinct training values, missing
last; a value that is not in the training data has the exact code -1.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from ..caching import cached_property
from ..kernels import MISSING, Codes, FloatArray
from . import columns
from .columns import Kind

# The largest coordinate of a number: even two of opposite sign are nearer to each other than to
# MISSING.
MAX_COORDINATE = MISSING / 10
# Computed numbers are equal if they differ by no more than this many units in the last place.
ULPS = 16
# The same for written numbers. A decimal place counts only if it is this many times larger.
WRITTEN_ULPS, DECIMAL_OVER_NOISE = 4, 10


@dataclass(frozen=True, eq=False)
class Feature:
    """One column of the training data.

    Examples
    --------
    >>> feature = Feature.learn(pd.Series([36, 52, 36], name="age"), kind=None, immutable=False)
    >>> feature.kind, feature.n_codes, feature.spread
    ('numeric', 2, 16.0)
    """

    name: Hashable
    kind: Kind
    immutable: bool
    ordered: bool
    table: pd.Series[Any] = field(repr=False)
    has_missing: bool

    @property
    def n_codes(self) -> int:
        """Number of distinct training values, including missing."""
        return len(self.table)

    @cached_property
    def numbers(self) -> FloatArray | None:
        """Value of each code as float64, NaN for missing; None for a categorical feature."""
        if self.kind == "categorical":
            return None
        if self.table.dtype != np.float64:
            return columns.as_numbers(self.table)
        numbers = self.table.to_numpy().view()
        numbers.flags.writeable = False
        return numbers

    @cached_property
    def known_numbers(self) -> FloatArray:
        """The training values of a numeric feature without missing; none of a categorical one."""
        numbers = np.empty(0) if self.numbers is None else self.numbers
        return numbers[~np.isnan(numbers)]

    @property
    def is_number(self) -> bool:
        """Whether the column holds numbers that can be computed with: neither dates nor levels."""
        return self.kind == "numeric" and self.table.dtype.kind in "iuf"

    @cached_property
    def decimals(self) -> int | None:
        """Decimal places of a numeric feature; None if it has too many to tell.

        Examples
        --------
        >>> prices = pd.Series([25.2, 9.95], name="price")
        >>> Feature.learn(prices, kind=None, immutable=False).decimals
        2
        """
        if self.table.dtype.kind in "iub":
            return 0
        numbers = self.known_numbers
        noise = WRITTEN_ULPS * epsilon(self.table.dtype) * np.abs(numbers)
        n_decimals = 0
        while 10.0**-n_decimals > DECIMAL_OVER_NOISE * noise.max(initial=0.0) and n_decimals <= 15:
            if (np.abs(np.round(numbers, n_decimals) - numbers) <= noise).all():
                return n_decimals
            n_decimals += 1
        return None

    @property
    def resolution(self) -> float:
        """The unit of the last decimal place of a numeric feature; 0 if it has too many to tell."""
        return 0.0 if self.decimals is None else 10.0**-self.decimals

    @cached_property
    def known(self) -> pd.Series[Any]:
        """The value of each code but that of missing."""
        return self.table.iloc[:-1] if self.has_missing else self.table

    @cached_property
    def level_codes(self) -> dict[Any, int]:
        """Code of each value but missing."""
        return {level: code for code, level in enumerate(columns.plain(self.known))}

    @cached_property
    def spread(self) -> float:
        """Range of a numeric feature in training (R_j in Gower's distance); 0 if categorical."""
        if self.numbers is None or np.isnan(self.numbers).all():
            return 0.0
        return float(np.nanmax(self.numbers) - np.nanmin(self.numbers))

    @classmethod
    def learn(cls, series: pd.Series[Any], *, kind: Kind | None, immutable: bool) -> Feature:
        """The feature of a training column."""
        return cls.learn_codes(series, kind=kind, immutable=immutable)[0]

    @classmethod
    def learn_codes(
        cls, series: pd.Series[Any], *, kind: Kind | None, immutable: bool
    ) -> tuple[Feature, Codes]:
        """The feature of a training column, and the codes of its cells; see :meth:`learn`."""
        kind = columns.check_kind(series, kind)
        codes, rows, has_missing = columns.code_values(series, kind)
        table = pd.Series(series.array.take(rows), name=series.name, dtype=series.dtype)
        feature = cls(
            name=series.name,
            kind=kind,
            immutable=immutable,
            ordered=kind == "numeric" or columns.is_ordered(series.dtype),
            table=columns.canonical_floats(table),
            has_missing=has_missing,
        )
        return feature, codes

    def coordinates(self, exact: Codes, numbers: FloatArray | None) -> FloatArray:
        """Coordinates of cells on the axis of this feature: scaled numbers, or exact codes."""
        if numbers is None or self.spread == 0:
            return exact.astype(np.float64)
        with np.errstate(over="ignore"):
            scaled = np.clip(numbers / self.spread, -MAX_COORDINATE, MAX_COORDINATE)
        return np.where(np.isnan(numbers), MISSING, scaled)

    def encode(self, series: pd.Series[Any]) -> tuple[Codes, Codes]:
        """Exact code and tree code of each cell.

        The exact code of a value that is not in the training data is -1. Its tree code, which
        finds its way through a tree, is that of the nearest number (the lower of two), or one past
        the last code for a level.
        """
        missing = columns.is_missing(series)
        if not missing.any():
            return self._encode_present(series)
        exact = np.full(len(series), -1, dtype=np.int32)
        unseen = self.n_codes - (self.kind == "numeric")
        tree_codes = np.full(len(series), unseen, dtype=np.int32)
        exact[~missing], tree_codes[~missing] = self._encode_present(series[~missing])
        if self.has_missing:
            exact[missing] = tree_codes[missing] = self.n_codes - 1
        return exact, tree_codes

    def _encode_present(self, cells: pd.Series[Any]) -> tuple[Codes, Codes]:
        if self.kind == "numeric":
            return columns.rank_among(self.known, cells)
        exact = columns.match_levels(self.level_codes, cells)
        return exact, np.where(exact >= 0, exact, np.int32(self.n_codes))


def epsilon(dtype: Any) -> float:
    """The relative distance of neighbouring floats in a dtype; that of float64 for integers."""
    return float(np.finfo(np.float32 if is_float32(dtype) else np.float64).eps)


def is_float32(dtype: Any) -> bool:
    """Whether a dtype holds floats of 32 bits."""
    return dtype.kind == "f" and dtype.itemsize == 4


def to_decimal(value: Any) -> Decimal:
    """A number with the fewest digits that stand for it."""
    if isinstance(value, (int, np.integer)):
        return Decimal(int(value))
    short = value if isinstance(value, np.floating) else np.float64(value)
    return Decimal(np.format_float_scientific(short, unique=True, trim="-"))
