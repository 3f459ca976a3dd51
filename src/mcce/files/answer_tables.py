"""The table of answers, one row per answer or per person without one, and how it is written.

Columns are the same for every block: ours (``factual``, ``rank``, ``status``, …), those that were
copied from the file, and the features of the explainer with the values of the answer. Each part is
a complete file; all parts can be joined into one.

Always true: everybody in the block has at least one row, in the order of the file, with a
``reason`` if there is no answer; dtypes depend on the explainer alone; the bytes of a joined file
depend on its rows alone, not on the number of parts; joining holds a small piece in memory.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from pandas.api import types

from ..counterfactuals.result import Counterfactuals
from ..errors import ParameterError, shorten
from ..kernels import IntArray
from ..tables.columns import changed_cells
from .people_reader import People, PeopleReader
from .sources import GROUP_ROWS, ArrowSource, Format, rebatch

FIRST = {"factual": "Int64"}
_TEXTS = ("status", "reason", "reason_kind")
BEFORE = {"rank": "Int64", **dict.fromkeys(_TEXTS, "object"), "score_before": "float64"}
CHANGED = {"changed": "object"}
_ABOUT_PEOPLE = (*_TEXTS, "score_before")
# Where a row's person is in the block; no column of the table.
PLACE = object()


@dataclass(frozen=True)
class Layout:
    """The columns of the table of answers, with their dtypes, in order."""

    own: Mapping[str, Any]
    kept: Mapping[str, Any]
    features: Mapping[Any, Any]
    prefix: str = ""

    @classmethod
    def plan(
        cls,
        reader: PeopleReader,
        result: Counterfactuals[Any],
        prefix: str = "",
        *,
        numbered: bool = True,
    ) -> Layout:
        """The columns of answers to people who are read in this way."""
        both = [name for name in reader.kept if name in reader.readers]
        if both:
            raise ParameterError(
                f"Columns to keep are features already: {shorten(both, 200)}. Name only columns "
                "that the explainer does not know, such as a customer number; factual is the row "
                "of the person."
            )
        measures = _measures(result.to_pandas())
        measured = {str(name): _output_dtype(dtype) for name, dtype in measures.dtypes.items()}
        own: dict[str, Any] = {**(FIRST if numbered else {}), **BEFORE, **measured}
        features = {
            r.name: pd.BooleanDtype() if r.booleans else _output_dtype(r.dtype)
            for r in reader.readers.values()
        }
        if result.anonymous is not None:
            features |= dict.fromkeys(result.anonymous.quasi_identifiers, np.dtype(object))
        kept = {name: one.dtype for name, one in reader.kept.items()}
        layout = cls(own | CHANGED, kept, features, prefix)
        names = list(layout.dtypes)
        expected = len(own) + len(CHANGED) + len(kept) + len(features)
        if len(names) < expected:
            both = [
                n for n in map(str, [*features, *kept]) if n in {prefix + o for o in layout.own}
            ]
            raise ParameterError(
                f"Columns of the output would have the names of columns of yours: "
                f"{shorten(both, 200)}. Put something before the former with --prefix."
            )
        return layout

    @property
    def dtypes(self) -> dict[str, Any]:
        """Dtype of each column by its name in the output."""
        ours = {f"{self.prefix}{name}": dtype for name, dtype in self.own.items()}
        first = {n: ours[n] for n in (f"{self.prefix}{name}" for name in FIRST) if n in ours}
        features = {str(name): dtype for name, dtype in self.features.items()}
        return {**first, **self.kept, **ours, **features}

    def table(
        self, people: People, results: Iterable[tuple[IntArray, Counterfactuals[Any]]]
    ) -> pd.DataFrame:
        """The table of answers to a block of people."""
        parts = [self._part(people, positions, result.to_pandas()) for positions, result in results]
        empty = pd.DataFrame({n: pd.Series([], dtype=t) for n, t in self.dtypes.items()})
        if not parts:
            return empty
        table = pd.concat(parts, ignore_index=True)
        order = np.argsort(table[PLACE].to_numpy(), kind="stable")
        return table.iloc[order][list(self.dtypes)].reset_index(drop=True)

    def _part(
        self, people: People, positions: IntArray, result: Counterfactuals[pd.DataFrame]
    ) -> pd.DataFrame:
        """Rows of the table, by rank, for some people; answers first, then people without any."""
        found = result.people
        without = np.flatnonzero(found["n_counterfactuals"].to_numpy() == 0)
        whose = np.concatenate([result.owner, without])
        answers = np.concatenate([np.arange(result.owner.size), np.full(without.size, -1)])
        place = positions[whose]
        ranks = result.frame.index.get_level_values("rank").to_series()
        own: dict[Any, Any] = {
            "factual": pd.Series(place + people.first),
            "rank": ranks,
            **{name: found[name] for name in _TEXTS},
            "score_before": found["score"],
            **dict(_measures(result).items()),
            "changed": pd.Series(_changed(result), dtype=object),
        }
        about = {"factual": np.arange(whose.size), **dict.fromkeys(_ABOUT_PEOPLE, whose)}
        columns = {
            f"{self.prefix}{name}": _take(own[name], about.get(name, answers), dtype)
            for name, dtype in self.own.items()
        }
        frame = result.frame if result.anonymous is None else result.anonymous.frame
        for name, dtype in self.features.items():
            columns[str(name)] = _take(frame[name], answers, dtype)
        for name, dtype in self.kept.items():
            cells = people.kept[name]
            here = pd.Series([cells[at] for at in place.tolist()], dtype=object)
            columns[name] = _take(here, np.arange(place.size), dtype)
        rows = pd.DataFrame(columns)
        rows[PLACE] = place
        return rows


def _measures(result: Counterfactuals[pd.DataFrame]) -> pd.DataFrame:
    """Measures of answers; of anonymous ones, only those that do not depend on exact values."""
    if result.anonymous is None:
        return result.measures
    return result.measures[["sparsity"]].join(result.anonymous.measures)


def _output_dtype(dtype: Any) -> Any:
    """The dtype of a column that may also be missing; levels are what they stand for."""
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    if types.is_bool_dtype(dtype):
        return pd.BooleanDtype()
    if types.is_integer_dtype(dtype):
        return pd.UInt64Dtype() if dtype.kind == "u" else pd.Int64Dtype()
    if types.is_float_dtype(dtype):
        return np.dtype(f"float{8 * dtype.itemsize}")
    return dtype if dtype.kind in "mM" else np.dtype(object)


def _take(cells: pd.Series[Any], places: IntArray, dtype: Any) -> Any:
    """Cells at these places in another dtype; those at -1 are missing."""
    if types.is_object_dtype(dtype):
        values = np.append(cells.astype(object).to_numpy(dtype=object), [None])
        values[np.append(cells.isna().to_numpy(), True)] = None
        return pd.Series(values[places], dtype=object)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(cells.dtype.categories.dtype)
    return pd.Series(cells.astype(dtype).array.take(places, allow_fill=True))


def _changed(result: Counterfactuals[pd.DataFrame]) -> list[str]:
    """Names of the changed features of each answer, as a JSON list."""
    before = result.factuals.iloc[result.owner].reset_index(drop=True)
    changed = changed_cells(before, result.frame.reset_index(drop=True))
    patterns, which = np.unique(changed.T, axis=0, return_inverse=True)
    names = np.array([str(name) for name in result.frame.columns], dtype=object)
    lists = [json.dumps(names[pattern].tolist(), ensure_ascii=False) for pattern in patterns]
    return [lists[at] for at in which.ravel().tolist()]


def count_status(table: pd.DataFrame, prefix: str = "") -> dict[str, int]:
    """How many people of a table of answers have which status."""
    once = table[f"{prefix}rank"].fillna(1) == 1
    counts = table.loc[once, f"{prefix}status"].value_counts()
    return {str(name): int(count) for name, count in counts.items()}


def stream_tables(tables: Iterable[pd.DataFrame], format_: Format, stream: BinaryIO) -> None:
    """Write tables of one layout, at least one, as they come: together they are one file.

    Examples
    --------
    >>> import io
    >>> stream = io.BytesIO()
    >>> tables = [pd.DataFrame({"age": [36]}), pd.DataFrame({"age": [None]})]
    >>> stream_tables(tables, "jsonl", stream)
    >>> print(stream.getvalue().decode())
    {"age": 36}
    {"age": null}
    <BLANKLINE>
    """
    schema = writer = None
    with ExitStack() as stack:
        for number, table in enumerate(tables):
            if format_ == "csv":
                _write_csv(table, stream, header=number == 0)
            elif format_ == "jsonl":
                _write_json(table, stream)
            else:
                if writer is None:
                    schema = arrow_schema(table)
                    writer = stack.enter_context(_open_writer(schema, format_, stream))
                rows = arrow_table(table, schema)
                writer.write_table(rows.replace_schema_metadata(None))
            stream.flush()


def _write_csv(table: pd.DataFrame, stream: BinaryIO, *, header: bool) -> None:
    """Write rows as CSV, with or without the line of names."""
    # With this end of lines, cells with either of its characters are quoted; else, before
    # Python 3.13, those with a lone carriage return would not be, and break the row.
    table.to_csv(_Lines(stream), index=False, header=header, lineterminator="\r\n")  # type: ignore[call-overload]


class _Lines:
    """Writes rows that end in CR LF with LF alone."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, row: str) -> int:
        """Write a row."""
        line = row.removesuffix("\r\n") + "\n"
        return self._stream.write(line.encode("utf-8", "surrogatepass"))


