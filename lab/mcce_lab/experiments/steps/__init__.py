"""What to put in place of a step of the method: other generators, other distances, privacy.

Paper, sections "Modeling", "Privacy" and "Future steps", which name copulas, CTGAN, MADE, HVDM,
IVDM and differential privacy without trying them.
"""

from . import distances, generators, private
from .page import EXPERIMENTS, write_steps

STEPS = tuple(experiment.name for experiment in EXPERIMENTS)

__all__ = ["STEPS", "distances", "generators", "private", "write_steps"]
