"""Predictors of the experiments: networks, forests and boosted trees, trained on first use.

Trained networks are kept in a folder, by default that of the environment variable ``MCCE_CACHE``.
Always true: a file is there as a whole or not at all, and one that cannot be read is made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier

from mcce.datasets import Dataset
from mcce.errors import ParameterError
from mcce.protocols import check_choice

from ..networks import import_torch, isolated

Floats: TypeAlias = NDArray[np.float64]
Arrays: TypeAlias = dict[str, NDArray[Any]]
Predictor: TypeAlias = Callable[[pd.DataFrame], Floats]
# A perceptron has the layers of the network and another training, which needs no torch.
BlackBoxKind = Literal["network", "perceptron", "forest", "boosting"]
KINDS: tuple[BlackBoxKind, ...] = ("network", "perceptron", "forest", "boosting")

# Blocks of this size fit into the CPU cache.
ROWS_PER_BLOCK = 20_000
# Below this a network is dead: three ReLU units in the last layer can be zero for all rows.
MIN_AUC = 0.6
N_ATTEMPTS = 10
N_TREES, MIN_SAMPLES_SPLIT = 200, 3
FORMAT = 1


@dataclass(frozen=True, eq=False)
class Design:
    """The inputs of a model: numbers, shifted and scaled, and indicators of levels.

    Examples
    --------
    >>> rows = pd.DataFrame({"age": [20, 40], "job": pd.Categorical(["a", "b"])})
    >>> Design.learn(rows)(rows)
    array([[0., 0.],
           [1., 1.]])
    """

    inputs: Sequence[tuple[str, Any]]
    # All levels of each category.
    levels: Mapping[str, pd.Index[Any]]
    shift: Floats
    scale: Floats

    @classmethod
    def learn(cls, features: pd.DataFrame) -> Design:
        """Numbers by their range, and all levels but the first of each category."""
        categories = features.select_dtypes("category")
        levels = {str(name): column.cat.categories for name, column in categories.items()}
        inputs: list[tuple[str, Any]] = []
        for name in map(str, features.columns):
            inputs += [(name, level) for level in levels.get(name, [None, None])[1:]]
        ends = [
            (features[name].min(), features[name].max()) if level is None else (0.0, 1.0)
            for name, level in inputs
        ]
        low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
        return cls(inputs, levels, low, np.where(high > low, high - low, 1.0))

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """The inputs of each row, shape (n_rows, n_inputs)."""
        inputs = np.empty((len(self.inputs), len(frame)))
        for name, (places, codes) in self._by_column.items():
            if codes is None:
                inputs[places] = frame[name].to_numpy(dtype=np.float64)
            else:
                inputs[places] = pd.Categorical(frame[name], self.levels[name]).codes == codes
        return (inputs.T - self.shift) / self.scale

    @cached_property
    def _by_column(self) -> dict[str, tuple[list[int], NDArray[np.int64] | None]]:
        """The places of each column among the inputs, and the codes of its levels."""
        found: dict[str, tuple[list[int], NDArray[np.int64] | None]] = {}
        for name in dict.fromkeys(name for name, _ in self.inputs):
            places = [at for at, (column, _) in enumerate(self.inputs) if column == name]
            known = self.levels.get(name)
            codes = None
            if known is not None:
                codes = np.array([known.get_loc(self.inputs[at][1]) for at in places])[:, None]
            found[name] = places, codes
        return found


@dataclass(frozen=True, eq=False)
class Network:
    """ReLU layers and a softmax of two outputs, applied with NumPy."""

    design: Design
    layers: Sequence[tuple[Floats, Floats]]

    @classmethod
    def with_one_output(cls, design: Design, layers: Sequence[tuple[Floats, Floats]]) -> Network:
        """A network that ends in the sigmoid of one output, which is a softmax beside 0."""
        *inner, last = layers
        both = tuple(np.stack([np.zeros_like(p[..., 0]), p[..., 0]], axis=-1) for p in last)
        return cls(design, [*inner, (both[0], both[1])])

    @property
    def offers_gradients(self) -> bool:
        """True: see :class:`mcce.predictors.Differentiable`."""
        return True

    def encode_inputs(self, frame: pd.DataFrame) -> Floats:
        """The inputs of the first layer, shape (n_rows, n_inputs)."""
        return self.design(frame)

    def differentiate(self, inputs: Any) -> Any:
        """P(desired) for inputs, a torch tensor, as a differentiable function of them."""
        import torch

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
class Trees:
    """A random forest on encoded rows, or boosted trees on numbers and codes of levels."""

    trees: Any
    encode: Predictor

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """P(desired) of each row."""
        return self.trees.predict_proba(self.encode(frame))[:, 1]


@dataclass(frozen=True, eq=False)
class Codes:
    """Numbers as they are, and levels as codes: much faster than encoders for a few rows."""

    levels: dict[str, pd.Index[Any] | None]

    @classmethod
    def learn(cls, features: pd.DataFrame) -> Codes:
        """The codes of a frame of numbers and categories."""
        dtypes = {str(name): dtype for name, dtype in features.dtypes.items()}
        return cls({name: getattr(dtype, "categories", None) for name, dtype in dtypes.items()})

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """The inputs of each row, shape (n_rows, n_columns)."""
        matrix = np.empty((len(self.levels), len(frame)))
        for row, (name, levels) in zip(matrix, self.levels.items(), strict=True):
            cells = frame[name]
            row[:] = cells if levels is None else pd.Categorical(cells, levels).codes
        return matrix.T


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
    """A trained predictor, its test AUC and the published one, and the rows of the test."""

    predict: Predictor
    auc: float
    published_auc: float
    heldout: pd.Index[Any]


@dataclass(frozen=True, eq=False)
class _Split:
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
    """Train the paper's predictor for a data set, or load it from the cache."""
    settings = NETWORK_SETTINGS.get(data.card["name"])
    if settings is None:
        raise ParameterError(
            f"The paper has predictors for {', '.join(NETWORK_SETTINGS)}, "
            f"got {data.card['name']!r}."
        )
    return train_black_box(data.features, data.target == data.desired, settings, kind, seed, cache)


