"""Distances of an explainer: what they rank, bound, select and measure, named or a user's own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from bank import bank, score
from bills import bills, value
from distance_oracle import Oracle, expected_of
from mcce import (
    HVDM,
    L1,
    MCCE,
    Counterfactuals,
    FeatureDistance,
    Gower,
    NotFittedError,
    ParameterError,
)
from mcce.constraints import derived
from mcce.protocols import Capabilities, Draws, draw_keys, pick
from searches import bounded, explain

TRAIN = pd.DataFrame({"age": [0, 1] * 20, "salary": np.arange(40) + 40})


def make(distance, search="paper", **more):
    settings = {"immutable": ["age"], "n_samples": 200, "random_state": 0, "search": search}
    return MCCE(score, (0.8, 3.0), distance=distance, **settings | more)


@pytest.fixture(scope="module")
def train():
    return bank(300, seed=1)


@pytest.fixture(scope="module")
def people():
    frame = bank(40, seed=2)
    return frame[score(frame) < 0.8].head(12).reset_index(drop=True)


def owners(result, people):
    """The person of each answer."""
    return people.loc[result.frame.index.get_level_values("factual")]


# ---------------------------------------------------------------------------------------------
# Gower's distance and those of users.


def test_two_missing_cells_are_no_distance_apart():
    table = pd.DataFrame({"h": [np.nan, np.nan, 1.0, 2.0] * 10, "a": [0.0, 8.0] * 20})
    explainer = MCCE(lambda f: f["a"], (8, 8), random_state=0).fit(table)

    result = explainer.explain(pd.DataFrame({"h": [np.nan], "a": [0.0]}))

    assert result.measures[["sparsity", "gower"]].to_numpy().tolist() == [[1, 0.5]]


def test_l1_is_gower_times_all_features_not_the_mutable_ones():
    explainer = MCCE(lambda f: f["salary"], (60, 100), immutable=["age"], random_state=0).fit(TRAIN)

    measures = explainer.explain(TRAIN.head(2)).measures

    assert (measures["l1"] == 2 * measures["gower"]).all()


def test_a_distance_too_large_for_a_float_is_infinite_not_a_warning():
    for train, person, gower in (
        ([0.0, 1e-300], 1e10, np.inf),
        ([-4e307, 4e307], 1.7e308, (1.3e308 / 8e307 + 1) / 2),
    ):
        table = pd.DataFrame({"e": train * 6, "level": [0, 1] * 6})
        explainer = MCCE(lambda f: f["level"], (1, 1), search="paper", random_state=0)
        explainer.fit(table)

        result = explainer.explain(pd.DataFrame({"e": [person], "level": [0]}))

        assert result.measures["gower"].tolist() == [gower]


def test_a_subclass_of_gower_is_called():
    class Far(Gower):
        name = "far"

        def __call__(self, candidates):
            return 100.0 - super().__call__(candidates)

    found = [
        MCCE(lambda f: f["salary"], (60, 100), immutable=["age"], random_state=0, distance=distance)
        .fit(TRAIN)
        .explain(TRAIN.head(1))
        .frame["salary"]
        .item()
        for distance in ("gower", Far())
    ]

    assert found[0] < found[1]


@pytest.mark.parametrize("search", ["paper", "balanced"])
def test_a_subclass_of_the_base_class_is_ranked_by_its_axes_like_ours(train, people, search):
    ranked = []

    class City(FeatureDistance):
        title = "city"

        def axes(self, candidates, places=None):
            ranked.append(places is None)
            return super().axes(candidates, places)

    ours, theirs = (
        make(distance, search).fit(train).explain(people) for distance in (L1(), City())
    )

    pd.testing.assert_frame_equal(theirs.frame, ours.frame)
    # The measure ``l1`` is Gower's times the number of features.
    np.testing.assert_allclose(theirs.measures["city"], ours.measures["l1"], rtol=1e-14)
    assert any(ranked) == (search == "paper")


class SquaredSalary:
    """The square of the change in salary."""

    name = "squared"

    def fit(self, schema, rows, is_desired):
        return self

    def __call__(self, candidates):
        block = candidates.comparison
        return (block.numbers[0][block.codes[0][block.group]] - block.own_numbers[0][:, None]) ** 2


def test_another_distance_ranks_and_bounds_but_gower_is_still_measured():
    explainer = MCCE(
        lambda frame: frame["salary"],
        (60, 100),
        immutable=["age"],
        distance=SquaredSalary(),
        search=bounded(max_distance=400.0),
        random_state=0,
    ).fit(TRAIN)

    result = explainer.explain(pd.DataFrame({"age": [0, 1], "salary": [41, 50]}))

    assert result.frame["salary"].tolist() == [60, 61]
    assert result.measures["gower"].tolist() == [19 / 39 / 2, 11 / 39 / 2]
    assert result.measures["squared"].tolist() == [19.0**2, 11.0**2]


@pytest.fixture(scope="module")
def taken():
    """All columns that tables of measures and of answers have with Gower's distance."""
    explainers = [
        MCCE(lambda frame: frame["salary"], (60, 100), search=search, random_state=0).fit(TRAIN)
        for search in ("paper", "balanced", "exact")
    ]
    results = [explainer.explain(TRAIN.head(1)) for explainer in explainers]
    schema, decision = explainers[0].schema_, explainers[0].decision_
    results.append(
        Counterfactuals.from_frame(TRAIN.head(1), TRAIN.tail(1), schema=schema, decision=decision)
    )
    measured = {name for result in results for name in result.measures.reset_index()}
    assert {"proven", "valid", "n_actions", "plausibility"} < measured
    in_files = {"status", "reason", "reason_kind", "score_before", "changed"}
    return measured | in_files


