"""What kernels take and give: names for their arrays, and structs of arrays and settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..caching import cached_property

BoolArray: TypeAlias = NDArray[np.bool_]
ByteArray: TypeAlias = NDArray[np.uint8]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Int32Array: TypeAlias = NDArray[np.int32]
# The rank of each cell's value among the values of training.
Codes: TypeAlias = Int32Array
WordArray: TypeAlias = NDArray[np.uint64]

# Stands for the feature of a leaf, which has no split.
LEAF = -1
# The own value may stay whatever a leaf holds.
ANY_LEAF = -2
# Levels in a word of a set.
WORD_BITS = 64


@dataclass(frozen=True, slots=True)
class Growth:
    """Which splits are admissible, and which column, if any, is a decision to skip.

    The last rules keep the cost of columns of very many levels near n log n. They change nothing in
    columns of up to 128 levels and in nodes of up to 1,024 levels.
    """

    min_samples_leaf: int = 5
    min_samples_split: int = 2
    max_depth: int | None = None
    decision_column: int | None = None
    grow_undesired: bool = False
    levels_per_row: int = WORD_BITS
    many_levels: int = 1024
    smallest_part: int = 10
    max_features: int | None = None
    key: int = 0


@dataclass(frozen=True, eq=False)
class SplitColumns:
    """The columns' codes and how each column may be split."""

    codes: Codes | Sequence[Codes]
    by_set: BoolArray
    ordered: BoolArray
    n_codes: IntArray

    @cached_property
    def narrow(self) -> list[np.ndarray]:
        """Each column in the smallest unsigned integers that hold its codes; views if possible."""
        narrow = []
        for codes, n in zip(self.codes, self.n_codes, strict=True):
            dtype = np.min_scalar_type(int(n) - 1)
            unsigned = codes.view(np.uint32) if dtype == np.uint32 else codes.astype(dtype)
            narrow.append(np.ascontiguousarray(unsigned))
        return narrow


@dataclass(frozen=True, slots=True)
class Numbers:
    """A numeric response, in fixed point; a tree divides it by squared error."""

    units: IntArray


