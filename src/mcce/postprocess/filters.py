"""Rules of step 3: reasons not to return a candidate, whatever the predictor says.

Paper, section "Privacy": no copies of training rows. Beyond the paper: constraints on whole rows.
Upper bounds on sparsity and distance are not here but in the ranking itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..candidates import CandidateRows, Candidates, Lookup
from ..constraints.collection import Constraints
from ..constraints.rows import MaxChanges, Relation, Together
from ..kernels import BoolArray, Codes, IntArray, rows_as_bytes
from ..plausibility.support import Support
from ..tables.schema import OWN

ROWS_PER_PIECE = 100_000


@dataclass(frozen=True, eq=False)
class ExcludeTrainingRows:
    """Never an exact copy of a training row; those come as by ``rows_as_bytes`` of their codes."""

    training: np.ndarray
    name: str = "exclude_training_rows"

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

    def keeps(self, chosen: CandidateRows) -> BoolArray:
        """Rows that differ from every training row somewhere."""
        mutable = chosen.rows.schema.mutable
        codes = chosen.rows.exact[:, chosen.owner]
        drawn = chosen.training_codes()
        codes[mutable] = np.where(chosen.codes == OWN, codes[mutable], drawn)
        return ~self._copies(codes)

    def _copies(self, codes: Codes) -> BoolArray:
        return np.isin(rows_as_bytes(codes.T), self.training)


@dataclass(frozen=True, eq=False)
class ObeysConstraint:
    """A constraint on whole rows."""

    constraints: Constraints
    constraint: MaxChanges | Together | Relation

    @property
    def name(self) -> str:
        """As the constraint is called."""
        return self.constraint.name

    def __call__(self, candidates: Candidates) -> BoolArray:
        """Candidates that the constraint lets pass; of equal ones the first speaks for all."""
        keep = np.zeros(candidates.shape, dtype=bool)
        person, draw = np.nonzero(candidates.distinct[candidates.group])
        for start in range(0, person.size, ROWS_PER_PIECE):
            piece = slice(start, start + ROWS_PER_PIECE)
            chosen = candidates.select(person[piece], draw[piece])
            keep[person[piece], draw[piece]] = self.keeps(chosen)
        return keep

    def keeps(self, chosen: CandidateRows) -> BoolArray:
        """Rows that the constraint lets pass."""
        if isinstance(self.constraint, Relation):
            return self.constraint.holds(chosen.frame, chosen.rows.schema.adapter)
        places = self.constraints.mutable_positions(self.constraint)
        return self.constraint.holds(chosen.codes[places] != OWN)


@dataclass(frozen=True, eq=False)
class InSupport:
    """Looks like a real accepted row."""

    support: Support
    sizes: Codes
    name: str = "support"

    def __call__(self, candidates: Candidates) -> BoolArray:
        """Candidates that are inside; people of a group share them."""
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
    """Not a candidate that failed when the predictor was asked once more."""

    person: IntArray
    draw: IntArray
    name: str = "a score that changed when asked again"

    def __call__(self, candidates: Candidates) -> BoolArray:
        """Candidates that have not failed for this person."""
        keep = np.ones(candidates.shape, dtype=bool)
        order = np.argsort(candidates.people)
        here = np.isin(self.person, candidates.people) & np.isin(self.draw, candidates.draws)
        known = np.flatnonzero(here)
        place = order[np.searchsorted(candidates.people, self.person[known], sorter=order)]
        keep[place, np.searchsorted(candidates.draws, self.draw[known])] = False
        return keep
