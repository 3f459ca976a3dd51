"""Tables of cells that are equal but not identical, and a black box that tells them apart."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000123))[0]
NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000000))[0]
FLOATS = [0.0, -0.0, 1.0, 5e-324, float("nan"), OTHER_NAN, NEGATIVE_NAN]
GAPS = [None, float("nan"), OTHER_NAN, pd.NaT, pd.NA]
OBJECTS = [1, True, 1.0, 0, False, 0.0, -0.0, Decimal("1.0"), Decimal("1.00"), *GAPS]
TEXTS = ["a", np.str_("a"), "b", "c", *GAPS]
KINDS = ("floats", "nullable", "arrow", "objects", "texts", "large", "small ints", "float32")


@dataclass(frozen=True)
class Case:
    """Training data, people and the names of columns that need or cannot have changes."""

    train: pd.DataFrame
    people: pd.DataFrame
    immutable: list[str]
    kinds: dict[str, str]


def fingerprint(cell: Any) -> bytes:
    """Type and bits of a cell."""
    if isinstance(cell, (float, np.floating)):
        return type(cell).__name__.encode() + np.asarray(cell).tobytes()
    return f"{type(cell).__name__} {cell!r}".encode()


def fingerprints(column: pd.Series) -> list[bytes]:
    """Type and bits of each cell; NaN and NA of nullable floats differ."""
    array = column.array
    if hasattr(array, "_mask") and array.dtype.kind == "f":
        pairs = zip(array._data, array._mask, strict=True)
        return [b"NA" if masked else fingerprint(cell) for cell, masked in pairs]
    if isinstance(column.dtype, pd.ArrowDtype):
        return [fingerprint(cell.as_py()) for cell in array.__arrow_array__()]
    return [fingerprint(cell) for cell in column.to_numpy()]


def score(frame: pd.DataFrame) -> np.ndarray:
    """A number in [0, 1) that any bit of a row changes, and nothing else."""
    cells = zip(*(fingerprints(column) for _, column in frame.items()), strict=True)
    return np.array([zlib.crc32(b"|".join(row)) % 1000 / 1000 for row in cells])


def column(kind: str, n: int, chance: np.random.Generator) -> pd.Series:
    """A column full of look-alikes."""
    if kind == "floats":
        return pd.Series(chance.choice(FLOATS, n))
    if kind == "float32":
        return pd.Series(chance.choice(np.array([0.0, -0.0, 1.0], dtype=np.float32), n))
    if kind == "large":
        return pd.Series(2**60 + chance.integers(0, 3, n))
    if kind == "small ints":
        return pd.Series(chance.integers(0, 3, n))
    if kind in ("nullable", "arrow"):
        values, gap = chance.choice([0.0, -0.0, 1.0, np.nan, OTHER_NAN], n), chance.random(n) < 0.3
        if kind == "nullable":
            return pd.Series(pd.arrays.FloatingArray(values, gap))
        import pyarrow as pa

        cells = pa.array(values, from_pandas=False, mask=gap)
        return pd.Series(pd.arrays.ArrowExtensionArray(cells))
    choices = OBJECTS if kind == "objects" else TEXTS
    cells = np.empty(n, dtype=object)
    cells[:] = [choices[at] for at in chance.integers(0, len(choices), n)]
    return pd.Series(cells, dtype=object)


@st.composite
def cases(draw: Any) -> Case:
    """Few distinct values, so that people meet their look-alikes."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=2, max_size=4))
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_train = draw(st.integers(1, 40))
    names = [f"c{at}" for at in range(len(kinds))]
    by_name = dict(zip(names, kinds, strict=True))
    table = pd.DataFrame(
        {name: column(kind, n_train + 6, chance) for name, kind in by_name.items()}
    )
    mutable = draw(st.sampled_from(names))
    immutable = [name for name in names if name != mutable and draw(st.booleans())]
    categorical = [name for name, kind in by_name.items() if kind in ("objects", "texts")]
    return Case(
        train=table.iloc[:n_train],
        people=table.iloc[n_train:],
        immutable=immutable,
        kinds=dict.fromkeys(categorical, "categorical"),
    )
