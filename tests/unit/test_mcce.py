"""MCCE from fit to answers: the bank of the paper, its parameters, and details of the method."""

from __future__ import annotations

import math
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

import bank as applicants
from bank import default_risk
from mcce import (
    MCCE,
    ConstraintError,
    Gower,
    Interval,
    NotFittedError,
    ParameterError,
    PredictorError,
    SchemaError,
    Search,
    TreeChain,
)
from mcce import constraints as c
from mcce.protocols import Capabilities, Draws
from searches import assert_same, explain

GRANTED = Interval(0.0, 0.1, closed="left")


# ---------------------------------------------------------------------------------------------
# The customer of the paper's introduction.


def customer(**cells):
    cells = {"age": 36, "sex": "female", "salary": 68_000, "defaulted_last_year": True} | cells
    return pd.DataFrame([cells], index=["customer"])


def lender(bank, **settings):
    explainer = MCCE(default_risk, GRANTED, immutable=["age", "sex"], random_state=0)
    return explainer.set_params(**settings).fit(bank)


def test_the_bank_customer_learns_what_would_have_got_her_the_loan(bank):
    result = lender(bank, n_counterfactuals=3).explain(customer())

    assert not GRANTED.contains(default_risk(customer()).to_numpy()).any()
    assert result.people.loc["customer", "status"] == "answered"
    assert GRANTED.contains(default_risk(result.frame).to_numpy()).all()
    assert (result.frame["age"] == 36).all()
    assert (result.frame["sex"] == "female").all()
    assert result.frame.loc["customer"].iloc[0]["salary"] > 68_000
    assert result.frame.index.names == ["factual", "rank"]
    assert result.frame.dtypes.equals(customer().dtypes)
    changes = result.changes()
    assert changes.columns.tolist() == ["factual", "rank", "feature", "before", "after", "kind"]
    assert set(changes["feature"]) <= {"salary", "defaulted_last_year"}
    assert set(changes.loc[changes["feature"] == "salary", "before"]) == {68_000}


def test_she_can_be_shown_one_change_only(bank):
    search = Search("paper", max_sparsity=1)

    result = lender(bank, search=search).explain(customer(salary=80_000))

    assert result.measures["sparsity"].tolist() == [1]
    assert result.changes()["feature"].tolist() == ["defaulted_last_year"]


def test_who_has_the_loan_already_is_reported_not_explained(bank):
    result = lender(bank).explain(customer(salary=95_000, defaulted_last_year=False))

    assert result.people["status"].tolist() == ["already desired"]
    assert result.frame.empty
    assert result.summary()["n_already_desired"].tolist() == [1]
    assert "1 already desired" in repr(result)


# ---------------------------------------------------------------------------------------------
# As an estimator.


def first_column(rows):
    """A black box that takes arrays and frames."""
    values = rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows
    return np.nan_to_num(values[:, 0].astype(np.float64))


def test_scikit_learn_s_own_checks_pass():
    explainer = MCCE(first_column, desired=(0.0, np.inf), n_samples=10, random_state=0)
    skipped = []
    for _, check in estimator_checks_generator(explainer):
        try:
            check(clone(explainer))
        except SkipTest:
            skipped.append(check)

    # One is skipped by scikit-learn itself unless SCIPY_ARRAY_API is set.
    assert len(skipped) <= 1


def test_a_clone_keeps_the_fitted_predictor_itself_and_copies_the_rest(bank):
    data = bank[["age", "salary"]]
    tree = DecisionTreeClassifier(max_depth=3).fit(data, bank["defaulted_last_year"])
    explainer = MCCE(tree, generator=TreeChain(max_depth=3), immutable=["age"])

    copy = clone(explainer)

    assert copy.predictor is tree
    assert copy.generator is not explainer.generator
    assert copy.generator.max_depth == 3
    names = set(explainer.get_params(deep=True))
    assert not any(name.startswith("predictor__") for name in names)
    assert "generator__max_depth" in names
    copy.set_params(n_samples=50, generator__min_samples_leaf=9)
    assert (copy.n_samples, copy.generator.min_samples_leaf) == (50, 9)
    with pytest.raises(ValueError, match="n_sample"):
        copy.set_params(n_sample=50)


