"""The methods that MCCE is compared with, behind the same protocol and with the same result.

Each takes a predictor, what is desired of it and the immutable columns; ``fit`` learns from
training rows and ``explain`` answers people. Answers are valid by a fresh call of the predictor and
keep immutable features, whatever the original publication did.
"""

from .deep import (
    CCHVAE,
    CEM,
    CLUE,
    CRUDS,
    REViSE,
    Wachter,
)
from .face import FACE
from .growing_spheres import GrowingSpheres
from .lice import LiCE
from .nice import NICE, NearestUnlike

__all__ = [
    "CCHVAE",
    "CEM",
    "CLUE",
    "CRUDS",
    "FACE",
    "NICE",
    "GrowingSpheres",
    "LiCE",
    "NearestUnlike",
    "REViSE",
    "Wachter",
]
