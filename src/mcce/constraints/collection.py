"""The constraints of an explainer, checked against its columns.

Takes what the user passed and a schema. Gives each part of the search what it needs: limits for
draws, filters for rows, weights for the distance, and the final check of what is returned.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import pandas as pd

from ..caching import cached_property
from ..errors import ConstraintError, did_you_mean, shorten
from ..kernels import BoolArray, FloatArray, IntArray, check_cancellation
from ..tables.columns import differ
from ..tables.schema import EncodedRows, Schema
from .conditions import Expression, check_terms
from .constraint import Constraint, ProposedRows, RowConstraint
from .files import read_constraints
from .of_features import Discouraged, FeatureConstraint, Step, Weight, closest_level
from .of_rows import DeclaredRelation, Derived, Frozen, Together


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Rows of any origin that are proposed to people; what they change shows by their values."""

    factuals: EncodedRows
    owner: IntArray
    frame: pd.DataFrame
    _changed: dict[int, BoolArray] = field(default_factory=dict, init=False)

    def changed(self, positions: Sequence[int]) -> BoolArray:
        """Which of some features each row changes, shape (n_positions, n_rows)."""
        for at in set(positions) - self._changed.keys():
            before = self.factuals.frame.iloc[:, at].iloc[self.owner]
            self._changed[at] = differ(before, self.frame.iloc[:, at])
        changed = [self._changed[at] for at in positions]
        return np.array(changed, dtype=bool).reshape(len(positions), self.owner.size)


