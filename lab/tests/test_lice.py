"""LiCE: its program against every row there is, its likelihood, and what it refuses."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from mcce import ParameterError, PredictorError
from mcce.testing import check_explainer
from mcce_lab.baselines import LiCE
from mcce_lab.experiments.predictors import Design, Network

JOBS = ["clerk", "farmer", "judge"]
DESIRED = (0.5, 1.0)


def clerks() -> pd.DataFrame:
    """Numbers and levels so few that every row can be written down; salaries follow ages."""
    chance = np.random.default_rng(0)
    age = chance.integers(0, 9, 400)
    return pd.DataFrame(
        {
            "age": age,
            "salary": np.clip(age + chance.integers(-1, 2, 400), 0, 8),
            "job": pd.Categorical(chance.choice(JOBS, 400)),
            "sex": pd.Categorical(chance.choice(["f", "m"], 400)),
        }
    )


def network(rows: pd.DataFrame) -> Network:
    """Eight rectified units of random weights, which accept about half of the rows."""
    design, chance = Design.learn(rows), np.random.default_rng(1)
    n_inputs = design(rows).shape[1]
    inner = chance.normal(size=(n_inputs, 8)), chance.normal(size=8)
    outputs = np.maximum(design(rows) @ inner[0] + inner[1], 0) @ (last := chance.normal(size=8))
    return Network.with_one_output(
        design, [inner, (last[:, None], np.array([-np.median(outputs)]))]
    )


def all_rows(rows: pd.DataFrame, sex: str) -> pd.DataFrame:
    """Every row of a sex."""
    cells = product(range(9), range(9), JOBS, [sex])
    return pd.DataFrame(cells, columns=rows.columns).astype(rows.dtypes)


def people(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[network(rows)(rows) < 0.5].drop_duplicates().head(12)


def distances(explainer: LiCE, person: pd.DataFrame, rows: pd.DataFrame) -> np.ndarray:
    """Of rows from a person: weighted differences, of levels half of each axis."""
    schema, space = explainer.training_.rows.schema, explainer.space_
    points, own = (space.encode(schema.encode(some)) for some in (rows, person))
    return np.abs(points - own) @ (explainer.weights_ * np.where(space.is_number, 1.0, 0.5))


def likelihood(explainer: LiCE, rows: pd.DataFrame) -> np.ndarray:
    """Of rows that are accepted."""
    codes = rows["job"].cat.codes, rows["sex"].cat.codes, np.ones(len(rows))
    return explainer.spn_.log_likelihood(
        np.column_stack([rows["age"] / 8, rows["salary"] / 8, *codes])
    )


@pytest.mark.parametrize("quantile", [0.0, 0.3])
def test_answers_are_the_nearest_rows_that_are_accepted_and_likely(quantile):
    rows = clerks()
    accepts = network(rows)
    explainer = LiCE(accepts, DESIRED, immutable=["sex"], quantile=quantile).fit(rows)
    result = explainer.explain(people(rows))

    assert len(result.frame) >= 10
    for label, person in people(rows).iterrows():
        candidates = all_rows(rows, person["sex"])
        candidates = candidates[accepts(candidates) >= 0.5]
        candidates = candidates[likelihood(explainer, candidates) >= explainer.least_]
        alone = rows.loc[[label]]
        best = distances(explainer, alone, candidates).min()
        if label in result.frame.index:
            answer = result.frame.loc[[label]]
            # The program knows a lower bound of the likelihood, the largest part of each sum.
            slack = 1e-3 * best if quantile == 0 else np.inf
            assert best - 1e-9 <= distances(explainer, alone, answer)[0] <= best + slack
            assert likelihood(explainer, answer)[0] >= explainer.least_ - 1e-6


def test_likelihoods_sum_to_one_and_know_which_columns_belong_together():
    rows = clerks()
    explainer = LiCE(network(rows), DESIRED, min_rows=50).fit(rows)
    chance = np.random.default_rng(2)
    everywhere = np.column_stack(
        [chance.random((200_000, 2)), chance.integers(0, [3, 2, 2], (200_000, 3))]
    )
    together, apart = np.array([[0.5, 0.5, 0, 0, 1], [0.05, 0.95, 0, 0, 1]])

    volume = np.exp(explainer.spn_.log_likelihood(everywhere)).mean() * 3 * 2 * 2
    assert volume == pytest.approx(1, abs=0.03)
    likely, unlikely = explainer.spn_.log_likelihood(np.stack([together, apart]))
    assert likely > unlikely + 1


class Straight:
    """The score of the checks as a probability, and as a network without hidden layers."""

    offers_gradients = True

    def __init__(self, predictor, threshold):
        self.predictor, self.threshold = predictor, threshold

    def __call__(self, rows):
        return self.predictor(rows) / 2

    def encode_inputs(self, rows):
        levels = ["school", "bachelor", "master"]
        education = rows["education"].astype(object).map(levels.index).astype(float)
        numbers = rows["salary"].fillna(30), education, rows["years"], rows["housing"] == "own"
        return np.column_stack(numbers).astype(np.float64) * self.predictor(rows).any()

    @property
    def layers(self):
        slopes = np.array([1 / 100, 1 / 10, 1 / 60, 1 / 5]) / 2
        shift = np.log(self.threshold / (1 - self.threshold)) - self.threshold
        return [(np.stack([0 * slopes, slopes], axis=1), np.array([0.0, shift]))]


def test_it_keeps_the_promises_of_every_explainer():
    def make(predictor, desired, immutable):
        least = desired[0] / 2
        return LiCE(Straight(predictor, least), (least, 1.0), immutable=immutable)

    check_explainer(make)


def test_a_network_without_layers_or_desired_labels_cannot_be_used():
    rows = clerks()
    with pytest.raises(PredictorError, match="LiCE needs a network that shows its layers"):
        LiCE(lambda frame: np.zeros(len(frame)), DESIRED).fit(rows)
    with pytest.raises(ParameterError, match="begin at 0 or end at 1"):
        LiCE(network(rows), (0.4, 0.6)).fit(rows)
    with pytest.raises(ParameterError, match="quantile"):
        LiCE(network(rows), DESIRED, quantile=2).fit(rows)


def test_low_scores_can_be_desired():
    rows = clerks()
    accepted = rows[network(rows)(rows) > 0.5].head(3)
    result = LiCE(network(rows), (0.0, 0.5)).fit(rows).explain(accepted)

    assert len(result.frame) == 3
    assert (network(rows)(result.frame) <= 0.5).all()
