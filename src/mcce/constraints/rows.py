"""Constraints on whole rows and on the cost of changes, and the list of all constraint classes.

A constraint on a row looks at which features change, or at all values of the row. Weights and
steps change what counts as close.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..errors import ConstraintError, shorten
from ..kernels import BoolArray
from ..tables.features import Feature
from ..tables.frames import FrameAdapter
from .constraint import Constraint
from .derived import Derived
from .expressions import Expression
from .features import Between, ChangeBy, Direction, Levels, Transitions, check_numeric, to_length


@dataclass(frozen=True, repr=False)
class Frozen(Constraint):
    """Features that cannot change for some people; for everybody if ``where`` is None."""

    where: Any = None
    kind: ClassVar[str] = "frozen"

    @property
    def condition_features(self) -> tuple[str, ...]:
        """Columns that a condition given as a string reads."""
        return Expression(self.where).names if isinstance(self.where, str) else ()

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """Its features and its condition."""
        return self.kind, {"features": list(self.features), "where": self.where}

    def holds_for(
        self, frame: pd.DataFrame, labels: pd.Index[Any], adapter: FrameAdapter
    ) -> BoolArray:
        """Whether it applies to each factual; a function gets them in the user's type of frame."""
        if self.where is None:
            return np.ones(len(frame), dtype=bool)
        if isinstance(self.where, str):
            return Expression(self.where)(frame)
        if callable(self.where) and not len(frame):
            return np.zeros(0, dtype=bool)
        if callable(self.where):
            rows = adapter.rows_to_native(frame.copy().set_axis(labels))
            answers = _call_condition(self.quoted, self.where, rows)
        else:
            answers = self.where
        if isinstance(answers, pd.Series) and not answers.index.equals(labels):
            raise ConstraintError(
                f"{self.quoted}: where is a Series with another index than the frame to explain. "
                "Give it the same index, or pass a plain list or array."
            )
        return _to_booleans(self.quoted, answers, len(frame))


@dataclass(frozen=True, repr=False)
class MaxChanges(Constraint):
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

    def holds(self, changed: BoolArray) -> BoolArray:
        """Whether rows meet it, given which features change, shape (n_features, ...)."""
        return np.asarray(changed.sum(axis=0) <= self.n)


@dataclass(frozen=True, repr=False)
class Together(Constraint):
    """Either all of these features change or none does."""

    kind: ClassVar[str] = "together"

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """Its features."""
        return self.kind, {"features": list(self.features)}

    def holds(self, changed: BoolArray) -> BoolArray:
        """Whether rows meet it, given which features change, shape (n_features, ...)."""
        return np.asarray(changed.all(axis=0) | ~changed.any(axis=0))


@dataclass(frozen=True, repr=False)
class Relation(Constraint):
    """A condition that every counterfactual must meet, whatever it changes."""

    condition: Any
    title: str
    kind: ClassVar[str] = "relation"

    @property
    def name(self) -> str:
        """The name that the user gave it."""
        return self.title

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """Its name and its condition, as a string if it was one."""
        text = self.condition.text if isinstance(self.condition, Expression) else self.condition
        return self.kind, {"name": self.title, "holds": text}

    def holds(self, frame: pd.DataFrame, adapter: FrameAdapter) -> BoolArray:
        """Whether each row meets it; a function gets the type of frame of the training data."""
        if isinstance(self.condition, Expression):
            return self.condition(frame)
        # Not every function of users can handle a frame without rows.
        if frame.empty:
            return np.zeros(len(frame), dtype=bool)
        title = f"relation {shorten(self.title)}"
        rows = adapter.rows_for_predictor(frame.copy())
        answers = _call_condition(title, self.condition, rows)
        if isinstance(answers, pd.Series) and not answers.index.equals(frame.index):
            raise ConstraintError(
                f"{title}: the function returned a Series with another index than its rows. "
                "Return one True or False per row, in the order of the rows."
            )
        return _to_booleans(title, answers, len(frame))


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

    def size(self, feature: Feature) -> float:
        """The step as a float, in the unit of the feature."""
        return to_length(self.quoted, feature, self.step)


CONSTRAINT_KINDS: tuple[type[Constraint], ...] = (
    Direction,
    Between,
    ChangeBy,
    Levels,
    Transitions,
    Frozen,
    MaxChanges,
    Together,
    Relation,
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


def _to_booleans(title: str, answers: Any, n_rows: int) -> BoolArray:
    """One True or False per row; missing is False."""
    if np.ndim(answers) != 1:
        raise ConstraintError(
            f"{title}: expected one True or False for each row, got {np.ndim(answers)} dimensions."
        )
    column = pd.Series(answers if isinstance(answers, pd.Series) else np.asarray(answers))
    if len(column) != n_rows or not pd.api.types.is_bool_dtype(column.dtype):
        raise ConstraintError(
            f"{title}: expected one True or False for each of {n_rows} rows, got {len(column)} "
            f"values of dtype {column.dtype}."
        )
    return column.fillna(False).to_numpy(dtype=bool)
