"""Columns as modes: what a generative adversarial network sees of them.

Xu, Skoularidou, Cuesta-Infante and Veeramachaneni (2019). A number is one of several modes, those
of a mixture of normal distributions, and its place in it: ``(number - mean) / (4 * spread)``.
Values that many rows share are modes of their own, and so is missing. A level, and a number with
few values, is a mode without a place.

Always true: modes depend on the training rows and the seed alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce.errors import SavedFileError
from mcce.kernels import BoolArray, FloatArray, IntArray
from mcce.tables.features import Feature
from mcce.tables.schema import EncodedRows, Schema

# Numbers with so few values are levels; values of so large a share of the rows are modes.
N_LEVELS, ATOM_SHARE = 20, 0.05
# Of the mixture: components at most, the least weight of a mode, and rows to learn it from.
N_COMPONENTS, LEAST_WEIGHT, N_ROWS = 10, 0.005, 10_000
# Places are bounded, and count in four spreads.
FARTHEST_PLACE, SPREADS = 0.99, 4.0


@dataclass(frozen=True, eq=False)
class ColumnModes:
    """The modes of a column.

    Parameters
    ----------
    n_levels
        Number of codes of a column whose values are levels; 0 for one with modes.
    weights, means, spreads : (n_modes,)
        Of the modes of a number; the spread of a single value is 0.
    has_missing
        Whether there is one more mode, for missing.
    """

    n_levels: int
    weights: FloatArray
    means: FloatArray
    spreads: FloatArray
    has_missing: bool

    @property
    def has_place(self) -> bool:
        """Whether a value has a place in its mode."""
        return not self.n_levels

    @property
    def n_units(self) -> int:
        """Number of modes or levels."""
        return self.n_levels or self.means.size + self.has_missing

    def encode(
        self, codes: IntArray, numbers: FloatArray | None, u: FloatArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """The mode and the place of each cell.

        Parameters
        ----------
        codes : (n_rows,)
            Descent codes.
        numbers : (n_codes,) or None
            The number of each code, NaN for missing; None for levels.
        u : (n_rows,), optional
            Uniform numbers, by which modes are drawn from how likely they are; None takes the
            likeliest.
        """
        if self.n_levels or numbers is None:
            return codes.astype(np.int64), np.zeros(codes.size)
        values = numbers[codes]
        missing = np.isnan(values)
        filled = np.where(missing, 0.0, values)
        likely = self._likely(filled)
        if u is None:
            mode = likely.argmax(axis=1)
        else:
            below = np.cumsum(likely, axis=1)
            mode = (below <= (u * below[:, -1])[:, None]).sum(axis=1)
            mode = np.minimum(mode, self.means.size - 1)
        spread = self.spreads[mode]
        place = (filled - self.means[mode]) / np.where(spread > 0, SPREADS * spread, 1.0)
        place = np.where(missing | (spread == 0), 0.0, place)
        mode = np.where(missing, self.means.size, mode)
        return mode, np.clip(place, -FARTHEST_PLACE, FARTHEST_PLACE)

    def decode(self, mode: IntArray, place: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The number of each mode and place, and whether it is missing."""
        missing = mode >= self.means.size
        at = np.minimum(mode, self.means.size - 1)
        bounded = np.clip(place, -FARTHEST_PLACE, FARTHEST_PLACE)
        return self.means[at] + SPREADS * self.spreads[at] * bounded, missing

    def _likely(self, values: FloatArray) -> FloatArray:
        """How likely each mode is to hold each value, up to a constant: (n_rows, n_modes)."""
        single = self.spreads == 0
        spreads = np.where(single, 1.0, self.spreads)
        gap = (values[:, None] - self.means) / spreads
        logs = np.log(self.weights) - np.log(spreads) - 0.5 * gap * gap
        logs = np.where(single, -np.inf, logs)
        exact = single & (values[:, None] == self.means)
        logs[exact.any(axis=1)] = -np.inf
        logs[exact] = 0.0
        return np.exp(logs - logs.max(axis=1, keepdims=True))


def learn_modes(rows: EncodedRows, seed: int) -> list[ColumnModes]:
    """The modes of every column.

    Parameters
    ----------
    rows
        The training rows.
    seed
        Seed of the mixtures.
    """
    features = enumerate(rows.schema.features)
    return [_column_modes(f, rows.descent[at].astype(np.int64), seed + at) for at, f in features]


