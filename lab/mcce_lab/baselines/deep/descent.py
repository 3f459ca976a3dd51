"""Searches by gradient: many people at once, each by themselves.

Points are projected to rows on the way (:meth:`Space.project` in torch): forward exactly, backward
as if nothing was rounded, clipped or chosen, and with no gradient for immutable features. The
objective of each row is summed and never averaged, and steps are taken number by number, so one
search for many rows is as many searches. A row stops by itself.

Always true: what is remembered is a projected point that was valid, the cheapest so far; rows
without one of their numbers are left out of training, and such people get a reason.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, ClassVar, Self

import numpy as np

from mcce import Decision, Interval
from mcce.errors import McceError, ParameterError, PredictorError
from mcce.predictors import Differentiable
from mcce.protocols import EncodedRows, FloatArray, IntArray, Kind

from ...networks import import_torch, isolated
from ..baseline import Baseline, Declined, Found, Training
from ..space import MIN_MOVE, Space, complete_rows, search_complete
from .networks import GRID, INCOMPLETE, Adam, Groups, Stepper, blocks, in_blocks, snap


@dataclass(frozen=True, eq=False)
class Projection:
    """The rows nearest to points, and the distances between rows."""

    levels: Groups
    mutable: Any
    number: Any
    rounded: Any
    least: Any
    spread: Any
    unit: Any
    weight: Any

    @classmethod
    def of(cls, space: Space, device: Any) -> Projection:
        """The projection of a cube, on a device."""
        import torch

        rounded = space.is_number & (space.unit > 0)
        columns = (
            space.is_mutable,
            space.is_number,
            rounded,
            space.least.astype(np.float64),
            space.spread.astype(np.float64),
            np.where(rounded, space.unit, 1.0),
            np.where(space.is_number, 1.0, 0.5),
        )
        tensors: list[Any] = [torch.as_tensor(column, device=device) for column in columns]
        return cls(Groups.of(space.groups, space.n_axes, device), *tensors)

    def __call__(self, points: Any, own: Any) -> Any:
        """Points as rows; the gradient passes straight through to mutable axes."""
        import torch

        given = points.detach()
        settled = torch.where((given - own).abs() < 0.5 / GRID, own, snap(given))
        return _straight_through()(points, self.nearest(settled, own), self.mutable)

    def nearest(self, points: Any, own: Any) -> Any:
        """Points as rows, without gradients."""
        import torch

        placed = points.clamp(own.clamp(max=0.0), own.clamp(min=1.0))
        value = placed * self.spread + self.least
        written = (torch.round(value / self.unit) * self.unit - self.least) / self.spread
        placed = torch.where(self.rounded, written, placed)
        placed = torch.where(self.number, placed, self.levels.largest(points))
        kept = ~self.mutable | (self.number & ((placed - own).abs() <= MIN_MOVE))
        return torch.where(kept, own, placed)

    def l1(self, points: Any, own: Any) -> Any:
        """As :meth:`Space.l1`."""
        return ((points - own).abs() * self.weight).sum(dim=1)

    def squared(self, points: Any, own: Any) -> Any:
        """Sum over features of squared differences, 1 between two levels."""
        return ((points - own).square() * self.weight).sum(dim=1)


@cache
def _straight_through() -> Any:
    import torch

    class StraightThrough(torch.autograd.Function):
        """Forward the rows, backward the gradient of mutable axes."""

        @staticmethod
        def forward(context: Any, _points: Any, rows: Any, mutable: Any) -> Any:
            context.mutable = mutable
            return rows.clone()

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return gradient * context.mutable, None, None

    return StraightThrough.apply


# Encodings in single precision are affine up to this share of an input's range.
TOLERANCE = 1e-5
# Rows for learning the map: the base, and those added for each axis.
N_ROWS, N_ROWS_PER_AXIS = 200, 8
# Keeps logarithms of probabilities finite.
MIN_PROBABILITY = 1e-10


@dataclass(frozen=True, eq=False)
class Scorer:
    """The predictor's scores of points, differentiable."""

    space: Space
    decision: Decision
    slopes: Any
    high: bool
    threshold: float

    @classmethod
    def learn(cls, training: Training, space: Space, method: str, device: str) -> Scorer:
        """The function for training data."""
        import torch

        predictor = _require_gradients(training.decision.predictor, method)
        high, threshold = desired_end(training, method)
        slopes = torch.as_tensor(affine_slopes(predictor, training, space), device=device)
        return cls(space, training.decision, slopes, high, threshold)

    @property
    def device(self) -> Any:
        """Where points are scored."""
        return self.slopes.device

    def inputs(self, people: EncodedRows) -> FloatArray:
        """Inputs of the network for people, shape (n_people, n_inputs)."""
        return network_inputs(self.decision, people)

    def anchors(self, own: Any, inputs: Any) -> Any:
        """The inputs of people minus what their points explain, as tensors."""
        return inputs - in_blocks(lambda points: points @ self.slopes, own)

    def outputs(self, points: Any, anchors: Any) -> Any:
        """Output of the predictor for points."""
        import torch

        inputs = anchors + points @ self.slopes
        output = _differentiate(self.decision, inputs)
        if output.ndim == 2 and output.shape[1] > 1:
            return output
        score = output.reshape(len(points), 1)
        return torch.cat([1 - score, score] if self.high else [score, 1 - score], dim=1)

    def desired(self, outputs: Any) -> Any:
        """Probability of the desired decision, shape (n_points,)."""
        if not self.decision.columns:
            return outputs[:, 1]
        summed = outputs[:, list(self.decision.columns)].sum(dim=1)
        return summed if self.high else 1 - summed

    def loss(self, outputs: Any) -> Any:
        """Minus the logarithm of the desired probability, shape (n_points,)."""
        return -self.desired(outputs).clamp(min=MIN_PROBABILITY).log()

    def margin(self, outputs: Any) -> Any:
        """How much more likely the desired decision is than the other, shape (n_points,)."""
        import torch

        if isinstance(self.decision.desired, Interval):
            return 2 * (self.desired(outputs) - self.threshold)
        columns = list(self.decision.columns)
        others = [at for at in range(outputs.shape[1]) if at not in columns]
        return torch.amax(outputs[:, columns], dim=1) - torch.amax(outputs[:, others], dim=1)

    def valid(self, outputs: Any) -> Any:
        """Whether points have the desired decision, shape (n_points,)."""
        import torch

        desired = self.decision.desired
        if not isinstance(desired, Interval):
            columns = torch.tensor(self.decision.columns, device=outputs.device)
            return torch.isin(outputs.argmax(dim=1), columns)
        score = self.desired(outputs) if self.high else 1 - self.desired(outputs)
        return desired.contains(score.detach())


