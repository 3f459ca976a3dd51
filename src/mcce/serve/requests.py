"""What requests hold, and how they are read: JSON, rules and people, with a message for every cell.

A cell must be one that training could have held: a number of the type of its column and of a sane
size, a known level, a date; null only where training has missing values. So a predictor that takes
the training data takes everybody, and all rows have the same dtypes. An identifier may be new, as
everybody has one of their own; its levels, each of which is a person, are never shown.

Always true: NaN, infinite numbers, repeated keys, half characters and unknown fields are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import numpy as np
import pandas as pd
from pandas.api import types
from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from ..constraints.builders import BUILDERS
from ..constraints.collection import Constraints
from ..constraints.constraint import Constraint
from ..constraints.files import make_constraints
from ..counterfactuals.parts import plain_value
from ..errors import ConstraintError, shorten
from ..files.cell_values import CellError, ColumnReader
from ..files.people_reader import PeopleReader
from ..files.sources import KnownColumns, RawBlock
from ..fitted import Fitted
from ..model.flags import is_identifier
from ..runtime.json_text import read_json
from ..tables.columns import plain
from ..tables.features import Feature
from ..tables.schema import Schema
from .refusals import MAX_PROBLEMS, Problem, RefusalError

# A placeholder: the description replaces it by a schema of people, which depends on the explainer.
PERSON = {"title": "Person", "type": "object"}
JsonPerson = Annotated[dict[str, Any], WithJsonSchema(PERSON)]
Rule = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "properties": {name: {} for name in BUILDERS},
            "additionalProperties": False,
        }
    ),
]
Rules = Annotated[
    list[Rule],
    Field(description="Entries of a rule file.", examples=[[{"max_changes": 1}]]),
]
JsonPersonList = Annotated[list[JsonPerson], Field(min_length=1)]
BodyT = TypeVar("BodyT", bound="Body")
# Numbers may lie outside of training by this many times its range.
MAX_TRAINING_WIDTHS = 1_000
MAX_LEVELS = 1_000
MAX_RULES = 200
MAX_CONDITIONS = 10_000  # characters of all conditions of a request
_EXPECTED = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "text": "a text",
    "date": "a date such as 2024-01-31",
}
_JSON_TYPES: dict[str, Callable[[Any], bool]] = {
    "integer": lambda cell: type(cell) is int or (type(cell) is float and cell.is_integer()),
    "number": lambda cell: type(cell) is int or (type(cell) is float and math.isfinite(cell)),
    "boolean": lambda cell: type(cell) is bool,
    "text": lambda cell: type(cell) is str,
    "date": lambda cell: type(cell) is str,
}


class Body(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @classmethod
    def example(cls, person: dict[str, Any]) -> dict[str, Any]:
        """A request about a person, for the description."""
        needed = [name for name, field in cls.model_fields.items() if field.is_required()]
        lists = ("people", "answers", "instances")
        return {name: [person] if name in lists else person for name in needed}


class ScoreBody(Body):
    """People to score; as rows of one person, with what follows from the changes."""

    people: JsonPersonList
    person: JsonPerson | None = None


class SearchBody(Body):
    """How people are explained."""

    rules: Rules = []
    search: str | None = None
    n_counterfactuals: Annotated[int, Field(ge=1, le=1000)] | None = None
    language: str | None = None


class ExplainBody(SearchBody):
    """People to explain, and how."""

    people: JsonPersonList
    seconds: Annotated[float, Field(gt=0, le=3600)] | None = None
    details: bool = False


class RangesBody(Body):
    """Answers of a person, to find their ranges."""

    person: JsonPerson
    answers: JsonPersonList
    rules: Rules = []


class ReceiptBody(Body):
    """A person and the answer that they keep."""

    person: JsonPerson
    answer: JsonPerson
    rules: Rules = []


class RelaxBody(Body):
    """A person without an answer, and the rules."""

    person: JsonPerson
    rules: Rules = []


class InstancesBody(Body):
    """People in the form of KServe: objects, or lists of cells in the order of the columns."""

    instances: Annotated[list[JsonPerson | list[Any]], Field(min_length=1)]


class UploadBody(SearchBody):
    """The options of an upload."""

    name: str | None = None
    delimiter: str = ","

    @classmethod
    def described(cls) -> dict[str, Any]:
        """The form of an upload, for the description."""
        fields: dict[str, Any] = {name: {"type": "string"} for name in cls.model_fields}
        fields["file"] = {"type": "string", "format": "binary"}
        return {"type": "object", "properties": fields, "required": ["file"]}


def check_media(headers: Mapping[str, str], expected: str) -> None:
    """Raise if a body is of another type than expected."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != expected:
        raise RefusalError.of(415, f"expected {expected}", "media", "header", "Content-Type")


