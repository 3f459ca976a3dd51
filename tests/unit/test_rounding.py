"""Rounded answers: never an invalid row, no change that vanishes, the coarsest that holds."""

from __future__ import annotations

import re
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcce import MCCE, Interval, McceWarning, Search, constraints
from mcce.report import write_letters

SEARCHES = ["paper", "sparse", "exact"]


def loans(n_rows, seed, *, whole=True):
    random = np.random.default_rng(seed)
    income = random.uniform(10_000, 90_000, n_rows)
    rate = random.uniform(0.01, 0.2, n_rows)
    return pd.DataFrame(
        {
            "age": random.integers(20, 70, n_rows),
            "income": income.round() if whole else income,
            "months": random.integers(6, 61, n_rows),
            "rate": rate.round(4) if whole else rate.astype(np.float32),
            "housing": random.choice(["own", "rent", "free"], n_rows),
        }
    )


def jagged(weights, threshold):
    """A score that jumps back and forth, so that rounding often breaks an answer."""

    def score(frame):
        smooth = weights[0] * frame["income"] / 90_000 - weights[1] * frame["rate"] * 5
        smooth = smooth - weights[2] * frame["months"] / 60 + (frame["housing"] == "own") * 0.2
        wave = np.sin(frame["income"].astype(float) / 37.0) * 0.05
        return (smooth + wave - threshold).astype(float)

    return score


def amounts(*, plus=0):
    return pd.DataFrame({"amount": np.repeat(np.arange(1_000, 9_000), 2) + plus})


