"""Message files and bundled labels: all languages say the same things."""

from __future__ import annotations

import string
from datetime import date, datetime
from pathlib import Path

import pandas as pd
import pytest

from mcce import ParameterError
from mcce.datasets import load
from mcce.report import Labels, languages, write_letters
from mcce.report.language import find_language
from mcce.report.wording import check_template, placeholders
from mcce.tables.resolution import to_decimal
from mcce.tables.schema import Schema

OTHERS = [code for code in languages() if code != "en"]


def test_english_norwegian_and_german_are_shipped():
    assert languages() == ["de", "en", "nb"]


@pytest.mark.parametrize("code", OTHERS)
def test_languages_have_the_same_keys_and_placeholders(code):
    english, other = find_language("en").messages, find_language(code).messages

    assert other.keys() == english.keys()
    assert {k: placeholders(m) for k, m in other.items()} == {
        k: placeholders(m) for k, m in english.items()
    }


@pytest.mark.parametrize("code", languages())
def test_every_message_is_a_valid_template(code):
    for key, message in find_language(code).messages.items():
        if not key.startswith(("numbers.", "lists.")):
            assert check_template(message, placeholders(message), key) == message


@pytest.mark.parametrize("code", languages())
def test_sentences_begin_with_a_capital_and_end_with_a_full_stop(code):
    messages = find_language(code).messages
    for key, message in messages.items():
        section, name = key.split(".")
        if section == "nothing" or name in ("declined", "already", "closing", "if"):
            assert message[0] in f"{{{string.ascii_uppercase}", key
            assert message.endswith("."), key


@pytest.mark.parametrize("code", OTHERS)
def test_bundled_labels_speak_of_the_same_features_and_values(code):
    english, other = Labels.bundled("german"), Labels.bundled("german", code)

    assert other.features.keys() == english.features.keys()
    for name, label in english.features.items():
        same = other.of(name)
        for part in ("levels", "verbs", "become", "reason", "being"):
            assert getattr(same, part).keys() == getattr(label, part).keys(), (name, part)


@pytest.mark.parametrize("code", languages())
def test_bundled_labels_word_every_level_and_every_feature(code):
    german, labels = load("german"), Labels.bundled("german", code)
    schema = Schema.learn(german.features, immutable=german.immutable)

    labels.check(schema)

    for position in schema.mutable:
        feature = schema.features[position]
        if feature.kind == "categorical":
            assert set(labels.of(feature.name).become) == set(feature.level_codes), feature.name


def test_labels_of_adult_are_complete_in_all_languages():
    pytest.importorskip("yaml")
    folder = Path(__file__).parents[1] / "data/labels"
    labels = {code: Labels.read(folder / f"adult.{code}.yaml") for code in languages()}

    for code, one in labels.items():
        assert one.language.code == code
        assert one.features.keys() == labels["en"].features.keys()
        assert all(label.has_reason for label in one.features.values())


@pytest.mark.parametrize("code", ["fr", "", "../en", None, ["en"], "EN"])
def test_an_unknown_language_is_an_error(code):
    with pytest.raises(ParameterError, match="language must be one of 'de', 'en', 'nb'"):
        Labels.make({"language": code})


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("en", ["1,234,567.5", "\N{MINUS SIGN}2,900", "0.05", "900"]),
        ("nb", ["1\xa0234\xa0567,5", "\N{MINUS SIGN}2\xa0900", "0,05", "900"]),
        ("de", ["1.234.567,5", "\N{MINUS SIGN}2.900", "0,05", "900"]),
    ],
)
def test_numbers_are_written_as_in_the_language(code, expected):
    language = find_language(code)

    assert [language.number(to_decimal(x)) for x in (1234567.5, -2900, 0.05, 900.0)] == expected


def test_shares_are_written_as_whole_percent():
    language = find_language("en")

    shares = [language.percent(share) for share in (0.125, 0.995, 0.0, float("nan"))]

    assert shares == ["13\xa0%", "100\xa0%", "0\xa0%", "\N{EN DASH}"]


def test_huge_and_tiny_numbers_stay_short():
    language = find_language("de")

    assert language.number(to_decimal(1.5e300)) == "1,5e+300"
    assert language.number(to_decimal(1.5e-300)) == "1,5e-300"
    assert language.number(to_decimal(0.0)) == "0"


def test_an_explainer_is_needed():
    with pytest.raises(ParameterError, match="explainer must be an MCCE"):
        write_letters(None, None)


@pytest.mark.parametrize(
    "day", [date(2024, 1, 2), datetime(2024, 1, 2), pd.Timestamp("2024-01-02")]
)
def test_days_are_written_alike_whatever_their_type(day):
    assert find_language("de").value(day) == "02.01.2024"
    assert find_language("en").value(datetime(2024, 1, 2, 3, 4)) == "“2024-01-02 03:04:00”"
