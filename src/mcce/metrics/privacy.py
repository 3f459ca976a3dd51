"""Whether rows give training people away: copies of rows, copies of values, closest records.

Paper, section "Privacy": the table of copies. None of these is a proof of privacy: attacks that
succeed where all of them look well are known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..errors import SchemaError
from ..kernels import FloatArray, rows_as_bytes
from ..parameters import check_count
from ..tables.columns import is_missing
from .costs import changed
from .evaluator import Evaluator, pair, read_rows, read_some
from .neighbours import nearest

Z95 = 1.959963984540054


def copies(rows: Any, training: Any) -> pd.Series[Any]:
    """1 for each row that is in all its cells equal to a training row, else 0.

    Parameters
    ----------
    rows
        A frame, or the result of ``explain``.
    training
        The training data: a frame, or a :class:`Evaluator`.

    Examples
    --------
    >>> training = pd.DataFrame({"age": [20, 30], "job": ["a", "b"]})
    >>> copies(pd.DataFrame({"age": [20, 20], "job": ["a", "b"]}), training).tolist()
    [1.0, 0.0]
    """
    evaluator = Evaluator.of(training)
    answers, encoded = read_rows(rows, evaluator)
    # A value that training never held has a code that no training row has.
    copied = np.isin(rows_as_bytes(encoded.exact.T), rows_as_bytes(evaluator.rows.exact.T))
    return answers.told(copied, "copies")


def value_copies(rows: Any, training: Any, *, factuals: Any = None) -> float:
    """Share of the emitted numbers that exactly one training row holds.

    Such a number points to one person even where no row is copied. Emitted are the present cells
    of mutable numeric features; with the ``factuals`` that counterfactuals are for, only those
    that changed. NaN if there are none.

    Parameters
    ----------
    rows
        A frame, or the result of ``explain``.
    training
        The training data: a frame, or a :class:`Evaluator`, which knows what is immutable.
    factuals
        The people, in the order of the rows.
    """
    evaluator = Evaluator.of(training)
    features = evaluator.schema.features
    numeric = [at for at in evaluator.schema.mutable.tolist() if features[at].kind == "numeric"]
    if not numeric:
        raise SchemaError(
            "Value copies need at least one mutable numeric feature, the training data have none."
        )
    if factuals is None:
        encoded = read_rows(rows, evaluator)[1]
        emitted = np.ones_like(encoded.exact, dtype=bool)
    else:
        pairs = pair(factuals, rows, evaluator)
        encoded, emitted = pairs.after, changed(pairs)
    n_emitted = n_single = 0
    for position in numeric:
        kept = emitted[position] & ~is_missing(encoded.frame.iloc[:, position])
        codes = encoded.exact[position, kept]
        counts = np.bincount(evaluator.rows.exact[position])
        n_emitted += codes.size
        n_single += int((counts[codes[codes >= 0]] == 1).sum())
    return n_single / n_emitted if n_emitted else np.nan


def closest_record(
    rows: Any, training: Any, *, holdout: Any = None, random_state: int = 0
) -> pd.Series[Any]:
    """Distance of rows to the closest training record, and whether a holdout is as close.

    Parameters
    ----------
    rows
        Generated rows.
    training
        The data that the generator was fitted on: a frame, or a :class:`Evaluator`.
    holdout
        Real rows that the generator never saw. If there are fewer or more than training rows, as
        many are taken at random from the larger for the last three numbers.
    random_state
        Seeds that choice.

    Returns
    -------
    Series
        ``median``, ``q05`` (5 % quantile) and ``zero`` (share at distance 0) of the distance in
        the unit of ``l1``; with a holdout ``holdout_share``, the share of rows that are closer to
        training than to the holdout (ties count half, 0.5 is ideal), and the 95 % interval of
        Wilson from ``low`` to ``high``.
    """
    evaluator = Evaluator.of(training)
    check_count("random_state", random_state, least=0)
    generated = read_some(rows, evaluator, "rows")
    far = nearest(evaluator, generated, evaluator.rows, 1)[0][:, 0]
    told = {"median": np.median(far), "q05": np.quantile(far, 0.05), "zero": np.mean(far == 0)}
    if holdout is None:
        return pd.Series(told, name="closest_record")
    others = read_some(holdout, evaluator, "holdout")
    n_each, chance = min(len(others), len(evaluator.rows)), np.random.default_rng(random_state)
    sides = [
        nearest(evaluator, generated, side, 1, among=chance.permutation(len(side))[:n_each])[0]
        for side in (evaluator.rows, others)
    ]
    told |= _share_closer(*sides)
    return pd.Series(told, name="closest_record")


def _share_closer(far: FloatArray, from_holdout: FloatArray) -> dict[str, float]:
    """Share of rows that are closer to the first, with its interval."""
    n_rows = far.size
    share = float(np.mean(far < from_holdout) + np.mean(far == from_holdout) / 2)
    centre = (share + Z95**2 / (2 * n_rows)) / (1 + Z95**2 / n_rows)
    spread = share * (1 - share) / n_rows + Z95**2 / (4 * n_rows**2)
    half = Z95 * np.sqrt(spread) / (1 + Z95**2 / n_rows)
    return {"holdout_share": share, "low": centre - half, "high": centre + half}
