"""Boxes: how far several numbers of a counterfactual may move at the same time.

Takes how far each number may move alone. A box is first made small enough for its corners, then for
random points inside, once by what needs no predictor and once more with it. Where a corner fails,
bisection finds by how much to shorten the sides that failing corners have in common; where a point
inside fails, one side is cut in front of it. New points inside are tried last and change nothing,
so that the share of them that hold tells how good the box is.

Always true: no side is longer than that of its number alone; points depend on the seed and the
counterfactual's own values alone; a point is scored at most once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ..confidence import clopper_pearson
from ..kernels import (
    BoolArray,
    FloatArray,
    IntArray,
    draw_keys,
    person_keys,
    pick,
    rows_as_bytes,
    times_seen_before,
)
from .answers import Trials, numbered
from .moves import Held, Moves, Test

# Corners of a box that are tried: all, or at most these; and how often sides are halved at most.
MAX_CORNERS, N_HALVINGS = 16, 6
# Rows checked before the predictor is called: corners, and points inside.
N_FREE_ROWS, N_FREE_POINTS = 128, 64
# Confidence of the bound on the share of a box that holds.
CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes around counterfactuals."""

    answer: IntArray
    sides: IntArray
    n_tried: IntArray
    n_held: IntArray
    share: FloatArray


def find_boxes(moves: Moves, trials: Trials, reach: IntArray, seed: int, per_feature: int) -> Boxes:
    """The boxes of counterfactuals of which two or more numbers may move."""
    n_features = reach.any(axis=0).sum(axis=0)
    answer = np.flatnonzero(n_features >= 2)
    n_rows = per_feature * n_features[answer]
    boxes = _ShrinkingBoxes(moves, answer, reach[:, :, answer], seed)

    def try_steps(answer: IntArray, steps: IntArray, *, score: bool = True) -> Held:
        return trials.try_variants(answer, moves.codes(answer, steps), score=score)

    allowed = partial(try_steps, score=False)
    boxes.shorten(allowed, np.full(answer.size, N_FREE_ROWS))
    boxes.cut(allowed, np.full(answer.size, N_FREE_POINTS))
    boxes.forget()
    # At most half of the rows are for corners, and a quarter is for points that may cut.
    boxes.shorten(try_steps, n_rows // 2)
    boxes.cut(try_steps, n_rows // 4)
    return boxes.finish(try_steps, n_rows - boxes.n_counted)


class _ShrinkingBoxes:
    """Boxes that become smaller, and the points that were tried.

    ``sides`` are as those of :class:`Boxes`, and ``n_counted`` counts the tests that count.
    """

    def __init__(self, moves: Moves, answer: IntArray, sides: IntArray, seed: int) -> None:
        self.sides = sides
        self._answer, self._columns = answer, moves.answers.rows.schema.mutable
        self._keys = person_keys(seed, moves.answers.rows.tree_codes[:, answer].T)
        self._n_drawn = MAX_CORNERS
        self.forget()

    def forget(self) -> None:
        """Forget which points were tried."""
        self.n_counted = np.zeros(self._answer.size, dtype=np.int64)
        self._box = np.zeros(0, dtype=np.int64)
        self._steps = np.zeros((len(self.sides[0]), 0), dtype=np.int64)
        self._held, self._cuts = np.zeros((2, 0), dtype=bool)

    def shorten(self, test: Test, n_rows: IntArray) -> None:
        """Shorten sides until corners hold or rows run out; to nothing if they never hold."""
        box, upper = self._corners(2 * n_rows // 3)
        n_corners = np.bincount(box, minlength=n_rows.size)
        failed = ~self._try(test, box, _steps_to(self.sides, box, upper))
        box, upper = box[failed], upper[:, failed]
        n_failed = np.bincount(box, minlength=n_rows.size)
        weak = _common_sides(self.sides, box, upper)
        n_halvings = np.minimum((n_rows - n_corners) // np.maximum(n_failed, 1), N_HALVINGS)
        low, high = np.zeros(n_rows.size), np.ones(n_rows.size)
        for halving in range(N_HALVINGS):
            goes_on = n_halvings[box] > halving
            box, upper, middle = box[goes_on], upper[:, goes_on], (low + high) / 2
            steps = _steps_to(_shortened(self.sides, weak, middle), box, upper)
            held = self._try(test, box, steps)
            tried, fails = np.zeros((2, n_rows.size), dtype=bool)
            tried[box], fails[box[~held]] = True, True
            low = np.where(tried & ~fails, middle, low)
            high = np.where(tried & fails, middle, high)
        self.sides = _shortened(self.sides, weak, low)

    def cut(self, test: Test, n_points: IntArray) -> None:
        """Try random points inside, and cut sides in front of those that fail."""
        box, steps = self._draw(n_points)
        failed = ~self._try(test, box, steps, cuts=True)
        self._cut_at(box[failed], steps[:, failed])

    def finish(self, test: Test, n_points: IntArray) -> Boxes:
        """The boxes, after more random points inside were tried."""
        self._try(test, *self._draw(n_points))
        inside = _are_inside(self.sides, self._box, self._steps)
        n_boxes = n_points.size
        n_inside = np.prod(1.0 + self.sides.sum(axis=0), axis=0)
        # Points that failed in cut() are outside now, so those that held there prove little.
        fair = inside & ~self._cuts
        n_tried = np.bincount(self._box[fair], minlength=n_boxes)
        n_held = np.bincount(self._box[fair & self._held], minlength=n_boxes)
        # Every point was tried and holds, the counterfactual itself apart.
        complete = np.bincount(self._box[inside & self._held], minlength=n_boxes) + 1 == n_inside
        share = np.where(complete, 1.0, clopper_pearson(n_held, n_tried, 1 - CONFIDENCE)[0])
        return Boxes(self._answer, self.sides, n_tried, n_held, share)

    def _draw(self, n_points: IntArray) -> tuple[IntArray, IntArray]:
        """Random points inside that were not tried before: the box and the steps of each."""
        box, number = numbered(n_points)
        keys = draw_keys(self._keys, self._n_drawn + np.arange(n_points.max(initial=0)))
        self._n_drawn += int(n_points.max(initial=0))
        keys, below = keys[box, number], self.sides[0][:, box]
        steps = np.zeros_like(below)
        for place in np.flatnonzero(self.sides.any(axis=(0, 2))).tolist():
            n_values = self.sides[:, place, box].sum(axis=0) + 1
            steps[place] = pick(keys, int(self._columns[place]), n_values) - below[place]
        new = self._are_new(box, steps)
        return box[new], steps[:, new]

    def _try(self, test: Test, box: IntArray, steps: IntArray, *, cuts: bool = False) -> BoolArray:
        """Which points hold; they are remembered, each once."""
        held, counted = test(self._answer[box], steps)
        self.n_counted = self.n_counted + np.bincount(box[counted], minlength=self._answer.size)
        new = self._are_new(box, steps)
        self._box = np.concatenate([self._box, box[new]])
        self._steps = np.concatenate([self._steps, steps[:, new]], axis=1)
        self._held = np.concatenate([self._held, held[new]])
        self._cuts = np.concatenate([self._cuts, np.full(int(new.sum()), cuts)])
        return held

    def _corners(self, most: IntArray) -> tuple[IntArray, BoolArray]:
        """The box of each corner, and on which sides it is the upper one; random ones of many."""
        free = self.sides.sum(axis=0) > 0
        n_free = free.sum(axis=0)
        n_all = 2 ** np.minimum(n_free, MAX_CORNERS) * (n_free > 0)
        most = np.minimum(most, MAX_CORNERS)
        box, number = numbered(np.minimum(n_all, most))
        bit = np.maximum(np.cumsum(free, axis=0) - 1, 0)[:, box]
        upper = (number >> bit) % 2 == 1
        many = np.flatnonzero((n_all > most)[box])
        keys = draw_keys(self._keys, np.arange(MAX_CORNERS))[box[many], number[many]]
        for place in np.flatnonzero(free.any(axis=1)).tolist():
            upper[place, many] = pick(keys, int(self._columns[place]), np.full(many.size, 2)) == 1
        return box, upper

    def _are_new(self, box: IntArray, steps: IntArray) -> BoolArray:
        """Points that are not the counterfactual itself, and not tried or listed before."""
        points = rows_as_bytes(np.vstack([box, steps]).T.astype(np.int32))
        known = rows_as_bytes(np.vstack([self._box, self._steps]).T.astype(np.int32))
        first = np.zeros(box.size, dtype=bool)
        first[np.unique(points, return_index=True)[1]] = True
        return first & (steps != 0).any(axis=0) & ~np.isin(points, known)

    def _cut_at(self, box: IntArray, steps: IntArray) -> None:
        """Cut a side in front of each point, the one that loses the smallest share."""
        self.sides = self.sides.copy()
        number = times_seen_before(box)
        for turn in range(int(number.max(initial=-1)) + 1):
            point = np.flatnonzero(number == turn)
            point = point[_are_inside(self.sides, box[point], steps[:, point])]
            step, length = steps[:, point], self.sides[:, :, box[point]]
            is_upper = (step > 0).astype(np.int64)
            cut = np.take_along_axis(length, is_upper[None], axis=0)[0] - np.abs(step) + 1
            left = np.where(step == 0, -1.0, 1 - cut / (1 + length.sum(axis=0)))
            place = left.argmax(axis=0)
            chosen = place, np.arange(point.size)
            self.sides[is_upper[chosen], place, box[point]] = np.abs(step[chosen]) - 1


def _steps_to(sides: IntArray, box: IntArray, upper: BoolArray) -> IntArray:
    """Steps to corners of boxes."""
    return np.where(upper, sides[1][:, box], -sides[0][:, box])


def _common_sides(sides: IntArray, box: IntArray, upper: BoolArray) -> BoolArray:
    """The sides that the given corners of a box have in common, or if there are none, all."""
    n_corners = np.zeros(sides.shape, dtype=np.int64)
    for side, has_corner in enumerate((~upper, upper)):
        np.add.at(n_corners[side].T, box, has_corner.T.astype(np.int64))
    n_corners[sides == 0] = 0
    common = (n_corners == np.bincount(box, minlength=sides.shape[2])) & (n_corners > 0)
    return np.where(common.any(axis=(0, 1)), common, n_corners > 0)


def _shortened(sides: IntArray, weak: BoolArray, share: FloatArray) -> IntArray:
    """Boxes whose weak sides have only a share of their length."""
    return np.where(weak, np.floor(sides * share).astype(np.int64), sides)


def _are_inside(sides: IntArray, box: IntArray, steps: IntArray) -> BoolArray:
    """Whether points are inside their boxes."""
    inside = (-sides[0][:, box] <= steps) & (steps <= sides[1][:, box])
    return np.asarray(inside.all(axis=0))
