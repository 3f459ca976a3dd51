"""Boosted trees as arrays: the same model comes back, and nothing else is accepted."""

from __future__ import annotations

import numpy as np
import pytest

from mcce.boosting import BinnedColumns, BoostedTrees, pack_boosted, unpack_boosted
from mcce.errors import SavedFileError

N_CODES = np.array([40, 3, 90])
CODES = np.array([np.random.default_rng(0).integers(0, n, 500) for n in N_CODES], dtype=np.int32)


def model():
    ordered = np.array([True, False, True])
    table = BinnedColumns.learn(CODES, N_CODES, ordered, np.zeros(3, dtype=bool))
    return BoostedTrees(n_trees=4).fit(table, CODES[0] * 1.5, inputs=np.array([0, 1]))


def test_a_model_from_its_arrays_predicts_the_same():
    fitted = model()

    restored = unpack_boosted(pack_boosted(fitted), N_CODES)

    assert np.array_equal(restored.predict(CODES), fitted.predict(CODES))
    assert pack_boosted(restored).keys() == pack_boosted(fitted).keys()


CHANGES = {
    "roots": lambda v: v + 10_000,
    "feature": lambda v: v + 7,
    "cut": lambda v: v.astype(np.int64),
    "left": lambda v: v * 0,
    "value": lambda v: v[:-1],
    "inputs": lambda v: v[::-1],
    "bins": lambda v: v[:-1],
    "base": float,
    "exponent": lambda v: 10**6,
    "low": lambda v: float("nan"),
    "high": lambda v: -1e300,
}


@pytest.mark.parametrize("name", CHANGES)
def test_arrays_that_no_model_gives_are_refused(name):
    plain = pack_boosted(model())

    with pytest.raises(SavedFileError):
        unpack_boosted({**plain, name: CHANGES[name](plain[name])}, N_CODES)
    with pytest.raises(SavedFileError, match="entries"):
        unpack_boosted({key: plain[key] for key in plain if key != name}, N_CODES)


def test_inputs_must_be_columns_of_the_table():
    with pytest.raises(SavedFileError, match="ascending columns"):
        unpack_boosted(pack_boosted(model()), N_CODES[:1])
