"""Margins and copies: answers that stand a little inside, and that are nobody's row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from mcce import MCCE, ExactSearch, Interval, NotFittedError, ParameterError, Search
from searches import bounded, explain

SEARCHES = ["paper", "sparse", "balanced", "plausible", "near", "fast", "exact"]
TRAIN = bank(300, seed=1)
PEOPLE = bank(60, seed=2)
DESIRED = Interval(0.8, np.inf)


def fitted(search, **settings):
    settings = {"immutable": ["sex"], "random_state": 0} | settings
    return MCCE(score, DESIRED, search=search, **settings).fit(TRAIN)


def texts(frame):
    return [tuple(map(str, row)) for row in frame.astype(object).itertuples(index=False)]


@pytest.mark.parametrize("name", SEARCHES)
def test_answers_are_as_far_inside_as_the_margin_says(name):
    result = explain(fitted(bounded(name, margin=0.05)), PEOPLE)

    assert len(result.frame) > 0
    assert (DESIRED.margin(result.measures["score"].to_numpy()) >= 0.05).all()


def test_people_with_the_desired_decision_keep_it_whatever_the_margin():
    plain = explain(fitted("paper"), PEOPLE).people["status"] == "already desired"
    firm = explain(fitted(bounded(margin=0.1)), PEOPLE).people["status"] == "already desired"

    assert plain.tolist() == firm.tolist()


def test_a_margin_counts_for_labels_with_probabilities():
    class Model:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, frame):
            p = np.asarray(frame["x"], dtype=float) / 10
            return np.column_stack([1 - p, p])

        def predict(self, frame):
            return self.classes_[(self.predict_proba(frame)[:, 1] >= 0.5).astype(int)]

    train = pd.DataFrame({"x": np.tile(np.arange(10), 5)})
    search = bounded(margin=0.55)

    result = explain(MCCE(Model(), ["yes"], search=search, random_state=0).fit(train), train[:3])

    assert set(result.frame["x"]) == {8}


@pytest.mark.parametrize("search", [Search, ExactSearch])
@pytest.mark.parametrize("margin", [-0.1, np.nan, np.inf, "wide", None])
def test_a_margin_must_be_a_number_from_0(search, margin):
    with pytest.raises(ParameterError, match="margin must be a finite number >= 0"):
        search(margin=margin)


@pytest.mark.parametrize(
    ("desired", "most"), [(Interval(0.5, 1.0), "0.25"), (Interval(0.2, 0.2), "0")]
)
def test_a_margin_that_no_score_can_have_is_an_error(desired, most):
    model = MCCE(lambda f: f["x"] / 9, desired, search=bounded(margin=0.3), random_state=0)
    train = pd.DataFrame({"x": np.arange(10)})
    explainer = model.fit(train.replace(0, 1.8))

    with pytest.raises(ParameterError, match=f"margin must be at most {most}, got 0.3"):
        explainer.explain(train)


def test_labels_without_probabilities_have_no_margin():
    model = MCCE(lambda f: np.where(f["x"] > 5, "yes", "no"), ["yes"], search=bounded(margin=0.1))
    train = pd.DataFrame({"x": np.arange(10)})

    with pytest.raises(ParameterError, match="margin must be 0 for labels without probabilities"):
        model.fit(train).explain(train)


@pytest.mark.parametrize("copies", ["first", None, True])
def test_copies_must_be_one_of_three_words(copies):
    with pytest.raises(ParameterError, match=r"copies must be one of \['last', 'never', 'allow'\]"):
        Search(copies=copies)


@pytest.mark.parametrize("name", SEARCHES)
def test_copies_are_never_returned_if_so_requested(name):
    train = TRAIN.head(60)
    known = set(texts(train))

    model = MCCE(score, DESIRED, search=bounded(name, copies="never"), immutable=["sex"])
    result = explain(model.set_params(random_state=0).fit(train), PEOPLE)

    assert not known.intersection(texts(result.frame))


@pytest.mark.parametrize("name", ["paper", "fast", "exact", "near"])
def test_copies_come_last_where_there_is_nothing_else(name):
    grid = pd.DataFrame({"a": [0, 0, 1, 1, 2], "b": [0, 1, 0, 1, 2]})
    train = pd.concat([grid] * 6, ignore_index=True)
    points = lambda frame: frame["a"] + frame["b"]

    def answers(copies):
        search = bounded(name, copies=copies)
        model = MCCE(points, (4, 9), search=search, random_state=0).fit(train)
        return explain(model, train.head(1))

    assert len(answers("never").frame) == 0
    assert answers("last").frame.to_numpy().tolist() == [[2, 2]]
    assert answers("allow").frame.to_numpy().tolist() == [[2, 2]]


@pytest.mark.parametrize("name", ["sparse", "near"])
def test_a_small_table_gives_a_copy_only_where_nothing_else_is_valid(name):
    grid = pd.DataFrame(np.indices((5, 5, 5)).reshape(3, -1).T, columns=["a", "b", "c"])
    # One accepted row is known from training; the surrogate expects the other to be refused.
    known, other = (np.flatnonzero((grid == row).all(axis=1))[0] for row in ([4, 0, 0], [0, 3, 3]))
    train = pd.concat([grid.drop(index=other)] * 4, ignore_index=True)

    def points(frame):
        number = 25 * frame["a"] + 5 * frame["b"] + frame["c"]
        return frame.sum(axis=1) + 100 * number.isin([known, other])

    search = bounded(name, min_plausibility=0.0)
    model = MCCE(points, (50, 200), search=search, random_state=0).fit(train)
    result = explain(model, grid.head(1))

    assert model.surrogate_.is_good
    assert result.frame.to_numpy().tolist() == [[0, 3, 3]]


def test_copies_can_be_allowed_after_they_came_last():
    train = pd.DataFrame({"x": np.tile(np.arange(4), 10), "y": np.repeat(np.arange(4), 10)})
    points = lambda frame: frame["x"] + frame["y"] / 10
    model = MCCE(points, (3, 9), search=bounded("near", copies="allow"), random_state=0).fit(train)

    result = explain(model, train.head(1))

    assert set(texts(result.frame)) <= set(texts(train))
    assert result.measures["sparsity"].tolist() == [1]


def test_a_search_that_needs_the_training_rows_after_fit_is_an_error():
    model = fitted("paper").set_params(search=bounded(copies="never"))

    with pytest.raises(NotFittedError, match="did not keep the training rows"):
        model.explain(PEOPLE)
