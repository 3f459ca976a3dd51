"""What fit learned: one frozen value, published as a whole or not at all."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from bank import bank, score
from mcce import (
    MCCE,
    ConstraintError,
    Gower,
    NotFittedError,
    PredictorError,
    SchemaError,
    Search,
    TreeChain,
)
from mcce import constraints as c
from mcce.fitted import Fitted
from searches import assert_same, explain

TRAIN, PEOPLE = bank(200), bank(20, seed=1)
# A table of this many rows is one that parts of the explainer fail on.
BAD = bank(31, seed=2)


def picky_score(frame):
    if len(frame) == len(BAD):
        raise ValueError("no score for these rows")
    return score(frame)


class PickyChain(TreeChain):
    def fit(self, rows, decision, **settings):
        if len(rows) == len(BAD):
            raise RuntimeError("no model of these rows")
        return super().fit(rows, decision, **settings)


class PickyGower(Gower):
    name = "failing"

    def fit(self, schema, rows, decision):
        if len(rows) == len(BAD):
            raise RuntimeError("no distance on these rows")
        return super().fit(schema, rows, decision)


def explainer(predictor=score, **settings):
    settings = {"immutable": ["sex"], "n_samples": 50, "random_state": 0} | settings
    return MCCE(predictor, (0.8, 10), **settings)


@pytest.mark.parametrize("name", [field.name for field in fields(Fitted)])
def test_what_fit_learned_does_not_change(name):
    fitted = explainer().fit(TRAIN).fitted_

    with pytest.raises(FrozenInstanceError):
        setattr(fitted, name, None)


@pytest.mark.parametrize(
    ("name", "of_fitted"),
    [
        ("schema_", "schema"),
        ("decision_", "decision"),
        ("generator_", "generator"),
        ("distance_", "distance"),
        ("n_desired_", "n_desired"),
        ("seed_", "seed"),
        ("plausibility_", "plausibility"),
        ("timings_", "seconds"),
    ],
)
def test_learned_attributes_show_it_and_cannot_be_set(name, of_fitted):
    model = explainer(search="balanced")
    assert not hasattr(model, name)
    model.fit(TRAIN)

    assert getattr(model, name) is getattr(model.fitted_, of_fitted)
    with pytest.raises(AttributeError):
        setattr(model, name, None)


def test_fit_sets_one_attribute_once():
    class Watched(MCCE):
        def __setattr__(self, name, value):
            assigned.append(name)
            super().__setattr__(name, value)

    assigned = []
    model = Watched(score, (0.8, 10), search=Search(copies="never"))
    assigned.clear()

    model.fit(TRAIN)

    assert assigned == ["fitted_"]
    assert model.fitted_.plausibility is not None
    assert model.fitted_.training_rows is not None


@pytest.mark.parametrize(
    ("settings", "table", "error"),
    [
        ({}, TRAIN.drop(columns="sex"), SchemaError),
        ({}, TRAIN.iloc[:0], SchemaError),
        ({"constraints": [c.only_up("salary")]}, TRAIN.drop(columns="salary"), ConstraintError),
        ({"predictor": picky_score}, BAD, PredictorError),
        ({"generator": PickyChain()}, BAD, RuntimeError),
        ({"distance": PickyGower()}, BAD, RuntimeError),
    ],
    ids=["a column", "rows", "a constraint", "the predictor", "the generator", "the distance"],
)
def test_a_fit_that_fails_leaves_the_one_before_as_it_was(settings, table, error):
    model = explainer(**settings).fit(TRAIN)
    learned, before = model.fitted_, explain(model, PEOPLE)

    with pytest.raises(error):
        model.fit(table)

    assert model.fitted_ is learned
    assert_same(explain(model, PEOPLE), before)


def test_a_first_fit_that_fails_leaves_the_explainer_unfitted():
    model = explainer(distance=PickyGower())

    with pytest.raises(RuntimeError):
        model.fit(BAD)

    assert not hasattr(model, "fitted_")
    with pytest.raises(NotFittedError):
        model.explain(PEOPLE)


def test_another_fit_leaves_what_was_learned_before_to_those_who_hold_it():
    model = explainer().fit(TRAIN)
    first, n_desired = model.fitted_, model.n_desired_

    model.fit(TRAIN.head(100))

    assert model.fitted_ is not first
    assert first.n_desired == n_desired == int((score(TRAIN) >= 0.8).sum())
    assert model.n_desired_ == int((score(TRAIN.head(100)) >= 0.8).sum())


def test_training_rows_are_kept_only_to_exclude_their_copies():
    assert explainer().fit(TRAIN).fitted_.training_rows is None

    search = Search.preset("paper", copies="never")
    rows = explainer(search=search).fit(TRAIN).fitted_.training_rows

    assert len(rows) == len(np.unique(rows)) == len(TRAIN.drop_duplicates())