def pack_modes(columns: list[ColumnModes]) -> list[dict[str, Any]]:
    """The arrays of modes by name."""
    names = ("weights", "means", "spreads")
    return [{name: getattr(column, name) for name in names} for column in columns]


def unpack_modes(plain: Any, schema: Schema) -> list[ColumnModes]:
    """Modes that could have been learned of these columns; raises SavedFileError for others."""
    if not isinstance(plain, list) or len(plain) != len(schema.features):
        raise SavedFileError("the modes are not those of its columns")
    return [_unpack(one, feature) for one, feature in zip(plain, schema.features, strict=True)]


def _is_levels(feature: Feature) -> bool:
    return feature.kind == "categorical" or feature.n_codes <= N_LEVELS


def _levels(feature: Feature) -> ColumnModes:
    none = np.empty(0)
    return ColumnModes(feature.n_codes, none, none, none, feature.has_missing)


def _column_modes(feature: Feature, codes: IntArray, seed: int) -> ColumnModes:
    if _is_levels(feature) or feature.numbers is None:
        return _levels(feature)
    numbers = feature.numbers
    counts = np.bincount(codes, minlength=feature.n_codes) * ~np.isnan(numbers)
    atoms = counts >= ATOM_SHARE * max(1, int(counts.sum()))
    rest = codes[~atoms[codes] & ~np.isnan(numbers[codes])]
    weights, means, spreads = _mixture(numbers[rest], feature.spread, seed)
    share = rest.size / max(1, int(counts.sum()))
    return ColumnModes(
        0,
        np.concatenate([weights * share, counts[atoms] / counts.sum()]),
        np.concatenate([means, numbers[atoms]]),
        np.concatenate([spreads, np.zeros(int(atoms.sum()))]),
        feature.has_missing,
    )


def _mixture(
    values: FloatArray, scale: float, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights, means and spreads of the modes of some numbers, by mean; none of no numbers."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    if not values.size:
        return np.empty(0), np.empty(0), np.empty(0)
    # In units of a power of two, which is exact, so that no square is too large or too small.
    unit = np.ldexp(1.0, min(int(np.frexp(np.abs(values).max())[1]), 1023))
    values = values / unit
    centre, width = values.mean(), values.std()
    if values.size < 2 or not width > 0:
        centre = centre * unit
        return np.ones(1), np.array([centre]), np.array([min(max(abs(centre), 1.0) * 1e-3, scale)])
    some = np.random.default_rng(seed).permutation(values.size)[:N_ROWS]
    scaled = np.sort(values[some] - centre) / width
    mixture = BayesianGaussianMixture(
        n_components=min(N_COMPONENTS, np.unique(scaled).size),
        weight_concentration_prior=0.001,
        random_state=seed % 2**32,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(scaled[:, None])
    kept = mixture.weights_ >= LEAST_WEIGHT
    order = np.argsort(mixture.means_[kept, 0])
    weights = mixture.weights_[kept][order]
    means = (mixture.means_[kept, 0][order] * width + centre) * unit
    spreads = np.sqrt(mixture.covariances_[kept, 0, 0][order]) * width * unit
    return weights / weights.sum(), means, spreads


def _unpack(plain: Any, feature: Feature) -> ColumnModes:
    if not isinstance(plain, Mapping) or set(plain) != {"weights", "means", "spreads"}:
        raise SavedFileError("the modes of a column have other parts")
    parts = [plain[name] for name in ("weights", "means", "spreads")]
    for part in parts:
        sound = isinstance(part, np.ndarray) and part.dtype == np.float64 and part.ndim == 1
        if not sound or part.size != parts[0].size or not np.isfinite(part).all():
            raise SavedFileError("the modes of a column have other dtypes or shapes")
    if _is_levels(feature):
        if parts[0].size:
            raise SavedFileError("a column of levels has modes")
        return _levels(feature)
    weights, means, spreads = parts
    if not weights.size or (weights <= 0).any() or (spreads < 0).any():
        raise SavedFileError("the modes of a column are not those of numbers")
    return ColumnModes(0, weights, means, spreads, feature.has_missing)
