"""What a predictor said about rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..kernels import BoolArray, FloatArray
from .labels import Probabilities


@dataclass(frozen=True)
class ScoredRows:
    """What the predictor says about each row.

    Parameters
    ----------
    score : (n_rows,)
        The score f(x).
    valid : (n_rows,)
        Whether the decision is the desired one.

    Examples
    --------
    >>> ScoredRows(np.array([0.2, 0.8]), np.array([False, True])).valid
    array([False,  True])
    """

    score: FloatArray
    valid: BoolArray


def join_scored(
    blocks: Sequence[tuple[ScoredRows, Probabilities | None]],
) -> tuple[ScoredRows, Probabilities | None]:
    """Blocks of rows as one, with the probabilities of labels where they decide.

    Examples
    --------
    >>> one = ScoredRows(np.array([0.25]), np.array([False]))
    >>> two = ScoredRows(np.array([0.75]), np.array([True]))
    >>> join_scored([(one, None), (two, None)])[0].score
    array([0.25, 0.75])
    """
    if len(blocks) == 1:
        return blocks[0]
    scored = ScoredRows(
        np.concatenate([block.score for block, _ in blocks]),
        np.concatenate([block.valid for block, _ in blocks]),
    )
    told = [probabilities for _, probabilities in blocks if probabilities is not None]
    if not told:
        return scored, None
    return scored, Probabilities(np.concatenate([one.numbers for one in told]), told[0].columns)
