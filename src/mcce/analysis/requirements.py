"""What a row must keep to do as well as a counterfactual: allowed, plausible and valid.

Takes variants of counterfactuals. A variant is allowed if it breaks no constraint and no relation
found at fit, and plausible if the search would find it plausible enough; only such rows are scored
by the predictor.

Always true: what a counterfactual does not keep itself is not required of its variants; the result
for a row does not depend on other rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ..candidates import CandidateRows
from ..constraints.collection import Constraints
from ..fitted import Fitted, plausibility_model
from ..kernels import BoolArray, Codes, IntArray
from ..postprocess.filters import IsPlausible, KeepsRelation
from ..postprocess.validation import ROWS_PER_CALL
from ..predictors.decision import Decision
from ..relations import Relation
from ..search.config import Search
from ..search.followers import Target
from ..search.plan import Settings, recomputed
from ..search.relations import kept_relations
from .answers import Answers, AnswerVariants


@dataclass(frozen=True, eq=False)
class Requirements:
    """What a search requires of the rows that it returns.

    Parameters
    ----------
    decision
        The predictor with what is desired, and how far inside a score must be.
    constraints, relations
        What rows must keep; relations are those found at fit.
    plausible
        Whether rows are plausible enough; None if they need not be.
    targets
        The columns that follow from others.
    """

    decision: Decision
    constraints: Constraints
    relations: Sequence[Relation]
    plausible: IsPlausible | None
    targets: Sequence[Target]

    @classmethod
    def of(cls, fitted: Fitted, settings: Settings, constraints: Constraints) -> Requirements:
        """What the search of an explainer requires."""
        given = settings.search
        search = given if isinstance(given, Search) else given.fallback
        plausible = None
        if search.min_plausibility > 0:
            plausible = IsPlausible(plausibility_model(fitted), search.min_plausibility)
        relations = kept_relations(fitted, given, settings.ignore_relations, constraints)
        return cls(
            fitted.decision.with_margin(search.margin),
            constraints,
            relations,
            plausible,
            recomputed(fitted, settings, constraints),
        )


class Trials:
    """Tries variants of counterfactuals, and counts the rows that the predictor scores.

    Parameters
    ----------
    requirements
        What variants must keep.
    answers
        The counterfactuals.

    Attributes
    ----------
    valid : (n_counterfactuals,)
        Whether they are valid by a fresh call.
    """

    def __init__(self, requirements: Requirements, answers: Answers) -> None:
        self.answers = answers
        self._requirements = requirements
        self._variants = AnswerVariants(answers, requirements.targets, requirements.constraints)
        self._relations = [KeepsRelation(relation) for relation in requirements.relations]
        originals = self._variants.originals()
        self._waived = self._broken(originals)
        self.valid: BoolArray = self._score(originals)

    def allowed(self, answer: IntArray, codes: Codes) -> BoolArray:
        """Which variants are allowed and plausible; see :meth:`AnswerVariants.make`."""
        return self._allows(answer, self._variants.make(answer, codes))

    def hold(self, answer: IntArray, codes: Codes) -> tuple[BoolArray, BoolArray]:
        """Which variants would do as well, and which the predictor had to score for that."""
        rows = self._variants.make(answer, codes)
        allowed = self._allows(answer, rows)
        held = allowed.copy()
        held[allowed] = self._score(rows.take(allowed))
        return held, allowed

    def _allows(self, answer: IntArray, rows: CandidateRows) -> BoolArray:
        allowed = np.ones(answer.size, dtype=bool)
        for name, broken in self._broken(rows).items():
            allowed &= ~broken | self._waived[name][answer]
        return allowed

    def _broken(self, rows: CandidateRows) -> dict[Hashable, BoolArray]:
        """Which rows break what is required, by name."""
        required = self._requirements
        broken: dict[Hashable, BoolArray] = {}
        if not rows.owner.size:
            return broken
        if required.constraints.listed:
            found = required.constraints.broken(rows.rows, rows.owner, rows.frame)
            broken |= {("constraint", name): breaks for name, breaks in found.items()}
        for relation in self._relations:
            broken["relation", relation.name] = ~relation.keeps(rows)
        if required.plausible is not None:
            broken["plausible"] = ~required.plausible.keeps(rows)
        return broken

    def _score(self, rows: CandidateRows) -> BoolArray:
        """Which rows are valid."""
        starts = range(0, rows.owner.size, ROWS_PER_CALL)
        pieces = [
            rows.take(np.arange(start, min(start + ROWS_PER_CALL, rows.owner.size)))
            for start in starts
        ]
        scored = [self._requirements.decision.score(piece.frame).valid for piece in pieces]
        return np.concatenate([np.zeros(0, dtype=bool), *scored])
