"""The base classes of all constraints, and checks of the arguments of their builders."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd

from ..errors import ConstraintError, shorten
from ..kernels import BoolArray, IntArray
from ..tables.features import Feature
from ..tables.schema import EncodedRows
from .conditions import Expression


class ProposedRows(Protocol):
    """Rows that are proposed to people, as constraints look at them."""

    @property
    def factuals(self) -> EncodedRows:
        """The people."""
        ...

    @property
    def owner(self) -> IntArray:
        """Position of the person of each row."""
        ...

    @property
    def frame(self) -> pd.DataFrame:
        """The rows, in the order of the schema."""
        ...

    def changed(self, positions: Sequence[int]) -> BoolArray:
        """Which of some features each row changes, shape (n_positions, n_rows)."""
        ...


@dataclass(frozen=True, repr=False)
class Constraint:
    """A restriction on how a person may change.

    Make one with a function of :mod:`mcce.constraints` and pass it to
    ``MCCE(constraints=[...])``. Two constraints that say the same are equal.

    Parameters
    ----------
    features
        Names of the columns that the constraint is about.
    source
        File and line it was read from, if it was; quoted in errors.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.only_up("age")
    only_up('age')
    >>> constraints.only_up("age").name
    'only_up age'
    >>> constraints.only_up("age") == constraints.only_up("age")
    True
    """

    features: tuple[Hashable, ...]
    source: str = field(default="", kw_only=True, compare=False)
    kind: ClassVar[str]
    # Whether its builder takes the names of any number of features: together("age", "salary").
    is_variadic: ClassVar[bool] = False

    def __repr__(self) -> str:
        builder, arguments = self.builder_call()
        features = (
            arguments.pop("features") if self.is_variadic else [arguments.pop("feature", None)]
        )
        positional = [repr(feature) for feature in features if feature is not None]
        given = {
            name: value
            for name, value in arguments.items()
            if value is not None and not (isinstance(value, (list, tuple)) and not value)
        }
        return f"{builder}({', '.join([*positional, *(f'{n}={v!r}' for n, v in given.items())])})"

    @property
    def expression(self) -> Expression | None:
        """The condition or formula that it holds, if it does."""
        return None

    @property
    def n_terms(self) -> int:
        """Columns, values and operators of its condition or formula."""
        return self.expression.n_terms if self.expression else 0

    @property
    def name(self) -> str:
        """The constraint in reports and errors, such as ``only_up age``."""
        return f"{self.kind} {', '.join(str(feature) for feature in self.features)}"

    @property
    def quoted(self) -> str:
        """The name as errors quote it, shortened if need be."""
        return quote_name(self.name)

    def check(self, features: Sequence[Feature]) -> None:
        """Raise if the constraint does not fit its features.

        Parameters
        ----------
        features
            The columns that the constraint is about.

        Raises
        ------
        ConstraintError
            If it does not fit them.
        """

    def keeps(self, rows: ProposedRows) -> BoolArray:
        """Which proposed rows keep the constraint; all, if it limits nothing.

        Parameters
        ----------
        rows
            The rows, and whom they are proposed to.

        Returns
        -------
        (n_rows,)
        """
        return np.ones(rows.owner.size, dtype=bool)

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """Name and keyword arguments of the function that makes this constraint.

        Returns
        -------
        name : str
            Name of the function in :mod:`mcce.constraints`.
        arguments : dict
            Its arguments.

        Examples
        --------
        >>> from mcce import constraints
        >>> constraints.only_up("age").builder_call()
        ('only_up', {'feature': 'age'})
        """
        own = [one.name for one in fields(self) if one.name not in ("features", "source")]
        given = {name: getattr(self, name) for name in own}
        texts = {n: value.text for n, value in given.items() if isinstance(value, Expression)}
        about = (
            {"features": list(self.features)} if self.is_variadic else {"feature": self.features[0]}
        )
        return self.kind, about | given | texts


class RowConstraint(Constraint):
    """Limits what changes together, or the values of a whole row."""


def quote_name(name: object) -> str:
    """A name as errors quote it: as it is if it is short and printable."""
    plain = isinstance(name, str) and len(name) <= 80 and name.isprintable()
    return str(name) if plain else shorten(name)


def list_features(title: str, *names: Any) -> tuple[Hashable, ...]:
    """The names of at least one feature."""
    if not names:
        raise ConstraintError(f"{title}: name at least one feature.")
    return list_values(title, "features", names)


def list_values(title: str, argument: str, values: Any) -> tuple[Any, ...]:
    """Distinct values of a list."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ConstraintError(f"{title}: {argument} must be a list, got {shorten(values)}.")
    try:
        return tuple(dict.fromkeys(values))
    except TypeError as error:
        raise ConstraintError(
            f"{title}: {argument} must list plain values such as strings and numbers, got "
            f"{shorten(values)}: {shorten(error)}."
        ) from None


def check_amount(title: str, argument: str, amount: Any) -> float:
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
