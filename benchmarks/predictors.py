"""Black boxes of the bench: small networks, a forest and boosted trees, on raw columns.

Takes training rows and what happened; gives callables from a frame to P(desired). What was trained
is kept under ``out/bench``, so that a second run finds it there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import joblib
import numpy as np
import pandas as pd
import sklearn
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier

from measure import OUT, say

Floats: TypeAlias = NDArray[np.float64]
Predictor: TypeAlias = Callable[[pd.DataFrame], Floats]

# So many rows at a time stay in the cache: twice as fast on a million rows.
ROWS_PER_PIECE = 20_000
FEW_ROWS = 5_000
N_EPOCHS = 20
LEAST_AUC = 0.6


@dataclass(frozen=True)
class Recipe:
    """Sizes of a network and how it is trained, as the paper has them."""

    hidden: tuple[int, ...]
    batch: int
    rate: float


@dataclass(frozen=True, eq=False)
class Network:
    """Standardise, ReLU layers, sigmoid; the arrays are those of ``shared/reference``."""

    arrays: dict[str, NDArray[Any]]

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """P(desired) of each row."""
        if len(frame) <= ROWS_PER_PIECE:
            return self._scores(frame)
        starts = range(0, len(frame), ROWS_PER_PIECE)
        pieces = (frame.iloc[start : start + ROWS_PER_PIECE] for start in starts)
        return np.concatenate([self._scores(piece) for piece in pieces])

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
    """Boosted trees that split by sets of levels; ``levels`` is None for a number.

    The levels are numbered here: scikit-learn's own encoders take three times as long as the trees
    for a few rows, and would slow down most who ask for few at a time.
    """

    levels: dict[str, pd.Index[Any] | None]
    trees: Any

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """P(desired) of each row."""
        return self.trees.predict_proba(self.design(frame))[:, 1]

    def design(self, frame: pd.DataFrame) -> Floats:
        """Numbers as they are, levels as their numbers."""
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
    name: str, rows: pd.DataFrame, good: NDArray[np.bool_], recipe: Recipe
) -> Network:
    """A network that tells good from bad on raw columns, or the one kept from before."""
    path = OUT / f"{name}.npz"
    if not path.exists():
        say(f"training the network of {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = _train(rows, good, recipe)
        np.savez(path, allow_pickle=False, **arrays)
        say(f"its test AUC is {float(arrays['auc']):.3f}")
    return read_network(path)


def train_forest(name: str, rows: pd.DataFrame, good: NDArray[np.bool_]) -> Forest:
    """The paper's forest of 200 trees, or the one kept from before."""
    inputs = _input_names(rows)

    def grow() -> Any:
        forest = RandomForestClassifier(200, min_samples_split=3, random_state=0, n_jobs=-1)
        train, _ = _split(len(rows))
        forest.fit(design(rows, inputs)[train], good[train])
        return forest.set_params(n_jobs=1)

    return Forest(inputs, kept(name, grow))


def train_boosting(name: str, rows: pd.DataFrame, good: NDArray[np.bool_]) -> Boosting:
    """Boosted trees on raw columns, levels as levels, or those kept from before."""
    texts = set(rows.select_dtypes(exclude="number").columns)
    levels = {
        str(name): pd.Index(sorted(rows[name].unique())) if name in texts else None
        for name in rows.columns
    }
    by_level = [column is not None for column in levels.values()]
    train, _ = _split(len(rows))

    def boost() -> Any:
        trees = HistGradientBoostingClassifier(categorical_features=by_level, random_state=0)
        return trees.fit(Boosting(levels, None).design(rows)[train], good[train])

    return Boosting(levels, kept(name, boost))


def kept(name: str, make: Callable[[], Any]) -> Any:
    """What was made before under this name with this scikit-learn, or what is made now."""
    path = OUT / f"{name}-{sklearn.__version__}.joblib"
    if not path.exists():
        say(f"making {name}")
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
    """Column of each input, and the level it looks for."""
    sources: list[tuple[str, str | None]] = []
    for name in inputs:
        column = max((c for c in columns if f"{name}_".startswith(f"{c}_")), key=len)
        sources.append((column, None if name == column else name[len(column) + 1 :]))
    return tuple(sources)


def _cells(column: pd.Series[Any]) -> Any:
    """A column as what is quickest to compare."""
    # Comparing a few Python strings is over before Arrow has started.
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


def _train(rows: pd.DataFrame, good: NDArray[np.bool_], recipe: Recipe) -> dict[str, NDArray[Any]]:
    """Arrays of a trained network; a dead one is trained again from another seed."""
    inputs = _input_names(rows)
    matrix = design(rows, inputs)
    natural = np.array([name in rows.columns for name in inputs])
    mean = np.where(natural, matrix.mean(axis=0), 0.0)
    spread = np.where(natural, matrix.std(axis=0), 1.0)
    matrix = (matrix - mean) / spread
    train, test = _split(len(rows))
    for seed in range(10):
        model = MLPClassifier(
            recipe.hidden,
            batch_size=recipe.batch,
            learning_rate_init=recipe.rate,
            max_iter=N_EPOCHS,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(matrix[train], good[train])
        auc = float(roc_auc_score(good[test], model.predict_proba(matrix[test])[:, 1]))
        if auc >= LEAST_AUC:
            break
    arrays = {"input_names": np.array(inputs), "natural_mean": mean, "natural_sd": spread}
    arrays |= {f"coef_{i}": coef for i, coef in enumerate(model.coefs_)}
    arrays |= {f"intercept_{i}": intercept for i, intercept in enumerate(model.intercepts_)}
    return arrays | {"auc": np.array(auc)}


def _split(n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Three quarters to train on and the rest to test on."""
    order = np.random.default_rng(0).permutation(n_rows)
    return order[: n_rows * 3 // 4], order[n_rows * 3 // 4 :]
