"""FACE: the accepted training row that is reached by the cheapest path of small steps.

Takes training rows and people; gives each person a real row, and the path of real rows to it. One
search from all accepted rows at once finds the cheapest path of every training row; people are
joined to training rows and never to each other.

Always true: all rows of a path have the person's immutable values; every answer is a training row.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from scipy.sparse import csr_array  # type: ignore[import-untyped]
from scipy.sparse.csgraph import dijkstra  # type: ignore[import-untyped]

from mcce.errors import ParameterError, shorten
from mcce.protocols import EncodedRows, FloatArray, IntArray, check_real

from ..parameters import Count, Share
from .baseline import Baseline, Declined, Found, Training
from .nearest import (
    Pairs,
    nearest_rows,
    positions_by_key,
    put_in,
)

ALONE = "no training row to go to has the same immutable values"
CUT_OFF = "no path over training rows with the same immutable values leads to an accepted one"
# The least cost of a step per distance, however dense its surroundings.
MIN_COST = 0.01
NOWHERE = -1


def _check_radius(name: str, value: Any) -> None:
    if value is not None:
        check_real(name, value, "None or a number > 0", zero=False)


def _check_score(name: str, value: Any) -> None:
    if value is not None and not (isinstance(value, Real) and np.isfinite(float(value))):
        raise ParameterError(f"{name} must be None or a number, got {shorten(value)}.")


@dataclass(eq=False, repr=False, kw_only=True)
class FACE(Baseline):
    """Feasible and actionable counterfactual explanations.

    Training rows with equal immutable values are joined if one of them is among the nearest of the
    other; equal rows count as one. The answer is the accepted row at the end of the cheapest path
    from the person, which :meth:`paths` returns. Distances are those of :class:`NearestUnlike`;
    missing values, dates and unseen levels may occur. The number of distances to compute grows with
    the square of the largest group of equal immutable values.

    Guaranteed: every answer and every step towards it is a training row with the person's
    immutable values. Not guaranteed: an answer, where no path leads to an accepted row; the nearest
    row or few changes; privacy, since the answer is the row of another person.

    Parameters
    ----------
    predictor
        The black box: anything that :class:`mcce.MCCE` takes.
    desired
        The desired decision, as for :class:`mcce.MCCE`.
    immutable
        Names of the columns that must not change.
    kinds
        ``"numeric"`` or ``"categorical"`` by column name, if the dtype is misleading.
    n_neighbors
        Number of nearest rows that a row is joined to; equal rows count once.
    radius
        Joins all rows up to this distance instead, a sum of range-scaled differences.
    cost : {"density", "distance", "unit"}
        What a step costs: its distance times minus the logarithm of the density between its ends,
        as published; its distance alone, by which nearly always the nearest accepted row is the
        answer; or 1. Equal rows are no step apart and cost 0.
    min_score
        The least score of an answer; None asks only for the desired decision.
    min_density
        The least density of an answer, from 0 to 1.

    Attributes
    ----------
    cost_ : (n_train,)
        Cost of the cheapest path from each training row, infinite if there is none.
    target_, next_ : (n_train,)
        Positions of the row where that path ends and of its next row; -1 if there is none.
    density_ : (n_train,)
        Density around each training row, from 0 to 1.
    distinct_ : (n_distinct,)
        Positions of the rows that are joined: of equal ones the first.

    Notes
    -----
    The density of a row is the mean of ``exp(-distance / h)`` over itself and its ``n_neighbors``
    nearest rows with the same immutable values, where ``h`` is the median distance to these; where
    there are fewer rows, those that are lacking count 0. The density of a step is the mean of its
    ends. The publication estimates it at their midpoint, but two levels have none.

    References
    ----------
    Poyiadzi, R., Sokol, K., Santos-Rodriguez, R., De Bie, T. and Flach, P. (2020). FACE: feasible
    and actionable counterfactual explanations. AIES.

    Examples
    --------
    >>> from mcce_lab.baselines import FACE
    >>> training = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, 4.0]})
    >>> method = FACE(lambda frame: frame["x"], (3.0, 4.0), radius=0.25, cost="unit").fit(training)
    >>> method.explain(training.head(1)).frame["x"].tolist()
    [3.0]
    >>> method.paths(training.head(1))
                         x
    factual step cost
    0       0    0.0   0.0
            1    1.0   1.0
            2    2.0   2.0
            3    3.0   3.0
    """

    n_neighbors: Count = 50
    radius: Annotated[float | None, _check_radius] = None
    cost: Literal["density", "distance", "unit"] = "density"
    min_score: Annotated[float | None, _check_score] = None
    min_density: Share = 0.0

    def paths(self, X: Any) -> pd.DataFrame:
        """The paths from people to their answers.

        Parameters
        ----------
        X
            People, with the columns of the training data.

        Returns
        -------
        pandas.DataFrame
            One row per step, the person's own first, with the levels ``factual`` (the person's
            label), ``step`` and ``cost`` (of the path up to here). Steps between equal rows and
            people without an answer are left out.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ParameterError, SchemaError, PredictorError
            If a parameter, a column or the predictor cannot be used.
        """
        # A copy: another thread may fit this method again meanwhile.
        fitted = copy.copy(self)
        owner, rows = np.unique(fitted._explain(X).owner), fitted.training_.rows
        people = rows.schema.encode(X).take(owner)
        steps = fitted._steps(people, fitted._attach(people))
        at = steps["owner"].to_numpy()
        moved = np.repeat(steps[["moved"]].to_numpy(), rows.schema.mutable.size, axis=1)
        frame = put_in(people, rows, at, steps["row"].to_numpy(), moved)
        levels: list[Any] = [people.index.take(at), steps["step"], steps["cost"]]
        index = pd.MultiIndex.from_arrays(levels, names=["factual", "step", "cost"])
        return people.in_given_order(frame).set_axis(index)

    def _learn(self, training: Training, y: Any) -> None:
        rows = training.rows
        self.distinct_, first, self.copies_ = _distinct(rows)
        near = self._near_rows(rows, k=self.n_neighbors + 1)
        counted = _count(near, self._n_others(near), self.n_neighbors)
        spread = np.repeat(near.distance, counted * self.copies_[near.owner])
        self.bandwidth_ = float(np.median(spread[spread > 0])) if (spread > 0).any() else 1.0
        self.density_: FloatArray = self._density(near, counted, len(rows))[first]
        joined = near if self.radius is None else self._near_rows(rows, radius=self.radius)
        joined = joined.take(joined.row != joined.owner)
        if self.radius is None:
            joined = joined.take(joined.rank < self.n_neighbors)
        graph = _symmetric(
            joined, self._step_costs(joined, self.density_, self.density_), len(rows)
        )
        target = training.scored.valid & (self.density_ >= self.min_density)
        if self.min_score is not None:
            target &= training.scored.score >= self.min_score
        cost, following, end = cheapest_paths(graph, np.flatnonzero(target))
        self.cost_, self.next_, self.target_ = cost[first], following[first], end[first]

    def _near_rows(
        self, rows: EncodedRows, *, k: int | None = None, radius: float = np.inf
    ) -> Pairs:
        """Distinct training rows and those near them, themselves included."""
        some = rows.take(self.distinct_)
        near = nearest_rows(some, rows, self.distinct_, k=k, radius=radius)
        return Pairs(self.distinct_[near.owner], near.row, near.distance)

    def _n_others(self, pairs: Pairs) -> IntArray:
        """How many training rows each pair stands for, without the owner itself."""
        return self.copies_[pairs.row] - (pairs.row == pairs.owner)

    def _search(self, declined: Declined) -> Found:
        rows, people = self.training_.rows, declined.rows
        first = self._attach(people)
        reachable = np.isfinite(first.distance)
        owner = first.owner[reachable]
        lonely = np.setdiff1d(np.arange(len(people)), first.owner)
        reasons = dict.fromkeys(first.owner[~reachable].tolist(), CUT_OFF)
        reasons |= dict.fromkeys(lonely.tolist(), ALONE)
        frame = put_in(people, rows, owner, self.target_[first.row[reachable]])
        return Found(owner, frame, reasons)

    def _attach(self, people: EncodedRows) -> Pairs:
        """Where each person's cheapest path begins; the distance is the cost of the whole path."""
        rows, among, density = self.training_.rows, self.distinct_, np.zeros(len(people))
        k, radius = (self.n_neighbors, np.inf) if self.radius is None else (None, self.radius)
        pairs = nearest_rows(people, rows, among, k=k, radius=radius)
        if self.cost == "density":
            near = nearest_rows(people, rows, among, k=self.n_neighbors)
            counted = _count(near, self.copies_[near.row], self.n_neighbors)
            density = self._density(near, counted, len(people))
        total = self._step_costs(pairs, density, self.density_) + self.cost_[pairs.row]
        order = np.lexsort((pairs.row, total, pairs.owner))
        best = order[np.unique(pairs.owner[order], return_index=True)[1]]
        return Pairs(pairs.owner[best], pairs.row[best], total[best])

    def _density(self, near: Pairs, counted: IntArray, n_rows: int) -> FloatArray:
        """Density around rows, given their nearest ones and how many rows each of these counts."""
        close: FloatArray = np.exp(-near.distance / self.bandwidth_)
        total = np.bincount(near.owner, weights=counted * close, minlength=n_rows)
        return (1.0 + total.astype(np.float64)) / (1.0 + self.n_neighbors)

    def _step_costs(self, pairs: Pairs, own: FloatArray, density: FloatArray) -> FloatArray:
        """Cost of each step, given the densities of both sides."""
        if self.cost == "unit":
            return (pairs.distance > 0).astype(np.float64)
        if self.cost == "distance":
            return pairs.distance
        between = (own[pairs.owner] + density[pairs.row]) / 2
        return pairs.distance * np.maximum(-np.log(between), MIN_COST)

    def _steps(self, people: EncodedRows, first: Pairs) -> pd.DataFrame:
        """All steps of people who have an answer, by person: ``owner``, ``row``, ``cost``, ..."""
        exact, owner, row = self.training_.rows.codes, first.owner, first.row
        steps = [pd.DataFrame({"owner": owner, "row": row, "cost": 0.0, "moved": False})]
        before, total = people.codes[:, owner], first.distance
        while owner.size:
            moved = (exact[:, row] != before).any(axis=0)
            cost = total - self.cost_[row]
            step = pd.DataFrame({"owner": owner, "row": row, "cost": cost, "moved": moved})
            steps.append(step[moved])
            on = self.next_[row] != NOWHERE
            before, owner, total = exact[:, row[on]], owner[on], total[on]
            row = self.next_[row[on]]
        table = pd.concat(steps).sort_values("owner", kind="stable")
        return table.assign(step=table.groupby("owner").cumcount())


