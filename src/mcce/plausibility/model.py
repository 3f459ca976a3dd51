"""The plausibility model: how strange rows are among accepted training rows.

Takes the training rows with the desired decision. Gives every row a p-value: the share of accepted
rows, held out from what is learned, that look at least as strange.

Always true: the order of the training rows changes nothing; a row's p-value does not depend on
other rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..candidates import CandidateRows, Lookup
from ..kernels import BoolArray, Codes, FloatArray, IntArray, rows_as_bytes
from ..tables.schema import EncodedRows, Schema
from .conformal import Calibration
from .neighbours import KnnDistance
from .support import Support

# Folds of the accepted rows, each held out once, and the most rows used for calibration.
N_SPLITS = 5
MAX_CALIBRATION = 20_000
# A level with a smaller share of the accepted rows is rare.
RARE = 0.02


class Plausibility(NamedTuple):
    """How plausible rows are, one value each."""

    p_value: FloatArray
    strangeness: FloatArray


class PlausibilityModel:
    """What accepted training rows look like.

    Attributes
    ----------
    support_ : Support
        Trees of the features.
    calibration_ : Calibration
        What is usual among held-out accepted rows.
    knn_distance_ : KnnDistance
        Distances to the accepted rows.
    reference_groups_ : array
        The distinct combinations of their immutable values, as bytes.
    codes_ : (n_features, n_accepted)
        The rows themselves.
    rare_ : list of arrays
        For each mutable feature, whether a level is rare, by code; all False for numbers.
    """

    def fit(
        self, rows: EncodedRows, accepted: BoolArray, order: IntArray, n_jobs: int | None = 1
    ) -> PlausibilityModel:
        """Learn from the training rows.

        Parameters
        ----------
        rows, accepted
            The training rows, and which have the desired decision.
        order
            Positions of the mutable features in the visit order.
        n_jobs
            Threads.

        Returns
        -------
        PlausibilityModel
            The fitted model.
        """
        alike = np.lexsort(rows.exact)
        yes, no = alike[accepted[alike]], alike[~accepted[alike]]
        rng = np.random.default_rng(0)
        mixed = yes[rng.permutation(yes.size)[:MAX_CALIBRATION]]
        others = no[rng.permutation(no.size)[:MAX_CALIBRATION]]
        fold = np.arange(mixed.size) % N_SPLITS
        nonconformity = np.zeros((order.size, mixed.size))
        for held_out in range(N_SPLITS if yes.size > 1 else 0):
            seen, unseen = mixed[fold != held_out], fold == held_out
            part = Support().fit(rows, seen, np.concatenate([seen, others]), order, n_jobs)
            nonconformity[:, unseen] = part.nonconformity(rows.descent[:, mixed[unseen]])
        self._describe(rows.take(np.flatnonzero(accepted)))
        self.calibration_: Calibration = Calibration.fit(
            nonconformity, self._is_rare(rows.descent[:, mixed])
        )
        self.support_: Support = Support().fit(rows, yes, alike, order, n_jobs)
        return self

    @classmethod
    def restored(
        cls, rows: EncodedRows, support: Support, calibration: Calibration
    ) -> PlausibilityModel:
        """The model of what was learned before, and the accepted rows."""
        model = cls()._describe(rows)
        model.support_, model.calibration_ = support, calibration
        return model

    def _describe(self, rows: EncodedRows) -> PlausibilityModel:
        """Learn what depends on the accepted rows alone."""
        self.knn_distance_: KnnDistance = KnnDistance().fit(rows)
        self.codes_: Codes = rows.exact
        self.reference_groups_: np.ndarray = np.unique(_immutables(rows, np.arange(len(rows))))
        self.schema_: Schema = rows.schema
        self.rare_: list[BoolArray] = _rare_levels(rows)
        return self

    def assess(self, descent: Codes, numbers: FloatArray) -> Plausibility:
        """How plausible rows are.

        Parameters
        ----------
        descent : (n_features, n_rows)
            Descent codes.
        numbers : (n_features, n_rows)
            Numbers, NaN for missing and for levels.

        Returns
        -------
        Plausibility
            P-values, and the strangeness they come from: at least 1, larger for stranger rows.
        """
        nonconformity = self.support_.nonconformity(descent).astype(np.float64)
        strangeness = self.calibration_(nonconformity, self._is_rare(descent))
        return Plausibility(self.calibration_.p_value(strangeness), strangeness)

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

    def _is_rare(self, descent: Codes) -> BoolArray:
        mutable = descent[self.schema_.mutable]
        return np.stack([rare[row] for rare, row in zip(self.rare_, mutable, strict=True)])


def _rare_levels(rows: EncodedRows) -> list[BoolArray]:
    """Which codes of each mutable feature are rare levels; unseen ones, the last, are."""
    rare = []
    for position in rows.schema.mutable:
        feature = rows.schema.features[position]
        if feature.kind == "numeric":
            rare.append(np.zeros(feature.n_codes + 1, dtype=bool))
            continue
        count = np.bincount(rows.exact[position], minlength=feature.n_codes + 1)
        rare.append(count < RARE * len(rows))
    return rare


def _immutables(rows: EncodedRows, people: IntArray) -> np.ndarray:
    """The immutable values of some rows as one opaque value each, alike if there are none."""
    immutable = rows.exact[rows.schema.immutable][:, people]
    if not len(immutable):
        return np.zeros(people.size, dtype="V1")
    return rows_as_bytes(immutable.T)
