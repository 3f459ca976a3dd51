"""The paper's experiments, each in one command: ``mcce bench --list``."""

from . import compare, forest, levels, privacy, samples, unconditioned
from .drawing import find_matplotlib
from .experiment import Experiment, Options, Progress, Published, Report
from .writing import made_folder, write

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (compare, samples, unconditioned, forest, levels, privacy)
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
]
