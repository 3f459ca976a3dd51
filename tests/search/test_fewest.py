"""The fewest changes that there are, no needless change, and the same first answer as alone."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from mcce import MCCE, Interval, TreeChain
from mcce import constraints as c
from searches import bounded, explain

WALKS = ["sparse", "near", "balanced", "plausible"]
FREE = {"min_plausibility": 0.0}


def small_case(seed):
    """A table of few values, a black box that depends on all of them, and rejected people."""
    chance = np.random.default_rng(seed)
    n_values = chance.integers(2, 5, 4)
    train = pd.DataFrame({f"f{at}": chance.integers(0, n, 80) for at, n in enumerate(n_values)})
    weights = chance.normal(size=(4, 5)).round(2)
    pairs = chance.normal(size=(5, 5)).round(2)

    def points(frame):
        cells = frame.to_numpy(dtype=int)
        alone = sum(weights[at, cells[:, at]] for at in range(4))
        return alone + pairs[cells[:, 0], cells[:, 1]]

    desired = Interval(float(np.quantile(points(train), 0.75)), np.inf)
    people = train[~desired.contains(points(train))].drop_duplicates().head(12)
    return train, points, desired, people


def fewest_changes(train, points, desired, person, keeps=lambda rows: True):
    """The fewest changes of all rows made of training values that are valid, by brute force."""
    values = [sorted(train[name].unique()) for name in train]
    rows = pd.DataFrame(list(product(*values)), columns=train.columns)
    rows = rows[desired.contains(points(rows)) & keeps(rows)]
    changes = (rows.to_numpy() != person.to_numpy()).sum(axis=1)
    return changes.min() if len(rows) else None


@pytest.mark.parametrize("name", ["sparse", "near"])
@pytest.mark.parametrize("seed", range(12))
def test_no_row_has_fewer_changes(name, seed):
    train, points, desired, people = small_case(seed)
    search = bounded(name, copies="allow", **FREE)
    model = MCCE(points, desired, search=search, random_state=seed).fit(train)

    result = explain(model, people)

    fewest = [fewest_changes(train, points, desired, row) for _, row in people.iterrows()]
    assert result.measures["sparsity"].tolist() == fewest


@pytest.mark.parametrize("seed", range(6))
def test_no_allowed_row_has_fewer_changes_under_rules(seed):
    train, points, desired, people = small_case(seed)
    rules = [c.only_up("f0"), c.frozen("f1"), c.relation("small", "f2 + f3 <= 5")]
    search = bounded("near", copies="allow", **FREE)
    model = MCCE(points, desired, search=search, constraints=rules, random_state=0).fit(train)

    result = explain(model, people)

    sparsity = result.measures["sparsity"].droplevel("rank")
    for label, person in people.iterrows():

        def keeps(rows, person=person):
            kept = (rows["f0"] >= person["f0"]) & (rows["f1"] == person["f1"])
            return kept & (rows["f2"] + rows["f3"] <= 5)

        assert fewest_changes(train, points, desired, person, keeps) == sparsity.get(label)


@pytest.mark.parametrize("name", WALKS)
def test_undoing_one_or_two_changes_loses_the_decision(name):
    train, people = bank(400, seed=3, missing=False), bank(60, seed=4, missing=False)
    chain = TreeChain(min_samples_leaf=2)
    model = MCCE(score, (0.9, 9), search=bounded(name, **FREE), generator=chain, random_state=0)
    result = explain(model.set_params(n_counterfactuals=3).fit(train), people)

    for (label, rank), row in result.frame.iterrows():
        own, answer = people.loc[label], result.frame.loc[[(label, rank)]]
        changed = [column for column in people if row[column] != own[column]]
        for one, other in product(changed, changed):
            if len({one, other}) == len(changed):
                continue
            back = answer.copy()
            for column in {one, other}:
                back[column] = people.loc[[label], column].to_numpy()
            back = back.astype(people.dtypes)
            assert score(back)[0] < 0.9


@pytest.mark.parametrize("diversity", [None, 0.5])
@pytest.mark.parametrize("name", WALKS)
def test_the_first_of_several_answers_is_the_one_you_get_alone(name, diversity):
    train, people = bank(300, seed=5), bank(80, seed=6)
    model = MCCE(score, (0.85, 9), search=name, immutable=["sex"], random_state=0).fit(train)

    alone = explain(model, people).frame
    several = explain(model.set_params(n_counterfactuals=15, diversity=diversity), people).frame

    first = several[several.index.get_level_values("rank") == 1]
    pd.testing.assert_frame_equal(first, alone)


@pytest.mark.parametrize("name", WALKS)
def test_an_answer_does_not_depend_on_who_else_is_asked_about(name):
    train, points, desired, people = small_case(3)
    model = MCCE(points, desired, search=name, random_state=0).fit(train)

    together = explain(model, people).frame
    single = pd.concat([explain(model, people.iloc[[at]]).frame for at in range(len(people))])

    pd.testing.assert_frame_equal(together, single)
