"""Enumeration of the rows with one change."""

from __future__ import annotations

import numpy as np
import pandas as pd

from single_changes import MAX_VALUES, SingleChanges, are_copies, single_changes, table

TRAIN = pd.DataFrame(
    {"age": [20, 30, 30], "kind": pd.Categorical(["a", "b", "c"]), "pay": [1.0, 2.0, np.nan]}
)


def test_each_row_changes_one_mutable_feature_to_another_training_value():
    rows = single_changes(TRAIN, TRAIN.iloc[[1]], ["kind", "pay"])

    assert rows["age"].tolist() == [30] * 4
    assert rows["kind"].tolist() == ["a", "c", "b", "b"]
    assert rows["pay"].fillna(-1).tolist() == [2.0, 2.0, 1.0, -1.0]
    assert (rows.dtypes == TRAIN.dtypes).all()


def test_a_missing_value_is_not_changed_to_itself():
    rows = single_changes(TRAIN, TRAIN.iloc[[2]], ["pay"])

    assert rows["pay"].tolist() == [1.0, 2.0]


def test_of_many_numbers_the_extremes_are_among_those_tried():
    train = pd.DataFrame({"pay": np.arange(1000.0)})

    rows = single_changes(train, train.iloc[[500]], ["pay"])

    assert len(rows) in (MAX_VALUES, MAX_VALUES - 1)
    assert (rows["pay"].min(), rows["pay"].max()) == (0.0, 999.0)


def test_copies_equal_a_training_row_everywhere():
    rows = TRAIN.iloc[[1, 0, 0]].assign(age=[30, 21, 20])

    assert are_copies(rows, TRAIN).tolist() == [True, False, True]


def test_the_share_is_of_those_for_whom_one_change_is_enough():
    found = SingleChanges("toy", "sparse", 10, 8, 6, ["3", "7"])

    assert found.share == 0.75
    assert table([found]).rows == [["toy", "sparse", "10", "8", "0.750", "2", "0.600", "3, 7"]]
    assert np.isnan(SingleChanges("toy", "sparse", 10, 0, 0, []).share)
