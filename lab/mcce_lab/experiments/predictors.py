"""Predictors of the experiments: networks, forests and boosted trees, trained on first use.

Trained networks and forests are kept in a folder, by default that of the environment variable
``MCCE_CACHE``. Always true: a file is there as a whole or not at all, and one that cannot be read
is made again.
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
from functools import partial
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score

from mcce.datasets import Dataset
from mcce.errors import ParameterError, missing_extra


def cache_folder(cache: Path | None) -> Path:
    """The cache folder, created if needed."""
    default = os.environ.get("MCCE_CACHE") or Path("~/.cache/mcce").expanduser()
    folder = Path(default if cache is None else cache)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(
            f"The cache of trained models, {str(folder)!r}, cannot be created "
            f"({error.strerror}). Set the environment variable MCCE_CACHE to another folder."
        ) from error
    return folder


@dataclass(frozen=True)
class CacheEntry:
    """An entry of the cache, made on first use."""

    path: Path

    def arrays(self, make: Callable[[], dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        """Arrays, as a NumPy file."""
        path = self.path.with_suffix(".npz")
        try:
            with path.open("rb") as file, np.load(file) as saved:
                return {name: saved[name] for name in saved.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
            arrays = make()
            self._put(path, lambda file: np.savez(file, allow_pickle=False, **arrays))
            return arrays

    def pickled(self, make: Callable[[], Any]) -> Any:
        """Any object, as a joblib file."""
        path = self.path.with_suffix(".joblib")
        try:
            return joblib.load(path)
        except (OSError, ValueError, EOFError, KeyError, pickle.UnpicklingError, zlib.error):
            made = make()
            self._put(path, lambda file: joblib.dump(made, file, compress=1))
            return made

    def _put(self, path: Path, dump: Callable[[Any], Any]) -> None:
        """Write a file atomically."""
        try:
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                dump(file)
            os.replace(file.name, path)
        except OSError as error:
            raise ParameterError(
                f"The cache of trained models, {str(path.parent)!r}, cannot be written to "
                f"({error.strerror}). Set the environment variable MCCE_CACHE to another folder."
            ) from error


@dataclass(frozen=True, eq=False)
class _Number:
    """A numeric column: its minimum and its range."""

    name: str
    least: float
    spread: float

    def fill(self, inputs: NDArray[np.float64], column: pd.Series[Any]) -> None:
        inputs[0] = (column.to_numpy(dtype=np.float64) - self.least) / self.spread


@dataclass(frozen=True, eq=False)
class _Levels:
    """A categorical column; its first level has no indicator."""

    name: str
    levels: pd.Index[Any]

    def fill(self, inputs: NDArray[np.float64], column: pd.Series[Any]) -> None:
        codes = pd.Categorical(column, categories=self.levels).codes
        inputs[:] = codes == np.arange(1, len(self.levels))[:, None]


@dataclass(frozen=True, eq=False)
class Design:
    """The encoding of the columns of a frame as model inputs.

    Examples
    --------
    >>> rows = pd.DataFrame({"age": [20, 40], "job": pd.Categorical(["a", "b"])})
    >>> Design.learn(rows)(rows)
    array([[0., 0.],
           [1., 1.]])
    """

    columns: tuple[_Number | _Levels, ...]

    @classmethod
    def learn(cls, features: pd.DataFrame) -> Design:
        """Learn the encoding of a frame of numbers and categories."""
        columns: list[_Number | _Levels] = []
        for name, column in features.items():
            if isinstance(column.dtype, pd.CategoricalDtype):
                columns.append(_Levels(str(name), column.dtype.categories))
            else:
                least, most = float(column.min()), float(column.max())
                columns.append(_Number(str(name), least, (most - least) or 1.0))
        return cls(tuple(columns))

    def __call__(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """The inputs of each row, shape (n_rows, n_inputs)."""
        widths = [len(c.levels) - 1 if isinstance(c, _Levels) else 1 for c in self.columns]
        inputs = np.empty((sum(widths), len(frame)))
        start = 0
        for column, width in zip(self.columns, widths, strict=True):
            column.fill(inputs[start : start + width], frame[column.name])
            start += width
        return inputs.T


Floats: TypeAlias = NDArray[np.float64]
Predictor: TypeAlias = Callable[[pd.DataFrame], Floats]
BlackBoxKind = Literal["network", "forest"]

# Blocks of this size fit into the CPU cache.
ROWS_PER_BLOCK = 20_000
# Below this a network is dead: three ReLU units in the last layer can be zero for all rows.
MIN_AUC = 0.6
N_ATTEMPTS = 10
N_TREES, MIN_SAMPLES_SPLIT = 200, 3
FORMAT = 1


@dataclass(frozen=True)
class NetworkSettings:
    """Hidden layers of a network, how it is trained, and its published test AUC."""

    hidden: tuple[int, ...]
    batch: int
    epochs: int
    rate: float
    auc: float


NETWORK_SETTINGS = {
    "Adult": NetworkSettings((18, 9, 3), 1024, 20, 0.002, 0.90),
    "Give Me Some Credit": NetworkSettings((18, 9, 3), 2048, 20, 0.002, 0.82),
    "FICO HELOC": NetworkSettings((81, 27, 3), 8, 20, 0.0005, 0.76),
    "German Credit": NetworkSettings((81, 16, 3), 16, 20, 0.002, 0.80),
}


@dataclass(frozen=True, eq=False)
class BlackBox:
    """A trained predictor of the paper."""

    predict: Predictor
    auc: float
    published_auc: float
    heldout: pd.Index[Any]


@dataclass(frozen=True, eq=False)
class Network:
    """ReLU layers and a softmax of two outputs, applied with NumPy."""

    design: Design
    layers: list[tuple[Floats, Floats]]

    @property
    def offers_gradients(self) -> bool:
        """True: see :class:`mcce.predictors.Differentiable`."""
        return True

    def encode_inputs(self, frame: pd.DataFrame) -> Floats:
        """The inputs of the first layer, shape (n_rows, n_inputs)."""
        return self.design(frame)

    def differentiate(self, inputs: Any) -> Any:
        """P(desired) for inputs, a torch tensor, as a differentiable function of them."""
        torch = _torch()
        put = partial(torch.as_tensor, device=inputs.device)
        *inner, (weights, bias) = [tuple(map(put, layer)) for layer in self.layers]
        for weight, shift in inner:
            inputs = torch.relu(inputs @ weight + shift)
        outputs = inputs @ weights + bias
        return torch.sigmoid(outputs[:, 1] - outputs[:, 0])

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """P(desired) of each row."""
        starts = range(0, max(len(frame), 1), ROWS_PER_BLOCK)
        blocks = (frame.iloc[start : start + ROWS_PER_BLOCK] for start in starts)
        return np.concatenate([self._scores(block) for block in blocks])

    def _scores(self, frame: pd.DataFrame) -> Floats:
        hidden = self.design(frame)
        *inner, (weights, bias) = self.layers
        for weight, shift in inner:
            hidden = np.maximum(hidden @ weight + shift, 0.0)
        outputs = hidden @ weights + bias
        # The softmax of two outputs is the sigmoid of their difference, here without overflow.
        return np.exp(-np.logaddexp(0.0, outputs[:, 0] - outputs[:, 1]))


@dataclass(frozen=True, eq=False)
class RandomForest:
    """A random forest on encoded rows."""

    design: Design
    trees: Any

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """P(desired) of each row."""
        return self.trees.predict_proba(self.design(frame))[:, 1]


@dataclass(frozen=True, eq=False)
class _TrainingData:
    """Inputs and outcomes, with the positions of training and test rows."""

    matrix: Floats
    good: NDArray[np.bool_]
    train: NDArray[np.int64]
    test: NDArray[np.int64]

    def auc(self, scores: Floats) -> float:
        return float(roc_auc_score(self.good[self.test], scores))


def black_box(
    data: Dataset, kind: BlackBoxKind = "network", seed: int = 0, cache: Path | None = None
) -> BlackBox:
    """Train the paper's predictor for a data set, or load it from the cache.

    It is trained on three quarters of the rows, always the same, and tested on the rest.
    """
    if kind not in ("network", "forest"):
        raise ParameterError(f'kind must be "network" or "forest", got {kind!r}.')
    settings = NETWORK_SETTINGS.get(data.card["name"])
    if settings is None:
        raise ParameterError(
            f"The paper has predictors for {', '.join(NETWORK_SETTINGS)}, "
            f"got {data.card['name']!r}."
        )
    good = data.target == data.desired
    if kind == "network":
        return network(data.features, good, settings, seed, cache)
    design, split = _prepare(data.features, good)
    identity = _digest(data.features, good, [N_TREES, MIN_SAMPLES_SPLIT], seed, is_forest=True)
    cached = CacheEntry(cache_folder(cache) / f"forest-{identity}")
    trees, auc = cached.pickled(lambda: _grow(split, seed))
    heldout = data.features.index[np.sort(split.test)]
    return BlackBox(RandomForest(design, trees), auc, np.nan, heldout)


def network(
    features: pd.DataFrame,
    good: pd.Series[bool],
    settings: NetworkSettings,
    seed: int = 0,
    cache: Path | None = None,
) -> BlackBox:
    """Train a network as the paper does, or load it from the cache."""
    design, split = _prepare(features, good)
    identity = _digest(features, good, asdict(settings), seed)
    cached = CacheEntry(cache_folder(cache) / f"network-{identity}")
    arrays = cached.arrays(lambda: _train(split, settings, seed))
    predict = Network(design, _layers(arrays))
    heldout = features.index[np.sort(split.test)]
    return BlackBox(predict, float(arrays["auc"]), settings.auc, heldout)


def _prepare(features: pd.DataFrame, good: pd.Series[bool]) -> tuple[Design, _TrainingData]:
    design = Design.learn(features)
    return design, _TrainingData(design(features), good.to_numpy(), *split_rows(len(good)))


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """Boosted trees of scikit-learn on raw columns, categories as they are."""

    trees: Any

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """P(desired) of each row."""
        return self.trees.predict_proba(frame)[:, 1]


def boosted_trees(features: pd.DataFrame, good: pd.Series[bool], seed: int = 0) -> BoostedTrees:
    """Train boosted trees on the three quarters of the rows that the paper's networks train on."""
    train, _ = split_rows(len(features))
    trees = HistGradientBoostingClassifier(
        categorical_features="from_dtype", early_stopping=True, random_state=seed
    )
    return BoostedTrees(trees.fit(features.iloc[train], good.to_numpy()[train]))


