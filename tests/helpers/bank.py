"""Applicants of a bank, and a black box that scores them."""

from __future__ import annotations

import numpy as np
import pandas as pd

EDUCATION = ["school", "bachelor", "master"]
HOUSING = ["rent", "own", "free"]


def bank(n_rows, seed=0, missing=True):
    """Applicants with numbers, ordered and unordered levels, missing cells and rare levels."""
    chance = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": chance.integers(18, 70, n_rows),
            "salary": chance.integers(10, 90, n_rows).astype(float),
            "years": chance.integers(0, 40, n_rows),
            "education": pd.Categorical(chance.choice(EDUCATION, n_rows), EDUCATION, ordered=True),
            "housing": chance.choice([*HOUSING, "boat"], n_rows, p=[0.5, 0.3, 0.19, 0.01]),
            "sex": chance.choice(["f", "m"], n_rows),
        }
    )
    if missing:
        frame.loc[chance.random(n_rows) < 0.1, "salary"] = np.nan
        frame.loc[chance.random(n_rows) < 0.1, "housing"] = None
    return frame


def score(frame):
    """A black box that accepts missing cells."""
    education = pd.Series(frame["education"].cat.codes, index=frame.index)
    return (
        frame["salary"].fillna(30) / 100
        + education / 8
        + frame["years"] / 100
        + (frame["housing"] == "own") / 5
    ).to_numpy()


def default_risk(frame: pd.DataFrame) -> pd.Series:
    """The bank's black box: probability of defaulting on the loan."""
    shortage = (90_000 - frame["salary"]).clip(lower=0) / 100_000
    return 0.02 + 0.6 * shortage + 0.1 * frame["defaulted_last_year"].astype(float)
