"""The paper's experiments, the comparison of methods and replaced steps: ``mcce-lab``."""

from .authors import EXPERIMENT as _AUTHORS
from .case import Case
from .compare import EXPERIMENT as COMPARE
from .costs import EXPERIMENT as _COSTS
from .distances import EXPERIMENT as _DISTANCES
from .example import EXPERIMENT as _EXAMPLE
from .experiment import Experiment, Options, ProgressLine, Report
from .generators import GENERATORS, PRIVATE
from .manifold import EXPERIMENT as _MANIFOLD
from .privacy import EXPERIMENT as _PRIVACY
from .report import ensure_folder, write_page, write_report
from .samples import SAMPLES, UNCONDITIONED
from .scaling import MIMIC, SCALING
from .variants import FOREST, LEVELS
from .visit_order import EXPERIMENT as _VISIT_ORDER

_IN_ORDER = (
    *(_COSTS, _AUTHORS, _EXAMPLE, SAMPLES, _MANIFOLD, SCALING, _PRIVACY),
    *(LEVELS, FOREST, UNCONDITIONED, MIMIC, _VISIT_ORDER),
    *(GENERATORS, _DISTANCES, PRIVATE),
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
    "write_page",
    "write_report",
]
