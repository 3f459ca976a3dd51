"""Step 1: conditional generative adversarial networks, plain ones and those for tables (CTGAN).

Paper, section "Future steps": models other than trees. The whole context, the immutable features
and the decision, is an input of the generator and of the critic; the generator makes the mutable
features alone. So every draw has the context that it was asked for.

CTGAN (Xu, Skoularidou, Cuesta-Infante and Veeramachaneni 2019): a number is one of several modes,
those of a mixture of normal distributions, and its place in it, ``(number - mean) / (4 * spread)``.
Values that many rows share are modes of their own, and so is missing. A level, and a number with
few values, is a mode without a place. The critic sees packs of rows, each with its own context, and
a penalty keeps its slope at 1 (Gulrajani et al. 2017). In the plain network (Mirza and Osindero
2014) a number has one mode, its range, and the critic is a classifier of single rows.

Always true: a network is trained with torch but used without it, in fixed point, so a draw is the
same to the last bit whatever the batch; all randomness comes from the seed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd

from mcce import Schema
from mcce.errors import ParameterError
from mcce.protocols import (
    BoolArray,
    Capabilities,
    Codes,
    DrawRequest,
    EncodedRows,
    Feature,
    FloatArray,
    IntArray,
    check_count,
    check_whole,
    uniforms,
)

from ..networks import import_torch, isolated
from ..parameters import Device, Rate, TwoOrMore, Width
from .base import LabGenerator, demand, listed, progress, take
from .cells import (
    choose,
    draw_cells,
    draw_nearest,
    learn_cells,
    pack_cells,
    unpack_cells,
)
from .fixed_point import (
    LARGEST_NOISE,
    MAX_ACTIVATION,
    check_network,
    chunk_rows,
    fix,
    fix_network,
    normal_noise,
    relu,
)

# Bins of the tables that numbers are drawn from.
N_BINS = 64
# Numbers with so few values are levels; values of so large a share of the rows are modes.
N_LEVELS, ATOM_SHARE = 20, 0.05
# Of the mixture: components at most, the least weight of a mode, and rows to learn it from.
N_COMPONENTS, MIN_WEIGHT, N_ROWS = 10, 0.005, 10_000
# Places are bounded, and count in four spreads.
FARTHEST_PLACE, SPREADS = 0.99, 4.0
TEMPERATURE, PENALTY, DROPOUT, LEAK = 0.2, 10.0, 0.5, 0.2
BETAS, WEIGHT_DECAY = (0.5, 0.9), 1e-6
# Small data get smaller batches: about as many steps per epoch, each of a least number of packs.
GAN_STEPS, MIN_PACKS = 10, 5
# As many epochs as published, unless data are large.
MAX_EPOCHS, MAX_STEPS = 300, 5000


def _check_epochs(name: str, value: Any) -> None:
    if value != "auto":
        check_count(name, value)


Epochs = Annotated[int | Literal["auto"], _check_epochs]


class _Gan(LabGenerator):
    """A generator and a critic that train each other."""

    array_names: ClassVar[tuple[str, ...]] = ("modes", "cells", "network")
    capabilities: ClassVar[Capabilities] = Capabilities(limits=True, saving=True, value_tables=True)
    pack: int
    n_epochs: int | Literal["auto"]
    batch_size: int
    n_noise: int
    n_hidden: int
    learning_rate: float
    condition_on_decision: bool
    device: str

    @property
    def tables_(self) -> list[pd.Series[Any]]:
        """The values that can be drawn, one table per mutable feature."""
        return [self.cells_[position].table for position in self.schema_.mutable]

    def _modes(self, rows: EncodedRows, seed: int) -> list[ColumnModes]:
        """The modes of every column."""
        return learn_modes(rows, seed % 2**32)

    def _losses(self, torch: Any, critic: Any, real: Any, made: Any) -> Any:
        """The loss of the critic for packs of real and of made rows."""
        penalty = slope_penalty(torch, critic, real, made, torch.rand((len(real), 1)))
        return critic(made).mean() - critic(real).mean() + PENALTY * penalty

    def _loss(self, torch: Any, critic: Any, made: Any) -> Any:
        """The loss of the generator."""
        return -critic(made).mean()

    def _learn(self, rows: EncodedRows, is_desired: BoolArray, seed: int, verbose: bool) -> None:
        name = type(self).__name__
        import_torch(name, self.device)
        if self.batch_size % self.pack:
            raise ParameterError(
                f"batch_size must be a multiple of pack={self.pack!r}, since the critic sees whole "
                f"packs; got {self.batch_size!r}."
            )
        schema = rows.schema
        self.modes_, self.cells_ = self._modes(rows, seed), learn_cells(rows, N_BINS)
        context = self._context(schema, np.vstack([rows.tree_codes, is_desired]))
        made = np.hstack([self._units(rows, at, seed) for at in schema.mutable.tolist()])
        # About as many rows in a step as there are steps, a multiple of the pack.
        wanted = max(len(rows) // GAN_STEPS, MIN_PACKS * self.pack)
        batch = max(self.pack, min(self.batch_size, wanted) // self.pack * self.pack)
        n_steps = max(1, len(rows) // batch)
        usual = max(1, min(MAX_EPOCHS, MAX_STEPS // n_steps))
        n_epochs = usual if isinstance(self.n_epochs, str) else self.n_epochs
        work = progress(n_epochs, f"training {name}", verbose)
        with work as show, isolated(seed, self.device) as torch:
            weights = _train(torch, self, made, context, batch, n_steps, n_epochs, show)
        self.network_ = GanNetwork.fix(self._layout(schema), weights)

    def _layout(self, schema: Schema) -> GanLayout:
        context = tuple(self.modes_[position] for position in schema.immutable)
        drawn = tuple(self.modes_[position] for position in schema.mutable)
        return GanLayout(context, drawn, self.condition_on_decision, self.n_noise, self.n_hidden)

    def _context(self, schema: Schema, codes: Codes) -> FloatArray:
        """The inputs for the context, shape (n_rows, n_context)."""
        numbers = [schema.features[at].numbers for at in schema.immutable]
        given = [*codes[schema.immutable], codes[-1]]
        return self._layout(schema).encode_context(given, numbers, codes.shape[1])

    def _units(self, rows: EncodedRows, position: int, seed: int) -> FloatArray:
        """The inputs of the networks for a feature of the training rows, modes drawn at random."""
        u = np.random.default_rng([seed, position]).random(len(rows))
        column, numbers = self.modes_[position], rows.schema.features[position].numbers
        mode, place = column.encode(rows.tree_codes[position].astype(np.int64), numbers, u)
        return one_hot(mode, place, column)

    def _rows_at_once(self) -> int:
        return chunk_rows(int(self.network_.layout.starts[-1]))

    def _tables(self) -> list[pd.Series[Any]] | None:
        return self.tables_

    def _draw(self, request: DrawRequest) -> Codes:
        layout = self.network_.layout
        context = self._context(self.schema_, request.inputs)[request.group]
        # The words of earlier positions are those of the features.
        noise = normal_noise(request.row_keys, 3 * (len(request.given) + 1), self.n_noise)
        outputs = self.network_.outputs(noise, context)
        codes = np.empty((self.schema_.mutable.size, request.group.size), dtype=np.int32)
        for place, position in enumerate(self.schema_.mutable.tolist()):
            units = outputs[:, layout.starts[place] : layout.starts[place + 1]]
            column, cells = self.modes_[position], self.cells_[position]
            if not column.has_place:
                codes[place] = draw_cells(request, position, cells, units)[0]
                continue
            # A mode by its probability, and the value nearest to its place.
            logits = np.ascontiguousarray(units[:, :-1])
            mode = choose(logits, uniforms(request.row_keys, position))
            numbers, missing = column.decode(mode, np.tanh(np.ascontiguousarray(units[:, -1])))
            feature = self.schema_.features[position]
            codes[place] = draw_nearest(request, position, cells, feature, numbers, missing)[0]
        return codes

    def _pack(self) -> dict[str, Any]:
        network = dict(self.network_.weights)
        return {
            "modes": pack_modes(self.modes_),
            "cells": pack_cells(self.cells_),
            "network": network,
        }

    def _unpack(self, arrays: Mapping[str, Any], schema: Schema) -> None:
        self.modes_ = unpack_modes(arrays["modes"], schema)
        self.cells_ = unpack_cells(arrays["cells"], schema)
        self.network_ = GanNetwork.from_arrays(self._layout(schema), arrays["network"])


@dataclass(eq=False, repr=False, kw_only=True)
class CTGAN(_Gan):
    """A generator and a critic that train each other. Needs torch to be fitted.

    All mutable features are made at once: where a constraint keeps one as it is, the others do not
    follow. A network of this kind has no likelihood.

    Parameters
    ----------
    n_epochs
        Passes over the training rows; ``"auto"`` makes 300, as published, or fewer for many rows,
        so that there are at most 5,000 training steps.
    batch_size, pack
        The most rows of a training step, and how many of them the critic sees together; the batch
        must be a multiple of the pack. Small data get smaller batches.
    n_noise, n_hidden
        Number of random inputs, and of units of each hidden layer of both networks.
    learning_rate
        Of the training of both networks.
    condition_on_decision
        Whether the decision is an input.
    device
        Where to train: ``"cpu"``, ``"cuda"`` or ``"cuda:0"``. Rows are always drawn on the CPU.

    Attributes
    ----------
    modes_ : list of ColumnModes
        The modes of each column.
    cells_ : list of ColumnCells
        The values of each column that can be drawn.
    network_ : GanNetwork
        The trained generator.
    """

    n_epochs: Epochs = "auto"
    batch_size: TwoOrMore = 500
    pack: Annotated[int, partial(check_whole, least=1, most=1000)] = 10
    n_noise: Width = 128
    n_hidden: Width = 256
    learning_rate: Rate = 2e-4
    condition_on_decision: bool = True
    device: Device = "cpu"


@dataclass(eq=False, repr=False, kw_only=True)
class ConditionalGAN(_Gan):
    """A plain generator and critic that train each other. Needs torch to be fitted.

    What the paper names first among other models. Numbers are scaled by their range, and the critic
    is a classifier that tells single real rows from made ones. It is here to be compared with:
    :class:`CTGAN` was made for tables.

    Parameters
    ----------
    n_epochs
        Passes over the training rows; ``"auto"`` makes 300, or fewer for many rows, so that there
        are at most 5,000 training steps.
    batch_size
        The most rows of a training step. Small data get smaller batches.
    n_noise, n_hidden
        Number of random inputs, and of units of each hidden layer of both networks.
    learning_rate
        Of the training of both networks.
    condition_on_decision
        Whether the decision is an input.
    device
        Where to train: ``"cpu"``, ``"cuda"`` or ``"cuda:0"``. Rows are always drawn on the CPU.

    Attributes
    ----------
    network_ : GanNetwork
        The trained generator.
    """

    n_epochs: Epochs = "auto"
    batch_size: TwoOrMore = 500
    n_noise: Width = 128
    n_hidden: Width = 256
    learning_rate: Rate = 2e-4
    condition_on_decision: bool = True
    device: Device = "cpu"
    pack: ClassVar[int] = 1  # type: ignore[misc]

    def _modes(self, rows: EncodedRows, seed: int) -> list[ColumnModes]:
        return [_one_mode(feature) for feature in rows.schema.features]

    def _losses(self, torch: Any, critic: Any, real: Any, made: Any) -> Any:
        softplus = torch.nn.functional.softplus
        return softplus(-critic(real)).mean() + softplus(critic(made)).mean()

    def _loss(self, torch: Any, critic: Any, made: Any) -> Any:
        return torch.nn.functional.softplus(-critic(made)).mean()


@dataclass(frozen=True, eq=False)
class ColumnModes:
    """The modes of a column.

    Parameters
    ----------
    n_levels
        Number of codes of a column whose values are levels; 0 for one with modes.
    weights, means, spreads : (n_modes,)
        Of the modes of a number; the spread of a single value is 0.
    has_missing
        Whether there is one more mode, for missing.
    """

    n_levels: int
    weights: FloatArray
    means: FloatArray
    spreads: FloatArray
    has_missing: bool

    @property
    def has_place(self) -> bool:
        """Whether a value has a place in its mode."""
        return not self.n_levels

    @property
    def n_units(self) -> int:
        """Number of modes or levels."""
        return self.n_levels or self.means.size + self.has_missing

    def encode(
        self, codes: IntArray, numbers: FloatArray | None, u: FloatArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """The mode and the place of each cell."""
        if self.n_levels or numbers is None:
            return codes.astype(np.int64), np.zeros(codes.size)
        values = numbers[codes]
        missing = np.isnan(values)
        filled = np.where(missing, 0.0, values)
        likely = self._likely(filled)
        if u is None:
            mode = likely.argmax(axis=1)
        else:
            below = np.cumsum(likely, axis=1)
            mode = (below <= (u * below[:, -1])[:, None]).sum(axis=1)
            mode = np.minimum(mode, self.means.size - 1)
        spread = self.spreads[mode]
        place = (filled - self.means[mode]) / np.where(spread > 0, SPREADS * spread, 1.0)
        place = np.where(missing | (spread == 0), 0.0, place)
        mode = np.where(missing, self.means.size, mode)
        return mode, np.clip(place, -FARTHEST_PLACE, FARTHEST_PLACE)

    def decode(self, mode: IntArray, place: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The number of each mode and place, and whether it is missing."""
        missing = mode >= self.means.size
        at = np.minimum(mode, self.means.size - 1)
        bounded = np.clip(place, -FARTHEST_PLACE, FARTHEST_PLACE)
        return self.means[at] + SPREADS * self.spreads[at] * bounded, missing

    def _likely(self, values: FloatArray) -> FloatArray:
        """How likely each mode is to hold each value, up to a constant: (n_rows, n_modes)."""
        single = self.spreads == 0
        spreads = np.where(single, 1.0, self.spreads)
        gap = (values[:, None] - self.means) / spreads
        logs = np.log(self.weights) - np.log(spreads) - 0.5 * gap * gap
        logs = np.where(single, -np.inf, logs)
        exact = single & (values[:, None] == self.means)
        logs[exact.any(axis=1)] = -np.inf
        logs[exact] = 0.0
        return np.exp(logs - logs.max(axis=1, keepdims=True))


