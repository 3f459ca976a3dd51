"""What a saved file holds: the parameters, what ``fit`` learned, and how to know the predictor.

What ``fit`` learned comes in sections, each a pair of functions: from :class:`Fitted` to plain data
(JSON values and arrays), and from there to fields of a :class:`Fitted`, given the parameters and
the sections before. To save one more thing, add a line to ``SECTIONS``.

Always true: nothing is written unless everything can be; a loaded explainer has passed the checks
that a fitted one has, and gives the same answers, bit for bit.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..constraints.collection import Constraints
from ..errors import NotFittedError, SavedFileError, shorten
from ..fitted import Fitted
from ..kernels import DRAWS_VERSION, rows_as_bytes
from ..model import find_generator, limit_inputs, visit_order_of
from ..predictors.decision import Interval, LabelRule
from ..predictors.desired import decision_on
from ..protocols import Generator
from ..search.config import check_inputs, find_search
from ..tables.columns import check_kinds
from ..tables.features import Feature
from ..tables.names import check_text
from ..tables.roles import check_roles, immutable_columns
from ..tables.schema import Schema
from . import archive
from .cells import pack_cells, unpack_cells
from .checks import check_codes, check_entries, check_integer
from .distances import pack_distance, unpack_distance
from .frames import pack_adapter, unpack_adapter
from .generators import pack_fitted, pack_generator, unpack_fitted, unpack_generator
from .plausibility import pack_plausibility, unpack_plausibility
from .probes import check_predictor, check_probes, pack_predictor
from .relations import pack_relation, unpack_relations
from .surrogate import check_imitation, pack_surrogate, unpack_surrogate
from .values import pack, unpack
from .versions import upgrade_generator, upgrade_parameters

Parameters = Mapping[str, Any]
# Fields of Fitted by name, as far as they are read.
Fields = dict[str, Any]


@dataclass(frozen=True)
class Section:
    """Something that ``fit`` learned: as plain data, and as fields of a :class:`Fitted`."""

    pack: Callable[[Fitted, Parameters], Any]
    unpack: Callable[[Any, Parameters, Fields], Fields]
    # Whether older files lack it; it is then unpacked from None.
    optional: bool = False


def save(
    parameters: Parameters, fitted: Fitted, path: str | os.PathLike[str], key: bytes | None = None
) -> None:
    """Write a fitted explainer to a file, without its predictor."""
    archive.check_key(key)
    parameters = {name: value for name, value in parameters.items() if name != "predictor"}
    document = {"parameters": _pack_parameters(parameters, fitted.schema)}
    document |= {name: section.pack(fitted, parameters) for name, section in SECTIONS.items()}
    document |= {"predictor": pack_predictor(fitted)}
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
    document = archive.read(path, key)
    with archive.refused(path, "its parameters"):
        required = {name for name, section in SECTIONS.items() if not section.optional}
        optional = SECTIONS.keys() - required
        check_entries(
            document, {"parameters", "predictor", *required} | (document.keys() & optional), "it"
        )
        saved = document["parameters"].pop("generator")
    blank = unpack_generator(saved, generator, os.fspath(path))
    with archive.refused(path, "its parameters"):
        packed = {name: unpack(value) for name, value in document["parameters"].items()}
        parameters = check(upgrade_parameters(packed | {"generator": blank}))
        if "label_rule" not in document:
            parameters = upgrade_generator(parameters, len(document["schema"]["features"]))
    fields: Fields = {}
    for name, section in SECTIONS.items():
        with archive.refused(path, f"its part {name!r}"):
            fields |= section.unpack(document.get(name), parameters, fields)
    schema = fields["schema"]
    with archive.refused(path, "its constraints"):
        Constraints.bind(parameters["constraints"], schema)
    with archive.refused(path, "its part 'predictor'"):
        probes = check_probes(document["predictor"], schema)
    decision = decision_on(schema, predictor, parameters["desired"], parameters["score_class"])
    check_predictor(decision, schema, probes, os.fspath(path), tolerance)
    with archive.refused(path, "its part 'label_rule'"):
        if "label_rule" in fields and (
            not decision.columns or isinstance(decision.desired, Interval)
        ):
            raise SavedFileError("it says of labels what its predictor has no probabilities for")
    with archive.refused(path, "its part 'surrogate'"):
        if "surrogate" in fields:
            check_imitation(fields["surrogate"], decision)
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


def _pack_schema(fitted: Fitted, parameters: Parameters) -> dict[str, Any]:
    features = [
        {
            "name": pack(feature.name, f"the column name {feature.name!r}"),
            "kind": feature.kind,
            "immutable": feature.immutable,
            "table": pack_cells(feature.table, f"column {feature.name!r}"),
        }
        for feature in fitted.schema.features
    ]
    return {"frames": pack_adapter(fitted.schema.adapter), "features": features}


def _unpack_schema(plain: Any, parameters: Parameters, fields: Fields) -> Fields:
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
    return {"schema": schema}


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


def _pack_model(fitted: Fitted, parameters: Parameters) -> dict[str, Any]:
    check_inputs(fitted, find_search(parameters["search"]))
    return {"n_desired": fitted.n_desired} | pack_fitted(fitted.generator)


def _unpack_model(plain: Any, parameters: Parameters, fields: Fields) -> Fields:
    blank = find_generator(parameters["generator"])
    beyond_paper = find_search(parameters["search"]).needs.measures_plausibility
    blank = limit_inputs(blank, parameters["generator"], fields["schema"], beyond_paper)
    learned = dict(plain)
    n_desired = learned.pop("n_desired")
    return {
        "generator": unpack_fitted(learned, blank, fields["schema"]),
        "n_desired": check_integer(n_desired, "the number of desired rows", 2**53),
    }


def _pack_distance(fitted: Fitted, parameters: Parameters) -> dict[str, Any] | None:
    return pack_distance(fitted.distance)


def _unpack_distance(plain: Any, parameters: Parameters, fields: Fields) -> Fields:
    # Files up to version 7 have distances that learn nothing.
    return {"distance": unpack_distance(plain, parameters["distance"], fields["schema"])}


def _pack_label_rule(fitted: Fitted, parameters: Parameters) -> dict[str, Any] | None:
    return None if fitted.label_rule is None else asdict(fitted.label_rule)


def _unpack_label_rule(plain: Any, parameters: Parameters, fields: Fields) -> Fields:
    # Files up to version 5 have none, so that predict is called for every row.
    if plain is None:
        return {}
    given = check_entries(plain, ("measure", "low", "high"), "what it says of labels")
    low, high = given["low"], given["high"]
    if given["measure"] not in ("score", "margin") or {type(low), type(high)} != {float}:
        raise SavedFileError("what it says of labels is no measure with two numbers")
    if not -math.inf < low <= high < math.inf:
        raise SavedFileError("what it says of labels has no finite ends in order")
    return {"label_rule": LabelRule(**given)}


def _pack_draws(fitted: Fitted, parameters: Parameters) -> dict[str, Any]:
    return {"version": DRAWS_VERSION, "seed": pack(fitted.seed, "the seed")}


def _unpack_draws(plain: Any, parameters: Parameters, fields: Fields) -> Fields:
    given = check_entries(plain, ("version", "seed"), "what it says of draws")
    if given["version"] != DRAWS_VERSION:
        raise SavedFileError(
            f"its draws are of version {shorten(given['version'])} and those of this mcce of "
            f"version {DRAWS_VERSION}, so answers would differ"
        )
    return {"seed": check_integer(unpack(given["seed"]), "the seed")}


def _pack_training_rows(fitted: Fitted, parameters: Parameters) -> dict[str, Any] | None:
    rows = fitted.training_rows
    if not find_search(parameters["search"]).needs.training_rows:
        return None
    if rows is None:
        raise NotFittedError(
            "search was changed after fit, which did not keep the training rows that the new one "
            "needs. Fit again. Nothing was written."
        )
    return {"codes": rows.view(np.int32).reshape(len(rows), -1)}


def _unpack_training_rows(plain: Any, parameters: Parameters, fields: Fields) -> Fields:
    if (plain is not None) != find_search(parameters["search"]).needs.training_rows:
        raise SavedFileError("it lacks training rows, or has some that it does not need")
    if plain is None:
        return {}
    given = check_entries(plain, ("codes",), "the part of training rows")["codes"]
    codes = check_codes(getattr(given, "T", None), fields["schema"], "the training rows")
    return {"training_rows": np.unique(rows_as_bytes(codes.T))}


def _pack_value_counts(fitted: Fitted, parameters: Parameters) -> np.ndarray | None:
    if fitted.value_counts is None:
        return None
    return np.concatenate(fitted.value_counts, dtype=np.int64)


def _unpack_value_counts(plain: Any, parameters: Parameters, fields: Fields) -> Fields:
    # Files up to version 6 do not say how frequent values are.
    if plain is None:
        return {}
    schema = fields["schema"]
    sizes = [schema.features[position].n_codes for position in schema.mutable]
    if not isinstance(plain, np.ndarray) or plain.dtype != np.int64 or plain.shape != (sum(sizes),):
        raise SavedFileError("it does not count the values of its columns")
    counts = tuple(np.split(plain, np.cumsum(sizes)[:-1]))
    # As Python integers, which cannot overflow.
    if (plain < 1).any() or len({sum(part.tolist()) for part in counts}) > 1:
        raise SavedFileError("its counts of values are not those of one table")
    return {"value_counts": counts}


def _pack_plausibility(fitted: Fitted, parameters: Parameters) -> dict[str, Any] | None:
    model = fitted.plausibility
    needs = find_search(parameters["search"]).needs
    if not needs.measures_plausibility or not fitted.n_desired:
        return None
    if model is None and not needs.plausibility:
        return None
    if model is None:
        raise NotFittedError(
            "The search needs what fit did not learn: search was changed after fit, or the "
            "explainer was saved by an earlier version of mcce. Fit again. Nothing was written."
        )
    return pack_plausibility(model)


def _unpack_plausibility(plain: Any, parameters: Parameters, fields: Fields) -> Fields:
    needs, there = find_search(parameters["search"]).needs, fields["n_desired"] > 0
    if plain is None and needs.plausibility and there:
        raise SavedFileError("it lacks accepted training rows")
    if plain is not None and not (needs.measures_plausibility and there):
        raise SavedFileError("it has accepted training rows that it does not need")
    if plain is None:
        return {}
    schema = fields["schema"]
    order = visit_order_of(fields["generator"], schema)
    return {"plausibility": unpack_plausibility(plain, schema, order, fields["n_desired"])}


def _pack_surrogate(fitted: Fitted, parameters: Parameters) -> dict[str, Any] | None:
    if fitted.surrogate is None or not find_search(parameters["search"]).needs.surrogate:
        return None
    return pack_surrogate(fitted.surrogate)


def _unpack_surrogate(plain: Any, parameters: Parameters, fields: Fields) -> Fields:
    # Older files have none, so that a search calls the predictor on every row it looks at.
    if plain is None:
        return {}
    if not find_search(parameters["search"]).needs.surrogate:
        raise SavedFileError("it imitates its predictor for a search that does not need it")
    return {"surrogate": unpack_surrogate(plain, fields["schema"])}


def _pack_relations(fitted: Fitted, parameters: Parameters) -> list[Any] | None:
    if not _needs_relations(parameters):
        return None
    if fitted.relations is None:
        raise NotFittedError(
            "ignore_relations or search was changed after fit, which did not look for relations "
            "between columns. Fit again. Nothing was written."
        )
    return [pack_relation(found) for found in fitted.relations]


def _unpack_relations(plain: Any, parameters: Parameters, fields: Fields) -> Fields:
    needed = _needs_relations(parameters)
    if plain is not None and not (needed and isinstance(plain, list)):
        raise SavedFileError("it has relations that it does not need")
    # Versions that did not know of relations looked for none.
    return {"relations": unpack_relations(plain or [], fields["schema"]) if needed else None}


def _needs_relations(parameters: Parameters) -> bool:
    needs = find_search(parameters["search"]).needs
    return needs.relations and parameters["ignore_relations"] is not True


SECTIONS: dict[str, Section] = {
    "schema": Section(_pack_schema, _unpack_schema),
    "model": Section(_pack_model, _unpack_model),
    "distance": Section(_pack_distance, _unpack_distance, optional=True),
    "draws": Section(_pack_draws, _unpack_draws),
    "label_rule": Section(_pack_label_rule, _unpack_label_rule, optional=True),
    "training_rows": Section(_pack_training_rows, _unpack_training_rows),
    "value_counts": Section(_pack_value_counts, _unpack_value_counts, optional=True),
    "relations": Section(_pack_relations, _unpack_relations, optional=True),
    "accepted": Section(_pack_plausibility, _unpack_plausibility, optional=True),
    "surrogate": Section(_pack_surrogate, _unpack_surrogate, optional=True),
}
