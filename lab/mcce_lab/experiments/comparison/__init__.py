"""The comparison of methods: the same people, predictors, training rows and judges for all."""

from .experiment import EXPERIMENT
from .page import write_comparison

__all__ = ["EXPERIMENT", "write_comparison"]
