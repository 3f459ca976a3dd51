"""The plausibility model: how strange rows are among accepted training rows.

Takes the training rows with the desired decision. Gives every row a p-value: the share of accepted
rows, held out from what is learned, that look at least as strange.

Always true: the order of the training rows changes nothing; a row's p-value does not depend on
other rows.
"""

from __future__ import annotations

import numpy as np

from ..candidates import CandidateRows, Lookup
from ..kernels import BoolArray, Codes, FloatArray, IntArray, rows_as_bytes, sort_rows
from ..model.associations import WIDE, Associations, is_wide
from ..tables.schema import EncodedRows
from .conditionals import Conditionals
from .conformal import Calibration, Plausibility
from .neighbours import KnnDistance
from .support import Support, level_positions

# Accepted rows that are held out for calibration: one in three, or more of few rows, but not more
# than half of them. And the most rows to learn from and to calibrate on.
HELD_OUT, MIN_HELD_OUT, MAX_HELD_OUT, MAX_SEEN = 3, 200, 5_000, 20_000
# The more columns a wide table has, the fewer rows each model sees, but not fewer than these.
MIN_SEEN = 1_500
# A level with a smaller share of the accepted rows is rare.
RARE = 0.02


class PlausibilityModel:
    """What accepted training rows look like."""

    def fit(
        self, rows: EncodedRows, accepted: BoolArray, order: IntArray, n_jobs: int | None = 1
    ) -> PlausibilityModel:
        """Learn from the training rows."""
        alike = sort_rows(rows.exact)
        yes, no = alike[accepted[alike]], alike[~accepted[alike]]
        rng = np.random.default_rng(0)
        mixed = yes[rng.permutation(yes.size)]
        n_held_out = n_calibration(yes.size)
        most = most_seen(len(rows.schema.features))
        held_out, seen = rows.take(mixed[:n_held_out]), mixed[n_held_out:][:most]
        others = no[rng.permutation(no.size)[:most]]
        everybody = np.concatenate([seen, others])
        self._describe(rows.take(np.flatnonzero(accepted)))
        screen = Associations.of(rows) if is_wide(rows.schema) else None
        self.support_: Support = Support().fit(rows, seen, everybody, order, n_jobs, screen)
        # Relations between numbers are the same for everybody, and more rows show them better.
        self.conditionals_: Conditionals = Conditionals().fit(rows.take(everybody), n_jobs, screen)
        nonconformity = self._nonconformity(held_out.descent, held_out.all_numbers)
        rare = self.has_rare(held_out.descent)
        self.calibration_: Calibration = Calibration.fit(nonconformity, rare)
        return self

    @classmethod
    def restored(
        cls,
        rows: EncodedRows,
        support: Support,
        conditionals: Conditionals,
        calibration: Calibration,
    ) -> PlausibilityModel:
        """The model of what was learned before, and the accepted rows."""
        model = cls()._describe(rows)
        model.support_, model.conditionals_ = support, conditionals
        model.calibration_ = calibration
        return model

    def _describe(self, rows: EncodedRows) -> PlausibilityModel:
        """Learn what depends on the accepted rows alone."""
        self.knn_distance_: KnnDistance = KnnDistance().fit(rows)
        self.codes_: Codes = rows.exact
        self.reference_groups_: np.ndarray = np.unique(_immutables(rows, np.arange(len(rows))))
        self.rare_: dict[int, BoolArray] = _rare_levels(rows)
        return self

    def assess(self, descent: Codes, numbers: FloatArray) -> Plausibility:
        """How plausible rows are."""
        nonconformity = self._nonconformity(descent, numbers)
        return self.calibration_(nonconformity, self.has_rare(descent))

    def measures(self, selected: CandidateRows) -> dict[str, np.ndarray]:
        """How plausible rows are, by name of the measure.

        ``plausibility``: share of real accepted rows, held out, that look at least as strange.
        ``knn_distance_quantile``: share of real accepted rows with a smaller kNN distance.
        ``no_reference_group``: no accepted training row has the person's immutable values, so
        nothing is known of what is usual for such a person.
        """
        lookup = Lookup(selected.rows, selected.tables)
        cells = selected.owner, selected.codes
        points = lookup.points(*cells)
        return {
            "plausibility": self.assess(lookup.descent(*cells), lookup.numbers(*cells)).p_value,
            "knn_distance_quantile": self.knn_distance_.quantile(self.knn_distance_(points)[0]),
            "no_reference_group": ~np.isin(
                _immutables(selected.rows, selected.owner), self.reference_groups_
            ),
        }

    def _nonconformity(self, descent: Codes, numbers: FloatArray) -> FloatArray:
        """Nonconformity of the levels, then of each number, shape (n_parts, n_rows)."""
        of_levels = self.support_.nonconformity(descent)
        return np.concatenate([of_levels, self.conditionals_.nonconformity(descent, numbers)])

    def has_rare(self, descent: Codes) -> BoolArray:
        """Whether rows have a rare level."""
        found = np.zeros(descent.shape[1], dtype=bool)
        for position, rare in self.rare_.items():
            found |= rare[descent[position]]
        return found


def n_calibration(n_accepted: int) -> int:
    """How many of the accepted rows are held out for calibration."""
    return min(max(n_accepted // HELD_OUT, min(n_accepted // 2, MIN_HELD_OUT)), MAX_HELD_OUT)


def most_seen(n_features: int) -> int:
    """How many accepted rows are learned from at most, and as many others."""
    return max(min(MAX_SEEN, MAX_SEEN * WIDE**2 // n_features**2), MIN_SEEN)


def _rare_levels(rows: EncodedRows) -> dict[int, BoolArray]:
    """Which levels are rare, by position of mutable features; unseen ones, the last, are."""
    rare = {}
    for position in level_positions(rows.schema).tolist():
        counts = np.bincount(
            rows.exact[position], minlength=rows.schema.features[position].n_codes + 1
        )
        rare[position] = counts < RARE * len(rows)
    return rare


def _immutables(rows: EncodedRows, people: IntArray) -> np.ndarray:
    """The immutable values of some rows as one opaque value each, alike if there are none."""
    immutable = rows.exact[rows.schema.immutable][:, people]
    if not len(immutable):
        return np.zeros(people.size, dtype="V1")
    return rows_as_bytes(immutable.T)
