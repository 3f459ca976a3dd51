"""How badly a small auto-encoder reconstructs a row: NICE's measure of plausibility.

Takes encoded rows; gives standardised points, numbers by mean and standard deviation and levels as
indicators, and the squared error of their reconstruction.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

from mcce.kernels import FloatArray, IntArray
from mcce.tables.schema import EncodedRows

N_EPOCHS, BATCH = 20, 256
# Small tables take more passes: few steps leave the auto-encoder about as it began.
MIN_STEPS = 1_000


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """A trained auto-encoder, and the points it sees.

    Parameters
    ----------
    feature : (n_axes,)
        Position of the feature that each axis belongs to.
    mean, deviation : (n_features,)
        Those of a number in training; 0 and 1 for levels.
    coder
        The auto-encoder.
    """

    feature: IntArray
    mean: FloatArray
    deviation: FloatArray
    coder: MLPRegressor

    @classmethod
    def learn(cls, rows: EncodedRows, seed: int) -> Reconstruction:
        """Train the auto-encoder on training rows."""
        features = rows.schema.features
        feature = np.repeat(
            np.arange(len(features)), [_width(rows, at) for at in range(len(features))]
        )
        moments = [_moments(numbers) for numbers in rows.all_numbers]
        mean, deviation = (np.array(column) for column in zip(*moments, strict=True))
        middle, batch = max(2, feature.size // 4), min(BATCH, len(rows))
        coder = MLPRegressor(
            hidden_layer_sizes=(feature.size, middle, feature.size),
            # Of so few rectified units all can die.
            activation="tanh",
            batch_size=batch,
            max_iter=max(N_EPOCHS, MIN_STEPS * batch // len(rows)),
            random_state=seed,
        )
        learned = cls(feature, mean, deviation, coder)
        points = learned.points(rows)
        with warnings.catch_warnings():
            # The number of passes is bounded; convergence is not needed.
            warnings.simplefilter("ignore", ConvergenceWarning)
            # One axis alone is a vector to scikit-learn.
            coder.fit(points, points if feature.size > 1 else points.ravel())
        return learned

    def points(self, rows: EncodedRows) -> FloatArray:
        """Rows as points, shape (n_rows, n_axes); an unseen level indicates none.

        A missing number is the mean, and where training has missing ones too, marked on an axis of
        its own.
        """
        parts = []
        for at, feature in enumerate(rows.schema.features):
            if feature.kind == "categorical":
                parts.append(rows.exact[at][:, None] == np.arange(feature.n_codes))
                continue
            scaled = (rows.all_numbers[at] - self.mean[at]) / self.deviation[at]
            parts.append(np.where(np.isnan(scaled), 0.0, scaled)[:, None])
            if feature.has_missing:
                parts.append(np.isnan(scaled)[:, None])
        return np.hstack(parts).astype(np.float64)

    def error(self, points: FloatArray) -> FloatArray:
        """Mean squared error of the reconstruction of each point; infinite if it overflows."""
        if not len(points):
            return np.empty(0)
        with np.errstate(over="ignore"):
            return ((points - self.coder.predict(points).reshape(points.shape)) ** 2).mean(axis=1)


def _width(rows: EncodedRows, at: int) -> int:
    """Number of axes of a feature."""
    feature = rows.schema.features[at]
    return feature.n_codes if feature.kind == "categorical" else 1 + feature.has_missing


def _moments(numbers: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of the numbers that are there; 0 and 1 if none are."""
    there = numbers[~np.isnan(numbers)]
    return (float(there.mean()), float(there.std()) or 1.0) if there.size else (0.0, 1.0)
