"""Tables of many columns: every search answers, whatever the order of rows, also from a file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, NotFittedError, load
from wide import wide_case

# Nobody in the training rows has the same immutable numbers, which is worth a warning.
pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")
CASE = wide_case(60, 600, 6)
SEARCHES = ("balanced", "sparse", "plausible", "near", "fast", "paper")


def explainer_of(search, **settings):
    given = {"immutable": CASE.immutable, "search": search, "random_state": 0} | settings
    return MCCE(CASE.predictor, CASE.desired, **given)


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_answers(search):
    result = explainer_of(search).fit(CASE.train).explain(CASE.factuals)

    assert not result.missing.shape[0]
    assert CASE.decide(result.frame).all()
    assert not result.changes()["feature"].isin(CASE.immutable).any()


def test_neither_the_order_of_rows_nor_threads_change_the_answers():
    expected = explainer_of("balanced", n_jobs=1).fit(CASE.train).explain(CASE.factuals)

    mixed = CASE.train.sample(frac=1.0, random_state=1)
    result = explainer_of("balanced", n_jobs=4).fit(mixed).explain(CASE.factuals)

    pd.testing.assert_frame_equal(result.frame, expected.frame)
    pd.testing.assert_frame_equal(result.measures, expected.measures)


def test_the_paper_s_search_needs_trees_that_consider_all_columns():
    explainer = explainer_of("balanced").fit(CASE.train).set_params(search="paper")

    with pytest.raises(NotFittedError, match=r"table with 60 columns considers 16 .* Fit again"):
        explainer.explain(CASE.factuals)


def test_trees_that_consider_some_columns_are_not_saved_for_the_paper_s_search(tmp_path):
    explainer = explainer_of("balanced").fit(CASE.train).set_params(search="paper")

    with pytest.raises(NotFittedError, match=r"table with 60 columns considers 16 .* Fit again"):
        explainer.save(tmp_path / "wide.mcce")

    assert not list(tmp_path.iterdir())


def test_a_loaded_explainer_is_the_same(tmp_path):
    explainer = explainer_of("balanced").fit(CASE.train)
    explainer.save(tmp_path / "wide.mcce")

    loaded = load(tmp_path / "wide.mcce", CASE.predictor)

    assert loaded.generator_.get_params() == explainer.generator_.get_params()
    expected, result = (one.explain(CASE.factuals) for one in (explainer, loaded))
    pd.testing.assert_frame_equal(result.frame, expected.frame)
    pd.testing.assert_frame_equal(result.measures, expected.measures)


def test_p_values_of_real_rows_are_as_frequent_as_they_say():
    case = wide_case(40, 4000, 10)
    train, others = case.train.head(2000), case.train.iloc[2000:]
    explainer = MCCE(case.predictor, case.desired, immutable=case.immutable, search="balanced")

    explainer.set_params(random_state=0).fit(train)

    accepted = others[case.decide(others)]
    encoded = explainer.schema_.encode(accepted)
    p_value = explainer.plausibility_.assess(encoded.descent, encoded.all_numbers).p_value
    assert 0.02 < np.mean(p_value <= 0.05) < 0.09
