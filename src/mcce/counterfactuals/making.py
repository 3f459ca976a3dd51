"""How a search makes a result of what it has computed.

Always true: results are computed in pandas and converted to the people's kind of frame at the end.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from ..predictors.decision import ScoredRows
from ..tables.frames import FrameAdapter
from ..tables.schema import EncodedRows
from .people import make_people
from .result import Counterfactuals
from .rows import ResultRows

_ROWS, _TABLES = ("factuals", "frame", "nearest_misses"), ("measures", "people")


def make_counterfactuals(
    rows: EncodedRows,
    scored: ScoredRows,
    answers: ResultRows,
    misses: ResultRows,
    reasons: Mapping[int, str],
    *,
    n_evaluated: int = 0,
    n_unstable: int = 0,
    stopped: bool = False,
    timings: Mapping[str, float],
    consequences: tuple[Hashable, ...] = (),
) -> Counterfactuals[Any]:
    """A result in the kind of frame of the factuals."""
    labels = rows.labels
    if isinstance(labels, pd.MultiIndex):
        labels = labels.to_flat_index()
    labels = labels.rename("factual")
    index = pd.MultiIndex.from_arrays(
        [labels.take(answers.owner), answers.rank], names=["factual", "rank"]
    )
    measures = {name: answers.measures[name] for name in ("score", "sparsity", "gower")}
    measures["l1"] = measures["gower"] * len(rows.schema.features)
    result = Counterfactuals(
        factuals=rows.as_given().set_axis(labels),
        frame=answers.frame.set_axis(index),
        measures=pd.DataFrame(measures | dict(answers.measures), index=index),
        owner=answers.owner,
        people=make_people(rows, scored, answers, misses, reasons).set_axis(labels),
        nearest_misses=misses.frame.set_axis(labels.take(misses.owner)),
        n_evaluated=n_evaluated,
        n_unstable=n_unstable,
        stopped=stopped,
        timings=dict(timings),
        _consequences=consequences,
    )
    return _to_native(result, rows.adapter)


def _to_native(
    result: Counterfactuals[pd.DataFrame], adapter: FrameAdapter
) -> Counterfactuals[Any]:
    """The same result in another kind of frame."""
    if not adapter.needs_conversion:
        return result
    rows = {name: adapter.rows_to_native(getattr(result, name)) for name in _ROWS}
    tables = {name: adapter.table_to_native(getattr(result, name)) for name in _TABLES}
    return replace(result, **rows, **tables, _adapter=adapter, _in_pandas=result)
