"""Training rows in a schema that is public: its values are the declared domains.

The codes of other models are ranks among training values, so that tables, ranges and saved files
hold what the rows hold. Here they are ranks among the values of the domains. Rows are moved into
their domains first; those that cannot be are left out.

Always true: the schema depends on the domains, on the names of the columns and on what kind of
table they stand in, never on a cell; what becomes of a row depends on that row alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ...errors import McceWarning, ParameterError, SchemaError, shorten
from ...kernels import BoolArray, Codes
from ...tables.columns import Kind, as_numbers, is_measured, is_missing, is_time, plain
from ...tables.features import Feature
from ...tables.frames import ArrowAdapter, FrameAdapter, check_feature_names, read_frame
from ...tables.roles import check_kinds as checked_kinds
from ...tables.roles import immutable_columns
from ...tables.schema import EncodedRows, Schema
from .domains import Domain, read_domains


def encode_public(
    domains: Any,
    data: Any,
    *,
    immutable: Sequence[Hashable] | None = None,
    mutable: Sequence[Hashable] | None = None,
    kinds: Mapping[Hashable, Kind] | None = None,
    feature_names: Sequence[Hashable] | None = None,
) -> EncodedRows:
    """Training rows, encoded with the schema of declared domains."""
    frame, adapter = read_frame(data, check_feature_names(feature_names, data))
    known = _by_column(read_domains(domains), frame)
    if frame.empty:
        raise SchemaError(
            f"The training data have 0 sample(s) (shape={frame.shape}) while a minimum of 1 is "
            "required. Pass at least one row."
        )
    fixed = set(immutable_columns(immutable, mutable, frame))
    _check_kinds(checked_kinds(kinds, frame), known)
    columns, kept, gaps = {}, np.ones(len(frame), dtype=bool), []
    for position, (name, column) in enumerate(frame.items()):
        cells, inside = _move_inside(column.reset_index(drop=True), known[name])
        columns[position] = cells
        kept &= inside
        gaps += [] if inside.all() else [name]
    if gaps:
        warnings.warn(
            f"Rows with cells that the domains of {shorten(gaps, 200)} do not declare are left "
            "out. Declare all levels, or other=...; and missing=True where cells can be missing.",
            McceWarning,
            stacklevel=6,
        )
    tables = [_table(columns[at], known[name], name) for at, name in enumerate(frame.columns)]
    features = tuple(
        Feature.learn(table, kind=_kind(known[name]), immutable=name in fixed)
        for name, table in zip(frame.columns, tables, strict=True)
    )
    moved = pd.DataFrame(columns).loc[kept].reset_index(drop=True)
    moved.columns = frame.columns
    schema = Schema(features, _without_data(adapter, features))
    return replace(Schema(features).encode(moved), schema=schema, adapter=schema.adapter)


def check_public(schema: Schema, domains: Any) -> dict[Any, Domain]:
    """The domains, if a schema is theirs; raises ParameterError otherwise."""
    known = read_domains(domains)
    for feature in schema.features:
        domain = known.get(feature.name)
        if domain is None or not _fits(feature, domain):
            raise ParameterError(
                f"The rows of column {feature.name!r} are encoded by training values and not by "
                "its declared domain. Fit a private generator by MCCE(generator=...), or encode "
                "rows with its encode_training."
            )
    return known


def bins_of_codes(feature: Feature, domain: Domain) -> Codes:
    """The bin of each code of a feature."""
    if domain.levels is not None:
        return np.arange(feature.n_codes, dtype=np.int32)
    bins = domain.bin_of_value
    missing = [domain.n_bins - 1] * domain.missing
    return np.concatenate([bins, missing]).astype(np.int32)


def bin_rows(rows: EncodedRows, domains: Mapping[Any, Domain]) -> Codes:
    """The bin of each cell, shape (n_features, n_rows): all that a private model reads.

    A level or a missing cell that is not declared has none, -1.
    """
    bins = np.empty(rows.exact.shape, dtype=np.int32)
    for position, feature in enumerate(rows.schema.features):
        numbers = rows.numbers(position)
        if numbers is None:
            bins[position] = rows.exact[position]
        else:
            bins[position] = domains[feature.name].bin_numbers(numbers)
    return bins


def _by_column(domains: Mapping[Any, Domain], frame: pd.DataFrame) -> dict[Any, Domain]:
    lacking = [name for name in frame.columns if name not in domains]
    unknown = [name for name in domains if name not in set(frame.columns)]
    if lacking or unknown:
        raise ParameterError(
            "domains must declare every column once: columns without a domain are "
            f"{shorten(lacking, 300)}, domains without a column {shorten(unknown, 300)}."
        )
    return dict(domains)


def _check_kinds(kinds: Mapping[Hashable, Kind], domains: Mapping[Any, Domain]) -> None:
    for name, kind in kinds.items():
        if kind != _kind(domains[name]):
            raise ParameterError(
                f"kinds[{name!r}] is {kind!r}, but its domain is "
                f"{_kind(domains[name])}. Leave it out of kinds."
            )


def _kind(domain: Domain) -> Kind:
    return "numeric" if domain.is_numeric else "categorical"


def _move_inside(column: pd.Series[Any], domain: Domain) -> tuple[pd.Series[Any], BoolArray]:
    """A column whose cells are in its domain, and which rows can be kept."""
    missing = is_missing(column)
    if domain.levels is None:
        return _clip(column, domain), domain.missing | ~missing
    known = set(domain.levels)
    cells_known = [not gone and cell in known for cell, gone in _cells(column, missing)]
    declared = np.array(cells_known, dtype=bool)
    replaced = ~declared & ~(missing & domain.missing)
    cells = plain(column).copy()
    # A cell of a row that is left out is any declared level, so that dtypes hold.
    cells[replaced] = domain.levels[0] if domain.other is None else domain.other
    inside = ~replaced if domain.other is None else np.ones(len(column), dtype=bool)
    dtype = _level_dtype(column.dtype, domain)
    if missing.any():
        cells[missing & ~replaced] = None
    try:
        return pd.Series(cells, name=column.name, dtype=object).astype(dtype), inside
    except (TypeError, ValueError, OverflowError):
        raise _misfit(column.name, column.dtype) from None


def _cells(column: pd.Series[Any], missing: BoolArray) -> Any:
    return zip(plain(column), missing, strict=True)


def _clip(column: pd.Series[Any], domain: Domain) -> pd.Series[Any]:
    """A numeric column in its range, in the dtype of its table."""
    if not is_measured(column.dtype) or is_time(column.dtype):
        raise SchemaError(
            f"The domain of column {column.name!r} is a range of numbers, but its dtype is "
            f"{column.dtype}. Convert it to numbers, or declare levels."
        )
    low, high = domain.ends
    numbers = np.clip(as_numbers(column), low, high)
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        # Whole numbers with a gap are floats in pandas, so their dtype would tell of the gap.
        whole = domain.is_whole and not domain.missing
        if whole:
            numbers = np.where(np.isnan(numbers), low, np.round(numbers))
        return pd.Series(numbers, name=column.name).astype(np.int64 if whole else np.float64)
    if dtype.kind in "iu":
        numbers = np.round(numbers)
    gone = np.isnan(numbers)
    filled = pd.Series(np.where(gone, low, numbers), name=column.name)
    cast = filled.astype(np.int64 if dtype.kind in "iu" else np.float64).astype(dtype)
    return cast.mask(gone)


def _level_dtype(dtype: Any, domain: Domain) -> Any:
    """A dtype that holds the declared levels, and tells nothing of the others."""
    if isinstance(dtype, pd.CategoricalDtype):
        return pd.CategoricalDtype(list(domain.levels or ()), ordered=dtype.ordered)
    room = isinstance(dtype, np.dtype) and dtype.kind in "biuf"
    if room and domain.missing:
        # Numbers that are levels, with room for a missing one.
        return np.dtype(object) if dtype.kind == "b" else np.dtype(np.float64)
    if isinstance(dtype, np.dtype) and dtype.kind == "f":
        whole = all(isinstance(level, int) for level in domain.levels or ())
        return np.dtype(np.int64) if whole else dtype
    return dtype


def _table(column: pd.Series[Any], domain: Domain, name: Hashable) -> pd.Series[Any]:
    """All values of a domain in the dtype of a column."""
    none: list[Any] = [None] * domain.missing
    if domain.levels is not None:
        values: Any = [*domain.levels, *none]
    else:
        whole = column.dtype.kind in "iu"
        if whole and (domain.values != np.round(domain.values)).any():
            raise ParameterError(
                f"Column {name!r} holds whole numbers by its dtype {column.dtype}, but its domain "
                "has others. Declare step=1 and whole ends; or convert the column to floats."
            )
        numbers = domain.values.astype(np.int64) if whole else domain.values
        values = [*numbers.tolist(), *none]
    try:
        table = pd.Series(values, dtype=object).astype(column.dtype)
    except (TypeError, ValueError, OverflowError):
        raise _misfit(name, column.dtype) from None
    # Text that looks like a number becomes one, and numbers become text.
    if domain.levels is not None and set(plain(table.dropna())) != set(domain.levels):
        raise _misfit(name, column.dtype)
    table.name = name
    return table


def _misfit(name: Hashable, dtype: Any) -> ParameterError:
    return ParameterError(
        f"The values of the domain of column {name!r} do not fit its dtype {dtype}. Declare values "
        "of that type."
    )


def _fits(feature: Feature, domain: Domain) -> bool:
    """Whether the values of a feature are those of a domain."""
    if feature.kind != _kind(domain) or feature.has_missing != domain.missing:
        return False
    if domain.levels is not None:
        return set(plain(feature.known)) == set(domain.levels)
    numbers = as_numbers(feature.known)
    return numbers.size == domain.values.size and bool((numbers == domain.values).all())


def _without_data(adapter: FrameAdapter, features: Sequence[Feature]) -> FrameAdapter:
    """An adapter that remembers no levels of the rows and no notes beside them."""
    if not isinstance(adapter, ArrowAdapter):
        return adapter
    schema = adapter.schema.remove_metadata()
    for at, field in enumerate(schema):
        schema = schema.set(at, field.remove_metadata())
    return replace(
        adapter, schema=schema, dtypes={feature.name: feature.table.dtype for feature in features}
    )