def split_rows(n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of three quarters of the rows for training, and of the rest."""
    order = np.random.default_rng(0).permutation(n_rows)
    return order[: n_rows * 3 // 4], order[n_rows * 3 // 4 :]


def _digest(
    features: pd.DataFrame, good: pd.Series[bool], settings: Any, seed: int, is_forest: bool = False
) -> str:
    """Identifies a trained model: rows, outcomes, settings, seed and library of forests."""
    content, columns = hashlib.sha256(good.to_numpy().tobytes()), {}
    for name, column in features.items():
        by_level = isinstance(column.dtype, pd.CategoricalDtype)
        columns[str(name)] = list(column.cat.categories) if by_level else "number"
        cells = column.cat.codes if by_level else column
        content.update(cells.to_numpy(dtype=np.float64).tobytes())
    identity = {
        "format": FORMAT,
        "scale": "range",
        "columns": columns,
        # The key keeps models of earlier versions in the cache valid.
        "recipe": settings,
        "seed": seed,
        # A forest is a pickle of scikit-learn; a network is plain arrays.
        "library": version("scikit-learn") if is_forest else None,
    }
    content.update(json.dumps(identity, sort_keys=True).encode())
    return content.hexdigest()[:20]


def _grow(split: _TrainingData, seed: int) -> tuple[Any, float]:
    """A forest and its test AUC."""
    forest = RandomForestClassifier(
        N_TREES, min_samples_split=MIN_SAMPLES_SPLIT, random_state=seed, n_jobs=-1
    )
    forest.fit(split.matrix[split.train], split.good[split.train])
    auc = split.auc(forest.predict_proba(split.matrix[split.test])[:, 1])
    return forest.set_params(n_jobs=1), auc


def _train(split: _TrainingData, settings: NetworkSettings, seed: int) -> dict[str, NDArray[Any]]:
    """Weights of a network and its test AUC; a dead one is retrained from another seed."""
    for attempt in range(N_ATTEMPTS):
        layers, scores = _train_once(split, settings, seed + 1000 * attempt)
        auc = split.auc(scores)
        if auc >= MIN_AUC:
            break
    arrays = {"auc": np.array(auc), "seed": np.array(seed + 1000 * attempt)}
    for number, (weight, bias) in enumerate(layers):
        arrays |= {f"weight_{number}": weight, f"bias_{number}": bias}
    return arrays


def _train_once(
    split: _TrainingData, settings: NetworkSettings, seed: int
) -> tuple[list[tuple[Floats, Floats]], Floats]:
    """Layers, and P(desired) of the test rows."""
    torch = _torch()
    n_threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(
            1
        )  # batches are small, and results do not depend on the number of threads
        try:
            network = _learn(split, settings)
            with torch.no_grad():
                rest = torch.tensor(split.matrix[split.test], dtype=torch.float32)
                scores = torch.softmax(network(rest), dim=1)[:, 1].double().numpy()
        finally:
            torch.set_num_threads(n_threads)
    layers = [
        (part.weight.detach().double().numpy().T.copy(), part.bias.detach().double().numpy())
        for part in network
        if isinstance(part, torch.nn.Linear)
    ]
    return layers, scores


def _learn(split: _TrainingData, settings: NetworkSettings) -> Any:
    """A torch network trained for ``epochs`` passes."""
    torch = _torch()
    inputs = torch.tensor(split.matrix[split.train], dtype=torch.float32)
    labels = torch.tensor(split.good[split.train].astype(np.int64))
    parts: list[Any] = []
    for before, after in pairwise([inputs.shape[1], *settings.hidden]):
        parts += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    network = torch.nn.Sequential(*parts, torch.nn.Linear(settings.hidden[-1], 2))
    optimizer = torch.optim.RMSprop(network.parameters(), lr=settings.rate, foreach=True)
    for _ in range(settings.epochs):
        for batch in torch.randperm(len(labels)).split(settings.batch):
            optimizer.zero_grad()
            # For two classes this is the mean binary cross-entropy of both outputs.
            torch.nn.functional.cross_entropy(network(inputs[batch]), labels[batch]).backward()
            optimizer.step()
    return network


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as error:
        what = "Training the paper's networks"
        raise missing_extra("torch", "deep", what, folder="./lab") from error


def _layers(arrays: dict[str, NDArray[Any]]) -> list[tuple[Floats, Floats]]:
    """Weight and bias of each layer."""
    n_layers = sum(name.startswith("weight_") for name in arrays)
    return [(arrays[f"weight_{i}"], arrays[f"bias_{i}"]) for i in range(n_layers)]
