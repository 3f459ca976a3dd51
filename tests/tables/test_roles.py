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


ROLES = {"salary": "action", "debt": "ours", "age": "past"}


def test_changes_say_who_would_have_to_act():
    result = explainer(roles=ROLES, n_samples=50).fit(BANK).explain(BANK.head(3))

    changes = result.changes()

    actor = {"salary": "person", "debt": "us", "age": "nobody"}
    assert changes["actor"].tolist() == [actor[name] for name in changes["feature"]]
    assert len(changes) > 2


def test_a_column_without_a_role_has_no_actor():
    result = explainer(mutable=["salary"], roles={"age": "past"}).fit(BANK).explain(BANK.head(3))

    assert set(result.changes()["actor"]) == {""}


def test_without_roles_changes_are_as_before():
    result = explainer().fit(BANK).explain(BANK.head(3))

    assert "actor" not in result.changes()


def test_roles_change_no_answer_and_may_be_given_after_fit():
    fitted = explainer().fit(BANK)
    before = fitted.explain(BANK)

    after = fitted.set_params(roles=ROLES).explain(BANK)

    pd.testing.assert_frame_equal(before.frame, after.frame)
    assert after.roles == ROLES


def test_roles_come_in_other_kinds_of_frames():
    polars = pytest.importorskip("polars")
    made = MCCE(lambda rows: rows["salary"].to_numpy() / 100, (0.7, 1.0), roles=ROLES)

    result = (
        made.set_params(random_state=0)
        .fit(polars.from_pandas(BANK))
        .explain(polars.from_pandas(BANK))
    )

    assert set(result.changes()["actor"]) <= {"person", "us", "nobody"}
    assert "actor" in result.to_pandas().changes()


@pytest.mark.parametrize(
    ("roles", "says"),
    [
        (["salary"], 'roles must map column names to "action", "ours" or "past"'),
        ({"Salary": "action"}, r"roles names columns that are not in the data: \['Salary'\]"),
        ({"salary": "mine"}, r"roles\['salary'\] must be .*, got 'mine'"),
        ({"salary": None}, r"roles\['salary'\] must be .*, got None"),
    ],
)
def test_roles_that_cannot_be_are_an_error(roles, says):
    with pytest.raises(SchemaError, match=says):
        explainer(roles=roles).fit(BANK)
    with pytest.raises(SchemaError, match=says):
        explainer().fit(BANK).set_params(roles=roles).explain(BANK)


def test_roles_are_saved_and_loaded(tmp_path):
    explainer(roles=ROLES).fit(BANK).save(tmp_path / "loans.mcce")

    loaded = mcce.load(tmp_path / "loans.mcce", score)

    assert loaded.roles == ROLES
    assert "actor" in loaded.explain(BANK).changes()
