"""Equal cells that are not identical: how they are told apart, and which one stands for a value."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from look_alikes import NEGATIVE_NAN, OTHER_NAN, fingerprints
from mcce import Schema, SchemaError
from mcce.tables.columns import unwrapped
from mcce.tables.features import Feature
from mcce.tables.identity import has_look_alikes, number_identical
from mcce.tables.sharing import sharing_groups


def objects(*cells) -> pd.Series:
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return pd.Series(column, dtype=object)


ONE, ALSO_ONE = Decimal("1.0"), Decimal("1.00")


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series([0.0, -0.0, np.nan, OTHER_NAN, NEGATIVE_NAN]),
        pd.Series(np.array([0.0, -0.0], dtype=np.float32)),
        pd.Series(np.array([0.0, -0.0], dtype=np.float16)),
        pd.Series(pd.arrays.FloatingArray(np.array([0.0, -0.0, np.nan, 1]), np.arange(4) == 3)),
        objects(None, np.nan, OTHER_NAN, pd.NaT, pd.NA),
        objects(1, True, 1.0, np.float64(1), ONE, ALSO_ONE),
        objects("a", np.str_("a")),
        objects((1, 0.0), (True, 0.0), (1, -0.0)),
        objects(pd.Timestamp("2024"), pd.Timestamp("2024").to_pydatetime()),
    ],
)
def test_cells_of_other_types_or_bits_have_numbers_of_their_own(cells):
    twice = unwrapped(pd.concat([cells, cells], ignore_index=True))

    assert number_identical(twice).tolist() == [*range(len(cells))] * 2


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series([0.0, 1.0, np.nan]),
        pd.Series([0, 1]),
        pd.Series([0.0, None], dtype="Float64"),
        pd.Series(["a", "b", None], dtype=object),
        pd.Series(["a", "b", np.nan], dtype=object),
        pd.Series(["a", None], dtype="string"),
        pd.Series([True, False, None], dtype=object),
        pd.Series(["a", "b"], dtype="category"),
        pd.Series(pd.to_datetime(["2024-01-01", None])),
    ],
)
def test_ordinary_columns_have_no_look_alikes(cells):
    assert not has_look_alikes(unwrapped(cells))


@pytest.mark.parametrize(
    ("cells", "chosen"),
    [
        (pd.Series([-0.0, 0.0, -0.0]), 0.0),
        (pd.Series([OTHER_NAN, np.nan, NEGATIVE_NAN]), np.nan),
        (objects(pd.NA, np.nan, pd.NaT, None), None),
        (objects(pd.NA, pd.NaT, np.nan), np.nan),
        (objects(True, 1.0, 1, ONE), 1),
        (objects(True, np.float64(1), 1.0), 1.0),
        (objects(ALSO_ONE, ONE), ONE),
        (objects(np.str_("a"), "a"), "a"),
    ],
)
def test_one_cell_stands_for_its_look_alikes_whatever_the_order_of_rows(cells, chosen):
    kind = "categorical" if cells.dtype == object else None

    for column in (cells, cells[::-1]):
        table = Feature.learn(column, kind=kind, immutable=False).table

        assert fingerprints(table) == fingerprints(pd.Series([chosen], dtype=cells.dtype))


def test_a_mask_stands_for_the_missing_values_of_a_nullable_column():
    values, mask = np.array([np.nan, 1.0, 0.0]), np.array([False, False, True])
    column = pd.Series(pd.arrays.FloatingArray(values, mask))

    table = Feature.learn(column, kind=None, immutable=False).table

    assert fingerprints(table)[-1] == b"NA"


def test_people_with_ordinary_cells_share_candidates():
    train = pd.DataFrame({"sex": ["f", "m"], "debt": [0.0, 1.0], "job": objects("a", np.nan)})
    people = train.iloc[[0, 0, 0]].assign(debt=[0.0, 5.0, np.nan], job=objects(*"az", np.nan).array)

    groups = sharing_groups(Schema.learn(train).encode(people), [0])

    assert groups.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "levels",
    [objects(frozenset("a"), frozenset("b")), objects((1.0, "a"), (np.nan, "b"), (0.0, "c"))],
)
def test_levels_without_a_total_order_are_an_error(levels):
    with pytest.raises(SchemaError, match="cannot be sorted"):
        Feature.learn(levels.rename("column"), kind="categorical", immutable=False)


def test_levels_that_python_cannot_compare_with_those_of_training_are_an_error():
    schema = Schema.learn(pd.DataFrame({"column": objects(ONE)}), kinds={"column": "categorical"})

    with pytest.raises(SchemaError, match="'column' cannot be compared"):
        schema.encode(pd.DataFrame({"column": objects(np.int64(1))}))
