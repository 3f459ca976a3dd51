"""Letters: what became of everybody, in plain words and round numbers.

Beyond the paper. Takes an explainer and what its ``explain`` returned. Answers are rounded for
reading and checked again (:mod:`mcce.report.rounding`), then put into words.

Always true: letters show no row that the predictor or a constraint refuses, and none that breaks
a requirement of the search which the answer keeps; a person's letter is the same alone and among
others.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np
import pandas as pd

from ..analysis.answers import EncodedAnswers
from ..analysis.ranges import RangeSettings, join_tables
from ..constraints.collection import Constraints
from ..counterfactuals.parts import ALREADY, ANSWERED
from ..counterfactuals.result import Counterfactuals, native_rows, native_table
from ..errors import McceWarning, ParameterError, shorten
from ..explainer import MCCE, requirements_of
from ..kernels import IntArray
from ..parameters import check_flag
from ..tables.columns import EXACT_IN_FLOAT64
from ..tables.frames import FrameT
from ..tables.schema import Schema
from .changes import (
    AnswerChanges,
    ChangedColumn,
    changes_of,
    principal_reasons,
    widen_changes,
    with_shares,
    without_needless,
)
from .labels import Labels
from .rounding import RoundedAnswers, RoundedColumn, RoundingSettings, ShownNumber, round_answers
from .sentences import Writer


@dataclass(frozen=True, eq=False)
class Letters(Generic[FrameT]):
    """What became of everybody, in plain words; :func:`write_letters` writes them.

    Parameters
    ----------
    people
        One row per person: ``status`` as in the result, ``n_answers`` (those that the letter
        speaks of) and ``text``, the letter.
    answers
        One row per answer with its index: ``text``, the answer alone.
    reasons
        One row per principal reason: ``factual``, ``place`` from 1, ``feature`` and ``text``.
    frame
        The answers as the letters show them: rounded, and accepted by the predictor as they are; or
        those of ``result.anonymous``, if there are some.
    language
        Code of the language.
    ranges
        With ``ranges=True``, what :meth:`mcce.MCCE.ranges` gives for the result; otherwise None.
    """

    people: FrameT
    answers: FrameT
    reasons: FrameT
    frame: FrameT
    language: str
    ranges: FrameT | None = None

    def __repr__(self) -> str:
        return f"Letters({len(self.people)} people, language {self.language!r})"  # type: ignore[arg-type]


def write_letters(
    explainer: MCCE,
    result: Counterfactuals[FrameT],
    labels: Labels | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    ranges: bool = False,
    constraints: Any = None,
) -> Letters[FrameT]:
    """Tell people in plain words what would have altered the decision.

    Numbers that a person would have to reach are rounded. Each rounded row is put to the predictor
    and to the constraints, relations and plausibility of the search again; where it would fail, the
    rounding is made finer, down to the number as it is. Of a result with anonymous answers, letters
    tell the ranges and sets of these, and round nothing else.

    Parameters
    ----------
    explainer
        The fitted explainer.
    result
        What its ``explain`` returned.
    labels
        The words for the features: :class:`Labels`, a labels file, or a dict of the same form.
        None is plain English with the names of the columns.
    ranges
        Whether to say which other values would do: "at most 2,900", or a second level. They are
        those of :meth:`mcce.MCCE.ranges`, and cost as many rows of the predictor.
    constraints
        Further constraints that were passed to ``explain``.

    Returns
    -------
    Letters
        A letter for everybody, in the kind of frame of the result.

    Raises
    ------
    LabelsError
        If the labels are not valid, or a feature that can change has no reason in words.
    NotFittedError, ParameterError, SchemaError
        If the explainer is not fitted, or the result is not one of it.

    Warns
    -----
    McceWarning
        If answers are not valid by a fresh call of the predictor; letters do not speak of these.

    Examples
    --------
    >>> salaries = [*range(50_000, 90_000, 400)] * 2
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 50, "salary": salaries})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70_123, 1e9), immutable=["age"])
    >>> result = explainer.set_params(search="near").fit(bank).explain(bank.iloc[[3]])
    >>> letters = write_letters(explainer, result)
    >>> print(letters.answers["text"].iloc[0])
    The decision would have been in your favour if salary had been 71,000 instead of 51,200.
    """
    require_explainer(explainer)
    check_flag("ranges", ranges)
    words = Labels.take(labels)
    draft = _Draft.make(explainer, result, words, ranges, constraints)
    _warn_of_refused(draft.rounded)
    return draft.letters(result)


def require_explainer(explainer: Any) -> None:
    """Raise unless something is an explainer."""
    if not isinstance(explainer, MCCE):
        raise ParameterError(f"explainer must be an MCCE, got {shorten(explainer)}.")


@dataclass(frozen=True, eq=False)
class _Draft:
    """What letters are made of."""

    result: Counterfactuals[pd.DataFrame]
    schema: Schema
    rounded: RoundedAnswers
    frame: pd.DataFrame
    changes: list[AnswerChanges]
    labels: Labels

    @classmethod
    def make(
        cls, explainer: MCCE, result: Counterfactuals[Any], labels: Labels, ranges: bool, more: Any
    ) -> _Draft:
        """Round the answers and list what changes in them."""
        requirements = requirements_of(explainer, more)
        fitted = explainer.fitted_
        schema = fitted.schema
        labels.check(schema, requirements.constraints.frozen_for_everybody)
        answers = EncodedAnswers.read(schema, result, requirements.computed)
        result = result.to_pandas()
        how = RoundingSettings(
            requirements,
            # Anonymous answers have ranges with round ends already.
            _columns_to_round(schema, labels, requirements.constraints)
            if result.anonymous is None
            else {},
            RangeSettings(fitted, requirements, fitted.seed) if ranges else None,
        )
        rounded = round_answers(how, answers)
        frame = rounded.as_given().set_axis(result.frame.index)
        shown, levels = _shown_numbers(how, answers, rounded), rounded.levels_by_column(schema)
        if result.anonymous is not None:
            levels = {}  # they would do beside the exact values alone
        before = result.factuals.iloc[result.owner]
        changed = [
            ChangedColumn.read(
                feature, before[name], frame[name], shown.get(at, {}), levels.get(at, {})
            )
            for at, (name, feature) in enumerate(zip(schema.names, schema.features, strict=True))
        ]
        if result.anonymous is not None:
            changed, frame = widen_changes(changed, result.anonymous), result.anonymous.frame
        follow = [column.feature.name for column in requirements.computed]
        mentioned = [name for name in follow if labels.of(name).follow is not False]
        changes = changes_of(changed, follow, mentioned, len(frame))
        if result.anonymous is None and "margin_word" in result.measures:
            found = zip(changes, result.measures["margin_word"], strict=True)
            changes = [replace(one, narrow=word == "narrow") for one, word in found]
        if result.anonymous is not None:
            shares = result.anonymous.measures["pureness_of_changes"]
            changes = with_shares(changes, shares.tolist())
        return cls(result, schema, rounded, frame, changes, labels)

    def letters(self, native: Counterfactuals[FrameT]) -> Letters[FrameT]:
        """Put it into words."""
        writer, people = Writer(self.labels), self.result.people
        shown = np.flatnonzero(self.rounded.valid)
        alone = [writer.answer(self.changes[answer]) for answer in shown.tolist()]
        theirs = self._answers_by_person(shown)
        spreads = {
            feature.name: feature.spread
            for feature in self.schema.features
            if feature.is_number and not self.labels.of(feature.name).levels
        }
        principal = [principal_reasons(answers, spreads) for answers in theirs]
        reasons = [[writer.reason(change) for change in changes] for changes in principal]
        listed = [
            (label, place, change.feature, text)
            for label, changes, texts in zip(people.index, principal, reasons, strict=True)
            for place, (change, text) in enumerate(zip(changes, texts, strict=True), start=1)
        ]
        everybody = zip(people["status"], people["reason_kind"], theirs, reasons, strict=True)
        table = pd.DataFrame(
            {
                "status": people["status"],
                "n_answers": [len(answers) for answers in theirs],
                "text": _texts([_text(writer, *person) for person in everybody], people.index),
            }
        )
        return Letters(
            people=native_table(native, table),
            answers=native_table(native, _texts(alone, self.frame.index[shown]).to_frame("text")),
            reasons=native_table(
                native, pd.DataFrame(listed, columns=["factual", "place", "feature", "text"])
            ),
            frame=native_rows(native, self.frame.iloc[shown]),
            language=self.labels.language.code,
            ranges=join_tables(self.rounded.ranges, native) if self.rounded.ranges else None,
        )

    def _answers_by_person(self, shown: IntArray) -> list[list[AnswerChanges]]:
        """The answers in the letter of each person, the best first."""
        by_person: list[list[AnswerChanges]] = [[] for _ in range(len(self.result.people))]
        for answer in shown.tolist():
            by_person[self.result.owner[answer]].append(self.changes[answer])
        return [without_needless(answers) for answers in by_person]


def _text(
    writer: Writer, status: str, kind: str, answers: list[AnswerChanges], reasons: list[str]
) -> str:
    """The letter for one person."""
    if answers:
        return writer.letter(answers, reasons)
    if status == ALREADY:
        return writer.already()
    # The predictor now refuses all answers of a person who had some.
    return writer.nothing("withdrawn" if status == ANSWERED else kind)


def _texts(texts: list[str], index: pd.Index[Any]) -> pd.Series[Any]:
    """A column of strings as objects; pandas 3 would choose another dtype."""
    return pd.Series(texts, index=index, dtype=object)


def _columns_to_round(
    schema: Schema, labels: Labels, constraints: Constraints
) -> dict[int, RoundedColumn]:
    """Numeric columns whose values have no words of their own, by place among the mutable ones."""
    columns = {}
    for place, position in enumerate(schema.mutable.tolist()):
        feature, label = schema.features[position], labels.of(schema.names[position])
        step = constraints.steps.get(position)
        if not feature.is_number or label.levels or not feature.known.size:
            continue
        # Whole numbers that are not exact as floats are not rounded.
        if (
            feature.table.dtype.kind == "f"
            or np.abs(feature.known_numbers).max() < EXACT_IN_FLOAT64
        ):
            least = 0.0 if step is None else step.size(feature)
            columns[place] = RoundedColumn(feature, label.rounding, least)
    return columns


def _shown_numbers(
    how: RoundingSettings, answers: EncodedAnswers, rounded: RoundedAnswers
) -> dict[int, dict[int, ShownNumber]]:
    """How letters show each number that people would have to reach, by column and answer."""
    shown: dict[int, dict[int, ShownNumber]] = {}
    for place, column in how.columns.items():
        position = int(answers.rows.schema.mutable[place])
        numbers = answers.rows.all_numbers[position]
        shown[position] = {
            answer: rounded.shown.get((answer, place))
            or ShownNumber(column.decimal(numbers[answer]))
            for answer in np.flatnonzero(answers.acted[place] & ~np.isnan(numbers)).tolist()
        }
    return shown


def _warn_of_refused(rounded: RoundedAnswers) -> None:
    n_refused = int((~rounded.valid).sum())
    if n_refused:
        warnings.warn(
            f"{n_refused} of {rounded.valid.size} counterfactuals are not valid by this "
            "explainer's predictor and constraints, so letters do not speak of them. Either the "
            "result is that of another explainer, explain had further constraints that are to be "
            "passed here too, or the predictor is unstable.",
            McceWarning,
            stacklevel=3,
        )