def test_column_names_are_kept_as_scikit_learn_does_and_arrays_mean_arrays(bank):
    data, kinds = bank[["age", "salary"]], set()

    def score(rows):
        kinds.add(type(rows))
        return first_column(rows)

    explainer = MCCE(score, (30, 99), random_state=0).fit(data)
    assert explainer.feature_names_in_.tolist() == ["age", "salary"]
    assert explainer.n_features_in_ == 2
    kinds.clear()

    result = explainer.fit(data.to_numpy()).explain(data.to_numpy()[:9])

    assert kinds == {np.ndarray}
    assert not hasattr(explainer, "feature_names_in_")
    assert result.frame.columns.tolist() == ["x0", "x1"]


def test_a_setting_changed_after_fit_that_fit_depends_on_is_noticed(bank):
    for settings in ({"generator__min_samples_leaf": 20}, {"desired": (1, 2)}):
        explainer = lender(bank, generator=TreeChain()).set_params(**settings)
        with pytest.raises(NotFittedError, match=f"{next(iter(settings))} was changed after fit"):
            explainer.explain(customer())


# A table of this many rows is one that parts of the explainer fail on.
N_BAD = 31


class PickyChain(TreeChain):
    def fit(self, rows, is_desired, **settings):
        if len(rows) == N_BAD:
            raise RuntimeError("no model of these rows")
        return super().fit(rows, is_desired, **settings)


class PickyGower(Gower):
    name = "failing"

    def fit(self, schema, rows, is_desired):
        if len(rows) == N_BAD:
            raise RuntimeError("no distance on these rows")
        return super().fit(schema, rows, is_desired)


def picky_score(frame):
    if len(frame) == N_BAD:
        raise ValueError("no score for these rows")
    return applicants.score(frame)


FAILURES = {
    "a column": ({}, lambda table: table.drop(columns="sex"), SchemaError),
    "rows": ({}, lambda table: table.iloc[:0], SchemaError),
    "a constraint": (
        {"constraints": [c.only_up("salary")]},
        lambda table: table.drop(columns="salary"),
        ConstraintError,
    ),
    "the predictor": ({"predictor": picky_score}, lambda table: table, PredictorError),
    "the generator": ({"generator": PickyChain()}, lambda table: table, RuntimeError),
    "the distance": ({"distance": PickyGower()}, lambda table: table, RuntimeError),
}


@pytest.mark.parametrize("what", FAILURES)
def test_a_fit_that_fails_leaves_the_one_before_as_it_was(what):
    settings, change, error = FAILURES[what]
    settings = {"predictor": applicants.score, "desired": (0.8, 10), "n_samples": 50} | settings
    people, bad = applicants.bank(20, seed=1), change(applicants.bank(N_BAD, seed=2))
    model = MCCE(immutable=["sex"], random_state=0, **settings).fit(applicants.bank(200))
    before = explain(model, people)

    with pytest.raises(error):
        model.fit(bad)

    assert_same(explain(model, people), before)
    new = clone(model)
    with pytest.raises(error):
        new.fit(bad)
    with pytest.raises(NotFittedError):
        new.explain(people)


def test_what_fit_learned_can_be_read_and_not_be_set():
    train = applicants.bank(200)
    model = MCCE(applicants.score, (0.8, 10), search="balanced", random_state=0)
    learned = ["schema_", "decision_", "generator_", "distance_", "seed_", "plausibility_"]
    assert not any(hasattr(model, name) for name in learned)

    model.fit(train)

    assert model.n_desired_ == int((applicants.score(train) >= 0.8).sum())
    for name in learned:
        assert getattr(model, name) is not None
        with pytest.raises(AttributeError):
            setattr(model, name, None)


# ---------------------------------------------------------------------------------------------
# Details of the method.


def loans():
    return pd.DataFrame({"age": [0, 1] * 20, "salary": np.arange(40) + 40})


def learned(frame, decision=None, immutable=(), **settings):
    """An explainer whose decision is that of each training row."""
    accepted = np.ones(len(frame), dtype=bool) if decision is None else decision
    table = frame.assign(accepted=accepted)
    explainer = MCCE(
        lambda rows: rows["accepted"].astype(float),
        (1, 1),
        immutable=[*immutable, "accepted"],
        generator=TreeChain(**settings),
        random_state=0,
    )
    return explainer.fit(table), table


