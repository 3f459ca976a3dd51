"""The distances by name, those of other packages included, and what any distance must be."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from ..candidates import CandidateRows, Candidates, pair_rows
from ..errors import ParameterError, shorten
from ..kernels import Comparison, FloatArray, Measure
from ..plugins import Registry
from ..protocols import Distance
from ..tables.columns import as_numbers
from ..tables.schema import OWN
from .feature_distance import FeatureDistance
from .gower import Gower

# Classes whose parameters are their arguments, as scikit-learn has it.
DISTANCES = Registry(
    group="mcce.distances",
    built_in={
        "gower": "mcce.distances.gower:Gower",
        "l1": "mcce.distances.gower:L1",
        "hvdm": "mcce.distances.value_difference:HVDM",
    },
    elsewhere=dict.fromkeys(("heom", "ivdm"), "mcce-lab"),
)
# Columns of result.measures that are not distances of the user.
RESERVED = (
    "score",
    "sparsity",
    "gower",
    "l1",
    "plausibility",
    "knn_distance_quantile",
    "no_reference_group",
    "proven",
    "valid",
)


def find_distance(distance: Any) -> Distance:
    """An unfitted distance.

    Examples
    --------
    >>> find_distance("gower").name
    'gower'
    """
    if distance in DISTANCES:
        named: Distance = DISTANCES.load(distance)()
        return named
    if (
        not callable(distance)
        or not callable(getattr(distance, "fit", None))
        or not hasattr(distance, "name")
    ):
        raise ParameterError(
            f"distance must be one of {DISTANCES.names()!r} or an object with name, fit and "
            f"__call__, got {shorten(distance)}."
        )
    copy: Distance = deepcopy(distance)
    if not is_registered(copy) and (not isinstance(copy.name, str) or copy.name in RESERVED):
        raise ParameterError(
            f"The name of a distance is a column of result.measures, so it must be a string other "
            f"than {list(RESERVED)!r}, got {shorten(copy.name)}."
        )
    return copy


def is_registered(distance: Distance) -> bool:
    """Whether a distance has a name, and is not one derived from such."""
    return DISTANCES.name_of(type(distance)) is not None


def is_gower(distance: Distance) -> bool:
    """Whether a distance is Gower's, with or without weights, and missing cells are levels."""
    return type(distance) is Gower and distance.missing == "level"


def is_plain_gower(distance: Distance) -> bool:
    """Whether a distance is the measure ``gower`` itself."""
    return is_gower(distance) and getattr(distance, "weights", None) is None


def is_mean(distance: Distance) -> bool:
    """Whether a distance is a mean over features, as one of the user is supposed to be."""
    return not isinstance(distance, FeatureDistance) or distance.summation.mean


def axes_of(distance: Distance, candidates: Candidates) -> Measure | None:
    """Candidates on the axes of a distance that comes with mcce; None for any other."""
    if not isinstance(distance, FeatureDistance) or not is_registered(distance):
        return None
    return distance.axes(candidates)


def measure_rows(distance: Distance, chosen: CandidateRows) -> FloatArray:
    """Distance of each row to its person, shape (n_rows,)."""
    if not chosen.owner.size:
        return chosen.owner.astype(float)
    if is_registered(distance):
        return distance(_as_candidates(chosen))[:, 0]
    return distance(pair_rows(chosen.rows, chosen.owner, chosen.frame, 1))[:, 0]


def _as_candidates(chosen: CandidateRows) -> Candidates:
    """Rows as the only candidates of their people, for a distance that looks at changes alone.

    No row is built. A cell that is the person's own has the code ``OWN`` on both sides.
    """
    rows, schema, n_rows = chosen.rows, chosen.rows.schema, chosen.owner.size
    features = [schema.features[position] for position in schema.mutable]
    numbers = [
        None
        if feature.spread == 0
        else feature.numbers
        if table is trained
        else as_numbers(table, feature.table.dtype)
        for feature, table, trained in zip(features, chosen.tables, rows.tables, strict=True)
    ]
    comparison = Comparison(
        codes=chosen.codes[:, :, None],
        numbers=numbers,
        own_codes=np.full_like(chosen.codes, OWN),
        own_numbers=rows.own_numbers(chosen.owner),
        spreads=schema.spreads,
        group=np.arange(n_rows),
        n_features=len(schema.features),
    )
    distinct = np.ones((n_rows, 1), dtype=bool)
    return Candidates(rows, chosen.owner, comparison, np.arange(1), distinct, chosen.tables)
