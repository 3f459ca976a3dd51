"""LiCE: the nearest row that a network accepts and a sum-product network finds likely.

Written from the publication (Němeček, Pevný and Mareček 2025), since its code is no installable
package: a mixed-integer program holds the network, one binary variable for each rectified unit, and
the sum-product network in logarithms, where a sum is at least its largest part, so that the
likelihood asked for is reached. HiGHS, which comes with SciPy, solves it in place of Gurobi.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp  # type: ignore[import-untyped]
from scipy.sparse import csr_array  # type: ignore[import-untyped]
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]
from sklearn.cluster import KMeans

from mcce.errors import PredictorError
from mcce.protocols import EncodedRows, FloatArray, IntArray

from ..parameters import Count, Late, Positive, Seed, Share
from .baseline import Baseline, Declined, Found, Training
from .deep.descent import affine_slopes, desired_end, network_inputs
from .space import Space, complete_rows, search_complete

INCOMPLETE = "a number is missing, and the program needs complete numbers"
NOTHING = "no row was found that is accepted and likely enough, within the time"
# Columns that depend on each other by more than this stay together; random features that find it.
DEPENDENT, N_FEATURES = 0.3, 10
MAX_BINS = 10
# How far beyond the threshold the network's output must be, against errors of the solver.
MARGIN = 1e-4
# A number on the edge of two bins is in the upper one, as where likelihoods are computed.
EDGE = 1e-5
# Numbers with more multiples of their unit are continuous in the program.
MAX_MULTIPLES = 10_000


@dataclass(frozen=True, eq=False)
class Node:
    """A node of a sum-product network: a leaf has a column, a sum has log weights."""

    children: tuple[Node, ...] = ()
    log_weights: FloatArray | None = None
    column: int = -1
    # Of a leaf: the ends of bins, empty for levels, and the log density of each bin or level.
    edges: FloatArray = field(default_factory=lambda: np.empty(0))
    logs: FloatArray = field(default_factory=lambda: np.empty(0))

    def log_likelihood(self, rows: FloatArray) -> FloatArray:
        """Log-likelihood of rows, shape (n_rows,)."""
        if self.column >= 0:
            return self.logs[self.places(rows[:, self.column])]
        parts = np.array([child.log_likelihood(rows) for child in self.children])
        if self.log_weights is None:
            return parts.sum(axis=0)
        return np.asarray(np.logaddexp.reduce(parts + self.log_weights[:, None], axis=0))

    def places(self, values: FloatArray) -> IntArray:
        """The bin or level of values."""
        if not self.edges.size:
            return np.minimum(values, self.logs.size - 1).astype(np.int64)
        return np.searchsorted(self.edges[1:-1], values, side="right")


def learn_spn(rows: FloatArray, n_levels: Sequence[int], min_rows: int, seed: int) -> Node:
    """A sum-product network, split by columns that are independent and by clusters of rows.

    ``n_levels`` is 0 for numbers, which lie between 0 and 1.
    """
    chance = np.random.default_rng(seed)

    def leaf(part: FloatArray, column: int) -> Node:
        values, levels = part[:, column], n_levels[column]
        if levels:
            counts = np.bincount(values.astype(np.int64), minlength=levels)
            return Node(column=column, logs=np.log((counts + 1.0) / (counts.sum() + levels)))
        inner = np.histogram_bin_edges(values, bins="auto")
        n_bins = min(MAX_BINS, inner.size - 1)
        edges = np.unique([0.0, *np.quantile(values, np.linspace(0, 1, n_bins + 1)), 1.0])
        counts = np.histogram(values, edges)[0]
        shares = (counts + 1.0) / (counts.sum() + counts.size)
        return Node(column=column, edges=edges, logs=np.log(shares / np.diff(edges)))

    def grow(part: FloatArray, columns: IntArray) -> Node:
        if columns.size == 1:
            return leaf(part, int(columns[0]))
        groups = [columns[at : at + 1] for at in range(columns.size)]
        if len(part) >= min_rows:
            groups = list(_independent(part, columns, n_levels, chance))
            if len(groups) == 1:
                return split(part, columns)
        return Node(tuple(grow(part, group) for group in groups))

    def split(part: FloatArray, columns: IntArray) -> Node:
        model = KMeans(2, n_init=1, random_state=int(chance.integers(2**31)))
        label = model.fit_predict(_features(part, columns, n_levels))
        counts = np.bincount(label, minlength=2)
        if not counts.all():
            return Node(tuple(leaf(part, column) for column in columns.tolist()))
        children = tuple(grow(part[label == at], columns) for at in range(2))
        return Node(children, np.log(counts / counts.sum()))

    return grow(rows, np.arange(rows.shape[1]))


def _features(part: FloatArray, columns: IntArray, n_levels: Sequence[int]) -> FloatArray:
    """Numbers as they are, and indicators of levels."""
    parts = [
        part[:, [c]] if not n_levels[c] else part[:, [c]] == np.arange(n_levels[c])
        for c in columns.tolist()
    ]
    return np.hstack(parts).astype(np.float64)


def _independent(
    part: FloatArray, columns: IntArray, n_levels: Sequence[int], chance: np.random.Generator
) -> Iterator[IntArray]:
    """Groups of columns that depend on each other, by randomised dependence coefficients."""
    bases = [_basis(part[:, c], n_levels[c], chance) for c in columns.tolist()]
    joined = np.eye(columns.size)
    for one, first in enumerate(bases):
        for other in range(one):
            if first.size and bases[other].size:
                most = np.linalg.svd(first.T @ bases[other], compute_uv=False)[0]
                joined[one, other] = joined[other, one] = most > DEPENDENT
    n_groups, group = connected_components(csr_array(joined), directed=False)
    for at in range(n_groups):
        yield columns[group == at]


def _basis(values: FloatArray, levels: int, chance: np.random.Generator) -> FloatArray:
    """Orthonormal random features of a column, centred; none of a constant one."""
    if levels:
        features = (values[:, None] == np.unique(values)[1:]).astype(np.float64)
    else:
        ranks = np.searchsorted(np.sort(values), values, side="right") / values.size
        slopes = chance.normal(0, 1 / 6, (2, N_FEATURES)) * 2 * np.pi
        features = np.sin(ranks[:, None] * slopes[0] * 10 + slopes[1])
    features = features - features.mean(axis=0)
    left, size, _ = np.linalg.svd(features, full_matrices=False)
    return left[:, size > 1e-8 * max(size[:1].sum(), 1e-12)]


class _Program:
    """Variables and linear constraints of a mixed-integer program."""

    def __init__(self) -> None:
        self.low: list[float] = []
        self.high: list[float] = []
        self.whole: list[bool] = []
        self.cost: list[float] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []

    def add(self, low: float, high: float, *, whole: bool = False, cost: float = 0.0) -> int:
        """A new variable."""
        for column, value in zip(
            (self.low, self.high, self.whole, self.cost), (low, high, whole, cost), strict=True
        ):
            column.append(value)  # type: ignore[attr-defined]
        return len(self.low) - 1

    def demand(self, terms: dict[int, float], low: float, high: float = np.inf) -> None:
        """A weighted sum of variables lies between two numbers."""
        self.rows.append((terms, low, high))

    def solve(self, seconds: float) -> FloatArray | None:
        """The best values found, if any."""
        row = np.repeat(np.arange(len(self.rows)), [len(terms) for terms, _, _ in self.rows])
        column = [at for terms, _, _ in self.rows for at in terms]
        weight = [value for terms, _, _ in self.rows for value in terms.values()]
        matrix = csr_array((weight, (row, column)), shape=(len(self.rows), len(self.low)))
        # SciPy 1.13 takes no others.
        matrix.indices, matrix.indptr = (
            at.astype(np.int32) for at in (matrix.indices, matrix.indptr)
        )
        ends = [one[1] for one in self.rows], [one[2] for one in self.rows]
        found = milp(
            self.cost,
            integrality=np.array(self.whole, dtype=np.int64),
            bounds=Bounds(self.low, self.high),
            constraints=LinearConstraint(matrix, *ends),
            options={"time_limit": seconds, "mip_rel_gap": 1e-3},
        )
        return None if found.x is None else np.asarray(found.x)


# A sum of variables, given by their numbers, and a constant; and its least and largest value.
_Sum = tuple[dict[int, float], float, float, float]


@dataclass(eq=False, repr=False, kw_only=True)
class LiCE(Baseline):
    """The nearest row with the desired decision and a likelihood as real rows have.

    The distance is the sum of differences over their median absolute deviations, of levels too.
    One person after another; a person takes seconds. People with missing numbers have no answer,
    and dates must be immutable.

    Guaranteed: where the program is solved to its end, the likelihood asked for, and within 0.1 %
    the smallest distance at which its lower bound reaches it. Not guaranteed: an answer; few
    changes.

    Parameters
    ----------
    predictor
        A network of rectified units that shows its ``layers``, pairs of weights and biases of which
        the last has two outputs, and whose inputs are affine in the columns
        (:class:`mcce.predictors.Differentiable`).
    desired
        The desired decision, as for :class:`mcce.MCCE`.
    immutable
        Names of the columns that must not change.
    kinds
        ``"numeric"`` or ``"categorical"`` by column name, if the dtype is misleading.
    quantile
        The likelihood asked for: this quantile among accepted training rows. 0 asks for none.
    min_rows
        The least rows that the sum-product network splits.
    max_seconds
        Of each person's program.
    random_state
        Seed of the sum-product network.

    Attributes
    ----------
    spn_ : Node
        The sum-product network of the training rows and their decisions.

    References
    ----------
    Němeček, J., Pevný, T. and Mareček, J. (2025). Generating likely counterfactuals using
    sum-product networks. ICLR.

    Examples
    --------
    >>> explainer = LiCE(network, (0.5, 1.0), immutable=["age"])  # doctest: +SKIP
    >>> explainer.fit(train).explain(people).changes()  # doctest: +SKIP
    """

    quantile: Share = 0.5
    min_rows: Count = 200
    max_seconds: Late[Positive] = 20.0
    random_state: Seed = 0

    def _learn(self, training: Training, y: Any) -> None:
        self.space_ = space = Space.learn(training.rows)
        training = complete_rows(training, space)
        predictor = training.decision.predictor
        if not hasattr(predictor, "layers"):
            raise PredictorError(
                f"LiCE needs a network that shows its layers, which {type(predictor).__name__} "
                "does not. Use a method that needs no weights: MCCE, NearestUnlike, NICE or FACE."
            )
        high, threshold = desired_end(training, "LiCE")
        self.sign_, self.threshold_ = (1.0 if high else -1.0), np.log(threshold / (1 - threshold))
        self.slopes_ = affine_slopes(predictor, training, space)
        table = np.column_stack([self._columns(training.rows), training.scored.valid])
        self.n_levels_ = [
            f.n_codes if f.kind == "categorical" else 0 for f in space.schema.features
        ]
        levels = [*self.n_levels_, 2]
        self.spn_ = learn_spn(table, levels, self.min_rows, self.random_state)
        accepted = table[training.accepted]
        likely = self.spn_.log_likelihood(accepted) if len(accepted) else np.zeros(1)
        self.least_ = float(np.quantile(likely, self.quantile)) if self.quantile else -np.inf
        points = space.encode(training.rows)
        deviation = np.median(np.abs(points - np.median(points, axis=0)), axis=0)
        spread = 1.4826 * points.std(axis=0)
        self.weights_ = 1 / np.where(deviation > 0, deviation, np.where(spread > 0, spread, 1.0))

    def _columns(self, rows: EncodedRows) -> FloatArray:
        """Places of numbers in their range and codes of levels, shape (n_rows, n_features)."""
        points, space = np.clip(self.space_.encode(rows), 0.0, 1.0), self.space_
        columns = []
        for at, feature in enumerate(space.schema.features):
            axes = np.flatnonzero(space.feature == at)
            is_level = feature.kind == "categorical"
            columns.append(points[:, axes].argmax(axis=1) if is_level else points[:, axes[0]])
        return np.column_stack(columns).astype(np.float64)

    def _search(self, declined: Declined) -> Found:
        return search_complete(declined, self.space_, self._solve_all, INCOMPLETE)

    def _solve_all(self, declined: Declined) -> Found:
        own = self.space_.encode(declined.rows)
        anchors = network_inputs(declined.decision, declined.rows) - own @ self.slopes_
        answers = [self._solve(point, anchor) for point, anchor in zip(own, anchors, strict=True)]
        owner = np.flatnonzero([answer is not None for answer in answers])
        points = np.array([answers[at] for at in owner]).reshape(owner.size, own.shape[1])
        points = self.space_.project(points, own[owner])
        frame = self.space_.compose(declined.rows, owner, points)
        lost = np.setdiff1d(np.arange(len(own)), owner)
        found = Found(owner, frame, dict.fromkeys(lost.tolist(), NOTHING))
        return found.without(~declined.score(frame).valid, NOTHING) if owner.size else found

    def _solve(self, own: FloatArray, anchor: FloatArray) -> FloatArray | None:
        """The point of the nearest likely row, if one was found."""
        program, space = _Program(), self.space_
        axes = [self._axis(program, axis, own) for axis in range(space.n_axes)]
        for group in space.groups:
            if space.is_mutable[group[0]]:
                program.demand({at: 1.0 for axis in group for at in axes[axis][0]}, 1.0, 1.0)
        self._add_network(program, axes, anchor)
        if np.isfinite(self.least_):
            terms, constant, _, _ = self._add_node(program, self.spn_, axes)
            program.demand(terms, self.least_ - constant)
        values = program.solve(self.max_seconds)
        if values is None:
            return None
        return np.array([sum(w * values[at] for at, w in t.items()) + c for t, c, _, _ in axes])

    def _axis(self, program: _Program, axis: int, own: FloatArray) -> _Sum:
        """An axis of the cube in the program, with the cost of moving along it."""
        space, here, weight = self.space_, float(own[axis]), float(self.weights_[axis])
        if not space.is_mutable[axis]:
            return {}, here, here, here
        if not space.is_number[axis]:
            # Moving to or from a level costs half each, so that a change costs their mean.
            cost = weight / 2 * (1 - 2 * here)
            return {program.add(0, 1, whole=True, cost=cost): 1.0}, 0.0, 0.0, 1.0
        low, high = min(here, 0.0), max(here, 1.0)
        spread, least, unit = space.spread[axis], space.least[axis], space.unit[axis]
        away = program.add(0.0, high - low, cost=weight)
        if unit > 0 and spread / unit <= MAX_MULTIPLES:
            ends = (low * spread + least) / unit, (high * spread + least) / unit
            at = program.add(np.ceil(ends[0] - 1e-6), np.floor(ends[1] + 1e-6), whole=True)
            scale, shift = unit / spread, -least / spread
        else:
            at, scale, shift = program.add(low, high), 1.0, 0.0
        for sign in (1.0, -1.0):
            program.demand({away: 1.0, at: -sign * scale}, sign * (shift - here))
        return {at: scale}, shift, low, high

    def _add_network(self, program: _Program, axes: Sequence[_Sum], anchor: FloatArray) -> None:
        """The output of the network, which must be desired."""
        inputs = [
            _weigh(axes, weights, shift)
            for weights, shift in zip(self.slopes_.T, anchor, strict=True)
        ]
        *inner, (weights, bias) = self.predictor.layers
        for weight, shifts in inner:
            inputs = [
                _rectified(program, _weigh(inputs, column, shift))
                for column, shift in zip(weight.T, shifts, strict=True)
            ]
        gap = weights[:, 1] - weights[:, 0], float(bias[1] - bias[0])
        terms, constant, _, _ = _weigh(inputs, *gap)
        least = self.threshold_ + MARGIN - self.sign_ * constant
        program.demand({at: self.sign_ * value for at, value in terms.items()}, least)

    def _add_node(self, program: _Program, node: Node, axes: Sequence[_Sum]) -> _Sum:
        """A lower bound of the log-likelihood of a node."""
        if node.column == len(self.n_levels_):
            return {}, float(node.logs[1]), float(node.logs[1]), float(node.logs[1])
        if node.column >= 0:
            return self._add_leaf(program, node, axes)
        parts = [self._add_node(program, child, axes) for child in node.children]
        if node.log_weights is None:
            return _weigh(parts, np.ones(len(parts)), 0.0)
        parts = [
            (terms, constant + w, low + w, high + w)
            for (terms, constant, low, high), w in zip(parts, node.log_weights, strict=True)
        ]
        best = max(part[3] for part in parts)
        least = min(part[2] for part in parts)
        if all(not part[0] for part in parts):
            return {}, best, best, best
        # The largest part: the sum is no less.
        value = program.add(least, best)
        chosen = [program.add(0, 1, whole=True) for _ in parts]
        program.demand(dict.fromkeys(chosen, 1.0), 1.0, 1.0)
        for pick, (terms, constant, low, _) in zip(chosen, parts, strict=True):
            slack = best - low
            program.demand({value: -1.0, pick: -slack} | terms, -constant - slack)
        return {value: 1.0}, 0.0, least, best

    def _add_leaf(self, program: _Program, node: Node, axes: Sequence[_Sum]) -> _Sum:
        """The log density of a column."""
        own_axes = np.flatnonzero(self.space_.feature == node.column)
        parts = [axes[axis] for axis in own_axes.tolist()]
        if not self.space_.is_mutable[own_axes[0]]:
            value = np.argmax([part[1] for part in parts]) if not node.edges.size else parts[0][1]
            log = float(node.logs[node.places(np.clip(np.array([value]), 0.0, None))[0]])
            return {}, log, log, log
        ends = float(node.logs.min()), float(node.logs.max())
        if not node.edges.size:
            terms, constant, _, _ = _weigh(parts, node.logs, 0.0)
            return terms, constant, *ends
        bins = [program.add(0, 1, whole=True) for _ in node.logs]
        program.demand(dict.fromkeys(bins, 1.0), 1.0, 1.0)
        (terms, constant, low, high), edges = parts[0], node.edges.copy()
        edges[0], edges[-1] = min(edges[0], low), max(edges[-1], high)
        ends_of_bins = np.append(edges[1:-1] - EDGE, edges[-1])
        program.demand(terms | dict(zip(bins, -edges[:-1], strict=True)), -constant)
        program.demand(terms | dict(zip(bins, -ends_of_bins, strict=True)), -np.inf, -constant)
        return dict(zip(bins, node.logs.tolist(), strict=True)), 0.0, *ends


def _weigh(parts: Sequence[_Sum], weights: Any, shift: float) -> _Sum:
    """A weighted sum of sums."""
    terms: dict[int, float] = {}
    constant = low = high = float(shift)
    for (some, base, least, most), weight in zip(parts, np.asarray(weights).tolist(), strict=True):
        for at, value in some.items():
            terms[at] = terms.get(at, 0.0) + weight * value
        constant += weight * base
        low += min(weight * least, weight * most)
        high += max(weight * least, weight * most)
    return terms, constant, low, high


def _rectified(program: _Program, given: _Sum) -> _Sum:
    """The positive part of a sum."""
    terms, constant, low, high = given
    if low >= 0:
        return given
    if high <= 0:
        return {}, 0.0, 0.0, 0.0
    value, on = program.add(0.0, high), program.add(0, 1, whole=True)
    minus = {at: -weight for at, weight in terms.items()}
    program.demand({value: 1.0} | minus, constant)
    program.demand({value: -1.0, on: high}, 0.0)
    # Where it is on, no more than the sum.
    program.demand({value: -1.0, on: low} | terms, low - constant)
    return {value: 1.0}, 0.0, 0.0, high
