"""Anonymous answers in letters and reports: ranges and sets in place of exact values."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, Interval, McceWarning
from mcce.report import Labels, languages, write_letters, write_report

CHANCE = np.random.default_rng(5)
N_TRAIN = 400
TRAIN = pd.DataFrame(
    {
        "salary": CHANCE.integers(20_000, 90_000, N_TRAIN),
        "home": CHANCE.choice(["own", "rent", "free"], N_TRAIN),
        "since": pd.Timestamp("2010-01-01")
        + pd.to_timedelta(CHANCE.integers(0, 3000, N_TRAIN), "D"),
        "debts": CHANCE.integers(0, 5, N_TRAIN),
    }
)


def explained(score, desired, people, names, k=10, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        explainer = MCCE(score, desired, mutable=names, n_samples=500, random_state=0).fit(TRAIN)
        wanted = {"anonymity": k, "quasi_identifiers": names, "training": TRAIN}
        return explainer, explainer.explain(people, **wanted, **more)


def salary(frame):
    return frame["salary"]


@pytest.fixture(scope="module")
def by_salary():
    people = TRAIN[TRAIN["salary"] < 40_000].head(4)
    return explained(salary, Interval(60_000, np.inf), people, ["salary", "home"])


def test_letters_tell_ranges_and_never_the_exact_number(by_salary):
    explainer, result = by_salary

    letters = write_letters(explainer, result)

    for at, text in enumerate(letters.answers["text"]):
        assert re.search(
            r"if salary had been (\d\d,\d{3} to|at least) \d\d,\d{3} instead of ", text
        )
        assert f"{result.frame['salary'].iloc[at]:,}" not in text
    pd.testing.assert_frame_equal(letters.frame, result.anonymous.frame)


def test_reasons_come_by_importance_as_without_anonymity():
    person = pd.DataFrame({**TRAIN.iloc[0], "salary": 48_000, "debts": 4}, index=[0])

    def both(frame):
        return (frame["salary"] >= 50_000) & (frame["debts"] <= 0)

    explainer, result = explained(both, (1, 1), person, ["salary", "debts"])
    reasons = write_letters(explainer, result).reasons["feature"]

    assert reasons.tolist() == ["debts", "salary"]
    exact = write_letters(explainer, explainer.explain(person))
    assert exact.reasons["feature"].tolist() == reasons.tolist()


def test_a_letter_says_which_share_of_the_values_would_do():
    person = TRAIN[TRAIN["salary"] < 40_000].head(1)
    explainer, result = explained(
        salary, Interval(60_000, 66_000), person, ["salary"], k=80, min_pureness=0.0
    )

    (text,) = write_letters(explainer, result).answers["text"]

    share = result.anonymous.measures["pureness_of_changes"].iloc[0]
    assert 0 < share < 0.5
    assert f"This holds for about {round(100 * share)}\N{NO-BREAK SPACE}% of these values." in text


def test_a_change_that_can_no_longer_be_seen_is_told_as_such():
    person = TRAIN[TRAIN["salary"] < 40_000].head(1)
    explainer, result = explained(
        salary, Interval(60_000, np.inf), person, ["salary"], k=N_TRAIN, min_pureness=0.0
    )

    (text,) = write_letters(explainer, result).answers["text"]

    assert result.anonymous.measures["n_blurred"].tolist() == [1]
    assert "if salary had been different." in text


def test_levels_are_told_without_the_persons_own():
    person = TRAIN[TRAIN["home"] == "rent"].head(1)
    explainer, result = explained(
        lambda frame: frame["home"] != "rent", (1, 1), person, ["home"], k=200
    )

    (text,) = write_letters(explainer, result).answers["text"]

    assert result.anonymous.frame["home"].tolist() == ["free or own"]
    assert "home had been “free” or “own” instead of “rent”" in text


def test_ranges_of_dates_are_told():
    person = TRAIN[TRAIN["since"] > "2015-01-01"].head(1)
    explainer, result = explained(
        lambda frame: (frame["since"] < "2012-01-01").astype(int), (1, 1), person, ["since"]
    )

    (text,) = write_letters(explainer, result).answers["text"]

    assert re.search(r"since had been (\S+ to|at most) \d{4}-\d\d-\d\d instead of", text)


@pytest.mark.parametrize("code", languages())
def test_a_report_shows_the_anonymous_answer_and_its_crowd(by_salary, code, tmp_path):
    pytest.importorskip("jinja2")
    explainer, result = by_salary

    write_report(explainer, result, tmp_path / "report.html", Labels.make({"language": code}))

    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    begin = {"en": "Anonymous answer", "de": "Anonyme Antwort", "nb": "Anonymt svar"}[code]
    assert page.count(f"{begin}: ") == len(result.frame)
    for crowd in result.anonymous.measures["crowd"]:
        assert f" {crowd} " in page


def test_letters_of_exact_answers_stay_as_they_were(by_salary):
    explainer, result = by_salary
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        exact = explainer.explain(result.factuals)

    letters = write_letters(explainer, exact)

    assert not letters.answers["text"].str.contains("at least| to ", regex=True).any()
