"""Results for people who read rather than program: letters in plain words."""

from .html import Provenance, write_report
from .labels import FeatureLabel, Labels
from .language import languages
from .letters import Letters, write_letters

__all__ = [
    "FeatureLabel",
    "Labels",
    "Letters",
    "Provenance",
    "languages",
    "write_letters",
    "write_report",
]