def _require_gradients(predictor: Any, method: str) -> Differentiable:
    """The predictor itself, if it offers gradients."""
    if getattr(predictor, "offers_gradients", False) is True:
        return predictor
    raise PredictorError(
        f"{method} needs gradients, which the predictor {type(predictor).__name__} does not offer. "
        "Wrap a torch module in mcce.predictors.Torch, write a predictor with "
        "offers_gradients = True (mcce.predictors.Differentiable), or use a method that needs no "
        "gradients: MCCE, NearestUnlike, NICE, GrowingSpheres, FACE or CCHVAE."
    )


def desired_end(training: Training, method: str) -> tuple[bool, float]:
    """Whether high scores are desired, and from where on."""
    decision, desired = training.decision, training.decision.desired
    if not isinstance(desired, Interval):
        if decision.columns:
            return True, 0.5
        raise ParameterError(
            f"{method} needs probabilities, but the predictor gives labels only. Pass a predictor "
            "with predict_proba."
        )
    scores = training.scored.score
    if not decision.columns and (scores.min() < 0 or scores.max() > 1):
        raise ParameterError(
            f"{method} needs probabilities, but the scores of the training rows range from "
            f"{scores.min():.3g} to {scores.max():.3g}. Pass a predictor that returns "
            "probabilities."
        )
    if (desired.high >= 1) == (desired.low <= 0):
        raise ParameterError(
            f"{method} needs desired probabilities that begin at 0 or end at 1, got {desired!r}. "
            "Pass e.g. desired=(0.5, 1.0) for high or (0.0, 0.5) for low ones."
        )
    return desired.high >= 1, float(desired.low if desired.high >= 1 else 1 - desired.high)


