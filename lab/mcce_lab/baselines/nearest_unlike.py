"""The nearest accepted training row as the answer.

Takes training rows and people; gives each person a real row with the desired decision.

Always true: with ``rows="same"``, whoever shares the immutable values of an accepted training row
has an answer, and no data row that is one is nearer.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from mcce.kernels import IntArray
from mcce.parameters import check_choice, check_flag
from mcce.tables.columns import Kind

from .baseline import (
    Baseline,
    Declined,
    Found,
    Training,
)
from .nearest import nearest_rows, put_in, usable_rows

ROWS = ("same", "any")
NO_ROW = "no accepted training row has the same immutable values"
NO_JUSTIFIED = "no accepted training row with the desired outcome can be used"
DECLINED = "the nearest accepted row is declined with the person's own immutable values"


class NearestUnlike(Baseline):
    """The nearest training row that the predictor decides as desired.

    The nearest unlike neighbour is the simplest counterfactual, and no method that returns training
    rows has a nearer one. The distance is Gower's: range-scaled differences, 1 between two levels
    and where one side is missing. Ties go to the first training row. Missing values, dates
    and unseen levels may occur.

    Guaranteed: with ``rows="same"``, an answer for everybody whose immutable values an accepted
    training row has. Not guaranteed: an answer for anybody else, few changes, or privacy: the
    answer is the row of another person.

    Parameters
    ----------
    predictor
        The black box: anything that :class:`mcce.MCCE` takes.
    desired
        The desired decision, as for :class:`mcce.MCCE`.
    immutable
        Names of the columns that must not change.
    kinds
        ``"numeric"`` or ``"categorical"`` by column name, if the dtype is misleading.
    rows : {"same", "any"}
        ``"same"`` looks at rows with the person's immutable values. ``"any"`` takes the nearest of
        all accepted rows, puts in the person's own immutable cells, and has no answer if the
        predictor then declines the row.
    justified
        Whether to use only accepted rows whose true outcome is desired too. ``fit(X, y)`` then
        needs the outcomes: booleans, or values of which the desired ones are as in ``desired``.

    Attributes
    ----------
    usable_ : (n_usable,)
        Positions of the training rows that can be an answer.

    References
    ----------
    Keane, M. T. and Smyth, B. (2020). Good counterfactuals and where to find them. ICCBR.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce_lab.baselines import NearestUnlike
    >>> training = pd.DataFrame({"age": [30, 30, 50], "salary": [20, 60, 55]})
    >>> score = lambda frame: frame["salary"] / 100
    >>> method = NearestUnlike(score, (0.5, 1.0), immutable=["age"]).fit(training)
    >>> method.explain(training.head(1)).frame["salary"].tolist()
    [60]
    """

    def __init__(
        self,
        predictor: Any,
        desired: Any = None,
        *,
        immutable: Sequence[Hashable] | None = None,
        kinds: Mapping[Hashable, Kind] | None = None,
        rows: Literal["same", "any"] = "same",
        justified: bool = False,
    ) -> None:
        super().__init__(predictor, desired, immutable=immutable, kinds=kinds)
        self.rows = rows
        self.justified = justified

    def _check(self) -> None:
        check_choice("rows", self.rows, ROWS)
        check_flag("justified", self.justified)

    def _learn(self, training: Training, y: Any) -> None:
        self.usable_: IntArray = usable_rows(training, y, justified=self.justified)

    def _search(self, declined: Declined) -> Found:
        rows, people = self.training_.rows, declined.rows
        pairs = nearest_rows(people, rows, self.usable_, same=self.rows == "same", k=1)
        missing = np.setdiff1d(np.arange(len(people)), pairs.owner)
        reasons = dict.fromkeys(missing.tolist(), NO_JUSTIFIED if self.justified else NO_ROW)
        found = Found(pairs.owner, put_in(people, rows, pairs.owner, pairs.row), reasons)
        if self.rows == "same":
            return found
        return found.without(~declined.score(found.frame).valid, DECLINED)
