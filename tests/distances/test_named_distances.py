"""Distances by name: what they rank, bound, select and measure in an explainer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from bank import bank, score
from bills import bills, value
from brute_force import candidates, costs
from distance_oracle import Oracle
from mcce import HEOM, HVDM, IVDM, L1, MCCE, Gower, NotFittedError, ParameterError
from mcce.constraints import derived
from mcce.protocols import Capabilities, Draws, draw_keys, pick
from searches import assert_same, bounded, explain

EVERY = {"gower": Gower, "l1": L1, "heom": HEOM, "hvdm": HVDM, "ivdm": IVDM}
OTHERS = [name for name in EVERY if name != "gower"]


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


def oracle_of(explainer, train):
    distance = explainer.distance_
    given = {key: value for key, value in distance.get_params().items() if key != "weights"}
    return Oracle(distance.title, train, score(train) >= 0.8, **given)


@pytest.mark.parametrize("missing", ["level", "ignore"])
@pytest.mark.parametrize("name", EVERY)
def test_answers_are_the_first_of_all_draws_by_changes_and_distance(train, people, name, missing):
    explainer = make(EVERY[name](missing=missing), n_samples=40).fit(train)
    oracle = oracle_of(explainer, train)

    result = explain(explainer, people.head(8))

    assert len(result.frame) > 4
    for at, row in enumerate(result.frame.index.get_level_values("factual")):
        person = people.loc[[row]]
        drawn = candidates(explainer, person).drop_duplicates()
        valid = drawn[explainer.decision_.score(drawn).valid].astype(object)
        own = person.astype(object).iloc[0]
        best = min(
            (costs(explainer, other, own)[0], oracle(other, own)) for _, other in valid.iterrows()
        )
        found = result.measures.iloc[at]
        assert (found["sparsity"], found[explainer.distance_.name]) == pytest.approx(best)


@pytest.mark.parametrize("name", EVERY)
def test_a_name_is_the_distance_with_its_defaults(train, people, name):
    named = explain(make(name).fit(train), people)

    assert_same(named, explain(make(EVERY[name]()).fit(train), people))


@pytest.mark.parametrize("search", ["paper", "near", "balanced"])
@pytest.mark.parametrize("name", OTHERS)
def test_the_distance_is_measured_as_going_cell_by_cell_gives(train, people, name, search):
    explainer = make(name, search).fit(train)
    oracle = oracle_of(explainer, train)

    result = explain(explainer, people)

    owners = people.loc[result.frame.index.get_level_values("factual")].astype(object)
    answers = result.frame.astype(object)
    pairs = zip(answers.iterrows(), owners.iterrows(), strict=True)
    expected = [oracle(answer, own) for (_, answer), (_, own) in pairs]
    assert len(expected) > 8
    assert np.allclose(result.measures[name], expected)


def test_l1_ranks_as_gower_does(train, people):
    l1, gower = (explain(make(name, "near").fit(train), people) for name in ("l1", "gower"))

    pd.testing.assert_frame_equal(l1.frame, gower.frame)
    assert list(l1.measures) == list(gower.measures)


# Two ways to be accepted, by one change each: the other job, or an amount of 9, nine tenths of the
# range. Nine of ten people with the job "a" are accepted as well, so the jobs are close by HVDM.
AMOUNTS = [0.0, 2.0, 4.0, 6.0, *[9.0] * 35, 10.0]
CHOICE = pd.DataFrame({"job": ["a"] * 40 + ["b"] * 40, "amount": AMOUNTS * 2})


@pytest.mark.parametrize("search", ["paper", "near"])
@pytest.mark.parametrize("name", EVERY)
def test_the_distance_chooses_among_answers_with_as_many_changes(name, search):
    def accepts(frame):
        return ((frame["job"] == "b") | (frame["amount"] > 8)).to_numpy().astype(float)

    explainer = MCCE(accepts, (1, 1), distance=name, search=search, random_state=0).fit(CHOICE)
    result = explainer.explain(pd.DataFrame({"job": ["a"], "amount": [0.0]}))

    learned = name in ("hvdm", "ivdm")
    assert result.changes()["feature"].tolist() == ["job" if learned else "amount"]


@pytest.mark.parametrize("name", OTHERS)
def test_near_is_nearest_by_the_distance(train, people, name):
    explainer = make(name, "near").fit(train)
    oracle = oracle_of(explainer, train)

    ours, gowers = explain(explainer, people), explain(make("gower", "near").fit(train), people)

    both = ours.measures.index.intersection(gowers.measures.index)
    as_many = both[ours.measures["sparsity"][both] == gowers.measures["sparsity"][both]]
    owners = people.loc[as_many.get_level_values("factual")].astype(object)
    answers = gowers.frame.loc[as_many].astype(object)
    pairs = zip(answers.iterrows(), owners.iterrows(), strict=True)
    by_gower = np.mean([oracle(answer, own) for (_, answer), (_, own) in pairs])
    assert len(as_many) > 8
    # Of one change, HEOM says what Gower says, and which rows are looked at is a guess.
    most = {"l1": 1.0, "heom": 1.02, "hvdm": 0.95, "ivdm": 0.95}[name]
    assert ours.measures.loc[as_many, name].mean() <= most * by_gower + 1e-12


@pytest.mark.parametrize("search", ["paper", "near"])
@pytest.mark.parametrize("name", OTHERS)
def test_a_bound_on_the_distance_holds(train, people, name, search):
    free = explain(make(name, search).fit(train), people).measures[name]
    most = float(free.median())

    result = explain(make(name, bounded(search, max_distance=most)).fit(train), people)

    assert 0 < len(result.measures) <= len(free)
    assert (result.measures[name] <= most + 1e-12).all()


@pytest.mark.parametrize("missing", ["level", "ignore"])
@pytest.mark.parametrize("name", EVERY)
def test_answers_that_differ_do_so_by_the_distance(train, people, name, missing):
    """The rule of mcce.postprocess.diversity, by a distance that the package does not know."""
    kind = EVERY[name]

    class Unknown(kind):
        name = "unknown"

    settings = {"n_counterfactuals": 3, "diversity": 0.6, "n_samples": 80}
    known, unknown = (
        explain(make(of(missing=missing), **settings).fit(train), people) for of in (kind, Unknown)
    )

    pd.testing.assert_frame_equal(known.frame, unknown.frame)


@pytest.mark.parametrize("name", OTHERS)
def test_nobodys_answer_depends_on_others(train, people, name):
    explainer = make(name, "near").fit(train)
    together = explain(explainer, people)

    alone = [explain(explainer, people.iloc[[at]]) for at in range(4)]

    frames = pd.concat([one.frame for one in alone])
    pd.testing.assert_frame_equal(frames, together.frame.loc[frames.index])


def test_distances_of_missing_values_that_are_ignored_have_names_of_their_own(train, people):
    result = explain(make(Gower(missing="ignore")).fit(train), people)

    assert {"gower", "l1", "gower_observed"} <= set(result.measures)
    complete = ~people.isna().any(axis=1) & ~result.frame.isna().any(axis=1).groupby(level=0).any()
    same = result.measures.loc[complete[complete].index]
    assert np.allclose(same["gower"], same["gower_observed"])


def test_only_those_that_learn_from_rows_read_them():
    assert {name for name, kind in EVERY.items() if kind().reads_rows} == {"hvdm", "ivdm"}


def test_they_are_cloned_with_their_parameters():
    explainer = clone(make(HVDM(alpha=0.5, variant="N3")))

    assert explainer.get_params()["distance__alpha"] == 0.5
    assert repr(explainer.distance) == "HVDM(alpha=0.5, variant='N3')"


def test_a_parameter_that_changes_after_fit_is_noticed(train, people):
    explainer = make(HVDM()).fit(train).set_params(distance__alpha=2.0)

    with pytest.raises(NotFittedError, match="distance__alpha was changed after fit"):
        explainer.explain(people)


def test_the_distance_that_was_given_stays_unfitted(train):
    distance = HVDM()

    make(distance).fit(train)

    assert not hasattr(distance, "shares_")


@pytest.mark.parametrize(
    ("distance", "said"),
    [
        ("manhattan", r"one of \['gower', 'heom', 'hvdm', 'ivdm', 'l1'\].*got 'manhattan'"),
        (3, "must be one of .* got 3"),
        (HVDM, "Pass an instance: distance=HVDM"),
        (Gower(missing="x"), 'missing must be one of "level", "ignore", got \'x\''),
        (HVDM(missing=None), "missing must be one of"),
        (HVDM(variant="N4"), "variant must be one of"),
        (HVDM(alpha=-1), "alpha must be a finite number >= 0, got -1"),
        (HVDM(alpha=np.inf), "alpha must be a finite number"),
        (IVDM(alpha="1"), "alpha must be"),
        (IVDM(n_bins=0), "n_bins must be a whole number from 1"),
        (IVDM(n_bins=2.0), "n_bins must be a whole number"),
    ],
)
def test_what_is_no_distance_is_refused(train, distance, said):
    with pytest.raises(ParameterError, match=said):
        make(distance).fit(train)


def test_the_exact_search_needs_gower(train, people):
    for distance in ("hvdm", Gower(missing="ignore")):
        with pytest.raises(ParameterError, match="smallest Gower"):
            make(distance, "exact").fit(train).explain(people)


class Inventor:
    """A generator of numbers that training never held, and of levels that it did."""

    capabilities = Capabilities()

    def fit(self, rows, decision, *, seed, n_jobs, verbose):
        self.schema_ = rows.schema
        return self

    def sample(self, given, keys, draws):
        features = [self.schema_.features[position] for position in self.schema_.mutable]
        tables = [
            feature.table if feature.numbers is None
            else pd.Series(np.arange(20) * feature.spread / 19 + 0.37, name=feature.name)
            for feature in features
        ]  # fmt: skip
        words = draw_keys(keys, draws)
        sizes = [np.full(words.shape, len(table)) for table in tables]
        codes = [pick(words, at, size) for at, size in enumerate(sizes)]
        return Draws(np.stack(codes).astype(np.int32), tables)


@pytest.mark.parametrize("missing", ["level", "ignore"])
@pytest.mark.parametrize("name", EVERY)
def test_values_that_training_never_held_are_measured_and_ranked(name, missing):
    train = bank(200, seed=1).astype({"years": float})
    people = bank(20, seed=2).astype({"years": float})
    people = people[score(people) < 0.8].head(6).reset_index(drop=True)
    distance, search = EVERY[name](missing=missing), bounded(rank_by=["distance"])
    settings = {"generator": Inventor(), "n_counterfactuals": 4, "n_samples": 100}
    explainer = make(distance, search, **settings).fit(train)

    result = explain(explainer, people)

    oracle = Oracle(name, train, score(train) >= 0.8, missing=missing)
    owners = people.loc[result.frame.index.get_level_values("factual")].astype(object)
    pairs = zip(result.frame.astype(object).iterrows(), owners.iterrows(), strict=True)
    expected = [oracle(answer, own) for (_, answer), (_, own) in pairs]
    found = result.measures[explainer.distance_.name]
    assert len(found) > 12
    assert np.allclose(found, expected)
    assert (found.groupby(level="factual").diff().dropna() >= 0).all()


@pytest.mark.parametrize("name", OTHERS)
def test_values_that_follow_from_others_are_measured(name):
    train, people = bills(300), bills(12, seed=1)
    people = people[value(people) < 1.5]
    rule = derived("total", "months * price", tolerance=0.01)
    explainer = MCCE(
        value, (1.5, 99.0), search="near", constraints=[rule], distance=name, random_state=0
    ).fit(train)

    result = explain(explainer, people)

    oracle = Oracle(name, train, value(train) >= 1.5)
    assert not result.frame["total"].isin(train["total"]).all()
    owners = people.loc[result.frame.index.get_level_values("factual")]
    pairs = zip(result.frame.iterrows(), owners.iterrows(), strict=True)
    expected = [oracle(answer, own) for (_, answer), (_, own) in pairs]
    assert len(expected) > 3
    assert np.allclose(result.measures[name], expected)
