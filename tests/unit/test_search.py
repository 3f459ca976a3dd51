"""Searches by name and of one's own: what they find, and what is said if they cannot be."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from bills import bills, value
from mcce import MCCE, Domain, McceWarning, NotFittedError, ParameterError, PrivateTrees, Search
from mcce import constraints as c
from searches import altered, assert_same, bounded, explain, own_rows, texts

BEYOND = ["sparse", "balanced", "plausible", "near", "nearest"]
NAMES = ["paper", *BEYOND]


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
    ({"min_plausibility": 1}, "min_plausibility must be at least 0 and below 1, got 1"),
    ({"min_plausibility": "high"}, "min_plausibility must be .*got 'high'"),
    ({"extra_changes": -1}, "extra_changes must be"),
    ({"max_samples": 0}, "max_samples must be"),
    ({"rank_by": ["distance"]}, r"rank_by must be one of .*'n_actions'.*got \['distance'\]"),
    ({"tolerance": 0.1}, "tolerance=0.1 is for the paper's search.*Leave it out"),
    ({"consequences": "maybe"}, "consequences must be one of"),
    ({"margin": -0.1}, "margin must be a finite number >= 0"),
    ({"margin": np.nan}, "margin must be a finite number >= 0"),
    ({"copies": "first"}, 'copies must be one of "last", "never", "allow"'),
    ({"max_evaluations": 0}, "max_evaluations"),
    ({"max_evaluations": 1.5}, "max_evaluations"),
    ({"name": "fast"}, 'name must be one of .*"balanced".*"nearest".*got \'fast\''),
    ({"name": None}, "name must be one of"),
    ({"name": "exact", "max_sparsity": 1}, r"'exact' is an ExactSearch. Pass ExactSearch\("),
]


def test_a_parameter_that_cannot_work_is_an_error_that_names_it():
    for parameters, message in REFUSED:
        with pytest.raises(ParameterError, match=message):
            Search(**parameters)


def test_the_paper_s_search_says_what_it_cannot_do():
    for changes, message in [
        ({"max_evaluations": 5}, "max_samples"),
        ({"extra_changes": 1}, "extra_changes must be 0, got 1"),
        ({"rank_by": ("n_actions", "distance")}, "rank_by must be one of .*'paper', got"),
    ]:
        with pytest.raises(ParameterError, match=message):
            Search("paper", **changes)


@pytest.mark.parametrize("name", ["sparse", "near"])
def test_a_search_for_the_fewest_changes_trades_none_for_a_better_answer(name):
    with pytest.raises(ParameterError, match=f"'{name}' puts the fewest.*must be 0, got 2"):
        Search(name, extra_changes=2)
    assert Search(name, extra_changes=0) == Search(name)


def test_a_search_has_its_name_and_what_changes_it():
    for name in NAMES:
        plain, changed = Search(name), Search(name, max_sparsity=2, margin=0.1)
        named = [field.name for field in fields(Search)]
        differing = [at for at in named if getattr(changed, at) != getattr(plain, at)]
        assert differing == ["max_sparsity", "margin"]
        assert eval(repr(changed), {"Search": Search}) == changed
        assert replace(plain, max_sparsity=2, margin=0.1) == changed
        with pytest.raises(FrozenInstanceError):
            plain.max_sparsity = 1
    assert Search() == Search("balanced")


def test_what_is_left_out_is_what_the_named_search_has():
    names = ["min_plausibility", "extra_changes", "copies", "consequences"]
    resolved = {name: [getattr(Search(name), at) for at in names] for name in NAMES}

    assert resolved["paper"] == [0, 0, "allow", "none"]
    assert resolved["balanced"] == [0.05, 1, "last", "recompute"]
    assert resolved["plausible"] == [0.25, 1, "last", "recompute"]
    assert resolved["sparse"] == resolved["near"] == [0.01, 0, "last", "recompute"]
    assert Search("sparse", min_plausibility=None, copies=None) == Search("sparse")


@pytest.mark.parametrize(
    "search",
    ["best", 3, {"min_plausibility": 0.1}, Search],
    ids=["name", "number", "dict", "class"],
)
def test_an_unknown_search_is_an_error_before_anything_is_learned(search):
    explainer = MCCE(score, (0.8, 10), search=search)

    with pytest.raises(ParameterError, match=r"search must be (None, one of .*'balanced'|a name)"):
        explainer.fit(bank(50))
    with pytest.raises(NotFittedError):
        explainer.explain(people())


def test_the_default_is_balanced_and_with_a_private_model_the_paper_s():
    train = bank(200, missing=False)[["age", "salary", "sex"]]
    domains = {
        "age": Domain(low=18, high=70, step=1),
        "salary": Domain(low=10, high=90, step=1),
        "sex": Domain(levels=["f", "m"]),
    }
    private = PrivateTrees(domains=domains, epsilon=8.0)
    by_salary = lambda frame: frame["salary"].to_numpy() / 100

    for more, name in [({}, "balanced"), ({"generator": private}, "paper")]:
        settings = {"random_state": 0, "n_samples": 20, **more}
        default = MCCE(by_salary, (0.7, 1), **settings).fit(train)
        # No two private fits are equal.
        named = altered(default, search=name)
        assert default.search is None
        assert_same(explain(default, train.head(20)), explain(named, train.head(20)))


def test_what_fit_did_not_learn_must_be_fitted_again():
    paper = MCCE(score, (0.8, 10), search="paper", random_state=0).fit(bank(100))
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
    found = {name: explain(altered(fitted(), search=name), people()) for name in NAMES}
    measures = {name: result.measures.mean(numeric_only=True) for name, result in found.items()}

    assert measures["near"]["sparsity"] <= measures["sparse"]["sparsity"]
    assert measures["sparse"]["sparsity"] <= measures["balanced"]["sparsity"]
    assert measures["sparse"]["sparsity"] < measures["paper"]["sparsity"]
    real = {name: measures[name]["knn_distance_quantile"] for name in BEYOND}
    assert real["plausible"] < real["sparse"]
    assert measures["nearest"]["l1"] == min(measures[name]["l1"] for name in NAMES)
    assert measures["near"]["l1"] < measures["sparse"]["l1"]
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
    a = chance.integers(0, 15, 400).astype(float)
    train = pd.DataFrame({"a": a, "b": a, "c": chance.integers(0, 2, 400)})

    def points(frame):
        apart = (frame["a"] >= 13) & (frame["b"] <= 2)
        return ((frame["c"] == 1) | apart).astype(float)

    return train, points, train[train["c"] == 0].head(6)


@pytest.mark.parametrize("name", ["sparse", "plausible"])
def test_who_could_only_get_implausible_answers_learns_what_would_do(name):
    train, points, asking = strange_case()
    strict = bounded(name, max_samples=20, min_plausibility=0.3)
    settings = {"immutable": ["c"], "random_state": 0, "n_samples": 20, "ignore_relations": True}
    model = MCCE(points, (0.5, 1.0), search=strict, **settings).fit(train)

    result = explain(model, asking)

    missing = result.missing
    assert len(missing)
    assert (missing["reason_kind"] == "implausible").all()
    assert (points(result.nearest_misses) == 1).all()
    named = missing["reason"].str.extract(r" With min_plausibility=(\S+) there would be")[0]
    for person, least in named.astype(float).items():
        assert least < 0.3
        lax = altered(model, search=replace(strict, min_plausibility=least))
        assert len(explain(lax, asking.loc[[person]]).frame) == 1


def test_seconds_tell_the_predictor_from_the_search():
    timings = explain(fitted(n_jobs=1), people()).timings

    assert min(timings["search"], timings["validity"]) > 0
    assert sum(timings.values()) <= 2 * timings["total"]


def test_people_without_a_reference_group_are_flagged_and_warned_about():
    train = bank(500)
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], search="balanced", random_state=0)

    with pytest.warns(McceWarning, match=r"no accepted training row has the person's \['sex'\]"):
        result = explainer.fit(train[(train["sex"] == "f") | (score(train) < 0.8)]).explain(
            people()
        )

    male = (people()["sex"] == "m").to_numpy()[result.owner]
    assert np.array_equal(result.measures["no_reference_group"].to_numpy(), male)
    assert not explain(fitted(), people()).measures["no_reference_group"].any()


@pytest.mark.parametrize("search", ["paper", "near", "exact"])
def test_measures_have_the_same_columns_without_accepted_rows_or_answers(search):
    train = pd.DataFrame({"age": [0, 1] * 20, "salary": np.arange(40) + 40})
    some, nobody = (
        MCCE(lambda frame: frame["salary"], desired, search=search, random_state=0).fit(train)
        for desired in ((60, 70), (600, 700))
    )
    expected = some.explain(train.head(2)).measures.dtypes

    for explainer, people in ((some, train.iloc[20:21]), (some, train.head(0)), (nobody, train)):
        pd.testing.assert_series_equal(explain(explainer, people).measures.dtypes, expected)


def test_equal_searches_are_equal_however_the_ranking_is_given():
    listed, as_tuple = (Search("paper", rank_by=of(["distance"])) for of in (list, tuple))

    assert listed == as_tuple
    assert len({listed, as_tuple}) == 1


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
    search = Search("near", min_plausibility=0.0, max_samples=40)
    model = MCCE(points, (0.5, 1.0), immutable=["c"], search=search, n_samples=20)
    model.set_params(random_state=0).fit(train)
    asking = train[(train["c"] == 0) & (train["a"] != 3) & (train["b"] != 7)].head(5)

    result = explain(model, asking)

    assert result.frame[["a", "b"]].to_numpy().tolist() == [[3, 7]] * 5


@pytest.mark.parametrize(
    ("name", "diversity"), [("sparse", None), ("near", 0.5), ("plausible", 0.5)]
)
def test_the_first_of_several_answers_is_the_one_you_get_alone(name, diversity):
    model = fitted(name)

    alone = explain(model, people()).frame
    several = explain(altered(model, n_counterfactuals=5, diversity=diversity), people()).frame

    first = several[several.index.get_level_values("rank") == 1]
    pd.testing.assert_frame_equal(first, alone)


def test_a_weight_makes_changes_of_a_feature_dearer():
    chance = np.random.default_rng(0)
    train = pd.DataFrame(chance.integers(0, 100, (300, 2)), columns=["a", "b"])
    asking = train[train.sum(axis=1) < 60].head(8)

    for search in ("paper", "near", "exact"):
        model = MCCE(lambda f: f["a"] + f["b"], (80, 200), search=search, random_state=0).fit(train)
        moved = {
            dear: (explain(model, asking, constraints=[c.weight(dear, 50.0)]).changes())["feature"]
            for dear in ("a", "b")
        }
        assert (moved["a"] == "b").mean() > 0.6 > 0.4 > (moved["b"] == "b").mean(), search


# ---------------------------------------------------------------------------------------------
# Against all rows of a small table.


COLUMNS = list("abc")


def grid_points(frame):
    """Up with ``a`` and ``b``, down with ``c``; two values help only together."""
    both = (frame["a"] <= 1) & (frame["b"] >= 4)
    return 2.0 * frame["a"] + frame["b"] - frame["c"] + 5.0 * both


@cache
def grid_fitted(search):
    chance = np.random.default_rng(2)
    train = pd.DataFrame(chance.integers(0, 6, (200, 3)), columns=COLUMNS)
    return MCCE(grid_points, (10.5, 99), search=search, random_state=0).fit(train)


@cache
def grid_people():
    frame = pd.DataFrame(np.random.default_rng(3).integers(0, 6, (60, 3)), columns=COLUMNS)
    return frame[grid_points(frame) < 10.5].head(30).reset_index(drop=True)


def all_rows():
    """All rows of the small table that are valid."""
    rows = pd.DataFrame(list(product(range(6), repeat=3)), columns=COLUMNS)
    return rows[grid_points(rows) >= 10.5]


def changed(person, rows):
    return (rows != person).sum(axis=1)


def test_the_nearest_of_all_rows_of_a_small_table_is_found():
    search, rows = Search("nearest", min_plausibility=0.0, copies="allow"), all_rows()

    result = explain(grid_fitted(search), grid_people())

    best = [(rows - person).abs().sum(axis=1).min() for _, person in grid_people().iterrows()]
    moved = np.abs(result.frame.to_numpy() - grid_people().to_numpy()).sum(axis=1)
    assert moved.tolist() == best


def test_the_nearest_are_never_farther_than_the_near():
    def uneven(frame):
        """Two numbers that help the less, the larger they are."""
        return np.sqrt(frame["salary"].fillna(30)) + np.sqrt(frame["years"])

    explainer = MCCE(uneven, (12, 99), immutable=["sex"], random_state=0, search="near")
    explainer.fit(bank(500))

    near, nearest = (explain(altered(explainer, search=name), people()) for name in BEYOND[-2:])

    assert set(near.owner) == set(nearest.owner)
    gap = nearest.measures["l1"] - near.measures["l1"]
    assert gap.max() <= 1e-12
    assert gap.min() < 0


@pytest.mark.parametrize("name", ["sparse", "near", "balanced", "plausible"])
def test_answers_of_a_small_table_have_the_fewest_plausible_changes_and_some_more(name):
    search, rows = Search(name, copies="allow"), all_rows()
    explainer = grid_fitted(search)
    p_values = explainer.plausibility(rows)["plausibility"]
    own = explainer.plausibility(grid_people())["plausibility"]

    result = explain(explainer, grid_people())

    assert (result.people["status"] == "answered").all()
    for at, person in grid_people().iterrows():
        enough = p_values >= min(search.min_plausibility, own[at])
        fewest = changed(person, rows[enough]).min()
        assert fewest <= result.measures["sparsity"].iloc[at] <= fewest + search.extra_changes


@pytest.mark.parametrize("name", BEYOND)
def test_no_change_of_an_answer_can_be_undone(name):
    search = Search(name, copies="allow")
    explainer = MCCE(score, (1.1, 10), immutable=["sex"], search=search, n_counterfactuals=2)
    explainer.set_params(random_state=0).fit(bank(500))

    result = explain(explainer, people())

    several = result.measures["sparsity"].to_numpy() > 1
    assert several.any()
    own = own_rows(result)
    own_p_value = explainer.plausibility(own)["plausibility"].to_numpy()
    for column in result.frame:
        before, after = (f[column].astype(str).fillna("missing") for f in (own, result.frame))
        differs = several & (before != after)
        undone = result.frame.assign(**{column: own[column]})[differs]
        if len(undone):
            p_value = explainer.plausibility(undone)["plausibility"].to_numpy()
            # A row with the person's own p-value may still be more unusual.
            plausible = (p_value >= search.min_plausibility) | (p_value > own_p_value[differs])
            good = (score(undone) >= 1.1) & plausible
            assert not good.any(), undone[good]


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
        assert set(result.missing["reason"]) == {"No training row has the desired decision."}


@pytest.mark.parametrize("search", ["sparse", "balanced"])
def test_a_predictor_that_throws_dice_is_survived(search):
    chance, train = np.random.default_rng(0), bank(200)
    explainer = MCCE(lambda frame: chance.random(len(frame)), (0.5, 1.0), search=search)

    result = explain(explainer.set_params(random_state=0).fit(train), train.head(30))

    assert result.n_unstable > 0


@pytest.mark.parametrize("search", ["sparse", "balanced"])
def test_a_predictor_that_refuses_everything_the_second_time_leaves_a_reason(search):
    train, known = bank(300), set()

    def fickle(frame):
        rows = texts(frame)
        again = np.array([row in known for row in rows], dtype=bool)
        known.update(rows)
        return np.where(again, 0.0, score(frame))

    explainer = MCCE(fickle, (0.8, 10), immutable=["sex"], search=search, random_state=0)
    explainer.fit(train)
    known.clear()
    asking = people()[score(people()) < 0.8].head(1)

    result = explain(explainer, asking)

    assert result.frame.empty
    assert (result.missing["reason_kind"] == "unknown").all()
    assert result.missing["reason"].str.contains("refused each of them in the final call").all()
    assert 0 < result.n_unstable <= 20


@pytest.mark.parametrize("search", ["exact", *NAMES])
def test_consequences_are_part_of_the_row_and_no_changes_of_their_own(search):
    train = bills(300)
    rules = [c.derived("total", "months * price")]
    explainer = MCCE(value, (2.0, 100), search=search, constraints=rules, random_state=0)

    result = explain(explainer.fit(train), bills(10, seed=1))

    off = result.frame["total"] - result.frame["months"] * result.frame["price"]
    assert (off.abs() <= 0.005 + 1e-9).all()
    assert len(result.frame) or search == "paper"
