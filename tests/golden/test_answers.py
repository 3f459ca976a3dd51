"""Answers of the paper's search on German Credit, to the bit, whatever is rebuilt around it.

``python tests/golden/repin.py`` writes the pinned files of this folder anew. That is right only
where answers are meant to change, and those of this module never are.
"""

from __future__ import annotations

import io

import pandas as pd
import pytest

from golden_cases import FOLDER, SITUATIONS, german, scorecard
from mcce import MCCE
from pins import HOW_SURE, assert_pinned, pinned, plain

ANSWERS, LIKELIHOODS, TABLE = (
    FOLDER / name for name in ("answers.jsonl", "log_likelihoods.jsonl", "german_credit.csv")
)
DENSITIES = ("plain", "missing", "own chain")


def table() -> str:
    """Two counterfactuals of a hundred people with their measures, floats in full."""
    explainer = MCCE(
        lambda frame: pd.Series(scorecard(frame), index=frame.index),
        (60, 100),
        immutable=["Purpose", "Age", "Sex"],
        search="paper",
        n_counterfactuals=2,
        random_state=2023,
    ).fit(german())
    result = explainer.explain(german()[scorecard(german()) < 60].head(100))
    return result.frame.join(result.measures.drop(columns=HOW_SURE)).to_csv(lineterminator="\n")


def likelihoods(name: str) -> list[float]:
    what = SITUATIONS[name]
    return [plain(number) for number in what.fitted("paper").log_likelihood(what.people())]


def test_a_table_of_answers_has_the_bytes_of_the_golden_file():
    answers, expected = table(), TABLE.read_text(encoding="utf-8")

    if answers != expected:
        tables = [pd.read_csv(io.StringIO(text)) for text in (answers, expected)]
        pd.testing.assert_frame_equal(*tables, check_exact=True)
    assert answers == expected


@pytest.mark.parametrize("name", SITUATIONS)
def test_answers_of_the_paper_s_search_are_pinned(name):
    assert_pinned(SITUATIONS[name].lines("paper"), ANSWERS, name)


@pytest.mark.parametrize("name", ["constraints", "three diverse"])
def test_several_threads_and_little_memory_give_the_pinned_answers(name):
    assert_pinned(SITUATIONS[name].lines("paper", n_jobs=2, memory=0.5), ANSWERS, name)


@pytest.mark.parametrize("name", DENSITIES)
def test_log_likelihoods_are_pinned(name):
    # Libraries differ in the last bit of a logarithm.
    assert likelihoods(name) == pytest.approx(pinned(LIKELIHOODS, name), rel=1e-12)


def test_the_pinned_answers_show_every_status_and_reason():
    people = [person for name in SITUATIONS for person in pinned(ANSWERS, name)[1:]]

    assert {person["status"] for person in people} == {"answered", "desired", "none"}
    reasons = {person["reason"][0] for person in people if "reason" in person}
    assert reasons >= {"no desired row", "excluded", "none scored valid"}