def affine_slopes(predictor: Differentiable, training: Training, space: Space) -> FloatArray:
    """The affine map by least squares, verified on other rows."""
    rows = [_recombined(training.rows, space, seed) for seed in (0, 1)]
    inputs = [network_inputs(training.decision, some) for some in rows]
    given = [np.hstack([space.encode(some), np.ones((len(some), 1))]) for some in rows]
    slopes = np.linalg.lstsq(given[0], inputs[0])[0]
    miss = np.abs(given[1] @ slopes - inputs[1])
    allowed = TOLERANCE * np.maximum(np.ptp(inputs[1], axis=0), np.abs(inputs[1]).max(axis=0))
    if not (miss <= np.maximum(allowed, TOLERANCE)).all():
        raise PredictorError(
            f"The inputs of the predictor {type(predictor).__name__} are not an affine function of "
            "its columns, so gradients cannot be followed back to them. Scale numbers linearly and "
            "encode levels as indicators, or use a method that needs no gradients: MCCE, "
            "NearestUnlike, NICE, GrowingSpheres, FACE or CCHVAE."
        )
    return np.ascontiguousarray(slopes[:-1])


def _recombined(rows: EncodedRows, space: Space, seed: int) -> EncodedRows:
    """Rows whose columns come from different training rows; every level occurs."""
    random = np.random.default_rng(seed)
    n_rows = N_ROWS + N_ROWS_PER_AXIS * space.n_axes
    codes = np.empty((len(rows.schema.features), n_rows), dtype=np.int32)
    for at, feature in enumerate(rows.schema.features):
        if feature.kind == "categorical":
            codes[at] = random.permutation(np.arange(n_rows) % feature.n_codes)
        else:
            codes[at] = random.choice(rows.codes[at], n_rows)
            codes[at, :2] = rows.codes[at].min(), rows.codes[at].max()
    return EncodedRows.from_codes(rows.schema, codes)


def network_inputs(decision: Decision, rows: EncodedRows) -> FloatArray:
    """Inputs of the network for rows, which it gets in its own type of frame."""
    frame = rows.frame if decision.names is None else rows.frame[list(decision.names)]
    predictor, adapter = decision.predictor, decision.adapter
    try:
        given = predictor.encode_inputs(adapter.rows_for_predictor(frame))
    except McceError:
        raise
    except Exception as error:
        failure = error
    else:
        return _matrix(given, len(rows), type(predictor).__name__)
    # Outside of the block, so that no traceback shows the failure.
    raise _failed("encode_inputs", decision, len(rows), failure)


def _matrix(given: Any, n_rows: int, predictor: str) -> FloatArray:
    """What ``encode_inputs`` returned, if it is a matrix of numbers."""
    try:
        inputs = np.asarray(given, dtype=np.float64)
        got = f"an array of shape {inputs.shape}"
    except (TypeError, ValueError):
        inputs, got = np.empty(0), f"a {type(given).__name__} that is no matrix of numbers"
    if inputs.ndim == 2 and len(inputs) == n_rows and inputs.size and np.isfinite(inputs).all():
        return inputs
    raise PredictorError(
        f"encode_inputs of the predictor {predictor} must return a matrix of finite numbers with "
        f"{n_rows} rows, got {got}."
    )


def _differentiate(decision: Decision, inputs: Any) -> Any:
    """Output of the predictor for inputs, a score or all probabilities of each row."""
    import torch

    name = f"differentiate of the predictor {type(decision.predictor).__name__}"
    try:
        output = decision.predictor.differentiate(inputs)
    except McceError:
        raise
    except Exception as error:
        failure = error
    else:
        n_rows, shape = len(inputs), tuple(getattr(output, "shape", ()))
        scores = shape in ((n_rows,), (n_rows, 1))
        several = len(shape) == 2 and shape[0] == n_rows and decision.columns
        if isinstance(output, torch.Tensor) and (
            scores or (several and shape[1] > max(decision.columns))
        ):
            return output
        raise PredictorError(
            f"{name} must return a torch.Tensor with what the predictor returns for {n_rows} rows, "
            f"got a {type(output).__name__} of shape {shape}."
        )
    # Outside of the block, so that no traceback shows the failure.
    raise _failed("differentiate", decision, len(inputs), failure)


def _failed(function: str, decision: Decision, n_rows: int, failure: Exception) -> PredictorError:
    """The error for what a predictor raised."""
    return PredictorError(
        f"{function} of the predictor {type(decision.predictor).__name__} failed on {n_rows} rows "
        f"with a {type(failure).__name__}. Its message may quote data, so it is not shown: see the "
        "attribute original of this error, e.g. with traceback.print_exception(error.original)."
    ).keeping(failure)


