"""A bank whose columns have public domains, for the tests of private models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mcce import MCCE, Domain, PrivateTrees

IMMUTABLE = ["age", "sex"]
DESIRED = (0.5, 2.0)


def domains() -> dict[str, Domain]:
    return {
        "age": Domain(low=18, high=90, step=1, bins=6),
        "sex": Domain(levels=["f", "m"]),
        "salary": Domain(low=0, high=120, step=0.5, bins=12, missing=True),
        "debt": Domain(low=0, high=200, atoms=[0], bins=10),
        "housing": Domain(levels=["boat", "own", "rent"], missing=True),
    }


def bank(n_rows: int = 600, seed: int = 0) -> pd.DataFrame:
    """Customers; every value is inside its domain, and hardly any on its grid."""
    random = np.random.default_rng(seed)
    salary = random.normal(50, 15, n_rows).clip(0, 120)
    salary[random.random(n_rows) < 0.05] = np.nan
    housing = random.choice(["own", "rent"], n_rows).astype(object)
    housing[random.random(n_rows) < 0.05] = None
    return pd.DataFrame(
        {
            "age": random.integers(20, 70, n_rows),
            "sex": pd.Series(random.choice(["f", "m"], n_rows), dtype=object),
            "salary": salary,
            "debt": np.where(random.random(n_rows) < 0.4, 0.0, random.gamma(2, 10, n_rows)),
            "housing": pd.Series(housing, dtype=object),
        }
    )


def score(frame: Any) -> np.ndarray:
    owns = np.asarray(frame["housing"] == "own", dtype=float)
    return np.asarray((frame["salary"].fillna(30) - frame["debt"] / 3) / 100 + owns / 10)


def private(**settings: Any) -> PrivateTrees:
    return PrivateTrees(**{"domains": domains(), "epsilon": 3.0} | settings)


def explainer(generator: PrivateTrees | None = None, **settings: Any) -> MCCE:
    given = {"immutable": IMMUTABLE, "random_state": 0, "n_samples": 200} | settings
    return MCCE(score, DESIRED, generator=private() if generator is None else generator, **given)


def declined(frame: pd.DataFrame, n: int = 20) -> pd.DataFrame:
    return frame[score(frame) < DESIRED[0]].head(n)
