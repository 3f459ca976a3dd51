"""The plausibility model: how unusual rows are among accepted training rows.

Takes the training rows with the desired decision. Gives every row a p-value: the share of accepted
rows, held out from what is learned, that are at least as unusual; and a knn distance: the mean
distance to the nearest accepted rows, summed over all features, range-scaled, 1 between two levels.

Always true: the order of the training rows changes nothing; a row's p-value does not depend on
other rows.
"""

from __future__ import annotations

import threading

import numpy as np

from ..candidates import CandidateRows
from ..encodings import CandidateEncodings
from ..kernels import (
    BoolArray,
    Codes,
    FloatArray,
    IntArray,
    Neighbours,
    build_neighbours,
    nearest_distances,
    rows_as_bytes,
    sort_rows,
)
from ..model.associations import Associations
from ..tables.schema import WIDE_COLUMNS, EncodedRows
from .conditionals import Conditionals
from .conformal import Calibration, Plausibility
from .pairs import EmptyPairs
from .support import Support, level_columns

# Accepted rows that are held out for calibration: one in three, or more of few rows, but not more
# than half of them. And the most rows to learn from and to calibrate on.
HELD_OUT, MIN_HELD_OUT, MAX_HELD_OUT, MAX_SEEN = 3, 200, 5_000, 20_000
# The more columns a wide table has, the fewer rows each model sees, but not fewer than these.
MIN_SEEN = 1_500
# A level with a smaller share of the accepted rows is rare. Of the rows with one, at least so many
# are held out, or half of them.
RARE_LEVEL_SHARE, MIN_RARE = 0.02, 40
N_NEIGHBOURS = 5
# Accepted rows whose own knn distances the quantiles are taken from, at most; fewer of wide tables.
N_TYPICAL, N_TYPICAL_WIDE = 2_000, 500

# The measures of a row, and their types.
MEASURES = {"plausibility": float, "knn_distance_quantile": float, "no_reference_group": bool}


