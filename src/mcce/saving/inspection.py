"""What a saved file holds, without its predictor.

Always true: nothing is computed, and nothing of the file is trusted beyond what ``load`` checks of
its layout, its checksums, its parameters and its columns.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..protocols import is_private
from ..tables.schema import Schema
from . import archive
from .document import unpack_parameters, unpack_schema
from .parts import PARTS, Known
from .values import unpack


@dataclass(frozen=True)
class Inspection:
    """What a saved file holds."""

    version: int
    written_by: Mapping[str, str]
    signed: bool
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
        found = PARTS["relations"].read(document["relations"] or [], Known(schema))
        enforced = [one.relation.name for one in found if one.enforced]
        left_out = parameters["ignore_relations"]
        ignored = left_out if isinstance(left_out, (list, tuple)) else ()
        accepted, training = document["plausibility"], document["training_rows"]
        return Inspection(
            version=about["version"],
            written_by=about["written_by"],
            signed=about["signed"],
            parameters=parameters,
            schema=schema,
            decision=document["predictor"]["decision"],
            seed=int(document["draws"]["seed"]),
            n_desired=int(document["model"]["n_desired"]),
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
