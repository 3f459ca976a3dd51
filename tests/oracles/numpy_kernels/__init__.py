"""The kernels of the method as readable NumPy: the compiled ones equal them bit for bit."""

from .drawing import enumerate_rows, node_slices, sample
from .growing import grow_tree
from .ranking import RowTable, first_of_each, measure, rank, weigh_errors

__all__ = [
    "RowTable",
    "enumerate_rows",
    "first_of_each",
    "grow_tree",
    "measure",
    "node_slices",
    "rank",
    "sample",
    "weigh_errors",
]
