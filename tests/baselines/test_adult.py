"""Acceptance bands on Adult with a logistic regression, for the first 1000 declined people.

The means come from another logistic regression without a penalty, so they are met roughly.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from mcce.baselines import FACE, NICE, GrowingSpheres, NearestUnlike
from mcce.datasets import load
from row_methods import explain

pytestmark = pytest.mark.slow


class Adult:
    """The data, a black box and the people to explain."""

    def __init__(self, folder):
        data = load("adult", form="paper", folder=folder)
        self.features, self.immutable = data.features, data.immutable
        encoded = self.numbers(self.features)
        self.model = make_pipeline(MinMaxScaler(), LogisticRegression(C=1e6, max_iter=5000))
        self.model.fit(encoded, np.asarray(data.target == data.desired))
        self.people = self.features[self.score(self.features) < 0.5].head(1000)

    @staticmethod
    def numbers(frame):
        """Levels as their codes: all of them are binary."""
        columns = {
            name: column.cat.codes if hasattr(column, "cat") else column
            for name, column in frame.items()
        }
        return np.column_stack(list(columns.values())).astype(float)

    def score(self, frame):
        return self.model.predict_proba(self.numbers(frame))[:, 1]

    def explain(self, kind, immutable=None, people=None, **settings):
        fixed = self.immutable if immutable is None else immutable
        method = kind(self.score, (0.5, 1.0), immutable=fixed, **settings).fit(self.features)
        return explain(method, self.people if people is None else people)


@pytest.fixture(scope="module")
def adult(data_folder):
    return Adult(data_folder)


@pytest.fixture(scope="module")
def nearest(adult):
    return adult.explain(NearestUnlike)


def means(result):
    return result.measures[["sparsity", "l1"]].mean().tolist()


def assert_valid_and_unchanged(adult, result):
    own = adult.people.iloc[result.owner]
    assert (adult.score(result.frame) >= 0.5).all()
    for name in adult.immutable:
        assert (result.frame[name].to_numpy() == own[name].to_numpy()).all()


def test_the_nearest_unlike_row_is_near_and_found_for_nine_in_ten(adult, nearest):
    free = adult.explain(NearestUnlike, immutable=[])

    assert_valid_and_unchanged(adult, nearest)
    assert 900 <= len(nearest.frame) <= 960
    assert means(nearest) == pytest.approx([3.70, 0.95], rel=0.05)
    assert len(free.frame) == 1000
    assert means(free) == pytest.approx([3.78, 0.34], rel=0.2)


def test_face_answers_the_same_people_a_little_farther_away(adult, nearest):
    result = adult.explain(FACE)

    assert_valid_and_unchanged(adult, result)
    assert means(result) == pytest.approx([3.80, 1.00], rel=0.1)
    assert result.owner.tolist() == nearest.owner.tolist()
    near = nearest.measures["l1"].to_numpy()
    assert (result.measures["l1"].to_numpy() >= near - 1e-9).all()


@pytest.mark.parametrize("reward", ["sparsity", "proximity"])
def test_nice_changes_no_more_than_its_neighbour(adult, nearest, reward):
    result = adult.explain(NICE, reward=reward)

    assert_valid_and_unchanged(adult, result)
    assert result.owner.tolist() == nearest.owner.tolist()
    assert (result.measures["sparsity"].to_numpy() <= nearest.measures["sparsity"]).all()
    assert means(result)[0] < 0.7 * means(nearest)[0]


def test_growing_spheres_answers_all_who_have_numbers_with_few_changes(adult):
    result = adult.explain(GrowingSpheres, people=adult.people.head(30), n_samples=200)

    assert_valid_and_unchanged(adult, result)
    assert len(result.frame) == 30
    assert means(result)[0] < 2.5
