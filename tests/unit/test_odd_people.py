"""People and scores far from those of training, for the searches beyond the paper."""

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, ExactSearch, Search
from mcce.constraints import weight

POOL_SEARCHES = ["sparse", "balanced", "near", "nearest", "plausible"]
NUMBERS = pd.DataFrame(
    np.random.default_rng(2).integers(0, 40, (600, 4)), columns=["a", "b", "c", "d"]
)


def total(frame):
    return (frame["a"] + 0.7 * frame["b"] + 0.3 * frame["c"] - 1.2 * frame["d"]).to_numpy(float)


ENOUGH = float(np.quantile(total(NUMBERS), 0.9))


def answers(search, people, score=total, desired=(ENOUGH, 1e9), train=NUMBERS, **parameters):
    explainer = MCCE(
        score, desired, search=search, random_state=0, ignore_relations=True, **parameters
    )
    return explainer.fit(train).explain(people)


@pytest.mark.parametrize("search", ["sparse", "balanced", "near", "nearest"])
def test_a_value_beyond_training_hides_no_answer_that_replaces_it(search):
    people = NUMBERS[total(NUMBERS) >= ENOUGH].head(5).assign(d=300)

    result = answers(search, people)

    assert (result.people["status"] == "answered").all()
    assert (result.frame["d"] < 40).all()


@pytest.mark.parametrize("search", POOL_SEARCHES)
def test_an_infinite_own_score_says_nothing_of_other_rows(search):
    def score(frame):
        with np.errstate(divide="ignore"):
            return np.log(frame["a"].to_numpy(float))

    train = NUMBERS.assign(a=NUMBERS["a"] + 1)

    result = answers(search, train.head(1).assign(a=0), score, (3.0, 99.0), train)

    assert result.people["status"].tolist() == ["answered"]


def test_scores_of_any_size_can_be_told_apart():
    def tiny(frame):
        return 1e-12 * total(frame)

    people = NUMBERS[total(NUMBERS) < ENOUGH].head(5)

    result = answers("near", people, tiny, (1e-12 * ENOUGH, 1.0))

    assert (result.people["status"] == "answered").all()


@pytest.mark.parametrize("search", [ExactSearch(max_nodes=1), ExactSearch(max_rows=1)])
def test_people_beyond_the_budget_of_the_exact_search_get_answers_as_from_near(search):
    people = NUMBERS[total(NUMBERS) < ENOUGH - 10].head(10)
    near = answers(Search("near", min_plausibility=0.0, copies="allow"), people)

    result = answers(search, people)

    assert (result.people["status"] == "answered").all()
    assert result.n_evaluated <= near.n_evaluated + len(people) * search.max_rows


@pytest.mark.parametrize("search", ["balanced", "nearest"])
@pytest.mark.parametrize("factor", [200.0, 1e4, 1e7])
def test_no_weight_lets_an_answer_have_more_changes_than_it_may(search, factor):
    def score(frame):
        several = (frame[["b", "c", "d"]] >= 4).all(axis=1)
        return ((frame["a"] >= 5) | several).to_numpy() * 0.8 + 0.1

    rng = np.random.default_rng(0)
    train = pd.DataFrame(rng.integers(0, 6, (600, 4)), columns=list("abcd"))

    result = answers(
        Search(search, min_plausibility=0.0, extra_changes=0, copies="allow"),
        pd.DataFrame(0, index=[0], columns=list("abcd")),
        score,
        (0.5, 1.0),
        train,
        constraints=[weight("a", factor)],
        n_counterfactuals=4,
    )

    assert len(set(result.measures["sparsity"])) == 1
