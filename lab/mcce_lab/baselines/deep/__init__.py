"""Baselines that use gradients or train networks; they need torch, which is imported on use.

Each has sound defaults, and ``paper`` gives it the settings of the comparison in the MCCE paper.
"""

from .cchvae import CCHVAE
from .cem import CEM
from .clue import CLUE
from .cruds import CRUDS
from .revise import REViSE
from .wachter import Wachter

__all__ = ["CCHVAE", "CEM", "CLUE", "CRUDS", "REViSE", "Wachter"]
