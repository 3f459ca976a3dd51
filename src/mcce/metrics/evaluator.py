"""What rows are measured against: the training data and, where needed, the predictor.

Takes frames of any kind and results of ``explain``; gives them as :class:`EncodedRows` of the
training schema, so that kinds, ranges and equality mean the same here as in the explainer.

Always true: a row whose cells are all missing stands for "no counterfactual" and is left out;
factuals and counterfactuals are matched by position; inputs are never changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..caching import cached_property
from ..counterfactuals.parts import ALREADY
from ..counterfactuals.result import Counterfactuals
from ..errors import ParameterError, SchemaError, shorten
from ..kernels import BoolArray, FloatArray, IntArray
from ..predictors.decision import ROWS_PER_CALL, Decision
from ..predictors.desired import decision_on
from ..tables.columns import Kind, is_missing
from ..tables.frames import read_frame
from ..tables.schema import EncodedRows, Schema, check_same_order, measured_numbers

Among = Literal["all", "desired"]
# A pandas or polars frame, a pyarrow table or a NumPy array; they share no static type.
FrameLike: TypeAlias = Any
# Counterfactuals as a frame, or the result of ``explain``.
ResultLike: TypeAlias = FrameLike | Counterfactuals[Any]
# Training data, or the evaluator that was fitted on them.
Training: TypeAlias = "FrameLike | Evaluator"


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Training data and, optionally, a predictor to measure rows against.

    Build one with :meth:`fit` and pass it as ``training`` to several measures: the training data
    are then read only once.

    Parameters
    ----------
    rows : EncodedRows
        The training rows.
    decision : Decision or None
        The predictor with its desired decision.

    Examples
    --------
    >>> training = pd.DataFrame({"age": [30, 40, 50], "job": ["a", "b", "a"]})
    >>> evaluator = Evaluator.fit(training, immutable=["age"])
    >>> [(feature.name, feature.kind, feature.spread) for feature in evaluator.schema.features]
    [('age', 'numeric', 20.0), ('job', 'categorical', 0.0)]
    """

    rows: EncodedRows
    decision: Decision | None = None

    @classmethod
    def fit(
        cls,
        training: FrameLike,
        *,
        immutable: Sequence[Hashable] | None = None,
        kinds: Mapping[Hashable, Kind] | None = None,
        predictor: Any = None,
        desired: Any = None,
        score_class: Hashable | None = None,
    ) -> Evaluator:
        """Build an evaluator from training data.

        Parameters
        ----------
        training : frame
            The training rows, without the target.
        immutable, kinds, predictor, desired, score_class
            As for :class:`mcce.MCCE`. Measures of validity need a predictor.

        Returns
        -------
        Evaluator

        Raises
        ------
        ParameterError
            If ``desired`` or ``score_class`` is given without a predictor.

        Examples
        --------
        >>> training = pd.DataFrame({"salary": [10, 20, 30]})
        >>> score = lambda frame: frame["salary"]
        >>> Evaluator.fit(training, predictor=score, desired=(20, 99)).desired
        array([False,  True,  True])
        """
        rows = Schema.learn_rows(training, immutable=immutable, kinds=kinds)
        if predictor is not None:
            return cls(rows, decision_on(rows.schema, predictor, desired, score_class))
        if desired is not None or score_class is not None:
            raise ParameterError(
                f"desired={shorten(desired)} and score_class={shorten(score_class)} need a "
                "predictor, but none was given. Pass predictor= too, or leave them out."
            )
        return cls(rows)

    @property
    def schema(self) -> Schema:
        """The columns of the training data."""
        return self.rows.schema

    @cached_property
    def desired(self) -> BoolArray:
        """Which training rows have the desired decision, shape (n_train,)."""
        return self.decides(self.rows.frame)

    def decides(self, frame: pd.DataFrame) -> BoolArray:
        """Call the predictor and return which rows have the desired decision.

        Parameters
        ----------
        frame : DataFrame
            Rows of the training schema.

        Returns
        -------
        (n_rows,)

        Raises
        ------
        ParameterError
            If the evaluator has no predictor.

        Examples
        --------
        >>> training = pd.DataFrame({"salary": [10, 20, 30]})
        >>> evaluator = Evaluator.fit(training, predictor=lambda f: f["salary"], desired=(20, 99))
        >>> evaluator.decides(pd.DataFrame({"salary": [15, 25]}))
        array([False,  True])
        """
        if self.decision is None:
            raise ParameterError(
                "This measure needs a predictor. Pass metrics.Evaluator.fit(training, "
                "predictor=..., desired=...) as training."
            )
        parts = [
            self.decision.score(frame.iloc[start : start + ROWS_PER_CALL]).valid
            for start in range(0, len(frame), ROWS_PER_CALL)
        ]
        return np.concatenate([np.empty(0, dtype=bool), *parts])

    def among(self, which: Among) -> IntArray:
        """Positions of all training rows, or of those with the desired decision.

        Parameters
        ----------
        which : {"all", "desired"}

        Returns
        -------
        (n_selected,)

        Raises
        ------
        ParameterError
            If no training row has the desired decision.

        Examples
        --------
        >>> training = pd.DataFrame({"salary": [10, 20, 30]})
        >>> evaluator = Evaluator.fit(training, predictor=lambda f: f["salary"], desired=(20, 99))
        >>> evaluator.among("desired")
        array([1, 2])
        """
        if which == "all":
            return np.arange(len(self.rows))
        if which != "desired":
            raise ParameterError(f'among must be "all" or "desired", got {shorten(which)}.')
        if not self.desired.any():
            raise ParameterError(
                "No training row has the desired decision, so there is nothing to compare with. "
                'Pass among="all".'
            )
        return np.flatnonzero(self.desired)

    def read(self, rows: ResultLike, argument: str = "rows") -> EncodedRows:
        """Encode rows as one sample, without those that stand for "no counterfactual".

        Parameters
        ----------
        rows : frame or Counterfactuals
            The rows to measure.
        argument : str
            What error messages call them.

        Returns
        -------
        EncodedRows
            At least one row of the training schema.

        Raises
        ------
        SchemaError
            If the rows do not fit the training data, or none holds a value.

        Examples
        --------
        >>> evaluator = Evaluator.fit(pd.DataFrame({"salary": [10, 20, 30]}))
        >>> len(evaluator.read(pd.DataFrame({"salary": [15.0, None]})))
        1
        """
        try:
            encoded = read_rows(rows, self).after
        except SchemaError as error:
            raise SchemaError(f"{argument} does not fit the training data. {error}") from None
        if not len(encoded):
            raise SchemaError(f"{argument} has no row that holds a value. Pass at least one.")
        return encoded

    def matrix(self, rows: EncodedRows) -> FloatArray:
        """Return rows as numbers without gaps, for classifiers and outlier detectors.

        A number is scaled to [0, 1] in training. A second column marks it as missing, in which
        case the first holds the training median. A category has a column per level and one for
        levels not in training; two different levels are at Euclidean distance 1.

        Parameters
        ----------
        rows : EncodedRows
            Rows of the training schema, from :meth:`read`.

        Returns
        -------
        (n_rows, n_columns)

        Examples
        --------
        >>> evaluator = Evaluator.fit(pd.DataFrame({"salary": [10.0, 20.0, 30.0]}))
        >>> evaluator.matrix(evaluator.rows)
        array([[0. , 0. ],
               [0.5, 0. ],
               [1. , 0. ]])
        """
        parts = []
        for position, feature in enumerate(self.schema.features):
            own, trained = _scaled(rows, position), _scaled(self.rows, position)
            if own is None or trained is None:
                own_codes = rows.codes[position]
                codes = np.where(own_codes < 0, feature.n_codes, own_codes)
                parts.append((codes[:, None] == np.arange(feature.n_codes + 1)) / np.sqrt(2.0))
                continue
            missing = np.isnan(own)
            parts.append(np.column_stack([np.where(missing, np.nanmedian(trained), own), missing]))
        return np.concatenate(parts, axis=1)


