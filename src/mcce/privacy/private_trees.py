"""The chain of trees with differential privacy.

As :mod:`mcce.model.trees`, one tree for each mutable feature given the immutable ones and those
before it, but grown from declared domains and noisy counts: what is fitted, drawn and saved tells
next to nothing of any single training row. The predictor is taken as public.

Splits are random and do not look at rows: every node above the last level is split, unless nothing
is left that could be. So the leaves of a tree, by the bins of its feature, are a partition of all
rows, whose cells are counted with noise, whether rows have them or not. What follows is free,
because no row is read again: the histogram of a leaf is made non-negative, shrunk towards that of
the node above, the more the smaller it is, and written as a list of codes that the kernels draw
from like from any other tree.

Always true: rows are read through their bins alone, and only with noise, which does not come from
the seed of the explainer; a draw is a declared level or atom, or a value of a declared bin; without
noise, the codes of a leaf have the frequencies of the rows' bins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from ..errors import SavedFileError
from ..kernels import (
    LEAF,
    BoolArray,
    Codes,
    FloatArray,
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
from ..model.growing import check_decisions
from ..model.leaves import LeafChain, ListedLeaves
from ..parameters import check_real, check_whole
from ..runtime.progress import ProgressBar
from ..tables.schema import EncodedRows, Schema
from .private_domains import (
    Domain,
    bin_rows,
    check_public,
    encode_public,
    read_domains,
)
from .private_noise import COUNT_SHARE, Budget

# The deepest trees, and the deepest that are chosen by the number of rows.
MAX_PRIVATE_DEPTH, MAX_CHOSEN_DEPTH = 12, 10
# Values of a whole tree, at least and at most. A leaf has at least one for each code, up to a
# number, so that the exact search finds a person's own value in it.
MIN_TREE_VALUES, MAX_TREE_VALUES, MIN_LEAF_VALUES, MAX_LEAF_VALUES = 2**13, 2**18, 64, 1024


class PrivateTrees(ListedLeaves, LeafChain, BaseEstimator):
    """Trees that are learned with differential privacy; by name ``"private"``.

    Every training row is first moved into the declared domains and replaced by its bins. Splits
    are random; every leaf holds a histogram with noise by OpenDP. Declared levels and atoms are
    drawn, and values spread evenly over bins, never training values.

    Parameters
    ----------
    domains
        The public domain of every column: a mapping from names to :class:`Domain`, or the path of
        a JSON file. There is no default: domains that are read from rows would give them away.
    epsilon
        The budget of a fit, for tables that differ by one row more or less. Smaller is more
        private; infinity adds no noise and is not private, and such an explainer cannot be saved.
    depth
        Depth of the trees. None is for each tree the depth at which the noise of a leaf is worth a
        tenth of its rows, and spends 1 % of the budget on a noisy count of the rows with the
        desired decision.
    decisions
        Decisions that rows can be drawn for. Only rows with one of them are read.

    Attributes
    ----------
    ledger_ : pandas.DataFrame
        What the fit has spent, for tables that differ by one row more or less: mechanism, scope,
        sensitivity and epsilon of each release.
    n_desired_ : int
        A noisy count of the rows with the desired decision, at least 1.
    forest_ : Forest
        All that was learned; ``trees_``, ``visit_order_`` and ``n_levels_`` are parts of it.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [30, 40] * 500, "salary": range(1000)})
    >>> domains = {"age": Domain(levels=[30, 40]), "salary": Domain(low=0, high=2000, step=1)}
    >>> private = PrivateTrees(domains=domains, epsilon=2.0, depth=1)
    >>> rows = private.encode_training(frame, immutable=["age"])
    >>> private.fit(rows, np.ones(1000, dtype=bool)).ledger_
       mechanism           scope  sensitivity  epsilon
    0  geometric  salary, leaves          1.0      2.0
    """

    capabilities = replace(ListedLeaves.capabilities, privacy=True)
    # Columns in their order: any other would be read from the rows.
    visit_order = "data"

    def __init__(
        self,
        *,
        domains: Any = None,
        epsilon: float = 1.0,
        depth: int | None = None,
        decisions: tuple[bool, ...] = (True,),
    ) -> None:
        self.domains = domains
        self.epsilon = epsilon
        self.depth = depth
        self.decisions = decisions

    def encode_training(self, data: Any, **names: Any) -> EncodedRows:
        """Training rows, moved into the domains and encoded with their schema.

        Parameters
        ----------
        data
            The training rows.
        **names
            As for :meth:`Schema.learn_rows`.

        Returns
        -------
        EncodedRows
            The rows that :meth:`fit` takes.
        """
        self._check()
        return encode_public(self.domains, data, **names)

    def fit(
        self,
        rows: EncodedRows,
        is_desired: BoolArray,
        *,
        seed: int = 0,
        n_jobs: int | None = 1,
        verbose: bool = False,
    ) -> Self:
        """Grow one private tree per mutable feature; each call spends the budget again.

        Parameters
        ----------
        rows, is_desired
            As for :meth:`mcce.protocols.Generator.fit`, in the schema of :meth:`encode_training`.
            Rows with a cell that is not declared are left out.
        seed
            Seed of the splits, which are public. The noise has none: no two fits are equal.
        n_jobs
            Ignored.
        verbose
            Whether to show a progress bar.

        Returns
        -------
        PrivateTrees
            Itself.
        """
        self._check()
        domains = check_public(rows.schema, self.domains)
        order, coding = rows.schema.mutable, Coding.of(rows.schema, domains)
        budget, both = self._budget_for(order), False in self.decisions
        bins = with_decision(bin_rows(rows, domains), is_desired)
        # A cell that is not declared has no bin; such rows are left out, as by encode_training.
        bins = bins[:, np.isin(is_desired, self.decisions) & (bins >= 0).all(axis=0)]
        n_rows = 0
        if budget.counts_rows:
            desired = np.flatnonzero(bins[-1])
            n_rows = int(budget.count(COUNT_SHARE, np.zeros_like(desired), 1)[0])
        random, bar = np.random.default_rng(seed), ProgressBar(order.size, "model", verbose)
        trees, n_desired = [], []
        for n_before, response in enumerate(order.tolist()):
            check_cancellation()
            inputs = np.sort(np.concatenate([rows.schema.immutable, order[:n_before]])).tolist()
            depth = self._depth_of(coding.n_bins(response), n_rows, budget)
            tree = random_splits(coding, inputs, depth, random, both=both)
            counts = _count(tree, bins, response, coding, budget)
            trees.append(fill(tree, counts, response, coding, budget.scale(budget.of_tree)))
            # Leaves of rows with the undesired decision come first.
            is_right = np.flatnonzero(tree.feature == LEAF) >= tree.right[0]
            n_desired.append(counts[is_right if both else slice(None)].sum())
            bar.show(n_before + 1)
        bar.close()
        self.n_desired_: int = max(round(float(np.mean(n_desired))), 1)
        return self._keep(rows.schema, order, join_trees(trees, coding.by_set))

    @property
    def condition_on_decision(self) -> bool:  # type: ignore[override]
        """Whether trees split on the decision: those of both decisions do, first of all."""
        return False in self.decisions

    def _check(self) -> None:
        check_real("epsilon", self.epsilon, "a number above 0", zero=False, infinite=True)
        if self.depth is not None:
            check_whole("depth", self.depth, 0, MAX_PRIVATE_DEPTH)
        check_decisions(self.decisions)

    def _budget_for(self, order: IntArray) -> Budget:
        counts_rows = self.depth is None and not math.isinf(self.epsilon)
        return Budget(float(self.epsilon), order.size, counts_rows)

    def _depth_of(self, n_bins: int, n_rows: int, budget: Budget) -> int:
        """Depth of a tree; by default that at which the noise of a leaf is a tenth of its rows."""
        if self.depth is not None:
            return int(self.depth)
        if math.isinf(self.epsilon):
            return MAX_CHOSEN_DEPTH
        ratio = n_rows / (10 * n_bins * budget.scale(budget.of_tree))
        return min(int(math.log2(ratio)), MAX_CHOSEN_DEPTH) if ratio > 1 else 0

    def _keep(self, schema: Schema, order: IntArray, trees: Trees) -> Self:
        self.domains_: dict[Any, Domain] = check_public(schema, self.domains)
        self._budget = self._budget_for(order)
        return super()._keep(schema, order, trees)

    @property
    def ledger_(self) -> pd.DataFrame:
        """What the fit has spent, by release."""
        return self._budget.ledger([self.schema_.names[at] for at in self.visit_order_])

    def saved_params(self) -> dict[str, Any]:
        """Parameters as plain values: the domains themselves, not a file that they come from.

        Returns
        -------
        dict
            Parameters by name.

        Raises
        ------
        SavedFileError
            If a file would tell of training rows, because there is no noise.
        """
        if math.isinf(self.epsilon):
            raise SavedFileError(
                "Cannot save private trees without noise: the file would tell of training rows. "
                "Fit with a finite epsilon. Nothing was written."
            )
        domains = {name: asdict(one) for name, one in read_domains(self.domains).items()}
        return self.get_params() | {"domains": domains}

    def log_likelihood(self, rows: EncodedRows, *, decision: bool = True) -> FloatArray:
        """Log-probability of each row's mutable values, which are uniform inside a bin.

        Parameters
        ----------
        rows
            The rows.
        decision
            The decision that they are given.

        Returns
        -------
        (n_rows,)
            Log-probabilities; minus infinity where a bin cannot be drawn.
        """
        self._check_grown_for(decision)
        trees, coding = self.trees_, Coding.of(rows.schema, self.domains_)
        codes = with_decision(rows.tree_codes, np.full(len(rows), decision))
        cells, total = bin_rows(rows, self.domains_), np.zeros(len(rows))
        parts = np.split(trees.values, np.cumsum(tree_sizes(trees))[:-1])
        pairs = zip(self.visit_order_, parts, strict=True)
        binned = replace(trees, values=np.concatenate([coding.bins[at][v] for at, v in pairs]))
        for tree, position in enumerate(self.visit_order_):
            leaf = descend(trees, tree, codes, self.n_levels_ > 0)
            hits, size = leaf_frequency(binned, leaf, cells[position])
            width = np.bincount(coding.bins[position])[cells[position]]
            with np.errstate(divide="ignore"):
                total += np.log(hits / size) - np.log(width)
        return total


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
        bins = [domains[feature.name].bin_of_code for feature in features]
        by_set = [feature.kind == "categorical" for feature in features]
        ordered = [feature.ordered for feature in features]
        decision = np.arange(2, dtype=np.int32)
        return cls([*bins, decision], np.array([*by_set, False]), np.array([*ordered, True]))

    def n_bins(self, column: int) -> int:
        """Number of bins of a column."""
        return int(self.bins[column].max()) + 1


def random_splits(
    coding: Coding, inputs: Sequence[int], depth: int, random: np.random.Generator, *, both: bool
) -> Trees:
    """A tree that splits the bins of some columns at random, with empty leaves.

    For both decisions, the root splits on them.
    """
    draft = TreeDraft()

    def write(box: dict[int, BoolArray], n_levels: int) -> None:
        """A node whose rows have the bins of ``box``, with ``n_levels`` below it."""
        open_columns = [column for column, allowed in box.items() if allowed.sum() > 1]
        if not n_levels or not open_columns:
            draft.add_leaf(np.empty(0, dtype=np.int32))
            return
        column = open_columns[random.integers(len(open_columns))]
        left = _random_half(box[column], random, ordered=bool(coding.ordered[column]))
        # The bit after the last level, for those that are not declared, goes right.
        levels = np.append(left, False) if coding.by_set[column] else None
        draft.add_split(column, int(np.flatnonzero(left)[-1]), levels)
        for side in (left, ~left):
            write({**box, column: box[column] & side}, n_levels - 1)

    if both:
        draft.add_split(len(coding.bins) - 1, 0, None)
    for _ in range(1 + both):
        write({column: np.ones(coding.n_bins(column), dtype=bool) for column in inputs}, depth)
    return draft.finish()


def _random_half(allowed: BoolArray, random: np.random.Generator, *, ordered: bool) -> BoolArray:
    """Bins that go left: a random cut or set that leaves allowed ones on both sides."""
    open_bins = np.flatnonzero(allowed)
    if ordered:
        return np.arange(allowed.size) < open_bins[1 + random.integers(open_bins.size - 1)]
    left = np.zeros(allowed.size, dtype=bool)
    while left[open_bins].all() or not left[open_bins].any():
        left = random.integers(2, size=left.size) == 1
    return left


def _count(tree: Trees, bins: Codes, response: int, coding: Coding, budget: Budget) -> IntArray:
    """How many rows each bin of a tree's response has in each leaf, with noise."""
    leaves, n_bins = np.flatnonzero(tree.feature == LEAF), coding.n_bins(response)
    leaf = np.searchsorted(leaves, descend(tree, 0, bins, coding.by_set))
    cells = leaf * n_bins + bins[response]
    return budget.count(budget.of_tree, cells, leaves.size * n_bins).reshape(-1, n_bins)


