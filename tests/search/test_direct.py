"""An answer whenever there is one: few mutable features, implausible rows, and remedies."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from mcce import MCCE, McceWarning, ParameterError, Search
from mcce import constraints as c
from mcce.candidates import pair_rows
from mcce.datasets import load_german_credit
from mcce.postprocess.filters import IsPlausible
from searches import bounded, explain

WALKS = ["sparse", "near", "balanced", "plausible"]
MUTABLE = ["Duration", "CreditAmount", "Savings"]
RULES = [c.only_down("Duration"), c.only_down("CreditAmount")]


@pytest.fixture(scope="module")
def german():
    data = load_german_credit()
    texts = data.features.select_dtypes(exclude="number").columns
    train = data.features.astype(dict.fromkeys(texts, "category"))
    model = HistGradientBoostingClassifier(
        categorical_features="from_dtype", max_iter=25, random_state=0
    ).fit(train, data.target == data.desired)
    return train, model, train[model.predict_proba(train)[:, 1] < 0.6].head(25)


def grid_of(train, person):
    """The own value and 15 quantiles or all levels of each mutable feature, combined."""
    values = []
    for name in MUTABLE:
        tried = pd.Series(train[name].unique()).dropna().sort_values()
        if len(tried) > 15 and train[name].dtype.kind in "if":
            tried = np.unique(
                np.quantile(train[name], (np.arange(15) + 0.5) / 15, method="nearest")
            )
        values.append([person[name].iloc[0], *tried])
    rows = pd.DataFrame(list(product(*values)), columns=MUTABLE)
    rows = rows[(rows["Duration"] <= person["Duration"].iloc[0])]
    rows = rows[(rows["CreditAmount"] <= person["CreditAmount"].iloc[0])].reset_index(drop=True)
    grid = pd.concat([person] * len(rows), ignore_index=True)
    return grid.assign(**{name: rows[name].to_numpy() for name in MUTABLE}).astype(train.dtypes)


def is_solvable(explainer, train, person):
    grid = grid_of(train, person)
    rows = grid[explainer.decision_.score(grid).valid].reset_index(drop=True)
    if not len(rows):
        return False
    own = explainer.schema_.encode(person)
    draws = np.arange(len(rows))
    selected = pair_rows(own, np.array([0]), rows, len(rows)).select(np.zeros_like(draws), draws)
    check = IsPlausible(explainer.plausibility_, explainer.search.min_plausibility)
    return bool(check.keeps(selected).any())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["near", "plausible"])
def test_whoever_a_grid_of_allowed_values_would_answer_is_answered(german, name):
    train, model, people = german
    immutable = [column for column in train if column not in MUTABLE]
    explainer = MCCE(
        model,
        (0.6, 1.0),
        immutable=immutable,
        constraints=RULES,
        search=bounded(name, n_samples=20, max_samples=40),
        random_state=0,
    ).fit(train)

    result = explain(explainer, people)

    answered = (result.people["status"] == "answered").to_numpy()
    solvable = [is_solvable(explainer, train, people.iloc[[at]]) for at in range(len(people))]
    assert answered[solvable].all()
    assert sum(solvable) > 5


def narrow_case(n=200):
    """Only the pair a=3, b=7 is accepted; nobody has both."""
    chance = np.random.default_rng(0)
    train = pd.DataFrame({"a": chance.integers(0, 10, n), "b": chance.integers(0, 10, n)})
    train = train[(train["a"] != 3) | (train["b"] != 7)]
    train["c"] = (train["a"] > 8).astype(int)

    def points(frame):
        found = (frame["a"] == 3) & (frame["b"] == 7)
        return (found | (frame["c"] == 1)).astype(float)

    return train, points


def test_a_pair_of_changes_that_no_training_row_has_is_found():
    train, points = narrow_case()
    search = Search.preset("near", min_plausibility=0.0, n_samples=20, max_samples=40)
    model = MCCE(points, (0.5, 1.0), immutable=["c"], search=search, random_state=0).fit(train)
    people = train[(train["c"] == 0) & (train["a"] != 3) & (train["b"] != 7)].head(5)

    result = explain(model, people)

    assert result.frame[["a", "b"]].to_numpy().tolist() == [[3, 7]] * 5


def strange_case():
    """Numbers a and b that are equal in training; acceptance needs them apart."""
    chance = np.random.default_rng(1)
    a = chance.integers(0, 20, 400).astype(float)
    train = pd.DataFrame({"a": a, "b": a, "c": chance.integers(0, 2, 400)})

    def points(frame):
        apart = (frame["a"] >= 18) & (frame["b"] <= 2)
        return ((frame["c"] == 1) | apart).astype(float)

    return train, points, train[train["c"] == 0].head(6)


@pytest.mark.parametrize("name", WALKS)
def test_implausible_answers_come_only_if_they_are_allowed_and_are_marked(name):
    train, points, people = strange_case()
    settings = {"n_samples": 20, "max_samples": 20, "min_plausibility": 0.3}

    def answers(**more):
        search = bounded(name, **settings, **more)
        model = MCCE(points, (0.5, 1.0), immutable=["c"], search=search, random_state=0)
        return explain(model.fit(train), people)

    strict, lax = answers(), answers(allow_implausible=True)

    assert (lax.people["status"] == "answered").all()
    marked = lax.measures["plausible"].droplevel("rank")
    answered = strict.people["status"] == "answered"
    assert marked.loc[people.index].tolist() == answered.tolist()
    assert not answered.all()
    assert "plausible" not in strict.measures
    missing = strict.people[~answered]
    assert missing["reason"].str.contains("min_plausibility|allow_implausible").all()
    assert strict.nearest_misses.index.isin(missing.index).all()
    assert (points(strict.nearest_misses) == 1).all()


def test_a_reason_names_the_constraint_whose_lifting_gives_an_answer():
    chance = np.random.default_rng(2)
    train = pd.DataFrame({"a": chance.integers(0, 10, 200), "b": chance.integers(0, 10, 200)})
    rules = [c.only_down("a"), c.frozen("b", where="b < 0")]
    model = MCCE(
        lambda frame: frame["a"], (8, 9), search="near", constraints=rules, random_state=0
    ).fit(train)

    with pytest.warns(McceWarning, match="no counterfactual"):
        result = model.explain(train[train["a"] < 5].head(3))

    rule = rules[0].name
    expected = f"; lifting the constraint {rule!r} gives one"
    assert result.people["reason"].str.endswith(expected).all()


def test_a_reason_names_the_bound_whose_lifting_gives_an_answer():
    train = pd.DataFrame({"a": np.tile(np.arange(5), 20), "b": np.repeat(np.arange(5), 20)})
    search = Search.preset("near", max_sparsity=1, min_plausibility=0.0)
    model = MCCE(lambda f: f["a"] + f["b"], (8, 9), search=search, random_state=0).fit(train)

    with pytest.warns(McceWarning, match="no counterfactual"):
        result = model.explain(pd.DataFrame({"a": [0], "b": [0]}))

    assert result.people["reason"].str.endswith("; lifting max_sparsity=1 gives one").all()


def test_allow_implausible_must_be_true_or_false():
    with pytest.raises(ParameterError, match="allow_implausible must be True or False, got 'yes'"):
        Search(allow_implausible="yes")


def test_an_exact_search_out_of_time_returns_the_best_draws():
    chance = np.random.default_rng(3)
    train = pd.DataFrame(chance.integers(0, 6, (400, 4)), columns=list("abcd"))
    model = MCCE(lambda f: f.sum(axis=1), (14, 99), search="exact", random_state=0).fit(train)
    people = train[train.sum(axis=1) < 8].head(5)

    settled = []

    def stop(progress):
        # Draws settle everybody; then the listing of rows begins anew with nobody.
        settled.append(progress.n_settled)
        return max(settled) == len(people) and progress.n_settled == 0

    result = explain(model.set_params(max_seconds=1000), people, callback=stop)

    assert result.stopped
    assert (result.people["status"] == "answered").all()
    assert not result.measures["proven"].all()
