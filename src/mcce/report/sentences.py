"""Changes in words: letters, clauses, reasons, and short words for pictures and tables.

Always true: a letter speaks only of what differs between the person and an answer, and before and
after never read the same; a number that a person would have to reach is written with all its
digits, as the predictor accepted it. Letters say "nothing you can change" only where that is
proven, or where no case was ever decided as desired; otherwise they say that nothing was found. In
pictures and tables, values that differ read differently, unless a long text is cut; all is one
short line.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from ..tables.features import to_decimal
from ..tables.text import short_line
from .changes import AnswerChanges, ChangedCell
from .label_checks import level_key
from .labels import FeatureLabel, Labels
from .language import fill

# More clauses than this are listed below one another.
MAX_IN_SENTENCE = 3
# Digits of numbers that nobody has to reach, if they have more than two decimal places.
DIGITS, PLACES = 3, 2
# Digits that tell all floats of 64 bits apart.
ALL_DIGITS = 17


class Clauses:
    """The words for changes."""

    def __init__(self, labels: Labels) -> None:
        self.labels, self.language = labels, labels.language

    def clause(self, change: ChangedCell) -> str:
        """What would have been different, as a clause after "if"."""
        label = self.labels.of(change.feature)
        if change.vague:
            return self.language.say("clauses.different", name=label.name)
        if change.after is None:
            return self.language.say("clauses.unstated", name=label.name)
        after, before = self._after(label, change), self._before(label, change, bare=True)
        if after == before:
            return self.language.say("clauses.different", name=label.name)
        values = [(change.after, after)]
        values += [(other, self._level(label, other)) for other in change.others]
        if not any(level_key(value) in label.become for value, _ in values):
            together = self.language.listed([text for _, text in values], "or")
            return self._single(label, change, change.after, together, before)
        # Only the last clause names the value before.
        befores = [*[None] * len(change.others), before]
        clauses = [
            self._single(label, change, value, text, instead)
            for (value, text), instead in zip(values, befores, strict=True)
        ]
        return self.language.either(clauses)

    def _single(
        self, label: FeatureLabel, change: ChangedCell, value: Any, after: str, before: str | None
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

    def consequences(self, changes: Sequence[ChangedCell]) -> list[str]:
        """What would have followed, as sentences without their full stops."""
        labelled = [(self.labels.of(change.feature), change) for change in changes]
        return [
            self._consequence(label, change)
            for label, change in labelled
            if label.follow is not False and not change.vague
        ]

    def reason(self, change: ChangedCell) -> str:
        """Why the person's own value led to the decision."""
        label = self.labels.of(change.feature)
        before = self._before(label, change) or self.language.messages["values.missing"]
        template = (
            label.being.get(level_key(change.before))
            or label.reason.get(change.direction)
            or label.reason.get("change")
        )
        if template is not None:
            return fill(template, before=before)
        return self.language.say("clauses.reason", name=label.name, before=before)

    def _consequence(self, label: FeatureLabel, change: ChangedCell) -> str:
        before, after = self._about(label, change.before), self._about(label, change.after)
        if change.ends is not None:
            after = self._between(label, *change.ends)
        if after is None:
            after = self.language.messages["values.missing"]
        if label.follow:
            return fill(label.follow, before=before, after=after)
        return self.language.say("clauses.follow", name=label.name, after=after, before=before)

    def _after(self, label: FeatureLabel, change: ChangedCell) -> str:
        shown = change.shown
        if change.ends is not None:
            return self._between(label, *change.ends)
        if shown is None or level_key(change.after) in label.levels:
            return self._level(label, change.after)
        value = self.number(label, shown.value)
        if shown.far is None:
            return value
        more = shown.far > shown.value
        if shown.is_open:
            return self.language.between(*((value, None) if more else (None, value)))
        low, high = sorted((shown.value, shown.far))
        return self.language.between(self.number(label, low, bare=True), self.number(label, high))

    def _between(self, label: FeatureLabel, low: Any, high: Any) -> str:
        """A range; None is no end."""
        first, last = (None if end is None else self._level(label, end) for end in (low, high))
        if high is not None and _converts_to_float(low) and level_key(low) not in label.levels:
            first = self.number(label, to_decimal(low), bare=True)
        return self.language.between(first, last)

    def _before(
        self, label: FeatureLabel, change: ChangedCell, *, bare: bool = False
    ) -> str | None:
        """The person's own value; None if it is missing.

        Beside the value after, the unit would stand twice: ``bare`` leaves it out.
        """
        if change.before is None:
            return None
        if level_key(change.before) in label.levels:
            return label.levels[level_key(change.before)]
        if change.shown is None:
            if change.is_number and _converts_to_float(change.before):
                return self.number(label, to_decimal(change.before), bare=bare)
            return self._level(label, change.before)
        own, shown = to_decimal(change.before), change.shown.value
        digits = DIGITS
        while (rounded := readable(own, digits)) != own and (rounded > shown) != (own > shown):
            digits += 1
        return self.number(label, rounded, bare=bare)

    def _about(self, label: FeatureLabel, value: Any) -> str | None:
        """A value that the person need not reach: rounded, and the text says so."""
        if value is None:
            return None
        if level_key(value) in label.levels or not _converts_to_float(value):
            return self._level(label, value)
        exact = to_decimal(value)
        rounded = readable(exact, DIGITS)
        number = self.number(label, rounded)
        return number if rounded == exact else self.language.say("values.about", value=number)

    def _level(self, label: FeatureLabel, value: Any) -> str:
        if level_key(value) in label.levels:
            return label.levels[level_key(value)]
        if _converts_to_float(value):
            return self.number(label, to_decimal(value))
        return self.language.value(value)

    def number(self, label: FeatureLabel, value: Decimal, *, bare: bool = False) -> str:
        """A number with its unit; ``bare`` leaves out one that would stand behind it."""
        shown = (value * to_decimal(label.scale)).normalize()
        step = Decimal(1) if label.rounding is None else to_decimal(label.rounding * label.scale)
        places = max(0, -int(step.normalize().as_tuple().exponent))
        text = self.language.number(shown, grouping=label.grouping, places=places)
        unit = label.unit[0 if shown == 1 else 1]
        if bare and unit.startswith("{number}"):
            return text
        return fill(unit, number=text)


