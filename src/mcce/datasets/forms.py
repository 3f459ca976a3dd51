"""Forms of a data set: which features, which rows, which levels.

Paper, section "Experiments", and the appendix on features that are not binarized. Takes a
conformed table and its card; gives new frames, whose index is still the row number in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

EMPTY = -9
STANDARD_DEVIATIONS = 3


def select(features: pd.DataFrame, rows: str) -> pd.DataFrame:
    """The rows of a selection that depends on the features alone."""
    return features.loc[SELECTIONS[rows](features)]


def shape(features: pd.DataFrame, form: Mapping[str, Any]) -> pd.DataFrame:
    """The features of a form."""
    shaped = features.drop(columns=form.get("without", []))
    for name in form.get("categories", []):
        shaped[name] = _as_category(shaped[name])
    groups = form.get("groups", {})
    if groups == "most frequent":
        texts = shaped.select_dtypes("category").columns
        return shaped.assign(**{name: _most_frequent(shaped[name]) for name in texts})
    return shaped.assign(**{name: _grouped(shaped[name], **by) for name, by in groups.items()})


def _as_category(codes: pd.Series[Any]) -> pd.Series[Any]:
    """Whole numbers as levels, in numeric order."""
    levels = [str(code) for code in sorted(codes.unique())]
    return codes.astype(str).astype(pd.CategoricalDtype(levels))


def _most_frequent(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Each cell as the most frequent level (the first of ties) or ``other``."""
    most = cells.mode().iloc[0]
    return _grouped(cells, group=most, levels=[most], rest="other")


def _grouped(cells: pd.Series[Any], *, group: str, levels: list[str], rest: str) -> pd.Series[Any]:
    """Each cell as one of two groups: these levels, or the rest."""
    two = np.where(cells.isin(levels), group, rest)
    dtype = pd.CategoricalDtype(sorted([group, rest]))
    return pd.Series(two, index=cells.index, name=cells.name).astype(dtype)


def _without_outliers(features: pd.DataFrame) -> pd.Series[bool]:
    """Complete rows within three standard deviations of the mean in every feature."""
    complete = features.dropna()
    # In a constant column nothing is far from the mean: 0 / 0 is not at least 3.
    far = (complete - complete.mean()).abs() / complete.std(ddof=0) >= STANDARD_DEVIATIONS
    return (~far.any(axis=1)).reindex(features.index, fill_value=False)


SELECTIONS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "all": lambda features: features.index,
    "worked": lambda features: features["workclass"] != "Never-worked",
    "complete": lambda features: features.notna().all(axis=1),
    "filtered": _without_outliers,
    "known": lambda features: ~(features == EMPTY).all(axis=1),
}
