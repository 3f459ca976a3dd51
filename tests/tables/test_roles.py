"""Which columns can change, and who can act on them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import MCCE, Schema, SchemaError

BANK = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2), "debt": [3, 7] * 10})


def score(frame):
    return frame["salary"] / 100


def explainer(**settings):
    return MCCE(score, (0.7, 1.0), random_state=0, **settings)


def test_mutable_is_the_other_way_to_say_immutable():
    named = explainer(mutable=["salary"]).fit(BANK)
    listed = explainer(immutable=["age", "debt"]).fit(BANK)

    assert [f.immutable for f in named.schema_.features] == [True, False, True]
    pd.testing.assert_frame_equal(named.explain(BANK).frame, listed.explain(BANK).frame)


@pytest.mark.parametrize(
    "mutable", [("salary",), {"salary"}, pd.Index(["salary"]), np.array(["salary"])]
)
def test_mutable_names_may_come_in_any_container(mutable):
    assert Schema.learn(BANK, mutable=mutable).mutable.tolist() == [1]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"mutable": "salary"}, r"got 'salary'. Write mutable=\['salary'\]"),
        ({"mutable": ["Salary"]}, r"mutable names columns that are not in the data: \['Salary'\]"),
        ({"mutable": []}, "mutable names no column"),
        ({"mutable": ["debt"], "immutable": ["age"]}, "both are given: .*Pass one of them"),
    ],
)
def test_a_mutable_that_cannot_be_is_an_error(given, says):
    with pytest.raises(SchemaError, match=says):
        explainer(**given).fit(BANK)


def test_mutable_is_saved_and_loaded(tmp_path):
    fitted = explainer(mutable=["salary"]).fit(BANK)

    fitted.save(tmp_path / "loans.mcce")
    loaded = mcce.load(tmp_path / "loans.mcce", score)

    assert loaded.mutable == ["salary"]
    pd.testing.assert_frame_equal(loaded.explain(BANK).frame, fitted.explain(BANK).frame)


def test_relax_tries_the_columns_that_mutable_leaves_out():
    fitted = explainer(mutable=["debt"]).fit(BANK)

    table = fitted.relax(BANK.head(3), BANK)

    lifted = table[table["kind"] == "immutable"].groupby("lifted")["answered"].all()
    assert lifted.to_dict() == {"age": False, "salary": True}


def test_mutable_cannot_change_after_fit():
    fitted = explainer(mutable=["salary"]).fit(BANK).set_params(mutable=["debt"])

    with pytest.raises(mcce.NotFittedError, match="mutable was changed after fit"):
        fitted.explain(BANK)
