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
from collections import Counter
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
from .sources import GROUP_ROWS, Format, open_source, rebatch

FIRST = {"factual": "Int64"}
_TEXTS = ("status", "reason", "reason_kind")
BEFORE = {"rank": "Int64", **dict.fromkeys(_TEXTS, "object"), "score_before": "float64"}
CHANGED = {"changed": "object"}


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
        parts, places = list[pd.DataFrame](), list[IntArray]()
        for positions, result in results:
            inside = result.to_pandas()
            without = np.flatnonzero(inside.people["n_counterfactuals"].to_numpy() == 0)
            whose = np.concatenate([inside.owner, without])
            parts.append(self._rows(people, inside, whose, positions[whose]))
            places.append(positions[whose])
        if not parts:
            return self.empty()
        order = np.argsort(np.concatenate(places), kind="stable")
        return pd.concat(parts, ignore_index=True).iloc[order].reset_index(drop=True)

    def empty(self) -> pd.DataFrame:
        """A table of answers to nobody."""
        return pd.DataFrame({n: pd.Series([], dtype=t) for n, t in self.dtypes.items()})

    def _rows(
        self,
        people: People,
        result: Counterfactuals[pd.DataFrame],
        whose: IntArray,
        place: IntArray,
    ) -> pd.DataFrame:
        """Answers, and after them people without any; ``place`` is that of the person."""
        found = result.people.iloc[whose]
        own: dict[str, Any] = {
            "factual": pd.Series(place + people.first),
            "score_before": found["score"],
            **{name: found[name] for name in _TEXTS},
            "rank": result.frame.index.get_level_values("rank").to_series(),
            **{str(name): column for name, column in _measures(result).items()},
            "changed": pd.Series(_changed(result), dtype=object),
        }
        frame = result.frame if result.anonymous is None else result.anonymous.frame
        cells = {f"{self.prefix}{name}": own[name] for name in self.own}
        cells |= {str(name): frame[name] for name in self.features}
        for name in self.kept:
            kept = people.kept[name]
            cells[name] = pd.Series([kept[at] for at in place.tolist()], dtype=object)
        return pd.DataFrame(
            {n: _as_output(cells[n], dtype, whose.size) for n, dtype in self.dtypes.items()}
        )


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


def _as_output(cells: pd.Series[Any], dtype: Any, n_rows: int) -> Any:
    """Cells in another dtype, followed by missing ones."""
    if types.is_object_dtype(dtype):
        values = np.full(n_rows, None, dtype=object)
        there = np.flatnonzero(cells.notna())
        values[there] = cells.to_numpy(dtype=object)[there]
        # pandas 3 would make its own strings of an array.
        return pd.Series(values, dtype=object)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object)
    return cells.astype(dtype).reset_index(drop=True).reindex(range(n_rows)).array


def _changed(result: Counterfactuals[pd.DataFrame]) -> list[str]:
    """Names of the changed features of each answer, as a JSON list."""
    before = result.factuals.iloc[result.owner].reset_index(drop=True)
    changed = changed_cells(before, result.frame.reset_index(drop=True))
    names = [json.dumps(str(name), ensure_ascii=False) for name in result.frame.columns]
    listed: list[list[str]] = [[] for _ in range(len(result.frame))]
    for answer, column in zip(*map(np.ndarray.tolist, np.nonzero(changed.T)), strict=True):
        listed[answer].append(names[column])
    return [f"[{', '.join(one)}]" for one in listed]


def count_status(table: pd.DataFrame, prefix: str = "") -> Counter[str]:
    """How many people of a table of answers have which status."""
    once = table[f"{prefix}rank"].fillna(1) == 1
    return Counter(table.loc[once, f"{prefix}status"].tolist())


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
    table.to_csv(_UnixLines(stream), index=False, header=header, lineterminator="\r\n")  # type: ignore[call-overload]


class _UnixLines:
    """Writes rows that end in CR LF with LF alone."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, row: str) -> int:
        """Write a row."""
        line = row.removesuffix("\r\n") + "\n"
        return self._stream.write(line.encode("utf-8", "surrogatepass"))


def _write_json(table: pd.DataFrame, stream: BinaryIO) -> None:
    """Write rows as JSON lines: moments as texts, missing cells as null."""
    cells = table.astype(object)
    for row in cells.where(table.notna(), None).to_dict("records"):
        line = json.dumps(row, ensure_ascii=False, default=str)
        stream.write(line.encode("utf-8", "surrogatepass") + b"\n")


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

    def batches() -> Iterator[Any]:
        for part in parts:
            with open_source(str(part), format_) as source:
                assert source.groups is not None
                yield from source.groups.batches(source.names, None)

    with open_source(str(parts[0]), format_) as source:
        schema = None if source.groups is None else source.groups.schema
    with _open_writer(schema, format_, stream) as writer:
        for table in rebatch(batches(), GROUP_ROWS):
            writer.write_table(table.combine_chunks())
