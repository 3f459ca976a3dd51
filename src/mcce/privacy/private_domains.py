"""What is public about columns, and training rows in a schema that is public.

A private model may learn from training rows only through noise. So the levels of a category, the
range of a number and the bins in which it is counted are declared by the user, and not read from
the rows. Codes are ranks among the declared values, where those of other models are ranks among
training values. Rows are moved into their domains first; those that cannot be are left out.

Always true: the schema depends on the domains, on the names of the columns and on what kind of
table they stand in, never on a cell; what becomes of a row depends on that row alone.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_string_dtype as is_text

from ..caching import cached_property
from ..constraints.files import read_text
from ..errors import McceWarning, ParameterError, SchemaError, shorten
from ..kernels import BoolArray, Codes, FloatArray, IntArray
from ..parameters import check_real, check_whole
from ..runtime.json_text import read_json
from ..tables.columns import (
    EXACT_IN_FLOAT64,
    Kind,
    as_numbers,
    assemble,
    factorize,
    is_measured,
    is_missing,
    is_time,
    plain,
    unwrapped,
)
from ..tables.features import Feature
from ..tables.frames import ArrowAdapter, FrameAdapter, check_feature_names, read_frame
from ..tables.roles import check_kinds as checked_kinds
from ..tables.roles import immutable_columns
from ..tables.schema import EncodedRows, Schema

N_BINS = 20
# Most values of a bin that can be drawn, and how many a bin has if no step is declared.
MAX_BIN_VALUES, MIN_BIN_VALUES = 32, 10
MAX_DOMAIN_BINS = 10_000
# Of a file of domains.
MAX_FILE_BYTES = 2**24
# Steps of a number have at least this share of it, and ranges this width.
MIN_STEP_SHARE, MIN_RANGE_WIDTH = 1e-15, 1e-290


@dataclass(frozen=True)
class Domain:
    """The public domain of a column.

    Parameters
    ----------
    levels
        All levels of a categorical column; in their order if the column is an ordered category.
    other
        The level that undeclared ones count as. None leaves rows with such a level out.
    low, high
        Range of a number. Values outside are moved to the nearest end.
    bins
        Number of bins of the same width in which a number is counted.
    edges
        Edges of the bins instead: ascending, from ``low`` to ``high``.
    atoms
        Numbers that are counted, and drawn, on their own: a frequent 0, for example.
    step
        Drawn numbers are multiples of this, or one end of the range: 1 for whole numbers. None
        takes 1, 2 or 5 times a power of ten, so that each bin has at least ten of them. A bin has
        at most 32, evenly spread.
    missing
        Whether a cell can be missing, which is then counted on its own. Otherwise rows with a
        missing cell are left out.

    Examples
    --------
    >>> Domain(low=17, high=90, step=1).n_bins
    20
    >>> Domain(levels=["rent", "own"], missing=True).n_bins
    3
    """

    levels: Sequence[Any] | None = None
    other: Any = None
    low: float | None = None
    high: float | None = None
    bins: int = N_BINS
    edges: Sequence[float] | None = None
    atoms: Sequence[float] = ()
    step: float | None = None
    missing: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.missing, bool):
            raise ParameterError(f"missing must be True or False, got {shorten(self.missing)}.")
        for name in ("levels", "edges", "atoms"):
            given = getattr(self, name)
            if given is not None:
                if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)):
                    raise ParameterError(f"{name} must be a list of values, got {shorten(given)}.")
                # As plain values, so that two domains compare and a file can hold them.
                object.__setattr__(self, name, tuple(_to_python(value) for value in given))
        if self.levels is not None:
            self._check_levels(self.levels)
        else:
            self._check_numbers()

    @property
    def kind(self) -> Kind:
        """Whether it is the domain of a number or of a category."""
        return "numeric" if self.levels is None else "categorical"

    @property
    def ends(self) -> tuple[float, float]:
        """Range of a number."""
        return float(self.low or 0), float(self.high or 0)

    @property
    def n_bins(self) -> int:
        """Number of bins, missing being one of them."""
        if self.levels is not None:
            return len(self.levels) + self.missing
        return int(self.bin_of_value[-1]) + 1 + self.missing

    @cached_property
    def values(self) -> FloatArray:
        """The numbers that can be drawn, ascending, without missing."""
        between = [_multiples(*pair, self._step, MAX_BIN_VALUES) for pair in pairwise(self.breaks)]
        return np.unique(np.concatenate([self.ends, *between, self.points]))

    @cached_property
    def bin_of_value(self) -> IntArray:
        """The bin of each of ``values``, ascending."""
        return np.unique(self._segments(self.values), return_inverse=True)[1].ravel()

    @property
    def bin_of_code(self) -> Codes:
        """The bin of each code of a column: of its levels or values, missing last."""
        last = [self.n_bins - 1] * self.missing
        known = self.bin_of_value if self.levels is None else range(len(self.levels))
        return np.array([*known, *last], dtype=np.int32)

    @property
    def is_whole(self) -> bool:
        """Whether the numbers are declared as whole ones: by a step, and the ends of the range."""
        exact = max(map(abs, self.ends)) <= EXACT_IN_FLOAT64
        return self.step is not None and exact and bool((self.values % 1 == 0).all())

    def bin_numbers(self, numbers: FloatArray) -> IntArray:
        """The bin of each number, after it was moved into the range.

        Parameters
        ----------
        numbers
            The numbers.

        Returns
        -------
        array
            Bins. A missing number is in the last one, or in none (-1) if it is not declared.
        """
        missing, (low, high), values = np.isnan(numbers), self.ends, self.values
        inside = np.clip(np.where(missing, low, numbers), low, high)
        segment, known = self._segments(inside), np.unique(self._segments(values))
        # A segment without a value that can be drawn counts as that of the nearest value.
        nearest = values[np.searchsorted((values[1:] + values[:-1]) / 2, inside)]
        segment = np.where(np.isin(segment, known), segment, self._segments(nearest))
        found = np.searchsorted(known, segment)
        return np.where(missing, self.n_bins - 1 if self.missing else -1, found)

    @cached_property
    def points(self) -> FloatArray:
        """Numbers that are bins on their own: the atoms, or all values if there are few."""
        (low, high), step = self.ends, self._step
        if self.edges is not None or (high - low) / step > self.bins:
            return np.unique(np.array(self.atoms, dtype=np.float64))
        return np.unique([low, *_multiples(low, high, step, None), high, *self.atoms])

    @cached_property
    def breaks(self) -> FloatArray:
        """Edges of bins and points, ascending."""
        return np.unique(np.concatenate([self._edges, self.points]))

    @property
    def _edges(self) -> FloatArray:
        if self.edges is not None:
            return np.array(self.edges, dtype=np.float64)
        return np.linspace(*self.ends, self.bins + 1)

    def _segments(self, numbers: FloatArray) -> IntArray:
        """The segment of each number: points and the intervals between breaks, ascending.

        Point number k is segment 2 k, and the interval that begins with break k, 2 k + 1. An
        interval holds the edge that it begins with, unless that is a point; the last holds both.
        """
        at = np.searchsorted(self.breaks, numbers, side="right") - 1
        on_point = np.isin(self.breaks, self.points)[at] & (self.breaks[at] == numbers)
        return np.where(on_point, 2 * at, 2 * np.minimum(at, self.breaks.size - 2) + 1)

    @property
    def _step(self) -> float:
        if self.step is not None:
            return float(self.step)
        largest = float(np.diff(self._edges).min()) / MIN_BIN_VALUES
        power = Decimal(10) ** math.floor(math.log10(largest))
        # If the logarithm was rounded up, half the power is the largest below.
        steps = [times * power for times in (Decimal("0.5"), 1, 2, 5)]
        return max(float(step) for step in steps if float(step) <= largest)

    def _check_levels(self, levels: Sequence[Any]) -> None:
        numeric = {"low": None, "high": None, "edges": None, "step": None, "atoms": ()}
        given = [name for name, none in numeric.items() if getattr(self, name) != none]
        if given:
            raise ParameterError(f"A domain has levels or {given[0]}, got both. Leave one out.")
        if not all(isinstance(value, Hashable) for value in levels):
            raise ParameterError(f"levels must be plain values, got {shorten(levels)}.")
        if any(value is None or value != value for value in levels):
            raise ParameterError("levels must not name missing cells. Pass missing=True for them.")
        if len({isinstance(value, (str, bool)) and type(value) for value in levels}) > 1:
            raise ParameterError(
                f"levels must be of one type: texts, numbers or booleans, got {shorten(levels)}."
            )
        if not levels or len(set(levels)) < len(levels):
            raise ParameterError(f"levels must name each level once, got {shorten(levels)}.")
        if self.other is not None and self.other not in levels:
            raise ParameterError(
                f"other must be one of the levels {shorten(levels, 200)}, got "
                f"{shorten(self.other)}."
            )

    def _check_numbers(self) -> None:
        if self.other is not None:
            raise ParameterError("other is for a domain of levels. Numbers are moved into range.")
        if not (_is_finite_real(self.low) and _is_finite_real(self.high) and self.low < self.high):  # type: ignore[operator]
            raise ParameterError(
                "A domain must name all levels, or a range low < high of finite numbers, got "
                f"low={shorten(self.low)} and high={shorten(self.high)}."
            )
        check_whole("bins", self.bins, 1, MAX_DOMAIN_BINS)
        object.__setattr__(self, "bins", int(self.bins))
        if self.step is not None:
            check_real("step", self.step, "a number above 0", zero=False)
        self._check_range()
        edges = self.edges if self.edges is not None else (self.low, self.high)
        ascending = all(map(_is_finite_real, edges)) and bool((np.diff(np.array(edges)) > 0).all())
        if not ascending or len(edges) < 2 or (edges[0], edges[-1]) != (self.low, self.high):
            raise ParameterError(
                f"edges must ascend from low={self.low!r} to high={self.high!r}, got "
                f"{shorten(self.edges, 200)}."
            )
        if not all(_is_finite_real(atom) and self.low <= atom <= self.high for atom in self.atoms):  # type: ignore[operator]
            raise ParameterError(
                f"atoms must be numbers from {self.low!r} to {self.high!r}, got "
                f"{shorten(self.atoms, 200)}."
            )

    def _check_range(self) -> None:
        """Raise for a range whose bins or steps numbers of 64 bits cannot tell apart."""
        low, high = self.ends
        width, size = high - low, max(abs(low), abs(high))
        step = width / self.bins if self.step is None else min(float(self.step), width)
        if not math.isfinite(width) or step < size * MIN_STEP_SHARE or width < MIN_RANGE_WIDTH:
            raise ParameterError(
                f"The range from low={self.low!r} to high={self.high!r} is too wide or too narrow "
                f"for bins={self.bins} and step={self.step!r}: numbers would not be told apart. "
                "Pass fewer bins, a larger step or another range."
            )


def read_domains(domains: Any) -> dict[Any, Domain]:
    """Domains by column, from such a mapping, or from a JSON file.

    Examples
    --------
    >>> read_domains({"age": {"low": 0, "high": 100, "step": 5}})["age"].n_bins
    21
    """
    if isinstance(domains, (str, os.PathLike)):
        domains = _read_file(domains)
    if not isinstance(domains, Mapping) or not domains:
        raise ParameterError(
            "A private generator reads no values from the training rows, so it needs the public "
            'domain of every column: domains={"age": Domain(low=18, high=100, step=1), "sex": '
            f'Domain(levels=["f", "m"]), ...}}, got {shorten(domains)}.'
        )
    return {name: _domain(name, given) for name, given in domains.items()}


def _domain(name: Any, given: Any) -> Domain:
    try:
        return given if isinstance(given, Domain) else Domain(**given)
    except TypeError:
        known = [field.name for field in fields(Domain)]
        raise ParameterError(
            f"The domain of column {name!r} must be a Domain, or a mapping with some of {known!r}, "
            f"got {shorten(given)}."
        ) from None
    except ParameterError as error:
        raise ParameterError(f"The domain of column {name!r}: {error}") from None


def _read_file(path: str | os.PathLike[str]) -> Any:
    try:
        return read_json(read_text(Path(path), "domains", MAX_FILE_BYTES))
    except ValueError as error:
        raise ParameterError(
            f"domains={os.fspath(path)!r} cannot be read as a JSON file of domains: "
            f"{shorten(error, 200).rstrip('.')}. Write one object by column, e.g. "
            '{"age": {"low": 18, "high": 100, "step": 1}, "sex": {"levels": ["f", "m"]}}.'
        ) from None


def _multiples(low: float, high: float, step: float, most: int | None) -> FloatArray:
    """Multiples of a step from low to high, evenly spread ones if there are too many."""
    unit = Decimal(repr(step))
    # With a tolerance for ends that are multiples themselves.
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    count = max(last - first + 1, 0)
    n_values = count if most is None else min(count, most)
    numbers = np.unique(np.round(np.linspace(first, last, n_values)).astype(np.int64))
    exact = np.array([float(int(number) * unit) for number in numbers])
    return np.clip(exact, low, high)


def _is_finite_real(value: Any) -> bool:
    real = isinstance(value, Real) and not isinstance(value, bool)
    return real and math.isfinite(value)


def _to_python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


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
    named = checked_kinds(kinds, frame)
    features, moved, gaps = list[Feature](), list[Any](), list[Hashable]()
    kept = np.ones(len(frame), dtype=bool)
    for name, column in frame.items():
        domain = known[name]
        _check_column(column, domain, named.get(name, domain.kind))
        table = _table(column, domain, in_arrow=isinstance(adapter, ArrowAdapter))
        features.append(Feature.learn(table, kind=domain.kind, immutable=name in fixed))
        move = _move_levels if domain.levels is not None else _move_numbers
        cells, declared = move(column, domain, table)
        moved.append(unwrapped(cells))
        kept &= declared
        gaps += [] if declared.all() else [name]
    if gaps:
        warnings.warn(
            f"Rows with cells that the domains of {shorten(gaps, 200)} do not declare are left "
            "out. Declare all levels, or other=...; and missing=True where cells can be missing.",
            McceWarning,
            stacklevel=6,
        )
    rows = assemble(moved, frame.columns).loc[kept].reset_index(drop=True)
    schema = Schema(tuple(features), _public_adapter(adapter, features))
    return replace(Schema(schema.features).encode(rows), schema=schema, adapter=schema.adapter)


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


def bin_rows(rows: EncodedRows, domains: Mapping[Any, Domain]) -> Codes:
    """The bin of each cell, shape (n_features, n_rows): all that a private model reads.

    A level or a missing cell that is not declared has none, -1.
    """
    bins = rows.codes.copy()
    for position, feature in enumerate(rows.schema.features):
        numbers = rows.numbers(position)
        if numbers is not None:
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


def _check_column(column: pd.Series[Any], domain: Domain, kind: Kind) -> None:
    """Raise if a column is declared to be of another kind, or cannot hold values of its domain."""
    name, dtype = column.name, column.dtype
    if kind != domain.kind:
        raise ParameterError(
            f"kinds[{name!r}] is {kind!r}, but its domain is {domain.kind}. Leave it out of kinds."
        )
    if domain.levels is None and (is_time(dtype) or not (is_measured(dtype) or is_text(dtype))):
        raise SchemaError(
            f"The domain of column {name!r} is a range of numbers, but its dtype is {dtype}. "
            "Convert it to numbers, or declare levels."
        )
    if dtype.kind in "biufmM" and all(isinstance(level, str) for level in domain.levels or [0]):
        raise ParameterError(
            f"The values of the domain of column {name!r} do not fit its dtype {dtype}. Declare "
            "values of that type."
        )


def _table(column: pd.Series[Any], domain: Domain, *, in_arrow: bool) -> pd.Series[Any]:
    """All values of a domain, in the dtype that they have in a table of this kind.

    The dtype of the column would tell of its cells: one text among whole numbers makes it another.
    Only whether it is a category, and an ordered one, is taken from the column.
    """
    levels = list(domain.levels or domain.values.tolist())
    if domain.levels is None and domain.is_whole:
        levels = [int(number) for number in levels]
    values: Any = levels + [None] * domain.missing
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = pd.Categorical(values, categories=levels, ordered=column.dtype.ordered)
    elif in_arrow:
        import pyarrow as pa

        values = pd.arrays.ArrowExtensionArray(pa.array(values))
    return pd.Series(values, name=column.name)


def _move_levels(
    column: pd.Series[Any], domain: Domain, table: pd.Series[Any]
) -> tuple[pd.Series[Any], BoolArray]:
    """A column of declared levels, and which cells are declared; the others have any level."""
    place = {level: at for at, level in enumerate(domain.levels or ())}
    number, distinct = factorize(column)
    found = np.array([_find(place, cell) for cell in distinct] + [-1])[number]
    if domain.missing:
        found[is_missing(column)] = len(place)
    if domain.other is not None:
        found[found < 0] = place[domain.other]
    return table.take(np.maximum(found, 0)), found >= 0


def _find(place: Mapping[Any, int], cell: Any) -> int:
    """Place of the level that a cell is, or that its text says, as in a file; -1 if there is none.

    Beside a text that is no number, pandas reads the numbers of a CSV file as texts, too.
    """
    if cell in place or not isinstance(cell, str):
        return place.get(cell, -1)
    spoken = {"true": True, "false": False}.get(cell.lower(), _number(cell))
    return place.get(spoken, -1)


def _move_numbers(
    column: pd.Series[Any], domain: Domain, table: pd.Series[Any]
) -> tuple[pd.Series[Any], BoolArray]:
    """A column of numbers in their range, and which cells are declared; the others are the low."""
    if is_measured(column.dtype):
        numbers = as_numbers(column)
    else:
        number, distinct = factorize(column)
        numbers = np.array([*map(_number, distinct), np.nan])[number]
    low, high = domain.ends
    gone, missing = np.isnan(numbers), is_missing(column) & domain.missing
    inside = np.clip(np.where(gone, low, numbers), low, high)
    cells = pd.Series(np.round(inside).astype(np.int64) if domain.is_whole else inside)
    return cells.astype(table.dtype).mask(missing), ~gone | missing


def _number(cell: Any) -> float:
    """A cell as a number; NaN if it is none."""
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _fits(feature: Feature, domain: Domain) -> bool:
    """Whether the values of a feature are those of a domain."""
    if feature.kind != domain.kind or feature.has_missing != domain.missing:
        return False
    if domain.levels is not None:
        return set(plain(feature.known)) == set(domain.levels)
    return np.array_equal(as_numbers(feature.known), domain.values)


def _public_adapter(adapter: FrameAdapter, features: Sequence[Feature]) -> FrameAdapter:
    """An adapter whose types are those of the features, without metadata of the rows."""
    if not isinstance(adapter, ArrowAdapter):
        return adapter
    import pyarrow as pa

    tables = {feature.name: feature.table for feature in features}
    empty = pd.DataFrame({name: table.iloc[:0] for name, table in tables.items()})
    schema = pa.Schema.from_pandas(empty, preserve_index=False).remove_metadata()
    return replace(
        adapter, schema=schema, dtypes={name: table.dtype for name, table in tables.items()}
    )
