"""The paper's black boxes: a network with three hidden layers, and a random forest.

Paper, table "Predictive model settings" and the appendix on models without gradients. Takes a data
set; gives P(desired) of a frame's rows. What was trained is kept in a cache and found again by its
content: rows, settings and seed. A network is applied with NumPy, so that torch is needed only
to train one.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from ..datasets import Dataset
from ..errors import MissingExtraError, ParameterError
from .design import Design

Floats: TypeAlias = NDArray[np.float64]
Kind = Literal["network", "forest"]

# So many rows at a time stay in the processor's cache.
ROWS_PER_PIECE = 20_000
# Below this a network is dead: a last layer of three ReLU nodes can be zero for everybody.
LEAST_AUC = 0.6
TRIES = 10
N_TREES, MIN_SAMPLES_SPLIT = 200, 3
FORMAT = 1


@dataclass(frozen=True)
class Recipe:
    """Sizes of a network, how it is trained, and the test AUC that the paper prints for it."""

    hidden: tuple[int, ...]
    batch: int
    epochs: int
    rate: float
    auc: float


RECIPES = {
    "Adult": Recipe((18, 9, 3), 1024, 20, 0.002, 0.90),
    "Give Me Some Credit": Recipe((18, 9, 3), 2048, 20, 0.002, 0.82),
    "FICO HELOC": Recipe((81, 27, 3), 8, 20, 0.0005, 0.76),
    "German Credit": Recipe((81, 16, 3), 16, 20, 0.002, 0.80),
}


@dataclass(frozen=True, eq=False)
class BlackBox:
    """A trained black box.

    Parameters
    ----------
    predict
        From a frame to P(desired) of each row.
    auc, published_auc
        Area under the curve for the rows it was not trained on, and the paper's; NaN where the
        paper has none.
    heldout
        Labels of the rows it was not trained on.
    """

    predict: Callable[[pd.DataFrame], Floats]
    auc: float
    published_auc: float
    heldout: pd.Index[Any]


@dataclass(frozen=True, eq=False)
class Network:
    """ReLU layers on a design, and the softmax of two outputs; applied with NumPy."""

    design: Design
    layers: list[tuple[Floats, Floats]]

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """P(desired) of each row."""
        starts = range(0, max(len(frame), 1), ROWS_PER_PIECE)
        pieces = (frame.iloc[start : start + ROWS_PER_PIECE] for start in starts)
        return np.concatenate([self._scores(piece) for piece in pieces])

    def _scores(self, frame: pd.DataFrame) -> Floats:
        hidden = self.design(frame)
        *inner, (weights, bias) = self.layers
        for weight, shift in inner:
            hidden = np.maximum(hidden @ weight + shift, 0.0)
        told = hidden @ weights + bias
        # The softmax of two is the sigmoid of their difference, here without overflow.
        return np.exp(-np.logaddexp(0.0, told[:, 0] - told[:, 1]))


@dataclass(frozen=True, eq=False)
class Forest:
    """A random forest on a design."""

    design: Design
    trees: Any

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """P(desired) of each row."""
        return self.trees.predict_proba(self.design(frame))[:, 1]


@dataclass(frozen=True, eq=False)
class _Lesson:
    """What there is to learn: inputs and outcomes, in rows to learn from and rows to test on."""

    matrix: Floats
    good: NDArray[np.bool_]
    train: NDArray[np.int64]
    test: NDArray[np.int64]

    def auc(self, scores: Floats) -> float:
        return float(roc_auc_score(self.good[self.test], scores))


def black_box(
    data: Dataset, kind: Kind = "network", seed: int = 0, cache: Path | None = None
) -> BlackBox:
    """The paper's black box for a data set, trained now or found in the cache.

    Three quarters of the rows, drawn once and for all, train it; the others test it.

    Parameters
    ----------
    data
        One of the paper's data sets, in any form.
    kind
        ``"network"``, trained with torch by the settings of the paper's table, or ``"forest"``,
        200 trees of scikit-learn.
    seed
        Of the weights and batches, or of the trees.
    cache
        Folder for what was trained; None: that of the environment variable ``MCCE_CACHE``, or
        ``~/.cache/mcce``.
    """
    if kind not in ("network", "forest"):
        raise ParameterError(f'kind must be "network" or "forest", got {kind!r}.')
    recipe = RECIPES.get(data.card["name"])
    if recipe is None:
        raise ParameterError(
            f"The paper has black boxes for {', '.join(RECIPES)}, got {data.card['name']!r}."
        )
    design = Design.learn(data.features)
    good = (data.target == data.desired).to_numpy()
    train, test = _split(len(good))
    kept = _Kept(_folder(cache) / f"{kind}-{_digest(data, kind, recipe, seed)}")
    lesson = _Lesson(design(data.features), good, train, test)
    heldout = data.features.index[np.sort(test)]
    if kind == "forest":
        trees, auc = kept.pickled(lambda: _grow(lesson, seed))
        return BlackBox(Forest(design, trees), auc, np.nan, heldout)
    arrays = kept.arrays(lambda: _train(lesson, recipe, seed))
    predict = Network(design, _layers(arrays))
    return BlackBox(predict, float(arrays["auc"]), recipe.auc, heldout)


def _split(n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of three quarters to train on and of the rest."""
    order = np.random.default_rng(0).permutation(n_rows)
    return order[: n_rows * 3 // 4], order[n_rows * 3 // 4 :]


def _digest(data: Dataset, kind: Kind, recipe: Recipe, seed: int) -> str:
    """What tells black boxes apart: rows, outcomes, settings, seed, and the maker of forests."""
    content, columns = hashlib.sha256((data.target == data.desired).to_numpy().tobytes()), {}
    for name, column in data.features.items():
        by_level = isinstance(column.dtype, pd.CategoricalDtype)
        columns[str(name)] = list(column.cat.categories) if by_level else "number"
        cells = column.cat.codes if by_level else column
        content.update(cells.to_numpy(dtype=np.float64).tobytes())
    settings = {
        "format": FORMAT,
        "scale": "range",
        "columns": columns,
        "recipe": asdict(recipe) if kind == "network" else [N_TREES, MIN_SAMPLES_SPLIT],
        "seed": seed,
        # A forest is a pickle of scikit-learn's; a network is arrays, whatever made them.
        "library": version("scikit-learn") if kind == "forest" else None,
    }
    content.update(json.dumps(settings, sort_keys=True).encode())
    return content.hexdigest()[:20]


def _grow(lesson: _Lesson, seed: int) -> tuple[Any, float]:
    """A forest and its test AUC."""
    forest = RandomForestClassifier(
        N_TREES, min_samples_split=MIN_SAMPLES_SPLIT, random_state=seed, n_jobs=-1
    )
    forest.fit(lesson.matrix[lesson.train], lesson.good[lesson.train])
    auc = lesson.auc(forest.predict_proba(lesson.matrix[lesson.test])[:, 1])
    return forest.set_params(n_jobs=1), auc


def _train(lesson: _Lesson, recipe: Recipe, seed: int) -> dict[str, NDArray[Any]]:
    """Weights of a network and its test AUC; a dead one is trained again from another seed."""
    for tried in range(TRIES):
        layers, scores = _train_once(lesson, recipe, seed + 1000 * tried)
        auc = lesson.auc(scores)
        if auc >= LEAST_AUC:
            break
    told = {"auc": np.array(auc), "seed": np.array(seed + 1000 * tried)}
    for number, (weight, bias) in enumerate(layers):
        told |= {f"weight_{number}": weight, f"bias_{number}": bias}
    return told


def _train_once(
    lesson: _Lesson, recipe: Recipe, seed: int
) -> tuple[list[tuple[Floats, Floats]], Floats]:
    """Layers, and P(desired) of the test rows."""
    torch = _torch()
    n_threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)  # batches are small, and sums do not hang on threads then
        try:
            network = _learn(lesson, recipe)
            with torch.no_grad():
                rest = torch.tensor(lesson.matrix[lesson.test], dtype=torch.float32)
                scores = torch.softmax(network(rest), dim=1)[:, 1].double().numpy()
        finally:
            torch.set_num_threads(n_threads)
    layers = [
        (part.weight.detach().double().numpy().T.copy(), part.bias.detach().double().numpy())
        for part in network
        if isinstance(part, torch.nn.Linear)
    ]
    return layers, scores


