"""Distances between candidates and the people they are for: Gower's and any other."""

from .gower import Gower
from .registry import DISTANCES, find_distance, is_gower, measure_rows

__all__ = ["DISTANCES", "Gower", "find_distance", "is_gower", "measure_rows"]
