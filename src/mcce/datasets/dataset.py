"""What the loaders return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with its target and its data card.

    Parameters
    ----------
    features : DataFrame
        One row per person, without the target; the index is the row number in the file.
    target : Series
        The outcome of each row, as in the file.
    desired : str, int or Interval
        The desired value of the target; an interval for simulated rows.
    immutable : list of str
        Features that the paper treats as immutable.
    card : mapping
        Source, licence, attribution, columns and cautions.

    Examples
    --------
    >>> from mcce.datasets import load
    >>> german = load("german")
    >>> len(german.features), german.desired, german.immutable
    (1000, 'good', ['Purpose', 'Age', 'Sex'])
    """

    features: pd.DataFrame
    target: pd.Series[Any]
    desired: Any  # the type depends on the data set
    immutable: list[str]
    card: Mapping[str, Any]
