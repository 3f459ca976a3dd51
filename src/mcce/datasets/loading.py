"""Load the paper's four data sets.

Paper, section "Experiments". Only German Credit is bundled. The others are too large or their
licences do not allow it; they are read from a folder or from OpenML.
"""

from __future__ import annotations

import os
from typing import Literal

import pandas as pd

from ..errors import DatasetError, ParameterError, shorten
from .cards import DatasetName, card, check_choice
from .checking import check_cells, conform
from .dataset import Dataset
from .forms import select, shape
from .sources import find, listed_rows

Form = Literal["raw", "levels", "paper"]


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
    if not isinstance(verify, bool):
        raise ParameterError(f"verify must be True or False, got {shorten(verify)}.")
    source = find(of, folder)
    table = conform(source.table, of, source.where)
    if verify:
        check_cells(table, of, source.where)
    features: pd.DataFrame = table.drop(columns=of["target"])
    if rows == "quarter":
        features = features.iloc[listed_rows(of, source, len(features))]
    else:
        features = select(features, rows)
    if features.empty:
        raise DatasetError(
            f"{source.where} holds no rows of the selection {rows!r}. Choose other rows."
        )
    return Dataset(
        features=shape(features, form_card),
        target=table[of["target"]].loc[features.index],
        desired=of["desired"],
        immutable=list(form_card["immutable"]),
        card=of,
    )


def load_german_credit() -> Dataset:
    """Load the bundled German Credit data: ``load("german")``.

    ``Sex`` replaces the combined column of marital status and sex that it was derived from. Read
    ``card["caution"]`` before drawing any conclusion from these data.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> german = load_german_credit()
    >>> german.features.shape, german.target.value_counts().to_dict()
    ((1000, 20), {'good': 700, 'bad': 300})
    """
    return load("german")
