"""Load the paper's four data sets, in one of three forms.

Paper, section "Experiments", and the appendix on features that are not binarized. Only German
Credit is bundled, with mcce. The others are too large or their licences do not allow it; they are
read from a folder or from OpenML. A form says which features, rows and levels there are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from mcce.datasets import Dataset
from mcce.protocols import check_choice, check_flag

from .cards import DatasetName, card
from .tables import DatasetError, check_cells, conform, find

Form = Literal["raw", "levels", "paper"]
EMPTY = -9
STANDARD_DEVIATIONS = 3


def load(
    name: DatasetName,
    *,
    form: Form = "raw",
    rows: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    verify: bool = True,
) -> Dataset:
    """Load a data set of the paper and check it against its card.

    Parameters
    ----------
    name : {"german", "adult", "gmc", "fico"}
        The data set; :func:`describe` explains each.
    form : {"raw", "levels", "paper"}
        ``"raw"``, as published; ``"levels"``, the features and rows of the paper with all levels
        of their categories; ``"paper"``, the same with two levels each.
    rows : str, optional
        A selection of rows named in the card. By default that of the form.
    folder : path, optional
        Folder with the data file, such as ``adult.csv.gz`` or ``adult.csv``; no other place is
        tried. By default the folder in the environment variable ``MCCE_DATA`` is tried first,
        then the package, then OpenML, which needs internet access once.
    verify : bool
        Whether to raise if the numbers of rows or labels differ from the card, and to warn if
        cells differ. Pass False to load a part of the data or another version.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetError
        If the data cannot be found or do not match the card.
    ParameterError
        If the card has no such form or selection of rows.

    Examples
    --------
    >>> german = load("german", form="paper")
    >>> german.features["Housing"].value_counts().to_dict()
    {'own': 713, 'other': 287}
    >>> (german.target == german.desired).mean()
    np.float64(0.7)
    """
    of = card(name)
    check_choice("form", form, of["forms"])
    form_card = of["forms"][form]
    rows = form_card["rows"] if rows is None else rows
    check_choice("rows", rows, of["selections"])
    check_flag("verify", verify)
    found, where = find(of, folder)
    table = conform(found, of, where)
    if verify:
        check_cells(table, of, where)
    features: pd.DataFrame = table.drop(columns=of["target"])
    features = features.loc[SELECTIONS[rows](features)]
    if features.empty:
        raise DatasetError(f"{where} holds no rows of the selection {rows!r}. Choose other rows.")
    return Dataset(
        features=shape(features, form_card),
        target=table[of["target"]].loc[features.index],
        desired=of["desired"],
        immutable=list(form_card["immutable"]),
        card=of,
    )


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