def train_black_box(
    features: pd.DataFrame,
    good: pd.Series[bool],
    settings: NetworkSettings | None,
    kind: BlackBoxKind = "network",
    seed: int = 0,
    cache: Path | None = None,
) -> BlackBox:
    """Train a predictor of whether rows are good, or load it from the cache.

    It is trained on three quarters of the rows, always the same, and tested on the rest. Networks
    need settings.
    """
    check_choice("kind", kind, KINDS)
    encode: Any = Codes.learn(features) if kind == "boosting" else Design.learn(features)
    split = _Split(encode(features), good.to_numpy(), *split_rows(len(good)))
    heldout = features.index[np.sort(split.test)]
    if kind in ("forest", "boosting"):
        trees = _forest(seed) if kind == "forest" else _boosting(encode, seed)
        trees.fit(split.matrix[split.train], split.good[split.train])
        auc = split.auc(trees.predict_proba(split.matrix[split.test])[:, 1])
        return BlackBox(Trees(trees, encode), auc, np.nan, heldout)
    assert settings is not None
    train = _train_network if kind == "network" else _train_perceptron
    identity = _digest(features, good, asdict(settings), seed)
    arrays = _cached(
        f"{kind}-{identity}", cache, lambda: _first_alive(train, split, settings, seed)
    )
    layers = _layers(arrays)
    network = Network(encode, layers)
    if kind == "perceptron":
        network = Network.with_one_output(encode, layers)
    return BlackBox(network, float(arrays["auc"]), settings.auc, heldout)


def auc_of_split(data: Dataset, seed: int) -> float:
    """Test AUC of the paper's network on another split of the rows."""
    good = (data.target == data.desired).to_numpy()
    matrix = Design.learn(data.features)(data.features)
    split = _Split(matrix, good, *split_rows(len(good), seed))
    settings = NETWORK_SETTINGS[data.card["name"]]
    return float(_first_alive(_train_network, split, settings, seed)["auc"])


