"""Constraints: what each means, that none is ever broken or costs an answer needlessly."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bank import HOUSING, bank, score
from mcce import MCCE, ConstraintError, McceWarning, Schema
from mcce import constraints as c
from mcce.constraints.collection import Constraints
from mcce.constraints.expressions import Expression
from mcce.constraints.limits import FactualLimits
from mcce.generate import blocks, generate
from mcce.protocols import Capabilities

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

TRAIN = bank(400)
PEOPLE = bank(60, seed=1)


def explain(constraints, people=PEOPLE, **settings):
    explainer = MCCE(
        score, (0.8, 10), immutable=["sex"], constraints=constraints, n_samples=60, random_state=3
    )
    return explainer.set_params(**settings).fit(TRAIN).explain(people)


def before_and_after(result):
    before = result.factuals.iloc[result.owner].reset_index(drop=True)
    return before, result.frame.reset_index(drop=True)


def changed(before, after):
    """Features of answers that are not the person's own, cell by cell."""
    same = {
        name: (before[name] == after[name]).fillna(False).to_numpy(dtype=bool)
        | (before[name].isna() & after[name].isna()).to_numpy()
        for name in before
    }
    return ~pd.DataFrame(same)


# ---------------------------------------------------------------------------------------------
# What each means, in words of its own.

