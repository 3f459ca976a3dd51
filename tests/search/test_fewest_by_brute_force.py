"""The fewest changes that rules, relations and the required plausibility allow, by brute force.

All rows that a person's allowed values can make are listed, with what follows from them. The
answers must be the best of those that are valid, allowed and plausible.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, Interval
from mcce import constraints as c
from mcce.search.config import find_search
from searches import bounded, explain

SEARCHES = ["sparse", "near"]
MANY = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 40)]


@dataclass
class Case:
    """A small table, what scores it, and who asks under which rules."""

    train: pd.DataFrame
    points: object
    desired: Interval
    people: pd.DataFrame
    rules: list
    immutable: list

    @property
    def actions(self):
        free = set(self.train.columns) - {"total", *self.immutable}
        return [name for name in self.train if name in free]


def small_case(seed):
    """Three to five mutable features of two to four values that hang together."""
    chance = np.random.default_rng(seed)
    n_mutable, n_rows = int(chance.integers(3, 6)), int(chance.integers(100, 200))
    kind = chance.integers(0, 2, n_rows)
    train = pd.DataFrame({"group": np.array(["a", "b"])[chance.integers(0, 2, n_rows)]})
    for at in range(n_mutable):
        n_values = int(chance.integers(2, 5 if n_mutable < 5 else 4))
        drawn = chance.binomial(n_values - 1, np.where(kind, 0.8, 0.2))
        train[f"f{at}"] = (
            drawn if at < 2 or chance.random() < 0.5 else np.array(list("pqrs"))[drawn]
        )
    rules = []
    if seed % 3 == 0:
        train["total"] = train["f0"] + 2 * train["f1"]
        rules.append(c.derived("total", "f0 + 2 * f1"))
    if seed % 4 == 1:
        rules += [c.only_up("f0")]
    if seed % 4 == 2:
        rules += [c.together("f0", "f2")]
    if seed % 4 == 3:
        rules += [c.relation("few", "f0 + f1 <= 4")]
    weights, pairs = chance.normal(size=(6, 5)).round(2), chance.normal(size=(5, 5)).round(2)

    def points(frame):
        codes = np.array([codes_of(frame[f"f{at}"]) for at in range(n_mutable)])
        alone = sum(weights[at, codes[at]] for at in range(n_mutable))
        return alone + pairs[codes[0], codes[1]] + 0.3 * (frame["group"] == "a").to_numpy()

    desired = Interval(float(np.quantile(points(train), 0.7)), np.inf)
    people = train[~desired.contains(points(train))].drop_duplicates().head(8)
    return Case(train, points, desired, people, rules, ["group"])


def codes_of(column):
    return (
        column.to_numpy().astype(int)
        if column.dtype.kind == "i"
        else column.map(dict(zip("pqrs", range(4), strict=True))).to_numpy(int)
    )


def good_rows(case, explainer, person, search):
    """All rows that a person may have and that are valid, allowed and plausible."""
    values = [sorted(case.train[name].unique()) for name in case.actions]
    rows = pd.DataFrame(list(product(*values)), columns=case.actions)
    for name in case.immutable:
        rows[name] = person[name]
    if "total" in case.train:
        rows["total"] = rows["f0"] + 2 * rows["f1"]
        rows = rows[rows["total"].between(case.train["total"].min(), case.train["total"].max())]
    rows = rows[case.train.columns].astype(case.train.dtypes).reset_index(drop=True)
    own = pd.DataFrame([person]).astype(case.train.dtypes)
    keep = case.desired.contains(case.points(rows)) & obeys(case, rows, person)
    for found in explainer.fitted_.relations:
        excess, before = found.relation.excess(rows), found.relation.excess(own)[0]
        keep &= (excess == 0) | ((before > 0) & (excess <= before))
    strange, p_value = strangeness(explainer, rows)
    keep &= (p_value >= search.min_plausibility) | (strange <= strangeness(explainer, own)[0])
    return rows[keep].reset_index(drop=True)


def obeys(case, rows, person):
    keep = np.ones(len(rows), dtype=bool)
    for rule in case.rules:
        if rule.name.startswith("only_up"):
            keep &= (rows["f0"] >= person["f0"]).to_numpy()
        if rule.name.startswith("together"):
            keep &= ((rows["f0"] == person["f0"]) == (rows["f2"] == person["f2"])).to_numpy()
        if rule.name == "few":
            keep &= (rows["f0"] + rows["f1"] <= 4).to_numpy()
    return keep


def strangeness(explainer, rows):
    encoded = explainer.schema_.encode(rows)
    assessed = explainer.plausibility_.assess(encoded.descent, encoded.all_numbers)
    return assessed.strangeness, assessed.p_value


def ranked(case, explainer, person, name, search):
    """Costs of all good rows without a needless change, the best first."""
    rows = good_rows(case, explainer, person, search)
    changed = rows.to_numpy(object) != person.to_numpy(object)
    acts = changed[:, [rows.columns.get_loc(action) for action in case.actions]]
    cells = rows[case.actions].to_numpy(object)
    needless = [
        any(
            (acts[other] <= acts[at]).all()
            and acts[other].sum() < acts[at].sum()
            and (cells[other][acts[other]] == cells[at][acts[other]]).all()
            for other in range(len(rows))
        )
        for at in range(len(rows))
    ]
    encoded = explainer.schema_.encode(rows)
    knn, copy = explainer.plausibility_.knn_distance_(encoded.points)
    copy &= search.copies == "last"
    cost = knn if name == "sparse" else gower(case, rows, person)
    return sorted(
        (bool(copy[at]), int(changed[at].sum()), round(float(cost[at]), 9))
        for at in range(len(rows))
        if not needless[at]
    )


def gower(case, rows, person):
    total = np.zeros(len(rows))
    for name in rows:
        if rows[name].dtype.kind == "i":
            total += (rows[name] - person[name]).abs() / np.ptp(case.train[name].to_numpy())
        else:
            total += rows[name] != person[name]
    return total / rows.shape[1]


@pytest.mark.slow
@pytest.mark.parametrize("copies", ["allow", "last"])
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("seed", [*range(5), *MANY])
def test_no_plausible_row_has_fewer_changes(seed, name, copies):
    case, search = small_case(seed), bounded(name, copies=copies)
    model = MCCE(
        case.points,
        case.desired,
        search=search,
        constraints=case.rules,
        immutable=case.immutable,
        random_state=seed,
    ).fit(case.train)
    for n_counterfactuals in (1, 3):
        result = explain(model.set_params(n_counterfactuals=n_counterfactuals), case.people)
        for label, person in case.people.iterrows():
            best = ranked(case, model, person, name, find_search(search))[:n_counterfactuals]
            answers = answers_of(case, model, result, label, person, name, find_search(search))
            assert answers == best, (seed, name, label)


def answers_of(case, model, result, label, person, name, search):
    """Costs of a person's answers in their order, as by brute force."""
    if label not in result.frame.index.get_level_values(0):
        return []
    rows = result.frame.loc[label].astype(case.train.dtypes).reset_index(drop=True)
    changed = rows.to_numpy(object) != person.to_numpy(object)
    knn, copy = model.plausibility_.knn_distance_(model.schema_.encode(rows).points)
    cost = knn if name == "sparse" else gower(case, rows, person)
    copy &= search.copies == "last"
    return [
        (bool(copy[at]), int(changed[at].sum()), round(float(cost[at]), 9))
        for at in range(len(rows))
    ]
