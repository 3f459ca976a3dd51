"""How many training rows have each value: saved, and refused where it makes no sense."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import MCCE, SavedFileError
from mcce.saving import archive

TRAIN = pd.DataFrame({"a": [1, 2, 2, 3, 3, 3], "b": list("xxyyzz"), "c": [1.0, None] * 3})


def score(frame):
    return frame["a"] / 3


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "saved.mcce"
    MCCE(score, (0.9, 1.0), immutable=["b"], random_state=0).fit(TRAIN).save(path)
    return path


def test_the_counts_of_mutable_columns_come_back(path):
    counts = mcce.load(path, score).fitted_.value_counts

    assert [part.tolist() for part in counts] == [[1, 2, 3], [3, 3]]


def test_a_file_without_counts_is_read(path):
    document = archive.read(path)
    del document["value_counts"]
    archive.write(path, document)

    assert mcce.load(path, score).fitted_.value_counts is None


@pytest.mark.parametrize(
    "counts",
    [
        np.array([1, 2, 3, 3]),
        np.array([1, 2, 3, 3, 3], dtype=np.int32),
        np.array([[1, 2, 3, 3, 3]]),
        np.array([1, 2, 3, 3, 2]),
        np.array([0, 3, 3, 3, 3]),
        np.array([2**62, 2**62, 2**63 - 1, 2**63 - 2, 1]),
        [1, 2, 3, 3, 3],
    ],
    ids=str,
)
def test_counts_of_something_else_are_refused(path, counts):
    document = archive.read(path)
    document["value_counts"] = counts
    archive.write(path, document)

    with pytest.raises(SavedFileError, match=r"count"):
        mcce.load(path, score)
