"""Filters of step 3: reasons not to return a candidate, valid or not.

Paper, section "Privacy": no copies of training rows. Beyond the paper: constraints on whole rows,
relations between columns that were found at fit, pairs of values that no training row has, how
plausible a row must be, and upper bounds on sparsity and distance. ``RowRules`` are those of one
search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..candidates import CandidateRows
from ..constraints.collection import Constraints
from ..constraints.constraint import RowConstraint
from ..constraints.of_rows import Derived
from ..distances import measure_rows
from ..encodings import CandidateColumns, CandidateEncodings, ColumnCache, remember
from ..kernels import BoolArray, FloatArray, IntArray, rows_as_bytes
from ..protocols import Distance
from ..tables.schema import OWN, EncodedRows, Schema

# Imported where they are used: the paper's search needs none of these.
if TYPE_CHECKING:
    from ..plausibility.model import IncrementalAssessor, PlausibilityModel
    from ..relations.relation import Relation


class RowFilter(Protocol):
    """A check that a row must pass to be returned, whatever the predictor says."""

    @property
    def name(self) -> str:
        """Name of the filter in reasons."""
        ...

    def keeps(self, selected: CandidateRows) -> BoolArray:
        """Which of the rows pass, shape (n_rows,)."""
        ...


@dataclass(frozen=True, eq=False)
class RowRules:
    """What rows must keep to be returned, valid or not.

    The pool finds the first check that a row breaks. In the paper's search the ranking kernel
    applies the bounds, and plausibility is checked for valid rows alone. The exact search lists
    rows within the bounds and checks the rest.
    """

    distance: Distance
    max_sparsity: int | None = None
    max_distance: float | None = None
    filters: Sequence[RowFilter] = ()
    plausible: IsPlausible | None = None

    @property
    def bounds(self) -> list[IsWithinBound]:
        """The bounds that are set."""
        bounds = list[IsWithinBound]()
        if self.max_sparsity is not None:
            bounds.append(IsWithinBound("max_sparsity", self.max_sparsity))
        if self.max_distance is not None:
            bounds.append(IsWithinBound("max_distance", self.max_distance, self.distance))
        return bounds

    @property
    def checks(self) -> list[RowFilter]:
        """All that can exclude a row, cheap ones first."""
        return [*self.bounds, *self.filters, *([self.plausible] if self.plausible else [])]

    def first_broken(self, rows: CandidateRows) -> IntArray:
        """The number of the first check that excludes each row, from 1; 0 where none does."""
        first = np.zeros(rows.owner.size, dtype=np.int64)
        for number, check in enumerate(self.checks, 1):
            left = np.flatnonzero(first == 0)
            if left.size:
                first[left[~check.keeps(rows.take(left))]] = number
        return first


@dataclass(frozen=True, eq=False)
class IsWithinBound:
    """Keeps rows that change no more features, or are no farther, than a parameter allows."""

    parameter: str
    most: float
    distance: Distance | None = None

    @property
    def name(self) -> str:
        """The name of the parameter, and its value."""
        return f"{self.parameter}={self.most}"

    def keeps(self, selected: CandidateRows) -> BoolArray:
        """Rows within the bound."""
        if self.distance is None:
            return np.asarray((selected.codes != OWN).sum(axis=0) <= self.most)
        return measure_rows(self.distance, selected) <= self.most


@dataclass(frozen=True, eq=False)
class IsNoCopy:
    """Keeps rows that copy no training row; ``training`` are their codes by ``rows_as_bytes``."""

    training: np.ndarray
    name: str = "copies='never'"

    def keeps(self, selected: CandidateRows) -> BoolArray:
        """Rows that differ from every training row somewhere."""
        codes = CandidateEncodings(selected.factuals, selected.tables).codes(selected)
        return ~np.isin(rows_as_bytes(codes.T), self.training)


@dataclass(frozen=True, eq=False)
class ObeysConstraint:
    """Keeps rows that obey a constraint on whole rows."""

    constraint: RowConstraint
    schema: Schema

    @property
    def name(self) -> str:
        """The constraint's name, quoted, and whether it is about a column that cannot change."""
        name, schema = repr(self.constraint.name), self.schema
        if isinstance(self.constraint, Derived):
            target = schema.features[schema.position_of[self.constraint.target]]
            return f"{name}{' (immutable)' if target.immutable else ''}"
        return name

    def keeps(self, selected: CandidateRows) -> BoolArray:
        """Rows that obey the constraint."""
        return self.constraint.keeps(selected)


