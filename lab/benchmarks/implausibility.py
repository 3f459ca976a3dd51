"""Five implausibility scores that do not depend on our trees, and contradictory pairs.

The scores are fitted on accepted rows that neither the search nor any rival has seen. Each is a
positive number per row; lower is more plausible:

- ``range``: mean distance to the 5 nearest rows, a number's difference over its training range, a
  category's 0 or 1;
- ``ranks``: the same with numbers as their mid-ranks among the training rows, from 0 to 1;
- ``lof``: local outlier factor in the space of ``range``, 20 neighbours, fitted on distinct rows
  (so that no density is infinite); about 1 for an ordinary row;
- ``forest``: isolation forest of 200 trees, negated scikit-learn score, in (0, 1);
- ``pca``: norm of the residual after the principal components that explain 90 % of the variance,
  with numbers standardised and levels as indicators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

from baseline import Column, encode, learn
from mcce_lab.experiments.predictors import Floats

SCORES = ("range", "ranks", "lof", "forest", "pca")
N_NEIGHBOURS = 5
# A pair of levels contradicts if this share of what is expected occurs, and so much is expected.
SHARE, MIN_EXPECTED = 0.01, 20.0


@dataclass(frozen=True, eq=False)
class Space:
    """Rows as points: numbers over their range, each level a coordinate of 0 or a half.

    The city-block distance is then the sum of range-scaled differences and of unequal levels.
    """

    columns: Sequence[Column]
    ordered: Sequence[Floats]

    @classmethod
    def learn(cls, train: pd.DataFrame) -> Space:
        """The space of training rows."""
        columns = [learn(train[name]) for name in train.columns]
        return cls(columns, [np.sort(row) for row in encode(columns, train)])

    def encode(self, frame: pd.DataFrame) -> Floats:
        """Numbers as they are and levels as their numbers, shape (n_rows, n_features)."""
        return np.ascontiguousarray(encode(self.columns, frame).T)

    def decode(self, values: Floats, like: pd.DataFrame | None = None) -> pd.DataFrame:
        """Encoded rows as a frame, in the dtypes of another if there is one."""
        columns = zip(self.columns, values.T, strict=True)
        frame = pd.DataFrame({column.name: column.decode(row) for column, row in columns})
        return frame if like is None else frame.astype(like.dtypes.to_dict())

    def by_range(self, values: Floats) -> Floats:
        """Points of encoded rows."""
        return self._points(values, lambda at, numbers: numbers / (self.columns[at].spread or 1.0))

    def by_rank(self, values: Floats) -> Floats:
        """The same with each number's mid-rank among the training rows, from 0 to 1."""

        def ranks(at: int, numbers: Floats) -> Floats:
            ordered = self.ordered[at]
            below = np.searchsorted(ordered, numbers, "left")
            return (below + np.searchsorted(ordered, numbers, "right")) / (2 * ordered.size)

        return self._points(values, ranks)

    def standardised(self, values: Floats) -> Floats:
        """Numbers by mean and standard deviation of training, levels as indicators."""

        def standard(at: int, numbers: Floats) -> Floats:
            return (numbers - self.ordered[at].mean()) / (self.ordered[at].std() or 1.0)

        return self._points(values, standard, unit=1.0)

    def _points(
        self, values: Floats, number: Callable[[int, Floats], Floats], unit: float = 0.5
    ) -> Floats:
        parts = []
        for at, column in enumerate(self.columns):
            if column.levels is None:
                parts.append(number(at, values[:, at])[:, None])
            else:
                parts.append((values[:, at, None] == np.arange(len(column.levels))) * unit)
        return np.hstack(parts)


@dataclass(frozen=True, eq=False)
class ImplausibilityScores:
    """The five scores, fitted."""

    space: Space
    near: Any
    near_by_rank: Any
    density: Any
    forest: Any
    components: Any

    @classmethod
    def fit(cls, space: Space, rows: pd.DataFrame, seed: int) -> ImplausibilityScores:
        """Fit the scores on some rows, in the space of all training rows."""
        values = space.encode(rows)
        points, standard = space.by_range(values), space.standardised(values)
        city = {"metric": "cityblock", "algorithm": "brute"}
        return cls(
            space,
            NearestNeighbors(n_neighbors=N_NEIGHBOURS, **city).fit(points),
            NearestNeighbors(n_neighbors=N_NEIGHBOURS, **city).fit(space.by_rank(values)),
            LocalOutlierFactor(n_neighbors=20, novelty=True, **city).fit(np.unique(points, axis=0)),
            IsolationForest(n_estimators=200, random_state=seed).fit(standard),
            PCA(n_components=0.9, svd_solver="full").fit(standard),
        )

    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Each score of each row; lower is more plausible."""
        values = self.space.encode(frame)
        points, standard = self.space.by_range(values), self.space.standardised(values)
        rest = standard - self.components.inverse_transform(self.components.transform(standard))
        columns = [
            self.near.kneighbors(points)[0].mean(axis=1),
            self.near_by_rank.kneighbors(self.space.by_rank(values))[0].mean(axis=1),
            -self.density.score_samples(points),
            -self.forest.score_samples(standard),
            np.sqrt((rest**2).sum(axis=1)),
        ]
        return pd.DataFrame(dict(zip(SCORES, columns, strict=True)))


@dataclass(frozen=True, eq=False)
class Contradictions:
    """Contradictory pairs of levels, by the positions of the two features.

    As :func:`mcce.metrics.contradictory_pairs` counts them, for rows that are encoded already.
    """

    tables: dict[tuple[int, int], NDArray[np.bool_]]

    @classmethod
    def learn(cls, space: Space, train: pd.DataFrame) -> Contradictions:
        """Find contradictory pairs among the training rows."""
        values = space.encode(train).astype(np.int64)
        by_level = [at for at, column in enumerate(space.columns) if column.levels is not None]
        tables = {}
        for one, other in combinations(by_level, 2):
            shape = [len(space.columns[at].levels) for at in (one, other)]  # type: ignore[arg-type]
            seen = np.zeros(shape)
            np.add.at(seen, (values[:, one], values[:, other]), 1)
            expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / len(values)
            rare = seen < SHARE * expected
            tables[one, other] = rare & (expected >= MIN_EXPECTED)
        return cls(tables)

    def __call__(self, values: Floats) -> NDArray[np.bool_]:
        """Which encoded rows have at least one."""
        codes = values.astype(np.int64)
        held = np.zeros(len(values), dtype=bool)
        for (one, other), table in self.tables.items():
            held |= table[codes[:, one], codes[:, other]]
        return held
