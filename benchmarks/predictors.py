"""Predictors of the benchmarks: small networks, a forest and boosted trees on raw columns.

Takes training rows and their outcomes; gives callables from a frame to P(desired). Trained models
are cached in ``out/bench``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import sklearn
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier

from mcce_lab.experiments.predictors import (
    MIN_AUC,
    ROWS_PER_BLOCK,
    Floats,
    NetworkSettings,
    split_rows,
)
from measure import OUT, log

# Below this number of rows, comparing Python strings is faster than Arrow.
FEW_ROWS = 5_000
N_EPOCHS = 20


@dataclass(frozen=True, eq=False)
class Network:
    """Standardisation, ReLU layers and a sigmoid; arrays as in ``shared/reference``."""

    arrays: dict[str, NDArray[Any]]

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """P(desired) of each row."""
        if len(frame) <= ROWS_PER_BLOCK:
            return self._scores(frame)
        starts = range(0, len(frame), ROWS_PER_BLOCK)
        blocks = (frame.iloc[start : start + ROWS_PER_BLOCK] for start in starts)
        return np.concatenate([self._scores(block) for block in blocks])

    def _scores(self, frame: pd.DataFrame) -> Floats:
        hidden = design(frame, self._inputs) - self.arrays["natural_mean"]
        hidden /= self.arrays["natural_sd"]
        for layer, (coef, intercept) in enumerate(self._layers):
            hidden = hidden @ coef + intercept
            if layer < len(self._layers) - 1:
                hidden = np.maximum(hidden, 0.0)
        return 1.0 / (1.0 + np.exp(-hidden[:, 0]))

    @cached_property
    def _inputs(self) -> list[str]:
        return [str(name) for name in self.arrays["input_names"]]

    @cached_property
    def _layers(self) -> list[tuple[Floats, Floats]]:
        n_layers = sum(name.startswith("coef_") for name in self.arrays)
        return [(self.arrays[f"coef_{i}"], self.arrays[f"intercept_{i}"]) for i in range(n_layers)]


@dataclass(frozen=True, eq=False)
class Forest:
    """A random forest on the inputs of a network."""

    inputs: list[str]
    forest: Any

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """P(desired) of each row."""
        return self.forest.predict_proba(design(frame, self.inputs))[:, 1]


@dataclass(frozen=True, eq=False)
class Boosting:
    """Boosted trees with categorical splits; ``levels`` is None for a number.

    Levels are encoded here because scikit-learn's encoders take three times as long as the trees
    for a few rows, which would penalise methods that score few rows at a time.
    """

    levels: dict[str, pd.Index[Any] | None]
    trees: Any

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """P(desired) of each row."""
        return self.trees.predict_proba(self.design(frame))[:, 1]

    def design(self, frame: pd.DataFrame) -> Floats:
        """Numbers unchanged, levels as codes."""
        matrix = np.empty((len(self.levels), len(frame)))
        for row, (column, levels) in zip(matrix, self.levels.items(), strict=True):
            cells = frame[column]
            row[:] = cells if levels is None else pd.Categorical(cells, levels).codes
        return matrix.T


def read_network(path: Path) -> Network:
    """The network in a file."""
    with np.load(path) as arrays:
        return Network({name: arrays[name] for name in arrays.files})


def train_network(
    name: str, rows: pd.DataFrame, outcome: NDArray[np.bool_], settings: NetworkSettings
) -> Network:
    """Train a network on raw columns, or load the cached one."""
    path = OUT / f"{name}.npz"
    if not path.exists():
        log(f"training the network of {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = _train(rows, outcome, settings)
        np.savez(path, allow_pickle=False, **arrays)
        log(f"its test AUC is {float(arrays['auc']):.3f}")
    return read_network(path)


def train_forest(name: str, rows: pd.DataFrame, outcome: NDArray[np.bool_]) -> Forest:
    """Train the paper's forest of 200 trees, or load the cached one."""
    inputs = _input_names(rows)

    def grow() -> Any:
        forest = RandomForestClassifier(200, min_samples_split=3, random_state=0, n_jobs=-1)
        train, _ = split_rows(len(rows))
        forest.fit(design(rows, inputs)[train], outcome[train])
        return forest.set_params(n_jobs=1)

    return Forest(inputs, cached(name, grow))


