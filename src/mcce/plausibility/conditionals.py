"""Numbers given everything else: how far each is from what the other features say.

Beyond the paper. Boosted trees predict every number of a row from all other features, and a second
model how large the error of that prediction is. The nonconformity of a number is its error over the
expected one: a number breaks a relation if it is further off than is usual for such rows. Whether a
cell is missing is predicted likewise; a missing number has no error.

Always true: the order of the training rows changes nothing; immutable numbers count too, since a
changed value may contradict them; a number that is the same in all rows is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..boosting.trees import MAX_BINS, BinnedColumns, BoostedTrees, predict_some, screen
from ..kernels import BoolArray, Boosting, Codes, FloatArray, IntArray
from ..model.associations import Associations
from ..runtime.threads import map_ordered
from ..tables.schema import EncodedRows

# The expected error is at least this share of the median error, and of the smallest gap between two
# values. A smaller one says that a relation holds exactly, or only that values are rounded.
MIN_ERROR_SHARE, MIN_GAP_SHARE, MIN_EXPECTED_ERROR = 0.1, 0.5, 1e-150
# Trees that predict the size of an error, or whether a cell is missing.
SMALL = Boosting(n_trees=30, max_leaves=8)
# Inputs of a model. Of a wide table: features most associated with a number that are looked at for
# them, fewer inputs, and bins of a column.
N_INPUTS, MAX_SCREENED, FEWER_INPUTS, FEWER_BINS = 16, 32, 8, 64


@dataclass(frozen=True, eq=False)
class Conditional:
    """A number given the other features."""

    position: int
    mean: BoostedTrees | None = None
    error: BoostedTrees | None = None
    centre: float = 0.0
    least: float = 0.0
    missing: BoostedTrees | None = None

    @classmethod
    def fit(
        cls,
        table: BinnedColumns,
        numbers: FloatArray,
        position: int,
        row_numbers: IntArray,
        others: IntArray,
        n_inputs: int,
    ) -> Conditional:
        """Learn from some rows of a table, given the feature's numbers in all.

        A small model chooses at most ``n_inputs`` of the ``others`` to predict it from.
        """
        is_missing, missing = np.isnan(numbers), None
        if 0 < is_missing[row_numbers].sum() < row_numbers.size:
            absence = is_missing.astype(np.float64)
            inputs = screen(table, absence, others, row_numbers=row_numbers, most=n_inputs)
            missing = BoostedTrees.fit(
                table, absence, SMALL, inputs=inputs, row_numbers=row_numbers
            )
        present = row_numbers[~is_missing[row_numbers]]
        values = np.unique(numbers[present])
        if values.size < 2:
            return cls(position, missing=missing)
        centre = float(np.sort(numbers[present])[present.size // 2])
        scaled = _scale(numbers, centre)
        inputs = screen(table, scaled, others, row_numbers=present, most=n_inputs)
        mean = BoostedTrees.fit(table, scaled, inputs=inputs, row_numbers=present)
        errors = _unseen_errors(table, scaled, inputs, present)
        error = BoostedTrees.fit(table, errors, SMALL, inputs=inputs, row_numbers=present)
        gap = float(np.diff(_scale(values, centre)).min())
        typical = float(np.sort(errors[present])[present.size // 2])
        least = max(MIN_GAP_SHARE * gap, MIN_ERROR_SHARE * typical, MIN_EXPECTED_ERROR)
        return cls(position, mean, error, centre, least, missing)


class Conditionals:
    """All numbers of a table, each given the other features."""

    def fit(
        self, rows: EncodedRows, n_jobs: int | None = 1, associations: Associations | None = None
    ) -> Conditionals:
        """Learn from training rows, accepted or not."""
        wide = associations is not None
        n_inputs, max_bins = (FEWER_INPUTS, FEWER_BINS) if wide else (N_INPUTS, MAX_BINS)
        table, numbers = BinnedColumns.of(rows, max_bins), rows.all_numbers
        row_numbers = np.arange(len(rows))

        def fit_one(column: int) -> Conditional:
            others = np.delete(np.arange(len(numbers)), column)
            if associations is not None:
                others = associations.inputs(column, others, MAX_SCREENED)
            return Conditional.fit(table, numbers[column], column, row_numbers, others, n_inputs)

        self.models_ = tuple(map_ordered(fit_one, varying(numbers), n_jobs))
        return self

    def nonconformity(self, tree_codes: Codes, numbers: FloatArray) -> FloatArray:
        """Nonconformities of rows, two for each model: of the number, and of its absence.

        Error over expected error, 0 for a missing cell; and how unexpected it is whether the cell
        is missing. Of shape (2 * n_models, n_rows).
        """
        all_rows = [np.arange(tree_codes.shape[1])] * len(self.models_)
        parts = self.nonconformity_at(all_rows, tree_codes, numbers)
        return np.reshape(parts, (2 * len(self.models_), tree_codes.shape[1]))

    def nonconformity_at(
        self, row_numbers: Sequence[IntArray], tree_codes: Codes, numbers: FloatArray
    ) -> list[FloatArray]:
        """The entries of :meth:`nonconformity` at the given rows of each model.

        Two arrays for each model.
        """
        parts = [np.zeros(own_rows.size) for own_rows in row_numbers for _ in range(2)]
        needed = [m for m, model in enumerate(self.models_) if model.mean and row_numbers[m].size]
        models, needed_rows = [self.models_[m] for m in needed], [row_numbers[m] for m in needed]
        for m, errors in zip(
            needed, _errors(models, needed_rows, tree_codes, numbers), strict=True
        ):
            parts[2 * m] = errors
        for m, (model, own_rows) in enumerate(zip(self.models_, row_numbers, strict=True)):
            if model.missing and own_rows.size:
                share = predict_some([model.missing], tree_codes, [own_rows])
                is_missing = np.isnan(numbers[model.position, own_rows])
                parts[2 * m + 1] = np.where(is_missing, 1 - share, share)
        return parts

    def depends(self, n_features: int) -> BoolArray:
        """Which features each model looks at, its own number included; (n_models, n_features)."""
        looks = np.zeros((len(self.models_), n_features), dtype=bool)
        for own, model in zip(looks, self.models_, strict=True):
            own[model.position] = True
            for trees in (model.mean, model.error, model.missing):
                if trees is not None:
                    own[trees.ensemble.inputs] = True
        return looks


def _errors(
    models: list[Conditional], row_numbers: list[IntArray], tree_codes: Codes, numbers: FloatArray
) -> list[FloatArray]:
    """Errors over expected errors at the given rows of each model, 0 for missing cells."""
    if not models:
        return []
    sizes = [own_rows.size for own_rows in row_numbers]
    pairs = zip(models, row_numbers, strict=True)
    own = np.concatenate([numbers[model.position, own_rows] for model, own_rows in pairs])
    centre, least = (
        np.repeat([getattr(model, name) for model in models], sizes) for name in ("centre", "least")
    )
    mean = predict_some([model.mean for model in models if model.mean], tree_codes, row_numbers)
    error = predict_some([model.error for model in models if model.error], tree_codes, row_numbers)
    errors = np.abs(_scale(own, centre) - mean) / np.maximum(error, least)
    return np.split(np.where(np.isnan(own), 0.0, errors), np.cumsum(sizes)[:-1])


def varying(numbers: FloatArray) -> list[int]:
    """The columns whose numbers, missing ones included, are not the same in all rows."""
    same = (numbers == numbers[:, :1]) | (np.isnan(numbers) & np.isnan(numbers[:, :1]))
    return np.flatnonzero(~same.all(axis=1)).tolist()


def _unseen_errors(
    table: BinnedColumns, scaled: FloatArray, inputs: IntArray, row_numbers: IntArray
) -> FloatArray:
    """Size of the error at each row, by a model of the other half of the rows."""
    errors = np.zeros(scaled.size)
    for half in range(2):
        seen, unseen = row_numbers[half::2], row_numbers[1 - half :: 2]
        part = BoostedTrees.fit(table, scaled, inputs=inputs, row_numbers=seen)
        # Only the inputs are read, and copying all columns for each number would take longer.
        codes = np.zeros((len(table.codes), unseen.size), dtype=np.int32)
        codes[inputs] = table.codes[np.ix_(inputs, unseen)]
        errors[unseen] = np.abs(scaled[unseen] - part.predict(codes))
    return errors


def _scale(numbers: FloatArray, centre: float | FloatArray) -> FloatArray:
    """Signed square roots around a centre, so that a few huge numbers dominate no error."""
    away = numbers / 2 - centre / 2
    return np.sign(away) * np.sqrt(np.abs(away))
