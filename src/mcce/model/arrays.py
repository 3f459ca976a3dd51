"""Trees as arrays, and the checks that make arrays from an unknown file safe.

The compiled kernels do not check indices while they descend. So what links nodes and leaves is not
in a file but follows from the order of the nodes, preorder, and trees are accepted only if they
could have been grown: splits on columns that are known when the tree is used, at a code or set of
levels of that column; leaves that share out the values, which are codes of the tree's response.
Every chain says for itself which columns its trees may split on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import SavedFileError
from ..kernels import LEAF, WORD_BITS, Int32Array, IntArray, Trees
from ..tables.schema import Schema
from .associations import check_order

STORED: dict[str, type[np.generic]] = {
    "feature": np.int32,
    "cut": np.int32,
    "count": np.int32,
    "values": np.int32,
    "sets": np.uint64,
}


@dataclass(frozen=True)
class ChainRules:
    """What the trees of a chain may hold."""

    schema: Schema
    responses: IntArray
    order: IntArray
    splits_on_decision: bool = False
    grew_undesired: bool = True


def pack_trees(trees: Trees) -> dict[str, Any]:
    """The arrays of trees by name, without those that follow from the order of the nodes."""
    return {name: getattr(trees, name) for name in STORED}


def unpack_order(values: Any, parameter: Any, schema: Schema) -> IntArray:
    """The visit order of a chain, checked against its parameter ``visit_order``."""
    order = vector(values, np.int64)
    if not np.array_equal(np.sort(order), schema.mutable):
        raise SavedFileError("the visit order does not name every mutable feature once")
    check_order(parameter, order, schema)
    return order


def unpack_trees(plain: Any, rules: ChainRules) -> Trees:
    """Trees of a chain with these rules; raises SavedFileError for any others."""
    if not isinstance(plain, Mapping) or set(plain) != set(STORED):
        raise SavedFileError("the arrays of the trees are not those that a chain has")
    arrays = {name: vector(plain[name], dtype) for name, dtype in STORED.items()}
    trees = _linked(rules.responses.size, **arrays)
    if trees is None:
        raise SavedFileError("the trees are not whole: their nodes do not follow each other")
    for sound, why in _CHECKS:
        if not sound(trees, rules):
            raise SavedFileError(f"the trees are not whole: {why}")
    return trees


def vector(values: Any, dtype: type[np.generic]) -> np.ndarray:
    """One array of this dtype."""
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype != dtype:
        raise SavedFileError("the arrays of the trees have other dtypes or shapes")
    return values


def tree_sizes(trees: Trees) -> IntArray:
    """Number of values in the leaves of each tree."""
    return np.add.reduceat(trees.count.astype(np.int64), trees.roots)


def _linked(n_trees: int, feature: Int32Array, **arrays: Any) -> Trees | None:
    """So many trees, whose nodes stand in preorder; None if they do not.

    So which of the nodes are leaves decides roots and children.
    """
    n_nodes, inner = feature.size, feature != LEAF
    if not n_nodes or any(arrays[name].size != n_nodes for name in ("cut", "count")):
        return None
    # The open branches after each node: a split opens one more, a leaf closes one.
    n_open = np.cumsum(np.where(inner, 1, -1))
    least = np.minimum(np.minimum.accumulate(n_open), 0)
    ends = np.flatnonzero(np.diff(least, prepend=0) < 0)
    if ends.size != n_trees or ends[-1] != n_nodes - 1:
        return None
    node, right = np.arange(n_nodes), np.zeros(n_nodes, dtype=np.int32)
    # The right child follows the node that closes the branch on the left.
    by_level = np.sort((n_open + n_nodes) * n_nodes + node)
    left_branch = (n_open[inner] - 1 + n_nodes) * n_nodes + node[inner]
    right[inner] = by_level[np.searchsorted(by_level, left_branch)] % n_nodes + 1
    # Values of leaves stand one after the other.
    before = np.cumsum(arrays["count"], dtype=np.int64) - arrays["count"]
    return Trees(
        roots=np.concatenate([[0], ends[:-1] + 1]),
        feature=feature,
        left=np.where(inner, node + 1, 0).astype(np.int32),
        right=right,
        start=np.where(inner, 0, before),
        **arrays,
    )


def _splits_on_known(trees: Trees, rules: ChainRules) -> bool:
    """Nodes split on immutable features, what an earlier tree has drawn, or the decision."""
    n_features, inner = len(rules.schema.features), trees.feature != LEAF
    never = rules.order.size + 1
    known_from = np.zeros(n_features + 1, dtype=np.int64)
    known_from[rules.order] = np.arange(rules.order.size) + 1
    known_from[n_features] = 0 if rules.splits_on_decision else never
    split_on = trees.feature[inner]
    if (split_on < 0).any() or (split_on > n_features).any():
        return False
    n_known = known_from[rules.responses] - 1
    return bool((known_from[split_on] <= n_known[_tree_of(trees)[inner]]).all())


def _cuts_within(trees: Trees, rules: ChainRules) -> bool:
    """Cuts leave codes on both sides; sets have a bit for each level, and one for unseen ones."""
    features, inner = rules.schema.features, trees.feature != LEAF
    split_on, cut = trees.feature[inner], trees.cut[inner].astype(np.int64)
    n_codes = np.append(rules.schema.n_codes, 2)
    by_set = np.array([feature.kind == "categorical" for feature in features] + [False])
    n_words = np.where(by_set, n_codes // WORD_BITS + 1, 0)[split_on]
    offset = np.cumsum(n_words) - n_words
    return bool(
        not trees.cut[~inner].any()
        and np.where(by_set[split_on], cut == offset, cut < n_codes[split_on] - 1).all()
        and (cut >= 0).all()
        and n_words.sum() == trees.sets.size
    )


def _leaves_are_whole(trees: Trees, rules: ChainRules) -> bool:
    """Leaves share out the values, which are codes of their feature in ascending order."""
    leaf = trees.feature == LEAF
    count, start = trees.count[leaf].astype(np.int64), trees.start[leaf]
    if trees.count[~leaf].any() or (count < 0).any() or int(count.sum()) != trees.values.size:
        return False
    n_codes = rules.schema.n_codes[rules.responses]
    most = np.repeat(n_codes[_tree_of(trees)[leaf]], count)
    falls = np.flatnonzero(np.diff(trees.values) < 0) + 1
    in_range = (trees.values >= 0) & (trees.values < most)
    begins = np.zeros(trees.values.size + 1, dtype=bool)
    begins[start] = True
    return bool(in_range.all() and begins[falls].all())


def _branches_were_grown(trees: Trees, rules: ChainRules) -> bool:
    """A leaf is empty only where an undesired decision leads: left of a split by decision."""
    empty = np.flatnonzero((trees.feature == LEAF) & (trees.count == 0))
    if not empty.size:
        return True
    by_decision = trees.feature[empty - 1] == len(rules.schema.features)
    return bool(not rules.grew_undesired and (empty > 0).all() and by_decision.all())


def _tree_of(trees: Trees) -> IntArray:
    """Number of the tree that each node belongs to."""
    node = np.arange(trees.feature.size)
    return np.searchsorted(trees.roots, node, side="right") - 1


_CHECKS: tuple[tuple[Callable[[Trees, ChainRules], bool], str], ...] = (
    (_splits_on_known, "one splits on a column that it cannot know"),
    (_cuts_within, "one is cut at a value that its column does not have"),
    (_leaves_are_whole, "leaves hold values that their column does not have, or lack some"),
    (_branches_were_grown, "a leaf holds nothing"),
)
