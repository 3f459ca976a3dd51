"""Gower's distance and distances of users, as an explainer measures them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, Gower, ParameterError
from searches import bounded

TRAIN = pd.DataFrame({"age": [0, 1] * 20, "salary": np.arange(40) + 40})


def test_two_missing_cells_are_no_distance_apart():
    t = pd.DataFrame({"h": [np.nan, np.nan, 1.0, 2.0] * 10, "a": [0.0, 8.0] * 20})
    explainer = MCCE(lambda f: f["a"], (8, 8), random_state=0).fit(t)
    r = explainer.explain(pd.DataFrame({"h": [np.nan], "a": [0.0]}))
    assert r.measures[["sparsity", "gower"]].to_numpy().tolist() == [[1, 0.5]]


def test_l1_is_gower_times_all_features_not_the_mutable_ones():
    explainer = MCCE(lambda f: f["salary"], (60, 100), immutable=["age"], random_state=0).fit(TRAIN)
    measures = explainer.explain(TRAIN.head(2)).measures
    assert (measures["l1"] == 2 * measures["gower"]).all()


@pytest.mark.parametrize(
    ("train", "person", "gower"),
    [([0.0, 1e-300], 1e10, np.inf), ([-4e307, 4e307], 1.7e308, (1.3e308 / 8e307 + 1) / 2)],
)
def test_a_distance_too_large_for_a_float_is_infinite_not_a_warning(train, person, gower):
    table = pd.DataFrame({"e": train * 6, "level": [0, 1] * 6})
    explainer = MCCE(lambda f: f["level"], (1, 1), random_state=0).fit(table)

    result = explainer.explain(pd.DataFrame({"e": [person], "level": [0]}))

    assert result.measures["gower"].tolist() == [gower]


def test_a_subclass_of_gower_is_called():
    class Far(Gower):
        name = "far"

        def __call__(self, candidates):
            return 100.0 - super().__call__(candidates)

    near = MCCE(lambda f: f["salary"], (60, 100), immutable=["age"], random_state=0)
    far = MCCE(lambda f: f["salary"], (60, 100), immutable=["age"], random_state=0, distance=Far())
    people = TRAIN.head(1)
    assert (
        far.fit(TRAIN).explain(people).frame["salary"].item()
        > near.fit(TRAIN).explain(people).frame["salary"].item()
    )


class SquaredSalary:
    """The square of the change in salary."""

    name = "squared"

    def fit(self, schema, rows, decision):
        return self

    def __call__(self, candidates):
        block = candidates.comparison
        return (block.numbers[0][block.codes[0][block.group]] - block.own_numbers[0][:, None]) ** 2


def test_another_distance_ranks_and_bounds_but_gower_is_still_measured():
    explainer = MCCE(
        lambda frame: frame["salary"],
        (60, 100),
        immutable=["age"],
        distance=SquaredSalary(),
        search=bounded(max_distance=400.0),
        random_state=0,
    ).fit(TRAIN)

    result = explainer.explain(pd.DataFrame({"age": [0, 1], "salary": [41, 50]}))

    assert result.frame["salary"].tolist() == [60, 61]
    assert result.measures["gower"].tolist() == [19 / 39 / 2, 11 / 39 / 2]
    assert result.measures["squared"].tolist() == [19.0**2, 11.0**2]


def test_a_distance_may_not_take_the_name_of_another_measure():
    distance = SquaredSalary()
    distance.name = "score"

    with pytest.raises(ParameterError, match=r"string other than \['score'.*got 'score'"):
        MCCE(lambda frame: frame["salary"], (60, 100), distance=distance).fit(TRAIN)
