"""Constraints on people and whole rows: what each means, and the functions that make them.

They look at which features change, or at all values of the row; some are for some people only. A
column that follows from others by a formula is one of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd

from ..errors import ConstraintError, McceWarning, shorten
from ..kernels import BoolArray, FloatArray, check_cancellation
from ..tables.columns import is_time
from ..tables.features import ULPS, Feature, epsilon
from ..tables.schema import EncodedRows
from .conditions import Condition, Expression, Formula, to_floats
from .constraint import (
    Constraint,
    ProposedRows,
    RowConstraint,
    check_amount,
    list_features,
    list_values,
    quote_name,
)

Where: TypeAlias = (
    "str | Callable[[Any], Any] | Sequence[bool] | np.ndarray | pd.Series[bool] | None"
)
# Formulas that hold in a smaller share of the training rows are taken for mistakes.
MIN_SHARE = 0.5


@dataclass(frozen=True, repr=False)
class Frozen(Constraint):
    """Features that cannot change for some people; for everybody if ``where`` is None."""

    where: Any = None
    kind: ClassVar[str] = "frozen"
    is_variadic: ClassVar[bool] = True

    @property
    def expression(self) -> Expression | None:
        """Whom it is for, if that is a condition."""
        return self.where if isinstance(self.where, Condition) else None

    def keeps(self, rows: ProposedRows) -> BoolArray:
        """Rows of people whom it is not for, and those that change none of its features."""
        changed = rows.changed(_positions(self, rows))
        return ~changed.any(axis=0) | ~self.applies_to(rows.factuals)[rows.owner]

    def applies_to(self, people: EncodedRows) -> BoolArray:
        """Which people it is for; a function gets them in the user's type of frame."""
        if self.where is None:
            return np.ones(len(people), dtype=bool)
        # A category or object of pandas that stands for numbers is compared as numbers.
        converted = people.adapter.needs_conversion
        frame = people.as_given() if converted else people.in_given_order(people.frame)
        if isinstance(self.where, Condition):
            return self.where(frame)
        if not callable(self.where):
            return _to_booleans(self.quoted, self.where, people.index)
        rows = people.adapter.rows_to_native(frame.copy().set_axis(people.index))
        return _call(self.quoted, self.where, rows, people.index)


def frozen(*features: Hashable, where: Where = None) -> Constraint:
    """Features cannot change, for everybody or for some people only.

    Unlike an immutable feature, a frozen one is still modelled as something that other people can
    change. Freezing an immutable feature changes nothing.

    Parameters
    ----------
    *features
        Names of the columns.
    where
        Whom the constraint is for; None is everybody. A condition such as ``"age > 60"``, a
        function from the frame to explain to one True or False per person, or a list, array or
        Series of them.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Raises
    ------
    ConstraintError
        If no feature is named, or ``where`` is a string that is not a condition.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.frozen("housing", "job", where="age > 60")
    frozen('housing', 'job', where='age > 60')
    """
    # Read here, so that it raises now rather than when people are explained.
    condition = Condition(where) if isinstance(where, str) else where
    if isinstance(condition, Condition) and condition.own_names:
        name = next(iter(condition.own_names))
        raise ConstraintError(
            f"frozen: the condition {shorten(where)} compares old values, but `where` sees only "
            f"the person's current row. Write {shorten(name)}, not {shorten('old.' + name)}."
        )
    return Frozen(list_features("frozen", *features), condition)


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
        changed = rows.changed(_positions(self, rows) or rows.factuals.schema.mutable.tolist())
        return np.asarray(changed.sum(axis=0) <= self.n)


