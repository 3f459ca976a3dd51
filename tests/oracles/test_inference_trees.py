"""Conditional inference trees: closed forms of tests and cuts, p-values that underflow."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, chi2_contingency, f_oneway

from mcce import MCCE, InferenceTreeChain, ParameterError, Schema
from mcce.datasets import load_german_credit
from mcce.kernels import LEAF, descend
from mcce.model.ctree import log_survival


def grow(*columns, **settings):
    """The tree of the last column given the others, without the decision; and its rows."""
    frame = pd.DataFrame({f"c{at}": column for at, column in enumerate(columns)})
    rows = Schema.learn_rows(frame, immutable=list(frame)[:-1])
    settings = {"min_samples_split": 2, "min_samples_leaf": 1, "max_depth": 1} | settings
    chain = InferenceTreeChain(condition_on_decision=False, **settings)
    return chain.fit(rows, np.ones(len(frame), dtype=bool)), rows


def levels(codes):
    return np.array([f"level {code:02}" for code in codes])


def p_value(x, y):
    """By the closed forms: a correlation, an analysis of variance, or a table of counts."""
    n, numeric = len(x), [np.asarray(column).dtype.kind == "f" for column in (x, y)]
    if all(numeric):
        return chi2.sf((n - 1) * np.corrcoef(x, y)[0, 1] ** 2, 1)
    if any(numeric):
        numbers, groups = (x, y) if numeric[0] else (y, x)
        parts = [numbers[groups == group] for group in np.unique(groups)]
        ratio = f_oneway(*parts).statistic * (len(parts) - 1) / (n - len(parts))
        return chi2.sf((n - 1) * ratio / (1 + ratio), len(parts) - 1)
    table = pd.crosstab(x, y)
    statistic = chi2_contingency(table, correction=False).statistic
    return chi2.sf((n - 1) / n * statistic, (len(table) - 1) * (len(table.T) - 1))


@pytest.mark.parametrize("kind", ["numbers", "levels", "classes", "both", "two classes", "many"])
@pytest.mark.parametrize("n_noise", [0, 2])
def test_a_root_is_split_if_the_closed_form_says_so(kind, n_noise):
    chance = np.random.default_rng(0)
    number, groups = chance.normal(size=80), chance.integers(0, 4, 80)
    classes = chance.integers(0, 2 if kind == "two classes" else 3, 80)
    x, y = {
        "numbers": (number, number + 4 * chance.normal(size=80)),
        "levels": (levels(groups), number + 0.3 * groups),
        "classes": (number + 0.4 * classes, levels(classes)),
        "two classes": (number + 0.4 * classes, levels(classes)),
        "both": (levels(np.where(chance.random(80) < 0.3, classes, groups)), levels(classes)),
        "many": (levels(chance.integers(0, 50, 80)), levels(chance.integers(0, 40, 80))),
    }[kind]
    columns = [x, *chance.normal(size=(n_noise, 80))]
    smallest = min(p_value(column, y) for column in columns)
    criterion = (1 - smallest) ** len(columns)
    assert 1e-8 < criterion < 1 - 1e-8

    above, below = (
        grow(*columns, y, min_criterion=criterion + step)[0].trees_.feature[0]
        for step in (1e-9, -1e-9)
    )

    assert above == LEAF
    assert below != LEAF


def test_six_rows_are_split_as_by_the_r_packages():
    """Their statistic is 3.857 and their p-value 0.0495."""
    x, y = np.arange(1.0, 7.0), np.repeat([0.0, 1.0], 3)

    assert grow(x, y, min_criterion=0.9504)[0].trees_.feature[0] == 0
    assert grow(x, y, min_criterion=0.9506)[0].trees_.feature[0] == LEAF


def test_the_most_significant_feature_is_split_on_not_the_one_with_the_largest_statistic():
    chosen = []
    for seed in range(40):
        chance = np.random.default_rng(seed)
        many, two, y = (
            chance.integers(0, 40, 200),
            chance.integers(0, 2, 200),
            chance.normal(size=200),
        )
        columns = levels(many), levels(two), chance.normal(size=200)

        chain, _ = grow(*columns, y, min_criterion=0.0)

        chosen.append(chain.trees_.feature[0])
        assert chosen[-1] == np.argmin([p_value(column, y) for column in columns])
    assert set(chosen) == {0, 1, 2}


def test_the_strongest_of_two_underflowing_p_values_comes_first():
    x = np.linspace(0.0, 1.0, 20_000)
    weaker = x + 0.3 * np.sin(997 * np.arange(x.size))

    chain, _ = grow(weaker, x.copy(), x)

    assert chain.trees_.feature[0] == 1


@pytest.mark.parametrize("kind", ["number", 2, 3, 5])
def test_the_cut_is_the_best_of_all_divisions(kind):
    chance = np.random.default_rng(5)
    codes = chance.integers(0, 7, 90)
    classes = chance.integers(0, 2 if kind == "number" else kind, 90)
    x = codes.astype(float) if kind == "number" else levels(codes)

    chain, rows = grow(x, levels(classes), min_criterion=0.0, min_samples_leaf=7)

    def statistic(left):
        inside = np.isin(codes, left)
        if not 7 <= inside.sum() <= 83:
            return -np.inf
        table = np.array(
            [np.bincount(classes[side], minlength=classes.max() + 1) for side in (inside, ~inside)]
        )
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / 90
        return 89 / 90 * ((table - expected) ** 2 / expected).sum()

    sizes = range(1, 7)
    subsets = list(
        itertools.chain.from_iterable(itertools.combinations(range(7), k) for k in sizes)
    )
    if kind == "number":
        subsets = [tuple(range(k)) for k in sizes]
    asked = np.vstack([rows.tree_codes, np.ones((1, 90), dtype=np.int32)])
    leaf = descend(chain.trees_, 0, asked, chain.n_levels_ > 0)
    taken = np.unique(codes[leaf == chain.trees_.left[0]])
    assert statistic(taken) == pytest.approx(max(map(statistic, subsets)))


def test_the_cut_of_very_many_levels_is_no_worse_than_one_level_against_the_rest():
    chance = np.random.default_rng(5)
    codes = chance.integers(0, 30, 600)
    classes = np.where(codes == 17, 3, chance.integers(0, 3, 600))

    chain, rows = grow(levels(codes), levels(classes), min_samples_leaf=7)

    asked = np.vstack([rows.tree_codes, np.ones((1, 600), dtype=np.int32)])
    leaf = descend(chain.trees_, 0, asked, chain.n_levels_ > 0)
    ours, single = (
        chi2_contingency(pd.crosstab(side, classes), correction=False).statistic
        for side in (leaf == leaf[0], codes == 17)
    )
    assert ours >= single - 1e-9


def test_a_node_that_cannot_be_cut_at_the_best_feature_tries_the_next_one():
    rare, x = np.repeat([1.0, 0.0], [5, 195]), np.random.default_rng(0).normal(size=200)

    chain, _ = grow(rare, x, x + 20 * rare, min_samples_leaf=7)

    assert chain.trees_.feature[0] == 1


def test_missing_values_are_split_off():
    chance = np.random.default_rng(0)
    x = chance.normal(size=300)
    x[::3] = np.nan

    chain, rows = grow(x, np.where(np.isnan(x), 5.0, chance.normal(size=300)))

    assert (np.exp(chain.log_likelihood(rows))[::3] == 1.0).all()


def test_trees_depend_on_rows_as_a_set_and_nodes_are_as_large_as_the_parameters_say():
    frame = load_german_credit().features.iloc[:400]
    decision, mixed = np.arange(400) % 3 > 0, np.random.default_rng(0).permutation(400)

    def fitted(at, **settings):
        rows = Schema.learn_rows(frame.iloc[at], immutable=["Age"])
        return (
            InferenceTreeChain(decisions=(False, True), **settings).fit(rows, decision[at]).trees_
        )

    one, other = fitted(np.arange(400)), fitted(mixed)
    loose = fitted(np.arange(400), min_criterion=0.5)

    assert np.array_equal(one.feature, other.feature)
    assert np.array_equal(one.values, other.values)
    assert one.count[one.feature == LEAF].min() >= 7
    assert loose.feature.size > one.feature.size


def test_a_criterion_that_is_no_share_is_refused():
    for given in (10**400, -0.1, 1, None, "0.95", True):
        with pytest.raises(ParameterError, match="min_criterion must be from 0 to below 1, got"):
            grow(np.arange(9.0), np.arange(9.0), min_criterion=given)


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


# ---------------------------------------------------------------------------------------------
# Logarithms of p-values.


def test_logarithms_of_p_values_are_those_of_scipy_and_fall_where_p_underflows():
    for freedom in (1, 2, 3, 4, 39, 40, 561, 5000):
        statistics = np.concatenate(
            [np.geomspace(1e-9, 1e5, 60), np.linspace(0.2, 3.0, 30) * freedom, [799.0, 801.0]]
        )
        ours = np.array([log_survival(float(c), freedom) for c in statistics])
        theirs = chi2.logsf(statistics, freedom)

        finite = np.isfinite(theirs)
        assert finite.sum() > 60
        np.testing.assert_allclose(ours[finite], theirs[finite], rtol=1e-9, atol=1e-11)
        far = [log_survival(c, freedom) for c in (2e5, 2e6, 2e7)]
        assert far == sorted(far, reverse=True)
        assert math.exp(far[-1]) == 0.0 > far[-1] > -math.inf
    assert log_survival(0.0, 3) == 0.0


def test_very_many_degrees_of_freedom_take_neither_memory_nor_digits():
    away = np.array([-6.0, -1.0, 0.0, 1.0, 6.0, 12.0])
    for freedom in (2001, 2002, 1_000_001, 10**8):
        statistics = freedom + away * math.sqrt(2.0 * freedom)
        statistics = np.append(statistics, [0.001, 1.0, freedom / 10])

        tracemalloc.start()
        ours = np.array([log_survival(float(c), freedom) for c in statistics])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        np.testing.assert_allclose(ours, chi2.logsf(statistics, freedom), rtol=1e-6, atol=1e-7)
        assert peak < 2**24
