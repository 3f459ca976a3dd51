"""What all distances that come with mcce are: sums over features.

Step 3, paper, section "Post-processing", which suggests Gower's distance and names others. A cell
has a place on the axis of its feature: a number, or a point that stands for a value. Places are
looked up by code, once per block of people; the sums are computed in a compiled kernel. Sums add
one feature at a time in column order, so that they do not depend on blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from ..candidates import Candidates
from ..kernels import BoolArray, FloatArray, IntArray, Measure, Summation, measure
from ..parameters import check_choice
from ..tables.columns import is_missing
from ..tables.schema import EncodedRows, Schema

Missing: TypeAlias = Literal["level", "ignore"]
# Places in one feature: of its codes, shape (n_codes, n_dims), and of people, (n_people, n_dims).
Places: TypeAlias = tuple[FloatArray, FloatArray]


class FeatureDistance(BaseEstimator):
    """A distance that is a sum over features; the base of those that come with mcce.

    A missing cell is a level of its own, 1 away from any other cell, or a reason to leave out its
    feature.

    Parameters
    ----------
    missing : {"level", "ignore"}
        What to do with features in which the person or the candidate lacks a value.
    """

    # Its name among the distances of mcce.
    title: ClassVar[str]
    # How the features add up.
    summation: ClassVar[Summation] = Summation()
    # The entries of `to_arrays`: what it learned from the training rows.
    array_names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, missing: Missing = "level") -> None:
        self.missing = missing

    @property
    def name(self) -> str:
        """Name of its column in ``result.measures``."""
        return self.title

    @property
    def reads_rows(self) -> bool:
        """Whether it learns from training rows, rather than from the ranges of columns alone."""
        return bool(self.array_names)

    def fit(self, schema: Schema, rows: EncodedRows, decision: BoolArray) -> Self:
        """Check the parameters, and learn from the training rows.

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
        FeatureDistance
            Itself.

        Raises
        ------
        ParameterError
            If a parameter cannot be used.
        """
        self.check(schema)
        return self

    def check(self, schema: Schema) -> None:
        """Raise for a parameter that cannot be used with these columns."""
        check_choice("missing", self.missing, ("level", "ignore"))

    def __call__(self, candidates: Candidates) -> FloatArray:
        """Distances, shape (n_factuals, n_draws); see :class:`mcce.protocols.Distance`."""
        comparison = candidates.comparison
        return measure(comparison, self.axes(candidates, comparison.changed_features))

    def axes(self, candidates: Candidates, features: Iterable[int] | None = None) -> Measure:
        """Where people and candidates are on the axes of the features.

        Parameters
        ----------
        candidates
            People and their candidates.
        features
            Numbers, among the mutable features, of those that differ; None for all.

        Returns
        -------
        Measure
            Places for the kernels. Features that are not asked for have none.
        """
        n_mutable = len(candidates.comparison.codes)
        none = [None] * n_mutable
        places: list[FloatArray | None] = list(none)
        own_places: list[FloatArray | None] = list(none)
        for feature in range(n_mutable) if features is None else features:
            found = self._places(candidates, feature)
            if found is None and self.missing == "ignore":
                found = _marks(candidates, feature)
            if found is not None:
                places[feature], own_places[feature] = found
        how = self._summation()
        return Measure(
            places=places,
            own_places=own_places,
            spreads=self._spreads(candidates.rows.schema),
            weights=self._weights(n_mutable),
            n_present=_n_present(candidates, counted=how.mean and how.ignores_missing),
            how=how,
        )

    def to_arrays(self) -> Mapping[str, Any]:
        """What ``fit`` learned, by the names in ``array_names``."""
        return {}

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
        return self

    def _summation(self) -> Summation:
        return replace(self.summation, ignores_missing=self.missing == "ignore")

    def _spreads(self, schema: Schema) -> FloatArray:
        """What differences of numbers are divided by, shape (n_mutable,)."""
        return schema.spreads

    def _weights(self, n_mutable: int) -> FloatArray:
        """How many times each mutable feature counts, shape (n_mutable,)."""
        return np.ones(n_mutable)

    def _places(self, candidates: Candidates, feature: int) -> Places | None:
        """Places in one feature; None where cells are only the same or different."""
        numbers = candidates.comparison.numbers[feature]
        if numbers is None:
            return None
        return numbers[:, None], candidates.comparison.own_numbers[feature][:, None]


def own_missing(rows: EncodedRows, position: int, people: IntArray) -> BoolArray:
    """Whether people's own cells in a column are missing, shape (n_people,)."""
    return is_missing(rows.own(position, people))


def _marks(candidates: Candidates, feature: int) -> Places:
    """Numbers that only tell which cells are missing: NaN, and otherwise 0."""
    rows = candidates.rows
    position = int(rows.schema.mutable[feature])
    missing = is_missing(candidates.tables[feature])
    own = own_missing(rows, position, candidates.people)
    of_codes, of_people = (np.where(side, np.nan, 0.0)[:, None] for side in (missing, own))
    return of_codes, of_people


def _n_present(candidates: Candidates, *, counted: bool) -> FloatArray:
    """How many features of each person count, all unless missing ones are left out."""
    rows, people = candidates.rows, candidates.people
    n_features = len(rows.schema.features)
    present = np.full(people.size, float(n_features))
    if counted:
        for position in range(n_features):
            present -= own_missing(rows, position, people)
    return present
