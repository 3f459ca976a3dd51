"""Letters: what became of everybody, in plain words and round numbers.

Beyond the paper. Takes an explainer and what its ``explain`` returned, and puts the final answers
(:meth:`mcce.MCCE.finalize`) into words.

Always true: letters show final rows alone, and speak only of what differs between these and the
person; before and after never read the same; a person's letter is the same alone and among others.
Letters say "nothing you can change" only where that is proven, or where no case was ever decided as
desired; otherwise they say that nothing was found.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

import pandas as pd

from ..counterfactuals.parts import ALREADY
from ..counterfactuals.result import Counterfactuals, native_rows, native_table
from ..errors import ParameterError, shorten
from ..explainer import MCCE, requirements_of
from ..parameters import check_flag
from ..tables.frames import FrameT
from ..tables.schema import Schema
from .changes import AnswerChanges, Change, principal_reasons, read_changes, without_needless
from .labels import FeatureLabel, Labels, level_key
from .language import fill
from .words import Words

# Levels that a sentence lists beside that of the answer.
MAX_OTHER_LEVELS = 2
# More clauses than this are listed below one another.
MAX_IN_SENTENCE = 3


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
    requirements, schema = requirements_of(explainer, constraints), explainer.schema_
    words.check(schema, requirements.constraints.frozen_for_everybody)
    native = explainer.finalize(result, rounding=words.rounding(schema), constraints=constraints)
    final, follow = native.to_pandas(), [column.feature.name for column in requirements.computed]
    changes = read_changes(final, schema, follow)
    if ranges and final.anonymous is None:
        changes = [_with_choices(answer, words) for answer in changes]
    return _write(native, changes, schema, Writer(words))


def require_explainer(explainer: Any) -> None:
    """Raise unless something is an explainer."""
    if not isinstance(explainer, MCCE):
        raise ParameterError(f"explainer must be an MCCE, got {shorten(explainer)}.")


def _with_choices(answer: AnswerChanges, labels: Labels) -> AnswerChanges:
    """The same answer, in which one feature at most says which other values would do.

    A range holds while all else is as in the answer. Beside consequences that the text mentions,
    nothing has a choice: another value would have other consequences.
    """
    ranged = [change for change in answer.actions if change.found.get("low") is not None]
    if any(labels.of(change.feature).follow is not False for change in answer.consequences):
        return answer

    def choose(change: Change) -> Change:
        others = change.found.get("others") or []
        if len(answer.actions) == 1 and others:
            return replace(change, others=tuple(others[:MAX_OTHER_LEVELS]))
        if [change] != ranged or labels.of(change.feature).levels:
            return change
        found, (low, high) = change.found, (change.found["low"], change.found["high"])
        if low == high or found["value"] not in (low, high):
            return change
        # The nearer end is the value of the answer; the farther one may be open.
        ends = (low, None if found["high_open"] else high)
        if found["value"] == high:
            ends = (None if found["low_open"] else low, high)
        return replace(change, ends=ends)

    return replace(answer, actions=[choose(change) for change in answer.actions])


def _write(
    native: Counterfactuals[FrameT],
    changes: Sequence[AnswerChanges],
    schema: Schema,
    writer: Writer,
) -> Letters[FrameT]:
    """Put everything into words."""
    final = native.to_pandas()
    theirs: list[list[AnswerChanges]] = [[] for _ in range(len(final.people))]
    for person, answer in zip(final.owner.tolist(), changes, strict=True):
        theirs[person].append(answer)
    spreads = {
        feature.name: feature.spread
        for feature in schema.features
        if feature.is_number and not writer.labels.of(feature.name).levels
    }
    n_answers, texts, listed = list[int](), list[str](), list[tuple[Any, ...]]()
    states = final.people[["status", "reason_kind"]].itertuples(name=None)
    for (label, status, kind), answers in zip(states, map(without_needless, theirs), strict=True):
        principal = principal_reasons(answers, spreads)
        reasons = [writer.reason(change) for change in principal]
        pairs = enumerate(zip(principal, reasons, strict=True), start=1)
        listed += [(label, place, change.feature, text) for place, (change, text) in pairs]
        n_answers.append(len(answers))
        texts.append(writer.letter(status, kind, answers, reasons))
    frame = final.frame if final.anonymous is None else final.anonymous.frame
    people = {"status": final.people["status"], "n_answers": n_answers, "text": texts}
    answered = pd.DataFrame({"text": [writer.answer(answer) for answer in changes]}, frame.index)
    names = ["factual", "place", "feature", "text"]
    return Letters(
        people=native_table(native, pd.DataFrame(people, dtype=object).astype({"n_answers": int})),
        answers=native_table(native, answered.astype(object)),
        reasons=native_table(native, pd.DataFrame(listed, columns=names)),
        frame=native_rows(native, frame),
        language=writer.language.code,
    )


class Writer:
    """Puts answers into sentences."""

    def __init__(self, labels: Labels) -> None:
        self.labels, self.language, self.words = labels, labels.language, Words(labels)

    def letter(
        self, status: str, kind: str, answers: Sequence[AnswerChanges], reasons: Sequence[str]
    ) -> str:
        """The letter for one person."""
        if status == ALREADY:
            return self.labels.say("already")
        if not answers:
            return f"{self.labels.say('declined')}\n\n{self.language.say(f'nothing.{kind}')}"
        intro = self.labels.say("reason" if len(reasons) == 1 else "reasons")
        bullet = self.language.say("lists.bullet")
        paragraphs = [
            self.labels.say("declined"),
            "\n".join([intro, *(f"{bullet} {reason}" for reason in reasons)]),
            self._answers(answers),
            self.labels.say("closing"),
        ]
        return "\n\n".join(paragraphs)

    def answer(self, answer: AnswerChanges) -> str:
        """One answer: a sentence, and one for each thing that would have followed."""
        clauses = [self.clause(change) for change in answer.actions]
        is_short = len(clauses) <= MAX_IN_SENTENCE
        if is_short:
            clause, would = self.language.join(clauses), self.labels.say("would")
            text = self.language.say("letter.if", would=would, clauses=clause)
        else:
            text = self._listed(clauses, self.language.say("lists.bullet"), "lists.item_and")
        follow = self._consequences(answer.consequences)
        sentences = [f"{text[:1].upper()}{text[1:]}." for text in follow]
        sentences += self._remarks(answer, "letter.share", "letter.narrow")
        between = " " if is_short else "\n"
        return f"{text}{between}{' '.join(sentences)}" if sentences else text

    def _answers(self, answers: Sequence[AnswerChanges]) -> str:
        """One answer or several, of which any would do."""
        if len(answers) == 1:
            return self.answer(answers[0])
        cases = []
        for answer in answers:
            text = self.language.join([self.clause(change) for change in answer.actions])
            notes = self._consequences(answer.consequences)
            notes += self._remarks(answer, "letter.share_of_case", "letter.narrow_of_case")
            cases.append(f"{text} ({'; '.join(notes)})" if notes else text)
        return self._listed(cases, "", "lists.item_or")

    def _remarks(self, answer: AnswerChanges, share: str, narrow: str) -> list[str]:
        remarks = []
        if answer.share is not None:
            remarks.append(self.language.say(share, share=self.language.percent(answer.share)))
        return [*remarks, self.language.say(narrow)] if answer.narrow else remarks

    def _listed(self, items: Sequence[str], mark: str, last: str) -> str:
        """Clauses below one another, as one sentence; numbered unless there is a mark."""
        ends = [self.language.say("lists.comma").rstrip()] * len(items)
        ends[-2:] = [self.language.say(last), "."]
        marks = [mark or f"{number}." for number in range(1, len(items) + 1)]
        lines = [f"{m} {item}{end}" for m, item, end in zip(marks, items, ends, strict=True)]
        start = self.language.say("letter.if_list", would=self.labels.say("would"))
        return "\n".join([start, *lines])

    def clause(self, change: Change) -> str:
        """What would have been different, as a clause after "if"."""
        label = self.labels.of(change.feature)
        if change.vague:
            return self.language.say("clauses.different", name=label.name)
        if change.ends is None and change.after is None:
            return self.language.say("clauses.unstated", name=label.name)
        after, before = self._after(change), self._before(change, bare=True)
        if after == before:
            return self.language.say("clauses.different", name=label.name)
        values = [(change.after, after)]
        values += [(other, self.words.cell(change.feature, other)) for other in change.others]
        if not any(level_key(value) in label.become for value, _ in values):
            together = self.language.listed([text for _, text in values], "or")
            return self._clause(label, change, change.after, together, before)
        # Only the last clause names the value before.
        befores = [*[None] * len(change.others), before]
        clauses = [
            self._clause(label, change, value, text, instead)
            for (value, text), instead in zip(values, befores, strict=True)
        ]
        return self.language.either(clauses)

    def _clause(
        self, label: FeatureLabel, change: Change, value: Any, after: str, before: str | None
    ) -> str:
        """The clause for one value, or for several that share it."""
        template = (
            label.become.get(level_key(value))
            or label.verbs.get(change.direction)
            or label.verbs.get("change")
        )
        if template is not None:
            return fill(template, before=before, after=after)
        return self.language.say("clauses.change", name=label.name, after=after, before=before)

    def reason(self, change: Change) -> str:
        """Why the person's own value led to the decision."""
        label = self.labels.of(change.feature)
        before = self._before(change) or self.language.say("values.missing")
        template = (
            label.being.get(level_key(change.before))
            or label.reason.get(change.direction)
            or label.reason.get("change")
        )
        if template is not None:
            return fill(template, before=before)
        return self.language.say("clauses.reason", name=label.name, before=before)

    def _consequences(self, changes: Sequence[Change]) -> list[str]:
        """What would have followed, as sentences without their full stops."""
        labelled = [(self.labels.of(change.feature), change) for change in changes]
        return [
            self._consequence(label, change)
            for label, change in labelled
            if label.follow is not False and not change.vague
        ]

    def _consequence(self, label: FeatureLabel, change: Change) -> str:
        before = None if change.before is None else self.words.about(change.feature, change.before)
        after = self._after(change)
        if change.ends is None and change.after is not None:
            after = self.words.about(change.feature, change.after)
        if label.follow:
            return fill(label.follow, before=before, after=after)
        return self.language.say("clauses.follow", name=label.name, after=after, before=before)

    def _after(self, change: Change) -> str:
        if change.ends is not None:
            return self.words.between(change.feature, *change.ends)
        return self.words.cell(change.feature, change.after)

    def _before(self, change: Change, *, bare: bool = False) -> str | None:
        """The person's own value, rounded on its side of the answer; None if it is missing.

        Beside the value after, the unit would stand twice: ``bare`` leaves it out.
        """
        if change.before is None:
            return None
        cells = [change.before, change.after]
        return self.words.values(change.feature, cells, quoted=True, bare=bare)[0]
