"""The plausibility model: the support of accepted training rows, and distances to them.

Takes the training rows with the desired decision; measures how plausible returned rows are.
"""

from __future__ import annotations

import numpy as np

from ..candidates import CandidateRows, Lookup
from ..kernels import BoolArray, Codes, IntArray, rows_as_bytes
from ..tables.schema import EncodedRows
from .neighbours import KnnDistance
from .support import Support


class PlausibilityModel:
    """What accepted training rows look like.

    Attributes
    ----------
    support_ : Support
        Their calibrated support.
    knn_distance_ : KnnDistance
        Distances to them.
    reference_groups_ : array
        The distinct combinations of their immutable values, as bytes.
    codes_ : (n_features, n_accepted)
        The rows themselves.
    """

    def fit(
        self, rows: EncodedRows, accepted: BoolArray, order: IntArray, n_jobs: int | None = 1
    ) -> PlausibilityModel:
        """Learn from the training rows; parameters as in :meth:`Support.fit`."""
        support = Support().fit(rows, accepted, order, n_jobs)
        return self._with(support, rows.take(np.flatnonzero(accepted)))

    @classmethod
    def from_support(cls, support: Support, rows: EncodedRows) -> PlausibilityModel:
        """The model with a support that was learned before, and the accepted rows."""
        return cls()._with(support, rows)

    def _with(self, support: Support, rows: EncodedRows) -> PlausibilityModel:
        self.support_: Support = support
        self.knn_distance_: KnnDistance = KnnDistance().fit(rows)
        self.codes_: Codes = rows.exact
        self.reference_groups_: np.ndarray = np.unique(_immutables(rows, np.arange(len(rows))))
        return self

    def measures(self, selected: CandidateRows, share: float) -> dict[str, np.ndarray]:
        """How plausible rows are, by name of the measure.

        ``in_support``: inside the support for this share. ``knn_distance_quantile``: share of
        real accepted rows with a smaller kNN distance. ``no_reference_group``: no accepted
        training row has the person's immutable values, so nothing is known of what is usual for
        such a person.
        """
        lookup = Lookup(selected.rows, selected.tables)
        descent = lookup.descent(selected.owner, selected.codes)
        points = lookup.points(selected.owner, selected.codes)
        outside = self.support_.n_outside(descent, self.support_.sizes(share))
        return {
            "in_support": outside == 0,
            "knn_distance_quantile": self.knn_distance_.quantile(self.knn_distance_(points)[0]),
            "no_reference_group": ~np.isin(
                _immutables(selected.rows, selected.owner), self.reference_groups_
            ),
        }


def _immutables(rows: EncodedRows, people: IntArray) -> np.ndarray:
    """The immutable values of some rows as one opaque value each, alike if there are none."""
    immutable = rows.exact[rows.schema.immutable][:, people]
    if not len(immutable):
        return np.zeros(people.size, dtype="V1")
    return rows_as_bytes(immutable.T)
