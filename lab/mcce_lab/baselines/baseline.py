"""What all baselines share: data in, answers out, and the promises of every explainer.

A baseline learns from training rows and searches for the people whom the predictor declines. What
it finds is scored once more, and a row that is not valid is not returned.

Always true: every answer is valid by a fresh call of the predictor and has the immutable cells of
its person; everybody without an answer gets a reason; nobody's answer depends on who else is
explained.
"""

from __future__ import annotations

import copy
import hashlib
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from mcce import Counterfactuals, Decision, Schema
from mcce.errors import McceWarning, NotFittedError
from mcce.predictors import make_decision
from mcce.protocols import BoolArray, EncodedRows, IntArray, Kind, ScoredRows

from ..parameters import check_parameters, late_parameters

REFUSED = "the predictor refuses the row that was found when it is called again"
ALL_DECLINED = "the predictor declines all training rows"
# Rows that the predictor sees in one call, or those of one person if they are more.
ROWS_PER_CALL = 50_000
FrameT = TypeVar("FrameT")


@dataclass(frozen=True, eq=False)
class Training:
    """The data that a baseline learns from."""

    rows: EncodedRows
    scored: ScoredRows
    decision: Decision

    @property
    def accepted(self) -> IntArray:
        """Positions of the rows with the desired decision."""
        return np.flatnonzero(self.scored.valid)


@dataclass(eq=False)
class Declined:
    """The people to explain, and the predictor that scores rows for them."""

    rows: EncodedRows
    scored: ScoredRows
    decision: Decision
    n_evaluated: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: IntArray) -> Declined:
        """Some of the people, for whom no row has been scored yet."""
        scored = ScoredRows(self.scored.score[places], self.scored.valid[places])
        return Declined(self.rows.take(places), scored, self.decision)

    def score(self, frame: pd.DataFrame) -> ScoredRows:
        """Score and decision of rows."""
        self.n_evaluated += len(frame)
        return self.decision.score(frame)

    def generators(self, seed: int) -> list[np.random.Generator]:
        """Random numbers of each person, which depend on nothing but their row and the seed."""
        keys = [hashlib.sha256(point.tobytes()).digest()[:8] for point in self.rows.points]
        return [np.random.default_rng([seed, int.from_bytes(key, "little")]) for key in keys]


@dataclass(frozen=True, eq=False)
class Found:
    """The answers of a baseline."""

    owner: IntArray
    frame: pd.DataFrame
    reasons: Mapping[int, str] = field(default_factory=dict)

    def sorted(self) -> Found:
        """The same rows by person."""
        order = np.argsort(self.owner, kind="stable")
        return Found(self.owner[order], self.frame.iloc[order], self.reasons)

    def without(self, rows: BoolArray, reason: str) -> Found:
        """Without some of the rows; whoever has none left gets a reason."""
        left = np.setdiff1d(self.owner[rows], self.owner[~rows])
        reasons = {**self.reasons, **dict.fromkeys(left.tolist(), reason)}
        return Found(self.owner[~rows], self.frame[~rows], reasons)


