"""What each kind of constraint means; formulas are in ``derived``.

A constraint on a feature says what a person's own value may become: for numbers it gives the lowest
and the highest new value, for levels a table of allowed pairs. A feature may always keep its value.
Dates and durations are numbers in the unit of the training data. Numbers that float64 cannot hold
exactly are compared as Python integers. A constraint on a row looks at which features change, or at
all values of the row. Weights and steps change what counts as close.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..errors import ConstraintError, did_you_mean, shorten
from ..kernels import BoolArray, IntArray
from ..tables.columns import EXACT_IN_FLOAT64, as_comparable, is_missing, is_time, plain, unit_of
from ..tables.features import Feature
from ..tables.schema import EncodedRows
from .conditions import Condition
from .constraint import Constraint, ProposedRows, RowConstraint
from .derived import Derived

# Only a level that was nearly spelled out is suggested: levels are training data. It is looked for
# among this many.
LIKE_A_LEVEL, MAX_COMPARED = 0.8, 10_000


class FeatureConstraint(Constraint):
    """Limits what a feature may become, given the person's own value."""

    can_become_missing: ClassVar[bool] = False  # for numbers; levels say so in their pairs

    def bounds(self, feature: Feature, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest new number for each own number (NaN if it is missing)."""
        raise NotImplementedError

    def pairs(self, feature: Feature, own: Sequence[Any], new: Sequence[Any]) -> BoolArray:
        """Whether each own level (rows) may become each new level (columns)."""
        raise NotImplementedError

    def keeps(self, rows: ProposedRows) -> BoolArray:
        """Rows that leave the feature as it is, or change it as it may."""
        schema = rows.factuals.schema
        at = schema.position_of[self.features[0]]
        keeps, moved = np.ones(len(rows.frame), dtype=bool), np.flatnonzero(rows.changed([at])[0])
        if moved.size:
            own = rows.factuals.frame.iloc[:, at].iloc[rows.owner[moved]]
            keeps[moved] = self.allows(schema.features[at], own, rows.frame.iloc[moved, at])
        return keeps

    def allows(self, feature: Feature, own: pd.Series[Any], new: pd.Series[Any]) -> BoolArray:
        """Whether each own value may become the new value beside it."""
        if feature.kind == "categorical":
            (before, own_levels), (after, new_levels) = number_levels(own), number_levels(new)
            return self.pairs(feature, own_levels, new_levels)[before, after]
        unit = feature.table.dtype
        numbers = as_comparable(new, unit)
        low, high = self.bounds(feature, as_comparable(own, unit))
        within = (numbers >= low) & (numbers <= high)
        return np.where(numbers != numbers, self.can_become_missing, within)


@dataclass(frozen=True, repr=False)
class Direction(FeatureConstraint):
    """A feature may only rise or only fall: by number, or by rank of its level."""

    up: bool
    strict: bool
    order: tuple[Any, ...] | None = None
    kind: ClassVar[str] = "direction"

    @property
    def name(self) -> str:
        """Such as ``only_up age``."""
        return f"{self.builder_call()[0]} {self.features[0]}"

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """One of the four directions, with its order if one was given."""
        way = "up" if self.up == self.strict else "down"
        order = {} if self.order is None else {"order": list(self.order)}
        return f"{'only' if self.strict else 'not'}_{way}", {"feature": self.features[0]} | order

    def check(self, features: Sequence[Feature]) -> None:
        """The feature must be numeric or ordered, or ``order`` must name all its levels."""
        (feature,) = features
        if feature.kind == "numeric":
            if self.order is not None:
                raise ConstraintError(
                    f"{self.quoted}: {shorten(feature.name)} is numeric and needs no order. "
                    "Leave it out."
                )
        elif self.order is None and not feature.ordered:
            raise ConstraintError(
                f"{self.quoted}: the levels of {shorten(feature.name)} have no order. Pass all "
                f"{len(feature.level_codes)} of them, lowest first: order=[...]."
            )
        elif self.order is not None:
            _check_levels(self.quoted, feature, self.order)
            given = set(self.order)
            n_absent = sum(level not in given for level in feature.level_codes)
            if n_absent:
                raise ConstraintError(
                    f"{self.quoted}: order leaves out {n_absent} of the {len(feature.level_codes)} "
                    f"levels of {shorten(feature.name)}. Name all of them."
                )

    def bounds(self, feature: Feature, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From the own value up, or down; a missing one may become any number unless ``strict``."""
        missing = own != own
        low_if_missing = math.inf if self.strict else -math.inf
        low = np.where(missing, low_if_missing, own if self.up else -math.inf)
        high = np.where(missing, -low_if_missing, math.inf if self.up else own)
        return low, high

    @property
    def can_become_missing(self) -> bool:  # type: ignore[override]
        """Whether a number may become missing, which is neither up nor down."""
        return not self.strict

    def pairs(self, feature: Feature, own: Sequence[Any], new: Sequence[Any]) -> BoolArray:
        """By rank; a level without a rank cannot change."""
        order = self.order or tuple(feature.table.cat.categories)
        rank = {level: float(place) for place, level in enumerate(order)}
        before = np.array([rank.get(level, math.nan) for level in own])[:, None]
        after = np.array([rank.get(level, math.nan) for level in new])[None, :]
        allowed = after >= before if self.up else after <= before
        free = np.array([level is MissingLevel for level in own], dtype=bool)[:, None]
        free = free | np.array([level is MissingLevel for level in new], dtype=bool)[None, :]
        return allowed | (free & (not self.strict))


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

    def bounds(self, feature: Feature, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same for everybody."""
        low, high = self._ends(feature)
        return _repeat(low, own.size), _repeat(high, own.size)

    def _ends(self, feature: Feature) -> tuple[float, float]:
        low = -math.inf if self.low is None else _number(self.quoted, feature, self.low)
        high = math.inf if self.high is None else _number(self.quoted, feature, self.high)
        return low, high


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
        for end in (self.at_least, self.at_most):
            if end is not None and _percent(end) is not None and is_time(feature.table.dtype):
                raise ConstraintError(
                    f"{self.quoted}: a date or duration has no percentage, got {shorten(end)}. "
                    "Pass a length of time such as '30 days'."
                )
            if end is not None and _percent(end) is None:
                to_length(self.quoted, feature, end)
        shares = [_percent(end) is not None for end in (self.at_least, self.at_most)]
        low, high = self.bounds(feature, np.ones(1))
        if shares[0] == shares[1] and not low[0] <= high[0]:
            raise ConstraintError(
                f"{self.quoted}: at_least={shorten(self.at_least)} is above "
                f"at_most={shorten(self.at_most)}. Swap them."
            )

    def bounds(self, feature: Feature, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The own value plus each end; a missing value may become no number."""
        missing = own != own
        low = np.where(missing, math.inf, self._end(feature, own, self.at_least, -math.inf))
        return low, np.where(missing, -math.inf, self._end(feature, own, self.at_most, math.inf))

    def _end(self, feature: Feature, own: np.ndarray, end: Any, free: float) -> np.ndarray | float:
        if end is None:
            return free
        percent = _percent(end)
        amount = to_length(self.quoted, feature, end) if percent is None else None
        return moved(own, amount, percent)


@dataclass(frozen=True, repr=False)
class Levels(FeatureConstraint):
    """A new level must be one of these; None among them allows missing."""

    allowed: tuple[Any, ...]
    kind: ClassVar[str] = "levels"

    def check(self, features: Sequence[Feature]) -> None:
        """The feature must be categorical, and its levels must occur in the training data."""
        (feature,) = features
        _check_categorical(self.quoted, feature)
        _check_levels(self.quoted, feature, self.allowed)

    def pairs(self, feature: Feature, own: Sequence[Any], new: Sequence[Any]) -> BoolArray:
        """The same for everybody."""
        allowed = set(self.allowed)
        return np.tile([_listed(level, allowed) for level in new], (len(own), 1))


@dataclass(frozen=True, repr=False)
class Transitions(FeatureConstraint):
    """A level may only become those listed for it; a level that is not listed cannot change."""

    allowed: tuple[tuple[Any, tuple[Any, ...]], ...]
    kind: ClassVar[str] = "transitions"

    def check(self, features: Sequence[Feature]) -> None:
        """The feature must be categorical, and its levels must occur in the training data."""
        (feature,) = features
        _check_categorical(self.quoted, feature)
        for level, after in self.allowed:
            _check_levels(self.quoted, feature, [level, *after])

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """The allowed levels as a mapping."""
        return self.kind, {"feature": self.features[0], "allowed": dict(self.allowed)}

    def pairs(self, feature: Feature, own: Sequence[Any], new: Sequence[Any]) -> BoolArray:
        """By the levels listed for the own level."""
        after = {MissingLevel if level is None else level: set(to) for level, to in self.allowed}
        rows = [[_listed(to, after.get(level, ())) for to in new] for level in own]
        return np.array(rows, dtype=bool).reshape(len(own), len(new))


@dataclass(frozen=True, repr=False)
class NeverAdvised(FeatureConstraint):
    """A feature may not change to these levels, or not in this direction."""

    levels: tuple[Any, ...]
    direction: str | None
    kind: ClassVar[str] = "never_advise"
    can_become_missing: ClassVar[bool] = True

    def check(self, features: Sequence[Feature]) -> None:
        """The levels must occur in the training data; a direction needs numbers or an order."""
        _check_avoided(self, features)

    def bounds(self, feature: Feature, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As far as the other direction goes."""
        return self._other_direction.bounds(feature, own)

    def pairs(self, feature: Feature, own: Sequence[Any], new: Sequence[Any]) -> BoolArray:
        """All other levels, or those of the other direction."""
        if self.direction is not None:
            return self._other_direction.pairs(feature, own, new)
        return np.tile([not _listed(level, self.levels) for level in new], (len(own), 1))

    @property
    def _other_direction(self) -> Direction:
        return Direction(self.features, up=self.direction == "down", strict=False)


@dataclass(frozen=True, repr=False)
class Discouraged(Constraint):
    """Changes to these levels, or in this direction, are answers only where there is no other."""

    levels: tuple[Any, ...]
    direction: str | None
    kind: ClassVar[str] = "discouraged"

    @property
    def as_never(self) -> NeverAdvised:
        """The constraint that rules these changes out."""
        return NeverAdvised(self.features, self.levels, self.direction, source=self.source)

    def check(self, features: Sequence[Feature]) -> None:
        """As for a change that is never advised."""
        _check_avoided(self, features)


@dataclass(frozen=True, repr=False)
class Frozen(Constraint):
    """Features that cannot change for some people; for everybody if ``where`` is None."""

    where: Any = None
    kind: ClassVar[str] = "frozen"

    @property
    def parsed(self) -> Condition | None:
        """Whom it is for, if that is a string."""
        return Condition(self.where) if isinstance(self.where, str) else None

    def keeps(self, rows: ProposedRows) -> BoolArray:
        """Rows of people whom it is not for, and those that change none of its features."""
        position_of = rows.factuals.schema.position_of
        changed = rows.changed([position_of[name] for name in self.features])
        return ~changed.any(axis=0) | ~self.applies_to(rows.factuals)[rows.owner]

    def applies_to(self, people: EncodedRows) -> BoolArray:
        """Which people it is for; a function gets them in the user's type of frame."""
        if self.where is None:
            return np.ones(len(people), dtype=bool)
        # A category or object of pandas that stands for numbers is compared as numbers.
        converted = people.adapter.needs_conversion
        frame = people.as_given() if converted else people.in_given_order(people.frame)
        if isinstance(self.where, str):
            return Condition(self.where)(frame)
        if callable(self.where) and not len(frame):
            return np.zeros(0, dtype=bool)
        if callable(self.where):
            rows = people.adapter.rows_to_native(frame.copy().set_axis(people.index))
            holds = _call_condition(self.quoted, self.where, rows)
        else:
            holds = self.where
        if isinstance(holds, pd.Series) and not holds.index.equals(people.index):
            raise ConstraintError(
                f"{self.quoted}: where is a Series with another index than the frame to explain. "
                "Give it the same index, or pass a plain list or array."
            )
        return _to_booleans(self.quoted, holds, len(frame))


@dataclass(frozen=True, repr=False)
class MaxChanges(RowConstraint):
    """At most ``n`` of these features may change; no features means all."""

    n: int
    kind: ClassVar[str] = "max_changes"

    @property
    def name(self) -> str:
        """Such as ``max_changes 2 of age, salary``."""
        among = f" of {', '.join(str(name) for name in self.features)}" if self.features else ""
        return f"max_changes {self.n}{among}"

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """Its number and its features."""
        return self.kind, {"n": self.n, "features": list(self.features)}

    def keeps(self, rows: ProposedRows) -> BoolArray:
        """Rows with few enough changes."""
        schema = rows.factuals.schema
        named = [schema.position_of[name] for name in self.features]
        changed = rows.changed(named or schema.mutable.tolist())
        return np.asarray(changed.sum(axis=0) <= self.n)


@dataclass(frozen=True, repr=False)
class Together(RowConstraint):
    """Either all of these features change or none does."""

    kind: ClassVar[str] = "together"

    def keeps(self, rows: ProposedRows) -> BoolArray:
        """Rows that change all or none."""
        position_of = rows.factuals.schema.position_of
        changed = rows.changed([position_of[name] for name in self.features])
        return np.asarray(changed.all(axis=0) | ~changed.any(axis=0))


@dataclass(frozen=True, repr=False)
class DeclaredRelation(RowConstraint):
    """A condition that every counterfactual must meet, whatever it changes."""

    condition: Any
    title: str
    kind: ClassVar[str] = "relation"

    @property
    def name(self) -> str:
        """The name that the user gave it."""
        return self.title

    @property
    def parsed(self) -> Condition | None:
        """The condition, if it is a string."""
        return self.condition if isinstance(self.condition, Condition) else None

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """Its name and its condition, as a string if it was one."""
        text = self.condition if self.parsed is None else self.parsed.text
        return self.kind, {"name": self.title, "holds": text}

    def keeps(self, rows: ProposedRows) -> BoolArray:
        """Rows that meet it, given their person's own row.

        A function gets the type of frame of the training data.
        """
        people, frame = rows.factuals, rows.frame
        if self.parsed is not None:
            own = people.frame[list(self.parsed.own_names)].iloc[rows.owner]
            return self.parsed(frame, own)
        # Not every function of users can handle a frame without rows.
        if frame.empty:
            return np.zeros(len(frame), dtype=bool)
        title = f"relation {shorten(self.title)}"
        holds = _call_condition(
            title, self.condition, people.schema.adapter.rows_for_predictor(frame.copy())
        )
        if isinstance(holds, pd.Series) and not holds.index.equals(frame.index):
            raise ConstraintError(
                f"{title}: the function returned a Series with another index than its rows. "
                "Return one True or False per row, in the order of the rows."
            )
        return _to_booleans(title, holds, len(frame))


@dataclass(frozen=True, repr=False)
class Weight(Constraint):
    """How much a change of the feature counts in the distance; 1 is the default."""

    weight: float
    kind: ClassVar[str] = "weight"


@dataclass(frozen=True, repr=False)
class Step(Constraint):
    """Differences smaller than this do not count as a change."""

    step: Any
    kind: ClassVar[str] = "step"

    def check(self, features: Sequence[Feature]) -> None:
        """The feature must be numeric, and the step above 0."""
        (feature,) = features
        check_numeric(self.quoted, feature)
        if not self.size(feature) > 0:
            raise ConstraintError(
                f"{self.quoted}: the step must be above 0, got {shorten(self.step)}."
            )

    def keeps(self, rows: ProposedRows) -> BoolArray:
        """All rows: it says what counts as a change, not what is allowed."""
        return np.ones(rows.owner.size, dtype=bool)

    def size(self, feature: Feature) -> float:
        """The step as a float, in the unit of the feature."""
        return to_length(self.quoted, feature, self.step)


CONSTRAINT_KINDS: tuple[type[Constraint], ...] = (
    Direction,
    Between,
    ChangeBetween,
    Levels,
    Transitions,
    NeverAdvised,
    Discouraged,
    Frozen,
    MaxChanges,
    Together,
    DeclaredRelation,
    Derived,
    Weight,
    Step,
)


def _call_condition(title: str, condition: Callable[[Any], Any], rows: Any) -> Any:
    """What a user's function returns for rows of its own, which it may write to."""
    try:
        return condition(rows)
    except Exception as error:
        failure = error
    raise ConstraintError(
        f"{title}: the function raised a {type(failure).__name__}. Its message may quote data, so "
        "it is not shown: see the attribute original of this error."
    ).keeping(failure)


def _to_booleans(title: str, holds: Any, n_rows: int) -> BoolArray:
    """One True or False per row; missing is False."""
    if np.ndim(holds) != 1:
        raise ConstraintError(
            f"{title}: expected one True or False for each row, got {np.ndim(holds)} dimensions."
        )
    column = pd.Series(holds if isinstance(holds, pd.Series) else np.asarray(holds))
    if len(column) != n_rows or not pd.api.types.is_bool_dtype(column.dtype):
        raise ConstraintError(
            f"{title}: expected one True or False for each of {n_rows} rows, got {len(column)} "
            f"values of dtype {column.dtype}."
        )
    return column.fillna(False).to_numpy(dtype=bool)


class MissingLevel:
    """The level of a missing cell; NaN does not equal itself."""


def number_levels(series: pd.Series[Any]) -> tuple[IntArray, list[Any]]:
    """Number of each cell's level, and the levels."""
    cells = plain(series).copy()
    cells[is_missing(series)] = MissingLevel
    numbers: dict[Any, int] = {}
    places = [numbers.setdefault(level, len(numbers)) for level in cells.tolist()]
    return np.array(places, dtype=np.int64), list(numbers)


def _listed(level: Any, allowed: Container[Any]) -> bool:
    return None in allowed if level is MissingLevel else level in allowed


def check_numeric(title: str, feature: Feature) -> None:
    """Raise unless the feature is numeric."""
    if feature.kind != "numeric":
        raise ConstraintError(
            f"{title}: {shorten(feature.name)} is categorical, but this constraint needs a numeric "
            "feature. Use levels or transitions."
        )


def _check_avoided(avoided: NeverAdvised | Discouraged, features: Sequence[Feature]) -> None:
    (feature,) = features
    if avoided.direction is None:
        _check_categorical(avoided.quoted, feature)
        _check_levels(avoided.quoted, feature, avoided.levels)
    elif feature.kind != "numeric" and not feature.ordered:
        raise ConstraintError(
            f"{avoided.quoted}: the levels of {shorten(feature.name)} have no order. List them "
            "instead: levels=[...]."
        )


def _check_categorical(title: str, feature: Feature) -> None:
    if feature.kind != "categorical":
        raise ConstraintError(
            f"{title}: {shorten(feature.name)} is numeric, but this constraint needs a categorical "
            "feature. Use between, change, or a relation such as 'months in [12, 24]'."
        )


def _check_levels(title: str, feature: Feature, named: Iterable[Any]) -> None:
    known = feature.level_codes
    unknown = [level for level in named if level is not None and level not in known]
    if unknown:
        raise ConstraintError(
            f"{title}: {shorten(unknown)} are not levels of {shorten(feature.name)}, which has "
            f"{len(known)} others in the training data.{closest_level(unknown[0], feature)} "
            "Check how they are written."
        )


def closest_level(level: object, feature: Feature) -> str:
    """A sentence that suggests a level, or nothing."""
    return did_you_mean(level, islice(feature.level_codes, MAX_COMPARED), LIKE_A_LEVEL)


def _number(title: str, feature: Feature, value: Any) -> float:
    """A value of the feature as a number, dates and durations in its unit."""
    dtype = feature.table.dtype
    try:
        if is_time(dtype) == _is_number(value):
            raise TypeError(
                "it needs a date or duration" if is_time(dtype) else "it needs a number"
            )
        cell = pd.Series([value]).astype(dtype) if is_time(dtype) else None
        number = as_comparable(cell)[0] if cell is not None else _plain_number(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConstraintError(
            f"{title}: {shorten(value)} is not a value of {shorten(feature.name)}: "
            f"{shorten(error, 150)}."
        ) from None
    if number != number:
        raise ConstraintError(
            f"{title}: {shorten(value)} is not a value of {shorten(feature.name)}. Pass a number "
            "or a date."
        )
    return number


def to_length(title: str, feature: Feature, value: Any) -> float:
    """A difference between two values of the feature as a number, in its unit."""
    if not is_time(feature.table.dtype):
        return _number(title, feature, value)
    try:
        if _is_number(value):
            raise TypeError("a number has no unit")
        length = pd.Timedelta(value)
        if pd.isna(length):
            raise ValueError("missing")
        exact = Fraction(length.as_unit("ns").value, unit_of(feature.table.dtype))
    except (TypeError, ValueError, OverflowError):
        raise ConstraintError(
            f"{title}: {shorten(value)} is not a length of time such as '30 days' that can be "
            f"added to {shorten(feature.name)}."
        ) from None
    return exact.numerator if exact.denominator == 1 else float(exact)


def _repeat(number: float, times: int) -> np.ndarray:
    """An array of one number, in float64 if that holds it exactly."""
    exact = isinstance(number, float) or abs(number) <= EXACT_IN_FLOAT64
    return np.full(times, number, dtype=np.float64 if exact else object)


def _is_number(value: Any) -> bool:
    # NumPy counts its durations among the integers.
    others = (bool, np.timedelta64)
    return isinstance(value, (int, float, np.number)) and not isinstance(value, others)


def _plain_number(value: Any) -> float:
    """A number of NumPy or Python as one of Python; raises if it is too large for a float."""
    number: float = value.item() if isinstance(value, np.generic) else value
    float(number)
    return number


def _percent(value: Any) -> float | None:
    """A string such as ``"20 %"`` as 20; None for anything else."""
    if not isinstance(value, str) or not value.strip().endswith("%"):
        return None
    try:
        percent = float(value.strip()[:-1])
    except ValueError:
        percent = math.nan
    if not math.isfinite(percent):
        raise ConstraintError(f"{shorten(value)} is not a percentage such as '20 %'.")
    return percent


def moved(own: np.ndarray, amount: float | None, percent: float | None = None) -> np.ndarray:
    """Each own number plus an amount, or plus a percentage of its size.

    Exact where float64 might not hold it. Each number decides that for itself, so that the result
    does not depend on whose other numbers are in the array.
    """
    numbers = own.astype(np.float64)
    with np.errstate(over="ignore"):
        # Dividing last keeps whole amounts whole: 57 % of 100 is 57, not a little less.
        change = np.abs(numbers) * percent / 100 if amount is None else float(amount)
        ends = numbers + change
    largest = np.maximum(np.abs(numbers), np.abs(ends))
    large = (largest >= EXACT_IN_FLOAT64) | (np.abs(change) >= EXACT_IN_FLOAT64)
    large &= np.isfinite(numbers) & (amount is None or math.isfinite(amount))
    if not large.any():
        return ends
    exact = ends.astype(object)
    # By its digits: the float 0.7 is a little less than 0.7.
    share = Fraction(repr(percent or 0.0)) / 100
    for place in np.flatnonzero(large):
        number = Fraction(own[place])
        exact[place] = number + (abs(number) * share if amount is None else Fraction(amount))
    return exact
