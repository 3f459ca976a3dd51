"""Points as rows: levels of each feature, rounding, and the straight-through gradient."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from mcce.baselines.deep.groups import Groups
from mcce.baselines.deep.projection import Projection
from mcce.baselines.deep.tools import GRID, snap
from mcce.baselines.space import Space
from mcce.tables.schema import Schema

torch = pytest.importorskip("torch", reason="torch is not installed")


@st.composite
def grouped(draw):
    """Features with any number of levels between axes of numbers, and points."""
    sizes = draw(st.lists(st.integers(1, 7), min_size=0, max_size=5))
    groups, n_axes = [], draw(st.integers(0, 2))
    for size in sizes:
        groups.append(np.arange(n_axes, n_axes + size))
        n_axes += size + draw(st.integers(0, 2))
    n_axes = max(n_axes, 1)
    cells = st.floats(-5, 5, width=32)
    points = draw(npst.arrays(np.float64, (draw(st.integers(1, 4)), n_axes), elements=cells))
    return groups, n_axes, points


@given(case=grouped())
def test_each_feature_gets_one_level_and_shares_that_add_up(case):
    groups, n_axes, points = case
    levels, given = Groups.of(groups, n_axes, "cpu"), torch.tensor(points)

    largest, shares = levels.largest(given).numpy(), levels.softmax(given).numpy()
    logarithms = levels.log_softmax(given).numpy()

    for axes in groups:
        expected = points[:, axes].argmax(axis=1)
        assert (largest[:, axes] == (np.arange(axes.size) == expected[:, None])).all()
        powers = np.exp(points[:, axes])
        np.testing.assert_allclose(shares[:, axes], powers / powers.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(np.exp(logarithms[:, axes]), shares[:, axes])
    numbers = np.setdiff1d(np.arange(n_axes), np.concatenate([[], *groups]).astype(int))
    assert not np.hstack([t[:, numbers] for t in (largest, shares, logarithms)]).any()


def space(immutable=("age",)):
    frame = pd.DataFrame(
        {
            "age": [20, 35, 50, 60],
            "salary": [1.25, 2.5, 7.75, 9.0],
            "exact": [0.1234567891234, 0.3, 0.77777777777, 0.9],
            "job": ["clerk", "farmer", "judge", "pilot"],
            "owns": [True, False, True, False],
            "home": ["rent", "own", "rent", "boat"],
        }
    )
    rows = Schema.learn_rows(frame, immutable=list(immutable))
    return Space.learn(rows), rows


SPACE, ROWS = space()
OWN = SPACE.encode(ROWS)
anywhere = npst.arrays(np.float64, OWN.shape, elements=st.floats(-0.5, 1.5))


@given(points=anywhere)
def test_a_projection_is_that_of_the_space_bit_by_bit(points):
    projection = Projection.of(SPACE, "cpu")
    settled = np.where(np.abs(points - OWN) < 0.5 / GRID, OWN, snap(torch.tensor(points)).numpy())

    rows = projection(torch.tensor(points), torch.tensor(OWN)).numpy()

    assert (rows == SPACE.project(settled, OWN)).all()
    assert (projection(torch.tensor(rows), torch.tensor(OWN)).numpy() == rows).all()
    assert (rows[:, ~SPACE.is_mutable] == OWN[:, ~SPACE.is_mutable]).all()
    for axes in SPACE.groups:
        assert (rows[:, axes].sum(axis=1) == 1).all()


@given(points=anywhere, slopes=npst.arrays(np.float64, OWN.shape, elements=st.floats(-3, 3)))
def test_the_gradient_passes_straight_through_to_mutable_axes_alone(points, slopes):
    given = torch.tensor(points, requires_grad=True)

    rows = Projection.of(SPACE, "cpu")(given, torch.tensor(OWN))
    (gradient,) = torch.autograd.grad((rows * torch.tensor(slopes)).sum(), given)

    assert (gradient.numpy() == slopes * SPACE.is_mutable).all()


@given(points=anywhere)
def test_distances_are_those_of_the_space(points):
    projection, rows = Projection.of(SPACE, "cpu"), SPACE.project(points, OWN)

    l1 = projection.l1(torch.tensor(rows), torch.tensor(OWN)).numpy()
    squared = projection.squared(torch.tensor(rows), torch.tensor(OWN)).numpy()

    np.testing.assert_allclose(l1, SPACE.l1(rows, OWN))
    gaps = (rows - OWN) ** 2
    np.testing.assert_allclose(squared, (gaps * np.where(SPACE.is_number, 1, 0.5)).sum(axis=1))


def test_a_person_outside_of_the_training_range_may_stay_or_come_back():
    frame = pd.DataFrame({"x": np.linspace(0, 1, 11).round(1)})
    rows = Schema.learn_rows(frame)
    line = Space.learn(rows)
    own = torch.tensor([[1.4], [1.4], [-0.3]], dtype=torch.float64)

    moved = Projection.of(line, "cpu")(torch.tensor([[1.9], [0.72], [-9.0]]).double(), own)

    np.testing.assert_allclose(moved.numpy().ravel(), [1.4, 0.7, -0.3])
