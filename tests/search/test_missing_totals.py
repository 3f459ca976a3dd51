"""Computed columns whose own value is missing, and formulas and columns that stand in the way."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, McceWarning
from mcce import constraints as c

CHANCE = np.random.default_rng(0)
MONTHS = np.where(CHANCE.random(900) < 0.03, 0, CHANCE.integers(1, 60, 900))
BILLS = pd.DataFrame({"months": MONTHS, "price": CHANCE.integers(20, 90, 900)})
# Nobody has paid anything in the first month.
BILLS["total"] = (BILLS["months"] * BILLS["price"]).astype(float).where(BILLS["months"] > 0)
NEW = BILLS[BILLS["months"] == 0].head(10)


def loyal(frame):
    return frame["months"] / 60


@pytest.mark.parametrize("search", ["sparse", "balanced", "near", "fast", "exact"])
@pytest.mark.parametrize("rules", [[], [c.derived("total", "months * price")]])
def test_a_missing_total_follows_once_there_is_something_to_compute(search, rules):
    explainer = MCCE(loyal, (0.5, 1), search=search, constraints=rules, random_state=0)

    result = explainer.fit(BILLS).explain(NEW)

    assert len(result.frame) == len(NEW)
    assert (result.frame["total"] == result.frame["months"] * result.frame["price"]).all()
    assert (result.changes().query("feature == 'total'")["kind"] == "consequence").all()


@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_numbers_beyond_those_that_are_exact_follow_only_as_floats(dtype):
    units = CHANCE.integers(1, 13, 300)
    frame = pd.DataFrame({"units": units, "wei": (units * 10**16).astype(dtype)})
    rules = [c.derived("wei", "units * 10000000000000000")]
    explainer = MCCE(lambda rows: rows["units"], (11, 99), search="sparse", random_state=0)

    result = explainer.set_params(constraints=rules).fit(frame).explain(frame[units < 9].head(5))

    assert len(result.frame) == (5 if dtype == "float64" else 0)


def test_a_formula_that_does_not_hold_gives_a_warning():
    explainer = MCCE(loyal, (0.5, 1), constraints=[c.derived("total", "months + price")])

    with pytest.warns(McceWarning, match=r"total.*holds in \d+ of 900 training rows"):
        explainer.fit(BILLS)


def test_an_immutable_total_gives_a_warning_that_it_blocks_actions():
    explainer = MCCE(loyal, (0.5, 1), immutable=["total"], search="sparse")

    with pytest.warns(McceWarning, match=r"'total' is computed from .*'months'.* but is immutable"):
        explainer.fit(BILLS)
