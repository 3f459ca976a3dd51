"""Which relations are found, which of them are enforced, and that nothing false is."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from mcce.kernels import CancelledError, cancellable
from mcce.relations import FoundRelation
from mcce.relations.discovery import find_relations
from mcce.tables.schema import Schema
from planted_relations import PLANTED, SERVICES, permuted, planted, services


def found_in(frame: pd.DataFrame) -> tuple[FoundRelation, ...]:
    return find_relations(Schema.learn_rows(frame))


def described(found) -> set:
    return {(item.relation.kind, frozenset(item.relation.features)) for item in found}


@pytest.mark.parametrize("seed", range(3))
def test_every_exact_relation_is_found_and_enforced_and_nothing_else(seed):
    found = found_in(planted(seed=seed))

    assert described(found) == PLANTED
    assert all(item.enforced and item.share == 1 for item in found)


@pytest.mark.parametrize("seed", range(3))
def test_relations_with_broken_rows_are_listed_with_their_share_but_not_enforced(seed):
    found = found_in(planted(seed=seed, broken=0.01))

    assert described(found) >= PLANTED
    assert not any(item.enforced for item in found)
    assert all(0.97 < item.share < 1 for item in found)


@pytest.mark.parametrize("seed", range(3))
def test_relations_with_a_relative_error_are_enforced_within_a_tolerance(seed):
    found = found_in(planted(seed=seed, error=0.01))

    enforced = [item for item in found if item.enforced]
    tolerances = [item.relation.tolerance for item in enforced if item.relation.target == "total"]
    assert described(enforced) >= PLANTED
    assert all(0.02 < tolerance < 0.08 for tolerance in tolerances)


@pytest.mark.parametrize(
    ("seed", "variant"), [(6, {}), (8, {}), (9, {"broken": 0.01}), (18, {"error": 0.01})]
)
def test_a_product_is_found_beside_columns_that_nearly_equal_it(seed, variant):
    # "paid" explains "total" nearly as well as "tenure" and "monthly" do.
    assert described(found_in(services(2000, seed, **variant))) >= SERVICES


def test_columns_that_are_computed_from_each_other_in_a_circle_come_to_an_end():
    random = np.random.default_rng(16)
    base = random.integers(0, 1000, 300).astype(float)
    columns = {"a": -base, "b": base + 4, "c": -base - 2, "d": 2 * base + 8, "e": base / 2 + 3}
    frame = pd.DataFrame(columns).mask(random.random((300, 5)) < [0.2, 0.2, 0.2, 0.02, 0.07])

    found = found_in(frame)

    of_two = [item for item in found if item.enforced and len(item.relation.features) == 2]
    assert {item.relation.target for item in of_two} >= {"d", "e"}


def test_a_price_list_is_found_whole_beside_a_smallest_price():
    random = np.random.default_rng(0)
    net, phone = random.choice(["a", "b", "no"], 2000, p=[0.4, 0.4, 0.2]), random.random(2000) < 0.9
    extra = np.where(random.random(2000) < 0.3, "yes", "no")
    price = np.select([net == "a", net == "b"], [25.0, 50.0], 0.0) + 20 * phone
    price += 5 * (extra == "yes") + random.normal(0, 0.5, 2000)
    frame = pd.DataFrame({"net": net, "phone": np.where(phone, "yes", "no"), "extra": extra})
    frame["price"] = np.maximum(price, 18.0)

    (found,) = found_in(frame)

    assert set(found.relation.features) == {"price", "net", "phone", "extra"}
    assert 0.96 < found.share < 1
    assert found.relation.tolerance < 3


def test_a_relative_error_stays_relative_where_the_formula_is_0():
    frame = planted(error=0.01)
    frame.loc[::50, ["months", "total"]] = 0

    total = next(item.relation for item in found_in(frame) if item.relation.target == "total")

    assert total.relative
    assert total.tolerance < 0.08


def test_coefficients_are_short_decimals():
    frame = planted()
    frame["fahrenheit"] = 32 + 1.8 * (frame["age"] - 50)

    names = {item.relation.name for item in found_in(frame)}

    assert "fahrenheit = 1.8 * age - 58" in names
    assert "sum = net + tax + fee" in names
    assert "total = months * price" in names


@pytest.mark.parametrize("scale", [1e12, 1e15, 1e300])
def test_a_constant_within_the_noise_of_huge_numbers_is_left_out(scale):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.uniform(1, 50, (400, 2)) * scale, columns=["net", "tax"])
    frame["sum"], frame["twice"] = frame["net"] + frame["tax"], 2 * frame["net"]

    names = {item.relation.name for item in found_in(frame)}

    assert {"sum = net + tax", "twice = 2 * net"} <= names


def test_a_constant_within_the_noise_of_single_precision_is_left_out():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.uniform(1, 50, (400, 2)), columns=["net", "tax"])
    frame = frame.assign(sum=frame["net"] + frame["tax"]) * 1e36

    names = {item.relation.name for item in found_in(frame.astype(np.float32))}

    assert any(name.startswith("sum = net + tax (within") for name in names)


def test_a_constant_that_is_small_beside_the_columns_is_kept():
    paid = np.random.default_rng(0).uniform(1, 9, 400) * 1e9

    (found,) = found_in(pd.DataFrame({"paid": paid, "due": paid + 100}))

    assert found.relation.name == "due = paid + 100"


def test_a_rounded_ratio_is_written_as_a_ratio():
    random = np.random.default_rng(0)
    debt, income = random.uniform(100, 1000, 1000), random.uniform(1000, 9000, 1000)
    frame = pd.DataFrame({"debt": debt, "income": income, "share": np.round(debt / income, 3)})

    (found,) = found_in(frame)

    assert found.relation.name == "share = debt / income (within 0.0005)"
    assert found.enforced


def test_a_share_in_percent_has_its_factor():
    random = np.random.default_rng(0)
    part, whole = random.uniform(1, 50, 1000), random.uniform(60, 90, 1000)
    frame = pd.DataFrame({"part": part, "whole": whole, "percent": 100 * part / whole})

    names = [item.relation.name for item in found_in(frame) if item.relation.kind != "ordering"]

    assert names == ["percent = 100 * part / whole"]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_found_between_permuted_columns(seed):
    assert found_in(permuted(planted(n_rows=800), seed)) == ()


def test_columns_that_are_ordered_by_their_scale_alone_are_not_a_relation():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": random.integers(18, 90, 900), "weight": random.uniform(1e4, 1e6, 900)}
    )

    assert found_in(frame) == ()


def test_a_nearly_unique_column_determines_nothing():
    random = np.random.default_rng(0)
    ids = np.arange(900)
    ids[:20] = ids[20:40]
    frame = pd.DataFrame(
        {"id": [f"p{number:04}" for number in ids], "job": random.choice(list("abc"), 900)}
    )
    frame.loc[:19, "job"] = frame.loc[20:39, "job"].to_numpy()

    assert found_in(frame) == ()


def test_copies_of_rows_are_no_evidence():
    random = np.random.default_rng(0)
    few = pd.DataFrame({"a": random.choice(list("abcdefghij"), 60), "b": random.integers(0, 2, 60)})
    few["a"] = few["a"] + few["b"].astype(str)
    once = found_in(few)

    assert found_in(pd.concat([few] * 50, ignore_index=True)) == once


def test_what_others_imply_is_left_out():
    frame = planted()[["age", "months"]]
    frame = frame.assign(b=frame["age"] + 1, c=frame["age"] + 1, d=frame["age"] + frame["months"])

    names = [item.relation.name for item in found_in(frame)]

    assert len(names) == 3
    assert all(" = " in name for name in names)


def test_a_price_list_does_not_imply_what_its_services_have_to_do_with_each_other():
    found = found_in(services())

    assert described(found) == SERVICES
    assert all(item.enforced for item in found)


def test_dates_are_ordered_with_dates_only():
    random = np.random.default_rng(0)
    start = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, 800), unit="D")
    end = start + pd.to_timedelta(random.integers(0, 500, 800), unit="D")
    frame = pd.DataFrame({"start": start, "end": end, "n": random.integers(0, 9, 800)})

    assert [item.relation.name for item in found_in(frame)] == ["start <= end"]


def test_a_rare_special_number_goes_with_a_missing_cell():
    random = np.random.default_rng(0)
    tenure = random.integers(0, 73, 3000)
    tenure[tenure == 0] = 1
    tenure[:14] = 0
    total = np.where(tenure == 0, np.nan, random.uniform(20, 5000, 3000))

    frame = pd.DataFrame({"tenure": tenure, "total": total, "age": random.integers(18, 90, 3000)})

    names = [item.relation.name for item in found_in(frame)]

    assert names == ["tenure = 0 if and only if total is missing"]


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_training_rows_changes_nothing(seed):
    frame = planted(n_rows=900, error=0.01)

    assert found_in(frame.sample(frac=1, random_state=seed)) == found_in(frame)


def test_a_search_for_relations_can_be_cancelled():
    rows = Schema.learn_rows(planted(n_rows=200))

    with cancellable() as cancellation:
        cancellation.cancel()
        with pytest.raises(CancelledError):
            find_relations(rows)


def test_few_rows_suggest_nothing():
    assert found_in(planted(n_rows=30)) == ()


columns = st.sampled_from(["number", "copy", "sum", "level", "holed", "constant"])


@settings(max_examples=40, deadline=None)
@given(st.lists(columns, min_size=1, max_size=6), st.integers(40, 120), st.integers(0, 2**32 - 1))
def test_no_training_row_breaks_what_is_enforced(kinds, n_rows, seed):
    random = np.random.default_rng(seed)
    made: dict[str, np.ndarray] = {"first": random.integers(0, 9, n_rows).astype(float)}
    for at, kind in enumerate(kinds):
        last = list(made.values())[-1]
        numbers = last if last.dtype.kind == "f" else random.normal(size=n_rows)
        made[f"{kind}{at}"] = {
            "number": random.normal(size=n_rows),
            "copy": numbers * 2,
            "sum": numbers + made["first"],
            "level": np.where(numbers > 0, "up", "down"),
            "holed": np.where(random.random(n_rows) < 0.2, np.nan, numbers),
            "constant": np.ones(n_rows),
        }[kind]
    frame = pd.DataFrame(made)

    for item in found_in(frame):
        assert item.relation.holds(frame).mean() == item.share
        assert not item.enforced or item.relation.holds(frame).all()