def _write_json(table: pd.DataFrame, stream: BinaryIO) -> None:
    names = list(table.columns)
    cells = [_json_cells(table[name]) for name in names]
    for row in zip(*cells, strict=True):
        line = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str)
        stream.write(line.encode("utf-8", "surrogatepass") + b"\n")


def _json_cells(series: pd.Series[Any]) -> list[Any]:
    """Cells as JSON has them: moments as texts, missing ones as None."""
    missing = series.isna().to_numpy()
    cells = series.astype(str) if series.dtype.kind in "mM" else series
    return [None if gone else cell for cell, gone in zip(cells.tolist(), missing, strict=True)]


def _open_writer(schema: Any, format_: Format, stream: BinaryIO) -> Any:
    """A writer of Parquet, or of an Arrow file."""
    import pyarrow as pa

    if format_ == "arrow":
        return pa.ipc.new_file(stream, schema)
    from pyarrow.parquet import ParquetWriter

    return ParquetWriter(stream, schema)


def arrow_schema(table: pd.DataFrame) -> Any:
    """Types by dtype alone, so that a part without any value has those of the others."""
    import pyarrow as pa

    def of(series: pd.Series[Any]) -> Any:
        text = types.is_object_dtype(series.dtype)
        return pa.string() if text else pa.Array.from_pandas(series.iloc[:0]).type

    return pa.schema([pa.field(str(name), of(series)) for name, series in table.items()])