def test_a_distance_may_not_take_the_name_of_another_measure(taken):
    for name in taken:
        distance = SquaredSalary()
        distance.name = name

        with pytest.raises(ParameterError, match=f"string other than .*got '{name}'"):
            MCCE(lambda frame: frame["salary"], (60, 100), distance=distance).fit(TRAIN)


# ---------------------------------------------------------------------------------------------
# Named distances.


@pytest.mark.parametrize("search", ["paper", "near", "balanced"])
def test_the_distance_is_measured_as_going_cell_by_cell_gives(train, people, search):
    result = explain(make("hvdm", search).fit(train), people)

    oracle = Oracle("hvdm", train, score(train) >= 0.8)
    expected = expected_of(oracle, result.frame, owners(result, people))
    assert len(expected) > 8
    assert np.allclose(result.measures["hvdm"], expected)


def test_l1_ranks_as_gower_does(train, people):
    l1, gower = (explain(make(name, "near").fit(train), people) for name in ("l1", "gower"))

    pd.testing.assert_frame_equal(l1.frame, gower.frame)
    assert list(l1.measures) == list(gower.measures)


@pytest.mark.parametrize("search", ["paper", "near"])
def test_the_distance_chooses_among_answers_with_as_many_changes(search):
    """One change suffices: the other job, or an amount of 9, nine tenths of the range.

    Nine of ten people with the job "a" are accepted as well, so the jobs are close by HVDM.
    """
    amounts = [0.0, 2.0, 4.0, 6.0, *[9.0] * 35, 10.0]
    choice = pd.DataFrame({"job": ["a"] * 40 + ["b"] * 40, "amount": amounts * 2})

    def accepts(frame):
        return ((frame["job"] == "b") | (frame["amount"] > 8)).to_numpy().astype(float)

    for name, changed in (("gower", "amount"), ("l1", "amount"), ("hvdm", "job")):
        explainer = MCCE(accepts, (1, 1), distance=name, search=search, random_state=0).fit(choice)
        result = explainer.explain(pd.DataFrame({"job": ["a"], "amount": [0.0]}))

        assert result.changes()["feature"].tolist() == [changed]


@pytest.mark.parametrize("search", ["paper", "near"])
def test_a_bound_on_the_distance_holds(train, people, search):
    free = explain(make("hvdm", search).fit(train), people).measures["hvdm"]
    most = float(free.median())

    result = explain(make("hvdm", bounded(search, max_distance=most)).fit(train), people)

    assert 0 < len(result.measures) <= len(free)
    assert (result.measures["hvdm"] <= most + 1e-12).all()


@pytest.mark.parametrize("kind", [Gower, L1, HVDM])
def test_answers_that_differ_do_so_by_the_distance(train, people, kind):
    """A distance that the package does not know is called, and selects the same answers."""

    class Unknown(kind):
        name = "unknown"

    settings = {"n_counterfactuals": 3, "diversity": 0.6, "n_samples": 80}
    known, unknown = (
        explain(make(of(missing="ignore"), **settings).fit(train), people) for of in (kind, Unknown)
    )

    pd.testing.assert_frame_equal(known.frame, unknown.frame)


