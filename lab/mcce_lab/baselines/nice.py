"""The nearest accepted row, as the answer itself and as what NICE walks to, cell by cell.

Takes training rows and people. NearestUnlike gives each person a real row with the desired
decision; NICE a row whose cells are their own or those of one training row.

Always true: with ``"same"`` rows or starts, whoever shares the immutable values of an accepted
training row has an answer, and no answer of NICE changes more than the row it walks to.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

from mcce import Decision, Interval
from mcce.protocols import BoolArray, EncodedRows, FloatArray, IntArray

from ..parameters import Count, Seed
from .baseline import Baseline, Declined, Found, Training, blocks
from .nearest import Pairs, cell_gaps, nearest_rows, put_in, usable_rows

NO_ROW = "no accepted training row has the same immutable values"
NO_JUSTIFIED = "no accepted training row with the desired outcome can be used"
ROW_DECLINED = "the nearest accepted row is declined with the person's own immutable values"


@dataclass(eq=False, repr=False, kw_only=True)
class NearestUnlike(Baseline):
    """The nearest training row that the predictor decides as desired.

    The nearest unlike neighbour is the simplest counterfactual, and no method that returns training
    rows has a nearer one. The distance is Gower's: range-scaled differences, 1 between two levels
    and where one side is missing. Ties go to the first training row. Missing values, dates
    and unseen levels may occur.

    Guaranteed: with ``rows="same"``, an answer for everybody whose immutable values an accepted
    training row has. Not guaranteed: an answer for anybody else, few changes, or privacy: the
    answer is the row of another person.

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
    rows : {"same", "any"}
        ``"same"`` looks at rows with the person's immutable values. ``"any"`` takes the nearest of
        all accepted rows, puts in the person's own immutable cells, and has no answer if the
        predictor then declines the row.
    justified
        Whether to use only accepted rows whose true outcome is desired too. ``fit(X, y)`` then
        needs the outcomes: booleans, or values of which the desired ones are as in ``desired``.

    Attributes
    ----------
    usable_ : (n_usable,)
        Positions of the training rows that can be an answer.

    References
    ----------
    Keane, M. T. and Smyth, B. (2020). Good counterfactuals and where to find them. ICCBR.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce_lab.baselines import NearestUnlike
    >>> training = pd.DataFrame({"age": [30, 30, 50], "salary": [20, 60, 55]})
    >>> score = lambda frame: frame["salary"] / 100
    >>> method = NearestUnlike(score, (0.5, 1.0), immutable=["age"]).fit(training)
    >>> method.explain(training.head(1)).frame["salary"].tolist()
    [60]
    """

    rows: Literal["same", "any"] = "same"
    justified: bool = False

    def _learn(self, training: Training, y: Any) -> None:
        self.usable_: IntArray = usable_rows(training, y, justified=self.justified)

    def _search(self, declined: Declined) -> Found:
        rows, people = self.training_.rows, declined.rows
        pairs = nearest_rows(people, rows, self.usable_, same=self.rows == "same", k=1)
        missing = np.setdiff1d(np.arange(len(people)), pairs.owner)
        reasons = dict.fromkeys(missing.tolist(), NO_JUSTIFIED if self.justified else NO_ROW)
        found = Found(pairs.owner, put_in(people, rows, pairs.owner, pairs.row), reasons)
        if self.rows == "same":
            return found
        return found.without(~declined.score(found.frame).valid, ROW_DECLINED)


N_EPOCHS, BATCH = 20, 256
# Small tables take more passes: few steps leave the auto-encoder about as it began.
MIN_STEPS = 1_000


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """A trained auto-encoder, and the points it sees."""

    feature: IntArray
    mean: FloatArray
    deviation: FloatArray
    coder: MLPRegressor

    @classmethod
    def learn(cls, rows: EncodedRows, seed: int) -> Reconstruction:
        """Train the auto-encoder on training rows."""
        features = rows.schema.features
        feature = np.repeat(
            np.arange(len(features)), [_width(rows, at) for at in range(len(features))]
        )
        moments = [_moments(numbers) for numbers in rows.all_numbers]
        mean, deviation = (np.array(column) for column in zip(*moments, strict=True))
        middle, batch = max(2, feature.size // 4), min(BATCH, len(rows))
        coder = MLPRegressor(
            hidden_layer_sizes=(feature.size, middle, feature.size),
            # Of so few rectified units all can die.
            activation="tanh",
            batch_size=batch,
            max_iter=max(N_EPOCHS, MIN_STEPS * batch // len(rows)),
            random_state=seed,
        )
        learned = cls(feature, mean, deviation, coder)
        points = learned.points(rows)
        with warnings.catch_warnings():
            # The number of passes is bounded; convergence is not needed.
            warnings.simplefilter("ignore", ConvergenceWarning)
            # One axis alone is a vector to scikit-learn.
            coder.fit(points, points if feature.size > 1 else points.ravel())
        return learned

    def points(self, rows: EncodedRows) -> FloatArray:
        """Rows as points, shape (n_rows, n_axes); an unseen level indicates none.

        A missing number is the mean, and where training has missing ones too, marked on an axis of
        its own.
        """
        parts = []
        for at, feature in enumerate(rows.schema.features):
            if feature.kind == "categorical":
                parts.append(rows.codes[at][:, None] == np.arange(feature.n_codes))
                continue
            scaled = (rows.all_numbers[at] - self.mean[at]) / self.deviation[at]
            parts.append(np.where(np.isnan(scaled), 0.0, scaled)[:, None])
            if feature.has_missing:
                parts.append(np.isnan(scaled)[:, None])
        return np.hstack(parts).astype(np.float64)

    def error(self, points: FloatArray) -> FloatArray:
        """Mean squared error of the reconstruction of each point; infinite if it overflows."""
        if not len(points):
            return np.empty(0)
        with np.errstate(over="ignore"):
            return ((points - self.coder.predict(points).reshape(points.shape)) ** 2).mean(axis=1)


def _width(rows: EncodedRows, at: int) -> int:
    """Number of axes of a feature."""
    feature = rows.schema.features[at]
    return feature.n_codes if feature.kind == "categorical" else 1 + feature.has_missing


def _moments(numbers: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of the numbers that are there; 0 and 1 if none are."""
    there = numbers[~np.isnan(numbers)]
    return (float(there.mean()), float(there.std()) or 1.0) if there.size else (0.0, 1.0)


