"""The rows that a search visited in a block of people, and what is known of each.

Beyond the paper. Each distinct row is stored once and scored at most once.

A row is *evaluated* once it has a score. In a search with a surrogate that is a prediction until
the predictor has *scored* the row (``PredictedRows``). Predictions are corrected by the surrogate's
errors for the same person: at their own row, whose score is known, and at every row that the
predictor scored. Errors at rows that share more cells count more. At first, rows that fall short by
little are predicted valid too; each time that is wrong, more is required of the person's rows.

Always true: a person's predictions depend on no other person; the predictor scores a row at most
once, and for no person more rows than allowed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from ..candidates import CandidateEncodings, CandidateRows, Candidates
from ..constraints.collection import Constraints
from ..constraints.kinds import Together
from ..distances import is_plain_gower
from ..kernels import (
    BoolArray,
    Codes,
    FloatArray,
    IntArray,
    RowTable,
    differences,
    times_seen_before,
    weigh_errors,
)
from ..plausibility.model import KnnDistance
from ..postprocess.filters import ExcludeUnstable, IsPlausible, RowFilter
from ..postprocess.ranking import Ranking
from ..postprocess.validation import score_rows
from ..predictors.decision import ROWS_PER_CALL, ScoredRows
from ..tables.schema import OWN, Schema
from .consequences import Consequences, GrowingTables
from .history import SurrogateRun
from .stage import SearchTask

# Decimals by which scores are compared: further ones may depend on the number of rows in a call.
DECIMALS = 10
# If fewer than one in 32 rows is new, sorting their ids is faster than marking them.
SORTING_RATIO = 32
# With more mutable features, those that the surrogate splits on most often are moved first.
MAX_INFLUENTIAL = 32
# Errors are halved per differing cell, and shrunk towards zero with this prior weight.
NO_ERROR = 0.1
# A row may at first fall short by this many typical errors of the surrogate, and less with each
# wrong prediction; after ``OPTIMISTIC_UNTIL`` of them, not at all.
OPTIMISM, OPTIMISTIC_UNTIL = 3.0, 6
# After this many wrong predictions for a person, the surrogate is not trusted for them.
MAX_WRONG = 24
# At most this many scores of a person correct predictions, or twice as many in one batch.
MAX_LEARNED = 64


@dataclass(frozen=True, eq=False)
class WalkSettings:
    """What a row must satisfy, and how a walk may go."""

    task: SearchTask
    filters: tuple[RowFilter, ...]
    plausible: IsPlausible | None
    feature_sets: BoolArray
    extra_changes: int
    n_targets: int
    backwards: bool = False


def find_feature_sets(constraints: Constraints, consequences: Consequences | None) -> BoolArray:
    """The sets of mutable features that change together, shape (n_sets, n_mutable)."""
    set_of = np.arange(constraints.schema.mutable.size)
    for constraint in constraints.of_rows:
        if isinstance(constraint, Together):
            linked = np.isin(set_of, set_of[constraints.mutable_places(constraint)])
            set_of[linked] = set_of[linked].min()
    feature_sets = np.unique(set_of)[:, None] == set_of
    if consequences is not None:
        feature_sets[:, consequences.places] = False
    return feature_sets[feature_sets.any(axis=1)]


def influential_sets(settings: WalkSettings, schema: Schema) -> BoolArray:
    """The sets whose changes the surrogate notices most; all of them if few features are mutable.

    Among many features it looks at few, and the others cannot make a row valid.
    """
    run, consequences = settings.task.surrogate_run, settings.task.consequences
    surrogate = None if run is None else run.surrogate
    if surrogate is None or not surrogate.is_good or schema.mutable.size <= MAX_INFLUENTIAL:
        return np.ones(len(settings.feature_sets), dtype=bool)
    noticed = np.isin(schema.mutable, surrogate.inputs(MAX_INFLUENTIAL))
    for column in reversed(() if consequences is None else consequences.columns):
        noticed[column.actions] |= noticed[column.place]
    return settings.feature_sets @ noticed


class VisitedRows:
    """Every row that was visited in a block of people, and what is known of it."""

    # Stored for a new row.
    initial_values: ClassVar[dict[str, float]] = {
        **dict.fromkeys(("filters_known", "allowed", "evaluated", "valid"), False),
        **dict.fromkeys(("plausibility_known", "plausible", "costs_known", "copy"), False),
        **dict.fromkeys(("sparsity", "n_actions", "score", "gower", "distance"), 0),
        "reach_order": -1,
        "knn_distance": np.nan,
    }

    def __init__(self, settings: WalkSettings, candidates: Candidates) -> None:
        self.settings, self.task, self.candidates = settings, settings.task, candidates
        self.factuals, self.positions = candidates.rows, candidates.people
        self.values = GrowingTables(candidates.rows, candidates.tables)
        width = 1 + self.factuals.schema.mutable.size
        self._row_ids = RowTable(width)
        # Rows by their actions alone, without consequences.
        self._actions = RowTable(width)
        self._completed: IntArray = np.empty(0, dtype=np.int64)
        self._encodings: CandidateEncodings | None = None
        self.cells: Codes = np.empty((0, width), dtype=np.int32)
        self.person: IntArray = np.empty(0, dtype=np.int64)
        self.filters_known, self.allowed, self.evaluated, self.valid = np.empty((4, 0), dtype=bool)
        self.plausibility_known, self.plausible = np.empty((2, 0), dtype=bool)
        self.costs_known, self.copy = np.empty((2, 0), dtype=bool)
        self.draw, self.reach_order = np.empty((2, 0), dtype=np.int64)
        self.sparsity, self.n_actions = np.empty((2, 0), dtype=np.int64)
        self.score, self.gower, self.distance, self.knn_distance = np.empty((4, 0))
        self.n_evaluated = 0

    def number_rows(self, person: IntArray, draw: IntArray | Codes, codes: Codes) -> IntArray:
        """The id of each row, with what follows from its changes; new rows are added."""
        cells = np.concatenate([person[None].astype(np.int32), codes]).T
        consequences = self.task.consequences
        if consequences is None:
            return self._number_cells(cells, draw)
        # What follows is computed once for each set of changes.
        cells[:, [1 + at for at in consequences.places]] = OWN
        actions = self._actions.number_rows(cells)
        new = _new(actions, self._completed.size)
        if new.size:
            owner, changes = self.positions[person[new]], np.ascontiguousarray(cells[new, 1:].T)
            cells[new, 1:] = consequences.complete(self.values, owner, changes).T
            self._completed = append(self._completed, self._number_cells(cells[new], draw[new]))
        return self._completed[actions]

    def _number_cells(self, cells: Codes, draw: IntArray | Codes) -> IntArray:
        n_known, row_ids = len(self.cells), self._row_ids.number_rows(cells)
        new = _new(row_ids, n_known)
        self._add(cells[new], draw[new])
        return row_ids

    def reach(self, row_ids: IntArray) -> None:
        """Note that walks have reached rows, in this order."""
        new = row_ids[self.reach_order[row_ids] < 0]
        new = new[np.sort(np.unique(new, return_index=True)[1])]
        self.reach_order[new] = self.reach_order.max(initial=-1) + 1 + np.arange(new.size)

    def rows(self, row_ids: IntArray) -> CandidateRows:
        """Rows by id."""
        cells = self.cells[row_ids]
        codes = np.ascontiguousarray(cells[:, 1:].T)
        return CandidateRows(self.factuals, self.positions[cells[:, 0]], codes, self.values.tables)

    @property
    def recomputed(self) -> list[int]:
        """Places of the mutable features that are only recomputed from others."""
        return [] if self.task.consequences is None else self.task.consequences.places

    @property
    def encodings(self) -> CandidateEncodings:
        """The encodings of all values so far."""
        if self._encodings is None or self._encodings.tables is not self.values.tables:
            self._encodings = CandidateEncodings(self.factuals, self.values.tables)
        return self._encodings

    def evaluate(self, row_ids: IntArray) -> None:
        """Score rows, unless that was done."""
        new = self._without(self.evaluated, row_ids)
        if new.size:
            self.store_scores(new, self._score(new))

    def _score(self, row_ids: IntArray) -> ScoredRows:
        """The predictor's scores of rows, in calls of bounded size."""
        task, parts = self.task, list[ScoredRows]()
        for start in range(0, row_ids.size, ROWS_PER_CALL):
            rows = self.rows(row_ids[start : start + ROWS_PER_CALL])
            parts.append(score_rows(task.decision, rows, task.row_scores))
        self.n_evaluated += row_ids.size
        score = np.concatenate([part.score for part in parts])
        return ScoredRows(score, np.concatenate([part.valid for part in parts]))

    def store_scores(self, row_ids: IntArray, scored: ScoredRows) -> None:
        """Keep the predictor's scores of rows."""
        self.score[row_ids], self.valid[row_ids] = scored.score, scored.valid
        self.evaluated[row_ids] = True

    def desirability(self, row_ids: IntArray) -> FloatArray:
        """How good the scores of rows are, larger being better."""
        return self.task.decision.desirability(self.score[row_ids]).round(DECIMALS)

    def check_filters(self, row_ids: IntArray) -> None:
        """Check rows against the filters, unless that was done."""
        new = self._without(self.filters_known, row_ids)
        if not new.size:
            return
        rows = self.rows(new)
        self.allowed[new] = True
        for keep in self.settings.filters:
            self.allowed[new] &= keep.keeps(rows)
        self.filters_known[new] = True

    def check_plausibility(self, row_ids: IntArray) -> None:
        """Check whether rows are plausible, unless that was done."""
        new = self._without(self.plausibility_known, row_ids)
        if not new.size:
            return
        keep = self.settings.plausible
        self.plausible[new] = True if keep is None else keep.keeps(self.rows(new))
        self.plausibility_known[new] = True

    def mark_plausible(self, row_ids: IntArray) -> None:
        """Mark rows as plausible that passed the same check before."""
        self.plausibility_known[row_ids] = self.plausible[row_ids] = True

    def compute_costs(self, ranking: Ranking, row_ids: IntArray) -> None:
        """Compute sparsity and distance of rows, unless that was done, always for one ranking."""
        new = self._without(self.costs_known, row_ids)
        if not new.size:
            return
        alone = np.arange(new.size), np.zeros_like(new)
        block = as_block(self.candidates, self.values, self.cells[new], *alone)
        costs = row_costs(block, ranking, self.recomputed)
        self.sparsity[new], self.n_actions[new] = costs.sparsity, costs.n_actions
        self.gower[new], self.distance[new] = costs.gower, costs.distance
        self.costs_known[new] = True

    def compute_knn_distance(self, knn_distance: KnnDistance, row_ids: IntArray) -> None:
        """Compute the distance of rows to accepted ones, unless that was done."""
        new = self._without(~np.isnan(self.knn_distance), row_ids)
        if new.size:
            # Rows that share cells come together: they are measured faster.
            new = new[np.argsort(self.cells[new, 0], kind="stable")]
            points = self.encodings.points(self.rows(new))
            self.knn_distance[new], self.copy[new] = knn_distance(points)

    def are_good(self, row_ids: IntArray) -> BoolArray:
        """Rows that are valid, allowed and plausible."""
        good = self.valid[row_ids]
        self.check_filters(row_ids[good])
        good &= self.allowed[row_ids]
        self.check_plausibility(row_ids[good])
        return good & self.plausible[row_ids]

    @staticmethod
    def _without(done: BoolArray, row_ids: IntArray) -> IntArray:
        """Which of the rows are not done yet, by ascending id, each once."""
        if SORTING_RATIO * row_ids.size < done.size:
            return np.unique(row_ids[~done[row_ids]])
        wanted = np.zeros_like(done)
        wanted[row_ids] = True
        return np.flatnonzero(wanted & ~done)

    def _add(self, cells: Codes, draw: IntArray | Codes) -> None:
        self.cells = append(self.cells, cells)
        self.person = append(self.person, cells[:, 0].astype(np.int64))
        self.draw = append(self.draw, draw)
        for name, value in self.initial_values.items():
            known = getattr(self, name)
            setattr(self, name, append(known, np.full(len(cells), value, known.dtype)))


