"""The plausibility of any rows, by a fitted explainer."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mcce
from bank import bank, score
from mcce import MCCE, NotFittedError
from mcce.candidates import CandidateRows
from mcce.postprocess.filters import IsPlausible
from mcce.tables.schema import OWN

PEOPLE = bank(40, seed=1).set_index(pd.Index(range(100, 140), name="person"))


@cache
def explainer() -> MCCE:
    search = MCCE(score, (0.8, 10), immutable=["sex"], search="balanced", random_state=0)
    return search.fit(bank(600))


def test_plausibility_keeps_the_index_and_the_kind_of_frame():
    found = explainer().plausibility(PEOPLE)
    plain = PEOPLE.reset_index(drop=True).astype({"education": str})
    in_polars = explainer().plausibility(pl.from_pandas(plain))

    assert list(found.columns) == ["plausibility"]
    pd.testing.assert_index_equal(found.index, PEOPLE.index)
    assert found["plausibility"].between(0, 1, inclusive="right").all()
    assert isinstance(in_polars, pl.DataFrame)
    assert in_polars["plausibility"].to_list() == found["plausibility"].tolist()


def test_plausibility_depends_on_no_other_row():
    one_by_one = [explainer().plausibility(PEOPLE.iloc[[at]]) for at in range(len(PEOPLE))]

    pd.testing.assert_frame_equal(pd.concat(one_by_one), explainer().plausibility(PEOPLE))


def test_a_saved_explainer_gives_the_same_plausibility(tmp_path):
    explainer().save(tmp_path / "saved.mcce")
    loaded = mcce.load(tmp_path / "saved.mcce", score)

    pd.testing.assert_frame_equal(loaded.plausibility(PEOPLE), explainer().plausibility(PEOPLE))


def test_the_search_of_the_paper_learns_no_plausibility():
    paper = MCCE(score, (0.8, 10), random_state=0).fit(bank(100))

    with pytest.raises(NotFittedError, match="Fit again"):
        paper.plausibility(PEOPLE)


def test_the_more_is_required_the_fewer_rows_are_plausible():
    fitted = explainer()
    rows, n_mutable = fitted.schema_.encode(PEOPLE), fitted.schema_.mutable.size
    chance = np.random.default_rng(0)
    n_codes = [fitted.schema_.features[at].n_codes for at in fitted.schema_.mutable]
    codes = np.array([chance.integers(0, n, 400) for n in n_codes], dtype=np.int32)
    codes[chance.random(codes.shape) < 0.7] = OWN
    selected = CandidateRows(rows, np.arange(400) % len(PEOPLE), codes, rows.tables)
    assert len(codes) == n_mutable

    kept = [
        IsPlausible(fitted.plausibility_, least).keeps(selected)
        for least in (0.0, 0.001, 0.01, 0.05, 0.25, 0.5, 0.9, 0.999)
    ]

    assert kept[0].all()
    for more, fewer in pairwise(kept):
        assert (more >= fewer).all()
    assert kept[2].sum() > kept[4].sum() > kept[6].sum() > 0
