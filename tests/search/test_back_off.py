"""Draws that back off: who gets an answer by them, and that nobody depends on anybody else."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, McceWarning, Search
from mcce.constraints import between, change, frozen
from mcce.constraints.limits import FactualLimits
from mcce.generate import Block, generate, least_rows

RNG = np.random.default_rng(0)
N = 600
# Accepted people have values of their own kind: 90 to 99 if old, 40 to 60 if young.
KIND = RNG.choice(["old", "young"], N)
ACCEPTED = RNG.random(N) < 0.5
HIGH = np.where(KIND == "old", RNG.integers(90, 100, N), RNG.integers(40, 61, N))
TRAIN = pd.DataFrame(
    {
        "kind": KIND,
        "value": np.where(ACCEPTED, HIGH, RNG.integers(10, 35, N)).astype(float),
        "other": RNG.integers(0, 8, N),
    }
)
PEOPLE = TRAIN[(TRAIN["kind"] == "old") & ~ACCEPTED].head(12)


def score(frame):
    return frame["value"].to_numpy() / 100


def explain(search, people=PEOPLE, constraints=(), **parameters):
    explainer = MCCE(
        score,
        (0.4, 1.0),
        immutable=["kind"],
        search=search,
        constraints=list(constraints),
        random_state=0,
        **parameters,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer.fit(TRAIN).explain(people)


def test_a_rule_that_leaves_nothing_of_a_leaf_leaves_answers_elsewhere():
    rule = [change("value", at_most=45)]

    without = explain(Search.preset("fast", back_off=False), constraints=rule)
    result = explain("fast", constraints=rule)

    assert without.frame.empty
    assert (result.people["status"] == "answered").all()
    assert result.frame["value"].between(40, 60).all()


def test_the_papers_and_the_exact_search_draw_from_leaves_alone():
    assert not Search.preset("paper").back_off
    rule = [change("value", at_most=45)]

    assert explain("paper", constraints=rule).frame.empty
    assert explain("exact", constraints=rule).frame.empty


def test_the_first_draws_need_one_allowed_row_and_every_second_later_one_more_and_more():
    least = least_rows(np.arange(400), 100)

    assert (least[:100] == 1).all()
    assert (least[100::2] == 1).all()
    assert (np.diff(least[101::2]) >= 0).all()
    assert least[399] > least[101] > 1


def test_further_draws_reach_values_that_leaves_do_not_hold():
    explainer = MCCE(score, (0.4, 1.0), immutable=["kind"], random_state=0).fit(TRAIN)
    bound = explainer._bind(None, explainer.fitted_)
    personal = FactualLimits(bound, explainer.schema_.encode(PEOPLE))
    block = Block(np.arange(1), personal.group[:1])
    arguments = explainer.fitted_.generator, personal, block, np.arange(2000), 0

    plain = generate(*arguments)
    further = generate(*arguments, n_from_leaves=100)

    n_plain, n_further = plain.distinct.sum(), further.distinct.sum()
    assert n_further > 1.5 * n_plain
    # The first draws are the same, and so is every second one.
    codes = [drawn.comparison.codes for drawn in (plain, further)]
    assert np.array_equal(codes[0][:, :, :100], codes[1][:, :, :100])
    assert np.array_equal(codes[0][:, :, ::2], codes[1][:, :, ::2])


@pytest.mark.parametrize("search", ["balanced", "fast"])
@pytest.mark.parametrize(
    "rule",
    [change("value", at_most=45), between("value", 0, 55), frozen("other")],
    ids=["change", "between", "frozen"],
)
def test_answers_depend_neither_on_others_nor_on_order_or_threads(search, rule):
    few = Search.preset(search, n_samples=5, max_samples=200)
    whole = explain(few, constraints=[rule]).frame

    turned = explain(few, PEOPLE[::-1], [rule], n_jobs=2, memory=0.01).frame
    alone = [explain(few, PEOPLE.iloc[[at]], [rule]).frame for at in (0, 3, 7)]

    pd.testing.assert_frame_equal(turned.sort_index(), whole.sort_index())
    for frame in alone:
        pd.testing.assert_frame_equal(frame, whole.loc[frame.index])


def test_answers_keep_the_rule_whatever_backs_off():
    few = Search.preset("fast", n_samples=5, max_samples=500)

    result = explain(few, constraints=[between("value", 0, 55), frozen("other")])

    owner = result.frame.index.get_level_values("factual")
    assert result.frame["value"].le(55).all()
    assert (result.frame["other"].to_numpy() == PEOPLE.loc[owner, "other"].to_numpy()).all()
