"""The seams: what a replacement for a part of the method must offer.

Each protocol is one or two methods; none is a base class. What a generator can do beyond drawing is
declared in its :class:`Capabilities` and never guessed from the names of its methods.
``mcce.testing`` checks whether an object keeps the promises written here. ``draw_keys`` and
``pick`` help to write a generator, ``differences`` a distance.
"""

from ..candidates import Draws
from ..kernels import differences, draw_keys, pick
from ..runtime.progress import Progress
from .explainers import Callback, Explainer
from .generators import (
    BackingOffGenerator,
    Capabilities,
    DensityGenerator,
    EnumeratingGenerator,
    Generator,
    GuidedGenerator,
    InventingGenerator,
    LimitedGenerator,
    OrderedGenerator,
    SavableGenerator,
)
from .postprocess import CandidateFilter, Distance, RowFilter

__all__ = [
    "BackingOffGenerator",
    "Callback",
    "CandidateFilter",
    "Capabilities",
    "DensityGenerator",
    "Distance",
    "Draws",
    "EnumeratingGenerator",
    "Explainer",
    "Generator",
    "GuidedGenerator",
    "InventingGenerator",
    "LimitedGenerator",
    "OrderedGenerator",
    "Progress",
    "RowFilter",
    "SavableGenerator",
    "differences",
    "draw_keys",
    "pick",
]
