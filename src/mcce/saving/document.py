"""What a saved file holds: the parameters, what ``fit`` learned, and how to know the predictor.

Columns, model, distance and seed are always there. What else ``fit`` learned depends on the search:
``OPTIONAL_PARTS`` says of each such field of :class:`Fitted` how it is written and read, and when a
file must or may hold it. To save one more thing, add a line there.

Always true: nothing is written unless everything can be; a loaded explainer has passed the checks
that a fitted one has, and gives the same answers, bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..constraints.collection import Constraints
from ..constraints.constraint import Constraint
from ..errors import NotFittedError, SavedFileError, shorten
from ..fitted import Fitted, Needs
from ..kernels import DRAWS_VERSION, IntArray, rows_as_bytes
from ..model.registry import find_generator, visit_order_of, with_limited_inputs
from ..plausibility.model import PlausibilityModel
from ..predictors.decision import Decision, Interval
from ..predictors.desired import decision_on
from ..protocols import Generator, is_private
from ..search.config import check_inputs, find_search, needs_of
from ..tables.features import Feature
from ..tables.roles import check_kinds, check_roles, check_text, immutable_columns
from ..tables.schema import Schema
from . import archive
from .cells import pack_adapter, pack_cells, unpack_adapter, unpack_cells
from .fields import (
    check_predictor,
    check_probes,
    check_surrogate,
    pack_distance,
    pack_fitted,
    pack_generator,
    pack_plausibility,
    pack_predictor,
    pack_relation,
    pack_surrogate,
    unpack_distance,
    unpack_fitted,
    unpack_flags,
    unpack_generator,
    unpack_label_rule,
    unpack_plausibility,
    unpack_relations,
    unpack_surrogate,
    write_fields,
)
from .values import check_codes, check_entries, check_integer, pack, unpack

Parameters = Mapping[str, Any]
# Fields of Fitted by name, those read so far.
Fields = dict[str, Any]


def save(
    parameters: Parameters, fitted: Fitted, path: str | os.PathLike[str], key: bytes | None = None
) -> None:
    """Write a fitted explainer to a file, without its predictor."""
    archive.check_key(key)
    parameters = {name: value for name, value in parameters.items() if name != "predictor"}
    document: dict[str, Any] = {"parameters": _pack_parameters(parameters, fitted.schema)}
    document["schema"] = _pack_schema(fitted.schema)
    check_inputs(fitted, find_search(parameters["search"], private=is_private(fitted.generator)))
    document["model"] = {"n_desired": fitted.n_desired} | pack_fitted(fitted.generator)
    document["distance"] = pack_distance(fitted.distance)
    document["draws"] = {"version": DRAWS_VERSION, "seed": pack(fitted.seed, "the seed")}
    contents = _Contents.of(parameters, fitted.n_desired, fitted.generator)
    for name, part in OPTIONAL_PARTS.items():
        document[name] = part.write(getattr(fitted, name), contents)
    document["predictor"] = pack_predictor(fitted)
    archive.write_archive(path, document, key)


def restore(
    path: str | os.PathLike[str],
    predictor: Any,
    tolerance: float,
    check: Callable[[Parameters], dict[str, Any]],
    generator: Generator | None = None,
    key: bytes | None = None,
) -> tuple[dict[str, Any], Fitted]:
    """The explainer in a file, with the predictor it was saved with."""
    document = archive.read(path, key)
    always = ("parameters", "schema", "model", "distance", "draws", "predictor")
    with archive.refused(path, "its parameters"):
        check_entries(document, (*always, *OPTIONAL_PARTS), "it")
        saved = document["parameters"].pop("generator")
    blank = unpack_generator(saved, generator, os.fspath(path))
    with archive.refused(path, "its parameters"):
        given = unpack_parameters(document["parameters"]) | {"generator": blank}
        parameters = check(given)
        check_entries(given, parameters, "the list of its parameters")
    with archive.refused(path, "its part 'schema'"):
        schema = unpack_schema(document["schema"], parameters)
    with archive.refused(path, "its constraints"):
        Constraints.bind(parameters["constraints"], schema)
    with archive.refused(path, "its model"):
        fields = _unpack_model(document, parameters, schema)
    contents = _Contents.of(parameters, fields["n_desired"], fields["generator"])
    for name, part in OPTIONAL_PARTS.items():
        with archive.refused(path, f"its part {name!r}"):
            fields[name] = part.read(document[name], fields, contents)
    with archive.refused(path, "its part 'predictor'"):
        probes = check_probes(document["predictor"], schema)
    decision = decision_on(schema, predictor, parameters["desired"], parameters["score_class"])
    check_predictor(decision, schema, probes, os.fspath(path), tolerance)
    with archive.refused(path, "what it says of its predictor"):
        _check_decision(fields, decision)
    return parameters, Fitted(decision=decision, **fields)


def _pack_parameters(parameters: Parameters, schema: Schema) -> dict[str, Any]:
    # Constraints are saved themselves, not the file that they may come from.
    bound = Constraints.bind(parameters["constraints"], schema)
    params = {**parameters, "constraints": list(bound.listed) or None}
    # Names may come in any container; which one means nothing.
    containers = (np.ndarray, pd.Index, pd.Series)
    plain = {name: list(v) if isinstance(v, containers) else v for name, v in params.items()}
    packed = {
        name: pack(v, f"the parameter {name}") for name, v in plain.items() if name != "generator"
    }
    return packed | {"generator": pack_generator(plain["generator"])}


def unpack_parameters(plain: Any) -> dict[str, Any]:
    """The parameters that :func:`_pack_parameters` wrote, except the generator."""
    given = {name: unpack(value) for name, value in plain.items() if name != "generator"}
    listed = given["constraints"]
    # A path in a file could name any other file.
    if listed is not None and not (
        isinstance(listed, list) and all(isinstance(one, Constraint) for one in listed)
    ):
        raise SavedFileError("it has something else where constraints should stand")
    return given


def _pack_schema(schema: Schema) -> dict[str, Any]:
    features = [
        {
            "name": pack(feature.name, f"the column name {feature.name!r}"),
            "kind": feature.kind,
            "immutable": feature.immutable,
            "table": pack_cells(feature.table, f"column {feature.name!r}"),
        }
        for feature in schema.features
    ]
    return {"frames": pack_adapter(schema.adapter), "features": features}


def unpack_schema(plain: Any, parameters: Parameters) -> Schema:
    """The columns of what :func:`_pack_schema` gave, checked against the parameters."""
    given = check_entries(plain, ("frames", "features"), "the schema")
    features = tuple(_unpack_feature(feature) for feature in given["features"])
    schema = Schema(features, unpack_adapter(given["frames"], features))
    if not schema.mutable.size or len(set(schema.names)) < len(schema.names):
        raise SavedFileError("its columns are all immutable, or two have one name")
    check_text(schema.names)
    none = pd.DataFrame(columns=pd.Index(schema.names, dtype=object, tupleize_cols=False))
    immutable = {schema.names[position] for position in schema.immutable}
    if immutable != set(immutable_columns(parameters["immutable"], parameters["mutable"], none)):
        raise SavedFileError("its immutable columns are not those of its parameters")
    check_roles(parameters["roles"], schema.names)
    kinds = check_kinds(parameters["kinds"], none)
    if any(feature.kind != kinds.get(feature.name, feature.kind) for feature in features):
        raise SavedFileError("its kinds of columns are not those of its parameters")
    return schema


def _unpack_feature(plain: Any) -> Feature:
    """A feature learned like one of training data, which checks the table."""
    given = check_entries(plain, ("name", "kind", "immutable", "table"), "a column")
    table = unpack_cells(given["table"]).rename(unpack(given["name"]))
    if given["kind"] not in ("numeric", "categorical") or type(given["immutable"]) is not bool:
        raise SavedFileError("a column has no kind, or does not say whether it is immutable")
    if table.empty:
        raise SavedFileError("a column has no values")
    feature, codes = Feature.learn_codes(table, kind=given["kind"], immutable=given["immutable"])
    if not np.array_equal(codes, np.arange(len(table))):
        raise SavedFileError("the values of a column are not distinct, or not in order")
    return feature


def _unpack_model(document: dict[str, Any], parameters: Parameters, schema: Schema) -> Fields:
    """The parts of what ``fit`` learned that every file has."""
    blank = find_generator(parameters["generator"])
    needs = find_search(parameters["search"], private=is_private(blank)).needs
    if needs.beyond_paper:
        blank = with_limited_inputs(blank, parameters["generator"], schema)
    model = dict(document["model"])
    n_desired = check_integer(model.pop("n_desired"), "the number of desired rows", 2**53)
    draws = check_entries(document["draws"], ("version", "seed"), "what it says of draws")
    if draws["version"] != DRAWS_VERSION:
        raise SavedFileError(
            f"its draws are of version {shorten(draws['version'])} and those of this mcce of "
            f"version {DRAWS_VERSION}, so answers would differ"
        )
    return {
        "schema": schema,
        "generator": unpack_fitted(model, blank, schema),
        "n_desired": n_desired,
        "distance": unpack_distance(document["distance"], parameters["distance"], schema),
        "seed": check_integer(unpack(draws["seed"]), "the seed"),
    }


def _check_decision(fields: Fields, decision: Decision) -> None:
    """Raise if what was learned from scores cannot be of this decision."""
    by_labels = decision.columns and not isinstance(decision.desired, Interval)
    if fields["label_rule"] is not None and not by_labels:
        raise SavedFileError("it says of labels what its predictor has no probabilities for")
    if fields["surrogate"] is not None:
        check_surrogate(fields["surrogate"], decision)


@dataclass(frozen=True)
class _Contents:
    """The settings that decide which parts a file has."""

    needs: Needs
    has_desired: bool
    private: bool

    @classmethod
    def of(cls, parameters: Parameters, n_desired: int, generator: Generator) -> _Contents:
        private = is_private(generator)
        search = find_search(parameters["search"], private=private)
        needs = needs_of(search, parameters["ignore_relations"])
        return cls(needs, n_desired > 0, private)


@dataclass(frozen=True)
class _OptionalPart:
    """A field of :class:`Fitted` that not every file holds; ``must`` defaults to ``may``."""

    what: str
    pack: Callable[[Any], Any]
    unpack: Callable[[Any, Fields], Any]
    may: Callable[[_Contents], bool]
    must: Callable[[_Contents], bool] | None = None

    def is_required(self, contents: _Contents) -> bool:
        """Whether a file must hold it."""
        return (self.must or self.may)(contents)

    def write(self, value: Any, contents: _Contents) -> Any:
        """The field as plain data and arrays; None if the file does not hold it."""
        if value is None and self.is_required(contents):
            raise NotFittedError(
                "search or ignore_relations was changed after fit, which did not learn "
                f"{self.what} for the new one. Fit again. Nothing was written."
            )
        return self.pack(value) if value is not None and self.may(contents) else None

    def read(self, plain: Any, fields: Fields, contents: _Contents) -> Any:
        """The field of what :meth:`write` gave, checked."""
        if plain is None and self.is_required(contents):
            raise SavedFileError(f"it lacks {self.what}")
        if plain is not None and not self.may(contents):
            raise SavedFileError(f"it has {self.what} that it does not need")
        return None if plain is None else self.unpack(plain, fields)


def _pack_training_rows(rows: np.ndarray) -> dict[str, Any]:
    return {"codes": rows.view(np.int32).reshape(len(rows), -1)}


def _unpack_training_rows(plain: Any, fields: Fields) -> np.ndarray:
    given = check_entries(plain, ("codes",), "the part of training rows")["codes"]
    codes = check_codes(getattr(given, "T", None), fields["schema"], "the training rows")
    return np.unique(rows_as_bytes(codes.T))


def _unpack_value_counts(plain: Any, fields: Fields) -> tuple[IntArray, ...]:
    schema = fields["schema"]
    sizes = [schema.features[position].n_codes for position in schema.mutable]
    if not isinstance(plain, np.ndarray) or plain.dtype != np.int64 or plain.shape != (sum(sizes),):
        raise SavedFileError("it does not count the values of its columns")
    counts = tuple(np.split(plain, np.cumsum(sizes)[:-1]))
    # As Python integers, which cannot overflow.
    if (plain < 1).any() or len({sum(part.tolist()) for part in counts}) > 1:
        raise SavedFileError("its counts of values are not those of one table")
    return counts


def _unpack_plausibility(plain: Any, fields: Fields) -> PlausibilityModel:
    schema = fields["schema"]
    order = visit_order_of(fields["generator"], schema)
    return unpack_plausibility(plain, schema, order, fields["n_desired"])


def _of_schema(unpack: Callable[[Any, Schema], Any]) -> Callable[[Any, Fields], Any]:
    return lambda plain, fields: unpack(plain, fields["schema"])


# By name of the field, which is also that of the part.
OPTIONAL_PARTS = {
    "label_rule": _OptionalPart(
        "when labels follow from scores",
        write_fields,
        _of_schema(unpack_label_rule),
        may=lambda contents: True,
        must=lambda contents: False,
    ),
    "training_rows": _OptionalPart(
        "training rows",
        _pack_training_rows,
        _unpack_training_rows,
        may=lambda contents: contents.needs.training_rows,
    ),
    # A private explainer does not count training rows.
    "value_counts": _OptionalPart(
        "counts of values",
        lambda counts: np.concatenate(counts, dtype=np.int64),
        _unpack_value_counts,
        may=lambda contents: not contents.private,
    ),
    "relations": _OptionalPart(
        "relations between columns",
        lambda relations: [pack_relation(found) for found in relations],
        _of_schema(unpack_relations),
        may=lambda contents: contents.needs.relations,
    ),
    "flags": _OptionalPart(
        "flags of columns",
        lambda flags: [write_fields(found) for found in flags],
        _of_schema(unpack_flags),
        may=lambda contents: not contents.private,
        must=lambda contents: False,
    ),
    "plausibility": _OptionalPart(
        "accepted training rows",
        pack_plausibility,
        _unpack_plausibility,
        may=lambda contents: contents.needs.beyond_paper and contents.has_desired,
        must=lambda contents: contents.needs.requires_plausibility and contents.has_desired,
    ),
    # Without one, a search calls the predictor on every row that it looks at.
    "surrogate": _OptionalPart(
        "a model of its predictor",
        pack_surrogate,
        _of_schema(unpack_surrogate),
        may=lambda contents: contents.needs.surrogate,
        must=lambda contents: False,
    ),
}