def parse_body(content: bytes, body_type: type[BodyT]) -> BodyT:
    """A request of a kind."""
    return check_fields(parse_json(content, "body"), body_type)


def parse_json(content: bytes, *loc: str | int) -> Any:
    """The content of a JSON text, read strictly."""
    try:
        return read_json(content)
    except ValueError as error:
        raise RefusalError.of(422, f"expected JSON, got {error}", "json", *loc) from None


def check_fields(given: Any, body_type: type[BodyT]) -> BodyT:
    """Fields as a request of a kind."""
    try:
        return body_type.model_validate(given)
    except ValidationError as error:
        raise RefusalError(422, [_problem(dict(one)) for one in error.errors()]) from None


def _problem(error: dict[str, Any]) -> Problem:
    came = error["input"]
    got = "" if error["type"] == "missing" else f", got {shorten(came)}"
    return Problem(("body", *error["loc"]), f"{error['msg']}{got}", error["type"])


def read_request_rules(
    entries: Sequence[Any], own: Any, schema: Schema
) -> list[tuple[int, Constraint]]:
    """The constraints of a request, each with the position of its entry."""
    made: list[tuple[int, Constraint]] = []
    problems = []
    n_characters = 0
    for place, entry in enumerate(entries):
        try:
            n_characters += _count_conditions(entry)
            if n_characters > MAX_CONDITIONS:
                raise ConstraintError(
                    f"The conditions and formulas of a request may have {MAX_CONDITIONS} "
                    "characters together, which this rule exceeds. Shorten them."
                )
            constraints = make_constraints(entry)
            Constraints.bind(constraints, schema)
            made += [(place, constraint) for constraint in constraints]
        except ConstraintError as error:
            problems.append(Problem(("body", "rules", place), str(error), "rule"))
    if problems:
        raise RefusalError(422, problems)
    try:
        bound = Constraints.bind(own, schema)
        bound.joined(Constraints.bind([constraint for _, constraint in made], schema))
    except ConstraintError as error:
        raise RefusalError(422, [Problem(("body", "rules"), str(error), "rule")]) from None
    return made


def _count_conditions(entry: Any) -> int:
    """The characters of conditions; a list as ``where`` would mean others in a batch."""
    n_characters = 0
    for name, arguments in entry.items() if isinstance(entry, dict) else ():
        where = arguments.get("where") if isinstance(arguments, dict) else None
        if where is not None and not isinstance(where, str):
            raise ConstraintError(f"where must be a condition as text, got {shorten(where)}.")
        if where is not None or name in ("relation", "derived"):
            n_characters += len(str(arguments))
    return n_characters


