"""The paper's experiments, each in one command: ``mcce experiments --list``."""

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
from .experiment import Experiment, Options, Progress, Published, Report
from .report.figures import find_matplotlib
from .report.files import made_folder, write
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
    "Experiment",
    "Options",
    "Progress",
    "Published",
    "Report",
    "find_matplotlib",
    "made_folder",
    "write",
    "write_page",
]
