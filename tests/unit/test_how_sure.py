"""How sure answers are: margins, small changes, words, and the margin that searches keep."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from mcce import MCCE, ExactSearch, Interval, ParameterError, Search, constraints
from searches import altered, explain

SLOPES = {"a": 2.0, "b": -1.0, "c": 0.5}


def table(n_rows=400, seed=0):
    random = np.random.default_rng(seed)
    numbers = {name: random.integers(0, 200, n_rows) / 10 for name in SLOPES}
    return pd.DataFrame(numbers | {"kind": random.choice(["x", "y"], n_rows)})


def linear(frame):
    return sum(slope * frame[name] for name, slope in SLOPES.items()) + (frame["kind"] == "x")


def probability(frame):
    return 1 / (1 + np.exp(-(linear(frame) - 22) / 5))


@cache
def fitted(kind):
    rows = table()
    if kind == "labels":
        rows, desired = rows[list(SLOPES)], linear(rows) > 25
        classifier = LogisticRegression().fit(rows, desired)
        return MCCE(classifier, [True], random_state=0).fit(rows)
    predictor, desired = {
        "score": (linear, Interval(25, np.inf)),
        "interval": (linear, Interval(25, 40)),
        "probability": (probability, (0.5, 1.0)),
        "no scores": (lambda frame: np.where(linear(frame) > 25, "yes", "no"), ["yes"]),
    }[kind]
    return MCCE(predictor, desired, random_state=0).fit(rows)


def people():
    return table(60, seed=1)


@pytest.mark.parametrize("kind", ["score", "interval"])
def test_margin_and_steps_are_those_of_brute_force(kind):
    rows, result = table(), explain(fitted(kind), people())
    score = linear(result.frame).to_numpy()
    known = {name: np.unique(rows[name]) for name in SLOPES}

    def moved(name, value, sign):
        target = value + sign * 0.1 * rows[name].std(ddof=0)
        return known[name][np.abs(known[name] - target).argmin()]

    differences = np.array(
        [
            [
                sum(
                    SLOPES[name] * (moved(name, row[name], sign) - row[name])
                    for name, sign in zip(SLOPES, signs, strict=True)
                )
                for signs in product((-1, 1), repeat=len(SLOPES))
            ]
            for _, row in result.frame.iterrows()
        ]
    )
    margin = score - 25 if kind == "score" else np.minimum(score - 25, 40 - score)
    after = score[:, None] + differences
    stays = (after >= 25) & (after <= (np.inf if kind == "score" else 40))

    measures = result.measures
    assert np.allclose(measures["margin"], margin)
    typical = np.sqrt((differences**2).mean(axis=1))
    assert np.allclose(measures["margin_steps"], margin / typical, rtol=0.1, atol=0.05)
    # The surrogate is not exact.
    clear = np.minimum(np.abs(after - 25), np.abs(after - 40)).min(axis=1) > 0.3
    assert clear.mean() > 0.3
    assert np.allclose(measures["robust"][clear], stays.mean(axis=1)[clear])
    assert {*measures["margin_word"]} <= {"narrow", "fair", "wide"}


def test_the_margin_of_labels_is_the_lead_and_has_a_word():
    result = explain(fitted("labels"), people()[list(SLOPES)])

    lead = 2 * fitted("labels").predictor.predict_proba(result.frame)[:, 1] - 1
    assert np.allclose(result.measures["margin"], lead)
    assert (result.measures["margin_word"] != "").all()
    assert (result.measures["margin_word"][lead < 0.1] == "narrow").all()


def test_a_probability_near_1_has_a_wide_margin():
    rows = table().assign(a=np.tile([0.0, 90.0], 200))

    result = explain(MCCE(probability, (0.5, 1.0), random_state=0).fit(rows), rows[:1])

    score = probability(result.frame)
    assert (score > 0.9).all()
    assert np.allclose(result.measures["margin"], score - 0.5)
    assert result.measures["margin_word"].tolist() == ["wide"]


def test_without_scores_nothing_is_known():
    measures = explain(fitted("no scores"), people()).measures

    assert measures[["margin", "margin_steps", "robust"]].isna().all(axis=None)
    assert (measures["margin_word"] == "").all()


def test_without_a_surrogate_the_margin_is_known_but_no_step():
    paper = MCCE(linear, (25, np.inf), search="paper", random_state=0).fit(table())

    measures = explain(paper, people()).measures

    assert np.array_equal(measures["margin"], measures["score"] - 25)
    assert measures[["margin_steps", "robust"]].isna().all(axis=None)
    assert (measures["margin_word"] == "").all()


def test_words_have_two_thresholds_each():
    model = altered(fitted("probability"), n_counterfactuals=5, diversity=0.9)

    measures = explain(model, people()).measures

    # The largest margin of a probability of at least .5 is .5.
    of_largest, steps = measures["margin"] / 0.5, measures["margin_steps"]
    narrow, wide = (of_largest < 0.1) | (steps < 1), (of_largest >= 0.4) & (steps >= 3)
    expected = np.select([narrow, wide], ["narrow", "wide"], "fair")
    assert np.array_equal(measures["margin_word"], expected)
    assert {*expected} >= {"narrow", "fair"}


def test_numbers_without_small_steps_stay():
    # Three values: the next one is more than half a standard deviation away.
    rows = pd.DataFrame({"count": [0, 1, 2] * 40, "other": [3, 4, 5, 3] * 30})

    measures = explain(
        MCCE(lambda frame: frame["count"] + 0.0, (1.5, np.inf), random_state=0).fit(rows), rows[:1]
    ).measures

    assert measures[["margin_steps", "robust"]].isna().all(axis=None)


@pytest.mark.parametrize("name", ["sparse", "balanced", "near"])
def test_answers_keep_a_default_margin_that_can_be_set_and_switched_off(name):
    model = fitted("probability")
    found = {
        margin: explain(altered(model, search=Search(name, margin=margin)), people())
        for margin in (None, 0.0, 0.03)
    }

    assert [found[margin].min_margin for margin in found] == pytest.approx([0.01, 0.0, 0.03])
    assert (found[0.0].measures["score"] < 0.51).any()
    assert (found[None].measures["score"] >= 0.51).all()
    assert (found[0.03].measures["score"] >= 0.53).all()


def test_who_has_no_answer_with_the_default_margin_gets_the_one_without():
    rows = pd.DataFrame({"a": np.tile([0, 1, 2], 60), "b": np.repeat([0, 1, 2], 60)})
    # Only one value of ``a`` is enough, and only just.
    barely = lambda frame: np.where(frame["a"] == 2, 0.505, 0.1 + frame["b"] / 100)
    model = MCCE(barely, (0.5, 1.0), immutable=["b"], random_state=0).fit(rows)

    by_default = explain(model, rows[:2])
    without = explain(altered(model, search=Search(margin=0.0)), rows[:2])

    pd.testing.assert_frame_equal(by_default.frame, without.frame)
    assert by_default.min_margin == pytest.approx(0.01)
    assert by_default.people["n_counterfactuals"].tolist() == [1, 1]
    assert (by_default.measures["margin_word"] == "narrow").all()


@pytest.mark.parametrize(
    "search",
    ["paper", "plausible", "nearest", "exact", Search(max_evaluations=20)],
    ids=["paper", "plausible", "nearest", "exact", "budget"],
)
def test_some_searches_have_no_default_margin(search):
    model = MCCE(probability, (0.5, 1.0), search=search, random_state=0).fit(table())

    assert explain(model, people()[:10]).min_margin == 0.0


def test_scores_without_bounds_have_no_default_margin():
    assert explain(fitted("score"), people()).min_margin == 0.0


def test_the_exact_search_has_no_margin_to_leave_open():
    with pytest.raises(ParameterError, match="margin must be a finite number"):
        ExactSearch(margin=None)


def steep(frame):
    """Barely enough with a large number, plainly enough with the other kind."""
    return np.where(frame["kind"] == "x", 0.9, 0.2 + 0.32 * (frame["a"] >= 10))


@pytest.mark.parametrize(
    "rules", [(), [constraints.discouraged("kind", levels=["x"])]], ids=["free", "rule"]
)
def test_a_narrow_answer_comes_after_one_that_asks_for_no_more_and_is_not_discouraged(rules):
    explainer = MCCE(steep, (0.5, 1.0), search="near", n_counterfactuals=3, random_state=0)
    declined = people()[lambda rows: steep(rows) < 0.5]
    explainer = explainer.set_params(constraints=rules).fit(table())
    result = explainer.explain(declined)

    final = explainer.finalize(result)

    assert (result.measures.xs(1, level="rank")["margin_word"] == "narrow").any()
    changed = final.changes().query("rank == 1")
    assert set(changed["feature"]) == ({"a"} if rules else {"kind"})


def test_a_margin_is_the_same_wherever_it_is_asked_for():
    explainer = altered(fitted("probability"), search=Search(margin=0.45))
    result = explainer.explain(people())

    score = result.measures["score"].to_numpy()
    # No probability passes 1: a score of .99 is .49 inside.
    assert score.size
    assert score.min() >= 0.95
    np.testing.assert_allclose(result.measures["margin"], score - 0.5)
    np.testing.assert_allclose(explainer.robustness(result)["margin"], score - 0.5)