def test_distances_of_missing_values_that_are_ignored_have_names_of_their_own(train, people):
    result = explain(make(Gower(missing="ignore")).fit(train), people)

    assert {"gower", "l1", "gower_observed"} <= set(result.measures)
    complete = ~people.isna().any(axis=1) & ~result.frame.isna().any(axis=1).groupby(level=0).any()
    same = result.measures.loc[complete[complete].index]
    assert np.allclose(same["gower"], same["gower_observed"])


def test_they_are_cloned_with_their_parameters_and_never_fitted_themselves(train, people):
    distance = HVDM(alpha=0.5, variant="N3")
    explainer = clone(make(distance))

    explainer.fit(train)

    assert explainer.get_params()["distance__alpha"] == 0.5
    assert repr(explainer.distance) == "HVDM(alpha=0.5, variant='N3')"
    assert not hasattr(explainer.distance, "shares_")
    with pytest.raises(NotFittedError, match="distance__alpha was changed after fit"):
        explainer.set_params(distance__alpha=2.0).explain(people)


def test_what_is_no_distance_is_refused(train, people):
    for distance, said in [
        ("manhattan", r"one of \['gower', 'l1', 'hvdm'.*\].*got 'manhattan'"),
        (3, "must be one of .* got 3"),
        (HVDM, "Pass an instance: distance=HVDM"),
        (Gower(missing="x"), 'missing must be one of "level", "ignore", got \'x\''),
        (HVDM(variant="N4"), "variant must be one of"),
        (HVDM(alpha=-1), "alpha must be a finite number >= 0, got -1"),
        (HVDM(alpha=np.inf), "alpha must be a finite number"),
    ]:
        with pytest.raises(ParameterError, match=said):
            make(distance).fit(train)
    for distance in ("hvdm", Gower(missing="ignore")):
        with pytest.raises(ParameterError, match="smallest Gower"):
            make(distance, "exact").fit(train).explain(people)


class Inventor:
    """A generator of numbers that training never held, and of levels that it did."""

    capabilities = Capabilities()

    def fit(self, rows, is_desired, *, seed, n_jobs, verbose):
        self.schema_ = rows.schema
        return self

    def sample(self, request):
        features = [self.schema_.features[position] for position in self.schema_.mutable]
        tables = [
            feature.table if feature.numbers is None
            else pd.Series(np.arange(20) * feature.spread / 19 + 0.37, name=feature.name)
            for feature in features
        ]  # fmt: skip
        words = draw_keys(request.keys, request.draws)
        sizes = [np.full(words.shape, len(table)) for table in tables]
        codes = [pick(words, at, size) for at, size in enumerate(sizes)]
        return Draws(np.stack(codes).astype(np.int32), tables)


@pytest.mark.parametrize("missing", ["level", "ignore"])
@pytest.mark.parametrize("kind", [Gower, L1, HVDM])
def test_values_that_training_never_held_are_measured_and_ranked(kind, missing):
    train, people = (bank(n, seed=n).astype({"years": float}) for n in (200, 20))
    people = people[score(people) < 0.8].head(6).reset_index(drop=True)
    explainer = make(
        kind(missing=missing),
        bounded(rank_by=["distance"]),
        generator=Inventor(),
        n_counterfactuals=4,
        n_samples=100,
    ).fit(train)

    result = explain(explainer, people)

    found = result.measures[explainer.distance_.name]
    oracle = Oracle(kind().title, train, score(train) >= 0.8, missing=missing)
    assert len(found) > 12
    assert np.allclose(found, expected_of(oracle, result.frame, owners(result, people)))
    assert (found.groupby(level="factual").diff().dropna() >= 0).all()


def test_values_that_follow_from_others_are_measured():
    train, people = bills(300), bills(12, seed=1)
    people = people[value(people) < 1.5]
    rule = derived("total", "months * price", tolerance=0.01)
    explainer = MCCE(
        value, (1.5, 99), distance="hvdm", constraints=[rule], search="near", random_state=0
    ).fit(train)

    result = explain(explainer, people)

    oracle = Oracle("hvdm", train, value(train) >= 1.5)
    expected = expected_of(oracle, result.frame, owners(result, people))
    assert not result.frame["total"].isin(train["total"]).all()
    assert len(expected) > 3
    assert np.allclose(result.measures["hvdm"], expected)
