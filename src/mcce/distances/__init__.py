"""Distances between candidates and the people they are for: Gower's and any other."""

from .feature_distance import FeatureDistance
from .gower import L1, Gower
from .registry import (
    DISTANCES,
    axes_of,
    find_distance,
    is_gower,
    is_mean,
    is_plain_gower,
    measure_rows,
)

__all__ = [
    "DISTANCES",
    "L1",
    "FeatureDistance",
    "Gower",
    "axes_of",
    "find_distance",
    "is_gower",
    "is_mean",
    "is_plain_gower",
    "measure_rows",
]