DECLINED = "the predictor declines the person with every mutable value of the nearest accepted rows"
# Scores and errors of the same row may differ by this in two batches.
DECIMALS = 10
# Keeps the reward finite where a cell changes by nothing that a float can tell.
TINY = 1e-10


@dataclass(eq=False, repr=False, kw_only=True)
class NICE(Baseline):
    """Nearest instance counterfactual explanations.

    Starting from a person, the cell with the greatest reward is copied from the nearest accepted
    training row until the predictor decides as desired. The nearest row is that of
    :class:`NearestUnlike`; missing values, dates and unseen levels may occur.

    Guaranteed: every cell is the person's or that of one training row, so no answer has more
    changes than that row; with ``starts="same"``, an answer for everybody whose immutable values
    an accepted training row has. Not guaranteed: the fewest changes, since the walk is greedy, or a
    row that looks real; with ``starts="any"``, an answer. The published method knows no immutable
    features; both forms of ``starts`` are ours.

    Parameters
    ----------
    predictor
        The black box: anything that :class:`mcce.MCCE` takes. It should have scores: by labels
        alone, cells are copied in column order until one suffices.
    desired
        The desired decision, as for :class:`mcce.MCCE`.
    immutable
        Names of the columns that must not change.
    kinds
        ``"numeric"`` or ``"categorical"`` by column name, if the dtype is misleading.
    reward : {"sparsity", "proximity", "plausibility"}
        What the copied cell has most of: gain in score, gain in score per distance, or gain in
        score times the drop of an auto-encoder's error.
    starts : {"same", "any"}
        Walk to rows with the person's immutable values, or to any accepted rows without ever
        copying immutable cells.
    n_starts
        How many of the nearest rows each person walks to. The answer is the walk's end with the
        fewest changes, then the smallest distance, then the nearest row.
    justified
        Whether to use only accepted rows whose true outcome is desired too, as the published
        method does by default. ``fit(X, y)`` then needs the outcomes: booleans, or values of which
        the desired ones are as in ``desired``.
    random_state
        Seed of the auto-encoder.

    Attributes
    ----------
    usable_ : (n_usable,)
        Positions of the training rows that people can walk to.

    References
    ----------
    Brughmans, D., Leyman, P. and Martens, D. (2023). NICE: an algorithm for nearest instance
    counterfactual explanations. Data Mining and Knowledge Discovery.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce_lab.baselines import NICE
    >>> training = pd.DataFrame({"age": [30, 30], "salary": [20, 60], "debt": [5, 1]})
    >>> score = lambda frame: (frame["salary"] - frame["debt"]) / 100
    >>> method = NICE(score, (0.5, 1.0), immutable=["age"]).fit(training)
    >>> method.explain(training.head(1)).frame.iloc[0].tolist()
    [30, 60, 5]
    """

    reward: Literal["sparsity", "proximity", "plausibility"] = "sparsity"
    starts: Literal["same", "any"] = "same"
    n_starts: Count = 1
    justified: bool = False
    random_state: Seed = 0

    def _learn(self, training: Training, y: Any) -> None:
        self.usable_: IntArray = usable_rows(training, y, justified=self.justified)
        self.reconstruction_: Reconstruction | None = None
        if self.reward == "plausibility":
            self.reconstruction_ = Reconstruction.learn(training.rows, self.random_state)

    def _search(self, declined: Declined) -> Found:
        rows, people = self.training_.rows, declined.rows
        pairs = nearest_rows(
            people, rows, self.usable_, same=self.starts == "same", k=self.n_starts
        )
        lost = np.setdiff1d(np.arange(len(people)), pairs.owner)
        reasons = dict.fromkeys(lost.tolist(), NO_JUSTIFIED if self.justified else NO_ROW)
        gaps = cell_gaps(people, rows, pairs)
        copied, valid = self._walk_all(declined, pairs, gaps)
        failed = np.setdiff1d(pairs.owner, pairs.owner[valid])
        reasons |= dict.fromkeys(failed.tolist(), DECLINED)
        best = _best(pairs.owner, valid, copied.sum(axis=1), (gaps * copied).sum(axis=1))
        owner, row = pairs.owner[best], pairs.row[best]
        return Found(owner, put_in(people, rows, owner, row, copied[best]), reasons)

    def _walk_all(
        self, declined: Declined, pairs: Pairs, gaps: FloatArray
    ) -> tuple[BoolArray, BoolArray]:
        """As :meth:`_walk`, in blocks of bounded memory."""
        copied, valid = np.zeros(gaps.shape, dtype=bool), np.zeros(len(pairs), dtype=bool)
        for part in blocks(len(pairs), gaps.shape[1]):
            copied[part], valid[part] = self._walk(declined, pairs.take(part), gaps[part])
        return copied, valid

    def _walk(
        self, declined: Declined, pairs: Pairs, gaps: FloatArray
    ) -> tuple[BoolArray, BoolArray]:
        """Which cells each walk copies, shape (n_walks, n_mutable), and whether its end is valid.

        Of equal rewards, the first column is copied.
        """
        rows, people, mutable = (
            self.training_.rows,
            declined.rows,
            self.training_.rows.schema.mutable,
        )
        left = (rows.codes[mutable][:, pairs.row] != people.codes[mutable][:, pairs.owner]).T
        copied, valid = np.zeros_like(left), np.zeros(len(pairs), dtype=bool)
        own = declined.scored.score[pairs.owner]
        now = progress(declined.decision, own, own)
        points = self._points(declined, pairs)
        todo = np.flatnonzero(left.any(axis=1))
        while todo.size:
            place, cell = np.nonzero(left[todo])
            walk = todo[place]
            tried = copied[walk]
            tried[np.arange(walk.size), cell] = True
            scored = declined.score(put_in(people, rows, pairs.owner[walk], pairs.row[walk], tried))
            after = progress(declined.decision, own[walk], scored.score)
            gain = _difference(after, now[walk])
            if self.reward == "proximity":
                gain = gain / (gaps[walk, cell] + TINY)
            elif points is not None:
                gain = _weigh(gain, points.drop(walk, copied[walk], tried))
            order = np.lexsort((cell, -gain, walk))
            best = order[np.unique(walk[order], return_index=True)[1]]
            copied[todo], valid[todo], now[todo] = tried[best], scored.valid[best], after[best]
            left[todo, cell[best]] = False
            todo = todo[~valid[todo] & left[todo].any(axis=1)]
        return copied, valid

    def _points(self, declined: Declined, pairs: Pairs) -> _Points | None:
        """People and rows as the auto-encoder sees them, if it has a say."""
        if self.reward != "plausibility" or self.reconstruction_ is None:
            return None
        coder, rows = self.reconstruction_, self.training_.rows
        used, row = np.unique(pairs.row, return_inverse=True)
        goal = coder.points(rows.take(used))[row.ravel()]
        return _Points(coder, coder.points(declined.rows)[pairs.owner], goal, rows.schema.mutable)


