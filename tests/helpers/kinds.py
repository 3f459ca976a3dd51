"""One small table in frames of every kind, and a black box that does not care which."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow", reason="needs the extra frames")
pl = pytest.importorskip("polars", reason="polars is not installed")

N_TRAIN = 120
SIZES = ["small", "medium", "large", "huge"]
START = datetime.datetime(2024, 1, 1)


def cells() -> dict[str, list[Any]]:
    """A small mixed table with missing values, rare levels and a level that no row has."""
    chance = np.random.default_rng(5)

    def column(values: list[Any], share_missing: float) -> list[Any]:
        gaps = chance.random(N_TRAIN) < share_missing
        drawn = chance.integers(0, len(values), N_TRAIN)
        return [
            None if gap else values[place] for gap, place in zip(gaps, drawn.tolist(), strict=True)
        ]

    cities = column(["Oslo", "Bergen", "Moss"], 0.1)
    cities[17] = "Å"
    return {
        "age": column(list(range(18, 70)), 0.1),
        "income": column([0.25 * i for i in range(40)], 0.1),
        "city": cities,
        "size": column(SIZES[:3], 0.1),
        "member": column([True, False], 0.2),
        "since": column([START + datetime.timedelta(hours=7 * i) for i in range(30)], 0.1),
    }


NULLABLE = {"age": "Int64", "income": "Float64", "city": "string", "member": "boolean"}
IN_PANDAS = {"size": pd.CategoricalDtype(SIZES, ordered=True), "since": "datetime64[us]"}
ARROW = {
    "age": pa.int64(),
    "income": pa.float64(),
    "city": pa.string(),
    "size": pa.dictionary(pa.int8(), pa.string(), ordered=True),
    "member": pa.bool_(),
    "since": pa.timestamp("us"),
}


def in_pandas(dtypes: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            name: pd.Series(column, dtype=(dtypes | IN_PANDAS).get(name, object))
            for name, column in cells().items()
        }
    )


def in_pyarrow() -> Any:
    columns = cells()
    sizes = [None if size is None else SIZES.index(size) for size in columns.pop("size")]
    arrays = {name: pa.array(column, ARROW[name]) for name, column in columns.items()}
    arrays["size"] = pa.DictionaryArray.from_arrays(pa.array(sizes, pa.int8()), SIZES, ordered=True)
    return pa.table({name: arrays[name] for name in ARROW})


KINDS = {
    "pandas": lambda: in_pandas({"age": "float64", "income": "float64"}),
    "pandas nullable": lambda: in_pandas(NULLABLE),
    "pandas in Arrow": lambda: in_pandas(
        {name: pd.ArrowDtype(kind) for name, kind in ARROW.items() if name not in IN_PANDAS}
    ),
    "polars": lambda: pl.DataFrame(
        cells(), schema_overrides={"size": pl.Enum(SIZES), "since": pl.Datetime("us")}
    ),
    "pyarrow": in_pyarrow,
}


def take(data: Any, start: int, stop: int) -> Any:
    """Some rows, whatever the kind."""
    if isinstance(data, pd.DataFrame):
        return data.iloc[start:stop].reset_index(drop=True)
    return data.slice(start, stop - start) if isinstance(data, pa.Table) else data[start:stop]


def records(data: Any) -> list[dict[str, Any]]:
    """Rows as plain Python cells, None for missing, whatever the kind."""
    if isinstance(data, pl.DataFrame):
        rows = data.rows(named=True)
    elif isinstance(data, pa.Table):
        rows = data.to_pylist()
    else:
        rows = data.astype(object).to_dict("records")
    return [{name: plain_cell(cell) for name, cell in row.items()} for row in rows]


def plain_cell(cell: Any) -> Any:
    if cell is None or pd.isna(cell):
        return None
    cell = cell.to_pydatetime() if isinstance(cell, pd.Timestamp) else cell
    return cell.item() if isinstance(cell, np.generic) else cell


def types_of(data: Any) -> Any:
    return data.dtypes.to_dict() if isinstance(data, pd.DataFrame) else data.schema


def number(cell: Any) -> float:
    """Any cell as a number of about one digit."""
    if cell is None:
        return -1.0
    if isinstance(cell, str):
        return float(len(cell))
    return (cell - START).days / 3 if isinstance(cell, datetime.datetime) else float(cell) % 10


def scores(data: Any) -> np.ndarray:
    """In [0, 1): depends on every cell, and on nothing else."""
    total = [
        sum(np.sin((place + 1) * number(cell)) for place, cell in enumerate(row.values()))
        for row in records(data)
    ]
    return np.array(total) - np.floor(total)