def fill(tree: Trees, counts: IntArray, response: int, coding: Coding, scale: float) -> Trees:
    """A tree of bins with noisy counts as one of codes, which can be drawn from its leaves."""
    leaf, n_bins = tree.feature == LEAF, counts.shape[1]
    splits, total = np.flatnonzero(~leaf), np.zeros((leaf.size, n_bins), dtype=np.int64)
    n_leaves, total[leaf] = leaf.astype(np.int64), counts
    for node in splits[::-1]:
        children = [tree.left[node], tree.right[node]]
        total[node], n_leaves[node] = total[children].sum(axis=0), n_leaves[children].sum()
    # The noise of all cells of all leaves below, added.
    noise = scale * np.sqrt(n_bins * n_leaves)
    shares = np.full((leaf.size, n_bins), 1 / n_bins)
    shares[0] = shrink(total[0], shares[0], noise[0])
    for node in splits:
        for child in (tree.left[node], tree.right[node]):
            shares[child] = shrink(total[child], shares[node], noise[child])
    n_values = _sizes(counts.sum(axis=1), coding.bins[response].size)
    values = [
        codes_with_shares(share, n, coding.bins[response])
        for share, n in zip(shares[leaf], n_values.tolist(), strict=True)
    ]
    start, count, cut = tree.start.copy(), tree.count.copy(), tree.cut.copy()
    start[leaf], count[leaf] = np.cumsum(n_values) - n_values, n_values
    for node in splits[~coding.by_set[tree.feature[splits]]]:
        # The last code of the last bin on the left.
        bins = coding.bins[tree.feature[node]]
        cut[node] = np.searchsorted(bins, cut[node], side="right") - 1
    return replace(tree, cut=cut, start=start, count=count, values=np.concatenate(values))


def _sizes(counts: IntArray, n_codes: int) -> IntArray:
    """How many values each leaf of a tree holds, in proportion to its noisy count of rows."""
    total = max(float(counts.sum()), 1.0)
    factor = np.clip(total, MIN_TREE_VALUES, MAX_TREE_VALUES) / total
    # A whole factor keeps the frequencies of a leaf exact.
    factor = np.ceil(factor) if factor > 1 else factor
    sizes = np.maximum(np.round(np.maximum(counts, 0) * factor), 1).astype(np.int64)
    # And so does a multiple.
    least = min(max(MIN_LEAF_VALUES, n_codes), MAX_LEAF_VALUES)
    return sizes * -(-least // sizes)


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
    # By rounded sums, so that every bin is within one of its share, and whole numbers are exact.
    ends = np.rint(np.cumsum(shares) * n_values).astype(np.int64)
    whole = ends - np.append(0, ends[:-1])
    first = np.searchsorted(bins, np.arange(shares.size))
    sizes = np.bincount(bins, minlength=shares.size)
    of = np.repeat(np.arange(shares.size), whole)
    number = times_seen_before(of)
    return (first[of] + (2 * number + 1) * sizes[of] // (2 * whole[of])).astype(np.int32)