def visited(frame, immutable, **settings):
    explainer, _ = learned(frame, immutable=immutable, visit_order="correlation", **settings)
    return [explainer.schema_.names[at] for at in explainer.generator_.visit_order_]


def test_what_is_most_associated_on_average_is_visited_first():
    chance = np.random.default_rng(0)
    a, b = chance.normal(size=(2, 2000))
    one, both = a + 0.6 * chance.normal(size=2000), a + b + 0.3 * chance.normal(size=2000)
    frame = pd.DataFrame({"a": a, "b": b, "one": one, "both": both})

    assert visited(frame, ["a", "b"])[0] == "both"
    assert visited(pd.DataFrame({name: np.arange(40.0) for name in "abc"}), ["a"]) == ["b", "c"]


def test_likelihoods_know_every_feature_visited_before_and_no_value_in_between():
    chance = np.random.default_rng(0)
    a, b = chance.integers(0, 2, (2, 400)).astype(float)
    explainer, table = learned(pd.DataFrame({"a": a, "b": b, "c": (a + b) % 2}))

    share = [
        (a == u).mean() * ((b == v) & (a == u)).sum() / (a == u).sum()
        for u, v in zip(a, b, strict=True)
    ]
    np.testing.assert_allclose(explainer.log_likelihood(table), np.log(share))
    odd = table.head(1).assign(a=0.4)
    assert explainer.log_likelihood(odd).tolist() == [-np.inf]


def test_the_decision_is_a_condition_of_every_tree():
    accepted = np.arange(400) % 2 == 1
    frame = pd.DataFrame({"x": np.where(accepted, 1.0, 0.0), "y": np.where(accepted, 5.0, 3.0)})
    explainer = MCCE(lambda rows: rows["x"], (1, 1), random_state=0).fit(frame)

    likelihood = explainer.log_likelihood(frame)

    assert np.allclose(likelihood[accepted], 0.0)
    assert (likelihood[~accepted] == -np.inf).all()


def test_more_than_64_levels_are_distinguished():
    levels = np.repeat([f"v{at:03d}" for at in range(150)], 5)
    frame = pd.DataFrame({"level": levels, "y": (np.arange(750) >= 320).astype(float)})
    explainer, table = learned(frame, immutable=["level"])

    assert np.allclose(explainer.log_likelihood(table), 0.0)


def test_an_ordered_category_is_cut_by_its_order():
    size = pd.CategoricalDtype(["s", "m", "l"], ordered=True)
    frame = pd.DataFrame({"size": ["s", "m", "l"] * 20, "y": [0.0, 9.0, 0.0] * 20})
    as_set, table = learned(frame, immutable=["size"], max_depth=1)
    by_order, ordered = learned(frame.astype({"size": size}), immutable=["size"], max_depth=1)

    # One cut of a set isolates m; one by order cannot.
    assert np.allclose(as_set.log_likelihood(table), 0.0)
    assert not np.allclose(by_order.log_likelihood(ordered), 0.0)


def test_a_draw_depends_on_the_feature_not_on_when_it_is_visited():
    chance = np.random.default_rng(0)
    frame = pd.DataFrame(chance.integers(0, 50, (60, 2)), columns=["a", "b"])
    frames = []
    for order in (["a", "b"], ["b", "a"]):
        chain = TreeChain(min_samples_leaf=60, visit_order=order)
        explainer = MCCE(lambda f: f["a"] + f["b"], (60, 99), generator=chain, n_samples=50)
        explainer.set_params(random_state=0, n_counterfactuals=5).fit(frame)
        frames.append(explainer.explain(frame[frame.sum(axis=1) < 60].head(3)).frame)

    pd.testing.assert_frame_equal(*frames)


def test_an_unchanged_cell_is_the_person_s_own_to_the_bit():
    table = pd.DataFrame({"z": [0.0, 1.0] * 20, "a": [0.0, 0.0, 8.0, 8.0] * 10})
    explainer = MCCE(lambda f: f["a"], (8, 8), random_state=0).fit(table)

    result = explainer.explain(pd.DataFrame({"z": [-0.0], "a": [0.0]}))

    assert result.measures["sparsity"].tolist() == [1]
    assert np.signbit(result.frame["z"]).all()


