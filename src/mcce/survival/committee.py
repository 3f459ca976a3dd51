"""The committee: models that stand for the predictor after it is trained anew.

Beyond the paper. Best are models of the predictor's own kind, trained on other samples of the
training data; a function of yours trains them, or an estimator of scikit-learn is cloned. Without
labels, the committee is made of boosted trees. Where the scores are probabilities, these learn from
labels that are drawn with these probabilities: a model that is trained anew sees other noise, and
this is the noise that the predictor itself implies. Other trees learn from the decisions alone,
which understates the noise.

The margin of each model is measured on the scale of the surrogate (logits of probabilities). A
share s of retrained models is expected to accept rows whose mean margin exceeds z(s) standard
deviations of the models' margins, z(s) being the quantile of the normal distribution.

Always true: what the committee says of a row does not depend on other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from statistics import NormalDist
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from sklearn.base import clone

from ..boosting.surrogate import Surrogate, logit
from ..boosting.trees import BinnedColumns, BoostedTrees, predict_each
from ..confidence import clopper_pearson
from ..errors import ParameterError, PredictorError, SchemaError, did_you_mean, shorten
from ..kernels import Boosting, Codes, FloatArray, IntArray, check_cancellation
from ..parameters import check_choice, check_whole
from ..predictors.decision import Decision, ScoredRows
from ..tables.schema import EncodedRows

Samples: TypeAlias = Literal["bootstrap", "all"]
# Trains a predictor on rows and labels.
Retrain: TypeAlias = Callable[[Any, Any], Any]
TREES = Boosting(n_trees=100, max_leaves=16)
# Trees learn from at most this many rows.
MAX_ROWS = 20_000
# Where scores say nothing, how far inside or outside a row is.
NO_SCORE = 1.0
# The least distance of refused rows from the desired set.
LEAST = 1e-9
# Each bound of an interval of the share of models errs with this chance.
CHANCE = 0.05


@dataclass(frozen=True)
class Survival:
    """How answers are to last when the predictor is trained anew.

    Parameters
    ----------
    share
        The share of retrained models that should accept each answer; 0 only measures how many do.
    n_models
        How many models the committee has.
    samples
        What each model is trained on: a ``"bootstrap"`` sample of the training rows, or ``"all"``
        of them, in which case the models differ in their seeds alone.
    time
        A column of the training data that orders the rows in time. The models are then trained on
        the latest rows: each one on another share of them, from half to all.

    Examples
    --------
    >>> Survival(0.8, n_models=30).samples
    'bootstrap'
    """

    share: float = 0.9
    n_models: int = 20
    samples: Samples = "bootstrap"
    time: Any = None

    def __post_init__(self) -> None:
        share = self.share
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
            raise ParameterError(
                f"The share of retrained models must be at least 0 and below 1, got "
                f"{shorten(share)}."
            )
        check_whole("n_models", self.n_models, 2, 1000)
        check_choice("samples", self.samples, ("bootstrap", "all"))


class Models(Protocol):
    """The models of a committee."""

    def margins(self, rows: EncodedRows, scale: MarginScale) -> FloatArray:
        """The margin of each model for each row, shape (n_models, n_rows)."""
        ...


@dataclass(frozen=True, eq=False)
class MarginScale:
    """Margins of scores on the scale of the surrogate."""

    surrogate: Surrogate
    decision: Decision

    @property
    def has_probabilities(self) -> bool:
        """Whether scores are probabilities."""
        return self.surrogate.link == "logit"

    def of_decided(self, scored: ScoredRows) -> FloatArray:
        """How far inside the desired set rows are: at least 0 if they were accepted."""
        if self.surrogate.link == "label":
            return np.where(scored.valid, NO_SCORE, -NO_SCORE)
        margin = self.of_responses(self.surrogate.response(scored))
        return np.where(scored.valid, np.maximum(margin, 0.0), np.minimum(margin, -LEAST))

    def of_responses(self, responses: FloatArray) -> FloatArray:
        """How far inside the desired set responses are."""
        return self.surrogate.desired(self.decision).margin(responses)


@dataclass(frozen=True, eq=False)
class RetrainedModels:
    """Predictors that were trained anew."""

    decisions: Sequence[Decision]

    def margins(self, rows: EncodedRows, scale: MarginScale) -> FloatArray:
        """The margin of each model for each row."""
        scored = [decision.score(rows.frame) for decision in self.decisions]
        return np.array([scale.of_decided(one) for one in scored])


@dataclass(frozen=True, eq=False)
class TreeModels:
    """Boosted trees, and what each must exceed to accept as many rows as the predictor does."""

    trees: tuple[BoostedTrees, ...]
    thresholds: FloatArray

    def margins(self, rows: EncodedRows, scale: MarginScale) -> FloatArray:
        """The margin of each model for each row."""
        responses = logit(predict_each(self.trees, rows.tree_codes))
        if scale.has_probabilities:
            responses = scale.of_responses(responses)
        return responses - self.thresholds[:, None]


@dataclass(frozen=True, eq=False)
class Committee:
    """Models that stand for the predictor after it is trained anew."""

    models: Models
    scale: MarginScale

    def required_margin(self, rows: EncodedRows, scored: ScoredRows, share: float) -> FloatArray:
        """The margin of rows of known score that a share of the models, and the predictor, exceed.

        It is negative for rows that the predictor refuses.
        """
        margins = list(self.models.margins(rows, self.scale))
        # One after the other: the order of an axis sum may depend on the number of rows.
        mean = reduce(np.add, margins) / len(margins)
        squares = reduce(np.add, [(margin - mean) ** 2 for margin in margins])
        spread = np.sqrt(squares / (len(margins) - 1))
        lasting = mean - NormalDist().inv_cdf(share) * spread if share else mean
        return np.minimum(self.scale.of_decided(scored), lasting)

    def measures(self, rows: EncodedRows) -> dict[str, np.ndarray]:
        """The share of the models that accept each row, and an interval for all such models."""
        accepted = self.models.margins(rows, self.scale) >= 0
        n_accepted, n_models = accepted.sum(axis=0), len(accepted)
        low, high = clopper_pearson(n_accepted, n_models, CHANCE)
        return {"survival": n_accepted / n_models, "survival_low": low, "survival_high": high}


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The training rows, with the predictor's scores and, if there are any, labels."""

    rows: EncodedRows
    scored: ScoredRows
    labels: Any = None


