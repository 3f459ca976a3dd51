"""Private trees: random splits, a noisy histogram in every leaf, and codes to draw from it.

Trees are complete: every node above the last level is split, unless nothing is left that could be.
Splits do not look at rows, and no rule looks at a count without noise. Noise is added to every cell
of every leaf, whether rows have it or not. What follows is free, because no row is read again: the
histogram of a leaf is made non-negative, shrunk towards that of the node above, the more the
smaller it is, and written as a list of codes that the kernels draw from like from any other tree.

Always true: every leaf holds at least one value; without noise, its codes have the frequencies of
the rows' bins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..kernels import (
    BoolArray,
    Codes,
    FloatArray,
    Forest,
    IntArray,
    TreeDraft,
    Trees,
    check_cancellation,
    descend,
    join_trees,
    leaf_frequency,
    times_seen_before,
    with_decision,
)
from ..model.arrays import tree_sizes
from ..runtime.progress import ProgressBar
from ..tables.schema import EncodedRows, Schema
from .private_accounting import Plan
from .private_domains import Domain, bin_rows, bins_of_codes
from .private_noise import RandomWords, add_noise

# Values of a whole tree, at least and at most. A leaf has at least one for each code, up to a
# number, so that the exact search finds a person's own value in it.
MIN_TREE_VALUES, MAX_TREE_VALUES, MIN_LEAF_VALUES, MAX_LEAF_VALUES = 2**13, 2**18, 64, 1024


@dataclass(frozen=True, eq=False)
class NoisyNode:
    """A node of a private tree: noisy counts of the leaves below it, added, and its split if any.

    ``goes_left`` says which bins of a column go to the first child.
    """

    counts: IntArray
    n_leaves: int = 1
    column: int = -1
    goes_left: BoolArray | None = None
    children: Sequence[NoisyNode] = ()


@dataclass(frozen=True, eq=False)
class Coding:
    """How the bins of all columns, and of the decision after them, are split and written as codes.

    ``bins`` has the bin of each code.
    """

    bins: Sequence[Codes]
    by_set: BoolArray
    ordered: BoolArray

    @classmethod
    def of(cls, schema: Schema, domains: Mapping[Any, Domain]) -> Coding:
        """The coding of declared domains."""
        features = schema.features
        bins = [bins_of_codes(feature, domains[feature.name]) for feature in features]
        by_set = [feature.kind == "categorical" for feature in features]
        ordered = [feature.ordered for feature in features]
        decision = np.arange(2, dtype=np.int32)
        return cls([*bins, decision], np.array([*by_set, False]), np.array([*ordered, True]))

    def n_bins(self, column: int) -> int:
        """Number of bins of a column."""
        return int(self.bins[column].max()) + 1


def grow_private_chain(
    bins: Codes,
    coding: Coding,
    immutable: IntArray,
    order: IntArray,
    plan: Plan,
    words: RandomWords,
    *,
    both: bool,
    verbose: bool,
) -> tuple[Trees, int]:
    """All trees, within the budget of a plan, and about how many rows are desired, at least 1."""
    declined, desired = (np.flatnonzero(bins[-1] == decision) for decision in (0, 1))
    n_rows = plan.n_rows or 0
    if plan.counts_rows:
        n_rows = int(add_noise(np.array([desired.size]), plan.of_count, words)[0])
    bar = ProgressBar(order.size, "model", verbose)
    trees, n_desired = [], []
    for n_before, response in enumerate(order.tolist()):
        check_cancellation()
        inputs = np.sort(np.concatenate([immutable, order[:n_before]])).tolist()
        grower = _Grower(bins, coding, response, plan.of_tree, words)
        depth = plan.depth_of(coding.n_bins(response), n_rows)
        root = grower.grow(desired, inputs, depth)
        n_desired.append(int(root.counts.sum()))
        if both:
            # Rows of different decisions are disjoint, so both trees cost what one costs.
            other = grower.grow(declined, inputs, depth)
            root = _parent(len(bins) - 1, np.array([True, False]), other, root)
        trees.append(make_tree(root, response, coding, 1 / plan.of_tree))
        bar.show(n_before + 1)
    bar.close()
    return join_trees(trees, coding.by_set), max(round(float(np.mean(n_desired))), 1)


@dataclass(frozen=True, eq=False)
class _Grower:
    """Grows the trees of one response."""

    bins: Codes
    coding: Coding
    response: int
    epsilon: float
    words: RandomWords

    def grow(self, row_numbers: IntArray, inputs: Sequence[int], depth: int) -> NoisyNode:
        """The root of a tree of some rows, whose nodes split on some inputs."""
        box = {column: np.ones(self.coding.n_bins(column), dtype=bool) for column in inputs}
        return self._grow(row_numbers, box, depth)

    def _grow(self, row_numbers: IntArray, box: dict[int, BoolArray], n_levels: int) -> NoisyNode:
        """A node whose rows have the bins of ``box``, with ``n_levels`` below it."""
        # Whether anything can be split depends on earlier splits and on public bins alone.
        open_columns = [column for column, allowed in box.items() if allowed.sum() > 1]
        if not n_levels or not open_columns:
            n_bins = self.coding.n_bins(self.response)
            counts = np.bincount(self.bins[self.response, row_numbers], minlength=n_bins)
            return NoisyNode(add_noise(counts, self.epsilon, self.words))
        column = open_columns[int(self.words.below(len(open_columns), 1)[0])]
        left = self._random_half(box[column], ordered=bool(self.coding.ordered[column]))
        goes_left, children = left[self.bins[column, row_numbers]], []
        for part, side in ((row_numbers[goes_left], left), (row_numbers[~goes_left], ~left)):
            children.append(self._grow(part, {**box, column: box[column] & side}, n_levels - 1))
        return _parent(column, left, *children)

    def _random_half(self, allowed: BoolArray, *, ordered: bool) -> BoolArray:
        """Bins that go left: a random cut or set that leaves allowed ones on both sides."""
        open_bins, left = np.flatnonzero(allowed), np.zeros(allowed.size, dtype=bool)
        if ordered:
            left[: open_bins[1 + int(self.words.below(open_bins.size - 1, 1)[0])]] = True
            return left
        while left[open_bins].all() or not left[open_bins].any():
            left = self.words.below(2, left.size) == 1
        return left


def _parent(column: int, goes_left: BoolArray, left: NoisyNode, right: NoisyNode) -> NoisyNode:
    n_leaves = left.n_leaves + right.n_leaves
    return NoisyNode(left.counts + right.counts, n_leaves, column, goes_left, (left, right))


def make_tree(root: NoisyNode, response: int, coding: Coding, scale: float) -> Trees:
    """The tree with codes to draw in every leaf."""
    total = max(float(root.counts.sum()), 1.0)
    inflation = np.clip(total, MIN_TREE_VALUES, MAX_TREE_VALUES) / total
    # A whole factor keeps the frequencies of a leaf exact.
    factor = float(np.ceil(inflation)) if inflation > 1 else float(inflation)
    bins, draft = coding.bins[response], TreeDraft()

    def write(node: NoisyNode, above: FloatArray) -> None:
        """A node and all below it, given the shares of bins in the node above."""
        # The noise of all cells of all leaves below, added.
        noise = scale * np.sqrt(node.counts.size * node.n_leaves)
        shares = shrink(node.counts, above, float(noise))
        if node.goes_left is None:
            n_values = max(round(max(int(node.counts.sum()), 0) * factor), 1)
            # A multiple keeps exact shares exact.
            n_values *= -(-min(max(MIN_LEAF_VALUES, bins.size), MAX_LEAF_VALUES) // n_values)
            draft.add_leaf(codes_with_shares(shares, n_values, bins))
            return
        left = node.goes_left[coding.bins[node.column]]
        # The bit after the last code, for levels that are not declared, goes right.
        levels = np.append(left, False) if coding.by_set[node.column] else None
        draft.add_split(node.column, int(np.flatnonzero(left)[-1]), levels)
        for child in node.children:
            write(child, shares)

    n_bins = int(bins.max()) + 1
    write(root, np.full(n_bins, 1 / n_bins))
    return draft.finish()


def positive_part(counts: IntArray) -> FloatArray:
    """Noisy counts as frequencies: non-negative, with the same sum if that is positive.

    The same is taken from every count, and what would be negative becomes 0. So small counts that
    are noise vanish, and the others are not inflated.

    Examples
    --------
    >>> positive_part(np.array([6, 3, -1])).tolist()
    [5.5, 2.5, 0.0]
    """
    total = max(int(counts.sum()), 0)
    descending = np.sort(counts)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, counts.size + 1)
    kept = np.flatnonzero(descending > excess)
    taken = excess[kept[-1]] if kept.size else descending[0]
    return np.maximum(counts - taken, 0.0)


def shrink(counts: IntArray, above: FloatArray, noise: float) -> FloatArray:
    """Shares of bins in a node, between its own and those of the node above.

    Examples
    --------
    >>> shrink(np.array([6, 2]), np.array([0.5, 0.5]), 8.0).tolist()
    [0.625, 0.375]
    """
    own = positive_part(counts)
    total = own.sum()
    return above if not total else (own + noise * above) / (total + noise)


def codes_with_shares(shares: FloatArray, n_values: int, bins: Codes) -> Codes:
    """Codes whose bins have given shares, evenly spread inside each bin, ascending.

    Examples
    --------
    >>> codes_with_shares(np.array([0.75, 0.25]), 4, np.array([0, 0, 0, 1])).tolist()
    [0, 1, 2, 3]
    """
    exact = shares * n_values
    # Rounded, because the last bit of a product may keep it from being whole.
    whole = np.floor(np.round(exact, 9)).astype(np.int64)
    rest = np.round(exact - whole, 9)
    largest = np.argsort(-rest, kind="stable")[: n_values - int(whole.sum())]
    whole[largest] += 1
    first = np.searchsorted(bins, np.arange(shares.size))
    sizes = np.bincount(bins, minlength=shares.size)
    of = np.repeat(np.arange(shares.size), whole)
    number = times_seen_before(of)
    return (first[of] + (2 * number + 1) * sizes[of] // (2 * whole[of])).astype(np.int32)


def log_likelihood(
    forest: Forest, rows: EncodedRows, domains: Mapping[Any, Domain], decision: bool
) -> FloatArray:
    """Log-probability of each row's mutable values, which are uniform inside a bin."""
    trees, coding = forest.trees, Coding.of(rows.schema, domains)
    codes, cells = (
        with_decision(rows.tree_codes, np.full(len(rows), decision)),
        bin_rows(rows, domains),
    )
    parts = np.split(trees.values, np.cumsum(tree_sizes(trees))[:-1])
    pairs = zip(forest.responses, parts, strict=True)
    binned = replace(trees, values=np.concatenate([coding.bins[at][part] for at, part in pairs]))
    total = np.zeros(len(rows))
    for tree, position in enumerate(forest.responses):
        leaf = descend(trees, tree, codes, forest.n_levels > 0)
        hits, size = leaf_frequency(binned, leaf, cells[position])
        width = np.bincount(coding.bins[position])[cells[position]]
        with np.errstate(divide="ignore"):
            total += np.log(hits / size) - np.log(width)
    return total
