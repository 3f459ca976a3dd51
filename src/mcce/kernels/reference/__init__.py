"""The inner loops as readable NumPy: the specification that the compiled ones equal bit for bit."""

from ._boost import BoostedNodes, Boosting, Ensemble, boost, predict_units
from ._errors import weigh_errors
from ._exact import Enumerated, Person, enumerate_rows
from ._gower import MISSING, gower_gap, scaled_gap
from ._grow import Columns, Growth, Node, Split, grow_tree, grow_with, split_after
from ._measure import Measure, Summation, Total, measure
from ._nearest import Neighbours, nearest
from ._nonconformity import MOST_LEVELS, Holdings, gather_holdings, nonconformity
from ._random import DRAWS_VERSION, draw_keys, happens, person_keys, pick, uniforms
from ._rank import (
    Comparison,
    Listing,
    differences,
    first_of_each,
    rank,
    rows_as_bytes,
    sort_rows,
)
from ._responses import Classes, Numbers, Response, fixed_point, times_seen_before
from ._rows import RowTable
from ._sample import ANY_LEAF, Guide, Limits, hold, leaf_frequency, sample
from ._trees import LEAF, WORD_BITS, Forest, Trees, descend, join, pack_set

__all__ = [
    "ANY_LEAF",
    "DRAWS_VERSION",
    "LEAF",
    "MISSING",
    "MOST_LEVELS",
    "WORD_BITS",
    "BoostedNodes",
    "Boosting",
    "Classes",
    "Columns",
    "Comparison",
    "Ensemble",
    "Enumerated",
    "Forest",
    "Growth",
    "Guide",
    "Holdings",
    "Limits",
    "Listing",
    "Measure",
    "Neighbours",
    "Node",
    "Numbers",
    "Person",
    "Response",
    "RowTable",
    "Split",
    "Summation",
    "Total",
    "Trees",
    "boost",
    "descend",
    "differences",
    "draw_keys",
    "enumerate_rows",
    "first_of_each",
    "fixed_point",
    "gather_holdings",
    "gower_gap",
    "grow_tree",
    "grow_with",
    "happens",
    "hold",
    "join",
    "leaf_frequency",
    "measure",
    "nearest",
    "nonconformity",
    "pack_set",
    "person_keys",
    "pick",
    "predict_units",
    "rank",
    "rows_as_bytes",
    "sample",
    "scaled_gap",
    "sort_rows",
    "split_after",
    "times_seen_before",
    "uniforms",
    "weigh_errors",
]
