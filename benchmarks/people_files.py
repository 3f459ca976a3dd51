"""Files for measuring ``mcce explain``: training rows, any number of people, and an explainer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from mcce.datasets import load_german_credit

PREDICTOR = "scoring:score"
# Cheap, so that what is measured is the run and not the predictor.
SCORING = """
import numpy as np


def score(frame):
    z = 1.2 - 0.045 * frame["Duration"] - 0.00012 * frame["CreditAmount"] + 0.02 * frame["Age"]
    z = z + 0.8 * frame["CheckingStatus"].eq("no checking account")
    z = z + 0.5 * frame["Savings"].ne("<100 DM")
    return 1 / (1 + np.exp(-z.to_numpy(dtype=float)))
"""


def write_lake(folder: Path, n_people: int, n_rows: int = 50_000) -> None:
    """Write a folder of Parquet files of people, each with a number of their own.

    Parameters
    ----------
    folder
        Where to; it is made.
    n_people
        How many people; each cell is drawn as by :func:`write_files`.
    n_rows
        How many of them are in a file.
    """
    folder.mkdir()
    train = load_german_credit().features
    chance = np.random.default_rng(0)
    for first in range(0, n_people, n_rows):
        n = min(n_rows, n_people - first)
        people = train.apply(lambda column, n=n: chance.choice(column.to_numpy(), n))
        people.insert(0, "customer", np.arange(first, first + n))
        people.to_parquet(folder / f"{first:09d}.parquet", index=False)


def write_files(folder: Path, n_people: int, search: str, desired: str = "0.65:") -> None:
    """Write scoring.py, train.csv, people.csv and bank.mcce.

    Parameters
    ----------
    folder
        Where to.
    n_people
        How many people; each cell is drawn from a column of German Credit.
    search
        The search of the explainer.
    desired
        The desired scores.
    """
    (folder / "scoring.py").write_text(SCORING, encoding="utf-8")
    train = load_german_credit().features
    train.to_csv(folder / "train.csv", index=False)
    chance = np.random.default_rng(0)
    for first in range(0, n_people, 100_000):
        n_rows = min(100_000, n_people - first)
        people = train.apply(lambda column, n=n_rows: chance.choice(column.to_numpy(), n))
        people.to_csv(
            folder / "people.csv", index=False, header=not first, mode="a" if first else "w"
        )
    command = [sys.executable, "-m", "mcce", "fit", "train.csv", "--predictor", PREDICTOR]
    command += ["--desired", desired, "--immutable", "Age,Sex", "--search", search]
    subprocess.run([*command, "-o", "bank.mcce"], cwd=folder, check=True)
