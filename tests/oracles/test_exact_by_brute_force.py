"""The exact search returns the best of every row that the model could draw, listed one by one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from every_row import changed, distances, every_row, is_needless
from mcce import MCCE, ExactSearch, Interval, TreeChain
from mcce import constraints as c
from searches import altered, bounded, explain, texts
from tables import cases

DESIRED = Interval(0.55, np.inf)


def best(explainer, train, person, is_drawable, weights=None):
    """Changes and distances of all that one person might get, the best first."""
    search, fixed = explainer.search, explainer.immutable or []
    mutable = [name for name in train if name not in fixed]
    rows = every_row(train, person, mutable)
    n_changes, distance = changed(rows, person).sum(axis=1), distances(train, rows, person, weights)
    keep = is_drawable(rows) & (n_changes > 0) & explainer.decision_.score(rows).valid
    if search.max_sparsity is not None:
        keep &= n_changes <= search.max_sparsity
    if search.max_distance is not None:
        keep &= distance <= search.max_distance
    known = {*texts(train)}
    copies = np.array([row in known for row in texts(rows)], dtype=bool)
    if search.copies == "never" or (search.copies == "last" and (keep & ~copies).any()):
        keep &= ~copies
    keep[keep] = ~is_needless(rows[keep], person, mutable)
    return sorted(zip(n_changes[keep].tolist(), distance[keep].round(9).tolist(), strict=True))


def assert_best(explainer, train, people, is_drawable, weights=None):
    """Everybody gets the best rows, proven, or a proof that there is none."""
    result = explain(explainer, people)

    assert result.measures["proven"].all()
    for person, status in enumerate(result.people["status"]):
        if status == "already desired":
            continue
        own, mine = people.iloc[[person]], result.frame[result.owner == person]
        n_changes = changed(mine, own).sum(axis=1).tolist()
        distance = distances(train, mine, own, weights).round(9).tolist()
        drawable = lambda rows, own=own: is_drawable(rows, own)
        expected = best(explainer, train, own, drawable, weights)[: explainer.n_counterfactuals]
        assert list(zip(n_changes, distance, strict=True)) == expected
        reason = result.people["reason"].iloc[person]
        assert reason.startswith("Proven: no row") == (not expected)


@st.composite
def unruled(draw, max_rows=12):
    """Small tables, and an exact explainer whose trees have leaves of any size."""
    case = draw(cases(max_rows=max_rows, max_columns=3))
    explainer = MCCE(
        case.score,
        DESIRED,
        immutable=case.immutable,
        generator=TreeChain(
            min_samples_leaf=draw(st.integers(1, 5)), condition_on_decision=draw(st.booleans())
        ),
        search=ExactSearch(
            max_sparsity=draw(st.none() | st.integers(0, 2)),
            max_distance=draw(st.none() | st.sampled_from([0.05, 0.3])),
            copies=draw(st.sampled_from(["allow", "never", "last"])),
        ),
        n_counterfactuals=draw(st.integers(1, 3)),
        random_state=draw(st.integers(0, 9)),
    ).fit(case.train)
    assume(explainer.n_desired_)
    return case, explainer


@settings(max_examples=20)
@given(unruled())
def test_answers_are_the_best_of_every_row_that_has_a_likelihood(work):
    case, explainer = work
    mutable = [name for name in case.train if name not in case.immutable]
    known = [case.people[name].astype(str).isin(case.train[name].astype(str)) for name in mutable]
    people = case.people[np.all(known, axis=0)]
    assume(len(people))

    assert_best(
        explainer,
        case.train,
        people,
        lambda rows, _: np.isfinite(explainer.log_likelihood(rows)),
    )


@pytest.mark.slow
@given(unruled(max_rows=40), st.sampled_from([50, 1500]))
def test_no_number_of_draws_finds_anything_better(work, n_samples):
    case, explainer = work
    bounds = {key: getattr(explainer.search, key) for key in ("max_sparsity", "max_distance")}
    drawing = bounded("paper", **bounds)

    found = [
        explain(
            altered(explainer, search=search, n_samples=n_samples, n_counterfactuals=1), case.people
        )
        for search in (ExactSearch(**bounds), drawing)
    ]

    costs = [[*zip(r.measures["sparsity"], r.measures["gower"], strict=True)] for r in found]
    ours, theirs = (dict(zip(r.owner, c, strict=True)) for r, c in zip(found, costs, strict=True))
    assert ours.keys() >= theirs.keys()
    for person, cost in theirs.items():
        assert ours[person] <= cost


def moves(name, keeps):
    """Whether a column stays or obeys."""
    return lambda rows, own: (rows[name] == own[name]) | keeps(rows[name], own[name])


RULES = {
    "none": ([], []),
    "only down": ([c.only_down("debt")], [moves("debt", lambda new, old: new <= old)]),
    "change": ([c.change("salary", at_most=2)], [moves("salary", lambda n, o: n <= o + 2)]),
    "step": (
        [c.step("debt", 1.5), c.only_up("salary")],
        [
            moves("debt", lambda n, o: ((n - o).abs() >= 1.5) | n.isna() | pd.isna(o)),
            moves("salary", lambda n, o: n >= o),
        ],
    ),
    "levels": ([c.levels("job", ["b", "c"])], [moves("job", lambda n, _: n.isin(["b", "c"]))]),
    "together": (
        [c.together("salary", "job")],
        [lambda rows, own: (rows["salary"] == own["salary"]) == (rows["job"] == own["job"])],
    ),
    "frozen": (
        [c.frozen("debt"), c.max_changes(1)],
        [
            moves("debt", lambda n, _: n != n),
            lambda rows, own: (rows != own.to_numpy()).sum(axis=1) <= 1,
        ],
    ),
    "weight": ([c.weight("debt", 5.0)], []),
}


def points(frame):
    """Higher for every salary; a debt of exactly 2, or an unknown job, is worth nothing."""
    salary, debt = frame["salary"].astype(float), frame["debt"].astype(float)
    return salary / 5 + 0.4 * (debt != 2.0) + 0.3 * (frame["job"] == "b").to_numpy()


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.sampled_from(sorted(RULES)),
    st.sampled_from(["allow", "never", "last"]),
    st.integers(1, 3),
)
def test_answers_are_the_best_of_all_allowed_rows_if_everything_can_be_drawn(
    seed, name, copies, n_counterfactuals
):
    """People have numbers and levels that training lacks, which may stay."""
    chance = np.random.default_rng(seed)
    train = pd.DataFrame(
        {
            "age": chance.integers(0, 2, 16) * 10.0,
            "salary": chance.integers(0, 5, 16) * 1.0,
            "debt": chance.integers(0, 4, 16) * 1.0,
            "job": chance.choice(["a", "b", "c"], 16),
        }
    )
    people = pd.DataFrame(
        {
            "age": [0.0, 10.0, 3.0, 0.0],
            "salary": [0.5, 1.2, 0.0, 1.75],
            "debt": [2.0, 2.5, 1.9, 40.0],
            "job": ["a", "new", "c", "newer"],
        }
    )
    rules, keeps = RULES[name]
    explainer = MCCE(points, (0.9, 9.0), immutable=["age"], constraints=rules or None)
    explainer.set_params(
        generator=TreeChain(min_samples_leaf=len(train)),  # one leaf per feature
        search=ExactSearch(copies=copies),
        n_counterfactuals=n_counterfactuals,
        random_state=0,
    ).fit(train)
    assume(explainer.n_desired_)

    def is_allowed(rows, own):
        held = [np.asarray(keep(rows, own.iloc[0]), dtype=bool) for keep in keeps]
        return np.all([np.ones(len(rows), dtype=bool), *held], axis=0)

    weights = {"debt": 5.0} if name == "weight" else None
    assert_best(explainer, train, people, is_allowed, weights)
