"""The paper's four data sets, in one call.

Paper, section "Experiments". Only German Credit comes with the package; the others have no licence
that would let them, or are too large, and come from a folder or from OpenML.
"""

from __future__ import annotations

import os

from ..errors import DatasetError, ParameterError
from .cards import card, one_of
from .checking import check_cells, conform
from .dataset import Dataset
from .forms import select, shape
from .sources import find, listed_rows


def load(
    name: str,
    *,
    form: str = "raw",
    rows: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    verify: bool = True,
) -> Dataset:
    """A data set of the paper, checked against its card.

    Parameters
    ----------
    name
        ``"german"``, ``"adult"``, ``"gmc"`` or ``"fico"``; ``describe(name)`` tells what each is.
    form
        ``"raw"``, as it was published; ``"levels"``, the features and rows of the paper with all
        levels of their categories; ``"paper"``, these with two levels each.
    rows
        A selection of rows that the card names; None is that of the form.
    folder
        Where its file lies, such as ``adult.csv.gz`` or ``adult.csv``; nowhere else is looked then.
        None looks in the folder that the environment variable ``MCCE_DATA`` names, in the package,
        and at OpenML, which needs internet once.
    verify
        Whether to raise for other numbers of rows and labels than the card has, and to warn of
        other cells. False takes a part of the data, or another version.

    Examples
    --------
    >>> german = load("german", form="paper")
    >>> german.features["Housing"].value_counts().to_dict()
    {'own': 713, 'other': 287}
    >>> (german.target == german.desired).mean()
    np.float64(0.7)
    """
    of = card(name)
    one_of("form", form, of["forms"])
    shaped_by = of["forms"][form]
    rows = shaped_by["rows"] if rows is None else rows
    one_of("rows", rows, of["selections"])
    if not isinstance(verify, bool):
        raise ParameterError(f"verify must be True or False, got {verify!r}.")
    found = find(of, folder)
    table = conform(found.table, of, found.where)
    if verify:
        check_cells(table, of, found.where)
    features = table.drop(columns=of["target"])
    if rows == "quarter":
        features = features.iloc[listed_rows(of, found, len(features))]
    else:
        features = select(features, rows)
    if features.empty:
        raise DatasetError(f"{found.where} holds no rows of the selection {rows!r}.")
    return Dataset(
        features=shape(features, shaped_by),
        target=table[of["target"]].loc[features.index],
        desired=of["desired"],
        immutable=list(shaped_by["immutable"]),
        card=of,
    )


def load_german_credit() -> Dataset:
    """German Credit as it comes with the package: ``load("german")`` without a folder.

    ``Sex`` stands for the combined column of marital status and sex it was derived from. Read
    ``card["caution"]`` before drawing any conclusion from these data.

    Examples
    --------
    >>> german = load_german_credit()
    >>> german.features.shape, german.target.value_counts().to_dict()
    ((1000, 20), {'good': 700, 'bad': 300})
    """
    return load("german")
