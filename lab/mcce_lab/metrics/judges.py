"""Judges of realism that no method here optimises.

Beyond the paper. Four scores of how unusual a row is beside real accepted rows that no method
has seen, and how well a classifier tells a method's answers from such rows. Each judges on its own;
a mean of them would hide where they disagree.

Always true: larger is more unusual; the judges use neither our trees nor rows that a method saw.
The outlier factor is the nearest to an objective of ours: it compares distances to near rows, as
the kNN distance that some of our searches keep small is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce import Counterfactuals
from mcce.errors import ParameterError
from mcce.metrics import Evaluator
from mcce.protocols import EncodedRows, FloatArray, IntArray, check_count

JUDGES = ("outlier_factor", "isolation", "pca_residual", "density")
# Real rows that the judges learn from, at most: the outlier factor takes quadratic time.
MAX_ROWS, MIN_ROWS = 5_000, 50
N_NEIGHBOURS, N_TREES = 20, 200
# Share of the variance that the components for residuals and for densities explain.
EXPLAINED, EXPLAINED_DENSITY = 0.9, 0.99
N_MIXED, MIN_VARIANCE = 8, 1e-3
# Classifiers that tell answers from real rows: folds, and trees of each forest.
N_FOLDS, N_DETECTING = 5, 100


@dataclass(frozen=True, eq=False)
class Judges:
    """Four scores of rows, fitted on real accepted rows by ``fit``.

    ``outlier_factor``: local outlier factor, 20 neighbours. ``isolation``: score of an isolation
    forest. ``pca_residual``: what the components that explain 90 % of the variance leave over.
    ``density``: minus the log density of a mixture of 8 Gaussians on normal scores of the numbers.

    Parameters
    ----------
    evaluator
        The training data, which say how columns are scaled.
    centre, scale
        Mean and standard deviation of each axis among the real rows.
    sorted_numbers
        The values of each axis among the real rows, sorted.
    models
        The fitted models by name.

    Examples
    --------
    >>> rows = pd.DataFrame({"age": np.arange(20, 80), "salary": np.arange(20, 80) * 100})
    >>> list(Judges.fit(rows, Evaluator.fit(rows))(rows.head(1)))
    ['outlier_factor', 'isolation', 'pca_residual', 'density']
    """

    evaluator: Evaluator
    centre: FloatArray
    scale: FloatArray
    sorted_numbers: list[FloatArray]
    models: dict[str, Any]

    @classmethod
    def fit(cls, real: Any, evaluator: Evaluator, *, random_state: int = 0) -> Judges:
        """Fit the judges.

        Parameters
        ----------
        real : frame
            Accepted rows that no method has seen.
        evaluator : Evaluator
            The training data, which say how columns are scaled.
        random_state : int
            Seed of forest, mixture and the choice of rows.

        Returns
        -------
        Judges
            The fitted judges.

        Raises
        ------
        ParameterError
            If there are fewer than 50 rows.

        Examples
        --------
        >>> rows = pd.DataFrame({"age": np.arange(20, 80), "salary": np.arange(20, 80) * 100})
        >>> judges = Judges.fit(rows, Evaluator.fit(rows))
        >>> people = pd.DataFrame({"age": [40, 40], "salary": [4000, 7900]})
        >>> usual, unusual = judges(people)["density"]
        >>> usual < unusual
        True
        """
        from sklearn.decomposition import PCA
        from sklearn.ensemble import IsolationForest
        from sklearn.mixture import GaussianMixture
        from sklearn.neighbors import LocalOutlierFactor

        check_count("random_state", random_state, least=0)
        rows = evaluator.read(real, "real")
        if len(rows) < MIN_ROWS:
            raise ParameterError(f"Judges need at least {MIN_ROWS} real rows, got {len(rows)}.")
        order = np.random.default_rng(random_state).permutation(len(rows))[:MAX_ROWS]
        rows = rows.take(np.sort(order))
        points = evaluator.matrix(rows)
        # Not by the deviation, which rounding leaves above 0: divided by it, a level that no real
        # row has would be 1e14 away.
        varies = np.ptp(points, axis=0) > 0
        centre = points.mean(axis=0)
        scale = np.where(varies, points.std(axis=0), 1.0)
        standard = (points - centre) / scale
        judges = cls(evaluator, centre, scale, [np.sort(column) for column in points.T], {})
        normal = judges._normal_scores(points)
        shape = PCA(EXPLAINED_DENSITY, svd_solver="full", whiten=True).fit(normal)
        mixture = GaussianMixture(
            min(N_MIXED, len(rows) // 25),
            reg_covar=MIN_VARIANCE,
            random_state=random_state,
        )
        judges.models.update(
            outlier_factor=LocalOutlierFactor(n_neighbors=N_NEIGHBOURS, novelty=True).fit(
                np.unique(points, axis=0)
            ),
            isolation=IsolationForest(n_estimators=N_TREES, random_state=random_state).fit(
                standard
            ),
            pca_residual=PCA(EXPLAINED, svd_solver="full").fit(standard),
            shape=shape,
            density=mixture.fit(shape.transform(normal)),
        )
        return judges

    def __call__(self, rows: Any) -> pd.DataFrame:
        """All scores of rows.

        Parameters
        ----------
        rows : frame or Counterfactuals
            The rows to judge.

        Returns
        -------
        DataFrame
            One column per judge; larger is more unusual.
        """
        encoded, places, labels = _read(rows, self.evaluator)
        points = self.evaluator.matrix(encoded)
        standard = (points - self.centre) / self.scale
        components = self.models["pca_residual"]
        rest = standard - components.inverse_transform(components.transform(standard))
        normal = self.models["shape"].transform(self._normal_scores(points))
        scores = (
            -self.models["outlier_factor"].score_samples(points),
            -self.models["isolation"].score_samples(standard),
            np.sqrt((rest**2).sum(axis=1)),
            -self.models["density"].score_samples(normal),
        )
        found = np.full((len(labels), len(JUDGES)), np.nan)
        found[places] = np.column_stack(scores)
        return pd.DataFrame(found, index=labels, columns=list(JUDGES))

    def _normal_scores(self, points: FloatArray) -> FloatArray:
        """Each column by the normal quantile of its mid-rank among the real rows."""
        from scipy.special import ndtri  # type: ignore[import-untyped]

        columns = []
        for known, column in zip(self.sorted_numbers, points.T, strict=True):
            below = np.searchsorted(known, column, "left") + np.searchsorted(known, column, "right")
            share = np.clip(below / (2 * known.size), 0.5 / known.size, 1 - 0.5 / known.size)
            columns.append(ndtri(share))
        return np.column_stack(columns)


def detectability(answers: Any, real: Any, evaluator: Evaluator, *, random_state: int = 0) -> float:
    """How well a classifier tells answers from real accepted rows, by their mutable features.

    A random forest is trained on four fifths of both and applied to the rest, five times, so that
    it never scores a row that it was trained on. Immutable features are left out: declined people
    have others than accepted ones, whatever the method.

    Parameters
    ----------
    answers : frame or Counterfactuals
        The answers of a method.
    real : frame
        Accepted rows that the method has not seen.
    evaluator : Evaluator
        The training data.
    random_state : int
        Seed of folds and forests.

    Returns
    -------
    float
        Area under the ROC curve: 0.5 if they cannot be told apart, 1 if always. NaN for fewer than
        20 answers.
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold

    made = _read(answers, evaluator)[0]
    rows = evaluator.read(real, "real")
    if len(made) < 4 * N_FOLDS or len(rows) < 4 * N_FOLDS:
        return float("nan")
    chance = np.random.default_rng(random_state)
    rows = rows.take(np.sort(chance.permutation(len(rows))[: max(1_000, len(made))]))
    keep = _axes(evaluator)
    points = np.concatenate([evaluator.matrix(rows)[:, keep], evaluator.matrix(made)[:, keep]])
    is_made = np.repeat([0, 1], [len(rows), len(made)])
    score = np.zeros(is_made.size)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=random_state)
    for train, test in folds.split(points, is_made):
        forest = RandomForestClassifier(
            N_DETECTING, min_samples_leaf=3, class_weight="balanced", random_state=random_state
        ).fit(points[train], is_made[train])
        score[test] = forest.predict_proba(points[test])[:, 1]
    return float(roc_auc_score(is_made, score))


def _read(rows: Any, evaluator: Evaluator) -> tuple[EncodedRows, IntArray, pd.Index[Any]]:
    """Rows that hold a value, their places among all rows, and the labels of all."""
    if isinstance(rows, Counterfactuals):
        rows = rows.to_pandas().frame
    elif not isinstance(rows, pd.DataFrame):
        rows = evaluator.schema.encode(rows).frame
    places = np.flatnonzero(rows.notna().any(axis=1))
    return evaluator.schema.encode(rows.iloc[places]), places, rows.index


def _axes(evaluator: Evaluator) -> IntArray:
    """Columns of the matrix that belong to mutable features."""
    widths = [
        2 if feature.kind == "numeric" else feature.n_codes + 1
        for feature in evaluator.schema.features
    ]
    of = np.repeat(np.arange(len(widths)), widths)
    return np.flatnonzero(np.isin(of, evaluator.schema.mutable))
