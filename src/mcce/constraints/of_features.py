"""Constraints on one feature: what each means, and the functions that make them.

A constraint says what a person's own value may become: for numbers it gives the lowest and the
highest new value, for levels a table of allowed pairs, in which None is missing. A feature may
always keep its value. Dates and durations are numbers in the unit of the training data. Weights and
steps only change what counts as close.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import pandas as pd

from ..errors import ConstraintError, did_you_mean, shorten
from ..kernels import BoolArray, IntArray
from ..tables.columns import as_comparable, is_time, plain_cells
from ..tables.features import Feature
from .amounts import moved, repeat, to_length, to_number, to_percent
from .constraint import (
    Constraint,
    ProposedRows,
    check_amount,
    list_features,
    list_values,
    quote_name,
)

Value: TypeAlias = float | str | datetime.date | datetime.timedelta | np.generic
Amount: TypeAlias = float | str | datetime.timedelta | np.timedelta64
Listed: TypeAlias = Iterable[Hashable | None] | None
Towards: TypeAlias = Literal["up", "down"] | None
Bounds: TypeAlias = tuple[np.ndarray, np.ndarray]
Way: TypeAlias = Literal["only_up", "only_down", "not_up", "not_down"]

# Only a level that was nearly spelled out is suggested: levels are training data. It is looked for
# among this many.
LIKE_A_LEVEL, MAX_COMPARED = 0.8, 10_000


class FeatureConstraint(Constraint):
    """Limits what a feature may become, given the person's own value."""

    can_become_missing: ClassVar[bool] = False  # for numbers; levels say so in their pairs

    def bounds(self, feature: Feature, own: np.ndarray) -> Bounds:
        """Lowest and highest new number for each own number (NaN if it is missing)."""
        raise NotImplementedError

    def pairs(self, feature: Feature, own: Sequence[Any], new: Sequence[Any]) -> BoolArray:
        """Whether each own level (rows) may become each new level (columns)."""
        raise NotImplementedError

    def keeps(self, rows: ProposedRows) -> BoolArray:
        """Rows that leave the feature as it is, or change it as it may."""
        schema = rows.factuals.schema
        at = schema.position_of[self.features[0]]
        (changed,) = rows.changed([at])
        moved = np.flatnonzero(changed)
        before = rows.factuals.frame.iloc[:, at].iloc[rows.owner[moved]]
        keeps = ~changed
        keeps[moved] = self.allows(schema.features[at], before, rows.frame.iloc[:, at].iloc[moved])
        return keeps

    def allows(self, feature: Feature, own: pd.Series[Any], new: pd.Series[Any]) -> BoolArray:
        """Whether each own value may become the new value beside it."""
        if feature.kind == "categorical":
            (before, own_levels), (after, new_levels) = number_levels(own), number_levels(new)
            return self.pairs(feature, own_levels, new_levels)[before, after]
        numbers = as_comparable(new, feature.table.dtype)
        low, high = self.bounds(feature, as_comparable(own, feature.table.dtype))
        within = (numbers >= low) & (numbers <= high)
        return np.where(numbers != numbers, self.can_become_missing, within)


