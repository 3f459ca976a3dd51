"""Numbers given everything else: relations that are kept and broken."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import Schema
from mcce.plausibility.conditionals import Conditionals, varying
from mcce.plausibility.model import PlausibilityModel, n_calibration


def bills(n_rows, seed=0):
    """The total is the product of months and price, to one percent."""
    chance = np.random.default_rng(seed)
    months, price = chance.integers(6, 72, n_rows), chance.integers(20, 120, n_rows)
    return pd.DataFrame(
        {
            "months": months,
            "price": price.astype(float),
            "total": (months * price * (1 + 0.01 * chance.standard_normal(n_rows))).round(2),
            "plan": np.where(price > 80, "large", np.where(price > 40, "usual", "small")),
        }
    )


def learned(frame, n_jobs=1, immutable=()):
    rows = Schema.learn_rows(frame, immutable=list(immutable))
    accepted = np.ones(len(frame), dtype=bool)
    return rows.schema, PlausibilityModel().fit(rows, accepted, rows.schema.mutable, n_jobs)


def assess(schema, model, frame):
    rows = schema.encode(frame)
    return model.assess(rows.descent, rows.all_numbers)


@pytest.mark.parametrize("immutable", [(), ("months", "price")])
def test_rows_that_break_a_planted_product_are_implausible_and_others_are_not(immutable):
    schema, model = learned(bills(6000), immutable=immutable)
    fresh = bills(1000, seed=1)

    kept = assess(schema, model, fresh).p_value
    for factor in (0.7, 1.3):
        broken = assess(schema, model, fresh.assign(total=factor * fresh["total"])).p_value
        assert (broken < 0.01).mean() > 0.9
    assert (kept < 0.01).mean() < 0.025


def test_a_change_that_a_total_does_not_follow_is_implausible():
    schema, model = learned(bills(6000))
    fresh = bills(500, seed=1)
    fresh = fresh[fresh["months"].between(20, 40)]

    found = assess(schema, model, fresh.assign(months=fresh["months"] + 30)).p_value

    assert (found < 0.01).mean() > 0.9


def test_the_further_off_a_number_is_the_stranger_is_the_row():
    schema, model = learned(bills(3000))
    row = bills(1, seed=7).iloc[[0] * 4]
    found = assess(schema, model, row.assign(total=row["total"] * [1.0, 3.0, 5.0, 9.0]))

    assert (np.diff(found.strangeness) > 0).all()
    assert (np.diff(found.p_value) <= 0).all()


def test_shares_of_small_p_values_are_what_they_say():
    found = []
    for seed in range(10):
        schema, model = learned(bills(1500, seed=seed))
        found.append(assess(schema, model, bills(1000, seed=100 + seed)).p_value)

    for level in (0.01, 0.05, 0.25):
        # Both the 500 rows held out and the 1000 unseen ones are random, in each of ten fits.
        margin = 3 * np.sqrt(level * (1 / 500 + 1 / 1000) / 10)
        assert abs((np.concatenate(found) <= level).mean() - level) < margin


def test_the_order_of_rows_threads_and_batches_change_no_bit():
    frame, fresh = bills(900), bills(60, seed=1)

    expected = assess(*learned(frame), fresh)
    schema, other = learned(frame.sample(frac=1.0, random_state=3), n_jobs=2)
    one_by_one = [assess(schema, other, fresh.iloc[[at]]) for at in range(len(fresh))]

    for name in ("p_value", "strangeness"):
        found = np.concatenate([getattr(one, name) for one in one_by_one])
        assert np.array_equal(found, getattr(expected, name))


def test_a_missing_number_is_judged_by_whether_it_should_be_missing():
    frame, fresh = bills(4000), bills(400, seed=1)
    for table in (frame, fresh):
        table["total"] = table["total"].where(table["plan"] != "small")
    schema, model = learned(frame)
    large, small = fresh[fresh["plan"] == "large"], fresh[fresh["plan"] == "small"]

    assert (assess(schema, model, fresh).p_value < 0.05).mean() < 0.1
    assert (assess(schema, model, large.assign(total=np.nan)).p_value < 0.01).mean() > 0.9
    assert (assess(schema, model, small.assign(total=2000.0)).p_value < 0.01).mean() > 0.9


def test_numbers_that_are_the_same_in_all_rows_and_levels_are_left_out():
    frame = bills(50).assign(year=2020, gone=np.nan)
    rows = Schema.learn_rows(frame, kinds={"gone": "numeric"})

    assert varying(rows.all_numbers) == [0, 1, 2]
    assert [one.position for one in Conditionals().fit(rows).models_] == [0, 1, 2]


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_numbers_of_any_size_have_finite_strangeness(scale):
    frame = bills(300)
    frame["total"] *= scale
    schema, model = learned(frame)

    found = assess(schema, model, frame.assign(total=frame["total"].to_numpy()[::-1]))

    assert np.isfinite(found.strangeness).all()
    assert found.p_value.min() < 0.05


@pytest.mark.parametrize(
    ("n_accepted", "held_out"), [(1, 0), (2, 1), (150, 75), (450, 200), (900, 300), (10**6, 5000)]
)
def test_a_third_of_the_accepted_rows_is_held_out(n_accepted, held_out):
    assert n_calibration(n_accepted) == held_out
