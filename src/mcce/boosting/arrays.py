"""Fitted boosted trees as plain arrays, and back, checked.

The arrays may come from an unknown file. So they are accepted only if the compiled kernel accepts
them, and every input has a bin for each of its codes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import SavedFileError
from ..kernels import BoostedNodes, Ensemble, IntArray
from .trees import BoostedTrees

NODES = {
    "roots": np.int32,
    "feature": np.int32,
    "cut": np.int32,
    "left": np.int32,
    "value": np.int64,
}
INPUTS = {"inputs": np.int32, "bins": np.uint8}
# A response between the smallest and the largest float has a scale between these powers of two.
MOST_EXPONENT = 1200


def pack_boosted(model: BoostedTrees) -> dict[str, Any]:
    """What a model learned, by name; its parameters and the gains of its splits are left out."""
    ensemble = model.ensemble_
    return {
        **{name: getattr(ensemble.nodes, name) for name in NODES},
        **{name: getattr(ensemble, name) for name in INPUTS},
        "base": model.base_,
        "exponent": model.exponent_,
        "low": model.low_,
        "high": model.high_,
    }


def unpack_boosted(plain: Any, n_codes: IntArray) -> BoostedTrees:
    """The model of what :func:`pack_boosted` gave; raises SavedFileError for anything else."""
    names = {*NODES, *INPUTS, "base", "exponent", "low", "high"}
    if not isinstance(plain, Mapping) or set(plain) != names:
        raise SavedFileError("boosted trees have other entries")
    for name, dtype in {**NODES, **INPUTS}.items():
        array = plain[name]
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != dtype:
            raise SavedFileError("the arrays of boosted trees have other dtypes or shapes")
    model = BoostedTrees()
    model.base_, model.exponent_ = plain["base"], plain["exponent"]
    model.low_, model.high_ = plain["low"], plain["high"]
    _check_scale(model)
    model.ensemble_ = _ensemble(plain, n_codes)
    return model


def _check_scale(model: BoostedTrees) -> None:
    whole = type(model.base_) is int and type(model.exponent_) is int
    if not whole or abs(model.base_) >= 2**62 or abs(model.exponent_) > MOST_EXPONENT:
        raise SavedFileError("the scale of boosted trees is out of range")
    ends = model.low_, model.high_
    if not all(type(end) is float and math.isfinite(end) for end in ends) or ends[0] > ends[1]:
        raise SavedFileError("the range of boosted trees is no interval")


def _ensemble(plain: Mapping[str, Any], n_codes: IntArray) -> Ensemble:
    inputs = plain["inputs"]
    if inputs.size and (
        inputs[0] < 0 or inputs[-1] >= n_codes.size or (np.diff(inputs) <= 0).any()
    ):
        raise SavedFileError("the inputs of boosted trees are not ascending columns")
    # One bin more, for a level that training never held.
    first = np.cumsum(np.append(0, n_codes[inputs] + 1))
    gain = np.zeros(plain["feature"].size)
    nodes = BoostedNodes(**{name: plain[name] for name in NODES}, gain=gain)
    ensemble = Ensemble(nodes, inputs, first, plain["bins"])
    try:
        _ = ensemble.bound
    except ValueError as error:
        raise SavedFileError(f"boosted trees are not whole: {error}") from None
    return ensemble
