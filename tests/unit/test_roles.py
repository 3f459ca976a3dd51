"""Which columns can change, and who can act on them."""

from __future__ import annotations

import pandas as pd
import pytest

import mcce
from mcce import MCCE, SchemaError

BANK = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2), "debt": [3, 7] * 10})
ROLES = {"salary": "action", "debt": "ours", "age": "past"}


def score(frame):
    return frame["salary"] / 100


def explainer(**settings):
    return MCCE(score, (0.7, 1.0), n_samples=50, random_state=0, **settings)


def test_mutable_is_the_other_way_to_say_immutable():
    named = explainer(mutable=["salary"]).fit(BANK)
    listed = explainer(immutable=["age", "debt"]).fit(BANK)

    assert [f.immutable for f in named.schema_.features] == [True, False, True]
    pd.testing.assert_frame_equal(named.explain(BANK).frame, listed.explain(BANK).frame)
    with pytest.raises(mcce.NotFittedError, match="mutable was changed after fit"):
        named.set_params(mutable=["debt"]).explain(BANK)


def test_mutable_and_roles_are_saved_and_loaded(tmp_path):
    fitted = explainer(mutable=["salary"], roles=ROLES).fit(BANK)

    fitted.save(tmp_path / "loans.mcce")
    loaded = mcce.load(tmp_path / "loans.mcce", score)

    assert (loaded.mutable, loaded.roles) == (["salary"], ROLES)
    pd.testing.assert_frame_equal(loaded.explain(BANK).changes(), fitted.explain(BANK).changes())


def test_relax_tries_the_columns_that_mutable_leaves_out():
    fitted = explainer(mutable=["debt"]).fit(BANK)

    table = fitted.relax(BANK.head(3), BANK)

    lifted = table[table["kind"] == "immutable"].groupby("lifted")["answered"].all()
    assert lifted.to_dict() == {"age": False, "salary": True}


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_changes_say_who_would_have_to_act(kind):
    bank = BANK if kind == "pandas" else pytest.importorskip("polars").from_pandas(BANK)
    made = MCCE(lambda rows: rows["salary"].to_numpy() / 100, (0.7, 1.0), roles=ROLES)
    result = made.set_params(n_samples=50, random_state=0).fit(bank).explain(bank[:3])

    changes = result.changes()

    actor = {"salary": "person", "debt": "us", "age": "nobody"}
    assert list(changes["actor"]) == [actor[name] for name in changes["feature"]]
    assert len(changes) > 2


def test_a_column_without_a_role_has_no_actor():
    result = explainer(mutable=["salary"], roles={"age": "past"}).fit(BANK).explain(BANK.head(3))

    assert set(result.changes()["actor"]) == {""}


def test_roles_change_no_answer_and_may_be_given_after_fit():
    fitted = explainer().fit(BANK)
    before = fitted.explain(BANK)

    after = fitted.set_params(roles=ROLES).explain(BANK)

    assert "actor" not in before.changes()
    pd.testing.assert_frame_equal(before.frame, after.frame)
    assert after.roles == ROLES


def test_roles_that_cannot_be_are_an_error():
    fitted = explainer().fit(BANK)

    for roles, says in [
        (["salary"], 'roles must map column names to "action", "ours" or "past"'),
        ({"Salary": "action"}, r"roles names columns that are not in the data: \['Salary'\]"),
        ({"salary": "mine"}, r"roles\['salary'\] must be .*, got 'mine'"),
        ({"salary": None}, r"roles\['salary'\] must be .*, got None"),
    ]:
        with pytest.raises(SchemaError, match=says):
            explainer(roles=roles).fit(BANK)
        with pytest.raises(SchemaError, match=says):
            fitted.set_params(roles=roles).explain(BANK)
