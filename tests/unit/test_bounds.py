"""Bounds on differences, ratios and what formulas leave over: found in rows, kept in answers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcce import MCCE, load

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

SAVED, YEARS = "saved <= 0.5 * net", "age - years >= 18"
TOTAL, COSTS = "0.67 <= total / (months * price) <= 1.33", "-20 <= costs - (rent + food) <= 20"


@cache
def workers(n_rows=1000, seed=0):
    """A law of every kind, and columns that follow none."""
    random = np.random.default_rng(seed)
    net = np.round(300 + random.gamma(3, 1000, n_rows), 2)
    age = random.integers(18, 66, n_rows)
    frame = pd.DataFrame({"net": net, "saved": np.round(net * random.uniform(0, 0.5, n_rows), 2)})
    frame = frame.assign(age=age, years=np.floor((age - 18) * random.random(n_rows)))
    frame["months"], frame["price"] = random.integers(1, 73, n_rows), random.uniform(18, 99, n_rows)
    frame["total"] = frame["months"] * frame["price"] * random.uniform(0.67, 1.33, n_rows)
    frame["rent"], frame["food"] = random.integers(0, 99, n_rows), random.integers(0, 80, n_rows)
    frame["costs"] = frame["rent"] + frame["food"] + random.integers(-20, 21, n_rows)
    return frame.assign(size=random.normal(50, 10, n_rows), plan=random.choice(["a", "b"], n_rows))


def keeps_all(frame):
    share, left = frame["total"] / (frame["months"] * frame["price"]), frame["rent"] + frame["food"]
    return (
        (frame["saved"] <= 0.5 * frame["net"])
        & (frame["age"] - frame["years"] >= 18)
        & share.between(0.67, 1.33)
        & (frame["costs"] - left).between(-20, 20)
    )


def score(frame):
    value = frame["saved"] / 900 + frame["years"] / 15 + frame["total"] / 3000
    return np.asarray(1 / (1 + np.exp(5 - value - frame["costs"] / 100)))


@cache
def fitted():
    return MCCE(score, (0.5, 1.0), search="sparse", n_samples=100, random_state=0).fit(workers())


def found_in(frame):
    explainer = MCCE(lambda rows: np.zeros(len(rows)), (0, 1), search="sparse", random_state=0)
    return explainer.fit(frame)


def declined(n_rows):
    return workers()[score(workers()) < 0.5].head(n_rows)


@pytest.mark.parametrize("seed", [0, 1])
def test_every_bound_is_found_as_a_short_number_and_nothing_else(seed):
    table = found_in(workers(seed=seed)).relations_

    assert sorted(table["relation"]) == sorted([SAVED, YEARS, TOTAL, COSTS])
    assert table["enforced"].all()
    assert (table["holds"] == 1).all()
    assert (table["p_value"] < 1e-6).all()


def test_permuted_columns_have_no_bounds():
    random = np.random.default_rng(0)
    frame = workers()

    permuted = {name: random.permutation(frame[name].to_numpy()) for name in frame}

    assert len(found_in(pd.DataFrame(permuted)).relations_) == 0


def test_columns_that_merely_go_together_have_no_bounds():
    random = np.random.default_rng(0)
    common = random.normal(size=(3000, 1))
    frame = pd.DataFrame(common + 0.4 * random.normal(size=(3000, 12))).add_prefix("x")

    assert len(found_in(frame).relations_) <= 1


def test_few_new_rows_break_a_bound_that_few_rows_come_near():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"first": random.normal(size=20_000)})
    frame["second"] = frame["first"] + random.beta(2, 2, 20_000)
    frame["third"] = random.normal(size=20_000)

    found = found_in(frame.head(1000)).fitted_.relations

    new = frame.tail(19_000)
    assert len(found)
    assert np.mean([one.relation.excess(new) > 0 for one in found]) < 0.002


def test_a_bound_that_two_others_imply_is_left_out():
    random = np.random.default_rng(0)
    gross = 500 + random.gamma(3, 1000, 2000)
    net = gross * random.uniform(0.3, 0.8, 2000)
    frame = pd.DataFrame({"gross": gross, "net": net, "saved": net * random.uniform(0, 0.5, 2000)})

    upper = [name for name in found_in(frame).relations_["relation"] if "<= 0" in name]

    assert sorted(upper) == ["net <= 0.8 * gross", SAVED]


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.integers(60, 300), st.sampled_from([0.0, 0.1]))
def test_an_enforced_bound_holds_in_every_training_row(seed, n_rows, holes):
    random = np.random.default_rng(seed)
    first = random.normal(random.integers(-3, 4), 1, n_rows).round(2)
    frame = pd.DataFrame({"first": first, "second": first + random.exponential(0.3, n_rows)})
    frame["third"] = frame["second"] * random.uniform(0.1, 0.4, n_rows) * 10.0 ** (seed % 7 - 3)
    frame["fourth"] = frame["first"] + frame["third"] + random.uniform(0, 0.3, n_rows)
    frame = frame.mask(random.random(frame.shape) < holes)

    for one in found_in(frame).fitted_.relations:
        assert one.share == one.relation.holds(frame).mean()
        assert one.enforced == one.relation.holds(frame).all()


def test_no_answer_breaks_a_bound_unless_it_is_ignored():
    result = fitted().explain(declined(15))
    free = MCCE(score, (0.5, 1.0), search="sparse", n_samples=100, random_state=0).fit(workers())
    free.set_params(ignore_relations=[SAVED, YEARS, TOTAL, COSTS])

    assert len(result.frame) == 15
    assert keeps_all(result.frame).all()
    assert not keeps_all(free.explain(declined(15)).frame).all()


def test_somebody_whose_own_row_breaks_a_bound_gets_an_answer_that_breaks_it_no_worse():
    odd = declined(3)
    odd = odd.assign(saved=0.7 * odd["net"], total=2.0 * odd["months"] * odd["price"])
    odd = odd[score(odd) < 0.5]

    frame = fitted().explain(odd).frame

    assert len(frame) == len(odd) > 0
    worse = frame["saved"] - 0.5 * frame["net"] - (0.2 * odd["net"]).to_numpy()
    assert (worse <= 1e-9 * frame["net"]).all()


def test_a_reason_names_the_bound_in_the_way():
    stuck = MCCE(lambda rows: rows["years"], (25, 60), mutable=["years"], search="sparse")
    young = workers()[workers()["age"] < 30].head(3)

    result = stuck.set_params(n_samples=200, random_state=0).fit(workers()).explain(young)

    assert result.missing["reason"].str.contains(YEARS, regex=False).all()


def test_a_saved_explainer_keeps_its_bounds(tmp_path):
    fitted().save(tmp_path / "workers.mcce")

    again = load(tmp_path / "workers.mcce", score)

    assert again.relations_.equals(fitted().relations_)
    assert again.explain(declined(5)).frame.equals(fitted().explain(declined(5)).frame)
