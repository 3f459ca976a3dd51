"""How usual a row is to trees: which nodes on its way object to its values.

A node holds a number if it lies between the least and the greatest known one of its training rows,
missing if one of them is missing, and a level if one of them has it. Or, where only contradictions
are asked for, every number and every level that it does not contradict.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._types import BoolArray, Codes, IntArray, WordArray
from ._trees import LEAF, WORD_BITS, Trees, in_set, pack_set

CONTRADICTION, CHANCE = 100, 5


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
    trees: Trees,
    n_levels: IntArray,
    responses: IntArray,
    missing: Codes,
    *,
    contradictions: bool,
) -> Holdings:
    """What every node holds.

    Parameters
    ----------
    trees, responses
        Tree i gives the column ``responses[i]``.
    n_levels : (n_columns,)
        Number of levels of each categorical column, 0 for numeric ones.
    missing : (n_trees,)
        Code of a missing number, -1 if the tree's column has none.
    contradictions
        Whether a node holds every number, and every level unless less than one in
        ``CONTRADICTION`` of the rows have it that its share of all rows would give, if that is
        ``CHANCE`` or more.
    """
    n_nodes, most = trees.feature.size, np.iinfo(np.int32).max
    low, high = (0, most) if contradictions else (most, -1)
    held = Holdings(
        size=np.zeros(n_nodes, dtype=np.int32),
        low=np.full(n_nodes, low, dtype=np.int32),
        high=np.full(n_nodes, high, dtype=np.int32),
        misses=np.full(n_nodes, contradictions, dtype=np.uint8),
        offset=np.full(n_nodes, -1, dtype=np.int64),
        sets=np.empty(0, dtype=np.uint64),
    )
    ends, words = [*trees.roots[1:].tolist(), n_nodes], [held.sets]
    for tree, (first, last) in enumerate(zip(trees.roots.tolist(), ends, strict=True)):
        values: dict[int, Codes] = {}
        for node in reversed(range(first, last)):
            children = int(trees.left[node]), int(trees.right[node])
            leaf = trees.values[trees.start[node] :][: trees.count[node]]
            inner = trees.feature[node] != LEAF
            values[node] = np.concatenate([values[c] for c in children]) if inner else leaf
            held.size[node] = values[node].size
        for node in range(first, last):
            n = int(n_levels[responses[tree]])
            if n:
                held.offset[node] = sum(map(np.size, words))
                words.append(pack_set(_fits(values[node], values[first], n, contradictions)))
            elif not contradictions:
                known = values[node][values[node] != missing[tree]]
                held.misses[node] = known.size < values[node].size
                if known.size:
                    held.low[node], held.high[node] = known.min(), known.max()
    return replace(held, sets=np.concatenate(words))


def _fits(values: Codes, everybody: Codes, n_levels: int, contradictions: bool) -> BoolArray:
    """Levels that a node with these values holds."""
    count = np.bincount(values, minlength=n_levels)
    if not contradictions:
        return count > 0
    expected = values.size * np.bincount(everybody, minlength=n_levels)
    usual = count * CONTRADICTION * everybody.size >= expected
    return usual | (expected < CHANCE * everybody.size)


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
    """Size of the largest node on each row's way that does not hold its value, 0 for none.

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