RULES = {
    "only_up salary": (
        lambda: c.only_up("salary"),
        lambda b, a: a["salary"] >= b["salary"],
    ),
    "only_down years": (lambda: c.only_down("years"), lambda b, a: a["years"] <= b["years"]),
    "not_down salary": (
        lambda: c.not_down("salary"),
        lambda b, a: ~(a["salary"] < b["salary"]),
    ),
    "not_up years": (lambda: c.not_up("years"), lambda b, a: ~(a["years"] > b["years"])),
    "only_up education": (
        lambda: c.only_up("education"),
        lambda b, a: a["education"].cat.codes >= b["education"].cat.codes,
    ),
    "only_up housing": (
        lambda: c.only_up("housing", order=["boat", "rent", "free", "own"]),
        lambda b, a: (
            a["housing"].map(["boat", "rent", "free", "own"].index, na_action="ignore")
            >= b["housing"].map(["boat", "rent", "free", "own"].index, na_action="ignore")
        ),
    ),
    "between salary": (
        lambda: c.between("salary", 20, 60),
        lambda b, a: a["salary"].between(20, 60),
    ),
    "change salary": (
        lambda: c.change("salary", at_least=-3, at_most=12),
        lambda b, a: (a["salary"] - b["salary"]).between(-3, 12),
    ),
    "change years": (
        lambda: c.change("years", at_most="20 %"),
        lambda b, a: a["years"] <= b["years"] + 0.2 * b["years"],
    ),
    "levels housing": (
        lambda: c.levels("housing", ["rent", "own"]),
        lambda b, a: a["housing"].isin(["rent", "own"]),
    ),
    "transitions housing": (
        lambda: c.transitions("housing", {"rent": ["own", None], None: ["rent"]}),
        lambda b, a: (
            ((b["housing"] == "rent") & (a["housing"].isin(["own"]) | a["housing"].isna()))
            | (b["housing"].isna() & (a["housing"] == "rent"))
        ),
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_a_feature_changes_only_as_its_constraint_says(name):
    write, holds = RULES[name]
    feature = name.split()[1]

    before, after = before_and_after(explain([write()], n_samples=300, n_counterfactuals=9))

    moved = changed(before, after)[feature].to_numpy()
    assert moved.any()
    assert holds(before, after).to_numpy(dtype=bool)[moved].all()


def test_a_frozen_feature_stays_for_these_people_only():
    old = PEOPLE["age"] > 50
    listed = [
        c.frozen("salary", "education", where="age > 50"),
        c.frozen("salary", "education", where=lambda people: people["age"] > 50),
        c.frozen("salary", "education", where=old),
        c.frozen("salary", "education", where=old.to_numpy()),
    ]

    results = [explain([constraint]) for constraint in listed]

    for result in results:
        moved = changed(*before_and_after(result))[["salary", "education"]]
        is_old = old.to_numpy()[result.owner]
        assert not moved[is_old].to_numpy().any()
        assert moved[~is_old].to_numpy().any()
        pd.testing.assert_frame_equal(result.frame, results[0].frame)


def test_rows_obey_the_number_of_changes_what_goes_together_and_relations():
    result = explain(
        [
            c.max_changes(4),
            c.max_changes(1, ["salary", "years"]),
            c.together("education", "age"),
            c.relation("works from 16 on", "years <= age - 16"),
        ],
        n_samples=1000,
    )

    before, after = before_and_after(result)
    moved = changed(before, after)

    assert len(after) > 10
    assert (moved.sum(axis=1) <= 4).all()
    assert (moved[["salary", "years"]].sum(axis=1) <= 1).all()
    assert (moved["education"] == moved["age"]).all()
    assert (after["years"] <= after["age"] - 16).all()


def test_differences_below_a_step_are_no_change():
    result = explain([c.step("salary", 10), c.step("years", 4)])

    before, after = before_and_after(result)
    gaps = (after[["salary", "years"]] - before[["salary", "years"]]).abs()

    assert (gaps["salary"].fillna(0).isin([0]) | (gaps["salary"].fillna(99) >= 10)).all()
    assert (gaps["years"].isin([0]) | (gaps["years"] >= 4)).all()


def test_a_weight_makes_a_feature_dearer_but_leaves_gower_as_it_is_defined():
    plain = explain([], rank_by=["distance"])
    dear = explain([c.weight("salary", 1000.0)], rank_by=["distance"])

    moved = [changed(*before_and_after(result))["salary"].sum() for result in (plain, dear)]

    assert moved[1] < moved[0]
    assert dear.measures["gower"].max() <= 1
    assert dear.measures["gower"].mean() >= plain.measures["gower"].mean()


# ---------------------------------------------------------------------------------------------
# All kinds together: never broken, and nothing admissible is overlooked.


@st.composite
def listed(draw):
    kinds = [
        st.sampled_from(["only_up", "only_down", "not_up", "not_down"]).flatmap(
            lambda way: st.sampled_from(["salary", "years", "age"]).map(getattr(c, way))
        ),
        st.tuples(st.integers(10, 50), st.integers(0, 40)).map(
            lambda ends: c.between("salary", ends[0], ends[0] + ends[1])
        ),
        st.tuples(st.integers(0, 30), st.integers(0, 30)).map(
            lambda ends: c.change("years", at_least=-ends[0], at_most=ends[1])
        ),
        st.integers(0, 80).map(lambda share: c.change("salary", at_most=f"{share} %")),
        st.lists(st.sampled_from([*HOUSING, None]), max_size=3).map(
            lambda levels: c.levels("housing", levels)
        ),
        st.dictionaries(
            st.sampled_from([*HOUSING, None]), st.lists(st.sampled_from([*HOUSING, None]))
        ).map(lambda allowed: c.transitions("housing", allowed)),
        st.sampled_from(["only_up", "not_up"]).map(lambda way: getattr(c, way)("education")),
        st.sampled_from(["salary", "age", "housing"]).map(
            lambda name: c.frozen(name, where="years > 15")
        ),
        st.integers(1, 3).map(c.max_changes),
        st.just(c.together("salary", "years")),
        st.just(c.relation("works from 16 on", "years <= age - 16")),
        st.just(c.step("salary", 7)),
    ]
    chosen = draw(st.lists(st.sampled_from(range(len(kinds))), unique=True, max_size=5))
    return [draw(kinds[kind]) for kind in chosen]


@settings(deadline=None)
@given(listed(), st.integers(1, 3))
def test_no_answer_breaks_a_constraint_whatever_their_combination(constraints, n_counterfactuals):
    explainer = MCCE(
        score,
        (0.8, 10),
        immutable=["sex"],
        constraints=constraints,
        n_samples=40,
        n_counterfactuals=n_counterfactuals,
        random_state=1,
    ).fit(TRAIN)
    people = PEOPLE.iloc[:25]

    result = explainer.explain(people)

    rows = explainer.schema_.encode(people)
    bound = Constraints.bind(constraints, explainer.schema_)
    fresh = result.frame.reset_index(drop=True)
    assert not any(broken.any() for broken in bound.broken(rows, result.owner, fresh).values())
    assert (score(result.frame) >= 0.8).all()
    assert (result.frame["sex"].to_numpy() == people["sex"].to_numpy()[result.owner]).all()


@settings(deadline=None)
@given(listed())
def test_whoever_has_an_admissible_candidate_has_an_answer(constraints):
    explainer = MCCE(
        score, (0.8, 10), immutable=["sex"], constraints=constraints, n_samples=30, random_state=2
    ).fit(TRAIN)
    people = PEOPLE.iloc[:15]
    result = explainer.explain(people)

    bound = Constraints.bind(constraints, explainer.schema_)
    rows = explainer.schema_.encode(people)
    personal = FactualLimits(bound, rows)
    declined = np.flatnonzero(score(people) < 0.8)
    admissible = set()
    for block in blocks(personal, declined, 30, 1.0):
        candidates = generate(explainer.generator_, personal, block, np.arange(30), explainer.seed_)
        person, draw = np.nonzero(np.ones(candidates.shape))
        chosen = candidates.select(person, draw)
        broken = bound.broken(rows, chosen.owner, chosen.frame)
        good = score(chosen.frame) >= 0.8
        for rows_broken in broken.values():
            good &= ~rows_broken
        admissible |= set(chosen.owner[good].tolist())

    assert set(result.owner.tolist()) == admissible


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=30)
def test_an_answer_under_constraints_does_not_depend_on_the_batch(seed):
    constraints = [c.only_up("salary"), c.frozen("age", where="years > 15"), c.step("years", 3)]
    explainer = MCCE(score, (0.8, 10), constraints=constraints, n_samples=40, random_state=1)
    explainer.fit(TRAIN)
    together = explainer.explain(PEOPLE)
    chosen = np.random.default_rng(seed).permutation(len(PEOPLE))[:7]

    alone = explainer.set_params(memory=1e-3, n_jobs=2).explain(PEOPLE.iloc[chosen])

    pd.testing.assert_frame_equal(
        alone.frame.sort_index(),
        together.frame.loc[
            np.sort(chosen)[np.isin(np.sort(chosen), together.frame.index.get_level_values(0))]
        ].sort_index(),
    )


# ---------------------------------------------------------------------------------------------
# What is left alone.


def test_a_value_that_training_never_held_is_kept_where_it_may_not_change():
    people = PEOPLE.head(8).assign(age=200, salary=[5.5] * 8, housing="tent")

    result = explain(
        [c.frozen("age"), c.only_down("salary"), c.levels("housing", ["boat"])],
        people,
        desired=(0.5, 10),
    )

    _, after = before_and_after(result)
    assert len(after)
    assert (after["age"] == 200).all()
    assert (after["salary"] == 5.5).all()
    assert after["housing"].isin(["tent", "boat"]).all()


def test_no_constraints_change_nothing():
    plain = explain(None)

    for nothing in ([], [c.not_up("age"), c.weight("age", 1.0)][1:]):
        pd.testing.assert_frame_equal(explain(nothing).frame, plain.frame)


def test_constraints_of_one_call_come_on_top():
    explainer = MCCE(
        score, (0.8, 10), constraints=[c.only_up("years")], n_samples=60, random_state=3
    )
    explainer.fit(TRAIN)

    usual = explainer.explain(PEOPLE)
    once = explainer.explain(PEOPLE, constraints=[c.frozen("salary")])

    assert changed(*before_and_after(usual))["salary"].any()
    assert not changed(*before_and_after(once))["salary"].any()
    assert not (once.frame["years"].to_numpy() < PEOPLE["years"].to_numpy()[once.owner]).any()


def test_a_reason_names_the_constraint_that_excluded_what_was_valid():
    with pytest.warns(McceWarning, match="no counterfactual"):
        result = explain([c.relation("nobody is so young", "age > 1000")])

    reasons = result.missing["reason"]
    assert len(reasons)
    assert reasons.str.contains("nobody is so young").any()


def test_further_draws_find_more_and_change_no_answer():
    few = explain([c.max_changes(1)], n_samples=5)
    more = explain([c.max_changes(1)], n_samples=5, max_samples=320)

    answered = np.unique(few.owner)
    assert set(answered) < set(more.owner.tolist())
    pd.testing.assert_frame_equal(more.frame[np.isin(more.owner, answered)], few.frame)
    assert more.missing["reason"].str.contains("320|excluded").all()


def test_a_call_ends_when_its_time_is_up_and_says_so():
    result = explain([], max_seconds=1e-9)

    assert result.stopped
    assert result.missing["reason"].str.contains("stopped").all()
    assert not explain([]).stopped


# ---------------------------------------------------------------------------------------------
# Careless users.

WRONG = {
    "names a column": (lambda: [c.only_up("salry")], "Did you mean 'salary'"),
    "names an immutable column": (lambda: [c.only_up("sex")], "immutable"),
    "has no order": (lambda: [c.only_up("housing")], "no order"),
    "leaves out levels": (lambda: [c.only_up("housing", order=["rent"])], "leaves out"),
    "orders numbers": (lambda: [c.only_up("age", order=[1, 2])], "needs no order"),
    "is about numbers": (lambda: [c.between("housing", 1, 2)], "categorical"),
    "is about levels": (lambda: [c.levels("salary", [1])], "numeric"),
    "names a level": (lambda: [c.levels("housing", ["castle"])], "castle"),
    "has its ends the wrong way round": (lambda: [c.between("salary", 3, 2)], "no value lies"),
    "ends in a text": (lambda: [c.between("salary", "much", None)], "much"),
    "ends in a yes": (lambda: [c.between("salary", True, None)], "no value"),
    "has no end": (lambda: [c.between("salary")], "low or high"),
    "changes by nothing": (lambda: [c.change("salary")], "at_least or at_most"),
    "is no percentage": (lambda: [c.change("salary", at_most="ten %")], "percentage"),
    "is the wrong way round": (lambda: [c.change("salary", at_least=2, at_most=1)], "above"),
    "maps nothing": (lambda: [c.transitions("housing", ["rent"])], "must map"),
    "lists a text": (lambda: [c.levels("housing", "rent")], "must be a list"),
    "freezes nothing": (lambda: [c.frozen()], "at least one feature"),
    "freezes whom": (lambda: [c.frozen("age", where=[True])], "one yes or no for each"),
    "freezes by numbers": (lambda: [c.frozen("age", where=[1] * 60)], "one yes or no for each"),
    "freezes by failing": (lambda: [c.frozen("age", where=lambda people: 1 / 0)], "ZeroDivision"),
    "has other labels": (
        lambda: [c.frozen("age", where=pd.Series([True] * 60, index=range(100, 160)))],
        "index",
    ),
    "is alone": (lambda: [c.together("age")], "two features"),
    "lets nothing change": (lambda: [c.max_changes(0)], "from 1 on"),
    "counts in halves": (lambda: [c.max_changes(1.5)], "whole number"),
    "has no name": (lambda: [c.relation("", "age > 1")], "name must be a text"),
    "asks nothing": (lambda: [c.relation("x", 3)], "condition"),
    "is no condition": (lambda: [c.relation("x", "age >")], "not a condition"),
    "runs code": (lambda: [c.relation("x", "__import__('os')")], "calls"),
    "reaches inside": (lambda: [c.relation("x", "age.__class__ > 1")], "not understood"),
    "names no column": (lambda: [c.relation("x", "1 < 2")], "names no column"),
    "names one that is not there": (lambda: [c.relation("x", "agee > 1")], "'agee'"),
    "gives a number": (lambda: [c.relation("x", "age + 1")], "yes or no"),
    "compares texts with numbers": (lambda: [c.relation("x", "housing > 3")], "computed"),
    "fails": (lambda: [c.relation("x", lambda frame: frame["nothing"])], "KeyError"),
    "is twice there": (lambda: [c.relation("x", "age > 1"), c.relation("x", "age > 2")], "two"),
    "weighs less than nothing": (lambda: [c.weight("age", -1)], "from 0 on"),
    "steps on the spot": (lambda: [c.step("age", 0)], "above 0"),
    "steps over levels": (lambda: [c.step("housing", 1)], "categorical"),
    "is no constraint": (lambda: ["only_up"][0:1] and [3], "no constraint"),
    "is no list": (lambda: 3, "list of constraints"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_constraint_is_an_error_that_names_what_is_wrong(name):
    write, told = WRONG[name]

    with pytest.raises(ConstraintError, match=told):
        explain(write())


def test_weights_need_the_gower_distance():
    class Far:
        name = "far"

        def fit(self, schema, rows, decision):
            return self

        def __call__(self, candidates):
            return np.zeros(candidates.shape)

    with pytest.raises(ConstraintError, match="Gower"):
        explain([c.weight("age", 2)], distance=Far())


def test_a_relation_that_changes_its_mind_is_an_error():
    told = iter([True] * 1000)

    def moody(frame):
        return np.full(len(frame), next(told, False) and len(frame) > 40)

    with pytest.raises(ConstraintError, match="each time"):
        explain([c.relation("moody", moody)])


def test_dates_are_limited_in_their_own_unit():
    chance = np.random.default_rng(0)
    day = pd.Timestamp("2024-01-01", tz="UTC")
    dates = day + pd.to_timedelta(chance.integers(0, 400, 200), unit="D")
    train = pd.DataFrame({"since": dates, "salary": chance.integers(0, 100, 200)})
    late = lambda frame: ((frame["since"] - day).dt.days / 400 + frame["salary"] / 100).to_numpy()
    constraints = [
        c.change("since", at_least="-30 days", at_most="60 days"),
        c.between("since", "2024-02-01", None),
        c.step("since", "5 days"),
    ]
    explainer = MCCE(late, (1.3, 9), constraints=constraints, n_samples=200, random_state=0)

    result = explainer.fit(train).explain(train.head(30))

    before, after = before_and_after(result)
    gap = (after["since"] - before["since"]).dt.days
    moved = (gap != 0).to_numpy()
    assert moved.any()
    assert gap[moved].between(-30, 60).all()
    assert (gap[moved].abs() >= 5).all()
    assert (after["since"][moved] >= pd.Timestamp("2024-02-01", tz="UTC")).all()


def test_a_generator_that_knows_no_limits_is_held_to_them():
    class Anything:
        capabilities = Capabilities()

        def fit(self, rows, decision, *, seed, n_jobs, verbose):
            self.rows = rows
            return self

        def sample(self, given, keys, draws):
            from mcce.candidates import Draws

            sizes = [self.rows.schema.features[at].n_codes for at in self.rows.schema.mutable]
            codes = [
                (keys[:, None] % np.uint64(97) + draws[None, :] * 31 + i).astype(np.int64) % size
                for i, size in enumerate(sizes)
            ]
            return Draws(np.array(codes, dtype=np.int32))

    result = explain(
        [c.only_up("salary"), c.frozen("age"), c.step("years", 4)], generator=Anything()
    )

    before, after = before_and_after(result)
    moved = changed(before, after)
    assert len(after)
    assert not moved["age"].any()
    assert (after["salary"] >= before["salary"])[moved["salary"]].all()
    assert ((after["years"] - before["years"]).abs()[moved["years"]] >= 4).all()


def test_schema_of_a_bound_set_is_the_one_it_was_bound_to():
    schema = Schema.learn(TRAIN)

    bound = Constraints.bind([c.only_up("age"), c.max_changes(2)], schema)

    assert [constraint.name for constraint in bound.listed] == ["only_up age", "max_changes 2"]
    assert bound.without(bound.listed[0]).listed == bound.listed[1:]


def test_an_interrupted_call_leaves_an_explainer_that_explains_as_before():
    explainer = MCCE(score, (0.8, 10), n_samples=60, n_jobs=2, random_state=3).fit(TRAIN)
    before = explainer.explain(PEOPLE).frame

    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explainer.explain(PEOPLE, callback=interrupt)

    pd.testing.assert_frame_equal(explainer.explain(PEOPLE).frame, before)


def test_an_interrupted_fit_leaves_what_was_fitted_before():
    calls = iter([False] * 2 + [True])

    def moody(frame):
        if next(calls, False):
            raise KeyboardInterrupt
        return score(frame)

    explainer = MCCE(moody, (0.8, 10), n_samples=60, random_state=3).fit(TRAIN)
    next(calls)

    with pytest.raises(KeyboardInterrupt):
        explainer.fit(TRAIN.head(50))

    assert len(explainer.explain(PEOPLE).people) == len(PEOPLE)
    assert explainer.schema_.features[0].n_codes == TRAIN["age"].nunique()


def test_a_value_that_a_rule_leaves_out_may_stay_as_it_is():
    chance = np.random.default_rng(0)
    train = pd.DataFrame({"loans": chance.integers(0, 4, 400), "paid": chance.integers(0, 2, 400)})
    levels = train.assign(loans=train["loans"].astype(str))
    for frame, rule in (
        (train, c.between("loans", 0, 2)),
        (train, c.change("loans", at_most=-1)),
        (levels, c.levels("loans", ["0", "1"])),
        (levels, c.transitions("loans", {"3": ["0"]})),
    ):
        explainer = MCCE(lambda rows: rows["paid"], (0.5, 1), random_state=0).fit(frame)
        person = frame[(frame["loans"].astype(int) == 3) & (frame["paid"] == 0)].head(1)

        result = explainer.explain(person, constraints=[rule])

        assert result.measures["sparsity"].tolist() == [1]


def test_constraints_must_be_there_to_be_read_again():
    with pytest.raises(ConstraintError, match="list of constraints"):
        explain(rule for rule in [c.frozen("age")])


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("x != 1", [True, False, False]),
        ("x == 1", [False, True, False]),
        ("x not in [1]", [True, False, False]),
        ("x > 0 and x < 2", [False, True, False]),
        ("missing(x) or x > 1", [True, False, True]),
        ("not missing(x)", [True, True, False]),
        ("0 < x < 2", [False, True, False]),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "Int64", "object", "double[pyarrow]"])
def test_a_comparison_with_a_missing_value_is_not_true_in_any_dtype(text, holds, dtype):
    frame = pd.DataFrame({"x": pd.Series([2, 1, None], dtype=dtype)})

    assert Expression(text)(frame).tolist() == holds


@pytest.mark.parametrize(
    "text", ["age > 20 and years", "age and years > 1", "not age", "age > 1 or 3"]
)
def test_what_is_not_yes_or_no_cannot_be_joined(text):
    with pytest.raises(ConstraintError, match="not yes or no"):
        explain([c.frozen("salary", where=text)])


@pytest.mark.parametrize(
    ("where", "told"), [("agee > 60", "Did you mean 'age'"), ("age >", "not a condition")]
)
def test_a_wrong_condition_is_told_when_it_is_declared(where, told):
    with pytest.raises(ConstraintError, match=told):
        MCCE(score, (0.8, 10), constraints=[c.frozen("salary", where=where)]).fit(TRAIN)


@pytest.mark.parametrize(
    "rule",
    [
        lambda: c.change("since", at_most=30),
        lambda: c.change("since", at_most="10 %"),
        lambda: c.step("since", 30),
        lambda: c.between("since", 2011),
    ],
)
def test_numbers_say_nothing_of_dates(rule):
    train = pd.DataFrame({"since": pd.date_range("2024", periods=50), "x": range(50)})

    with pytest.raises(ConstraintError, match="since"):
        MCCE(lambda rows: rows["x"], (1, 2), constraints=[rule()]).fit(train)


@pytest.mark.parametrize("dtype", ["uint8", "UInt8", "Int64", "int16[pyarrow]"])
def test_ends_need_not_fit_the_dtype_of_the_column(dtype):
    people = TRAIN.astype({"years": dtype})
    rules = [c.change("years", at_least=-5.5), c.between("years", -1, 1000.5), c.step("years", 1.5)]

    result = MCCE(score, (0.8, 10), constraints=rules, n_samples=40, random_state=0).fit(people)

    assert len(result.explain(people.head(30)).people) == 30
