"""What imitates the predictor as plain data, and back, checked."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np

from ..boosting import pack_boosted, unpack_boosted
from ..errors import SavedFileError
from ..predictors.decision import Decision, Interval
from ..surrogate import MAX_ROWS, Link, Surrogate
from ..tables.schema import Schema
from .checks import check_entries, check_integer

QUALITY = ("r2", "rank_agreement", "error")
COUNTS = ("n_rows", "n_held_out")


def pack_surrogate(surrogate: Surrogate) -> dict[str, Any]:
    """The learned trees and numbers by name."""
    threshold = surrogate.threshold
    return {
        "trees": [pack_boosted(model) for model in surrogate.trees],
        "link": surrogate.link,
        "threshold": None if math.isnan(threshold) else threshold,
        **{name: getattr(surrogate, name) for name in (*QUALITY, *COUNTS)},
    }


def unpack_surrogate(plain: Any, schema: Schema) -> Surrogate:
    """The surrogate of what :func:`pack_surrogate` gave, checked."""
    names = ("trees", "link", "threshold", *QUALITY, *COUNTS)
    given = check_entries(plain, names, "what imitates the predictor")
    if not isinstance(given["trees"], list) or len(given["trees"]) != 2:
        raise SavedFileError("what imitates the predictor is not two models")
    link: Link = given["link"]
    if not isinstance(link, str) or link not in get_args(Link):
        raise SavedFileError("what is imitated is unknown")
    threshold = math.nan if given["threshold"] is None else given["threshold"]
    numbers = [given[name] for name in QUALITY]
    if not all(type(number) is float for number in (threshold, *numbers)):
        raise SavedFileError("the quality of what imitates the predictor is no number")
    if math.isinf(threshold) or not all(map(math.isfinite, numbers)):
        raise SavedFileError("the quality of what imitates the predictor is not finite")
    if given["r2"] > 1 or abs(given["rank_agreement"]) > 1 or given["error"] < 0:
        raise SavedFileError("the quality of what imitates the predictor is impossible")
    n_rows = check_integer(given["n_rows"], "the number of rows to imitate", MAX_ROWS)
    n_held_out = check_integer(given["n_held_out"], "the number of rows held out", n_rows)
    n_codes = np.array([feature.n_codes for feature in schema.features])
    trees = tuple(unpack_boosted(model, n_codes) for model in given["trees"])
    quality = {name: given[name] for name in QUALITY}
    return Surrogate(trees, link, threshold, **quality, n_rows=n_rows, n_held_out=n_held_out)


def check_imitation(surrogate: Surrogate, decision: Decision) -> None:
    """Raise if a surrogate cannot be one of a decision."""
    by_interval, by_label = isinstance(decision.desired, Interval), surrogate.link == "label"
    if (by_interval and by_label) or not (by_interval or by_label or decision.columns):
        raise SavedFileError("it imitates something else than its predictor")
    if math.isnan(surrogate.threshold) != (by_interval or by_label):
        raise SavedFileError("the threshold of what it imitates is missing, or not needed")
