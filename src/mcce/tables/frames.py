"""Frames of every library: converted to pandas on the way in, and back on the way out.

Users pass pandas frames, arrays, polars frames or pyarrow tables; inside there is only pandas. An
adapter remembers the library, so that the predictor gets what it was trained on and users get back
what they passed.

Always true: no cell changes its value, missing cells stay missing, integers stay integers; what
cannot be converted so is an error that names the column. pyarrow is imported only for data that
are neither pandas nor an array.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pandas as pd
from pandas.api.types import is_object_dtype

from ..errors import SchemaError, missing_extra, shorten
from .columns import EXACT_IN_FLOAT64
from .roles import check_column_names, check_text

if TYPE_CHECKING:
    import pyarrow as pa

Library = Literal["polars", "pyarrow"]
# Types of polars that Arrow does not have.
NOT_IN_ARROW = ("Object", "Int128", "UInt128")
# A frame of a user: results come in the kind of frame in which people came.
FrameT = TypeVar("FrameT")


@dataclass(frozen=True, eq=False)
class FrameAdapter:
    """Converts between pandas and the user's type of frame; this one, for pandas, does nothing."""

    @property
    def needs_conversion(self) -> bool:
        """Whether frames of this type are converted, so that their dtypes are not the user's."""
        return False

    def rows_for_predictor(self, frame: pd.DataFrame) -> Any:
        """Rows for a predictor that was trained on this type; a copy, which it may change."""
        return frame.copy()

    def rows_to_native(self, frame: pd.DataFrame) -> Any:
        """Rows of data in the user's type; the index is kept if the type has one."""
        return frame

    def table_to_native(self, frame: pd.DataFrame) -> Any:
        """A table of results in the user's type; an index becomes columns if it has none."""
        return frame


PANDAS_ADAPTER = FrameAdapter()


@dataclass(frozen=True, eq=False)
class ArrayAdapter(FrameAdapter):
    """For arrays: the predictor gets arrays, users get pandas frames."""

    named: bool = False

    def rows_for_predictor(self, frame: pd.DataFrame) -> Any:
        """Rows as an array, for a predictor that was trained on one."""
        return frame.to_numpy(copy=True)


@dataclass(frozen=True, eq=False)
class ArrowAdapter(FrameAdapter):
    """For polars frames and pyarrow tables, which are converted by way of Arrow."""

    library: Library
    schema: pa.Schema = field(repr=False)
    dtypes: dict[Hashable, Any] = field(repr=False)

    @property
    def needs_conversion(self) -> bool:
        """True: in pandas, the columns have dtypes that the user did not choose."""
        return True

    def rows_for_predictor(self, frame: pd.DataFrame) -> Any:
        """Rows in the user's type."""
        return self.rows_to_native(frame)

    def rows_to_native(self, frame: pd.DataFrame) -> Any:
        """Rows in the user's type; each column has its own type unless it had to be widened."""
        import pyarrow as pa

        fields, arrays = [], []
        for name, column in frame.items():
            field = self.schema.field(name)
            if pa.types.is_null(field.type) or not _is_unchanged(column.dtype, self.dtypes[name]):
                arrays.append(pa.array(column, from_pandas=True))
                field = pa.field(name, arrays[-1].type)
            elif pa.types.is_dictionary(field.type):
                arrays.append(_as_dictionary(column, field.type))
                field = field.with_type(arrays[-1].type)
            else:
                arrays.append(pa.array(column, from_pandas=True).cast(field.type))
            fields.append(field)
        schema = pa.schema(fields, metadata=self.schema.metadata)
        return self._from_arrow(pa.Table.from_arrays(arrays, schema=schema))

    def table_to_native(self, frame: pd.DataFrame) -> Any:
        """A table in the user's type; columns of mixed types become strings."""
        import pyarrow as pa

        labelled = frame.reset_index() if any(frame.index.names) else frame
        arrays = {}
        for name, column in labelled.items():
            mixed = is_object_dtype(column.dtype)
            cells = column.map(_to_text, "ignore") if mixed else column
            arrays[name] = pa.array(cells, pa.string() if mixed else None, from_pandas=True)
        return self._from_arrow(pa.table(arrays))

    def _from_arrow(self, table: pa.Table) -> Any:
        if self.library == "pyarrow":
            return table
        import polars

        return polars.from_arrow(table)


