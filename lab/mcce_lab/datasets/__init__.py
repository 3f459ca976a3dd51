"""The paper's data sets and simulated rows; only German Credit is bundled, with mcce."""

from .cards import NAMES, DatasetName, card, describe
from .loading import Form, load
from .simulated import ABOVE_ZERO, simulate, simulate_like, total
from .tables import DatasetError

__all__ = [
    "ABOVE_ZERO",
    "NAMES",
    "DatasetError",
    "DatasetName",
    "Form",
    "card",
    "describe",
    "load",
    "simulate",
    "simulate_like",
    "total",
]