def cheapest_paths(graph: csr_array, targets: IntArray) -> tuple[FloatArray, IntArray, IntArray]:
    """The cheapest path from every node to its cheapest target, all in one search.

    Examples
    --------
    >>> steps = np.array([0, 1, 1, 2]), np.array([1, 0, 2, 1])
    >>> cheapest_paths(csr_array((np.array([2.0, 2.0, 1.0, 1.0]), steps)), np.array([2]))
    (array([3., 1., 0.]), array([ 1,  2, -1]), array([2, 2, 2]))
    """
    if not targets.size:
        nowhere = np.full(graph.shape[0], NOWHERE)
        return np.full(graph.shape[0], np.inf), nowhere, nowhere
    # SciPy up to 1.14 takes no wider positions.
    places = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)
    graph = csr_array((graph.data, *places), shape=graph.shape)
    cost, before, _ = dijkstra(graph, indices=targets, min_only=True, return_predecessors=True)
    # SciPy writes -9999 for none.
    following = _first_of_equals(graph, cost, np.where(before < 0, NOWHERE, before))
    return cost, following, _ends(following, targets)


def _first_of_equals(graph: csr_array, cost: FloatArray, following: IntArray) -> IntArray:
    """The next node of each path: of equally cheap ones the first, as versions of SciPy differ."""
    following = following.astype(np.int64)
    node = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    other = graph.indices.astype(np.int64)
    # Steps that cost nothing could lead in a circle: those stay as they were found.
    cheapest = (cost[other] + graph.data == cost[node]) & (cost[other] < cost[node])
    node, other = node[cheapest], other[cheapest]
    order = np.lexsort((other, node))
    nodes, first = np.unique(node[order], return_index=True)
    following[nodes] = other[order][first]
    return following