def _learn(lesson: _Lesson, recipe: Recipe) -> Any:
    """A torch network that has seen the rows to learn from ``epochs`` times."""
    torch = _torch()
    inputs = torch.tensor(lesson.matrix[lesson.train], dtype=torch.float32)
    labels = torch.tensor(lesson.good[lesson.train].astype(np.int64))
    parts: list[Any] = []
    for before, after in pairwise([inputs.shape[1], *recipe.hidden]):
        parts += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    network = torch.nn.Sequential(*parts, torch.nn.Linear(recipe.hidden[-1], 2))
    optimizer = torch.optim.RMSprop(network.parameters(), lr=recipe.rate, foreach=True)
    for _ in range(recipe.epochs):
        for batch in torch.randperm(len(labels)).split(recipe.batch):
            optimizer.zero_grad()
            # Of two classes this is the mean binary cross-entropy of both outputs.
            torch.nn.functional.cross_entropy(network(inputs[batch]), labels[batch]).backward()
            optimizer.step()
    return network


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as error:
        raise MissingExtraError(
            'The paper\'s networks are trained with torch: pip install "mcce[deep]".'
        ) from error


def _layers(arrays: dict[str, NDArray[Any]]) -> list[tuple[Floats, Floats]]:
    """Weight and bias of each layer."""
    n_layers = sum(name.startswith("weight_") for name in arrays)
    return [(arrays[f"weight_{i}"], arrays[f"bias_{i}"]) for i in range(n_layers)]


