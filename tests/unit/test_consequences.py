"""Columns that are computed from others or determined by them follow, and are no own actions."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bills import bills, deviation, value
from mcce import MCCE, McceWarning, ParameterError, Search
from mcce import constraints as c
from mcce.protocols import Capabilities, Draws
from planted_relations import deviations, services
from searches import altered, bounded, explain, own_rows, slow

BEYOND = ["sparse", "balanced", "near", "plausible"]
TOTAL = c.derived("total", "months * price")
HALF_A_CENT = 0.005 + 1e-9


@cache
def people(n=12):
    return bills(n, seed=1)


@cache
def fitted(search="near", declared=True):
    """An explainer of people with a low value; undeclared, the relation is found."""
    rules = [TOTAL] if declared else []
    explainer = MCCE(value, (2.0, 100), search=search, constraints=rules, random_state=0)
    return explainer.fit(bills(300))


def fit(train, score=value, low=2.0, **settings):
    settings = {"search": "near", "random_state": 0} | settings
    return MCCE(score, (low, 100), **settings).fit(train)


def moved(result, name):
    return (result.frame[name].to_numpy() != own_rows(result)[name].to_numpy()).astype(bool)


def kinds(result, name):
    changes = result.changes()
    return set(changes.loc[changes["feature"] == name, "kind"])


@pytest.mark.parametrize(
    ("search", "declared"), [*((name, True) for name in BEYOND), ("near", False)]
)
def test_no_answer_breaks_a_formula_and_consequences_are_no_actions(search, declared):
    explainer = fitted(search, declared)

    result = explain(explainer, people())

    if not declared:
        assert explainer.relations_["relation"].tolist() == ["total = months * price"]
    assert len(result.frame) > 4
    assert (np.abs(deviation(result.frame)) <= HALF_A_CENT).all()
    assert kinds(result, "total") == {"consequence"}
    changes, measures = result.changes(), result.measures
    by_answer = changes.groupby(["factual", "rank"])
    assert set(changes.loc[changes["feature"] != "total", "kind"]) == {"action"}
    assert (by_answer["kind"].agg(lambda kind: (kind == "action").sum()) > 0).all()
    assert (measures["sparsity"] == by_answer.size()).all()
    assert (measures["sparsity"] - measures["n_actions"] == moved(result, "total")).all()
    # Not only totals that training happens to hold.
    assert not result.frame["total"].isin(bills(300)["total"]).all()


def test_a_person_keeps_their_own_deviation():
    result = explain(fitted(), people().assign(total=people()["total"] + 7.25))

    assert moved(result, "total").sum() > 3
    np.testing.assert_allclose(deviation(result.frame), 7.25, atol=HALF_A_CENT)


def test_a_relative_deviation_stays_the_same_share():
    chance = np.random.default_rng(2)

    def noisy(frame):
        share = chance.uniform(-0.01, 0.01, len(frame))
        return frame.assign(total=(frame["total"] * (1 + share)).round(2))

    result = explain(fit(noisy(bills(300))), noisy(people()))

    shares = [deviation(f) / (f["months"] * f["price"]) for f in (own_rows(result), result.frame)]
    assert len(result.frame) > 4
    np.testing.assert_allclose(*(share.to_numpy() for share in shares), atol=2e-4)


@pytest.mark.parametrize("dtype", ["float32", "Int64", "int64[pyarrow]"])
def test_the_column_keeps_its_dtype_and_its_decimal_places(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    places = 2 if "loat" in dtype else 0
    train, asking = (
        frame.assign(total=frame["total"].round(places).astype(dtype))
        for frame in (bills(300), people())
    )

    result = explain(fit(train, constraints=[TOTAL]), asking)

    total = result.frame["total"]
    followed = total.to_numpy(float) != own_rows(result)["total"].to_numpy(float)
    single = 1e-3 if dtype == "float32" else 0.0
    new, old = deviation(result.frame), deviation(own_rows(result))
    off = np.minimum(np.abs(new), np.abs(new - old))
    assert total.dtype == asking["total"].dtype
    assert followed.sum() > 3
    assert off[followed].max() <= 0.5 * 10.0**-places + 1e-9 + single
    numbers = total.to_numpy(float)
    assert np.abs(numbers.round(places) - numbers).max() <= single


@pytest.mark.parametrize("search", ["sparse", "exact"])
@pytest.mark.parametrize("rules", [[], [TOTAL]], ids=["found", "declared"])
def test_a_missing_total_follows_once_there_is_something_to_compute(search, rules):
    chance = np.random.default_rng(0)
    months = np.where(chance.random(900) < 0.03, 0, chance.integers(1, 60, 900))
    train = pd.DataFrame({"months": months, "price": chance.integers(20, 90, 900)})
    # Nobody has paid anything in the first month.
    train["total"] = (months * train["price"]).astype(float).where(months > 0)
    loyal = lambda frame: frame["months"] / 60
    new = train[months == 0].head(6)

    result = explain(fit(train, loyal, 0.5, search=search, constraints=rules), new)

    assert len(result.frame) == len(new)
    assert (result.frame["total"] == result.frame["months"] * result.frame["price"]).all()
    assert kinds(result, "total") == {"consequence"}


def test_a_computed_value_stays_in_the_training_range():
    train, asking = bills(300), people()
    train, asking = train[train["total"] < 3000], asking[asking["total"] < 3000]

    result = explain(fit(train, constraints=[TOTAL]), asking)

    assert len(result.frame)
    assert result.frame["total"].max() <= train["total"].max()


@pytest.mark.slow
def test_an_immutable_total_rules_out_the_action_and_the_reason_says_so():
    by_price = lambda frame: -frame["price"].to_numpy()
    explainer = MCCE(by_price, (-40, 0), search="near", immutable=["total", "months"])
    explainer.set_params(constraints=[TOTAL], random_state=0)

    explainer.fit(bills(300))  # without a warning: whoever declares a formula knows of it
    result = explain(explainer, people()[people()["price"] > 60])

    assert not len(result.frame)
    assert result.missing["reason"].str.contains(r"'derived total' \(immutable\)").any()


def test_a_formula_that_does_not_hold_gives_a_warning():
    explainer = MCCE(value, (2.0, 100), constraints=[c.derived("total", "months + price")])

    with pytest.warns(McceWarning, match=r"total.*holds in \d+ of 300 training rows"):
        explainer.fit(bills(300))


@pytest.mark.parametrize(
    ("rule", "obeyed"),
    [
        (
            c.frozen("total", where="age > 40"),
            lambda old, new: (old["age"] <= 40) | (old["total"] == new["total"]),
        ),
        (c.only_up("total"), lambda old, new: new["total"] >= old["total"]),
        (
            c.between("total", 1000, 4000),
            lambda old, new: (old["total"] == new["total"]) | new["total"].between(1000, 4000),
        ),
    ],
    ids=["frozen", "only up", "between"],
)
def test_rules_on_the_column_hold_for_consequences_too(rule, obeyed):
    result = explain(fitted(), people(), constraints=[rule])

    assert len(result.frame)
    assert obeyed(own_rows(result), result.frame).all()
    assert (np.abs(deviation(result.frame)) <= HALF_A_CENT).all()


def test_columns_follow_each_other_in_order():
    def with_sum(frame):
        fee = frame["age"] / 10
        return frame.assign(fee=fee, sum=(frame["total"] + fee).round(2))

    by_sum = lambda frame: frame["sum"].to_numpy(float) / 1000
    rules = [c.derived("sum", "total + fee"), TOTAL]

    result = explain(fit(with_sum(bills(300)), by_sum, 3.0, constraints=rules), with_sum(people()))

    frame = result.frame
    assert len(frame) > 4
    assert (np.abs(deviation(frame)) <= HALF_A_CENT).all()
    assert (np.abs(frame["sum"] - frame["total"] - frame["fee"]) <= HALF_A_CENT).all()
    assert kinds(result, "total") == kinds(result, "sum") == {"consequence"}


def test_answers_can_be_compared_by_actions():
    by_cells = explain(fitted(), people())
    by_actions = Search("near", rank_by=("n_actions", "distance"))

    result = explain(altered(fitted(), search=by_actions), people())

    assert result.measures["n_actions"].mean() <= by_cells.measures["n_actions"].mean()
    with pytest.raises(ParameterError, match="rank_by must be one of"):
        Search("near", rank_by=("distance",))


def test_redrawn_columns_are_actions_that_obey_and_without_consequences_nothing_holds():
    redraw, none = (Search("near", consequences=how) for how in ("redraw", "none"))

    redrawn = explain(fit(bills(300), search=redraw), people())
    free = explain(fit(bills(300), search=none), people())
    ignored = explain(fit(bills(300), ignore_relations=["total = months * price"]), people())

    assert len(redrawn.frame)
    assert (np.abs(deviation(redrawn.frame)) <= HALF_A_CENT).all()
    assert redrawn.frame["total"].isin([*bills(300)["total"], *people()["total"]]).all()
    for result in (free, ignored):
        assert (np.abs(deviation(result.frame)) > 1).any()
    for result in (redrawn, free, ignored):
        assert set(result.changes()["kind"]) == {"action"}


def test_a_declared_formula_replaces_what_was_found():
    rule = c.derived("total", "months * price", tolerance=50)
    explainer = fit(bills(300), constraints=[rule])

    result = explain(explainer, people().assign(total=people()["total"] + 40))

    np.testing.assert_allclose(deviation(result.frame), 40, atol=HALF_A_CENT)


def test_of_two_formulas_for_a_column_the_second_moves_another_one():
    train = services(500)
    asking = train[train["total"] < 1000].head(6)
    model = MCCE(lambda rows: rows["total"], (1500, 9e9), search="near", immutable=["age"])

    result = explain(model.set_params(random_state=0).fit(train), asking)

    assert len(result.frame) == len(asking)
    assert kinds(result, "paid") == kinds(result, "total") == {"consequence"}
    for kind, off in deviations(result.frame).items():
        assert (off <= 1e-6).all(), kind


@pytest.mark.parametrize("search", ["sparse", "near"])
def test_an_action_is_undone_together_with_what_follows_from_it(search):
    free = bounded(search, min_plausibility=0.0)
    explainer = altered(fitted(search), search=free)

    result = explain(explainer, people())

    measured = explainer.robustness(result)
    assert (result.measures["sparsity"] > result.measures["n_actions"]).any()
    assert measured["valid"].all()
    assert measured["minimal"].all()


@pytest.mark.slow
@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**16),
    search=st.sampled_from(BEYOND),
    places=st.integers(0, 2),
    noise=st.sampled_from([0.0, 5.0]),
    frozen=st.sampled_from([(), ("months",), ("price", "plan")]),
)
def test_every_changed_cell_is_seen_in_training_or_follows(seed, search, places, noise, frozen):
    chance = np.random.default_rng(seed)
    train, asking = bills(120, seed), bills(6, seed + 1)
    asking["total"] = asking["total"] + noise * chance.normal(size=len(asking))
    train, asking = (f.assign(total=f["total"].round(places)) for f in (train, asking))
    rules = [TOTAL, *(c.frozen(name) for name in frozen)]

    result = explain(fit(train, search=search, constraints=rules), asking)

    old, new = own_rows(result), result.frame
    for name in ("months", "price", "age", "plan"):
        assert (new[name].isin(train[name]) | (new[name] == old[name])).all()
    half = 0.5 * 10.0**-places + 1e-6
    kept = np.abs(deviation(new) - deviation(old)) <= half
    assert (kept | (np.abs(deviation(new)) <= half)).all()
    inside = new["total"].between(train["total"].min(), train["total"].max())
    assert (inside | (new["total"] == old["total"])).all()


def test_a_column_of_few_values_only_becomes_one_of_them():
    chance = np.random.default_rng(0)
    months, rate = chance.choice([6, 12, 24, 36], 400), chance.choice([20, 30, 50, 75], 400)
    train = pd.DataFrame({"amount": months * rate, "rate": rate, "months": months})
    rules = [c.derived("months", "amount / rate")]
    explainer = fit(train, lambda frame: 100 - frame["rate"], 70, constraints=rules)

    result = explain(explainer, train[train["rate"] > 50].head(10))

    assert len(result.frame)
    assert result.frame["months"].isin([6, 12, 24, 36]).all()
    assert (result.frame["amount"] == result.frame["rate"] * result.frame["months"]).all()


# ---------------------------------------------------------------------------------------------
# Levels that another column determines.

NAMES = {"S1": "small", "S2": "small", "M1": "middle", "M2": "middle", "L1": "large", "L2": "large"}
SIZES = {"small": 0.0, "middle": 1.0, "large": 2.0, "huge": 3.0}


def plans(n_rows, seed=0):
    """Customers with the code of a plan and its name, which the code determines."""
    chance = np.random.default_rng(seed)
    frame = pd.DataFrame({"code": chance.choice(list(NAMES), n_rows)})
    frame["name"] = frame["code"].map(NAMES)
    frame["usage"] = chance.integers(0, 50, n_rows)
    return frame.assign(age=chance.integers(18, 80, n_rows))


def points(frame):
    """A score that rises with the size that the name says, and with the usage."""
    sizes = frame["name"].map(SIZES).to_numpy(float)
    return sizes + frame["usage"].to_numpy(float) / 50 - 0.2 * (frame["code"] == "L2").to_numpy()


def fit_plans(search="sparse", train=None, **settings):
    settings = {"score": points, "immutable": ["age"], "search": search} | settings
    return fit(plans(300) if train is None else train, **settings)


@pytest.mark.parametrize("search", [*BEYOND, "exact"])
def test_a_level_follows_the_column_that_determines_it(search):
    explainer = fit_plans(search)

    result = explain(explainer, plans(15, seed=1))

    assert explainer.relations_["relation"].tolist() == ["code determines name"]
    assert len(result.frame) > 6
    assert (result.frame["name"] == result.frame["code"].map(NAMES)).all()
    assert kinds(result, "name") == {"consequence"}
    assert kinds(result, "code") == {"action"}
    followed, measures = moved(result, "name"), result.measures
    assert followed.any()
    assert (moved(result, "code") | ~followed).all()
    assert (measures["sparsity"] - measures["n_actions"] == followed).all()


@pytest.mark.parametrize("search", ["sparse", "exact"])
def test_an_answer_keeps_a_broken_row_or_follows_the_table(search):
    asking = plans(15, seed=1).assign(name="huge", usage=0)
    explainer = fit_plans(search, score=lambda frame: 3 - points(frame))

    result = explain(explainer, asking)

    assert len(result.frame)
    listed = result.frame["name"] == result.frame["code"].map(NAMES)
    np.testing.assert_array_equal(listed, moved(result, "code"))
    np.testing.assert_array_equal(moved(result, "name"), moved(result, "code"))
    assert (result.measures["n_actions"] > 0).all()


@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
@pytest.mark.parametrize("how", ["immutable", *slow("frozen", "limited")])
def test_no_answer_takes_an_action_whose_consequence_is_not_allowed(how):
    rules = {"frozen": [c.frozen("name")], "limited": [c.levels("name", ["small", "middle"])]}
    fixed = ["age", "name"] if how == "immutable" else ["age"]

    settings = {"immutable": fixed, "constraints": rules.get(how, []), "low": 1.5}
    result = explain(fit_plans("sparse", **settings), plans(15, seed=1))

    assert len(result.frame)
    assert (result.frame["name"] == result.frame["code"].map(NAMES)).all()
    reached = set(result.frame.loc[moved(result, "name"), "name"])
    assert reached == ({"middle"} if how == "limited" else set())


def test_of_two_columns_that_determine_each_other_the_later_one_follows():
    train = plans(300).drop(columns="age")
    train = train.assign(short=train["name"].str[0])

    result = explain(fit_plans(train=train, immutable=[]), train.head(20))

    assert kinds(result, "short") == kinds(result, "name") == {"consequence"}
    assert (result.frame["short"] == result.frame["name"].str[0]).all()


def test_a_dependency_that_some_rows_break_moves_nothing_nor_one_that_is_let_go_of():
    broken = plans(300)
    broken.loc[:2, "name"] = "huge"
    let_go = fit_plans(ignore_relations=["code determines name"])
    explainer = fit_plans(train=broken)

    assert explainer.relations_["enforced"].tolist() == [False]
    for model in (explainer, let_go):
        assert set(explain(model, plans(15, seed=1)).changes()["kind"]) == {"action"}


class FewPlans:
    """A generator that draws two codes and one name."""

    capabilities = Capabilities(value_tables=True)
    tables_ = (pd.Series(["L1", "S2"]), pd.Series(["small"]), pd.Series([3, 17]))

    def fit(self, rows, is_desired, *, seed, n_jobs, verbose):
        return self

    def sample(self, request):
        codes = np.zeros((3, request.keys.size, request.draws.size), dtype=np.int32)
        codes[0], codes[2] = request.draws % 3 == 0, request.draws % 2
        return Draws(codes, self.tables_)


def test_what_follows_need_not_be_among_the_values_of_a_generator():
    explainer = fit_plans("balanced", n_samples=6, generator=FewPlans())

    result = explain(explainer, plans(15, seed=1))

    followed = result.frame[moved(result, "name")]
    assert set(followed["name"]) == {"large"}
    assert set(followed["code"]) == {"L1"}


def test_values_of_a_generator_that_does_not_declare_them_are_for_the_papers_search():
    class Undeclared(FewPlans):
        capabilities = Capabilities()

    with pytest.raises(ParameterError, match="must say value_tables, with all values in tables_"):
        explain(fit_plans("balanced", generator=Undeclared()), plans(15, seed=1))


FOLLOWING = {
    "category": lambda code: code.map(NAMES).astype(pd.CategoricalDtype(list(SIZES))),
    "boolean": lambda code: (code.str[0] == "L").astype("boolean").mask(code == "M1"),
    "Int64": lambda code: code.map(NAMES).map(SIZES).astype("Int64").mask(code == "M1"),
    "float": lambda code: code.map(NAMES).map(SIZES).mask(code == "M1") + 0.25,
}


@pytest.mark.parametrize("kind", FOLLOWING)
def test_columns_of_every_kind_follow(kind):
    follows, train = FOLLOWING[kind], plans(300)
    train["name"] = follows(train["code"])
    good = lambda frame: frame["code"].isin(["L1", "M1"]).to_numpy() + frame["usage"] / 100

    result = explain(fit_plans(train=train, score=good, low=1.0), train.head(15))

    assert moved(result, "code").any()
    expected = follows(result.frame["code"])
    pd.testing.assert_series_equal(result.frame["name"], expected, check_names=False)
