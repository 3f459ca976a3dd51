"""Some people of a result, and people by their position.

Always true: a person's rows are the same alone and among others; labels may repeat.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd

from ..kernels import IntArray
from .anonymous import take_answers

if TYPE_CHECKING:
    from .result import Counterfactuals


def take_people(
    result: Counterfactuals[pd.DataFrame], places: IntArray
) -> Counterfactuals[pd.DataFrame]:
    """The result of some of its people.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import MCCE
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), random_state=0).fit(bank)
    >>> result = explainer.explain(bank.head(3))
    >>> take_people(result, np.array([0, 2])).people.index.tolist()
    [0, 2]
    """
    answers = np.flatnonzero(np.isin(result.owner, places))
    missed = result.people["nearest_score"].notna().to_numpy()
    misses = np.flatnonzero(np.isin(np.flatnonzero(missed), places))
    index, widened = cast("pd.MultiIndex", result.frame.index[answers]), result.anonymous
    return replace(
        result,
        factuals=result.factuals.iloc[places],
        people=result.people.iloc[places],
        frame=result.frame.iloc[answers],
        measures=result.measures.iloc[answers],
        nearest_misses=result.nearest_misses.iloc[misses],
        owner=np.searchsorted(places, result.owner[answers]),
        anonymous=None if widened is None else take_answers(widened, answers, index),
    )


def number_people(
    result: Counterfactuals[pd.DataFrame], positions: IntArray
) -> Counterfactuals[pd.DataFrame]:
    """The same result with numbers instead of labels, which may repeat.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import MCCE
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), random_state=0).fit(bank)
    >>> result = explainer.explain(bank.head(2))
    >>> number_people(result, np.array([10, 11])).people.index.tolist()
    [10, 11]
    """
    labels = pd.Index(positions, name="factual")
    ranks = result.frame.index.get_level_values("rank")
    index = pd.MultiIndex.from_arrays([labels.take(result.owner), ranks], names=["factual", "rank"])
    missed = result.people["nearest_score"].notna().to_numpy()
    widened, everybody = result.anonymous, np.arange(len(result.frame))
    return replace(
        result,
        factuals=result.factuals.set_axis(labels),
        people=result.people.set_axis(labels),
        frame=result.frame.set_axis(index),
        measures=result.measures.set_axis(index),
        nearest_misses=result.nearest_misses.set_axis(labels[missed]),
        anonymous=None if widened is None else take_answers(widened, everybody, index),
    )
