"""Contradictory pairs: two levels that training rows, though each is common, never have together.

Beyond the paper. A pair of levels is contradictory if training holds it in under ``share`` of the
rows that independence would give, n_a * n_b / n, and these are at least ``least_expected``.

Chance alone leaves out a pair that is expected m times with probability exp(-m), so 20 expected
rows make a false alarm rarer than one in 10^8 pairs.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from ..errors import SchemaError
from ..kernels import BoolArray, IntArray
from ..parameters import check_real
from .evaluator import Evaluator, read_rows


def contradictory_pairs(
    rows: Any, training: Any, *, share: float = 0.01, least_expected: float = 20.0
) -> pd.Series[Any]:
    """Number of contradictory pairs of levels in each row.

    Parameters
    ----------
    rows
        A frame, or the result of ``explain``.
    training
        The training data: a frame, or a :class:`Evaluator`.
    share
        Part of the expected rows under which a pair is contradictory.
    least_expected
        Rows in which independence must expect a pair before it can be contradictory.

    Examples
    --------
    >>> training = pd.DataFrame({"called": ["never", "once"] * 50, "sold": ["no", "yes"] * 50})
    >>> contradictory_pairs(pd.DataFrame({"called": ["never"], "sold": ["yes"]}), training)
    0    1.0
    Name: contradictory_pairs, dtype: float64
    """
    check_real("share", share, "a number from 0 to 1", most=1.0)
    check_real("least_expected", least_expected, "a number of rows > 0", zero=False)
    evaluator = Evaluator.of(training)
    answers, encoded = read_rows(rows, evaluator)
    features = evaluator.schema.features
    levels = [at for at, feature in enumerate(features) if feature.kind == "categorical"]
    if len(levels) < 2:
        raise SchemaError(
            "Contradictory pairs need at least two categorical features, the training data have "
            f"{len(levels)}. Declare numbers that are codes with kinds={{name: 'categorical'}}."
        )
    counts = np.zeros(len(encoded), dtype=np.int64)
    for first, second in combinations(levels, 2):
        kept = [_frequent(evaluator.rows.exact[at], least_expected) for at in (first, second)]
        trained, own = (
            [_places(side.exact[at], some) for at, some in zip((first, second), kept, strict=True)]
            for side in (evaluator.rows, encoded)
        )
        seen = np.zeros((kept[0].size + 1, kept[1].size + 1), dtype=np.int64)
        np.add.at(seen, tuple(trained), 1)
        counts += _contradictory(seen, share, least_expected)[tuple(own)]
    return answers.told(counts, "contradictory_pairs")


def _frequent(codes: Any, least: float) -> IntArray:
    """Levels in at least so many rows: n_a * n_b / n is never more than n_a."""
    return np.flatnonzero(np.bincount(codes) >= least)


def _places(codes: Any, kept: IntArray) -> IntArray:
    """Place of each code among the kept ones, the one past the last for all others."""
    place = np.full(codes.max(initial=-1) + 2, kept.size)
    inside = kept[kept < place.size - 1]
    place[inside] = np.arange(inside.size)
    return place[codes]  # -1, a level never seen, finds the last entry


def _contradictory(seen: IntArray, share: float, least: float) -> BoolArray:
    """Which pairs of levels are contradictory; the last row and column stand for rare levels."""
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / seen.sum()
    found = (expected >= least) & (seen < share * expected)
    found[-1], found[:, -1] = False, False
    return found
