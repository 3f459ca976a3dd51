"""Weights of the Gower distance, from the user or from constraints, count in every search."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, ConstraintError, Gower, ParameterError
from mcce import constraints as c

CHANCE = np.random.default_rng(0)
TRAIN = pd.DataFrame({name: CHANCE.integers(0, 100, 400) for name in ("a", "b")})
PEOPLE = TRAIN[TRAIN.sum(axis=1) < 90].head(12)


def score(frame):
    return frame["a"] + frame["b"]


def costs(search, weights):
    explainer = MCCE(score, (100, 200), search=search, distance=Gower(weights), random_state=0)
    result = explainer.fit(TRAIN).explain(PEOPLE)
    gaps = (result.frame - result.factuals.to_numpy()[result.owner]).abs() / 99
    return result.measures["sparsity"], (gaps * weights).sum(axis=1)


@pytest.mark.parametrize("weights", [np.array([1.0, 50.0]), np.array([50.0, 1.0])])
def test_an_exact_answer_costs_no_more_than_one_of_draws(weights):
    n_exact, exact = costs("exact", weights)
    n_drawn, drawn = costs("paper", weights)

    assert (n_exact <= n_drawn).all()
    assert (exact[n_exact == n_drawn] <= drawn[n_exact == n_drawn] + 1e-12).all()


@pytest.mark.parametrize(
    "weights", [[1.0], [1.0, -1.0], [1.0, np.nan], [1.0, np.inf], ["a", "b"], [[1.0, 1.0]]]
)
def test_weights_that_do_not_fit_the_features_are_refused(weights):
    with pytest.raises(ParameterError, match="weights of Gower must be 2 finite numbers"):
        MCCE(score, (100, 200), distance=Gower(np.array(weights))).fit(TRAIN)


class Squared(Gower):
    name = "squared"

    def __call__(self, candidates):
        return super().__call__(candidates) ** 2


@pytest.mark.parametrize("distance", [Squared(), Gower(np.array([1.0, 2.0]))])
def test_a_weight_never_replaces_a_distance_of_ones_own(distance):
    explainer = MCCE(score, (100, 200), distance=distance, constraints=[c.weight("a", 2.0)])

    with pytest.raises(ConstraintError, match="plain Gower distance"):
        explainer.fit(TRAIN).explain(PEOPLE)
