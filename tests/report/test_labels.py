"""Labels: what a file may say, and the errors for what it may not."""

from __future__ import annotations

import pandas as pd
import pytest

from mcce import LabelsError, MissingExtraError, ParameterError
from mcce.report import Labels
from mcce.report.clauses import Change, Clauses
from mcce.report.label_checks import level_key
from mcce.tables.schema import Schema

GIVEN = {
    "language": "nb",
    "decision": {"would": "Vi ville ha sagt ja"},
    "features": {
        "amount": {
            "name": "beløpet",
            "unit": {"one": "{number} krone", "other": "{number} kroner"},
            "rounding": 1000,
            "verbs": {"less": "du hadde bedt om {after}", "more": "beløpet var {after}"},
            "reason": "Beløpet er høyt.",
        },
        "children": {"levels": {0: "ingen barn", 1: "ett barn"}, "reason": "Barna."},
    },
}
IN_TOML = """
language = "nb"
decision.would = "Vi ville ha sagt ja"
[features.amount]
name = "beløpet"
unit = { one = "{number} krone", other = "{number} kroner" }
rounding = 1000
verbs = { less = "du hadde bedt om {after}", more = "beløpet var {after}" }
reason = "Beløpet er høyt."
[features.children]
levels = { 0 = "ingen barn", 1 = "ett barn" }
reason = "Barna."
"""
IN_YAML = """
language: nb
decision: {would: Vi ville ha sagt ja}
features:
  amount:
    name: beløpet
    unit: {one: "{number} krone", other: "{number} kroner"}
    rounding: 1000
    verbs: {less: "du hadde bedt om {after}", more: "beløpet var {after}"}
    reason: Beløpet er høyt.
  children:
    levels: {0: ingen barn, 1: ett barn}
    reason: Barna.
"""


@pytest.mark.parametrize(("ending", "text"), [("toml", IN_TOML), ("yaml", IN_YAML)])
def test_a_file_says_the_same_as_a_dict(tmp_path, ending, text):
    pytest.importorskip("yaml")
    path = tmp_path / f"labels.{ending}"
    path.write_text(text, encoding="utf-8")

    assert Labels.read(path) == Labels.make(GIVEN)


def feature(**words):
    return {"features": {"amount": words}}


