"""Whoever has no answer learns why, what came nearest, and what would have to be lifted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, Interval, McceWarning, Search, TreeChain
from mcce import constraints as c
from searches import bounded, explain

ANY_LEAF = TreeChain(condition_on_decision=False)


def by_salary(frame):
    return frame["salary"].astype(float)


def fitted(predictor=by_salary, desired=(60, 100), **settings):
    train = pd.DataFrame({"age": [30, 40] * 20, "salary": np.arange(40) + 40})
    return MCCE(predictor, desired, immutable=["age"], random_state=0, **settings).fit(train)


def person(salary=50):
    return pd.DataFrame({"age": [30], "salary": [salary]}, index=["p"])


def test_a_bound_that_excludes_everything_is_named_with_the_valid_candidates_it_excludes():
    search = bounded(max_distance=0.01, max_sparsity=1)

    with pytest.warns(McceWarning, match="1 of 1 people have no counterfactual"):
        result = fitted(search=search, generator=ANY_LEAF).explain(person())

    reason = result.missing["reason"]
    said = r"Those that the predictor accepted \(\d+\) are excluded by max_distance=0\.01 \(too far"
    assert reason.str.contains(said).all()
    assert "max_sparsity" not in reason.item()
    assert (result.missing["nearest_score"] >= 60).all()
    assert result.nearest_misses.loc["p", "salary"] >= 60


def test_excluded_candidates_that_are_scored_for_a_reason_are_counted():
    scored = []

    def listening(frame):
        scored.append(len(frame))
        return by_salary(frame)

    explainer = fitted(listening, search=bounded(max_sparsity=0))
    scored.clear()

    result = explain(explainer, person())

    assert result.n_evaluated == sum(scored) - 1 > 0


def test_the_nearest_miss_is_the_one_whose_score_is_nearest_to_the_desired_set():
    train = pd.DataFrame({"age": [0, 1] * 40, "load": np.arange(80.0) // 2})
    score = lambda frame: np.where(frame["age"] == 1, 10.3, frame["load"])
    explainer = MCCE(score, (10.2, 10.4), immutable=["age"], search="paper")
    explainer.set_params(random_state=0).fit(train)

    result = explain(explainer, pd.DataFrame({"age": [0], "load": [30.0]}))

    assert (
        result.missing["reason"]
        .str.contains("scored all of them and accepted none. The best")
        .all()
    )
    assert result.nearest_misses["load"].tolist() == [10.0]
    assert result.missing["nearest_score"].tolist() == [10.0]
    assert result.frame.empty


def test_of_misses_with_equal_scores_the_best_ranked_is_the_nearest():
    old = lambda frame: np.where(frame["age"] == 40, 1.0, 0.0)

    result = explain(fitted(old, (1, 1), search="paper"), person(55))

    assert result.people["nearest_sparsity"].tolist() in ([0], [1])
    assert result.nearest_misses["salary"].sub(55).abs().item() <= 1


def test_a_valid_but_excluded_candidate_is_nearer_than_one_at_an_open_end():
    search = bounded(max_distance=0.0)
    explainer = fitted(desired=Interval(60, 100, "right"), search=search, generator=ANY_LEAF)

    assert explain(explainer, person()).missing["nearest_score"].item() > 60


class Labels:
    _estimator_type = "classifier"
    classes_ = np.array(["no", "yes"])

    def predict_proba(self, frame):
        yes = np.where(frame["age"] == 40, 0.9, (frame["salary"] - 40) / 100)
        return np.column_stack([1 - yes, yes])

    def predict(self, frame):
        return self.classes_[(self.predict_proba(frame)[:, 1] > 0.5).astype(int)]


def test_the_nearest_miss_of_labels_has_the_largest_probability():
    result = explain(fitted(Labels(), "yes", search="paper", generator=ANY_LEAF), person())

    assert result.missing["nearest_score"].item() == pytest.approx(0.38)


def test_without_a_desired_training_row_nobody_can_be_answered_and_nothing_is_scored():
    result = explain(fitted(desired=(990, 999)), person())

    assert result.missing["reason"].tolist() == ["No training row has the desired decision."]
    assert result.n_evaluated == 0


@pytest.mark.parametrize(
    "bounds", [{"max_distance": 0.02}, {"margin": 30.0}], ids=["distance", "margin"]
)
def test_a_nearest_miss_of_other_searches_carries_the_score_of_the_predictor(bounds):
    explainer = fitted(search=Search("near", max_samples=200, **bounds), desired=(60, 1000))

    result = explain(explainer, pd.concat([person(at) for at in (41, 45, 50)]))

    assert len(result.nearest_misses)
    true = by_salary(result.nearest_misses).to_numpy()
    assert np.array_equal(result.missing["nearest_score"].dropna().to_numpy(), true)


def test_a_reason_names_the_constraint_whose_lifting_gives_an_answer():
    chance = np.random.default_rng(2)
    train = pd.DataFrame({"a": chance.integers(0, 10, 200), "b": chance.integers(0, 10, 200)})
    rules = [c.only_down("a"), c.frozen("b", where="b < 0")]
    model = MCCE(lambda frame: frame["a"], (8, 9), search="near", random_state=0).fit(train)

    result = explain(model, train[train["a"] < 5].head(3), constraints=rules)

    expected = f" Without the constraint {rules[0].name!r} there would be an answer."
    assert result.people["reason"].str.endswith(expected).all()


def test_a_reason_names_the_bound_whose_lifting_gives_an_answer():
    train = pd.DataFrame({"a": np.tile(np.arange(5), 20), "b": np.repeat(np.arange(5), 20)})
    search = Search("near", max_sparsity=1, min_plausibility=0.0)
    model = MCCE(lambda f: f["a"] + f["b"], (8, 9), search=search, random_state=0).fit(train)

    result = explain(model, train.head(1))

    expected = " Without max_sparsity=1 there would be an answer."
    assert result.people["reason"].str.endswith(expected).all()
    assert result.timings["remedies"] > 0


LOW = c.relation("lifting max_distance=1; excluded by max_changes 2", "a + b < 6")
# What excludes valid rows, and the kind of the reason.
EXCLUDED = {
    "changes": ({"max_sparsity": 1}, [], "too_many_changes"),
    "distance": ({"max_distance": 0.1}, [], "too_far"),
    "both": ({"max_sparsity": 1, "max_distance": 0.1}, [], "too_many_changes"),
    "counted": ({}, [LOW, c.max_changes(1)], "too_many_changes"),
    "relation": ({}, [LOW], "ruled_out"),
}


@pytest.mark.parametrize("case", EXCLUDED)
def test_the_kind_of_a_reason_is_that_of_the_limit_and_no_matter_of_names(case):
    train = pd.DataFrame({"a": np.tile(np.arange(5), 20), "b": np.repeat(np.arange(5), 20)})
    bounds, rules, kind = EXCLUDED[case]
    search = Search("paper", **bounds)
    model = MCCE(lambda f: f["a"] + f["b"], (8, 9), search=search, random_state=0).fit(train)

    result = explain(model, train.head(1), constraints=rules)

    assert result.missing["reason_kind"].tolist() == [kind], result.missing["reason"].item()


# ---------------------------------------------------------------------------------------------
# Predictors that do not keep their word.


class Forgetful:
    """A black box that refuses salaries below a bound the second time it sees them."""

    def __init__(self):
        self.bound, self.seen = 0, {}

    def __call__(self, frame):
        scores = []
        for salary in frame["salary"]:
            self.seen[salary] = self.seen.get(salary, 0) + 1
            refused = self.seen[salary] > 1 and salary < self.bound
            scores.append(0.0 if refused else float(salary))
        return np.array(scores)


def forgetful(bound):
    predictor = Forgetful()
    explainer = MCCE(predictor, (30, 100), search="paper", random_state=0)
    explainer.fit(pd.DataFrame({"salary": np.arange(80)}))
    predictor.bound, predictor.seen = bound, {}
    return explainer, predictor


def test_candidates_are_tried_until_one_keeps_its_score_and_each_is_scored_once():
    explainer, predictor = forgetful(37)

    with pytest.warns(McceWarning, match="predictor is unstable"):
        result = explainer.explain(pd.DataFrame({"salary": [10]}))

    assert result.people["status"].tolist() == ["answered"]
    assert result.frame["salary"].between(37, 80).all()
    assert result.n_unstable == 7
    assert result.n_evaluated == len(predictor.seen) - 1
    assert sum(predictor.seen.values()) == 1 + result.n_evaluated + 8


def test_a_predictor_that_never_keeps_its_word_leaves_people_without_an_answer():
    explainer, _ = forgetful(999)

    with pytest.warns(McceWarning, match="predictor is unstable"):
        result = explainer.explain(pd.DataFrame({"salary": [10]}))

    assert result.frame.empty
    assert "but refused each of them in the final call" in result.missing["reason"].item()
    assert result.missing["reason_kind"].item() == "unknown"


class Hesitant(Forgetful):
    """A black box that refuses everybody the first time it sees them."""

    def __call__(self, frame):
        again = np.array([self.seen.get(salary, 0) > 0 for salary in frame["salary"]])
        super().__call__(frame)
        return np.where(again, frame["salary"].to_numpy(float), 0.0)


@pytest.mark.parametrize(
    ("bounds", "rules"),
    [({}, [c.only_up("salary")]), ({"max_sparsity": 1}, []), ({"margin": 1.0}, [])],
    ids=["constraint", "bound", "margin"],
)
def test_what_an_answer_keeps_is_not_blamed_for_its_having_been_missed(bounds, rules):
    predictor = Hesitant()
    search = Search("near", min_plausibility=0.0, **bounds)
    model = MCCE(predictor, (29, 100), search=search, random_state=0)
    predictor.seen = dict.fromkeys([10, 20, 30, 40], 1)
    model.fit(pd.DataFrame({"salary": [10, 20, 30, 40] * 20}))
    people = pd.DataFrame({"salary": [10]})

    predictor.seen = {}
    result = explain(model, people, constraints=rules)
    predictor.seen = {}
    table = model.relax(people, constraints=rules)

    assert result.people["status"].tolist() == ["answered"]
    assert result.frame["salary"].tolist() == [30]
    assert result.people["reason"].tolist() == [""]
    assert result.nearest_misses.empty
    assert table["answered"].tolist() == [False]


# ---------------------------------------------------------------------------------------------
# Reasons are true, and can be read by somebody who knows no statistics.


def reason_of(predictor, desired, train, search=None, rules=(), **settings):
    """The reason of the first training row, and its kind."""
    search = search or Search("near", min_plausibility=0.0)
    model = MCCE(predictor, desired, search=search, random_state=0, **settings).fit(train)
    people = explain(model, train.head(1), constraints=rules).people
    return people["reason"].item(), people["reason_kind"].item()


def numbers(*values, n=40):
    return pd.DataFrame({"a": np.resize(values, n).astype(float)})


ENDS = {
    "below a closed end": (Interval(0.5, 2.0), 0.25, "The best score was 0.25; at least 0.5 is"),
    "at an open low end": (Interval(0.5, 2.0, "right"), 0.5, "was 0.5; more than 0.5 is needed."),
    "above a closed end": (Interval(-2.0, -0.5), 0.75, "was 0.75; at most -0.5 is needed."),
    "at an open high end": (Interval(-2.0, 0.5, "left"), 0.5, "was 0.5; less than 0.5 is needed."),
    "far from a large end": (Interval(9e5, 1e6), 456789.5, "was 456789.5; at least 900000 is"),
    "a tiny score": (Interval(0.5, 2.0), 1e-9, "The best score was 0; at least 0.5 is needed."),
    "a little short": (Interval(0.5, 2.0), 0.499999, "was 0.499999; at least 0.5 is needed."),
}


@pytest.mark.parametrize("case", ENDS)
def test_a_reason_says_on_which_side_of_the_desired_set_the_best_score_is(case):
    desired, best, said = ENDS[case]
    reached = {0.0: desired.low - 9 if best < 0.6 and desired.low > 0 else desired.high + 9}
    train = numbers(0, 1, 2)
    # The third value is accepted, but not for people.
    reached |= {1.0: best, 2.0: (desired.low + desired.high) / 2}
    score = lambda frame: frame["a"].map(reached).to_numpy()

    reason, kind = reason_of(score, desired, train, rules=[c.between("a", high=1)])

    assert said in reason
    assert kind != "unknown"


@pytest.mark.parametrize("search", ["paper", "near"])
def test_labels_without_scores_have_a_reason_that_names_no_score(search):
    labels = lambda frame: np.where(frame["a"] > 2, "yes", "no")
    settings = {"search": bounded(search), "rules": [c.between("a", high=2)]}

    reason, kind = reason_of(labels, "yes", numbers(*range(4)), generator=ANY_LEAF, **settings)

    assert "scored all of them and accepted none." in reason
    assert "score was" not in reason
    assert kind == ("refused" if search == "paper" else "ruled_out")


@pytest.mark.parametrize("search", ["paper", "near"])
def test_all_searches_use_the_same_sentences(search):
    settings = {"search": bounded(search), "rules": [c.between("a", high=2)]}

    reason, _ = reason_of(
        lambda f: f["a"], (3, 9), numbers(*range(4)), generator=ANY_LEAF, **settings
    )

    said = "scored all of them and accepted none. The best score was 2; at least 3 is needed."
    assert said in reason


def test_draws_that_change_nothing_are_not_called_refused():
    rules = [c.frozen("a")]

    reason, kind = reason_of(lambda f: f["a"], (3, 9), numbers(*range(4)), "paper", rules)

    assert reason == "Nothing was drawn but the person's own values."
    assert kind == "unknown"


def test_a_single_combination_is_called_one():
    reason, _ = reason_of(lambda f: f["a"], (2, 9), numbers(0, 1, 2), rules=[c.between("a", 0, 1)])

    assert reason.startswith(
        "We looked at 1 combination of values. The predictor scored it and did not accept it. The "
        "best score was 1; at least 2 is needed."
    )


def test_the_most_promising_are_told_from_all():
    train, rules = numbers(0, 1, 2, 3), [c.between("a", 0, 2)]

    reason, _ = reason_of(lambda f: f["a"], (3, 9), train, rules=rules)

    assert "We looked at 2 combinations of values. The predictor scored all of them and" in reason
    assert "most promising" not in reason


def test_others_are_promising_only_where_some_were_scored():
    train = numbers(0, 1, 2, 3)
    search = Search("near", min_plausibility=0.0, max_distance=0.1)

    reason, kind = reason_of(lambda f: f["a"], (3, 9), train, search)

    assert "Promising ones are excluded by max_distance=0.1 (too far from the person's" in reason
    assert "Other" not in reason
    assert kind == "too_far"


def test_constraints_are_blamed_only_where_there_are_some():
    train = numbers(0, 1).assign(fixed=7.0)
    immutable = {"immutable": ["a"]}

    free, _ = reason_of(lambda f: f["a"], (1, 9), train, **immutable)
    frozen, _ = reason_of(lambda f: f["a"], (1, 9), train, rules=[c.frozen("a")])

    assert free.startswith("There is nothing to change: every column is fixed, follows from others")
    assert "constraint" not in free
    assert frozen == f"{free} Without the constraint 'frozen a' there would be an answer."


def test_a_margin_that_is_in_the_way_is_named_and_the_predictor_refused_nothing():
    search = Search("near", min_plausibility=0.0, margin=0.4)

    reason, kind = reason_of(
        lambda f: f["a"] / 10, Interval(0.4, np.inf), numbers(*range(8)), search
    )

    assert "and accepted none with margin=0.4. The best score was 0.7; at least 0.8 is" in reason
    assert reason.endswith("is needed. Without margin=0.4 there would be an answer.")
    assert kind == "unknown"


def test_where_only_copies_would_do_the_ban_on_them_is_the_reason():
    search = Search("near", min_plausibility=0.0, copies="never")

    reason, kind = reason_of(lambda f: f["a"], (1, 9), numbers(0, 1), search)

    assert reason.endswith(" Without copies='never' there would be an answer.")
    assert kind == "ruled_out"


@pytest.mark.parametrize("search", ["paper", "near"])
def test_rows_that_were_withdrawn_are_not_called_refused(search):
    predictor = Forgetful()
    search = bounded(search, min_plausibility=0.0)
    model = MCCE(predictor, (30, 100), search=search, random_state=0)
    model.fit(pd.DataFrame({"salary": [10, 20, 30, 40] * 20}))
    predictor.bound, predictor.seen = 999, {}

    people = explain(model, pd.DataFrame({"salary": [10]})).people

    assert "unstable" in people["reason"].item()
    assert "accepted none" not in people["reason"].item()
    assert people["reason_kind"].item() == "unknown"
