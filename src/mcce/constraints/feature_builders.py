"""Functions that make constraints on single features.

Always true: no counterfactual breaks a constraint, and a feature may always keep its value.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ..errors import ConstraintError, shorten
from .constraint import Constraint, list_values, one_feature, quote_name, several_features
from .expressions import Expression
from .features import Between, ChangeBy, Direction, Levels, Transitions
from .rows import Frozen

Value: TypeAlias = float | str | datetime.date | datetime.timedelta | np.generic
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
    return ChangeBy(one_feature("change", feature), at_least, at_most)


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


def frozen(*features: Hashable, where: Where = None) -> Constraint:
    """Features cannot change, for everybody or for some people only.

    Unlike an immutable feature, a frozen one is still modelled as something that other people can
    change.

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
    if isinstance(where, str):
        Expression(where)  # raises here, rather than when people are explained
    return Frozen(several_features("frozen", features), where)


def _order(order: Iterable[Any] | None) -> tuple[Any, ...] | None:
    return None if order is None else list_values("order", "order", order)