@dataclass(frozen=True, slots=True)
class Classes:
    """A categorical response; a tree divides it by Gini impurity."""

    classes: IntArray
    n_classes: int


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Flat arrays of all nodes, all level sets and all leaf values of a list of trees.

    The nodes of a tree are adjacent, in preorder, left child before right.
    """

    roots: IntArray
    feature: Int32Array
    cut: Int32Array
    left: Int32Array
    right: Int32Array
    start: IntArray
    count: Int32Array
    sets: WordArray
    values: Codes


@dataclass(frozen=True, slots=True)
class Boosting:
    """How many trees, and of what size."""

    n_trees: int = 60
    max_leaves: int = 16
    min_samples_leaf: int = 10
    shrinkage: int = 8


@dataclass(frozen=True, slots=True, eq=False)
class BoostedNodes:
    """Trees as arrays, one entry per node but for ``roots``; children stand after their parents."""

    roots: Int32Array
    feature: Int32Array
    cut: Int32Array
    left: Int32Array
    value: IntArray
    gain: FloatArray


@dataclass(frozen=True, slots=True)
class DrawLimits:
    """The values that the draws of each group are restricted to.

    The own value is kept where a node holds no allowed code, and where the code drawn is near the
    own one. So a column without runs never changes.

    Parameters
    ----------
    own : (n_features, n_groups)
        Codes of the groups' own values.
    first, last : (n_features, n_groups)
        The allowed codes are those of ``runs[first:last]``; any code is allowed where ``first`` is
        negative.
    runs : (n_runs, 2)
        First and last code of each run of allowed codes.
    near : (n_features, n_groups, 2)
        First and last of the codes that are too near to the own value to count as a change.
    """

    own: Codes
    first: IntArray
    last: IntArray
    runs: Codes
    near: Codes

    def take(self, groups: IntArray | slice) -> DrawLimits:
        """The limits of some groups.

        Parameters
        ----------
        groups
            Which groups.

        Returns
        -------
        DrawLimits
            Their limits.
        """
        own, first, last = self.own[:, groups], self.first[:, groups], self.last[:, groups]
        return DrawLimits(own, first, last, self.runs, self.near[:, groups])

    def is_limited(self, position: int) -> bool:
        """Whether a feature is limited for some group.

        Parameters
        ----------
        position
            Position of the feature.

        Returns
        -------
        bool
        """
        return bool((self.first[position] >= 0).any())

    def allow(self, position: int, codes: IntArray | Codes) -> BoolArray:
        """Which codes of a feature groups may have.

        Parameters
        ----------
        position
            Position of the feature.
        codes : (n_codes,) or (n_groups, n_codes)
            Codes, the same for all groups or those of each.

        Returns
        -------
        (n_groups, n_codes)
            True where a code is in a run of the group, or the group has no limits.
        """
        runs, is_free = self._runs_of_groups(position), self.first[position] < 0
        shape = is_free.size, codes.shape[-1]
        allowed: BoolArray = np.broadcast_to(is_free[:, None], shape).copy()
        for low, high in runs.transpose(1, 2, 0)[..., None]:
            allowed |= (low <= codes) & (codes <= high)
        return allowed

    def allow_change(self, position: int, codes: IntArray | Codes) -> BoolArray:
        """Which codes of a feature groups may change to: allowed, and not too near to the own one.

        Parameters
        ----------
        position
            Position of the feature.
        codes : (n_codes,) or (n_groups, n_codes)
            Codes, the same for all groups or those of each; none may change to a negative one.

        Returns
        -------
        (n_groups, n_codes)
        """
        return self.allow(position, codes) & ~self.are_near(position, codes) & (codes >= 0)

    def are_near(self, position: int, codes: IntArray | Codes) -> BoolArray:
        """Which codes of a feature are too near to the own value to count as a change.

        Parameters
        ----------
        position
            Position of the feature.
        codes : (n_codes,) or (n_groups, n_codes)
            Codes, the same for all groups or those of each.

        Returns
        -------
        (n_groups, n_codes)
        """
        low, high = self.near[position].T[..., None]
        return np.asarray((low <= codes) & (codes <= high))

    def apply(self, positions: IntArray, codes: Codes) -> Codes:
        """Codes that were drawn without limits, replaced by the own ones where it takes that.

        Parameters
        ----------
        positions : (n_mutable,)
            Positions of the features.
        codes : (n_mutable, n_groups, n_draws)
            The codes drawn.

        Returns
        -------
        (n_mutable, n_groups, n_draws)
        """
        applied = codes.copy()
        for drawn, position in zip(applied, positions.tolist(), strict=True):
            if self.is_limited(position):
                may_change = self.allow_change(position, drawn)
                drawn[:] = np.where(may_change, drawn, self.own[position][:, None])
        return applied

    def evenly_spaced(self, position: int, n_codes: int) -> Codes:
        """Codes spread evenly over each group's runs in a limited feature.

        Parameters
        ----------
        position
            Position of the feature.
        n_codes
            How many codes for each group.

        Returns
        -------
        (n_groups, n_codes)
            The codes; -1 where one would be repeated, or the group has no runs.
        """
        runs = self._runs_of_groups(position)
        sizes = runs[..., 1] - runs[..., 0] + 1
        ranks = (2 * np.arange(n_codes) + 1) * sizes.sum(axis=1)[:, None] // (2 * n_codes)
        codes: Codes = np.full(ranks.shape, -1, dtype=np.int32)
        for first, size in zip(runs[..., 0].T, sizes.T, strict=True):
            inside = (ranks >= 0) & (ranks < size[:, None])
            codes = np.where(inside, first[:, None] + ranks, codes).astype(np.int32)
            # Now counted from the start of the next run.
            ranks = ranks - size[:, None]
        codes[:, 1:][codes[:, 1:] == codes[:, :-1]] = -1
        return codes

    def _runs_of_groups(self, position: int) -> IntArray:
        """Ends of each group's runs, shape (n_groups, n_runs, 2); those that lack are empty."""
        first = self.first[position][:, None]
        n_runs = self.last[position][:, None] - first
        number = np.arange(n_runs.max(initial=0))
        exists = number < n_runs
        runs = np.tile(np.array([0, -1], dtype=np.int64), (*exists.shape, 1))
        runs[exists] = self.runs[(first + number)[exists]]
        return runs


