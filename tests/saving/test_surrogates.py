"""Surrogates of saved explainers come back as they were, and those of odd files are refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import mcce
from bank import bank, score
from mcce import MCCE, SavedFileError, Search
from mcce.saving import archive
from mcce.saving.archive import refused
from mcce.saving.surrogate import check_imitation, pack_surrogate, unpack_surrogate
from mcce.tables.schema import Schema
from searches import assert_same, explain

TRAIN, PEOPLE = bank(300, seed=1), bank(30, seed=2)
DESIRED = (0.8, 9.0)
# A search without targets.
PLAUSIBLE_DRAWS = Search.preset("paper", min_plausibility=0.05)


class Counted:
    def __init__(self):
        self.n_rows = 0

    def __call__(self, frame):
        self.n_rows += len(frame)
        return score(frame)


@pytest.fixture(scope="module")
def explainer():
    return MCCE(score, DESIRED, immutable=["sex"], search="balanced", random_state=0).fit(TRAIN)


def edited(explainer, path, edit):
    """The file of an explainer whose document was edited."""
    explainer.save(path)
    document = archive.read(path)
    edit(document)
    archive.write(path, document, None)
    return path


def test_a_loaded_explainer_is_led_by_the_same_surrogate(explainer, tmp_path):
    explainer.save(tmp_path / "a.mcce")

    loaded = mcce.load(tmp_path / "a.mcce", score)

    assert repr(loaded.surrogate_) == repr(explainer.surrogate_)
    codes = explainer.schema_.encode(PEOPLE).descent
    assert np.array_equal(loaded.surrogate_.predict(codes), explainer.surrogate_.predict(codes))
    before, after = explain(explainer, PEOPLE), explain(loaded, PEOPLE)
    assert_same(before, after)
    assert before.n_evaluated == after.n_evaluated


def test_a_file_without_a_surrogate_searches_by_asking(explainer, tmp_path):
    path = edited(explainer, tmp_path / "a.mcce", lambda document: document.pop("surrogate"))

    loaded = mcce.load(path, score)

    assert loaded.surrogate_ is None
    asking = MCCE(**explainer.get_params(deep=False))
    asking.fitted_ = replace(explainer.fitted_, surrogate=None)
    assert_same(explain(loaded, PEOPLE), explain(asking, PEOPLE))


def test_a_search_changed_after_fit_asks_where_there_is_no_surrogate():
    counted = Counted()
    explainer = MCCE(counted, DESIRED, immutable=["sex"], search="fast", random_state=0).fit(TRAIN)

    result = explain(explainer.set_params(search="balanced"), PEOPLE)

    assert explainer.surrogate_ is None
    assert len(result.frame)


@pytest.mark.parametrize("search", ["paper", "fast", "exact", PLAUSIBLE_DRAWS])
def test_searches_without_a_surrogate_save_none(search, tmp_path):
    explainer = MCCE(score, DESIRED, immutable=["sex"], search=search, random_state=0).fit(TRAIN)
    explainer.save(tmp_path / "a.mcce")

    assert explainer.surrogate_ is None
    assert archive.read(tmp_path / "a.mcce")["surrogate"] is None


def test_a_surrogate_that_no_search_needs_is_refused(explainer, tmp_path):
    plain = pack_surrogate(explainer.surrogate_)
    paper = MCCE(score, DESIRED, immutable=["sex"], random_state=0).fit(TRAIN)
    path = edited(paper, tmp_path / "a.mcce", lambda document: document.update(surrogate=plain))

    with pytest.raises(SavedFileError, match="does not need it"):
        mcce.load(path, score)


@pytest.mark.parametrize(
    "change",
    [
        {"link": "probit"},
        {"link": ["logit"]},
        {"link": None},
        {"trees": []},
        {"trees": None},
        {"trees": [{}, {}]},
        {"threshold": math.inf},
        {"threshold": "0.5"},
        {"threshold": True},
        {"r2": math.nan},
        {"r2": 1.5},
        {"r2": 1},
        {"r2": -math.inf},
        {"rank_agreement": -1.5},
        {"rank_agreement": None},
        {"error": -0.1},
        {"error": math.inf},
        {"n_rows": -1},
        {"n_rows": 2.0},
        {"n_rows": 10**9},
        {"n_held_out": 10_000},
        {"more": 1},
    ],
    ids=str,
)
def test_a_surrogate_that_makes_no_sense_is_refused(explainer, change):
    plain = pack_surrogate(explainer.surrogate_)

    with pytest.raises(SavedFileError), refused("file"):
        unpack_surrogate(plain | change, explainer.schema_)


def test_trees_of_other_columns_are_refused(explainer):
    plain = pack_surrogate(explainer.surrogate_)
    narrow = bank(300, seed=1).iloc[:, :1]
    schema = Schema.learn(narrow)

    with pytest.raises(SavedFileError), refused("file"):
        unpack_surrogate(plain, schema)


@pytest.mark.parametrize(
    "change",
    [{"link": "label"}, {"threshold": 0.5}, {"link": "label", "threshold": 0.5}],
    ids=str,
)
def test_a_surrogate_of_another_decision_is_refused(explainer, change):
    wrong = replace(explainer.surrogate_, **change)

    with pytest.raises(SavedFileError):
        check_imitation(wrong, explainer.decision_)


def test_a_surrogate_of_labels_needs_its_threshold_and_probabilities():
    frame = TRAIN.select_dtypes("number").fillna(30)
    model = LogisticRegression().fit(frame, score(TRAIN) > 0.8)
    explainer = MCCE(model, [True], search="sparse", random_state=0).fit(frame)
    surrogate = explainer.surrogate_
    labels = replace(explainer.decision_, columns=())

    check_imitation(surrogate, explainer.decision_)
    assert surrogate.link == "logit"
    for wrong, decision in [
        (replace(surrogate, threshold=math.nan), explainer.decision_),
        (surrogate, labels),
    ]:
        with pytest.raises(SavedFileError):
            check_imitation(wrong, decision)


def test_max_evaluations_is_saved(tmp_path):
    search = mcce.Search.preset("sparse", max_evaluations=7)
    explainer = MCCE(score, DESIRED, immutable=["sex"], search=search, random_state=0).fit(TRAIN)
    explainer.save(tmp_path / "a.mcce")

    loaded = mcce.load(tmp_path / "a.mcce", score)

    assert loaded.search == search
    assert isinstance(loaded.explain(PEOPLE).frame, pd.DataFrame)
