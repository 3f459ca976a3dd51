"""Answers on German Credit that must be equal to the bit on every machine."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd

from mcce import MCCE
from mcce.datasets import load_german_credit

GOLDEN = Path(__file__).parent / "golden" / "german_credit.csv"


def scorecard(frame: pd.DataFrame) -> pd.Series:
    """Points in whole numbers, so that the score has the same bits everywhere."""
    points = 20 * (frame["Duration"] <= 18) + 15 * (frame["CreditAmount"] <= 2500)
    points += 25 * (frame["CheckingStatus"] == "no checking account")
    points += 15 * frame["Savings"].isin([">=1000 DM", "500-1000 DM"])
    points += 10 * (frame["Housing"] == "own") + 10 * (frame["Age"] >= 30)
    return points + 5 * (frame["OtherInstallmentPlans"] == "none")


def golden_answers() -> str:
    """Counterfactuals with their measures, floats in full."""
    german = load_german_credit()
    explainer = MCCE(
        scorecard,
        (60, 100),
        immutable=german.immutable,
        n_counterfactuals=2,
        random_state=2023,
    ).fit(german.features)
    people = german.features[scorecard(german.features) < 60].head(100)
    result = explainer.explain(people)
    return result.frame.join(result.measures).to_csv(lineterminator="\n")


def test_answers_on_german_credit_are_those_of_the_golden_file():
    answers, expected = golden_answers(), GOLDEN.read_text(encoding="utf-8")

    if answers != expected:
        tables = [pd.read_csv(io.StringIO(text)) for text in (answers, expected)]
        pd.testing.assert_frame_equal(*tables, check_exact=True)
    assert answers == expected