class Writer(Clauses):
    """Writes letters."""

    def answer(self, answer: AnswerChanges) -> str:
        """One answer: a sentence, and one for each thing that would have followed."""
        clauses = [self.clause(change) for change in answer.actions]
        would = self.labels.say("would")
        if len(clauses) <= MAX_IN_SENTENCE:
            joined = self.language.join(clauses)
            text = self.language.say("letter.if", would=would, clauses=joined)
        else:
            text = self._listed(clauses, self.language.messages["lists.bullet"], "lists.item_and")
        follow = self.consequences(answer.consequences)
        between = " " if len(clauses) <= MAX_IN_SENTENCE else "\n"
        sentences = [f"{text[:1].upper()}{text[1:]}." for text in follow]
        if answer.share is not None:
            sentences.append(self._share("share", answer.share))
        if answer.narrow:
            sentences.append(self.language.say("letter.narrow"))
        return f"{text}{between}{' '.join(sentences)}" if sentences else text

    def answers(self, answers: Sequence[AnswerChanges]) -> str:
        """One answer or several, of which any would do."""
        if len(answers) == 1:
            return self.answer(answers[0])
        return self._listed([self._case(answer) for answer in answers], "", "lists.item_or")

    def letter(self, answers: Sequence[AnswerChanges], reasons: Sequence[str]) -> str:
        """The letter for somebody who has answers."""
        intro = self.labels.say("reason" if len(reasons) == 1 else "reasons")
        bullet = self.language.messages["lists.bullet"]
        paragraphs = [
            self.labels.say("declined"),
            "\n".join([intro, *(f"{bullet} {reason}" for reason in reasons)]),
            self.answers(answers),
            self.labels.say("closing"),
        ]
        return "\n\n".join(paragraphs)

    def nothing(self, kind: str) -> str:
        """The letter for somebody without an answer."""
        return f"{self.labels.say('declined')}\n\n{self.language.messages[f'nothing.{kind}']}"

    def already(self) -> str:
        """The letter for somebody with the desired decision."""
        return self.labels.say("already")

    def _case(self, answer: AnswerChanges) -> str:
        """An answer among several."""
        text = self.language.join([self.clause(change) for change in answer.actions])
        notes = self.consequences(answer.consequences)
        if answer.share is not None:
            notes.append(self._share("share_of_case", answer.share))
        if answer.narrow:
            notes.append(self.language.say("letter.narrow_of_case"))
        return f"{text} ({'; '.join(notes)})" if notes else text

    def _share(self, key: str, share: float) -> str:
        return self.language.say(f"letter.{key}", share=self.language.percent(share))

    def _listed(self, items: Sequence[str], mark: str, last: str) -> str:
        """Clauses below one another, as one sentence; numbered unless there is a mark."""
        ends = [self.language.messages["lists.comma"].rstrip()] * len(items)
        ends[-2:] = [self.language.messages[last], "."]
        marks = [mark or f"{number}." for number in range(1, len(items) + 1)]
        lines = [f"{m} {item}{end}" for m, item, end in zip(marks, items, ends, strict=True)]
        start = self.language.say("letter.if_list", would=self.labels.say("would"))
        return "\n".join([start, *lines])


