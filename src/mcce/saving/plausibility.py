"""What accepted rows look like as arrays, and back, checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import SavedFileError
from ..kernels import LEAF, FloatArray, IntArray
from ..model.arrays import ChainRules, pack_trees, tree_sizes, unpack_trees, vector
from ..plausibility.boosting import pack_boosted, unpack_boosted
from ..plausibility.conditionals import Conditional, Conditionals
from ..plausibility.conformal import Calibration, Tail
from ..plausibility.model import PlausibilityModel
from ..plausibility.support import MIN_SAMPLES_LEAF, Chain, Support, level_positions
from ..tables.schema import EncodedRows, Schema
from .checks import check_codes, check_entries, check_integer

ENTRIES = ("codes", "chains", "conditionals", "calibration")
MODELS = ("mean", "error", "missing")


def pack_plausibility(model: PlausibilityModel) -> dict[str, Any]:
    """The learned arrays by name."""
    calibration = model.calibration_
    return {
        "codes": model.codes_,
        "chains": [
            {"responses": chain.responses, "trees": pack_trees(chain.trees)}
            for chain in model.support_.chains_
        ],
        "conditionals": [_pack_conditional(one) for one in model.conditionals_.models_],
        "calibration": {
            "parts": [tail.values for tail in calibration.parts],
            "usual": calibration.usual.values,
            "rare": None if calibration.rare is None else calibration.rare.values,
        },
    }


def unpack_plausibility(
    plain: Any, schema: Schema, order: IntArray, n_desired: int
) -> PlausibilityModel:
    """The model of what :func:`pack_plausibility` gave, checked."""
    given = check_entries(plain, ENTRIES, "what accepted rows look like")
    codes = check_codes(given["codes"], schema, "the accepted rows")
    if codes.shape[1] != n_desired:
        raise SavedFileError("it has another number of accepted rows")
    support = _support(given["chains"], schema, order, n_desired)
    rows = EncodedRows.from_codes(schema, codes)
    conditionals = _conditionals(given["conditionals"], schema)
    n_parts = bool(support.chains_) + 2 * len(conditionals.models_)
    calibration = _calibration(given["calibration"], n_parts, n_desired)
    return PlausibilityModel.restored(rows, support, conditionals, calibration)


def _support(plain: Any, schema: Schema, order: IntArray, n_accepted: int) -> Support:
    levels = order[np.isin(order, level_positions(schema))]
    if not isinstance(plain, list) or len(plain) != (2 if levels.size else 0):
        raise SavedFileError("the support has another number of chains")
    support = Support()
    support.chains_ = [
        _unpack_chain(chain, schema, order, levels, contradictions=number > 0)
        for number, chain in enumerate(plain)
    ]
    sizes = [tree_sizes(chain.trees) for chain in support.chains_]
    if any((size != size[0]).any() for size in sizes) or (sizes and sizes[0][0] > n_accepted):
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


def _pack_conditional(conditional: Conditional) -> dict[str, Any]:
    models = {name: getattr(conditional, name) for name in MODELS}
    return {
        "position": conditional.position,
        "centre": conditional.centre,
        "least": conditional.least,
        **{name: None if one is None else pack_boosted(one) for name, one in models.items()},
    }


def _conditionals(plain: Any, schema: Schema) -> Conditionals:
    if not isinstance(plain, list):
        raise SavedFileError("the models of numbers are no list")
    conditionals = Conditionals()
    conditionals.models_ = tuple(_unpack_conditional(one, schema) for one in plain)
    positions = [one.position for one in conditionals.models_]
    numbers = {at for at, feature in enumerate(schema.features) if feature.kind == "numeric"}
    if positions != sorted(set(positions)) or not numbers.issuperset(positions):
        raise SavedFileError("the models are of other features than the numbers")
    return conditionals


def _unpack_conditional(plain: Any, schema: Schema) -> Conditional:
    given = check_entries(plain, ("position", "centre", "least", *MODELS), "the model of a number")
    position = check_integer(given["position"], "the position", len(schema.features) - 1)
    for name in ("centre", "least"):
        if type(given[name]) is not float or not math.isfinite(given[name]):
            raise SavedFileError("the scale of a number is not finite")
    if given["least"] < 0 or (given["least"] == 0) != (given["mean"] is None):
        raise SavedFileError("the smallest error of a number is none")
    if (given["mean"] is None) != (given["error"] is None):
        raise SavedFileError("the model of a number is not whole")
    n_codes = np.array([feature.n_codes for feature in schema.features])
    models = {
        name: None if given[name] is None else unpack_boosted(given[name], n_codes)
        for name in MODELS
    }
    if any(one and position in one.ensemble_.inputs for one in models.values()):
        raise SavedFileError("the model of a number is given the number itself")
    return Conditional(position, centre=given["centre"], least=given["least"], **models)


def _calibration(plain: Any, n_parts: int, n_accepted: int) -> Calibration:
    given = check_entries(plain, ("parts", "usual", "rare"), "the calibration")
    usual = _tail(given["usual"], n_accepted)
    rare = None if given["rare"] is None else _tail(given["rare"], n_accepted)
    if not isinstance(given["parts"], list) or len(given["parts"]) != n_parts:
        raise SavedFileError("the calibration has another number of parts")
    parts = tuple(_tail(values, n_accepted) for values in given["parts"])
    calibration = Calibration(parts, usual, rare)
    if any(tail.values.size != calibration.n_held_out for tail in parts):
        raise SavedFileError("the parts of the calibration hold other numbers of rows")
    return calibration


def _tail(values: Any, most: int) -> Tail:
    """Values in ascending order, at most one for each accepted row."""
    given: FloatArray = vector(values, np.float64)
    if given.size > most or (np.diff(given) < 0).any():
        raise SavedFileError("the values of the calibration do not ascend, or are too many")
    if not (np.isfinite(given) & (given >= 0)).all():
        raise SavedFileError("the values of the calibration are not finite, or negative")
    return Tail(given)
