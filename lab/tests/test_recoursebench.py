"""MCCE behind the interface of RecourseBench, with stand-ins for its data set and its models."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import McceWarning, NotFittedError, ParameterError
from mcce_lab.recoursebench import MCCEMethod

ENCODING = {"age": ["age"], "job": ["job_clerk", "job_farmer", "job_judge"], "owns": ["owns"]}
COLUMNS = ["age", "salary", *ENCODING["job"], "owns"]


class Trainset:
    """Rows as RecourseBench keeps them, and what it says of the columns."""

    def __init__(self, mutable=None, how=None, n_rows=300):
        chance = np.random.default_rng(0)
        job = np.eye(3)[chance.integers(0, 3, n_rows)]
        numbers = chance.integers(0, 11, (n_rows, 2)) / 10
        cells = np.column_stack([numbers, job, chance.integers(0, 2, n_rows)])
        self.table = pd.DataFrame(cells, columns=COLUMNS)
        self.said = {
            "encoding": ENCODING,
            "encoded_feature_type": dict.fromkeys(COLUMNS, "numerical"),
            "encoded_feature_mutability": dict.fromkeys(COLUMNS, True) | (mutable or {}),
            "encoded_feature_actionability": dict.fromkeys(COLUMNS, "any") | (how or {}),
        }

    def get(self, *, target):
        assert not target
        return self.table

    def attr(self, name):
        if name not in self.said:
            raise AttributeError(name)
        return self.said[name]


class Model:
    """Accepts who earns enough, judges sooner."""

    def __init__(self, classes=("no", "yes")):
        self.classes = classes

    def get_class_to_index(self):
        return {name: at for at, name in enumerate(self.classes)}

    def get_prediction(self, X, proba=True):
        assert list(X.columns) == COLUMNS
        share = (X["salary"] + 0.3 * X["job_judge"] + 0.1 * X["age"]).to_numpy() / 1.4
        rest = np.zeros((len(X), len(self.classes) - 2))
        return np.column_stack([1 - share, share, rest])


def decisions(rows):
    return Model().get_prediction(rows).argmax(axis=1)


def method(trainset=None, **settings):
    made = MCCEMethod(Model(), seed=1, **{"n_samples": 200, **settings})
    made.fit(trainset or Trainset())
    return made


def people(n_people=20):
    return Trainset().table.sample(n_people, random_state=0).set_axis(range(50, 50 + n_people))


def test_with_no_class_desired_everybody_gets_the_other_one():
    factuals = people()
    before = factuals.copy()
    answers = method().get_counterfactuals(factuals)

    pd.testing.assert_frame_equal(factuals, before)
    assert answers.index.equals(factuals.index)
    assert list(answers.columns) == COLUMNS
    assert answers.notna().all(axis=None)
    assert (decisions(answers) == 1 - decisions(factuals)).all()
    assert (answers[ENCODING["job"]].sum(axis=1) == 1).all()


def test_whoever_has_the_desired_class_or_no_answer_has_missing_numbers():
    kept = Trainset(mutable=dict.fromkeys(["salary", *ENCODING["job"]], False))
    factuals = people()
    with pytest.warns(McceWarning, match="no counterfactual"):
        answers = method(kept, desired_class=None).get_counterfactuals(factuals)
    is_missing = answers.isna()
    assert (is_missing.all(axis=1) == is_missing.any(axis=1)).all()
    assert is_missing.any(axis=None)

    wanted = MCCEMethod(Model(), desired_class="yes", n_samples=200)
    wanted.fit(Trainset())
    answers = wanted.get_counterfactuals(factuals)
    assert answers.notna().all(axis=1).eq(decisions(factuals) == 0).all()


def test_kept_features_and_directions_are_those_of_the_data_set():
    asked = Trainset(mutable={"age": False}, how={"salary": "same-or-increase", "owns": "same"})
    factuals = people()
    factuals = factuals[decisions(factuals) == 0]
    answers = method(asked, search="near").get_counterfactuals(factuals)

    pd.testing.assert_frame_equal(answers[["age", "owns"]], factuals[["age", "owns"]])
    assert (answers["salary"] >= factuals["salary"]).all()


def test_it_is_a_method_of_their_base_class_and_can_be_put_before_it():
    class Base:
        def predict(self, factuals):
            assert self._is_trained
            return self.get_counterfactuals(factuals)

    class Method(MCCEMethod, Base):
        pass

    made = Method(Model(), n_samples=200)
    with pytest.raises(NotFittedError):
        made.get_counterfactuals(people())
    made.fit(Trainset())
    assert len(made.predict(people())) == 20


def test_a_class_that_is_unclear_is_an_error():
    with pytest.raises(ParameterError, match="say which is desired"):
        MCCEMethod(Model(("no", "yes", "maybe"))).fit(Trainset())
    with pytest.raises(ParameterError, match="'good' is no class of the model, which has 'no'"):
        MCCEMethod(Model(), desired_class="good").fit(Trainset())