def as_evaluator(training: Training, **settings: Any) -> Evaluator:
    """The evaluator itself, or a new one of a frame of training data, with settings if not None."""
    if not isinstance(training, Evaluator):
        return Evaluator.fit(training, **settings)
    given = [name for name, setting in settings.items() if setting is not None]
    if given:
        raise ParameterError(
            f"training is an Evaluator, which already has its {', '.join(given)}. Pass them to "
            "metrics.Evaluator.fit, or pass the training frame here."
        )
    return training


@dataclass(frozen=True, eq=False)
class ExplainedRows:
    """Rows to measure, without those that stand for "no counterfactual"."""

    frame: pd.DataFrame
    index: pd.Index[Any]
    places: IntArray
    owner: IntArray
    to_explain: BoolArray

    @classmethod
    def read(cls, data: ResultLike) -> ExplainedRows:
        """Rows of a result, or of a frame with one row per factual."""
        if isinstance(data, Counterfactuals):
            result = data.to_pandas()
            frame, places = result.frame, np.arange(len(result.frame))
            to_explain = (result.people["status"] != ALREADY).to_numpy()
            return cls(frame, frame.index, places, np.asarray(result.owner), to_explain)
        frame, _ = read_frame(data)
        if frame.empty:
            raise SchemaError(
                f"A measure needs at least one row and column, got a frame of shape {frame.shape}."
            )
        empty = np.all([is_missing(column) for _, column in frame.items()], axis=0)
        places = np.flatnonzero(~empty)
        to_explain = np.ones(len(frame), dtype=bool)
        return cls(frame.iloc[places], frame.index, places, places, to_explain)


