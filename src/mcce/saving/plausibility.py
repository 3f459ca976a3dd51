"""What accepted rows look like as arrays, and back, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import SavedFileError
from ..kernels import LEAF, FloatArray, IntArray
from ..model.arrays import ChainRules, pack_trees, tree_sizes, unpack_trees, vector
from ..plausibility.conformal import Calibration, Tail
from ..plausibility.model import PlausibilityModel
from ..plausibility.support import MIN_SAMPLES_LEAF, Chain, Support
from ..tables.schema import EncodedRows, Schema
from .checks import check_codes, check_entries

ENTRIES = ("codes", "chains", "calibration")
# What files up to version 4 hold instead, from which today's model cannot be made.
OLD_ENTRIES = {"codes", "support"}


def pack_plausibility(model: PlausibilityModel) -> dict[str, Any]:
    """The learned arrays by name."""
    calibration = model.calibration_
    return {
        "codes": model.codes_,
        "chains": [
            {"responses": chain.responses, "trees": pack_trees(chain.trees)}
            for chain in model.support_.chains_
        ],
        "calibration": {
            "parts": [tail.values for tail in calibration.parts],
            "rare": [[part, tail.values] for part, tail in calibration.rare.items()],
            "strangeness": calibration.strangeness.values,
        },
    }


def unpack_plausibility(
    plain: Any, schema: Schema, order: IntArray, n_desired: int
) -> PlausibilityModel | None:
    """The model of what :func:`pack_plausibility` gave, checked; None if an older version gave it.

    Parameters
    ----------
    plain
        The arrays.
    schema
        The columns of the training rows.
    order
        The visit order of the generator.
    n_desired
        Number of accepted training rows.
    """
    if isinstance(plain, dict) and plain.keys() == OLD_ENTRIES:
        return None
    given = check_entries(plain, ENTRIES, "what accepted rows look like")
    codes = check_codes(given["codes"], schema, "the accepted rows")
    if codes.shape[1] != n_desired:
        raise SavedFileError("it has another number of accepted rows")
    support = _support(given["chains"], schema, order, n_desired)
    calibration = _calibration(given["calibration"], schema, n_desired)
    return PlausibilityModel.restored(EncodedRows.from_codes(schema, codes), support, calibration)


def _support(plain: Any, schema: Schema, order: IntArray, n_accepted: int) -> Support:
    is_level = np.array([feature.kind == "categorical" for feature in schema.features])
    levels = order[is_level[order]]
    expected = [order, *([levels] if levels.size else [])]
    if not isinstance(plain, list) or len(plain) != len(expected):
        raise SavedFileError("the support has another number of chains")
    support = Support()
    support.chains_ = [
        _unpack_chain(chain, schema, order, responses, contradictions=number > 0)
        for number, (chain, responses) in enumerate(zip(plain, expected, strict=True))
    ]
    sizes = [tree_sizes(chain.trees) for chain in support.chains_]
    if (sizes[0] != n_accepted).any() or (sizes[-1] != sizes[-1][0]).any():
        raise SavedFileError("the trees of the support hold other numbers of rows")
    return support


def _unpack_chain(
    plain: Any, schema: Schema, order: IntArray, responses: IntArray, *, contradictions: bool
) -> Chain:
    given = check_entries(plain, ("responses", "trees"), "a chain of the support")
    if not np.array_equal(vector(given["responses"], np.int64), responses):
        raise SavedFileError("the support does not follow the visit order")
    trees = unpack_trees(given["trees"], ChainRules(schema, responses, order))
    # Each node takes memory for all levels, so smaller leaves would ask for far more than the file.
    is_root = np.isin(np.arange(trees.feature.size), trees.roots)
    if (trees.count[(trees.feature == LEAF) & ~is_root] < MIN_SAMPLES_LEAF).any():
        raise SavedFileError("the trees of the support have leaves that are too small")
    return Chain.of(schema, responses, trees, contradictions=contradictions)


def _calibration(plain: Any, schema: Schema, n_accepted: int) -> Calibration:
    given = check_entries(plain, ("parts", "rare", "strangeness"), "the calibration")
    parts, rare = given["parts"], given["rare"]
    strangeness = _tail(given["strangeness"], n_accepted)
    if not isinstance(parts, list) or len(parts) != schema.mutable.size:
        raise SavedFileError("the calibration has another number of parts")
    tails = tuple(_tail(values, n_accepted) for values in parts)
    if any(tail.values.size != strangeness.values.size for tail in tails):
        raise SavedFileError("the parts of the calibration hold other numbers of rows")
    if not isinstance(rare, list) or not all(isinstance(p, list) and len(p) == 2 for p in rare):
        raise SavedFileError("the calibration has no list of rare levels")
    places = [place for place, _ in rare]
    if any(type(place) is not int or not 0 <= place < len(parts) for place in places):
        raise SavedFileError("the calibration names features that have no rare levels")
    if places != sorted(set(places)):
        raise SavedFileError("the calibration names a feature twice, or out of order")
    own = {place: _tail(values, n_accepted) for place, values in rare}
    return Calibration(tails, own, strangeness)


def _tail(values: Any, most: int) -> Tail:
    """Values in ascending order, at most one for each accepted row."""
    given: FloatArray = vector(values, np.float64)
    if given.size > most or (np.diff(given) < 0).any():
        raise SavedFileError("the values of the calibration do not ascend, or are too many")
    if not (np.isfinite(given) & (given >= 0)).all():
        raise SavedFileError("the values of the calibration are not finite, or negative")
    return Tail(given)
