"""The measures by which counterfactuals and generated rows are judged; docs/metrics.md tells each.

Paper, Experiments 1 and 3 and section "Privacy". Every measure is a function of rows of any method
and of the training data, a frame or a :class:`Judge`; ``compare`` gives one row of all.
"""

from .asked import redundancy, success, ynn
from .associations import correlation_difference, correlations
from .compare import compare
from .contradictions import contradictory_pairs
from .costs import coverage, gower, l1, sparsity, violation
from .discriminator import discriminator
from .judge import Judge
from .plausibility import isolation, nearness, outlier_factor
from .privacy import closest_record, copies, value_copies

__all__ = [
    "Judge",
    "closest_record",
    "compare",
    "contradictory_pairs",
    "copies",
    "correlation_difference",
    "correlations",
    "coverage",
    "discriminator",
    "gower",
    "isolation",
    "l1",
    "nearness",
    "outlier_factor",
    "redundancy",
    "sparsity",
    "success",
    "value_copies",
    "violation",
    "ynn",
]
