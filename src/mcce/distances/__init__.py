"""Distances between candidates and the people they are for: Gower's and any other."""

from .feature_distance import FeatureDistance
from .gower import HEOM, L1, Gower
from .registry import (
    DISTANCES,
    DistanceName,
    axes_of,
    find_distance,
    is_gower,
    is_mean,
    is_plain_gower,
    measure_rows,
)
from .value_difference import HVDM, IVDM

__all__ = [
    "DISTANCES",
    "HEOM",
    "HVDM",
    "IVDM",
    "L1",
    "DistanceName",
    "FeatureDistance",
    "Gower",
    "axes_of",
    "find_distance",
    "is_gower",
    "is_mean",
    "is_plain_gower",
    "measure_rows",
]
