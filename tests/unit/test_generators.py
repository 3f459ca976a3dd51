"""Chains of trees and forests: proper distributions, their order, their parameters."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from mcce import MCCE, ForestChain, InferenceTreeChain, ParameterError, Schema, TreeChain, load
from mcce.constraints import only_up
from mcce.datasets import load_german_credit
from mcce.protocols import DrawRequest
from searches import explain
from tables import cases

PARTS = "feature", "cut", "left", "right", "start", "count", "sets", "values"


def chain_of(frame, decision, immutable=(), generator=TreeChain, fit=(), **settings):
    rows = Schema.learn_rows(frame, immutable=list(immutable))
    return generator(**settings).fit(rows, np.asarray(decision), **dict(fit)), rows


def same_trees(one, other):
    return all(
        np.array_equal(getattr(one.trees_, name), getattr(other.trees_, name)) for name in PARTS
    )


@pytest.fixture(scope="module")
def german():
    rows = Schema.learn_rows(load_german_credit().features, immutable=["Age", "Sex", "Purpose"])
    return rows, rows.codes[2] % 3 > 0


# ---------------------------------------------------------------------------------------------
# Likelihoods and decisions.


@pytest.mark.parametrize(
    "generator",
    [
        TreeChain(min_samples_leaf=2),
        ForestChain(n_trees=3),
        ForestChain(n_trees=3, sampling="pool"),
        InferenceTreeChain(min_criterion=0.2, min_samples_leaf=2),
    ],
    ids=["trees", "forest", "pool", "ctree"],
)
@settings(max_examples=15)
@given(cases(max_rows=25, max_columns=3))
def test_the_likelihoods_of_all_rows_that_can_be_made_add_up_to_one(generator, case):
    schema = Schema.learn(case.train, immutable=list(case.immutable))
    mutable = [schema.features[position] for position in schema.mutable]
    grid = list(itertools.product(*(range(feature.n_codes) for feature in mutable)))
    table = pd.concat([case.people.iloc[[0]]] * len(grid), ignore_index=True)
    for feature, codes in zip(mutable, zip(*grid, strict=True), strict=True):
        table[feature.name] = feature.table.take(list(codes)).reset_index(drop=True)

    chain = generator.fit(schema.encode(case.train), np.asarray(case.score(case.train) > 0.5))

    assert np.exp(chain.log_likelihood(schema.encode(table))).sum() == pytest.approx(1.0)


def test_a_row_with_an_unseen_value_has_likelihood_zero(bank):
    chain, rows = chain_of(bank, bank["salary"] > 60_000, ["age"])
    odd = bank.head(1).assign(salary=1)

    assert chain.log_likelihood(rows.schema.encode(odd)).tolist() == [-np.inf]
    assert np.isfinite(chain.log_likelihood(rows)[bank["salary"] > 60_000]).all()


def test_both_decisions_can_be_sampled_if_both_were_grown(bank):
    decision = (bank["salary"] > 60_000).to_numpy()
    chain, rows = chain_of(bank, decision, ["age"])
    both, _ = chain_of(bank, decision, ["age"], decisions=(False, True))
    plain = DrawRequest(rows.tree_codes, np.arange(len(bank), dtype=np.uint64), np.arange(100))
    wanted = replace(plain, is_desired=decision)

    drawn, usual = both.sample(wanted).codes, both.sample(plain).codes

    salary = rows.schema.features[2].numbers[drawn[1]]
    assert (salary[decision] > 60_000).all()
    assert (salary[~decision] <= 60_000).all()
    assert np.array_equal(drawn[:, decision], usual[:, decision])
    assert np.array_equal(usual, chain.sample(plain).codes)
    assert np.array_equal(chain.log_likelihood(rows), both.log_likelihood(rows))
    assert np.isfinite(both.log_likelihood(rows, decision=False)[~decision]).all()
    with pytest.raises(ParameterError, match=r"decisions=\(False, True\)"):
        chain.log_likelihood(rows, decision=False)
    with pytest.raises(ParameterError, match=r"decisions=\(False, True\)"):
        chain.sample(wanted)


def test_leaving_the_decision_out_leaves_it_out(bank):
    decision = (bank["salary"] > 60_000).to_numpy()

    chain, rows = chain_of(bank, decision, ["age"], condition_on_decision=False)
    other, _ = chain_of(bank, ~decision, ["age"], condition_on_decision=False)

    assert not (chain.trees_.feature == len(rows.schema.features)).any()
    assert np.array_equal(chain.trees_.values, other.trees_.values)


# ---------------------------------------------------------------------------------------------
# The visit order.


def names_visited(chain, rows):
    return [rows.schema.names[position] for position in chain.visit_order_]


def test_the_visit_order_is_that_of_the_data_or_as_named(bank):
    by_name = ["salary", "sex", "defaulted_last_year"]

    plain = chain_of(bank, bank["salary"] > 60_000, ["age"])
    named = chain_of(bank, bank["salary"] > 60_000, ["age"], visit_order=by_name)

    assert names_visited(*plain) == ["sex", "salary", "defaulted_last_year"]
    assert names_visited(*named) == by_name
    for order in (
        "random",
        5,
        [["sex"], "salary", "defaulted_last_year"],
        ["salary"],
        ["salary", "sex", "age"],
        ["sex", "sex", "salary"],
    ):
        with pytest.raises(ParameterError, match="visit_order must"):
            chain_of(bank, bank["salary"] > 0, ["age"], visit_order=order)


def test_the_most_associated_feature_is_visited_first():
    """Associations are 1 for copies of any kind, and less the more is mixed in."""
    chance = np.random.default_rng(0)
    a = chance.normal(size=500)
    b = a + chance.normal(size=500)
    level = np.where(a > 0, "high", "low")
    mixed = np.where(chance.random(500) < 0.9, chance.permutation(level), level)
    correlated = pd.DataFrame({"a": a, "c": b + 3 * chance.normal(size=500), "b": b})
    other = pd.DataFrame({"level": level, "mixed": mixed, "a": a, "copy": 1.0 * (a > 0)})

    for frame, expected in ((correlated, ["b", "c"]), (other, ["copy", "a", "mixed"])):
        chain, rows = chain_of(
            frame,
            np.ones(500, dtype=bool),
            [frame.columns[0]],
            visit_order="correlation",
            condition_on_decision=False,
        )
        assert names_visited(chain, rows) == expected


# ---------------------------------------------------------------------------------------------
# What trees depend on.


@pytest.mark.parametrize("generator", [TreeChain, ForestChain])
def test_trees_depend_on_the_seed_and_on_rows_as_a_set_not_on_threads(german, generator):
    rows, decision = german
    mixed = np.random.default_rng(0).permutation(len(rows))
    shuffled = Schema.learn_rows(rows.frame.iloc[mixed], immutable=["Age", "Sex", "Purpose"])
    chain = generator(max_features="sqrt", **{"n_trees": 3} if generator is ForestChain else {})

    one = clone(chain).fit(rows, decision, seed=4)

    assert same_trees(one, clone(chain).fit(shuffled, decision[mixed], seed=4, n_jobs=2))
    assert not same_trees(one, clone(chain).fit(rows, decision, seed=5))
    assert clone(chain).get_params() == chain.get_params()


def test_a_forest_of_one_tree_of_all_rows_and_features_is_cart(german):
    rows, decision = german
    cart = TreeChain().fit(rows, decision)
    keys = np.arange(20, dtype=np.uint64)

    for sampling in ("tree_first", "pool"):
        one = ForestChain(
            n_trees=1, bootstrap=False, max_features=None, min_samples_leaf=5, sampling=sampling
        ).fit(rows, decision, seed=7)

        assert same_trees(one, cart)
        request = DrawRequest(rows.tree_codes[:, :20], keys, np.arange(50))
        drawn = [chain.sample(request).codes for chain in (one, cart)]
        assert np.array_equal(*drawn)
        assert np.array_equal(one.log_likelihood(rows), cart.log_likelihood(rows))


def test_trees_of_a_forest_differ_by_samples_and_features_and_keep_all_rows(german):
    rows, decision = german

    def sizes(**settings):
        trees = ForestChain(n_trees=2, **settings).fit(rows, decision).trees_
        return np.diff(np.append(trees.roots, trees.feature.size)).reshape(-1, 2)

    plain = sizes(bootstrap=False, max_features=None)
    assert (plain[:, 0] == plain[:, 1]).all()
    for differing in (sizes(max_features=None), sizes(bootstrap=False)):
        assert (differing[:, 0] != differing[:, 1]).any()
    chain = ForestChain(n_trees=2, decisions=(False, True)).fit(rows, decision)
    assert chain.trees_.count.sum() == 2 * rows.schema.mutable.size * len(rows)


# ---------------------------------------------------------------------------------------------
# How many features a tree considers, and a node checks.


def test_so_many_features_are_checked():
    chance = np.random.default_rng(0)
    frame = pd.DataFrame(chance.integers(0, 9, (300, 10))).rename(columns=str)
    everybody, inputs = np.ones(300, dtype=bool), list(frame)[:9]

    def grown(max_features):
        settings = {"max_features": max_features, "condition_on_decision": False}
        return chain_of(frame, everybody, inputs, fit={"seed": 3}, **settings)[0]

    for given_, number in (("sqrt", 3), ("third", 3), (0.5, 4), (0.01, 1), (np.float64(0.4), 3)):
        assert same_trees(grown(given_), grown(number))
    for everything in (9, 20, 1.0):
        assert same_trees(grown(everything), grown(None))
    assert len({grown(number).trees_.values.tobytes() for number in (1, 3, 4, 8, None)}) == 5
    for wrong in (0, -1, 0.0, 1.5, "all", True, [3], float("nan")):
        with pytest.raises(ParameterError, match=r"max_features must be .* or None for all"):
            grown(wrong)


def noise(n_columns=40, n_rows=3000):
    chance = np.random.default_rng(0)
    columns = {f"x{at}": chance.normal(size=n_rows).round(2) for at in range(n_columns)}
    for at in range(0, n_columns, 4):
        columns[f"x{at}"] = chance.choice(list("abcdef"), n_rows)
    return pd.DataFrame(columns)


def considered(frame, name, n_inputs=1):
    """The columns that the tree of a column uses, if it may consider so many."""
    rows = Schema.learn_rows(frame, immutable=[other for other in frame if other != name])
    chain = TreeChain(max_inputs=n_inputs, condition_on_decision=False)
    trees = chain.fit(rows, np.ones(len(frame), dtype=bool)).trees_
    return {rows.schema.names[at] for at in set(trees.feature.tolist()) - {-1}}


def test_a_tree_considers_what_its_feature_depends_on_in_any_way():
    frame, chance = noise(), np.random.default_rng(1)
    some = lambda share: chance.random(len(frame)) < share
    steps = np.array(list("caebd"))[np.digitize(frame["x2"], [-1, -0.3, 0.3, 1])]
    other = frame["x4"].map(dict(zip("abcdef", "zyzyxx", strict=True)))
    planted = {
        "rises and falls": (frame["x1"] ** 2 + 0.3 * chance.normal(size=len(frame)), "x1"),
        "spreads": (np.exp(frame["x1"]) * chance.normal(size=len(frame)), "x1"),
        "levels of a number": (np.where(some(0.4), "c", steps), "x2"),
        "levels of levels": (other.where(some(0.4), "z"), "x4"),
        "missing cells": (frame["x21"].where(frame["x8"].isin(list("abc"))), "x8"),
    }

    for how, (column, cause) in planted.items():
        assert considered(frame.assign(x21=column), "x21") == {cause}, how
    copies = {f"x{at}": frame["x1"] + 0.1 * chance.normal(size=len(frame)) for at in (5, 9, 13)}
    repeated = frame.assign(**copies, x21=frame["x1"] + 0.8 * frame["x2"])
    assert "x2" in considered(repeated, "x21", n_inputs=2)


def test_what_is_considered_depends_on_neither_order_nor_threads():
    frame = noise(12)
    frame["x11"] = frame["x1"] + 0.6 * frame["x2"]
    decision, mixed = frame["x5"].to_numpy() > 0, np.random.default_rng(3).permutation(len(frame))

    expected, rows = chain_of(frame, decision, max_inputs=2)
    shuffled, _ = chain_of(frame.iloc[mixed], decision[mixed], max_inputs=2)
    with threadpool_limits(1):
        alone, _ = chain_of(frame, decision, max_inputs=2)

    used = set(expected.trees_.feature[expected.trees_.roots[11] :].tolist()) - {-1}
    assert {1, 2} <= used <= {1, 2, 12}
    assert same_trees(expected, shuffled)
    assert same_trees(expected, alone)
    assert same_trees(chain_of(frame, decision, max_inputs=12)[0], chain_of(frame, decision)[0])
    for wrong in (0, 1.5, True, "all"):
        with pytest.raises(ParameterError, match="max_inputs must be a whole number >= 1, got"):
            TreeChain(max_inputs=wrong).fit(rows, decision)


@pytest.mark.parametrize(
    ("n_columns", "search", "generator", "expected"),
    [
        (32, "balanced", "trees", None),
        (33, "balanced", "trees", 16),
        (33, "paper", "trees", None),
        pytest.param(33, "balanced", TreeChain(), None, marks=pytest.mark.slow),
        (33, "paper", TreeChain(max_inputs=3), 3),
    ],
    ids=["narrow", "wide", "paper", "object", "given"],
)
def test_only_wide_tables_of_searches_beyond_the_paper_are_screened(
    n_columns, search, generator, expected
):
    explainer = MCCE(
        lambda rows: 1 / (1 + np.exp(-rows["x1"])),
        (0.5, 1.0),
        generator=generator,
        search=search,
        random_state=0,
    )

    explainer.fit(noise(n_columns, n_rows=100))

    assert explainer.generator_.max_inputs == expected
    assert generator == "trees" or explainer.generator is generator


# ---------------------------------------------------------------------------------------------
# In an explainer.


def approve(frame):
    return 1 / (1 + np.exp(-(frame["salary"].fillna(0) - 60_000) / 10_000))


def test_parameters_that_cannot_work_are_refused_by_name(german):
    for kind, wrong in [
        (TreeChain, {"min_samples_leaf": 0}),
        (TreeChain, {"min_samples_leaf": 2.5}),
        (TreeChain, {"min_samples_split": 1}),
        (TreeChain, {"max_depth": 0}),
        (TreeChain, {"decisions": ()}),
        (TreeChain, {"decisions": ("yes",)}),
        (TreeChain, {"condition_on_decision": "no"}),
        (ForestChain, {"n_trees": 0}),
        (ForestChain, {"n_trees": 10**6}),
        (ForestChain, {"sampling": "best"}),
        (ForestChain, {"sampling": np.array([1, 2])}),
        (ForestChain, {"bootstrap": 1}),
        (ForestChain, {"max_features": "half"}),
        (ForestChain, {"min_samples_leaf": "small"}),
    ]:
        with pytest.raises(ParameterError, match=f"{next(iter(wrong))} must be"):
            kind(**wrong).fit(*german)


def test_a_bound_beyond_all_rows_is_no_larger_than_theirs(german):
    for name in ("max_depth", "min_samples_split", "min_samples_leaf"):
        huge, large = (TreeChain(**{name: most}).fit(*german) for most in (10**40, 10**6))

        assert same_trees(huge, large)


@pytest.mark.parametrize("search", ["paper", "balanced"])
def test_a_forest_answers_with_missing_values_and_rules_and_is_saved(bank, tmp_path, search):
    holey = bank.astype({"salary": float})
    holey.iloc[::7, holey.columns.get_loc("salary")] = np.nan
    people = holey[approve(holey) < 0.5].head(12)
    explainer = MCCE(
        approve,
        (0.5, 1.0),
        immutable=["age"],
        constraints=[only_up("salary")],
        generator=ForestChain(n_trees=3, sampling="pool", max_features="third"),
        search=search,
        n_samples=200,
        random_state=0,
    ).fit(holey)

    result = explain(explainer, people)

    before = people.loc[result.frame.index.get_level_values("factual")]
    assert len(before)
    assert (approve(result.frame) >= 0.5).all()
    assert (result.frame["age"].to_numpy() == before["age"].to_numpy()).all()
    assert not (result.frame["salary"].to_numpy() < before["salary"].to_numpy()).any()
    explainer.save(tmp_path / "bank.mcce")
    loaded = load(tmp_path / "bank.mcce", approve)
    pd.testing.assert_frame_equal(explain(loaded, people).frame, result.frame)
    assert loaded.generator_.get_params() == explainer.generator_.get_params()


def test_the_exact_search_names_the_generators_that_can_list_rows(bank):
    explainer = MCCE(approve, (0.5, 1.0), generator="forest", search="exact").fit(bank)

    with pytest.raises(
        ParameterError, match=r'ForestChain does not .* generator="trees", "ctree" or '
    ):
        explainer.explain(bank.head(3))


def test_a_generator_given_as_an_object_is_copied_and_stays_unfitted(bank):
    chain = TreeChain(max_depth=2)

    explainer = MCCE(approve, (0.5, 1), generator=chain, random_state=0).fit(bank)

    assert explainer.generator_ is not chain
    assert not hasattr(chain, "trees_")
    assert explainer.get_params()["generator__max_depth"] == 2
