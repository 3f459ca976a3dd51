"""Step 2's inner loop: draw candidates from the leaves of the chain.

Paper, Algorithm 1. Every row carries the immutable codes of its person and the decision; each
tree in turn sends the rows to their leaves, where one training value is picked uniformly.
"""

from __future__ import annotations

import numpy as np

from .._types import Codes, IntArray, WordArray
from ._random import draw_keys, pick
from ._trees import LEAF, Trees, descend


def sample(
    trees: Trees,
    responses: IntArray,
    n_levels: IntArray,
    given: Codes,
    keys: WordArray,
    draws: IntArray,
) -> Codes:
    """Codes drawn for each response, in column order, shape (n_trees, n_groups, n_draws).

    Parameters
    ----------
    trees, responses
        The chain: tree i gives the column ``responses[i]``, in visit order.
    n_levels : (n_columns,)
        Number of levels of each categorical column, 0 for numeric ones.
    given : (n_columns, n_groups)
        Descent codes; the columns that are no response must be filled.
    keys : (n_groups,)
        One key per group, from :func:`person_keys`.
    draws : (n_draws,)
        Draw numbers.
    """
    codes = np.repeat(given, draws.size, axis=1)
    row_keys = draw_keys(keys, draws).ravel()
    for tree, column in enumerate(responses):
        leaf = descend(trees, tree, codes, n_levels > 0)
        chosen = pick(row_keys, int(column), trees.count[leaf].astype(np.int64))
        codes[column] = trees.values[trees.start[leaf] + chosen]
    return codes[np.sort(responses)].reshape(responses.size, keys.size, draws.size)


def leaf_frequency(trees: Trees, leaf: IntArray, codes: Codes) -> tuple[IntArray, IntArray]:
    """How often each row's code stands among the values of its leaf, and how many those are."""
    leaves = np.flatnonzero(trees.feature == LEAF)
    width = int(max(trees.values.max(initial=0), codes.max(initial=0))) + 2
    # Leaves and the values in them ascend, so (leaf, value) is one sorted list.
    held = np.repeat(leaves, trees.count[leaves]) * width + trees.values + 1
    asked = leaf * width + codes + 1
    hits = np.searchsorted(held, asked, side="right") - np.searchsorted(held, asked, side="left")
    return hits, trees.count[leaf].astype(np.int64)
