"""Searches by name, as users meet them: what they find, and what is said if they cannot be."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from bank import bank, score
from mcce import MCCE, McceWarning, NotFittedError, ParameterError, Search
from searches import assert_same, bounded, explain

WALKS = ["sparse", "balanced", "plausible", "near"]
TRAIN, PEOPLE = bank(600), bank(60, seed=1)


def fitted(search="balanced", **more):
    given_settings = {"immutable": ["sex"], "random_state": 0} | more
    return MCCE(score, (0.8, 10), search=search, **given_settings).fit(TRAIN)


def test_sparse_changes_least_and_plausible_is_most_plausible():
    explainer = fitted()
    measures = {
        name: explain(explainer.set_params(search=name), PEOPLE).measures.mean()
        for name in ["paper", *WALKS]
    }

    assert measures["near"]["sparsity"] <= measures["sparse"]["sparsity"]
    assert measures["sparse"]["sparsity"] <= measures["balanced"]["sparsity"]
    assert measures["sparse"]["sparsity"] < measures["paper"]["sparsity"]
    assert (
        measures["plausible"]["knn_distance_quantile"] < measures["sparse"]["knn_distance_quantile"]
    )
    assert measures["near"]["l1"] == min(m["l1"] for name, m in measures.items() if name in WALKS)


def test_the_search_may_change_after_fit_among_those_that_learn_the_same():
    explainer = fitted("sparse")
    once = explain(explainer.set_params(search="plausible"), PEOPLE)

    assert_same(once, explain(fitted("plausible"), PEOPLE))


@pytest.mark.parametrize("search", WALKS)
def test_a_walk_after_a_fit_for_the_paper_is_an_error(search):
    explainer = fitted("paper").set_params(search=search)

    with pytest.raises(NotFittedError, match="Fit again"):
        explainer.explain(PEOPLE)


def test_the_paper_is_the_default_and_learns_nothing_more():
    explainer = MCCE(score, (0.8, 10), random_state=0).fit(TRAIN)

    assert explainer.search == "paper"
    assert explainer.plausibility_ is None
    assert list(explain(explainer, PEOPLE).measures) == ["score", "sparsity", "gower", "l1"]


def test_measures_say_how_plausible_an_answer_is():
    result = explain(fitted(), PEOPLE)

    assert list(result.measures)[4:] == [
        "n_actions",
        "plausibility",
        "knn_distance_quantile",
        "no_reference_group",
    ]
    assert result.measures["plausibility"].between(0, 1, inclusive="right").all()
    assert result.measures["knn_distance_quantile"].between(0, 1).all()
    assert not result.measures["no_reference_group"].any()


def test_people_without_a_reference_group_are_flagged_and_warned_about():
    train = TRAIN[(TRAIN["sex"] == "f") | (score(TRAIN) < 0.8)]
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], search="balanced", random_state=0)

    with pytest.warns(McceWarning, match=r"columns \['sex'\] occur in no accepted training row"):
        result = explainer.fit(train).explain(PEOPLE)

    male = (PEOPLE["sex"] == "m").to_numpy()[result.owner]
    assert np.array_equal(result.measures["no_reference_group"].to_numpy(), male)


@pytest.mark.parametrize("least", [0.01, 0.05, 0.25, 0.6])
def test_answers_are_plausible_enough_or_no_stranger_than_the_person(least):
    explainer = fitted(Search(min_plausibility=least))
    result = explain(explainer, PEOPLE)
    model, rows = explainer.plausibility_, explainer.schema_.encode(PEOPLE)
    own = model.assess(rows.descent, rows.all_numbers).strangeness[result.owner]

    answers = explainer.schema_.encode(result.frame.reset_index(drop=True))
    found = model.assess(answers.descent, answers.all_numbers)

    assert len(result.frame) > 20
    assert ((found.p_value >= least) | (found.strangeness <= own)).all()
    assert np.array_equal(result.measures["plausibility"], found.p_value)


def test_a_black_box_of_labels_only_is_walked_back_from_the_targets():
    def label(frame):
        return np.where(score(frame) >= 0.8, "yes", "no")

    explainer = MCCE(label, ["yes"], immutable=["sex"], search="sparse", random_state=0).fit(TRAIN)
    people = PEOPLE[score(PEOPLE) < 0.8]

    walked = explain(explainer, people)

    drawn = explain(explainer.set_params(search="paper", n_samples=100), people)
    assert len(walked.frame) == len(people)
    assert (label(walked.frame) == "yes").all()
    assert walked.measures["sparsity"].mean() < drawn.measures["sparsity"].mean()


def test_an_interval_with_two_ends_is_walked_into():
    explainer = MCCE(score, (0.8, 0.85), immutable=["sex"], search="sparse", random_state=0)
    people = PEOPLE[(score(PEOPLE) < 0.8) | (score(PEOPLE) > 0.85)]

    result = explain(explainer.fit(TRAIN), people)

    assert len(result.frame) == len(people)
    assert ((score(result.frame) >= 0.8) & (score(result.frame) <= 0.85)).all()


def test_watchers_and_time_stop_a_walk_and_keep_what_was_found():
    seen = []

    def stop(progress):
        seen.append(progress.n_evaluated)
        return len(seen) == 4

    result = explain(fitted(), PEOPLE, callback=stop)

    assert result.stopped
    assert len(seen) == 4
    assert (score(result.frame) >= 0.8).all()
    assert set(result.missing["reason"]) <= {"stopped before an answer was found"}


@pytest.mark.parametrize(
    "search",
    [*WALKS, Search(n_targets=3, min_plausibility=0), Search(min_plausibility=0.1, n_samples=50)],
)
def test_a_saved_explainer_gives_the_same_answers(search, tmp_path):
    explainer = fitted(search)
    explainer.save(tmp_path / "explainer.mcce")

    again = mcce.load(tmp_path / "explainer.mcce", score)

    assert again.search == search
    assert_same(explain(explainer, PEOPLE), explain(again, PEOPLE))


@pytest.mark.parametrize("search", ["balanced", bounded(copies="never")])
def test_an_explainer_that_did_not_learn_what_it_needs_now_is_not_saved(tmp_path, search):
    explainer = fitted("paper").set_params(search=search)

    with pytest.raises(mcce.NotFittedError, match=r"search was .* after fit"):
        explainer.save(tmp_path / "explainer.mcce")

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("search", ["best", None, 3, {"n_targets": 3}])
def test_an_unknown_search_is_an_error_that_lists_them(search):
    with pytest.raises(ParameterError, match=r"search must be one of .*'balanced'"):
        MCCE(score, (0.8, 10), search=search).fit(TRAIN)


def test_a_class_in_place_of_a_search_is_an_error_that_says_how():
    with pytest.raises(ParameterError, match=r"search=Search\(\)"):
        MCCE(score, (0.8, 10), search=Search).fit(TRAIN)


def test_diverse_answers_of_a_walk_do_not_repeat_the_changes_of_a_better_one():
    explainer = fitted("plausible", n_counterfactuals=4, diversity=0.5)
    result = explain(explainer, PEOPLE)
    changes = result.changes()
    sets = changes.groupby(["factual", "rank"]).apply(
        lambda cells: frozenset(zip(cells["feature"], cells["after"].astype(str), strict=True)),
        include_groups=False,
    )

    assert (result.people["n_counterfactuals"] > 1).any()
    for _, own in sets.groupby(level="factual"):
        ranked = list(own)
        assert not any(
            ranked[i] < ranked[j] for i in range(len(ranked)) for j in range(len(ranked)) if i < j
        )


def test_the_explainers_own_number_of_draws_overrides_that_of_the_search():
    explainer = fitted(bounded("balanced", max_samples=100), n_samples=3)
    few = explain(explainer, PEOPLE)

    more = explain(explainer.set_params(n_samples=None), PEOPLE)

    assert few.n_evaluated < more.n_evaluated
    assert_same(few, explain(fitted(bounded("balanced", n_samples=3, max_samples=100)), PEOPLE))


def test_nobody_gets_fewer_draws_than_the_explainer_says():
    explainer = fitted(bounded("paper", n_samples=5, max_samples=5), n_samples=40)

    assert_same(explain(explainer, PEOPLE), explain(fitted("paper", n_samples=40), PEOPLE))


def test_no_accepted_training_row_is_a_reason_not_an_error():
    explainer = MCCE(score, (50, 60), search="balanced", random_state=0).fit(TRAIN)

    result = explain(explainer, PEOPLE)

    assert set(result.missing["reason"]) == {"no training row has the desired decision"}


@pytest.mark.parametrize("n_accepted", [1, 2, 3, 6, 30])
def test_few_accepted_rows_are_enough(n_accepted):
    rows = TRAIN[score(TRAIN) >= 0.8].head(n_accepted)
    train = pd.concat([rows, TRAIN[score(TRAIN) < 0.8].head(50)])
    explainer = MCCE(score, (0.8, 10), search="balanced", random_state=0).fit(train)

    result = explain(explainer, PEOPLE)

    assert (score(result.frame) >= 0.8).all()
    assert len(result.people) == len(PEOPLE)


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"n_counterfactuals": 5}, {"diversity": 0.5}])
@pytest.mark.parametrize("search", ["sparse", "plausible", Search(n_targets=2, extra_changes=3)])
def test_people_who_share_their_draws_do_not_lend_each_other_answers(search, more):
    rng = np.random.default_rng(0)
    n = 400
    train = pd.DataFrame(
        {
            "a": rng.integers(0, 6, n),
            "b": rng.integers(0, 6, n),
            "c": rng.choice(list("pqrst"), n),
            "d": rng.choice(list("uvw"), n),
        }
    )

    def predictor(frame):
        return frame["a"] + frame["b"] + 2 * (frame["c"] == "p") + 2 * (frame["d"] == "u")

    more = {"n_counterfactuals": 3} | more
    explainer = MCCE(predictor, (8, np.inf), search=search, random_state=0, **more).fit(train)
    together = explain(explainer, train.head(30))

    for label in range(30):
        alone = explain(explainer, train.iloc[[label]])
        theirs = together.frame.index.get_level_values(0) == label
        pd.testing.assert_frame_equal(alone.frame, together.frame[theirs])


@pytest.mark.parametrize("search", ["sparse", "balanced", "plausible", "near"])
def test_a_predictor_that_throws_dice_is_survived(search):
    rng, train = np.random.default_rng(0), bank(200)
    explainer = MCCE(lambda frame: rng.random(len(frame)), (0.5, 1.0), search=search)

    result = explain(explainer.set_params(random_state=0).fit(train), train.head(40))

    assert result.n_unstable > 0


def test_a_search_of_no_such_name_is_an_error_before_anything_is_learned():
    explainer = MCCE(score, (0.5, 1.0), search="Balanced")

    with pytest.raises(ParameterError, match="search must be one of"):
        explainer.fit(bank(50))

    with pytest.raises(NotFittedError):
        explainer.explain(bank(5))


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("chains_", lambda chains: chains[:1]),
        ("chains_", lambda chains: chains[::-1]),
    ],
)
def test_a_saved_support_that_could_not_have_been_learned_is_refused(name, harm, tmp_path):
    explainer = fitted()
    support = explainer.plausibility_.support_
    setattr(support, name, harm(getattr(support, name)))
    explainer.save(tmp_path / "harmed.mcce")

    with pytest.raises(mcce.SavedFileError):
        mcce.load(tmp_path / "harmed.mcce", score)
