"""One private tree: its splits, and a noisy histogram in every leaf.

Trees are complete: every node above the last level is split, unless nothing is left that could be.
No rule looks at a count without noise. Random splits do not look at rows at all; the exponential
mechanism chooses a split by how well the leaves below would predict. Noise is added to every cell
of every leaf, whether rows have it or not.

Several runs can be made at once, which share the work as long as their splits are the same: fit
makes one; the tests of what a release tells of a person make very many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...kernels import BoolArray, Codes, IntArray
from .ledger import Budget, TreeBudget
from .noise import Words, choose, gaussian, geometric, variance_of

# Cuts of a number that rows may choose from.
N_CUTS = 10


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