def learn_modes(rows: EncodedRows, seed: int) -> list[ColumnModes]:
    """The modes of every column."""
    features = enumerate(rows.schema.features)
    return [_column_modes(f, rows.tree_codes[at].astype(np.int64), seed + at) for at, f in features]


def pack_modes(columns: list[ColumnModes]) -> list[dict[str, Any]]:
    """The arrays of modes by name."""
    names = ("weights", "means", "spreads")
    return [{name: getattr(column, name) for name in names} for column in columns]


def unpack_modes(plain: Any, schema: Schema) -> list[ColumnModes]:
    """Modes that could have been learned of these columns; raises SavedFileError for others."""
    parts = listed(plain, len(schema.features), "the modes")
    return [_unpack(*pair) for pair in zip(parts, schema.features, strict=True)]


def _is_levels(feature: Feature) -> bool:
    return feature.kind == "categorical" or feature.n_codes <= N_LEVELS


def _levels(feature: Feature) -> ColumnModes:
    none = np.empty(0)
    return ColumnModes(feature.n_codes, none, none, none, feature.has_missing)


def _column_modes(feature: Feature, codes: IntArray, seed: int) -> ColumnModes:
    if _is_levels(feature) or feature.numbers is None:
        return _levels(feature)
    numbers = feature.numbers
    counts = np.bincount(codes, minlength=feature.n_codes) * ~np.isnan(numbers)
    atoms = counts >= ATOM_SHARE * max(1, int(counts.sum()))
    rest = codes[~atoms[codes] & ~np.isnan(numbers[codes])]
    weights, means, spreads = _mixture(numbers[rest], feature.spread, seed)
    share = rest.size / max(1, int(counts.sum()))
    return ColumnModes(
        0,
        np.concatenate([weights * share, counts[atoms] / counts.sum()]),
        np.concatenate([means, numbers[atoms]]),
        np.concatenate([spreads, np.zeros(int(atoms.sum()))]),
        feature.has_missing,
    )


