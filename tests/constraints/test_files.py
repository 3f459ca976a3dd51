"""Constraints in files: the same as in Python, and errors that point to the line."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pandas as pd
import pytest

from bank import bank
from mcce import ConstraintError, Schema
from mcce import constraints as c
from mcce.constraints.collection import Constraints
from mcce.constraints.files import make_constraints, read_constraints, write_entry

pytest.importorskip("yaml", reason="YAML files need PyYAML")

YAML = """\
# Written by those who know the customers.
rules:
  - only_up: age
  - only_down: [years, salary]
  - not_up: {feature: education}
  - only_up:
      feature: housing
      order: [boat, rent, free, own]
  - between: {feature: salary, low: 10, high: 80}
  - change: {feature: salary, at_most: 20 %}
  - levels: {feature: housing, allowed: [rent, own, null]}
  - transitions: {feature: housing, allowed: {rent: [own], boat: [rent, own]}}
  - frozen: [housing]
  - frozen: {features: [age, years], where: age > 60}
  - max_changes: 3
  - max_changes: {n: 1, features: [age, years]}
  - together: [salary, years]
  - relation: {name: works from 16 on, holds: years <= age - 16}
  - derived: {feature: years, formula: age - 16, tolerance: 40}
  - weight: {feature: age, weight: 2}
  - step: {feature: salary, step: 0.5}
