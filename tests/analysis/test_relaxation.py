"""What stands in the way of an answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from bank import bank, score
from mcce import MCCE, NotFittedError
from mcce import constraints as c
from searches import bounded

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

TRAIN, PEOPLE = bank(400), bank(40, seed=1)


def explainer(constraints=None, **settings):
    made = MCCE(score, (0.8, 10), immutable=["sex"], constraints=constraints, random_state=3)
    return made.set_params(n_samples=100, **settings)


def test_each_constraint_that_alone_stands_in_the_way_is_named():
    fitted = explainer([c.frozen("salary"), c.max_changes(2), c.weight("age", 2)]).fit(TRAIN)
    result = fitted.explain(PEOPLE)

    table = fitted.relax(PEOPLE)

    assert set(table["factual"]) == set(result.missing.index)
    assert set(table["lifted"]) == {"frozen salary", "max_changes 2"}
    for name, left in {
        "frozen salary": [c.max_changes(2)],
        "max_changes 2": [c.frozen("salary")],
    }.items():
        without = explainer(left).fit(TRAIN).explain(PEOPLE)
        lines = table[table["lifted"] == name].set_index("factual")
        has_one = without.people.loc[lines.index, "status"] == "answered"
        assert lines["answered"].tolist() == has_one.tolist()
        best = without.measures.xs(1, level="rank")["sparsity"]
        gained = lines[lines["answered"]]
        assert gained["sparsity"].tolist() == best.loc[gained.index].tolist()


def test_bounds_and_the_ban_on_copies_can_be_lifted_too():
    search = bounded(max_sparsity=1, max_distance=0.02, copies="never")
    fitted = explainer(search=search).fit(TRAIN)

    table = fitted.relax(PEOPLE)

    assert set(table["lifted"]) == {"max_sparsity", "max_distance", "copies"}
    assert set(table["kind"]) == {"bound"}
    assert fitted.search == search


def test_an_immutable_feature_is_tried_if_the_training_data_are_given():
    fitted = MCCE(score, (0.8, 10), immutable=["salary", "education", "sex"], random_state=0)
    fitted.set_params(n_samples=60).fit(TRAIN)

    table = fitted.relax(PEOPLE, TRAIN)

    assert set(table["lifted"]) == {"salary", "education", "sex"}
    gained = table.groupby("lifted")["answered"].sum()
    assert gained["salary"] > gained["sex"]
    assert table[table["lifted"] == "sex"]["answered"].sum() == 0


def test_whom_it_helps_comes_in_the_order_of_people_what_helps_most_first():
    table = explainer([c.frozen("salary"), c.frozen("education")]).fit(TRAIN).relax(PEOPLE)

    assert table["factual"].is_monotonic_increasing
    first = table.groupby("factual")["answered"].first()
    assert (first == table.groupby("factual")["answered"].any()).all()


def test_nobody_without_an_answer_makes_an_empty_table():
    fitted = MCCE(score, (0.0, 10), n_samples=20, random_state=0).fit(TRAIN)

    table = fitted.relax(PEOPLE)

    assert table.empty
    assert list(table) == ["factual", "lifted", "kind", "answered", "sparsity", "gower"]


def test_labels_may_repeat_and_masks_fit_all_people():
    people = PEOPLE.set_axis(["a"] * len(PEOPLE))
    mask = np.arange(len(people)) % 2 == 0

    frozen = c.frozen("salary", "education", where=mask)
    table = explainer([c.max_changes(1)]).fit(TRAIN).relax(people, constraints=[frozen])

    assert set(table["factual"]) == {"a"}
    assert isinstance(table["sparsity"].dtype, pd.Int64Dtype)


def test_an_unfitted_explainer_cannot_say():
    with pytest.raises(NotFittedError):
        explainer().relax(PEOPLE)


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_an_empty_table_has_the_types_of_a_full_one(kind):
    frames = pytest.importorskip(kind)
    convert = frames.from_pandas if kind == "polars" else frames.Table.from_pandas
    train, people = convert(pd.DataFrame({"a": range(40)})), convert(pd.DataFrame({"a": [3, 4]}))
    easy = MCCE(lambda frame: np.asarray(frame["a"]), (0, 99), random_state=0).fit(train)
    hard = clone(easy).set_params(desired=(20, 99), constraints=[c.frozen("a")]).fit(train)

    empty, full = easy.relax(people), hard.relax(people)

    assert len(empty) == 0 < len(full)
    assert types(empty) == types(full)


def types(table):
    schema = table.schema
    pairs = (
        schema.items() if hasattr(schema, "items") else zip(schema.names, schema.types, strict=True)
    )
    return {name: str(kind).replace("large_", "") for name, kind in pairs}


def test_people_without_an_answer_get_all_their_draws_at_once():
    rules = [c.frozen("salary", "education")]
    fitted = explainer(rules, search=bounded(max_samples=1600)).fit(TRAIN)
    drawn, original = [], type(fitted.generator_).sample_within

    def sample(self, given, keys, draws, *arguments, **settings):
        drawn.append(draws.size)
        return original(self, given, keys, draws, *arguments, **settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(fitted.generator_), "sample_within", sample)
        fitted.relax(PEOPLE)

    assert set(drawn) == {100, 1600}


def test_searches_without_one_rule_score_only_rows_that_are_new():
    rows = []

    def count(frame):
        rows.append(len(frame))
        return score(frame)

    rules = [c.frozen("salary"), c.frozen("education"), c.max_changes(2)]
    fitted = explainer(rules, search="balanced").set_params(predictor=count).fit(TRAIN)
    rows.clear()
    table = fitted.relax(PEOPLE)
    remembered = sum(rows)
    rows.clear()
    fitted.set_params(memory=0.001)
    again = fitted.relax(PEOPLE)

    pd.testing.assert_frame_equal(table, again)
    assert remembered < sum(rows)


@pytest.mark.parametrize("search", ["paper", "balanced"])
def test_people_themselves_are_scored_once(search):
    own, rows = set(PEOPLE.itertuples(index=False, name=None)), []

    def count(frame):
        rows.extend(row for row in frame.itertuples(index=False, name=None) if row in own)
        return score(frame)

    rules = [c.frozen("salary"), c.max_changes(1)]
    fitted = explainer(rules, search=search).set_params(predictor=count).fit(TRAIN)
    rows.clear()
    fitted.relax(PEOPLE)

    assert len(rows) == len(set(rows))