class PlausibilityModel:
    """What accepted training rows look like."""

    def fit(
        self, rows: EncodedRows, is_desired: BoolArray, order: IntArray, n_jobs: int | None = 1
    ) -> PlausibilityModel:
        """Learn from the training rows."""
        # Sorted, so that the order of the training rows changes nothing.
        in_order, rng = sort_rows(rows.codes), np.random.default_rng(0)
        yes, no = in_order[is_desired[in_order]], in_order[~is_desired[in_order]]
        mixed = yes[rng.permutation(yes.size)]
        self._describe(rows.take(np.flatnonzero(is_desired)))
        is_held_out = self._hold_out(rows.tree_codes[:, mixed])
        most = most_seen(len(rows.schema.features))
        held_out, seen = rows.take(mixed[is_held_out]), mixed[~is_held_out][:most]
        learned = np.concatenate([seen, no[rng.permutation(no.size)[:most]]])
        associations = Associations.of(rows) if rows.schema.is_wide else None
        self.pairs_: EmptyPairs = EmptyPairs.fit(rows, associations)
        self.support_: Support = Support().fit(rows, seen, learned, order, n_jobs, associations)
        # Relations between numbers are the same for all rows, and more rows show them better.
        self.conditionals_: Conditionals = Conditionals().fit(
            rows.take(learned), n_jobs, associations
        )
        nonconformity = self._nonconformity(held_out.tree_codes, held_out.all_numbers)
        rare = self.has_rare(held_out.tree_codes)
        self.calibration_: Calibration = Calibration.fit(nonconformity, rare)
        return self

    @classmethod
    def restored(
        cls,
        rows: EncodedRows,
        support: Support,
        conditionals: Conditionals,
        calibration: Calibration,
        pairs: EmptyPairs,
    ) -> PlausibilityModel:
        """The model of what was learned before, and the accepted rows."""
        model = cls()._describe(rows)
        model.support_, model.conditionals_ = support, conditionals
        model.calibration_, model.pairs_ = calibration, pairs
        return model

    def _describe(self, rows: EncodedRows) -> PlausibilityModel:
        """Learn what depends on the accepted rows alone."""
        self.knn_distance_: KnnDistance = KnnDistance().fit(rows)
        self.codes_: Codes = rows.codes
        self.reference_groups_: np.ndarray = np.unique(_immutables(rows, np.arange(len(rows))))
        self.rare_: dict[int, BoolArray] = _rare_levels(rows)
        return self

    def _hold_out(self, tree_codes: Codes) -> BoolArray:
        """Which of the accepted rows, in random order, are for calibration alone."""
        n_accepted, rare = tree_codes.shape[1], np.flatnonzero(self.has_rare(tree_codes))
        is_held_out = np.arange(n_accepted) < n_calibration(n_accepted)
        # The first ones: a random part of their kind, whatever its size.
        is_held_out[rare[: min((rare.size + 1) // 2, MIN_RARE)]] = True
        return is_held_out

    def assess(self, tree_codes: Codes, numbers: FloatArray) -> Plausibility:
        """How plausible rows are."""
        nonconformity = self._nonconformity(tree_codes, numbers)
        return self.calibration_(nonconformity, self.has_rare(tree_codes))

    def measures(self, selected: CandidateRows) -> dict[str, np.ndarray]:
        """How plausible rows are, by name of the measure.

        ``plausibility``: share of real accepted rows, held out, that are at least as unusual.
        ``knn_distance_quantile``: share of real accepted rows with a smaller kNN distance.
        ``no_reference_group``: no accepted training row has the person's immutable values, so
        the plausibility of their rows cannot be judged.
        """
        encodings = CandidateEncodings(selected.factuals, selected.tables)
        tree_codes, numbers = encodings.tree_codes(selected), encodings.numbers(selected)
        points = encodings.points(selected)
        return {
            "plausibility": self.assess(tree_codes, numbers).p_value,
            "knn_distance_quantile": self.knn_distance_.quantile(self.knn_distance_(points)[0]),
            "no_reference_group": ~np.isin(
                _immutables(selected.factuals, selected.owner), self.reference_groups_
            ),
        }

    def _nonconformity(self, tree_codes: Codes, numbers: FloatArray) -> FloatArray:
        """Nonconformity of the levels, then of each number, shape (n_parts, n_rows)."""
        of_levels = self.support_.nonconformity(tree_codes)
        return np.concatenate([of_levels, self.conditionals_.nonconformity(tree_codes, numbers)])

    def has_rare(self, tree_codes: Codes) -> BoolArray:
        """Whether rows have a rare level."""
        has_rare = np.zeros(tree_codes.shape[1], dtype=bool)
        for column, is_rare in self.rare_.items():
            has_rare |= is_rare[tree_codes[column]]
        return has_rare


class KnnDistance:
    """Mean distance to the nearest accepted training rows."""

    def fit(self, rows: EncodedRows) -> KnnDistance:
        """Index the accepted rows, and measure how far apart they are themselves."""
        points = rows.points
        self.neighbours_: Neighbours = build_neighbours(points, rows.schema.is_level)
        order, n_typical = (
            sort_rows(rows.codes),
            N_TYPICAL_WIDE if rows.schema.is_wide else N_TYPICAL,
        )
        chosen = order[np.random.default_rng(0).permutation(order.size)[:n_typical]]
        distances = nearest_distances(self.neighbours_, points[chosen], N_NEIGHBOURS + 1)
        # The nearest of all is the row itself.
        self.typical_: FloatArray = np.sort(_mean(distances[:, 1:]))
        return self

    def __call__(self, points: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Knn distance of each row, and whether it equals an accepted row.

        ``points`` has the shape (n_rows, n_features).
        """
        distances = nearest_distances(self.neighbours_, points, N_NEIGHBOURS)
        return _mean(distances), distances[:, 0] == 0

    @property
    def median(self) -> float:
        """The median knn distance of accepted rows."""
        return float(np.median(self.typical_))

    def quantile(self, knn_distance: FloatArray) -> FloatArray:
        """Share of accepted rows with a smaller knn distance."""
        n_smaller: IntArray = np.searchsorted(self.typical_, knn_distance, side="left")
        return n_smaller / max(self.typical_.size, 1)


class IncrementalAssessor:
    """Assesses rows in which people change few of their cells.

    A model of a number looks at few columns of a wide table. It scores a row like the
    person's own row, unless one of these columns was changed. So the result equals that of
    :meth:`PlausibilityModel.assess`, bit for bit.
    """

    def __init__(self, model: PlausibilityModel, people: EncodedRows) -> None:
        self.model, self.people = model, people
        self._depends = model.conditionals_.depends(len(people.schema.features))
        # How unusual each number is in the own rows of people, in the order in which they came, and
        # the rank of each person in that order; -1 for those who have not come yet.
        self._own: FloatArray = np.empty((2 * len(self._depends), 0))
        self._rank: IntArray = np.full(len(people), -1)
        self._lock = threading.Lock()

    def assess(
        self, owner: IntArray, changed: BoolArray, tree_codes: Codes, numbers: FloatArray
    ) -> Plausibility:
        """How plausible rows are."""
        model, inverse = self.model, self._inverse_of_own(owner)
        row_numbers = [np.flatnonzero(is_affected) for is_affected in self._affected(changed)]
        of_levels, tails = model.support_.nonconformity(tree_codes), model.calibration_.parts
        of_numbers = model.conditionals_.nonconformity_at(row_numbers, tree_codes, numbers)
        pairs = zip(tails[len(of_levels) :], of_numbers, strict=True)
        for part, (tail, values) in enumerate(pairs):
            if values.size:
                new = tail.inverse(values) if values.any() else 1.0
                inverse[part, row_numbers[part // 2]] = new
        largest = inverse.max(axis=0, initial=1.0)
        for tail, values in zip(tails, of_levels, strict=False):
            largest = np.maximum(largest, tail.inverse(values))
        return model.calibration_.compare(largest, model.has_rare(tree_codes))

    def _affected(self, changed: BoolArray) -> BoolArray:
        """Which models look at a changed cell of each row, shape (n_models, n_rows)."""
        affected = np.zeros((len(self._depends), changed.shape[1]), dtype=bool)
        for place in np.flatnonzero(changed.any(axis=1)).tolist():
            affected[self._depends[:, self.people.schema.mutable[place]]] |= changed[place]
        return affected

    def _inverse_of_own(self, owner: IntArray) -> FloatArray:
        """Inverses of the numbers of people's own rows, each person's computed once."""
        with self._lock:
            self._assess_own(np.unique(owner[self._rank[owner] < 0]))
            return self._own[:, self._rank[owner]]

    def _assess_own(self, people: IntArray) -> None:
        """Assess the numbers in the own rows of people who have not come before."""
        if people.size:
            model, rows = self.model, self.people
            of_numbers = model.conditionals_.nonconformity(
                rows.tree_codes[:, people], rows.all_numbers[:, people]
            )
            n_before = len(model.calibration_.parts) - len(of_numbers)
            full = np.concatenate([np.zeros((n_before, people.size)), of_numbers])
            self._rank[people] = self._own.shape[1] + np.arange(people.size)
            inverse = model.calibration_.inverse(full)[n_before:]
            self._own = np.concatenate([self._own, inverse], axis=1)


def n_calibration(n_accepted: int) -> int:
    """How many of the accepted rows are held out for calibration."""
    return min(max(n_accepted // HELD_OUT, min(n_accepted // 2, MIN_HELD_OUT)), MAX_HELD_OUT)


def most_seen(n_features: int) -> int:
    """The most accepted rows to learn from, and the most others."""
    return max(min(MAX_SEEN, MAX_SEEN * WIDE_COLUMNS**2 // n_features**2), MIN_SEEN)


def _rare_levels(rows: EncodedRows) -> dict[int, BoolArray]:
    """Which levels of each column are rare; the last entry is for unseen levels."""
    rare = {}
    for column in level_columns(rows.schema).tolist():
        n_codes = rows.schema.features[column].n_codes
        counts = np.bincount(rows.codes[column], minlength=n_codes + 1)
        rare[column] = counts < RARE_LEVEL_SHARE * len(rows)
    return rare


def _immutables(rows: EncodedRows, people: IntArray) -> np.ndarray:
    """One opaque value for the immutable cells of each row; the same for all if there are none."""
    immutable = rows.codes[rows.schema.immutable][:, people]
    if not len(immutable):
        return np.zeros(people.size, dtype="V1")
    return rows_as_bytes(immutable.T)


def _mean(distances: FloatArray) -> FloatArray:
    """Mean over the neighbours that there are, 0 if there are none."""
    exists = np.isfinite(distances)
    total = np.where(exists, distances, 0.0).sum(axis=1)
    return total / np.maximum(exists.sum(axis=1), 1)
