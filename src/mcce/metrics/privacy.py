"""Whether rows reveal training rows: copies of rows, copies of values, closest records.

Paper, section "Privacy": the table of copies. None of these proves privacy: attacks are known that
succeed although all of them look good.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..confidence import wilson
from ..errors import SchemaError
from ..kernels import BoolArray, FloatArray, build_neighbours, nearest_distances, rows_as_bytes
from ..parameters import check_count
from ..tables.columns import is_missing
from ..tables.schema import EncodedRows, Schema
from .costs import changed
from .evaluator import Evaluator, FrameLike, ResultLike, Training, as_evaluator, pair, read_rows
from .matching import shared_points


def copies(rows: ResultLike, training: Training) -> pd.Series[float]:
    """Whether each row equals a training row in every cell.

    Parameters
    ----------
    rows : frame or Counterfactuals
        The rows to measure.
    training : frame or Evaluator
        The training data.

    Returns
    -------
    Series
        1 for a copy, 0 otherwise, NaN where there is no counterfactual.

    Examples
    --------
    >>> training = pd.DataFrame({"age": [20, 30], "job": ["a", "b"]})
    >>> copies(pd.DataFrame({"age": [20, 20], "job": ["a", "b"]}), training).tolist()
    [1.0, 0.0]
    """
    own = read_rows(rows, training)
    return own.to_series(are_copies(own.after, own.evaluator), "copies")


def are_copies(rows: EncodedRows, evaluator: Evaluator) -> BoolArray:
    """Whether each row equals a training row."""
    # A value that is not in training has a code that no training row has.
    return np.isin(rows_as_bytes(rows.codes.T), rows_as_bytes(evaluator.rows.codes.T))


def value_copies(
    rows: ResultLike, training: Training, *, factuals: FrameLike | None = None
) -> float:
    """Share of the numbers in rows that exactly one training row has.

    Such a number points to one person even where no row is copied. Only mutable numeric features
    count; with ``factuals``, only their changed cells.

    Parameters
    ----------
    rows : frame or Counterfactuals
        The rows to measure.
    training : frame or Evaluator
        The training data; an evaluator also knows what is immutable.
    factuals : frame, optional
        The factuals of the rows, in their order.

    Returns
    -------
    float
        From 0 to 1; NaN if no number counts.

    Raises
    ------
    SchemaError
        If the training data have no mutable numeric feature.

    Examples
    --------
    >>> training = pd.DataFrame({"salary": [10, 20, 20]})
    >>> value_copies(pd.DataFrame({"salary": [10, 20]}), training)
    0.5
    """
    evaluator = as_evaluator(training)
    numeric = mutable_numbers(evaluator.schema)
    if not numeric:
        raise SchemaError(
            "value_copies needs at least one mutable numeric feature, the training data have none."
        )
    if factuals is None:
        encoded = read_rows(rows, evaluator).after
        counted = np.ones_like(encoded.codes, dtype=bool)
    else:
        pairs = pair(factuals, rows, evaluator)
        encoded, counted = pairs.after, changed(pairs)
    n_counted = n_single = 0
    for position in numeric:
        kept = counted[position] & ~is_missing(encoded.frame.iloc[:, position])
        codes = encoded.codes[position, kept]
        n_rows = np.bincount(evaluator.rows.codes[position])
        n_counted += codes.size
        n_single += int((n_rows[codes[codes >= 0]] == 1).sum())
    return n_single / n_counted if n_counted else np.nan


def mutable_numbers(schema: Schema) -> list[int]:
    """Positions of the mutable numeric features."""
    return [at for at in schema.mutable.tolist() if schema.features[at].kind == "numeric"]


def closest_record(
    rows: FrameLike, training: Training, *, holdout: FrameLike | None = None, random_state: int = 0
) -> pd.Series[float]:
    """Distance of generated rows to their closest training row, and to a holdout.

    Parameters
    ----------
    rows : frame
        Generated rows.
    training : frame or Evaluator
        The data that the generator was fitted on.
    holdout : frame, optional
        Real rows that the generator has not seen. If they are fewer or more than the training
        rows, the larger side is sampled down for the last three values.
    random_state : int
        Seed of that sample.

    Returns
    -------
    Series
        ``median``, ``q05`` (5 % quantile) and ``zero`` (share at distance 0) of the distance, in
        the unit of :func:`l1`. With a holdout also ``holdout_share``, the share of rows closer to
        training than to the holdout (ties count half; 0.5 is ideal), and its 95 % Wilson interval
        from ``low`` to ``high``.

    Examples
    --------
    >>> training = pd.DataFrame({"age": [20, 30, 60]})
    >>> closest_record(pd.DataFrame({"age": [20, 34]}), training).round(3).tolist()
    [0.05, 0.005, 0.5]
    """
    evaluator = as_evaluator(training)
    check_count("random_state", random_state, least=0)
    generated = evaluator.read(rows)
    sides = [evaluator.rows]
    if holdout is not None:
        sides.append(evaluator.read(holdout, "holdout"))
    own, *others = shared_points([generated, *sides])

    def closest(points: FloatArray) -> FloatArray:
        tree = build_neighbours(points, evaluator.schema.is_level)
        return nearest_distances(tree, own, 1)[:, 0]

    distances = closest(others[0])
    summary = {
        "median": np.median(distances),
        "q05": np.quantile(distances, 0.05),
        "zero": np.mean(distances == 0),
    }
    if holdout is not None:
        n_each, rng = min(map(len, others)), np.random.default_rng(random_state)
        inside, outside = (closest(side[rng.permutation(len(side))[:n_each]]) for side in others)
        share = float(np.mean(np.where(inside == outside, 0.5, inside < outside)))
        low, high = wilson(share, inside.size)
        summary |= {"holdout_share": share, "low": low, "high": high}
    return pd.Series(summary, name="closest_record")
