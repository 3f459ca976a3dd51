"""Names of columns that cannot be written down are refused before any work."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, Schema, SchemaError

HALF = "a\ud800"


def score(rows) -> np.ndarray:
    raise AssertionError("the predictor was called")


def frame_of(names: list[str]) -> pd.DataFrame:
    frame = pd.DataFrame(np.arange(8.0).reshape(4, 2))
    frame.columns = pd.Index(names, dtype=object)
    return frame


def test_a_column_name_with_half_a_surrogate_pair_is_refused_at_fit():
    with pytest.raises(SchemaError, match=r"name of column 1 .* half a surrogate pair.* Rename"):
        MCCE(score, (0.5, 1.0)).fit(frame_of(["b", HALF]))


def test_a_name_for_a_column_of_an_array_is_refused_too():
    with pytest.raises(SchemaError, match="half a surrogate pair"):
        MCCE(score, (0.5, 1.0)).fit(np.ones((4, 2)), feature_names=["b", HALF])


def test_a_column_of_people_is_refused_likewise():
    schema = Schema.learn(frame_of(["b", "a"]))

    with pytest.raises(SchemaError, match="half a surrogate pair"):
        schema.encode(frame_of(["b", HALF]))


@pytest.mark.parametrize("name", ["ø", "\U0001f600", "", "\0", "a" * 10_000, 7])
def test_any_other_name_is_fine(name):
    assert Schema.learn(frame_of(["b", name])).names == ["b", name]
