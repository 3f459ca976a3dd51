"""The seams: what a replacement for a part of the method must offer.

Each protocol is one or two methods; none is a base class. What a generator can do beyond drawing is
declared in its :class:`Capabilities` and never guessed from the names of its methods.
``mcce.testing`` checks whether an object keeps the promises written here. ``draw_keys`` and
``pick`` help to write a generator, ``differences`` a distance.
"""

from ..candidates import CandidateRows, Draws
from ..kernels import (
    BoolArray,
    Codes,
    FloatArray,
    IntArray,
    WordArray,
    differences,
    draw_keys,
    person_keys,
    pick,
    uniforms,
)
from ..parameters import check_choice, check_count, check_flag, check_real, check_whole
from ..predictors import make_decision
from ..predictors.decision import Decision
from ..predictors.scored import ScoredRows
from ..runtime.progress import Progress
from ..tables.columns import Kind
from ..tables.features import Feature
from ..tables.schema import OWN, EncodedRows, Schema
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
    "OWN",
    "BackingOffGenerator",
    "BoolArray",
    "Callback",
    "CandidateFilter",
    "CandidateRows",
    "Capabilities",
    "Codes",
    "Decision",
    "DensityGenerator",
    "Distance",
    "Draws",
    "EncodedRows",
    "EnumeratingGenerator",
    "Explainer",
    "Feature",
    "FloatArray",
    "Generator",
    "GuidedGenerator",
    "IntArray",
    "InventingGenerator",
    "Kind",
    "LimitedGenerator",
    "OrderedGenerator",
    "Progress",
    "RowFilter",
    "SavableGenerator",
    "Schema",
    "ScoredRows",
    "WordArray",
    "check_choice",
    "check_count",
    "check_flag",
    "check_real",
    "check_whole",
    "differences",
    "draw_keys",
    "make_decision",
    "person_keys",
    "pick",
    "uniforms",
]
