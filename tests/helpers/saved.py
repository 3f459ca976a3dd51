"""Columns of every storage, and a black box that scores any of them, for the tests of saving."""

from __future__ import annotations

import datetime
import warnings
from importlib.util import find_spec
from zlib import crc32

import numpy as np
import pandas as pd

from mcce import McceWarning

MONTHS = pd.to_datetime(["2024-03-01 12:00", "2023-01-01 00:00", "2024-10-27 02:30"])
GAPS = [2, None, 1]
WORDS = ["løk", None, "a"]
LEVELS = pd.CategoricalDtype(["low", "mid", "unused", "high"], ordered=True)

# Three cells each; those of object dtype that are not strings are declared categorical.
CELLS = {
    "int8": np.array([3, -1, 2], dtype="int8"),
    "int64": np.array([2**60 + 1, -(2**60), 7]),
    "uint64": np.array([2**64 - 1, 0, 2**63], dtype="uint64"),
    "float32": np.array([0.1, np.nan, -0.0], dtype="float32"),
    "float64": np.array([0.1 + 0.2, np.nan, -5e-324]),
    "bool": np.array([True, False, True]),
    "datetime in seconds": pd.Series(MONTHS).astype("datetime64[s]"),
    "datetime in ns": pd.Series([MONTHS[0], None, MONTHS[1]]).astype("datetime64[ns]"),
    "zoned": pd.Series(MONTHS).dt.tz_localize("UTC").dt.tz_convert("Europe/Oslo"),
    "zoned in UTC": pd.Series([MONTHS[0], None, MONTHS[1]]).dt.tz_localize("UTC"),
    "fixed offset": pd.Series(MONTHS).dt.tz_localize(
        datetime.timezone(datetime.timedelta(hours=2))
    ),
    "timedelta": pd.Series(MONTHS - MONTHS[0]).astype("timedelta64[us]"),
    "object strings": pd.Series(["\ud83d\ude00", None, "\U0001f600"], dtype=object),
    "object strings with NaN": pd.Series(["a", np.nan, "\ud800"], dtype=object),
    "object ints": pd.Series([10**30, -1, 2], dtype=object),
    "object booleans": pd.Series([True, None, False], dtype=object),
    "object dates": pd.Series([m.date() for m in MONTHS], dtype=object),
    "object timestamps": pd.Series(list(MONTHS.tz_localize("Asia/Tokyo")), dtype=object),
    "object NumPy numbers": pd.Series([np.float32(0.1), np.int8(3), pd.NA], dtype=object),
    "words": pd.Series(["løk", "b", "a"]),
    "string": pd.Series(WORDS, dtype=pd.StringDtype("python")),
    "category": pd.Series(["b", None, "a"]).astype(pd.CategoricalDtype(["c", "b", "a"])),
    "ordered": pd.Series(["high", "low", "mid"]).astype(LEVELS),
    "category of ints": pd.Series([5, 3, 4]).astype("category"),
    "category of intervals": pd.cut(pd.Series([1.0, 5.0, 9.0]), [0, 2, 6, 10, 99]),
    "category of dates": pd.Series(MONTHS).astype("category"),
    "Int64": pd.Series(GAPS, dtype="Int64"),
    "UInt8": pd.Series(GAPS, dtype="UInt8"),
    "Float32": pd.Series([0.1, None, 2], dtype="Float32"),
    "boolean": pd.Series([True, None, False], dtype="boolean"),
}
if find_spec("pyarrow"):
    import pyarrow as pa

    ARROW = {
        "int16": (GAPS, pa.int16()),
        "uint64": ([2**64 - 1, None, 1], pa.uint64()),
        "double": ([0.1, None, 0.2], pa.float64()),
        "string": (WORDS, pa.string()),
        "large_string": (WORDS, pa.large_string()),
        "bool": ([True, None, False], pa.bool_()),
        "timestamp": ([MONTHS[0], None, MONTHS[1]], pa.timestamp("us")),
        "zoned": (list(MONTHS.tz_localize("UTC")), pa.timestamp("ns", "Europe/Oslo")),
        "date": ([m.date() for m in MONTHS], pa.date32()),
        "duration": ([MONTHS[0] - MONTHS[1], None, MONTHS[0] - MONTHS[0]], pa.duration("ms")),
    }
    CELLS |= {
        f"arrow {name}": pd.Series(cells, dtype=pd.ArrowDtype(kind))
        for name, (cells, kind) in ARROW.items()
    }
    CELLS["string by Arrow"] = pd.Series(WORDS, dtype=pd.StringDtype("pyarrow"))
    CELLS["category of Arrow strings"] = CELLS["arrow string"].astype("category")


def table(names: list[str], n_rows: int, seed: int) -> pd.DataFrame:
    """A frame with a column of each storage, cells at random."""
    chance = np.random.default_rng(seed)
    columns = {}
    for place, name in enumerate(names):
        cells = pd.Series(CELLS[name])
        drawn = cells.iloc[chance.integers(0, 3, n_rows)].reset_index(drop=True)
        columns[f"{place} {name}"] = drawn
    return pd.DataFrame(columns)


def kinds_of(frame: pd.DataFrame) -> dict[str, str]:
    return {name: "categorical" for name in frame if frame[name].dtype == object}


def any_score(frame: pd.DataFrame) -> np.ndarray:
    """A score in [0, 1) that depends on every cell, whatever it is."""
    total = np.zeros(len(frame))
    for name, column in frame.items():
        words = [repr((name, None if pd.isna(c) else c)) for c in column.astype(object)]
        total += [crc32(word.encode()) / 2**32 for word in words]
    return total % 1.0


def answers(explainer, people):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer.explain(people)


def assert_same_answers(one, other):
    for name in ("frame", "measures", "people", "nearest_misses", "factuals"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name), check_exact=True)
    assert one.owner.tolist() == other.owner.tolist()
    assert one.n_evaluated == other.n_evaluated
