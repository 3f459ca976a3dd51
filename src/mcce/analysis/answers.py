"""Counterfactuals of a result, rows that differ from them in a few cells, and what these must keep.

Takes what ``explain`` returned, or another method. Rows are made of cells of the person, of the
counterfactual and of training values. Such a variant is allowed if it breaks no constraint, no
relation found at fit and no bound of the search, is no copy of a training row where the search
returns none, and is plausible if the search would find it so. Only such rows are scored.

Always true: a cell that is the person's own is taken from the person's row, never decoded; columns
that follow from others follow in every row that is made here; what a counterfactual does not keep
itself is not required of its variants; the result for a row does not depend on other rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ..caching import cached_property
from ..candidates import CandidateRows
from ..constraints.collection import Constraints
from ..counterfactuals.result import Counterfactuals
from ..encodings import GrowingTables
from ..errors import McceWarning, ParameterError, SchemaError
from ..fitted import Fitted
from ..kernels import BoolArray, Codes, FloatArray, IntArray, times_seen_before
from ..postprocess.filters import RowRules
from ..postprocess.validation import score_in_calls
from ..predictors.decision import ROWS_PER_CALL, Decision, ScoredRows
from ..relations.consequences import ComputedColumn, Consequences, computed_columns
from ..relations.relation import Relation
from ..runtime.progress import ProgressBar
from ..search.config import ExplainSettings
from ..search.plan import default_margin, row_rules
from ..search.prerequisites import kept_relations, weighted
from ..tables.columns import differ
from ..tables.dtypes import cast_like
from ..tables.schema import OWN, EncodedRows, Schema


@dataclass(frozen=True, eq=False)
class EncodedAnswers:
    """Counterfactuals and the person of each; :meth:`read` checks them."""

    factuals: EncodedRows
    owner: IntArray
    rows: EncodedRows
    changed: BoolArray
    acted: BoolArray

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def read(
        cls, schema: Schema, result: Counterfactuals[Any], computed: Sequence[ComputedColumn]
    ) -> EncodedAnswers:
        """The counterfactuals of a result, if they can be those of this schema."""
        if not isinstance(result, Counterfactuals):
            raise ParameterError(
                "result must be what explain returned, a Counterfactuals, got "
                f"{type(result).__name__}."
            )
        frame = result.to_pandas().frame
        if set(frame.columns) != set(schema.names):
            raise SchemaError(
                f"The result has the columns {list(frame.columns)!r}, but this explainer "
                f"was fitted on {schema.names!r}. Pass a result of this explainer."
            )
        factuals, rows = schema.encode(result.factuals), schema.encode(frame)
        return cls.make(factuals, result.owner, rows, computed)

    @classmethod
    def make(
        cls,
        factuals: EncodedRows,
        owner: IntArray,
        rows: EncodedRows,
        computed: Sequence[ComputedColumn],
    ) -> EncodedAnswers:
        """Any rows as counterfactuals of people."""
        schema = factuals.schema
        changed = _changed(factuals.take(owner), rows)
        moved = [str(schema.names[at]) for at in schema.immutable if changed[at].any()]
        if moved:
            raise SchemaError(
                f"A row changes {moved!r}, immutable for this explainer. "
                "Pass a result of this explainer."
            )
        acted = changed[schema.mutable]
        acted[[column.place for column in computed]] = False
        return cls(factuals, owner, rows, changed[schema.mutable], acted)

    def take(self, chunk: slice) -> EncodedAnswers:
        """Consecutive counterfactuals."""
        numbers = np.arange(len(self))[chunk]
        return replace(
            self,
            owner=self.owner[numbers],
            rows=self.rows.take(numbers),
            changed=self.changed[:, numbers],
            acted=self.acted[:, numbers],
        )

    @property
    def codes(self) -> Codes:
        """The counterfactuals themselves, as codes of ``tables``."""
        return np.where(self.changed, np.arange(len(self)), OWN).astype(np.int32)

    @cached_property
    def tables(self) -> list[pd.Series[Any]]:
        """Per mutable feature the cells of the counterfactuals, and then the training values."""
        columns = [self.rows.frame.iloc[:, column] for column in self.rows.schema.mutable]
        return [
            pd.concat([cast_like(cells, table), table], ignore_index=True)
            for cells, table in zip(columns, self.factuals.tables, strict=True)
        ]


class AnswerVariants:
    """Rows that differ from counterfactuals in a few cells."""

    def __init__(
        self, answers: EncodedAnswers, computed: Sequence[ComputedColumn], constraints: Constraints
    ) -> None:
        self.answers = answers
        self._tables = GrowingTables(answers.factuals, answers.tables)
        self._consequences = None
        if computed:
            self._consequences = Consequences(computed, answers.factuals, constraints)

    def originals(self) -> CandidateRows:
        """The counterfactuals as they are."""
        answers = self.answers
        return CandidateRows(answers.factuals, answers.owner, answers.codes, self._tables.tables)

    def codes_for(self, place: int, numbers: FloatArray) -> Codes:
        """Codes of any numbers of a mutable feature, whether training held them or not."""
        return self._tables.codes_for(place, numbers)

    def make(self, answer: IntArray, codes: Codes) -> CandidateRows:
        """Variants of counterfactuals, with the consequences of their changes."""
        owner = self.answers.owner[answer]
        if self._consequences is not None:
            codes = self._consequences.add_consequences(self._tables, owner, codes)
        return CandidateRows(self.answers.factuals, owner, codes, self._tables.tables)


def chunks(n_rows: IntArray) -> Iterator[slice]:
    """Consecutive counterfactuals whose rows fit into one call of the predictor.

    Without counterfactuals, one empty chunk: tables need their columns nevertheless.
    """
    chunk = (np.cumsum(n_rows) - n_rows) // ROWS_PER_CALL
    starts = np.flatnonzero(np.diff(chunk, prepend=-1)).tolist() or [0]
    for start, end in pairwise([*starts, n_rows.size]):
        yield slice(start, end)


def in_chunks(
    answers: EncodedAnswers, n_rows: IntArray, what: str, verbose: bool
) -> Iterator[tuple[int, EncodedAnswers]]:
    """The counterfactuals chunk by chunk, each with its first number, and a progress bar."""
    bar = ProgressBar(len(answers), what, verbose)
    try:
        for chunk in chunks(n_rows):
            yield chunk.start, answers.take(chunk)
            bar.show(chunk.stop)
    finally:
        bar.close()


def warn_of_refused(valid: BoolArray, effect: str) -> None:
    """Warn of counterfactuals that are not valid, at the line that calls the explainer."""
    if not valid.all():
        warnings.warn(
            f"{int((~valid).sum())} of {valid.size} counterfactuals are not valid by this "
            f"explainer's predictor, and {effect}. Either the result is that of another "
            "explainer or the predictor is unstable.",
            McceWarning,
            stacklevel=4,
        )


def numbered(counts: IntArray) -> tuple[IntArray, IntArray]:
    """``counts`` entries for each owner: the owner, and the number among its entries from 0."""
    owner = np.repeat(np.arange(counts.size), counts)
    return owner, times_seen_before(owner)


def _changed(factuals: EncodedRows, rows: EncodedRows) -> BoolArray:
    """Cells that are not the person's own, shape (n_features, n_rows)."""
    changed = factuals.codes != rows.codes
    unseen = (factuals.codes < 0) & (rows.codes < 0)
    for column in np.flatnonzero(unseen.any(axis=1)).tolist():
        row = np.flatnonzero(unseen[column])
        before, after = (side.frame.iloc[row, column] for side in (factuals, rows))
        changed[column, row] = differ(before, after)
    return changed


