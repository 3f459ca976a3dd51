"""German Credit: 1,000 applicants of a German bank, the smallest data set of the paper.

Paper, section "Experiments": 20 features, of which Purpose, Age and Sex are immutable.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import Any

import pandas as pd


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table, what is to be predicted in it, and where it comes from.

    Parameters
    ----------
    features
        One row per person, without the target.
    target
        What happened.
    desired
        The value of the target that people want.
    immutable
        Features that the paper holds fixed.
    card
        Source, licence, attribution and cautions.
    """

    features: pd.DataFrame
    target: pd.Series[Any]
    desired: str
    immutable: list[str]
    card: Mapping[str, Any]


def load_german_credit() -> Dataset:
    """German Credit in the paper's form of 20 features.

    ``Sex`` stands for the combined column of marital status and sex it was derived from. Read
    ``card["caution"]`` before drawing any conclusion from these data.

    Examples
    --------
    >>> german = load_german_credit()
    >>> german.features.shape, german.target.value_counts().to_dict()
    ((1000, 20), {'good': 700, 'bad': 300})
    """
    folder = files(__package__)
    card = json.loads(folder.joinpath("german_credit.json").read_text(encoding="utf-8"))
    with as_file(folder.joinpath("german_credit.csv.gz")) as path:
        table = pd.read_csv(path)
    return Dataset(
        features=table.drop(columns=["PersonalStatusSex", card["target"]]),
        target=table[card["target"]],
        desired=card["desired"],
        immutable=list(card["immutable"]),
        card=card,
    )