def test_columns_keep_the_dtype_of_the_people_whatever_training_had():
    explainer = MCCE(lambda f: f["salary"], (60, 100), immutable=["age"], random_state=0)

    result = explainer.fit(loans()).explain(loans().head(2).astype("int16"))

    assert result.frame.dtypes.astype(str).tolist() == ["int16", "int16"]


class Halves:
    """A generator that invents halves between whole numbers."""

    capabilities = Capabilities()

    def fit(self, rows, is_desired, *, seed, n_jobs, verbose):
        return self

    def sample(self, request):
        codes = (request.keys[:, None] % 7 + request.draws[None, :].astype(np.uint64)) % 80
        return Draws(codes.astype(np.int32)[None], [pd.Series(np.arange(40, 80, 0.5))])


def test_a_generator_may_invent_values_that_the_column_can_hold():
    desired, by_salary = Interval(60, 100, closed="right"), lambda f: f["salary"]
    explainer = MCCE(by_salary, desired, immutable=["age"], generator=Halves(), random_state=0)
    people = pd.DataFrame({"age": [1, 0, 5], "salary": [41.0, 59.75, 42.0]})

    explainer.set_params(n_counterfactuals=2, search="paper").fit(loans().astype({"salary": float}))
    result = explainer.explain(people)
    pieces = explainer.set_params(memory=1e-6).explain(people)

    assert result.frame["salary"].tolist() == [60.5, 61.0] * 3
    assert result.measures["gower"].tolist()[:3] == [19.5 / 39 / 2, 20 / 39 / 2, 0.75 / 39 / 2]
    assert_same(pieces, result)
    with pytest.raises(SchemaError, match="no dtype holds both"):
        explainer.fit(loans()).explain(loans().head(1))


# ---------------------------------------------------------------------------------------------
# Weights, extreme numbers and shapes.


def test_weights_count_and_must_fit_the_features():
    chance = np.random.default_rng(0)
    train = pd.DataFrame(chance.integers(0, 100, (300, 2)), columns=["a", "b"])
    total = lambda f: f["a"] + f["b"]
    people = train[train.sum(axis=1) < 60].head(8)

    for search in ("paper", "near", "exact"):
        changed = []
        for weights in ([1.0, 50.0], [50.0, 1.0]):
            made = MCCE(total, (80, 200), search=search, distance=Gower(np.array(weights)))
            result = explain(made.set_params(random_state=0).fit(train), people)
            changed.append((result.changes()["feature"] == "a").mean())
        assert changed[0] > 0.6 > 0.4 > changed[1], search
    for weights in ([1.0], [1.0, -1.0], [1.0, np.nan]):
        with pytest.raises(ParameterError, match="weights of Gower must be 2 finite numbers"):
            MCCE(total, (100, 200), distance=Gower(np.array(weights))).fit(train)
    rules = [c.weight("a", 2.0)]
    made = MCCE(total, (100, 200), distance=Gower(np.array([1.0, 2.0])), constraints=rules)
    with pytest.raises(ConstraintError, match="plain Gower distance"):
        made.fit(train).explain(people)


LABELS = {
    "repeated": [7, 7, 7],
    "pairs": pd.MultiIndex.from_tuples([(1, "a"), (1, "a"), (2, "b")], names=["factual", "rank"]),
    "missing": pd.MultiIndex.from_tuples([(1, np.nan), (1, None), (2, "b")]),
}


@pytest.mark.parametrize("labels", LABELS)
def test_any_labels_of_people_are_kept(labels):
    explainer = MCCE(lambda f: f["salary"], (60, 100), random_state=0).fit(loans())
    people = loans().head(3).set_axis(LABELS[labels])

    result = explainer.explain(people)

    assert result.people.index.tolist() == people.index.tolist() or labels == "missing"
    assert len(result.frame) == 3