@dataclass(frozen=True, repr=False)
class Direction(FeatureConstraint):
    """A feature may only rise or only fall: by number, or by rank of its level."""

    way: Way
    order: tuple[Any, ...] | None = None
    kind: ClassVar[str] = "direction"

    @property
    def name(self) -> str:
        """Such as ``only_up age``."""
        return f"{self.way} {self.features[0]}"

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """One of the four directions, with its order if one was given."""
        order = {} if self.order is None else {"order": list(self.order)}
        return self.way, {"feature": self.features[0]} | order

    def check(self, features: Sequence[Feature]) -> None:
        """The feature must be numeric or ordered, or ``order`` must name all its levels."""
        (feature,) = features
        n_levels = len(feature.level_codes)
        if self.order is None:
            if not feature.ordered:
                raise ConstraintError(
                    f"{self.quoted}: the levels of {shorten(feature.name)} have no order. Pass all "
                    f"{n_levels} of them, lowest first: order=[...]."
                )
        elif feature.kind == "numeric":
            raise ConstraintError(
                f"{self.quoted}: {shorten(feature.name)} is numeric and needs no order. "
                "Leave it out."
            )
        else:
            check_levels(self.quoted, feature, self.order)
            n_absent = len(feature.level_codes.keys() - set(self.order))
            if n_absent:
                raise ConstraintError(
                    f"{self.quoted}: order leaves out {n_absent} of the {n_levels} levels of "
                    f"{shorten(feature.name)}. Name all of them."
                )

    def bounds(self, feature: Feature, own: np.ndarray) -> Bounds:
        """From the own value up, or down; a missing one may become any number unless ``only``."""
        missing, if_missing = own != own, math.inf if self._only else -math.inf
        low = np.where(missing, if_missing, own if self._up else -math.inf)
        return low, np.where(missing, -if_missing, math.inf if self._up else own)

    @property
    def can_become_missing(self) -> bool:  # type: ignore[override]
        """Whether a number may become missing, which is neither up nor down."""
        return not self._only

    def pairs(self, feature: Feature, own: Sequence[Any], new: Sequence[Any]) -> BoolArray:
        """By rank; a level without a rank cannot change."""
        order = self.order or tuple(feature.table.cat.categories)
        rank = {level: float(place) for place, level in enumerate(order)}
        before = np.array([rank.get(level, math.nan) for level in own])[:, None]
        after = np.array([rank.get(level, math.nan) for level in new])
        free = np.logical_or.outer(_are_among(own, [None]), _are_among(new, [None]))
        return (after >= before if self._up else after <= before) | (free & (not self._only))

    @property
    def _up(self) -> bool:
        return self.way in ("only_up", "not_down")

    @property
    def _only(self) -> bool:
        return self.way in ("only_up", "only_down")


def only_up(feature: Hashable, *, order: Iterable[Hashable] | None = None) -> Constraint:
    """The feature may only rise.

    A missing value cannot change, and no value may become missing; see :func:`not_down`.

    Parameters
    ----------
    feature
        Name of a numeric or categorical column.
    order
        All levels of a categorical column, lowest first. Not needed for an ordered category.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Raises
    ------
    ConstraintError
        If ``order`` is not a list. Whether the feature exists and has an order is checked at fit.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.only_up("age")
    only_up('age')
    >>> constraints.only_up("education", order=["school", "bachelor", "master"])
    only_up('education', order=['school', 'bachelor', 'master'])
    """
    return _direction("only_up", feature, order)


def only_down(feature: Hashable, *, order: Iterable[Hashable] | None = None) -> Constraint:
    """The feature may only fall.

    A missing value cannot change, and no value may become missing; see :func:`not_up`.

    Parameters
    ----------
    feature
        Name of a numeric or categorical column.
    order
        All levels of a categorical column, lowest first. Not needed for an ordered category.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Raises
    ------
    ConstraintError
        If ``order`` is not a list. Whether the feature exists and has an order is checked at fit.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.only_down("debt")
    only_down('debt')
    """
    return _direction("only_down", feature, order)


def not_down(feature: Hashable, *, order: Iterable[Hashable] | None = None) -> Constraint:
    """The feature may not fall.

    Unlike with :func:`only_up`, a value may become missing and a missing one may become anything.

    Parameters
    ----------
    feature
        Name of a numeric or categorical column.
    order
        All levels of a categorical column, lowest first. Not needed for an ordered category.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Raises
    ------
    ConstraintError
        If ``order`` is not a list. Whether the feature exists and has an order is checked at fit.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.not_down("savings")
    not_down('savings')
    """
    return _direction("not_down", feature, order)