def train_boosting(name: str, rows: pd.DataFrame, outcome: NDArray[np.bool_]) -> Boosting:
    """Train boosted trees on raw columns, or load the cached ones."""
    texts = set(rows.select_dtypes(exclude="number").columns)
    levels = {
        str(name): pd.Index(sorted(rows[name].unique())) if name in texts else None
        for name in rows.columns
    }
    by_level = [column is not None for column in levels.values()]
    train, _ = split_rows(len(rows))

    def boost() -> Any:
        trees = HistGradientBoostingClassifier(categorical_features=by_level, random_state=0)
        return trees.fit(Boosting(levels, None).design(rows)[train], outcome[train])

    return Boosting(levels, cached(name, boost))


def cached(name: str, make: Callable[[], Any]) -> Any:
    """The object cached under this name for this scikit-learn, made on first use."""
    path = OUT / f"{name}-{sklearn.__version__}.joblib"
    if not path.exists():
        log(f"making {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump(make(), path, compress=3)
    return joblib.load(path)


def design(frame: pd.DataFrame, inputs: Sequence[str]) -> Floats:
    """Inputs as a matrix: a column itself, or for ``sex_Male`` whether ``sex`` is Male."""
    matrix = np.empty((len(inputs), len(frame)))
    sources = _sources(tuple(inputs), tuple(frame.columns))
    cells = {column: _cells(frame[column]) for column in dict(sources)}
    for row, (column, level) in zip(matrix, sources, strict=True):
        row[:] = cells[column] if level is None else cells[column] == level
    return matrix.T


@lru_cache
def _sources(
    inputs: tuple[str, ...], columns: tuple[str, ...]
) -> tuple[tuple[str, str | None], ...]:
    """Column of each input, and its level."""
    sources: list[tuple[str, str | None]] = []
    for name in inputs:
        column = max((c for c in columns if f"{name}_".startswith(f"{c}_")), key=len)
        sources.append((column, None if name == column else name[len(column) + 1 :]))
    return tuple(sources)


def _cells(column: pd.Series[Any]) -> Any:
    """A column in the form that is fastest to compare."""
    few = len(column) < FEW_ROWS and not isinstance(column.dtype, pd.CategoricalDtype)
    return column.to_numpy() if few else column.array


def _input_names(rows: pd.DataFrame) -> list[str]:
    """Numeric columns, and all but the first level of the others."""
    names: list[str] = []
    for column in rows.columns:
        if pd.api.types.is_numeric_dtype(rows[column]):
            names.append(column)
        else:
            names += [f"{column}_{level}" for level in sorted(rows[column].unique())[1:]]
    return names


def _train(
    rows: pd.DataFrame, outcome: NDArray[np.bool_], settings: NetworkSettings
) -> dict[str, NDArray[Any]]:
    """Arrays of a trained network; a dead one is retrained from another seed."""
    inputs = _input_names(rows)
    matrix = design(rows, inputs)
    natural = np.array([name in rows.columns for name in inputs])
    mean = np.where(natural, matrix.mean(axis=0), 0.0)
    spread = np.where(natural, matrix.std(axis=0), 1.0)
    matrix = (matrix - mean) / spread
    train, test = split_rows(len(rows))
    for seed in range(10):
        model = MLPClassifier(
            settings.hidden,
            batch_size=settings.batch,
            learning_rate_init=settings.rate,
            max_iter=N_EPOCHS,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(matrix[train], outcome[train])
        auc = float(roc_auc_score(outcome[test], model.predict_proba(matrix[test])[:, 1]))
        if auc >= MIN_AUC:
            break
    arrays = {"input_names": np.array(inputs), "natural_mean": mean, "natural_sd": spread}
    arrays |= {f"coef_{i}": coef for i, coef in enumerate(model.coefs_)}
    arrays |= {f"intercept_{i}": intercept for i, intercept in enumerate(model.intercepts_)}
    return arrays | {"auc": np.array(auc)}