@dataclass(frozen=True, eq=False)
class CellKind:
    """What a cell of a feature may be."""

    type: str
    # By whether its value in JSON is a boolean, and that value.
    levels: Mapping[tuple[bool, Any], Any] | None
    low: float | None
    high: float | None
    missing: bool
    reader: ColumnReader = field(repr=False)

    @classmethod
    def of(cls, feature: Feature, reader: ColumnReader, *, identifier: bool) -> CellKind:
        """What a cell of a feature may be."""
        dtype, levels, low, high = feature.table.dtype, None, None, None
        if feature.kind == "categorical":
            values = [(plain_value(level), level) for level in plain(feature.known)]
            name = _level_type(values)
            if not identifier:
                # In JSON 1 and 1.0 are one number, and true is none.
                levels = {(isinstance(value, bool), value): level for value, level in values}
        elif dtype.kind in "mM":
            name = "date" if dtype.kind == "M" else "text"
        elif types.is_bool_dtype(dtype):
            name = "boolean"
        else:
            name = "integer" if types.is_integer_dtype(dtype) else "number"
            low, high = _far(feature)
        return cls(name, levels, low, high, feature.has_missing, reader)

    def read(self, cell: Any) -> Any:
        """A cell as the reader of the column reads it."""
        if cell is None:
            if self.missing:
                return None
            raise ValueError(
                f"expected {self.expected}, got null, but the training data "
                "have no missing values here"
            )
        if self.levels is not None:
            found = self.levels.get((isinstance(cell, bool), cell)) if _is_plain(cell) else None
            if found is None:
                raise ValueError(f"expected {self.expected}, got {shorten(cell)}")
            return found
        if not _JSON_TYPES[self.type](cell):
            raise ValueError(f"expected {self.expected}, got {shorten(cell)}")
        if self.low is not None and self.high is not None and not self.low <= cell <= self.high:
            raise ValueError(
                f"expected {self.expected} from {self.low} to {self.high}, got "
                f"{shorten(cell)}: that is far outside the training data"
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
        return _EXPECTED[self.type]


@dataclass(frozen=True, eq=False)
class JsonPeople:
    """Reads people of requests."""

    reader: PeopleReader
    kinds: Mapping[str, CellKind]
    typical: dict[str, Any]

    @classmethod
    def plan(cls, fitted: Fitted) -> JsonPeople:
        """How people are read for an explainer."""
        schema, identifiers = fitted.schema, _identifiers(fitted)
        names = [str(name) for name in schema.names]
        # Numbers are written in decimals, as in texts, so 0.1 fits a column of 32 bits.
        columns = KnownColumns(names, textual=True)
        reader = PeopleReader.plan("the request", columns, schema)
        kinds = {
            name: CellKind.of(feature, reader.readers[name], identifier=name in identifiers)
            for name, feature in zip(names, schema.features, strict=True)
        }
        return cls(reader, kinds, _typical(schema, identifiers))

    def objects(self, instances: Sequence[Any]) -> list[dict[str, Any]]:
        """Instances as objects; a list has one cell for each column, in their order."""
        for place, one in enumerate(instances):
            if isinstance(one, list) and len(one) != len(self.kinds):
                message = f"expected {len(self.kinds)} cells, got {len(one)}"
                raise RefusalError.of(422, message, "cells", "body", "instances", place)
        return [
            dict(zip(self.kinds, one, strict=True)) if isinstance(one, list) else one
            for one in instances
        ]

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


def _is_plain(cell: Any) -> bool:
    return isinstance(cell, (str, int, float, bool))


def _level_type(values: Sequence[tuple[Any, Any]]) -> str:
    kinds = {type(value) for value, _ in values}
    names = {bool: "boolean", int: "integer", float: "number"}
    return names.get(kinds.pop(), "text") if len(kinds) == 1 else "text"


def _far(feature: Feature) -> tuple[float, float]:
    """The smallest and the largest number that a request may hold."""
    numbers = feature.numbers
    if numbers is None or np.isnan(numbers).all():
        return -float(MAX_TRAINING_WIDTHS), float(MAX_TRAINING_WIDTHS)
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    width = MAX_TRAINING_WIDTHS * max(abs(low), abs(high), 1.0)
    dtype: Any = feature.table.dtype
    if types.is_integer_dtype(dtype):
        least = 0.0 if dtype.kind == "u" else -math.inf
        return max(math.floor(low - width), least), math.ceil(high + width)
    most = float(np.finfo(f"float{8 * dtype.itemsize}").max) if dtype.kind == "f" else math.inf
    return max(low - width, -most), min(high + width, most)


def _identifiers(fitted: Fitted) -> frozenset[str]:
    """Identifier columns, except categoricals, whose levels are fixed."""
    n_rows = int(fitted.value_counts[0].sum()) if fitted.value_counts else 0
    return frozenset(
        str(feature.name)
        for feature in fitted.schema.features
        if is_identifier(feature, n_rows)
        and not isinstance(feature.table.dtype, pd.CategoricalDtype)
    )


def _typical(schema: Schema, identifiers: Set[str]) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for feature in schema.features:
        known, name = plain(feature.known), str(feature.name)
        middle: Any = plain_value(known[len(known) // 2]) if len(known) else None
        cells[name] = type(middle)() if name in identifiers else middle
    return cells
