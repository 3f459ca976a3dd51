"""Distances between candidates and the people they are for: Gower and its peers."""

from .gower import DISTANCES, Gower, find_distance

__all__ = ["DISTANCES", "Gower", "find_distance"]
