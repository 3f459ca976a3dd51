"""Reasons why there is no answer, in the words of customers."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, ExactSearch, Interval, McceWarning, Search, constraints
from mcce.report import Labels, languages, write_letters
from mcce.report.nothing import kind_of
from mcce.search.plan import NO_DESIRED
from mcce.search.sampling import STOPPED, TOO_FAR

TRAIN = pd.DataFrame({"a": np.repeat(np.arange(21), 21), "b": np.tile(np.arange(21), 21)})
AT_LEAST_30 = Interval(30, np.inf)
PERSON = pd.DataFrame({"a": [3], "b": [3]})


def total(frame):
    return frame["a"] + frame["b"]


def letter(search, desired=AT_LEAST_30, predictor=total, language="en", **settings):
    explainer = MCCE(predictor, desired, search=search, random_state=0, n_samples=50, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        result = explainer.fit(TRAIN).explain(PERSON)
    assert result.people["status"].tolist() == ["no answer"]
    text = write_letters(explainer, result, Labels.make({"language": language})).people["text"]
    return text.iloc[0], result.people["reason"].iloc[0]


CASES = {
    "nobody": {"search": "paper", "desired": Interval(99, np.inf)},
    "proven": {"search": ExactSearch(max_sparsity=1)},
    "too_many": {"search": Search.preset("sparse", max_sparsity=1, min_plausibility=0)},
    "too_far": {"search": Search.preset("paper", max_distance=0.01)},
    "ruled_out": {
        "search": "sparse",
        "constraints": [constraints.relation("small", "a + b < 15")],
    },
}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("language", languages())
def test_the_letter_says_what_stood_in_the_way(kind, language):
    text, reason = letter(language=language, **CASES[kind])

    assert kind_of(reason) == kind, reason
    assert text.endswith(Labels.make({"language": language}).language.messages[f"nothing.{kind}"])


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (STOPPED, "unfinished"),
        (NO_DESIRED, "nobody"),
        (TOO_FAR, "too_far"),
        ("no valid candidate among 100 draws (9 distinct, 9 allowed)", "declined"),
        ("the predictor scored 3 rows and refused all of them; the surrogate expected", "declined"),
        ("all 3 valid candidates among 9 draws are excluded by only_up age (3)", "ruled_out"),
        ("no valid candidate among 9; allow_implausible=True gives one", "unrealistic"),
        ("no valid candidate among 9; min_plausibility=0.02 gives one", "unrealistic"),
        ("no valid candidate among 9; lifting margin=0.1 gives one", "unknown"),
        ("no valid candidate among 9; lifting the constraint 'x' gives one", "ruled_out"),
        ("the method returned no answer", "unknown"),
        ("anything else", "unknown"),
    ],
)
def test_every_reason_has_its_kind(reason, kind):
    assert kind_of(reason) == kind
    for language in languages():
        assert f"nothing.{kind}" in Labels.make({"language": language}).language.messages


def test_only_what_is_proven_is_said_firmly():
    for key in ("declined", "unrealistic", "too_many", "too_far", "unknown"):
        message = Labels().language.messages[f"nothing.{key}"]
        assert message.startswith("We found nothing"), key
