"""Constraints: what each allows and forbids, that every answer obeys all, and what is refused."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcce import MCCE, ConstraintError, McceWarning, Search
from mcce import constraints as c
from mcce.protocols import Capabilities, Draws
from searches import slow

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

HOMES = ["rent", "free", "own"]
SCHOOLS = ["school", "bachelor", "master"]
DESIRED = (0.55, 9.0)


@cache
def applicants(n_rows=200, seed=0):
    """Numbers, ordered and other levels with missing cells; the total follows from the years."""
    chance = np.random.default_rng(seed)
    years = chance.integers(0, 7, n_rows)
    return pd.DataFrame(
        {
            "salary": chance.choice([10.0, 20.0, 30.0, 40.0, 50.0, np.nan], n_rows),
            "years": years,
            "age": chance.choice([20, 40, 60], n_rows),
            "education": pd.Categorical(chance.choice(SCHOOLS, n_rows), SCHOOLS, ordered=True),
            "home": pd.Series(chance.choice([*HOMES, None], n_rows), dtype=object),
            "total": 2 * years + 1,
            "sex": chance.choice(["f", "m"], n_rows),
        }
    )


def score(frame):
    points = frame["salary"].fillna(20) / 100 + frame["years"] / 30 + frame["age"] / 400
    return points + frame["education"].cat.codes / 8 + (frame["home"] == "own") / 5


@cache
def fitted(search="paper", **settings):
    given = {"immutable": ["sex"], "n_samples": 60, "random_state": 1} | settings
    return MCCE(score, DESIRED, search=search, **given).fit(applicants())


def people(n_rows=20):
    frame = applicants(150, seed=1)
    return frame[score(frame) < DESIRED[0]].head(n_rows)


def before_and_after(result):
    """The factual of each answer, the answer, and which cells differ."""
    before = result.factuals.iloc[result.owner].reset_index(drop=True)
    after = result.frame.reset_index(drop=True)
    same = {
        name: (before[name] == after[name]).fillna(False).to_numpy(dtype=bool)
        | (before[name].isna() & after[name].isna()).to_numpy()
        for name in before
    }
    return before, after, ~pd.DataFrame(same)


# For each kind of rule, rules of it and whether changed rows obey them, by hand.
def of_feature(name, allowed):
    """What a rule on one column says: its value stays, or the new one is allowed."""
    return lambda b, a, moved: ~moved[name] | allowed(b[name], a[name]).to_numpy(dtype=bool)


def ranked(levels):
    return lambda column: column.astype(object).map({None: np.nan} | dict(zip(levels, range(9))))  # noqa: B905


WAYS = {
    "only_up": lambda b, a: a > b,
    "only_down": lambda b, a: a < b,
    "not_up": lambda b, a: ~(a > b),
    "not_down": lambda b, a: ~(a < b),
}


def one_way(way, name):
    rank = {"education": ranked(SCHOOLS), "home": ranked(HOMES)}.get(name, lambda cells: cells)
    order = {"order": HOMES} if name == "home" else {}
    rule = getattr(c, way)(name, **order)
    return rule, of_feature(name, lambda b, a: WAYS[way](rank(b), rank(a)))


def between(low, width):
    rule = c.between("salary", low, low + width)
    return rule, of_feature("salary", lambda b, a: a.between(low, low + width))


def change(less, more):
    rule = c.change("years", at_least=-less, at_most=more)
    return rule, of_feature("years", lambda b, a: (a - b).between(-less, more))


def percentage(share):
    rule = c.change("salary", at_most=f"{share} %")
    return rule, of_feature("salary", lambda b, a: a - b <= b * share / 100)


def levels(allowed):
    has = lambda b, a: a.isin([*allowed, np.nan] if None in allowed else allowed)
    return c.levels("home", allowed), of_feature("home", has)


def transitions(allowed):
    pairs = {(old, new) for old, news in allowed.items() for new in news}
    plain = lambda cells: [None if pd.isna(cell) else cell for cell in cells]
    goes = lambda b, a: pd.Series(list(zip(plain(b), plain(a), strict=True))).isin(pairs)
    return c.transitions("home", allowed), of_feature("home", goes)


def never_advise(listed):
    has = lambda b, a: a.isin([*listed, np.nan] if None in listed else listed)
    return c.never_advise("home", listed), of_feature("home", lambda b, a: ~has(b, a))


def never_towards(way, name):
    rank = ranked(SCHOOLS) if name == "education" else lambda cells: cells
    allowed = WAYS[f"not_{way}"]
    rule = c.never_advise(name, direction=way)
    return rule, of_feature(name, lambda b, a: allowed(rank(b), rank(a)))


def frozen(name):
    return c.frozen(name, where="years > 2"), lambda b, a, moved: ~moved[name] | (b["years"] <= 2)


def step(size):
    rule = c.step("salary", size)
    far = lambda b, a: a.isna() | b.isna() | ((a - b).abs() >= size)
    return rule, of_feature("salary", far)


def max_changes(n):
    names = ["salary", "education", "home"]
    return c.max_changes(n, names), lambda b, a, moved: moved[names].sum(axis=1) <= n


HOME = st.sampled_from([*HOMES, None])
RULES = {
    "one way": st.builds(
        one_way,
        st.sampled_from(list(WAYS)),
        st.sampled_from(["salary", "age", "education", "home"]),
    ),
    "between": st.builds(between, st.integers(10, 40), st.integers(0, 40)),
    "change": st.builds(change, st.integers(0, 4), st.integers(0, 4)),
    "percentage": st.builds(percentage, st.integers(0, 120)),
    "levels": st.builds(levels, st.lists(HOME, max_size=3, unique=True)),
    "transitions": st.builds(transitions, st.dictionaries(HOME, st.lists(HOME, max_size=3))),
    "never": st.builds(never_advise, st.lists(HOME, min_size=1, max_size=3, unique=True)),
    "never towards": st.builds(
        never_towards, st.sampled_from(["up", "down"]), st.sampled_from(["salary", "education"])
    ),
    "frozen": st.builds(frozen, st.sampled_from(["salary", "age", "home"])),
    "step": st.builds(step, st.integers(1, 30)),
    "max_changes": st.builds(max_changes, st.integers(1, 2)),
    "row": st.deferred(lambda: st.sampled_from(ONE_OF_EACH[-3:])),
}


ONE_OF_EACH = [
    one_way("only_up", "salary"),
    one_way("not_down", "age"),
    between(20, 20),
    change(1, 2),
    percentage(50),
    levels(["free", None]),
    transitions({"rent": ["own"], None: ["rent"]}),
    never_advise(["own"]),
    never_towards("up", "salary"),
    frozen("salary"),
    step(15),
    max_changes(1),
    (c.together("salary", "age"), lambda b, a, moved: moved["salary"] == moved["age"]),
    (c.relation("of age", "years <= age / 10"), lambda b, a, moved: a["years"] <= a["age"] / 10),
    (c.derived("total", "2 * years + 1"), lambda b, a, moved: a["total"] == 2 * a["years"] + 1),
]


@pytest.mark.parametrize("search", ["paper", "exact", *slow("sparse")])
def test_answers_obey_a_rule_of_each_kind_that_they_break_without_it(search):
    explainer = fitted(search, n_counterfactuals=3, n_samples=40)
    free = before_and_after(fitted("paper", n_counterfactuals=3).explain(people()))
    for rule, obeys in ONE_OF_EACH:
        result = explainer.explain(people(5), constraints=[rule])

        assert len(result.frame), rule
        assert obeys(*before_and_after(result)).all(), rule
        # Trees learn by themselves what the total is.
        assert rule.kind == "derived" or not obeys(*free).all(), rule


@settings(max_examples=20)
@given(
    st.lists(st.sampled_from(sorted(RULES)), min_size=1, max_size=4, unique=True).flatmap(
        lambda kinds: st.tuples(*[RULES[kind] for kind in kinds])
    ),
    st.sampled_from(["paper", "sparse", "exact"]),
)
def test_every_answer_obeys_every_rule_whatever_their_combination(rules, search):
    explainer = fitted(search, n_counterfactuals=3, n_samples=40)

    result = explainer.explain(people(8), constraints=[rule for rule, _ in rules])

    before, after, moved = before_and_after(result)
    for rule, obeys in rules:
        assert obeys(before, after, moved).all(), rule
    assert (score(after) >= DESIRED[0]).all()
    assert not moved["sex"].any()


ONE = ("a", "b", "c", "d", "e")
NUMBERS = [*map(float, range(11)), np.nan]
# What somebody with 5, or with "c" (missing), may become.
ALLOWED = {
    "nothing said": ([], {*NUMBERS[:5], *NUMBERS[6:11], "missing"}),
    "only_up": ([c.only_up("x")], {6, 7, 8, 9, 10}),
    "only_down": ([c.only_down("x")], {0, 1, 2, 3, 4}),
    "not_up": ([c.not_up("x")], {0, 1, 2, 3, 4, "missing"}),
    "not_down": ([c.not_down("x")], {6, 7, 8, 9, 10, "missing"}),
    "between": ([c.between("x", 2, 7)], {2, 3, 4, 6, 7}),
    "no end": ([c.between("x", None, 1)], {0, 1}),
    "amounts": ([c.change("x", at_least=-2, at_most=3)], {3, 4, 6, 7, 8}),
    "percentages": ([c.change("x", at_least="-20 %", at_most="40 %")], {4, 6, 7}),
    "step": ([c.step("x", 3)], {0, 1, 2, 8, 9, 10, "missing"}),
    "frozen": ([c.frozen("x")], set()),
    "of others": ([c.frozen("x", where="x > 5")], {*NUMBERS[:5], *NUMBERS[6:11], "missing"}),
    "relation": ([c.relation("few", "x in [1, 2]")], {1, 2}),
    "derived": ([c.derived("x", "zero + 3")], {3}),
    # The formula gives 3, the own value is 2 more: both within 1.
    "tolerance": ([c.derived("x", "zero + 3", tolerance=1)], {2, 3, 4, 6}),
    "two": ([c.between("x", 2, 7), c.only_up("x")], {6, 7}),
    "levels": ([c.levels("level", ["a", "b"])], {"a", "b"}),
    "levels and missing": ([c.levels("level", ["e", None])], {"e", "missing"}),
    "transitions": ([c.transitions("level", {"c": ["e"], "d": ["a"]})], {"e"}),
    "no transition": ([c.transitions("level", {"a": ["e"]})], set()),
    "own order": ([c.only_up("level", order=["e", "d", "c", "b", "a"])], {"a", "b"}),
    "not in order": ([c.not_up("level", order=list(ONE))], {"a", "b", "missing"}),
}


@cache
def explains_one_column(name):
    """Somebody who must change one column, to whatever is allowed."""
    cells = NUMBERS if name == "x" else pd.Series([*ONE, None], dtype=object)
    own = 5.0 if name == "x" else "c"
    train = pd.DataFrame({name: np.tile(np.array(cells, dtype=object), 10), "zero": 0})
    train = train.astype({"x": float} if name == "x" else {})
    settings = {"mutable": [name], "n_samples": 400, "n_counterfactuals": 12, "random_state": 0}
    # Other searches return one value of several that ask for the same.
    settings |= {"search": "paper"}
    explainer = MCCE(lambda frame: frame[name] != own, (1, 1), **settings).fit(train)
    return explainer, train[train[name] == own].head(1)


@pytest.mark.parametrize("name", ALLOWED)
def test_a_value_becomes_all_that_its_rule_allows_and_nothing_else(name):
    rules, expected = ALLOWED[name]
    column = "level" if any("level" in rule.features for rule in rules) else "x"
    explainer, person = explains_one_column(column)

    result = explainer.explain(person, constraints=rules)

    cells = result.frame[column]
    assert {"missing" if pd.isna(cell) else cell for cell in cells} == expected


def test_a_frozen_feature_stays_for_these_people_only():
    old = people()["age"] > 40
    ways = ["age > 40", lambda rows: rows["age"] > 40, old, old.to_numpy()]

    results = [
        fitted().explain(people(), constraints=[c.frozen("salary", "education", where=where)])
        for where in ways
    ]

    for result in results:
        moved = before_and_after(result)[2][["salary", "education"]].any(axis=1).to_numpy()
        is_old = old.to_numpy()[result.owner]
        assert not moved[is_old].any()
        assert moved[~is_old].any()
        pd.testing.assert_frame_equal(result.frame, results[0].frame)


@pytest.mark.parametrize("search", ["paper", "sparse"])
def test_freezing_an_immutable_feature_says_nothing_new(search):
    explainer = fitted(search)
    rules = [c.frozen("home", "sex"), c.frozen("sex", where="age > 30")]

    result = explainer.explain(people(), constraints=rules)

    expected = explainer.explain(people(), constraints=[c.frozen("home")])
    pd.testing.assert_frame_equal(result.frame, expected.frame)


def test_a_weight_makes_changes_cost_more_but_gower_is_reported_unweighted():
    nearest = fitted(Search("paper", rank_by=("distance",)))
    plain = nearest.explain(people())
    dear = nearest.explain(people(), constraints=[c.weight("salary", 1000.0)])

    moved = [before_and_after(result)[2]["salary"].sum() for result in (plain, dear)]

    assert moved[1] < moved[0]
    assert dear.measures["gower"].max() <= 1
    assert dear.measures["gower"].mean() >= plain.measures["gower"].mean()


def test_a_value_that_training_never_held_stays_or_becomes_what_is_allowed():
    odd = people(8).assign(age=25, salary=5.5, home="tent")
    rules = [c.frozen("age"), c.only_down("salary"), c.levels("home", ["own"])]

    result = fitted().explain(odd, constraints=rules)

    assert len(result.frame)
    assert (result.frame["age"] == 25).all()
    assert (result.frame["salary"] == 5.5).all()
    assert result.frame["home"].isin(["tent", "own"]).all()


def test_a_value_that_a_rule_forbids_may_stay_as_it_is():
    train = pd.DataFrame({"loans": [0, 1, 2, 3] * 50, "paid": [0] * 100 + [1] * 100})
    explainer = MCCE(lambda rows: rows["paid"], (1, 1), random_state=0).fit(train)

    for rule in (c.between("loans", 0, 2), c.change("loans", at_most=-1)):
        result = explainer.explain(train.iloc[[3]], constraints=[rule])

        assert result.changes()["feature"].tolist() == ["paid"]


def test_rules_of_a_call_are_added_to_those_of_the_explainer():
    explainer = MCCE(score, DESIRED, constraints=[c.only_up("years")], random_state=3)
    explainer.set_params(n_samples=60).fit(applicants())

    usual = before_and_after(explainer.explain(people()))
    before, after, moved = before_and_after(
        explainer.explain(people(), constraints=[c.frozen("salary")])
    )

    assert usual[2]["salary"].any()
    assert not moved["salary"].any()
    assert (after["years"] >= before["years"]).all()


def test_no_rules_change_nothing():
    plain = fitted().explain(people()).frame

    for nothing in (None, [], [c.weight("age", 1.0)]):
        pd.testing.assert_frame_equal(fitted().explain(people(), constraints=nothing).frame, plain)


def test_a_reason_names_the_rule_that_excluded_what_was_valid():
    with pytest.warns(McceWarning, match="no counterfactual"):
        result = fitted().explain(people(), constraints=[c.relation("very old", "age > 1000")])

    assert result.missing["reason"].str.contains("excluded by 'very old'").any()


def test_draws_of_a_generator_that_knows_no_limits_are_held_to_the_rules():
    class Anything:
        capabilities = Capabilities()

        def fit(self, rows, is_desired, *, seed, n_jobs, verbose):
            self.sizes = [rows.schema.features[at].n_codes for at in rows.schema.mutable]
            return self

        def sample(self, request):
            keys = request.keys[:, None] % np.uint64(97)
            numbers = (keys + request.draws[None, :] * 31).astype(np.int64)
            codes = [(numbers + at) % size for at, size in enumerate(self.sizes)]
            return Draws(np.array(codes, dtype=np.int32))

    explainer = MCCE(score, DESIRED, generator=Anything(), random_state=0).fit(applicants())
    rules = [c.only_up("salary"), c.frozen("age"), c.step("years", 3)]

    before, after, moved = before_and_after(explainer.explain(people(), constraints=rules))

    assert len(after)
    assert not moved["age"].any()
    assert (after["salary"] > before["salary"])[moved["salary"]].all()
    assert ((after["years"] - before["years"]).abs()[moved["years"]] >= 3).all()


# Rules hold to the last digit.
BIG = 2**62


@pytest.mark.parametrize("dtype", ["int64", "Int64", "uint64"])
def test_whole_numbers_that_a_float_cannot_tell_apart_are_compared_exactly(dtype):
    train = pd.DataFrame({"x": pd.Series(BIG + np.arange(100) % 5).astype(dtype), "y": [0, 1] * 50})
    explainer = MCCE(lambda rows: rows["y"] * 0 + rows["x"].ne(BIG + 2), (1, 1), mutable=["x"])
    explainer.set_params(search="paper", n_samples=100, n_counterfactuals=4, random_state=0).fit(
        train
    )
    rules = {
        "down": (c.only_down("x"), {0, 1}),
        "up": (c.not_down("x"), {3, 4}),
        "between": (c.between("x", BIG + 1, BIG + 3), {1, 3}),
        "amount": (c.change("x", at_least=-1.5, at_most=1), {1, 3}),
        "percentage": (c.change("x", at_most="3e-17 %"), {0, 1, 3}),
        "step": (c.step("x", 2), {0, 4}),
    }

    for name, (rule, expected) in rules.items():
        result = explainer.explain(train.iloc[[2]], constraints=[rule])
        assert {int(x) - BIG for x in result.frame["x"]} == expected, name


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_times_are_limited_by_lengths_of_time_and_by_dates(unit):
    start = pd.Timestamp("2024-01-01", tz="UTC")
    days = pd.Series(start + pd.to_timedelta(np.arange(100) % 10, unit="D"))
    train = pd.DataFrame({"since": days.astype(f"datetime64[{unit}, UTC]")})
    own = train["since"].iloc[5]
    explainer = MCCE(lambda rows: rows["since"] != own, (1, 1), random_state=0)
    explainer.set_params(search="paper", n_samples=100, n_counterfactuals=9).fit(train)
    rules = {
        "text": (c.change("since", at_least="-1 days", at_most="2 days"), {4, 6, 7}),
        "pandas": (c.change("since", at_most=pd.Timedelta("1D")), {0, 1, 2, 3, 4, 6}),
        "numpy": (c.step("since", np.timedelta64(4, "D")), {0, 1, 9}),
        "dates": (
            c.between("since", "2024-01-04", pd.Timestamp("2024-01-07", tz="UTC")),
            {3, 4, 6},
        ),
    }

    for name, (rule, expected) in rules.items():
        result = explainer.explain(train.iloc[[5]], constraints=[rule])
        assert set((result.frame["since"] - start).dt.days) == expected, name


def test_a_whole_percentage_includes_its_end():
    train = pd.DataFrame({"x": np.tile(np.arange(1, 101), 3)})
    for percent in (7, 14, 28, 29, 55, 57, 58):
        explainer = MCCE(lambda rows: rows["x"] * 1.0, (0, 100 - percent), random_state=0).fit(
            train
        )

        result = explainer.explain(
            train.iloc[[99]], constraints=[c.change("x", at_least=f"-{percent} %")]
        )

        assert result.frame["x"].tolist() == [100 - percent]


@pytest.mark.parametrize("dtype", ["uint8", "UInt8", "int16[pyarrow]"])
def test_limits_need_not_fit_the_dtype_of_the_column(dtype):
    train = applicants().astype({"years": dtype})
    rules = [c.change("years", at_least=-5.5), c.between("years", -1, 1000.5), c.step("years", 1.5)]

    explainer = MCCE(score, DESIRED, constraints=rules, n_samples=40, random_state=0).fit(train)

    assert len(explainer.explain(people().astype({"years": dtype})).frame) > 5


# Functions of the user.
def test_a_function_that_writes_changes_neither_answers_nor_people():
    def writes(frame):
        holds = (frame["age"] > 0).to_numpy().copy()
        frame["salary"] = -1.0
        frame.loc[:, "age"] = 0
        return holds

    reads = lambda frame: frame["age"] > 0
    given = people()
    for make in (lambda f: c.relation("x", f), lambda f: c.frozen("years", where=f)):
        written, read = (fitted().explain(given, constraints=[make(f)]) for f in (writes, reads))

        pd.testing.assert_frame_equal(given, people())
        pd.testing.assert_frame_equal(written.frame, read.frame)


@pytest.mark.parametrize("search", ["paper", "sparse", "exact"])
def test_a_function_never_gets_a_frame_without_rows(search):
    sizes = []

    def holds(frame):
        sizes.append(len(frame))
        return frame["years"] >= 0

    fitted(search).explain(people(5), constraints=[c.relation("sizes", holds)])

    assert min(sizes) > 0


def test_a_failing_function_is_named_without_its_message():
    def fails(frame):
        raise ValueError(f"cells: {frame['home'].iloc[0]}")

    with pytest.raises(ConstraintError, match="raised a ValueError") as caught:
        fitted().explain(people(), constraints=[c.relation("x", fails)])

    assert "cells" not in str(caught.value)
    assert "cells" in str(caught.value.original)


def test_a_function_that_changes_its_answer_is_an_error():
    def moody(frame):
        return np.full(len(frame), len(frame) >= 60)

    with pytest.raises(ConstraintError, match="each time"):
        fitted().explain(applicants().head(60), constraints=[c.relation("moody", moody)])


WRONG = {
    "unknown column": (lambda: c.only_up("salry"), "Did you mean 'salary'"),
    "immutable column": (lambda: c.only_up("sex"), "immutable"),
    "no order": (lambda: c.only_up("home"), "no order"),
    "part of an order": (lambda: c.only_up("home", order=["rent"]), "leaves out"),
    "order of numbers": (lambda: c.only_up("age", order=[1, 2]), "needs no order"),
    "range of levels": (lambda: c.between("home", 1, 2), "categorical"),
    "levels of numbers": (lambda: c.levels("salary", [1]), "numeric"),
    "unknown level": (lambda: c.levels("home", ["castle"]), "castle"),
    "ends swapped": (lambda: c.between("salary", 3, 2), "Swap"),
    "text as end": (lambda: c.between("salary", "much", None), "much"),
    "boolean as end": (lambda: c.between("salary", True, None), "needs a number"),
    "no end": (lambda: c.between("salary"), "low, high or both"),
    "no amount": (lambda: c.change("salary"), "at_least, at_most or both"),
    "no percentage": (lambda: c.change("salary", at_most="ten %"), "percentage"),
    "amounts swapped": (lambda: c.change("salary", at_least=2, at_most=1), "above"),
    "no mapping": (lambda: c.transitions("home", ["rent"]), "must map"),
    "text as levels": (lambda: c.levels("home", "rent"), "must be a list"),
    "levels and direction": (
        lambda: c.discouraged("home", ["own"], direction="up"),
        "or direction",
    ),
    "no advice": (lambda: c.never_advise("home"), "or direction"),
    "no direction": (lambda: c.discouraged("age", direction="left"), "'up' or 'down'"),
    "direction of levels": (lambda: c.never_advise("home", direction="up"), "have no order"),
    "unknown advice": (lambda: c.discouraged("home", ["castle"]), "castle"),
    "numbers as levels": (lambda: c.discouraged("age", [20]), "numeric"),
    "nothing frozen": (lambda: c.frozen(), "at least one feature"),
    "short where": (lambda: c.frozen("age", where=[True]), "one True or False for each"),
    "numbers as where": (lambda: c.frozen("age", where=[1] * 20), "one True or False for each"),
    "failing where": (lambda: c.frozen("age", where=lambda rows: 1 / 0), "ZeroDivision"),
    "other labels": (
        lambda: c.frozen("age", where=pd.Series([True] * 20, index=range(900, 920))),
        "index",
    ),
    "one together": (lambda: c.together("age"), "two features"),
    "no change": (lambda: c.max_changes(0), "at least 1"),
    "half a change": (lambda: c.max_changes(1.5), "whole number"),
    "no name": (lambda: c.relation("", "age > 1"), "name must be a non-empty string"),
    "no condition": (lambda: c.relation("x", 3), "condition"),
    "failing relation": (lambda: c.relation("x", lambda frame: frame["nothing"]), "KeyError"),
    "negative weight": (lambda: c.weight("age", -1), "at least 0"),
    "infinite weight": (lambda: c.weight("age", 10**400), "a finite number"),
    "no step": (lambda: c.step("age", 0), "above 0"),
    "step of levels": (lambda: c.step("home", 1), "categorical"),
    "unknown result": (lambda: c.derived("totals", "age * 2"), "no column 'totals'"),
    "computed level": (lambda: c.derived("home", "age * 2"), "'home' is categorical"),
    "computed from itself": (lambda: c.derived("total", "total + age"), "that it computes"),
    "negative tolerance": (lambda: c.derived("total", "age", tolerance=-1), "tolerance must be"),
    "no constraint": (lambda: 3, "not a constraint"),
    "one name twice": (
        lambda: [c.relation("x", "age > 1"), c.relation("x", "age > 2")],
        "two constraints",
    ),
    "a circle": (
        lambda: [c.derived("total", "years * 2"), c.derived("years", "total / 2")],
        "computed from each other",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_an_error_that_names_what_is_wrong(name):
    make, message = WRONG[name]

    def use():
        made = make()
        fitted().explain(people(), constraints=made if isinstance(made, list) else [made])

    with pytest.raises(ConstraintError, match=message):
        use()


def test_what_is_no_list_of_rules_is_refused():
    for wrong in (3, (rule for rule in [c.frozen("age")])):
        with pytest.raises(ConstraintError, match="list of constraints"):
            MCCE(score, DESIRED, constraints=wrong).fit(applicants())


def test_amounts_of_time_are_not_numbers():
    train = pd.DataFrame({"since": pd.date_range("2024", periods=50), "x": range(50)})
    rules = [c.change("since", at_most=30), c.change("since", at_most="10 %")]
    rules += [c.step("since", 30), c.between("since", 2011)]
    for rule in rules:
        with pytest.raises(ConstraintError, match="since"):
            MCCE(lambda rows: rows["x"], (1, 2), constraints=[rule]).fit(train)


def test_no_message_lists_the_levels_of_the_training_data():
    wrong = [
        lambda: c.levels("home", ["castle"]),
        lambda: c.transitions("home", {"castle": ["tent"]}),
        lambda: c.only_up("home", order=["castle"]),
        lambda: c.relation("x", "home > 3"),
    ]
    for make in wrong:
        with pytest.raises(ConstraintError) as caught:
            fitted().explain(people(), constraints=[make()])

        assert not any(level in str(caught.value) for level in HOMES)


def test_weights_need_the_gower_distance():
    class Far:
        name = "far"

        def fit(self, schema, rows, is_desired):
            return self

        def __call__(self, candidates):
            return np.zeros(candidates.shape)

    explainer = MCCE(score, DESIRED, distance=Far(), constraints=[c.weight("age", 2)])
    with pytest.raises(ConstraintError, match="Gower"):
        explainer.fit(applicants()).explain(people())


def test_rules_that_say_the_same_are_equal_and_show_what_made_them():
    rule = c.derived("total", "months * price", tolerance=1)

    assert rule == c.derived("total", "months * price", tolerance=np.float32(1))
    assert rule != c.derived("total", "months + price", tolerance=1)
    assert repr(rule) == "derived('total', formula='months * price', tolerance=1.0)"
    assert rule.name == "derived total"
    assert "x" in repr(c.frozen("x", where=np.array([True])))


NOT_ADVISABLE = [
    [c.discouraged("home", ["own"])],
    [c.discouraged("salary", direction="up"), c.discouraged("education", direction="up")],
]


def discouraged_changes(result, rules):
    """Which answers make a change that a rule discourages, by hand."""
    before, after, moved = before_and_after(result)
    rank = {"education": ranked(SCHOOLS)}
    rose = lambda name: (
        rank.get(name, lambda x: x)(after[name]) > rank.get(name, lambda x: x)(before[name])
    )
    made = [
        moved[rule.features[0]]
        & (rose(rule.features[0]) if rule.direction else after[rule.features[0]].isin(rule.levels))
        for rule in rules
    ]
    return np.any(made, axis=0)


@pytest.mark.parametrize("rules", NOT_ADVISABLE, ids=["levels", "directions"])
@pytest.mark.parametrize("search", ["sparse", "balanced", "nearest", "exact"])
def test_discouraged_changes_are_answers_only_where_there_is_no_other(search, rules):
    explainer = fitted(search, n_counterfactuals=3)
    never = [c.never_advise(r.features[0], r.levels, direction=r.direction) for r in rules]
    with_rule = explainer.explain(people(), constraints=rules)
    without = explainer.explain(people(), constraints=never)

    last = discouraged_changes(with_rule, rules)

    answered = np.isin(with_rule.owner, without.owner)
    assert not last[answered].any()
    if search != "exact":
        # Just those that they would have if such changes were ruled out.
        pd.testing.assert_frame_equal(with_rule.frame[answered], without.frame)
    free = explainer.explain(people())
    assert discouraged_changes(free, rules).any()
    assert set(with_rule.owner) == set(free.owner)
    alone = explainer.explain(people().tail(3), constraints=rules).frame
    pd.testing.assert_frame_equal(alone, with_rule.frame.loc[alone.index])


def test_whoever_has_no_other_answer_gets_a_discouraged_one():
    explainer, rules = fitted("balanced"), [c.discouraged("home", ["own"])]
    only_home = [*rules, c.frozen("salary", "years", "age", "education", "total")]

    result = explainer.explain(people(), constraints=only_home)

    assert len(result.frame) > 3
    assert discouraged_changes(result, rules).all()
    explainer = fitted("exact")
    proven = explainer.explain(people(), constraints=only_home)
    assert (proven.frame["home"] == "own").all()
    assert proven.measures["proven"].all()


def test_the_papers_search_only_ranks_discouraged_answers_last():
    explainer, rules = fitted("paper", n_counterfactuals=4), NOT_ADVISABLE[0]
    free = explainer.explain(people())

    result = explainer.explain(people(), constraints=rules)

    last = discouraged_changes(free, rules)
    order = np.lexsort((np.arange(last.size), last, free.owner))
    assert (order != np.arange(last.size)).any()
    expected = free.frame.iloc[order].reset_index(drop=True)
    pd.testing.assert_frame_equal(result.frame.reset_index(drop=True), expected)


def test_ranges_leave_out_discouraged_changes():
    train = pd.DataFrame({"home": HOMES * 40, "age": [20, 30, 40, 50] * 30})
    explainer = MCCE(lambda rows: rows["home"] != "rent", (1, 1), random_state=0).fit(train)
    rule = c.discouraged("home", ["own"])

    result = explainer.explain(train.head(1), constraints=[rule])
    others = [explainer.ranges(result, constraints=rules)["others"][0] for rules in ([], [rule])]

    assert result.frame["home"].tolist() == ["free"]
    assert others == [["own"], []]


def test_what_is_discouraged_is_in_nobodys_way():
    explainer = fitted("sparse")
    hopeless = people().assign(salary=10.0, years=0, age=20)
    rules = [c.discouraged("home", ["own"]), c.never_advise("education", direction="up")]
    rules += [c.frozen("salary", "years", "age", "total", "home")]

    table = explainer.relax(hopeless, constraints=rules)

    lifted = set(table["lifted"])
    assert "never_advise education" in lifted
    assert "discouraged home" not in lifted


@pytest.mark.parametrize("search", ["paper", "sparse"])
def test_constraints_of_equal_names_all_hold(search):
    names = ["a", "b", "a, b", "c"]
    chance = np.random.default_rng(0)
    train = pd.DataFrame(chance.integers(0, 5, (300, 4)), columns=names)
    rules = [c.together("a", "b", "c"), c.together("a, b", "c")]
    explainer = MCCE(lambda frame: frame["c"], (3, 9), search=search, random_state=0).fit(train)

    result = explainer.explain(train[train["c"] == 0].head(3), constraints=rules)

    assert result.changes().groupby("factual")["feature"].nunique().tolist() == [4, 4, 4]


def test_a_level_that_was_nearly_spelled_out_is_suggested():
    table = pd.DataFrame({"job": ["skilled", "unskilled"] * 20, "y": [0, 1] * 20})
    rules = [c.levels("job", ["skiled"]), c.transitions("job", {"skilled": ["unskiled"]})]

    for rule, meant in zip(rules, ["skilled", "unskilled"], strict=True):
        with pytest.raises(ConstraintError, match=f"Did you mean '{meant}'"):
            MCCE(lambda f: f["y"], (1, 1), constraints=[rule]).fit(table)