def not_up(feature: Hashable, *, order: Iterable[Hashable] | None = None) -> Constraint:
    """The feature may not rise.

    Unlike with :func:`only_down`, a value may become missing and a missing one may become anything.

    Parameters
    ----------
    feature
        Name of a numeric or categorical column.
    order
        All levels of a categorical column, lowest first. Not needed for an ordered category.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Raises
    ------
    ConstraintError
        If ``order`` is not a list. Whether the feature exists and has an order is checked at fit.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.not_up("debt")
    not_up('debt')
    """
    return _direction("not_up", feature, order)


def _direction(way: Way, feature: Hashable, order: Iterable[Any] | None) -> Direction:
    listed = None if order is None else list_values("order", "order", order)
    return Direction(list_features(way, feature), way, listed)


@dataclass(frozen=True, repr=False)
class Between(FeatureConstraint):
    """A new number must lie between two values, both included."""

    low: Any
    high: Any
    kind: ClassVar[str] = "between"

    def check(self, features: Sequence[Feature]) -> None:
        """The feature must be numeric, and the two values must be of its type and in order."""
        (feature,) = features
        check_numeric(self.quoted, feature)
        low, high = self._ends(feature)
        if not low <= high:
            raise ConstraintError(
                f"{self.quoted}: low={shorten(self.low)} is above high={shorten(self.high)}. "
                "Swap them."
            )

    def bounds(self, feature: Feature, own: np.ndarray) -> Bounds:
        """The same for everybody."""
        low, high = self._ends(feature)
        return repeat(low, own.size), repeat(high, own.size)

    def _ends(self, feature: Feature) -> tuple[float, float]:
        low = -math.inf if self.low is None else to_number(self.quoted, feature, self.low)
        return low, math.inf if self.high is None else to_number(self.quoted, feature, self.high)


def between(feature: Hashable, low: Value | None = None, high: Value | None = None) -> Constraint:
    """A new value must lie between two values.

    A value outside may stay as it is. No value may become missing.

    Parameters
    ----------
    feature
        Name of a numeric column, dates and durations included.
    low, high
        The lowest and the highest new value, both included; None is no limit. A date may be a
        string such as ``"2024-02-01"``.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Raises
    ------
    ConstraintError
        If both ``low`` and ``high`` are None.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.between("hours_per_week", 0, 60)
    between('hours_per_week', low=0, high=60)
    """
    if low is None and high is None:
        raise ConstraintError(f"between {quote_name(feature)}: pass low, high or both.")
    return Between(list_features("between", feature), low, high)


@dataclass(frozen=True, repr=False)
class ChangeBetween(FeatureConstraint):
    """A new number must differ from the own number by an amount in a range."""

    at_least: Any
    at_most: Any
    kind: ClassVar[str] = "change"

    def check(self, features: Sequence[Feature]) -> None:
        """The feature must be numeric, and the ends numbers in its unit or percentages."""
        (feature,) = features
        check_numeric(self.quoted, feature)
        shares = [end for end in (self.at_least, self.at_most) if to_percent(end) is not None]
        if shares and is_time(feature.table.dtype):
            raise ConstraintError(
                f"{self.quoted}: a date or duration has no percentage, got {shorten(shares[0])}. "
                "Pass a length of time such as '30 days'."
            )
        low, high = self.bounds(feature, np.ones(1))
        if len(shares) != 1 and not low[0] <= high[0]:
            raise ConstraintError(
                f"{self.quoted}: at_least={shorten(self.at_least)} is above "
                f"at_most={shorten(self.at_most)}. Swap them."
            )

    def bounds(self, feature: Feature, own: np.ndarray) -> Bounds:
        """The own value plus each end; a missing value may become no number."""
        missing = own != own
        low = np.where(missing, math.inf, self._end(feature, own, self.at_least, -math.inf))
        return low, np.where(missing, -math.inf, self._end(feature, own, self.at_most, math.inf))

    def _end(self, feature: Feature, own: np.ndarray, end: Any, free: float) -> np.ndarray | float:
        if end is None:
            return free
        percent = to_percent(end)
        amount = to_length(self.quoted, feature, end) if percent is None else None
        return moved(own, amount, percent)