def split_rows(n_rows: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of three quarters of the rows for training, and of the rest."""
    order = np.random.default_rng(seed).permutation(n_rows)
    return order[: n_rows * 3 // 4], order[n_rows * 3 // 4 :]


def _forest(seed: int) -> Any:
    return RandomForestClassifier(N_TREES, min_samples_split=MIN_SAMPLES_SPLIT, random_state=seed)


def _boosting(codes: Codes, seed: int) -> Any:
    by_level = [levels is not None for levels in codes.levels.values()]
    return HistGradientBoostingClassifier(
        categorical_features=by_level, early_stopping=True, random_state=seed
    )


Trained: TypeAlias = tuple[list[tuple[Floats, Floats]], Floats]


def _first_alive(
    train: Callable[[_Split, NetworkSettings, int], Trained],
    split: _Split,
    settings: NetworkSettings,
    seed: int,
) -> Arrays:
    """Weights of a network and its test AUC; a dead one is retrained from another seed."""
    for attempt in range(N_ATTEMPTS):
        layers, scores = train(split, settings, seed + 1000 * attempt)
        auc = split.auc(scores)
        if auc >= MIN_AUC:
            break
    arrays = {"auc": np.array(auc), "seed": np.array(seed + 1000 * attempt)}
    for number, (weight, bias) in enumerate(layers):
        arrays |= {f"weight_{number}": weight, f"bias_{number}": bias}
    return arrays


def _train_network(split: _Split, settings: NetworkSettings, seed: int) -> Trained:
    """Layers as in the paper, and P(desired) of the test rows."""
    import_torch("Training the paper's networks", "cpu")
    # In one thread: batches are small, and results do not depend on the number of threads.
    with isolated(seed) as torch:
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
                loss = torch.nn.functional.cross_entropy(network(inputs[batch]), labels[batch])
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            rest = torch.tensor(split.matrix[split.test], dtype=torch.float32)
            scores = torch.softmax(network(rest), dim=1)[:, 1].double().numpy()
        layers = [
            (part.weight.detach().double().numpy().T.copy(), part.bias.detach().double().numpy())
            for part in network
            if isinstance(part, torch.nn.Linear)
        ]
    return layers, scores


def _train_perceptron(split: _Split, settings: NetworkSettings, seed: int) -> Trained:
    """Layers of a perceptron of scikit-learn, and P(desired) of the test rows."""
    model = MLPClassifier(
        settings.hidden,
        batch_size=settings.batch,
        learning_rate_init=settings.rate,
        max_iter=settings.epochs,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(split.matrix[split.train], split.good[split.train])
    scores = model.predict_proba(split.matrix[split.test])[:, 1]
    return list(zip(model.coefs_, model.intercepts_, strict=True)), scores


def _layers(arrays: Arrays) -> list[tuple[Floats, Floats]]:
    """Weight and bias of each layer."""
    n_layers = sum(name.startswith("weight_") for name in arrays)
    return [(arrays[f"weight_{i}"], arrays[f"bias_{i}"]) for i in range(n_layers)]


def _digest(features: pd.DataFrame, good: pd.Series[bool], settings: Any, seed: int) -> str:
    """Identifies a trained network: rows, outcomes, settings and seed."""
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
        "recipe": settings,
        "seed": seed,
        "library": None,
    }
    content.update(json.dumps(identity, sort_keys=True).encode())
    return content.hexdigest()[:20]


def _cached(name: str, cache: Path | None, make: Callable[[], Arrays]) -> Arrays:
    """Arrays from a file of the cache, which is made on first use and written whole."""
    default = os.environ.get("MCCE_CACHE") or Path("~/.cache/mcce").expanduser()
    folder = Path(default if cache is None else cache)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.npz"
        try:
            with path.open("rb") as file, np.load(file) as saved:
                return {name: saved[name] for name in saved.files}
        except (FileNotFoundError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
            arrays = make()
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as unfinished:
            np.savez(unfinished, allow_pickle=False, **arrays)
        os.replace(unfinished.name, path)
    except OSError as error:
        raise ParameterError(
            f"The cache of trained models, {str(folder)!r}, cannot be read or written to "
            f"({error.strerror}). Set the environment variable MCCE_CACHE to another folder."
        ) from error
    return arrays
