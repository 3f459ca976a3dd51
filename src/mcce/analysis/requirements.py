"""What a row must keep to do as well as a counterfactual: allowed, plausible and valid.

Takes variants of counterfactuals. A variant is allowed if it breaks no constraint, no relation
found at fit and no bound of the search, is no copy of a training row where the search returns none,
and is plausible if the search would find it so. Only such rows are scored by the predictor.

Always true: what a counterfactual does not keep itself is not required of its variants; the result
for a row does not depend on other rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ..candidates import CandidateRows
from ..constraints.collection import Constraints
from ..distances import measure_rows
from ..fitted import Fitted
from ..kernels import BoolArray, Codes, FloatArray, IntArray
from ..postprocess.filters import IsPlausible
from ..postprocess.validation import ROWS_PER_CALL
from ..predictors.decision import Decision
from ..protocols import Distance, RowFilter
from ..relations.relation import Relation
from ..search.config import Search, weighted
from ..search.consequences import ComputedColumn, kept_relations
from ..search.plan import Settings, recomputed, row_filters
from ..tables.schema import OWN
from .answers import Answers, AnswerVariants


@dataclass(frozen=True, eq=False)
class Requirements:
    """What a search requires of the rows that it returns."""

    decision: Decision
    constraints: Constraints
    relations: Sequence[Relation]
    filters: Sequence[RowFilter | IsPlausible]
    distance: Distance
    max_sparsity: int | None
    max_distance: float | None
    targets: Sequence[ComputedColumn]

    @classmethod
    def of(cls, fitted: Fitted, settings: Settings, constraints: Constraints) -> Requirements:
        """What the search of an explainer requires."""
        given = settings.search
        search = given if isinstance(given, Search) else given.fallback
        relations = kept_relations(fitted, given, settings.ignore_relations, constraints)
        # Constraints on whole rows are checked with all others, by the values of rows.
        none = Constraints.bind(None, fitted.schema)
        filters: list[RowFilter | IsPlausible]
        filters = [*row_filters(fitted, given, none, relations, {})]
        # Without a model there is no accepted row, and so no answer.
        if search.min_plausibility > 0 and fitted.plausibility is not None:
            filters.append(IsPlausible(fitted.plausibility, search.min_plausibility))
        return cls(
            fitted.decision.with_margin(search.margin),
            constraints,
            relations,
            filters,
            weighted(fitted.distance, constraints),
            search.max_sparsity,
            search.max_distance,
            recomputed(fitted, settings, constraints),
        )

    def broken(self, rows: CandidateRows) -> dict[Hashable, BoolArray]:
        """Which rows break what is required beside the decision, by name."""
        if not rows.owner.size:
            return {}
        broken: dict[Hashable, BoolArray] = {
            ("constraint", name): breaks for name, breaks in self._broken_constraints(rows).items()
        }
        for check in self.filters:
            broken["filter", check.name] = ~check.keeps(rows)
        if self.max_sparsity is not None:
            broken["max_sparsity"] = (rows.codes != OWN).sum(axis=0) > self.max_sparsity
        if self.max_distance is not None:
            broken["max_distance"] = measure_rows(self.distance, rows) > self.max_distance
        return broken

    def obeys(self, rows: CandidateRows) -> BoolArray:
        """Which rows break no constraint."""
        obeys = np.ones(rows.owner.size, dtype=bool)
        for breaks in self._broken_constraints(rows).values():
            obeys &= ~breaks
        return obeys

    def score(self, rows: CandidateRows) -> BoolArray:
        """Which rows have the desired decision, by fresh calls of the predictor."""
        starts = range(0, rows.owner.size, ROWS_PER_CALL)
        pieces = [
            rows.take(np.arange(start, min(start + ROWS_PER_CALL, rows.owner.size)))
            for start in starts
        ]
        scored = [self.decision.score(piece.frame).valid for piece in pieces]
        return np.concatenate([np.zeros(0, dtype=bool), *scored])

    def _broken_constraints(self, rows: CandidateRows) -> dict[str, BoolArray]:
        if not self.constraints.listed or not rows.owner.size:
            return {}
        return self.constraints.broken(rows.rows, rows.owner, rows.frame)


class Trials:
    """Tries variants of counterfactuals."""

    def __init__(self, requirements: Requirements, answers: Answers) -> None:
        self.answers = answers
        self._requirements = requirements
        self._variants = AnswerVariants(answers, requirements.targets, requirements.constraints)
        originals = self._variants.originals()
        self._waived = requirements.broken(originals)
        self.obeys: BoolArray = requirements.obeys(originals)
        self.valid: BoolArray = requirements.score(originals)

    def place(self, row: int, numbers: FloatArray) -> Codes:
        """Codes of any numbers of a mutable feature, for :meth:`make`."""
        return self._variants.place(row, numbers)

    def make(self, answer: IntArray, codes: Codes) -> CandidateRows:
        """Variants of counterfactuals; see :meth:`AnswerVariants.make`."""
        return self._variants.make(answer, codes)

    def allowed(self, answer: IntArray, codes: Codes) -> BoolArray:
        """Which variants are allowed and plausible."""
        return self._allows(answer, self.make(answer, codes))

    def hold(self, answer: IntArray, codes: Codes) -> tuple[BoolArray, BoolArray]:
        """Which variants would do as well, and which the predictor had to score for that."""
        rows = self.make(answer, codes)
        allowed = self._allows(answer, rows)
        held = allowed.copy()
        held[allowed] = self._requirements.score(rows.take(allowed))
        return held, allowed

    def _allows(self, answer: IntArray, rows: CandidateRows) -> BoolArray:
        allowed = np.ones(answer.size, dtype=bool)
        for name, broken in self._requirements.broken(rows).items():
            allowed &= ~broken | self._waived[name][answer]
        return allowed
