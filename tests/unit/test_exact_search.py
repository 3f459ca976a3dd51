"""The exact search: what is proven, what is said without an answer, and where it gives up."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from mcce import MCCE, ExactSearch, Gower, McceWarning, ParameterError, TreeChain
from mcce import constraints as c
from mcce.protocols import Capabilities, Draws
from searches import altered, explain

STOPPED = "The search was stopped before an answer was found."
TINY_BUDGETS = {"rows": ExactSearch(max_rows=1), "nodes": ExactSearch(max_nodes=3)}


def loans():
    """Twenty customers; who earns 7 or more gets the loan."""
    return pd.DataFrame({"age": [30, 40] * 10, "salary": np.arange(20) % 10})


def by_salary(rows):
    return rows["salary"] / 10


def poor():
    return pd.DataFrame({"age": [30], "salary": [2]})


def exact(predictor=by_salary, desired=(0.7, 1), **settings):
    """One leaf per feature: everything can be drawn."""
    settings = {"search": "exact", "generator": TreeChain(min_samples_leaf=20)} | settings
    return MCCE(predictor, desired, **settings).fit(loans())


@cache
def applicants(search="exact"):
    explainer = MCCE(score, (0.8, 10), search=search, immutable=["sex"], random_state=3)
    return explainer.fit(bank(300))


def test_a_case_that_can_be_checked_by_hand():
    explainer = exact(n_counterfactuals=3)

    result = explainer.explain(poor())
    more = altered(explainer, n_counterfactuals=4).explain(poor())

    assert result.frame.to_numpy().tolist() == [[30, 7], [30, 8], [30, 9]]
    assert result.measures["sparsity"].tolist() == [1, 1, 1]
    assert result.measures["proven"].tolist() == [True] * 3
    # With one of these salaries, another age is needless.
    pd.testing.assert_frame_equal(more.frame, result.frame)
    assert more.measures["proven"].all()


def test_each_row_is_scored_once_and_only_until_the_answer_is_known():
    seen = []

    def predictor(rows):
        seen.extend(map(tuple, rows.to_numpy().tolist()))
        return by_salary(rows)

    explainer = exact(predictor)
    seen.clear()

    result = explainer.explain(poor())

    scored = seen[1:-1]  # the person first, the answer once more at last
    assert len(scored) == len(set(scored)) == result.n_evaluated
    assert result.n_evaluated <= 9


def rich_and_old(rows):
    return 1.0 * ((rows["salary"] > 6) & (rows["age"] > 30))


def test_a_proof_of_no_answer_counts_the_rows():
    explainer = exact(rich_and_old, (1, 1), immutable=["age"])

    with pytest.warns(McceWarning, match="1 of 2 people have no counterfactual"):
        result = explainer.explain(pd.concat([poor(), poor().assign(age=40)], ignore_index=True))

    assert result.people["reason"].iloc[0] == (
        "Proven: no row that the model could draw is valid and allowed (9 rows, 9 allowed)."
    )
    assert len(result.nearest_misses) == 1
    assert result.people["status"].tolist() == ["no answer", "answered"]


@pytest.mark.parametrize(
    ("bounds", "bounds_text"),
    [
        ({"search": ExactSearch(max_sparsity=1)}, " with at most 1 changes"),
        ({"constraints": [c.max_changes(1)]}, " with at most 1 changes"),
        ({"search": ExactSearch(max_distance=0.1)}, " within a distance of 0.1"),
    ],
    ids=["changes", "rule", "distance"],
)
def test_the_reason_names_the_bounds_within_which_all_rows_were_listed(bounds, bounds_text):
    result = explain(exact(rich_and_old, (1, 1), **bounds), poor())

    said = f"Proven: no row that the model could draw{bounds_text} is valid and allowed ("
    assert result.people["reason"].item().startswith(said)


@pytest.mark.parametrize("budget", TINY_BUDGETS)
def test_beyond_the_budget_another_search_answers_and_nothing_is_claimed(budget):
    people = bank(30, seed=1)

    proven = explain(applicants(), people)
    result = explain(altered(applicants(), search=TINY_BUDGETS[budget]), people)

    assert proven.measures["proven"].all()
    assert not result.measures["proven"].all()
    assert (result.people["status"] == proven.people["status"]).all()
    assert (score(result.frame) >= 0.8).all()


def test_some_of_several_answers_are_kept_at_the_end_of_the_budget_but_not_called_proven():
    # By distance: salaries 1, 3, 0, 4, 5, 6 come before the first valid one.
    explainer = exact(search=ExactSearch(max_rows=6), n_counterfactuals=2)
    assert not explainer.explain(poor()).measures["proven"].any()

    result = altered(explainer, search=ExactSearch(max_rows=7)).explain(poor())

    assert result.frame.to_numpy().tolist() == [[30, 7]]
    assert result.measures["proven"].tolist() == [False]


def test_other_searches_claim_nothing():
    assert "proven" not in exact(search="paper", random_state=0).explain(poor()).measures


def test_a_stopped_search_keeps_what_is_proven_and_says_who_is_left():
    heard = []

    def stop(progress):
        heard.append(progress)
        return progress.n_settled >= 3

    alone = altered(applicants(), memory=1e-6)  # everybody in a block of their own
    result = explain(alone, bank(30, seed=1), callback=stop)

    assert result.stopped
    assert (result.people["reason"] == STOPPED).any()
    assert result.measures["proven"].all()
    assert len(result.measures)
    assert heard[-1].n_factuals > heard[-1].n_settled >= 3


def test_with_a_time_limit_whoever_the_proof_does_not_reach_has_an_answer_from_draws():
    people, settled = bank(30, seed=1), []
    n_people = (score(people) < 0.8).sum()

    def stop(progress):
        # The first search settles everybody; what is reported then is of the listing of rows.
        settled.append(progress.n_settled)
        return settled.count(n_people) > 1

    result = explain(altered(applicants(), max_seconds=1000), people, callback=stop)

    drawn = explain(applicants("paper"), people)
    assert result.stopped
    assert set(drawn.owner) <= set(result.owner)
    assert not result.measures["proven"].all()
    assert explain(altered(applicants(), max_seconds=1e-9), people).stopped


def test_with_a_time_limit_the_rows_that_both_searches_scored_count():
    seen = []

    def predictor(rows):
        seen.extend(map(tuple, rows.to_numpy().tolist()))
        return by_salary(rows)

    explainer = exact(predictor, max_seconds=1000)
    seen.clear()

    result = explainer.explain(poor())

    assert result.measures["proven"].all()
    assert result.n_evaluated == len(seen[1:-1])  # without the person and the final check


class Forgetful:
    """A black box that refuses salaries below a bound the second time it sees them."""

    def __init__(self):
        self.bound, self.seen = 0, {}

    def __call__(self, frame):
        scores = []
        for salary in frame["salary"]:
            self.seen[salary] = self.seen.get(salary, 0) + 1
            scores.append(0.0 if self.seen[salary] > 1 and salary < self.bound else float(salary))
        return np.array(scores)


def test_an_answer_that_fails_when_scored_again_gives_way_to_the_next():
    predictor = Forgetful()
    explainer = MCCE(predictor, (30, 100), search="exact")
    explainer.fit(pd.DataFrame({"salary": np.arange(80)}))
    predictor.bound, predictor.seen = 33, {}

    with pytest.warns(McceWarning, match="predictor is unstable"):
        result = explainer.explain(pd.DataFrame({"salary": [10]}))

    assert result.frame["salary"].item() >= 33
    assert result.n_unstable >= 1


class Drawing:
    """A generator that can do nothing but draw."""

    capabilities = Capabilities()

    def fit(self, rows, is_desired, *, seed, n_jobs, verbose):
        return self

    def sample(self, request):
        codes = np.zeros((2, request.keys.size, request.draws.size), dtype=np.int32)
        return Draws(codes, [pd.Series([30]), pd.Series([9])])


class Far(Gower):
    name = "far"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"generator": Drawing()}, "generator Drawing does not declare .* 'enumeration'"),
        ({"diversity": 0.5, "n_counterfactuals": 2}, "diversity must be None, got 0.5"),
        ({"distance": Far()}, "distance must be 'gower', got 'far'"),
    ],
    ids=["generator", "diversity", "distance"],
)
@pytest.mark.parametrize("desired", [(0.8, 10), (99, 100)], ids=["some", "none"])
def test_what_cannot_be_proven_is_refused(settings, message, desired):
    with pytest.raises(ParameterError, match=message):
        exact(desired=desired, **settings).explain(poor())


def test_a_budget_that_cannot_be_is_refused():
    for name, value in [("max_rows", 0), ("max_nodes", 1.5)]:
        with pytest.raises(ParameterError, match=f"{name} must be"):
            ExactSearch(**{name: value})


def test_nothing_is_proven_of_whom_the_predictor_took_answers_back_from():
    seen = set()

    def fickle(frame):
        """Accepts a row once, and refuses it ever after."""
        keys = [tuple(map(str, row)) for row in frame.itertuples(index=False)]
        scores = np.where([key in seen for key in keys], 0.1, score(frame))
        seen.update(keys)
        return scores

    people = bank(6, seed=1)
    people = people[score(people) < 0.8]
    explainer = MCCE(fickle, (0.8, 10), search="exact", random_state=0).fit(bank(60))

    result = explain(explainer, people)

    assert (result.missing["reason_kind"] == "unknown").all()
    assert result.missing["reason"].str.contains("refused each of them in the final call").all()
