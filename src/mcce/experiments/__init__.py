"""The paper's experiments, one command each: ``mcce experiments --list``."""

from . import (
    compare,
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
from .experiment import Experiment, Options, ProgressLine, PublishedTable, Report
from .report.figures import require_matplotlib
from .report.files import ensure_folder, write_report
from .report.page import write_page

_IN_PAPER_ORDER = (
    *(compare, example, samples, manifold, scaling, privacy),
    *(levels, forest, unconditioned, mimic, visit_order),
)
EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in _IN_PAPER_ORDER
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
    "write_page",
    "write_report",
]
