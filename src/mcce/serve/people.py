"""People of requests: cells of JSON as rows of the training data, with a message for every cell.

A cell must be one that training could have held: a number of the type of its column and of a sane
size, a known level, a date; null only where training has missing values. So a predictor that takes
the training data takes everybody, and all rows have the same dtypes. An identifier may be new, as
everybody has one of their own; its levels, each of which is a person, are never shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from ..counterfactuals.records import plain_value
from ..errors import shorten
from ..files.cell_values import CellError, ColumnReader
from ..files.people_reader import PeopleReader
from ..files.sources import KnownColumns, RawBlock
from ..fitted import Fitted
from ..flags import is_identifier
from ..tables.columns import plain
from ..tables.features import Feature
from .refusals import MAX_PROBLEMS, Problem, RefusalError

# Numbers may be this many times as large as any of training.
MAX_TRAINING_SIZES = 1_000
MAX_LEVELS = 1_000
# By the type of a column: what is expected, its name in a JSON schema, and which cells are of it.
TYPES: dict[str, tuple[str, str, Callable[[Any], bool]]] = {
    "integer": (
        "a whole number",
        "integer",
        lambda cell: type(cell) is int or (type(cell) is float and cell.is_integer()),
    ),
    "number": (
        "a number",
        "number",
        lambda cell: type(cell) is int or (type(cell) is float and math.isfinite(cell)),
    ),
    "boolean": ("true or false", "boolean", lambda cell: type(cell) is bool),
    "text": ("a text", "string", lambda cell: type(cell) is str),
    "date": ("a date such as 2024-01-31", "string", lambda cell: type(cell) is str),
}


@dataclass(frozen=True, eq=False)
class CellKind:
    """What a cell of a feature may be."""

    type: str
    # By whether its value in JSON is a boolean, and that value.
    levels: Mapping[tuple[bool, Any], Any] | None
    # The smallest and the largest number.
    ends: tuple[float, float] | None
    missing: bool
    reader: ColumnReader = field(repr=False)

    @classmethod
    def of(cls, feature: Feature, reader: ColumnReader, *, identifier: bool) -> CellKind:
        """What a cell of a feature may be."""
        dtype, levels, ends = feature.table.dtype, None, None
        if feature.kind == "categorical":
            values = [(plain_value(level), level) for level in plain(feature.known)]
            name = _level_type({type(value) for value, _ in values})
            if not identifier:
                # In JSON 1 and 1.0 are one number, and true is none.
                levels = {(isinstance(value, bool), value): level for value, level in values}
        elif dtype.kind in "mM":
            name = "date" if dtype.kind == "M" else "text"
        elif types.is_bool_dtype(dtype):
            name = "boolean"
        else:
            name = "integer" if types.is_integer_dtype(dtype) else "number"
            ends = _far(feature)
        return cls(name, levels, ends, feature.has_missing, reader)

    def read(self, cell: Any) -> Any:
        """A cell as the reader of the column reads it."""
        got = f"expected {self.expected}, got {shorten(cell)}"
        if cell is None:
            if not self.missing:
                raise ValueError(
                    f"expected {self.expected}, got null, but the training data "
                    "have no missing values here"
                )
            return None
        if self.levels is not None:
            is_plain = isinstance(cell, (str, int, float, bool))
            found = self.levels.get((isinstance(cell, bool), cell)) if is_plain else None
            if found is None:
                raise ValueError(got)
            return found
        if not TYPES[self.type][2](cell):
            raise ValueError(got)
        if self.ends is not None and not self.ends[0] <= cell <= self.ends[1]:
            low, high = self.ends
            raise ValueError(
                f"expected {self.expected} from {low:,} to {high:,}, got {shorten(cell)}: that is "
                "far outside the training data"
            )
        try:
            self.reader.values([cell])
        except CellError as error:
            raise ValueError(f"expected {error.expected}, got {shorten(cell)}") from None
        return cell

    @property
    def expected(self) -> str:
        """A description of cells that fit, for errors."""
        if self.levels is not None:
            names = [value for _, value in self.levels]
            return f"one of the levels {shorten(names, 300)}"
        return TYPES[self.type][0]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a cell."""
        if self.levels is not None and len(self.levels) <= MAX_LEVELS:
            levels = [value for _, value in self.levels]
            return {"enum": [*levels, None] if self.missing else levels}
        name = TYPES[self.type][1]
        ends = (
            {} if self.ends is None else dict(zip(("minimum", "maximum"), self.ends, strict=True))
        )
        return {"type": [name, "null"] if self.missing else name, **ends}


