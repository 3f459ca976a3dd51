"""What measures hold rows against: the training data with their columns, and the predictor.

Takes frames of any kind and results of ``explain``; gives them as :class:`EncodedRows` of the
training schema, so that kinds, ranges and equality mean here what they mean everywhere.

Always true: a row whose cells are all missing is no answer and is left out; people and answers
are matched by position; inputs are never changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..counterfactuals import ALREADY, Counterfactuals
from ..errors import ParameterError, SchemaError
from ..kernels import BoolArray, FloatArray, IntArray
from ..postprocess.validation import ROWS_PER_CALL
from ..predictors.decision import Decision
from ..predictors.desired import make_decision
from ..tables.columns import Kind, is_missing
from ..tables.comparing import check_same_order, own_numbers
from ..tables.frames import read_frame
from ..tables.schema import EncodedRows, Schema

Among = Literal["all", "desired"]


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Training data and, if asked for, a predictor, ready to hold rows against.

    Parameters
    ----------
    rows
        The training rows.
    decision
        The black box with what is desired of it, or None.

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
        training: Any,
        *,
        immutable: Sequence[Hashable] | None = None,
        kinds: Mapping[Hashable, Kind] | None = None,
        predictor: Any = None,
        desired: Any = None,
        score_class: Hashable | None = None,
    ) -> Evaluator:
        """A judge that knows the training data; each argument is that of :class:`mcce.MCCE`."""
        rows = Schema.learn_rows(training, immutable=immutable, kinds=kinds)
        if predictor is not None:
            decision = make_decision(
                predictor, desired, score_class=score_class, adapter=rows.adapter
            )
            return cls(rows, decision)
        if desired is not None or score_class is not None:
            raise ParameterError(
                f"desired={desired!r} and score_class={score_class!r} mean nothing without a "
                "predictor. Pass predictor= too, or leave them out."
            )
        return cls(rows)

    @classmethod
    def of(cls, training: Any) -> Evaluator:
        """The judge itself, or one of a frame of training data."""
        return training if isinstance(training, Evaluator) else cls.fit(training)

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.rows.schema

    def decides(self, frame: pd.DataFrame) -> BoolArray:
        """Whether the predictor decides each row of a frame as desired, by a fresh call."""
        if self.decision is None:
            raise ParameterError(
                "This measure asks a predictor. Pass metrics.Judge.fit(training, predictor=..., "
                "desired=...) as training."
            )
        parts = [
            self.decision.score(frame.iloc[start : start + ROWS_PER_CALL]).valid
            for start in range(0, len(frame), ROWS_PER_CALL)
        ]
        return np.concatenate([np.empty(0, dtype=bool), *parts])

    @cached_property
    def desired(self) -> BoolArray:
        """Which training rows the predictor decides as desired, shape (n_train,)."""
        return self.decides(self.rows.frame)

    def among(self, which: Among) -> IntArray:
        """Positions of all training rows, or of those with the desired decision."""
        if which == "all":
            return np.arange(len(self.rows))
        if which != "desired":
            raise ParameterError(f'among must be "all" or "desired", got {which!r}.')
        if not self.desired.any():
            raise ParameterError(
                "No training row has the desired decision, so nothing can be near to one. "
                'Pass among="all".'
            )
        return np.flatnonzero(self.desired)


@dataclass(frozen=True, eq=False)
class Answers:
    """Rows to judge, without those that are no answer.

    Parameters
    ----------
    frame
        The answers.
    labels
        The index of all rows as they came.
    places : (n_answers,)
        Where each answer stood among them.
    owner : (n_answers,)
        Position of the person each answer is for.
    asked : (n_people,)
        Who was to be answered: in a result those who were not decided as desired already.
    """

    frame: pd.DataFrame
    labels: pd.Index[Any]
    places: IntArray
    owner: IntArray
    asked: BoolArray

    @classmethod
    def read(cls, data: Any) -> Answers:
        """Answers of a result, or of a frame with one row per person."""
        if isinstance(data, Counterfactuals):
            result = data.to_pandas()
            frame, places = result.frame, np.arange(len(result.frame))
            asked = (result.people["status"] != ALREADY).to_numpy()
            return cls(frame, frame.index, places, np.asarray(result.owner), asked)
        frame, _ = read_frame(data)
        if frame.empty:
            raise SchemaError(f"There are no rows to judge: the frame has shape {frame.shape}.")
        empty = np.all([is_missing(column) for _, column in frame.items()], axis=0)
        places = np.flatnonzero(~empty)
        asked = np.ones(len(frame), dtype=bool)
        return cls(frame.iloc[places], frame.index, places, places, asked)

    def told(self, values: Any, name: str) -> pd.Series[Any]:
        """One number per row as they came, NaN where there is no answer."""
        numbers = np.full(len(self.labels), np.nan)
        numbers[self.places] = values
        return pd.Series(numbers, index=self.labels, name=name)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Answers, each with its person; rows of ``before`` go with those of ``after``."""

    answers: Answers
    before: EncodedRows
    after: EncodedRows


def read_rows(rows: Any, evaluator: Evaluator) -> tuple[Answers, EncodedRows]:
    """Rows to judge, as they came and as rows of the training schema."""
    answers = Answers.read(rows)
    return answers, evaluator.schema.encode(answers.frame)


def read_some(rows: Any, evaluator: Evaluator, argument: str) -> EncodedRows:
    """Rows to judge all together, of which there must be at least one."""
    encoded = read_rows(rows, evaluator)[1]
    if not len(encoded):
        raise SchemaError(f"{argument} has no row that holds a value. Pass at least one.")
    return encoded


def pair(factuals: Any, counterfactuals: Any, evaluator: Evaluator) -> Pairs:
    """Answers with the people they are for."""
    people, answers = read_people(factuals, counterfactuals)
    before = evaluator.schema.encode(people.iloc[answers.owner])
    return Pairs(answers, before, evaluator.schema.encode(answers.frame))


def read_people(factuals: Any, counterfactuals: Any) -> tuple[pd.DataFrame, Answers]:
    """The people in pandas, and the answers for them."""
    people, _ = read_frame(factuals)
    answers = Answers.read(counterfactuals)
    if len(people) != len(answers.asked):
        raise SchemaError(
            f"There are {len(people)} factuals but counterfactuals for {len(answers.asked)}. Pass "
            "one row per person, all missing where there is no answer, or the result of explain; "
            "repeat people who have several: factuals.iloc[owner]."
        )
    if not isinstance(counterfactuals, Counterfactuals):
        check_same_order(people.index, answers.labels)
    return people, answers


def scaled(rows: EncodedRows, position: int) -> FloatArray | None:
    """The same as shares of the training range, 0 being its lower end."""
    feature, own = rows.schema.features[position], own_numbers(rows, position)
    if own is None or feature.numbers is None:
        return None
    return (own - float(np.nanmin(feature.numbers))) / feature.spread
