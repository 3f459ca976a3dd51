"""How unusual rows are to a forest: the nodes on their paths that do not hold their values.

A node holds a number between the least and the greatest known number of its training rows, a
missing value if one of them is missing, and a level if one of them has it. With
``contradictions``, it holds every number, and every level that it does not contradict.

What a node holds of a category is a set of levels, or, where a set per node would take too much
memory, found by counting the level among the node's values. Both give the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._types import BoolArray, Codes, IntArray, WordArray
from ._trees import LEAF, WORD_BITS, Forest, in_set, pack_set

# A node contradicts a level that fewer than one in CONTRADICTION of the expected rows have, given
# the level's share of all rows. Below CHANCE expected rows, the lack may be chance.
CONTRADICTION, CHANCE = 100, 5
# Nodes have sets of levels of categories with at most so many.
MOST_LEVELS = 1024


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
    contradictions
        Whether nodes hold every number, and every level that they do not contradict.
    size : (n_nodes,)
        Number of training rows.
    low, high : (n_nodes,)
        Least and greatest code of a known number; low is above high if there is none.
    misses : (n_nodes,)
        1 where a number is missing.
    offset : (n_nodes,)
        First word, in ``sets``, of the levels of a category; -1 for a number, and in trees of
        categories whose levels are counted among the node's values.
    sets : (n_words,)
        Bitsets, 64 levels a word.
    """

    forest: Forest
    n_codes: Codes
    missing: Codes
    contradictions: bool
    size: Codes
    low: Codes
    high: Codes
    misses: np.ndarray
    offset: IntArray
    sets: WordArray


def gather_holdings(
    forest: Forest,
    n_codes: Codes,
    missing: Codes,
    *,
    contradictions: bool,
    most_levels: int = MOST_LEVELS,
) -> Holdings:
    """The values that every node holds.

    Parameters
    ----------
    forest, n_codes, missing, contradictions
        As in :class:`Holdings`.
    most_levels
        Levels of a category up to which nodes have sets of them.
    """
    trees = forest.trees
    n_nodes, most = trees.feature.size, np.iinfo(np.int32).max
    low, high = (0, most) if contradictions else (most, -1)
    held = Holdings(
        forest,
        n_codes,
        missing,
        contradictions,
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
            if 0 < n <= most_levels:
                held.offset[node] = sum(map(np.size, words))
                words.append(pack_set(_levels_of(values[node], values[first], n, contradictions)))
            elif not n and not contradictions:
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


def _levels_of(values: Codes, everybody: Codes, n_levels: int, contradictions: bool) -> BoolArray:
    """Levels that a node with these values holds."""
    count, overall = (np.bincount(v, minlength=n_levels) for v in (values, everybody))
    return _fits(count, values.size, overall, everybody.size, contradictions)


def _fits(
    count: IntArray, size: IntArray | int, overall: IntArray, total: int, contradictions: bool
) -> BoolArray:
    """Whether nodes hold a level that ``count`` of their rows have, and ``overall`` of all."""
    if not contradictions:
        return count > 0
    expected = size * overall
    return (count * CONTRADICTION * total >= expected) | (expected < CHANCE * total)


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
            holds = _holds(held, tree, node, value[walking])
            score[tree, walking[~holds]] = held.size[node[~holds]]
            on = holds & (trees.feature[node] != LEAF)
            walking, node = walking[on], node[on]
            split = trees.feature[node]
            code = codes[split, walking]
            left = np.where(n_levels[split] > 0, in_set(trees, node, code), code <= trees.cut[node])
            node = np.where(left, trees.left[node], trees.right[node])
    return score


def _holds(held: Holdings, tree: int, node: IntArray, value: Codes) -> BoolArray:
    """Whether nodes of a tree hold values, one each."""
    if not held.forest.n_levels[held.forest.responses[tree]]:
        inside = (held.low[node] <= value) & (value <= held.high[node])
        return np.where(value == held.missing[tree], held.misses[node] == 1, inside)
    if held.offset[held.forest.trees.roots[tree]] < 0:
        return _counts_level(held, tree, node, value)
    return _has_level(held, node, value)


def _has_level(held: Holdings, node: IntArray, value: Codes) -> BoolArray:
    """Whether values are in the sets of nodes."""
    word = held.sets[held.offset[node] + value // WORD_BITS]
    return (word >> (value % WORD_BITS).astype(np.uint64)) & np.uint64(1) == 1


def _counts_level(held: Holdings, tree: int, node: IntArray, value: Codes) -> BoolArray:
    """The same by counting: the values of a node are adjacent, as leaves stand in preorder."""
    trees, root = held.forest.trees, held.forest.trees.roots[tree]
    start = np.cumsum(trees.count) - trees.count

    def count(at: IntArray) -> IntArray:
        pairs = zip(at, value, strict=True)
        hits = [trees.values[start[n] :][: held.size[n]] == v for n, v in pairs]
        return np.array([np.count_nonzero(hit) for hit in hits], dtype=np.int64)

    overall, total = count(np.full(node.size, root)), int(held.size[root])
    return _fits(count(node), held.size[node].astype(np.int64), overall, total, held.contradictions)
