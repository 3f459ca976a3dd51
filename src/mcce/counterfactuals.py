"""The result: counterfactuals, what they cost, and what became of everybody.

Paper: the sets E_h and the columns of its tables. Takes nothing that is not already computed;
gives frames that a reader can look at, save and join.

Always true: one row of ``people`` per factual, in the order they came; rows of ``frame`` and
``measures`` stand in that order too, the best of each person first. Labels may repeat: ``owner``
says by position whose row is whose. What is computed is computed in pandas; a result in another
kind of frame is the same told again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from .kernels import IntArray
from .predictors.decision import ScoredRows
from .search.outcome import Outcome
from .tables.columns import differ
from .tables.frames import PANDAS_ADAPTER, FrameAdapter
from .tables.schema import EncodedRows

ANSWERED, ALREADY, UNANSWERED = "answered", "already desired", "no answer"
_ROWS, _ACCOUNTS = ("factuals", "frame", "nearest_misses"), ("measures", "people")


@dataclass(frozen=True, eq=False)
class Counterfactuals:
    """Counterfactual explanations of a frame of people, in the kind of frame that they came in.

    In a kind without an index the rows of ``frame``, ``factuals`` and ``nearest_misses`` carry no
    labels, and ``measures``, ``people`` and ``changes()`` have them as columns: ``factual`` (the
    position) and ``rank``. Rows of ``measures`` go with those of ``frame``; rows of
    ``nearest_misses`` with those of ``people`` that have a ``nearest_score``.

    Parameters
    ----------
    factuals
        The people, as they came.
    frame
        Counterfactuals, with the columns and dtypes of the people; index (factual, rank).
    measures
        For each of them: score, sparsity, gower, l1 (the sum over features: n_features * gower).
        If fit learned what accepted rows look like, also ``in_support``,
        ``knn_distance_quantile`` (the share of real accepted rows that are nearer to the others)
        and ``no_reference_group`` (no accepted training row has the person's immutable values).
        After an exact search also ``proven``: nothing that the model could draw is better.
    owner : (n_counterfactuals,)
        Position in ``factuals`` of the person each row belongs to.
    people
        One row per person: ``status`` ("answered", "already desired" or "no answer"), ``reason``
        if there is none, own ``score``, ``n_counterfactuals``, ``unseen_immutable`` (immutable
        features with a value that training never held), and score, sparsity and gower of the
        nearest miss.
    nearest_misses
        For each person without an answer, the candidate that came nearest; index factual. Nobody
        has one if no training row has the desired decision or the search was stopped: then no
        candidates were looked at.
    n_evaluated
        Distinct candidates the predictor was asked about in the search. The factuals and the last
        call on ``frame`` are not in it.
    n_unstable
        Counterfactuals that were withdrawn because the predictor judged them differently when
        asked again. 0 for a deterministic predictor.
    stopped
        Whether the search ended before everybody was settled: time was up, or it was stopped.
    timings
        Seconds by step, added up over threads, and ``total`` by the clock on the wall.
    door
        By which the people came in.
    in_pandas
        The same result in pandas, if this one is in another kind.
    """

    factuals: Any
    frame: Any
    measures: Any
    owner: IntArray
    people: Any
    nearest_misses: Any
    n_evaluated: int
    n_unstable: int
    stopped: bool
    timings: Mapping[str, float]
    adapter: FrameAdapter = PANDAS_ADAPTER
    in_pandas: Counterfactuals | None = field(default=None, repr=False)

    @classmethod
    def build(
        cls,
        rows: EncodedRows,
        scored: ScoredRows,
        found: Outcome,
        seconds: Mapping[str, float],
        looks: Mapping[str, np.ndarray],
    ) -> Counterfactuals:
        """The result of a search for the people in ``rows``.

        ``scored`` holds what the predictor says of the people themselves, ``looks`` further
        measures of the answers.
        """
        labels = rows.labels
        if isinstance(labels, pd.MultiIndex):
            labels = labels.to_flat_index()
        labels = labels.rename("factual")
        answers = found.answers
        index = pd.MultiIndex.from_arrays(
            [labels.take(answers.owner), answers.rank], names=["factual", "rank"]
        )
        measures = {
            "score": answers.score,
            "sparsity": answers.sparsity,
            "gower": answers.gower,
            "l1": answers.gower * len(rows.schema.features),
            **looks,
        }
        return cls(
            factuals=rows.as_given(rows.frame).set_axis(labels),
            frame=rows.as_given(answers.frame).set_axis(index),
            measures=pd.DataFrame(measures, index=index),
            owner=answers.owner,
            people=_people(rows, scored, found).set_axis(labels),
            nearest_misses=rows.as_given(found.misses.frame).set_axis(
                labels.take(found.misses.owner)
            ),
            n_evaluated=found.n_evaluated,
            n_unstable=found.n_unstable,
            stopped=found.stopped,
            timings=dict(seconds),
        )

    def in_kind(self, adapter: FrameAdapter) -> Counterfactuals:
        """The same result, which is in pandas, in the kind of a door."""
        if not adapter.needs_conversion:
            return self
        rows = {name: adapter.rows_to_native(getattr(self, name)) for name in _ROWS}
        accounts = {name: adapter.table_to_native(getattr(self, name)) for name in _ACCOUNTS}
        return replace(self, **rows, **accounts, adapter=adapter, in_pandas=self)

    def to_pandas(self) -> Counterfactuals:
        """The same result in pandas, with the labels as indexes."""
        return self.in_pandas or self

    @property
    def missing(self) -> Any:
        """The people without an answer, and why."""
        people = self.to_pandas().people
        return self.adapter.table_to_native(people[people["status"] == UNANSWERED])

    def changes(self) -> Any:
        """One row per changed cell: factual, rank, feature, before, after.

        The cells are as they are where a column may hold several types, otherwise texts.
        """
        return self.adapter.table_to_native(self.to_pandas()._changes())

    def summary(self) -> Any:
        """One row of totals and means, like a row of the paper's tables."""
        return self.adapter.table_to_native(self.to_pandas()._summary())

    def _changes(self) -> pd.DataFrame:
        before = self.factuals.iloc[self.owner]
        labels = self.frame.index.to_frame(index=False)
        parts = []
        for place, name in enumerate(self.frame.columns):
            old, new = before[name].reset_index(drop=True), self.frame[name].reset_index(drop=True)
            changed = np.flatnonzero(differ(old, new))
            parts.append(
                pd.DataFrame(
                    {
                        "row": changed,
                        "place": place,
                        "feature": pd.Series([name] * changed.size, dtype=object),
                        "before": old.iloc[changed].astype(object).to_numpy(dtype=object),
                        "after": new.iloc[changed].astype(object).to_numpy(dtype=object),
                    }
                )
            )
        cells = pd.concat(parts, ignore_index=True).sort_values(["row", "place"], kind="stable")
        told = labels.iloc[cells["row"]].reset_index(drop=True)
        return told.join(cells[["feature", "before", "after"]].reset_index(drop=True))

    def _summary(self) -> pd.DataFrame:
        status = self.people["status"]
        first = self.measures[self.measures.index.get_level_values("rank") == 1]
        asked = len(self.people) - int((status == ALREADY).sum())
        return pd.DataFrame(
            {
                "n_factuals": [len(self.people)],
                "n_answered": [int((status == ANSWERED).sum())],
                "n_already_desired": [int((status == ALREADY).sum())],
                "n_no_answer": [int((status == UNANSWERED).sum())],
                "sparsity": [first["sparsity"].mean()],
                "gower": [first["gower"].mean()],
                "l1": [first["l1"].mean()],
                "evaluated_per_person": [self.n_evaluated / asked if asked else 0.0],
                "seconds": [self.timings["total"]],
            }
        )

    def __repr__(self) -> str:
        status = self.to_pandas().people["status"].value_counts()
        told = ", ".join(
            f"{status.get(name, 0)} {name}" for name in (ANSWERED, ALREADY, UNANSWERED)
        )
        return f"Counterfactuals({len(self.people)} people: {told}; {len(self.frame)} rows)"


def _people(rows: EncodedRows, scored: ScoredRows, found: Outcome) -> pd.DataFrame:
    """One row per factual."""
    n_factuals, misses = len(rows), found.misses
    n_found = np.bincount(found.answers.owner, minlength=n_factuals)
    status = np.array([UNANSWERED, ANSWERED, ALREADY], dtype=object)
    place = np.where(scored.valid, 2, n_found > 0)
    reason = np.full(n_factuals, "", dtype=object)
    reason[list(found.reasons)] = list(found.reasons.values())
    nearest_score, nearest_gower = np.full((2, n_factuals), np.nan)
    nearest_score[misses.owner], nearest_gower[misses.owner] = misses.score, misses.gower
    nearest_sparsity, unknown = np.ones(n_factuals, dtype=np.int64), np.ones(n_factuals, dtype=bool)
    nearest_sparsity[misses.owner], unknown[misses.owner] = misses.sparsity, False
    return pd.DataFrame(
        {
            "status": _texts(status[place]),
            "reason": _texts(reason),
            "score": scored.score,
            "n_counterfactuals": n_found,
            "unseen_immutable": _texts(_unseen_immutable(rows)),
            "nearest_score": nearest_score,
            "nearest_sparsity": pd.arrays.IntegerArray(nearest_sparsity, unknown),
            "nearest_gower": nearest_gower,
        }
    )


def _texts(texts: np.ndarray) -> pd.Series[Any]:
    """A column of texts, of which pandas 3 would otherwise make another dtype."""
    return pd.Series(texts, dtype=object)


def _unseen_immutable(rows: EncodedRows) -> np.ndarray:
    """Names of the immutable features with a value that training never held."""
    immutable = rows.schema.immutable
    names = [str(rows.schema.names[position]) for position in immutable]
    told = np.full(len(rows), "", dtype=object)
    for person in np.flatnonzero(rows.unseen[immutable].any(axis=0)):
        unseen = rows.unseen[immutable, person]
        told[person] = ", ".join(name for name, flag in zip(names, unseen, strict=True) if flag)
    return told
