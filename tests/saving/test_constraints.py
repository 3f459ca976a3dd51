"""Constraints in a saved file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from mcce import MCCE, SavedFileError, load
from mcce import constraints as c

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

LISTED = [
    c.only_up("age"),
    c.not_down("education"),
    c.only_up("housing", order=["boat", "rent", "free", "own"]),
    c.between("salary", 10, None),
    c.change("salary", at_most="80 %"),
    c.levels("housing", ["rent", "own", None]),
    c.transitions("housing", {"rent": ["own"], None: ["rent"]}),
    c.frozen("age", "years", where="age > 60"),
    c.frozen("housing", where=[True, False] * 20),
    c.max_changes(5),
    c.max_changes(2, ["age", "years"]),
    c.together("salary", "years"),
    c.relation("works from 16 on", "years <= age - 16"),
    c.derived("years", "age - 16", tolerance=60),
    c.weight("age", 2),
    c.step("salary", 0.5),
]
TRAIN, PEOPLE = bank(400), bank(40, seed=1)


def fitted(constraints):
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], constraints=constraints, random_state=0)
    return explainer.set_params(n_samples=100).fit(TRAIN)


def test_every_kind_comes_back_and_answers_are_the_same(tmp_path):
    explainer = fitted(LISTED)
    explainer.save(tmp_path / "bank.mcce")

    again = load(tmp_path / "bank.mcce", score)

    assert again.constraints == LISTED
    pd.testing.assert_frame_equal(again.explain(PEOPLE).frame, explainer.explain(PEOPLE).frame)


def test_constraints_of_a_file_are_kept_themselves(tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rules]]\nonly_up = "age"\n')
    explainer = fitted(rules)
    explainer.save(tmp_path / "bank.mcce")
    rules.unlink()

    assert load(tmp_path / "bank.mcce", score).constraints == [c.only_up("age")]


@pytest.mark.parametrize(
    "constraint",
    [
        c.relation("mine", lambda frame: frame["age"] > 0),
        c.frozen("age", where=lambda frame: frame["age"] > 0),
        c.frozen("age", where=np.array([True] * 40)),
    ],
)
def test_what_is_code_or_belongs_to_one_call_cannot_be_saved(tmp_path, constraint):
    with pytest.raises(SavedFileError, match="constraints"):
        fitted([constraint]).save(tmp_path / "bank.mcce")

    assert not list(tmp_path.iterdir())
