"""The calibrated support as arrays, and back, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import SavedFileError
from ..kernels import LEAF, Codes, IntArray
from ..model.arrays import ChainRules, pack_trees, tree_sizes, unpack_trees, vector
from ..plausibility.support import MIN_SAMPLES_LEAF, Chain, Support
from ..tables.schema import Schema
from .checks import check_entries


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


def unpack_support(plain: Any, schema: Schema, order: IntArray, n_accepted: int) -> Support:
    """The support of what :func:`pack_support` gave, checked.

    Parameters
    ----------
    plain
        The arrays.
    schema
        The columns of the training rows.
    order
        The visit order of the generator.
    n_accepted
        Number of accepted training rows.
    """
    given = check_entries(plain, ("strains", "rare", "chains"), "the support")
    is_level = np.array([feature.kind == "categorical" for feature in schema.features])
    levels = order[is_level[order]]
    expected = [order, *([levels] if levels.size else [])]
    if not isinstance(given["chains"], list) or len(given["chains"]) != len(expected):
        raise SavedFileError("the support has another number of chains")
    support = Support()
    support.chains_ = [
        _unpack_chain(chain, schema, order, responses, contradictions=number > 0)
        for number, (chain, responses) in enumerate(zip(given["chains"], expected, strict=True))
    ]
    sizes = [tree_sizes(chain.trees) for chain in support.chains_]
    if (sizes[0] != n_accepted).any() or (sizes[-1] != sizes[-1][0]).any():
        raise SavedFileError("the trees of the support hold other numbers of rows")
    most = int(max(size.max() for size in sizes))
    support.calibration_scores_ = _calibration_scores(given["strains"], n_accepted, most)
    support.rare_calibration_scores_ = _rare(given["rare"], schema, n_accepted, most)
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


def _rare(plain: Any, schema: Schema, n_accepted: int, most: int) -> dict[int, Codes]:
    """Calibration scores of rows with a rare level, by place among the mutable features."""
    if not isinstance(plain, list) or not all(isinstance(p, list) and len(p) == 2 for p in plain):
        raise SavedFileError("the support has no list of rare levels")
    places = [place for place, _ in plain]
    categorical = [schema.features[at].kind == "categorical" for at in schema.mutable]
    known = [place for place, is_level in enumerate(categorical) if is_level]
    if any(type(place) is not int or place not in known for place in places):
        raise SavedFileError("the support names features that have no rare levels")
    if places != sorted(set(places)):
        raise SavedFileError("the support names a feature twice, or out of order")
    return {place: _calibration_scores(scores, n_accepted, most) for place, scores in plain}


def _calibration_scores(values: Any, n_accepted: int, most: int) -> Codes:
    """Sizes of nodes in ascending order, at most one for each accepted row."""
    scores = vector(values, np.int32)
    if scores.size > n_accepted or (np.diff(scores) < 0).any():
        raise SavedFileError("the calibration scores of the support do not ascend, or are too many")
    if (scores < 0).any() or (scores > most).any():
        raise SavedFileError("the calibration scores of the support are no sizes of nodes")
    return scores
