"""All rows that a person could get from the values of a small table, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd


def every_row(train: pd.DataFrame, person: pd.DataFrame, mutable: Sequence[str]) -> pd.DataFrame:
    """The person with every combination of training values and own ones."""
    values = [pd.concat([person[name], train[name]]).drop_duplicates() for name in mutable]
    places = np.indices([len(some) for some in values]).reshape(len(values), -1)
    rows = person.iloc[np.zeros(places.shape[1], dtype=int)].reset_index(drop=True)
    for name, some, place in zip(mutable, values, places, strict=True):
        rows[name] = some.take(place).reset_index(drop=True)
    return rows


def changed(rows: pd.DataFrame, person: pd.DataFrame) -> np.ndarray:
    """Which cells differ from the person's; two missing ones do not."""
    own = person.iloc[np.zeros(len(rows), dtype=int)]
    cells, theirs = rows.to_numpy(dtype=object), own.to_numpy(dtype=object)
    missing = rows.isna().to_numpy(), own.isna().to_numpy()
    equal = np.where(missing[0] | missing[1], missing[0] & missing[1], cells == theirs)
    return ~equal.astype(bool)


def distances(
    train: pd.DataFrame,
    rows: pd.DataFrame,
    person: pd.DataFrame,
    weights: Mapping[str, float] | None = None,
) -> np.ndarray:
    """Gower distances to the person: the weighted mean of gaps as shares of training ranges."""
    total, differs = np.zeros(len(rows)), changed(rows, person)
    for at, name in enumerate(rows):
        gap = np.ones(len(rows))
        if pd.api.types.is_numeric_dtype(rows[name]) and not pd.api.types.is_bool_dtype(rows[name]):
            spread = float(train[name].max() - train[name].min())
            numbers = rows[name].to_numpy(float, na_value=np.nan)
            own = person[name].to_numpy(float, na_value=np.nan)
            if spread > 0:
                gap = np.nan_to_num(np.abs(numbers - own) / spread, nan=1.0, posinf=np.inf)
        total += (weights or {}).get(name, 1.0) * np.where(differs[:, at], gap, 0.0)
    return total / rows.shape[1]


def is_needless(rows: pd.DataFrame, person: pd.DataFrame, actions: Sequence[str]) -> np.ndarray:
    """Which of these good rows make all changes of another one and more."""
    differs = changed(rows[list(actions)], person[list(actions)])
    cells = rows[list(actions)].astype(str).to_numpy()
    count = differs.sum(axis=1)
    return np.array(
        [
            ((~differs | (cells == cells[at])).all(axis=1) & (count < count[at])).any()
            for at in range(len(rows))
        ],
        dtype=bool,
    )