def max_changes(n: int, features: Iterable[Hashable] = ()) -> Constraint:
    """At most ``n`` features may change.

    Parameters
    ----------
    n
        The largest number of changed features, at least 1.
    features
        Names of the columns to count; none means all.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Raises
    ------
    ConstraintError
        If ``n`` is not a whole number of at least 1, or ``features`` is not a list.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.max_changes(3)
    max_changes(n=3)
    >>> constraints.max_changes(1, ["salary", "savings"])
    max_changes(n=1, features=['salary', 'savings'])
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ConstraintError(
            f"max_changes: n must be a whole number of at least 1, got {shorten(n)}."
        )
    return MaxChanges(list_values("max_changes", "features", features), int(n))


@dataclass(frozen=True, repr=False)
class Together(RowConstraint):
    """Either all of these features change or none does."""

    kind: ClassVar[str] = "together"
    is_variadic: ClassVar[bool] = True

    def keeps(self, rows: ProposedRows) -> BoolArray:
        """Rows that change all or none."""
        changed = rows.changed(_positions(self, rows))
        return np.asarray(changed.all(axis=0) | ~changed.any(axis=0))


def together(*features: Hashable) -> Constraint:
    """Either all of these features change or none does.

    Parameters
    ----------
    *features
        Names of two or more columns.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Raises
    ------
    ConstraintError
        If fewer than two features are named.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.together("education", "age")
    together('education', 'age')
    """
    if len(features) < 2:
        raise ConstraintError(
            f"together: name at least two features, got {shorten(list(features))}."
        )
    return Together(list_features("together", *features))


@dataclass(frozen=True, repr=False)
class DeclaredRelation(RowConstraint):
    """A condition that every counterfactual must meet, whatever it changes."""

    holds: Any
    title: str
    kind: ClassVar[str] = "relation"

    @property
    def name(self) -> str:
        """The name that the user gave it."""
        return self.title

    @property
    def expression(self) -> Expression | None:
        """The condition, if it is no function."""
        return self.holds if isinstance(self.holds, Condition) else None

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """Its name and its condition, as a string if it was one."""
        holds = self.holds.text if isinstance(self.holds, Condition) else self.holds
        return self.kind, {"name": self.title, "holds": holds}

    def keeps(self, rows: ProposedRows) -> BoolArray:
        """Rows that meet it, given their person's own row.

        A function gets the type of frame of the training data.
        """
        people, frame = rows.factuals, rows.frame
        if isinstance(self.holds, Condition):
            own = people.frame[list(self.holds.own_names)].iloc[rows.owner]
            return self.holds(frame, own)
        given = people.schema.adapter.rows_for_predictor(frame.copy())
        return _call(f"relation {shorten(self.title)}", self.holds, given, frame.index)


def relation(name: str, holds: str | Callable[[Any], Any]) -> Constraint:
    """A condition that every counterfactual must meet, whatever it changes.

    Parameters
    ----------
    name
        A name for the condition, shown where it is the reason that somebody has no counterfactual.
    holds
        A condition such as ``"years_employed <= age - 16"``, or a function from a frame to one True
        or False per row. A comparison with a missing value does not hold. In a condition,
        ``old.age`` is the person's own age: ``"if education > old.education then age > old.age"``.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Raises
    ------
    ConstraintError
        If ``name`` is empty, or ``holds`` is neither a condition nor a function.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.relation("works from 16 on", "years_employed <= age - 16")
    relation(name='works from 16 on', holds='years_employed <= age - 16')
    """
    if not isinstance(name, str) or not name:
        raise ConstraintError(f"relation: name must be a non-empty string, got {shorten(name)}.")
    if isinstance(holds, str):
        condition = Condition(holds)
        return DeclaredRelation(tuple(condition.names), condition, name)
    if not callable(holds):
        raise ConstraintError(
            f"relation {shorten(name)}: holds must be a condition such as 'debt <= salary', or a "
            f"function of a frame, got {shorten(holds)}."
        )
    return DeclaredRelation((), holds, name)


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
    def expression(self) -> Expression | None:
        """The formula."""
        return self.formula

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


def derived(feature: Hashable, formula: str, *, tolerance: float | None = None) -> Constraint:
    """The column follows from others by a formula.

    In every counterfactual it equals the formula, or differs from it by as much as in the person's
    own row. Where the formula is undefined, because a value is missing, the column may be missing
    too. See :class:`mcce.Search` for ``consequences``: searches beyond the paper recompute the
    column when a change affects it.

    Parameters
    ----------
    feature
        Name of a numeric column.
    formula
        A number computed from other columns of numbers and booleans, such as ``"months * price"``:
        written as a condition is, with comparisons that count as 1 or 0, as in
        ``"(age >= 65) * 100"``.
    tolerance
        How much the column may differ from the formula; None: half the unit of its last decimal
        place in training.

    Returns
    -------
    Constraint
        The constraint, for ``MCCE(constraints=[...])``.

    Raises
    ------
    ConstraintError
        If ``formula`` is not a formula or reads the column itself, or ``tolerance`` is not a finite
        number of at least 0. At fit, if a column does not hold numbers, or columns are derived from
        each other.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.derived("total", "months * price")
    derived('total', formula='months * price')
    """
    title = f"derived {quote_name(feature)}"
    if not isinstance(formula, str):
        raise ConstraintError(
            f"{title}: the formula must be a string such as 'months * price', got "
            f"{shorten(formula)}."
        )
    parsed = Formula(formula)
    if feature in parsed.names:
        raise ConstraintError(
            f"{title}: the formula {shorten(formula)} reads the column that it computes. Write it "
            "in terms of other columns."
        )
    if tolerance is not None:
        tolerance = check_amount(title, "tolerance", tolerance)
    return Derived((*list_features("derived", feature), *parsed.names), parsed, tolerance)


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


def _positions(constraint: Constraint, rows: ProposedRows) -> list[int]:
    position_of = rows.factuals.schema.position_of
    return [position_of[name] for name in constraint.features]


def _call(title: str, function: Callable[[Any], Any], rows: Any, index: pd.Index[Any]) -> BoolArray:
    """What a user's function says of rows of its own, which it may write to."""
    # Not every function of users can handle a frame without rows.
    if not len(index):
        return np.zeros(0, dtype=bool)
    check_cancellation()
    try:
        holds = function(rows)
    except Exception as error:
        failure = error
    else:
        return _to_booleans(title, holds, index)
    raise ConstraintError(
        f"{title}: the function raised a {type(failure).__name__}. Its message may quote data, so "
        "it is not shown: see the attribute original of this error."
    ).keeping(failure)


def _to_booleans(title: str, holds: Any, index: pd.Index[Any]) -> BoolArray:
    """One True or False per row; missing is False."""
    if np.ndim(holds) != 1:
        raise ConstraintError(
            f"{title}: expected one True or False for each row, got {np.ndim(holds)} dimensions."
        )
    if isinstance(holds, pd.Series) and not holds.index.equals(index):
        raise ConstraintError(
            f"{title}: expected one True or False for each row, got a Series with another index "
            "than the rows. Give it the same index, or use a plain list or array."
        )
    column = pd.Series(holds if isinstance(holds, pd.Series) else np.asarray(holds))
    if len(column) != len(index) or not pd.api.types.is_bool_dtype(column.dtype):
        raise ConstraintError(
            f"{title}: expected one True or False for each of {len(index)} rows, got {len(column)} "
            f"values of dtype {column.dtype}."
        )
    return column.fillna(False).to_numpy(dtype=bool)


BUILDERS = (derived, frozen, max_changes, relation, together)