def retrain_models(
    data: TrainingData,
    survival: Survival,
    scale: MarginScale,
    retrain: Retrain | None,
    decide: Callable[[Any], Decision],
    seed: int,
) -> RetrainedModels:
    """Train predictors anew, and read their decisions by ``decide``.

    Without ``retrain``, an estimator of scikit-learn is cloned and fitted.
    """
    random = np.random.default_rng(seed)
    rows, decision = data.rows, scale.decision
    labels = _check_labels(data.labels, len(rows))
    decisions = []
    for sample in _samples(rows, survival, random):
        check_cancellation()
        sample = _with_all_levels(sample, rows)
        frame = rows.frame.iloc[sample].reset_index(drop=True)
        if decision.names is not None:
            frame = frame[list(decision.names)]
        given = decision.adapter.rows_for_predictor(frame), labels[sample]
        try:
            train = retrain or partial(_refit, decision.predictor, random)
            anew = train(*given)
        except Exception as error:
            raise PredictorError(
                f"Training the predictor anew failed with a {type(error).__name__}. Its message "
                "may quote data, so it is not shown: see the attribute original of this error."
            ).keeping(error) from error
        decisions.append(decide(anew))
    return RetrainedModels(decisions)


def are_retrained(predictor: Any, labels: Any, retrain: Retrain | None) -> bool:
    """Whether the predictor can be trained anew; raises if only a part of it is given."""
    if retrain is not None and labels is None:
        raise ParameterError("retrain needs the labels of the training rows: pass y to fit.")
    can_clone = all(hasattr(predictor, name) for name in ("get_params", "set_params", "fit"))
    return labels is not None and (retrain is not None or can_clone)


def train_trees(
    data: TrainingData, survival: Survival, scale: MarginScale, seed: int
) -> TreeModels:
    """Boosted trees that learn from what the predictor said of the training rows."""
    random = np.random.default_rng(seed)
    table = BinnedColumns.of(data.rows)
    trees = list[BoostedTrees]()
    for sample in _samples(data.rows, survival, random):
        check_cancellation()
        accepted = data.scored.valid.astype(np.float64)
        if scale.has_probabilities:
            accepted = (random.random(accepted.size) < data.scored.score).astype(np.float64)
        chosen = np.sort(sample[:: max(-(-sample.size // MAX_ROWS), 1)])
        trees.append(BoostedTrees.fit(table, accepted, TREES, row_numbers=chosen))
    free = TreeModels(tuple(trees), np.zeros(len(trees))).margins(data.rows, scale)
    refused = 1.0 - data.scored.valid.mean()
    return TreeModels(tuple(trees), np.quantile(free, refused, axis=1))


def _samples(
    rows: EncodedRows, survival: Survival, random: np.random.Generator
) -> Iterator[IntArray]:
    """The training rows of each model, by number."""
    order = np.arange(len(rows))
    if survival.time is not None:
        order = np.argsort(_times(rows, survival.time), kind="stable")
    for number in range(survival.n_models):
        share = 1.0 if survival.time is None else 1 - number / (2 * max(survival.n_models - 1, 1))
        latest = order[order.size - max(int(share * order.size), 1) :]
        is_drawn = survival.samples == "bootstrap"
        yield random.choice(latest, latest.size) if is_drawn else latest


def _with_all_levels(sample: IntArray, rows: EncodedRows) -> IntArray:
    """The sample, and a row of each level that it lacks: many encoders refuse unknown levels."""
    for feature, codes in zip(rows.schema.features, rows.codes, strict=True):
        if feature.kind == "categorical":
            levels, first = np.unique(codes, return_index=True)
            sample = np.concatenate([sample, first[~np.isin(levels, codes[sample])]])
    return sample


def _times(rows: EncodedRows, name: Any) -> Codes:
    """The place in time of each row: the codes of a column in ascending order."""
    names = rows.schema.names
    if name not in names:
        raise SchemaError(
            f"time must name a column of the training data, got {shorten(name)}."
            f"{did_you_mean(name, names)}"
        )
    return rows.codes[names.index(name)]


def _check_labels(labels: Any, n_rows: int) -> np.ndarray:
    """The labels as an array, one for each training row."""
    array = np.asarray(labels)
    if array.shape != (n_rows,):
        raise ParameterError(
            f"y must hold one label for each of the {n_rows} training rows, got the shape "
            f"{array.shape}."
        )
    return array


def _refit(predictor: Any, random: np.random.Generator, X: Any, y: np.ndarray) -> Any:
    """A clone of an estimator, with other seeds, fitted to rows and labels."""
    anew = clone(predictor)
    seeds = [name for name in anew.get_params() if name.rpartition("__")[2] == "random_state"]
    return anew.set_params(**{name: int(random.integers(2**31)) for name in seeds}).fit(X, y)
