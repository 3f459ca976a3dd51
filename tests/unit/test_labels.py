"""Labels: what a file may say, errors for what it may not, and the languages that are shipped."""

from __future__ import annotations

import re
import string
import tomllib
from importlib.resources import files

import pandas as pd
import pytest

from mcce import MCCE, Counterfactuals, LabelsError, ParameterError, Schema
from mcce.datasets import load_german_credit
from mcce.report import Labels, languages, write_letters

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


def test_a_file_says_the_same_as_a_dict(tmp_path):
    path = tmp_path / "labels.toml"
    path.write_text(IN_TOML, encoding="utf-8")

    assert Labels.read(path) == Labels.make(GIVEN)


def feature(**words):
    return {"features": {"amount": words}}


WRONG = {
    "no mapping": ([], "labels must have the keys language, decision, features"),
    "an unknown key": ({"feature": {}}, "no key 'feature'.*Did you mean 'features'"),
    "an unknown word": (feature(nane="x"), r"features.amount has no key 'nane'.*'name'"),
    "a number for a name": (feature(name=3), "features.amount.name must be a text, got 3"),
    "an empty text": (feature(reason=" "), r"features.amount.reason.change must be a text"),
    "a placeholder": (feature(verbs="you had {age}"), r"\{age\}.*\{after\}, \{before\}"),
    "attributes": (feature(verbs="{after.__class__}"), "a single brace"),
    "a single brace": (feature(name="a { b"), "a single brace.*none"),
    "brackets": (feature(verbs="[{after}]"), "brackets that do not enclose"),
    "an open bracket": (feature(verbs="{after}[ {before}"), "brackets that do not enclose"),
    "a rounding of 0": (feature(rounding=0), "rounding must be a number above 0, got 0"),
    "an infinite scale": (feature(scale=float("inf")), "scale must be a number above 0"),
    "grouping": (feature(grouping="no"), "grouping must be true or false, got 'no'"),
    "a unit without a number": (feature(unit="kr"), r"unit must hold \{number\}"),
    "one plural": (feature(unit={"one": "{number} x"}), "both keys, one and other"),
    "levels in a list": (feature(levels=["own"]), "levels must map values to words"),
    "a direction": (feature(verbs={"down": "x"}), "verbs has no key 'down'"),
    "a decision": ({"decision": {"wold": "x"}}, "no key 'wold'.*'would'"),
    "a long text": (feature(name="x" * 501), "has 501 characters, but a text may have 500"),
    "a language": ({"language": "../en"}, "language must be one of 'de', 'en', 'nb'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case):
    given, message = WRONG[case]

    with pytest.raises((LabelsError, ParameterError), match=message):
        Labels.make(given)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    path = tmp_path / "labels.toml"
    with pytest.raises(LabelsError, match=r"must be called \.toml"):
        Labels.read("labels.yaml")
    with pytest.raises(LabelsError, match=r"The labels in .* cannot be read: No such file"):
        Labels.read(path)
    path.write_text("= 3")
    with pytest.raises(LabelsError, match="not valid TOML"):
        Labels.read(path)
    path.write_text("[features.a]\nname = 3")
    with pytest.raises(LabelsError, match=r"^labels.toml: features.a.name must be a text"):
        Labels.read(path)
    with pytest.raises(LabelsError, match="no bundled labels of 'adult'"):
        Labels.bundled("adult")


def test_every_feature_that_can_be_blamed_needs_a_reason():
    train = pd.DataFrame({"age": [1, 2], "amount": [1, 2], "term": [1, 2]})
    schema = Schema.learn(train, immutable=["age"])
    misspelt = {"amount": {"reason": "High."}, "tem": {"reason": {"less": "Long."}}}
    one_way = {"amount": {"reason": {"less": "High."}}, "term": {"reason": "Long."}}

    with pytest.raises(LabelsError, match=r"no reason.*\['term'\]. Did you mean 'tem'"):
        Labels.make({"features": misspelt}).check(schema)
    with pytest.raises(LabelsError, match=r"\['amount'\]"):
        Labels.make({"features": one_way}).check(schema)
    Labels.make({"language": "de"}).check(schema)


def test_a_level_in_another_spelling_is_an_error():
    schema = Schema.learn(pd.DataFrame({"owns": [True, False], "job": ["Clerk", "none"]}))
    job = {"reason": "Your job.", "levels": {"Clerk": "a clerk", "retired": "retired"}}

    def check(level):
        owns = {"reason": "No home.", "become": {level: "you had owned a home"}}
        Labels.make({"features": {"owns": owns, "job": job}}).check(schema)

    with pytest.raises(LabelsError, match=r"level 'True' of 'owns', which is 'true'"):
        check("True")
    check("true")


def test_plurals_units_scales_and_levels_are_said():
    train = pd.DataFrame(
        {
            "months": [1.0, 1.5, 12.0, 24.0],
            "share": [0.255, 0.5, 0.1, 0.3],
            "year": [1998, 2004, 2010, 2000],
            "code": [3.0, 4.0, 3.0, 4.0],
        }
    )
    plural = {"one": "{number} Monat", "other": "{number} Monaten"}
    features = {
        "months": {"unit": plural, "verbs": "Sie {after}[ statt {before}] gewählt hätten"},
        "share": {"unit": "{number} %", "scale": 100, "name": "der Anteil"},
        "year": {"grouping": False},
        "code": {"levels": {3: "drei", "4": "vier"}},
    }
    words = {name: {"reason": "So.", **given} for name, given in features.items()}
    own = pd.DataFrame({"months": [12.0], "share": [0.5], "year": [1998], "code": [3.0]})

    def said(**cells):
        answer = own.assign(**cells)

        def accept_it_alone(frame):
            return (frame.to_numpy(float) == answer.to_numpy(float)).all(axis=1) * 1.0

        explainer = MCCE(accept_it_alone, (0.5, 1), random_state=0).fit(train)
        result = Counterfactuals.from_frame(
            own, answer, schema=explainer.schema_, decision=explainer.decision_
        )
        labels = {"language": "de", "features": words}
        return write_letters(explainer, result, labels).answers["text"].iloc[0]

    assert "Sie 1\xa0Monat statt 12 gewählt hätten" in said(months=1.0)
    assert "Sie 1,5\xa0Monaten statt 12 gewählt hätten" in said(months=1.5)
    assert "der Anteil 25,5\xa0% statt 50 gewesen wäre" in said(share=0.255)
    assert "year 2004 statt 1998 gewesen wäre" in said(year=2004)
    assert "code vier statt drei gewesen wäre" in said(code=4.0)


def test_a_missing_value_has_words_of_its_own():
    train = pd.DataFrame({"job": ["clerk", "cook", None] * 9, "age": range(27)})
    words = {"reason": "Your job.", "being": {"None": "You did not state your job."}}
    labels = {"features": {"job": words, "age": {"reason": "Your age."}}}
    explainer = MCCE(lambda rows: (rows["job"] == "clerk") * 1.0, (0.5, 1), random_state=0)
    people = train.iloc[[2]]

    result = explainer.fit(train).explain(people)

    letters = write_letters(explainer, result, labels)
    assert "You did not state your job." in letters.people["text"].iloc[0]


def placeholders(message):
    return set(re.findall(r"\{(\w*)\}", message))


def test_all_languages_say_the_same_things():
    messages = {code: Labels.make({"language": code}).language.messages for code in languages()}

    assert languages() == ["de", "en", "nb"]
    for code, own in messages.items():
        assert own.keys() == messages["en"].keys()
        for key, message in own.items():
            assert placeholders(message) == placeholders(messages["en"][key]), (code, key)
            section, name = key.split(".")
            if section == "nothing" or name in ("declined", "already", "closing", "if"):
                assert message[0] in f"{{{string.ascii_uppercase}", (code, key)
                assert message.endswith("."), (code, key)
    # Only what is proven is said firmly.
    for kind in ("refused", "implausible", "too_many_changes", "too_far", "unknown"):
        assert messages["en"][f"nothing.{kind}"].startswith("We found nothing"), kind


@pytest.mark.parametrize("code", ["de", "en", "nb"])
def test_bundled_labels_word_every_feature_and_every_level(code):
    german, labels = load_german_credit(), Labels.bundled("german", code)
    schema = Schema.learn(german.features, immutable=german.immutable)
    english = Labels.bundled("german")

    labels.check(schema)

    assert labels.features.keys() == english.features.keys()
    for name, label in english.features.items():
        for part in ("levels", "verbs", "become", "reason", "being"):
            same = getattr(labels.of(name), part)
            assert same.keys() == getattr(label, part).keys(), (name, part)
    for name in german.features.columns.drop(german.immutable):
        column = german.features[name]
        if column.dtype == "category":
            assert set(labels.of(name).become) == set(column.cat.categories), name


# Words that are written alike, names, and terms without a translation.
SHARED = {
    "de": "also an auc band bank csv differential dm eu generator gower in mcce median name "
    "parquet person plan plans privacy quasi row score so system tab token training version "
    "was",
    "nb": "at auc bank be csv data datatilsynet dm for gower like mcce median over parquet per "
    "person plan plausible private row side to token type under",
}


def said(content):
    """All texts of a file, without its keys."""
    if isinstance(content, dict):
        return [text for value in content.values() for text in said(value)]
    return [content] if isinstance(content, str) else []


@pytest.mark.parametrize("code", ["de", "nb"])
def test_no_language_speaks_english(code):
    def words(texts):
        texts = [re.sub(r"\{\w+\}|„[^“]*“|«[^»]*»", " ", text) for text in texts]
        return {word for text in texts for word in re.findall(r"[^\W\d_]{2,}", text.lower())}

    english, other = (
        words([*Labels.bundled("german", of).language.messages.values(), *bundled_texts(of)])
        for of in ("en", code)
    )

    assert other & english == set(SHARED[code].split())


def bundled_texts(code):
    file = files("mcce.datasets").joinpath("labels", f"german.{code}.toml")
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    lists = ("order",)
    features = {
        name: {key: value for key, value in label.items() if key not in lists}
        for name, label in content["features"].items()
    }
    letters = files("mcce.report").joinpath("templates", "letters")
    texts = [file.read_text("utf-8") for file in letters.iterdir() if f".{code}." in file.name]
    return [*said(content["decision"]), *said(features), *texts]
