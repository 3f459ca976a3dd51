"""Letters: what became of everybody, in plain words and round numbers.

Beyond the paper. Takes an explainer and what its ``explain`` returned, and puts the final answers
(:meth:`mcce.MCCE.finalize`) into words.

Always true: letters show final rows alone; a person's letter is the same alone and among others.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

import pandas as pd

from ..analysis.answers import Requirements
from ..analysis.rounding import RoundedColumn, ShownNumber, columns_to_round
from ..counterfactuals.parts import ALREADY
from ..counterfactuals.result import Counterfactuals, native_rows, native_table, ranges_by_answer
from ..errors import ParameterError, shorten
from ..explainer import MCCE, requirements_of
from ..parameters import check_flag
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
from .sentences import Writer

# Levels that a sentence lists beside that of the answer.
MAX_OTHER_LEVELS = 2


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
        The answers as the letters show them: the final ones, or those of ``result.anonymous``, if
        there are some.
    language
        Code of the language.
    """

    people: FrameT
    answers: FrameT
    reasons: FrameT
    frame: FrameT
    language: str

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

    Letters speak of final answers, in round numbers that the predictor accepted. Other results are
    finalized first, see :meth:`mcce.MCCE.finalize`. Of a result with anonymous answers, letters
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
        Whether to say which other values would do: "at most 2,900", or a second level.
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
        If answers are refused by the predictor or the constraints; letters do not speak of these.

    Examples
    --------
    >>> salaries = [*range(50_000, 90_000, 400)] * 2
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 50, "salary": salaries})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70_123, 1e9), immutable=["age"])
    >>> result = explainer.set_params(search="near").fit(bank).explain(bank.iloc[[3]])
    >>> letters = write_letters(explainer, result)
    >>> print(letters.answers["text"].iloc[0].partition(". ")[0])
    The decision would have been in your favour if salary had been 71,000 instead of 51,200
    """
    require_explainer(explainer)
    check_flag("ranges", ranges)
    words = Labels.take(labels)
    requirements = requirements_of(explainer, constraints)
    words.check(explainer.schema_, requirements.constraints.frozen_for_everybody)
    rounding = words.rounding(explainer.schema_)
    final = explainer.finalize(result, rounding=rounding, constraints=constraints)
    context = _Context.make(explainer, requirements, words, ranges=ranges)
    return _write(final, _list_changes(final.to_pandas(), context), context)


def require_explainer(explainer: Any) -> None:
    """Raise unless something is an explainer."""
    if not isinstance(explainer, MCCE):
        raise ParameterError(f"explainer must be an MCCE, got {shorten(explainer)}.")


@dataclass(frozen=True, eq=False)
class _Context:
    """What letters depend on beside the answers."""

    schema: Schema
    labels: Labels
    columns: Mapping[Hashable, RoundedColumn]
    follow: Sequence[Hashable]
    losses: Sequence[Hashable]
    ranges: bool

    @classmethod
    def make(
        cls, explainer: MCCE, requirements: Requirements, labels: Labels, *, ranges: bool
    ) -> _Context:
        """The context of an explainer."""
        schema = explainer.schema_
        columns = columns_to_round(schema, labels.rounding(schema), requirements.constraints)
        return cls(
            schema,
            labels,
            {column.feature.name: column for column in columns.values()},
            [one.feature.name for one in requirements.computed],
            [one.feature.name for one in requirements.following if one.is_free],
            ranges,
        )


def _list_changes(final: Counterfactuals[pd.DataFrame], context: _Context) -> list[AnswerChanges]:
    """What changes in each answer."""
    before, anonymous = final.factuals.iloc[final.owner], final.anonymous
    shown, levels = _shown_cells(final, context)
    changed = [
        ChangedColumn.read(
            feature, before[name], final.frame[name], shown.get(name, {}), levels.get(name, {})
        )
        for name, feature in zip(context.schema.names, context.schema.features, strict=True)
    ]
    if anonymous is not None:
        changed = widen_changes(changed, anonymous)
    follow = context.follow
    mentioned = [name for name in follow if context.labels.of(name).follow is not False]
    changes = changes_of(changed, follow, context.losses, mentioned, len(final.frame))
    if anonymous is not None:
        return with_shares(changes, anonymous.measures["pureness_of_changes"].tolist())
    if "margin_word" not in final.measures:
        return changes
    found = zip(changes, final.measures["margin_word"], strict=True)
    return [replace(one, narrow=word == "narrow") for one, word in found]


def _shown_cells(
    final: Counterfactuals[pd.DataFrame], context: _Context
) -> tuple[dict[Hashable, dict[int, ShownNumber]], dict[Hashable, dict[int, list[Any]]]]:
    """How letters show the numbers of answers, and which levels beside theirs, by column."""
    shown: dict[Hashable, dict[int, ShownNumber]] = {}
    levels: dict[Hashable, dict[int, list[Any]]] = {}
    # Other values would do beside the exact values alone.
    tells = context.ranges and final.anonymous is None
    for answer, rows in enumerate(ranges_by_answer(final)):
        numbers = [
            row for row in rows if row["feature"] in context.columns and row["low"] is not None
        ]
        for row in numbers:
            column = context.columns[row["feature"]]
            number = _shown_number(column, row, alone=tells and len(numbers) == 1)
            shown.setdefault(row["feature"], {})[answer] = number
        if tells and len(rows) == 1:
            (row,) = rows
            levels.setdefault(row["feature"], {})[answer] = row["others"][:MAX_OTHER_LEVELS]
    return shown, levels


def _shown_number(column: RoundedColumn, row: Mapping[str, Any], *, alone: bool) -> ShownNumber:
    """A number, with its range if the number is the end of it."""
    value, low, high = (column.decimal(row[name]) for name in ("value", "low", "high"))
    if alone and low < high:
        if value == low:
            return ShownNumber(value, high, row["high_open"])
        if value == high:
            return ShownNumber(value, low, row["low_open"])
    return ShownNumber(value)


def _write(
    native: Counterfactuals[FrameT], changes: Sequence[AnswerChanges], context: _Context
) -> Letters[FrameT]:
    """Put everything into words."""
    final, writer = native.to_pandas(), Writer(context.labels)
    people = final.people
    theirs: list[list[AnswerChanges]] = [[] for _ in range(len(people))]
    for person, change in zip(final.owner.tolist(), changes, strict=True):
        theirs[person].append(change)
    theirs = [without_needless(answers) for answers in theirs]
    spreads = {
        feature.name: feature.spread
        for feature in context.schema.features
        if feature.is_number and not context.labels.of(feature.name).levels
    }
    principal = [principal_reasons(answers, spreads) for answers in theirs]
    reasons = [[writer.reason(change) for change in some] for some in principal]
    listed = [
        (label, place, change.feature, text)
        for label, some, texts in zip(people.index, principal, reasons, strict=True)
        for place, (change, text) in enumerate(zip(some, texts, strict=True), start=1)
    ]
    everybody = zip(people["status"], people["reason_kind"], theirs, reasons, strict=True)
    table = pd.DataFrame(
        {
            "status": people["status"],
            "n_answers": [len(answers) for answers in theirs],
            "text": _texts([_text(writer, *person) for person in everybody], people.index),
        }
    )
    frame = final.frame if final.anonymous is None else final.anonymous.frame
    texts = _texts([writer.answer(change) for change in changes], frame.index)
    return Letters(
        people=native_table(native, table),
        answers=native_table(native, texts.to_frame("text")),
        reasons=native_table(
            native, pd.DataFrame(listed, columns=["factual", "place", "feature", "text"])
        ),
        frame=native_rows(native, frame),
        language=context.labels.language.code,
    )


def _text(
    writer: Writer, status: str, kind: str, answers: list[AnswerChanges], reasons: list[str]
) -> str:
    """The letter for one person."""
    if answers:
        return writer.letter(answers, reasons)
    return writer.already() if status == ALREADY else writer.nothing(kind)


def _texts(texts: list[str], index: pd.Index[Any]) -> pd.Series[Any]:
    """A column of strings as objects; pandas 3 would choose another dtype."""
    return pd.Series(texts, index=index, dtype=object)
