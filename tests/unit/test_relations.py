"""Relations between columns: found in training rows, kept in answers, ignored on demand."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcce import MCCE, ExactSearch, McceWarning, NotFittedError, ParameterError, Search, load
from searches import slow

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

PRICES = {"basic": 20.0, "plus": 35.0, "pro": 60.0}
DEVICES = {"none": 0.0, "phone": 15.0, "tablet": 25.0}
SECTORS = {"clerk": "office", "nurse": "health", "doctor": "health", "judge": "law"}
FOUND = {
    ("product", frozenset({"total", "months", "price"})),
    ("linear", frozenset({"bill", "plan", "device"})),
    ("linear", frozenset({"sum", "net", "tax", "fee"})),
    ("ordering", frozenset({"start", "end"})),
    ("equivalence", frozenset({"days", "outcome"})),
    ("dependency", frozenset({"job", "sector"})),
}


@cache
def customers(n_rows=600, seed=0, error=0.0, broken=0.0):
    """A row of every kind of relation, with a relative error or with rows that break it."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "months": random.integers(1, 73, n_rows),
            "price": np.round(random.uniform(18, 120, n_rows), 2),
            "plan": random.choice(list(PRICES), n_rows),
            "device": random.choice(list(DEVICES), n_rows),
            "net": np.round(random.gamma(2, 500, n_rows), 2),
            "tax": np.round(random.gamma(2, 100, n_rows), 2),
            "fee": np.round(random.uniform(0, 50, n_rows), 2),
            "start": random.integers(0, 50, n_rows),
            "job": random.choice(list(SECTORS), n_rows),
            "age": random.integers(18, 90, n_rows),
        }
    )
    called = random.random(n_rows) < 0.3
    frame["days"] = np.where(called, random.integers(1, 30, n_rows), np.nan)
    frame["outcome"] = np.where(called, random.choice(["yes", "no"], n_rows), "never")
    frame["end"] = frame["start"] + random.integers(1, 40, n_rows)
    frame["sector"] = frame["job"].map(SECTORS)
    for target, formula in formulas(frame).items():
        frame[target] = formula * (1 + error * random.standard_normal(n_rows))
    for target in ("total", "bill", "sum", "end", "sector", "outcome"):
        rows = random.choice(n_rows, int(broken * n_rows), replace=False)
        cells = frame[target].to_numpy(copy=True)
        cells[rows] = cells[random.permutation(n_rows)[: rows.size]]
        frame[target] = cells
    return frame


def formulas(frame):
    return {
        "total": frame["months"] * frame["price"],
        "bill": frame["plan"].map(PRICES) + frame["device"].map(DEVICES),
        "sum": frame["net"] + frame["tax"] + frame["fee"],
    }


def keeps_all(frame, tolerance=1e-9):
    """Which rows keep every planted relation."""
    # In 600 rows, chance might leave out equal ones: the ordering that is found is not strict.
    kept = (frame["start"] <= frame["end"]) & (frame["job"].map(SECTORS) == frame["sector"])
    kept &= frame["days"].isna() == (frame["outcome"] == "never")
    for target, formula in formulas(frame).items():
        kept &= (frame[target] - formula).abs() <= tolerance * formula
    return kept


def score(frame):
    value = frame["total"] / 4000 + frame["bill"] / 100 - frame["start"] / 100
    value += frame["sum"] / 5000 + (frame["sector"] == "law") / 4 + (frame["outcome"] == "yes") / 4
    return np.asarray(1 / (1 + np.exp(2.2 - value)))


@cache
def fitted(search="sparse", error=0.0, broken=0.0):
    explainer = MCCE(score, (0.5, 1.0), search=search, n_samples=100, random_state=0)
    return explainer.fit(customers(error=error, broken=broken))


def people(n_rows=10, **given):
    frame = customers(**given)
    return frame[(score(frame) < 0.5) & keeps_all(frame, 0.08)].head(n_rows)


def found_in(frame):
    """The table of relations that fit finds; no search needs less than this one."""
    explainer = MCCE(lambda rows: np.zeros(len(rows)), (0, 1), search="sparse", random_state=0)
    return explainer.fit(frame).relations_


def described(table):
    return {(kind, frozenset(names)) for kind, names in zip(table["kind"], table["features"])}  # noqa: B905


