"""The calibrated support as arrays, and back, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.arrays import pack_trees, unpack_trees, vector
from ..plausibility.support import Chain, Support
from ..tables.schema import Schema


def pack_support(support: Support) -> dict[str, Any]:
    """The learned arrays by name."""
    return {
        # "strains" is the key of the file format; renaming it would need a new format version.
        "strains": support.calibration_scores_,
        "rare": [[place, scores] for place, scores in support.rare_calibration_scores_.items()],
        "chains": [
            {"responses": chain.responses, "trees": pack_trees(chain.trees)}
            for chain in support.chains_
        ],
    }


def unpack_support(plain: dict[str, Any], schema: Schema) -> Support:
    """The support of what :func:`pack_support` gave."""
    support, categorical = Support(), [f.kind == "categorical" for f in schema.features]
    levels = [at for at in schema.mutable if categorical[at]]
    expected = [schema.mutable.tolist(), *([levels] if levels else [])]
    chains = []
    for number, (part, responses) in enumerate(zip(plain["chains"], expected, strict=True)):
        order = vector(part["responses"], np.int64)
        if sorted(order.tolist()) != responses:
            raise ValueError("the support does not cover every feature once")
        trees = unpack_trees(part["trees"], order, schema)
        chains.append(Chain.of(schema, order, trees, contradictions=number > 0))
    support.chains_ = chains
    support.calibration_scores_ = _calibration_scores(plain["strains"])
    support.rare_calibration_scores_ = {
        place: _calibration_scores(scores) for place, scores in plain["rare"]
    }
    if any(
        type(place) is not int or not 0 <= place < schema.mutable.size
        for place in support.rare_calibration_scores_
    ):
        raise ValueError("the support names features that do not exist")
    return support


def _calibration_scores(values: Any) -> np.ndarray:
    scores = vector(values, np.int32)
    if (np.diff(scores) < 0).any() or (scores < 0).any() or (scores >= 2**31 - 1).any():
        raise ValueError("the calibration scores of the support are not ascending sizes")
    return scores
