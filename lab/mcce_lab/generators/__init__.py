"""Further models of step 1: a Gaussian copula, parametric conditionals, networks that draw rows."""

from .copula import GaussianCopula
from .gan import CTGAN, ConditionalGAN
from .made import MADE
from .parametric import ParametricChain

__all__ = ["CTGAN", "MADE", "ConditionalGAN", "GaussianCopula", "ParametricChain"]
