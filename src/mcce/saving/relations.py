"""Relations between columns as plain data, and back, checked."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

from ..errors import SavedFileError
from ..relations import (
    Condition,
    Dependency,
    Equivalence,
    FoundRelation,
    Linear,
    Ordering,
    Product,
    Ratio,
    Relation,
)
from ..relations.discovery import most_relations
from ..tables.columns import is_time
from ..tables.schema import EncodedRows, Schema
from .checks import check_entries, check_integer
from .values import NO_CELLS, pack, unpack

KINDS: dict[str, type[Any]] = {
    kind.kind: kind for kind in (Linear, Product, Ratio, Ordering, Equivalence, Dependency)
}
EVIDENCE = ("kind", "parts", "share", "n_rows", "p_value", "enforced")


def pack_relation(found: FoundRelation) -> dict[str, Any]:
    """A relation and its evidence as plain data."""
    relation: Any = found.relation
    parts = {field.name: _plain(getattr(relation, field.name)) for field in fields(relation)}
    what = f"the relation between {', '.join(str(name) for name in relation.features)}"
    return {
        "kind": relation.kind,
        "parts": {name: pack(value, what) for name, value in parts.items()},
        "share": found.share,
        "n_rows": found.n_rows,
        "p_value": found.p_value,
        "enforced": found.enforced,
    }


def unpack_relations(plain: list[Any], schema: Schema) -> tuple[FoundRelation, ...]:
    """The relations of what :func:`pack_relation` gave, checked."""
    most = most_relations(len(schema.features))
    if len(plain) > most:
        raise SavedFileError(f"it has {len(plain)} relations, but fit finds at most {most}")
    codes = np.zeros((len(schema.features), 1), dtype=np.int32)
    row = EncodedRows.from_codes(schema, codes).frame
    return tuple(_unpack(item, schema, row) for item in plain)


def _unpack(plain: Any, schema: Schema, row: pd.DataFrame) -> FoundRelation:
    given = check_entries(plain, EVIDENCE, "a relation")
    kind = KINDS.get(given["kind"]) if isinstance(given["kind"], str) else None
    if kind is None:
        raise SavedFileError("a relation is of no known kind")
    names = [field.name for field in fields(kind)]
    parts = check_entries(given["parts"], names, "a relation")
    values = {name: unpack(part) for name, part in parts.items()}
    if kind is Equivalence:
        values = {name: Condition(*value) for name, value in values.items()}
    relation: Relation = kind(**values)
    _check_parts(relation, schema)
    relation.excess(row)
    if type(given["enforced"]) is not bool:
        raise SavedFileError("a relation does not say whether it is enforced")
    return FoundRelation(
        relation,
        share=_number(given["share"], 1.0),
        n_rows=check_integer(given["n_rows"], "the number of rows of a relation", 2**53),
        p_value=_number(given["p_value"], 1.0),
        enforced=given["enforced"],
    )


def _plain(value: Any) -> Any:
    return [value.feature, value.value] if isinstance(value, Condition) else value


def _check_parts(relation: Relation, schema: Schema) -> None:
    """Raise unless a relation can be computed on the columns."""
    if isinstance(relation, (Linear, Product, Ratio)):
        _number(relation.tolerance)
        _number(relation.rounding)
        _check_flag(relation.relative)
    if isinstance(relation, Linear):
        _check_linear(relation)
        _check_numeric((relation.result, *(name for name, _ in relation.terms)), schema)
    elif isinstance(relation, (Product, Ratio)):
        _finite(relation.factor)
        _check_numeric(relation.features, schema)
    elif isinstance(relation, Ordering):
        _check_flag(relation.strict)
        _check_numeric(relation.features, schema, times=True)
    elif isinstance(relation, Equivalence):
        _check_cells([relation.first.value, relation.second.value])
    elif isinstance(relation, Dependency):
        _check_dependency(relation)
    if not set(relation.features) <= set(schema.names) or not isinstance(relation.name, str):
        raise SavedFileError("a relation is between other columns")


def _check_linear(relation: Linear) -> None:
    _finite(relation.constant)
    for _, weight in relation.terms:
        if not _finite(weight) or not math.isfinite(1 / weight):
            raise SavedFileError("a relation has a weight that is too small to divide by")
    for _, amounts in relation.amounts:
        _check_cells([level for level, _ in amounts])
        for _, amount in amounts:
            _finite(amount)
        if len({level for level, _ in amounts}) < len(amounts):
            raise SavedFileError("a relation names a level twice")


def _check_dependency(relation: Dependency) -> None:
    _check_cells([value for pair in relation.values for value in pair])
    if len({value for value, _ in relation.values}) < len(relation.values):
        raise SavedFileError("a relation names a value twice")


def _check_numeric(names: tuple[Hashable, ...], schema: Schema, *, times: bool = False) -> None:
    by_name = {feature.name: feature for feature in schema.features}
    for name in names:
        feature = by_name[name]
        if feature.kind != "numeric" or (is_time(feature.table.dtype) and not times):
            raise SavedFileError("a relation computes with a column that does not hold numbers")


def _check_cells(values: list[Any]) -> None:
    if any(type(value) in NO_CELLS for value in values):
        raise SavedFileError("a relation holds something that no cell can be")


def _check_flag(value: Any) -> None:
    if type(value) is not bool:
        raise SavedFileError("a relation lacks a choice between two")


def _number(value: Any, most: float = math.inf) -> float:
    if _finite(value) < 0 or value > most:
        raise SavedFileError("a relation has a number out of its range")
    return float(value)


def _finite(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise SavedFileError("a relation has something else in place of a number")
    return float(value)
