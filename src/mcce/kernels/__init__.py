"""The inner loops over integer codes: compiled where they are hot, readable NumPy otherwise.

``reference`` holds the readable version of every one; the compiled ones equal it bit for bit.
Arrays in, arrays out; no frames, no strings, nothing of the rest of the package.
"""

from ._types import BoolArray, Codes, FloatArray, IntArray, WordArray
from .native import first_of_each, grow_tree, rank, sample
from .reference import (
    DRAWS_VERSION,
    LEAF,
    Classes,
    Columns,
    Comparison,
    Growth,
    Limits,
    Listing,
    Numbers,
    Trees,
    descend,
    differences,
    draw_keys,
    fixed_point,
    hold,
    join,
    leaf_frequency,
    person_keys,
    pick,
    rows_as_bytes,
)

__all__ = [
    "DRAWS_VERSION",
    "LEAF",
    "BoolArray",
    "Classes",
    "Codes",
    "Columns",
    "Comparison",
    "FloatArray",
    "Growth",
    "IntArray",
    "Limits",
    "Listing",
    "Numbers",
    "Trees",
    "WordArray",
    "descend",
    "differences",
    "draw_keys",
    "first_of_each",
    "fixed_point",
    "grow_tree",
    "hold",
    "join",
    "leaf_frequency",
    "person_keys",
    "pick",
    "rank",
    "rows_as_bytes",
    "sample",
]
