"""Answers keep the relations that hold in all training rows, unless they are ignored."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, NotFittedError, ParameterError, Search, load
from planted_relations import planted

COLUMNS = ["months", "price", "total", "plan", "device", "bill", "start", "end"]
SEARCHES = ["sparse", "balanced", "plausible", "near", "fast"]
pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")


def score(frame: pd.DataFrame) -> np.ndarray:
    value = frame["total"] / 4000 + frame["bill"] / 100 - frame["start"] / 100
    return np.asarray(1 / (1 + np.exp(1.2 - value)))


@pytest.fixture(scope="module")
def bank() -> pd.DataFrame:
    return planted(n_rows=600, error=0.01)[COLUMNS]


@pytest.fixture(scope="module")
def people(bank) -> pd.DataFrame:
    return bank[score(bank) < 0.5].head(12)


def fitted(bank, search="sparse", **parameters) -> MCCE:
    return MCCE(score, (0.5, 1.0), search=search, random_state=0, **parameters).fit(bank)


@pytest.mark.parametrize("search", SEARCHES)
def test_no_answer_breaks_an_enforced_relation(search, bank, people):
    explainer = fitted(bank, search)

    result = explainer.explain(people)

    assert len(result.frame)
    enforced = [item.relation for item in explainer.fitted_.relations if item.enforced]
    assert {"product", "linear", "ordering"} <= {relation.kind for relation in enforced}
    assert all(relation.holds(result.frame).all() for relation in enforced)


def test_the_table_has_a_row_of_plain_values_for_each_relation(bank):
    table = fitted(bank).relations_

    assert list(table.columns) == [
        "relation",
        "kind",
        "target",
        "features",
        "holds",
        "n_rows",
        "p_value",
        "tolerance",
        "relative",
        "enforced",
    ]
    assert (table["p_value"] < 1e-6).all()
    assert table.loc[table["kind"] == "product", "target"].tolist() == ["total"]
    assert table["features"].map(len).between(2, 5).all()


def test_the_papers_search_looks_for_no_relations(bank):
    explainer = fitted(bank, "paper")

    assert explainer.fitted_.relations is None
    with pytest.raises(AttributeError, match="other than the paper's"):
        _ = explainer.relations_


def test_a_relation_that_is_ignored_may_be_broken(bank, people):
    explainer = fitted(bank, "fast")
    table = explainer.relations_
    ignored = table.loc[table["kind"] == "product", "relation"].tolist()

    free = explainer.set_params(ignore_relations=ignored).explain(people)

    broken = {
        item.relation.name: (~item.relation.holds(free.frame)).mean()
        for item in explainer.fitted_.relations
        if item.enforced
    }
    assert broken.pop(ignored[0]) > 0
    assert not any(broken.values())


def test_ignoring_all_relations_learns_none(bank, people):
    explainer = fitted(bank, ignore_relations=True)

    assert explainer.fitted_.relations is None
    with pytest.raises(NotFittedError, match="Fit again"):
        explainer.set_params(ignore_relations=False).explain(people)


@pytest.mark.parametrize("wrong", ["total = months * price", 1, None, [3], {"a"}])
def test_ignoring_something_else_is_an_error(wrong, bank):
    with pytest.raises(ParameterError, match="ignore_relations must be True, False or a list"):
        fitted(bank, ignore_relations=wrong)


@pytest.mark.parametrize("search", [*SEARCHES, "exact"])
def test_ignoring_a_relation_that_was_not_found_is_an_error_of_fit(search, bank):
    with pytest.raises(ParameterError, match=r"did not find: .*total = 2"):
        fitted(bank.head(200), search, ignore_relations=["total = 2 * months"])


def test_ignoring_a_relation_after_fit_that_was_not_found_is_an_error(bank, people):
    explainer = fitted(bank).set_params(ignore_relations=["total = 2 * months"])

    with pytest.raises(ParameterError, match=r"did not find: .*total = 2"):
        explainer.explain(people)


def test_somebody_whose_own_row_breaks_a_relation_gets_an_answer(bank, people):
    odd = people.head(3).assign(end=people["start"].head(3) - 7)

    result = fitted(bank).explain(odd)

    own = odd["start"].iloc[0] - odd["end"].iloc[0]
    assert len(result.frame) == 3
    assert (result.frame["start"] - result.frame["end"] <= own).all()


def test_a_reason_names_the_relation_in_the_way(bank, people):
    train = bank.assign(total=bank["months"] * bank["price"])
    stuck = MCCE(
        score, (0.5, 1.0), immutable=["months", "price", "bill", "plan", "device"], search="fast"
    )

    result = stuck.set_params(random_state=0).fit(train).explain(people.assign(start=49, end=60))

    assert result.missing["reason"].str.contains("total = months * price", regex=False).any()


def test_columns_follow_the_relations_that_were_found(bank, people):
    exact = bank.assign(total=bank["months"] * bank["price"])

    result = fitted(exact).explain(people.assign(total=people["months"] * people["price"]))

    assert len(result.frame) == len(people)
    moved = result.frame["months"] * result.frame["price"]
    assert np.allclose(result.frame["total"], moved)


def test_a_search_without_consequences_ignores_what_was_found(bank):
    assert fitted(bank, Search.preset("sparse", consequences="none")).fitted_.relations is None


def test_answers_keep_what_few_training_rows_break():
    train = planted(n_rows=900, broken=0.01)[COLUMNS]
    explainer = fitted(train)
    good = train[score(train) < 0.5]
    usual = [item.relation for item in explainer.fitted_.relations]
    for relation in usual:
        good = good[relation.holds(good)]

    result = explainer.explain(good.head(12))

    assert not any(item.enforced for item in explainer.fitted_.relations)
    assert len(result.frame) == 12
    assert all(relation.holds(result.frame).all() for relation in usual)


def test_a_saved_explainer_keeps_its_relations(bank, people, tmp_path):
    explainer = fitted(bank)
    explainer.save(tmp_path / "bank.mcce")

    again = load(tmp_path / "bank.mcce", score)

    assert again.fitted_.relations == explainer.fitted_.relations
    assert again.relations_.equals(explainer.relations_)
    assert again.explain(people).frame.equals(explainer.explain(people).frame)
