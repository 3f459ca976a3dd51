"""What a level brings with it: a share of a number, and cells that are then missing."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, Search
from mcce import constraints as c
from searches import explain, own_rows, slow

BEYOND = ["near", "exact", *slow("sparse", "balanced", "plausible")]
SHARE = {"none": 0.0, "partly": 0.3, "whole": 1.0}
UNREACHED = ["never", "moved"]


def bookings(n_rows: int = 600, seed: int = 0) -> pd.DataFrame:
    """Bookings with a deposit that is a share of the price, by kind."""
    random = np.random.default_rng(seed)
    kind = pd.Series(random.choice([*SHARE], n_rows, p=[0.4, 0.4, 0.2]))
    price = random.gamma(4, 40, n_rows).round(2)
    frame = pd.DataFrame({"kind": kind, "price": price, "nights": random.integers(1, 15, n_rows)})
    return frame.assign(deposit=(kind.map(SHARE) * price).round(2))


@pytest.mark.parametrize(
    ("moves", "score"),
    [("price", lambda f: -f["price"] / 100), ("kind", lambda f: f["kind"].map(SHARE) + 0.0)],
)
def test_a_share_by_level_is_found_and_follows_the_level_and_the_number(moves, score):
    train = bookings()
    explainer = MCCE(score, (-1.0 if moves == "price" else 0.2, 9), search="near", random_state=0)
    explainer.fit(train)

    result = explain(explainer, bookings(80, seed=1))

    [name] = explainer.relations_["relation"]
    assert name == "deposit = kind {'none': 0, 'partly': 0.3, 'whole': 1} * price (within 0.005)"
    changes, frame = result.changes(), result.frame
    assert len(frame) > 10
    assert set(changes.loc[changes["feature"] == moves, "kind"]) == {"action"}
    assert set(changes.loc[changes["feature"] == "deposit", "kind"]) == {"consequence"}
    gap = frame["deposit"] - frame["kind"].map(SHARE) * frame["price"]
    assert gap.abs().max() <= 0.005 + 1e-9


def calls(n_rows: int = 600, seed: int = 0) -> pd.DataFrame:
    """Calls whose length is missing exactly if nobody was reached."""
    random = np.random.default_rng(seed)
    outcome = pd.Series(random.choice(["yes", "no", *UNREACHED], n_rows))
    length = pd.Series(random.integers(1, 40, n_rows)).mask(outcome.isin(UNREACHED))
    age = random.integers(18, 80, n_rows)
    return pd.DataFrame({"length": length, "outcome": outcome, "age": age})


def is_reached(frame: pd.DataFrame) -> pd.Series:
    return ~frame["outcome"].isin(UNREACHED)


@cache
def fitted(search: str, wants_reached: bool) -> MCCE:
    def score(frame: pd.DataFrame) -> pd.Series:
        return (is_reached(frame) == wants_reached) + 0.0

    return MCCE(score, (0.5, 2), search=search, random_state=0).fit(calls())


@pytest.mark.parametrize("search", BEYOND)
def test_a_cell_becomes_missing_as_a_consequence_of_one_of_two_levels(search):
    explainer = fitted(search, wants_reached=False)

    result = explain(explainer, calls(40, seed=1))

    [name] = explainer.relations_["relation"]
    assert name == "length is missing if and only if outcome in ['moved', 'never']"
    assert len(result.frame) == is_reached(calls(40, seed=1)).sum()
    assert (result.frame["length"].isna() == ~is_reached(result.frame)).all()
    changes = result.changes()
    kinds = changes.groupby("feature")["kind"].agg(set).to_dict()
    assert kinds == {"outcome": {"action"}, "length": {"consequence"}}
    assert (result.measures["n_actions"] == 1).all()


def test_a_date_becomes_missing_too():
    def dated(frame: pd.DataFrame) -> pd.DataFrame:
        start = pd.Timestamp("2026-01-01")
        return frame.assign(length=start + pd.to_timedelta(frame["length"], unit="D"))

    score = lambda frame: ~is_reached(frame) + 0.0
    explainer = MCCE(score, (0.5, 2), search="near", random_state=0).fit(dated(calls()))

    result = explain(explainer, dated(calls(20, seed=1)))

    assert len(result.frame) == is_reached(calls(20, seed=1)).sum()
    assert (result.frame["length"].isna() == ~is_reached(result.frame)).all()


@pytest.mark.parametrize("search", BEYOND)
def test_a_cell_that_is_no_longer_missing_is_an_action_of_its_own(search):
    explainer = fitted(search, wants_reached=True)

    result = explain(explainer, calls(40, seed=1))

    assert len(result.frame) == (~is_reached(calls(40, seed=1))).sum()
    assert result.frame["length"].notna().all()
    assert is_reached(result.frame).all()
    assert set(result.changes()["kind"]) == {"action"}


def gaps(n_rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """Two columns with missing cells that nothing explains."""
    random = np.random.default_rng(seed)
    income = pd.Series(random.integers(10, 60, n_rows)).mask(random.random(n_rows) < 0.3)
    job = pd.Series(random.choice(["clerk", "nurse"], n_rows), dtype=object)
    job = job.mask(random.random(n_rows) < 0.3, None)
    debt, rent = random.integers(0, 40, (2, n_rows))
    return pd.DataFrame({"income": income, "job": job, "debt": debt, "rent": rent})


def likes_gaps(frame: pd.DataFrame) -> pd.Series:
    return (
        2.0 * frame["income"].isna()
        + 2.0 * frame["job"].isna()
        - (frame["debt"] + frame["rent"]) / 80
    )


@pytest.mark.parametrize("search", BEYOND)
def test_no_value_becomes_missing_unless_a_relation_calls_for_it(search):
    explainer = MCCE(likes_gaps, (-0.05, 9), search=search, random_state=0).fit(gaps())
    people = gaps(200, seed=1).query("debt > 25 and rent > 25").head(20)

    result = explain(explainer, people.dropna())

    own = own_rows(result)
    assert len(result.frame) == len(people.dropna()) > 5
    assert not (result.frame.isna() & own.notna()).any(axis=None)


@pytest.mark.parametrize("rule", [c.not_up("income"), c.levels("job", [None, "clerk"])], ids=str)
def test_a_constraint_may_allow_a_value_to_become_missing(rule):
    explainer = MCCE(likes_gaps, (1.0, 9), search="near", constraints=[rule], random_state=0)
    people = gaps(60, seed=1).dropna()

    result = explain(explainer.fit(gaps()), people)

    [name] = rule.features
    assert len(result.frame) == len(people)
    assert result.frame[name].isna().all()


def test_the_search_of_the_paper_still_draws_missing_values():
    explainer = MCCE(likes_gaps, (1.0, 9), search=Search("paper"), random_state=0).fit(gaps())

    result = explain(explainer, gaps(60, seed=1).dropna())

    assert result.frame.isna().any(axis=None)


@pytest.mark.parametrize("search", BEYOND)
def test_two_columns_that_are_missing_together_do_not_become_so(search):
    random = np.random.default_rng(0)
    train = gaps()
    train["rate"] = (train["income"] / 7 + random.random(len(train))).round(1)
    likes = lambda frame: 2.0 * frame["income"].isna() - frame["debt"] / 40
    explainer = MCCE(likes, (-0.05, 9), search=search, random_state=0).fit(train)

    result = explain(explainer, train[train["debt"] > 35].dropna().head(20))

    assert "income is missing if and only if rate is missing" in set(
        explainer.relations_["relation"]
    )
    assert len(result.frame) > 5
    assert not result.frame[["income", "rate"]].isna().any(axis=None)
