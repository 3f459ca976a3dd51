"""Names and values from anywhere do no harm: one line, bounded, never read as a template."""

from __future__ import annotations

import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import MCCE
from mcce.report import Labels, languages, write_letters
from mcce.report.wording import fill
from mcce.tables.text import MAX_VALUE, plain

HOSTILE = [
    "<script>alert(1)</script>",
    "{before}",
    "{0.__class__}",
    "a\nb\r\nc\td",
    "\x1b[31mred\x00",
    "\"quoted\" 'twice' «so» „auch“",
    "\u202egnol\u2066",
    "[ instead of {before}]",
    "%s %d $x",
    "long " * 2_000,
    "",
]


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("nasty", HOSTILE)
def test_hostile_names_and_levels(language, nasty):
    name = nasty or "empty"
    train = pd.DataFrame({name: [nasty, "fine", "other"] * 40, "x": list(range(12)) * 10})
    explainer = MCCE(lambda frame: (frame[name] == nasty) * 1.0, (0.5, 1), random_state=0)
    person = pd.DataFrame({name: ["fine"], "x": [3]})

    letters = write_letters(
        explainer.fit(train), explainer.explain(person), Labels.make({"language": language})
    )

    text = letters.people["text"].iloc[0]
    assert len(text) < 2_000
    for line in text.split("\n"):
        assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in line)
    assert "\n" not in letters.answers["text"].iloc[0]
    if len(nasty) < MAX_VALUE and nasty.isprintable() and nasty:
        assert nasty in text  # neither filled in nor escaped: that is for the medium


def test_long_levels_that_differ_in_the_middle_are_not_said_to_be_the_same():
    first, second = "a" * 5_000 + "b" + "a" * 5_000, "a" * 5_000 + "c" + "a" * 5_000
    train = pd.DataFrame({"kind": [first, second] * 60})
    explainer = MCCE(lambda frame: (frame["kind"] == second) * 1.0, (0.5, 1), random_state=0)

    result = explainer.fit(train).explain(train.head(1))
    text = write_letters(explainer, result).answers["text"].iloc[0]

    assert text == "The decision would have been in your favour if kind had been different."


@given(st.text(max_size=400), st.integers(5, 100))
def test_plain_text_is_short_and_on_one_line(text, limit):
    shown = plain(text, limit)

    assert len(shown) <= limit
    assert len(shown.splitlines()) <= 1
    assert plain(shown, limit) == shown


@given(st.text(max_size=40), st.text(max_size=40))
def test_what_is_filled_in_is_never_read_again(before, after):
    assert fill("x {after}[ y {before}]", before=before, after=after) == f"x {after} y {before}"


def test_missing_values_dates_and_booleans_have_words():
    day = pd.Timestamp("2024-05-03")
    train = pd.DataFrame(
        {
            "start": [day, day + pd.Timedelta(days=40)] * 60,
            "member": [True, False] * 60,
            "note": ["a", None] * 60,
            "debt": [np.nan, 2_000.0] * 60,
        }
    )

    def said(name, wanted, person, language="en"):
        explainer = MCCE(lambda x: wanted(x[name]) * 1.0, (0.5, 1), random_state=0).fit(train)
        result = explainer.explain(person)
        labels = Labels.make({"language": language})
        return write_letters(explainer, result, labels).answers["text"].iloc[0]

    person = train.iloc[[0]]
    assert "member had been no instead of yes" in said("member", lambda c: ~c.astype(bool), person)
    late = said("start", lambda c: c > day, person, "de")
    assert "start 12.06.2024 statt 03.05.2024 gewesen wäre" in late
    assert "note had not been stated" in said("note", lambda c: c.isna(), person)
    assert "debt had been 2,000" in said("debt", lambda c: c.notna(), person)
    assert "instead of not" not in said("debt", lambda c: c.notna(), person)
    assert "debt ikke hadde vært oppgitt" in said("debt", lambda c: c.isna(), train.iloc[[1]], "nb")
