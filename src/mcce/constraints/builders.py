"""Functions that make constraints, on single features and then on rows; by name at the end.

Always true: no counterfactual breaks a constraint, and a feature may always keep its value. Weights
and steps only change what counts as close.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from ..errors import ConstraintError, shorten
from .conditions import Condition, Formula
from .constraint import (
    OF_SEVERAL_FEATURES,
    Constraint,
    list_values,
    one_feature,
    quote_name,
    several_features,
)
from .derived import Derived
from .kinds import (
    Between,
    ChangeBetween,
    DeclaredRelation,
    Direction,
    Discouraged,
    Frozen,
    Levels,
    MaxChanges,
    NeverAdvised,
    Step,
    Together,
    Transitions,
    Weight,
)

Value: TypeAlias = float | str | datetime.date | datetime.timedelta | np.generic
Listed: TypeAlias = Iterable[Hashable | None] | None
Direct: TypeAlias = Literal["up", "down"] | None
Amount: TypeAlias = float | str | datetime.timedelta | np.timedelta64
Where: TypeAlias = (
    "str | Callable[[Any], Any] | Sequence[bool] | np.ndarray | pd.Series[bool] | None"
)


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
    return Direction(one_feature("only_up", feature), up=True, strict=True, order=_order(order))


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
    return Direction(one_feature("only_down", feature), up=False, strict=True, order=_order(order))


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
    return Direction(one_feature("not_down", feature), up=True, strict=False, order=_order(order))


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
    return Direction(one_feature("not_up", feature), up=False, strict=False, order=_order(order))


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
    return Between(one_feature("between", feature), low, high)


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
    return ChangeBetween(one_feature("change", feature), at_least, at_most)


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
    return Levels(
        one_feature("levels", feature),
        list_values(f"levels {quote_name(feature)}", "allowed", allowed),
    )


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
    listed = [
        (level, list_values(title, shorten(level, 40), after)) for level, after in allowed.items()
    ]
    return Transitions(one_feature("transitions", feature), tuple(listed))


def never_advise(
    feature: Hashable, levels: Listed = None, *, direction: Direct = None
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


def discouraged(
    feature: Hashable, levels: Listed = None, *, direction: Direct = None
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
    # Parsed here, so that it raises now rather than when people are explained.
    if isinstance(where, str) and (own_names := Condition(where).own_names):
        raise ConstraintError(
            f"frozen: the condition {shorten(where)} compares old values, but `where` sees only "
            f"the person's current row. Write {shorten(own_names[0])}, not "
            f"{shorten('old.' + own_names[0])}."
        )
    return Frozen(several_features("frozen", features), where)


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
    return Together(several_features("together", features))


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
        expression = Condition(holds)
        return DeclaredRelation(expression.names, expression, name)
    if not callable(holds):
        raise ConstraintError(
            f"relation {shorten(name)}: holds must be a condition such as 'debt <= salary', or a "
            f"function of a frame, got {shorten(holds)}."
        )
    return DeclaredRelation((), holds, name)


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
        Arithmetic on other columns such as ``"months * price"``: columns of numbers and booleans,
        numbers, ``+ - * / // %``, parentheses, ``abs``, ``min`` and ``max``.
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
        tolerance = _check_amount(title, "tolerance", tolerance)
    return Derived((*one_feature("derived", feature), *parsed.names), parsed, tolerance)


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
    amount = _check_amount(f"weight {quote_name(feature)}", "weight", weight)
    return Weight(one_feature("weight", feature), amount)


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
    return Step(one_feature("step", feature), step)


BUILDERS: dict[str, Callable[..., Constraint]] = {
    function.__name__: function
    for function in (
        *(between, change, derived, discouraged, frozen, levels, max_changes, never_advise),
        *(not_down, not_up, only_down, only_up, relation, step, together, transitions, weight),
    )
}


def build(name: str, arguments: Mapping[str, Any]) -> Constraint:
    """The constraint that a function makes; the inverse of :meth:`Constraint.builder_call`.

    Examples
    --------
    >>> build("only_up", {"feature": "age"})
    only_up('age')
    """
    if name not in BUILDERS:
        raise ConstraintError(
            f"There is no constraint {shorten(name)}. The constraints are {', '.join(BUILDERS)}."
        )
    given = dict(arguments)
    features = given.pop("features", []) if name in OF_SEVERAL_FEATURES else []
    return BUILDERS[name](*features, **given)


def _advice(
    kind: str, feature: Hashable, levels: Iterable[Any] | None, direction: Any
) -> tuple[tuple[Hashable, ...], tuple[Any, ...], str | None]:
    """The features, levels and direction of advice that is not to be given."""
    title = f"{kind} {quote_name(feature)}"
    listed = () if levels is None else list_values(title, "levels", levels)
    if direction not in (None, "up", "down") or bool(listed) == (direction is not None):
        raise ConstraintError(
            f"{title}: pass levels=[...] or direction, which is 'up' or 'down', got "
            f"levels={shorten(levels)} and direction={shorten(direction)}."
        )
    return one_feature(kind, feature), listed, direction


def _order(order: Iterable[Any] | None) -> tuple[Any, ...] | None:
    return None if order is None else list_values("order", "order", order)


def _check_amount(title: str, argument: str, amount: Any) -> float:
    """A finite number of at least 0."""
    real = (int, float, np.integer, np.floating)
    number = isinstance(amount, real) and not isinstance(amount, bool)
    # Compared in half or single precision, the largest float would be infinite.
    value = float(amount) if isinstance(amount, np.floating) else amount
    # An integer below infinity may still be too large for a float.
    if not number or not 0 <= value <= sys.float_info.max:
        raise ConstraintError(
            f"{title}: the {argument} must be a finite number of at least 0, got {shorten(amount)}."
        )
    return float(amount)
