"""A Gaussian copula with mixed margins, conditioned on the immutable features and the decision."""

from .copula import GaussianCopula

__all__ = ["GaussianCopula"]
