"""The fewest changes that rules and the required plausibility allow, by brute force.

All rows that a person's allowed values can make are listed, with what follows from them. The
answers must be the best of those that are valid, allowed and plausible.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import pytest

from every_row import changed, distances, every_row, is_needless
from mcce import MCCE, Interval
from mcce import constraints as c
from searches import altered, bounded, explain, texts

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 13))]


@dataclass
class Case:
    """A small table, what scores it, and who asks under which rules."""

    train: pd.DataFrame
    points: object
    desired: Interval
    people: pd.DataFrame
    rules: list
    keeps: object

    @property
    def actions(self):
        return [name for name in self.train if name.startswith("f")]


def small_case(seed):
    """Three to five mutable features of two to four values that hang together."""
    chance = np.random.default_rng(seed)
    n_mutable, n_rows = int(chance.integers(3, 6)), int(chance.integers(100, 200))
    kind = chance.integers(0, 2, n_rows)
    train = pd.DataFrame({"group": np.array(["a", "b"])[chance.integers(0, 2, n_rows)]})
    for at in range(n_mutable):
        n_values = int(chance.integers(2, 5 if n_mutable < 5 else 4))
        drawn = chance.binomial(n_values - 1, np.where(kind, 0.8, 0.2))
        words = at > 1 and chance.random() < 0.5
        train[f"f{at}"] = np.array(list("pqrs"))[drawn] if words else drawn
    rules, keeps = RULES[seed % 4]
    if seed % 3 == 0:
        train["total"] = train["f0"] + 2 * train["f1"]
        rules = [*rules, c.derived("total", "f0 + 2 * f1")]
    weights, pairs = chance.normal(size=(6, 5)).round(2), chance.normal(size=(5, 5)).round(2)

    def points(frame):
        codes = [codes_of(frame[f"f{at}"]) for at in range(n_mutable)]
        alone = sum(weights[at, codes[at]] for at in range(n_mutable))
        return alone + pairs[codes[0], codes[1]] + 0.3 * (frame["group"] == "a").to_numpy()

    desired = Interval(float(np.quantile(points(train), 0.7)), np.inf)
    people = train[~desired.contains(points(train))].drop_duplicates().head(10)
    return Case(train, points, desired, people, rules, keeps)


RULES = [
    ([], lambda rows, own: np.ones(len(rows), dtype=bool)),
    ([c.only_up("f0")], lambda rows, own: rows["f0"] >= own["f0"]),
    (
        [c.together("f0", "f2")],
        lambda rows, own: (rows["f0"] == own["f0"]) == (rows["f2"] == own["f2"]),
    ),
    ([c.relation("few", "f0 + f1 <= 4")], lambda rows, own: rows["f0"] + rows["f1"] <= 4),
]


def codes_of(column):
    if column.dtype.kind == "i":
        return column.to_numpy()
    return column.map(dict(zip("pqrs", range(4), strict=True))).to_numpy(int)


def good_rows(case, explainer, person, least):
    """All rows that a person may have and that are valid, allowed and plausible."""
    rows = every_row(case.train, person, case.actions)
    if "total" in case.train:
        rows["total"] = rows["f0"] + 2 * rows["f1"]
        rows = rows[rows["total"].between(case.train["total"].min(), case.train["total"].max())]
        rows = rows.reset_index(drop=True)
    allowed = np.asarray(case.keeps(rows, person.iloc[0]), dtype=bool)
    keep = case.desired.contains(case.points(rows)) & allowed
    keep &= (explainer.plausibility(rows)["plausibility"] >= least).to_numpy()
    rows = rows[keep].reset_index(drop=True)
    return rows[~is_needless(rows, person, case.actions)]


def costs(case, rows, person, copies):
    """Whether a row is a copy, where that counts, its changes and its distance."""
    known = {*texts(case.train)} if copies == "last" else set()
    return list(
        zip(
            [row in known for row in texts(rows)],
            changed(rows, person).sum(axis=1).tolist(),
            distances(case.train, rows, person).round(9).tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("name", ["sparse", "near"])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_plausible_row_has_fewer_or_smaller_changes(seed, name):
    case, copies = small_case(seed), ["allow", "last"][seed // 2 % 2]
    search = bounded(name, copies=copies)
    model = MCCE(case.points, case.desired, search=search, immutable=["group"], random_state=seed)
    model.set_params(constraints=case.rules, ignore_relations=True).fit(case.train)
    # Whoever is stranger than required may stay so; that is no part of this oracle.
    usual = model.plausibility(case.people)["plausibility"] >= search.min_plausibility
    people = case.people[usual]
    assert len(people)
    n_costs = 2 if name == "sparse" else 3  # beyond the fewest changes, "sparse" has own tastes

    for n_counterfactuals in (1, 3):
        result = explain(altered(model, n_counterfactuals=n_counterfactuals), people)
        for at in range(len(people)):
            person = people.iloc[[at]]
            rows = good_rows(case, model, person, search.min_plausibility)
            possible = sorted(cost[:n_costs] for cost in costs(case, rows, person, copies))
            theirs = result.frame[result.owner == at]
            answers = [cost[:n_costs] for cost in costs(case, theirs, person, copies)]
            # Further answers ask for something else, so they are not simply the next best.
            assert answers[:1] == possible[:1]
            assert set(answers) <= set(possible)


@cache
def customers(n, seed):
    chance = np.random.default_rng(seed)
    plan = chance.choice(["basic", "plus", "max"], n)
    frame = pd.DataFrame(
        {
            "plan": plan,
            "device": np.where(plan == "basic", "none", chance.choice(["phone", "tablet"], n)),
            "months": chance.integers(1, 40, n),
            "price": chance.integers(10, 100, n),
            "visits": chance.poisson(3, n),
            "age": chance.integers(20, 80, n),
        }
    )
    return frame.assign(total=frame["months"] * frame["price"])


def worth(frame):
    value = frame["total"] / 2000 + (frame["plan"] == "max") + (frame["device"] == "phone") * 0.7
    return np.asarray(value + frame["visits"] / 6 - frame["price"] / 200, dtype=float)


@pytest.mark.parametrize("search", ["near", "balanced"])
def test_no_action_can_be_undone_with_what_follows_and_what_goes_with_it(search):
    rules = [
        c.derived("total", "months * price"),
        c.together("plan", "device"),
        c.relation("affordable", "total <= 4000"),
    ]
    model = MCCE(worth, (2.2, 99), search=search, immutable=["age"], constraints=rules)
    model.set_params(n_counterfactuals=3, random_state=0).fit(customers(400, 0))
    least = bounded(search).min_plausibility
    people = customers(60, 1)
    people = people[(worth(people) < 2.2) & (model.plausibility(people)["plausibility"] >= least)]

    result = explain(model, people.head(12))

    assert len(result.frame) > 12
    actions = ["plan", "device", "months", "price", "visits"]
    undone = []
    for (label, _), row in result.frame.iterrows():
        own = people.loc[label]
        for unit in (["plan", "device"], ["months"], ["price"], ["visits"]):
            back = row.copy()
            back[unit] = own[unit]
            back["total"] = back["months"] * back["price"]
            if not back[actions].equals(row[actions]) and not back[actions].equals(own[actions]):
                undone.append(back)
    rows = pd.DataFrame(undone).astype(people.dtypes)
    good = (worth(rows) >= 2.2) & (rows["total"] <= 4000).to_numpy()
    good &= (model.plausibility(rows)["plausibility"] >= least).to_numpy()
    assert not good.any()
