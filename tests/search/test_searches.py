"""Searches beyond the paper: what every answer holds to, whatever the search."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcce
from bank import bank, score
from mcce import (
    MCCE,
    ExactSearch,
    Interval,
    McceWarning,
    NotFittedError,
    ParameterError,
    Search,
    TreeChain,
)
from mcce import constraints as c
from mcce.constraints.collection import Constraints
from mcce.search.config import SEARCHES
from tables import cases

DESIRED = Interval(0.55, np.inf, closed="left")
WALKS = ["sparse", "balanced", "plausible", "near"]
TRAIN, PEOPLE = bank(600), bank(60, seed=1)


@st.composite
def searches(draw):
    return Search(
        targets=draw(st.integers(1, 6)),
        support=draw(st.sampled_from([None, 0.5, 0.95])),
        slack=draw(st.integers(0, 2)),
        prefer=draw(st.sampled_from(["sparsity", "knn_distance", "distance", "both"])),
        n_samples=draw(st.integers(1, 30)),
        max_samples=draw(st.sampled_from([None, 60])),
    )


@st.composite
def explained(draw, **given_settings):
    case = draw(cases())
    explainer = MCCE(
        case.score,
        DESIRED,
        immutable=case.immutable,
        generator=TreeChain(min_samples_leaf=draw(st.integers(1, 6))),
        search=draw(searches()),
        n_counterfactuals=draw(st.integers(1, 3)),
        diversity=draw(st.sampled_from([None, 0.5])),
        max_sparsity=draw(st.none() | st.integers(1, 3)),
        max_distance=draw(st.none() | st.sampled_from([0.1, 0.4])),
        exclude_training_rows=draw(st.booleans()),
        random_state=draw(st.integers(0, 5)),
    )
    return case, explainer.set_params(**given_settings).fit(case.train)


def explain(explainer, people, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer.explain(people, **more)


def texts(frame):
    """Each row as a tuple of texts."""
    return [tuple(map(str, row)) for row in frame.astype(object).itertuples(index=False)]


def assert_same(one, other):
    pd.testing.assert_frame_equal(one.frame, other.frame, check_exact=True)
    pd.testing.assert_frame_equal(one.measures, other.measures, check_exact=True)
    pd.testing.assert_frame_equal(one.people, other.people, check_exact=True)


@given(explained())
def test_every_answer_is_valid_bounded_and_leaves_the_immutable_alone(work):
    case, explainer = work
    result = explain(explainer, case.people)

    assert DESIRED.contains(case.score(result.frame)).all()
    own = case.people.iloc[result.owner][case.immutable].set_axis(result.frame.index)
    pd.testing.assert_frame_equal(result.frame[case.immutable], own, check_exact=True)
    pd.testing.assert_series_equal(result.frame.dtypes, case.people.dtypes)
    if explainer.max_sparsity is not None:
        assert (result.measures["sparsity"] <= explainer.max_sparsity).all()
    if explainer.max_distance is not None:
        assert (result.measures["gower"] <= explainer.max_distance).all()
    if explainer.exclude_training_rows:
        copied = set(texts(case.train))
        assert not any(row in copied for row in texts(result.frame))
    answers = list(zip(result.owner, texts(result.frame), strict=True))
    assert len(set(answers)) == len(answers)


@given(explained())
def test_whoever_the_draws_would_answer_is_answered(work):
    case, explainer = work
    walked = explain(explainer, case.people)
    resolved = explainer.search
    draws = MCCE(**explainer.get_params(deep=False)).set_params(
        search="paper", n_samples=resolved.max_samples or resolved.n_samples
    )

    drawn = explain(draws.fit(case.train), case.people)

    answered = (drawn.people["status"] == "answered").to_numpy()
    assert (walked.people["status"].to_numpy()[answered] == "answered").all()


@given(
    explained(),
    st.sampled_from([{"memory": 1e-6}, {"n_jobs": 3}, {"memory": 0.02, "n_jobs": 2}]),
)
def test_blocks_and_threads_change_nothing(work, how):
    case, explainer = work
    plain = explain(explainer, case.people)

    other = explain(explainer.set_params(**how), case.people)

    assert_same(plain, other)
    assert plain.n_evaluated == other.n_evaluated


@given(explained(), st.integers(0, 2**32 - 1))
def test_order_and_company_change_nothing(work, seed):
    case, explainer = work
    everybody = explain(explainer, case.people)
    some = np.random.default_rng(seed).permutation(len(case.people))[: 1 + seed % 6]

    few = explain(explainer, case.people.iloc[some])

    pd.testing.assert_frame_equal(few.people, everybody.people.iloc[some], check_exact=True)
    for place, person in enumerate(some):
        pd.testing.assert_frame_equal(
            few.frame[few.owner == place], everybody.frame[everybody.owner == person]
        )


@given(explained(), st.integers(0, 2**32 - 1))
def test_the_order_of_training_rows_changes_nothing(work, seed):
    case, explainer = work
    plain = explain(explainer, case.people)

    shuffled = case.train.sample(frac=1.0, random_state=seed)

    assert_same(plain, explain(explainer.fit(shuffled), case.people))


@given(explained(n_counterfactuals=1, diversity=None, max_sparsity=None, max_distance=None))
def test_a_walk_without_slack_changes_no_more_than_the_best_draw(work):
    case, explainer = work
    search = replace(explainer.search, slack=0, support=None, max_samples=None, prefer="distance")
    explainer.set_params(exclude_training_rows=True)  # a walk takes a copy of one at last only
    walked = explain(explainer.set_params(search=search).fit(case.train), case.people)

    draws = explainer.set_params(search="paper", n_samples=search.n_samples)
    drawn = explain(draws.fit(case.train), case.people)

    pd.testing.assert_index_equal(walked.measures.index, drawn.measures.index)
    assert (walked.measures["sparsity"] <= drawn.measures["sparsity"]).all()


def paired(result):
    return zip(result.owner, result.frame.index, strict=True)


@given(explained(n_counterfactuals=1, max_sparsity=None, max_distance=None))
@settings(max_examples=50)
def test_no_single_change_of_a_sparsest_answer_could_be_put_back(work):
    case, explainer = work
    search = replace(explainer.search, slack=0, prefer="knn_distance")
    explainer = explainer.set_params(search=search, exclude_training_rows=False).fit(case.train)
    result = explain(explainer, case.people)
    if not len(result.frame):
        return
    share = search.support or 0.95

    for person, label in paired(result):
        answer, own = result.frame.loc[[label]], case.people.iloc[[person]]
        for name in case.people.columns:
            back = answer.reset_index(drop=True)
            back[name] = own[name].to_numpy()
            if back.astype(str).equals(answer.reset_index(drop=True).astype(str)):
                continue
            if back.astype(str).equals(own.reset_index(drop=True).astype(str)):
                continue
            valid = DESIRED.contains(case.score(back))[0]
            rows = explainer.schema_.encode(back)
            support = explainer.plausibility_.support_ if explainer.plausibility_ else None
            inside = (
                search.support is None
                or support.n_outside(rows.descent, support.sizes(share))[0] == 0
            )
            copy = explainer.plausibility_.knn_distance_(rows.points)[1][0]
            assert copy or not (valid and inside and result.measures.loc[label, "in_support"])


@given(explained(max_sparsity=None, max_distance=None))
def test_a_row_is_asked_at_most_once(work):
    case, explainer = work
    asked = []

    def watched(frame):
        asked.append(frame)
        return case.score(frame)

    explainer = explainer.set_params(predictor=watched).fit(case.train)
    person = case.people.iloc[:1]
    asked.clear()
    result = explain(explainer, person)

    if explainer.plausibility_ is not None:
        searched = asked[1:-1] if len(result.frame) else asked[1:]
        rows = pd.concat(searched or [person.iloc[:0]]).astype(str)
        assert len(rows) == result.n_evaluated
        assert not rows.duplicated().any()


# ---------------------------------------------------------------------------------------------
# Constraints hold at every step.

KINDS = [
    c.only_up("salary"),
    c.only_down("years"),
    c.change("age", at_most=5),
    c.levels("housing", ["own", "rent"]),
    c.frozen("education", where="years > 15"),
    c.max_changes(2),
    c.max_changes(1, ["salary", "years"]),
    c.together("salary", "years"),
    c.together("years", "housing"),
    c.relation("works from 16 on", "years <= age - 16"),
    c.step("salary", 7),
    c.weight("salary", 3.0),
]


@given(
    st.lists(st.sampled_from(range(len(KINDS))), unique=True, max_size=5),
    st.sampled_from(WALKS),
    st.integers(1, 3),
)
@settings(deadline=None, max_examples=60)
def test_no_answer_breaks_a_constraint_and_nobody_loses_theirs(chosen, search, n_counterfactuals):
    listed = [KINDS[kind] for kind in chosen]
    people = PEOPLE.iloc[:20]
    explainer = MCCE(
        score,
        (0.8, 10),
        immutable=["sex"],
        constraints=listed,
        search=search,
        max_samples=100,
        n_counterfactuals=n_counterfactuals,
        random_state=1,
    ).fit(TRAIN)

    result = explain(explainer, people)

    rows = explainer.schema_.encode(people)
    bound = Constraints.bind(listed, explainer.schema_)
    fresh = result.frame.reset_index(drop=True)
    assert not any(broken.any() for broken in bound.broken(rows, result.owner, fresh).values())
    assert (score(result.frame) >= 0.8).all()
    drawn = explain(explainer.set_params(search="paper", n_samples=100), people)
    assert set(drawn.owner) <= set(result.owner)


# ---------------------------------------------------------------------------------------------
# What the presets are, and what users may do with them.


def fitted(search="balanced", **more):
    given_settings = {"immutable": ["sex"], "random_state": 0} | more
    return MCCE(score, (0.8, 10), search=search, **given_settings).fit(TRAIN)


def test_sparse_changes_least_and_plausible_looks_most_real():
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


def test_measures_say_how_real_an_answer_looks():
    result = explain(fitted(), PEOPLE)

    assert list(result.measures)[4:] == [
        "in_support",
        "knn_distance_quantile",
        "no_reference_group",
    ]
    assert result.measures["in_support"].dtype == bool
    assert result.measures["knn_distance_quantile"].between(0, 1).all()
    assert not result.measures["no_reference_group"].any()


def test_people_without_peers_are_flagged_and_told_of():
    train = TRAIN[(TRAIN["sex"] == "f") | (score(TRAIN) < 0.8)]
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], search="balanced", random_state=0)

    with pytest.warns(McceWarning, match="immutable values no accepted training row has"):
        result = explainer.fit(train).explain(PEOPLE)

    male = (PEOPLE["sex"] == "m").to_numpy()[result.owner]
    assert np.array_equal(result.measures["no_reference_group"].to_numpy(), male)


def test_the_support_is_reported_with_the_share_reached():
    support = fitted().plausibility_.support_

    assert 0.95 <= support.reached(0.95) < 0.97
    assert support.reached(0.95) > support.reached(0.75) >= 0.75
    assert (support.sizes(0.75) <= support.sizes(0.95)).all()


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
    "search", [*WALKS, Search(targets=3, support=None), Search(support=0.9, n_samples=50)]
)
def test_a_saved_explainer_gives_the_same_answers(search, tmp_path):
    explainer = fitted(search)
    explainer.save(tmp_path / "explainer.mcce")

    again = mcce.load(tmp_path / "explainer.mcce", score)

    assert again.search == search
    assert_same(explain(explainer, PEOPLE), explain(again, PEOPLE))


def test_a_file_without_what_its_search_needs_is_refused(tmp_path):
    explainer = fitted("paper")
    explainer.search = "balanced"
    explainer.save(tmp_path / "explainer.mcce")

    with pytest.raises(mcce.SavedFileError, match="accepted training rows"):
        mcce.load(tmp_path / "explainer.mcce", score)


@pytest.mark.parametrize(
    ("knobs", "told"),
    [
        ({"targets": -1}, "targets must be a whole number from 0"),
        ({"targets": 2.5}, "targets"),
        ({"support": 0}, "share above 0 and below 1"),
        ({"support": 1}, "share above 0 and below 1"),
        ({"support": 95}, "share above 0 and below 1"),
        ({"support": "95"}, "support"),
        ({"slack": -1}, "slack"),
        ({"prefer": "nearest"}, "prefer must be one of"),
        ({"prefer": ["both"]}, "prefer must be one of"),
        ({"keep": 1}, "keep must be below 1"),
        ({"keep": 1.5}, "keep"),
        ({"n_samples": 0}, "n_samples"),
        ({"max_samples": 50}, "max_samples must be at least n_samples, 100"),
        ({"targets": 0}, "slack=0 and prefer='distance'"),
    ],
)
def test_a_knob_that_cannot_work_is_an_error_that_names_it(knobs, told):
    with pytest.raises(ParameterError, match=told):
        Search(**knobs)


@pytest.mark.parametrize("search", ["best", None, 3, {"targets": 3}])
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


def test_rank_by_is_for_draws():
    with pytest.raises(ParameterError, match=r"rank_by.*Leave rank_by out"):
        fitted(rank_by=["distance"]).explain(PEOPLE)


def test_the_explainers_own_numbers_of_draws_are_taken_before_those_of_the_search():
    explainer = fitted(n_samples=3, max_samples=6)
    few = explain(explainer, PEOPLE)

    more = explain(explainer.set_params(n_samples=None, max_samples=None), PEOPLE)

    assert few.n_evaluated < more.n_evaluated
    with pytest.raises(ParameterError, match="max_samples must be at least n_samples, 100"):
        explainer.set_params(max_samples=6).explain(PEOPLE)


def test_every_preset_has_a_name_and_equals_itself_written_out():
    for name, preset in SEARCHES.items():
        written = {"Search": Search, "ExactSearch": ExactSearch}
        assert eval(repr(preset), written) == preset, name
    assert_same(explain(fitted("balanced"), PEOPLE), explain(fitted(SEARCHES["balanced"]), PEOPLE))


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


@pytest.mark.parametrize("more", [{}, {"n_counterfactuals": 5}, {"diversity": 0.5}])
@pytest.mark.parametrize("search", ["sparse", "plausible", Search(targets=2, slack=3)])
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
        ("strains_", lambda strains: strains[::-1].copy()),
        ("strains_", lambda strains: np.full_like(strains, 2**31 - 1)),
        ("rare_strains_", lambda _: {99: np.zeros(3, dtype=np.int32)}),
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
