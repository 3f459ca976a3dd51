"""The optimizers, against those of torch, and what a descent remembers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.baselines.deep.descent import LEAST_GAIN, Patient, Step
from mcce.baselines.deep.steppers import Adam, RMSprop
from mcce.baselines.deep.tools import ROWS_PER_BLOCK, blocks, in_blocks

torch = pytest.importorskip("torch", reason="torch is not installed")

PAIRS = {
    "adam": (Adam(0.1), lambda p: torch.optim.Adam(p, lr=0.1)),
    "amsgrad": (Adam(0.03, amsgrad=True), lambda p: torch.optim.Adam(p, lr=0.03, amsgrad=True)),
    "rmsprop": (RMSprop(0.008), lambda p: torch.optim.RMSprop(p, lr=0.008)),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_steps_are_those_of_torch(kind):
    stepper, make = PAIRS[kind]
    random = torch.Generator().manual_seed(0)
    start = torch.randn(5, 3, generator=random, dtype=torch.float64)
    theirs = start.clone().requires_grad_()
    optimizer, mine = make([theirs]), start.clone()
    memories = [torch.zeros_like(mine) for _ in range(stepper.n_memories)]

    for time in range(1, 31):
        gradient = torch.randn(5, 3, generator=random, dtype=torch.float64) / time
        theirs.grad = gradient.clone()
        optimizer.step()
        move, memories = stepper.step(gradient, memories, time)
        mine = mine + move

    np.testing.assert_allclose(mine.numpy(), theirs.detach().numpy(), rtol=1e-6, atol=1e-9)


costs = st.lists(st.tuples(st.floats(0, 2), st.booleans(), st.floats(0, 2)), min_size=1)


@given(path=costs, patience=st.integers(1, 5))
def test_the_cheapest_valid_point_before_the_stop_is_remembered(path, patience):
    best = Patient(torch.zeros(1, 1, dtype=torch.float64), patience)
    cheapest, lowest, idle = (np.inf, 0.0), np.inf, 0
    for time, (value, valid, cost) in enumerate(path, start=1):
        before = cheapest[0]
        if valid and cost < cheapest[0] and idle < patience:
            cheapest = (cost, float(time))
        gains = value < lowest - LEAST_GAIN or cheapest[0] < before - LEAST_GAIN
        lowest = value if value < lowest - LEAST_GAIN else lowest
        idle = 0 if gains and idle < patience else idle + 1

        tensor = lambda number: torch.tensor([number], dtype=torch.float64)
        before_update = float(best.lowest)
        best.update(Step(tensor(value), tensor(time)[:, None], torch.tensor([valid]), tensor(cost)))

        assert float(best.lowest) <= before_update
        assert (float(best.cost), float(best.points)) == cheapest
        assert bool(best.stopped) == (idle >= patience)


@pytest.mark.parametrize("n_rows", [1, ROWS_PER_BLOCK - 1, ROWS_PER_BLOCK, ROWS_PER_BLOCK + 1])
def test_blocks_are_of_one_size_and_every_row_comes_once(n_rows):
    places = torch.arange(n_rows) * 2
    sizes = []

    doubled = in_blocks(lambda rows: sizes.append(len(rows)) or 2 * rows, places)

    assert doubled.tolist() == (2 * places).tolist()
    assert set(sizes) == {ROWS_PER_BLOCK}
    assert torch.cat([block for block, _ in blocks(places)]).tolist() == places.tolist()


def test_a_row_s_numbers_do_not_depend_on_the_others_of_its_block():
    random = torch.Generator().manual_seed(0)
    rows = torch.randn(300, 37, generator=random, dtype=torch.float64)
    network = torch.nn.Sequential(torch.nn.Linear(37, 19), torch.nn.ReLU(), torch.nn.Linear(19, 3))
    network.double().requires_grad_(False)

    whole = in_blocks(network, rows)

    for place in (0, 7, 255, 256, 299):
        assert torch.equal(in_blocks(network, rows[[place]]), whole[[place]])