def test_masked_cells_of_an_array_are_missing_unless_they_would_round_integers():
    cells = np.ma.masked_array(np.arange(40.0).reshape(20, 2), mask=np.zeros((20, 2)))
    cells[3, 1] = np.ma.masked
    model = MCCE(lambda rows: 1 - np.isnan(rows[:, 1]), (0.5, 1), random_state=0).fit(cells)

    result = model.explain(cells[3:4])

    assert result.factuals.isna().to_numpy().tolist() == [[False, True]]
    assert result.frame.notna().to_numpy().all()
    large = np.ma.masked_array(2**60 + np.arange(4).reshape(2, 2), mask=[[True, False]] * 2)
    with pytest.raises(SchemaError, match=r"integers beyond 2\*\*53"):
        model.fit(large)


def positive(frame):
    return (np.asarray(frame["balance"]) > 0).astype(float)


@pytest.mark.parametrize("search", ["paper", "balanced", "exact"])
def test_numbers_far_outside_a_tiny_range_are_no_overflow(search):
    train = pd.DataFrame({"tiny": [0, 5e-324, 1e-323] * 20, "balance": [-1.0, 1.0] * 30})
    people = pd.DataFrame({"tiny": [1e300, -1e300, 5e-324], "balance": [-1.0] * 3})
    explainer = MCCE(positive, (0.5, 1), search=search, n_counterfactuals=2, random_state=0)

    result = explain(explainer.fit(train), people)

    assert result.people["status"].eq("answered").all()
    assert not result.measures["gower"].isna().any()


@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(np.float64, 5e-324), (np.float32, 1e36)],
    ids=["least", "most single"],
)
def test_numbers_of_any_size_are_computed_with_in_silence(dtype, scale):
    chance = np.random.default_rng(0)
    train = pd.DataFrame({"net": chance.integers(1, 50, 200), "tax": chance.integers(1, 30, 200)})
    train = (train * scale).astype(dtype)
    with np.errstate(all="ignore"):
        for formula in ("net + tax", "net * tax", "net / tax"):
            train[formula] = train.eval(formula).replace(math.inf, scale).astype(dtype)
    train["balance"] = chance.normal(size=200)
    rules = [c.derived("net * tax", "net * tax", tolerance=dtype(0))]

    for search in ("balanced", "exact"):
        for constraints in ([], rules):
            explainer = MCCE(positive, (0.5, 1), search=search, constraints=constraints)
            result = explain(explainer.set_params(random_state=0).fit(train), train.head(5))
            assert constraints or result.people["status"].ne("no answer").all()


@pytest.mark.parametrize("search", ["paper", "balanced", "exact"])
def test_integers_beyond_the_reach_of_floats_stay_exact(search):
    chance = np.random.default_rng(0)
    large = 2**62 + chance.integers(0, 3, 60)
    huge = np.array([2**64 - 1], dtype=np.uint64) - chance.integers(0, 3, 60).astype(np.uint64)
    train = pd.DataFrame({"large": large, "huge": huge, "balance": [-1.0, 1.0] * 30})
    people = train[train["balance"] < 0].head(3)
    explainer = MCCE(positive, (0.5, 1), search=search, random_state=0).fit(train)

    for rules in ([], [c.only_up("large")], [c.between("large", 2**62, 2**62 + 2)]):
        result = explain(explainer, people, constraints=rules)

        assert len(result.frame) == 3
        assert result.frame.dtypes.equals(people.dtypes)
        assert set(result.frame["large"]) <= set(train["large"])
        assert set(result.frame["huge"]) <= set(train["huge"])


def test_a_tie_is_broken_by_the_number_of_the_draw_and_not_by_the_order_of_people():
    train = pd.DataFrame({"a": [0, 1, 1] * 20, "b": ["x", "y", "z"] * 20})
    explainer = MCCE(lambda f: 1.0 * (f["b"] != "x"), (1, 1), immutable=["a"], random_state=0)
    one_leaf = TreeChain(min_samples_leaf=60)
    explainer.set_params(n_counterfactuals=2, search="paper", generator=one_leaf).fit(train)
    people = pd.DataFrame({"a": [0, 1, 0, 1], "b": ["x"] * 4})

    result, turned = explainer.explain(people), explainer.explain(people[::-1])

    pd.testing.assert_frame_equal(turned.frame.sort_index(), result.frame)
    assert result.measures["gower"].nunique() == 1 < result.frame["b"].nunique()
