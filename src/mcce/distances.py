"""Distances between candidates and the people they are for, beside the number of changes.

Step 3, paper, section "Post-processing", which suggests Gower's distance and names others. Those
here are sums over features: a cell has coordinates on the axis of its feature, a number or a point
that stands for a value. Coordinates are looked up by code, once per block of people; a compiled
kernel adds up the features one at a time in column order, so that sums do not depend on blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from .caching import cached_property
from .candidates import CandidateRows, Candidates, pair_rows
from .errors import ParameterError, did_you_mean, shorten
from .kernels import (
    BoolArray,
    DistanceAxes,
    FloatArray,
    IntArray,
    Summation,
    changed_places,
    measure,
)
from .parameters import check_choice, check_real
from .plugins import Registry
from .protocols import Distance
from .tables.columns import is_missing
from .tables.features import Feature
from .tables.schema import OWN, EncodedRows, Schema

Missing: TypeAlias = Literal["level", "ignore"]
Variant: TypeAlias = Literal["N1", "N2", "N3"]
# Coordinates of a feature: of its codes, (n_codes, n_dims), and of people, (n_people, n_dims).
Coordinates: TypeAlias = tuple[FloatArray, FloatArray]
# The decision has two values.
N_CLASSES = 2
# A standard deviation of a number that is not constant.
SMALLEST_FLOAT = float(np.finfo(np.float64).smallest_subnormal)
# Classes whose parameters are their arguments, as scikit-learn has it.
DISTANCES = Registry(
    group="mcce.distances",
    built_in={
        "gower": "mcce.distances:Gower",
        "l1": "mcce.distances:L1",
        "hvdm": "mcce.distances:HVDM",
    },
    elsewhere=dict.fromkeys(("heom", "ivdm"), "mcce-lab"),
)
# Names of other columns of result.measures, of its index and of tables of answers.
RESERVED = (
    *("score", "sparsity", "n_actions", "gower", "l1", "proven", "valid"),
    *("plausibility", "knn_distance_quantile", "no_reference_group"),
    *("margin", "margin_steps", "robust", "margin_word"),
    *("survival", "survival_low", "survival_high"),
    *("factual", "rank", "status", "reason", "reason_kind", "score_before", "changed"),
)


class FeatureDistance(BaseEstimator):
    """A distance that is a sum over features: the base class of mcce's distances and of yours.

    A missing cell is a level of its own, 1 away from any other cell, or a reason to leave out its
    feature.

    Parameters
    ----------
    missing : {"level", "ignore"}
        What to do with features in which the person or the candidate lacks a value.

    Examples
    --------
    The largest range-scaled differences count most:

    >>> from mcce.protocols import Summation
    >>> class Euclidean(FeatureDistance):
    ...     title = "euclidean"
    ...     summation = Summation(squared=True)
    >>> Euclidean().name
    'euclidean'
    """

    # Its name among the distances of mcce.
    title: ClassVar[str]
    # How the features add up.
    summation: ClassVar[Summation] = Summation()
    # The entries of `to_arrays`: what it learned from the training rows.
    array_names: ClassVar[tuple[str, ...]] = ()
    # Whether its axes say all: not in subclasses with a ``__call__`` of their own.
    measured_by_axes: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.measured_by_axes = cls.__call__ is FeatureDistance.__call__

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

    def fit(self, schema: Schema, rows: EncodedRows, is_desired: BoolArray) -> Self:
        """Check the parameters, and learn from the training rows.

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
        """Distances, shape (n_people, n_draws); see :class:`mcce.protocols.Distance`."""
        comparison = candidates.comparison
        return measure(comparison, self.axes(candidates, changed_places(comparison)))

    def axes(self, candidates: Candidates, places: Iterable[int] | None = None) -> DistanceAxes:
        """Where people and candidates are on the axes of the features.

        Parameters
        ----------
        candidates
            People and their candidates.
        places
            Places, among the mutable features, of those that differ; None for all.

        Returns
        -------
        DistanceAxes
            Coordinates for the kernels. Features that are not requested have none.
        """
        n_mutable = len(candidates.comparison.codes)
        coordinates: list[FloatArray | None] = [None] * n_mutable
        own_coordinates: list[FloatArray | None] = [None] * n_mutable
        for place in range(n_mutable) if places is None else places:
            found = self.coordinates(candidates, place)
            if found is None and self.missing == "ignore":
                found = _marks(candidates, place)
            if found is not None:
                coordinates[place], own_coordinates[place] = found
        how = self._summation()
        return DistanceAxes(
            coordinates=coordinates,
            own_coordinates=own_coordinates,
            spreads=self._spreads(candidates.factuals.schema),
            weights=self._weights(n_mutable),
            n_present=_n_present(candidates, counted=how.mean and how.ignores_missing),
            how=how,
        )

    def coordinates(self, candidates: Candidates, place: int) -> Coordinates | None:
        """Coordinates of the cells of one feature; a subclass may give others.

        Parameters
        ----------
        candidates
            People and their candidates.
        place
            Place of the feature among the mutable ones.

        Returns
        -------
        tuple of arrays or None
            Those of the codes, shape (n_codes, n_dims), and of the people, (n_people, n_dims); NaN
            for missing. None where cells are only the same or different.
        """
        numbers = candidates.comparison.numbers[place]
        if numbers is None:
            return None
        return numbers[:, None], candidates.comparison.own_numbers[place][:, None]

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


