"""What the exact search needs, and what is said if it does not get it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from forests import Halves
from mcce import MCCE, ExactSearch, Gower, ParameterError


def loans():
    """Twenty customers; who earns 7 or more gets the loan."""
    frame = pd.DataFrame({"age": [30, 40] * 10, "salary": np.arange(20) % 10})
    return frame, lambda rows: rows["salary"] / 10


class Far(Gower):
    name = "far"


class Other:
    name = "other"

    def fit(self, schema, rows, decision):
        return self

    def __call__(self, candidates):
        return np.zeros(candidates.shape)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"generator": Halves()},
            "the generator Halves does not declare the capability 'enumeration'",
        ),
        ({"diversity": 0.5, "n_counterfactuals": 2}, "diversity must be None, got 0.5"),
        ({"distance": Other()}, "distance must be 'gower', got 'other'"),
        ({"distance": Far()}, "distance must be 'gower', got 'far'"),
    ],
)
def test_what_cannot_be_proven_is_refused(settings, message):
    train, predictor = loans()
    explainer = MCCE(predictor, (0.7, 1), search="exact", **settings).fit(train)

    with pytest.raises(ParameterError, match=message):
        explainer.explain(train.iloc[[1]])


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_rows", 0), ("max_nodes", 1.5), ("n_samples", 0), ("max_samples", 3)],
)
def test_a_budget_that_cannot_be_is_refused(name, value):
    with pytest.raises(ParameterError, match=f"{name} must be"):
        ExactSearch(**{name: value})
