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
    unconditioned,
    visit_order,
)
from .case import Case
from .comparison import write_comparison
from .experiment import Experiment, Options, ProgressLine, PublishedTable, Report
from .report.figures import require_matplotlib
from .report.files import ensure_folder, write_report
from .report.page import write_page

_IN_ORDER = (
    *(costs, authors, example, samples, manifold, scaling, privacy),
    *(levels, forest, unconditioned, mimic, visit_order),
    comparison,
)
EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in _IN_ORDER
}

__all__ = [
    "EXPERIMENTS",
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
]