# What is found.
@pytest.mark.parametrize("seed", [0, 1])
def test_every_exact_relation_is_found_and_enforced_and_nothing_else(seed):
    table = found_in(customers(seed=seed))

    assert described(table) == FOUND
    assert table["enforced"].all()
    assert (table["holds"] == 1).all()
    assert (table["p_value"] < 1e-6).all()
    assert {"sum = net + tax + fee", "total = months * price"} <= set(table["relation"])


def test_relations_with_broken_rows_are_listed_but_not_enforced():
    table = found_in(customers(broken=0.01))

    assert described(table) >= FOUND
    broken = table[~table["relation"].str.contains(r" - .* <= |<= .* \*")]
    assert not broken["enforced"].any()
    assert broken["holds"].between(0.97, 0.9999).all()


def test_relations_with_a_relative_error_are_enforced_within_a_tolerance():
    table = fitted("sparse", error=0.01).relations_

    enforced = table[table["enforced"]]
    assert described(enforced) >= FOUND
    total = enforced[enforced["target"] == "total"].iloc[0]
    assert total["relative"]
    assert 0.02 < total["tolerance"] < 0.08


def test_names_say_the_formula_in_short_decimals():
    random = np.random.default_rng(0)
    age, debt = random.integers(18, 90, 600), random.uniform(100, 1000, 600)
    income = random.uniform(1000, 9000, 600)
    frame = pd.DataFrame({"age": age, "fahrenheit": 32 + 1.8 * (age - 50), "debt": debt})
    frame = frame.assign(income=income, share=np.round(debt / income, 3), due=debt * 1e6 + 100)
    big = random.uniform(1, 50, (400, 2)) * 1e300
    huge = pd.DataFrame({"net": big[:, 0], "tax": big[:, 1], "sum": big.sum(axis=1)})

    names = set(found_in(frame)["relation"]) | set(found_in(huge)["relation"])

    assert "fahrenheit = 1.8 * age - 58" in names
    assert "share = debt / income (within 0.0005)" in names
    assert "due = 1000000 * debt + 100" in names
    # A constant within the noise of huge numbers is left out.
    assert "sum = net + tax" in names


@cache
def guests(n_rows=1500, seed=0, broken=0):
    """A total of three numbers, of which one is rarely more than 0, and a price of a rare level."""
    random = np.random.default_rng(seed)
    babies = (random.random(n_rows) < 0.012) * random.integers(1, 3, n_rows)
    frame = pd.DataFrame({"adults": random.integers(1, 5, n_rows), "babies": babies})
    frame["children"] = random.poisson(0.4, n_rows)
    frame["pet"] = random.choice(["no", "cat", "dog"], n_rows, p=[0.98, 0.01, 0.01])
    frame["total"] = frame["adults"] + frame["children"] + frame["babies"]
    frame["fee"] = 12.5 * frame["adults"] + frame["pet"].map({"no": 0, "cat": 7, "dog": 20})
    frame["price"] = random.uniform(18, 80, n_rows)
    frame.loc[: broken - 1, "total"] += 1
    return frame


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_sum_with_a_rare_term_is_found(seed):
    table = found_in(guests(seed=seed))

    assert "total = adults + babies + children" in set(table["relation"])
    assert table["relation"].str.contains("fee = 12.5 * adults + pet {", regex=False).any()
    assert table.loc[table["kind"] == "linear", "enforced"].all()


def test_formulas_that_nearly_hold_are_offered_once_in_one_line():
    with pytest.warns(McceWarning, match="possible: ") as caught:
        table = found_in(guests(broken=15))

    assert "total = adults + babies + children" in set(table.loc[~table["enforced"], "relation"])
    [line] = [text for text in (str(w.message) for w in caught) if "possible" in text]
    assert line == (
        "possible: total = adults + babies + children (99.0 %): declare it with derived(...)"
    )


TERMS = [6, 12, 18, 24, 36, 48, 60]


