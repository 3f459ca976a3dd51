"""How unusual rows are to a forest: the nodes on their paths that do not hold their values.

A node holds a number between the least and the greatest known number of its training rows, a
missing value if one of them is missing, and a level if one of them has it. With
``contradictions``, it holds every number, and every level that it does not contradict.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._types import BoolArray, Codes, IntArray, WordArray
from ._trees import LEAF, WORD_BITS, Forest, in_set, pack_set

# A node contradicts a level that fewer than one in CONTRADICTION of the expected rows have, given
# the level's share of all rows. Below CHANCE expected rows, the lack may be chance.
CONTRADICTION, CHANCE = 100, 5


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    """A forest and the values that each node holds of the column that its tree predicts.

    Parameters
    ----------
    forest
        The trees.
    n_codes : (n_columns,)
        Number of codes of each column; higher codes are values that training never held.
    missing : (n_trees,)
        Code of a missing number, -1 if the tree's column has none.
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

    forest: Forest
    n_codes: Codes
    missing: Codes
    size: Codes
    low: Codes
    high: Codes
    misses: np.ndarray
    offset: IntArray
    sets: WordArray


def gather_holdings(
    forest: Forest, n_codes: Codes, missing: Codes, *, contradictions: bool
) -> Holdings:
    """The values that every node holds.

    Parameters
    ----------
    forest, n_codes, missing
        As in :class:`Holdings`.
    contradictions
        Whether a node holds every number, and every level that it does not contradict.
    """
    trees = forest.trees
    n_nodes, most = trees.feature.size, np.iinfo(np.int32).max
    low, high = (0, most) if contradictions else (most, -1)
    held = Holdings(
        forest,
        n_codes,
        missing,
        size=np.zeros(n_nodes, dtype=np.int32),
        low=np.full(n_nodes, low, dtype=np.int32),
        high=np.full(n_nodes, high, dtype=np.int32),
        misses=np.full(n_nodes, contradictions, dtype=np.uint8),
        offset=np.full(n_nodes, -1, dtype=np.int64),
        sets=np.empty(0, dtype=np.uint64),
    )
    ends, words = [*trees.roots[1:].tolist(), n_nodes], [held.sets]
    for tree, (first, last) in enumerate(zip(trees.roots.tolist(), ends, strict=True)):
        values = _values_of_nodes(forest, first, last)
        n = int(forest.n_levels[forest.responses[tree]])
        for node in range(first, last):
            held.size[node] = values[node].size
            if n:
                held.offset[node] = sum(map(np.size, words))
                words.append(pack_set(_fits(values[node], values[first], n, contradictions)))
            elif not contradictions:
                known = values[node][values[node] != missing[tree]]
                held.misses[node] = known.size < values[node].size
                if known.size:
                    held.low[node], held.high[node] = known.min(), known.max()
    return replace(held, sets=np.concatenate(words))


def _values_of_nodes(forest: Forest, first: int, last: int) -> dict[int, Codes]:
    """Response codes of the training rows of each node of one tree."""
    trees, values = forest.trees, dict[int, Codes]()
    for node in reversed(range(first, last)):
        children = int(trees.left[node]), int(trees.right[node])
        leaf = trees.values[trees.start[node] :][: trees.count[node]]
        inner = trees.feature[node] != LEAF
        values[node] = np.concatenate([values[c] for c in children]) if inner else leaf
    return values


def _fits(values: Codes, everybody: Codes, n_levels: int, contradictions: bool) -> BoolArray:
    """Levels that a node with these values holds."""
    count = np.bincount(values, minlength=n_levels)
    if not contradictions:
        return count > 0
    expected = values.size * np.bincount(everybody, minlength=n_levels)
    usual = count * CONTRADICTION * everybody.size >= expected
    return usual | (expected < CHANCE * everybody.size)


def nonconformity(held: Holdings, codes: Codes, least: Codes) -> Codes:
    """Nonconformity score of each row per tree: size of the largest node that lacks its value.

    Parameters
    ----------
    held
        The forest and what its nodes hold.
    codes : (n_columns, n_rows)
        Descent codes.
    least : (n_trees,)
        Size below which nodes are ignored.

    Returns
    -------
    (n_trees, n_rows)
        Of the nodes on the row's path, the size of the largest that does not hold its value. 0 if
        all hold it, and for values that training never held.
    """
    trees, responses, n_levels = held.forest.trees, held.forest.responses, held.forest.n_levels
    score = np.zeros((responses.size, codes.shape[1]), dtype=np.int32)
    for tree, column in enumerate(responses):
        value = codes[column]
        walking = np.flatnonzero(value < held.n_codes[column])
        node = np.full(walking.size, trees.roots[tree])
        while walking.size:
            large = held.size[node] >= least[tree]
            walking, node = walking[large], node[large]
            holds = _holds(held, node, value[walking], int(held.missing[tree]))
            score[tree, walking[~holds]] = held.size[node[~holds]]
            on = holds & (trees.feature[node] != LEAF)
            walking, node = walking[on], node[on]
            split = trees.feature[node]
            code = codes[split, walking]
            left = np.where(n_levels[split] > 0, in_set(trees, node, code), code <= trees.cut[node])
            node = np.where(left, trees.left[node], trees.right[node])
    return score


def _holds(held: Holdings, node: IntArray, value: Codes, missing: int) -> BoolArray:
    inside = (held.low[node] <= value) & (value <= held.high[node])
    inside = np.where(value == missing, held.misses[node] == 1, inside)
    by_set = held.offset[node] >= 0
    if not by_set.any():
        return inside
    word = held.sets[held.offset[node] + value // WORD_BITS]
    return (word >> (value % WORD_BITS).astype(np.uint64)) & np.uint64(1) == 1
