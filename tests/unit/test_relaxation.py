"""What stands in the way of an answer."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from bank import bank, score
from mcce import MCCE, NotFittedError, TreeChain
from mcce import constraints as c
from searches import bounded

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")


@cache
def train():
    return bank(400)


@cache
def people():
    return bank(40, seed=1)


def explainer(constraints=None, **settings):
    made = MCCE(score, (0.8, 10), immutable=["sex"], constraints=constraints, random_state=3)
    return made.set_params(**{"search": "paper", "n_samples": 100} | settings)


def test_each_constraint_that_alone_stands_in_the_way_is_named():
    fitted = explainer([c.frozen("salary"), c.max_changes(2), c.weight("age", 2)]).fit(train())
    result = fitted.explain(people())

    table = fitted.relax(people())

    assert set(table["factual"]) == set(result.missing.index)
    assert set(table["lifted"]) == {"frozen salary", "max_changes 2"}
    for name, left in {
        "frozen salary": [c.max_changes(2)],
        "max_changes 2": [c.frozen("salary")],
    }.items():
        without = explainer(left).fit(train()).explain(people())
        lines = table[table["lifted"] == name].set_index("factual")
        has_one = without.people.loc[lines.index, "status"] == "answered"
        assert lines["answered"].tolist() == has_one.tolist()
        best = without.measures.xs(1, level="rank")["sparsity"]
        gained = lines[lines["answered"]]
        assert gained["sparsity"].tolist() == best.loc[gained.index].tolist()


def test_only_what_is_named_is_lifted():
    fitted = explainer([c.frozen("salary"), c.max_changes(2)]).fit(train())

    table = fitted.relax(people(), only=["max_changes 2"])

    whole = fitted.relax(people())
    expected = whole[whole["lifted"] == "max_changes 2"].reset_index(drop=True)
    pd.testing.assert_frame_equal(table, expected)


def test_bounds_and_the_ban_on_copies_can_be_lifted_too():
    search = bounded(max_sparsity=1, max_distance=0.02, copies="never")
    fitted = explainer(search=search).fit(train())

    table = fitted.relax(people())

    assert set(table["lifted"]) == {"max_sparsity", "max_distance", "copies"}
    assert set(table["kind"]) == {"bound"}
    assert fitted.search == search


def test_required_plausibility_is_a_bound_that_can_be_lifted():
    search = bounded("sparse", min_plausibility=0.95)
    fitted = explainer([c.frozen("salary"), c.max_changes(1)], search=search).fit(train())

    table = fitted.relax(bank(40, seed=4))

    gained = table[table["answered"]].groupby("lifted").size()
    assert set(table["lifted"]) == {"min_plausibility", "frozen salary", "max_changes 1"}
    assert gained["min_plausibility"] > 0


def test_an_immutable_feature_is_tried_if_the_training_data_are_given():
    fitted = MCCE(score, (0.8, 10), immutable=["salary", "education", "sex"], search="paper")
    fitted.set_params(n_samples=60, random_state=0).fit(train())

    table = fitted.relax(people(), train())

    assert set(table["lifted"]) == {"salary", "education", "sex"}
    gained = table.groupby("lifted")["answered"].sum()
    assert gained["salary"] > gained["sex"]
    assert table[table["lifted"] == "sex"]["answered"].sum() == 0


def test_whom_it_helps_comes_in_the_order_of_people_what_helps_most_first():
    table = explainer([c.frozen("salary"), c.frozen("education")]).fit(train()).relax(people())

    assert table["factual"].is_monotonic_increasing
    first = table.groupby("factual")["answered"].first()
    assert (first == table.groupby("factual")["answered"].any()).all()


def test_nobody_without_an_answer_makes_an_empty_table():
    fitted = MCCE(score, (0.0, 10), n_samples=20, random_state=0).fit(train())

    table = fitted.relax(people())

    assert table.empty
    assert list(table) == ["factual", "lifted", "kind", "answered", "sparsity", "gower"]


def test_labels_may_repeat_and_masks_fit_all_people():
    repeated = people().set_axis(["a"] * len(people()))
    mask = np.arange(len(repeated)) % 2 == 0

    frozen = c.frozen("salary", "education", where=mask)
    table = explainer([c.max_changes(1)]).fit(train()).relax(repeated, constraints=[frozen])

    assert set(table["factual"]) == {"a"}
    assert isinstance(table["sparsity"].dtype, pd.Int64Dtype)


def test_an_unfitted_explainer_cannot_say():
    with pytest.raises(NotFittedError):
        explainer().relax(people())


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_an_empty_table_has_the_types_of_a_full_one(kind):
    frames = pytest.importorskip(kind)
    convert = frames.from_pandas if kind == "polars" else frames.Table.from_pandas
    table, asking = convert(pd.DataFrame({"a": range(40)})), convert(pd.DataFrame({"a": [3, 4]}))
    easy = MCCE(lambda frame: np.asarray(frame["a"]), (0, 99), random_state=0).fit(table)
    hard = clone(easy).set_params(desired=(20, 99), constraints=[c.frozen("a")]).fit(table)

    empty, full = easy.relax(asking), hard.relax(asking)

    assert len(empty) == 0 < len(full)
    assert types(empty) == types(full)


def types(table):
    schema = table.schema
    pairs = (
        schema.items() if hasattr(schema, "items") else zip(schema.names, schema.types, strict=True)
    )
    return {name: str(kind).replace("large_", "") for name, kind in pairs}


def test_people_themselves_are_scored_once():
    own, rows = set(people().itertuples(index=False, name=None)), []

    def count(frame):
        rows.extend(row for row in frame.itertuples(index=False, name=None) if row in own)
        return score(frame)

    rules = [c.frozen("salary"), c.max_changes(1)]
    fitted = explainer(rules).set_params(predictor=count).fit(train())
    rows.clear()
    fitted.relax(people())

    assert len(rows) == len(set(rows))


@pytest.mark.parametrize("search", ["paper", "near"])
def test_what_helps_one_person_is_not_said_of_another_who_is_scored_otherwise(search):
    chance = np.random.default_rng(0)
    table = pd.DataFrame(
        {"salary": chance.integers(10, 100, 400), "sex": chance.choice(["f", "m"], 400)}
    )
    points = lambda frame: frame["salary"] / 100 + 0.3 * (frame["sex"] == "f")
    # One leaf, so that both draw the same salaries.
    leaf = TreeChain(min_samples_leaf=400, condition_on_decision=False)
    rules = [c.change("salary", at_most=5)]
    made = MCCE(points, (0.8, 9), immutable=["sex"], constraints=rules, search=search)
    fitted = made.set_params(random_state=0, generator=leaf).fit(table)

    for sexes in (["f", "m"], ["m", "f"]):
        asking = pd.DataFrame({"salary": [20, 20], "sex": sexes})
        together = fitted.relax(asking)
        alone = [fitted.relax(asking.iloc[[at]]) for at in range(2)]

        assert together.loc[together["lifted"] == rules[0].name, "answered"].all()
        pd.testing.assert_frame_equal(together, pd.concat(alone, ignore_index=True))
