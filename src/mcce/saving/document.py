"""What a saved file holds: the parameters, what ``fit`` learned, and how to know the predictor.

Columns, model, distance and seed are always there. What else ``fit`` learned is a part by the name
of its field of :class:`Fitted`, which ``PARTS`` writes and reads; the search decides which there
are. To save one more thing, add it there and to ``_contents``.

Always true: nothing is written unless everything can be; a loaded explainer has passed the checks
that a fitted one has, and gives the same answers, bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..constraints.collection import Constraints
from ..constraints.constraint import Constraint
from ..errors import NotFittedError, shorten
from ..fitted import Fitted
from ..kernels import DRAWS_VERSION
from ..model.registry import find_generator, visit_order_of, with_limited_inputs
from ..predictors.desired import decision_on
from ..protocols import Generator, is_private
from ..search.config import check_inputs, find_search, needs_of
from ..tables.features import Feature
from ..tables.roles import check_kinds, check_roles, check_text, immutable_columns
from ..tables.schema import Schema
from . import archive
from .archive import ensure
from .cells import pack_adapter, pack_cells, unpack_adapter, unpack_cells
from .generators import (
    pack_distance,
    pack_fitted,
    pack_generator,
    unpack_distance,
    unpack_fitted,
    unpack_generator,
)
from .parts import PARTS, Known, check_decision, read_whole
from .probes import check_predictor, check_probes, pack_predictor
from .values import check_entries, check_hashes, pack, unpack

Parameters = Mapping[str, Any]
# What a part is, for those who lack it.
NAMES = {
    "training_rows": "training rows",
    "value_counts": "counts of values",
    "relations": "relations between columns",
    "plausibility": "accepted training rows",
}


def save(
    parameters: Parameters, fitted: Fitted, path: str | os.PathLike[str], key: bytes | None = None
) -> None:
    """Write a fitted explainer to a file, without its predictor."""
    archive.check_key(key)
    parameters = {name: value for name, value in parameters.items() if name != "predictor"}
    document: dict[str, Any] = {
        "parameters": _pack_parameters(parameters, fitted.schema),
        "schema": _pack_schema(fitted.schema),
    }
    check_inputs(fitted, find_search(parameters["search"], private=is_private(fitted.generator)))
    document["model"] = {"n_desired": fitted.n_desired} | pack_fitted(fitted.generator)
    document["distance"] = pack_distance(fitted.distance)
    document["draws"] = {"version": DRAWS_VERSION, "seed": fitted.seed}
    may, must = _contents(parameters, fitted.n_desired, fitted.generator)
    for name, kind in PARTS.items():
        value = getattr(fitted, name)
        if value is None and name in must:
            raise NotFittedError(
                "search or ignore_relations was changed after fit, which did not learn "
                f"{NAMES[name]} for the new one. Fit again. Nothing was written."
            )
        document[name] = None if value is None or name not in may else kind.write(value)
    document["predictor"] = pack_predictor(fitted)
    archive.write(path, document, key)


def restore(
    path: str | os.PathLike[str],
    predictor: Any,
    tolerance: float,
    check: Callable[[Parameters], dict[str, Any]],
    generator: Generator | None = None,
    key: bytes | None = None,
) -> tuple[dict[str, Any], Fitted]:
    """The explainer in a file, with the predictor it was saved with."""
    document, _ = archive.read(path, key)
    always = ("parameters", "schema", "model", "distance", "draws", "predictor")
    with archive.refused(path, "its parameters"):
        check_entries(document, (*always, *PARTS), "it")
        saved = document["parameters"].pop("generator")
    blank = unpack_generator(saved, generator, os.fspath(path))
    with archive.refused(path, "its parameters"):
        given = unpack_parameters(document["parameters"]) | {"generator": blank}
        parameters = check(given)
        check_entries(given, parameters, "the list of its parameters")
    with archive.refused(path, "what it learned"):
        schema = unpack_schema(document["schema"], parameters)
        Constraints.bind(parameters["constraints"], schema)
        fields = _unpack_model(document, parameters, schema)
        fields |= _unpack_parts(document, parameters, fields)
        probes = check_probes(document["predictor"], schema)
    decision = decision_on(schema, predictor, parameters["desired"], parameters["score_class"])
    check_predictor(decision, schema, probes, os.fspath(path), tolerance)
    with archive.refused(path, "what it says of its predictor"):
        check_decision(fields["surrogate"], fields["label_rule"], decision)
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
    made = type(listed) is list and all(isinstance(one, Constraint) for one in listed)
    ensure(listed is None or made, "it has something else where constraints should stand")
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
    distinct = len(set(check_hashes([*schema.names]))) == len(schema.names)
    ensure(schema.mutable.size and distinct, "all columns are immutable, or two have one name")
    check_text(schema.names)
    none = pd.DataFrame(columns=pd.Index(schema.names, dtype=object, tupleize_cols=False))
    immutable = {schema.names[position] for position in schema.immutable}
    declared = immutable_columns(parameters["immutable"], parameters["mutable"], none)
    ensure(immutable == set(declared), "its immutable columns are not those of its parameters")
    check_roles(parameters["roles"], schema.names)
    kinds = check_kinds(parameters["kinds"], none)
    same = all(feature.kind == kinds.get(feature.name, feature.kind) for feature in features)
    ensure(same, "its kinds of columns are not those of its parameters")
    return schema


def _unpack_feature(plain: Any) -> Feature:
    """A feature learned like one of training data, which checks the table."""
    given = check_entries(plain, ("name", "kind", "immutable", "table"), "a column")
    table = unpack_cells(given["table"]).rename(unpack(given["name"]))
    known = given["kind"] in ("numeric", "categorical") and type(given["immutable"]) is bool
    ensure(known, "a column has no kind, or does not say whether it is immutable")
    ensure(not table.empty, "a column has no values")
    feature, codes = Feature.learn_codes(table, kind=given["kind"], immutable=given["immutable"])
    in_order = np.array_equal(codes, np.arange(len(table)))
    ensure(in_order, "the values of a column are not distinct, or not in order")
    return feature


def _unpack_model(
    document: dict[str, Any], parameters: Parameters, schema: Schema
) -> dict[str, Any]:
    """The parts of what ``fit`` learned that every file has."""
    blank = find_generator(parameters["generator"])
    needs = find_search(parameters["search"], private=is_private(blank)).needs
    if needs.beyond_paper:
        blank = with_limited_inputs(blank, parameters["generator"], schema)
    model = dict(document["model"])
    n_desired = read_whole(model.pop("n_desired"))
    draws = check_entries(document["draws"], ("version", "seed"), "what it says of draws")
    ensure(
        draws["version"] == DRAWS_VERSION,
        f"its draws are of version {shorten(draws['version'])} and those of this mcce of version "
        f"{DRAWS_VERSION}, so answers would differ",
    )
    return {
        "schema": schema,
        "generator": unpack_fitted(model, blank, schema),
        "n_desired": n_desired,
        "distance": unpack_distance(document["distance"], parameters["distance"], schema),
        "seed": read_whole(draws["seed"], 2**64 - 1),
    }


def _unpack_parts(
    document: dict[str, Any], parameters: Parameters, fields: dict[str, Any]
) -> dict[str, Any]:
    """The parts that not every file has, by name."""
    generator, n_desired = fields["generator"], fields["n_desired"]
    may, must = _contents(parameters, n_desired, generator)
    order = visit_order_of(generator, fields["schema"])
    known, parts = Known(fields["schema"], order, n_desired), {}
    for name, kind in PARTS.items():
        plain = document[name]
        ensure(plain is not None or name not in must, f"it lacks its part {name!r}")
        ensure(plain is None or name in may, f"it has a part {name!r} that it does not need")
        parts[name] = None if plain is None else kind.read(plain, known)
    return parts


def _contents(
    parameters: Parameters, n_desired: int, generator: Generator
) -> tuple[set[str], set[str]]:
    """The parts that a file may hold, and those of them that it must, by the settings."""
    private = is_private(generator)
    search = find_search(parameters["search"], private=private)
    needs = needs_of(search, parameters["ignore_relations"])
    must = {
        "training_rows": needs.training_rows,
        # A private explainer does not count training rows.
        "value_counts": not private,
        "relations": needs.relations,
        "plausibility": needs.requires_plausibility and n_desired > 0,
    }
    # Without a surrogate, a search calls the predictor on every row that it looks at.
    may = must | {
        "label_rule": True,
        "flags": not private,
        "plausibility": needs.beyond_paper and n_desired > 0,
        "surrogate": needs.surrogate,
    }
    chosen = [{name for name, holds in parts.items() if holds} for parts in (may, must)]
    return chosen[0], chosen[1]
