"""Metrics of generated rows: how they differ from real ones."""

from .associations import correlation_difference, correlations
from .discriminator import discriminator
from .judges import JUDGES, Judges, detectability

__all__ = [
    "JUDGES",
    "Judges",
    "correlation_difference",
    "correlations",
    "detectability",
    "discriminator",
]