@cache
def instalments(seed=0, n_rows=400, unit=100):
    """Loans whose instalments are rounded to cents; few terms are offered."""
    random = np.random.default_rng(seed)
    amount = random.integers(500 // unit, 20_000 // unit, n_rows) * unit
    months = random.choice(TERMS, n_rows)
    frame = pd.DataFrame({"amount": amount, "months": months})
    frame["income"] = random.integers(12, 90, n_rows) * 100
    return frame.assign(instalment=(amount / months).round(2))


@pytest.mark.parametrize("unit", [1, 100])
@pytest.mark.parametrize("seed", range(3))
def test_of_all_ways_to_write_an_equality_the_one_that_is_exact_after_rounding_is_found(seed, unit):
    found = found_in(instalments(seed, unit=unit)).iloc[0]

    assert found["relation"] == "instalment = amount / months (within 0.005)"
    assert found["enforced"]


@pytest.mark.filterwarnings("ignore:possible")
def test_a_formula_that_rows_break_computes_nothing_that_it_gives_only_nearly():
    loans = instalments().copy()
    loans.loc[:3, "instalment"] *= 2
    cheap = lambda rows: 400 / (400 + rows["instalment"])
    explainer = MCCE(cheap, (0.5, 1.0), search="sparse", n_samples=100, random_state=0).fit(loans)

    result = explainer.explain(loans[cheap(loans) < 0.5].head(10))

    assert explainer.relations_["enforced"].tolist()[0] is False
    assert set(result.changes()["kind"]) == {"action"}
    assert result.frame["months"].isin(TERMS).all()


def test_dates_are_ordered_and_a_rare_number_goes_with_a_missing_cell():
    random = np.random.default_rng(0)
    start = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, 800), unit="D")
    dates = pd.DataFrame({"start": start, "n": random.integers(0, 9, 800)})
    dates["end"] = start + pd.to_timedelta(random.integers(0, 500, 800), unit="D")
    tenure = random.integers(1, 73, 3000)
    tenure[:14] = 0
    total = np.where(tenure == 0, np.nan, random.uniform(20, 5000, 3000))
    bills = pd.DataFrame({"tenure": tenure, "total": total, "age": random.integers(18, 90, 3000)})

    assert found_in(dates)["relation"].tolist() == ["start <= end"]
    names = found_in(bills)["relation"].tolist()
    assert names == ["tenure = 0 if and only if total is missing"]


def test_nothing_is_found_where_nothing_is():
    frame = customers()
    random = np.random.default_rng(0)
    for seed in range(2):
        chance = np.random.default_rng(seed)
        permuted = {name: frame[name].to_numpy()[chance.permutation(600)] for name in frame}
        assert len(found_in(pd.DataFrame(permuted))) == 0
    # Columns of other scales, nearly unique names, and few rows suggest nothing either.
    scales = {"age": random.integers(18, 90, 900), "weight": random.uniform(1e4, 1e6, 900)}
    names = {"id": [f"p{at // 2:04}" for at in range(900)], "job": ["a", "a", "b", "b"] * 225}
    assert len(found_in(pd.DataFrame(scales))) == 0
    assert len(found_in(pd.DataFrame(names))) == 0
    assert len(found_in(frame.head(30))) == 0


def test_copies_and_the_order_of_rows_change_nothing():
    frame = customers(error=0.01)[["months", "price", "total", "start", "end"]]
    once = found_in(frame)

    assert found_in(frame.sample(frac=1, random_state=1)).equals(once)
    few = pd.DataFrame({"a": [f"{at % 10}{at % 2}" for at in range(60)], "b": [0, 1] * 30})
    twice = pd.concat([few] * 20, ignore_index=True)
    assert found_in(twice)["relation"].tolist() == found_in(few)["relation"].tolist()


def test_what_others_imply_is_left_out():
    frame = customers()[["age", "months"]]
    frame = frame.assign(b=frame["age"] + 1, c=frame["age"] + 1, d=frame["age"] + frame["months"])

    names = found_in(frame)["relation"]

    assert len(names) == 3
    assert names.str.contains(" = ").all()


@settings(max_examples=10)
@given(
    st.lists(st.sampled_from(["number", "twice", "sum", "holed"]), min_size=1, max_size=5),
    st.integers(40, 120),
    st.integers(0, 2**32 - 1),
)
def test_an_enforced_formula_holds_in_every_training_row(kinds, n_rows, seed):
    random = np.random.default_rng(seed)
    made = {"first": random.integers(0, 9, n_rows).astype(float)}
    for at, kind in enumerate(kinds):
        last = list(made.values())[-1]
        made[f"{kind}{at}"] = {
            "number": random.normal(size=n_rows),
            "twice": last * 2,
            "sum": last + made["first"],
            "holed": np.where(random.random(n_rows) < 0.2, np.nan, last),
        }[kind]
    frame = pd.DataFrame(made)

    for row in found_in(frame).itertuples():
        formula = row.relation.split(" (within")[0]
        if row.kind != "linear" or not row.enforced:
            continue
        left, right = formula.split(" = ")
        gap = (frame[left] - frame.eval(right)).abs().dropna()
        assert (gap <= row.tolerance + 1e-9 * (1 + frame[left].abs().max())).all(), formula


