"""Own values that training never held: which searches keep them, and what is said of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, ExactSearch, McceWarning, Search, TreeChain
from mcce import constraints as c
from searches import explain

KEEPING = pytest.mark.parametrize("search", ["exact", "near"])


def score(frame):
    return frame["salary"] / 100 + (frame["debt"] > 90)


def fitted(search, predictor=score, **settings):
    chance = np.random.default_rng(0)
    train = pd.DataFrame(
        {
            "age": chance.choice([30, 40], 400),
            "salary": chance.integers(20, 90, 400),
            "debt": chance.integers(0, 4, 400) * 10.0,
        }
    )
    made = MCCE(predictor, (0.6, 2.0), immutable=["age"], search=search, random_state=0)
    return made.set_params(**settings).fit(train)


def people():
    return pd.DataFrame(
        {"age": [30, 40, 30, 30], "salary": [25, 30, 25, 25], "debt": [10.25, 19.5, 9.75, 10.0]}
    )


@KEEPING
def test_only_what_is_needed_changes_and_rules_see_the_own_number(search):
    rules = [c.only_down("debt"), c.change("salary", at_most=40)]

    result = explain(fitted(search), people())
    ruled = explain(fitted(search, constraints=rules), people())

    assert result.measures["sparsity"].tolist() == [1, 1, 1, 1]
    assert result.frame["debt"].tolist() == people()["debt"].tolist()
    assert ruled.frame["debt"].tolist() == people()["debt"].tolist()
    assert (ruled.frame["salary"].to_numpy() <= people()["salary"].to_numpy() + 40).all()


@pytest.mark.parametrize(
    "search", ["paper", ExactSearch(keep_unseen=False)], ids=["paper", "exact"]
)
def test_without_the_switch_such_numbers_change(search):
    assert explain(fitted(search), people()).measures["sparsity"].tolist() == [2, 2, 2, 1]


@KEEPING
def test_people_with_other_unseen_numbers_do_not_change_an_answer(search):
    explainer = fitted(search, n_counterfactuals=3)

    together = explainer.explain(people()).frame
    alone = [explainer.explain(people().iloc[[at]]).frame for at in range(4)]

    pd.testing.assert_frame_equal(together, pd.concat(alone))


def test_what_the_predictor_scores_is_the_own_number():
    steep = lambda frame: frame["salary"] / 100 - (frame["debt"] == 10.25)

    result = explain(fitted("near", steep), people().iloc[[0, 3]])

    assert result.measures["sparsity"].tolist() == [2, 1]


def test_a_row_with_such_a_number_is_no_copy_of_a_training_row():
    search = Search("near", copies="never")

    assert explain(fitted(search), people().head(1)).frame["debt"].tolist() == [10.25]


def nearest(frame):
    return 1.0 * (frame["salary"] == 2.0)


def stays(frame):
    return 1.0 * (((frame["salary"] == 1.9) | (frame["salary"] == 3.0)) & (frame["debt"] == 2.0))


@pytest.mark.parametrize(("predictor", "answer"), [(nearest, [2.0, 1.0]), (stays, [1.9, 2.0])])
def test_a_number_may_stay_or_become_the_nearest_one(predictor, answer):
    train = pd.DataFrame({"salary": [0.0, 1.0, 2.0, 3.0] * 5, "debt": [1.0, 2.0] * 10})
    leaf = TreeChain(min_samples_leaf=20)  # one leaf per feature: everything can be drawn
    explainer = MCCE(predictor, (1, 1), generator=leaf, search="exact", random_state=0).fit(train)

    result = explain(explainer, pd.DataFrame({"salary": [1.9], "debt": [1.0]}))

    assert result.frame.to_numpy().tolist() == [answer]


def test_levels_and_missing_values_that_training_never_held_may_stay():
    train = pd.DataFrame({"salary": [0.0, 1.0] * 10, "job": ["a", "b"] * 10, "debt": [1.0] * 20})
    own = pd.DataFrame({"salary": [0.0] * 2, "job": ["new", None], "debt": [np.nan, 1.0]})
    explainer = MCCE(lambda frame: frame["salary"], (1, 1), search="exact", random_state=0)

    result = explain(explainer.fit(train), own)

    pd.testing.assert_frame_equal(result.frame.reset_index(drop=True), own.assign(salary=1.0))


def test_the_paper_s_search_replaces_a_missing_value_that_training_never_held():
    own = people().assign(debt=np.nan).head(1)

    assert explain(fitted("paper"), own).frame["debt"].notna().all()


def fitted_by_age(predictor, **settings):
    table = pd.DataFrame({"age": [10, 20] * 50, "sex": ["f", "m"] * 50, "x": np.arange(100.0)})
    made = MCCE(predictor, (50, 99), immutable=["age", "sex"], search="paper", random_state=0)
    return made.set_params(**settings).fit(table)


def test_an_unseen_immutable_value_is_named_kept_and_drawn_for_like_the_nearest():
    own = pd.DataFrame({"age": [10, 11], "sex": ["f", "f"], "x": [1, 1]})

    result = fitted_by_age(lambda f: f["x"].astype(float), n_samples=3).explain(own)

    assert result.people["unseen_immutable"].tolist() == ["", "age"]
    assert result.frame["age"].tolist() == [10, 11]
    assert result.frame["x"].iloc[0] == result.frame["x"].iloc[1]


def test_people_with_different_unseen_immutables_do_not_share_scores():
    own = pd.DataFrame({"age": [11, 12], "sex": ["f", "f"], "x": [1, 1]})
    explainer = fitted_by_age(lambda f: np.where(f["age"] == 11, 0, f["x"]).astype(float))

    with pytest.warns(McceWarning):
        result = explainer.explain(own)

    assert result.people["status"].tolist() == ["no answer", "answered"]
    assert result.n_unstable == 0
