"""The paper's experiments and the comparison of methods: ``mcce experiments --list``."""

from . import (
    authors,
    comparison,
    costs,
    example,
    forest,
    levels,
    manifold,
    mimic,
    privacy,
    samples,
    scaling,
    steps,
    unconditioned,
    visit_order,
)
from .case import Case
from .comparison import write_comparison
from .experiment import (
    Experiment,
    Options,
    ProgressLine,
    PublishedTable,
    Report,
)
from .report.figures import require_matplotlib
from .report.files import ensure_folder, write_report
from .report.page import write_page
from .steps import STEPS, write_steps

_IN_ORDER = (
    *(costs, authors, example, samples, manifold, scaling, privacy),
    *(levels, forest, unconditioned, mimic, visit_order),
    comparison,
    *(steps.generators, steps.distances, steps.private),
)
EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in _IN_ORDER
}

__all__ = [
    "EXPERIMENTS",
    "STEPS",
    "Case",
    "Experiment",
    "Options",
    "ProgressLine",
    "PublishedTable",
    "Report",
    "ensure_folder",
    "require_matplotlib",
    "write_comparison",
    "write_page",
    "write_report",
    "write_steps",
]
