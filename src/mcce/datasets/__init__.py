"""The paper's data sets and simulated rows; only German Credit is bundled."""

from .cards import NAMES, card, describe
from .dataset import Dataset
from .loading import load, load_german_credit
from .simulated import simulate, simulate_like, total

__all__ = [
    "NAMES",
    "Dataset",
    "card",
    "describe",
    "load",
    "load_german_credit",
    "simulate",
    "simulate_like",
    "total",
]
