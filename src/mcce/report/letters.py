"""Letters: what became of everybody, in plain words and round numbers.

Beyond the paper. Takes an explainer and what its ``explain`` returned, and puts the final answers
(:meth:`mcce.MCCE.finalize`) into words.

Always true: letters show final rows alone, and speak only of what differs between these and the
person; before and after never read the same; a person's letter is the same alone and among others.
Letters say "nothing you can change" only where that is proven, or where no case was ever decided as
desired; otherwise they say that nothing was found.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

import pandas as pd

from ..counterfactuals.parts import ALREADY
from ..counterfactuals.result import Counterfactuals
from ..errors import LabelsError, ParameterError, shorten
from ..explainer import MCCE, requirements_of
from ..parameters import check_flag
from ..tables.frames import FrameT
from .changes import AnswerChanges, Change, read_changes, without_needless
from .labels import FeatureLabel, Labels, level_key
from .language import fill
from .letter_templates import LetterTemplate
from .reasons import principal_reasons
from .words import Words

# Levels that a sentence lists beside that of the answer.
MAX_OTHER_LEVELS = 2
# More clauses than this are listed below one another.
MAX_IN_SENTENCE = 3
# Of so many models that accept an answer, a letter says that nearly all do.
NEARLY_ALL = 0.95


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
    template: str | os.PathLike[str] | None = None,
    fields: Mapping[str, Any] | None = None,
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
    template
        What a law wants to stand around the explanation: ``"us"``, ``"eu"`` or ``"no"``, or the
        path of a text file of yours, see :doc:`letters </user_guide/letters>`. Reasons then come
        from all features, also from those that cannot change.
    fields
        What the template asks for: a text by name, or a list with one for each person. False leaves
        out a part that may be left out.

    Returns
    -------
    Letters
        A letter for everybody, in the kind of frame of the result.

    Raises
    ------
    LabelsError
        If the labels are not valid, or a feature that can change has no reason in words.
    NotFittedError, ParameterError, SchemaError
        If the explainer is not fitted, the result is not one of it, or a field is missing.

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
    required, schema = requirements_of(explainer, constraints), explainer.schema_
    words.check(schema, required.constraints.frozen_for_everybody)
    frame = None if template is None else LetterTemplate.read(template, words.language)
    if frame is None and fields is not None:
        raise ParameterError("fields are those of a template. Pass a template too.")
    people = result.to_pandas().people.index
    given = [] if frame is None else frame.read_fields(fields, people)
    native = explainer.finalize(result, rounding=words.rounding(schema), constraints=constraints)
    final = native.to_pandas()
    changes = read_changes(final, schema, required.following)
    if ranges and final.anonymous is None:
        changes = [_with_choices(answer, words) for answer in changes]
    theirs: list[list[AnswerChanges]] = [[] for _ in range(len(people))]
    for person, answer in zip(final.owner.tolist(), changes, strict=True):
        theirs[person].append(answer)
    needed, thorough = [without_needless(answers) for answers in theirs], frame is not None
    reasons = principal_reasons(explainer, required, final, needed, words, thorough=thorough)
    writer = Writer(words)
    said = [[writer.reason(change) for change in some] for some in reasons]
    kinds = (kind or "unknown" for kind in final.people["reason_kind"])
    parts = [writer.parts(*person) for person in zip(kinds, needed, said, strict=True)]
    if frame is None:
        texts = ["\n\n".join(filter(None, own.values())) for own in parts]
    else:
        common = _common_parts(explainer, writer, reasons)
        scores = [{"score": writer.words.figure(score)} for score in final.people["score"]]
        rows = zip(parts, scores, given, strict=True)
        texts = [frame.write({**common, **own, **score, **more}) for own, score, more in rows]
    answers = [writer.answer(answer) for answer in changes]
    return _tabulate(native, words, needed, texts, answers, reasons, said)


def _tabulate(
    native: Counterfactuals[FrameT],
    words: Labels,
    needed: Sequence[Sequence[AnswerChanges]],
    texts: Sequence[str],
    answers: Sequence[str],
    reasons: Sequence[Sequence[Change]],
    said: Sequence[Sequence[str]],
) -> Letters[FrameT]:
    """The letters as tables in the kind of frame of the result."""
    final = native.to_pandas()
    rows = final.frame if final.anonymous is None else final.anonymous.frame
    status = final.people["status"]
    about = {
        "status": status,
        "n_answers": [len(some) for some in needed],
        "text": [
            words.say("already") if one == ALREADY else text
            for one, text in zip(status, texts, strict=True)
        ],
    }
    listed = [
        (label, place, change.feature, text)
        for label, some, sentences in zip(status.index, reasons, said, strict=True)
        for place, (change, text) in enumerate(zip(some, sentences, strict=True), start=1)
    ]
    names = ["factual", "place", "feature", "text"]
    return Letters(
        people=native.adapter.table_to_native(
            pd.DataFrame(about, dtype=object).astype({"n_answers": int})
        ),
        answers=native.adapter.table_to_native(
            pd.DataFrame({"text": answers}, rows.index, dtype=object)
        ),
        reasons=native.adapter.table_to_native(pd.DataFrame(listed, columns=names)),
        frame=native.adapter.rows_to_native(rows),
        language=words.language.code,
    )


def _common_parts(
    explainer: MCCE, writer: Writer, reasons: Sequence[Sequence[Change]]
) -> dict[str, str | None]:
    """What letters from a template say of the model to everybody."""
    labels, names = writer.labels, explainer.schema_.names
    rested = [change.feature for some in reasons for change in some]
    lacking = [name for name in names if name in rested and not labels.of(name).has_reason]
    if lacking:
        raise LabelsError(
            f"Of {len(reasons)} decisions, {rested.count(lacking[0])} rest on "
            f"{shorten(lacking[0])} above all, for which the labels have no reason. A letter must "
            "name its principal reasons: add a reason to the labels, or do not use a model that "
            "rests on it."
        )
    data = ", ".join(map(writer.words.title, names))
    return {"rule": writer.words.rule(explainer.decision_), "data": data}


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


class Writer:
    """Puts answers into sentences."""

    def __init__(self, labels: Labels) -> None:
        self.labels, self.language, self.words = labels, labels.language, Words(labels)
        self.say = self.language.say

    def parts(
        self, kind: str, answers: Sequence[AnswerChanges], reasons: Sequence[str]
    ) -> dict[str, str | None]:
        """The parts of a letter, in their order; those that have nothing to say are empty."""
        intro, bullet = ("reason" if len(reasons) == 1 else "reasons"), self.say("lists.bullet")
        listed = [self.labels.say(intro), *(f"{bullet} {reason}" for reason in reasons)]
        return {
            "declined": self.labels.say("declined"),
            "reasons": "\n".join(listed) if reasons else "",
            "answers": self._answers(answers) if answers else self.say(f"nothing.{kind}"),
            "closing": self.labels.say("closing") if answers else "",
        }

    def answer(self, answer: AnswerChanges) -> str:
        """One answer: a sentence, and one for each thing that would have followed."""
        options, bullet, would = self._options(answer), "lists.bullet", self.labels.say("would")
        is_short = len(options) == 1 and len(answer.actions) <= MAX_IN_SENTENCE
        if is_short:
            text = self.say("letter.if", would=would, clauses=options[0])
        elif len(options) == 1:
            clauses = [self.clause(change) for change in answer.actions]
            text = self._listed(clauses, self.say(bullet), "lists.item_and")
        else:
            text = self._listed(options, "", "lists.item_or")
        follow = self._consequences(answer.consequences)
        sentences = [f"{text[:1].upper()}{text[1:]}." for text in follow]
        sentences += self._remarks(answer, "")
        between = " " if is_short else "\n"
        return f"{text}{between}{' '.join(sentences)}" if sentences else text

    def _answers(self, answers: Sequence[AnswerChanges]) -> str:
        """One answer or several, of which any would do."""
        if len(answers) == 1:
            return self.answer(answers[0])
        cases = []
        for answer in answers:
            notes = self._consequences(answer.consequences)
            notes += self._remarks(answer, "_of_case")
            end = f" ({'; '.join(notes)})" if notes else ""
            cases += [f"{option}{end}" for option in self._options(answer)]
        return self._listed(cases, "", "lists.item_or")

    def _options(self, answer: AnswerChanges) -> list[str]:
        """All changes in a row, or the levels of the only one, of which any would do."""
        if len(answer.actions) == 1:
            return self._clauses(answer.actions[0])
        return [self.language.join([self.clause(change) for change in answer.actions])]

    def _remarks(self, answer: AnswerChanges, place: str) -> list[str]:
        """What is to be said of an answer: in sentences, or as notes of one case of several."""
        remarks, survival = [], answer.survival
        if answer.share is not None:
            share = self.language.percent(answer.share)
            remarks.append(self.say(f"letter.share{place}", share=share))
        if answer.narrow:
            remarks.append(self.say(f"letter.narrow{place}"))
        if survival is not None:
            models = self.say(f"letter.models_{_in_ten(survival)}")
            models = models if place else f"{models[:1].upper()}{models[1:]}"
            remarks.append(self.say(f"letter.lasts{place}", models=models))
        return remarks

    def _listed(self, items: Sequence[str], mark: str, last: str) -> str:
        """Clauses below one another, as one sentence; numbered unless there is a mark."""
        ends = [self.say("lists.comma").rstrip()] * len(items)
        ends[-2:] = [self.say(last), "."]
        marks = [mark or f"{number}." for number in range(1, len(items) + 1)]
        lines = [f"{m} {item}{end}" for m, item, end in zip(marks, items, ends, strict=True)]
        start = self.say("letter.if_list", would=self.labels.say("would"))
        return "\n".join([start, *lines])

    def clause(self, change: Change) -> str:
        """What would have been different, as a clause after "if"."""
        return self.language.listed(self._clauses(change), "or")

    def _clauses(self, change: Change) -> list[str]:
        """Clauses of which any one would be enough; one that names all values, if there is one."""
        label = self.labels.of(change.feature)
        different = self.say("clauses.different", name=label.name)
        if change.vague:
            return [different]
        if change.ends is None and change.after is None:
            return [self.say("clauses.unstated", name=label.name)]
        after, before = self._after(change), self._before(change, bare=True)
        if after == before:
            return [different]
        values = {level_key(change.after): after}
        values |= {level_key(v): self.words.cell(change.feature, v) for v in change.others}
        if not label.become.keys() & values.keys():
            values = {level_key(change.after): self.language.listed([*values.values()], "or")}
        shared = label.verbs.get(change.direction(label.order)) or label.verbs.get("change")
        clauses = []
        for key, text in values.items():
            template = label.become.get(key) or shared
            if template is None:
                said = {"name": label.name, "after": text, "before": before}
                clauses.append(self.say("clauses.change", **said))
            else:
                clauses.append(fill(template, before=before, after=text))
        return self.language.either(clauses)

    def reason(self, change: Change) -> str:
        """Why the person's own value led to the decision."""
        label = self.labels.of(change.feature)
        direction = "change" if change.vague else change.direction(label.order)
        before = self._before(change) or self.say("values.missing")
        # What is said of levels with an order asks for more of them.
        says_more = direction == "more" or not label.order
        own = label.being.get(level_key(change.before)) if says_more and not change.vague else None
        template = own or label.reason.get(direction) or label.reason.get("change")
        if template is not None:
            return fill(template, before=before)
        name = self.words.title(change.feature)
        return self.say("clauses.reason", name=name, before=before)

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
        return self.say("clauses.follow", name=label.name, after=after, before=before)

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


def _in_ten(share: float) -> str:
    """How many of ten models accept an answer, never rounded up; 10 stands for nearly all.

    Examples
    --------
    >>> [_in_ten(share) for share in (1.0, 0.95, 0.9, 0.85, 0.5, 0.45)]
    ['10', '10', '9', '8', '5', 'few']
    """
    if share >= NEARLY_ALL:
        return "10"
    # A share such as 0.7 may be a little less than itself in binary.
    tenths = math.floor(10 * share + 1e-9)
    return str(tenths) if tenths >= 5 else "few"
