"""What stands in a saved file: the parameters, what fit learned, and how to know the predictor.

What fit learned comes in sections, each a pair of functions: from the explainer to plain data (JSON
values and arrays), and from there to attributes of an explainer that has its parameters and the
sections before. To save one more thing, add a line to ``SECTIONS``.

Always true: nothing is written unless everything can be; a loaded explainer has passed the checks
that a fitted one has, and gives the same answers to the bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..constraints.collection import Constraints
from ..distances import find_distance
from ..errors import ParameterError
from ..kernels import DRAWS_VERSION, rows_as_bytes
from ..model import find_generator
from ..parameters import check_parameters
from ..plausibility.model import PlausibilityModel
from ..search.config import find_search
from ..tables.features import Feature
from ..tables.schema import EncodedRows, Schema
from . import archive
from .cells import pack_cells, unpack_cells
from .frames import pack_adapter, unpack_adapter
from .generators import pack_fitted, pack_generator, unpack_fitted, unpack_generator
from .probes import attach_predictor, check_known, pack_predictor
from .support import pack_support, unpack_support
from .values import pack, unpack

if TYPE_CHECKING:
    from ..explainer import MCCE


@dataclass(frozen=True)
class Section:
    """Something that fit learned: as plain data, and as attributes again."""

    take: Callable[[MCCE], Any]
    make: Callable[[Any, MCCE], dict[str, Any]]
    # Whether older files do not have it; then it is made of None.
    optional: bool = False


def save(explainer: MCCE, path: str | os.PathLike[str]) -> None:
    """Put a fitted explainer into a file, without its predictor."""
    document = {"parameters": _pack_parameters(explainer)}
    document |= {name: section.take(explainer) for name, section in SECTIONS.items()}
    document |= {"predictor": pack_predictor(explainer)}
    archive.write(path, document)


def restore(
    explainer_class: type[MCCE],
    path: str | os.PathLike[str],
    predictor: Any,
    tolerance: float,
    generator: Any = None,
) -> MCCE:
    """The explainer in a file, with the predictor it was saved with."""
    document = archive.read(path)
    with archive.refused(path):
        saved = document["parameters"].pop("generator")
    generator = unpack_generator(saved, generator, os.fspath(path))
    with archive.refused(path):
        parameters = _unpack_parameters(document["parameters"])
        explainer = explainer_class(predictor, generator=generator, **parameters)
        check_parameters(explainer)
        for name, section in SECTIONS.items():
            plain = document.get(name) if section.optional else document[name]
            for attribute, learned in section.make(plain, explainer).items():
                setattr(explainer, attribute, learned)
        Constraints.bind(explainer.constraints, explainer.schema_)
        known = document["predictor"]
        check_known(known, explainer.schema_)
    explainer.decision_ = attach_predictor(explainer, known, os.fspath(path), tolerance)
    return explainer


def _pack_parameters(explainer: MCCE) -> dict[str, Any]:
    params = explainer.get_params(deep=False)
    del params["predictor"]
    # Constraints are kept themselves, not the file that they may stand in.
    bound = Constraints.bind(explainer.constraints, explainer.schema_)
    params["constraints"] = list(bound.listed) or None
    # Names may come in anything that lists them; what they come in means nothing.
    listed = (np.ndarray, pd.Index, pd.Series)
    plain = {name: list(v) if isinstance(v, listed) else v for name, v in params.items()}
    packed = {
        name: pack(v, f"the parameter {name}") for name, v in plain.items() if name != "generator"
    }
    return packed | {"generator": pack_generator(plain["generator"])}


def _unpack_parameters(plain: dict[str, Any]) -> dict[str, Any]:
    return {name: unpack(value) for name, value in plain.items()}


def _pack_schema(explainer: MCCE) -> dict[str, Any]:
    schema = explainer.schema_
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


def _unpack_schema(plain: dict[str, Any], explainer: MCCE) -> dict[str, Any]:
    features = tuple(_unpack_feature(feature) for feature in plain["features"])
    schema = Schema(features, unpack_adapter(plain["frames"], features))
    if not schema.mutable.size or len(set(schema.names)) < len(schema.names):
        raise ValueError("its columns are all immutable, or two have one name")
    return {"schema_": schema}


def _unpack_feature(plain: dict[str, Any]) -> Feature:
    """A feature by the door that training data take, which checks the table."""
    table = unpack_cells(plain["table"]).rename(unpack(plain["name"]))
    if plain["kind"] not in ("numeric", "categorical") or table.empty:
        raise ValueError(f"column {table.name!r} has no kind or no values")
    feature, codes = Feature.learn_codes(
        table, kind=plain["kind"], immutable=plain["immutable"] is True
    )
    if not np.array_equal(codes, np.arange(len(table))):
        raise ValueError(f"the values of column {table.name!r} are not distinct or not in order")
    return feature


def _pack_model(explainer: MCCE) -> dict[str, Any]:
    return {"n_desired": explainer.n_desired_} | pack_fitted(explainer.generator_)


def _unpack_model(plain: dict[str, Any], explainer: MCCE) -> dict[str, Any]:
    blank = find_generator(explainer.generator)
    return {
        "generator_": unpack_fitted(plain, blank, explainer.schema_),
        "n_desired_": _whole(plain["n_desired"]),
        # Gower learns nothing that the schema does not know.
        "distance_": find_distance(explainer.distance),
        "timings_": {},
    }


def _pack_draws(explainer: MCCE) -> dict[str, Any]:
    return {"version": DRAWS_VERSION, "seed": pack(explainer.seed_, "the seed")}


def _unpack_draws(plain: dict[str, Any], explainer: MCCE) -> dict[str, Any]:
    if plain["version"] != DRAWS_VERSION:
        raise ValueError(
            f"its draws are of version {plain['version']!r} and those of this mcce of version "
            f"{DRAWS_VERSION}, so that answers would differ"
        )
    return {"seed_": _whole(unpack(plain["seed"]))}


def _pack_training_rows(explainer: MCCE) -> dict[str, Any] | None:
    rows = explainer.training_rows_
    if rows is None or not explainer.exclude_training_rows:
        return None
    return {"codes": rows.view(np.int32).reshape(len(rows), -1)}


def _unpack_training_rows(plain: dict[str, Any] | None, explainer: MCCE) -> dict[str, Any]:
    if plain is None:
        return {"training_rows_": None}
    codes, n_features = plain["codes"], len(explainer.schema_.features)
    if codes.ndim != 2 or codes.shape[1] != n_features or codes.dtype != np.int32:
        raise ValueError("the training rows are not those of its columns")
    return {"training_rows_": np.unique(rows_as_bytes(codes))}


def _pack_plausibility(explainer: MCCE) -> dict[str, Any] | None:
    accepted = explainer.plausibility_
    if accepted is None or not find_search(explainer.search).needs_plausibility:
        return None
    return {"codes": accepted.codes_, "support": pack_support(accepted.support_)}


def _unpack_plausibility(plain: dict[str, Any] | None, explainer: MCCE) -> dict[str, Any]:
    if plain is None:
        if find_search(explainer.search).needs_plausibility and explainer.n_desired_:
            raise ValueError("its search needs the accepted training rows, which it lacks")
        return {"plausibility_": None}
    codes, schema = plain["codes"], explainer.schema_
    n_codes = np.array([feature.n_codes for feature in schema.features])
    if codes.ndim != 2 or len(codes) != n_codes.size or codes.dtype != np.int32:
        raise ValueError("the accepted rows are not those of its columns")
    if not codes.size or (codes < 0).any() or (codes >= n_codes[:, None]).any():
        raise ValueError("the accepted rows hold codes that stand for nothing")
    support = unpack_support(plain["support"], schema)
    return {
        "plausibility_": PlausibilityModel().keep(support, EncodedRows.from_codes(schema, codes))
    }


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
