"""Lazy validity, reasons, nearest misses, rules, unstable predictors and stopping."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

import brute_force
from mcce import MCCE, Interval, McceWarning, TreeChain
from mcce.candidates import Draws
from mcce.datasets import load_german_credit
from mcce.protocols import Capabilities
from mcce.search.sampling import STOPPED
from searches import bounded


@pytest.fixture(scope="module")
def german():
    return load_german_credit()


def pipeline(german, classifier):
    words = german.features.select_dtypes(exclude="number").columns.tolist()
    encoder = make_column_transformer(
        (OrdinalEncoder(), words), remainder="passthrough", verbose_feature_names_out=False
    )
    return make_pipeline(encoder, StandardScaler(), classifier).fit(german.features, german.target)


@pytest.mark.slow
@pytest.mark.parametrize(
    "classifier",
    [
        MLPClassifier((8,), max_iter=300, tol=0.01, n_iter_no_change=5, random_state=0),
        RandomForestClassifier(20, min_samples_leaf=3, random_state=0),
    ],
)
def test_lazy_validity_equals_evaluating_every_candidate(german, classifier):
    predictor = pipeline(german, classifier)
    people = german.features[predictor.predict(german.features) == "bad"].head(30)
    explainer = MCCE(
        predictor,
        immutable=german.immutable,
        n_samples=300,
        n_counterfactuals=3,
        random_state=0,
        generator=TreeChain(max_depth=6),
    ).fit(german.features)

    lazy = explainer.explain(people)
    eager = everything(explainer, people)

    assert len(lazy.frame) == 90
    assert lazy.n_evaluated < 0.2 * 300 * 30
    pd.testing.assert_frame_equal(lazy.frame.reset_index(drop=True), eager)


def everything(explainer, people):
    """The best three of each person by evaluating all candidates, one person at a time."""
    parts = []
    for person in range(len(people)):
        row = people.iloc[[person]]
        drawn = brute_force.candidates(explainer, row)
        kept = drawn[explainer.decision_.score(drawn).valid].drop_duplicates()
        costs = [brute_force.costs(explainer, cells, row.iloc[0]) for _, cells in kept.iterrows()]
        order = sorted(range(len(costs)), key=lambda i: (*costs[i], kept.index[i]))
        parts.append(kept.iloc[order[:3]])
    return pd.concat(parts, ignore_index=True)


def small(**settings):
    train = pd.DataFrame({"age": [30, 40] * 20, "salary": np.arange(40) + 40})
    explainer = MCCE(
        lambda frame: frame["salary"], (60, 100), immutable=["age"], random_state=0, **settings
    )
    return explainer.fit(train), pd.DataFrame(
        {"age": [30, 40], "salary": [41, 50]}, index=["p", "q"]
    )


def test_a_bound_that_excludes_everything_is_named_in_the_reason():
    explainer, people = small(search=bounded(max_distance=0.01, max_sparsity=1))

    with pytest.warns(McceWarning, match="2 of 2 people have no counterfactual"):
        result = explainer.explain(people)

    reason = result.missing.loc["p", "reason"]
    assert "excluded by max_distance=0.01 (" in reason
    assert "max_sparsity" not in reason
    assert (result.missing["nearest_score"] >= 60).all()
    assert result.nearest_misses.loc["p", "salary"] >= 60


def test_the_nearest_miss_has_the_best_score():
    train = pd.DataFrame({"age": [30, 40] * 20, "salary": np.arange(40) + 40})
    score = lambda frame: np.where(frame["age"] == 30, frame["salary"] - 40, frame["salary"])
    explainer = MCCE(score, (75, 100), immutable=["age"], random_state=0).fit(train)

    with pytest.warns(McceWarning, match="1 of 1"):
        result = explainer.explain(pd.DataFrame({"age": [30], "salary": [41]}))

    person = result.missing.iloc[0]
    assert "no valid candidate among 1000 draws" in person["reason"]
    assert person["nearest_score"] == result.nearest_misses["salary"].iloc[0] - 40
    drawn = explainer.generator_.trees_.values
    assert result.nearest_misses["salary"].iloc[0] <= 40 + drawn.max()
    assert result.frame.empty


def test_the_nearest_miss_is_the_one_whose_score_is_nearest_to_the_interval():
    train = pd.DataFrame({"age": [0, 1] * 40, "load": np.arange(80.0) // 2})
    score = lambda frame: np.where(frame["age"] == 1, 10.3, frame["load"])
    explainer = MCCE(score, (10.2, 10.4), immutable=["age"], random_state=0).fit(train)

    with pytest.warns(McceWarning, match="1 of 1"):
        result = explainer.explain(pd.DataFrame({"age": [0], "load": [30.0]}))

    assert result.nearest_misses["load"].tolist() == [10.0]


def test_without_a_desired_training_row_nobody_can_be_answered():
    train = pd.DataFrame({"load": np.arange(40.0)})
    explainer = MCCE(lambda f: f["load"], (99, 100), random_state=0).fit(train)

    with pytest.warns(McceWarning, match="1 of 1"):
        result = explainer.explain(pd.DataFrame({"load": [30.0]}))

    assert result.missing["reason"].tolist() == ["no training row has the desired decision"]
    assert result.n_evaluated == 0


def test_copies_of_training_rows_are_never_returned_when_excluded():
    chance = np.random.default_rng(0)
    train = pd.DataFrame(
        {
            "age": chance.integers(0, 2, 60),
            "a": chance.integers(0, 4, 60),
            "b": chance.integers(0, 4, 60),
        }
    )
    score = lambda frame: frame["a"] + frame["b"]
    people = train[score(train) < 3]
    settings = {"immutable": ["age"], "random_state": 0, "generator": TreeChain(min_samples_leaf=2)}

    plain = MCCE(score, (3, 9), **settings).fit(train).explain(people)
    careful = MCCE(score, (3, 9), search=bounded(copies="never"), **settings).fit(train)
    with pytest.warns(McceWarning):
        private = careful.explain(people)

    known = set(train.itertuples(index=False, name=None))
    assert any(row in known for row in plain.frame.itertuples(index=False, name=None))
    assert not any(row in known for row in private.frame.itertuples(index=False, name=None))


class Moody:
    """A black box that changes its mind about a row the second time it sees it."""

    def __init__(self, moody_above):
        self.seen = set()
        self.moody_above = moody_above

    def __call__(self, frame):
        scores = []
        for age, salary in frame.itertuples(index=False):
            again = (age, salary) in self.seen and salary >= self.moody_above
            self.seen.add((age, salary))
            scores.append(0.0 if again else float(salary))
        return np.array(scores)


def moody(moody_above):
    train = pd.DataFrame({"age": [30, 40] * 20, "salary": np.arange(40) + 40})
    explainer = MCCE(Moody(moody_above), (60, 100), random_state=0).fit(train)
    explainer.decision_.predictor.seen.clear()
    return explainer, pd.DataFrame({"age": [30], "salary": [41]})


def test_rows_that_fail_when_scored_again_are_replaced_and_reported():
    explainer, people = moody(moody_above=70)
    explainer.set_params(n_counterfactuals=30)

    with pytest.warns(McceWarning, match="predictor is unstable"):
        result = explainer.explain(people)

    assert result.n_unstable >= 1
    assert result.frame["salary"].between(60, 69).all()
    assert result.people["status"].tolist() == ["answered"]


def test_a_predictor_that_never_keeps_its_word_leaves_people_without_an_answer():
    explainer, people = moody(moody_above=0)

    with pytest.warns(McceWarning, match="predictor is unstable"):
        result = explainer.explain(people)

    assert result.frame.empty
    assert "excluded by unstable score (" in result.missing["reason"].item()
    assert result.missing["nearest_score"].item() >= 60


class Forgetful:
    """A black box that refuses salaries below a bound the second time it sees them."""

    def __init__(self, bound):
        self.bound = bound
        self.seen = {}

    def __call__(self, frame):
        scores = []
        for salary in frame["salary"]:
            self.seen[salary] = self.seen.get(salary, 0) + 1
            refused = self.seen[salary] > 1 and salary < self.bound
            scores.append(0.0 if refused else float(salary))
        return np.array(scores)


def test_candidates_are_tried_until_one_is_valid_and_each_is_scored_once():
    train = pd.DataFrame({"salary": np.arange(80)})
    explainer = MCCE(Forgetful(0), (30, 100), random_state=0).fit(train)
    box = explainer.decision_.predictor
    box.bound, box.seen = 45, {}

    with pytest.warns(McceWarning, match="predictor is unstable"):
        result = explainer.explain(pd.DataFrame({"salary": [10]}))

    assert result.people["status"].tolist() == ["answered"]
    assert result.frame["salary"].between(45, 80).all()
    assert result.n_unstable == 15
    assert result.n_evaluated == len(box.seen) - 1
    assert sum(box.seen.values()) == 1 + result.n_evaluated + 16


def test_watching_can_stop_the_search_and_keeps_what_was_found():
    explainer, people = small(memory=1e-6)
    heard = []

    def stop_after_one(progress):
        heard.append(progress)
        return progress.n_settled >= 1

    with pytest.warns(McceWarning):
        result = explainer.explain(people, callback=stop_after_one)

    assert result.people["status"].tolist() == ["answered", "no answer"]
    assert result.people["reason"].tolist() == ["", STOPPED]
    assert heard[-1].n_factuals == 2
    assert len(result.frame) == 1


class Lattice:
    """A generator that invents numbers half-way between those of training."""

    capabilities = Capabilities()

    def fit(self, rows, decision, *, seed, n_jobs, verbose):
        self.table = pd.Series(np.arange(40, 80, 0.5), name="salary")
        return self

    def sample(self, given, keys, draws):
        codes = (keys[:, None] % 7 + draws[None, :].astype(np.uint64)) % len(self.table)
        return Draws(codes.astype(np.int32)[None], [self.table])


def test_a_generator_may_invent_values():
    train = pd.DataFrame({"age": [30, 40] * 20, "salary": np.arange(40) + 40.0})
    people = pd.DataFrame({"age": [30, 40], "salary": [41.0, 59.75]})
    explainer = MCCE(
        lambda f: f["salary"],
        Interval(60, 100, closed="right"),
        immutable=["age"],
        generator=Lattice(),
        search=bounded(copies="never"),
        random_state=0,
    ).fit(train)

    result = explainer.explain(people)

    assert result.frame["salary"].tolist() == [60.5, 60.5]
    assert result.measures["sparsity"].tolist() == [1, 1]
    assert result.measures["gower"].tolist() == [19.5 / 39 / 2, 0.75 / 39 / 2]


def test_invented_values_of_several_blocks_come_together():
    train = pd.DataFrame({"age": [30, 40] * 20, "salary": np.arange(40) + 40.0})
    people = pd.DataFrame({"age": [40, 30, 50, 30], "salary": [41.0, 59.75, 42.0, 43.0]})
    explainer = MCCE(
        lambda f: f["salary"],
        Interval(60, 100, closed="right"),
        immutable=["age"],
        generator=Lattice(),
        n_counterfactuals=3,
        random_state=0,
    ).fit(train)

    whole = explainer.explain(people)
    pieces = explainer.set_params(memory=1e-6).explain(people)

    assert whole.frame["salary"].tolist() == [60.5, 61.0, 61.5] * 4
    pd.testing.assert_frame_equal(whole.frame, pieces.frame)


@pytest.mark.parametrize(("tolerance", "sparsity"), [(0.0, 2), (0.01, 1)])
def test_a_tolerance_hides_small_changes_from_the_count_only(tolerance, sparsity):
    train = pd.DataFrame({"a": [0.0, 1000.0] * 10, "b": [5.0, 500.0] * 10})
    search = bounded(tolerance=tolerance)
    explainer = MCCE(lambda f: f["a"], (900, 1000), search=search, random_state=0).fit(train)

    result = explainer.explain(pd.DataFrame({"a": [0.0], "b": [499.0]}))

    assert result.measures["sparsity"].tolist() == [sparsity]
    assert len(result.changes()) == 2