# An objective that falls by less has not improved.
MIN_LOSS_GAIN = 1e-4
# Steps after which rows that have stopped are left out.
STEPS_PER_ROUND = 50


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that are searched for together."""

    own: Any
    anchors: Any
    projection: Projection
    scorer: Scorer
    extra: Mapping[str, Any] = field(default_factory=dict)

    def score(self, points: Any) -> tuple[Any, Any]:
        """Projected points and the output of the predictor, both with gradients."""
        rows = self.projection(points, self.own)
        return rows, self.scorer.outputs(rows, self.anchors)

    def adding(self, **numbers: Any) -> Block:
        """The same rows with more numbers."""
        return replace(self, extra={**self.extra, **numbers})

    def take(self, places: Any) -> Block:
        """Some of the rows."""
        extra = {name: tensor[places] for name, tensor in self.extra.items()}
        own, anchors = self.own[places], self.anchors[places]
        return Block(own, anchors, self.projection, self.scorer, extra)


@dataclass(frozen=True, eq=False)
class Step:
    """The values of an objective, by row."""

    value: Any
    rows: Any
    valid: Any
    cost: Any


class Best(ABC):
    """The cheapest valid point of each row so far, and which rows have stopped."""

    def __init__(self, own: Any) -> None:
        import torch

        self.points = own.clone()
        self.cost = torch.full((len(own),), torch.inf, dtype=torch.float64, device=own.device)
        self.n_scored = 0

    @property
    @abstractmethod
    def stopped(self) -> Any:
        """Which rows no longer change."""

    def update(self, step: Step) -> None:
        """Remember the rows that are valid and cheaper, unless they have stopped."""
        import torch

        cheaper = ~self.stopped & step.valid & (step.cost.detach() < self.cost)
        self.points = torch.where(cheaper[:, None], step.rows.detach(), self.points)
        self.cost = torch.where(cheaper, step.cost.detach(), self.cost)

    def take(self, places: Any) -> Self:
        """Some of the rows."""
        part = copy.copy(self)
        for name, tensor in self._tensors():
            setattr(part, name, tensor[places])
        return part

    def put(self, places: Any, others: Best) -> None:
        """Replace some of the rows by the first of others."""
        for name, tensor in self._tensors():
            tensor[places] = getattr(others, name)[: len(places)]

    def _tensors(self) -> list[tuple[str, Any]]:
        """What is known of each row, by name."""
        return [(name, value) for name, value in vars(self).items() if hasattr(value, "numpy")]


class Patient(Best):
    """Rows stop after some steps without progress."""

    def __init__(self, own: Any, patience: int) -> None:
        import torch

        super().__init__(own)
        self.lowest = self.cost.clone()
        self.idle = torch.zeros(len(own), dtype=torch.int64, device=own.device)
        self.patience = patience

    @property
    def stopped(self) -> Any:
        """Which rows have not got on for long."""
        return self.idle >= self.patience

    def update(self, step: Step) -> None:
        """Remember the rows that are valid and cheaper, unless they have stopped."""
        import torch

        value, going, before = step.value.detach(), ~self.stopped, self.cost
        super().update(step)
        lower = value < self.lowest - MIN_LOSS_GAIN
        gains = lower | (self.cost < before - MIN_LOSS_GAIN)
        self.lowest = torch.where(lower, value, self.lowest)
        self.idle = torch.where(going & gains, 0, self.idle + 1)


@dataclass(frozen=True, eq=False)
class Descent:
    """A search by gradient."""

    objective: Callable[[Block, Any], Step]
    stepper: Stepper
    n_steps: int
    clamp: Callable[[Block, Any], Any] | None = None

    def run(self, block: Block, start: Any, best: Best) -> Best:
        """Follow the gradient until every row has stopped."""
        import torch

        moved = snap(start)
        memories = [torch.zeros_like(moved) for _ in range(self.stepper.n_memories)]
        for before in range(0, self.n_steps, STEPS_PER_ROUND):
            going = torch.nonzero(~best.stopped).ravel()
            # Blocks of one size, or the last bits would differ; copies are not written back.
            for places, filled in blocks(going):
                some = [memory[filled] for memory in memories]
                part = best.take(filled)
                n_steps = min(STEPS_PER_ROUND, self.n_steps - before)
                where, rows = moved[filled], block.take(filled)
                for time in range(before + 1, before + n_steps + 1):
                    where, some = self._step(rows, where, some, part, time)
                best.put(places, part)
                best.n_scored += len(places) * n_steps
                for whole, new in zip([moved, *memories], [where, *some], strict=True):
                    whole[places] = new[: len(places)]
        return best

    def _step(
        self, block: Block, where: Any, memories: list[Any], best: Best, time: int
    ) -> tuple[Any, list[Any]]:
        """Judge a step and take the next."""
        import torch

        where.requires_grad_()
        step = self.objective(block, where)
        best.update(step)
        (gradient,) = torch.autograd.grad(step.value.sum(), where)
        move, memories = self.stepper.step(gradient, memories, time)
        after = where.detach() + move
        return snap(after if self.clamp is None else self.clamp(block, after)), memories


def search(
    declined: Declined,
    scorer: Scorer,
    find: Callable[[Block], Best],
    reason: str,
    *,
    extra: Mapping[str, FloatArray] | None = None,
    n_copies: int = 1,
    finish: Callable[[IntArray, FloatArray], FloatArray] | None = None,
) -> Found:
    """Search for everybody."""
    with isolated(0) as torch:
        put = partial(torch.as_tensor, device=scorer.device)
        rows = np.repeat(np.arange(len(declined)), n_copies)
        own = put(scorer.space.encode(declined.rows)[rows])
        anchors = scorer.anchors(own, put(scorer.inputs(declined.rows)[rows]))
        tensors = {name: put(numbers) for name, numbers in (extra or {}).items()}
        projection = Projection.of(scorer.space, scorer.device)
        best = find(Block(own, anchors, projection, scorer, tensors))
        points, cost = best.points.cpu().numpy(), best.cost.cpu().numpy()
    declined.n_evaluated += best.n_scored
    by_person = cost.reshape(len(declined), n_copies)
    found = np.isfinite(by_person).any(axis=1)
    owner = np.flatnonzero(found)
    chosen = points[owner * n_copies + by_person[owner].argmin(axis=1)]
    if finish is not None and owner.size:
        chosen = finish(owner, chosen)
    reasons = dict.fromkeys(np.flatnonzero(~found).tolist(), reason)
    return Found(owner, scorer.space.compose(declined.rows, owner, chosen), reasons)


class PaperPreset:
    """A method with the settings of the paper's comparison beside the defaults."""

    PAPER: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def paper(
        cls,
        predictor: Any,
        desired: Any = None,
        *,
        immutable: Sequence[Hashable] | None = None,
        kinds: Mapping[Hashable, Kind] | None = None,
    ) -> Self:
        """The method with the hyper-parameters of the comparison in the MCCE paper.

        They are those of the authors' script. The method itself stays sound: it keeps immutable
        features and returns rows that exist, which the paper's runs did not always do.

        Parameters
        ----------
        predictor, desired, immutable, kinds
            As for the class.

        Returns
        -------
        Baseline
            An unfitted method.
        """
        given = {"immutable": immutable, "kinds": kinds}
        return cls(predictor, desired, **given, **cls.PAPER)  # type: ignore[call-arg]


