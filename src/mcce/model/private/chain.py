"""The trees of all features, released one after the other, and how likely rows are by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...kernels import (
    Codes,
    FloatArray,
    Forest,
    IntArray,
    Trees,
    check_cancellation,
    descend,
    join,
    leaf_frequency,
)
from ...runtime.progress import ProgressBar
from ...tables.schema import EncodedRows, Schema
from ..arrays import tree_sizes
from ..growing import with_decision
from .domains import Domain
from .growing import Binned, Node, Split, add_noise, release_tree
from .leaves import Coding, make_tree
from .noise import Words
from .rows import bin_rows, bins_of_codes
from .settings import Plan


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
