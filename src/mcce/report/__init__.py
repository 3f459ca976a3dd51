"""Results for people who read rather than program: letters in plain words."""

from .labels import FeatureLabel, Labels
from .language import languages
from .letters import Letters, write_letters

__all__ = ["FeatureLabel", "Labels", "Letters", "languages", "write_letters"]