def change(
    feature: Hashable, *, at_least: Amount | None = None, at_most: Amount | None = None
) -> Constraint:
    """A change must lie between two amounts.

    The change is the new value minus the own one, so it is negative if the value falls:
    ``at_least=-500`` lets it fall by at most 500, and rise by any amount. A missing value cannot
    change, and no value may become missing.

    Parameters
    ----------
    feature
        Name of a numeric column, dates and durations included.
    at_least, at_most
        The smallest and the largest change, both included; None is no limit. An amount is a number,
        a percentage of the size of the own value such as ``"20 %"``, or, for dates and durations, a
        length of time such as ``"30 days"``.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Raises
    ------
    ConstraintError
        If both ``at_least`` and ``at_most`` are None.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.change("salary", at_least=0, at_most="20 %")
    change('salary', at_least=0, at_most='20 %')
    """
    if at_least is None and at_most is None:
        raise ConstraintError(f"change {quote_name(feature)}: pass at_least, at_most or both.")
    return ChangeBetween(list_features("change", feature), at_least, at_most)


@dataclass(frozen=True, repr=False)
class Levels(FeatureConstraint):
    """A new level must be one of these; None among them allows missing."""

    allowed: tuple[Any, ...]
    kind: ClassVar[str] = "levels"

    def check(self, features: Sequence[Feature]) -> None:
        """The feature must be categorical, and its levels must occur in the training data."""
        check_levels(self.quoted, features[0], self.allowed)

    def pairs(self, feature: Feature, own: Sequence[Any], new: Sequence[Any]) -> BoolArray:
        """The same for everybody."""
        return np.tile(_are_among(new, self.allowed), (len(own), 1))


def levels(feature: Hashable, allowed: Iterable[Hashable | None]) -> Constraint:
    """A new level must be one of these.

    Parameters
    ----------
    feature
        Name of a categorical column.
    allowed
        The levels; None among them allows the value to become missing.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Raises
    ------
    ConstraintError
        If ``allowed`` is not a list of plain values.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.levels("housing", ["rent", "own"])
    levels('housing', allowed=('rent', 'own'))
    """
    listed = list_values(f"levels {quote_name(feature)}", "allowed", allowed)
    return Levels(list_features("levels", feature), listed)


@dataclass(frozen=True, repr=False)
class Transitions(FeatureConstraint):
    """A level may only become those listed for it; a level that is not listed cannot change."""

    allowed: Mapping[Any, tuple[Any, ...]]
    kind: ClassVar[str] = "transitions"

    def check(self, features: Sequence[Feature]) -> None:
        """The feature must be categorical, and its levels must occur in the training data."""
        named = [level for entry in self.allowed.items() for level in (entry[0], *entry[1])]
        check_levels(self.quoted, features[0], named)

    def pairs(self, feature: Feature, own: Sequence[Any], new: Sequence[Any]) -> BoolArray:
        """By the levels listed for the own level."""
        rows = [_are_among(new, self.allowed.get(level, ())) for level in own]
        return np.array(rows, dtype=bool).reshape(len(own), len(new))


def transitions(
    feature: Hashable, allowed: Mapping[Hashable | None, Iterable[Hashable | None]]
) -> Constraint:
    """A level may only become those listed for it.

    Parameters
    ----------
    feature
        Name of a categorical column.
    allowed
        For each level, the levels it may become; None stands for missing. A level without an entry
        cannot change.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Raises
    ------
    ConstraintError
        If ``allowed`` does not map levels to lists of levels.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.transitions("job", {"unemployed": ["employed"], "employed": ["manager"]})
    transitions('job', allowed={'unemployed': ('employed',), 'employed': ('manager',)})
    """
    title = f"transitions {quote_name(feature)}"
    if not isinstance(allowed, Mapping):
        raise ConstraintError(
            f"{title}: allowed must map each level to the levels it may become, got "
            f"{shorten(allowed)}."
        )
    listed = {
        level: list_values(title, shorten(level, 40), after) for level, after in allowed.items()
    }
    return Transitions(list_features("transitions", feature), listed)