WRONG = {
    "no mapping": ([], "labels must have the keys language, decision, features"),
    "an unknown key": ({"feature": {}}, "no key 'feature'.*Did you mean 'features'"),
    "an unknown word": (feature(nane="x"), r"features.amount has no key 'nane'.*'name'"),
    "a number for a name": (feature(name=3), "features.amount.name must be a text, got 3"),
    "an empty text": (feature(reason=" "), r"features.amount.reason.change must be a text"),
    "a placeholder of another kind": (
        feature(verbs="you had {age}"),
        r"holds the placeholder \{age\}.*\{after\}, \{before\}",
    ),
    "attributes of a value": (feature(verbs="{after.__class__}"), "a single brace"),
    "a single brace": (feature(name="a { b"), "a single brace.*none"),
    "brackets without before": (feature(verbs="[{after}]"), "brackets that do not enclose"),
    "an open bracket": (feature(verbs="{after}[ {before}"), "brackets that do not enclose"),
    "a rounding of 0": (feature(rounding=0), "rounding must be a number above 0, got 0"),
    "a rounding of True": (feature(rounding=True), "rounding must be a number above 0, got True"),
    "an infinite scale": (feature(scale=float("inf")), "scale must be a number above 0"),
    "grouping of a word": (feature(grouping="no"), "grouping must be true or false, got 'no'"),
    "a unit without a number": (feature(unit="kr"), r"unit must hold \{number\}"),
    "one plural": (feature(unit={"one": "{number} x"}), "both keys, one and other"),
    "levels in a list": (feature(levels=["own"]), "levels must map values to words"),
    "a direction": (feature(verbs={"down": "x"}), "verbs has no key 'down'"),
    "features in a list": ({"features": ["amount"]}, "features must map column names"),
    "a word of the decision": ({"decision": {"wold": "x"}}, "no key 'wold'.*'would'"),
    "a very long text": (feature(name="x" * 501), "has 501 characters, but a text may have 500"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name):
    given, message = WRONG[name]

    with pytest.raises(LabelsError, match=message):
        Labels.make(given)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(LabelsError, match=r"must be called \.toml"):
        Labels.read("labels.txt")
    with pytest.raises(LabelsError, match=r"The labels in .* cannot be read: No such file"):
        Labels.read(tmp_path / "labels.toml")
    (tmp_path / "labels.toml").write_text("= 3")
    with pytest.raises(LabelsError, match="not valid TOML"):
        Labels.read(tmp_path / "labels.toml")
    (tmp_path / "labels.toml").write_text("[features.a]\nname = 3")
    with pytest.raises(LabelsError, match=r"^labels.toml: features.a.name must be a text"):
        Labels.read(tmp_path / "labels.toml")


def test_yaml_cannot_run_code_or_grow_without_end(tmp_path):
    pytest.importorskip("yaml")
    path = tmp_path / "labels.yaml"
    path.write_text("features: !!python/object/apply:os.getcwd []\n")
    with pytest.raises(LabelsError, match="not valid YAML"):
        Labels.read(path)
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    path.write_text("\n".join(lines))
    with pytest.raises(LabelsError, match="may hold"):
        Labels.read(path)


def test_yaml_without_pyyaml_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    (tmp_path / "labels.yaml").write_text("language: en")

    with pytest.raises(MissingExtraError, match=r"mcce\[yaml\]"):
        Labels.read(tmp_path / "labels.yaml")


def test_every_feature_that_can_be_blamed_needs_a_reason():
    schema = Schema.learn(
        pd.DataFrame({"age": [1, 2], "amount": [1, 2], "term": [1, 2]}), immutable=["age"]
    )
    labels = Labels.make(
        {"features": {"amount": {"reason": "High."}, "tem": {"reason": {"less": "Long."}}}}
    )

    with pytest.raises(LabelsError, match=r"no reason.*\['term'\]. Did you mean 'tem'"):
        labels.check(schema)
    one_way = {"features": {"amount": {"reason": {"less": "High."}}, "term": {"reason": "Long."}}}
    with pytest.raises(LabelsError, match=r"\['amount'\]"):
        Labels.make(one_way).check(schema)
    Labels.make({"language": "de"}).check(schema)


def test_a_level_in_another_spelling_is_an_error():
    schema = Schema.learn(pd.DataFrame({"owns": [True, False], "job": ["Clerk", "none"]}))
    given = {"owns": {"reason": "No home.", "become": {"True": "you had owned a home"}}}
    job = {"reason": "Your job.", "levels": {"Clerk": "a clerk", "retired": "retired"}}

    with pytest.raises(LabelsError, match=r"level 'True' of 'owns', which is 'true'"):
        Labels.make({"features": {**given, "job": job}}).check(schema)
    given["owns"]["become"] = {"true": "you had owned a home"}
    Labels.make({"features": {**given, "job": job}}).check(schema)


def test_unknown_bundled_labels_are_an_error():
    with pytest.raises(LabelsError, match="no bundled labels of 'adult'"):
        Labels.bundled("adult")
    with pytest.raises(ParameterError, match="language must be one of"):
        Labels.bundled("german", "fr")


@pytest.mark.parametrize(
    ("value", "key"), [(4.0, "4"), (4, "4"), (0.5, "0.5"), (True, "true"), ("own", "own")]
)
def test_values_are_found_however_they_are_typed(value, key):
    assert level_key(value) == key


def test_plurals_units_and_scales():
    from decimal import Decimal

    from mcce.report.ladder import Rung

    labels = Labels.make(
        {
            "language": "de",
            "features": {
                "months": {
                    "unit": {"one": "{number} Monat", "other": "{number} Monaten"},
                    "verbs": "Sie {after}[ statt {before}] gewählt hätten",
                },
                "share": {"unit": "{number} %", "scale": 100, "name": "der Anteil"},
                "year": {"grouping": False},
            },
        }
    )
    clauses = Clauses(labels)

    def say(feature, before, after):
        return clauses.clause(Change(feature, before, after, True, Rung(Decimal(str(after)))))

    assert say("months", 12, 1) == "Sie 1\xa0Monat statt 12 gewählt hätten"
    assert say("months", None, 1.5) == "Sie 1,5\xa0Monaten gewählt hätten"
    assert say("share", 0.5, 0.255) == "der Anteil 25,5\xa0% statt 50 gewesen wäre"
    assert say("year", 1998, 2004) == "year 2004 statt 1998 gewesen wäre"


def test_a_sentence_for_what_follows_has_no_full_stop_of_its_own():
    labels = Labels.make({"features": {"total": {"follow": "the total would be {after}."}}})

    assert labels.of("total").follow == "the total would be {after}"