@dataclass(frozen=True, slots=True, eq=False)
class Person:
    """The person for whom ``enumerate_rows`` lists rows.

    Parameters
    ----------
    given, own : (n_features,)
        Tree codes, as ``given`` of a request, and the codes of the person's own values.
    stays : (n_features,)
        The code that a leaf must hold for the own value to stay; -1 if it never stays, -2 if it
        stays in any leaf.
    limits
        The values that the person may have; None for all.
    costs
        What a change to each code costs, the codes of all features one after the other.
    offsets : (n_features,)
        Where the codes of each feature begin in ``costs``.
    """

    given: Codes
    own: Codes
    stays: Codes
    limits: DrawLimits | None
    costs: FloatArray
    offsets: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Enumerated:
    """Rows that ``enumerate_rows`` lists, in order of total cost, then codes.

    Parameters
    ----------
    codes : (n_mutable, n_rows)
        The rows; own values are ``OWN``.
    totals : (n_rows,)
        What the changes of each row cost.
    n_nodes
        Leaves visited.
    complete
        Whether the visit ended before ``max_nodes``.
    """

    codes: Codes
    totals: FloatArray
    n_nodes: int
    complete: bool


@dataclass(frozen=True, eq=False)
class Comparison:
    """The mutable features of a block of people and of their candidates, in column order.

    People of one group share their candidates.
    """

    codes: Codes
    numbers: Sequence[FloatArray | None]
    own_codes: Codes
    own_numbers: FloatArray
    spreads: FloatArray
    group: IntArray
    n_features: int

    def take(self, people: IntArray) -> Comparison:
        """The comparison of some of the people."""
        return replace(
            self,
            own_codes=self.own_codes[:, people],
            own_numbers=self.own_numbers[:, people],
            group=self.group[people],
        )


@dataclass(frozen=True, eq=False)
class Listing:
    """The best candidates of each person, best first, each array of shape (n_people, n_best).

    Entries beyond a person's ``n_allowed`` are 0 and mean nothing.
    """

    draw: Int32Array
    sparsity: Int32Array
    distance: FloatArray
    gower: FloatArray
    n_allowed: IntArray


@dataclass(frozen=True)
class Summation:
    """How the gaps of features make a distance.

    Parameters
    ----------
    squared
        Whether it is the root of the sum of squared gaps, rather than their sum.
    city_block
        Whether the gap of a feature with several dimensions is the sum over them.
    mean
        Whether it is the mean over features, rather than the sum.
    ignores_missing
        Whether features in which either side is missing are left out.

    Examples
    --------
    >>> Summation(squared=True).mean
    False
    """

    squared: bool = False
    city_block: bool = False
    mean: bool = False
    ignores_missing: bool = False


@dataclass(frozen=True, eq=False)
class DistanceAxes:
    """Where the cells of a :class:`Comparison` are on the axes of a distance.

    The axis of a feature holds numbers, points that stand for values, or nothing but whether two
    cells differ.
    """

    coordinates: Sequence[FloatArray | None]
    own_coordinates: Sequence[FloatArray | None]
    spreads: FloatArray
    weights: FloatArray
    n_present: FloatArray
    how: Summation

    def take(self, people: IntArray) -> DistanceAxes:
        """The axes of some of the people."""
        own = [
            None if coordinates is None else coordinates[people]
            for coordinates in self.own_coordinates
        ]
        return replace(self, own_coordinates=own, n_present=self.n_present[people])