@dataclass(frozen=True, eq=False)
class IsEncouraged:
    """Keeps rows without a discouraged change."""

    constraints: Constraints
    name: str = "discouraged changes"

    def keeps(self, selected: CandidateRows) -> BoolArray:
        """Rows that change nothing in a discouraged way."""
        made = self.constraints.discouraged_changes(selected)
        discouraged = np.zeros(selected.owner.size, dtype=bool)
        return ~np.any([discouraged, *made.values()], axis=0)


@dataclass(frozen=True, eq=False)
class KeepsRelation:
    """Keeps rows in which a relation holds, or is broken no worse than in the person's own row.

    Several relations may share ``column_cache``, which is filled when rows are checked; threads
    that miss an entry at once compute the same.
    """

    relation: Relation
    column_cache: ColumnCache = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The relation."""
        return self.relation.name

    def keeps(self, selected: CandidateRows) -> BoolArray:
        """Rows that keep the relation."""
        rows, owner = selected.factuals, selected.owner
        excess = self.relation.excess(CandidateColumns(selected, self.column_cache))
        own = remember(
            self.column_cache, ("own excess", self.relation), rows, lambda: self._own_excess(rows)
        )[owner]
        # A target that keeps the person's deviation may be rounded to the digits of its column.
        rounding = self._rounding(rows.schema)
        return np.asarray((excess == 0) | ((own > 0) & (excess <= own + rounding)))

    def _own_excess(self, rows: EncodedRows) -> FloatArray:
        own = np.full((rows.schema.mutable.size, len(rows)), OWN, dtype=np.int32)
        selected = CandidateRows(rows, np.arange(len(rows)), own, rows.tables)
        return self.relation.excess(CandidateColumns(selected, self.column_cache))

    def _rounding(self, schema: Schema) -> float:
        """How far rounding may move a recomputed value."""
        from ..relations.relation import Equality

        if not isinstance(self.relation, Equality):
            return 0.0
        target = schema.features[schema.position_of[self.relation.target]]
        return target.resolution / 2 + 2 * self.relation.rounding


class IsPlausible:
    """Keeps rows that are plausible enough, or at least as plausible as the person's own row."""

    def __init__(self, model: PlausibilityModel, min_plausibility: float) -> None:
        self.model, self.min_plausibility = model, min_plausibility
        self._encodings: CandidateEncodings | None = None
        # Of the last call: the people; the nonconformity of their own rows, NaN if unknown; and for
        # wide tables, in which rows are assessed by their changes alone, what assesses them.
        self._people: tuple[EncodedRows, FloatArray, IncrementalAssessor | None] | None = None

    @property
    def name(self) -> str:
        """The name of the parameter, and its value."""
        return f"min_plausibility={self.min_plausibility}"

    def keeps(self, selected: CandidateRows) -> BoolArray:
        """Rows that are plausible enough."""
        rows, own, assessor = self._read_people(selected.factuals)
        encodings = self.encodings(selected)
        given = encodings.tree_codes(selected), encodings.numbers(selected)
        if assessor is None:
            assessed = self.model.assess(*given)
        else:
            assessed = assessor.assess(selected.owner, selected.codes != OWN, *given)
        plausible: BoolArray = assessed.p_value >= self.min_plausibility
        odd = np.flatnonzero(~plausible)
        owner = selected.owner[odd]
        new = np.unique(owner[np.isnan(own[owner])])
        if new.size:
            own_rows = self.model.assess(rows.tree_codes[:, new], rows.all_numbers[:, new])
            own[new] = own_rows.nonconformity
        plausible[odd] = assessed.nonconformity[odd] <= own[owner]
        return plausible

    def encodings(self, selected: CandidateRows) -> CandidateEncodings:
        """The encodings of the values of rows, kept for the next call."""
        known, factuals, tables = self._encodings, selected.factuals, selected.tables
        if known is None or known.rows is not factuals or known.tables is not tables:
            known = self._encodings = CandidateEncodings(factuals, tables)
        return known

    def _read_people(
        self, rows: EncodedRows
    ) -> tuple[EncodedRows, FloatArray, IncrementalAssessor | None]:
        known = self._people
        if known is None or known[0] is not rows:
            from ..plausibility.model import IncrementalAssessor

            assessor = IncrementalAssessor(self.model, rows) if rows.schema.is_wide else None
            known = self._people = rows, np.full(len(rows), np.nan), assessor
        return known


@dataclass(frozen=True, eq=False)
class HasKnownPairs:
    """Keeps rows without a pair of values that no training row has, or only the person's own."""

    plausible: IsPlausible
    name: str = "pairs of values that nobody in the training data has"

    def keeps(self, selected: CandidateRows) -> BoolArray:
        """Rows without such a pair."""
        codes = self.plausible.encodings(selected).tree_codes(selected)
        own = selected.factuals.tree_codes[:, selected.owner]
        return ~self.plausible.model.pairs_.contain_empty(codes, own)
