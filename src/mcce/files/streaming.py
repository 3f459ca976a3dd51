"""Training rows of files in blocks, for tables that do not fit in memory.

As :func:`~mcce.files.training.read_training` reads them whole, except that dtypes that nobody named
are inferred from each block; see :mod:`mcce.files.blocks` for what must agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ..errors import ParameterError, ReadError, shorten
from .arrow import ArrowSource, rebatch
from .formats import STANDARD, Format, find_format, require_pyarrow
from .sources import iterate, open_bytes, open_source, reading
from .training import STEP, convert, csv_errors, csv_options, plan_dtypes

ARROW: tuple[Format, ...] = ("parquet", "arrow")


def iterate_training(
    paths: Sequence[str],
    format_: str | None = None,
    *,
    delimiter: str = ",",
    dtypes: Mapping[str, str] | None = None,
) -> Iterator[pd.DataFrame]:
    """Training rows of files, one after the other, in blocks."""
    kinds = [find_format(path, format_) for path in paths]
    given = plan_dtypes(dtypes)
    categories = _categories(list(zip(paths, kinds, strict=True)))
    for path, kind in zip(paths, kinds, strict=True):
        if path == STANDARD:
            raise ParameterError(
                "A sample cannot be drawn from standard input, which can be read only once. Name "
                "files."
            )
        for frame in _blocks(path, kind, delimiter, given):
            rows = convert(path, kind, frame, given)
            yield rows.astype(
                {n: t for n, t in categories.items() if n in rows and _fits(rows[n], t)}
            )


def _fits(column: pd.Series[Any], dtype: pd.CategoricalDtype) -> bool:
    """Whether a column has levels, and all of them are in a category: others would be lost."""
    own = column.dtype
    return isinstance(own, pd.CategoricalDtype) and set(own.categories) <= set(dtype.categories)


def _blocks(
    path: str, kind: Format, delimiter: str, dtypes: Mapping[str, Any]
) -> Iterator[pd.DataFrame]:
    if kind == "csv":
        return _csv_blocks(path, delimiter, dtypes)
    return _json_blocks(path) if kind == "jsonl" else _arrow_blocks(path, kind)


def _csv_blocks(path: str, delimiter: str, dtypes: Mapping[str, Any]) -> Iterator[pd.DataFrame]:
    # Once to check that all rows have one cell for each column, and once for their cells.
    with open_source(path, "csv", delimiter) as source:
        for _ in iterate(path, source, [], STEP):
            pass
    with open_bytes(path) as stream, csv_errors(path, dtypes), reading(path):
        yield from pd.read_csv(stream, chunksize=STEP, **csv_options(delimiter, dtypes))


def _json_blocks(path: str) -> Iterator[pd.DataFrame]:
    with open_source(path, "jsonl") as source:
        for block in iterate(path, source, source.names, STEP):
            yield pd.DataFrame(block.columns)


def _arrow_blocks(path: str, kind: Format) -> Iterator[pd.DataFrame]:
    for table in _arrow_tables(path, kind):
        yield table.to_pandas().reset_index(drop=True)


def _arrow_tables(path: str, kind: Format, *, dictionaries: bool = False) -> Iterator[Any]:
    """Tables of all columns of a file, or of those with dictionaries alone."""
    pa = require_pyarrow(path)
    with open_bytes(path) as stream, reading(path):
        source = ArrowSource.open(path, stream, kind)
        fields = [field for field in source.schema if pa.types.is_dictionary(field.type)]
        names = [field.name for field in fields] if dictionaries else source.names
        try:
            yield from rebatch(source.groups.batches(names), STEP) if names else ()
        except pa.ArrowException as error:
            raise ReadError(
                f"Cannot read {shorten(path, 200)} as {kind}: {shorten(error, 200).rstrip('.')}."
            ) from error


def _categories(files: Iterable[tuple[str, Format]]) -> dict[str, pd.CategoricalDtype]:
    """Categories of each column that has them, of all files: a block may know only some."""
    found: dict[str, dict[Any, None]] = {}
    ordered: dict[str, bool] = {}
    for path, kind in files:
        for table in _arrow_tables(path, kind, dictionaries=True) if kind in ARROW else ():
            for name in table.column_names:
                column = table.column(name)
                ordered[name] = column.type.ordered
                for chunk in column.chunks:
                    found.setdefault(name, {}).update(dict.fromkeys(chunk.dictionary.to_pylist()))
    return {
        name: pd.CategoricalDtype([cell for cell in cells if cell is not None], ordered[name])
        for name, cells in found.items()
    }
