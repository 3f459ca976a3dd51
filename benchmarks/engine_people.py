"""People and an explainer for measuring engines, in memory."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce import MCCE
from mcce.datasets import load_german_credit
from mcce.errors import McceWarning
from mcce.execution import frames
from mcce.execution.workers import Task

KEY = "customer"


def scoring(
    seconds: float = 0.0, folder: str | None = None
) -> Callable[[], Callable[[pd.DataFrame], Any]]:
    """A function that loads a predictor.

    Parameters
    ----------
    seconds
        How long each call takes.
    folder
        Where a file with the number of the process says that it is at work.
    """

    def load_predictor() -> Callable[[pd.DataFrame], Any]:
        def score(frame: pd.DataFrame) -> Any:
            if folder is not None:
                Path(folder, str(os.getpid())).touch()
            time.sleep(seconds)
            points = 1.2 - 0.045 * frame["Duration"] - 0.00012 * frame["CreditAmount"]
            points = points + 0.8 * frame["CheckingStatus"].eq("no checking account")
            return 1 / (1 + np.exp(-points.to_numpy(dtype=float)))

        return score

    return load_predictor


def fit(n_samples: int = 200) -> MCCE:
    """An explainer of German Credit."""
    made = MCCE(
        scoring()(),
        (0.65, 1.0),
        immutable=["Age", "Sex"],
        search="paper",
        n_samples=n_samples,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return made.fit(load_german_credit().features)


def people(n_people: int) -> pd.DataFrame:
    """People with a number each; every cell is drawn from a column of German Credit."""
    chance = np.random.default_rng(0)
    train = load_german_credit().features
    drawn = {
        name: column.iloc[chance.integers(len(train), size=n_people)].array
        for name, column in train.items()
    }
    return pd.DataFrame(drawn).assign(**{KEY: np.arange(n_people)})


def plan(
    explainer: MCCE, rows: pd.DataFrame, load_predictor: Callable[[], Any] | None = None
) -> Task:
    """The task for partitions of these people."""
    return frames.plan(explainer, rows, KEY, load_predictor or scoring())[1]
