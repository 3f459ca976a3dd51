"""Filters of step 3: reasons not to return a candidate, whatever the predictor says.

Paper, section "Privacy": no copies of training rows. Beyond the paper: constraints on whole rows.
Upper bounds on sparsity and distance are not here but in the ranking itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..candidates import CandidateRows, Candidates, Lookup
from ..constraints.collection import Constraints
from ..constraints.derived import Derived
from ..constraints.rows import MaxChanges, Relation, Together
from ..kernels import BoolArray, Codes, IntArray, rows_as_bytes
from ..plausibility.support import Support
from ..tables.schema import OWN

ROWS_PER_PIECE = 100_000


@dataclass(frozen=True, eq=False)
class ExcludeTrainingRows:
    """Excludes exact copies of training rows, given as by ``rows_as_bytes`` of their codes."""

    training: np.ndarray
    name: str = "copies='never'"

    def __call__(self, candidates: Candidates) -> BoolArray:
        """Candidates that differ from every training row somewhere."""
        schema = candidates.rows.schema
        n_draws = candidates.draws.size
        _, first = np.unique(candidates.group, return_index=True)
        codes = np.empty((len(schema.features), first.size, n_draws), dtype=np.int32)
        codes[schema.mutable] = candidates.training_codes()
        own = candidates.rows.exact[:, candidates.people[first]]
        codes[schema.immutable] = own[schema.immutable][:, :, None]
        copies = self._copies(codes.reshape(len(codes), -1))
        return ~copies.reshape(first.size, n_draws)[candidates.group]

    def keeps(self, selected: CandidateRows) -> BoolArray:
        """Rows that differ from every training row somewhere."""
        mutable = selected.rows.schema.mutable
        codes = selected.rows.exact[:, selected.owner]
        drawn = selected.training_codes()
        codes[mutable] = np.where(selected.codes == OWN, codes[mutable], drawn)
        return ~self._copies(codes)

    def _copies(self, codes: Codes) -> BoolArray:
        return np.isin(rows_as_bytes(codes.T), self.training)


@dataclass(frozen=True, eq=False)
class ObeysConstraint:
    """Keeps rows that obey a constraint on whole rows."""

    constraints: Constraints
    constraint: MaxChanges | Together | Relation | Derived

    @property
    def name(self) -> str:
        """The name of the constraint."""
        return self.constraint.name

    def __call__(self, candidates: Candidates) -> BoolArray:
        """Candidates that obey the constraint; of equal ones only the first is checked."""
        keep = np.zeros(candidates.shape, dtype=bool)
        person, draw = np.nonzero(candidates.distinct[candidates.group])
        for start in range(0, person.size, ROWS_PER_PIECE):
            piece = slice(start, start + ROWS_PER_PIECE)
            selected = candidates.select(person[piece], draw[piece])
            keep[person[piece], draw[piece]] = self.keeps(selected)
        return keep

    def keeps(self, selected: CandidateRows) -> BoolArray:
        """Rows that obey the constraint."""
        if isinstance(self.constraint, Relation):
            return self.constraint.holds(selected.frame, selected.rows.schema.adapter)
        if isinstance(self.constraint, Derived):
            rows, owner, frame = selected.rows, selected.owner, selected.frame
            return self.constraints.keeps_derived(self.constraint, rows, owner, frame)
        places = self.constraints.mutable_positions(self.constraint)
        return self.constraint.holds(selected.codes[places] != OWN)


@dataclass(frozen=True, eq=False)
class InSupport:
    """Keeps candidates inside the calibrated support."""

    support: Support
    sizes: Codes
    name: str = "support"

    def __call__(self, candidates: Candidates) -> BoolArray:
        """Candidates inside the support; people of a group share them."""
        shape = candidates.distinct.shape
        _, first = np.unique(candidates.group, return_index=True)
        owner = np.repeat(candidates.people[first], shape[1])
        codes = candidates.comparison.codes.reshape(-1, owner.size)
        inside = np.zeros(owner.size, dtype=bool)
        distinct = np.flatnonzero(candidates.distinct.ravel())
        lookup = Lookup(candidates.rows, candidates.tables)
        descent = lookup.descent(owner[distinct], codes[:, distinct])
        inside[distinct] = self.support.n_outside(descent, self.sizes) == 0
        return inside.reshape(shape)[candidates.group]


@dataclass(frozen=True, eq=False)
class ExcludeUnstable:
    """Excludes candidates that failed the final call of the predictor."""

    person: IntArray
    draw: IntArray
    name: str = "unstable score"

    def __call__(self, candidates: Candidates) -> BoolArray:
        """Candidates that have not failed for this person."""
        keep = np.ones(candidates.shape, dtype=bool)
        order = np.argsort(candidates.people)
        here = np.isin(self.person, candidates.people) & np.isin(self.draw, candidates.draws)
        known = np.flatnonzero(here)
        place = order[np.searchsorted(candidates.people, self.person[known], sorter=order)]
        keep[place, np.searchsorted(candidates.draws, self.draw[known])] = False
        return keep
