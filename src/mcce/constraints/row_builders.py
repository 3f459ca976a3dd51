"""Functions that make constraints on whole rows and on the cost of changes.

Always true: no counterfactual breaks a constraint on a row; weights and steps only change what
counts as close.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from ..errors import ConstraintError, shorten
from .constraint import Constraint, list_values, one_feature, quote_name, several_features
from .derived import Derived
from .expressions import Expression
from .feature_builders import Amount
from .formulas import Formula
from .rows import MaxChanges, Relation, Step, Together, Weight


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
        or False per row. A comparison with a missing value does not hold.

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
        expression = Expression(holds)
        return Relation(expression.names, expression, name)
    if not callable(holds):
        raise ConstraintError(
            f"relation {shorten(name)}: holds must be a condition such as 'debt <= salary', or a "
            f"function of a frame, got {shorten(holds)}."
        )
    return Relation((), holds, name)


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
