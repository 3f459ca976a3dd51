"""Rules of step 3: reasons not to return a candidate, whatever the predictor says.

Paper, section "Privacy": no copies of training rows. Upper bounds on sparsity and distance are not
here but in the ranking itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .candidates import Candidates
from .kernels import BoolArray, IntArray, rows_as_bytes


@dataclass(frozen=True, eq=False)
class NoTrainingRow:
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
        copies = np.isin(rows_as_bytes(codes.reshape(len(codes), -1).T), self.training)
        return ~copies.reshape(first.size, n_draws)[candidates.group]


@dataclass(frozen=True, eq=False)
class NotAgain:
    """Not a candidate that failed when the predictor was asked once more."""

    person: IntArray
    draw: IntArray
    name: str = "a score that changed when asked again"

    def __call__(self, candidates: Candidates) -> BoolArray:
        """Candidates that have not failed for this person."""
        keep = np.ones(candidates.shape, dtype=bool)
        order = np.argsort(candidates.people)
        known = np.flatnonzero(np.isin(self.person, candidates.people))
        place = order[np.searchsorted(candidates.people, self.person[known], sorter=order)]
        keep[place, np.searchsorted(candidates.draws, self.draw[known])] = False
        return keep
