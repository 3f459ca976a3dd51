"""Answers of the searches beyond the paper on German Credit, and what is said of answers.

``python tests/golden/repin.py`` writes the pinned files of this folder anew, which is right only
where answers are meant to change.
"""

from __future__ import annotations

import pytest

from golden_cases import FOLDER, SITUATIONS, german
from pins import assert_pinned, describe_relaxed, describe_robustness, pinned
from searches import explain

SEARCHES = ("sparse", "balanced", "plausible", "near", "nearest", "exact")
ANSWERS, ANALYSES = FOLDER / "searches.jsonl", FOLDER / "analyses.jsonl"
N_PEOPLE = 8
EVERYWHERE = ("plain", "constraints", "missing", "labels", "bounds")
CASES = [
    *((name, search) for name in EVERYWHERE for search in SEARCHES),
    *(("three", search) for search in ("sparse", "exact")),
    ("three diverse", "balanced"),
    *(("few draws", search) for search in ("balanced", "exact")),
    ("no copies", "balanced"),
    ("missing constraints", "balanced"),
]
IDS = [f"{name} {search}".replace(" ", "-") for name, search in CASES]
OF_ANSWERS = ("paper", "balanced")


def lines(name, search, **more):
    return SITUATIONS[name].lines(search, N_PEOPLE, **more)


def robustness(search):
    found = []
    for name in ("three", "missing", "classifier by label"):
        what = SITUATIONS[name]
        explainer = what.fitted(search)
        result = explain(explainer, what.people().head(4))
        measured = explainer.robustness(result, n_perturbations=30, scale=0.1)
        found += [{"situation": name}, *describe_robustness(measured)]
    return found


def relaxed(search):
    what = SITUATIONS["bounds"]
    explainer = what.fitted(search, no_copies=True, draws=100, most_draws=200)
    training = german() if search == "paper" else None
    return describe_relaxed(explainer.relax(what.people().head(3), training))


ANALYSED = {"robustness": robustness, "relaxed": relaxed}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "search"), CASES, ids=IDS)
def test_answers_of_every_search_are_pinned(name, search):
    assert_pinned(lines(name, search), ANSWERS, f"{name}, {search}")


def test_several_threads_and_little_memory_give_the_pinned_answers():
    found = lines("constraints", "balanced", n_jobs=2, memory=0.5)

    assert_pinned(found, ANSWERS, "constraints, balanced")


@pytest.mark.parametrize("search", ["paper", pytest.param("balanced", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ANALYSED)
def test_robustness_and_relaxations_are_pinned(name, search):
    assert_pinned(ANALYSED[name](search), ANALYSES, f"{name}, {search}")


def test_the_pinned_answers_show_every_status_and_proofs_of_none():
    people = [person for case in CASES for person in pinned(ANSWERS, ", ".join(case))[1:]]

    assert {person["status"] for person in people} == {"answered", "desired", "none"}
    reasons = {person["reason"][0] for person in people if "reason" in person}
    assert reasons >= {"proven", "scored excluded"}
