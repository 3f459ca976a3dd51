"""Searches for labels: ``predict`` is called where probabilities do not tell, and in the end."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

import mcce
from bank import bank, score
from mcce import MCCE, McceWarning, SavedFileError, Search
from mcce.predictors.labels import LabelRule
from mcce.saving import archive
from mcce.search import believed
from searches import assert_same, bounded, explain

SEARCHES = ["paper", "sparse", "balanced", "plausible", "near", "fast"]
TRAIN = bank(300, seed=1)
PEOPLE = bank(40, seed=2)


class Counted:
    """A classifier by the score of the bank, which counts the rows of each method."""

    _estimator_type = "classifier"
    classes_ = np.array(["no", "yes"])

    def __init__(self, threshold=0.8):
        self.threshold = threshold
        self.n_rows = {"predict": 0, "predict_proba": 0}

    def probabilities(self, frame):
        # Scores of this bank end at about two.
        yes = np.clip(score(frame) / 2, 0, 1)
        return np.column_stack([1 - yes, yes])

    def predict_proba(self, frame):
        self.n_rows["predict_proba"] += len(frame)
        return self.probabilities(frame)

    def accepts(self, frame):
        return self.probabilities(frame)[:, 1] >= self.threshold / 2

    def predict(self, frame):
        self.n_rows["predict"] += len(frame)
        return self.classes_[self.accepts(frame).astype(int)]


class Contrary(Counted):
    """Refuses whoever is not like a training row, whatever the probabilities."""

    def __init__(self, known):
        super().__init__()
        self.known = {tuple(map(str, row)) for row in known.to_numpy(dtype=object)}

    def accepts(self, frame):
        rows = frame.to_numpy(dtype=object)
        seen = np.array([tuple(map(str, row)) in self.known for row in rows], dtype=bool)
        return super().accepts(frame) & seen


class AskedTwice(Counted):
    """The same, but labels of some training rows contradict the probabilities."""

    def accepts(self, frame):
        odd = (frame["age"] % 7 == 0).to_numpy()
        return super().accepts(frame) & ~odd


def fitted(predictor, search="balanced", train=TRAIN, **settings):
    settings = {"immutable": ["sex"], "random_state": 0} | settings
    return MCCE(predictor, ["yes"], search=search, **settings).fit(train)


def without_rule(explainer):
    """The same explainer, which calls both methods on every row."""
    explainer.fitted_ = replace(explainer.fitted_, label_rule=None)
    return explainer


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_by_a_rule_finds_what_a_search_by_labels_finds(name):
    predictor = Counted()
    explainer = fitted(predictor, name)
    assert explainer.fitted_.label_rule is not None

    predictor.n_rows = dict.fromkeys(predictor.n_rows, 0)
    result = explain(explainer, PEOPLE)
    n_rows = dict(predictor.n_rows)

    assert_same(result, explain(without_rule(explainer), PEOPLE))
    assert result.n_unstable == 0
    # Everybody once, every answer once, and hardly any row in between.
    in_between = n_rows["predict"] - len(PEOPLE) - len(result.frame)
    assert 0 <= in_between <= 0.1 * result.n_evaluated
    assert n_rows["predict_proba"] == len(PEOPLE) + result.n_evaluated


def test_labels_that_training_contradicts_are_asked_for_every_row():
    predictor = AskedTwice()
    explainer = fitted(predictor)
    assert explainer.fitted_.label_rule is None

    predictor.n_rows = dict.fromkeys(predictor.n_rows, 0)
    result = explain(explainer, PEOPLE)

    assert predictor.n_rows["predict"] == predictor.n_rows["predict_proba"]
    assert predictor.accepts(result.frame).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paper", "balanced", "sparse"])
def test_rows_that_a_rule_misjudges_are_no_answers_and_no_instability(name):
    train = pd.concat([TRAIN, bank(100, seed=2)], ignore_index=True)
    predictor = Contrary(train)
    search = bounded(name, copies="allow")
    explainer = fitted(predictor, search, train)
    assert explainer.fitted_.label_rule is not None

    predictor.n_rows = dict.fromkeys(predictor.n_rows, 0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = explainer.explain(PEOPLE)
        n_predicted = predictor.n_rows["predict"]
        expected = without_rule(explainer).explain(PEOPLE)

    # Those without the rule as well.
    assert n_predicted > 2 * len(PEOPLE)
    assert result.n_unstable == 0
    assert not any("unstable" in str(warning.message) for warning in caught)
    assert predictor.accepts(result.frame).all()
    # People with a misjudged answer get what a search by labels gives them.
    assert (result.people["status"] == expected.people["status"]).all()
    assert len(result.frame) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["balanced", "paper"])
def test_an_outcome_with_misjudged_rows_does_not_depend_on_who_else_is_there(name):
    train = pd.concat([TRAIN, bank(100, seed=2)], ignore_index=True)
    explainer = fitted(Contrary(train), bounded(name, copies="allow"), train)
    some = PEOPLE.iloc[[3, 11, 17, 29]]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        together, alone = explainer.explain(PEOPLE), explainer.explain(some)

    theirs = together.frame[together.frame.index.isin(alone.frame.index)]
    pd.testing.assert_frame_equal(theirs.sort_index(), alone.frame.sort_index())


def test_where_calls_are_cut_does_not_change_what_is_learned(monkeypatch):
    train = pd.concat([TRAIN, bank(100, seed=2)], ignore_index=True)
    explainer = fitted(Contrary(train), bounded("balanced", copies="allow"), train)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = explainer.explain(PEOPLE.head(3))
        monkeypatch.setattr(believed, "ROWS_PER_CALL", 7)
        cut = explainer.explain(PEOPLE.head(3))

    assert whole.n_evaluated == cut.n_evaluated > 3 * believed.MAX_LEARNED
    pd.testing.assert_frame_equal(whole.frame, cut.frame)


class Dicing(Counted):
    """Probabilities that differ from call to call, once it was fitted on."""

    def __init__(self):
        super().__init__()
        self.chance = None

    def probabilities(self, frame):
        if self.chance is None:
            return super().probabilities(frame)
        yes = self.chance.random(len(frame))
        return np.column_stack([1 - yes, yes])


def test_a_predictor_that_is_unstable_is_still_reported():
    predictor = Dicing()
    explainer = fitted(predictor, "paper")
    assert explainer.fitted_.label_rule is not None
    predictor.chance = np.random.default_rng(0)

    with pytest.warns(McceWarning, match="The predictor is unstable"):
        result = explainer.explain(PEOPLE)

    assert result.n_unstable > 0


def with_threshold(threshold, frame):
    """A classifier by a line through the frame, with this threshold or the one of best accuracy."""
    target = np.where(frame["x"] + frame["age"] / 10 > 30, "yes", "no")
    target = np.where(np.random.default_rng(0).random(len(frame)) < 0.2, "no", target)
    model = LogisticRegression(max_iter=1000)
    if threshold is None:
        return TunedThresholdClassifierCV(model, scoring="accuracy", cv=3).fit(frame, target)
    return FixedThresholdClassifier(model, threshold=threshold).fit(frame, target)


@pytest.mark.parametrize("threshold", [0.3, 0.501, 0.8, None])
def test_a_threshold_of_its_own_counts(threshold):
    frame = pd.DataFrame({"age": np.arange(300) % 37, "x": np.arange(300) % 50})
    model = with_threshold(threshold, frame)
    explainer = MCCE(model, ["yes"], immutable=["age"], search="balanced", random_state=0)
    explainer.fit(frame)
    rule = explainer.fitted_.label_rule
    assert rule.low < rule.high

    result = explain(explainer, frame.head(40))

    assert (model.predict(result.frame) == "yes").all()
    assert_same(result, explain(without_rule(explainer), frame.head(40)))


class Three(Counted):
    """Three labels; the predicted one is the most probable."""

    classes_ = np.array(["no", "perhaps", "yes"])

    def probabilities(self, frame):
        yes = np.clip(score(frame) / 2, 0, 1)
        rest = (frame["age"].to_numpy(dtype=float) % 10) / 10
        return np.column_stack([(1 - yes) * rest, (1 - yes) * (1 - rest), yes])

    def predict(self, frame):
        self.n_rows["predict"] += len(frame)
        return self.classes_[self.probabilities(frame).argmax(axis=1)]


@pytest.mark.parametrize("desired", [["yes"], ["perhaps", "yes"]])
def test_the_most_probable_of_several_labels_is_known_without_asking(desired):
    predictor = Three()
    explainer = MCCE(predictor, desired, immutable=["sex"], search="balanced", random_state=0)
    explainer.fit(TRAIN)
    assert explainer.fitted_.label_rule.measure == "margin"

    predictor.n_rows = dict.fromkeys(predictor.n_rows, 0)
    result = explain(explainer, PEOPLE)
    n_predicted = predictor.n_rows["predict"]

    assert np.isin(predictor.predict(result.frame), desired).all()
    assert n_predicted - len(PEOPLE) - len(result.frame) <= 0.1 * result.n_evaluated
    assert_same(result, explain(without_rule(explainer), PEOPLE))


def test_margins_count_with_a_rule():
    search = bounded("balanced", margin=0.1)
    explainer = fitted(Counted(1.0), search)

    result = explain(explainer, PEOPLE)

    assert len(result.frame) > 0
    assert (result.measures["score"] >= 0.55).all()
    assert_same(result, explain(without_rule(explainer), PEOPLE))


def test_a_proof_is_about_labels():
    predictor = Counted()
    explainer = fitted(predictor, "exact")
    predictor.n_rows = dict.fromkeys(predictor.n_rows, 0)

    explain(explainer, PEOPLE.head(5))

    assert predictor.n_rows["predict"] == predictor.n_rows["predict_proba"]


def test_analysis_is_the_same_with_and_without_a_rule():
    explainer = fitted(Counted(), Search.preset("balanced", max_sparsity=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = explainer.explain(PEOPLE)
        tables = explainer.robustness(result), explainer.relax(PEOPLE)
        without_rule(explainer)
        expected = explainer.robustness(result), explainer.relax(PEOPLE)

    for table, other in zip(tables, expected, strict=True):
        pd.testing.assert_frame_equal(table, other)


def test_a_loaded_explainer_has_the_rule(tmp_path):
    path, explainer = tmp_path / "labels.mcce", fitted(Counted())
    explainer.save(path)

    loaded = mcce.load(path, Counted())

    assert loaded.fitted_.label_rule == explainer.fitted_.label_rule
    assert_same(explain(loaded, PEOPLE), explain(explainer, PEOPLE))


def test_a_predictor_with_another_threshold_decides_itself(tmp_path):
    path = tmp_path / "labels.mcce"
    fitted(Counted(0.8)).save(path)
    stricter = Counted(1.2)

    result = explain(mcce.load(path, stricter), PEOPLE)

    assert len(result.frame) > 0
    assert result.n_unstable == 0
    assert stricter.accepts(result.frame).all()


def test_files_without_a_rule_call_both_methods(tmp_path):
    path = tmp_path / "labels.mcce"
    fitted(Counted()).save(path)
    document = archive.read(path)
    del document["label_rule"]
    archive.write(path, document)

    loaded = mcce.load(path, Counted())

    assert loaded.fitted_.label_rule is None
    assert_same(explain(loaded, PEOPLE), explain(fitted(Counted()), PEOPLE))


@pytest.mark.parametrize(
    "rule",
    [
        {"measure": "score", "low": 0.5},
        {"measure": "rank", "low": 0.25, "high": 0.5},
        {"measure": ["score"], "low": 0.25, "high": 0.5},
        {"measure": "score", "low": 0.5, "high": 0.25},
        {"measure": "score", "low": 0, "high": 0.25},
        {"measure": "score", "low": True, "high": 0.25},
        [],
    ],
)
def test_a_rule_that_could_not_have_been_learned_is_refused(rule, tmp_path):
    path = tmp_path / "labels.mcce"
    fitted(Counted()).save(path)
    archive.write(path, archive.read(path) | {"label_rule": rule})

    with pytest.raises(SavedFileError, match=r"label|cannot be read"):
        mcce.load(path, Counted())


def test_a_rule_for_an_interval_is_refused(tmp_path):
    path = tmp_path / "interval.mcce"
    explainer = MCCE(Counted(), (0.4, 1.0), immutable=["sex"], random_state=0).fit(TRAIN)
    assert explainer.fitted_.label_rule is None
    explainer.save(path)
    rule = {"measure": "score", "low": 0.25, "high": 0.5}
    archive.write(path, archive.read(path) | {"label_rule": rule})

    with pytest.raises(SavedFileError, match="says of labels"):
        mcce.load(path, Counted())


def test_a_rule_is_plain_numbers():
    rule = fitted(Counted()).fitted_.label_rule

    assert isinstance(rule, LabelRule)
    assert (type(rule.low), type(rule.high)) == (float, float)
