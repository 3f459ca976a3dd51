"""What a loader hands out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table, what is to be predicted in it, and where it comes from.

    Parameters
    ----------
    features
        One row per person, without the target; the index is the row number in the file.
    target
        What happened, as the file has it.
    desired
        The value of the target that people want; for simulated rows an interval.
    immutable
        Features that the paper holds fixed.
    card
        Source, licence, attribution, columns and cautions.
    """

    features: pd.DataFrame
    target: pd.Series[Any]
    desired: Any
    immutable: list[str]
    card: Mapping[str, Any]
