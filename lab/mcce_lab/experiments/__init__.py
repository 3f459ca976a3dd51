"""The paper's experiments, the comparison of methods and replaced steps: ``mcce-lab``."""

from .authors import EXPERIMENT as _AUTHORS
from .case import Case
from .compare import EXPERIMENT as COMPARE
from .example import EXPERIMENT as _EXAMPLE
from .experiment import Experiment, Options, ProgressLine, Report
from .manifold import EXPERIMENT as _MANIFOLD
from .paper import CHANGES, COSTS, DRAWS, FOREST, LEVELS, PRIVACY, SAMPLES, SPLITS, UNCONDITIONED
from .report import ensure_folder, write_report
from .scaling import MIMIC, SCALING
from .steps import DISTANCES, GENERATORS, PRIVATE, VISIT_ORDER

_IN_ORDER = (
    *(COSTS, SPLITS, CHANGES, _AUTHORS, _EXAMPLE, SAMPLES, _MANIFOLD, SCALING, PRIVACY),
    *(LEVELS, FOREST, UNCONDITIONED, DRAWS, MIMIC),
    *(GENERATORS, DISTANCES, PRIVATE, VISIT_ORDER),
)
EXPERIMENTS: dict[str, Experiment] = {one.name: one for one in _IN_ORDER}

__all__ = [
    "COMPARE",
    "EXPERIMENTS",
    "Case",
    "Experiment",
    "Options",
    "ProgressLine",
    "Report",
    "ensure_folder",
    "write_report",
]
