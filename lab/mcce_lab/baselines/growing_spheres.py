"""Growing spheres: random points farther and farther from a person until one is accepted.

Takes training rows, whose ranges make the space, and people; gives each person a point of it as a
row. All people search at once, with random numbers of their own.

Always true: a number that changes lies in the training range, or between it and the person's own;
changes that :func:`~.space.undo_needless` finds needless are undone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce.protocols import BoolArray, FloatArray, IntArray

from ..parameters import Count, Late, Positive, Seed
from .baseline import Baseline, Declined, Found, Training, blocks
from .space import Space, search_complete, undo_needless

INCOMPLETE = "a number is missing, and random points need complete numbers"
NOTHING = "no random point was accepted up to the largest shell"
# Halvings of the first ball: a decision any nearer is not worth the calls.
MAX_HALVINGS = 20
# The largest probability with which a level changes.
MAX_FLIPS = 0.5


@dataclass(eq=False, repr=False, kw_only=True)
class GrowingSpheres(Baseline):
    """Random search in growing spheres.

    A ball around the person is halved until none of ``n_samples`` random points in it is accepted.
    Then shells as wide as the ball are searched one after another, from the inside out, until one
    has an accepted point. The nearest of these is taken, and its changes are undone one by one,
    from the smallest on, where the predictor still accepts the row.

    The space has an axis for each number, in shares of its training range. In a shell that begins
    at the radius ``r``, each categorical feature takes another level with probability ``r / 2``, at
    most a half; in the ball none does. Points are clipped to the training range and rounded as the
    column is written. People with missing numbers have no answer, and dates must be immutable.

    Guaranteed: changes that could be undone, one after another from the smallest on, are undone.
    Not guaranteed: an answer, the nearest row, or a row that looks real, since points are drawn
    without regard to the training rows.

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
    n_samples
        Random points of each person in the ball and in each shell.
    radius
        Radius of the first ball, in shares of the training range.
    max_shells
        Largest number of shells.
    random_state
        Seed of the random points.

    Attributes
    ----------
    space_ : Space
        The space of the training rows.

    References
    ----------
    Laugel, T., Lesot, M.-J., Marsala, C., Renard, X. and Detyniecki, M. (2018). Comparison-based
    inverse classification for interpretability in machine learning. IPMU.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce_lab.baselines import GrowingSpheres
    >>> training = pd.DataFrame({"x": [0.0, 0.25, 1.0], "y": [0.0, 1.0, 0.5]})
    >>> method = GrowingSpheres(lambda frame: frame["x"], (0.3, 1.0), n_samples=100).fit(training)
    >>> result = method.explain(training.head(1))
    >>> result.measures["sparsity"].tolist(), bool(result.frame["x"].iloc[0] < 0.5)
    ([1], True)
    """

    n_samples: Late[Count] = 1000
    radius: Late[Positive] = 0.2
    max_shells: Late[Count] = 50
    random_state: Late[Seed] = 0

    def _learn(self, training: Training, y: Any) -> None:
        self.space_ = Space.learn(training.rows)

    def _search(self, declined: Declined) -> Found:
        return search_complete(declined, self.space_, self._search_shells, INCOMPLETE)

    def _search_shells(self, declined: Declined) -> Found:
        search = _Search(self.space_, declined, self.n_samples, self.random_state)
        width = self._shrink(search)
        best = np.full((len(declined), self.space_.n_axes), np.nan)
        todo = np.arange(len(declined))
        for shell in range(1, self.max_shells + 1):
            found, points = search.draw(todo, shell * width, width)
            best[todo[found]] = points[found]
            # Farther out, points are only clipped more.
            todo = todo[~found & (shell * width[todo] <= search.reach[todo])]
        owner = np.flatnonzero(~np.isnan(best).any(axis=1))
        lost = np.setdiff1d(np.arange(len(declined)), owner)
        points = undo_needless(self.space_, declined, owner, best[owner])
        frame = self.space_.compose(declined.rows, owner, points)
        return Found(owner, frame, dict.fromkeys(lost.tolist(), NOTHING))

    def _shrink(self, search: _Search) -> FloatArray:
        """Radius of the largest ball of each person in which no point is accepted."""
        radius = np.full(len(search.own), float(self.radius))
        todo = np.arange(radius.size)
        for _ in range(MAX_HALVINGS):
            found, _ = search.draw(todo, np.zeros(radius.size), radius)
            todo = todo[found]
            radius[todo] /= 2
        return radius


class _Search:
    """People, and random points around them."""

    def __init__(self, space: Space, declined: Declined, n_samples: int, seed: int) -> None:
        self.space, self.declined, self.n_samples = space, declined, n_samples
        self.own = space.encode(declined.rows)
        self.generators = declined.generators(seed)
        self.numbers = np.flatnonzero(space.is_number & space.is_mutable)
        self.levels = [axes for axes in space.groups if space.is_mutable[axes[0]]]

    @property
    def reach(self) -> FloatArray:
        """Radius up to which each person's shells differ, shape (n_people,).

        The diagonal of the cube, stretched to hold the person, and where levels flip most.
        """
        own = self.own[:, self.numbers]
        sides = np.maximum(own, 1.0) - np.minimum(own, 0.0)
        with np.errstate(over="ignore"):  # infinite for people very far from the cube
            diagonal = np.sqrt((sides**2).sum(axis=1))
        return np.maximum(diagonal, 2 * MAX_FLIPS)

    def draw(
        self, who: IntArray, inner: FloatArray, width: FloatArray
    ) -> tuple[BoolArray, FloatArray]:
        """Whether each person has an accepted point in the shell, and the nearest one, else NaN.

        ``inner`` and ``width`` are those of everybody's shell.
        """
        found, best = np.zeros(who.size, dtype=bool), np.full((who.size, self.own.shape[1]), np.nan)
        for part in blocks(who.size, self.n_samples):
            people = who[part]
            drawn = [self._around(person, inner[person], width[person]) for person in people]
            points, owner = np.concatenate(drawn), np.repeat(people, self.n_samples)
            own = self.own[owner]
            points = self.space.project(points, own)
            moved = np.flatnonzero((points != own).any(axis=1))
            frame = self.space.compose(self.declined.rows, owner[moved], points[moved])
            valid = moved[self.declined.score(frame).valid]
            with np.errstate(over="ignore"):
                squares = ((points[valid] - own[valid]) ** 2 * self._weights).sum(axis=1)
            order = valid[np.lexsort((valid, squares, owner[valid]))]
            first = order[np.unique(owner[order], return_index=True)[1]]
            places = part.start + np.searchsorted(people, owner[first])
            found[places], best[places] = True, points[first]
        return found, best

    @property
    def _weights(self) -> FloatArray:
        """Another level is a difference of 1, on two axes."""
        return np.where(self.space.is_number, 1.0, 0.5)

    def _around(self, person: int, inner: float, width: float) -> FloatArray:
        """Random points in the shell of a person."""
        random, n_samples = self.generators[person], self.n_samples
        points = np.repeat(self.own[[person]], n_samples, axis=0)
        direction = random.standard_normal((n_samples, self.numbers.size))
        length = np.sqrt((direction**2).sum(axis=1, keepdims=True))
        radius = inner + width * random.random((n_samples, 1))
        points[:, self.numbers] += direction / np.maximum(length, 1e-300) * radius
        for axes in self.levels:
            flips = random.random(n_samples) < min(MAX_FLIPS, inner / 2)
            # Any level but the person's own, if there is another.
            ahead = random.integers(1, max(axes.size, 2), size=n_samples)
            other = (points[0, axes].argmax() + ahead) % axes.size
            points[np.ix_(flips, axes)] = other[flips, None] == np.arange(axes.size)
        return points