@dataclass(eq=False, repr=False)
class Baseline(BaseEstimator, ABC):
    """A method that is not MCCE, behind the same protocol: :class:`mcce.protocols.Explainer`."""

    predictor: Any
    desired: Any = None
    _: KW_ONLY
    immutable: Sequence[Hashable] | None = None
    kinds: Mapping[Hashable, Kind] | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from training data.

        Parameters
        ----------
        X
            Training rows: a pandas or polars frame, a pyarrow table or a 2-D array.
        y
            Ignored, unless the method says otherwise.

        Returns
        -------
        Baseline
            The fitted method.

        Raises
        ------
        ParameterError, SchemaError, PredictorError
            If a parameter, a column or the predictor cannot be used.
        """
        # Put in place at once: a fit that fails changes nothing, and other threads see one fit.
        fitted = copy.copy(self)
        fitted._fit(X, y)
        learned = {name: value for name, value in vars(fitted).items() if name.endswith("_")}
        self.__dict__.update(learned)
        return self

    def explain(self, X: FrameT) -> Counterfactuals[FrameT]:
        """The answers for every row of ``X``, or the reason why there is none.

        Parameters
        ----------
        X
            People, with the columns of the training data.

        Returns
        -------
        Counterfactuals
            As from :class:`mcce.MCCE`, without the measures of plausibility.

        Raises
        ------
        NotFittedError
            Before ``fit``, and if a parameter that it uses was changed after it.
        ParameterError, SchemaError, PredictorError
            If a parameter, a column or the predictor cannot be used.

        Warns
        -----
        McceWarning
            If people have no counterfactual.
        """
        # A copy: another thread may fit this method again meanwhile.
        fitted = copy.copy(self)
        result = fitted._explain(X)
        people = result.to_pandas().people
        n_missing = int((people["status"] == "no answer").sum())
        if n_missing:
            warnings.warn(
                f"{n_missing} of {len(people)} people have no counterfactual; "
                "result.missing says why.",
                McceWarning,
                stacklevel=2,
            )
        return result

    def _fit(self, X: Any, y: Any) -> None:
        check_parameters(self)
        started = time.perf_counter()
        rows = Schema.learn_rows(X, immutable=self.immutable, kinds=self.kinds)
        decision = make_decision(self.predictor, self.desired, adapter=rows.schema.adapter)
        training = Training(rows, decision.score(rows.frame), decision)
        self._learn(training, y)
        self.training_ = training
        self.learned_ = self._used_by_fit()
        self.timings_ = {"fit": time.perf_counter() - started}

    def _used_by_fit(self) -> dict[str, Any]:
        """Current values of the parameters that fit uses."""
        late = late_parameters(self)
        given = self.get_params(deep=False)
        return {name: _frozen(value) for name, value in given.items() if name not in late}

    def _explain(self, X: FrameT) -> Counterfactuals[FrameT]:
        """As :meth:`explain`, without the warning."""
        if not hasattr(self, "training_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted. Call fit first.")
        check_parameters(self)
        for name, value in self._used_by_fit().items():
            before = self.learned_[name]
            if value is not before and (type(value) is not type(before) or value != before):
                raise NotFittedError(
                    f"{name} was changed after fit, which has no effect yet. Fit again."
                )
        started = time.perf_counter()
        schema, decision = self.training_.rows.schema, self.training_.decision
        rows = schema.encode(X)
        scored = decision.score(rows.frame)
        who = np.flatnonzero(~scored.valid)
        declined = Declined(rows, scored, decision).take(who)
        found = Found(who[:0], rows.frame.iloc[:0], dict.fromkeys(range(who.size), ALL_DECLINED))
        if who.size and self.training_.accepted.size:
            found = self._search(declined).sorted()
        while True:
            result = Counterfactuals.from_frame(
                X,
                found.frame,
                schema=schema,
                decision=decision,
                owner=who[found.owner],
                reasons={int(who[person]): why for person, why in found.reasons.items()},
                n_evaluated=declined.n_evaluated,
                timings={"total": time.perf_counter() - started},
            )
            valid = result.to_pandas().measures["valid"].to_numpy(dtype=bool)
            if valid.all():
                return result
            # A predictor that changes its mind may accept people by now; their rows are left out.
            refused = np.isin(who[found.owner], result.owner)
            refused[refused] = ~valid
            found = found.without(refused, REFUSED)

    @abstractmethod
    def _learn(self, training: Training, y: Any) -> None:
        """Learn from training rows, into attributes that end with an underscore."""

    @abstractmethod
    def _search(self, declined: Declined) -> Found:
        """Look for answers; somebody of the training rows is accepted."""


def _frozen(value: Any) -> Any:
    """A copy of a value, so that later changes of the original do not show."""
    if isinstance(value, (np.ndarray, pd.Index, pd.Series, list)):
        return tuple(value)
    return value.copy() if isinstance(value, (dict, set)) else value


def blocks(n_items: int, rows_of_each: int) -> Iterator[slice]:
    """Items in their order, as many at a time as the predictor sees in one call."""
    size = max(1, ROWS_PER_CALL // max(1, rows_of_each))
    for start in range(0, n_items, size):
        yield slice(start, start + size)
