"""Own numbers that training never held are kept where the nearest training value could be drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, ExactSearch, ParameterError, Search
from mcce import constraints as c

RNG = np.random.default_rng(0)
TRAIN = pd.DataFrame(
    {
        "age": RNG.choice([30, 40], 400),
        "salary": RNG.integers(20, 90, 400),
        "debt": RNG.integers(0, 4, 400) * 10.0,
    }
)
PEOPLE = pd.DataFrame(
    {"age": [30, 40, 30, 30], "salary": [25, 30, 25, 25], "debt": [10.25, 19.5, 9.75, 10.0]}
)


def score(frame):
    return frame["salary"] / 100 + (frame["debt"] > 90)


def explainer(search, **settings):
    made = MCCE(score, (0.6, 2.0), immutable=["age"], search=search, random_state=0, **settings)
    return made.fit(TRAIN)


PAPER = Search.preset("paper", keep_unseen=True)


@pytest.mark.parametrize("search", ["fast", "exact", PAPER], ids=["fast", "exact", "paper"])
def test_only_what_is_needed_changes(search):
    result = explainer(search).explain(PEOPLE)

    assert result.measures["sparsity"].tolist() == [1, 1, 1, 1]
    assert result.frame["debt"].tolist() == PEOPLE["debt"].tolist()


@pytest.mark.parametrize(
    "search", ["paper", ExactSearch(keep_unseen=False)], ids=["paper", "exact"]
)
def test_without_the_switch_such_numbers_change(search):
    result = explainer(search).explain(PEOPLE)

    assert result.measures["sparsity"].tolist() == [2, 2, 2, 1]


@pytest.mark.parametrize("search", ["fast", "exact", PAPER], ids=["fast", "exact", "paper"])
def test_people_with_other_unseen_numbers_do_not_change_an_answer(search):
    fitted = explainer(search, n_counterfactuals=3)

    together = fitted.explain(PEOPLE).frame
    alone = pd.concat([fitted.explain(PEOPLE.iloc[[at]]).frame for at in range(len(PEOPLE))])

    pd.testing.assert_frame_equal(together, alone)


def test_what_the_predictor_scores_is_the_own_number():
    def steep(frame):
        return frame["salary"] / 100 - (frame["debt"] == 10.25)

    fitted = MCCE(steep, (0.6, 2.0), immutable=["age"], search=PAPER, random_state=0).fit(TRAIN)

    result = fitted.explain(PEOPLE.iloc[[0, 3]])

    assert result.measures["sparsity"].tolist() == [2, 1]


@pytest.mark.parametrize("search", ["fast", "exact", PAPER], ids=["fast", "exact", "paper"])
def test_rules_see_the_own_number(search):
    rules = [c.only_down("debt"), c.change("salary", at_most=40)]
    fitted = explainer(search, constraints=rules)

    result = fitted.explain(PEOPLE)

    assert result.frame["debt"].tolist() == PEOPLE["debt"].tolist()
    assert (result.frame["salary"].to_numpy() <= PEOPLE["salary"].to_numpy() + 40).all()


def test_a_row_with_such_a_number_is_no_copy_of_a_training_row():
    search = Search.preset("paper", keep_unseen=True, copies="never")

    result = explainer(search).explain(PEOPLE.iloc[[0]])

    assert result.frame["debt"].tolist() == [10.25]


@pytest.mark.parametrize("search", ["paper", PAPER, "fast"], ids=["off", "on", "guided"])
def test_only_guided_draws_keep_a_missing_value_that_training_never_held(search):
    people = PEOPLE.assign(debt=[np.nan, 10.0, 10.0, 10.0]).iloc[[0]]

    result = explainer(search).explain(people)

    assert result.frame["debt"].isna().all() == (search == "fast")


def test_the_switch_is_true_or_false():
    with pytest.raises(ParameterError, match="keep_unseen must be True or False, got 'yes'"):
        Search(keep_unseen="yes")
