"""Wachter and CEM, which move the row itself, against closed forms."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradients import Logistic, block_of, explain, line, step_at
from mcce.baselines import CEM, Wachter
from mcce.baselines.deep.descent import Descent, Patient
from mcce.baselines.deep.proximal import Bisection, Proximal
from mcce.baselines.deep.steppers import Adam
from mcce.baselines.deep.wachter import _objective, _stay_inside

torch = pytest.importorskip("torch", reason="torch is not installed")

PERSON = pd.DataFrame({"x": [0.2]})


@pytest.mark.parametrize("rate", [0.01, 0.03])
def test_wachter_ends_within_a_step_of_the_boundary(rate):
    explainer = Wachter(step_at(0.6), (0.5, 1.0), weights=(0.1,), learning_rate=rate).fit(line())

    (answer,) = explainer.explain(PERSON).frame["x"]

    assert 0.6 <= answer <= 0.6 + 1.5 * rate


@pytest.mark.parametrize("weight", [0.5, 4.0])
def test_wachter_minimises_what_it_says(weight):
    # -log s(10 (e - b)) + w |e - x| has its minimum where 10 s(-10 (e - b)) = w.
    explainer = Wachter(step_at(0.6), (0.5, 1.0)).fit(line())
    block = block_of(explainer, PERSON, weight=[weight])
    descent = Descent(_objective, Adam(0.02, amsgrad=True), 200, clamp=_stay_inside)

    best = descent.run(block, torch.zeros_like(block.own), Patient(block.own, 200))

    at = 0.6 + np.log(10 / weight - 1) / 10
    lowest = np.log1p(np.exp(-10 * (at - 0.6))) + weight * (at - 0.2)
    assert float(best.lowest) == pytest.approx(lowest, abs=2e-3)


def test_wachter_has_no_answer_if_nothing_but_the_distance_counts():
    explainer = Wachter(step_at(0.6), (0.5, 1.0), weights=(1000.0,), n_steps=200).fit(line())

    assert len(explain(explainer, PERSON).frame) == 0


def test_wachter_undoes_changes_that_it_does_not_need():
    frame = pd.DataFrame(
        np.random.default_rng(0).random((200, 3)).round(3), columns=["x", "y", "z"]
    )
    predictor = Logistic({"x": 10.0, "y": 0.01, "z": 0.01}, -6.0)
    explainer = Wachter(predictor, (0.5, 1.0), weights=(0.01,), n_steps=100).fit(frame)
    people = pd.DataFrame({"x": [0.3], "y": [0.5], "z": [0.5]})

    assert explainer.explain(people).changes()["feature"].tolist() == ["x"]


def test_wachter_gives_the_same_whatever_the_order_of_columns():
    frame = pd.DataFrame(np.random.default_rng(0).random((200, 2)).round(3), columns=["x", "y"])
    predictor = Logistic({"x": 6.0, "y": 3.0}, -5.0)
    both = [
        explain(Wachter(predictor, (0.5, 1.0), n_steps=100).fit(some), some.head(20)).frame
        for some in (frame, frame[["y", "x"]])
    ]

    assert len(both[0]) > 3
    pd.testing.assert_frame_equal(both[0], both[1][["x", "y"]])


@given(
    own=st.floats(-0.5, 1.5), move=st.floats(-1, 1), rate=st.floats(0, 0.2), positive=st.booleans()
)
def test_shrinking_is_the_minimum_of_distance_and_step(own, move, rate, positive):
    block = block_of(cem(), pd.DataFrame({"x": [own]}))
    proximal = Proximal(None, 0.9, 0.0, 0.01, 1, positive=positive)

    got = float(proximal.prox(block, torch.tensor([[move]], dtype=torch.float64), rate))

    low, high = (0.0 if positive else min(own, 0.0) - own), max(own, 1.0) - own
    grid = np.clip(np.linspace(-2, 2, 40_001), low, high)
    cost = 0.5 * (grid - move) ** 2 + rate * 0.9 * np.abs(grid)
    assert got == pytest.approx(grid[cost.argmin()], abs=2e-4)


def test_shrinking_by_hand():
    block = block_of(cem(), pd.DataFrame({"x": [0.5]}))
    shrunk = Proximal(None, 1.0, 0.0, 0.01, 1, positive=False).prox

    moves = [
        float(shrunk(block, torch.tensor([[move]]).double(), 0.02)) for move in (0.05, -0.05, 0.01)
    ]

    assert moves == pytest.approx([0.03, -0.03, 0.0])


@cache
def cem():
    settings = {"hidden": (4, 2), "n_epochs": 1, "realism": 0.0, "sparsity": 0.1, "n_rounds": 5}
    return CEM(step_at(0.6), (0.5, 1.0), margin=0.2, **settings).fit(line(101))


def test_cem_ends_where_the_margin_is_reached():
    # f - (1 - f) >= m from e = b + log((1 + m) / (1 - m)) / k on.
    (answer,) = cem().explain(pd.DataFrame({"x": [0.3]})).frame["x"]

    least = 0.6 + np.log(1.2 / 0.8) / 10
    assert least <= answer < least + 0.02


def test_cem_moves_along_the_steepest_axis():
    frame = pd.DataFrame(np.random.default_rng(0).random((100, 2)).round(3), columns=["x", "y"])
    predictor = Logistic({"x": 8.0, "y": 2.0}, -6.0)
    settings = {"hidden": (4, 2), "n_epochs": 1, "realism": 0.0, "sparsity": 2.0, "n_rounds": 4}
    explainer = CEM(predictor, (0.5, 1.0), **settings).fit(frame)

    result = explainer.explain(pd.DataFrame({"x": [0.4], "y": [0.5]}))

    assert result.changes()["feature"].tolist() == ["x"]


def test_cem_can_be_kept_from_lowering_numbers():
    settings = {"hidden": (4, 2), "n_epochs": 1, "n_rounds": 2, "n_steps": 60}
    falling = step_at(0.4, slope=-10.0)
    free, positive = (
        CEM(falling, (0.5, 1.0), sign=sign, **settings).fit(line(101))
        for sign in ("free", "positive")
    )
    person = pd.DataFrame({"x": [0.6]})

    assert len(explain(free, person).frame) == 1
    assert len(explain(positive, person).frame) == 0


def test_the_bisection_closes_in_on_the_least_constant():
    bisection, tried = Bisection(2, 10.0, "cpu"), []
    least = torch.tensor([37.0, torch.inf])

    for _ in range(9):
        tried.append(float(bisection.constant[0]))
        bisection.narrow(bisection.constant >= least)

    assert tried[:6] == [10.0, 100.0, 55.0, 32.5, 43.75, 38.125]
    assert float(bisection.lower[0]) < 37.0 <= float(bisection.upper[0])
    assert float(bisection.constant[1]) == 10.0**10
