"""One column as training showed it: its kind, its values, and what they are as codes.

Always true: a code is the rank of a value among the sorted distinct training values, missing
last; a value that training never held has the exact code -1.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ..kernels import MISSING, Codes, FloatArray
from . import columns
from .columns import Kind


@dataclass(frozen=True, eq=False)
class Feature:
    """One column as training showed it.

    Parameters
    ----------
    name
        Exact column name.
    kind
        ``"numeric"`` or ``"categorical"``.
    immutable
        Whether the person cannot change it.
    ordered
        Whether its own order is the order of splits: numbers and ordered categories.
    table
        One cell per code, in the training dtype, ascending, missing last.
    has_missing
        Whether the last code means missing.
    """

    name: Hashable
    kind: Kind
    immutable: bool
    ordered: bool
    table: pd.Series[Any]
    has_missing: bool

    @property
    def n_codes(self) -> int:
        """Number of distinct training values, missing included."""
        return len(self.table)

    @cached_property
    def numbers(self) -> FloatArray | None:
        """The value of each code as float64, NaN for missing; None for a categorical feature."""
        return columns.as_numbers(self.table) if self.kind == "numeric" else None

    @cached_property
    def known(self) -> pd.Series[Any]:
        """The table without the missing value."""
        return self.table.iloc[:-1] if self.has_missing else self.table

    @cached_property
    def level_codes(self) -> dict[Any, int]:
        """The code of each known value."""
        return {level: code for code, level in enumerate(columns.plain(self.known))}

    @cached_property
    def spread(self) -> float:
        """Training range of a numeric feature, the R_j of Gower; 0 for a categorical one."""
        if self.numbers is None or np.isnan(self.numbers).all():
            return 0.0
        return float(np.nanmax(self.numbers) - np.nanmin(self.numbers))

    @classmethod
    def learn(cls, series: pd.Series[Any], *, kind: Kind | None, immutable: bool) -> Feature:
        """Feature of a training column; its kind follows the dtype unless it is given."""
        return cls.learn_codes(series, kind=kind, immutable=immutable)[0]

    @classmethod
    def learn_codes(
        cls, series: pd.Series[Any], *, kind: Kind | None, immutable: bool
    ) -> tuple[Feature, Codes]:
        """Feature of a training column, and the codes of its cells."""
        kind = columns.check_kind(series, kind)
        codes, first, has_missing = columns.code_values(series, kind)
        feature = cls(
            name=series.name,
            kind=kind,
            immutable=immutable,
            ordered=kind == "numeric" or columns.is_ordered(series.dtype),
            table=pd.Series(series.array.take(first), name=series.name, dtype=series.dtype),
            has_missing=has_missing,
        )
        return feature, codes

    def place(self, exact: Codes, numbers: FloatArray | None) -> FloatArray:
        """Where cells stand on the axis of this feature: range-scaled numbers, or exact codes."""
        if numbers is None or self.spread == 0:
            return exact.astype(np.float64)
        return np.where(np.isnan(numbers), MISSING, numbers / self.spread)

    def encode(self, series: pd.Series[Any]) -> tuple[Codes, Codes]:
        """Descent code and exact code of each cell of a column of this feature.

        The exact code is -1 for a value that training never held. Its descent code is that of
        the nearest number (the lower of two), or one past the last code for an unseen level.
        """
        missing = columns.is_missing(series)
        if not missing.any():
            return self._encode_present(series)
        exact = np.full(len(series), -1, dtype=np.int32)
        unseen = self.n_codes - (self.kind == "numeric")
        descent = np.full(len(series), unseen, dtype=np.int32)
        exact[~missing], descent[~missing] = self._encode_present(series[~missing])
        if self.has_missing:
            exact[missing] = descent[missing] = self.n_codes - 1
        return exact, descent

    def _encode_present(self, cells: pd.Series[Any]) -> tuple[Codes, Codes]:
        if self.kind == "numeric":
            return columns.rank_numbers(self.known, cells)
        exact = columns.match_levels(self.level_codes, cells)
        return exact, np.where(exact >= 0, exact, np.int32(self.n_codes))
