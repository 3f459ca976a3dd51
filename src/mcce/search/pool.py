"""The pool: all rows that a search considers for a block of people, and what is known of each.

Beyond the paper. Each distinct row of a person is stored once. Its changes, its distance and the
surrogate's prediction are known from the start; whether it may be returned is checked only when
needed; its score is known once the predictor has scored it.

A prediction is corrected by the surrogate's errors for the same person: at their own row, whose
score is known, and at every row that was scored. Errors at rows that share more cells count more.

Always true: what is known of a person's rows depends on no other person; the predictor scores no
row twice, and for no person more rows than ``max_evaluations``.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..boosting.surrogate import Surrogate
from ..candidates import CandidateRows, MeasuredRows
from ..counterfactuals.parts import Reason
from ..distances import Gower, is_plain_gower, measure_rows
from ..encodings import CandidateEncodings, GrowingTables
from ..kernels import (
    BoolArray,
    Codes,
    FloatArray,
    Int32Array,
    IntArray,
    RowTable,
    times_seen_before,
    weigh_errors,
)
from ..plausibility.model import KnnDistance
from ..postprocess.filters import RowFilter
from ..postprocess.ranking import Ranking
from ..postprocess.validation import keys_of_people
from ..predictors.decision import ScoredRows
from ..tables.schema import OWN
from .costs import Cost
from .reasons import reason_of

if TYPE_CHECKING:
    from .stage import SearchTask

# Shortfalls of scores are rounded to this many decimals: further ones may depend on the number of
# rows in a call of the predictor.
SHORTFALL_DECIMALS = 10
# For the same reason, margins keep this many bits relative to the typical error and to the desired
# scores.
BITS_OF_ERROR, BITS_OF_SCORES = 20, 36
# The typical error is at least this share of the desired scores.
LEAST_ERROR = 1e-9
# Margins are at most this many typical errors.
MAX_ERRORS = 1e12
# The surrogate's error at a person's own row corrects no other rows if it is larger than this share
# of the response range and than this many typical errors.
MISFIT_SHARE, MISFIT_ERRORS = 0.5, 20.0
# Errors are halved per differing cell, and shrunk towards zero with this prior weight.
NO_ERROR = 0.1
# Rows at least as likely as this are predicted valid.
LIKELY = 0.5
# Whether a row may be returned: not known yet, yes, or the number of the check that excludes it.
UNKNOWN, MAY_RETURN = -1, 0
# What the pool keeps of each row, and its value in a new row.
NEW_ROW: dict[str, float] = {
    **dict.fromkeys(("person", "sparsity", "n_counted"), 0),
    **dict.fromkeys(("distance", "margin", "score", "_response", "_total", "_weight"), 0.0),
    **dict.fromkeys(("scored", "valid", "copy"), False),
    **{"knn_distance": math.nan, "excluded_by": UNKNOWN},
}


@dataclass(frozen=True, eq=False)
class PoolSearch:
    """The settings of a search beyond the paper, and what it uses of the fitted explainer."""

    task: SearchTask
    ranking: Ranking
    cost: Cost
    fewest_first: bool
    extra_changes: int
    copies_last: bool
    count_actions: bool
    n_samples: int
    max_samples: int
    surrogate: Surrogate
    knn_model: KnnDistance | None
    # How many accepted rows have each value of each mutable feature.
    accepted_counts: tuple[IntArray | Int32Array, ...]


class Pool:
    """All rows considered for a block of people.

    ``positions`` are those of the people among the factuals; ``person`` numbers the people of the
    block. The first rows are the people's own. For people marked ``complete``, the pool holds every
    possible row.
    """

    person: IntArray
    # Changes, and how many of them count; with ``count_actions``, recomputed columns do not.
    sparsity: IntArray
    n_counted: IntArray
    distance: FloatArray
    knn_distance: FloatArray
    # How far the response, or its prediction, is inside the desired interval.
    margin: FloatArray
    score: FloatArray
    scored: BoolArray
    valid: BoolArray
    copy: BoolArray
    excluded_by: IntArray
    # The surrogate's prediction; weighted errors at other rows, summed, and the sum of the weights.
    _response: FloatArray
    _total: FloatArray
    _weight: FloatArray

    def __init__(
        self, pool_search: PoolSearch, positions: IntArray, tables: Sequence[pd.Series[Any]]
    ) -> None:
        self.pool_search, self.task, self.positions = pool_search, pool_search.task, positions
        self.factuals, self._rules = self.task.factuals, pool_search.ranking.rules
        self.values = GrowingTables(self.factuals, tables)
        self.n_mutable = int(self.factuals.schema.mutable.size)
        width = 1 + self.n_mutable
        self._row_ids, self._actions = RowTable(width), RowTable(width)
        self._row_of_actions: IntArray = np.empty(0, dtype=np.int64)
        self._encodings: CandidateEncodings | None = None
        self.cells: Codes = np.empty((0, width), dtype=np.int32)
        for name, value in NEW_ROW.items():
            setattr(self, name, np.full(0, value))
        none = np.empty(0, dtype=np.int64)
        self._errors: tuple[IntArray, IntArray, FloatArray] = none, none, np.empty(0)
        self.complete: BoolArray = np.zeros(positions.size, dtype=bool)
        self.n_evaluated, self.seconds_scored = 0, 0.0
        n_codes = np.array([feature.n_codes for feature in self.factuals.schema.features])
        self._response_range = pool_search.surrogate.response_range(n_codes)
        self._desired = pool_search.surrogate.desired(self.task.decision)
        ends = np.abs([self._desired.low, self._desired.high])
        size = ends[np.isfinite(ends) & (ends > 0)].max(initial=0.0) or 1.0
        # The typical error of the surrogate, and the unit of margins.
        self.typical_error = max(pool_search.surrogate.error, LEAST_ERROR * size)
        unit = max(
            math.ldexp(self.typical_error, -BITS_OF_ERROR), math.ldexp(size, -BITS_OF_SCORES)
        )
        self._unit = math.ldexp(1.0, math.frexp(unit)[1])
        self._add_own()

    def _add_own(self) -> None:
        """Add the people's own rows; their scores are known."""
        own, person = self.task.request.scored, np.arange(self.positions.size)
        unchanged = np.full((self.n_mutable, person.size), OWN, dtype=np.int32)
        row_ids = self.add(person, unchanged)
        self.excluded_by[row_ids] = MAY_RETURN
        refused = np.zeros(person.size, dtype=bool)
        self._learn(row_ids, ScoredRows(own.score[self.positions], refused))

    def __len__(self) -> int:
        return len(self.cells)

    def codes(self, row_ids: IntArray) -> Codes:
        """Codes of rows, shape (n_mutable, n_rows)."""
        return np.ascontiguousarray(self.cells[row_ids, 1:].T)

    def actions(self, row_ids: IntArray) -> Codes:
        """Codes of rows without what follows from other changes."""
        codes = self.codes(row_ids)
        codes[self.task.computed_places] = OWN
        return codes

    def keys(self, row_ids: IntArray) -> Codes:
        """Keys of rows in the store of scores: their people and actions."""
        return keys_of_people(self.positions[self.person[row_ids]], self.actions(row_ids))

    def rows(self, row_ids: IntArray) -> CandidateRows:
        """Rows by id."""
        return self._rows(self.person[row_ids], self.codes(row_ids))

    def _rows(self, person: IntArray, codes: Codes) -> CandidateRows:
        return CandidateRows(self.factuals, self.positions[person], codes, self.values.tables)

    def add(self, person: IntArray, codes: Codes, response: FloatArray | None = None) -> IntArray:
        """The id of each row, with what follows from its changes; new rows are added.

        ``response`` is what was predicted of the rows, if it was.
        """
        cells = np.concatenate([person[None].astype(np.int32), codes]).T
        consequences = self.task.consequences
        if consequences is None:
            return self._number(cells, response)
        # What follows is computed once for each set of changes.
        cells[:, [1 + place for place in consequences.places]] = OWN
        actions = self._actions.number_rows(cells)
        new = _first_new(actions, self._row_of_actions.size)
        if new.size:
            owner, changes = self.positions[person[new]], np.ascontiguousarray(cells[new, 1:].T)
            cells[new, 1:] = consequences.add_consequences(self.values, owner, changes).T
            self._row_of_actions = _append_with_room(self._row_of_actions, self._number(cells[new]))
        return self._row_of_actions[actions]

    def predict(self, person: IntArray, codes: Codes) -> FloatArray:
        """The surrogate's predictions of rows without what follows; nothing is added."""
        return self._predict(self._rows(person, codes))

    def _predict(self, rows: CandidateRows) -> FloatArray:
        return self.pool_search.surrogate.predict(self.encodings.tree_codes(rows))

    def standardized_margin(self, person: IntArray | None, response: FloatArray) -> FloatArray:
        """The margin of predictions in typical errors, corrected by the error at people's own rows.

        Without people, nothing is corrected.
        """
        if person is not None:
            # Shrunk, as it corrects their other rows.
            response = response + self._total[person] / (self._weight[person] + NO_ERROR)
        return self._margin(response) / self.typical_error

    def distances(self, person: IntArray, codes: Codes) -> FloatArray:
        """How far rows are from people's own, without what follows; nothing is added."""
        return measure_rows(self._rules.distance, self._rows(person, codes))

    @property
    def encodings(self) -> CandidateEncodings:
        """The encodings of all values so far."""
        if self._encodings is None or self._encodings.tables is not self.values.tables:
            self._encodings = CandidateEncodings(self.factuals, self.values.tables)
        return self._encodings

    def chance(self, row_ids: IntArray) -> FloatArray:
        """How likely rows are to be valid, as far as the surrogate can tell; 0 or 1 if scored."""
        inside = self.margin[row_ids] / self.typical_error
        # Student's t distribution with two degrees of freedom: large errors are not rare.
        chance = 0.5 + inside / (2 * np.sqrt(2 + inside * inside))
        return np.where(self.scored[row_ids], self.valid[row_ids], chance)

    def may_return(self, row_ids: IntArray) -> BoolArray:
        """Which rows may be returned if they are valid: found out once, cheap checks first."""
        new = np.unique(row_ids[self.excluded_by[row_ids] == UNKNOWN])
        if new.size:
            self.excluded_by[new] = self._rules.first_broken(self.rows(new))
        return self.excluded_by[row_ids] == MAY_RETURN

    def measure_knn(self, row_ids: IntArray) -> None:
        """Find the distance of rows to accepted ones, and which are copies, unless known."""
        new = np.unique(row_ids[np.isnan(self.knn_distance[row_ids])])
        if not new.size:
            return
        if self.pool_search.knn_model is None:
            self.knn_distance[new] = 0.0
            return
        points = self.encodings.points(self.rows(new))
        self.knn_distance[new], copy = self.pool_search.knn_model(points)
        self.copy[new] = copy & self.pool_search.copies_last

    def may_score(self, person: IntArray) -> BoolArray:
        """Whether the predictor may score another row of people."""
        may_score: BoolArray = self.task.scores.n_left(self.positions[person]) > 0
        return may_score

    def remembered(self) -> IntArray:
        """Rows that an earlier search has scored, of people who may have no other row scored."""
        if not self.task.scores.is_bounded:
            return np.empty(0, dtype=np.int64)
        row_ids = np.flatnonzero(~self.scored & ~self.may_score(self.person))
        return row_ids[self.task.scores.are_known(self.keys(row_ids))]

    def _within_limit(self, row_ids: IntArray) -> IntArray:
        """Rows with a known score, and as many others as each person's limit allows."""
        within = self.task.scores.are_known(self.keys(row_ids))
        new = np.flatnonzero(~within)
        person = self.person[row_ids[new]]
        left = self.task.scores.n_left(self.positions[person])
        within[new] = times_seen_before(person) < left
        return row_ids[within]

    def score_rows(self, row_ids: IntArray) -> None:
        """Have the predictor score rows, up to each person's limit, and correct predictions."""
        row_ids = np.unique(row_ids[~self.scored[row_ids]])
        if self.task.scores.is_bounded:
            row_ids = self._within_limit(row_ids)
        if not row_ids.size:
            return
        rows, keys = self.rows(row_ids), self.keys(row_ids)
        started = time.perf_counter()
        scored, n_new = self.task.scores.score(self.task.decision, rows, keys)
        self.n_evaluated += n_new
        self.seconds_scored += time.perf_counter() - started
        # All at once: corrections must not depend on where calls are cut.
        self._learn(row_ids, scored)

    def measured(self, row_ids: IntArray, rank: IntArray) -> MeasuredRows:
        """Rows with their measures, by factual and rank."""
        rows = self.rows(row_ids)
        costs = self.score[row_ids], self.sparsity[row_ids], self.gower(row_ids)
        return MeasuredRows(rows.compacted(), self.keys(row_ids), rank, *costs).sort()

    def misses_and_reasons(self, people: IntArray) -> tuple[MeasuredRows, dict[int, Reason]]:
        """The nearest misses of people without an answer, and why they have none."""
        decision, checks = self.task.decision, self._rules.checks
        row_ids = np.flatnonzero(np.isin(self.person, people) & (self.sparsity > 0))
        scored, left = row_ids[self.scored[row_ids]], row_ids[~self.scored[row_ids]]
        shortfall = decision.shortfall(self.score[scored]).round(SHORTFALL_DECIMALS)
        misses = scored[best_of_each(self.person[scored], shortfall, scored)]
        best = dict(zip(self.person[misses].tolist(), self.score[misses].tolist(), strict=True))
        likely = left[self.chance(left) >= LIKELY]
        likely = likely[~self.may_return(likely)]
        excluding: defaultdict[int, set[RowFilter]] = defaultdict(set)
        for person, number in zip(self.person[likely], self.excluded_by[likely], strict=True):
            excluding[int(person)].add(checks[number - 1])
        n_rows = np.bincount(self.person[row_ids], minlength=self.positions.size)
        n_scored = np.bincount(self.person[scored], minlength=self.positions.size)
        may_go_on = self.may_score(np.arange(self.positions.size))
        reasons = {
            int(self.positions[person]): reason_of(
                decision,
                n_rows=int(n_rows[person]),
                n_scored=int(n_scored[person]),
                best_score=best.get(person),
                excluding=excluding[person],
                may_go_on=bool(may_go_on[person]),
                must_last=self.task.request.without_survival is not None,
            )
            for person in people.tolist()
        }
        return self.measured(misses, np.zeros_like(misses)), reasons

    def gower(self, row_ids: IntArray) -> FloatArray:
        """Gower distances without weights, whatever distance the search is for."""
        if is_plain_gower(self._rules.distance):
            return self.distance[row_ids]
        return measure_rows(Gower(), self.rows(row_ids))

    def _number(self, cells: Codes, response: FloatArray | None = None) -> IntArray:
        n_known, row_ids = len(self.cells), self._row_ids.number_rows(cells)
        new = _first_new(row_ids, n_known)
        if new.size:
            self._append(cells[new], None if response is None else response[new])
        return row_ids

    def _append(self, cells: Codes, response: FloatArray | None) -> None:
        """Add rows that are not in the pool yet, and predict their scores."""
        n_known, n_new = len(self.cells), len(cells)
        row_ids = np.arange(n_known, n_known + n_new)
        self.cells = _append_with_room(self.cells, cells)
        for name, value in NEW_ROW.items():
            column = _append_with_room(getattr(self, name), np.full(n_new, value))
            setattr(self, name, column)
        self.person[row_ids] = cells[:, 0]
        changed = cells[:, 1:] != OWN
        self.sparsity[row_ids] = self.n_counted[row_ids] = changed.sum(axis=1)
        if self.pool_search.count_actions:
            self.n_counted[row_ids] -= changed[:, self.task.computed_places].sum(axis=1)
        rows = self.rows(row_ids)
        self.distance[row_ids] = measure_rows(self._rules.distance, rows)
        self._response[row_ids] = self._predict(rows) if response is None else response
        self._correct(row_ids, self._errors)

    def _learn(self, row_ids: IntArray, scored: ScoredRows) -> None:
        """Keep the predictor's scores, and correct the predictions for other rows."""
        self.score[row_ids], self.valid[row_ids] = scored.score, scored.valid
        self.scored[row_ids] = True
        person = self.person[row_ids]
        response = self.pool_search.surrogate.response(scored)
        error = response - self._response[row_ids]
        misfit = max(MISFIT_SHARE * self._response_range, MISFIT_ERRORS * self.typical_error)
        teaches = (row_ids >= self.positions.size) | (np.abs(error) <= misfit)
        error = np.clip(error, -misfit / MISFIT_SHARE, misfit / MISFIT_SHARE)
        new = person[teaches], row_ids[teaches], error[teaches]
        self._errors = tuple(map(np.concatenate, zip(self._errors, new, strict=True)))  # type: ignore[assignment]
        touched = np.zeros(self.positions.size, dtype=bool)
        touched[person] = True
        self._correct(np.flatnonzero(touched[self.person] & ~self.scored), new)
        self._correct(row_ids[row_ids < self.positions.size], new)
        self.margin[row_ids] = self._margin(response)

    def _correct(self, row_ids: IntArray, errors: tuple[IntArray, IntArray, FloatArray]) -> None:
        """Add errors at people's rows to the corrections of their other rows."""
        order = np.argsort(errors[0], kind="stable")
        owner, person = errors[0][order], self.person[row_ids]
        between = np.searchsorted(owner, person), np.searchsorted(owner, person, side="right")
        sums = self._total[row_ids], self._weight[row_ids]
        total, weight = weigh_errors(
            self.cells, row_ids, between, errors[1][order], errors[2][order], sums
        )
        self._total[row_ids], self._weight[row_ids] = total, weight
        correction = total / (weight + NO_ERROR)
        self.margin[row_ids] = self._margin(self._response[row_ids] + correction)

    def _margin(self, response: FloatArray) -> FloatArray:
        limit = MAX_ERRORS * self.typical_error
        margin = np.clip(self._desired.margin(response), -limit, limit)
        rounded: FloatArray = np.rint(margin / self._unit) * self._unit
        return rounded


def _first_new(row_ids: IntArray, n_known: int) -> IntArray:
    """Where ids beyond the known ones first appear, which they do in ascending order."""
    largest = np.maximum.accumulate(np.maximum(row_ids, n_known - 1))
    return np.flatnonzero(np.diff(largest, prepend=n_known - 1))


def _append_with_room(array: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Both arrays as one, with spare room, so that repeated appending seldom copies."""
    size, room = len(array) + len(more), array.base
    if room is None or room.ndim != array.ndim or len(room) < size:
        room = np.empty((2 * size, *array.shape[1:]), dtype=array.dtype)
        room[: len(array)] = array
    room[len(array) : size] = more
    return room[:size]


def best_of_each(person: IntArray, *keys: np.ndarray, n: int | IntArray = 1) -> IntArray:
    """Indices of each person's first ``n`` entries in the order of the keys, decisive key first.

    Of equal entries, those given first.
    """
    order = np.lexsort((*reversed(keys), person))
    limit = n if isinstance(n, int) else n[order]
    return order[times_seen_before(person[order]) < limit]
