"""Margins, copies and tolerances: answers that stand a little inside, and are nobody's row."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from mcce import MCCE, Interval, ParameterError, TreeChain
from searches import altered, bounded, explain, slow, texts

# Everything can be drawn.
ANY_LEAF = TreeChain(min_samples_leaf=1000, condition_on_decision=False)
SEARCHES = ["paper", "sparse", "balanced", "plausible", "near", "nearest", "exact"]


@cache
def fitted(name):
    """A small table, so that copies are likely."""
    search = bounded(name, copies="never")
    model = MCCE(score, (0.8, np.inf), immutable=["sex"], search=search, random_state=0)
    return model.fit(bank(80, seed=1))


@pytest.mark.parametrize("name", [*SEARCHES[:3], *slow(*SEARCHES[3:])])
def test_answers_are_as_far_inside_as_the_margin_says(name):
    people = bank(50, seed=2)
    plain = explain(fitted(name), people)

    firm = explain(altered(fitted(name), search=bounded(name, margin=0.05)), people)

    assert (plain.measures["score"] < 0.85).any()
    assert len(firm.frame) > 0
    assert (score(firm.frame) >= 0.85).all()
    desired = [result.people["status"] == "already desired" for result in (plain, firm)]
    pd.testing.assert_series_equal(*desired)


@pytest.mark.parametrize("name", SEARCHES)
def test_copies_of_training_rows_are_never_returned_if_so_requested(name):
    result = explain(fitted(name), bank(50, seed=2))

    assert len(result.frame)
    assert not {*texts(bank(80, seed=1))} & {*texts(result.frame)}


@pytest.mark.parametrize("name", ["paper", "exact", "near"])
def test_copies_come_last_where_there_is_nothing_else(name):
    grid = pd.DataFrame({"a": [0, 0, 1, 1, 2], "b": [0, 1, 0, 1, 2]})
    train = pd.concat([grid] * 6, ignore_index=True)
    points = lambda frame: frame["a"] + frame["b"]

    def answers(copies):
        search = bounded(name, copies=copies)
        model = MCCE(points, (4, 9), search=search, random_state=0).fit(train)
        return explain(model, train.head(1)).frame.to_numpy().tolist()

    assert answers("never") == []
    assert answers("last") == answers("allow") == [[2, 2]]


@pytest.mark.parametrize("name", ["sparse", "near"])
def test_a_small_table_gives_a_copy_only_where_nothing_else_is_valid(name):
    grid = pd.DataFrame(np.indices((5, 5, 5)).reshape(3, -1).T, columns=["a", "b", "c"])
    known, other = [4, 0, 0], [0, 3, 3]  # one accepted row is known from training
    train = pd.concat([grid[(grid != other).any(axis=1)]] * 4, ignore_index=True)

    def points(frame):
        found = (frame == known).all(axis=1) | (frame == other).all(axis=1)
        return frame.sum(axis=1) + 100 * found

    def answers(copies):
        search = bounded(name, min_plausibility=0.0, copies=copies)
        model = MCCE(points, (50, 200), search=search, random_state=0).fit(train)
        return explain(model, grid.head(1)).frame.to_numpy().tolist()

    assert answers("last") == [other]
    assert answers("allow") == [known]


class Model:
    """Labels with probabilities in tenths."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, frame):
        p = np.asarray(frame["x"], dtype=float) / 10
        return np.column_stack([1 - p, p])

    def predict(self, frame):
        return self.classes_[(self.predict_proba(frame)[:, 1] >= 0.5).astype(int)]


def test_a_margin_counts_for_labels_with_probabilities():
    train = pd.DataFrame({"x": np.tile(np.arange(10), 5)})
    model = MCCE(Model(), ["yes"], search=bounded(margin=0.55), random_state=0).fit(train)

    assert set(explain(model, train[:3]).frame["x"]) == {8}


@pytest.mark.parametrize("name", ["paper", "near", "exact"])
def test_the_nearest_miss_is_the_one_that_is_nearest_to_what_the_margin_requires(name):
    grid = pd.DataFrame(np.indices((6, 6)).reshape(2, -1).T, columns=["a", "b"])
    search = bounded(name, margin=0.4)
    points = lambda frame: frame["a"] / 10 + frame["b"] / 100
    model = MCCE(points, Interval(0.25, np.inf), search=search, random_state=0)

    result = explain(model.fit(pd.concat([grid] * 4, ignore_index=True)), grid.head(1))

    assert result.people["status"].tolist() == ["no answer"]
    assert result.nearest_misses.to_numpy().tolist() == [[5, 5]]
    assert result.people["nearest_score"].tolist() == [0.55]


@pytest.mark.parametrize(
    ("predictor", "desired", "message"),
    [
        (lambda f: f["x"] / 9, Interval(0.5, 1.0), "margin must be at most 0.25, got 0.3"),
        (lambda f: f["x"] / 9, Interval(0.4, 0.9999999), "at most 0.29999995, got 0.3:"),
        (
            lambda f: np.where(f["x"] > 5, "yes", "no"),
            ["yes"],
            "margin must be 0 for labels without probabilities",
        ),
    ],
    ids=["interval", "digits", "labels"],
)
def test_a_margin_that_no_score_can_have_is_an_error(predictor, desired, message):
    train = pd.DataFrame({"x": np.arange(10)})
    model = MCCE(predictor, desired, search=bounded(margin=0.3), random_state=0).fit(train)

    with pytest.raises(ParameterError, match=message):
        model.explain(train)


@pytest.mark.parametrize(
    ("tolerance", "own", "sparsity"),
    [(0.0, 499.0, 2), (0.01, 499.0, 1), (0.5, 252.5, 1)],
    ids=["none", "small", "at the bound"],
)
def test_a_tolerance_hides_small_changes_from_the_count_only(tolerance, own, sparsity):
    train = pd.DataFrame({"a": [0.0, 1000.0] * 10, "b": [5.0, 500.0] * 10})
    search = bounded(tolerance=tolerance)
    explainer = MCCE(lambda f: f["a"], (900, 1000), search=search, random_state=0).fit(train)

    result = explainer.explain(pd.DataFrame({"a": [0.0], "b": [own]}))

    assert result.measures["sparsity"].tolist() == [sparsity]
    assert len(result.changes()) == 2


def test_a_candidate_at_the_bound_of_the_distance_is_returned():
    train = pd.DataFrame({"a": [0.0, 8.0] * 10, "b": [1.0] * 20})
    search = bounded(max_distance=0.5)
    explainer = MCCE(lambda f: f["a"], (8, 8), search=search, random_state=0).fit(train)

    assert explainer.explain(train.head(1)).measures["gower"].tolist() == [0.5]


def test_a_proof_that_copies_come_last_scores_no_row_twice():
    grid = pd.DataFrame({"a": [0, 0, 1, 1, 2], "b": [0, 1, 0, 1, 2]})
    scored = []

    def points(frame):
        scored.extend(texts(frame))
        return (frame["a"] + frame["b"]).astype(float)

    search = bounded("exact", copies="last")
    model = MCCE(points, (4, 9), search=search, generator=ANY_LEAF)
    model.fit(pd.concat([grid] * 6, ignore_index=True))
    scored.clear()

    result = explain(model, grid.head(1))

    assert set(texts(result.frame)) <= set(texts(grid))
    assert result.measures["proven"].all()
    assert len(result.frame)
    # The last call confirms the answers.
    searched = scored[: -len(result.frame)]
    assert len(searched) == len(set(searched)) == 1 + result.n_evaluated
