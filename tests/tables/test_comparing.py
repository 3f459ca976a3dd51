"""Rows that are matched by position, and what their labels say."""

import pandas as pd
import pytest

from mcce import SchemaError
from mcce.tables.comparing import check_same_order

PEOPLE = pd.Index(["ann", "bob"])


def test_the_same_labels_in_another_order_are_an_error():
    with pytest.raises(SchemaError, match="the same labels in another order"):
        check_same_order(PEOPLE, PEOPLE[::-1])


@pytest.mark.parametrize(
    "answers",
    [
        PEOPLE,
        pd.RangeIndex(2),
        pd.Index(["ann", "eve"]),
        pd.MultiIndex.from_tuples([("ann", 1), ("bob", 1)]),
        pd.Index([3.5, None]),
    ],
    ids=["the same", "numbers", "other people", "answers by rank", "another kind"],
)
def test_other_labels_are_matched_by_position(answers):
    check_same_order(PEOPLE, answers)
