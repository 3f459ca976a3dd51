"""Small data and a black box for the checks: every kind of column, missing cells, rare levels."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd

IMMUTABLE = ["age", "sex"]
DESIRED = (0.6, 10.0)
EDUCATION = ["school", "bachelor", "master"]


def make_frame(n_rows: int = 240, seed: int = 0) -> pd.DataFrame:
    """Applicants for a loan."""
    random = np.random.default_rng(seed)
    education = random.choice(EDUCATION, n_rows)
    housing = random.choice(["rent", "own", "boat"], n_rows, p=[0.6, 0.37, 0.03]).astype(object)
    housing[random.random(n_rows) < 0.05] = None
    salary = random.integers(10, 90, n_rows).astype(float)
    salary[random.random(n_rows) < 0.05] = np.nan
    return pd.DataFrame(
        {
            "age": random.integers(2, 6, n_rows) * 10,
            "salary": salary,
            "years": random.integers(0, 12, n_rows),
            "education": pd.Categorical(education, EDUCATION, ordered=True),
            "housing": pd.Series(housing, dtype=object),
            "sex": pd.Series(random.choice(["f", "m"], n_rows), dtype=object),
            "member": random.random(n_rows) < 0.5,
        }
    )


def score(frame: Any) -> np.ndarray:
    """The black box, which accepts missing cells."""
    education = frame["education"].astype(object).map(EDUCATION.index).astype(float)
    total = frame["salary"].fillna(30) / 100 + education / 10 + frame["years"] / 60
    return np.asarray(total + (frame["housing"] == "own") / 5, dtype=np.float64)


def score_nothing(frame: Any) -> np.ndarray:
    """A black box that never decides as desired."""
    return np.zeros(len(frame))


def demand(fulfilled: bool, check: str, expected: str, got: Any) -> None:
    """Raise an AssertionError that says what was checked, what it must be and what came."""
    if not fulfilled:
        raise AssertionError(f"{check}: expected {expected}, got {got}.")


class Case:
    """An object and what it is tried on; each method that starts with ``check_`` is a check."""

    def run(self) -> None:
        """Run all checks, in the order in which they are written."""
        for name in vars(type(self)):
            if name.startswith("check_"):
                getattr(self, name)()


def demand_itself(fitted: Any, blank: Any, what: str) -> None:
    """Raise unless ``fit`` returned the object itself."""
    same = fitted is blank
    demand(same, f"fit returns the {what} itself", "the same object", repr(fitted))


def pickled(fitted: Any, check: str) -> Any:
    """A copy that went through pickle."""
    try:
        return pickle.loads(pickle.dumps(fitted))
    except Exception as error:
        raise AssertionError(f"{check}: expected a copy, got {error!r}.") from error