def _ends(following: IntArray, targets: IntArray) -> IntArray:
    """Where the path of each node ends, -1 if it has none."""
    end = np.where(following == NOWHERE, np.arange(following.size), following)
    while not np.array_equal(end[end], end):
        end = end[end]
    return np.where(np.isin(end, targets), end, NOWHERE)


def _symmetric(pairs: Pairs, cost: FloatArray, n_rows: int) -> csr_array:
    """The graph in which two rows are joined if either is near the other."""
    one, other = np.minimum(pairs.owner, pairs.row), np.maximum(pairs.owner, pairs.row)
    _, first = np.unique(one * n_rows + other, return_index=True)
    one, other, cost = one[first], other[first], cost[first]
    places = np.concatenate([one, other]), np.concatenate([other, one])
    return csr_array((np.concatenate([cost, cost]), places), shape=(n_rows, n_rows))


def _distinct(rows: EncodedRows) -> tuple[IntArray, IntArray, IntArray]:
    """Positions of rows that differ, the first one equal to each row, and how many equal it."""
    first, copies = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.int64)
    for equal in positions_by_key(rows.codes.T).values():
        first[equal], copies[equal] = equal[0], equal.size
    return np.unique(first), first, copies


def _count(pairs: Pairs, n_each: IntArray, most: int) -> IntArray:
    """How many of the ``n_each`` rows that a pair stands for are among the ``most`` nearest."""
    starts = np.flatnonzero(pairs.rank == 0)
    total = np.cumsum(n_each)
    before_owner = np.repeat(total[starts] - n_each[starts], np.diff(starts, append=len(pairs)))
    return np.clip(most - (total - n_each - before_owner), 0, n_each)
