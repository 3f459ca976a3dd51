"""Trees as arrays, and the checks that make arrays from an unknown file safe.

The compiled kernels do not check indices while they descend. Trees from a file are accepted only if
every descent with the desired decision ends at a leaf with values, every level that can occur has
its bit, and every value is a code of its feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ..kernels import LEAF, BoolArray, IntArray, Trees
from ..tables.schema import Schema

DTYPES = {"roots": np.int64, "start": np.int64, "sets": np.uint64}
WORD_BITS = 64


def pack_trees(trees: Trees) -> dict[str, Any]:
    """The arrays of trees by name."""
    return {field.name: getattr(trees, field.name) for field in fields(Trees)}


def unpack_order(plain: Mapping[str, Any], schema: Schema) -> IntArray:
    """The visit order of a chain, checked."""
    order = vector(plain["visit_order"], np.int64)
    if not np.array_equal(np.sort(order), schema.mutable):
        raise ValueError("the visit order does not name every mutable feature once")
    return order


def unpack_trees(plain: Mapping[str, Any], order: IntArray, schema: Schema) -> Trees:
    """Trees that give the features at these positions, checked."""
    arrays = {
        field.name: vector(plain[field.name], DTYPES.get(field.name, np.int32))
        for field in fields(Trees)
    }
    trees = Trees(**arrays)
    if not _is_sound(trees, order, schema):
        raise ValueError("the trees are not whole")
    return trees


def vector(values: Any, dtype: type[np.generic]) -> np.ndarray:
    """One array of this dtype."""
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype != dtype:
        raise ValueError("the arrays of the trees have other dtypes or shapes")
    return values


def _is_sound(trees: Trees, order: IntArray, schema: Schema) -> bool:
    """Whether the trees could have been grown on rows of this schema."""
    n_nodes, roots = trees.feature.size, trees.roots
    by_node = (trees.cut, trees.left, trees.right, trees.start, trees.count)
    if any(array.size != n_nodes for array in by_node) or roots.size != order.size:
        return False
    if not n_nodes or roots[0] != 0 or (np.diff(roots) <= 0).any() or roots[-1] >= n_nodes:
        return False
    tree = np.searchsorted(roots, np.arange(n_nodes), side="right") - 1
    inner = trees.feature != LEAF
    return (
        _is_preorder(trees, tree, inner)
        and _splits_on_known(trees, tree, inner, order, schema)
        and _has_all_bits(trees, inner, schema)
        and _leaves_are_whole(trees, tree, ~inner, order, schema)
    )


def _is_preorder(trees: Trees, tree: IntArray, inner: BoolArray) -> bool:
    """Every node but the roots is the child of one before it, in the same tree."""
    node = np.flatnonzero(inner)
    left, right = trees.left[inner].astype(np.int64), trees.right[inner].astype(np.int64)
    children = np.sort(np.concatenate([left, right]))
    others = np.setdiff1d(np.arange(inner.size), trees.roots)
    if (left != node + 1).any() or (right <= left).any() or not np.array_equal(children, others):
        return False
    return bool((tree[left] == tree[node]).all() and (tree[right] == tree[node]).all())


def _splits_on_known(
    trees: Trees, tree: IntArray, inner: BoolArray, order: IntArray, schema: Schema
) -> bool:
    """Nodes split on immutable features, the decision or what an earlier tree has drawn."""
    n_features = len(schema.features)
    known_from = np.zeros(n_features + 1, dtype=np.int64)
    known_from[order] = np.arange(order.size) + 1
    split_on = trees.feature[inner]
    if (split_on < 0).any() or (split_on > n_features).any():
        return False
    return bool((known_from[split_on] <= tree[inner]).all())


def _has_all_bits(trees: Trees, inner: BoolArray, schema: Schema) -> bool:
    """Sets of levels have a bit for each, and one for those never seen."""
    features = schema.features
    n_words = np.array(
        [f.n_codes // WORD_BITS + 1 if f.kind == "categorical" else 0 for f in features] + [0]
    )
    needed = n_words[trees.feature[inner]]
    by_set = needed > 0
    offset = trees.cut[inner][by_set].astype(np.int64)
    return bool((offset >= 0).all() and (offset + needed[by_set] <= trees.sets.size).all())


def _leaves_are_whole(
    trees: Trees, tree: IntArray, leaf: BoolArray, order: IntArray, schema: Schema
) -> bool:
    """Leaves share out the values, which are codes of their feature in ascending order."""
    count, start = trees.count[leaf].astype(np.int64), trees.start[leaf]
    if (count < 0).any() or int(count.sum()) != trees.values.size:
        return False
    if not np.array_equal(start, np.cumsum(count) - count):
        return False
    # A branch may be empty only where an undesired decision leads: left of a split by decision.
    parent = np.flatnonzero(leaf)[count == 0] - 1
    empty_allowed = (trees.feature[parent] == len(schema.features)) & (trees.cut[parent] == 0)
    if (parent < 0).any() or not empty_allowed.all():
        return False
    n_codes = np.array([schema.features[position].n_codes for position in order])
    most = np.repeat(n_codes[tree[leaf]], count)
    falls = np.flatnonzero(np.diff(trees.values) < 0) + 1
    in_range = (trees.values >= 0) & (trees.values < most)
    return bool(in_range.all() and np.isin(falls, start).all())
