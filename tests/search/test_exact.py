"""The exact search: the best of all rows that the model could draw, and what is said if not."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bank import bank, score
from every_row import best_of_all
from mcce import MCCE, ExactSearch, Interval, McceWarning, TreeChain, load
from mcce import constraints as c
from mcce.constraints.collection import Constraints
from mcce.search.sampling import STOPPED
from searches import bounded, bounds_of
from tables import cases

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

DESIRED = Interval(0.55, np.inf)
TRAIN, PEOPLE = bank(400), bank(40, seed=1)
TINY_BUDGETS = [ExactSearch(max_rows=1), ExactSearch(max_nodes=3)]


def answers(explainer, people, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer.explain(people, **more)


# ---------------------------------------------------------------------------------------------
# Against every row there is.


@st.composite
def searches(draw, max_rows=14):
    """Small tables with constraints and bounds, and an exact explainer fitted on them."""
    case = draw(cases(max_rows=max_rows, max_columns=3))
    mutable = [name for name in case.train if name not in case.immutable]
    numeric = [n for n in mutable if pd.api.types.is_numeric_dtype(case.train[n].dtype)]
    numeric = [n for n in numeric if case.train[n].dtype != bool]
    kinds = [lambda: c.max_changes(draw(st.integers(1, 2))), lambda: c.frozen(mutable[0])]
    if len(mutable) > 1:
        kinds.append(lambda: c.together(*mutable[:2]))
    if numeric:
        kinds += [
            lambda: c.only_up(numeric[-1]),
            lambda: c.between(numeric[-1], 0, 4),
            lambda: c.step(numeric[-1], 1.5),
            lambda: c.weight(numeric[0], draw(st.sampled_from([0.5, 3.0]))),
        ]
    written = [make() for make in draw(st.lists(st.sampled_from(kinds), max_size=2, unique=True))]
    explainer = MCCE(
        case.score,
        DESIRED,
        immutable=case.immutable,
        generator=TreeChain(
            min_samples_leaf=draw(st.integers(1, 5)),
            condition_on_decision=draw(st.booleans()),
        ),
        constraints=written or None,
        search=ExactSearch(
            max_sparsity=draw(st.none() | st.integers(0, 2)),
            max_distance=draw(st.none() | st.sampled_from([0.05, 0.3])),
            copies=draw(st.sampled_from(["allow", "never"])),
        ),
        n_counterfactuals=draw(st.integers(1, 3)),
        random_state=draw(st.integers(0, 9)),
    ).fit(case.train)
    assume(explainer.n_desired_)
    return case, explainer


def constraints_of(explainer):
    return Constraints.bind(explainer.constraints, explainer.schema_)


def same_costs(got, expected):
    """Equal up to the order of sums, which in the oracle is another one."""
    return len(got) == len(expected) and np.allclose(
        np.array(got, dtype=float).reshape(-1, 2), np.array(expected, dtype=float).reshape(-1, 2)
    )


@pytest.mark.slow
@given(searches())
def test_answers_are_the_best_of_every_row_that_could_be_drawn(search):
    case, explainer = search
    result = answers(explainer, case.people)

    assert result.measures["proven"].all()
    unbounded = set(bounds_of(explainer).values()) == {None}
    for person, status in enumerate(result.people["status"]):
        if status == "already desired":
            continue
        ordered, n_rows = best_of_all(explainer, case.people, person, case.train)
        expected = [(n, gower) for n, _, gower in ordered[: explainer.n_counterfactuals]]
        mine = result.measures[result.owner == person]
        got = list(zip(mine["sparsity"], mine["gower"], strict=True))
        if constraints_of(explainer).weights is None:
            assert same_costs(got, expected)
        else:
            assert [n for n, _ in got] == [n for n, _ in expected]
        assert not result.frame[result.owner == person].duplicated().any()
        reason = result.people["reason"].iloc[person]
        assert reason.startswith("proven: no row") == (not expected)
        if not expected and not constraints_of(explainer).of_rows and unbounded:
            assert f"({n_rows} rows," in reason


@pytest.mark.slow
@given(searches(max_rows=40), st.sampled_from(["fast", "paper"]), st.sampled_from([50, 1500]))
def test_no_number_of_draws_finds_anything_better(search, name, n_samples):
    case, explainer = search
    assume(constraints_of(explainer).weights is None)
    exact = answers(explainer.set_params(n_counterfactuals=1), case.people)

    drawing = bounded(
        name,
        n_samples=n_samples,
        max_samples=None,
        copies=explainer.search.copies,
        **bounds_of(explainer),
    )
    drawn = answers(explainer.set_params(search=drawing), case.people)

    ours, theirs = (
        dict(
            zip(r.owner, zip(r.measures["sparsity"], r.measures["gower"], strict=True), strict=True)
        )
        for r in (exact, drawn)
    )
    assert ours.keys() >= theirs.keys()
    for person, cost in theirs.items():
        # With changes undone, a row need not be one that can be drawn.
        assert ours[person] <= cost or (name == "fast" and cost[0] < ours[person][0])


# ---------------------------------------------------------------------------------------------
# On its own.


@pytest.mark.slow
@given(
    searches(max_rows=40),
    st.sampled_from([{"memory": 1e-6}, {"n_jobs": 3}, {"memory": 3.0, "n_jobs": 2}]),
    st.sampled_from(["exact", *TINY_BUDGETS]),
)
@settings(max_examples=50)
def test_blocks_threads_order_and_company_change_nothing(search, other_settings, kind):
    case, explainer = search
    explainer.set_params(search=bounded(kind, **bounds_of(explainer)))
    plain = answers(explainer, case.people)
    turned = answers(explainer, case.people.iloc[::-1])
    alone = [answers(explainer, case.people.iloc[[at]]) for at in range(len(case.people))]

    other = answers(explainer.set_params(**other_settings), case.people)

    pd.testing.assert_frame_equal(plain.frame, other.frame, check_exact=True)
    pd.testing.assert_frame_equal(plain.measures, other.measures, check_exact=True)
    pd.testing.assert_frame_equal(plain.people, other.people, check_exact=True)
    pd.testing.assert_frame_equal(
        plain.people, turned.people.iloc[::-1], check_exact=True, check_dtype=False
    )
    pd.testing.assert_frame_equal(
        plain.measures, pd.concat([r.measures for r in alone]), check_exact=True, check_dtype=False
    )
    assert plain.n_evaluated == other.n_evaluated == turned.n_evaluated
    if kind == "exact":  # equal people share draws
        assert plain.n_evaluated == sum(result.n_evaluated for result in alone)


def loans():
    """Twenty customers; who earns 7 or more gets the loan."""
    frame = pd.DataFrame({"age": [30, 40] * 10, "salary": np.arange(20) % 10})
    return frame, lambda rows: rows["salary"] / 10


def test_a_case_that_can_be_checked_by_hand():
    train, predictor = loans()
    chain = TreeChain(min_samples_leaf=20)  # one leaf per feature: everything can be drawn
    explainer = MCCE(predictor, (0.7, 1), generator=chain, search="exact", n_counterfactuals=3)

    people = pd.DataFrame({"age": [30], "salary": [2]})

    result = explainer.fit(train).explain(people)

    assert result.frame.to_numpy().tolist() == [[30, 7], [30, 8], [30, 9]]
    assert result.measures["sparsity"].tolist() == [1, 1, 1]
    assert result.measures["proven"].tolist() == [True] * 3
    # 9 salaries, which are nearer than another age, in batches of 3, 3, 5.
    assert result.n_evaluated == 10

    more = explainer.set_params(n_counterfactuals=4).explain(people)

    # With one of these salaries, another age is needless.
    pd.testing.assert_frame_equal(more.frame, result.frame)
    assert more.measures["proven"].all()


def test_each_row_is_scored_once_and_only_until_the_answer_is_known():
    train, _ = loans()
    seen = []

    def predictor(rows):
        seen.extend(map(tuple, rows.to_numpy().tolist()))
        return rows["salary"] / 10

    explainer = MCCE(predictor, (0.7, 1), generator=TreeChain(min_samples_leaf=20), search="exact")
    explainer.fit(train)
    seen.clear()

    result = explainer.explain(pd.DataFrame({"age": [30], "salary": [2]}))

    scored = seen[1:-1]  # the person first, the answer once more at last
    assert len(scored) == len(set(scored)) == result.n_evaluated
    assert result.n_evaluated <= 9


def test_a_proof_of_no_answer_counts_the_rows():
    train, _ = loans()
    explainer = MCCE(
        lambda rows: (rows["salary"] > 6) & (rows["age"] > 30),
        (1, 1),
        immutable=["age"],
        generator=TreeChain(min_samples_leaf=20),
        search="exact",
    ).fit(train)
    people = pd.DataFrame({"age": [30, 40], "salary": [2, 2]})

    with pytest.warns(McceWarning, match="1 of 2 people have no counterfactual"):
        result = explainer.explain(people)

    assert result.people["reason"].iloc[0] == (
        "proven: no row that the model could draw is valid and allowed (9 rows, 9 allowed)"
    )
    assert len(result.nearest_misses) == 1
    assert result.people["status"].tolist() == ["no answer", "answered"]


@pytest.mark.parametrize(
    ("bounds", "bounds_text"),
    [
        ({"search": ExactSearch(max_sparsity=1)}, " with at most 1 changes"),
        ({"constraints": [c.max_changes(1)]}, " with at most 1 changes"),
        ({"search": ExactSearch(max_distance=0.1)}, " within a distance of 0.1"),
    ],
)
def test_the_reason_names_the_bounds_within_which_all_rows_were_enumerated(bounds, bounds_text):
    train, _ = loans()
    explainer = MCCE(
        lambda rows: 1.0 * ((rows["salary"] > 6) & (rows["age"] > 30)),
        (1, 1),
        generator=TreeChain(min_samples_leaf=20),
        **({"search": "exact"} | bounds),
    ).fit(train)

    result = answers(explainer, pd.DataFrame({"age": [30], "salary": [2]}))

    assert (
        result.people["reason"]
        .item()
        .startswith(f"proven: no row that the model could draw{bounds_text} is valid and allowed (")
    )


@pytest.mark.parametrize("search", TINY_BUDGETS)
def test_beyond_the_budget_the_draws_answer_and_nothing_is_claimed(search):
    settings = {"immutable": ["sex"], "random_state": 3}
    explainer = MCCE(score, (0.8, 10), search=search, **settings).fit(TRAIN)
    proven = answers(MCCE(score, (0.8, 10), search="exact", **settings).fit(TRAIN), PEOPLE)

    result = answers(explainer, PEOPLE)

    assert not result.measures["proven"].all()
    assert proven.measures["proven"].all()
    assert (result.people["status"] == proven.people["status"]).all()


def test_some_of_several_answers_are_kept_at_the_end_of_the_budget_but_not_called_proven():
    train, predictor = loans()
    chain = TreeChain(min_samples_leaf=20)
    explainer = MCCE(predictor, (0.7, 1), generator=chain, search=ExactSearch(max_rows=6))
    explainer.set_params(n_counterfactuals=2).fit(train)

    result = explainer.explain(pd.DataFrame({"age": [30], "salary": [2]}))

    # By distance: salaries 1, 3, 0, 4, 5, 6 come before the first valid one.
    assert not result.measures["proven"].any()
    wider = explainer.set_params(search=ExactSearch(max_rows=7))
    result = wider.explain(pd.DataFrame({"age": [30], "salary": [2]}))
    assert result.frame.to_numpy().tolist() == [[30, 7]]
    assert result.measures["proven"].tolist() == [False]


def test_other_searches_claim_nothing():
    train, predictor = loans()
    result = MCCE(predictor, (0.7, 1), random_state=0).fit(train).explain(train.iloc[[1]])

    assert "proven" not in result.measures


def test_a_stopped_search_keeps_what_is_proven_and_says_who_is_left():
    explainer = MCCE(
        score, (0.8, 10), immutable=["sex"], search="exact", memory=1e-6, random_state=3
    ).fit(TRAIN)
    heard = []

    def stop(progress):
        heard.append(progress)
        return progress.n_settled >= 3

    result = answers(explainer, PEOPLE, callback=stop)

    assert result.stopped
    assert (result.people["reason"] == STOPPED).any()
    assert result.measures["proven"].all()
    assert len(result.measures)
    assert heard[-1].n_factuals > heard[-1].n_settled >= 3
    assert answers(explainer.set_params(max_seconds=1e-9), PEOPLE).stopped


class Forgetful:
    """A black box that refuses salaries below a bound the second time it sees them."""

    def __init__(self):
        self.bound, self.seen = 0, {}

    def __call__(self, frame):
        scores = []
        for salary in frame["salary"]:
            self.seen[salary] = self.seen.get(salary, 0) + 1
            scores.append(0.0 if self.seen[salary] > 1 and salary < self.bound else float(salary))
        return np.array(scores)


def test_an_answer_that_fails_when_scored_again_gives_way_to_the_next():
    explainer = MCCE(Forgetful(), (30, 100), search="exact").fit(
        pd.DataFrame({"salary": np.arange(80)})
    )
    box = explainer.decision_.predictor
    box.bound, box.seen = 33, {}

    with pytest.warns(McceWarning, match="predictor is unstable"):
        result = explainer.explain(pd.DataFrame({"salary": [10]}))

    assert result.frame["salary"].item() >= 33
    assert result.n_unstable >= 1


def test_an_exact_search_is_saved_and_loaded(tmp_path):
    train, predictor = loans()
    search = ExactSearch(max_rows=77, max_samples=None)
    explainer = MCCE(predictor, (0.7, 1), search=search, random_state=0).fit(train)
    explainer.save(tmp_path / "loans.mcce")

    again = load(tmp_path / "loans.mcce", predictor)

    assert again.search == search
    one, other = (e.explain(train.iloc[[1, 2]]) for e in (explainer, again))
    pd.testing.assert_frame_equal(one.measures, other.measures)