@dataclass(frozen=True, eq=False)
class Requirements:
    """What a search requires of its answers; ``strict`` is the decision with the default margin."""

    decision: Decision
    strict: Decision | None
    constraints: Constraints
    relations: Sequence[Relation]
    rules: RowRules
    computed: Sequence[ComputedColumn]

    @classmethod
    def of(
        cls, fitted: Fitted, settings: ExplainSettings, constraints: Constraints
    ) -> Requirements:
        """What the search of an explainer requires."""
        search = settings.search.sampling_search
        relations = kept_relations(fitted, settings, constraints)
        weighing = replace(fitted, distance=weighted(fitted.distance, constraints))
        # Constraints on whole rows are checked with all others, by the values of rows.
        no_constraints = Constraints.bind(None, fitted.schema)
        recomputes = search.consequences == "recompute"
        found = default_margin(fitted.answering, settings.search)
        return cls(
            fitted.answering.decision.with_margin(search.margin or 0.0),
            None if found is None else found[0],
            constraints,
            [found.relation for found in relations],
            row_rules(weighing, search, no_constraints, relations, {}),
            computed_columns(relations, constraints) if recomputes else (),
        )

    def broken(self, rows: CandidateRows) -> dict[tuple[str, Hashable], BoolArray]:
        """Which rows break each requirement other than the decision, by kind and name."""
        if not rows.owner.size:
            return {}
        broken: dict[tuple[str, Hashable], BoolArray] = {}
        if self.constraints.listed:
            by_name = self.constraints.broken(rows)
            broken = {("constraint", name): breaks for name, breaks in by_name.items()}
        for number, check in enumerate(self.rules.checks):
            broken["check", number] = ~check.keeps(rows)
        return broken

    def score(self, rows: CandidateRows) -> ScoredRows:
        """Scores, and which rows have the desired decision, by fresh calls of the predictor."""
        return score_in_calls(self.decision, rows)

    def are_firm(self, rows: CandidateRows) -> BoolArray:
        """Which rows have the desired decision with the default margin, by fresh calls."""
        if self.strict is None:
            return np.zeros(rows.owner.size, dtype=bool)
        return score_in_calls(self.strict, rows).valid


