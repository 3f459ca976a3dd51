"""What fit learns of the accepted training rows, for searches that look beyond the draws.

Takes the training rows with the desired decision; gives the support, the nearness, and for the rows
that are returned, how real they look.
"""

from __future__ import annotations

import numpy as np

from ..candidates import CandidateRows, Lookup
from ..kernels import BoolArray, Codes, IntArray, rows_as_bytes
from ..tables.schema import EncodedRows
from .neighbours import KnnDistance
from .support import Support


class PlausibilityModel:
    """The accepted training rows.

    Attributes
    ----------
    support_ : Support
        What they look like.
    nearness_ : Nearness
        How near a row is to them.
    peers_ : array
        The distinct combinations of their immutable values, as bytes.
    codes_ : (n_features, n_accepted)
        The rows themselves.
    """

    def fit(
        self, rows: EncodedRows, accepted: BoolArray, order: IntArray, n_jobs: int | None = 1
    ) -> PlausibilityModel:
        """Learn from the training rows; see :meth:`Support.fit`."""
        support = Support().fit(rows, accepted, order, n_jobs)
        return self.keep(support, rows.take(np.flatnonzero(accepted)))

    def keep(self, support: Support, rows: EncodedRows) -> PlausibilityModel:
        """Take a support that was learned before, and the accepted rows."""
        self.support_: Support = support
        self.knn_distance_: KnnDistance = KnnDistance().fit(rows)
        self.codes_: Codes = rows.exact
        self.reference_groups_: np.ndarray = np.unique(_immutables(rows, np.arange(len(rows))))
        return self

    def measures(self, chosen: CandidateRows, share: float) -> dict[str, np.ndarray]:
        """By name, how real rows look.

        ``in_support``: inside the support for this share. ``knn_distance_quantile``: the share of
        real accepted rows that are nearer to the others. ``no_reference_group``: no accepted
        training row has the person's immutable values, so nothing is known of what is usual for
        such a person.
        """
        lookup = Lookup(chosen.rows, chosen.tables)
        descent = lookup.descent(chosen.owner, chosen.codes)
        points = lookup.points(chosen.owner, chosen.codes)
        outside = self.support_.n_outside(descent, self.support_.sizes(share))
        return {
            "in_support": outside == 0,
            "knn_distance_quantile": self.knn_distance_.quantile(self.knn_distance_(points)[0]),
            "no_reference_group": ~np.isin(
                _immutables(chosen.rows, chosen.owner), self.reference_groups_
            ),
        }


def _immutables(rows: EncodedRows, people: IntArray) -> np.ndarray:
    """The immutable values of some rows as one opaque value each, alike if there are none."""
    immutable = rows.exact[rows.schema.immutable][:, people]
    if not len(immutable):
        return np.zeros(people.size, dtype="V1")
    return rows_as_bytes(immutable.T)
