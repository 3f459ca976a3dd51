"""Answers whose quasi-identifiers are widened until they fit a crowd of training people.

``mcce.privacy.anonymize`` makes them.

Always true: rows stand in the order of the answers of the result; nothing here holds the exact
value of a quasi-identifier, unless at least k training people have it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Generic

import numpy as np
import pandas as pd

from ..kernels import IntArray
from ..tables.frames import FrameT


@dataclass(frozen=True, eq=False)
class AnonymousAnswers(Generic[FrameT]):
    """Answers with ranges and sets of values, each of which fits at least k training people.

    Parameters
    ----------
    frame
        The answers, index (factual, rank); quasi-identifiers are texts such as ``"20 to 30"``,
        ``"at most 500"``, ``"own or rent"`` or ``"any"``. All other columns are as in the result.
    measures
        For each answer: ``crowd`` (training people with these values), ``pureness`` (share of the
        combinations of these values that the predictor accepts, the answer's other values as they
        are; of more than 1,000 combinations, of 1,000 random ones), ``pureness_of_changes`` (the
        share if a person alters what the answer changes, to other values of these ranges and sets,
        and nothing else), whether the answer is ``pure`` (both shares are at least
        ``min_pureness``) and ``n_blurred`` (changes that can no longer be seen, since the person's
        own value is inside). Shares are rounded down to whole percents.
    cells
        One row per answer and quasi-identifier: ``factual``, ``rank``, ``feature``, ``kind``
        ("value", "range", "levels" or "any"), the ends ``low`` and ``high`` of a range (missing
        where it extends as far as there are values), ``levels``, a list, whether ``missing`` values
        are inside, and ``text``.
    anonymity
        The smallest crowd allowed.
    quasi_identifiers
        The columns that are widened: those that were named, and those that follow from them or
        that they follow from.
    min_pureness
        The smallest pureness of a pure answer.

    Examples
    --------
    >>> from mcce import MCCE
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), search="near").fit(bank)
    >>> from mcce.privacy import anonymize
    >>> exact = explainer.explain(bank.iloc[[3]])
    >>> result = anonymize(explainer, exact, bank, anonymity=3, quasi_identifiers=["salary"])
    >>> result.anonymous.frame
                  age    salary
    factual rank
    3       1      52  70 to 75
    >>> result.anonymous.measures[["crowd", "pureness"]]
                  crowd  pureness
    factual rank
    3       1         3       1.0
    """

    frame: FrameT
    measures: FrameT
    cells: FrameT
    anonymity: int
    quasi_identifiers: tuple[Hashable, ...]
    min_pureness: float

    def __repr__(self) -> str:
        n_answers, names = len(self.frame), self.quasi_identifiers  # type: ignore[arg-type]
        what = f"{n_answers} answers, anonymity={self.anonymity}, {len(names)} columns widened"
        return f"AnonymousAnswers({what})"


def take_answers(
    answers: AnonymousAnswers[pd.DataFrame], places: IntArray, index: pd.MultiIndex
) -> AnonymousAnswers[pd.DataFrame]:
    """Some of the answers, with other labels."""
    n_columns = len(answers.quasi_identifiers)
    of_each = (places[:, None] * n_columns + np.arange(n_columns)).ravel()
    labels = index.repeat(n_columns)
    about = {name: labels.get_level_values(name).to_numpy() for name in ("factual", "rank")}
    return replace(
        answers,
        frame=answers.frame.iloc[places].set_axis(index),
        measures=answers.measures.iloc[places].set_axis(index),
        cells=answers.cells.iloc[of_each].reset_index(drop=True).assign(**about),
    )
