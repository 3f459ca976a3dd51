"""The predictor as a differentiable function of points in the cube.

From a point to the inputs of the network is an affine map for the usual encodings: scaled numbers
and indicators of levels. It is learned from recombined training rows and verified on others; then
the predictor itself takes over.

Always true: the map is exact up to rounding, or there is an error; a person who has not moved has
their own inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce.errors import McceError, ParameterError, PredictorError
from mcce.kernels import FloatArray
from mcce.predictors.adapters import failed
from mcce.predictors.decision import Decision, Interval
from mcce.predictors.torch import Differentiable, require_gradients
from mcce.tables.schema import EncodedRows

from ..baseline import Training
from ..space import Space
from .tools import in_blocks

# Encodings in single precision are affine up to this share of an input's range.
TOLERANCE = 1e-5
# Rows for learning the map: so many, and so many more for each axis.
N_ROWS, N_ROWS_PER_AXIS = 200, 8
# Keeps logarithms of probabilities finite.
LEAST_PROBABILITY = 1e-10


@dataclass(frozen=True, eq=False)
class Scorer:
    """What the predictor says of points, differentiable.

    Parameters
    ----------
    space
        The cube.
    decision
        The predictor and what is desired of it.
    slopes : torch.Tensor of shape (n_axes, n_inputs)
        How the inputs of the network change along each axis.
    high
        Whether high scores are desired.
    threshold
        The score where the desired interval begins; 0.5 for labels.
    """

    space: Space
    decision: Decision
    slopes: Any
    high: bool
    threshold: float

    @classmethod
    def learn(cls, training: Training, space: Space, method: str, device: str) -> Scorer:
        """The function for training data.

        Parameters
        ----------
        training
            Training rows and the decision.
        space
            Their cube.
        method
            The method that needs gradients, for errors.
        device
            Where points are scored.

        Returns
        -------
        Scorer

        Raises
        ------
        PredictorError
            If the predictor offers no gradients, or its encoding is not affine.
        ParameterError
            If what is desired is not a high or low probability.
        """
        import torch

        predictor = require_gradients(training.decision.predictor, method)
        high, threshold = _desired_end(training, method)
        slopes = torch.as_tensor(_learn_slopes(predictor, training, space), device=device)
        return cls(space, training.decision, slopes, high, threshold)

    @property
    def device(self) -> Any:
        """Where points are scored."""
        return self.slopes.device

    def inputs(self, people: EncodedRows) -> FloatArray:
        """Inputs of the network for people, shape (n_people, n_inputs)."""
        return _inputs(self.decision, people)

    def anchors(self, own: Any, inputs: Any) -> Any:
        """What the inputs of people are less what their points explain, as tensors."""
        return inputs - in_blocks(lambda points: points @ self.slopes, own)

    def outputs(self, points: Any, anchors: Any) -> Any:
        """Output of the predictor for points.

        Parameters
        ----------
        points : torch.Tensor of shape (n_points, n_axes)
            Projected points.
        anchors : torch.Tensor of shape (n_points, n_inputs)
            Those of their people.

        Returns
        -------
        torch.Tensor of shape (n_points, n_classes)
            Probabilities; the undesired and the desired one if there is a single score.
        """
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
        return -self.desired(outputs).clamp(min=LEAST_PROBABILITY).log()

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


def _desired_end(training: Training, method: str) -> tuple[bool, float]:
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


def _learn_slopes(predictor: Differentiable, training: Training, space: Space) -> FloatArray:
    """The affine map by least squares, verified on other rows."""
    rows = [_recombined(training.rows, space, seed) for seed in (0, 1)]
    inputs = [_inputs(training.decision, some) for some in rows]
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
            codes[at] = random.choice(rows.exact[at], n_rows)
            codes[at, :2] = rows.exact[at].min(), rows.exact[at].max()
    return EncodedRows.from_codes(rows.schema, codes)


def _inputs(decision: Decision, rows: EncodedRows) -> FloatArray:
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
    raise failed(failure, predictor, predictor.encode_inputs, frame, adapter)


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
    raise PredictorError(
        f"{name} failed on {len(inputs)} rows with a {type(failure).__name__}. Its message may "
        "quote data, so it is not shown: see the attribute original of this error, e.g. with "
        "traceback.print_exception(error.original)."
    ).keeping(failure)
