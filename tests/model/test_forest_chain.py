"""Random forests: one tree is CART, draws follow the weights, and all of mcce works with them."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy.stats import chisquare

from mcce import MCCE, ForestChain, ParameterError, Schema, TreeChain, load
from mcce.constraints import only_up
from mcce.datasets import load_german_credit
from mcce.kernels import descend, person_keys
from mcce.model.responses import with_decision
from tables import cases

SAMPLINGS = ["tree_first", "pool"]


@pytest.fixture(scope="module")
def german():
    frame = load_german_credit().features
    rows = Schema.learn_rows(frame, immutable=["Age", "Sex", "Purpose"])
    return rows, rows.exact[2] % 3 > 0


def assert_same_trees(one, other):
    for name in ("feature", "cut", "right", "start", "count", "sets", "values"):
        assert np.array_equal(getattr(one.trees_, name), getattr(other.trees_, name)), name


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_one_tree_of_all_rows_and_features_is_cart(german, sampling):
    rows, decision = german
    cart = TreeChain().fit(rows, decision)
    keys = person_keys(0, rows.descent[rows.schema.immutable, :20].T)

    one = ForestChain(
        n_trees=1, bootstrap=False, max_features=None, min_samples_leaf=5, sampling=sampling
    ).fit(rows, decision, seed=7)

    assert_same_trees(one, cart)
    drawn = [c.sample(rows.descent[:, :20], keys, np.arange(50)).codes for c in (one, cart)]
    assert np.array_equal(*drawn)
    assert np.array_equal(one.log_likelihood(rows), cart.log_likelihood(rows))


def test_trees_differ_by_their_samples_and_by_the_features_that_they_check(german):
    rows, decision = german
    plain = ForestChain(n_trees=2, bootstrap=False, max_features=None).fit(rows, decision)
    sampled = ForestChain(n_trees=2, max_features=None).fit(rows, decision)
    checked = ForestChain(n_trees=2, bootstrap=False).fit(rows, decision)

    def sizes(chain):
        return np.diff(np.append(chain.trees_.roots, chain.trees_.feature.size)).reshape(-1, 2)

    assert (sizes(plain)[:, 0] == sizes(plain)[:, 1]).all()
    assert (sizes(sampled)[:, 0] != sizes(sampled)[:, 1]).any()
    assert (sizes(checked)[:, 0] != sizes(checked)[:, 1]).any()


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_draws_of_a_feature_converge_to_the_weights_of_rows(german, sampling):
    rows, decision = german
    chain = ForestChain(n_trees=5, sampling=sampling, min_samples_leaf=8).fit(rows, decision)
    given, first = rows.descent[:, :1], int(chain.visit_order_[0])
    n_draws = 40_000

    drawn = chain.sample(given, np.array([5], np.uint64), np.arange(n_draws)).codes
    values = drawn[np.flatnonzero(rows.schema.mutable == first)[0], 0]

    # The weight of a training row, as quantile forests have it, and by pooled leaves.
    codes = with_decision(rows.descent, decision)
    asked = with_decision(given, np.array([True]))
    by_set = chain.n_levels_ > 0
    together = np.array(
        [
            descend(chain.trees_, tree, codes, by_set) == descend(chain.trees_, tree, asked, by_set)
            for tree in range(5)
        ]
    )
    sizes = together.sum(axis=1, keepdims=True)
    weights = (
        (together / sizes).mean(axis=0)
        if sampling == "tree_first"
        else (together.sum(axis=0) / sizes.sum())
    )
    expected = np.bincount(rows.exact[first], weights=weights)
    observed = np.bincount(values, minlength=expected.size)
    assert not observed[expected == 0].any()
    common = expected * n_draws >= 5
    seen = np.append(observed[common], observed[~common].sum() + 1e-9)
    wanted = np.append(expected[common], expected[~common].sum() + 1e-9)
    # Their sums must be equal but for rounding.
    assert chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue > 1e-3
    gap = np.abs(np.cumsum(observed) / n_draws - np.cumsum(expected)).max()
    assert gap < 1.95 / np.sqrt(n_draws)


@given(cases(max_rows=25, max_columns=3))
def test_the_likelihoods_of_all_rows_that_can_be_made_add_up_to_one(case):
    schema = Schema.learn(case.train, immutable=list(case.immutable))
    decision = np.asarray(case.score(case.train) > 0.5)
    person = case.people.iloc[[0]]
    mutable = [schema.features[position] for position in schema.mutable]
    grid = list(itertools.product(*(range(feature.n_codes) for feature in mutable)))
    table = pd.concat([person] * len(grid), ignore_index=True)
    for feature, codes in zip(mutable, zip(*grid, strict=True), strict=True):
        table[feature.name] = feature.table.take(list(codes)).reset_index(drop=True)

    for sampling in SAMPLINGS:
        chain = ForestChain(n_trees=3, sampling=sampling).fit(schema.encode(case.train), decision)
        likelihood = np.exp(chain.log_likelihood(schema.encode(table)))

        assert likelihood.sum() == pytest.approx(1.0)


def test_the_forest_depends_on_the_seed_and_on_rows_as_a_set(german):
    rows, decision = german
    order = np.random.default_rng(0).permutation(len(rows))
    shuffled = Schema.learn_rows(rows.frame.iloc[order], immutable=["Age", "Sex", "Purpose"])

    one = ForestChain(n_trees=3).fit(rows, decision, seed=4)
    other = ForestChain(n_trees=3).fit(shuffled, decision[order], seed=4, n_jobs=2)
    another = ForestChain(n_trees=3).fit(rows, decision, seed=5)

    assert_same_trees(one, other)
    assert not np.array_equal(one.trees_.values, another.trees_.values)


def test_leaves_keep_rows_that_the_sample_did_not_hold(german):
    rows, decision = german

    chain = ForestChain(n_trees=2, decisions=(False, True)).fit(rows, decision)

    n_leaves = chain.trees_.count.sum()
    assert n_leaves == 2 * rows.schema.mutable.size * len(rows)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_trees": 0}, "n_trees must be a whole number >= 1"),
        ({"n_trees": 10**6}, "n_trees must be at most 10000"),
        ({"sampling": "best"}, 'sampling must be one of "tree_first", "pool"'),
        ({"sampling": np.array([1, 2])}, "sampling must be one of"),
        ({"max_features": np.array([1, 2])}, "max_features must be"),
        ({"decisions": np.array([True])}, "decisions must be"),
        ({"decisions": np.int64(1)}, "decisions must be"),
        ({"bootstrap": 1}, "bootstrap must be True or False"),
        ({"max_features": "half"}, 'max_features must be .* "auto"'),
        ({"min_samples_leaf": "small"}, 'min_samples_leaf must be a whole number >= 1 or "auto"'),
    ],
)
def test_parameters_that_cannot_work_are_refused(german, settings, message):
    rows, decision = german

    with pytest.raises(ParameterError, match=message):
        ForestChain(**settings).fit(rows, decision)


@pytest.mark.parametrize("name", ["max_depth", "min_samples_split", "min_samples_leaf"])
def test_a_bound_beyond_all_rows_is_no_larger_than_theirs(german, name):
    rows, decision = german

    huge, large = (
        ForestChain(n_trees=1, **{name: most}).fit(rows, decision).trees_
        for most in (10**40, 10**6)
    )

    assert np.array_equal(huge.feature, large.feature)


# -------------------------------------------------------------------------------------------------
# With the rest of mcce.


def approve(frame):
    return 1 / (1 + np.exp(-(frame["salary"] - 60_000) / 10_000))


def explained(bank, people=12, **settings):
    settings = {"immutable": ["age"], "random_state": 0, "n_samples": 200} | settings
    explainer = MCCE(approve, (0.5, 1.0), **settings).fit(bank)
    return explainer, explainer.explain(bank[approve(bank) < 0.5].head(people))


@pytest.mark.parametrize("generator", ["forest", ForestChain(n_trees=3, sampling="pool")])
@pytest.mark.parametrize("search", ["paper", "balanced", "sparse", "plausible", "near", "fast"])
def test_every_search_that_needs_no_list_of_rows_works(bank, generator, search):
    _, result = explained(bank, generator=generator, search=search)

    assert len(result.frame)
    assert (approve(result.frame) >= 0.5).all()
    assert "age" not in set(result.changes()["feature"])


def test_the_exact_search_names_the_generators_that_can_list_rows(bank):
    with pytest.raises(
        ParameterError, match=r'ForestChain does not .* generator="trees", "ctree" or '
    ):
        explained(bank, generator="forest", search="exact")


def test_constraints_hold(bank):
    _, result = explained(bank, generator="forest", constraints=[only_up("salary")])

    before = bank.loc[result.frame.index.get_level_values("factual"), "salary"].to_numpy()
    assert (result.frame["salary"].to_numpy() >= before).all()
    assert len(before)


def test_missing_values_can_be_learned_and_drawn(bank):
    holey = bank.astype({"salary": float})
    holey.iloc[::7, holey.columns.get_loc("salary")] = np.nan

    explainer = MCCE(
        lambda frame: frame["salary"].fillna(0) / 100_000, (0.6, 1.0), immutable=["age"],
        generator="forest", random_state=0,
    ).fit(holey)  # fmt: skip

    result = explainer.explain(holey.head(20))
    assert (result.frame["salary"] >= 60_000).all()


@pytest.mark.parametrize("generator", ["forest", "ctree", ForestChain(n_trees=4, sampling="pool")])
def test_a_saved_explainer_answers_the_same(bank, tmp_path, generator):
    explainer, result = explained(bank, generator=generator)

    explainer.save(tmp_path / "bank.mcce")
    loaded = load(tmp_path / "bank.mcce", approve)

    people = bank[approve(bank) < 0.5].head(12)
    pd.testing.assert_frame_equal(loaded.explain(people).frame, result.frame)
    assert loaded.generator_.get_params() == explainer.generator_.get_params()


@pytest.mark.parametrize("generator", ["forest", "ctree"])
def test_nobody_depends_on_the_others(bank, generator):
    explainer, result = explained(bank, generator=generator)
    people = bank[approve(bank) < 0.5].head(12)

    alone = pd.concat([explainer.explain(people.iloc[[at]]).frame for at in range(12)])

    pd.testing.assert_frame_equal(alone, result.frame)