"""
TOML = """\
# Written by those who know the customers.
[[rules]]
only_up = "age"
[[rules]]
only_down = ["years", "salary"]
[[rules]]
not_up = {feature = "education"}
[[rules]]
only_up = {feature = "housing", order = ["boat", "rent", "free", "own"]}
[[rules]]
between = {feature = "salary", low = 10, high = 80}
[[rules]]
change = {feature = "salary", at_most = "20 %"}
[[rules]]
levels = {feature = "housing", allowed = ["rent", "own"]}
[[rules]]
transitions = {feature = "housing", allowed = {rent = ["own"], boat = ["rent", "own"]}}
[[rules]]
frozen = ["housing"]
[[rules]]
frozen = {features = ["age", "years"], where = "age > 60"}
[[rules]]
max_changes = 3
[[rules]]
max_changes = {n = 1, features = ["age", "years"]}
[[rules]]
together = ["salary", "years"]
[[rules]]
relation = {name = "works from 16 on", holds = "years <= age - 16"}
[[rules]]
derived = {feature = "years", formula = "age - 16", tolerance = 40}
[[rules]]
weight = {feature = "age", weight = 2}
[[rules]]
step = {feature = "salary", step = 0.5}
"""
IN_PYTHON = [
    c.only_up("age"),
    c.only_down("years"),
    c.only_down("salary"),
    c.not_up("education"),
    c.only_up("housing", order=["boat", "rent", "free", "own"]),
    c.between("salary", 10, 80),
    c.change("salary", at_most="20 %"),
    c.levels("housing", ["rent", "own", None]),
    c.transitions("housing", {"rent": ["own"], "boat": ["rent", "own"]}),
    c.frozen("housing"),
    c.frozen("age", "years", where="age > 60"),
    c.max_changes(3),
    c.max_changes(1, ["age", "years"]),
    c.together("salary", "years"),
    c.relation("works from 16 on", "years <= age - 16"),
    c.derived("years", "age - 16", tolerance=40),
    c.weight("age", 2),
    c.step("salary", 0.5),
]


def in_file(folder, text, name="rules.yaml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_means_the_same_as_python(tmp_path):
    read = read_constraints(in_file(tmp_path, YAML))
    from_toml = read_constraints(in_file(tmp_path, TOML, "rules.toml"))

    assert read == IN_PYTHON
    # TOML has no null.
    assert from_toml == [
        c.levels("housing", ["rent", "own"]) if one.kind == "levels" else one for one in IN_PYTHON
    ]


def test_an_explainer_takes_a_path(tmp_path):
    schema = Schema.learn(bank(400), immutable=["sex"])

    bound = Constraints.bind(str(in_file(tmp_path, YAML)), schema)

    assert list(bound.listed) == IN_PYTHON


WRONG = {
    "an unknown word": ("rules:\n  - only_up: age\n  - onli_up: age\n", "line 3.*'only_up'"),
    "an unknown key": (
        "rules:\n  - between:\n      feature: age\n      lo: 3\n",
        "line 4.*no argument 'lo'.*'low'",
    ),
    "a missing key": ("rules:\n  - between: {low: 3}\n", "line 2.*feature"),
    "two words in one": (
        "rules:\n  - only_up: age\n    only_down: years\n",
        "line 2.*name of one constraint",
    ),
    "a bare word": ("rules:\n  - only_up\n", "line 2.*name of one constraint"),
    "an unknown column": ("rules:\n  - only_up: age\n  - only_up: agge\n", "line 3.*'age'"),
    "an unknown level": (
        "rules:\n  - levels: {feature: housing, allowed: [castle]}\n",
        "line 2.*castle",
    ),
    "a text for a number": ("rules:\n  - max_changes: three\n", "line 2.*three"),
    "a text for a list": ("rules:\n  - frozen: {features: age}\n", "line 2.*list"),
    "a condition that is none": (
        "rules:\n  - relation: {name: x, holds: age >}\n",
        "line 2.*age >",
    ),
    "a key twice": ("rules:\n  - only_up: age\n    only_up: years\n", "line 3.*twice"),
    "two lists": ("rules: []\nrules: []\n", "line 2.*twice"),
    "a condition on nothing": (
        "rules:\n  - frozen: {features: [age], where: agee > 6}\n",
        "line 2",
    ),
    "no list of rules": ("only_up: age\n", "one list called rules"),
    "another key beside it": ("rules: []\nmore: 1\n", "one list called rules"),
    "nothing at all": ("", "one list called rules"),
    "no YAML": ("rules: [", "not valid YAML"),
    "a tag that runs code": ("rules: !!python/object/apply:os.getcwd []\n", "not valid YAML"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_in_yaml_is_reported_with_its_line(tmp_path, name):
    text, message = WRONG[name]
    schema = Schema.learn(bank(200), immutable=["sex"])

    with pytest.raises(ConstraintError, match=message):
        Constraints.bind(in_file(tmp_path, text), schema)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[rules]]\nonly_up = "age"\n\n[[rules]]\nonli_up = "age"\n', "line 5.*'only_up'"),
        ('[[rules]]\n[rules.between]\nfeature = "age"\nlo = 3\n', "line 4.*no argument 'lo'"),
        ('[[rules]]\nonly_up = "agge"\n', "line 2.*'age'"),
        ("rules = 3\n", "one list called rules"),
        ("rules = [", "not valid TOML"),
    ],
)
def test_what_is_wrong_in_toml_is_reported_with_its_line(tmp_path, text, message):
    schema = Schema.learn(bank(200), immutable=["sex"])

    with pytest.raises(ConstraintError, match=message):
        Constraints.bind(in_file(tmp_path, text, "rules.toml"), schema)


@pytest.mark.parametrize(("text", "name"), [(YAML, "rules.yaml"), (TOML, "rules.toml")])
def test_a_damaged_file_is_refused_or_read_but_never_anything_else(tmp_path, text, name):
    schema = Schema.learn(bank(400), immutable=["sex"])
    chance = np.random.default_rng(1)
    outcomes = set()
    for _ in range(300):
        damaged = bytearray(text.encode())
        for _ in range(chance.integers(1, 6)):
            place = chance.integers(len(damaged))
            if chance.random() < 0.3:
                del damaged[place]
            else:
                damaged[place] = chance.integers(1, 256)
        (tmp_path / name).write_bytes(damaged)
        try:
            Constraints.bind(tmp_path / name, schema)
            outcomes.add("read")
        except ConstraintError as error:
            outcomes.add(f"refused, {'named' if name in str(error) else str(error)}")

    assert outcomes == {"read", "refused, named"}


def test_a_file_that_cannot_be_read_is_an_error_of_ours(tmp_path):
    schema = Schema.learn(bank(50))
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")

    (tmp_path / "folder.yaml").mkdir()

    for name in ("absent.yaml", "folder.yaml", "binary.yaml"):
        with pytest.raises(ConstraintError, match="cannot be read"):
            Constraints.bind(tmp_path / name, schema)
    with pytest.raises(ConstraintError, match=r"\.toml, \.yaml or \.yml"):
        Constraints.bind(in_file(tmp_path, YAML, "rules.txt"), schema)


def test_constraints_of_a_collection_can_be_taken_out():
    bound = Constraints.bind([c.only_up("age"), c.max_changes(2)], Schema.learn(bank(50)))

    assert [constraint.name for constraint in bound.listed] == ["only_up age", "max_changes 2"]
    assert bound.without(bound.listed[0]).listed == bound.listed[1:]


@pytest.mark.parametrize(
    "constraint",
    [
        c.only_up("age"),
        c.change("salary", at_most="20 %"),
        c.between("salary", low=1.5, high=None),
        c.levels("home", ["own", "rent"]),
        c.frozen("home", "salary", where="age > 60"),
        c.max_changes(2, features=["age", "salary"]),
        c.together("age", "salary"),
        c.relation("old enough", "age > 18"),
        c.transitions("home", {"rent": ["own"]}),
        c.weight("age", 3.0),
        c.step("salary", 100),
        c.derived("total", "age + salary"),
    ],
)
def test_an_entry_that_was_written_is_the_constraint_again(constraint):
    entry = json.loads(json.dumps(write_entry(constraint)))

    assert repr(make_constraints(entry)) == repr([constraint])


def test_a_date_is_written_as_text_that_is_read_as_the_date():
    constraint = c.between("since", low=datetime.date(2020, 1, 2))

    (again,) = make_constraints(write_entry(constraint))

    days = pd.DataFrame({"since": pd.to_datetime(["2019-05-05", "2021-05-05"])})
    schema = Schema.learn(days)
    for one in (constraint, again):
        Constraints.bind([one], schema)
    assert again.builder_call()[1]["low"] == "2020-01-02"


@pytest.mark.parametrize(
    "constraint",
    [c.relation("odd", lambda rows: rows["age"] > 0), c.transitions("rooms", {1: [2]})],
)
def test_what_json_cannot_hold_has_no_entry(constraint):
    with pytest.raises(ConstraintError, match="cannot be written"):
        write_entry(constraint)


def test_what_a_file_should_hold_is_said_in_its_own_format(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text("[[derived]]\nfeature = 'total'\n", encoding="utf-8")

    with pytest.raises(ConstraintError, match=r"'\[\[rules\]\]' with 'only_up = \"age\"' below it"):
        read_constraints(path)