class Gower(FeatureDistance):
    """Mean over all features of the range-scaled difference; 0 or 1 for a category.

    Distances are in [0, 1] for values inside the training range.

    Parameters
    ----------
    weights : (n_mutable,), optional
        How many times the difference of each mutable feature counts.
    missing : {"level", "ignore"}
        Whether a missing cell is 1 away from any other cell, or its feature is left out of the
        mean, as in Gower's own definition. Then the distance of rows that have no feature in common
        is infinite, deleting a value costs nothing, and the measure is called ``gower_observed``.

    Examples
    --------
    >>> Gower().name
    'gower'
    """

    title = "gower"
    summation = Summation(mean=True)

    def __init__(self, weights: FloatArray | None = None, *, missing: Missing = "level") -> None:
        self.weights = weights
        self.missing = missing

    @property
    def name(self) -> str:
        """Name of its column in ``result.measures``, where ``gower`` has one meaning."""
        return self.title if self.missing == "level" else f"{self.title}_observed"

    def check(self, schema: Schema) -> None:
        """Raise unless there is one finite weight >= 0 for each mutable feature, or none."""
        super().check(schema)
        if self.weights is None:
            return
        weights, n_mutable = np.asarray(self.weights), schema.mutable.size
        numeric = weights.dtype.kind in "biuf" and ((weights >= 0) & (weights < np.inf)).all()
        if weights.shape != (n_mutable,) or not numeric:
            raise ParameterError(
                f"weights of Gower must be {n_mutable} finite numbers >= 0, one per mutable "
                f"feature, got {shorten(self.weights)}."
            )

    def _weights(self, n_mutable: int) -> FloatArray:
        if self.weights is None:
            return super()._weights(n_mutable)
        return np.asarray(self.weights, dtype=np.float64)


class L1(FeatureDistance):
    """Sum over features of the range-scaled difference: Gower's distance times their number.

    Parameters
    ----------
    missing : {"level", "ignore"}
        Whether a missing cell is 1 away from any other cell, or adds nothing; the measure is then
        called ``l1_observed``.

    Examples
    --------
    >>> L1().name
    'l1'
    """

    title = "l1"

    @property
    def name(self) -> str:
        """Name of its column in ``result.measures``, where ``l1`` has one meaning."""
        return self.title if self.missing == "level" else f"{self.title}_observed"


