"""Constraints that have met the data: names checked, kinds checked, ready to be asked.

Takes what users wrote and a schema. Gives what each part of the search needs: limits for draws,
rules for rows, weights for the distance, and the last word on what is returned.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ConstraintError
from ..kernels import BoolArray, FloatArray
from ..tables.columns import differ
from ..tables.schema import EncodedRows, Schema
from .constraint import Constraint
from .features import FeatureConstraint
from .rows import Frozen, MaxChanges, Relation, Step, Together, Weight


@dataclass(frozen=True, eq=False)
class Constraints:
    """Constraints on the columns of a schema.

    Parameters
    ----------
    schema
        The columns.
    listed
        The constraints, as they were written.
    """

    schema: Schema
    listed: tuple[Constraint, ...] = ()

    @classmethod
    def bind(cls, written: Any, schema: Schema) -> Constraints:
        """What a user wrote, checked against the columns."""
        bound = cls(schema, tuple(_read(written)))
        for constraint in bound.listed:
            try:
                bound._check(constraint)
            except ConstraintError as error:
                where = f"{constraint.source}: " if constraint.source else ""
                raise ConstraintError(f"{where}{error}") from None
        bound._check_once(Relation, lambda relation: relation.name)
        bound._check_once(Weight, lambda weight: weight.features[0])
        bound._check_once(Step, lambda step: step.features[0])
        return bound

    def joined(self, more: Constraints) -> Constraints:
        """These and more, checked together."""
        return Constraints.bind([*self.listed, *more.listed], self.schema) if more.listed else self

    def without(self, left_out: Constraint) -> Constraints:
        """The same but for one."""
        return Constraints(self.schema, tuple(c for c in self.listed if c != left_out))

    @cached_property
    def by_feature(self) -> Mapping[int, list[FeatureConstraint]]:
        """Constraints on what a feature may become, by position."""
        rules: dict[int, list[FeatureConstraint]] = {}
        for constraint in self.listed:
            if isinstance(constraint, FeatureConstraint):
                rules.setdefault(self._place[constraint.features[0]], []).append(constraint)
        return rules

    @cached_property
    def steps(self) -> Mapping[int, Step]:
        """Steps by position."""
        return {self._place[c.features[0]]: c for c in self.listed if isinstance(c, Step)}

    @cached_property
    def weights(self) -> FloatArray | None:
        """The weight of each mutable feature, or None if there are none."""
        given = {self._place[c.features[0]]: c.weight for c in self.listed if isinstance(c, Weight)}
        if not given:
            return None
        return np.array([given.get(int(position), 1.0) for position in self.schema.mutable])

    @property
    def limiting(self) -> list[Constraint]:
        """Constraints that can stand in the way of an answer."""
        return [c for c in self.listed if not isinstance(c, Weight)]

    @property
    def of_rows(self) -> list[MaxChanges | Together | Relation]:
        """Constraints that judge a whole row."""
        return [c for c in self.listed if isinstance(c, (MaxChanges, Together, Relation))]

    def frozen(self, rows: EncodedRows) -> Mapping[int, BoolArray]:
        """By position, the people for whom a feature is frozen."""
        frozen: dict[int, BoolArray] = {}
        for constraint in self.listed:
            if not isinstance(constraint, Frozen):
                continue
            whose = constraint.holds_for(rows.as_given(rows.frame), rows.labels, rows.adapter)
            for name in constraint.features:
                position = self._place[name]
                frozen[position] = frozen.get(position, False) | whose
        return frozen

    def mutable_positions(self, constraint: MaxChanges | Together) -> list[int]:
        """The places, among the mutable features, of those a constraint speaks of."""
        if not constraint.features:
            return list(range(self.schema.mutable.size))
        place = {int(position): row for row, position in enumerate(self.schema.mutable)}
        return [place[self._place[name]] for name in constraint.features]

    def broken(
        self, rows: EncodedRows, owner: np.ndarray, frame: pd.DataFrame
    ) -> dict[str, BoolArray]:
        """By constraint, the rows of a frame of answers that break it; judged by values alone.

        ``owner`` says whose answer each row is; the frame has the columns in schema order.
        """
        if not self.listed or not len(frame):
            return {}
        own = rows.frame.iloc[owner].reset_index(drop=True)
        pairs = zip(own.items(), frame.items(), strict=True)
        changed = np.array([differ(before, after) for (_, before), (_, after) in pairs])
        broken: dict[str, BoolArray] = {}
        for constraint in self.listed:
            positions = [self._place[name] for name in constraint.features]
            if isinstance(constraint, FeatureConstraint):
                at = positions[0]
                feature = self.schema.features[at]
                admitted = constraint.admits(feature, own.iloc[:, at], frame.iloc[:, at])
                broken[constraint.name] = changed[at] & ~admitted
            elif isinstance(constraint, Frozen):
                whose = constraint.holds_for(rows.as_given(rows.frame), rows.labels, rows.adapter)[
                    owner
                ]
                moved = changed[positions].any(axis=0) & whose
                broken[constraint.name] = broken.get(constraint.name, False) | moved
            elif isinstance(constraint, Relation):
                broken[constraint.name] = ~constraint.holds(frame, self.schema.adapter)
            elif isinstance(constraint, (MaxChanges, Together)):
                speaks_of = positions or self.schema.mutable.tolist()
                broken[constraint.name] = ~constraint.holds(changed[speaks_of])
        return broken

    @cached_property
    def _place(self) -> dict[Hashable, int]:
        return {name: at for at, name in enumerate(self.schema.names)}

    def _check(self, constraint: Constraint) -> None:
        for name in (*constraint.features, *constraint.conditions):
            if name not in self._place:
                close = difflib.get_close_matches(str(name), map(str, self.schema.names), n=1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise ConstraintError(
                    f"{constraint.name}: there is no column {name!r}.{hint} "
                    f"The columns are {self.schema.names!r}."
                )
        features = [self.schema.features[self._place[name]] for name in constraint.features]
        fixed = [feature.name for feature in features if feature.immutable]
        if fixed and not isinstance(constraint, Relation):
            raise ConstraintError(
                f"{constraint.name}: {fixed!r} are immutable, so they never change. Leave them out "
                "of the constraint, or out of immutable."
            )
        constraint.check(features)

    def _check_once(self, kind: type[Constraint], key: Any) -> None:
        seen: set[Any] = set()
        for constraint in self.listed:
            if isinstance(constraint, kind):
                if key(constraint) in seen:
                    raise ConstraintError(
                        f"There are two constraints {constraint.name!r}. Keep one."
                    )
                seen.add(key(constraint))


def _read(written: Any) -> Iterable[Constraint]:
    if written is None:
        return []
    if isinstance(written, Constraint):
        return [written]
    if isinstance(written, (str, os.PathLike)):
        from .files import read_constraints

        return read_constraints(written)
    # An iterator would be empty when it is read again.
    once = isinstance(written, Iterator) or getattr(written, "ndim", 1) == 0
    if not isinstance(written, Iterable) or once:
        raise ConstraintError(
            "constraints must be a list of constraints (mcce.constraints) or the path of a file "
            f"that holds them, got {written!r}."
        )
    listed = list(written)
    wrong = [entry for entry in listed if not isinstance(entry, Constraint)]
    if wrong:
        raise ConstraintError(
            f"constraints holds {wrong[0]!r}, which is no constraint. Write e.g. "
            'constraints=[mcce.constraints.only_up("age")].'
        )
    return listed