@dataclass(frozen=True, repr=False)
class NeverAdvised(FeatureConstraint):
    """A feature may not change to these levels, or not in this direction."""

    levels: tuple[Any, ...]
    direction: Towards
    kind: ClassVar[str] = "never_advise"
    can_become_missing: ClassVar[bool] = True

    def check(self, features: Sequence[Feature]) -> None:
        """The levels must occur in the training data; a direction needs numbers or an order."""
        _check_advice(self, features[0])

    def bounds(self, feature: Feature, own: np.ndarray) -> Bounds:
        """As far as the other direction goes."""
        return self._other_direction.bounds(feature, own)

    def pairs(self, feature: Feature, own: Sequence[Any], new: Sequence[Any]) -> BoolArray:
        """All other levels, or those of the other direction."""
        if self.direction is not None:
            return self._other_direction.pairs(feature, own, new)
        return np.tile(~_are_among(new, self.levels), (len(own), 1))

    @property
    def _other_direction(self) -> Direction:
        return Direction(self.features, "not_up" if self.direction == "up" else "not_down")


def never_advise(
    feature: Hashable, levels: Listed = None, *, direction: Towards = None
) -> Constraint:
    """No answer changes the feature to these levels, or in this direction.

    Whoever has such a value may keep it.

    Parameters
    ----------
    feature
        Name of a column.
    levels
        The levels of a categorical column; None among them stands for missing.
    direction
        Instead of levels, ``"up"`` or ``"down"``, for numbers, dates and ordered levels.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Raises
    ------
    ConstraintError
        If not one of ``levels`` and ``direction`` is given.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.never_advise("account", ["closed"])
    never_advise('account', levels=('closed',))
    >>> constraints.never_advise("debt", direction="up")
    never_advise('debt', direction='up')
    """
    return NeverAdvised(*_advice("never_advise", feature, levels, direction))


@dataclass(frozen=True, repr=False)
class Discouraged(Constraint):
    """Changes to these levels, or in this direction, are answers only where there is no other."""

    levels: tuple[Any, ...]
    direction: Towards
    kind: ClassVar[str] = "discouraged"

    @property
    def as_never(self) -> NeverAdvised:
        """The constraint that rules these changes out."""
        return NeverAdvised(self.features, self.levels, self.direction, source=self.source)

    def check(self, features: Sequence[Feature]) -> None:
        """As for a change that is never advised."""
        _check_advice(self, features[0])


def discouraged(
    feature: Hashable, levels: Listed = None, *, direction: Towards = None
) -> Constraint:
    """Answers that change the feature to these levels, or in this direction, come last.

    Searches beyond the paper return them only to people for whom they find nothing else, and ranges
    leave them out. The paper's search ranks them after its other answers.

    Parameters
    ----------
    feature, levels, direction
        What is discouraged, as for :func:`never_advise`.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.discouraged("housing", ["for free"])
    discouraged('housing', levels=('for free',))
    """
    return Discouraged(*_advice("discouraged", feature, levels, direction))


def _advice(
    kind: str, feature: Hashable, levels: Iterable[Any] | None, direction: Any
) -> tuple[tuple[Hashable, ...], tuple[Any, ...], Towards]:
    """The features, levels and direction of advice that is not to be given."""
    title = f"{kind} {quote_name(feature)}"
    listed = () if levels is None else list_values(title, "levels", levels)
    if direction not in (None, "up", "down") or bool(listed) == (direction is not None):
        raise ConstraintError(
            f"{title}: pass levels=[...] or direction, which is 'up' or 'down', got "
            f"levels={shorten(levels)} and direction={shorten(direction)}."
        )
    return list_features(kind, feature), listed, direction


def _check_advice(advice: NeverAdvised | Discouraged, feature: Feature) -> None:
    if advice.direction is None:
        check_levels(advice.quoted, feature, advice.levels)
    elif not feature.ordered:
        raise ConstraintError(
            f"{advice.quoted}: the levels of {shorten(feature.name)} have no order. List them "
            "instead: levels=[...]."
        )


