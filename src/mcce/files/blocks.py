"""Frames of any size as frames of one size, with the columns and dtypes of the first.

Always true: cells and the numbers of keys depend on the rows and their order, not on how they were
divided. Nor do dtypes, except that whole numbers are floats in a block if any of the frames that it
was made of had floats there, because of a missing cell, say.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from ..errors import SchemaError, shorten
from ..tables.columns import is_missing
from ..tables.frames import FrameAdapter, read_frame

Block = tuple[pd.DataFrame, FrameAdapter, np.ndarray | None]


def even_blocks(blocks: Iterable[Any], n_rows: int, key: Hashable | None = None) -> Iterator[Block]:
    """Blocks of so many rows but the last."""
    waiting: list[pd.DataFrame] = []
    first: tuple[pd.DataFrame, FrameAdapter] | None = None
    n_before = 0
    for number, block in enumerate(_listed(blocks), start=1):
        frame, adapter = read_frame(_as_table(block))
        if first is None and len(frame):
            first = frame.iloc[:0], adapter
        if first is None or frame.empty:
            continue
        waiting.append(_like(frame, first[0], number))
        while sum(map(len, waiting)) >= n_rows:
            joined = pd.concat(waiting, ignore_index=True)
            rows, keys = _divided(joined.iloc[:n_rows], key, n_before)
            yield rows, first[1], keys
            n_before += n_rows
            waiting = [joined.iloc[n_rows:].reset_index(drop=True)]
    if first is not None and any(not frame.empty for frame in waiting):
        rows, keys = _divided(pd.concat(waiting, ignore_index=True), key, n_before)
        yield rows, first[1], keys


def _listed(blocks: Any) -> Iterable[Any]:
    """The blocks, unless they are a single frame."""
    if isinstance(blocks, (str, bytes, pd.DataFrame, np.ndarray)) or hasattr(blocks, "columns"):
        raise SchemaError(
            f"blocks must be an iterable of frames, got one {type(blocks).__name__}. Pass [frame] "
            "for a single frame, or an iterator over the rows of files, such as "
            "pandas.read_csv(path, chunksize=100_000)."
        )
    given: Iterable[Any] = blocks
    return given


def _as_table(block: Any) -> Any:
    """A block, as a table if it is a batch of Arrow."""
    if type(block).__name__ != "RecordBatch":
        return block
    import pyarrow as pa

    return pa.Table.from_batches([block])


def _like(frame: pd.DataFrame, first: pd.DataFrame, number: int) -> pd.DataFrame:
    """A block in the columns and dtypes of the first."""
    missing = [name for name in first.columns if name not in frame.columns]
    extra = [name for name in frame.columns if name not in first.columns]
    if missing or extra:
        raise SchemaError(
            f"Block {number} of the training rows has other columns than the first: missing "
            f"{shorten(missing, 300)}, extra {shorten(extra, 300)}. Give all blocks the same."
        )
    frame = frame[list(first.columns)]
    for name, dtype in first.dtypes.items():
        if frame[name].dtype != dtype and not _are_numbers(frame[name].dtype, dtype):
            raise SchemaError(
                f"Column {shorten(name)} of the training rows is {frame[name].dtype} in block "
                f"{number}, but {dtype} in the first one. Give all blocks the same dtypes, "
                "categories included (on the command line: --dtype)."
            )
    return frame


def _are_numbers(*dtypes: Any) -> bool:
    """Whether all are integers or floats, which a block without missing cells may tell apart."""
    return all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in dtypes)


def _divided(
    frame: pd.DataFrame, key: Hashable | None, n_before: int
) -> tuple[pd.DataFrame, np.ndarray | None]:
    """Rows without their key, and the numbers of the key's cells."""
    if key is None:
        return frame, None
    if key not in frame.columns:
        raise SchemaError(
            f"key names a column that is not in the data: {shorten(key)}. The columns are "
            f"{shorten(list(frame.columns), 500)}."
        )
    missing = np.flatnonzero(is_missing(frame[key]))
    if missing.size:
        raise SchemaError(
            f"Column {shorten(key)} of the training rows, the key, is missing in row "
            f"{n_before + missing[0] + 1}. Fill it with what tells the row apart, or leave key out."
        )
    return frame.drop(columns=[key]), _key_numbers(frame[key])


def _key_numbers(keys: pd.Series[Any]) -> np.ndarray:
    """A number of 64 bits for each key; 5 and 5.0 have the same one."""
    if isinstance(keys.dtype, np.dtype) and keys.dtype.kind == "f":
        numbers = keys.to_numpy(dtype=np.float64)
        whole = (np.abs(numbers) < 2**63) & (np.trunc(numbers) == numbers)
        integers = np.where(whole, numbers, 0).astype(np.int64)
        return np.where(whole, _hashed(integers), _hashed(numbers))
    return _hashed(keys)


def _hashed(cells: Any) -> np.ndarray:
    return pd.util.hash_pandas_object(pd.Series(cells), index=False).to_numpy()