class GradientMethod(PaperPreset, Baseline):
    """A method that moves people along gradients of the predictor, all of them at once."""

    # Why a person has no answer.
    NOTHING: ClassVar[str]
    device: str

    def _learn(self, training: Training, y: Any) -> None:
        name = type(self).__name__
        import_torch(name, self.device)
        space = Space.learn(training.rows)
        training = complete_rows(training, space)
        self.scorer_ = Scorer.learn(training, space, name, self.device)
        self._train(space, training)

    def _train(self, space: Space, training: Training) -> None:
        """Train the networks of the method, if it has any."""

    def _search(self, declined: Declined) -> Found:
        return search_complete(declined, self.scorer_.space, self._descend, INCOMPLETE)

    def _descend(self, declined: Declined) -> Found:
        return search(declined, self.scorer_, self._find, self.NOTHING)

    @abstractmethod
    def _find(self, block: Block) -> Best:
        """Move the people of a block, and keep the best valid row of each."""


class LatentMethod(GradientMethod):
    """A method that moves people along gradients in the code of an auto-encoder."""

    _vae_class: ClassVar[Any]
    learning_rate: float
    n_steps: int
    random_state: int

    def _train(self, space: Space, training: Training) -> None:
        self.vae_ = self._vae_class.fit(space, space.encode(training.rows), self)

    def _find(self, block: Block) -> Best:
        start = in_blocks(lambda own: self.vae_.encode(own)[0], block.own)
        descent = Descent(self._objective, Adam(self.learning_rate), self.n_steps)
        return descent.run(block, start, self._best(block.own))

    @abstractmethod
    def _objective(self, block: Block, codes: Any) -> Step:
        """The costs of codes of the people, and the rows that they decode to."""

    @abstractmethod
    def _best(self, own: Any) -> Best:
        """A memory of the best valid rows, which says when to stop."""