@dataclass(frozen=True, eq=False)
class Measured:
    """Rows to measure in the training schema, without those that hold nothing."""

    evaluator: Evaluator
    explained: ExplainedRows
    after: EncodedRows

    def to_series(self, values: ArrayLike, name: str) -> pd.Series[float]:
        """One value per row as given, NaN where there is no counterfactual."""
        numbers = np.full(len(self.explained.index), np.nan)
        numbers[self.explained.places] = values
        return pd.Series(numbers, index=self.explained.index, name=name)


@dataclass(frozen=True, eq=False)
class Pairs(Measured):
    """Counterfactuals with their factuals; rows of ``before`` go with those of ``after``."""

    before: EncodedRows


def read_rows(rows: ResultLike, training: Training) -> Measured:
    """Rows to measure."""
    evaluator, explained = as_evaluator(training), ExplainedRows.read(rows)
    return Measured(evaluator, explained, evaluator.schema.encode(explained.frame))


def pair(factuals: FrameLike, counterfactuals: ResultLike, training: Training) -> Pairs:
    """Counterfactuals with the factuals they belong to."""
    evaluator = as_evaluator(training)
    people, explained = read_pairs(factuals, counterfactuals)
    before = evaluator.schema.encode(people.iloc[explained.owner])
    return Pairs(evaluator, explained, evaluator.schema.encode(explained.frame), before)


def read_pairs(
    factuals: FrameLike, counterfactuals: ResultLike
) -> tuple[pd.DataFrame, ExplainedRows]:
    """The factuals in pandas, and the counterfactuals for them."""
    people, _ = read_frame(factuals)
    explained = ExplainedRows.read(counterfactuals)
    if len(people) != len(explained.to_explain):
        raise SchemaError(
            f"There are {len(people)} factuals but counterfactuals for "
            f"{len(explained.to_explain)}. Pass the result of explain, or one row per factual with "
            "all cells missing where there is no counterfactual. For several counterfactuals per "
            "person, repeat the factuals: factuals.iloc[owner]."
        )
    if not isinstance(counterfactuals, Counterfactuals):
        check_same_order(people.index, explained.index)
    return people, explained


def _scaled(rows: EncodedRows, position: int) -> FloatArray | None:
    """Values of a feature as shares of its training range, 0 at its lower end."""
    feature, own = rows.schema.features[position], measured_numbers(rows, position)
    if own is None or feature.numbers is None:
        return None
    return (own - float(np.nanmin(feature.numbers))) / feature.spread
