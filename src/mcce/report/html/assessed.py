"""Answers with all that a report says about them: letters, ranges and robustness.

People of one file may come as several results, one for each set of dtypes. The predictor sees each
of them as ``explain`` did; only what is counted over the run is counted over all of them together.

Always true: people are known by their position, so labels may repeat.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from ...counterfactuals import Counterfactuals
from ...explainer import MCCE, requirements_of
from ...kernels import BoolArray
from ..labels import Labels
from ..letters import write_letters


@dataclass(frozen=True, eq=False)
class Assessment:
    """A result, and what there is to say about its answers."""

    result: Counterfactuals[pd.DataFrame]
    letters: pd.Series[Any]
    ranges: dict[tuple[int, int, Hashable], dict[Hashable, Any]]
    robustness: pd.DataFrame
    frozen: dict[Hashable, BoolArray]

    @classmethod
    def make(
        cls,
        explainer: MCCE,
        result: Counterfactuals[pd.DataFrame],
        labels: Labels,
        constraints: Any,
    ) -> Self:
        """Find out all that a report says about a numbered result."""
        letters = write_letters(explainer, result, labels, ranges=True, constraints=constraints)
        ranges = letters.ranges
        assert ranges is not None
        schema = explainer.schema_
        rules = requirements_of(explainer, constraints).constraints
        frozen = rules.frozen(schema.encode(result.factuals))
        keys = zip(ranges["factual"], ranges["rank"], ranges["feature"], strict=True)
        return cls(
            result=result,
            letters=letters.people["text"],
            ranges=dict(zip(keys, ranges.to_dict("records"), strict=True)),
            robustness=explainer.robustness(result, constraints=constraints),
            frozen={schema.names[position]: whose for position, whose in frozen.items()},
        )


def join_results(
    results: Sequence[Counterfactuals[pd.DataFrame]],
) -> Counterfactuals[pd.DataFrame]:
    """The results of all people as one, in their order; for counting, not for the predictor."""
    first = results[0]
    if len(results) == 1:
        return first
    tables = {
        name: pd.concat([getattr(result, name) for result in results]).sort_index(kind="stable")
        for name in ("factuals", "people", "frame", "measures", "nearest_misses")
    }
    owner = tables["people"].index.get_indexer(tables["frame"].index.get_level_values("factual"))
    return replace(
        first,
        **tables,
        owner=np.asarray(owner, dtype=np.int64),
        n_evaluated=sum(result.n_evaluated for result in results),
        n_unstable=sum(result.n_unstable for result in results),
        stopped=any(result.stopped for result in results),
        anonymous=None,
    )
