"""Constraints of a row and of the cost, and the list of all kinds.

Those of a row judge which features change, or the row itself; those of the cost only change what
is near.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..errors import ConstraintError
from ..kernels import BoolArray
from ..tables.features import Feature
from ..tables.frames import FrameAdapter
from .constraint import Constraint
from .expressions import Expression
from .features import Between, Change, Direction, Levels, Transitions, check_numeric, length


@dataclass(frozen=True)
class Frozen(Constraint):
    """Features that stay as they are, for these people only; ``where`` None is everybody."""

    where: Any = None
    kind: ClassVar[str] = "frozen"

    @property
    def conditions(self) -> tuple[str, ...]:
        """The columns of a condition that is a text."""
        return Expression(self.where).names if isinstance(self.where, str) else ()

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """All features, and the condition."""
        return self.kind, {"features": list(self.features), "where": self.where}

    def holds_for(
        self, frame: pd.DataFrame, labels: pd.Index[Any], adapter: FrameAdapter
    ) -> BoolArray:
        """The people it is about; a function is given them in the kind they came in."""
        if self.where is None:
            return np.ones(len(frame), dtype=bool)
        if isinstance(self.where, str):
            return Expression(self.where)(frame)
        if callable(self.where):
            told = _asked(self.name, self.where, adapter.rows_to_native(frame.set_axis(labels)))
        else:
            told = self.where
        if isinstance(told, pd.Series) and not told.index.equals(labels):
            raise ConstraintError(
                f"{self.name}: where gives a Series whose index is not that of the people. "
                "Give one yes or no for each of them, under their labels."
            )
        return _yes_or_no(self.name, told, len(frame))


# ---------------------------------------------------------------------------------------------
# Of a row.


@dataclass(frozen=True)
class MaxChanges(Constraint):
    """At most so many of these features change; no features means all."""

    n: int
    kind: ClassVar[str] = "max_changes"

    @property
    def name(self) -> str:
        """E.g. max_changes 2 of age, salary."""
        among = f" of {', '.join(str(name) for name in self.features)}" if self.features else ""
        return f"max_changes {self.n}{among}"

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """The number, and the features if not all are meant."""
        return self.kind, {"n": self.n, "features": list(self.features)}

    def holds(self, changed: BoolArray) -> BoolArray:
        """From which features change, shape (n_features, …)."""
        return np.asarray(changed.sum(axis=0) <= self.n)


@dataclass(frozen=True)
class Together(Constraint):
    """All of these features change or none does."""

    kind: ClassVar[str] = "together"

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """The features."""
        return self.kind, {"features": list(self.features)}

    def holds(self, changed: BoolArray) -> BoolArray:
        """From which features change, shape (n_features, …)."""
        return np.asarray(changed.all(axis=0) | ~changed.any(axis=0))


@dataclass(frozen=True)
class Relation(Constraint):
    """A condition on the whole row that an answer must meet, whether it changes there or not."""

    condition: Any
    title: str
    kind: ClassVar[str] = "relation"

    @property
    def name(self) -> str:
        """As it was named."""
        return self.title

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """The name, and the condition as a text if it is one."""
        text = self.condition.text if isinstance(self.condition, Expression) else self.condition
        return self.kind, {"name": self.title, "holds": text}

    def holds(self, frame: pd.DataFrame, adapter: FrameAdapter) -> BoolArray:
        """Row by row; a function is given them in the kind of the training data."""
        if isinstance(self.condition, Expression):
            return self.condition(frame)
        title = f"relation {self.title!r}"
        told = _asked(title, self.condition, adapter.rows_for_predictor(frame))
        if isinstance(told, pd.Series) and not told.index.equals(frame.index):
            raise ConstraintError(f"{title}: gives its rows in another order than it got them.")
        return _yes_or_no(title, told, len(frame))


# ---------------------------------------------------------------------------------------------
# Of the cost.


@dataclass(frozen=True)
class Weight(Constraint):
    """How much a change of the feature costs in the distance, where 1 is as usual."""

    weight: float
    kind: ClassVar[str] = "weight"


@dataclass(frozen=True)
class Step(Constraint):
    """Numbers that differ by less than this are taken as the person's own."""

    step: Any
    kind: ClassVar[str] = "step"

    def check(self, features: Sequence[Feature]) -> None:
        """Numeric feature, a length in its unit."""
        (feature,) = features
        check_numeric(self.name, feature)
        if not self.size(feature) > 0:
            raise ConstraintError(f"{self.name}: the step must be above 0, got {self.step!r}.")

    def size(self, feature: Feature) -> float:
        """The step as a number."""
        return length(self.name, feature, self.step)


CONSTRAINT_KINDS: tuple[type[Constraint], ...] = (
    Direction,
    Between,
    Change,
    Levels,
    Transitions,
    Frozen,
    MaxChanges,
    Together,
    Relation,
    Weight,
    Step,
)


def _asked(title: str, condition: Any, rows: Any) -> Any:
    """What a user's function says of rows."""
    try:
        return condition(rows)
    except Exception as error:
        raise ConstraintError(f"{title} failed: {type(error).__name__}: {error}") from error


def _yes_or_no(title: str, told: Any, n_rows: int) -> BoolArray:
    if np.ndim(told) != 1:
        raise ConstraintError(f"{title}: needs one yes or no for each row, got {np.ndim(told)}-D.")
    answers = pd.Series(told if isinstance(told, pd.Series) else np.asarray(told))
    if len(answers) != n_rows or not pd.api.types.is_bool_dtype(answers.dtype):
        raise ConstraintError(
            f"{title}: needs one yes or no for each of {n_rows} rows, got {len(answers)} of dtype "
            f"{answers.dtype}."
        )
    return answers.fillna(False).to_numpy(dtype=bool)
