"""Whether a classifier can tell generated rows from real ones.

Paper, Experiment 3, after Borisov et al.: a random forest learns from one half of the rows which
are real and is tested on the other half. Accuracy 0.5 means that it cannot tell them apart.

Without a holdout, as the paper's text describes it, the real rows are ones that the generator was
fitted on. With a holdout they are rows that it has not seen, in training and test of the
classifiers alike: copies of training rows are then as hard to tell as new real rows.

Always true: real and generated rows are equally many in training and test; a control run puts
real rows in place of the generated ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import pandas as pd

from mcce.errors import SchemaError
from mcce.metrics import Evaluator
from mcce.protocols import EncodedRows, FloatArray, IntArray, check_count

COLUMNS = ["accuracy", "accuracy_sd", "auc", "auc_sd", "n_train", "n_test"]
ClassifierName = Literal["forest", "logistic"]


def discriminator(
    generated: Any,
    training: Any,
    *,
    holdout: Any = None,
    n_repeats: int = 5,
    n_trees: int = 500,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Accuracy and AUC of classifiers trained to tell generated from real rows.

    Parameters
    ----------
    generated : frame
        Generated rows with the real mix of immutable features and decisions. Otherwise the
        classifiers detect the mix.
    training : frame or Evaluator
        The rows that the generator was fitted on.
    holdout : frame, optional
        Real rows that the generator has not seen, to use instead of training rows. Prefer it.
    n_repeats : int
        Number of random splits.
    n_trees : int
        Trees of the forest, which has leaves of one row and tries the root of the number of
        features at each split.
    random_state : int
        Seed of splits and forests.
    n_jobs : int, optional
        Threads of the forest, as in scikit-learn.

    Returns
    -------
    DataFrame
        Indexed by ``classifier`` (forest, logistic) and ``rows`` (generated, control). Columns
        ``accuracy``, ``auc``, their standard deviations over the splits, and the rows of each
        class in training and test. Without a holdout, an accuracy far below 0.5 means that rows
        were copied: the copy of a test row was learned under the other label.

    Raises
    ------
    SchemaError
        If there are too few rows to split.

    Examples
    --------
    >>> training = pd.DataFrame({"age": range(100)})
    >>> result = discriminator(training + 1000, training, n_repeats=2, n_trees=10)
    >>> result.loc[("forest", "generated"), "accuracy"]
    np.float64(1.0)
    """
    for name, value in (("n_repeats", n_repeats), ("n_trees", n_trees)):
        check_count(name, value)
    check_count("random_state", random_state, least=0)
    evaluator = training if isinstance(training, Evaluator) else Evaluator.fit(training)
    new = evaluator.read(generated, "generated")
    real = evaluator.rows if holdout is None else evaluator.read(holdout, "holdout")
    summaries: dict[tuple[str, str], list[float]] = {}
    for classifier, encode in _ENCODINGS.items():
        tables = _Tables(encode(evaluator, new), encode(evaluator, real))
        for part in ("generated", "control"):
            results = [
                _test(
                    _model(classifier, n_trees, seed, n_jobs),
                    tables,
                    seed,
                    control=part == "control",
                )
                for seed in range(random_state, random_state + n_repeats)
            ]
            summaries[classifier, part] = _summarise(results)
    index = pd.MultiIndex.from_tuples(summaries, names=["classifier", "rows"])
    table = pd.DataFrame(list(summaries.values()), index=index, columns=COLUMNS)
    return table.astype({"n_train": np.int64, "n_test": np.int64})


@dataclass(frozen=True, eq=False)
class _Tables:
    """Encoded rows, generated and real."""

    generated: FloatArray
    real: FloatArray

    def control(self, rng: np.random.Generator) -> _Tables:
        """The same with half of the real rows in place of the generated ones."""
        order = rng.permutation(len(self.real))
        half = len(order) // 2
        return _Tables(self.real[order[:half]], self.real[order[half:]])

    def split(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, int, int]:
        """Training and test rows, in each the real ones followed by as many generated ones."""
        n_each = min(len(self.generated), len(self.real))
        n_train, n_test = n_each // 2, n_each - n_each // 2
        if n_train < 1:
            raise SchemaError(
                f"discriminator needs at least 4 generated and 4 real rows to split, got "
                f"{len(self.generated)} and {len(self.real)}."
            )
        new = self.generated[rng.permutation(len(self.generated))[:n_each]]
        real = self.real[rng.permutation(len(self.real))[:n_each]]
        learned = np.concatenate([real[:n_train], new[:n_train]])
        tested = np.concatenate([real[n_train:], new[n_train:]])
        return learned, tested, n_train, n_test


class _Result(NamedTuple):
    """Test accuracy and AUC of one split, and its sizes."""

    accuracy: float
    auc: float
    n_train: int
    n_test: int


class _Classifier(Protocol):
    def fit(self, X: FloatArray, y: IntArray) -> _Classifier: ...
    def predict_proba(self, X: FloatArray) -> FloatArray: ...


def _test(model: _Classifier, tables: _Tables, seed: int, *, control: bool) -> _Result:
    """Train and test a classifier on one split."""
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(seed)
    tables = tables.control(rng) if control else tables
    learned, tested, n_train, n_test = tables.split(rng)
    is_new = np.repeat([0, 1], n_test)
    score = model.fit(learned, np.repeat([0, 1], n_train)).predict_proba(tested)[:, 1]
    # A score of exactly one half is a coin flip.
    right = np.where(score == 0.5, 0.5, (score > 0.5) == is_new)
    return _Result(float(right.mean()), float(roc_auc_score(is_new, score)), n_train, n_test)


def _summarise(results: list[_Result]) -> list[float]:
    """Means and standard deviations over the splits, in the order of ``COLUMNS``."""
    scores = np.array(results)[:, :2]
    sd = scores.std(axis=0, ddof=1) if len(scores) > 1 else np.full(2, np.nan)
    mean = scores.mean(axis=0)
    return [mean[0], sd[0], mean[1], sd[1], results[0].n_train, results[0].n_test]


def _model(name: ClassifierName, n_trees: int, seed: int, n_jobs: int | None) -> _Classifier:
    """An unfitted classifier."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "forest":
        return RandomForestClassifier(
            n_estimators=n_trees,
            min_samples_leaf=1,
            max_features="sqrt",
            random_state=seed,
            n_jobs=n_jobs,
        )
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _codes(evaluator: Evaluator, rows: EncodedRows) -> FloatArray:
    """Numbers as shares of their training range, NaN for missing; levels as codes."""
    columns = []
    for position, feature in enumerate(evaluator.schema.features):
        if feature.spread == 0 or feature.numbers is None:
            columns.append(rows.codes[position].astype(np.float64))
        else:
            low = float(np.nanmin(feature.numbers))
            columns.append((rows.all_numbers[position] - low) / feature.spread)
    return np.column_stack(columns)


_ENCODINGS: dict[ClassifierName, Callable[[Evaluator, EncodedRows], FloatArray]] = {
    "forest": _codes,
    "logistic": Evaluator.matrix,
}
