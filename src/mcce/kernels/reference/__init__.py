"""The inner loops as readable NumPy: the specification that the compiled ones equal bit for bit."""

from ._compare import Comparison, Listing, differences, first_of_each, rank, rows_as_bytes
from ._grow import Classes, Columns, Growth, Numbers, Response, fixed_point, grow_tree
from ._random import DRAWS_VERSION, draw_keys, person_keys, pick
from ._sample import Limits, hold, leaf_frequency, sample
from ._trees import LEAF, Trees, descend, join

__all__ = [
    "DRAWS_VERSION",
    "LEAF",
    "Classes",
    "Columns",
    "Comparison",
    "Growth",
    "Limits",
    "Listing",
    "Numbers",
    "Response",
    "Trees",
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
