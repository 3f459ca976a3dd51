"""What a tree cannot be grown from is refused."""

from __future__ import annotations

import numpy as np
import pytest

from mcce.kernels import native
from mcce.kernels.reference import Classes, Columns, Growth, Numbers


def columns_with(codes, **other):
    columns = Columns(codes, np.array([False]), np.array([True]), np.array([5000]))
    vars(columns).update(other)
    return columns


CODES = np.arange(0, 5000, 7, dtype=np.int32)[None]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (columns_with(CODES + 50), "beyond its last"),
        (columns_with(CODES, narrow=[CODES[0].astype(np.int16)]), "unsigned"),
        (columns_with(CODES, narrow=[CODES[0].astype(np.float32)]), "unsigned"),
        (columns_with(CODES, narrow=[CODES[0, 1:].astype(np.uint16)]), "other rows"),
        (columns_with(CODES.astype(np.int32) - 1), "beyond its last"),
    ],
)
def test_columns_that_a_tree_cannot_grow_from_are_refused(columns, message):
    response = Numbers(np.arange(CODES.size))

    with pytest.raises(ValueError, match=message):
        native.grow_tree(columns, np.array([0]), response, CODES[0], Growth())


@pytest.mark.parametrize(
    "response",
    [
        Numbers(np.full(CODES.size, 2**55)),
        Numbers(np.full(CODES.size, -(2**63))),
        Classes(np.full(CODES.size, 3), 3),
        Classes(np.full(CODES.size, 2), 2),
        Classes(np.full(CODES.size, -1), 3),
    ],
)
def test_responses_that_cannot_be_counted_are_refused(response):
    with pytest.raises(ValueError, match="no class, or too large"):
        native.grow_tree(columns_with(CODES), np.array([0]), response, CODES[0], Growth())


@pytest.mark.parametrize(
    "growth",
    [Growth(min_samples_leaf=0), Growth(many_levels=1), Growth(smallest_part=0)],
)
def test_growth_that_no_tree_follows_is_refused(growth):
    with pytest.raises(ValueError, match="must be at least"):
        native.grow_tree(
            columns_with(CODES), np.array([0]), Numbers(np.arange(CODES.size)), CODES[0], growth
        )