def read_frame(
    data: Any, names: Sequence[Hashable] | None = None
) -> tuple[pd.DataFrame, FrameAdapter]:
    """The data as a pandas frame, and the adapter that converts frames back.

    Examples
    --------
    >>> frame, adapter = read_frame(np.array([[1.0, 2.0]]))
    >>> list(frame.columns)
    ['x0', 'x1']
    >>> adapter.rows_for_predictor(frame)
    array([[1., 2.]])
    """
    if isinstance(data, pd.DataFrame):
        check_column_names(data)
        return data, PANDAS_ADAPTER
    if isinstance(data, np.ndarray):
        return _name_columns(data, names), ArrayAdapter(named=names is not None)
    if isinstance(data, pd.Series):
        raise SchemaError(
            "Expected a pandas DataFrame with one row per person, got a Series. "
            "Select one person with double brackets: frame.iloc[[0]]."
        )
    return _read_by_arrow(data)


def check_feature_names(names: Any, data: Any) -> list[Hashable] | None:
    """The user's names for the columns of an array, checked; None if there are none."""
    if names is None:
        return None
    if not isinstance(data, np.ndarray):
        raise SchemaError(
            "feature_names is only for arrays, but the data are a "
            f"{type(data).__name__} with names of its own. Leave feature_names out."
        )
    listed = (Sequence, pd.Index, pd.Series, np.ndarray)
    if isinstance(names, (str, bytes)) or not isinstance(names, listed):
        raise SchemaError(f"feature_names must list one name per column, got {shorten(names)}.")
    return list(names)


def _name_columns(data: np.ndarray, names: Sequence[Hashable] | None) -> pd.DataFrame:
    if data.ndim != 2:
        raise SchemaError(
            f"Expected a 2-D array with one row per person, got shape {data.shape}. Reshape your "
            "data: .reshape(1, -1) makes one row, .reshape(-1, 1) one column."
        )
    if isinstance(data, np.ma.MaskedArray):
        _check_masked(data)
    n_columns = data.shape[1]
    if names is not None and len(names) != n_columns:
        raise SchemaError(
            f"The array has {n_columns} columns, but there are {len(names)} names for them: "
            f"{shorten(list(names), 500)}. Pass one name per column, in their order."
        )
    frame = pd.DataFrame(data, columns=[f"x{j}" for j in range(n_columns)])
    frame = frame.infer_objects() if data.dtype == object else frame
    if names is not None:
        check_text(names)
        frame.columns = pd.Index(list(names), tupleize_cols=False)
        check_column_names(frame)
    return frame


def _check_masked(data: np.ma.MaskedArray[Any, Any]) -> None:
    """Raise if pandas, which makes masked cells missing, would round integers for it."""
    cells = data.compressed() if data.dtype.kind in "iu" and np.ma.is_masked(data) else data[:0]
    if cells.size and max(int(cells.max()), -int(cells.min())) > EXACT_IN_FLOAT64:
        raise SchemaError(
            "The masked array holds integers beyond 2**53, which floats with missing cells would "
            "round. Pass a frame with the dtype Int64 or UInt64."
        )


def _read_by_arrow(data: Any) -> tuple[pd.DataFrame, ArrowAdapter]:
    """A frame of another library as pandas, column by column."""
    library, table, type_names = _as_arrow(data)
    check_column_names(pd.DataFrame(columns=table.column_names))
    cells = {
        field.name: _to_pandas(table.column(field.name), field, type_names[field.name])
        for field in table.schema
    }
    converted = pd.DataFrame(cells, index=pd.RangeIndex(table.num_rows))
    dtypes = {name: column.dtype for name, column in converted.items()}
    return converted, ArrowAdapter(library=library, schema=table.schema, dtypes=dtypes)


def _as_arrow(data: Any) -> tuple[Library, pa.Table, dict[str, str]]:
    """The library of a frame, its rows in Arrow, and the types of its columns by that library."""
    try:
        import pyarrow as pa
    except ImportError as error:
        if not hasattr(data, "columns"):
            raise _no_frame(data) from None
        raise missing_extra(
            "pyarrow",
            "frames",
            f"A {_type_name(data)}",
            instead="Or convert the data with .to_pandas().",
        ) from error
    if isinstance(data, pa.Table):
        return "pyarrow", data.combine_chunks(), {one.name: str(one.type) for one in data.schema}
    polars = sys.modules.get("polars")
    if polars is None or not isinstance(data, polars.DataFrame):
        raise _no_frame(data)
    type_names = {name: str(type_) for name, type_ in data.schema.items()}
    for name, type_name in type_names.items():
        if type_name in NOT_IN_ARROW:
            raise _unknown_type(name, type_name)
    return "polars", data.to_arrow().combine_chunks(), type_names


