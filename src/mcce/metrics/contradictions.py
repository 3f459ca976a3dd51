"""Contradictory pairs: two levels, each common, that training rows hardly ever have together.

Beyond the paper. A pair of levels is contradictory if training has it in less than ``share`` of
the rows expected under independence, n_a * n_b / n, and expects at least ``least_expected``.

Chance alone leaves out a pair that is expected m times with probability exp(-m), so with 20
expected rows a false alarm is rarer than one in 10^8 pairs.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from ..errors import SchemaError
from ..kernels import BoolArray, Codes, IntArray
from ..parameters import check_real
from ..tables.schema import EncodedRows
from .evaluator import Evaluator, FrameLike, ResultLike, as_evaluator, read_rows

# Share of the expected rows below which a pair is contradictory, and the least rows expected.
SHARE, LEAST_EXPECTED = 0.01, 20.0


def contradictory_pairs(
    rows: ResultLike,
    training: FrameLike | Evaluator,
    *,
    share: float = SHARE,
    least_expected: float = LEAST_EXPECTED,
) -> pd.Series[float]:
    """Count the contradictory pairs of levels in each row.

    Parameters
    ----------
    rows : frame or Counterfactuals
        The rows to measure.
    training : frame or Evaluator
        The training data.
    share : float
        Share of the expected rows below which a pair is contradictory.
    least_expected : float
        Rows that independence must predict before a pair can be contradictory.

    Returns
    -------
    Series
        Number of pairs; 0 is right.

    Raises
    ------
    SchemaError
        If the training data have fewer than two categorical features.

    Examples
    --------
    >>> training = pd.DataFrame({"called": ["never", "once"] * 50, "sold": ["no", "yes"] * 50})
    >>> contradictory_pairs(pd.DataFrame({"called": ["never"], "sold": ["yes"]}), training)
    0    1.0
    Name: contradictory_pairs, dtype: float64
    """
    check_real("share", share, "a number from 0 to 1", most=1.0)
    check_real("least_expected", least_expected, "a number of rows > 0", zero=False)
    evaluator = as_evaluator(training)
    explained, encoded = read_rows(rows, evaluator)
    categories = _categories(evaluator)
    counts = np.zeros(len(encoded), dtype=np.int64)
    for features in combinations(categories, 2):
        kept = [_frequent(evaluator.rows.exact[at], least_expected) for at in features]
        trained = _places_of(evaluator.rows, features, kept)
        seen = np.zeros((kept[0].size + 1, kept[1].size + 1), dtype=np.int64)
        np.add.at(seen, trained, 1)
        contradictory = _contradictory(seen, share, least_expected)
        counts += contradictory[_places_of(encoded, features, kept)]
    return explained.to_series(counts, "contradictory_pairs")


def _categories(evaluator: Evaluator) -> list[int]:
    """Positions of the categorical features, of which there must be two."""
    features = evaluator.schema.features
    categories = [at for at, feature in enumerate(features) if feature.kind == "categorical"]
    if len(categories) < 2:
        raise SchemaError(
            "contradictory_pairs needs at least two categorical features, the training data have "
            f"{len(categories)}. Declare numbers that are codes with kinds={{name: 'categorical'}}."
        )
    return categories


def _frequent(codes: Codes, least: float) -> IntArray:
    """Levels in at least so many rows: n_a * n_b / n is never more than n_a."""
    return np.flatnonzero(np.bincount(codes) >= least)


def _places_of(
    rows: EncodedRows, features: tuple[int, ...], kept: list[IntArray]
) -> tuple[IntArray, ...]:
    """Place of each row's level among the kept ones, feature by feature."""
    return tuple(_places(rows.exact[at], levels) for at, levels in zip(features, kept, strict=True))


def _places(codes: Codes, kept: IntArray) -> IntArray:
    """Place of each code among the kept ones, one past the last for all others."""
    place = np.full(codes.max(initial=-1) + 2, kept.size)
    inside = kept[kept < place.size - 1]
    place[inside] = np.arange(inside.size)
    return place[codes]  # -1, a level not in training, indexes the last entry


def _contradictory(seen: IntArray, share: float, least: float) -> BoolArray:
    """Which pairs of levels are contradictory; the last row and column stand for rare levels."""
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / seen.sum()
    contradictory = (expected >= least) & (seen < share * expected)
    contradictory[-1], contradictory[:, -1] = False, False
    return contradictory
