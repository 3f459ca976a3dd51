"""The first of several answers is the one you get alone; nothing returned could be undone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE
from mcce import constraints as c
from searches import bounded, explain

WALKS = ["sparse", "near", "balanced", "plausible"]
RULES = [
    c.derived("total", "months * price"),
    c.together("plan", "device"),
    c.relation("affordable", "total <= 4000"),
]


def customers(n, seed):
    chance = np.random.default_rng(seed)
    plan = chance.choice(["basic", "plus", "max"], n)
    frame = pd.DataFrame(
        {
            "plan": plan,
            "device": np.where(plan == "basic", "none", chance.choice(["phone", "tablet"], n)),
            "months": chance.integers(1, 40, n),
            "price": chance.integers(10, 100, n),
            "visits": chance.poisson(3, n),
            "age": chance.integers(20, 80, n),
        }
    )
    return frame.assign(total=frame["months"] * frame["price"])


def score(frame):
    value = frame["total"] / 2000 + (frame["plan"] == "max") + (frame["device"] == "phone") * 0.7
    return np.asarray(value + frame["visits"] / 6 - frame["price"] / 200, dtype=float)


def fitted(search, **settings):
    model = MCCE(score, (2.2, 99), immutable=["age"], constraints=RULES, random_state=0)
    return model.set_params(search=search, **settings).fit(customers(400, 0))


PEOPLE = customers(60, 1)
REJECTED = PEOPLE[score(PEOPLE) < 2.2].head(15)


@pytest.mark.slow
@pytest.mark.parametrize("search", [*WALKS, "paper", "fast", "exact"])
def test_the_first_of_any_number_of_answers_is_the_one_you_get_alone(search):
    model = fitted(search)
    alone = explain(model, REJECTED).frame

    for n_counterfactuals in (2, 3, 4):
        several = explain(model.set_params(n_counterfactuals=n_counterfactuals), REJECTED).frame
        first = several[several.index.get_level_values("rank") == 1]
        pd.testing.assert_frame_equal(first, alone)


@pytest.mark.parametrize("search", WALKS)
def test_no_action_can_be_undone_with_what_follows_and_what_goes_with_it(search):
    model = fitted(search, n_counterfactuals=3)
    least = bounded(search).min_plausibility

    result = explain(model, REJECTED)

    assert len(result.frame) > 15
    for (label, _), row in result.frame.iterrows():
        own = REJECTED.loc[label]
        for unit in (["plan", "device"], ["months"], ["price"], ["visits"]):
            back = row.copy()
            back[unit] = own[unit]
            back["total"] = back["months"] * back["price"]
            names = ["plan", "device", "months", "price", "visits"]
            if back[names].equals(row[names]) or back[names].equals(own[names]):
                continue
            cells = pd.DataFrame([back]).astype(REJECTED.dtypes)
            good = score(cells)[0] >= 2.2 and back["total"] <= 4000
            good &= strangeness(model, cells)[1] >= least or (
                strangeness(model, cells)[0] <= strangeness(model, REJECTED.loc[[label]])[0]
            )
            assert not good, (label, unit)


def strangeness(model, rows):
    encoded = model.schema_.encode(rows)
    assessed = model.plausibility_.assess(encoded.descent, encoded.all_numbers)
    return assessed.strangeness[0], assessed.p_value[0]
