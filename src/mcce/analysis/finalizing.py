"""Final answers: each rounded, checked and measured once, for everything that shows them.

Beyond the paper. Numbers are rounded, then the rows are scored and checked again, measured as
``explain`` measures its answers, and get the ranges that hold for them. Refused answers are
withdrawn; of equal answers of a person, the first one stays. An answer that is only narrowly
accepted does not come first if another one with no more changes is not.

Always true: the predictor accepted every final row as it stands; ranges do not hold the person's
own value.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from ..candidates import MeasuredRows
from ..constraints.collection import Constraints, GivenRows
from ..counterfactuals.parts import ResultRows
from ..counterfactuals.result import Counterfactuals, take_ranges, with_final_answers
from ..errors import McceWarning, ParameterError, SchemaError, did_you_mean, shorten
from ..fitted import Fitted
from ..kernels import BoolArray, IntArray, times_seen_before
from ..search.config import ExplainSettings
from ..search.explain import result_rows
from ..search.stage import SearchOutcome
from ..tables.columns import as_comparable, changed_cells, plain
from ..tables.frames import FrameT
from ..tables.schema import EncodedRows, Schema, gower_gaps
from .answers import EncodedAnswers, Requirements, Trials, in_chunks
from .ranges import FoundRanges, RangeSettings, ranges_of, rows_at_once, tabulate
from .rounding import (
    RoundedColumn,
    ShownNumber,
    ShownNumbers,
    columns_to_round,
    round_answers,
)


def finalize(
    fitted: Fitted,
    settings: ExplainSettings,
    constraints: Constraints,
    result: Counterfactuals[FrameT],
    rounding: Mapping[Hashable, float] | None,
) -> Counterfactuals[FrameT]:
    """The same result with final answers."""
    requirements = Requirements.of(fitted, settings, constraints)
    answers = EncodedAnswers.read(fitted.schema, result, requirements.computed)
    if result.final:
        return result
    steps = _check_rounding(rounding, fitted.schema)
    inside = result.to_pandas()
    # The ranges and sets of anonymous answers have round ends already.
    if inside.anonymous is not None:
        steps = dict.fromkeys(fitted.schema.names, 0)
    finalizer = _Finalizer(
        fitted, settings, requirements, columns_to_round(fitted.schema, steps, constraints)
    )
    proven = inside.measures.get("proven", pd.Series(False, inside.frame.index)).to_numpy(bool)
    parts = [
        finalizer.finalize(some, proven[first : first + len(some)], first)
        for first, some in in_chunks(answers, rows_at_once(answers), "finalize", settings.verbose)
    ]
    valid = np.concatenate([part.valid for part in parts])
    frame = pd.concat([part.rows.frame for part in parts], ignore_index=True)
    kept = np.flatnonzero(valid)
    kept = kept[~_repeated(frame.iloc[kept], answers.owner[kept])]
    measures = pd.concat([pd.DataFrame(part.rows.measures) for part in parts], ignore_index=True)
    shown = frame.iloc[kept], answers.factuals, answers.owner[kept]
    kept = kept[_firm_first(measures.iloc[kept], constraints, *shown)]
    owner = answers.owner[kept]
    rows = ResultRows(
        frame.iloc[kept],
        owner,
        1 + times_seen_before(owner),
        {str(name): column.to_numpy() for name, column in measures.iloc[kept].items()},
    )
    ranges = take_ranges(pd.concat([part.ranges for part in parts], ignore_index=True), kept)
    return with_final_answers(result, rows, kept, ranges, int((~valid).sum()))


def warn_of_withdrawn(before: Counterfactuals[Any], after: Counterfactuals[Any]) -> None:
    """Warn of answers that were refused, at the line that calls the explainer."""
    n_withdrawn = after.n_unstable - before.n_unstable
    if n_withdrawn:
        warnings.warn(
            f"{n_withdrawn} of {before.owner.size} counterfactuals are not valid by this "
            "explainer's predictor and constraints, and were withdrawn. Either the result is that "
            "of another explainer, explain had further constraints that are to be passed here "
            "too, or the predictor is unstable.",
            McceWarning,
            stacklevel=3,
        )


def _check_rounding(rounding: Mapping[Hashable, float] | None, schema: Schema) -> dict[Any, float]:
    if rounding is None:
        return {}
    if not isinstance(rounding, Mapping):
        raise ParameterError(
            f"rounding must be a dict of steps by column, or None, got {shorten(rounding)}."
        )
    for name, step in rounding.items():
        if name not in schema.names:
            raise SchemaError(
                f"rounding names {name!r}, which is no column of the training data."
                f"{did_you_mean(name, schema.names)}"
            )
        if not isinstance(step, Real) or isinstance(step, bool) or not 0 <= step < np.inf:
            raise ParameterError(
                f"rounding[{name!r}] must be a number >= 0, got {shorten(step)}. 0 leaves the "
                "column as it is."
            )
    return dict(rounding)


def _repeated(frame: pd.DataFrame, owner: IntArray) -> BoolArray:
    """Which rows a person has already."""
    columns = [pd.Series(owner), *(column.reset_index(drop=True) for _, column in frame.items())]
    repeated: BoolArray = (
        pd.concat(columns, axis=1, keys=range(len(columns))).duplicated().to_numpy()
    )
    return repeated


def _firm_first(
    measures: pd.DataFrame,
    constraints: Constraints,
    frame: pd.DataFrame,
    factuals: EncodedRows,
    owner: IntArray,
) -> IntArray:
    """The order of answers: a person's first one, if it is narrow, comes after one that is not.

    That one asks for no more changes, and for nothing discouraged that the first does not ask for.
    """
    actions = measures["n_actions" if "n_actions" in measures else "sparsity"].to_numpy()
    word, first = measures["margin_word"].to_numpy(), np.searchsorted(owner, owner)
    goes_ahead = (word[first] == "narrow") & ~np.isin(word, ["narrow", ""])
    goes_ahead &= actions <= actions[first]
    if constraints.discouraged:
        rows = frame.reset_index(drop=True)
        for makes in constraints.discouraged_changes(GivenRows(factuals, owner, rows)).values():
            goes_ahead &= ~makes | makes[first]
    # Only the best such answer of a person.
    goes_ahead[goes_ahead] = times_seen_before(owner[goes_ahead]) == 0
    return np.lexsort((np.arange(owner.size), ~goes_ahead, owner))


@dataclass(frozen=True, eq=False)
class _Part:
    """Final rows of a chunk of answers, and which of them are valid."""

    rows: ResultRows
    valid: BoolArray
    ranges: pd.DataFrame


@dataclass(frozen=True, eq=False)
class _Finalizer:
    """What final answers are made with."""

    fitted: Fitted
    settings: ExplainSettings
    requirements: Requirements
    columns: Mapping[int, RoundedColumn]

    def finalize(self, given: EncodedAnswers, proven: BoolArray, first: int) -> _Part:
        """Round, check and measure a chunk of answers, of which the first has this number."""
        before = Trials(self.requirements, given)
        frame, shown = round_answers(before, self.columns)
        rows = given.rows.schema.encode(frame)
        answers = EncodedAnswers.make(given.factuals, given.owner, rows, self.requirements.computed)
        trials = Trials(self.requirements, answers)
        valid = before.valid & before.keep_constraints & trials.valid & trials.keep_constraints
        moved = changed_cells(given.rows.frame, rows.frame).any(axis=0)
        ranges = self._ranges(trials, shown).assign(answer=lambda table: table["answer"] + first)
        return _Part(self._measure(trials, proven & ~moved), valid, ranges)

    def _measure(self, trials: Trials, proven: BoolArray) -> ResultRows:
        """The rows with the measures that ``explain`` gives its answers."""
        answers, rows = trials.answers, trials.originals()
        people = answers.factuals.take(answers.owner)
        gaps = gower_gaps(people, answers.rows)
        measures = MeasuredRows(
            rows,
            np.empty((len(answers), 0), dtype=np.int32),
            1 + times_seen_before(answers.owner),
            trials.score,
            changed_cells(people.frame, answers.rows.frame).sum(axis=0),
            gaps.sum(axis=0) / len(gaps),
        )
        outcome = SearchOutcome(
            measures,
            MeasuredRows.empty(answers.factuals),
            proven=frozenset(answers.owner[proven].tolist()),
            following=self.requirements.following,
        )
        found = result_rows(self.fitted, self.settings, outcome)
        if "proven" in found.measures:
            found = replace(found, measures={**found.measures, "proven": proven})
        return found

    def _ranges(self, trials: Trials, shown: ShownNumbers) -> pd.DataFrame:
        """The ranges of the rows, by number, with the ends that were rounded."""
        settings = RangeSettings(self.fitted, self.requirements, self.fitted.seed)
        found = _without_own(ranges_of(settings, trials))
        ends = [
            _RoundedEnd.of(found, *cell, one) for cell, one in shown.items() if one.far is not None
        ]
        for end in ends:
            found.reach[:, end.place, end.answer] = end.reach
        table = tabulate(found, self.fitted, 0)
        cells = {
            (end.answer, end.feature, end.side): end.cell for end in ends if end.cell is not None
        }
        for side, name in enumerate(("low", "high")):
            keys = zip(table["answer"], table["feature"], table[name], strict=True)
            listed = [cells.get((answer, feature, side), cell) for answer, feature, cell in keys]
            table[name] = pd.Series(listed, table.index, dtype=object)
        return table


@dataclass(frozen=True)
class _RoundedEnd:
    """The far end of a range whose near end is the value of the answer."""

    answer: int
    place: int
    feature: Hashable
    side: int
    reach: list[int]
    cell: Any

    @classmethod
    def of(cls, found: FoundRanges, answer: int, place: int, shown: ShownNumber) -> _RoundedEnd:
        """How far the range goes: to a round number, unless it is open or ends before that."""
        assert shown.far is not None
        moves = found.moves
        schema = moves.answers.rows.schema
        feature = schema.features[schema.mutable[place]]
        side, far = int(shown.far > shown.value), float(shown.far)
        reach, cell = [0, 0], None
        reach[side] = int(found.reach[side, place, answer])
        numbers = feature.known_numbers
        start = int(moves.start[side, place, answer])
        if side == 0:
            steps = start - int(np.searchsorted(numbers, far, side="left"))
        else:
            steps = int(np.searchsorted(numbers, far, side="right")) - 1 - start
        if not shown.is_open and steps < reach[side]:
            last = moves.answers.tables[place].iloc[[len(moves.answers)]]
            reach[side], cell = steps, type(plain(last)[0])(far)
        return cls(answer, place, feature.name, side, reach, cell)


def _without_own(found: FoundRanges) -> FoundRanges:
    """Ranges that end before the person's own value: it would be no change."""
    answers, schema = found.moves.answers, found.moves.answers.rows.schema
    reach = found.reach.copy()
    for place, column in enumerate(schema.mutable.tolist()):
        feature, at = schema.features[column], np.flatnonzero(found.moves.movable[place])
        if not at.size:
            continue
        dtype = feature.table.dtype
        own = as_comparable(answers.factuals.own(column, answers.owner[at]), dtype)
        value = as_comparable(answers.rows.frame.iloc[at, column], dtype)
        known = as_comparable(feature.known, dtype)
        low = found.moves.start[0, place, at] - np.searchsorted(known, own, side="right")
        high = np.searchsorted(known, own, side="left") - 1 - found.moves.start[1, place, at]
        for side, steps, beyond in ((0, low, own < value), (1, high, own > value)):
            held = reach[side, place, at]
            reach[side, place, at] = np.where(beyond, np.minimum(held, steps), held)
    levels = found.levels
    own_levels = answers.factuals.codes[schema.mutable[levels.place], answers.owner[levels.answer]]
    return replace(found, reach=reach, levels=levels.take(levels.level != own_levels))
