"""The inner loops, as readable NumPy over integer codes: the specification of the method's bits.

Arrays in, arrays out; no frames, no strings, nothing of the rest of the package.
"""

from ._compare import Cells, differences, first_of_each, rows_as_bytes
from ._grow import Classes, Columns, Growth, Numbers, Response, fixed_point, grow_tree
from ._random import DRAWS_VERSION, person_keys
from ._sample import leaf_frequency, sample
from ._trees import LEAF, Trees, descend, join
from ._types import BoolArray, Codes, FloatArray, IntArray, WordArray

__all__ = [
    "DRAWS_VERSION",
    "LEAF",
    "BoolArray",
    "Cells",
    "Classes",
    "Codes",
    "Columns",
    "FloatArray",
    "Growth",
    "IntArray",
    "Numbers",
    "Response",
    "Trees",
    "WordArray",
    "descend",
    "differences",
    "first_of_each",
    "fixed_point",
    "grow_tree",
    "join",
    "leaf_frequency",
    "person_keys",
    "rows_as_bytes",
    "sample",
]
