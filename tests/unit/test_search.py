"""Searches by name and of one's own: what they find, and what is said if they cannot be."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from bills import bills, value
from mcce import MCCE, McceWarning, NotFittedError, ParameterError, Search
from mcce import constraints as c
from searches import altered, assert_same, bounded, explain

WALKS = ["sparse", "balanced", "plausible", "near"]
SAMPLING = ["paper", *WALKS, "fast"]


@cache
def people(n=40):
    return bank(n, seed=1)


@cache
def fitted(search="balanced", **more):
    settings = {"immutable": ["sex"], "random_state": 0} | more
    return MCCE(score, (0.8, 10), search=search, **settings).fit(bank(500))


# ---------------------------------------------------------------------------------------------
# As values.


REFUSED = [
    ({"n_targets": -1}, "n_targets must be a whole number from 0"),
    ({"n_targets": "balanced"}, r"Search\.preset\('balanced'\)"),
    ({"min_plausibility": 1}, "min_plausibility must be at least 0 and below 1, got 1"),
    ({"min_plausibility": None}, "min_plausibility"),
    ({"extra_changes": -1}, "extra_changes"),
    ({"prefer": "nearest"}, "prefer must be one of"),
    ({"keep_probability": 1}, "keep_probability must be at least 0 and below 1, got 1"),
    ({"keep_unseen": "yes"}, "keep_unseen must be True or False"),
    ({"allow_implausible": "yes"}, "allow_implausible must be True or False"),
    ({"allow_implausible": True, "min_plausibility": 0}, "min_plausibility above 0"),
    ({"n_samples": 0}, "n_samples"),
    ({"max_samples": 50}, "max_samples must be at least n_samples, 100"),
    ({"n_targets": 0}, "extra_changes=0 and prefer='distance'"),
    ({"rank_by": ["distance"]}, r"rank_by=\['distance'\].*Leave rank_by out"),
    ({"consequences": "maybe"}, "consequences must be one of"),
    ({"margin": -0.1}, "margin must be a finite number >= 0"),
    ({"margin": np.nan}, "margin must be a finite number >= 0"),
    ({"copies": "first"}, 'copies must be one of "last", "never", "allow"'),
    ({"max_evaluations": 0}, "max_evaluations"),
    ({"max_evaluations": 1.5}, "max_evaluations"),
]


def test_a_parameter_that_cannot_work_is_an_error_that_names_it():
    for parameters, message in REFUSED:
        with pytest.raises(ParameterError, match=message):
            Search(**parameters)


def test_a_search_without_targets_says_what_it_cannot_do():
    for changes, message in [
        ({"max_evaluations": 5}, "max_samples"),
        ({"allow_implausible": True}, "min_plausibility above 0"),
        ({"rank_by": ("n_actions", "distance")}, "counts actions"),
    ]:
        with pytest.raises(ParameterError, match=message):
            Search.preset("fast", **changes)


def test_a_preset_with_changes_differs_in_these_alone_and_does_not_change():
    for name in SAMPLING:
        preset, changed = Search.preset(name), Search.preset(name, max_sparsity=2, tolerance=0.1)
        named = [field.name for field in fields(Search)]
        differing = [at for at in named if getattr(changed, at) != getattr(preset, at)]
        assert differing == ["max_sparsity", "tolerance"]
        assert eval(repr(changed), {"Search": Search}) == changed
        with pytest.raises(FrozenInstanceError):
            preset.max_sparsity = 1
    assert len({repr(Search.preset(name)) for name in SAMPLING}) == len(SAMPLING)


def test_a_preset_that_is_none_is_refused_with_what_there_is():
    with pytest.raises(ParameterError, match=r"Search has no parameter 'slack'.*'extra_changes'"):
        Search.preset("balanced", slack=2)
    with pytest.raises(ParameterError, match=r"'exact' is an ExactSearch. Pass ExactSearch\("):
        Search.preset("exact", max_sparsity=1)
    with pytest.raises(ParameterError, match=r"search must be one of .*'balanced'"):
        Search.preset("Paper")


@pytest.mark.parametrize(
    "search", ["best", None, {"n_targets": 3}, Search], ids=["name", "none", "dict", "class"]
)
def test_an_unknown_search_is_an_error_before_anything_is_learned(search):
    explainer = MCCE(score, (0.8, 10), search=search)

    with pytest.raises(ParameterError, match=r"search must be (one of .*'balanced'|a name)"):
        explainer.fit(bank(50))
    with pytest.raises(NotFittedError):
        explainer.explain(people())


def test_what_fit_did_not_learn_must_be_fitted_again():
    paper = MCCE(score, (0.8, 10), random_state=0).fit(bank(100))
    assert paper.search == "paper"
    assert paper.plausibility_ is None

    for search, message in [("sparse", "Fit again"), (bounded(copies="never"), "training rows")]:
        with pytest.raises(NotFittedError, match=message):
            altered(paper, search=search).explain(people())


def test_the_search_may_change_after_fit_among_those_that_learn_the_same():
    once = explain(altered(fitted("sparse"), search="plausible"), people())

    assert_same(once, explain(fitted("plausible"), people()))


# ---------------------------------------------------------------------------------------------
# What they find.


def test_each_search_is_best_at_what_it_is_named_after():
    found = {name: explain(altered(fitted(), search=name), people()) for name in ["paper", *WALKS]}
    measures = {name: result.measures.mean() for name, result in found.items()}

    assert measures["near"]["sparsity"] <= measures["sparse"]["sparsity"]
    assert measures["sparse"]["sparsity"] <= measures["balanced"]["sparsity"]
    assert measures["sparse"]["sparsity"] < measures["paper"]["sparsity"]
    real = {name: measures[name]["knn_distance_quantile"] for name in WALKS}
    assert real["plausible"] < real["sparse"]
    assert measures["near"]["l1"] == min(measures[name]["l1"] for name in WALKS)
    assert list(found["paper"].measures)[:4] == ["score", "sparsity", "gower", "l1"]


@pytest.mark.parametrize("least", [0.01, 0.25, 0.6])
def test_answers_are_plausible_enough_or_no_stranger_than_the_person(least):
    explainer = altered(fitted(), search=Search(min_plausibility=least))

    result = explain(explainer, people())

    p_value = explainer.plausibility(result.frame)["plausibility"].to_numpy()
    own = explainer.plausibility(people())["plausibility"].to_numpy()[result.owner]
    assert len(result.frame) > 8
    assert (p_value >= np.minimum(least, own)).all()
    assert np.array_equal(result.measures["plausibility"], p_value)
    assert result.measures["knn_distance_quantile"].between(0, 1).all()


def strange_case():
    """Numbers a and b that are equal in training; acceptance needs them apart."""
    chance = np.random.default_rng(1)
    a = chance.integers(0, 20, 400).astype(float)
    train = pd.DataFrame({"a": a, "b": a, "c": chance.integers(0, 2, 400)})

    def points(frame):
        apart = (frame["a"] >= 18) & (frame["b"] <= 2)
        return ((frame["c"] == 1) | apart).astype(float)

    return train, points, train[train["c"] == 0].head(6)


@pytest.mark.parametrize("name", ["sparse", "plausible"])
def test_implausible_answers_come_only_if_they_are_allowed_and_are_marked(name):
    train, points, asking = strange_case()
    strict = bounded(name, n_samples=20, max_samples=20, min_plausibility=0.3)
    model = MCCE(points, (0.5, 1.0), immutable=["c"], search=strict, random_state=0).fit(train)

    without = explain(model, asking)
    lax = explain(altered(model, search=replace(strict, allow_implausible=True)), asking)

    answered = without.people["status"] == "answered"
    assert (lax.people["status"] == "answered").all()
    assert lax.measures["plausible"].tolist() == answered.tolist()
    assert not answered.all()
    assert "plausible" not in without.measures
    missing = without.people[~answered]
    assert missing["reason"].str.contains("min_plausibility|allow_implausible").all()
    assert (missing["reason_kind"] == "implausible").all()
    assert (points(without.nearest_misses) == 1).all()


def test_people_without_a_reference_group_are_flagged_and_warned_about():
    train = bank(500)
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], search="balanced", random_state=0)

    with pytest.warns(McceWarning, match=r"columns \['sex'\] occur in no accepted training row"):
        result = explainer.fit(train[(train["sex"] == "f") | (score(train) < 0.8)]).explain(
            people()
        )

    male = (people()["sex"] == "m").to_numpy()[result.owner]
    assert np.array_equal(result.measures["no_reference_group"].to_numpy(), male)
    assert not explain(fitted(), people()).measures["no_reference_group"].any()


def test_a_black_box_of_labels_only_is_searched_and_changes_less_than_draws():
    label = lambda frame: np.where(score(frame) >= 0.8, "yes", "no")
    explainer = MCCE(label, ["yes"], immutable=["sex"], search="sparse", random_state=0)
    explainer.fit(bank(500))
    asking = people()[score(people()) < 0.8]

    found = explain(explainer, asking)

    drawn = explain(altered(explainer, search="paper", n_samples=100), asking)
    assert len(found.frame) == len(asking)
    assert (label(found.frame) == "yes").all()
    assert found.measures["sparsity"].mean() < drawn.measures["sparsity"].mean()


def test_an_interval_with_two_ends_is_met():
    explainer = MCCE(score, (0.8, 0.85), immutable=["sex"], search="sparse", random_state=0)
    asking = people()[(score(people()) < 0.8) | (score(people()) > 0.85)]

    result = explain(explainer.fit(bank(500)), asking)

    assert len(result.frame) == len(asking)
    assert ((score(result.frame) >= 0.8) & (score(result.frame) <= 0.85)).all()


def test_a_pair_of_changes_that_no_training_row_has_is_found():
    chance = np.random.default_rng(0)
    train = pd.DataFrame(chance.integers(0, 10, (200, 2)), columns=["a", "b"])
    train = train[(train["a"] != 3) | (train["b"] != 7)]
    train["c"] = (train["a"] > 8).astype(int)
    points = lambda f: (((f["a"] == 3) & (f["b"] == 7)) | (f["c"] == 1)).astype(float)
    search = Search.preset("near", min_plausibility=0.0, n_samples=20, max_samples=40)
    model = MCCE(points, (0.5, 1.0), immutable=["c"], search=search, random_state=0).fit(train)
    asking = train[(train["c"] == 0) & (train["a"] != 3) & (train["b"] != 7)].head(5)

    result = explain(model, asking)

    assert result.frame[["a", "b"]].to_numpy().tolist() == [[3, 7]] * 5


@pytest.mark.parametrize(
    ("name", "diversity"), [("sparse", None), ("near", 0.5), ("plausible", 0.5), ("fast", None)]
)
def test_the_first_of_several_answers_is_the_one_you_get_alone(name, diversity):
    model = fitted(name)

    alone = explain(model, people()).frame
    several = explain(altered(model, n_counterfactuals=5, diversity=diversity), people()).frame

    first = several[several.index.get_level_values("rank") == 1]
    pd.testing.assert_frame_equal(first, alone)


def test_guided_draws_change_no_more_than_needed_in_a_table_of_many_numbers():
    chance = np.random.default_rng(0)
    table = pd.DataFrame(chance.normal(size=(600, 12)).round(2)).add_prefix("x")
    box = lambda frame: frame["x0"] + frame["x1"]
    explainer = MCCE(box, (1.5, 99), search="fast", random_state=0).fit(table)

    result = explain(explainer, pd.DataFrame(chance.normal(size=(20, 12))).add_prefix("x"))

    assert len(result.frame)
    assert result.measures["sparsity"].max() <= 2


def test_a_rule_that_leaves_nothing_of_a_leaf_leaves_answers_elsewhere():
    chance = np.random.default_rng(0)
    kind, accepted = chance.choice(["old", "young"], 600), chance.random(600) < 0.5
    # Accepted people have values of their own kind: 90 to 99 if old, 40 to 60 if young.
    high = np.where(kind == "old", chance.integers(90, 100, 600), chance.integers(40, 61, 600))
    numbers = np.where(accepted, high, chance.integers(10, 35, 600)).astype(float)
    train = pd.DataFrame({"kind": kind, "value": numbers, "other": chance.integers(0, 8, 600)})
    asking = train[(kind == "old") & ~accepted].head(8)
    model = MCCE(lambda f: f["value"] / 100, (0.4, 1.0), immutable=["kind"], search="fast")
    model.set_params(random_state=0, constraints=[c.change("value", at_most=45)]).fit(train)

    result = explain(model, asking)

    assert (result.people["status"] == "answered").all()
    assert result.frame["value"].between(40, 60).all()
    for search in (Search.preset("fast", back_off=False), "paper", "exact"):
        assert explain(altered(model, search=search), asking).frame.empty


def test_a_weight_makes_changes_of_a_feature_dearer():
    chance = np.random.default_rng(0)
    train = pd.DataFrame(chance.integers(0, 100, (300, 2)), columns=["a", "b"])
    asking = train[train.sum(axis=1) < 60].head(8)

    for search in ("paper", "near", "fast", "exact"):
        model = MCCE(lambda f: f["a"] + f["b"], (80, 200), search=search, random_state=0).fit(train)
        moved = {
            dear: (explain(model, asking, constraints=[c.weight(dear, 50.0)]).changes())["feature"]
            for dear in ("a", "b")
        }
        assert (moved["a"] == "b").mean() > 0.6 > 0.4 > (moved["b"] == "b").mean(), search


# ---------------------------------------------------------------------------------------------
# Extremes.


@pytest.mark.parametrize("n_accepted", [0, 1, 3, 30])
def test_few_accepted_rows_are_enough(n_accepted):
    train = bank(500)
    rows = train[score(train) >= 0.8].head(n_accepted)
    train = pd.concat([rows, train[score(train) < 0.8].head(50)])
    explainer = MCCE(score, (0.8, 10), search="balanced", random_state=0).fit(train)

    result = explain(explainer, people())

    assert (score(result.frame) >= 0.8).all()
    assert len(result.people) == len(people())
    if not n_accepted:
        assert set(result.missing["reason"]) == {"no training row has the desired decision"}


@pytest.mark.parametrize("search", ["sparse", "balanced"])
def test_a_predictor_that_throws_dice_is_survived(search):
    chance, train = np.random.default_rng(0), bank(200)
    explainer = MCCE(lambda frame: chance.random(len(frame)), (0.5, 1.0), search=search)

    result = explain(explainer.set_params(random_state=0).fit(train), train.head(30))

    assert result.n_unstable > 0


@pytest.mark.parametrize("name", ["sparse", "plausible"])
def test_implausible_rows_are_tried_after_plausible_ones_failed(name):
    chance = np.random.default_rng(0)
    group, income = chance.integers(0, 2, 800), chance.integers(0, 100, 800)
    income = np.where(group == 0, income // 2, income)
    train = pd.DataFrame({"group": group, "income": income})
    train["debt"] = income + chance.integers(-2, 3, 800)

    def by_income(frame):
        """In one group never enough where debt is about as large, as it always is."""
        usual = (frame["income"] - frame["debt"]).abs() <= 20
        below = frame["income"].clip(upper=59).astype(float)
        return below.where((frame["group"] == 0) & usual, frame["income"].astype(float))

    search = bounded(name, min_plausibility=0.2, allow_implausible=True, max_samples=1000)
    model = MCCE(by_income, (60, 1000), immutable=["group"], search=search, random_state=0)
    model.set_params(ignore_relations=True).fit(train)
    usual = model.plausibility(train)["plausibility"] > 0.5

    result = explain(model, train[(group == 0) & usual].head(4))

    assert len(result.frame) == 4
    assert not result.measures["plausible"].any()


@pytest.mark.parametrize("search", ["exact", *SAMPLING])
def test_consequences_are_part_of_the_row_and_no_changes_of_their_own(search):
    train = bills(300)
    rules = [c.derived("total", "months * price")]
    explainer = MCCE(value, (2.0, 100), search=search, constraints=rules, random_state=0)

    result = explain(explainer.fit(train), bills(10, seed=1))

    off = result.frame["total"] - result.frame["months"] * result.frame["price"]
    assert (off.abs() <= 0.005 + 1e-9).all()
    assert len(result.frame) or search == "paper"