# What is kept.
@pytest.mark.parametrize("name", ["sparse", "exact", *slow("balanced", "near")])
def test_no_answer_breaks_an_enforced_relation(name):
    search = ExactSearch(max_rows=30, max_nodes=300) if name == "exact" else name

    result = fitted(search, error=0.01).explain(people(6, error=0.01))

    assert len(result.frame)
    assert keeps_all(result.frame, tolerance=0.08).all()


def test_columns_are_recomputed_by_the_relations_that_were_found():
    result = fitted().explain(people())

    assert len(result.frame) == 10
    moved = result.changes()["feature"]
    assert moved.isin(["total", "bill", "sum"]).any()
    assert keeps_all(result.frame).all()


def test_answers_keep_what_few_training_rows_break():
    explainer = fitted(broken=0.01)

    result = explainer.explain(people(broken=0.01))

    assert not explainer.relations_["enforced"].all()
    assert len(result.frame) == 10
    # Of people whose start is their end, some orderings are found without strictness.
    assert all(found.relation.holds(result.frame).all() for found in explainer.fitted_.relations)


def test_the_papers_search_looks_for_no_relations():
    for search in ("paper", Search("sparse", consequences="none")):
        with pytest.raises(AttributeError, match="other than the paper's"):
            _ = fitted(search).relations_


def test_a_relation_that_is_ignored_may_be_broken_and_the_others_are_kept():
    explainer = MCCE(score, (0.5, 1.0), search="sparse", n_samples=100, random_state=0)
    explainer.fit(customers())

    free = explainer.set_params(ignore_relations=["total = months * price"]).explain(people(20))

    frame = free.frame
    assert (frame["total"] != frame["months"] * frame["price"]).any()
    assert keeps_all(frame.assign(total=frame["months"] * frame["price"])).all()
    with pytest.raises(ParameterError, match=r"did not find: .*total = 2"):
        explainer.set_params(ignore_relations=["total = 2 * months"]).explain(people())


def test_ignoring_all_relations_learns_none():
    explainer = MCCE(score, (0.5, 1.0), search="sparse", ignore_relations=True, random_state=0)
    explainer.fit(customers())

    with pytest.raises(NotFittedError, match="Fit again"):
        explainer.set_params(ignore_relations=False).explain(people())


def test_ignoring_something_else_is_an_error():
    for wrong in ("total = months * price", 1, None, [3], {"a"}):
        with pytest.raises(ParameterError, match="ignore_relations must be True, False or a list"):
            MCCE(score, (0.5, 1), search="sparse", ignore_relations=wrong).fit(customers())
    for search in ("sparse", "exact"):
        given = {"search": search, "ignore_relations": ["total = 2 * months"]}
        with pytest.raises(ParameterError, match=r"did not find: .*total = 2"):
            MCCE(score, (0.5, 1.0), **given).fit(customers().head(200))


def test_somebody_whose_own_row_breaks_a_relation_gets_an_answer():
    odd = people(3).assign(end=people(3)["start"] - 7)

    result = fitted().explain(odd)

    assert len(result.frame) == 3
    assert (result.frame["start"] - result.frame["end"] <= 7).all()


def test_a_reason_names_the_relation_in_the_way():
    stuck = MCCE(
        lambda rows: rows["total"], (4000, 9000), mutable=["total", "age"], search="sparse"
    )
    low = customers()[customers()["total"] < 3000].head(3)

    result = stuck.set_params(n_samples=200, random_state=0).fit(customers()).explain(low)

    reasons = result.missing["reason"]
    assert reasons.str.contains("total = months * price", regex=False).all()


def test_a_saved_explainer_keeps_its_relations(tmp_path):
    explainer = fitted()
    explainer.save(tmp_path / "bank.mcce")

    again = load(tmp_path / "bank.mcce", score)

    assert again.relations_.equals(explainer.relations_)
    assert again.explain(people()).frame.equals(explainer.explain(people()).frame)