def readable(value: Decimal, digits: int) -> Decimal:
    """A number with two decimal places, or a number of digits if these take more."""
    places = max(PLACES, digits - 1 - value.adjusted()) if value else 0
    if int(value.as_tuple().exponent) >= -places:
        return value
    return round(value, places)


def _converts_to_float(value: Any) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, (str, bool, np.bool_))


class CellWords:
    r"""Short words for features and cells.

    Examples
    --------
    >>> words = CellWords(Labels.make({"features": {"term": {"unit": "{number} months"}}}))
    >>> words.values("term", [60, None])
    ['60\xa0months', 'not stated']
    >>> words.values("rate", [0.12346, 0.12349])
    ['0.12346', '0.12349']
    """

    def __init__(self, labels: Labels) -> None:
        self.labels, self.language = labels, labels.language
        self._clauses = Clauses(labels)

    def say(self, key: str, **values: str) -> str:
        """Words of a picture that are not from data."""
        return self.language.say(f"pictures.{key}", **values)

    def name(self, feature: Hashable) -> str:
        """The name of a feature as a heading."""
        name = self.labels.of(feature).name
        return name[:1].upper() + name[1:] if feature in self.labels.features else name

    def values(self, feature: Hashable, cells: Sequence[Any]) -> list[str]:
        """Cells of a feature, None if missing; numbers with as few digits as tell them apart."""
        n_distinct = len({level_key(cell) for cell in cells})
        for digits in range(DIGITS, ALL_DIGITS):
            texts = [self._value(feature, cell, digits) for cell in cells]
            if len(set(texts)) >= n_distinct:
                return texts
        return [self._value(feature, cell, ALL_DIGITS) for cell in cells]

    def _value(self, feature: Hashable, cell: Any, digits: int) -> str:
        label = self.labels.of(feature)
        if cell is None:
            return self.language.messages["values.missing"]
        if level_key(cell) in label.levels:
            return label.levels[level_key(cell)]
        if _converts_to_float(cell):
            return self._clauses.number(label, readable(to_decimal(cell), digits))
        if isinstance(cell, (bool, np.bool_, date)):
            return self.language.value(cell)
        return short_line(cell)


def say_cells(words: CellWords, cells: Mapping[Any, Mapping[str, Any]]) -> str:
    """The cells of an answer in a row, such as "Age 20 to 30; Housing any"."""
    return "; ".join(f"{words.name(name)} {_say(words, name, c)}" for name, c in cells.items())


def _say(words: CellWords, name: Any, cell: Mapping[str, Any]) -> str:
    language = words.language
    if cell["kind"] == "any":
        return language.messages["values.any"]
    if cell["kind"] == "range":
        ends = [cell["low"], cell["high"]]
        texts = iter(words.values(name, [end for end in ends if end is not None]))
        return language.between(*(None if end is None else next(texts) for end in ends))
    levels = [cell["low"]] if cell["levels"] is None else list(cell["levels"])
    levels = [level for level in levels if level is not None]
    levels += [None] if cell["missing"] else []
    return language.listed(words.values(name, levels), "or")