@dataclass(frozen=True, eq=False)
class Constraints:
    """Constraints on the columns of a schema; :meth:`bind` checks them."""

    schema: Schema
    listed: tuple[Constraint, ...] = ()

    @classmethod
    def bind(cls, given: Any, schema: Schema) -> Constraints:
        """Constraints checked against the columns."""
        bound = cls(schema, tuple(read_given(given)))
        check_terms(sum(constraint.n_terms for constraint in bound.listed))
        for constraint in bound.listed:
            try:
                bound._check(constraint)
            except ConstraintError as error:
                where = f"{constraint.source}: " if constraint.source else ""
                raise ConstraintError(f"{where}{error}") from None
        bound._check_together()
        return bound

    def joined(self, more: Constraints) -> Constraints:
        """These constraints and others, checked together."""
        return Constraints.bind([*self.listed, *more.listed], self.schema) if more.listed else self

    def without(self, left_out: Constraint) -> Constraints:
        """All constraints but one."""
        return Constraints(self.schema, tuple(c for c in self.listed if c != left_out))

    @cached_property
    def by_feature(self) -> Mapping[int, list[FeatureConstraint]]:
        """Constraints on the values of a feature, by its position."""
        by_feature: dict[int, list[FeatureConstraint]] = {}
        for constraint in self.listed:
            if isinstance(constraint, FeatureConstraint):
                position = self.schema.position_of[constraint.features[0]]
                by_feature.setdefault(position, []).append(constraint)
        return by_feature

    @cached_property
    def steps(self) -> Mapping[int, Step]:
        """Steps by position of their feature."""
        return {
            self.schema.position_of[c.features[0]]: c for c in self.listed if isinstance(c, Step)
        }

    @cached_property
    def weights(self) -> FloatArray | None:
        """Weight of each mutable feature; None if no weight is given."""
        weights = [c for c in self.listed if isinstance(c, Weight)]
        if not weights:
            return None
        given = {self.schema.position_of[weight.features[0]]: weight.weight for weight in weights}
        return np.array([given.get(int(position), 1.0) for position in self.schema.mutable])

    @property
    def limiting(self) -> list[Constraint]:
        """Constraints that can rule out a counterfactual."""
        return [c for c in self.listed if not isinstance(c, (Weight, Discouraged))]

    @property
    def discouraged(self) -> list[Discouraged]:
        """Rules on changes that come last."""
        return [c for c in self.listed if isinstance(c, Discouraged)]

    @property
    def without_discouraged(self) -> Constraints:
        """These constraints, with discouraged changes ruled out."""
        never = (c.as_never if isinstance(c, Discouraged) else c for c in self.listed)
        return Constraints(self.schema, tuple(never))

    def discouraged_changes(self, rows: ProposedRows) -> dict[int, BoolArray]:
        """Which rows make a discouraged change of each feature, by its position."""
        found: dict[int, BoolArray] = {}
        for rule in self.discouraged if rows.owner.size else ():
            at = self.schema.position_of[rule.features[0]]
            found[at] = found.get(at, False) | ~rule.as_never.keeps(rows)
        return found

    @property
    def of_rows(self) -> list[RowConstraint]:
        """Constraints on whole rows."""
        return [c for c in self.listed if isinstance(c, RowConstraint)]

    @property
    def derived(self) -> list[Derived]:
        """Columns that are computed from others."""
        return [c for c in self.listed if isinstance(c, Derived)]

    def frozen(self, rows: EncodedRows) -> Mapping[int, BoolArray]:
        """Factuals for whom a feature is frozen, by position of the feature."""
        frozen: dict[int, BoolArray] = {}
        for constraint in self.listed:
            if not isinstance(constraint, Frozen):
                continue
            check_cancellation()
            whose = constraint.applies_to(rows)
            for position in map(self.schema.position_of.__getitem__, constraint.features):
                if self.schema.features[position].immutable:
                    continue
                frozen[position] = frozen.get(position, False) | whose
        return frozen

    @property
    def frozen_for_everybody(self) -> set[Hashable]:
        """Features that are frozen without a condition."""
        whole = [one for one in self.listed if isinstance(one, Frozen) and one.where is None]
        return {name for constraint in whole for name in constraint.features}

    def mutable_places(self, constraint: Together) -> IntArray:
        """Places of a constraint's features among the mutable ones."""
        positions = [self.schema.position_of[name] for name in constraint.features]
        return np.searchsorted(self.schema.mutable, positions)

    def broken(self, rows: ProposedRows) -> dict[str, BoolArray]:
        """Rows that break a constraint of each name."""
        broken: dict[str, BoolArray] = {}
        for constraint in self.limiting if rows.owner.size else ():
            check_cancellation()
            # Several constraints may have the same name.
            breaks = ~constraint.keeps(rows)
            broken[constraint.name] = broken.get(constraint.name, False) | breaks
        return broken

    def _check(self, constraint: Constraint) -> None:
        expression, position_of = constraint.expression, self.schema.position_of
        if expression is not None:
            self._check_own_names(constraint, expression)
        for name in (*constraint.features, *(expression.names if expression else ())):
            if name not in position_of:
                raise ConstraintError(
                    f"{constraint.quoted}: there is no column {shorten(name)}."
                    f"{did_you_mean(name, self.schema.names)} "
                    f"The columns are {shorten(self.schema.names, 200)}."
                )
        for name, level in expression.levels if expression else ():
            feature = self.schema.features[position_of[name]]
            known = feature.level_codes if feature.kind == "categorical" else {}
            if known and level not in known and all(isinstance(one, str) for one in known):
                raise ConstraintError(
                    f"{constraint.quoted}: {shorten(level)} is no level of {shorten(name)}."
                    f"{closest_level(level, feature)} Check how it is written."
                )
        features = [self.schema.features[position_of[name]] for name in constraint.features]
        fixed = [feature.name for feature in features if feature.immutable]
        if fixed and not isinstance(constraint, (DeclaredRelation, Derived, Frozen)):
            raise ConstraintError(
                f"{constraint.quoted}: {shorten(fixed)} cannot change, because they are "
                "immutable. Remove them from the constraint, or let them be mutable."
            )
        constraint.check(features)

    def _check_own_names(self, constraint: Constraint, expression: Expression) -> None:
        """Raise if an own value may be meant to be a column of that name."""
        for name in expression.own_names:
            column = f"old.{name}"
            if column in self.schema.position_of and expression.may_mean_column(column):
                raise ConstraintError(
                    f"{constraint.quoted}: {column} may be the person's own value of "
                    f"{shorten(name)} or the column {shorten(column)}. Write old.`{name}` for the "
                    f"one, and `{column}` for the other."
                )

    def _check_together(self) -> None:
        """Raise for two constraints that say one thing, and columns computed from each other."""
        seen: set[Hashable] = set()
        for constraint in self.listed:
            if isinstance(constraint, (DeclaredRelation, Derived, Step, Weight)):
                named = isinstance(constraint, DeclaredRelation)
                key = constraint.kind, constraint.name if named else constraint.features[0]
                if key in seen:
                    raise ConstraintError(
                        f"There are two constraints {shorten(constraint.name)}. Keep one of them."
                    )
                seen.add(key)
        try:
            TopologicalSorter({one.target: one.features[1:] for one in self.derived}).prepare()
        except CycleError as error:
            circle = sorted(map(str, set(error.args[1])))
            raise ConstraintError(
                f"derived: the formulas of {shorten(circle)} are computed from each other. Leave "
                "one of them out."
            ) from None


def read_given(given: Any) -> Iterable[Constraint]:
    """The constraints in whatever the user passed."""
    if given is None:
        return []
    if isinstance(given, Constraint):
        return [given]
    if isinstance(given, (str, os.PathLike)):
        return read_constraints(given)
    # fit and explain both read them; an iterator would be empty the second time.
    once = isinstance(given, Iterator) or getattr(given, "ndim", 1) == 0
    if not isinstance(given, Iterable) or once:
        raise ConstraintError(
            "constraints must be a list of constraints (see mcce.constraints) or the path of a "
            f"TOML file, got {shorten(given)}."
        )
    listed = list(given)
    wrong = [entry for entry in listed if not isinstance(entry, Constraint)]
    if wrong:
        # The entries of a column or an array are cells.
        shown = shorten(given if hasattr(given, "shape") else wrong[0])
        raise ConstraintError(
            f"constraints lists {shown}, which is not a constraint. Write for example "
            'constraints=[mcce.constraints.only_up("age")].'
        )
    return listed
