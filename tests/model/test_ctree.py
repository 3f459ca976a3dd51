"""Conditional inference trees: closed forms, the rate of false splits, no preferred features."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency, f_oneway

from mcce import MCCE, InferenceTreeChain, ParameterError, Schema
from mcce.datasets import load_german_credit
from mcce.kernels import LEAF
from mcce.model.ctree import is_significant
from mcce.model.cuts import Target, best_cut
from mcce.model.independence import Scored, dependences


def scored(*columns):
    """Columns of numbers, as arrays of floats, and of levels, as arrays of integers."""
    arrays = [np.asarray(column) for column in columns]
    codes = np.array([np.unique(a, return_inverse=True)[1].ravel() for a in arrays], dtype=np.int32)
    by_score = np.array([a.dtype.kind == "f" for a in arrays])
    scores = np.array([a if a.dtype.kind == "f" else np.zeros(a.size) for a in arrays])
    return Scored(codes, scores, by_score, codes.max(axis=1).astype(np.int64) + 1)


def run_tests(*columns):
    """The tests of all columns but the last, which is the response."""
    found = scored(*columns)
    n_inputs = len(columns) - 1
    return dependences(found, np.arange(n_inputs), np.arange(found.codes.shape[1]), n_inputs)


def test_the_statistic_of_six_rows_is_that_of_the_r_packages():
    x, y = np.arange(1.0, 7.0), np.repeat([0.0, 1.0], 3)

    (test,) = run_tests(x, y)
    cut = best_cut(np.arange(6), Target(scores=y), ordered=True, min_samples_leaf=1)

    assert test.statistic == pytest.approx(3.857, abs=5e-4)
    assert math.exp(test.log_p) == pytest.approx(0.0495, abs=5e-5)
    assert (cut.n_left, cut.statistic) == (3, pytest.approx(5.0))


def test_two_classes_give_the_statistics_of_the_number_that_they_are():
    x, y = np.arange(1.0, 7.0), np.repeat([0, 1], 3)

    (test,) = run_tests(x, y)
    cut = best_cut(np.arange(6), Target(classes=y), ordered=True, min_samples_leaf=1)

    assert test.statistic == pytest.approx(3.857, abs=5e-4)
    assert test.freedom == 1
    assert (cut.n_left, cut.statistic) == (3, pytest.approx(5.0))


def test_statistics_are_the_closed_forms_for_every_kind_of_column():
    chance = np.random.default_rng(0)
    number, levels, classes = (
        chance.normal(size=80),
        chance.integers(0, 4, 80),
        chance.integers(0, 3, 80),
    )
    shifted = number + 0.2 * classes

    (numbers,) = run_tests(number, shifted)
    (levels_number,) = run_tests(levels, shifted)
    (number_levels,) = run_tests(shifted, classes)
    (both_levels,) = run_tests(levels, classes)

    assert numbers.statistic == pytest.approx(79 * np.corrcoef(number, shifted)[0, 1] ** 2)
    for found, response, by in (
        (levels_number, shifted, levels),
        (number_levels, shifted, classes),
    ):
        n_groups = by.max() + 1
        groups = [response[by == level] for level in range(n_groups)]
        ratio = f_oneway(*groups).statistic * (n_groups - 1) / (80 - n_groups)
        assert found.statistic == pytest.approx(79 * ratio / (1 + ratio))
        assert found.freedom == n_groups - 1
    table = pd.crosstab(levels, classes)
    pearson = chi2_contingency(table, correction=False).statistic
    assert both_levels.statistic == pytest.approx(79 / 80 * pearson)
    assert both_levels.freedom == 6


def test_levels_that_a_node_does_not_hold_do_not_count():
    levels, classes = np.array([0, 1, 5, 5] * 10), np.array([0, 1, 3, 0] * 10)
    found = scored(levels, classes)
    rows = np.flatnonzero(found.codes[0] < 2)

    (test,) = dependences(found, np.array([0]), rows, 1)

    assert test.freedom == 1


def test_many_levels_of_few_rows_give_the_same_statistic_as_a_table():
    chance = np.random.default_rng(3)
    levels, classes = chance.integers(0, 50, 60), chance.integers(0, 40, 60)

    (test,) = run_tests(levels, classes)

    pearson = chi2_contingency(pd.crosstab(levels, classes), correction=False).statistic
    assert test.statistic == pytest.approx(59 / 60 * pearson)


def test_constants_are_not_tested():
    assert run_tests(np.ones(20), np.arange(20.0)) == []
    assert run_tests(np.arange(20.0), np.ones(20)) == []


def test_the_strongest_of_two_underflowing_p_values_comes_first():
    x = np.linspace(0.0, 1.0, 20_000)
    weaker = x + 0.3 * np.sin(997 * np.arange(x.size))

    first, second = run_tests(weaker, x.copy(), x)

    assert math.exp(first.log_p) == math.exp(second.log_p) == 0.0
    assert (first.column, second.column) == (1, 0)


def test_noise_splits_a_root_as_seldom_as_the_criterion_says():
    chance = np.random.default_rng(1)
    n_simulations, rows = 2000, np.arange(60)
    n_splits = 0
    for _ in range(n_simulations):
        scores = chance.normal(size=(11, 60))
        noise = Scored(np.tile(rows, (11, 1)), scores, np.ones(11, dtype=bool), np.full(11, 60))
        best = dependences(noise, np.arange(10), rows, 10)[0]
        n_splits += is_significant(best.log_p, 10, 0.95)

    margin = 3 * math.sqrt(0.05 * 0.95 / n_simulations)
    assert n_splits / n_simulations <= 0.05 + margin
    assert n_splits / n_simulations >= 0.02


def test_a_feature_of_many_levels_is_chosen_no_more_often_than_one_of_two():
    chance = np.random.default_rng(2)
    n_simulations, chosen = 1500, 0
    for _ in range(n_simulations):
        many, two = chance.integers(0, 40, 200), chance.integers(0, 2, 200)
        first = run_tests(many, two, chance.normal(size=200))[0]
        chosen += first.column == 0

    assert chosen / n_simulations <= 0.5 + 3 * math.sqrt(0.25 / n_simulations)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_cut_of_levels_is_the_best_of_all_divisions(n_classes):
    chance = np.random.default_rng(n_classes)
    codes, classes = chance.integers(0, 7, 90), chance.integers(0, n_classes, 90)

    cut = best_cut(codes, Target(classes=classes), ordered=False, min_samples_leaf=7)

    def statistic(left):
        inside = np.isin(codes, left)
        if not 7 <= inside.sum() <= 83:
            return -np.inf
        table = np.array(
            [np.bincount(classes[side], minlength=n_classes) for side in (inside, ~inside)]
        )
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / 90
        return 89 / 90 * ((table - expected) ** 2 / expected).sum()

    subsets = itertools.chain.from_iterable(
        itertools.combinations(range(7), k) for k in range(1, 7)
    )
    assert cut.statistic == pytest.approx(max(map(statistic, subsets)))
    assert statistic(cut.levels[: cut.n_left]) == pytest.approx(cut.statistic)


def test_the_cut_of_very_many_levels_is_no_worse_than_one_level_against_the_rest():
    chance = np.random.default_rng(5)
    codes = chance.integers(0, 30, 600)
    classes = np.where(codes == 17, 3, chance.integers(0, 3, 600))

    cut = best_cut(codes, Target(classes=classes), ordered=False, min_samples_leaf=7)

    table = pd.crosstab(codes == 17, classes)
    single = 599 / 600 * chi2_contingency(table, correction=False).statistic
    assert cut.statistic >= single - 1e-9


def test_a_cut_that_leaves_too_few_rows_is_none():
    target = Target(scores=np.arange(10.0))

    assert best_cut(np.repeat([0, 1], [3, 7]), target, ordered=True, min_samples_leaf=4) is None
    assert best_cut(np.repeat([0, 1], [3, 7]), target, ordered=True, min_samples_leaf=3).n_left == 1


def test_a_node_that_cannot_be_cut_at_the_best_feature_tries_the_next_one():
    chance = np.random.default_rng(0)
    rare = np.zeros(200)
    rare[:5] = 1.0
    x = chance.normal(size=200)
    frame = pd.DataFrame({"rare": rare, "x": x, "y": x + 20 * rare})
    rows = Schema.learn_rows(frame, immutable=["rare", "x"])

    chain = InferenceTreeChain(condition_on_decision=False).fit(rows, np.ones(200, dtype=bool))

    assert chain.trees_.feature[0] == 1


def test_trees_do_not_depend_on_the_order_of_the_rows():
    frame = load_german_credit().features
    decision = np.arange(len(frame)) % 3 > 0
    order = np.random.default_rng(0).permutation(len(frame))

    one, other = (
        InferenceTreeChain().fit(Schema.learn_rows(frame.iloc[at], immutable=["Age"]), decision[at])
        for at in (np.arange(len(frame)), order)
    )

    assert np.array_equal(one.trees_.feature, other.trees_.feature)
    assert np.array_equal(one.trees_.values, other.trees_.values)


def test_leaves_and_nodes_are_at_least_as_large_as_the_parameters_say():
    frame = load_german_credit().features
    rows = Schema.learn_rows(frame, immutable=["Age", "Sex"])
    decision = rows.exact[2] % 2 == 0

    chain = InferenceTreeChain(decisions=(False, True)).fit(rows, decision)
    loose = InferenceTreeChain(decisions=(False, True), min_criterion=0.5).fit(rows, decision)

    assert chain.trees_.count[chain.trees_.feature == LEAF].min() >= 7
    assert loose.trees_.feature.size > chain.trees_.feature.size


def test_missing_values_are_split_off():
    chance = np.random.default_rng(0)
    x = chance.normal(size=300)
    x[::3] = np.nan
    frame = pd.DataFrame({"x": x, "y": np.where(np.isnan(x), 5.0, chance.normal(size=300))})
    rows = Schema.learn_rows(frame, immutable=["x"])

    chain = InferenceTreeChain(condition_on_decision=False).fit(rows, np.ones(300, dtype=bool))

    likely = np.exp(chain.log_likelihood(rows))
    assert (likely[::3] == 1.0).all()


@pytest.mark.parametrize("given", [10**400, -0.1, 1, 1.5, None, "0.95", True])
def test_a_criterion_that_is_no_share_is_refused(bank, given):
    rows = Schema.learn_rows(bank, immutable=["age"])

    with pytest.raises(ParameterError, match="min_criterion must be from 0 to below 1, got"):
        InferenceTreeChain(min_criterion=given).fit(rows, np.ones(len(bank), dtype=bool))


def test_the_exact_search_lists_the_rows_of_inference_trees(bank):
    explainer = MCCE(
        lambda frame: frame["salary"] / 100_000,
        (0.6, 1.0),
        immutable=["age"],
        generator="ctree",
        search="exact",
        random_state=0,
    ).fit(bank)

    result = explainer.explain(bank[bank["salary"] < 50_000].head(10))

    assert len(result.frame)
    assert (result.frame["salary"] >= 60_000).all()