@dataclass(frozen=True, repr=False)
class Weight(Constraint):
    """How much a change of the feature counts in the distance; 1 is the default."""

    weight: float
    kind: ClassVar[str] = "weight"


def weight(feature: Hashable, weight: float) -> Constraint:
    """How much a change of the feature counts in the distance.

    Parameters
    ----------
    feature
        Name of a column.
    weight
        Its weight, at least 0. Features without one have weight 1.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``. It needs the Gower distance.

    Raises
    ------
    ConstraintError
        If ``weight`` is not a finite number of at least 0.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.weight("salary", 5)
    weight('salary', weight=5.0)
    """
    amount = check_amount(f"weight {quote_name(feature)}", "weight", weight)
    return Weight(list_features("weight", feature), amount)


@dataclass(frozen=True, repr=False)
class Step(Constraint):
    """Differences smaller than this do not count as a change."""

    step: Any
    kind: ClassVar[str] = "step"

    def check(self, features: Sequence[Feature]) -> None:
        """The feature must be numeric, and the step above 0."""
        check_numeric(self.quoted, features[0])
        if not self.size(features[0]) > 0:
            raise ConstraintError(
                f"{self.quoted}: the step must be above 0, got {shorten(self.step)}."
            )

    def size(self, feature: Feature) -> float:
        """The step as a number, in the unit of the feature."""
        return to_length(self.quoted, feature, self.step)


def step(feature: Hashable, step: Amount) -> Constraint:
    """Differences smaller than a step do not count as a change: the own value is kept.

    Parameters
    ----------
    feature
        Name of a numeric column, dates and durations included.
    step
        The smallest change: a number above 0 or, for dates and durations, a length of time such as
        ``"30 days"``.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Raises
    ------
    ConstraintError
        At fit, if the feature is not numeric or the step is not above 0.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.step("salary", 500)
    step('salary', step=500)
    """
    return Step(list_features("step", feature), step)


def number_levels(series: pd.Series[Any]) -> tuple[IntArray, list[Any]]:
    """Number of each cell's level, and the levels, None for missing."""
    numbers: dict[Any, int] = {}
    places = [numbers.setdefault(level, len(numbers)) for level in plain_cells(series)]
    return np.array(places, dtype=np.int64), list(numbers)


def closest_level(level: object, feature: Feature) -> str:
    """A sentence that suggests a level, or nothing."""
    return did_you_mean(level, islice(feature.level_codes, MAX_COMPARED), LIKE_A_LEVEL)


def check_numeric(title: str, feature: Feature) -> None:
    """Raise unless the feature is numeric."""
    if feature.kind != "numeric":
        raise ConstraintError(
            f"{title}: {shorten(feature.name)} is categorical, but this constraint needs a numeric "
            "feature. Use levels or transitions."
        )


def check_levels(title: str, feature: Feature, named: Iterable[Any]) -> None:
    """Raise unless the feature is categorical and has these levels."""
    if feature.kind != "categorical":
        raise ConstraintError(
            f"{title}: {shorten(feature.name)} is numeric, but this constraint needs a categorical "
            "feature. Use between, change, or a relation such as 'months in [12, 24]'."
        )
    known = feature.level_codes
    unknown = [level for level in named if level is not None and level not in known]
    if unknown:
        raise ConstraintError(
            f"{title}: {shorten(unknown)} are not levels of {shorten(feature.name)}, which has "
            f"{len(known)} others in the training data.{closest_level(unknown[0], feature)} "
            "Check how they are written."
        )


def _are_among(levels: Sequence[Any], listed: Iterable[Any]) -> BoolArray:
    """Whether each level is listed."""
    known = set(listed)
    return np.array([level in known for level in levels], dtype=bool)


BUILDERS = (
    *(between, change, discouraged, levels, never_advise, not_down, not_up, only_down, only_up),
    *(step, transitions, weight),
)