def _new(row_ids: IntArray, n_known: int) -> IntArray:
    """Where ids beyond the known ones first appear, which they do in ascending order."""
    largest = np.maximum.accumulate(np.maximum(row_ids, n_known - 1))
    return np.flatnonzero(np.diff(largest, prepend=n_known - 1))


def append(array: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Both arrays as one, with spare room, so that repeated appending seldom copies."""
    size, room = len(array) + len(more), array.base
    if room is None or room.ndim != array.ndim or len(room) < size:
        room = np.empty((2 * size, *array.shape[1:]), dtype=array.dtype)
        room[: len(array)] = array
    room[len(array) : size] = more
    return room[:size]


@dataclass(frozen=True, eq=False)
class RowCosts:
    """Sparsity and distances of rows, shape (n_rows,) each."""

    sparsity: IntArray
    n_actions: IntArray
    gower: FloatArray
    distance: FloatArray


def row_costs(block: Candidates, ranking: Ranking, recomputed: list[int]) -> RowCosts:
    """Sparsity and distances of each person's only candidate."""
    n_people = block.people.size
    sparsity, n_consequences = np.zeros((2, n_people), dtype=np.int64)
    total = np.zeros(n_people)
    for feature in block.comparison.changed_features:
        numeric = block.comparison.numbers[feature] is not None
        differs, gaps = differences(block.comparison, feature)
        changed, gap = differs[:, 0], gaps[:, 0]
        if feature in recomputed:
            n_consequences += changed
        counts = changed & (gap > ranking.tolerance) if ranking.tolerance and numeric else changed
        sparsity += counts
        total += gap
    gower = total / block.comparison.n_features
    measure = ranking.distance
    distance = gower if is_plain_gower(measure) else measure(block)[:, 0]
    return RowCosts(sparsity, sparsity - n_consequences, gower, distance)


def as_block(
    candidates: Candidates, values: GrowingTables, cells: Codes, person: IntArray, draw: IntArray
) -> Candidates:
    """Visited rows as candidates of people."""
    source = np.empty(int(person.max(initial=-1)) + 1, dtype=np.int64)
    source[person] = cells[:, 0]
    own = candidates.comparison.own_codes[:, source]
    codes = np.repeat(own[:, :, None], int(draw.max(initial=0)) + 1, axis=2)
    changed = cells[:, 1:].T
    codes[:, person, draw] = np.where(changed == OWN, own[:, person], changed)
    known = candidates.comparison.numbers
    comparison = replace(
        candidates.comparison.of(source),
        codes=codes,
        numbers=[None if own is None else values.numbers(at) for at, own in enumerate(known)],
        group=np.arange(source.size),
    )
    return replace(
        candidates,
        tables=values.tables,
        people=candidates.people[source],
        comparison=comparison,
        draws=np.arange(codes.shape[2]),
        distinct=np.ones(codes.shape[1:], dtype=bool),
    )


class SurrogateErrors(NamedTuple):
    """By how much the surrogate was wrong about rows of people, in the order of scoring."""

    person: IntArray
    row: IntArray
    error: FloatArray

    @classmethod
    def none(cls) -> SurrogateErrors:
        """No errors yet."""
        none = np.empty(0, dtype=np.int64)
        return cls(none, none, np.empty(0))

    def extended(self, more: SurrogateErrors) -> SurrogateErrors:
        """All errors, these first."""
        return SurrogateErrors._make(map(np.concatenate, zip(self, more, strict=True)))


class PredictedRows(VisitedRows):
    """Visited rows whose scores a surrogate predicts until the predictor has scored them."""

    initial_values = VisitedRows.initial_values | dict.fromkeys(
        ("scored", "_response", "_total", "_weight", "_margins"), 0
    )

    def __init__(
        self,
        settings: WalkSettings,
        run: SurrogateRun,
        candidates: Candidates,
        unstable: ExcludeUnstable,
    ) -> None:
        super().__init__(settings, candidates)
        self.run = run
        self.scored: BoolArray = np.empty(0, dtype=bool)
        self._response, self._total, self._weight, self._margins = np.empty((4, 0))
        self.n_wrong: IntArray = np.zeros(self.positions.size, dtype=np.int64)
        self._n_learned: IntArray = np.zeros(self.positions.size, dtype=np.int64)
        # Rows of people scored to find better ones, and where nothing was predicted valid.
        self.n_better, self.n_tried = np.zeros((2, self.positions.size), dtype=np.int64)
        self._was_reset: BoolArray = np.zeros(self.positions.size, dtype=bool)
        self._errors = SurrogateErrors.none()
        self._closed = False
        trained = zip(candidates.tables, candidates.rows.tables, strict=True)
        others = [at for at, (table, first) in enumerate(trained) if table is not first]
        self._is_trained = set(others) <= set(self.recomputed)
        self._unstable = unstable
        self._recall()

    def _recall(self) -> None:
        """Learn from the people themselves, and from the scores of earlier stages."""
        person = np.arange(self.positions.size)
        own = self.run.factual_scores
        if own is not None:
            codes = np.full((self.cells.shape[1] - 1, person.size), OWN, dtype=np.int32)
            theirs = ScoredRows(own.score[self.positions], np.zeros(person.size, dtype=bool))
            self._take_over(person, codes, theirs)
        if not self._is_trained:
            return
        order = np.argsort(self.positions, kind="stable")
        stable = np.setdiff1d(self.positions, self._unstable.person)
        known = np.isin(self.positions, stable)
        self.n_wrong[known] = self.run.history.n_refused[self.positions[known]]
        found = self.run.history.recall(stable)
        if found is not None:
            owner, codes, scored = found
            person = order[np.searchsorted(self.positions, owner, sorter=order)]
            self._take_over(person, codes, scored)

    def _take_over(self, person: IntArray, codes: Codes, scored: ScoredRows) -> None:
        row_ids = self.number_rows(person, np.full(person.size, -1), codes)
        self.evaluate(row_ids)
        self._learn(row_ids, scored)

    @property
    def error(self) -> float:
        """The typical error of the surrogate."""
        return self.run.surrogate.error

    def evaluate(self, row_ids: IntArray) -> None:
        """Predict the scores of rows, unless that was done."""
        new = self._without(self.evaluated, row_ids)
        if not new.size:
            return
        tree_codes = self.encodings.tree_codes(self.rows(new))
        self._response[new] = self.run.surrogate.predict(tree_codes)
        self._correct(new, self._errors)
        self.evaluated[new] = True
        self.reach(new)
        self._predict(new)

    def call_predictor(self, row_ids: IntArray) -> IntArray:
        """Have the predictor score rows, up to each person's limit; returns those it scored."""
        new = self._without(self.scored, row_ids)
        most, person = self.run.max_evaluations, self.person[new]
        if most is not None:
            n_scored = self.run.history.n_scored[self.positions[person]]
            new = new[times_seen_before(person) + n_scored < most]
        if not new.size:
            return new
        self.evaluate(new)
        rows, scored = self.rows(new), self._score(new)
        self.run.history.count(rows.owner, scored.valid)
        if self._is_trained:
            actions = rows.codes.copy()
            actions[self.recomputed] = OWN
            self.run.history.store(rows.owner, actions, scored)
        np.add.at(self.n_wrong, self.person[new], ~scored.valid)
        # All at once: corrections must not depend on where calls are cut.
        self._learn(new, scored)
        return new

    def reset_optimism(self, person: IntArray) -> None:
        """Predict rows that fall short by little as valid again, once for each person."""
        person = person[~self._was_reset[person]]
        self._was_reset[person] = True
        self.n_wrong[person] = 0
        self._predict(np.flatnonzero(self.evaluated & np.isin(self.person, person)))

    def close(self) -> None:
        """Predict nothing as valid any more: only rows that the predictor has accepted are."""
        self._closed = True
        self.valid &= self.scored

    def desirability(self, row_ids: IntArray) -> FloatArray:
        """How good the scores of rows are predicted to be, larger being better."""
        return self._margins[row_ids]

    def _learn(self, row_ids: IntArray, scored: ScoredRows) -> None:
        """Keep the predictor's scores, and correct the predictions for other rows."""
        valid = scored.valid & self._is_stable(row_ids)
        self.store_scores(row_ids, replace(scored, valid=valid))
        self.scored[row_ids] = True
        response = self.run.surrogate.response(scored)
        self._margins[row_ids] = self._margin(response)
        person = self.person[row_ids]
        # Each person's first scores correct the most.
        taught = (self._n_learned[person] < MAX_LEARNED) & (times_seen_before(person) < MAX_LEARNED)
        np.add.at(self._n_learned, person[taught], 1)
        error = response - self._response[row_ids]
        new = SurrogateErrors(person[taught], row_ids[taught], error[taught])
        self._errors = self._errors.extended(new)
        touched = np.zeros(self.positions.size, dtype=bool)
        touched[person] = True
        theirs = np.flatnonzero(self.evaluated & touched[self.person])
        self._correct(theirs, new)
        self._predict(theirs)

    def _correct(self, row_ids: IntArray, errors: SurrogateErrors) -> None:
        """Add errors at people's rows to the corrections of their other rows."""
        order = np.argsort(errors.person, kind="stable")
        person, theirs = errors.person[order], self.person[row_ids]
        between = np.searchsorted(person, theirs), np.searchsorted(person, theirs, side="right")
        sums = self._total[row_ids], self._weight[row_ids]
        found = weigh_errors(
            self.cells, row_ids, between, errors.row[order], errors.error[order], sums
        )
        self._total[row_ids], self._weight[row_ids] = found

    def _predict(self, row_ids: IntArray) -> None:
        """Predict the rows that the predictor has not scored, by the scores so far."""
        row_ids = row_ids[~self.scored[row_ids]]
        person = self.person[row_ids]
        correction = self._total[row_ids] / (self._weight[row_ids] + NO_ERROR)
        margins = self._margin(self._response[row_ids] + correction)
        self._margins[row_ids] = margins
        slack = OPTIMISM * self.error * (1 - self.n_wrong[person] / OPTIMISTIC_UNTIL)
        trusted = self.n_wrong[person] < MAX_WRONG
        self.valid[row_ids] = (margins >= -slack) & trusted & self._may_score(person)
        self.valid[row_ids] &= self._is_stable(row_ids)

    def _is_stable(self, row_ids: IntArray) -> BoolArray:
        """Rows that did not fail the final call, by the draws that led to them."""
        owner = self.positions[self.person[row_ids]]
        return ~self._unstable.has_failed(owner, self.draw[row_ids])

    def _may_score(self, person: IntArray) -> BoolArray:
        if self._closed:
            return np.zeros(person.size, dtype=bool)
        return self.run.may_score(self.positions[person])

    def _margin(self, response: FloatArray) -> FloatArray:
        return self.run.surrogate.margin(self.task.decision, response).round(DECIMALS)
