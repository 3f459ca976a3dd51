"""How usual a row is to a chain of trees: which nodes on its way hold its values.

A node holds a number if it lies between the least and the greatest known one of its training rows,
missing if one of them is missing, and a level if one of them has it. A node holds all that the
nodes below it hold, so the first on a row's way that does not is the largest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import BoolArray, Codes, IntArray, WordArray
from ._trees import LEAF, WORD_BITS, Trees, in_set


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    """What the training rows of each node hold of the column that its tree gives.

    Parameters
    ----------
    size : (n_nodes,)
        Number of training rows.
    low, high : (n_nodes,)
        Least and greatest code of a known number; low is above high if there is none.
    misses : (n_nodes,)
        1 where a number is missing.
    offset : (n_nodes,)
        First word, in ``sets``, of the levels of a category; -1 for a number.
    sets : (n_words,)
        Bitsets, 64 levels a word.
    """

    size: Codes
    low: Codes
    high: Codes
    misses: np.ndarray
    offset: IntArray
    sets: WordArray


def gather_holdings(
    trees: Trees, n_levels: IntArray, responses: IntArray, missing: Codes
) -> Holdings:
    """What every node holds.

    Parameters
    ----------
    trees, responses
        The chain: tree i gives the column ``responses[i]``.
    n_levels : (n_columns,)
        Number of levels of each categorical column, 0 for numeric ones.
    missing : (n_trees,)
        Code of a missing number, -1 if the tree's column has none.
    """
    n_nodes = trees.feature.size
    held = Holdings(
        size=np.zeros(n_nodes, dtype=np.int32),
        low=np.full(n_nodes, np.iinfo(np.int32).max, dtype=np.int32),
        high=np.full(n_nodes, -1, dtype=np.int32),
        misses=np.zeros(n_nodes, dtype=np.uint8),
        offset=np.full(n_nodes, -1, dtype=np.int64),
        sets=np.empty(0, dtype=np.uint64),
    )
    ends = [*trees.roots[1:].tolist(), n_nodes]
    words: list[WordArray] = []
    for tree, (first, last) in enumerate(zip(trees.roots.tolist(), ends, strict=True)):
        n_words = -(-int(n_levels[responses[tree]]) // WORD_BITS)
        levels = np.zeros((last - first, n_words), dtype=np.uint64)
        if n_words:
            held.offset[first:last] = sum(map(np.size, words)) + n_words * np.arange(last - first)
        for node in reversed(range(first, last)):
            _hold(trees, held, levels, node, first, missing[tree])
        words.append(levels.ravel())
    sets = np.concatenate([held.sets, *words])
    return Holdings(held.size, held.low, held.high, held.misses, held.offset, sets)


def _hold(
    trees: Trees, held: Holdings, levels: WordArray, node: int, first: int, missing: int
) -> None:
    """Write down what one node holds, after those below it."""
    if trees.feature[node] != LEAF:
        children = [int(trees.left[node]), int(trees.right[node])]
        held.size[node] = held.size[children].sum()
        held.low[node], held.high[node] = held.low[children].min(), held.high[children].max()
        held.misses[node] = held.misses[children].max()
        levels[node - first] = levels[children[0] - first] | levels[children[1] - first]
        return
    values = trees.values[trees.start[node] :][: trees.count[node]]
    held.size[node] = values.size
    if levels.shape[1]:
        for value in np.unique(values):
            levels[node - first, value // WORD_BITS] |= np.uint64(1) << np.uint64(value % WORD_BITS)
        return
    known = values[values != missing]
    held.misses[node] = known.size < values.size
    if known.size:
        held.low[node], held.high[node] = known.min(), known.max()


def strain(
    trees: Trees,
    n_levels: IntArray,
    responses: IntArray,
    missing: Codes,
    held: Holdings,
    n_codes: Codes,
    codes: Codes,
    least: Codes,
) -> Codes:
    """Size of the largest node on each row's way that lacks its value, 0 for none.

    Parameters
    ----------
    n_codes : (n_columns,)
        Codes from here on are values that training never held; nothing is said of them.
    codes : (n_columns, n_rows)
        Descent codes.
    least : (n_trees,)
        Size below which nodes are not looked at.

    Returns
    -------
    (n_trees, n_rows)
    """
    found = np.zeros((responses.size, codes.shape[1]), dtype=np.int32)
    for tree, column in enumerate(responses):
        answer = codes[column]
        walking = np.flatnonzero(answer < n_codes[column])
        node = np.full(walking.size, trees.roots[tree])
        while walking.size:
            large = held.size[node] >= least[tree]
            walking, node = walking[large], node[large]
            holds = _holds(held, node, answer[walking], int(missing[tree]))
            found[tree, walking[~holds]] = held.size[node[~holds]]
            on = holds & (trees.feature[node] != LEAF)
            walking, node = walking[on], node[on]
            asked = trees.feature[node]
            code = codes[asked, walking]
            left = np.where(n_levels[asked] > 0, in_set(trees, node, code), code <= trees.cut[node])
            node = np.where(left, trees.left[node], trees.right[node])
    return found


def _holds(held: Holdings, node: IntArray, answer: Codes, missing: int) -> BoolArray:
    inside = (held.low[node] <= answer) & (answer <= held.high[node])
    inside = np.where(answer == missing, held.misses[node] == 1, inside)
    by_set = held.offset[node] >= 0
    if not by_set.any():
        return inside
    word = held.sets[held.offset[node] + answer // WORD_BITS]
    return (word >> (answer % WORD_BITS).astype(np.uint64)) & np.uint64(1) == 1
