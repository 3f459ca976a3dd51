"""Constraints of a feature: what a person's own value may become.

Numbers lie between two ends, levels come from a table of pairs; staying is always allowed. Dates
and durations count in the unit of the training data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..errors import ConstraintError
from ..kernels import BoolArray, FloatArray, IntArray
from ..tables.columns import as_numbers, is_missing, is_time, plain
from ..tables.features import Feature
from .constraint import Constraint


class FeatureConstraint(Constraint):
    """Limits what a feature may become, given the person's own value."""

    can_become_missing: ClassVar[bool] = False  # for numbers; levels say so in their pairs

    def bounds(self, feature: Feature, own: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest new number for each own one, which is NaN where it is missing."""
        raise NotImplementedError

    def pairs(self, feature: Feature, own: Sequence[Any], new: Sequence[Any]) -> BoolArray:
        """Which own level (rows) may become which new one (columns)."""
        raise NotImplementedError

    def admits(self, feature: Feature, own: pd.Series[Any], new: pd.Series[Any]) -> BoolArray:
        """Cell by cell, whether the own value may become the new one."""
        if feature.kind == "categorical":
            (before, own_levels), (after, new_levels) = number_levels(own), number_levels(new)
            return self.pairs(feature, own_levels, new_levels)[before, after]
        unit = feature.table.dtype
        numbers = as_numbers(new, unit)
        low, high = self.bounds(feature, as_numbers(own, unit))
        within = (numbers >= low) & (numbers <= high)
        return np.where(np.isnan(numbers), self.can_become_missing, within)


class MissingLevel:
    """Stands for a missing level, since NaN would not equal itself."""


def number_levels(series: pd.Series[Any]) -> tuple[IntArray, list[Any]]:
    """The number of each cell's level, and the levels."""
    cells = plain(series).copy()
    cells[is_missing(series)] = MissingLevel
    numbers: dict[Any, int] = {}
    places = [numbers.setdefault(level, len(numbers)) for level in cells.tolist()]
    return np.array(places, dtype=np.int64), list(numbers)


@dataclass(frozen=True)
class Direction(FeatureConstraint):
    """A feature may only go one way, by its numbers, its own order of levels or a given one."""

    up: bool
    strict: bool
    order: tuple[Any, ...] | None = None
    kind: ClassVar[str] = "direction"

    @property
    def name(self) -> str:
        """E.g. only_up age."""
        return f"{self.builder_call()[0]} {self.features[0]}"

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """E.g. only_up, with an order if one was given."""
        way = "up" if self.up == self.strict else "down"
        order = {} if self.order is None else {"order": list(self.order)}
        return f"{'only' if self.strict else 'not'}_{way}", {"feature": self.features[0]} | order

    def check(self, features: Sequence[Feature]) -> None:
        """Numbers, ordered levels, or an order that names all levels."""
        (feature,) = features
        if feature.kind == "numeric":
            if self.order is not None:
                raise ConstraintError(f"{self.name}: a numeric feature needs no order of levels.")
        elif self.order is None and not feature.ordered:
            raise ConstraintError(
                f"{self.name}: the levels of {feature.name!r} have no order. Give one, lowest "
                f"first: order={_known(feature)!r} in the order you mean."
            )
        elif self.order is not None:
            _check_levels(self.name, feature, self.order)
            absent = [level for level in _known(feature) if level not in self.order]
            if absent:
                raise ConstraintError(f"{self.name}: the order leaves out {absent!r}.")

    def bounds(self, feature: Feature, own: FloatArray) -> tuple[FloatArray, FloatArray]:
        """From the own value on, or up to it; from missing nowhere, or anywhere."""
        none, missing = math.inf if self.strict else -math.inf, np.isnan(own)
        low = np.where(missing, none, own if self.up else -math.inf)
        high = np.where(missing, -none, math.inf if self.up else own)
        return low, high

    @property
    def can_become_missing(self) -> bool:  # type: ignore[override]
        """Missing is neither up nor down: what may not go down may become missing."""
        return not self.strict

    def pairs(self, feature: Feature, own: Sequence[Any], new: Sequence[Any]) -> BoolArray:
        """By rank; a level without one can only stay."""
        order = self.order or tuple(feature.table.cat.categories)
        rank = {level: float(place) for place, level in enumerate(order)}
        before = np.array([rank.get(level, math.nan) for level in own])[:, None]
        after = np.array([rank.get(level, math.nan) for level in new])[None, :]
        allowed = after >= before if self.up else after <= before
        free = np.array([level is MissingLevel for level in own])[:, None]
        free = free | np.array([level is MissingLevel for level in new])[None, :]
        return allowed | (free & (not self.strict))


@dataclass(frozen=True)
class Between(FeatureConstraint):
    """A new number lies between two ends, both included."""

    low: Any
    high: Any
    kind: ClassVar[str] = "between"

    def check(self, features: Sequence[Feature]) -> None:
        """Numeric feature, ends in its own unit."""
        (feature,) = features
        check_numeric(self.name, feature)
        low, high = self._ends(feature)
        if not low <= high:
            raise ConstraintError(
                f"{self.name}: no value lies between {self.low!r} and {self.high!r}."
            )

    def bounds(self, feature: Feature, own: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same for everybody."""
        low, high = self._ends(feature)
        return np.full(own.size, low), np.full(own.size, high)

    def _ends(self, feature: Feature) -> tuple[float, float]:
        low = -math.inf if self.low is None else _number(self.name, feature, self.low)
        high = math.inf if self.high is None else _number(self.name, feature, self.high)
        return low, high


@dataclass(frozen=True)
class Change(FeatureConstraint):
    """A new number differs from the own one by so much at least and at most."""

    at_least: Any
    at_most: Any
    kind: ClassVar[str] = "change"

    def check(self, features: Sequence[Feature]) -> None:
        """Numeric feature, ends as numbers in its unit or as percentages."""
        (feature,) = features
        check_numeric(self.name, feature)
        for end in (self.at_least, self.at_most):
            if end is not None and _share(end) is not None and is_time(feature.table.dtype):
                raise ConstraintError(f"{self.name}: a share of a date means nothing, got {end!r}.")
            if end is not None and _share(end) is None:
                length(self.name, feature, end)
        shares = [_share(end) is not None for end in (self.at_least, self.at_most)]
        low, high = self.bounds(feature, np.ones(1))
        if shares[0] == shares[1] and not low[0] <= high[0]:
            raise ConstraintError(
                f"{self.name}: at_least={self.at_least!r} is above at_most={self.at_most!r}."
            )

    def bounds(self, feature: Feature, own: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The own value and so much more or less; from missing nowhere."""
        missing = np.isnan(own)
        low = np.where(missing, math.inf, self._end(feature, own, self.at_least, -math.inf))
        return low, np.where(missing, -math.inf, self._end(feature, own, self.at_most, math.inf))

    def _end(self, feature: Feature, own: FloatArray, end: Any, free: float) -> FloatArray | float:
        if end is None:
            return free
        share = _share(end)
        return own + (share * np.abs(own) if share is not None else length(self.name, feature, end))


@dataclass(frozen=True)
class Levels(FeatureConstraint):
    """A new level is one of these; None among them means missing."""

    allowed: tuple[Any, ...]
    kind: ClassVar[str] = "levels"

    def check(self, features: Sequence[Feature]) -> None:
        """Categorical feature, levels that training held."""
        (feature,) = features
        _check_categorical(self.name, feature)
        _check_levels(self.name, feature, self.allowed)

    def pairs(self, feature: Feature, own: Sequence[Any], new: Sequence[Any]) -> BoolArray:
        """The same for everybody."""
        return np.tile([_listed(level, self.allowed) for level in new], (len(own), 1))


@dataclass(frozen=True)
class Transitions(FeatureConstraint):
    """A level may become one of those listed for it; one for which none is listed stays."""

    allowed: tuple[tuple[Any, tuple[Any, ...]], ...]
    kind: ClassVar[str] = "transitions"

    def check(self, features: Sequence[Feature]) -> None:
        """Categorical feature, levels that training held."""
        (feature,) = features
        _check_categorical(self.name, feature)
        for level, after in self.allowed:
            _check_levels(self.name, feature, [level, *after])

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """The list of each level as a mapping."""
        return self.kind, {"feature": self.features[0], "allowed": dict(self.allowed)}

    def pairs(self, feature: Feature, own: Sequence[Any], new: Sequence[Any]) -> BoolArray:
        """By the list of the own level."""
        after = {MissingLevel if level is None else level: to for level, to in self.allowed}
        rows = [[_listed(to, after.get(level, ())) for to in new] for level in own]
        return np.array(rows, dtype=bool).reshape(len(own), len(new))


def _known(feature: Feature) -> list[Any]:
    return list(feature.level_codes)


def _listed(level: Any, allowed: Sequence[Any]) -> bool:
    return None in allowed if level is MissingLevel else level in allowed


def check_numeric(title: str, feature: Feature) -> None:
    """An error where the feature has levels."""
    if feature.kind != "numeric":
        raise ConstraintError(
            f"{title}: {feature.name!r} is categorical, and this is about numbers."
        )


def _check_categorical(title: str, feature: Feature) -> None:
    if feature.kind != "categorical":
        raise ConstraintError(f"{title}: {feature.name!r} is numeric, and this is about levels.")


def _check_levels(title: str, feature: Feature, named: Iterable[Any]) -> None:
    known = feature.level_codes
    unknown = [level for level in named if level is not None and level not in known]
    if unknown:
        raise ConstraintError(
            f"{title}: {unknown!r} are no levels of {feature.name!r}. Training held "
            f"{_known(feature)!r}."
        )


def _number(title: str, feature: Feature, value: Any) -> float:
    """A value of the feature in the unit of its numbers."""
    dtype = feature.table.dtype
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    try:
        if is_time(dtype) == is_number:
            raise TypeError("a date or a length of time is needed" if is_number else "no number")
        cell = pd.Series([value]).astype(dtype) if is_time(dtype) else value
        number = float(as_numbers(cell)[0] if is_time(dtype) else value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConstraintError(
            f"{title}: {value!r} is no value of {feature.name!r}: {error}."
        ) from error
    if math.isnan(number):
        raise ConstraintError(f"{title}: {value!r} is no value of {feature.name!r}.")
    return number


def length(title: str, feature: Feature, value: Any) -> float:
    """A difference in the unit of the feature's numbers."""
    if not is_time(feature.table.dtype):
        return _number(title, feature, value)
    try:
        if isinstance(value, (int, float, np.number)):
            raise TypeError("a number has no unit")
        unit = as_numbers(feature.known.iloc[:1] + pd.Timedelta(value))
        return float(unit[0] - as_numbers(feature.known.iloc[:1])[0])
    except (TypeError, ValueError, IndexError) as error:
        raise ConstraintError(
            f"{title}: {value!r} is no length of time such as '30 days': {error}."
        ) from error


def _share(value: Any) -> float | None:
    """A text such as ``"20 %"`` as 0.2; None for anything else."""
    if not isinstance(value, str) or not value.strip().endswith("%"):
        return None
    try:
        return float(value.strip()[:-1]) / 100
    except ValueError:
        raise ConstraintError(f"{value!r} is no percentage such as '20 %'.") from None
