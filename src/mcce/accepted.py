"""What fit learns of the accepted training rows, for searches that look beyond the draws.

Takes the training rows with the desired decision; gives the support, the nearness, and for the rows
that are returned, how real they look.
"""

from __future__ import annotations

import numpy as np

from .candidates import Chosen, Lookup
from .kernels import BoolArray, Codes, IntArray, rows_as_bytes
from .nearness import Nearness
from .schema import Rows
from .support import Support


class Accepted:
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
        self, rows: Rows, accepted: BoolArray, order: IntArray, n_jobs: int | None = 1
    ) -> Accepted:
        """Learn from the training rows; see :meth:`Support.fit`."""
        support = Support().fit(rows, accepted, order, n_jobs)
        return self.keep(support, rows.take(np.flatnonzero(accepted)))

    def keep(self, support: Support, rows: Rows) -> Accepted:
        """Take a support that was learned before, and the accepted rows."""
        self.support_: Support = support
        self.nearness_: Nearness = Nearness().fit(rows)
        self.codes_: Codes = rows.exact
        self.peers_: np.ndarray = np.unique(_immutables(rows, np.arange(len(rows))))
        return self

    def measures(self, chosen: Chosen, share: float) -> dict[str, np.ndarray]:
        """By name, how real rows look.

        ``in_support``: inside the support for this share. ``nearness``: the share of real accepted
        rows that are nearer to the others. ``without_peers``: no accepted training row has the
        person's immutable values, so nothing is known of what is usual for such a person.
        """
        lookup = Lookup(chosen.rows, chosen.tables)
        descent = lookup.descent(chosen.owner, chosen.codes)
        points = lookup.points(chosen.owner, chosen.codes)
        outside = self.support_.n_outside(descent, self.support_.sizes(share))
        return {
            "in_support": outside == 0,
            "nearness": self.nearness_.quantile(self.nearness_(points)[0]),
            "without_peers": ~np.isin(_immutables(chosen.rows, chosen.owner), self.peers_),
        }


def _immutables(rows: Rows, people: IntArray) -> np.ndarray:
    """The immutable values of some rows as one opaque value each, alike if there are none."""
    immutable = rows.exact[rows.schema.immutable][:, people]
    if not len(immutable):
        return np.zeros(people.size, dtype="V1")
    return rows_as_bytes(immutable.T)
