"""Details of the method that no broader test covers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, Interval, McceWarning, NotFittedError, Schema, SchemaError, TreeChain
from mcce.candidates import Draws
from mcce.model.responses import tree_response
from mcce.model.visit_order import CategoricalColumn, association
from mcce.predictors.desired import make_decision
from mcce.protocols import Capabilities
from searches import bounded


def test_a_missing_response_counts_as_one_range_above_the_largest():
    frame = pd.DataFrame({"x": [0.0, 10.0, np.nan]})
    rows = Schema.learn(frame).encode(frame)
    low, high, missing = tree_response(rows, 0).units.tolist()
    assert missing - high == high - low > 0


TRAIN = pd.DataFrame({"age": [0, 1] * 20, "salary": np.arange(40) + 40})


def test_of_misses_with_equal_scores_the_best_ranked_is_the_nearest():
    score = lambda f: np.where(f["age"] == 1, 1.0, 0.0)
    explainer = MCCE(score, (1, 1), immutable=["age"], random_state=0).fit(TRAIN)
    with pytest.warns(McceWarning):
        result = explainer.explain(pd.DataFrame({"age": [0], "salary": [55]}))
    assert result.people["nearest_sparsity"].tolist() in ([0], [1])
    assert result.nearest_misses["salary"].sub(55).abs().item() <= 1


def test_a_valid_but_excluded_candidate_is_nearer_than_one_at_an_open_end():
    explainer = MCCE(
        lambda f: f["salary"].astype(float),
        Interval(60, 100, "right"),
        immutable=["age"],
        search=bounded(max_distance=0.0),
        random_state=0,
        generator=TreeChain(condition_on_decision=False),
    ).fit(TRAIN)
    with pytest.warns(McceWarning):
        result = explainer.explain(pd.DataFrame({"age": [0], "salary": [50]}))
    assert result.missing["nearest_score"].item() > 60


class Labels:
    _estimator_type = "classifier"
    classes_ = np.array(["no", "yes"])

    def predict_proba(self, f):
        p = np.where(f["age"] == 1, 0.9, (f["salary"] - 40) / 100)
        return np.column_stack([1 - p, p])

    def predict(self, f):
        return self.classes_[(self.predict_proba(f)[:, 1] > 0.5).astype(int)]


def test_the_nearest_miss_of_labels_has_the_largest_probability():
    explainer = MCCE(
        Labels(),
        "yes",
        immutable=["age"],
        random_state=0,
        generator=TreeChain(condition_on_decision=False),
    ).fit(TRAIN)
    with pytest.warns(McceWarning):
        result = explainer.explain(pd.DataFrame({"age": [0], "salary": [50]}))
    assert result.missing["nearest_score"].item() == pytest.approx(0.38)


def test_a_number_between_training_values_has_likelihood_zero():
    # its nearest training value is in the leaf; the value itself is not
    frame = pd.DataFrame({"x": np.arange(20.0)})
    rows = Schema.learn(frame).encode(frame)
    chain = TreeChain().fit(rows, np.ones(20, dtype=bool))
    odd = rows.schema.encode(pd.DataFrame({"x": [3.4]}))
    assert chain.log_likelihood(odd).tolist() == [-np.inf]


def test_an_ordered_category_is_cut_by_its_order_in_the_chain():
    size = pd.CategoricalDtype(["s", "m", "l"], ordered=True)
    frame = pd.DataFrame(
        {"size": pd.Series(["s", "m", "l"] * 20, dtype=size), "y": [0.0, 9.0, 0.0] * 20}
    )
    rows = Schema.learn(frame, immutable=["size"]).encode(frame)
    chain = TreeChain(max_depth=1).fit(rows, np.ones(60, dtype=bool))
    # by order the best single cut is s | m, l (or s, m | l); as a set it would isolate m
    leaves = [
        set(chain.trees_.values[s : s + c].tolist())
        for s, c, f in zip(
            chain.trees_.start, chain.trees_.count, chain.trees_.feature, strict=True
        )
        if f < 0
    ]
    assert sorted(map(sorted, leaves)) == [[0], [0, 1]]


class Stubborn(Labels):
    """Labels by a threshold of its own, 0.3."""

    def predict(self, f):
        return self.classes_[(self.predict_proba(f)[:, 1] > 0.3).astype(int)]


def test_labels_are_valid_by_predict_even_where_the_probability_is_small():
    frame = pd.DataFrame({"age": [0, 0, 0], "salary": [50, 75, 95]})
    scored = make_decision(Stubborn(), "yes").score(frame)
    assert scored.valid.tolist() == [False, True, True]
    assert scored.score.tolist() == pytest.approx([0.1, 0.35, 0.55])


def test_a_reason_counts_valid_candidates_only():
    explainer = MCCE(
        lambda f: f["salary"].astype(float),
        (60, 100),
        immutable=["age"],
        search=bounded(max_distance=0.01),
        random_state=0,
        generator=TreeChain(condition_on_decision=False),
    ).fit(TRAIN)
    with pytest.warns(McceWarning):
        result = explainer.explain(pd.DataFrame({"age": [0], "salary": [50]}))
    n = (
        result.missing["reason"]
        .str.extract(r"all (\d+) valid.*max_distance=0.01 \((\d+)\)")
        .iloc[0]
    )
    assert n[0] == n[1]


def visited(frame, immutable, decision, **settings):
    rows = Schema.learn(frame, immutable=immutable).encode(frame)
    chain = TreeChain(visit_order="correlation", **settings).fit(rows, decision)
    return [rows.schema.names[p] for p in chain.visit_order_]


def test_associations_of_equal_strength_are_visited_by_column():
    x = np.arange(40.0)
    frame = pd.DataFrame({"a": x, "b": x, "c": x})
    assert visited(frame, ["a"], np.ones(40, bool), condition_on_decision=False) == ["b", "c"]


def test_the_decision_is_among_what_is_visited_first():
    decision = np.arange(200) % 2 == 1
    noise = np.random.default_rng(0).normal(size=200)
    frame = pd.DataFrame({"noise": noise, "yes": decision.astype(float)})
    assert visited(frame, [], decision) == ["yes", "noise"]


def test_the_mean_association_decides_not_the_largest():
    chance = np.random.default_rng(0)
    a, b = chance.normal(size=(2, 2000))
    frame = pd.DataFrame(
        {
            "a": a,
            "b": b,
            "one": a + 0.6 * chance.normal(size=2000),
            "both": a + b + 0.3 * chance.normal(size=2000),
        }
    )
    assert visited(frame, ["a", "b"], np.ones(2000, bool), condition_on_decision=False)[0] == "both"


def test_people_with_unseen_immutables_draw_by_their_descent_codes():
    t = pd.DataFrame({"age": [10, 20] * 50, "x": np.arange(100.0)})
    explainer = MCCE(
        lambda f: f["x"].astype(float), (50, 99), immutable=["age"], n_samples=3, random_state=0
    ).fit(t)
    r = explainer.explain(pd.DataFrame({"age": [10, 11], "x": [1, 1]}))
    assert r.frame["x"].iloc[0] == r.frame["x"].iloc[1]


def test_a_candidate_at_the_bound_is_returned():
    train = pd.DataFrame({"a": [0.0, 8.0] * 10, "b": [1.0] * 20})
    search = bounded(max_distance=0.5)
    explainer = MCCE(lambda f: f["a"], (8, 8), search=search, random_state=0).fit(train)
    assert explainer.explain(train.head(1)).measures["gower"].tolist() == [0.5]


def test_excluded_candidates_that_are_scored_for_a_reason_are_counted():
    scored = []
    explainer = MCCE(
        lambda f: scored.append(len(f)) or f["salary"],
        (60, 100),
        immutable=["age"],
        search=bounded(max_sparsity=0),
        random_state=0,
    ).fit(TRAIN)
    scored.clear()
    with pytest.warns(McceWarning):
        result = explainer.explain(TRAIN.head(2))
    assert result.n_evaluated == sum(scored) - 2 > 0


def test_cramer_is_corrected_for_bias():
    a, b = (
        CategoricalColumn(np.array([0] * 6 + [1] * 6)),
        CategoricalColumn(np.array([0] * 5 + [1] + [0] + [1] * 5)),
    )
    phi2 = (4 / 6) ** 2 - 1 / 11
    assert association(a, b) == pytest.approx(np.sqrt(phi2 / (1 - 1 / 11)))


def test_more_than_64_levels_are_distinguished():
    levels = [f"v{i:03d}" for i in range(150)]
    frame = pd.DataFrame(
        {"level": np.repeat(levels, 5), "y": np.repeat(np.arange(150) >= 64, 5).astype(float)}
    )
    rows = Schema.learn(frame, immutable=["level"]).encode(frame)
    chain = TreeChain().fit(rows, np.ones(len(frame), dtype=bool))
    assert np.allclose(chain.log_likelihood(rows), 0.0)


def test_people_with_different_unseen_immutables_do_not_share_scores():
    t = pd.DataFrame({"age": [10, 20] * 50, "x": np.arange(100.0)})
    score = lambda f: np.where(f["age"] == 11, 0, f["x"]).astype(float)
    explainer = MCCE(score, (50, 99), immutable=["age"], random_state=0).fit(t)
    with pytest.warns(McceWarning):
        r = explainer.explain(pd.DataFrame({"age": [11, 12], "x": [1, 1]}))
    assert r.people["status"].tolist() == ["no answer", "answered"]
    assert r.n_unstable == 0


def test_only_the_unseen_immutables_are_named():
    t = pd.DataFrame({"age": [10, 20] * 50, "sex": ["f", "m"] * 50, "x": np.arange(100.0)})
    explainer = MCCE(
        lambda f: f["x"].astype(float), (50, 99), immutable=["age", "sex"], random_state=0
    ).fit(t)
    r = explainer.explain(pd.DataFrame({"age": [10, 11], "sex": ["f", "f"], "x": [1, 1]}))
    assert r.people["unseen_immutable"].tolist() == ["", "age"]


def test_an_unchanged_cell_is_the_person_s_own_to_the_bit():
    t = pd.DataFrame({"z": [0.0, 1.0] * 20, "a": [0.0, 0.0, 8.0, 8.0] * 10})
    explainer = MCCE(lambda f: f["a"], (8, 8), random_state=0).fit(t)
    r = explainer.explain(pd.DataFrame({"z": [-0.0], "a": [0.0]}))
    assert r.measures["sparsity"].tolist() == [1]
    assert np.signbit(r.frame["z"]).all()


def test_a_difference_at_the_tolerance_does_not_count():
    train = pd.DataFrame({"a": [0.0, 8.0] * 10, "b": [0.0, 4.0] * 10})
    search = bounded(tolerance=0.5)
    explainer = MCCE(lambda f: f["a"], (8, 8), search=search, random_state=0).fit(train)
    result = explainer.explain(pd.DataFrame({"a": [0.0], "b": [2.0]}))
    assert result.measures["sparsity"].tolist() == [1]


@pytest.mark.parametrize(("train", "people"), [("int64", "int32"), ("float64", "float32")])
def test_an_immutable_column_keeps_its_own_dtype_whatever_training_had(train, people):
    table = TRAIN.astype({"age": train})
    explainer = MCCE(lambda f: f["salary"], (60, 100), immutable=["age"], random_state=0).fit(table)
    result = explainer.explain(TRAIN.head(2).astype({"age": people, "salary": "int16"}))
    assert result.frame.dtypes.astype(str).tolist() == [people, "int16"]


def test_a_tree_predicts_from_every_feature_visited_before_it():
    chance = np.random.default_rng(0)
    a, b = chance.integers(0, 2, (2, 400)).astype(float)
    frame = pd.DataFrame({"a": a, "b": b, "c": (a + b) % 2})
    rows = Schema.learn(frame).encode(frame)
    chain = TreeChain().fit(rows, np.ones(400, dtype=bool))
    marginal = np.log(np.array([(a == v).mean() for v in a])) + np.log(
        np.array([((b == v) & (a == u)).sum() / (a == u).sum() for u, v in zip(a, b, strict=True)])
    )
    assert np.allclose(chain.log_likelihood(rows), marginal)


def test_the_decision_is_a_condition_of_every_tree():
    decision = np.arange(400) % 2 == 1
    frame = pd.DataFrame({"x": np.where(decision, 1.0, 0.0), "y": np.where(decision, 5.0, 3.0)})
    rows = Schema.learn(frame).encode(frame)
    chain = TreeChain().fit(rows, decision)
    likelihood = chain.log_likelihood(rows)
    assert np.allclose(likelihood[decision], 0.0)
    assert (likelihood[~decision] == -np.inf).all()


def test_a_generator_s_setting_changed_after_fit_is_noticed():
    explainer = MCCE(lambda f: f["salary"], (60, 100), generator=TreeChain(), random_state=0)
    explainer.fit(TRAIN).set_params(generator__min_samples_leaf=20)
    with pytest.raises(NotFittedError, match="generator__min_samples_leaf was changed after fit"):
        explainer.explain(TRAIN.head(1))


class Halves:
    """A generator that invents halves between whole numbers."""

    capabilities = Capabilities()

    def fit(self, rows, decision, *, seed, n_jobs, verbose):
        return self

    def sample(self, given, keys, draws):
        codes = np.zeros((1, keys.size, draws.size), dtype=np.int32)
        return Draws(codes, [pd.Series([60.5])])


def test_an_invented_value_that_the_column_cannot_hold_is_refused():
    explainer = MCCE(
        lambda f: f["salary"], (60, 100), immutable=["age"], generator=Halves(), random_state=0
    ).fit(TRAIN)
    with pytest.raises(SchemaError, match="no dtype holds both"):
        explainer.explain(TRAIN.head(1))


def test_a_numeric_response_is_its_values_not_their_ranks():
    frame = pd.DataFrame({"x": [0.0, 1.0, 10.0]})
    low, middle, high = tree_response(Schema.learn_rows(frame), 0).units.tolist()
    assert high - middle == 9 * (middle - low) > 0


def test_a_draw_depends_on_the_feature_not_on_when_it_is_visited():
    chance = np.random.default_rng(0)
    frame = pd.DataFrame(chance.integers(0, 50, (60, 2)), columns=["a", "b"])
    rows = Schema.learn_rows(frame)
    draws = [
        TreeChain(min_samples_leaf=60, visit_order=order)
        .fit(rows, np.ones(60, dtype=bool))
        .sample(rows.descent[:, :1], np.array([7], dtype=np.uint64), np.arange(20))
        .codes
        for order in (["a", "b"], ["b", "a"])
    ]
    assert np.array_equal(*draws)


def test_levels_of_equal_mean_are_ordered_by_their_number():
    frame = pd.DataFrame({"level": ["u", "v", "w"] * 4, "y": [0.0] * 6 + [1.0] * 6})
    rows = Schema.learn_rows(frame, immutable=["level"])
    trees = TreeChain(min_samples_leaf=4, max_depth=1).fit(rows, np.ones(12, dtype=bool)).trees_
    # All splits gain nothing; the first prefix is u alone, and unseen levels go to the larger side.
    assert trees.sets.tolist() == [0b0001]