def letters_of(explainer, people, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        result = explainer.explain(people)
    return result, write_letters(explainer, result, **more)


CASES = {
    "seed": st.integers(0, 10**6),
    "weights": st.tuples(*[st.floats(0.1, 2)] * 3),
    "search": st.sampled_from(SEARCHES),
    "whole": st.booleans(),
}


def explain_loans(seed, weights, search, whole, rules, **more):
    """An explainer of loans, its training data, and letters to some who are declined."""
    train = loans(200, seed, whole=whole)
    score = jagged(weights, 0.0)
    desired = Interval(float(np.quantile(score(train), 0.7)), np.inf)
    explainer = MCCE(
        score,
        desired,
        immutable=["age"],
        search=search,
        constraints=rules,
        n_counterfactuals=2,
        n_samples=40,
        random_state=seed,
    ).fit(train)
    declined = train[score(train) < desired.low].head(4)
    return explainer, train, *letters_of(explainer, declined, **more)


@settings(max_examples=12)
@given(**CASES, labels=st.sampled_from([None, {"features": {}}, {"language": "nb"}]))
def test_no_rounded_row_is_refused(seed, weights, search, whole, labels):
    rules = [constraints.only_up("income"), constraints.max_changes(4)]

    explainer, _, result, letters = explain_loans(
        seed, weights, search, whole, rules, labels=labels
    )

    shown = letters.frame
    owner = shown.index.get_level_values("factual")
    assert set(owner) == set(result.frame.index.get_level_values("factual"))
    assert shown.dtypes.equals(result.frame.dtypes)
    assert (explainer.predictor(shown) >= explainer.desired.low).all()
    own = result.factuals.loc[owner]
    assert (shown["age"].to_numpy() == own["age"].to_numpy()).all()
    assert (shown["income"].to_numpy() >= own["income"].to_numpy()).all()
    found = zip(result.owner, result.frame.to_numpy() != own_rows(result), strict=True)
    places = result.factuals.index.get_indexer(owner)
    changed = zip(places, shown.to_numpy() != own.to_numpy(), strict=True)
    assert {(at, *row) for at, row in changed} <= {(at, *row) for at, row in found}


def own_rows(result):
    return result.factuals.iloc[result.owner].to_numpy()


SAID = re.compile(
    r"(income|months|rate) had been (?:(at most|at least) )?([\d.,]+)(?: to ([\d.,]+))?"
)


@pytest.mark.slow
@settings(max_examples=6)
@given(**CASES)
def test_every_end_that_is_said_is_accepted(seed, weights, search, whole):
    explainer, train, result, letters = explain_loans(
        seed, weights, search, whole, [constraints.only_up("income")], ranges=True
    )

    final = explainer.finalize(result)
    found = final.ranges.set_index(["factual", "rank", "feature"])
    for at, (key, text) in enumerate(letters.answers["text"].items()):
        for name, bound, *ends in SAID.findall(text):
            row = letters.frame.iloc[[at]]
            kind = row[name].dtype.type
            numbers = [kind(end.replace(",", "")) for end in ends if end]
            assert row[name].iloc[0] in numbers
            if bound:
                numbers += [train[name].min() if bound == "at most" else train[name].max()]
            if len(numbers) == 2:
                assert min(numbers) >= found["low"][*key, name]
                assert max(numbers) <= found["high"][*key, name]
            for number in numbers:
                score = explainer.predictor(row.assign(**{name: kind(number)})).iloc[0]
                assert score >= explainer.desired.low


@pytest.mark.parametrize("most", [2_900, 2_847, 2_805])
def test_an_answer_is_rounded_as_coarsely_as_the_predictor_allows(most):
    explainer = MCCE(lambda x: most - x["amount"], (0, np.inf), random_state=0).fit(amounts())

    _, letters = letters_of(explainer, pd.DataFrame({"amount": [8_000]}))

    amount = letters.frame["amount"].iloc[0]
    assert amount <= most
    assert amount % 100 == 0


def test_rounding_becomes_finer_where_only_a_few_values_will_do():
    train = amounts()
    # Below 3,000, only 2,845 to 2,848 are accepted.
    explainer = MCCE(lambda x: x["amount"].between(2_845, 2_848).astype(float), random_state=0)
    explainer.set_params(desired=(0.5, 1), search="paper", n_samples=20_000).fit(train)

    _, letters = letters_of(explainer, pd.DataFrame({"amount": [8_000]}))

    assert letters.frame["amount"].tolist() == [2_845]
    assert "2,845 instead of 8,000" in letters.answers["text"].iloc[0]


def test_the_exact_value_is_shown_where_nothing_else_will_do():
    train = amounts(plus=0.25)
    explainer = MCCE(lambda x: (x["amount"] == 2_847.25).astype(float), (0.5, 1), random_state=0)
    explainer.set_params(search="paper", n_samples=20_000).fit(train)

    _, letters = letters_of(explainer, pd.DataFrame({"amount": [8_000.25]}))

    assert letters.frame["amount"].tolist() == [2_847.25]
    assert "2,847.25 instead of 8,000.25" in letters.answers["text"].iloc[0]


def test_a_rounding_that_is_asked_for_never_makes_a_change_vanish():
    train = amounts()
    explainer = MCCE(lambda x: 4_990 - x["amount"], (0, np.inf), search="near", random_state=0)
    labels = {"features": {"amount": {"rounding": 1_000, "reason": "High."}}}

    _, letters = letters_of(explainer.fit(train), pd.DataFrame({"amount": [5_000]}), labels=labels)

    assert letters.frame["amount"].iloc[0] <= 4_990
    assert letters.frame["amount"].iloc[0] > 4_900


def fit_totals():
    """An explainer of leases whose total is a product, and its training rows."""
    random = np.random.default_rng(0)
    train = pd.DataFrame(
        {"months": random.integers(6, 61, 800), "price": random.integers(20, 90, 800)}
    )
    train["total"] = train["months"] * train["price"]
    explainer = MCCE(lambda x: 2_000 - x["total"], (0, np.inf), search="sparse", random_state=0)
    explainer.set_params(immutable=["months"]).fit(train)
    return explainer, train


def test_what_follows_from_a_rounded_number_follows_the_rounding():
    explainer, train = fit_totals()

    _, letters = letters_of(explainer, train[train["total"] > 3_000].head(20))

    shown = letters.frame
    assert (shown["total"] == shown["months"] * shown["price"]).all()
    assert (shown["total"] <= 2_000).all()
    assert "would then have been" in letters.answers["text"].iloc[0]
    assert set(letters.reasons["feature"]) == {"price"}


@pytest.mark.parametrize("told", [True, False], ids=["told", "untold"])
def test_a_range_is_told_only_without_consequences_that_are_told(told):
    explainer, train = fit_totals()
    follow = "the total would then be {after}." if told else False
    labels = {"features": {name: {"reason": "High."} for name in ("price", "total")}}
    labels["features"]["total"]["follow"] = follow
    result = explainer.explain(train[train["total"] > 3_000].head(10))

    letters = write_letters(explainer, result, labels, ranges=True)

    for row, text in zip(letters.frame.itertuples(), letters.answers["text"], strict=True):
        choice = re.search(r"at most \d|\d to \d", text)
        assert (choice is None) == told
        assert (f"The total would then be {row.total:,}." in text) == told
        assert ".." not in text


def test_plausibility_that_an_answer_has_is_kept(bank):
    explainer = MCCE(
        lambda x: x["salary"] / 100_000, (0.6, 2), immutable=["age", "sex"], random_state=0
    )
    explainer.set_params(search=Search("balanced", min_plausibility=0.1)).fit(bank)

    result, letters = letters_of(explainer, bank[bank["salary"] < 50_000].head(20))

    before = explainer.plausibility(result.frame)["plausibility"]
    after = explainer.plausibility(letters.frame)["plausibility"]
    own = result.factuals.loc[letters.frame.index.get_level_values("factual")]
    own = explainer.plausibility(own)["plausibility"]
    assert (before >= 0.1).all()
    assert ((after.to_numpy() >= 0.1) | (after.to_numpy() >= own.to_numpy())).all()


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "fractions"])
def test_the_text_says_the_value_that_was_accepted(whole):
    _, _, _, letters = explain_loans(3, (1.5, 0.3, 0.3), "paper", whole, [])

    n_said = 0
    for at, text in enumerate(letters.answers["text"]):
        for name in ("income", "months", "rate"):
            if f" {name} had been " in text:
                said = text.split(f" {name} had been ")[1].split(" ")[0]
                cells = letters.frame[name]
                assert cells.dtype.type(said.replace(",", "")) == cells.iloc[at]
                n_said += 1
    assert n_said


@pytest.mark.parametrize("ranges", [False, True], ids=["numbers", "ranges"])
def test_whole_numbers_that_no_float_holds_are_said_exactly(ranges):
    numbers = 2**53 + 1 + 2 * np.repeat(np.arange(200), 3)
    bank = pd.DataFrame({"account": numbers, "age": np.arange(600) % 7})

    def score(frame):
        account = frame["account"].to_numpy(dtype=np.int64)
        return (account % 2 == 1) & (account > 2**53 + 200)

    explainer = MCCE(score, (0.5, 2), immutable=["age"], n_samples=50, random_state=0).fit(bank)
    result = explainer.explain(bank.head(20))

    letters = write_letters(explainer, result, ranges=ranges)

    assert len(letters.answers) == 20
    for text, account in zip(letters.answers["text"], letters.frame["account"], strict=True):
        said = re.search(r"had been (\S+) instead", text)
        assert said is not None
        assert Decimal(said[1].replace(",", "")) == account
