"""Measures of counterfactuals and of generated rows; docs/metrics.md explains each one.

Paper, Experiments 1 and 3 and section "Privacy". Every measure takes the rows of any method and
the training data, a frame or an :class:`Evaluator`; ``compare`` computes all of them at once.
"""

from ..model.associations import association
from .compare import compare
from .costs import coverage, gower, l1, redundancy, sparsity, success, violation, ynn
from .evaluator import Evaluator
from .plausibility import contradictory_pairs, knn_distance
from .privacy import closest_record, copies, value_copies

__all__ = [
    "Evaluator",
    "association",
    "closest_record",
    "compare",
    "contradictory_pairs",
    "copies",
    "coverage",
    "gower",
    "knn_distance",
    "l1",
    "redundancy",
    "sparsity",
    "success",
    "value_copies",
    "violation",
    "ynn",
]