class HVDM(FeatureDistance):
    """Heterogeneous value difference metric: levels by what the predictor decides.

    The root of the sum of squares over features (Wilson and Martinez, Improved Heterogeneous
    Distance Functions, 1997). Two levels are as far apart as their acceptance rates, so a
    change between levels that the predictor treats alike costs little or nothing. Numbers differ by
    their distance over four standard deviations (over 1 if they are constant in training).

    Parameters
    ----------
    variant : {"N1", "N2", "N3"}
        How far two levels are apart: the sum of the absolute differences of their shares, the root
        of the sum of their squares, or that times the root of the number of decisions, which is
        two.
    alpha
        Each level counts as if it had this many more training rows, with the shares of all rows. A
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
        check_real("alpha", self.alpha, "a finite number >= 0")
        check_choice("variant", self.variant, ("N1", "N2", "N3"))

    def fit(self, schema: Schema, rows: EncodedRows, is_desired: BoolArray) -> Self:
        """Learn the shares of levels and the standard deviations of numbers.

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
        HVDM
            Itself.

        Raises
        ------
        ParameterError
            If a parameter cannot be used.
        """
        self.check(schema)
        features = [schema.features[position] for position in schema.mutable]
        columns = list(zip(features, rows.codes[schema.mutable], strict=True))
        spreads = np.array([4.0 * _deviation(feature, codes) for feature, codes in columns])
        shares = [
            None
            if feature.kind == "numeric"
            else _level_shares(_count_decisions(codes, is_desired, feature.n_codes), self.alpha)
            for feature, codes in columns
        ]
        return self._keep(features, spreads, shares)

    def to_arrays(self) -> Mapping[str, Any]:
        """What numbers are divided by, and the shares of levels, one feature after the other."""
        found = [shares for shares in self.shares_ if shares is not None]
        shares = np.concatenate([np.empty((0, N_CLASSES)), *found])
        return {"spreads": self.spreads_, "shares": shares}

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
        features = [schema.features[position] for position in schema.mutable]
        sizes = [0 if feature.kind == "numeric" else feature.n_codes + 1 for feature in features]
        shares = _check_table(arrays["shares"], (sum(sizes), N_CLASSES), "shares")
        if (shares < 0).any() or (shares.sum(axis=1) > 1 + 1e-9).any():
            raise ValueError("the shares of a value are no shares")
        spreads = _check_table(arrays["spreads"], (schema.mutable.size,), "spreads")
        if ((spreads > 0) != (schema.spreads > 0)).any() or (spreads < 0).any():
            raise ValueError("the standard deviations are not those of its columns")
        parts = np.split(shares, np.cumsum(sizes)[:-1])
        known = [part if size else None for part, size in zip(parts, sizes, strict=True)]
        return self._keep(features, spreads, known)

    def coordinates(self, candidates: Candidates, place: int) -> Coordinates | None:
        """Of a level its shares of decisions, of a number its value.

        Parameters
        ----------
        candidates
            People and their candidates.
        place
            Place of the feature among the mutable ones.

        Returns
        -------
        tuple of arrays or None
            As for :class:`FeatureDistance`.
        """
        table = self._tables[place]
        if table is None:
            return super().coordinates(candidates, place)
        rows, people, values = candidates.factuals, candidates.positions, candidates.tables[place]
        position = int(rows.schema.mutable[place])
        exact = rows.codes[position, people]
        own, unseen = table[exact], np.flatnonzero(exact < 0)
        if unseen.size:
            own[unseen[_own_missing(rows, position, people[unseen])]] = np.nan
        if values is rows.tables[place]:
            return table, own
        coordinates = table[rows.schema.features[position].encode(values)[0]]
        coordinates[is_missing(values)] = np.nan
        return coordinates, own

    def _keep(
        self, features: list[Feature], spreads: FloatArray, shares: list[FloatArray | None]
    ) -> Self:
        self.__dict__.pop("_tables", None)
        self._features, self.spreads_, self.shares_ = features, spreads, shares
        return self

    @cached_property
    def _tables(self) -> list[FloatArray | None]:
        """Per mutable feature the point of each training code, then that of levels never seen."""
        scale = np.sqrt(float(N_CLASSES)) if self.variant == "N3" else 1.0
        tables: list[FloatArray | None] = []
        for feature, shares in zip(self._features, self.shares_, strict=True):
            table = None if shares is None else shares * scale
            if table is not None and feature.has_missing:
                table[feature.n_codes - 1] = np.nan
            tables.append(table)
        return tables

    def _summation(self) -> Summation:
        return replace(super()._summation(), city_block=self.variant == "N1")

    def _spreads(self, schema: Schema) -> FloatArray:
        return self.spreads_


def find_distance(distance: Any) -> Distance:
    """An unfitted distance.

    Examples
    --------
    >>> find_distance("gower").name
    'gower'
    """
    if distance in DISTANCES:
        found: Distance = DISTANCES.load(distance)()
    elif (
        not callable(distance)
        or not callable(getattr(distance, "fit", None))
        or not hasattr(distance, "name")
    ):
        raise ParameterError(
            f"distance must be one of {DISTANCES.names()!r} or an object with name, fit and "
            f"__call__, got {shorten(distance)}.{did_you_mean(distance, DISTANCES.names())}"
        )
    else:
        found = deepcopy(distance)
    is_ours = type(found) in (Gower, L1)
    if not is_ours and (not isinstance(found.name, str) or found.name in RESERVED):
        raise ParameterError(
            f"The name of a distance is a column of result.measures, so it must be a string other "
            f"than {list(RESERVED)!r}, got {shorten(found.name)}."
        )
    return found


def is_gower(distance: Distance) -> bool:
    """Whether a distance is Gower's, with or without weights, and missing cells are levels."""
    return type(distance) is Gower and distance.missing == "level"


