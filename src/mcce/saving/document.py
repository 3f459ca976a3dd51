"""What a saved file holds: the parameters, what ``fit`` learned, and how to know the predictor.

Columns, model, distance and seed are always there. What else ``fit`` learned is a part by the name
of its field of :class:`Fitted`, which ``PARTS`` writes and reads; the search decides which there
are. To save one more thing, add it there and to ``_contents``.

A file holds no code. Of a generator that is not registered it holds the name of the class and what
``to_arrays`` gives; to load it, the user passes an instance, whose ``from_arrays`` takes that.

Always true: nothing is written unless everything can be; a loaded explainer has passed the checks
that a fitted one has, and gives the same answers, bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from ..boosting.surrogate import Surrogate
from ..constraints.collection import Constraints
from ..constraints.constraint import Constraint
from ..distances import FeatureDistance, find_distance
from ..errors import NotFittedError, ParameterError, SavedFileError, shorten
from ..fitted import Fitted, with_known_range
from ..kernels import DRAWS_VERSION
from ..model.registry import (
    GENERATORS,
    find_generator,
    require,
    suggest_generators,
    visit_order_of,
    with_limited_inputs,
)
from ..predictors.desired import decision_on
from ..protocols import Distance, Generator, is_private
from ..search.config import find_search
from ..search.prerequisites import check_inputs, needs_of
from ..survival.committee import RetrainedModels, Survival
from ..survival.lasting import Lasting
from ..tables.features import Feature
from ..tables.roles import check_kinds, check_roles, check_text, immutable_columns
from ..tables.schema import Schema
from . import archive
from .archive import ensure
from .cells import pack_adapter, pack_cells, unpack_adapter, unpack_cells
from .parts import PARTS, Known, check_decision, read, read_plain, write
from .probes import check_predictor, check_probes, pack_predictor
from .values import check_entries, check_hashes, pack, unpack

Parameters = Mapping[str, Any]
ALWAYS = ("parameters", "schema", "draws", "n_desired", "model", "distance", "predictor")
CUSTOM = "custom generator"
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
    document: dict[str, Any] = {
        "parameters": _pack_parameters(parameters, fitted.schema),
        "schema": _pack_schema(fitted.schema),
        "draws": {"version": DRAWS_VERSION, "seed": fitted.seed},
        "n_desired": fitted.n_desired,
    }
    check_inputs(fitted, find_search(parameters["search"], private=is_private(fitted.generator)))
    document["model"] = pack_fitted(fitted.generator)
    document["distance"] = _pack_distance(fitted.distance)
    required = _contents(parameters, fitted.n_desired, fitted.generator)
    for name, hint in PARTS.items():
        value = getattr(fitted, name)
        if value is None and required.get(name):
            raise NotFittedError(
                "search or ignore_relations was changed after fit, which did not learn "
                f"{NAMES[name]} for the new one. Fit again. Nothing was written."
            )
        document[name] = None if value is None or name not in required else write(value, hint)
    document["predictor"] = pack_predictor(fitted)
    archive.write(path, document, key)


def restore(
    path: str | os.PathLike[str],
    predictor: Any,
    tolerance: float,
    check: Callable[[Parameters], dict[str, Any]],
    generator: Generator | None = None,
    key: bytes | None = None,
    retrained: Sequence[Any] | None = None,
) -> tuple[dict[str, Any], Fitted]:
    """The explainer in a file, with the predictor it was saved with."""
    document, _ = archive.read(path, key)
    with archive.refused(path, "its parameters"):
        check_entries(document, (*ALWAYS, *PARTS), "it")
        saved = document["parameters"].pop("generator")
    blank = _unpack_generator(saved, generator, os.fspath(path))
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
        _check_lasting(fields["lasting"], fields["surrogate"], parameters["survival"])
    decision = with_known_range(decision, fields["surrogate"])
    fields["lasting"] = _with_retrained(fields["lasting"], retrained, parameters, schema)
    return parameters, Fitted(decision=decision, **fields)


def _check_lasting(lasting: Lasting | None, surrogate: Surrogate | None, given: Any) -> None:
    """Raise if what answers that last are measured by is not what was asked for."""
    asked = given if given is None or isinstance(given, Survival) else Survival(given)
    if lasting is None or asked is None:
        ensure(lasting is None and (asked is None or surrogate is None), "it lacks its survival")
        return
    fits = lasting.share == asked.share and (lasting.surrogate is None or asked.share > 0)
    n_models = None if lasting.trees is None else len(lasting.trees.trees)
    ensure(fits and n_models in (None, asked.n_models), "its survival is not the one asked for")


def _with_retrained(
    lasting: Lasting | None,
    given: Sequence[Any] | None,
    parameters: Parameters,
    schema: Schema,
) -> Lasting | None:
    """What answers that last are measured by, with the models that were trained anew."""
    if lasting is None or lasting.trees is not None:
        if given is not None:
            raise ParameterError(
                "The explainer was saved without models that were trained anew. Leave retrained "
                "out."
            )
        return lasting
    asked = parameters["survival"]
    n_models = (asked if isinstance(asked, Survival) else Survival(asked)).n_models
    if given is None or len(given) != n_models:
        raise ParameterError(
            f"The explainer was fitted with {n_models} models that were trained anew, "
            f"which a file cannot hold; got {'none' if given is None else len(given)}. Pass what "
            "retrained_ of the fitted explainer was as retrained."
        )
    desired, score_class = parameters["desired"], parameters["score_class"]
    decisions = [decision_on(schema, one, desired, score_class) for one in given]
    return replace(lasting, retrained=RetrainedModels(decisions))


def _pack_parameters(parameters: Parameters, schema: Schema) -> dict[str, Any]:
    # Constraints are saved themselves, not the file that they may come from.
    bound = Constraints.bind(parameters["constraints"], schema)
    packed = {}
    for name, value in {**parameters, "constraints": list(bound.listed) or None}.items():
        # Names may come in any container; which one means nothing.
        listed = list(value) if isinstance(value, (np.ndarray, pd.Index, pd.Series)) else value
        if name == "generator":
            packed[name] = _pack_generator(value)
        elif name != "predictor":
            packed[name] = pack(listed, f"the parameter {name}")
    return packed


def unpack_parameters(plain: Any) -> dict[str, Any]:
    """The parameters that :func:`_pack_parameters` wrote, except the generator."""
    given = {name: unpack(value) for name, value in plain.items() if name != "generator"}
    listed = given["constraints"]
    # A path in a file could name any other file.
    made = type(listed) is list and all(isinstance(one, Constraint) for one in listed)
    ensure(listed is None or made, "it has something else where constraints should stand")
    return given


def is_custom(generator: Any) -> bool:
    """Whether a generator has no registered name."""
    return not isinstance(generator, str) and GENERATORS.name_of(type(generator)) is None


def _pack_generator(generator: Any) -> Any:
    """The parameter ``generator`` as JSON."""
    if not is_custom(generator):
        return pack(generator, "the parameter generator")
    if not generator.capabilities.saving:
        raise SavedFileError(
            f"Cannot save the generator {type(generator).__name__}: it does not declare the "
            "capability 'saving' (to_arrays, from_arrays), and a file holds no code. Declare and "
            f"implement it, or use {suggest_generators('saving')}. Nothing was written."
        )
    return {CUSTOM: type(generator).__name__}


def _unpack_generator(plain: Any, given: Any, path: str) -> Any:
    """The parameter ``generator`` of a file, which is ``given`` if it has no registered name."""
    name = plain.get(CUSTOM) if isinstance(plain, dict) else None
    if not isinstance(name, str):
        if given is not None:
            raise ParameterError(
                f"generator is for files saved with a generator of your own, but {path!r} has one "
                f"that is found by name; got {shorten(given)}. Leave generator out."
            )
        with archive.refused(path):
            return unpack(plain)
    if type(given).__name__ != name:
        title = name if name.isidentifier() and len(name) < 80 else shorten(name)
        raise ParameterError(
            f"{path!r} was saved with the generator {title}, which has no registered name; got "
            f"generator={shorten(given)}. Pass an instance: mcce.load(path, predictor, "
            f"generator={title}())."
        )
    return given


def pack_fitted(generator: Generator) -> dict[str, Any]:
    """What a fitted generator learned."""
    savable = require(generator, "saving", "Saving needs what the generator learned as arrays")
    return dict(savable.to_arrays())


def unpack_fitted(plain: Mapping[str, Any], blank: Generator, schema: Schema) -> Generator:
    """The fitted generator of what :func:`pack_fitted` gave."""
    savable = require(blank, "saving", "Loading needs a generator that takes arrays")
    if not is_custom(blank):
        names: tuple[str, ...] = type(blank).array_names  # type: ignore[attr-defined]
        return savable.from_arrays(check_entries(plain, names, "the model"), schema)
    try:
        return savable.from_arrays(plain, schema)
    except ValueError as error:
        # It is the user's own code, whose reason is of use.
        raise SavedFileError(f"its generator refused it: {shorten(error, 300)}") from error


def _pack_distance(distance: Distance) -> dict[str, Any] | None:
    """What a fitted distance learned; None if that is nothing."""
    if isinstance(distance, FeatureDistance):
        return dict(distance.to_arrays()) if distance.reads_rows else None
    raise SavedFileError(
        f"Cannot save the distance {type(distance).__name__}: files hold sums over features, "
        "mcce.FeatureDistance, that have a registered name. Nothing was written."
    )


def _unpack_distance(plain: Any, given: Any, schema: Schema) -> FeatureDistance:
    """The fitted distance of what :func:`_pack_distance` gave, by the parameter ``distance``."""
    blank = find_distance(given)
    if not isinstance(blank, FeatureDistance):
        raise SavedFileError("its distance is no mcce.FeatureDistance")
    whole = (plain is not None) == blank.reads_rows
    ensure(whole, "it lacks what its distance learned, or has some that it did not")
    arrays = {} if plain is None else check_entries(plain, blank.array_names, "the distance")
    return blank.from_arrays(arrays, schema)


def _pack_schema(schema: Schema) -> dict[str, Any]:
    features = [
        {
            "name": pack(feature.name, f"the column name {feature.name!r}"),
            "kind": feature.kind,
            "table": pack_cells(feature.table, f"column {feature.name!r}"),
        }
        for feature in schema.features
    ]
    return {"frames": pack_adapter(schema.adapter), "features": features}


def unpack_schema(plain: Any, parameters: Parameters) -> Schema:
    """The columns of what :func:`_pack_schema` gave, as the parameters describe them."""
    given = check_entries(plain, ("frames", "features"), "the schema")
    names = check_hashes([unpack(one["name"]) for one in given["features"]])
    ensure(len(set(names)) == len(names), "two columns have one name")
    check_text(names)
    check_roles(parameters["roles"], names)
    none = pd.DataFrame(columns=pd.Index(names, dtype=object, tupleize_cols=False))
    fixed = set(immutable_columns(parameters["immutable"], parameters["mutable"], none))
    kinds = check_kinds(parameters["kinds"], none)
    features = tuple(_unpack_feature(**one, fixed=fixed, kinds=kinds) for one in given["features"])
    return Schema(features, unpack_adapter(given["frames"], features))


def _unpack_feature(
    name: Any, kind: Any, table: Any, fixed: set[Hashable], kinds: Mapping[Hashable, Any]
) -> Feature:
    """A feature learned like one of training data, which checks the table."""
    cells = unpack_cells(table).rename(unpack(name))
    known = kind in ("numeric", "categorical") and kinds.get(cells.name, kind) == kind
    ensure(known, "a column is not of the kind that its parameters say")
    ensure(not cells.empty, "a column has no values")
    feature, codes = Feature.learn_codes(cells, kind=kind, immutable=cells.name in fixed)
    in_order = np.array_equal(codes, np.arange(len(cells)))
    ensure(in_order, "the values of a column are not distinct, or not in order")
    return feature


def _unpack_model(
    document: dict[str, Any], parameters: Parameters, schema: Schema
) -> dict[str, Any]:
    """What ``fit`` learned that every file has."""
    blank = find_generator(parameters["generator"])
    if find_search(parameters["search"], private=is_private(blank)).needs.beyond_paper:
        blank = with_limited_inputs(blank, parameters["generator"], schema)
    draws = check_entries(document["draws"], ("version", "seed"), "what it says of draws")
    ensure(
        draws["version"] == DRAWS_VERSION,
        f"its draws are of version {shorten(draws['version'])} and those of this mcce of version "
        f"{DRAWS_VERSION}, so answers would differ",
    )
    return {
        "schema": schema,
        "generator": unpack_fitted(document["model"], blank, schema),
        "n_desired": read_plain(document["n_desired"], int),
        "distance": _unpack_distance(document["distance"], parameters["distance"], schema),
        "seed": read_plain(draws["seed"], int, 2**64 - 1),
    }


def _unpack_parts(
    document: dict[str, Any], parameters: Parameters, fields: dict[str, Any]
) -> dict[str, Any]:
    """What ``fit`` learned that not every file has, by name."""
    generator, schema, n_desired = (fields[name] for name in ("generator", "schema", "n_desired"))
    required = _contents(parameters, n_desired, generator)
    known, parts = Known(schema, visit_order_of(generator, schema), n_desired), {}
    for name, hint in PARTS.items():
        plain = document[name]
        ensure(plain is not None or not required.get(name), f"it lacks its part {name!r}")
        ensure(plain is None or name in required, f"it has a part {name!r} that it does not need")
        parts[name] = None if plain is None else read(plain, known, hint)
    return parts


def _contents(parameters: Parameters, n_desired: int, generator: Generator) -> dict[str, bool]:
    """The parts that a file may hold by the settings, and whether it must."""
    private = is_private(generator)
    needs = needs_of(
        find_search(parameters["search"], private=private), parameters["ignore_relations"]
    )
    # Whether a file may hold a part, and whether it must.
    parts = {
        "label_rule": (True, False),
        "training_rows": (needs.training_rows, True),
        # A private explainer does not count training rows.
        "value_counts": (not private, True),
        "relations": (needs.relations, True),
        "flags": (not private, False),
        "plausibility": (needs.beyond_paper and n_desired > 0, needs.requires_plausibility),
        # Without a surrogate, a search calls the predictor on every row that it looks at.
        "surrogate": (needs.surrogate, False),
        "lasting": (needs.surrogate and parameters["survival"] is not None, False),
    }
    return {name: must for name, (may, must) in parts.items() if may}


@dataclass(frozen=True)
class Inspection:
    """What a saved file holds."""

    about: Mapping[str, Any]
    parameters: Mapping[str, Any]
    schema: Schema = field(repr=False)
    decision: Mapping[str, Any]
    seed: int
    n_desired: int
    relations: tuple[str, ...]
    whole_rows: Mapping[str, int]
    n_probes: int
    n_shares: int


def inspect(path: str | os.PathLike[str], key: bytes | None = None) -> Inspection:
    """What a saved file holds."""
    document, about = archive.read(path, key)
    with archive.refused(path):
        given = document["parameters"]
        parameters = unpack_parameters(given) | {"generator": _generator(given["generator"])}
        schema = unpack_schema(document["schema"], parameters)
        found = read(document["relations"] or [], Known(schema), PARTS["relations"])
        enforced = [one.relation.name for one in found if one.enforced]
        left_out = parameters["ignore_relations"]
        ignored = left_out if isinstance(left_out, (list, tuple)) else ()
        accepted, training = document["plausibility"], document["training_rows"]
        return Inspection(
            about=about,
            parameters=parameters,
            schema=schema,
            decision=document["predictor"]["decision"],
            seed=int(document["draws"]["seed"]),
            n_desired=int(document["n_desired"]),
            relations=tuple(name for name in enforced if name not in ignored),
            whole_rows={
                "accepted training rows": 0 if accepted is None else accepted["codes"].shape[1],
                "training rows": 0 if training is None else len(training["codes"]),
            },
            n_probes=int(document["predictor"]["probes"].shape[1]),
            n_shares=_n_shares(document["distance"]),
        )


def _generator(packed: Any) -> Any:
    """A private generator itself, which tells its budget; any other as it is packed."""
    tagged = isinstance(packed, dict) and "generator" in packed
    made = unpack(packed) if tagged else None
    return made if is_private(made) else packed


def _n_shares(learned: Any) -> int:
    """How many values and ranges a distance has learned shares of decisions for."""
    if isinstance(learned, Mapping):
        return sum(_n_shares(part) for part in learned.values())
    return len(learned) if isinstance(learned, np.ndarray) and learned.ndim == 2 else 0