def _mixture(
    values: FloatArray, scale: float, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights, means and spreads of the modes of some numbers, by mean; none of no numbers."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    if not values.size:
        return np.empty(0), np.empty(0), np.empty(0)
    # In units of a power of two, which is exact, so that no square is too large or too small.
    unit = np.ldexp(1.0, min(int(np.frexp(np.abs(values).max())[1]), 1023))
    values = values / unit
    centre, width = values.mean(), values.std()
    if values.size < 2 or not width > 0:
        centre = centre * unit
        return np.ones(1), np.array([centre]), np.array([min(max(abs(centre), 1.0) * 1e-3, scale)])
    some = np.random.default_rng(seed).permutation(values.size)[:N_ROWS]
    scaled = np.sort(values[some] - centre) / width
    mixture = BayesianGaussianMixture(
        n_components=min(N_COMPONENTS, np.unique(scaled).size),
        weight_concentration_prior=0.001,
        random_state=seed % 2**32,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(scaled[:, None])
    kept = mixture.weights_ >= MIN_WEIGHT
    order = np.argsort(mixture.means_[kept, 0])
    weights = mixture.weights_[kept][order]
    means = (mixture.means_[kept, 0][order] * width + centre) * unit
    spreads = np.sqrt(mixture.covariances_[kept, 0, 0][order]) * width * unit
    return weights / weights.sum(), means, spreads


def _unpack(plain: Any, feature: Feature) -> ColumnModes:
    names = ("weights", "means", "spreads")
    parts = take(plain, "the modes of a column", **dict.fromkeys(names, np.float64))
    same = all(part.size == parts[0].size and np.isfinite(part).all() for part in parts)
    demand(same, "the modes of a column have other dtypes or shapes")
    weights, means, spreads = parts
    if _is_levels(feature):
        demand(not weights.size, "a column of levels has modes")
        return _levels(feature)
    sound = weights.size and (weights > 0).all() and (spreads >= 0).all()
    demand(sound, "the modes of a column are not those of numbers")
    return ColumnModes(0, weights, means, spreads, feature.has_missing)


def _one_mode(feature: Feature) -> ColumnModes:
    """A number as its place in its range."""
    numbers = feature.numbers
    if _is_levels(feature) or numbers is None:
        return _levels(feature)
    low, high = np.nanmin(numbers), np.nanmax(numbers)
    half = (high / 2 - low / 2) / FARTHEST_PLACE / SPREADS
    middle = np.array([low / 2 + high / 2])
    return ColumnModes(0, np.ones(1), middle, np.array([half]), feature.has_missing)


@dataclass(frozen=True, eq=False)
class GanLayout:
    """Which inputs and outputs belong to which column.

    Parameters
    ----------
    context
        Modes of the immutable features; with the decision, two more units follow.
    drawn
        Modes of the mutable features.
    decision
        Whether the decision is part of the context.
    n_noise, n_hidden
        Number of random inputs, and of units of each hidden layer.
    """

    context: tuple[ColumnModes, ...]
    drawn: tuple[ColumnModes, ...]
    decision: bool
    n_noise: int
    n_hidden: int

    @cached_property
    def n_context(self) -> int:
        """Number of inputs that stand for the context."""
        return sum(width_of(column) for column in self.context) + 2 * self.decision

    @cached_property
    def starts(self) -> IntArray:
        """The first output of each mutable feature: a unit per mode, then the place if any."""
        return np.append(0, np.cumsum([width_of(column) for column in self.drawn]))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array of weights."""
        first = self.n_noise + self.n_context
        widths = [first, first + self.n_hidden, first + 2 * self.n_hidden]
        outputs = [self.n_hidden, self.n_hidden, int(self.starts[-1])]
        found: dict[str, tuple[int, ...]] = {}
        for layer, (n_in, n_out) in enumerate(zip(widths, outputs, strict=True)):
            found[f"weights_{layer}"], found[f"bias_{layer}"] = (n_in, n_out), (n_out,)
        return found

    def reach(self) -> dict[str, float]:
        """The largest sum of what each array of weights is multiplied with."""
        inputs = LARGEST_NOISE * self.n_noise + self.n_context
        sums = {
            f"weights_{layer}": inputs + layer * self.n_hidden * MAX_ACTIVATION
            for layer in range(3)
        }
        return {name: sums.get(name, 1.0) for name in self.shapes()}

    def encode_context(
        self, codes: list[Codes], numbers: list[FloatArray | None], n_rows: int
    ) -> FloatArray:
        """The inputs of rows for the context, shape (n_rows, n_context)."""
        parts = [
            one_hot(*column.encode(cells.astype(np.int64), values), column)
            for column, cells, values in zip(self.context, codes, numbers, strict=False)
        ]
        if self.decision:
            parts.append(np.eye(2)[codes[-1]])
        return np.hstack([np.empty((n_rows, 0)), *parts])


@dataclass(frozen=True, eq=False)
class GanNetwork:
    """A trained generator in fixed point.

    Parameters
    ----------
    layout
        Its shape.
    weights
        Its arrays by name.
    """

    layout: GanLayout
    weights: Mapping[str, FloatArray]

    @classmethod
    def fix(cls, layout: GanLayout, weights: Mapping[str, Any]) -> GanNetwork:
        """A network of any weights, rounded."""
        return cls(layout, fix_network(weights, layout.reach()))

    @classmethod
    def from_arrays(cls, layout: GanLayout, arrays: Any) -> GanNetwork:
        """A network from a file, checked."""
        return cls(layout, check_network(arrays, layout.shapes(), layout.reach()))

    def outputs(self, noise: FloatArray, context: FloatArray) -> FloatArray:
        """Logits and places of all mutable features, shape (n_rows, n_outputs)."""
        inputs = np.hstack([fix(noise), fix(context)])
        for layer in range(2):
            hidden = inputs @ self.weights[f"weights_{layer}"] + self.weights[f"bias_{layer}"]
            inputs = np.hstack([relu(hidden), inputs])
        found: FloatArray = inputs @ self.weights["weights_2"] + self.weights["bias_2"]
        return found


def width_of(column: ColumnModes) -> int:
    """Number of units that stand for a column."""
    return column.n_units + column.has_place


def one_hot(mode: IntArray, place: FloatArray, column: ColumnModes) -> FloatArray:
    """A unit per mode and the place if there is one; no unit for an unseen level."""
    units = np.zeros((mode.size, width_of(column)))
    known = np.flatnonzero(mode < column.n_units)
    units[known, mode[known]] = 1.0
    if column.has_place:
        units[:, -1] = place
    return units


def _train(
    torch: Any,
    gan: _Gan,
    rows: FloatArray,
    context: FloatArray,
    batch: int,
    n_steps: int,
    n_epochs: int,
    show: Callable[[int], None],
) -> dict[str, FloatArray]:
    """The weights of a trained generator, by name, with its batch normalisation folded in."""
    layout, nn = gan._layout(gan.schema_), torch.nn
    widths = [shape for name, shape in layout.shapes().items() if name.startswith("weights")]
    linear = nn.ModuleList([nn.Linear(*width) for width in widths])
    normal = nn.ModuleList([nn.BatchNorm1d(layout.n_hidden) for _ in range(2)])
    hidden = [nn.Linear(gan.pack * (rows.shape[1] + context.shape[1]), layout.n_hidden)]
    hidden.append(nn.Linear(layout.n_hidden, layout.n_hidden))
    parts = [part for one in hidden for part in (one, nn.LeakyReLU(LEAK), nn.Dropout(DROPOUT))]
    critic = nn.Sequential(*parts, nn.Linear(layout.n_hidden, 1)).to(gan.device)
    maker = nn.ModuleList([linear, normal]).to(gan.device)
    put = {"dtype": torch.float32, "device": gan.device}
    real, given = torch.tensor(rows, **put), torch.tensor(context, **put)

    def make(context: Any) -> Any:
        """Rows with some contexts, with a unit per mode and the places."""
        inputs = torch.cat([torch.randn((len(context), layout.n_noise), **put), context], dim=1)
        for layer, normalise in zip(linear, normal, strict=False):
            inputs = torch.cat([normalise(layer(inputs)).relu(), inputs], dim=1)
        return _activate(torch, layout, linear[2](inputs))

    def packs(rows: Any, context: Any) -> Any:
        return torch.cat([rows, context], dim=1).reshape(len(rows) // gan.pack, -1)

    rate = {"lr": gan.learning_rate, "betas": BETAS, "weight_decay": WEIGHT_DECAY}
    optimizers = [torch.optim.Adam(part.parameters(), **rate) for part in (maker, critic)]
    for epoch in range(n_epochs):
        for _ in range(n_steps):
            for turn in (1, 0):
                at = torch.randint(len(real), (batch,), device=gan.device)
                with torch.set_grad_enabled(turn == 0):
                    made = packs(make(given[at]), given[at])
                if turn:
                    loss = gan._losses(torch, critic, packs(real[at], given[at]), made)
                else:
                    loss = gan._loss(torch, critic, made)
                optimizers[turn].zero_grad()
                loss.backward()
                optimizers[turn].step()
        show(epoch + 1)
    found: dict[str, FloatArray] = {}
    for layer, one in enumerate(linear):
        weights, bias = (p.detach().cpu().double().numpy() for p in (one.weight.T, one.bias))
        if layer < 2:
            state = {name: part.cpu().double() for name, part in normal[layer].state_dict().items()}
            scale, shift, mean, variance = (
                state[name].numpy() for name in ("weight", "bias", "running_mean", "running_var")
            )
            factor = scale / np.sqrt(variance + normal[layer].eps)
            weights, bias = weights * factor, (bias - mean) * factor + shift
        found |= {f"weights_{layer}": weights, f"bias_{layer}": bias}
    if not all(np.isfinite(part).all() for part in found.values()):
        raise ParameterError(
            f"The training of {type(gan).__name__} diverged: learning_rate={gan.learning_rate!r} "
            "is too large for these rows. Use a smaller one."
        )
    return found


def _activate(torch: Any, layout: GanLayout, outputs: Any) -> Any:
    """Modes by the Gumbel softmax, and places."""
    uniform = torch.rand(outputs.shape, device=outputs.device)
    gumbel = -(-(uniform.clamp(1e-20, 1 - 1e-7)).log()).log()
    parts = []
    for column, first in zip(layout.drawn, layout.starts.tolist(), strict=False):
        end = first + column.n_units
        noisy = (outputs[:, first:end] + gumbel[:, first:end]) / TEMPERATURE
        parts.append(noisy.softmax(dim=1))
        if column.has_place:
            parts.append(outputs[:, end : end + 1].tanh())
    return torch.cat(parts, dim=1)


def slope_penalty(torch: Any, critic: Callable[[Any], Any], real: Any, made: Any, u: Any) -> Any:
    """How far the slope of a critic is from 1 between real and made packs, on average."""
    u = u.to(real.device)
    between = (u * real + (1 - u) * made).detach().requires_grad_()
    (slopes,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((slopes.norm(dim=1) - 1) ** 2).mean()
