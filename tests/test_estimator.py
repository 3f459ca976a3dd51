"""MCCE as a scikit-learn estimator: parameters, clones and the library's own checks."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

from mcce import MCCE, TreeChain


def first_column(rows):
    """A black box that takes arrays and frames."""
    values = rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows
    return np.nan_to_num(values[:, 0].astype(np.float64))


EXPLAINER = MCCE(first_column, desired=(0.0, np.inf), n_samples=10, random_state=0)
CHECKS = [check for _, check in estimator_checks_generator(EXPLAINER)]


# No check is excluded. One is skipped by scikit-learn itself unless SCIPY_ARRAY_API is set.
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.func.__name__)
def test_scikit_learn_s_own_checks_pass(check):
    check(clone(EXPLAINER))


@pytest.fixture
def tree(bank):
    risky = bank["defaulted_last_year"]
    return DecisionTreeClassifier(max_depth=3, random_state=0).fit(bank[["age", "salary"]], risky)


def test_a_clone_keeps_the_fitted_predictor_itself(tree):
    explainer = MCCE(tree, generator=TreeChain(max_depth=3), immutable=["age"])

    copy = clone(explainer)

    assert copy.predictor is tree
    assert copy.generator is not explainer.generator
    assert copy.generator.max_depth == 3
    assert copy.immutable == ["age"]


def test_parameters_do_not_reach_into_the_predictor(tree):
    explainer = MCCE(tree, generator=TreeChain(max_depth=3))

    names = set(explainer.get_params(deep=True))

    assert not any(name.startswith("predictor__") for name in names)
    assert "generator__max_depth" in names
    assert set(explainer.get_params(deep=False)) == {n for n in names if "__" not in n}


def test_parameters_can_be_set_by_name(tree):
    explainer = MCCE(tree)

    explainer.set_params(n_samples=50, generator=TreeChain(), generator__min_samples_leaf=9)

    assert explainer.n_samples == 50
    assert explainer.generator.min_samples_leaf == 9
    with pytest.raises(ValueError, match="n_sample"):
        explainer.set_params(n_sample=50)


def test_a_fitted_explainer_can_be_pickled(bank, tree):
    data = bank[["age", "salary"]]
    explainer = MCCE(tree, (0.2, 1.0), random_state=0).fit(data)
    people = data.head(20)

    copy = pickle.loads(pickle.dumps(explainer))

    pd.testing.assert_frame_equal(copy.explain(people).frame, explainer.explain(people).frame)


def test_column_names_are_kept_as_scikit_learn_does(bank):
    data = bank[["age", "salary"]]
    explainer = MCCE(first_column, (30, 99)).fit(data)

    assert explainer.feature_names_in_.tolist() == ["age", "salary"]
    assert explainer.n_features_in_ == 2
    assert not hasattr(explainer.fit(data.to_numpy()), "feature_names_in_")


def test_arrays_in_mean_arrays_for_the_predictor():
    kinds = set()

    def score(rows):
        kinds.add(type(rows))
        return rows[:, 0]

    chance = np.random.default_rng(0)
    train = chance.normal(size=(80, 3))
    explainer = MCCE(score, (0.5, 9.0), immutable=["x2"], random_state=0).fit(train)

    result = explainer.explain(train[train[:, 0] < 0.5][:5])

    assert kinds == {np.ndarray}
    assert result.frame.columns.tolist() == ["x0", "x1", "x2"]
    assert (result.frame["x0"] >= 0.5).all()
