"""Names of the distances that come with the package, and what any distance must be."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from ..candidates import CandidateRows, pair_rows
from ..errors import ParameterError, shorten
from ..kernels import FloatArray
from ..protocols import Distance
from .gower import Gower

DISTANCES: dict[str, type[Gower]] = {"gower": Gower}
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

    Parameters
    ----------
    distance
        A name in ``DISTANCES``, or an object, which is copied.

    Returns
    -------
    Distance
        An unfitted one; the object that was given is never fitted.

    Raises
    ------
    ParameterError
        If it is no distance, or its name is that of another measure.

    Examples
    --------
    >>> find_distance("gower").name
    'gower'
    """
    if isinstance(distance, str) and distance in DISTANCES:
        return DISTANCES[distance]()
    if (
        not callable(distance)
        or not callable(getattr(distance, "fit", None))
        or not hasattr(distance, "name")
    ):
        raise ParameterError(
            f"distance must be one of {sorted(DISTANCES)!r} or an object with name, fit and "
            f"__call__, got {shorten(distance)}."
        )
    copy: Distance = deepcopy(distance)
    if not is_gower(copy) and (not isinstance(copy.name, str) or copy.name in RESERVED):
        raise ParameterError(
            f"The name of a distance is a column of result.measures, so it must be a string other "
            f"than {list(RESERVED)!r}, got {shorten(copy.name)}."
        )
    return copy


def is_gower(distance: Distance) -> bool:
    """Whether a distance is Gower's, with or without weights, and not one derived from it."""
    return type(distance) is Gower


def measure_rows(distance: Distance, chosen: CandidateRows) -> FloatArray:
    """Distance of each row to its person, shape (n_rows,)."""
    if not chosen.owner.size:
        return chosen.owner.astype(float)
    return distance(pair_rows(chosen.rows, chosen.owner, chosen.frame, 1))[:, 0]