def arrow_table(table: pd.DataFrame, schema: Any) -> Any:
    """A table as one of Arrow; objects that are no texts become their texts.

    Examples
    --------
    >>> rows = pd.DataFrame({"since": pd.Series(["May", 1999, None], dtype=object)})
    >>> arrow_table(rows, arrow_schema(rows)).column("since").to_pylist()
    ['May', '1999', None]
    """
    import pyarrow as pa

    def texts(series: pd.Series[Any]) -> pd.Series[Any]:
        if types.infer_dtype(series, skipna=True) in ("string", "empty"):
            return series
        return series.map(str, na_action="ignore").astype(object)

    objects = [name for name, dtype in table.dtypes.items() if types.is_object_dtype(dtype)]
    rows = table.assign(**{str(name): texts(table[name]) for name in objects})
    return pa.Table.from_pandas(rows, schema=schema, preserve_index=False)


def join_parts(parts: Sequence[Path], format_: Format, stream: BinaryIO) -> None:
    """Write all parts as one file."""
    if format_ in ("csv", "jsonl"):
        for number, part in enumerate(parts):
            with part.open("rb") as content:
                if number and format_ == "csv":
                    # The line of names; one with a line break in it has quotes around it.
                    _skip_line(content)
                shutil.copyfileobj(content, stream)
        return
    _join_arrow(parts, format_, stream)


def _skip_line(stream: BinaryIO) -> None:
    """Read past the first row of a CSV file."""
    quotes = 0
    for line in iter(stream.readline, b""):
        quotes += line.count(b'"')
        if quotes % 2 == 0:
            return


def _join_arrow(parts: Sequence[Path], format_: Format, stream: BinaryIO) -> None:
    """Write all parts as one file, in groups of a fixed size."""
    with parts[0].open("rb") as content:
        schema = ArrowSource.open(str(parts[0]), content, format_).schema
    with _open_writer(schema, format_, stream) as writer:
        for table in rebatch(_all_batches(parts, format_), GROUP_ROWS):
            writer.write_table(table.combine_chunks())


def _all_batches(parts: Sequence[Path], format_: Format) -> Iterator[Any]:
    for part in parts:
        with part.open("rb") as content:
            source = ArrowSource.open(str(part), content, format_)
            yield from source.groups.batches(source.names)