def _to_pandas(column: pa.ChunkedArray, field: pa.Field, type_name: str) -> pd.Series[Any]:
    """A column in a dtype of pandas that loses nothing: an Arrow dtype or a category."""
    import pyarrow as pa

    if pa.types.is_null(field.type):
        return pd.Series([None] * len(column), dtype=object)
    if pa.types.is_dictionary(field.type):
        _arrow_dtype(field.type.value_type, field.name, type_name)
        # Older versions of polars do not tell Arrow that the levels of an Enum are ordered.
        ordered = field.type.ordered or type_name.startswith("Enum")
        return _as_category(column.unify_dictionaries().combine_chunks(), field, ordered)
    dtype = _arrow_dtype(field.type, field.name, type_name)
    try:
        cells = column.cast(dtype.pyarrow_dtype)
    except pa.ArrowNotImplementedError:
        raise _unknown_type(field.name, field.type) from None
    return pd.Series(pd.arrays.ArrowExtensionArray(cells))


def _as_category(column: pa.DictionaryArray, field: pa.Field, ordered: bool) -> pd.Series[Any]:
    """A dictionary column as a category, with the levels that no row has."""
    numbers = column.indices.cast("int64").fill_null(-1).to_numpy()
    try:
        cells = pd.Categorical.from_codes(numbers, column.dictionary.to_pandas(), ordered=ordered)
    except ValueError:
        raise SchemaError(
            f"Column {field.name!r} has type {field.type}, whose levels are not unique or missing. "
            "Encode it again from its values."
        ) from None
    return pd.Series(cells)


def _as_dictionary(column: pd.Series[Any], type_: pa.DictionaryType) -> pa.DictionaryArray:
    """A category in an Arrow type, with a wider index if it has too many levels."""
    import pyarrow as pa

    numbers = column.cat.codes.to_numpy()
    levels = pa.array(column.cat.categories, from_pandas=True).cast(type_.value_type)
    try:
        indices = pa.array(numbers, type_.index_type, mask=numbers < 0)
    except pa.ArrowInvalid:
        indices = pa.array(numbers, mask=numbers < 0)
    return pa.DictionaryArray.from_arrays(indices, levels, ordered=type_.ordered)


def _arrow_dtype(type_: pa.DataType, name: str, type_name: str) -> pd.ArrowDtype:
    """The pandas dtype of an Arrow type; string views, which pandas cannot read, are strings."""
    from pyarrow import types

    if types.is_string_view(type_):
        import pyarrow as pa

        return pd.ArrowDtype(pa.large_string())
    texts = types.is_string(type_) or types.is_large_string(type_)
    times = types.is_date(type_) or types.is_timestamp(type_) or types.is_duration(type_)
    numbers = types.is_integer(type_) or types.is_float32(type_) or types.is_float64(type_)
    if not (texts or times or numbers or types.is_boolean(type_)):
        raise _unknown_type(name, type_ if type_name == "Unknown" else type_name)
    return pd.ArrowDtype(type_)


def _is_unchanged(dtype: Any, original: Any) -> bool:
    """Whether a column has its original dtype; an unordered category may have more levels."""
    if isinstance(dtype, pd.CategoricalDtype) and isinstance(original, pd.CategoricalDtype):
        return bool(dtype == original) or not (dtype.ordered or original.ordered)
    return bool(dtype == original)


def _to_text(cell: Any) -> str:
    return cell if isinstance(cell, str) else str(cell)


def _type_name(data: Any) -> str:
    return f"{type(data).__module__}.{type(data).__name__}"


def _unknown_type(name: str, type_: Any) -> SchemaError:
    # In parentheses there are the levels of an Enum.
    type_name = str(type_).partition("(")[0]
    return SchemaError(
        f"Column {name!r} has type {type_name}, which is neither numeric nor categorical. Convert "
        "it to numbers, strings, categories, booleans, dates or durations, or leave it out."
    )


def _no_frame(data: Any) -> SchemaError:
    """What is wrong with data that are no frame that can be read, and what to do."""
    if hasattr(data, "to_native"):
        return SchemaError("Got a narwhals frame. Pass the frame that it wraps: .to_native().")
    if hasattr(data, "collect") or hasattr(data, "to_arrow_table"):
        return SchemaError(
            f"Got a {_type_name(data)}, whose rows are not computed yet. Compute them first with "
            ".collect() in polars or .to_arrow_table() in DuckDB."
        )
    if hasattr(data, "to_pandas"):
        return SchemaError(
            f"Expected a frame with one row per person, got a {_type_name(data)}. Select one "
            "person of a polars frame with a slice, frame[:1], and convert frames of other "
            "libraries with .to_pandas()."
        )
    return SchemaError(
        "Expected a frame (pandas, polars, pyarrow) or a 2-D NumPy array, got "
        f"{_type_name(data)}. Convert it first (a sparse matrix with .toarray(), a list with "
        "np.asarray, records or a dict of columns with pd.DataFrame)."
    )