class Trials(AnswerVariants):
    """Tries variants of counterfactuals."""

    def __init__(self, requirements: Requirements, answers: EncodedAnswers) -> None:
        super().__init__(answers, requirements.computed, requirements.constraints)
        self._requirements = requirements
        originals = self.originals()
        self._waived = requirements.broken(originals)
        # Which of the counterfactuals themselves break no constraint.
        self.keep_constraints: BoolArray = np.ones(len(answers), dtype=bool)
        for (kind, _), broken in self._waived.items():
            if kind == "constraint":
                self.keep_constraints &= ~broken
        scored = requirements.score(originals)
        self.score: FloatArray = scored.score
        self.valid: BoolArray = scored.valid
        self._firm = requirements.are_firm(originals)

    def _is_discouraged(self, answer: IntArray, rows: CandidateRows) -> BoolArray:
        """Which variants make a discouraged change that their counterfactual does not."""
        discouraged = np.zeros(answer.size, dtype=bool)
        constraints = self._requirements.constraints
        if constraints.discouraged and answer.size:
            made = constraints.discouraged_changes(rows)
            for column, makes in made.items():
                before = self.answers.rows.frame.iloc[answer, column].reset_index(drop=True)
                after = rows.frame.iloc[:, column].reset_index(drop=True)
                discouraged |= makes & differ(before, after)
        return discouraged

    def try_variants(
        self, answer: IntArray, codes: Codes, *, score: bool = True
    ) -> tuple[BoolArray, BoolArray]:
        """Which variants are allowed, plausible and valid, and which of them were scored.

        Without ``score``, those that are allowed and plausible, and all of them.
        """
        rows, allowed = self.make(answer, codes), np.ones(answer.size, dtype=bool)
        for name, broken in self._requirements.broken(rows).items():
            allowed &= ~broken | self._waived[name][answer]
        allowed &= ~self._is_discouraged(answer, rows)
        if not score:
            return allowed, np.ones_like(allowed)
        held, firm = allowed.copy(), self._firm[answer]
        held[allowed & firm] = self._requirements.are_firm(rows.take(allowed & firm))
        held[allowed & ~firm] = self._requirements.score(rows.take(allowed & ~firm)).valid
        return held, allowed
