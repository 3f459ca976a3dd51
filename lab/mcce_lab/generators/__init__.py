"""Further models of step 1: a Gaussian copula, and networks that draw rows."""

from .copula import GaussianCopula
from .ctgan import CTGAN
from .made import MADE

__all__ = ["CTGAN", "MADE", "GaussianCopula"]