def _folder(cache: Path | None) -> Path:
    """The cache, made if need be."""
    said = os.environ.get("MCCE_CACHE") or Path("~/.cache/mcce").expanduser()
    folder = Path(said if cache is None else cache)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(
            f"Black boxes are kept in a folder, but {str(folder)!r} cannot be made "
            f"({error.strerror}). Name another in the environment variable MCCE_CACHE."
        ) from error
    return folder


@dataclass(frozen=True)
class _Kept:
    """A place in the cache: what lies there, or what is made now and put there."""

    path: Path

    def arrays(self, make: Callable[[], dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        """Arrays, as a file of NumPy."""
        path = self.path.with_suffix(".npz")
        try:
            with path.open("rb") as file, np.load(file) as found:
                return {name: found[name] for name in found.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
            arrays = make()
            self._put(path, lambda file: np.savez(file, allow_pickle=False, **arrays))
            return arrays

    def pickled(self, make: Callable[[], Any]) -> Any:
        """Any object, as a file of joblib."""
        path = self.path.with_suffix(".joblib")
        try:
            return joblib.load(path)
        except (OSError, ValueError, EOFError, KeyError, pickle.UnpicklingError, zlib.error):
            made = make()
            self._put(path, lambda file: joblib.dump(made, file, compress=1))
            return made

    def _put(self, path: Path, dump: Callable[[Any], Any]) -> None:
        """Write a file that is there whole or not at all."""
        try:
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                dump(file)
            os.replace(file.name, path)
        except OSError as error:
            raise ParameterError(
                f"Black boxes are kept in a folder, but {str(path.parent)!r} cannot be written to "
                f"({error.strerror}). Name another in the environment variable MCCE_CACHE."
            ) from error
