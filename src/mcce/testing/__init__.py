"""Checks for parts of your own: explainers, generators and distances.

Each ``check_*`` runs a part on small data and raises an ``AssertionError`` that says what was
checked, what was expected and what came. They need no test framework. The parts that come with
mcce pass the same checks.
"""

from ._distance import check_distance
from ._explainer import check_explainer
from ._generator import check_generator

__all__ = ["check_distance", "check_explainer", "check_generator"]
