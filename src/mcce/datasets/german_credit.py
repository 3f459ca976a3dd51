"""German Credit, which comes with the package and its card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

CARD, TABLE, RULES = "german.json", "german_credit.csv.gz", "rules/german.toml"


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
    rules : Path or None
        A file of constraints for ``MCCE(constraints=...)``: what one would advise these people.

    Examples
    --------
    >>> from mcce.datasets import load_german_credit
    >>> german = load_german_credit()
    >>> len(german.features), german.desired, german.immutable
    (1000, 'good', ['Purpose', 'Age', 'Sex'])
    """

    features: pd.DataFrame
    target: pd.Series[Any]
    desired: Any  # the type depends on the data set
    immutable: list[str]
    card: Mapping[str, Any]
    rules: Path | None = None


def load_german_credit() -> Dataset:
    """Load the bundled German Credit data.

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
    folder = files(__package__)
    card = json.loads(folder.joinpath(CARD).read_text(encoding="utf-8"))
    with folder.joinpath(TABLE).open("rb") as stream:
        # No cell is missing, so that a level such as "none" stays a level.
        table = pd.read_csv(stream, compression="gzip", keep_default_na=False)
    target = table.pop(card["target"])
    levels = {
        column["name"]: pd.CategoricalDtype(column["levels"])
        for column in card["columns"]
        if column["kind"] == "category" and column["name"] in table
    }
    form = card["forms"]["raw"]
    return Dataset(
        features=table.astype(levels).drop(columns=form["without"]),
        target=target,
        desired=card["desired"],
        immutable=list(form["immutable"]),
        card=card,
        rules=Path(str(folder.joinpath(RULES))),
    )