@dataclass(frozen=True, eq=False)
class JsonPeople:
    """Reads people of requests."""

    reader: PeopleReader
    kinds: Mapping[str, CellKind]
    # Somebody for examples.
    typical: dict[str, Any]

    @classmethod
    def plan(cls, fitted: Fitted) -> JsonPeople:
        """How people are read for an explainer."""
        names = [str(name) for name in fitted.schema.names]
        # Numbers are written in decimals, as in texts, so 0.1 fits a column of 32 bits.
        columns = KnownColumns(names, textual=True)
        reader = PeopleReader.plan("the request", columns, fitted.schema)
        kinds, typical = dict[str, CellKind](), dict[str, Any]()
        for name, feature in zip(names, fitted.schema.features, strict=True):
            identifier = _is_identifier(feature, fitted)
            kinds[name] = CellKind.of(feature, reader.readers[name], identifier=identifier)
            known = plain(feature.known)
            middle: Any = plain_value(known[len(known) // 2]) if len(known) else None
            typical[name] = type(middle)() if identifier else middle
        return cls(reader, kinds, typical)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a person."""
        return {
            "type": "object",
            "title": "Person",
            "properties": {name: kind.schema for name, kind in self.kinds.items()},
            "required": list(self.kinds),
            "additionalProperties": False,
            "example": self.typical,
        }

    def read(self, people: Sequence[Mapping[str, Any]], *loc: str | int) -> pd.DataFrame:
        """People as rows, numbered from 0."""
        problems: list[Problem] = []
        columns: dict[str, list[Any]] = {name: [] for name in self.kinds}
        for place, person in enumerate(people):
            for name, cell in self._check_cells(person, (*loc, place), problems):
                columns[name].append(cell)
            if len(problems) >= MAX_PROBLEMS:
                break
        if problems:
            raise RefusalError(422, problems)
        ((_, frame),) = self.reader.read(RawBlock(0, columns)).groups
        return frame

    def _check_cells(
        self, person: Mapping[str, Any], loc: tuple[str | int, ...], problems: list[Problem]
    ) -> Iterator[tuple[str, Any]]:
        for name in person:
            if name not in self.kinds:
                message = f"there is no such column; the columns are {shorten([*self.kinds], 300)}"
                problems.append(Problem((*loc, shorten(name)[1:-1]), message, "unknown"))
        for name, kind in self.kinds.items():
            if name not in person:
                message = f"expected {kind.expected}, but the column is missing"
                problems.append(Problem((*loc, name), message, "lacking"))
                continue
            try:
                yield name, kind.read(person[name])
            except ValueError as error:
                problems.append(Problem((*loc, name), str(error), "cell"))


def _is_identifier(feature: Feature, fitted: Fitted) -> bool:
    """Whether a column is an identifier; not a categorical, whose levels are fixed."""
    n_rows = int(fitted.value_counts[0].sum()) if fitted.value_counts else 0
    is_fixed = isinstance(feature.table.dtype, pd.CategoricalDtype)
    return is_identifier(feature, n_rows) and not is_fixed


def _level_type(kinds: set[type[Any]]) -> str:
    names = {bool: "boolean", int: "integer", float: "number"}
    return names.get(kinds.pop(), "text") if len(kinds) == 1 else "text"


def _far(feature: Feature) -> tuple[float, float]:
    """The smallest and the largest number that a request may hold."""
    numbers = feature.numbers
    if numbers is None or np.isnan(numbers).all():
        return -float(MAX_TRAINING_SIZES), float(MAX_TRAINING_SIZES)
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    most = MAX_TRAINING_SIZES * max(abs(low), abs(high), 1.0)
    dtype: Any = feature.table.dtype
    if types.is_integer_dtype(dtype):
        most = math.ceil(most)
    elif dtype.kind == "f":
        most = min(most, float(np.finfo(f"float{8 * dtype.itemsize}").max))
    # An amount of which none is negative has no negative ones.
    return (0 if low >= 0 else -most), most
