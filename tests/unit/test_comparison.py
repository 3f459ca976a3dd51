"""Two models compared by their answers: whose decision changes, whose answers no longer hold."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, ParameterError, SchemaError, compare_models
from mcce.report import languages, write_comparison
from report_pages import Page
from searches import explain


@cache
def bank():
    random = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "sex": pd.Categorical(random.choice(["f", "m"], 400)),
            "salary": random.integers(100, 400, 400),
            "debt": random.integers(0, 100, 400),
        }
    )


@cache
def explainer(least, debt_counts=False):
    def score(rows):
        return rows["salary"] - (5 * rows["debt"] if debt_counts else 0) - least

    return MCCE(score, (0.0, 1e9), immutable=["sex"], search="near", random_state=0).fit(bank())


def people():
    return bank().iloc[:80].set_axis([f"p{k}" for k in range(80)])


def test_the_counts_are_those_of_the_decisions_and_answers_themselves():
    old, new = explainer(300), explainer(330)
    result = explain(old, people())

    compared = compare_models(old, new, people(), groups=["sex"])

    salary = people()["salary"]
    table = compared.people
    assert table.index.equals(people().index)
    assert (table["old_desired"] == (salary >= 300)).all()
    assert (table["new_desired"] == (salary >= 330)).all()
    assert (table["new_score"] == salary - 330).all()
    answered = result.frame.index.get_level_values(0)
    holds = result.frame["salary"].to_numpy() >= 330
    assert table["answered"].to_numpy().nonzero()[0].tolist() == result.owner.tolist()
    assert table.loc[answered, "holds"].tolist() == holds.tolist()
    everybody, *by_sex = compared.groups.to_dict("records")
    assert (everybody["n"], everybody["n_gained"]) == (80, 0)
    assert everybody["n_lost"] == int(((salary >= 300) & (salary < 330)).sum())
    assert everybody["n_answered"] == len(holds)
    assert everybody["broken"] == compared.broken == 1 - holds.mean()
    assert everybody["broken_low"] <= everybody["broken"] <= everybody["broken_high"]
    assert [row["level"] for row in by_sex] == ["f", "m"]
    for name in ("n", "n_lost", "n_answered"):
        assert sum(row[name] for row in by_sex) == everybody[name]


def test_what_plans_ask_for_is_compared_among_people_with_a_plan_under_both():
    compared = compare_models(explainer(200), explainer(-100, debt_counts=True), people())

    table = compared.features.set_index("feature")
    assert table["old_share"].to_dict() == {"salary": 1.0, "debt": 0.0}
    assert table.loc["debt", "new_share"] > 0
    assert table.loc["debt", "new_change"] < 0 < table.loc["salary", "old_change"]
    assert np.isnan(table.loc["debt", "old_change"])


def test_answers_of_earlier_are_taken_as_they_were_given():
    old, new = explainer(300), explainer(330)
    given = old.finalize(explain(old, people()), rounding={"salary": 50})

    compared = compare_models(old, new, people(), answers=given)

    holds = given.frame["salary"].to_numpy() >= 330
    assert compared.broken == 1 - holds.mean()


def test_the_same_model_twice_breaks_nothing():
    compared = compare_models(explainer(300), explainer(300), people())

    assert compared.broken == 0.0
    assert (compared.features["old_share"] == compared.features["new_share"]).all()
    assert "0.0% of" in repr(compared)


def test_people_who_all_have_the_desired_decision_have_no_share():
    compared = compare_models(explainer(100), explainer(90), people())

    assert np.isnan(compared.broken)
    assert compared.features.empty


def test_what_does_not_fit_is_refused():
    old, new = explainer(300), explainer(330)

    with pytest.raises(ParameterError, match="new must be a fitted MCCE, got function"):
        compare_models(old, lambda rows: rows, people())
    with pytest.raises(ParameterError, match="answers must be what explain returned"):
        compare_models(old, new, people(), answers=people())
    with pytest.raises(SchemaError, match=re.escape("answers are those of other people")):
        compare_models(old, new, people(), answers=explain(old, people().head(3)))
    with pytest.raises(SchemaError, match=r"groups names 'sexx'.*Did you mean 'sex'"):
        compare_models(old, new, people(), groups=["sexx"])


@pytest.mark.parametrize("language", languages())
def test_a_page_says_what_the_tables_say_in_every_language(tmp_path, language):
    compared = compare_models(explainer(300), explainer(330), people(), groups=["sex"])
    labels = {"language": language, "features": {"sex": {"levels": {"f": "<women>"}}}}

    write_comparison(compared, tmp_path / "models.html", labels, title="Old & new")

    page = Page((tmp_path / "models.html").read_text(encoding="utf-8"))
    row = compared.groups.iloc[0]
    assert page.faults == []
    assert "Old & new" in page.text
    assert "<women>" in page.text
    assert str(round(row["broken"] * row["n_answered"])) in page.text
    assert "p7" not in page.text


def test_a_page_without_answers_says_so(tmp_path):
    compared = compare_models(explainer(100), explainer(90), people())

    write_comparison(compared, tmp_path / "models.html")

    assert "Nobody has an answer" in (tmp_path / "models.html").read_text(encoding="utf-8")
    with pytest.raises(ParameterError, match="comparison must be what compare_models returned"):
        write_comparison(None, tmp_path / "none.html")
    with pytest.raises(ParameterError, match="title must be a text"):
        write_comparison(compared, tmp_path / "none.html", title=3)
