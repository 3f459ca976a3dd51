"""The proof for one person: rows that the model could draw, in the order of the ranking.

Rows with one change come first, then those with two, and so on; among equals the nearest. The first
valid and allowed row is the best there is. Of the others, those are answers that would not be valid
or allowed with some of their changes undone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..constraints.limits import FactualLimits
from ..kernels import BoolArray, Codes, FloatArray, IntArray, Person, gower_gap
from ..postprocess.answers import Answers
from ..postprocess.filters import ExcludeUnstable
from ..postprocess.validation import GROWTH
from ..predictors.decision import Decision
from ..protocols import CapableGenerator, RowFilter
from ..tables.features import Feature
from ..tables.schema import OWN

# Rows of a person that are listed at first, and at most at a time.
N_LISTED, MAX_LISTED = 256, 10_000


@dataclass(frozen=True, eq=False)
class ExactSettings:
    """What is searched for, among which rows, and with which budget."""

    generator: CapableGenerator
    decision: Decision
    filters: tuple[RowFilter, ...]
    n_counterfactuals: int
    max_sparsity: int | None
    max_distance: float | None
    weights: FloatArray
    max_rows: int
    max_nodes: int


@dataclass(eq=False)
class Proof:
    """The state of the proof for one person.

    ``is_open`` until the answers are known to be the best, when it ``holds``, or the budget is
    spent. The last ``n_left`` of the listed rows were not evaluated yet.
    """

    settings: ExactSettings
    personal: FactualLimits
    person: int
    unstable: ExcludeUnstable
    is_open: bool = True
    holds: bool = False
    n_changes: int = 1
    n_left: int = 0
    n_listed: int = 0
    n_nodes: int = 0
    n_allowed: int = 0
    n_valid: int = 0
    answers: list[Answers] = field(default_factory=list)
    miss: Answers | None = None
    shortfall: float = np.inf
    _codes: Codes = field(default_factory=lambda: np.empty((0, 0), dtype=np.int32))
    _after: tuple[float, Codes] | None = None

    @property
    def n_evaluated(self) -> int:
        """Rows evaluated; the next one has this place in the order."""
        return self.n_listed - self.n_left

    def list_more(self) -> None:
        """List the next rows, if any are left and the budget allows."""
        settings, rows = self.settings, self.personal.rows
        bounds = rows.schema.mutable.size, settings.max_sparsity
        most = min(bound for bound in bounds if bound is not None)
        person = _person(self.personal, self.person, settings.weights)
        while self.is_open and not self.n_left:
            room = settings.max_rows - self.n_listed
            if self.n_changes > most:
                self._close(holds=True)
            elif room:
                self._list(person, min(max(N_LISTED, 4 * self.n_listed), MAX_LISTED, room))
            else:
                self._close(holds=False)

    def _list(self, person: Person, n_best: int) -> None:
        """List at most ``n_best`` rows; after the last with this many changes go on to one more."""
        settings = self.settings
        listed = settings.generator.enumerate_rows(
            person,
            n_changes=self.n_changes,
            n_best=n_best,
            max_nodes=settings.max_nodes - self.n_nodes,
            after=self._after,
        )
        self.n_nodes += listed.n_nodes
        if not listed.complete:
            self._close(holds=False)
            return
        distance = listed.totals / len(self.personal.rows.schema.features)
        farthest = np.inf if settings.max_distance is None else settings.max_distance
        n_near = int(np.searchsorted(distance, farthest, side="right"))
        self._codes = listed.codes[:, :n_near]
        self.n_left = n_near
        self.n_listed += n_near
        if n_near == n_best:
            self._after = float(listed.totals[-1]), listed.codes[:, -1]
        else:
            self._after = None
            self.n_changes += 1

    def next_rows(self) -> Codes:
        """The next rows to evaluate, more in each batch."""
        first = self._codes.shape[1] - self.n_left
        n_rows = max(self.settings.n_counterfactuals, int(GROWTH * self.n_evaluated))
        return self._codes[:, first : first + n_rows]

    def is_unstable(self, n_rows: int) -> BoolArray:
        """Which of the next rows failed the final call before."""
        theirs = self.unstable.draw[self.unstable.person == self.person]
        return np.isin(self.n_evaluated + np.arange(n_rows), theirs)

    def update(self, rows: Answers, allowed: BoolArray, valid: BoolArray) -> None:
        """Take in the predictor's results for the next rows, as far as they are allowed."""
        best = rows.take(self._needed(rows.rows.codes, np.flatnonzero(valid)))
        self.answers.append(replace(best, rank=self.n_valid + 1 + np.arange(best.owner.size)))
        self.n_valid += best.owner.size
        self.n_allowed += int(allowed.sum())
        self.n_left -= allowed.size
        shortfall = np.where(allowed, self.settings.decision.shortfall(rows.score), np.inf)
        if shortfall.min(initial=np.inf) < self.shortfall:
            at = int(shortfall.argmin())
            self.shortfall, self.miss = float(shortfall[at]), rows.take(np.array([at]))
        if self.n_valid == self.settings.n_counterfactuals:
            self._close(holds=True)

    def _needed(self, codes: Codes, valid: IntArray) -> IntArray:
        """Valid rows, as many as wanted, that no answer equals with fewer of their changes."""
        answers = [one for part in self.answers for one in part.rows.codes.T]
        n_wanted, needed = self.settings.n_counterfactuals, list[int]()
        for at in valid.tolist():
            if len(answers) == n_wanted:
                break
            row = codes[:, at]
            if not any(((one == OWN) | (one == row)).all() for one in answers):
                answers.append(row)
                needed.append(at)
        return np.array(needed, dtype=np.int64)

    def _close(self, *, holds: bool) -> None:
        self.is_open, self.holds, self.n_left = False, holds, 0


def _person(personal: FactualLimits, person: int, weights: FloatArray) -> Person:
    """One person, and what each change would cost them."""
    rows = personal.rows
    features, one = rows.schema.features, np.array([person])
    offsets, costs = np.zeros(len(features), dtype=np.int64), [np.empty(0)]
    for at, own, weight in zip(
        rows.schema.mutable, rows.own_numbers(one)[:, 0], weights, strict=True
    ):
        codes = np.arange(features[at].n_codes, dtype=np.int32)
        offsets[at] = sum(map(len, costs))
        costs.append(weight * change_costs(features[at], own, codes))
    return Person(
        given=rows.descent[:, person],
        own=rows.exact[:, person],
        stays=personal.stays[:, person],
        limits=personal.limits(one, features),
        costs=np.concatenate(costs),
        offsets=offsets,
    )


def change_costs(
    feature: Feature, own: FloatArray | float, codes: Codes, differs: BoolArray | None = None
) -> FloatArray:
    """Gower's gap between codes of a feature and a person's own number, all of them changes."""
    only_equality = feature.spread == 0 or feature.numbers is None
    numbers = None if only_equality or feature.numbers is None else feature.numbers[codes]
    changed = np.ones(codes.size, dtype=bool) if differs is None else differs
    return gower_gap(numbers, own, feature.spread, changed)
