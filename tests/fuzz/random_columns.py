"""Columns of every dtype, with the cells that are hard to keep apart or to bring together."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

Chance = np.random.Generator
HAS_ARROW = find_spec("pyarrow") is not None
TRICKY = [0.0, -0.0, 5e-324, -5e-324, 1e-310, 0.1 + 0.2, 0.3, 1.0, 1.0000000000000002, -1.5, 1e15]
BIG = [2**53, 2**53 + 1, 2**53 + 2, 2**62 + 1, 2**62, -(2**53) - 1, -(2**63), 2**63 - 1, 0, 1]
WORDS = ["a", "b", "", " ", "A", "æ", "ae\u0301", "\U0001f600", "nan", "None", "0", "1.0", "x" * 60]
MOMENTS = pd.DatetimeIndex(
    [pd.Timestamp(when) for when in ("2024-03-01 12:00", "2023-01-01", "2024-10-27 02:30")]
    + [pd.Timestamp("1969-12-31 23:59:59"), pd.Timestamp("2000-02-29")]
)


def pool(chance: Chance, cells: list[Any], n_cells: int) -> list[Any]:
    """Cells drawn with random weights from a random part of the list."""
    some = [cells[place] for place in chance.permutation(len(cells))[: chance.integers(1, 9)]]
    weights = chance.random(len(some)) + 0.05
    drawn = chance.choice(len(some), n_cells, p=weights / weights.sum())
    return [some[place] for place in drawn]


def with_gaps(chance: Chance, cells: list[Any], kinds: list[Any]) -> list[Any]:
    """Some cells missing, in one or several ways."""
    share = chance.choice([0.0, 0.05, 0.3])
    gaps = chance.random(len(cells)) < share
    return [
        kinds[int(chance.integers(len(kinds)))] if gap else cell
        for cell, gap in zip(cells, gaps.tolist(), strict=True)
    ]


def floats(chance: Chance, n: int) -> pd.Series:
    how = int(chance.integers(5))
    if how == 0:
        cells = pool(chance, TRICKY, n)
    elif how == 1:
        cells = chance.normal(0, 10.0 ** chance.integers(-300, 300), n).tolist()
    elif how == 2:
        cells = (chance.integers(0, 20, n) / 4).tolist()
    elif how == 3:
        cells = pool(chance, [0.0, -0.0], n)
    else:
        cells = chance.lognormal(0, 1, n).round(2).tolist()
    cells = with_gaps(chance, cells, [np.nan])
    dtype = ["float64", "float64", "float32", "Float64"][int(chance.integers(4))]
    with np.errstate(all="ignore"):
        column = pd.Series(np.array(cells, dtype="float64").astype(dtype.lower()))
    if dtype == "Float64":
        gaps = column.isna().to_numpy() & (chance.random(n) < 0.7)
        column = pd.Series(pd.arrays.FloatingArray(column.to_numpy(), gaps))
    return column.where(~np.isinf(column.astype(float)), 0) if dtype == "float32" else column


def integers(chance: Chance, n: int) -> pd.Series:
    how = int(chance.integers(5))
    if how == 0:
        return pd.Series(pool(chance, BIG, n), dtype="int64")
    if how == 1:
        return pd.Series(pool(chance, [2**64 - 1, 2**63, 2**53 + 1, 0], n), dtype="uint64")
    if how == 2:
        return pd.Series(chance.integers(-5, 5, n).astype("int8"))
    if how == 3:
        cells = with_gaps(chance, pool(chance, BIG, n), [None])
        return pd.Series(pd.array(cells, dtype="Int64"))
    return pd.Series(chance.integers(0, int(chance.integers(1, 200)), n))


def booleans(chance: Chance, n: int) -> pd.Series:
    cells = (chance.random(n) < chance.random()).tolist()
    how = int(chance.integers(3))
    if how == 0:
        return pd.Series(cells, dtype=bool)
    gaps = with_gaps(chance, cells, [None])
    return pd.Series(gaps, dtype="boolean" if how == 1 else object)


def strings(chance: Chance, n: int) -> pd.Series:
    cells = pool(chance, WORDS, n)
    how = int(chance.integers(4))
    if how == 0:
        return pd.Series(with_gaps(chance, cells, [None, np.nan, pd.NA]), dtype=object)
    if how == 1:
        return pd.Series(with_gaps(chance, cells, [None, np.nan]), dtype=object)
    if how == 2:
        return pd.Series(with_gaps(chance, cells, [None]), dtype=pd.StringDtype("python"))
    return pd.Series(with_gaps(chance, cells, [None]))


def categories(chance: Chance, n: int) -> pd.Series:
    levels: list[Any] = WORDS[: int(chance.integers(1, len(WORDS)))]
    if chance.random() < 0.3:
        levels = list(range(int(chance.integers(1, 9))))
    elif chance.random() < 0.1:
        levels = [f"level {number}" for number in range(90)]
    dtype = pd.CategoricalDtype(
        [levels[place] for place in chance.permutation(len(levels))],
        ordered=bool(chance.random() < 0.4),
    )
    return pd.Series(
        pd.Categorical(with_gaps(chance, pool(chance, levels, n), [None]), dtype=dtype)
    )


def times(chance: Chance, n: int) -> pd.Series:
    cells = pd.Series(pd.DatetimeIndex(pool(chance, list(MOMENTS), n)))
    how = int(chance.integers(5))
    if how == 0:
        return cells.astype("datetime64[s]")
    if how == 1:
        return cells.astype("datetime64[ns]").where(pd.Series(chance.random(n) > 0.1))
    if how == 2:
        return cells.dt.tz_localize("UTC").dt.tz_convert("Europe/Oslo")
    if how == 3:
        return (cells - MOMENTS[0]).astype("timedelta64[ns]")
    return cells.astype("datetime64[ns]") + pd.to_timedelta(chance.integers(0, 2, n), unit="ns")


def objects(chance: Chance, n: int) -> pd.Series:
    """Objects that are declared categorical."""
    how = int(chance.integers(4))
    if how == 0:
        cells = with_gaps(chance, pool(chance, [10**30, -1, 2, 3], n), [None, np.nan])
    elif how == 1:
        cells = with_gaps(chance, pool(chance, [0.0, -0.0, 1.5, -2.25], n), [None, np.nan])
    elif how == 2:
        cells = pool(chance, [datetime.date(2024, 1, day) for day in range(1, 8)], n)
    else:
        cells = with_gaps(chance, pool(chance, [np.float32(0.5), np.int8(3), 7], n), [pd.NA])
    column = pd.Series(cells, dtype=object)
    column.attrs["declare"] = "categorical"
    return column


def arrow(chance: Chance, n: int) -> pd.Series:
    import pyarrow as pa

    cells, dtype = [
        (BIG, pa.int64()),
        (list(range(9)), pa.int16()),
        (TRICKY, pa.float64()),
        (WORDS, pa.string()),
        (WORDS, pa.large_string()),
        ([True, False], pa.bool_()),
        (list(MOMENTS), pa.timestamp("us")),
        ([moment.date() for moment in MOMENTS], pa.date32()),
        ([moment - MOMENTS[0] for moment in MOMENTS], pa.duration("ms")),
    ][int(chance.integers(9))]
    return pd.Series(with_gaps(chance, pool(chance, cells, n), [None]), dtype=pd.ArrowDtype(dtype))


def constant(chance: Chance, n: int) -> pd.Series:
    value = [0.0, -0.0, 3, "same", True, np.nan, None, pd.Timestamp(0)][int(chance.integers(8))]
    return pd.Series([value] * n)


def declared(chance: Chance, n: int) -> pd.Series:
    """Numbers declared categorical, or booleans declared numeric."""
    if chance.random() < 0.5:
        column = pd.Series(chance.random(n) < 0.5)
        column.attrs["declare"] = "numeric"
        return column
    column = pd.Series(pool(chance, [0.0, -0.0, 1.0, 2.5, np.nan], n), dtype="float64")
    column.attrs["declare"] = "categorical"
    return column


MAKERS: list[tuple[Callable[[Chance, int], pd.Series], float]] = [
    (floats, 4),
    (integers, 3),
    (booleans, 1),
    (strings, 3),
    (categories, 2),
    (times, 1),
    (objects, 1),
    (arrow, 1 if HAS_ARROW else 0),
    (constant, 0.5),
    (declared, 0.5),
]


def random_column(chance: Chance, n_cells: int) -> pd.Series:
    """A column of any dtype; ``attrs["declare"]`` is the kind that must be declared, if any."""
    shares = np.array([share for _, share in MAKERS])
    maker = MAKERS[int(chance.choice(len(MAKERS), p=shares / shares.sum()))][0]
    return maker(chance, n_cells)
