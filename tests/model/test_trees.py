"""The chain: a proper distribution, its visit order, and as pure as scikit-learn's trees."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from mcce import MCCE, ParameterError, Schema, TreeChain
from mcce.datasets import load_german_credit
from mcce.kernels import descend, person_keys
from mcce.model.visit_order import CategoricalColumn, NumericColumn, association
from tables import cases


def chain_of(frame, decision, immutable=(), **settings):
    rows = Schema.learn(frame, immutable=list(immutable)).encode(frame)
    return TreeChain(**settings).fit(rows, np.asarray(decision)), rows


@given(cases(max_rows=25, max_columns=3))
def test_the_likelihoods_of_all_rows_that_can_be_made_add_up_to_one(case):
    decision = case.score(case.train) > 0.5
    chain, rows = chain_of(case.train, decision, case.immutable, min_samples_leaf=2)
    schema = rows.schema
    person = case.people.iloc[[0]]
    mutable = [schema.features[position] for position in schema.mutable]

    grid = list(itertools.product(*(range(feature.n_codes) for feature in mutable)))
    table = pd.concat([person] * len(grid), ignore_index=True)
    for feature, codes in zip(mutable, zip(*grid, strict=True), strict=True):
        table[feature.name] = feature.table.take(list(codes)).reset_index(drop=True)
    likelihood = np.exp(chain.log_likelihood(schema.encode(table)))

    assert likelihood.sum() == pytest.approx(1.0)


def test_a_row_with_an_unseen_value_has_likelihood_zero(bank):
    chain, rows = chain_of(bank, bank["salary"] > 60_000, ["age"])
    odd = bank.head(1).assign(salary=1)

    assert chain.log_likelihood(rows.schema.encode(odd)).tolist() == [-np.inf]
    assert np.isfinite(chain.log_likelihood(rows)[bank["salary"] > 60_000]).all()


def test_both_decisions_can_be_sampled_if_both_were_grown(bank):
    decision = bank["salary"] > 60_000
    chain, rows = chain_of(bank, decision, ["age"])
    both, _ = chain_of(bank, decision, ["age"], decisions=(False, True))

    assert np.array_equal(chain.log_likelihood(rows), both.log_likelihood(rows))
    assert np.isfinite(both.log_likelihood(rows, decision=False)[~decision]).all()
    with pytest.raises(ParameterError, match="decisions=\\(False, True\\)"):
        chain.log_likelihood(rows, decision=False)


def test_rows_can_be_drawn_for_either_decision(bank):
    decision = (bank["salary"] > 60_000).to_numpy()
    both, rows = chain_of(bank, decision, ["age"], decisions=(False, True))
    keys, draws = person_keys(0, rows.descent[[0]].T), np.arange(200)

    drawn = both.sample(rows.descent, keys, draws, decision=decision).codes
    usual = both.sample(rows.descent, keys, draws).codes

    salary = rows.schema.features[2].numbers[drawn[1]]
    assert (salary[decision] > 60_000).all()
    assert (salary[~decision] <= 60_000).all()
    assert np.array_equal(drawn[:, decision], usual[:, decision])
    all_desired = np.ones_like(decision)
    assert np.array_equal(both.sample(rows.descent, keys, draws, decision=all_desired).codes, usual)


def test_undesired_rows_are_not_drawn_from_trees_that_lack_their_branches(bank):
    decision = (bank["salary"] > 60_000).to_numpy()
    chain, rows = chain_of(bank, decision, ["age"])
    keys, draws = person_keys(0, rows.descent[[0]].T), np.arange(3)

    with pytest.raises(ParameterError, match="decisions=\\(False, True\\)"):
        chain.sample(rows.descent, keys, draws, decision=decision)
    usual = chain.sample(rows.descent, keys, draws).codes
    all_desired = np.ones_like(decision)
    drawn = chain.sample(rows.descent, keys, draws, decision=all_desired).codes
    assert np.array_equal(drawn, usual)


def test_leaving_the_decision_out_leaves_it_out(bank):
    decision = (bank["salary"] > 60_000).to_numpy()
    chain, rows = chain_of(bank, decision, ["age"], condition_on_decision=False)
    other, _ = chain_of(bank, ~decision, ["age"], condition_on_decision=False)

    assert not (chain.trees_.feature == len(rows.schema.features)).any()
    assert np.array_equal(chain.trees_.values, other.trees_.values)


def test_the_visit_order_is_that_of_the_data_by_default(bank):
    decision = bank["salary"] > 60_000
    by_name = ["salary", "sex", "defaulted_last_year"]

    plain, rows = chain_of(bank, decision, ["age"])
    named, _ = chain_of(bank, decision, ["age"], visit_order=by_name)

    assert plain.visit_order_.tolist() == rows.schema.mutable.tolist()
    assert [rows.schema.names[position] for position in named.visit_order_] == by_name


@pytest.mark.parametrize(
    "order",
    [
        "random",
        5,
        [["sex"], "salary", "defaulted_last_year"],
        ["salary"],
        ["salary", "sex", "age"],
        ["sex", "sex", "salary"],
    ],
)
def test_a_visit_order_that_is_none_is_refused(bank, order):
    with pytest.raises(ParameterError, match="visit_order must"):
        chain_of(bank, bank["salary"] > 0, ["age"], visit_order=order)


def test_the_most_associated_feature_is_visited_first():
    chance = np.random.default_rng(0)
    a = chance.normal(size=500)
    b = a + chance.normal(size=500)
    c = b + 3 * chance.normal(size=500)
    frame = pd.DataFrame({"a": a, "c": c, "b": b})
    rows = Schema.learn(frame, immutable=["a"]).encode(frame)

    chain = TreeChain(visit_order="correlation", condition_on_decision=False)
    chain.fit(rows, np.ones(500, dtype=bool))

    assert [rows.schema.names[position] for position in chain.visit_order_] == ["b", "c"]


def test_association_is_pearson_correlation_ratio_or_cramer():
    numbers = NumericColumn(np.array([1.0, 2.0, 3.0, 4.0, np.nan]))
    negative = NumericColumn(np.array([4.0, 3.0, 2.0, 1.0, 9.0]))
    halves = CategoricalColumn(np.array([0, 0, 1, 1, 1]))
    constant = CategoricalColumn(np.zeros(5, dtype=np.int64))

    assert association(numbers, negative) == pytest.approx(1.0)
    assert association(numbers, halves) == association(halves, numbers)
    assert association(numbers, halves) == pytest.approx(np.sqrt(4 / 5))
    assert association(numbers, constant) == 0.0
    assert association(halves, constant) == 0.0
    many = CategoricalColumn(np.repeat([0, 1], 500))
    assert association(many, many) == pytest.approx(1.0)
    assert association(many, CategoricalColumn(np.tile([0, 1], 500))) == 0.0


def test_a_chain_can_be_cloned_and_gives_its_parameters():
    chain = TreeChain(min_samples_leaf=7, visit_order="correlation")

    assert clone(chain).get_params() == chain.get_params()


@pytest.mark.parametrize(
    "settings",
    [
        {"min_samples_leaf": 0},
        {"min_samples_leaf": 2.5},
        {"min_samples_split": 1},
        {"max_depth": 0},
        {"decisions": ()},
        {"decisions": ("yes",)},
        {"decisions": True},
        {"condition_on_decision": "no"},
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(bank, settings):
    with pytest.raises(ParameterError, match=next(iter(settings))):
        chain_of(bank, bank["salary"] > 0, ["age"], **settings)


def test_threads_grow_the_same_trees(bank):
    rows = Schema.learn(bank, immutable=["age"]).encode(bank)
    decision = (bank["salary"] > 60_000).to_numpy()

    one, four = (TreeChain().fit(rows, decision, n_jobs=n).trees_ for n in (1, 4))

    for name in ("feature", "cut", "left", "right", "start", "count", "sets", "values"):
        assert np.array_equal(getattr(one, name), getattr(four, name))


def impurity(leaves, rows, position):
    """Rows times impurity of the feature, summed over leaves."""
    _, leaves = np.unique(leaves, return_inverse=True)
    size = np.bincount(leaves)
    if rows.schema.features[position].kind == "numeric":
        values = rows.numbers(position)
        means = np.bincount(leaves, weights=values) / size
        return float(((values - means[leaves]) ** 2).sum())
    pairs, counts = np.unique(np.vstack([leaves, rows.exact[position]]), axis=1, return_counts=True)
    return float((size - np.bincount(pairs[0], weights=counts**2) / size).sum())


def impurity_ratios(frame, decision, immutable, n_seeds):
    """Our summed leaf impurity over the mean of scikit-learn's, feature by feature."""
    chain, rows = chain_of(frame, decision, immutable, decisions=(False, True))
    codes = np.vstack([rows.descent, np.asarray(decision)[None].astype(np.int32)])
    given = [*rows.schema.immutable, len(rows.schema.features)]
    ratios = []
    for tree, position in enumerate(chain.visit_order_):
        ours = impurity(descend(chain.trees_, tree, codes, chain.n_levels_ > 0), rows, position)
        numeric = rows.schema.features[position].kind == "numeric"
        estimator = DecisionTreeRegressor if numeric else DecisionTreeClassifier
        response = rows.numbers(position) if numeric else rows.exact[position]
        predictors = codes[sorted([*given, *chain.visit_order_[:tree]])].T
        theirs = [
            impurity(
                estimator(min_samples_leaf=5, random_state=seed)
                .fit(predictors, response)
                .apply(predictors),
                rows,
                position,
            )
            for seed in range(n_seeds)
        ]
        ratios.append(ours / np.mean(theirs) if np.mean(theirs) else 1.0)
    return np.array(ratios)


def test_leaves_on_german_credit_are_as_pure_as_scikit_learn_s():
    german = load_german_credit()

    ratios = impurity_ratios(german.features, german.target == "good", german.immutable, 10)

    assert ratios.mean() <= 1.005


@pytest.mark.slow
def test_leaves_on_adult_are_as_pure_as_scikit_learn_s(data_folder):
    adult = pd.read_csv(data_folder / "adult.csv.gz").drop(columns="split")
    income = adult.pop("income") == ">50K"

    ratios = impurity_ratios(adult, income, ["age", "sex"], 10)

    assert ratios.mean() <= 1.005


def test_the_generator_can_be_given_by_name_or_as_an_object(bank):
    score = lambda frame: frame["salary"]
    chain = TreeChain(max_depth=2)

    explainer = MCCE(score, (60_000, 1e9), generator=chain, random_state=0).fit(bank)

    assert explainer.generator_ is not chain
    assert not hasattr(chain, "trees_")
    assert explainer.get_params()["generator__max_depth"] == 2
