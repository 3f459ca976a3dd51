"""Columns that another one determines follow it by the table of training values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcce import MCCE, Schema, Search, load
from mcce import constraints as c
from mcce.candidates import Draws
from mcce.constraints.collection import Constraints
from mcce.protocols import Capabilities
from mcce.relations import Dependency
from mcce.search.consequences import Consequences, plan_targets
from mcce.search.values import GrowingTables
from mcce.tables.schema import OWN
from searches import assert_same, bounded

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

NAMES = {"S1": "small", "S2": "small", "M1": "middle", "M2": "middle", "L1": "large", "L2": "large"}
SIZES = {"small": 0.0, "middle": 1.0, "large": 2.0, "huge": 3.0}
SEARCHES = ["sparse", "balanced", "near", "plausible", "fast", "exact"]


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


TRAIN, PEOPLE = plans(500), plans(30, seed=1)


def fit(search="sparse", train=TRAIN, score=points, low=2.0, **more):
    more = {"immutable": ["age"], "random_state": 0} | more
    return MCCE(score, (low, 100.0), search=search, **more).fit(train)


def own_rows(result):
    return result.factuals.iloc[result.owner].reset_index(drop=True)


def moved(result, name):
    return (result.frame[name].to_numpy() != own_rows(result)[name].to_numpy()).astype(bool)


@pytest.mark.parametrize("search", SEARCHES)
def test_a_level_follows_the_column_that_determines_it(search):
    explainer = fit(search)

    result = explainer.explain(PEOPLE)

    kinds = result.changes().groupby("feature")["kind"].unique()
    assert explainer.relations_["relation"].tolist() == ["code determines name"]
    assert len(result.frame) > 15
    assert (result.frame["name"] == result.frame["code"].map(NAMES)).all()
    assert kinds["name"].tolist() == ["consequence"]
    assert kinds["code"].tolist() == ["action"]
    followed = moved(result, "name")
    assert followed.any()
    assert (moved(result, "code") | ~followed).all()
    measures = result.measures
    assert (measures["sparsity"] - measures["n_actions"] == followed).all()


COLUMNS = {
    "level": ["x", "x", "y", "z"],
    "category": pd.Categorical(["x", "x", "y", "z"], categories=["z", "y", "x", "w"]),
    "missing level": ["x", None, "y", None],
    "bool": [True, True, False, True],
    "nullable bool": pd.array([True, None, False, True], dtype="boolean"),
    "integer": [7, 7, -1, 3],
    "number": [0.5, 0.5, np.nan, 1.25],
    "large integer": [2**60, 2**60, 1, 2],
}


def follow(train, people, changes, rules=()):
    """The rows of people with one column changed to a training value and what follows from it."""
    schema = Schema.learn(train)
    rows = schema.encode(people)
    constraints = Constraints.bind(list(rules), schema)
    tables = GrowingTables(rows, rows.tables)
    targets = plan_targets(constraints, [dependency(train, "a", "b")])
    codes = np.full((train.shape[1], len(people)), OWN, dtype=np.int32)
    exact = schema.encode(people.assign(a=changes)).exact[0]
    codes[0] = np.where(exact == rows.exact[0], OWN, exact)
    whole = Consequences(targets, rows, constraints).complete(tables, np.arange(len(rows)), codes)
    return rows.compose(np.arange(len(rows)), whole, tables.tables)


def dependency(train, left, right):
    def plain(cells):
        known = [None if pd.isna(cell) else cell for cell in cells.astype(object)]
        return [float(v) if type(v) in (int, float) else v for v in known]

    pairs = dict(zip(plain(train[left]), plain(train[right]), strict=True))
    return Dependency(left, right, tuple(pairs.items()))


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("left", [["p", "q", "r", "s"], [1, 2, 3, 4], [0.5, 1.5, np.nan, 2.5]])
def test_columns_of_every_kind_follow(kind, left):
    train = pd.DataFrame({"a": left, "b": COLUMNS[kind], "c": [1.0, 2.0, 3.0, 4.0]})

    for shift in (1, 2, 3):
        new = train["a"].take((np.arange(4) + shift) % 4).reset_index(drop=True)
        rows = follow(train, train, new)
        expected = train["b"].take((np.arange(4) + shift) % 4).reset_index(drop=True)
        pd.testing.assert_series_equal(rows["b"], expected)
        pd.testing.assert_frame_equal(rows[["a", "c"]], train[["a", "c"]].assign(a=new))


SMALL = pd.DataFrame({"a": list("pqrs"), "b": list("xxyz")})


def test_a_row_that_breaks_the_dependency_is_mended_only_by_an_action():
    people = pd.DataFrame({"a": ["p", "p", "p", "new"], "b": ["z", "z", "never seen", "z"]})

    rows = follow(SMALL, people, ["p", "q", "r", "q"])

    assert rows["b"].tolist() == ["z", "x", "y", "x"]


def test_an_answer_keeps_a_broken_row_or_follows_the_table():
    people = PEOPLE.assign(name="huge").assign(usage=0)
    explainer = fit(score=lambda frame: 3 - points(frame))

    result = explainer.explain(people)

    assert len(result.frame)
    listed = result.frame["name"] == result.frame["code"].map(NAMES)
    np.testing.assert_array_equal(listed, moved(result, "code"))
    np.testing.assert_array_equal(moved(result, "name"), moved(result, "code"))


def test_the_exact_search_changes_no_such_column_by_itself():
    people = PEOPLE.assign(code="unknown", name="small", usage=25)

    result = fit("exact").explain(people)

    assert len(result.frame)
    assert (moved(result, "code") | ~moved(result, "name")).all()
    assert (result.measures["n_actions"] > 0).all()


def test_a_frozen_or_limited_column_keeps_its_value():
    people = SMALL.iloc[[0, 0, 2]].reset_index(drop=True)
    limited = [c.levels("b", ["x", "y"])]

    held = follow(SMALL, people, ["r", "s", "s"], [c.frozen("b", where="a == 'p'")])
    limited = follow(SMALL, people, ["r", "s", "s"], limited)

    assert held["b"].tolist() == ["x", "x", "z"]
    assert limited["b"].tolist() == ["y", "x", "y"]


@pytest.mark.parametrize("search", ["sparse", "fast"])
@pytest.mark.parametrize("how", ["immutable", "frozen", "limited"])
def test_no_answer_takes_an_action_whose_consequence_is_not_allowed(how, search):
    rules = {"frozen": [c.frozen("name")], "limited": [c.levels("name", ["small", "middle"])]}
    fixed = ["age", "name"] if how == "immutable" else ["age"]
    explainer = fit(search, low=1.5, immutable=fixed, constraints=rules.get(how, []))

    result = explainer.explain(PEOPLE)

    assert len(result.frame)
    assert (result.frame["name"] == result.frame["code"].map(NAMES)).all()
    reached = set(result.frame.loc[moved(result, "name"), "name"])
    assert reached == ({"middle"} if how == "limited" else set())


def test_of_two_columns_that_determine_each_other_the_later_one_follows():
    train = TRAIN.assign(short=TRAIN["name"].str[0]).drop(columns="age")
    explainer = fit(train=train, immutable=[])
    names = [found.relation.name for found in explainer.fitted_.relations]

    changes = explainer.explain(train.head(20)).changes()

    assert {"name determines short", "short determines name"} <= set(names)
    kinds = changes.groupby("feature")["kind"].unique()
    assert kinds["short"].tolist() == kinds["name"].tolist() == ["consequence"]


def test_chains_follow_in_order():
    schema = Schema.learn(pd.DataFrame({"z": list("mnmn"), "b": list("xxyz"), "a": list("pqrs")}))
    frame = pd.DataFrame({"z": list("mmnn"), "b": list("xxyz"), "a": list("pqrs")})
    links = [dependency(frame, "b", "z"), dependency(frame, "a", "b"), dependency(frame, "z", "a")]

    targets = plan_targets(Constraints.bind(None, schema), links)

    assert [target.feature.name for target in targets] == ["a", "b"]
    assert [target.rule.determinant for target in targets] == ["z", "a"]


def test_a_column_that_is_computed_follows_no_table():
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "b": [2, 4, 6, 8], "k": list("pqrs")})
    constraints = Constraints.bind([c.derived("b", "2 * a")], Schema.learn(frame))

    targets = plan_targets(constraints, [dependency(frame, "k", "b"), dependency(frame, "b", "a")])

    assert [type(target.rule).__name__ for target in targets] == ["Derived"]


def test_integers_that_floats_cannot_tell_apart_do_not_follow():
    frame = pd.DataFrame({"a": list("pqrs"), "b": [2**60, 2**60 + 1, 1, 2]})

    targets = plan_targets(
        Constraints.bind(None, Schema.learn(frame)), [dependency(frame, "a", "b")]
    )

    assert not targets


def test_a_dependency_that_some_rows_break_moves_nothing():
    train = TRAIN.copy()
    train.loc[train.index[:3], "name"] = "huge"
    explainer = fit(train=train)

    result = explainer.explain(PEOPLE)

    assert explainer.relations_.set_index("relation")["enforced"].to_dict() == {
        "code determines name": False
    }
    assert set(result.changes()["kind"]) == {"action"}


@pytest.mark.parametrize("search", ["sparse", "fast"])
def test_two_equivalent_columns_of_two_values_follow(search):
    def two(frame):
        large = frame["name"] == "large"
        return frame.assign(name=large.map({True: "large", False: "small"}), code=large)

    explainer = fit(search, train=two(TRAIN))

    result = explainer.explain(two(PEOPLE))

    assert explainer.relations_["kind"].tolist() == ["equivalence"]
    assert (result.frame["code"] == (result.frame["name"] == "large")).all()
    kinds = result.changes().groupby("feature")["kind"].unique()
    assert kinds["name"].tolist() == ["consequence"]
    assert kinds["code"].tolist() == ["action"]


def test_a_dependency_can_be_let_go_of_or_redrawn():
    free = fit(ignore_relations=["code determines name"]).explain(PEOPLE)
    redrawn = fit(Search.preset("sparse", consequences="redraw")).explain(PEOPLE)

    assert set(free.changes()["kind"]) == set(redrawn.changes()["kind"]) == {"action"}
    assert (free.frame["name"] != free.frame["code"].map(NAMES)).any()
    assert (redrawn.frame["name"] == redrawn.frame["code"].map(NAMES)).all()


@pytest.mark.parametrize("search", ["sparse", "fast"])
def test_what_follows_is_the_same_after_saving(search, tmp_path):
    explainer = fit(search)
    explainer.save(tmp_path / "plans.mcce")

    again = load(tmp_path / "plans.mcce", points).explain(PEOPLE)

    result = explainer.explain(PEOPLE)
    assert_same(again, result)
    pd.testing.assert_frame_equal(again.changes(), result.changes())


def test_an_action_is_undone_together_with_what_follows_from_it():
    explainer = fit("near", constraints=[c.max_changes(3)])
    result = explainer.explain(PEOPLE)

    measured = explainer.robustness(result)

    assert measured["valid"].all()
    assert measured["minimal"].all()


def test_values_that_a_generator_left_out_are_added():
    frame = pd.DataFrame({"a": ["p", "q", "r"]})
    rows = Schema.learn(frame).encode(frame)
    growing = GrowingTables(rows, [pd.Series(["z", "q"], name="a")])

    codes = growing.place_trained(0, np.array([0, 1, 2, 0], dtype=np.int32))

    assert growing.tables[0].iloc[codes].tolist() == ["p", "q", "r", "p"]
    assert growing.tables[0].tolist() == ["z", "q", "p", "r"]


class FewPlans:
    """A generator that draws two codes and one name."""

    capabilities = Capabilities()

    def fit(self, rows, decision, *, seed, n_jobs, verbose):
        return self

    def sample(self, given, keys, draws):
        codes = np.zeros((3, keys.size, draws.size), dtype=np.int32)
        codes[0], codes[2] = draws % 3 == 0, draws % 2
        return Draws(codes, [pd.Series(["L1", "S2"]), pd.Series(["small"]), pd.Series([3, 17])])


def test_what_follows_need_not_be_among_the_values_of_a_generator():
    result = fit(Search(n_samples=6), generator=FewPlans()).explain(PEOPLE)

    followed = result.frame[moved(result, "name")]
    assert set(followed["name"]) == {"large"}
    assert set(followed["code"]) == {"L1"}


@pytest.mark.parametrize("search", ["sparse", "near"])
def test_the_fewest_actions_are_found_by_brute_force(search):
    explainer = fit(bounded(search, min_plausibility=0.0, copies="allow"))
    result = explainer.explain(PEOPLE)
    codes, usages = list(NAMES), sorted(TRAIN["usage"].unique())
    grid = pd.MultiIndex.from_product([codes, usages], names=["code", "usage"]).to_frame(
        index=False
    )
    grid["name"] = grid["code"].map(NAMES)

    for label, person in PEOPLE[points(PEOPLE) < 2].iterrows():
        valid = grid[points(grid) >= 2]
        cells = sum((valid[name] != person[name]).astype(int) for name in ("code", "name", "usage"))
        assert result.measures.loc[label, "sparsity"].tolist() == [cells.min()]


@settings(deadline=None, max_examples=12)
@given(
    seed=st.integers(0, 2**16),
    search=st.sampled_from(["sparse", "balanced", "near", "plausible", "fast", "exact"]),
    rule=st.sampled_from([None, c.frozen("code"), c.levels("name", ["small", "large"])]),
    odd=st.booleans(),
)
def test_answers_keep_the_dependency_whoever_else_is_asked(seed, search, rule, odd):
    train, people = plans(150, seed), plans(5, seed + 1).assign(age=40)
    if odd:
        people.loc[people.index[0], "name"] = "huge"
        people.loc[people.index[1], "code"] = "unknown"
    explainer = fit(search, train, constraints=[] if rule is None else [rule])

    result = explainer.explain(people)

    changed, before = moved(result, "code"), own_rows(result)["name"].to_numpy()
    expected = result.frame["code"].map(NAMES).to_numpy()
    assert (result.frame["name"].to_numpy() == np.where(changed, expected, before)).all()
    for label in people.index:
        alone = explainer.explain(people.loc[[label]])
        theirs = result.frame.index.get_level_values("factual") == label
        pd.testing.assert_frame_equal(alone.frame, result.frame[theirs])
