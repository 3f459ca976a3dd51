"""What a saved file holds: the parameters, what ``fit`` learned, and how to know the predictor.

What ``fit`` learned comes in sections, each a pair of functions: from :class:`Fitted` to plain data
(JSON values and arrays), and from there to fields of a :class:`Fitted`, given the parameters and
the sections before. To save one more thing, add a line to ``SECTIONS``.

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
from ..distances import find_distance
from ..errors import ParameterError
from ..fitted import Fitted
from ..kernels import DRAWS_VERSION, rows_as_bytes
from ..model import find_generator
from ..plausibility.model import PlausibilityModel
from ..predictors.desired import make_decision
from ..protocols import Generator
from ..search.config import find_search
from ..tables.features import Feature
from ..tables.schema import EncodedRows, Schema
from . import archive
from .cells import pack_cells, unpack_cells
from .frames import pack_adapter, unpack_adapter
from .generators import pack_fitted, pack_generator, unpack_fitted, unpack_generator
from .probes import check_predictor, check_probes, pack_predictor
from .support import pack_support, unpack_support
from .values import pack, unpack
from .versions import upgrade_parameters

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


def save(parameters: Parameters, fitted: Fitted, path: str | os.PathLike[str]) -> None:
    """Write a fitted explainer to a file, without its predictor.

    Parameters
    ----------
    parameters
        The explainer's parameters except the predictor.
    fitted
        What ``fit`` learned.
    path
        The file.
    """
    document = {"parameters": _pack_parameters(parameters, fitted.schema)}
    document |= {name: section.pack(fitted, parameters) for name, section in SECTIONS.items()}
    document |= {"predictor": pack_predictor(fitted)}
    archive.write(path, document)


def restore(
    path: str | os.PathLike[str],
    predictor: Any,
    tolerance: float,
    check: Callable[[Parameters], None],
    generator: Generator | None = None,
) -> tuple[dict[str, Any], Fitted]:
    """The explainer in a file, with the predictor it was saved with.

    Parameters
    ----------
    path
        The file.
    predictor
        The predictor that was explained.
    tolerance
        Relative difference up to which its scores of the probe rows are equal.
    check
        Raises for parameters that cannot work.
    generator
        An unfitted generator, if the file was saved with one that is not part of mcce.

    Returns
    -------
    parameters : dict
        The explainer's parameters except the predictor.
    fitted : Fitted
        What ``fit`` learned.
    """
    document = archive.read(path)
    with archive.refused(path):
        saved = document["parameters"].pop("generator")
    blank = unpack_generator(saved, generator, os.fspath(path))
    with archive.refused(path):
        packed = {name: unpack(value) for name, value in document["parameters"].items()}
        parameters = upgrade_parameters(packed | {"generator": blank})
        check(parameters)
        fields: Fields = {}
        for name, section in SECTIONS.items():
            plain = document.get(name) if section.optional else document[name]
            fields |= section.unpack(plain, parameters, fields)
        schema = fields["schema"]
        Constraints.bind(parameters["constraints"], schema)
        probes = document["predictor"]
        check_probes(probes, schema)
    decision = make_decision(
        predictor,
        parameters["desired"],
        score_class=parameters["score_class"],
        adapter=schema.adapter,
    )
    check_predictor(decision, schema, probes, os.fspath(path), tolerance)
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


def _unpack_schema(plain: dict[str, Any], parameters: Parameters, fields: Fields) -> Fields:
    features = tuple(_unpack_feature(feature) for feature in plain["features"])
    schema = Schema(features, unpack_adapter(plain["frames"], features))
    if not schema.mutable.size or len(set(schema.names)) < len(schema.names):
        raise ValueError("its columns are all immutable, or two have one name")
    return {"schema": schema}


def _unpack_feature(plain: dict[str, Any]) -> Feature:
    """A feature learned like one of training data, which checks the table."""
    table = unpack_cells(plain["table"]).rename(unpack(plain["name"]))
    if plain["kind"] not in ("numeric", "categorical") or table.empty:
        raise ValueError(f"column {table.name!r} has no kind or no values")
    feature, codes = Feature.learn_codes(
        table, kind=plain["kind"], immutable=plain["immutable"] is True
    )
    if not np.array_equal(codes, np.arange(len(table))):
        raise ValueError(f"the values of column {table.name!r} are not distinct or not in order")
    return feature


def _pack_model(fitted: Fitted, parameters: Parameters) -> dict[str, Any]:
    return {"n_desired": fitted.n_desired} | pack_fitted(fitted.generator)


def _unpack_model(plain: dict[str, Any], parameters: Parameters, fields: Fields) -> Fields:
    blank = find_generator(parameters["generator"])
    return {
        "generator": unpack_fitted(plain, blank, fields["schema"]),
        "n_desired": _whole(plain["n_desired"]),
        # Gower learns nothing that the schema does not know.
        "distance": find_distance(parameters["distance"]),
    }


def _pack_draws(fitted: Fitted, parameters: Parameters) -> dict[str, Any]:
    return {"version": DRAWS_VERSION, "seed": pack(fitted.seed, "the seed")}


def _unpack_draws(plain: dict[str, Any], parameters: Parameters, fields: Fields) -> Fields:
    if plain["version"] != DRAWS_VERSION:
        raise ValueError(
            f"its draws are of version {plain['version']!r} and those of this mcce of version "
            f"{DRAWS_VERSION}, so answers would differ"
        )
    return {"seed": _whole(unpack(plain["seed"]))}


def _pack_training_rows(fitted: Fitted, parameters: Parameters) -> dict[str, Any] | None:
    rows = fitted.training_rows
    if rows is None or not parameters["exclude_training_rows"]:
        return None
    return {"codes": rows.view(np.int32).reshape(len(rows), -1)}


def _unpack_training_rows(
    plain: dict[str, Any] | None, parameters: Parameters, fields: Fields
) -> Fields:
    if plain is None:
        return {}
    codes, n_features = plain["codes"], len(fields["schema"].features)
    if codes.ndim != 2 or codes.shape[1] != n_features or codes.dtype != np.int32:
        raise ValueError("the training rows are not those of its columns")
    return {"training_rows": np.unique(rows_as_bytes(codes))}


def _pack_plausibility(fitted: Fitted, parameters: Parameters) -> dict[str, Any] | None:
    model = fitted.plausibility
    if model is None or not find_search(parameters["search"]).needs.plausibility:
        return None
    return {"codes": model.codes_, "support": pack_support(model.support_)}


def _unpack_plausibility(
    plain: dict[str, Any] | None, parameters: Parameters, fields: Fields
) -> Fields:
    if plain is None:
        if find_search(parameters["search"]).needs.plausibility and fields["n_desired"]:
            raise ValueError("its search needs the accepted training rows, which it lacks")
        return {}
    codes, schema = plain["codes"], fields["schema"]
    n_codes = np.array([feature.n_codes for feature in schema.features])
    if codes.ndim != 2 or len(codes) != n_codes.size or codes.dtype != np.int32:
        raise ValueError("the accepted rows are not those of its columns")
    if not codes.size or (codes < 0).any() or (codes >= n_codes[:, None]).any():
        raise ValueError("the accepted rows hold codes without a value")
    support = unpack_support(plain["support"], schema)
    rows = EncodedRows.from_codes(schema, codes)
    return {"plausibility": PlausibilityModel.from_support(support, rows)}


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**64:
        raise ParameterError(f"expected a whole number from 0 to {2**64 - 1}, got {value!r}")
    return value


SECTIONS: dict[str, Section] = {
    "schema": Section(_pack_schema, _unpack_schema),
    "model": Section(_pack_model, _unpack_model),
    "draws": Section(_pack_draws, _unpack_draws),
    "training_rows": Section(_pack_training_rows, _unpack_training_rows),
    "accepted": Section(_pack_plausibility, _unpack_plausibility, optional=True),
}
