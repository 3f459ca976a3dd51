"""Tables of many columns, of which the predictor looks at few."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, NotFittedError, TreeChain
from searches import altered, assert_same, explain, slow

P, IMMUTABLE = 60, ["x03", "x17"]


@cache
def wide_table(n_rows):
    """Columns that six hidden factors explain: numbers, some missing, and levels."""
    chance = np.random.default_rng(0)
    factors = chance.normal(size=(6, n_rows))
    columns = {}
    for at in range(P):
        hidden = factors[at % 6] + 0.6 * chance.normal(size=n_rows)
        numbers = np.where(chance.random(n_rows) < 0.1 * (at % 7 == 5), np.nan, hidden.round(1))
        levels = pd.Categorical(np.array(list("abcd"))[np.digitize(hidden, [-1, 0, 1])])
        columns[f"x{at:02d}"] = levels if at % 7 == 3 else numbers
    return pd.DataFrame(columns)


def score(rows):
    total = rows["x02"] + rows["x07"] - rows["x13"] + 0.8 * (rows["x10"] == "d") - 0.8
    return 1 / (1 + np.exp(-total.to_numpy(np.float64)))


def train():
    return wide_table(500).head(400)


def people():
    others = wide_table(500).iloc[400:]
    return others[score(others) < 0.4].head(10).reset_index(drop=True)


@cache
def fitted(search):
    """One fit for both searches beyond the paper's, which learn the same."""
    if search == "sparse":
        return altered(fitted("balanced"), search=search)
    explainer = MCCE(score, (0.5, 1), immutable=IMMUTABLE, search=search, random_state=0)
    return explainer.fit(train())


@pytest.mark.parametrize("search", ["balanced", *slow("sparse", "paper")])
def test_every_search_answers(search):
    result = explain(fitted(search), people())

    assert (result.people["status"] == "answered").all()
    assert (score(result.frame) >= 0.5).all()
    assert not result.changes()["feature"].isin(IMMUTABLE).any()
    if search in ("sparse", "balanced"):
        assert result.n_evaluated <= 15 * len(people())
        assert result.measures["sparsity"].mean() <= 2.5


@pytest.mark.slow
def test_neither_the_order_of_rows_nor_company_nor_threads_change_the_answers():
    expected = explain(fitted("balanced"), people())

    mixed = train().sample(frac=1.0, random_state=1)
    other = altered(fitted("balanced"), n_jobs=4).fit(mixed)

    assert_same(explain(other, people()), expected)
    alone = explain(other, people().iloc[[3]])
    pd.testing.assert_frame_equal(alone.frame, expected.frame[expected.owner == 3])


def test_the_paper_s_search_needs_trees_that_consider_all_columns(tmp_path):
    explainer = altered(fitted("balanced"), search="paper")
    said = r"table with 60 columns considers 16 .* Fit again"

    with pytest.raises(NotFittedError, match=said):
        explainer.explain(people())
    with pytest.raises(NotFittedError, match=said):
        explainer.save(tmp_path / "wide.mcce")
    assert not list(tmp_path.iterdir())


def test_trees_that_the_user_limited_serve_the_paper_s_search_too(tmp_path):
    given = {"immutable": IMMUTABLE, "generator": TreeChain(max_inputs=3), "random_state": 0}
    paper, balanced = (
        MCCE(score, (0.5, 1), search=search, n_samples=100, **given).fit(train())
        for search in ("paper", "balanced")
    )
    explainer = altered(balanced, search="paper")

    found, expected = (explain(one, people()) for one in (explainer, paper))
    pd.testing.assert_frame_equal(found.frame, expected.frame)
    explainer.save(tmp_path / "wide.mcce")


@pytest.mark.slow
def test_p_values_of_real_rows_are_as_frequent_as_they_say():
    table = wide_table(3000)
    learned, others = table.head(1500), table.iloc[1500:]
    explainer = MCCE(score, (0.5, 1), search="balanced", random_state=0).fit(learned)

    p_value = explainer.plausibility(others[score(others) >= 0.5])["plausibility"]

    assert 0.02 < np.mean(p_value <= 0.05) < 0.09


@pytest.mark.slow
def test_thousands_of_columns_are_explained():
    chance = np.random.default_rng(0)
    wide = pd.DataFrame(chance.normal(size=(20, 2000))).add_prefix("x")
    explainer = MCCE(lambda f: 1.0 * (f["x0"] > 0), (0.5, 1), search="paper", n_samples=10)

    result = explain(explainer.fit(wide), wide[wide["x0"] < 0].head(1))

    assert len(result.frame) == 1
