"""Whether a classifier can tell generated rows from real ones.

Paper, Experiment 3, after Borisov et al.: a random forest learns on one half which rows are real
and is asked about the other. Accuracy 0.5 means it cannot.

Two readings. Without a holdout, the paper's: the real rows on which the forest is tested are ones
the generator was fitted on. With one, the strict reading: they are rows the generator never saw.

Always true: real and generated rows are equally many, in learning and in testing; beside the
generated rows stands a control, in which real rows play their part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..errors import SchemaError
from ..kernels import FloatArray, IntArray
from ..parameters import check_count
from ..tables.schema import EncodedRows
from .evaluator import Evaluator, read_some, scaled
from .plausibility import matrix

COLUMNS = ["accuracy", "accuracy_sd", "auc", "auc_sd", "n_train", "n_test"]


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
    """Accuracy and area under the curve of classifiers that tell generated from real rows.

    Parameters
    ----------
    generated
        Generated rows with the real mix of immutable features and decisions: otherwise it is the
        mix that is told apart.
    training
        The rows that the generator was fitted on: a frame, or a :class:`Evaluator`.
    holdout
        Real rows that it never saw, for the strict reading.
    n_repeats
        Splits over which mean and standard deviation are taken.
    n_trees
        Trees of the forest; leaves of 1 row, root of the number of features tried at a split.
    random_state
        Seeds splits and forests.
    n_jobs
        Threads of the forest, as in scikit-learn.

    Returns
    -------
    DataFrame
        Rows (``forest`` or ``logistic``, ``generated`` or ``control``); columns accuracy, auc, the
        sd of both, and the rows of each sort learned from and tested on. Far below 0.5 means
        that rows were copied: the test row's twin was learned with the other label.
    """
    for name, value in (("n_repeats", n_repeats), ("n_trees", n_trees)):
        check_count(name, value)
    check_count("random_state", random_state, least=0)
    evaluator = Evaluator.of(training)
    new = read_some(generated, evaluator, "generated")
    unseen = None if holdout is None else read_some(holdout, evaluator, "holdout")
    told = {}
    for name, inputs in (("forest", _codes), ("logistic", matrix)):
        real, rest = (
            inputs(evaluator, evaluator.rows),
            None if unseen is None else inputs(evaluator, unseen),
        )
        tables = _Tables(inputs(evaluator, new), real, rest)
        for part in ("generated", "control"):
            found = [
                _ask(_model(name, n_trees, seed, n_jobs), tables, seed, control=part == "control")
                for seed in range(random_state, random_state + n_repeats)
            ]
            told[name, part] = _summary(found)
    index = pd.MultiIndex.from_tuples(told, names=["judge", "rows"])
    return pd.DataFrame(list(told.values()), index=index, columns=COLUMNS)


@dataclass(frozen=True, eq=False)
class _Tables:
    """Rows as numbers: generated, real ones of the generator, and ones it never saw or None."""

    generated: FloatArray
    real: FloatArray
    unseen: FloatArray | None

    def control(self, chance: np.random.Generator) -> _Tables:
        """The same with half of the real rows to be tested on in place of the generated ones."""
        pool = self.real if self.unseen is None else self.unseen
        order = chance.permutation(len(pool))
        half, rest = pool[order[: len(pool) // 2]], pool[order[len(pool) // 2 :]]
        if self.unseen is None:
            return _Tables(half, rest, None)
        return _Tables(half, self.real, rest)

    def split(self, chance: np.random.Generator) -> tuple[FloatArray, FloatArray, int, int]:
        """Rows to learn from and to test on, in each as many real ones as generated ones after."""
        new = self.generated[chance.permutation(len(self.generated))]
        real = self.real[chance.permutation(len(self.real))]
        if self.unseen is None:
            n_each = min(len(new), len(real))
            n_train, n_test = n_each // 2, n_each - n_each // 2
            tested = real[n_train : n_train + n_test]
        else:
            n_train = min(len(real), len(new) // 2)
            n_test = min(len(self.unseen), len(new) - n_train)
            tested = self.unseen[chance.permutation(len(self.unseen))[:n_test]]
        if min(n_train, n_test) < 1:
            raise SchemaError(
                "Too few rows to learn from some and test on others, and on real rows in place of "
                f"generated ones: {len(self.generated)} against {len(self.real)} real ones. "
                "Pass at least 4 of each."
            )
        learned = np.concatenate([real[:n_train], new[:n_train]])
        tested = np.concatenate([tested, new[n_train : n_train + n_test]])
        return learned, tested, n_train, n_test


def _ask(model: Any, tables: _Tables, seed: int, *, control: bool) -> list[float]:
    """Accuracy and area under the curve of one split, and its sizes."""
    from sklearn.metrics import roc_auc_score

    chance = np.random.default_rng(seed)
    tables = tables.control(chance) if control else tables
    learned, tested, n_train, n_test = tables.split(chance)
    is_new = np.repeat([0, 1], n_test)
    score = model.fit(learned, np.repeat([0, 1], n_train)).predict_proba(tested)[:, 1]
    # A tie tells nothing, so it is right half the time.
    right = np.where(score == 0.5, 0.5, (score > 0.5) == is_new)
    return [float(right.mean()), float(roc_auc_score(is_new, score)), n_train, n_test]


def _summary(found: list[list[float]]) -> list[Any]:
    """Means and standard deviations over the splits, in the order of ``COLUMNS``."""
    table = np.array(found)
    sd = table[:, :2].std(axis=0, ddof=1) if len(table) > 1 else np.full(2, np.nan)
    mean = table[:, :2].mean(axis=0)
    sizes: IntArray = table[0, 2:].astype(np.int64)
    return [mean[0], sd[0], mean[1], sd[1], *sizes.tolist()]


def _model(name: str, n_trees: int, seed: int, n_jobs: int | None) -> Any:
    """A classifier that is not fitted yet."""
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
    """Numbers as shares of their training range, NaN for missing; levels as their codes."""
    columns = []
    for position in range(len(evaluator.schema.features)):
        own = scaled(rows, position)
        columns.append(rows.exact[position].astype(np.float64) if own is None else own)
    return np.column_stack(columns)