def is_plain_gower(distance: Distance) -> bool:
    """Whether a distance is the measure ``gower`` itself."""
    return is_gower(distance) and getattr(distance, "weights", None) is None


def as_sum(distance: Distance) -> FeatureDistance | None:
    """The distance as a sum over features; None for one that must be called for all draws."""
    if isinstance(distance, FeatureDistance) and distance.measured_by_axes:
        return distance
    return None


def measure_rows(distance: Distance, chosen: CandidateRows) -> FloatArray:
    """Distance of each row to its person, shape (n_rows,)."""
    if not chosen.owner.size:
        return chosen.owner.astype(float)
    if as_sum(distance) is not None:
        # It looks at changes alone, so cells that are the person's own have the same code, OWN.
        codes, own_codes = chosen.codes[:, :, None], np.full_like(chosen.codes, OWN)
        both = Candidates.of(chosen.factuals, chosen.owner, codes, own_codes, chosen.tables)
        return distance(both)[:, 0]
    return distance(pair_rows(chosen.factuals, chosen.owner, chosen.frame, 1))[:, 0]


def _own_missing(rows: EncodedRows, position: int, people: IntArray) -> BoolArray:
    """Whether people's own cells in a column are missing, shape (n_people,)."""
    return is_missing(rows.own(position, people))


def _marks(candidates: Candidates, place: int) -> Coordinates:
    """Numbers that only tell which cells are missing: NaN, and otherwise 0."""
    rows = candidates.factuals
    position = int(rows.schema.mutable[place])
    missing = is_missing(candidates.tables[place])
    own = _own_missing(rows, position, candidates.positions)
    of_codes, of_people = (np.where(side, np.nan, 0.0)[:, None] for side in (missing, own))
    return of_codes, of_people


def _n_present(candidates: Candidates, *, counted: bool) -> FloatArray:
    """How many features of each person count, all unless missing ones are left out."""
    rows, people = candidates.factuals, candidates.positions
    n_features = len(rows.schema.features)
    present = np.full(people.size, float(n_features))
    if counted:
        for position in range(n_features):
            present -= _own_missing(rows, position, people)
    return present


def _level_shares(counts: IntArray, alpha: float) -> FloatArray:
    """Shares of the decisions of each level, and at the end those of a level never seen.

    They are pulled towards those of all rows, as if each level had ``alpha`` more rows with them;
    otherwise a level with one row would have shares of 0 and 1.

    Examples
    --------
    >>> _level_shares(np.array([[3, 1], [1, 3]]), alpha=0.0)
    array([[0.75, 0.25],
           [0.25, 0.75],
           [0.  , 0.  ]])
    """
    total = counts.sum(axis=0)
    counts = np.vstack([counts, np.zeros((1, N_CLASSES), dtype=counts.dtype)])
    # Divided first, since a huge alpha times the number of rows would overflow.
    prior = alpha * (total / max(int(total.sum()), 1))
    size = counts.sum(axis=1, keepdims=True) + alpha
    return (counts + prior) / np.where(size > 0, size, 1.0)


def _count_decisions(codes: IntArray, is_desired: BoolArray, n_codes: int) -> IntArray:
    """Training rows of each code by decision, declined first, shape (n_codes, 2)."""
    both = codes.astype(np.int64) * N_CLASSES + is_desired
    return np.bincount(both, minlength=n_codes * N_CLASSES).reshape(n_codes, N_CLASSES)


def _check_table(values: Any, shape: tuple[int, ...], what: str) -> FloatArray:
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
    assert feature.numbers is not None
    numbers = feature.numbers[: feature.n_codes - feature.has_missing]
    counts = np.bincount(codes, minlength=feature.n_codes)[: numbers.size]
    # Divided by the range, so that no square overflows.
    scaled = (numbers - numbers[0]) / feature.spread
    mean = np.average(scaled, weights=counts)
    share = float(np.sqrt(np.average((scaled - mean) ** 2, weights=counts)))
    return max(feature.spread * share, SMALLEST_FLOAT)