class _Points:
    """Walks as the auto-encoder sees them."""

    def __init__(
        self, coder: Reconstruction, own: FloatArray, goal: FloatArray, mutable: IntArray
    ) -> None:
        self.coder, self.own, self.goal = coder, own, goal
        # The mutable cell of each axis, -1 for an immutable one.
        cells = {at: cell for cell, at in enumerate(mutable.tolist())}
        self.cell = np.array([cells.get(at, -1) for at in coder.feature.tolist()])

    def drop(self, walk: IntArray, before: BoolArray, after: BoolArray) -> FloatArray:
        """By how much the error falls when walks copy one more cell."""
        return _difference(self._error(walk, before), self._error(walk, after))

    def _error(self, walk: IntArray, copied: BoolArray) -> FloatArray:
        taken = copied[:, self.cell] & (self.cell >= 0)
        return self.coder.error(np.where(taken, self.goal[walk], self.own[walk]))


def progress(decision: Decision, own: FloatArray, scores: FloatArray) -> FloatArray:
    """How far scores have come from the side of the person's own score; from 0 on in the interval.

    A score beyond the other end of the interval is as bad as one that falls short by as much.

    Examples
    --------
    >>> decision = Decision(len, Interval(0.5, 0.75), "call")
    >>> progress(decision, np.zeros(4), np.array([0.25, 0.5, 0.75, 1.0]))
    array([-0.25,  0.  ,  0.25, -0.25])
    """
    short = decision.shortfall(scores)
    if not isinstance(decision.desired, Interval):
        return -short
    low, high = decision.desired.low, decision.desired.high
    from_below = own < low
    with np.errstate(invalid="ignore"):
        inside = np.where(from_below, scores - low, high - scores)
    return np.where(short > 0, -short, inside)


def _difference(one: FloatArray, other: FloatArray) -> FloatArray:
    """By how much numbers are larger than others; 0 between two infinities of one sign."""
    with np.errstate(invalid="ignore"):
        return np.where(one == other, 0.0, np.round(one - other, DECIMALS))


def _weigh(gain: FloatArray, drop: FloatArray) -> FloatArray:
    """Gain in score times drop of the error; a loss in both must not count as a gain."""
    with np.errstate(invalid="ignore"):
        product = np.where((gain == 0) | (drop == 0), 0.0, gain * drop)
    return np.where((gain < 0) & (drop < 0), -product, product)


def _best(owner: IntArray, valid: BoolArray, n_changes: IntArray, distance: FloatArray) -> IntArray:
    """The valid walk of each person with the fewest changes, then the least distance."""
    walks = np.flatnonzero(valid)
    order = walks[np.lexsort((walks, distance[walks], n_changes[walks], owner[walks]))]
    return order[np.unique(owner[order], return_index=True)[1]]
