"""The constraint that a column follows from others by a formula."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..errors import ConstraintError, McceWarning, shorten
from ..kernels import BoolArray, FloatArray
from ..tables.columns import is_time
from ..tables.features import ULPS, Feature, epsilon
from .conditions import Formula, to_floats
from .constraint import ProposedRows, RowConstraint

# Formulas that hold in a smaller share of the training rows are taken for mistakes.
MIN_SHARE = 0.5


@dataclass(frozen=True, repr=False)
class Derived(RowConstraint):
    """A column that equals a formula, or differs from it as in the person's own row.

    ``features`` names the column, and then those of the formula.
    """

    formula: Formula
    tolerance: float | None = None
    kind: ClassVar[str] = "derived"

    @property
    def target(self) -> Hashable:
        """The column that follows from the others."""
        return self.features[0]

    @property
    def name(self) -> str:
        """Such as ``derived total``."""
        return f"derived {self.target}"

    @property
    def n_terms(self) -> int:
        """Columns, values and operators of the formula."""
        return self.formula.n_terms

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """Its column, its formula and its tolerance."""
        given = {"formula": self.formula.text, "tolerance": self.tolerance}
        return self.kind, {"feature": self.target} | given

    def check(self, features: Sequence[Feature]) -> None:
        """The column must hold numbers, those of the formula numbers or booleans."""
        target = features[0]
        for feature in features:
            dtype = feature.table.dtype
            kinds = "iufb" if feature is not target else "iuf"
            wrong = is_time(dtype) or getattr(dtype, "kind", "O") not in kinds
            if wrong or (feature is target and feature.kind != "numeric"):
                raise ConstraintError(
                    f"{self.quoted}: a formula computes with numbers, but {shorten(feature.name)} "
                    f"is {feature.kind} and has dtype {dtype}. Convert it, dates for example to "
                    "days since a fixed day, or declare a relation(...)."
                )

    def compute(self, frame: pd.DataFrame) -> FloatArray:
        """The column by the formula, NaN where that is undefined."""
        return self.formula(frame)

    def deviation(self, frame: pd.DataFrame) -> FloatArray:
        """The column minus the formula, NaN where one of them is undefined."""
        return to_floats(frame[self.target]) - self.compute(frame)

    def allowed_deviation(self, target: Feature) -> float:
        """The tolerance and the rounding errors of floats; by default half the resolution."""
        largest = float(np.abs(target.known_numbers).max(initial=0.0))
        given = target.resolution / 2 if self.tolerance is None else self.tolerance
        return float(given + ULPS * epsilon(target.table.dtype) * (largest + given))

    def keeps(self, rows: ProposedRows) -> BoolArray:
        """Rows that obey the formula, or deviate from it as their person does."""
        schema, own = rows.factuals.schema, self.deviation(rows.factuals.frame)[rows.owner]
        return self.holds(rows.frame, own, schema.features[schema.position_of[self.target]])

    def holds(self, frame: pd.DataFrame, own: FloatArray, target: Feature) -> BoolArray:
        """Where the formula holds, or the deviation from it is the person's ``own``."""
        most, deviation = self.allowed_deviation(target), self.deviation(frame)
        with np.errstate(invalid="ignore"):
            small = (np.abs(deviation) <= most) | (np.abs(deviation - own) <= most)
        # Column and formula are both undefined, or one of them is, here as in the own row.
        both = np.isnan(to_floats(frame[self.target])) & np.isnan(self.compute(frame))
        return small | both | (np.isnan(deviation) & np.isnan(own))


def warn_of_wrong_formulas(
    listed: Sequence[Derived], frame: pd.DataFrame, features: Sequence[Feature], *, stacklevel: int
) -> None:
    """Warn of formulas that hold in less than half of the training rows."""
    by_name = {feature.name: feature for feature in features}
    unknown = np.full(len(frame), np.nan)
    for derived in listed:
        holds = derived.holds(frame, unknown, by_name[derived.target])
        if holds.mean() < MIN_SHARE:
            warnings.warn(
                f"{derived.quoted}: the formula holds in {int(holds.sum())} of {len(frame)} "
                "training rows. Answers keep each person's deviation from it. Check the formula, "
                "or pass a larger tolerance.",
                McceWarning,
                stacklevel=stacklevel + 1,
            )
