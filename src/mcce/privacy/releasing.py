"""Private trees: their splits, a noisy histogram in every leaf, and codes to draw from it.

Trees are complete: every node above the last level is split, unless nothing is left that could be.
No rule looks at a count without noise. Random splits do not look at rows at all; the exponential
mechanism chooses a split by how well the leaves below would predict. Noise is added to every cell
of every leaf, whether rows have it or not. What follows is free, because no row is read again: the
histogram of a leaf is made non-negative, shrunk towards that of the node above, the more the
smaller it is, and written as a list of codes that the kernels draw from like from any other tree.

Several runs can be made at once, which share the work as long as their splits are the same: fit
makes one; the tests of what a release tells of a person make very many.

Always true: every leaf holds at least one value; without noise, its codes have the frequencies of
the rows' bins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..kernels import (
    LEAF,
    BoolArray,
    Codes,
    FloatArray,
    Forest,
    IntArray,
    Trees,
    check_cancellation,
    descend,
    join,
    leaf_frequency,
    pack_set,
)
from ..model.arrays import tree_sizes
from ..model.growing import with_decision
from ..runtime.progress import ProgressBar
from ..tables.schema import EncodedRows, Schema
from .accounting import Budget, Plan, TreeBudget
from .domains import Domain, bin_rows, bins_of_codes
from .noise import Words, choose, gaussian, geometric, variance_of

# Cuts of a number that rows may choose from.
N_CUTS = 10
# Values of a whole tree, at least and at most. A leaf has at least one for each code, up to a
# number, so that guided draws find a person's own value in it.
FEWEST, MOST, FEWEST_IN_LEAF, MOST_CODES = 2**13, 2**18, 64, 1024


@dataclass(frozen=True, eq=False)
class Split:
    """A split of a node: bins of one column that go left."""

    column: int
    left: BoolArray


@dataclass(frozen=True, eq=False)
class Binned:
    """What a tree learns from: bins of its inputs and of its response."""

    bins: Codes
    n_bins: IntArray
    ordered: BoolArray
    inputs: Sequence[int]
    response: int

    def take(self, rows: IntArray) -> Codes:
        """Bins of the response."""
        return self.bins[self.response, rows]


@dataclass(frozen=True, eq=False)
class Node:
    """A node of the trees of some runs: a leaf with its counts, or a split with two nodes."""

    runs: IntArray
    counts: IntArray | None = None
    below: Sequence[tuple[Split, Node, Node]] = ()


def release_tree(data: Binned, budget: TreeBudget, words: Words, n_runs: int = 1) -> Node:
    """The root of a private tree."""
    box = {column: np.ones(data.n_bins[column], dtype=bool) for column in data.inputs}
    rows = np.arange(data.bins.shape[1])
    return _release(data, budget, words, np.arange(n_runs), rows, box, budget.depth)


def _release(
    data: Binned,
    budget: TreeBudget,
    words: Words,
    runs: IntArray,
    rows: IntArray,
    box: dict[int, BoolArray],
    n_levels: int,
) -> Node:
    """A node whose rows have the bins of ``box``, with so many levels below."""
    # Whether anything can be split depends on earlier splits and on public bins alone.
    open_columns = [column for column, allowed in box.items() if allowed.sum() > 1]
    if not n_levels or not open_columns:
        counts = np.bincount(data.take(rows), minlength=int(data.n_bins[data.response]))
        return Node(runs, add_noise(counts, budget.leaves, words, runs.size))
    below = []
    for split, same in _splits(data, budget, words, runs, rows, box, open_columns):
        goes_left = split.left[data.bins[split.column, rows]]
        halves = []
        for part, left in ((rows[goes_left], True), (rows[~goes_left], False)):
            inside = box[split.column] & (split.left == left)
            within = {**box, split.column: inside}
            halves.append(_release(data, budget, words, same, part, within, n_levels - 1))
        below.append((split, halves[0], halves[1]))
    return Node(runs, below=below)


def _splits(
    data: Binned,
    budget: TreeBudget,
    words: Words,
    runs: IntArray,
    rows: IntArray,
    box: dict[int, BoolArray],
    open_columns: list[int],
) -> list[tuple[Split, IntArray]]:
    """The splits of a node, and the runs that have each."""
    if budget.level is None:
        return [(_random_split(data, words, box, open_columns), runs)]
    listed = [split for column in open_columns for split in _candidates(data, column, box[column])]
    utilities = np.concatenate(
        [_utilities(data, rows, column, listed) for column in open_columns], dtype=np.int64
    )
    chosen = choose(words, utilities, budget.level.choice_rate, runs.size)
    return [(listed[at], runs[chosen == at]) for at in np.unique(chosen)]


def _random_split(
    data: Binned, words: Words, box: dict[int, BoolArray], open_columns: list[int]
) -> Split:
    """A random cut or set of levels of a random column."""
    column = open_columns[int(words.below(len(open_columns), 1)[0])]
    allowed = np.flatnonzero(box[column])
    left = np.zeros(data.n_bins[column], dtype=bool)
    if data.ordered[column]:
        left[: allowed[1 + int(words.below(allowed.size - 1, 1)[0])]] = True
        return Split(column, left)
    while left[allowed].all() or not left[allowed].any():
        left[:] = words.below(2, left.size) == 1
    return Split(column, left)


def _candidates(data: Binned, column: int, allowed: BoolArray) -> list[Split]:
    """The public choice of splits of a column: some cuts, or each level against the others."""
    places, bins = np.flatnonzero(allowed), np.arange(allowed.size)
    if data.ordered[column]:
        cuts = np.unique(np.linspace(1, places.size - 1, min(N_CUTS, places.size - 1)).round())
        return [Split(column, bins < places[int(cut)]) for cut in cuts]
    # Of two levels, one against the other is the same split twice.
    return [Split(column, bins == at) for at in (places[:1] if places.size == 2 else places)]


def _utilities(data: Binned, rows: IntArray, column: int, listed: list[Split]) -> IntArray:
    """For each split of a column, how many rows the most frequent bin on its side has.

    One more row raises it by 0 or 1.
    """
    n_bins, n_response = int(data.n_bins[column]), int(data.n_bins[data.response])
    pairs = data.bins[column, rows] * np.int64(n_response) + data.take(rows)
    table = np.bincount(pairs, minlength=n_bins * n_response).reshape(n_bins, n_response)
    members = np.array([split.left for split in listed if split.column == column])
    left = members.astype(np.int64) @ table
    return left.max(axis=1) + (table.sum(axis=0) - left).max(axis=1)


def add_noise(counts: IntArray, budget: Budget, words: Words, n_runs: int = 1) -> IntArray:
    """Counts with noise on every cell, once for each run.

    Examples
    --------
    >>> add_noise(np.array([0, 3]), Budget(float("inf"), "geometric", "add_remove"), Words(0))
    array([[0, 3]])
    """
    repeated = np.tile(counts.astype(np.int64), (n_runs, 1))
    if not budget.scale:
        return repeated
    if budget.noise == "gaussian":
        noise = gaussian(words, variance_of(budget.scale), repeated.size)
    else:
        noise = geometric(words, 1 / budget.scale, repeated.size)
    return repeated + noise.reshape(repeated.shape)


@dataclass(frozen=True, eq=False)
class Coding:
    """How bins are written as codes."""

    bins: Sequence[Codes]
    by_set: BoolArray


def make_tree(root: Node, response: int, coding: Coding, scale: float) -> Trees:
    """The tree of a single run, with codes to draw in every leaf."""
    total = max(float(_counts(root).sum()), 1.0)
    inflation = np.clip(total, FEWEST, MOST) / total
    # A whole factor keeps the frequencies of a leaf exact.
    factor = float(np.ceil(inflation)) if inflation > 1 else float(inflation)
    writer = _Writer(coding, response, scale, factor)
    n_bins = int(coding.bins[response].max()) + 1
    writer.write(root, np.full(n_bins, 1 / n_bins))
    return writer.trees()


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


def spread(shares: FloatArray, n_values: int, bins: Codes) -> Codes:
    """So many codes whose bins have given shares, evenly spread inside each bin, ascending.

    Examples
    --------
    >>> spread(np.array([0.75, 0.25]), 4, np.array([0, 0, 0, 1])).tolist()
    [0, 1, 2, 3]
    """
    exact = shares * n_values
    # Rounded, so that the last bit of a product cannot turn a whole number into a part.
    whole = np.floor(np.round(exact, 9)).astype(np.int64)
    rest = np.round(exact - whole, 9)
    largest = np.argsort(-rest, kind="stable")[: n_values - int(whole.sum())]
    whole[largest] += 1
    first = np.searchsorted(bins, np.arange(shares.size))
    sizes = np.bincount(bins, minlength=shares.size)
    of = np.repeat(np.arange(shares.size), whole)
    number = np.arange(of.size) - np.repeat(np.cumsum(whole) - whole, whole)
    return (first[of] + (2 * number + 1) * sizes[of] // (2 * whole[of])).astype(np.int32)


def _counts(node: Node) -> IntArray:
    """Noisy counts of all leaves below a node, added."""
    if node.counts is not None:
        return node.counts[0]
    ((_, left, right),) = node.below
    return _counts(left) + _counts(right)


def _n_leaves(node: Node) -> int:
    return 1 if node.counts is not None else sum(_n_leaves(one) for one in node.below[0][1:])


@dataclass(eq=False)
class _Writer:
    """Writes nodes in preorder, as the kernels read them."""

    coding: Coding
    response: int
    scale: float
    factor: float
    feature: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    sets: list[np.ndarray] = field(default_factory=list)
    values: list[Codes] = field(default_factory=list)

    def write(self, node: Node, above: FloatArray) -> None:
        """A node and all below it, given the shares of bins in the node above."""
        counts, at = _counts(node), len(self.feature)
        # The noise of all cells of all leaves below, added.
        noise = self.scale * np.sqrt(counts.size * _n_leaves(node))
        shares = shrink(counts, above, float(noise))
        for listed in (self.feature, self.cut, self.left, self.right, self.start):
            listed.append(0)
        if node.counts is not None:
            self._write_leaf(at, shares, max(int(counts.sum()), 0))
            return
        ((split, left, right),) = node.below
        self.feature[at], self.cut[at] = split.column, self._write_split(split.column, split.left)
        self.left[at] = len(self.feature)
        self.write(left, shares)
        self.right[at] = len(self.feature)
        self.write(right, shares)

    def trees(self) -> Trees:
        """What was written."""
        nodes = {
            name: np.array(getattr(self, name), dtype=np.int32)
            for name in ("feature", "cut", "left", "right")
        }
        leaf = nodes["feature"] == LEAF
        count = np.zeros(leaf.size, dtype=np.int32)
        count[leaf] = [codes.size for codes in self.values]
        sets = np.concatenate([np.empty(0, dtype=np.uint64), *self.sets])
        return Trees(
            roots=np.zeros(1, dtype=np.int64),
            **nodes,
            start=np.array(self.start, dtype=np.int64),
            count=count,
            sets=sets,
            values=np.concatenate(self.values),
        )

    def _write_leaf(self, at: int, shares: FloatArray, n_rows: int) -> None:
        self.feature[at] = LEAF
        self.start[at] = sum(codes.size for codes in self.values)
        bins, n_values = self.coding.bins[self.response], max(round(n_rows * self.factor), 1)
        # A multiple, so that shares that are exact stay so.
        n_values *= -(-min(max(FEWEST_IN_LEAF, bins.size), MOST_CODES) // n_values)
        self.values.append(spread(shares, n_values, bins))

    def _write_split(self, column: int, left: BoolArray) -> int:
        """The last code that goes left, or the place of the set of codes that do."""
        bins = self.coding.bins[column]
        if not self.coding.by_set[column]:
            return int(np.searchsorted(bins, np.flatnonzero(left)[-1], side="right")) - 1
        # The bit after the last code, for levels that are not declared, goes right.
        at = sum(part.size for part in self.sets)
        self.sets.append(pack_set(np.append(left[bins], False)))
        return at


@dataclass(frozen=True, eq=False)
class Chain:
    """What the trees are released from."""

    schema: Schema
    domains: Mapping[Any, Domain]
    order: IntArray
    bins: Codes
    both: bool

    def part(self, place: int, coding: Coding, *, desired: bool) -> Binned:
        """What one tree learns from."""
        known = np.sort(np.concatenate([self.schema.immutable, self.order[:place]]))
        ordered = np.array([feature.ordered for feature in self.schema.features] + [True])
        n_bins = np.array([int(codes.max()) + 1 for codes in coding.bins])
        bins = self.bins[:, self.bins[-1] == desired]
        return Binned(bins, n_bins, ordered, [int(at) for at in known], int(self.order[place]))


@dataclass(frozen=True, eq=False)
class Released:
    """What a fit tells the world: trees, their depths, and about how many rows there were."""

    trees: Trees
    depths: tuple[int, ...]
    n_desired: int


def release_chain(chain: Chain, plan: Plan, words: Words, *, verbose: bool = False) -> Released:
    """All trees, within the budget of a plan."""
    coding = coding_of(chain.schema, chain.domains)
    if plan.counts_rows:
        n_rows = np.array([int((chain.bins[-1] == 1).sum())])
        plan = plan.with_rows(int(add_noise(n_rows, plan.count, words)[0, 0]))
    bar = ProgressBar(chain.order.size, "model", verbose)
    trees, n_desired = [], []
    for place, response in enumerate(chain.order):
        check_cancellation()
        budget = plan.tree(place)
        root = release_tree(chain.part(place, coding, desired=True), budget, words)
        n_desired.append(_total(root))
        if chain.both:
            # Rows of different decisions are disjoint, so both trees cost what one costs.
            other = release_tree(chain.part(place, coding, desired=False), budget, words)
            split = Split(len(chain.schema.features), np.array([True, False]))
            root = Node(root.runs, below=[(split, other, root)])
        trees.append(make_tree(root, int(response), coding, budget.leaves.scale))
        bar.show(place + 1)
    bar.close()
    most = max(round(float(np.mean(n_desired))), 1)
    return Released(join(trees, coding.by_set), plan.depths, most)


def coding_of(schema: Schema, domains: Mapping[Any, Domain]) -> Coding:
    """How the bins of all columns, and of the decision after them, are written as codes."""
    bins = [bins_of_codes(feature, domains[feature.name]) for feature in schema.features]
    by_set = [feature.kind == "categorical" for feature in schema.features]
    return Coding([*bins, np.arange(2, dtype=np.int32)], np.array([*by_set, False]))


def log_likelihood(
    forest: Forest, rows: EncodedRows, domains: Mapping[Any, Domain], decision: bool
) -> FloatArray:
    """Log-probability of each row's mutable values, which are uniform inside a bin."""
    trees, coding = forest.trees, coding_of(rows.schema, domains)
    codes, cells = (
        with_decision(rows.descent, np.full(len(rows), decision)),
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


def _total(node: Node) -> int:
    """Noisy number of rows of a tree."""
    if node.counts is not None:
        return int(node.counts[0].sum())
    return sum(_total(one) for _, *both in node.below for one in both)
