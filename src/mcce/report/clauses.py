"""One change in words: a clause, the sentence for what follows, and the reason for a decision.

Always true: a number that a person would have to reach is written with all its digits, so the text
says what the predictor has accepted; what is said before and after is never the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ..tables.features import to_decimal
from .label_checks import level_key
from .labels import FeatureLabel, Labels
from .ladder import Rung
from .wording import fill

# Digits of numbers that are told, not asked for, if they have more than two decimal places.
DIGITS, PLACES = 3, 2


@dataclass(frozen=True)
class Change:
    """A cell that differs between a person and an answer."""

    feature: Hashable
    before: Any
    after: Any
    is_number: bool = False
    rung: Rung | None = None
    others: tuple[Any, ...] = ()
    ends: tuple[Any, Any] | None = None
    vague: bool = False

    @property
    def direction(self) -> str:
        """``"more"``, ``"less"``, or ``"change"`` where that cannot be said."""
        if not self.is_number or self.before is None or self.after is None:
            return "change"
        return "more" if self.after > self.before else "less"

    def asks_at_least(self, other: Change) -> bool:
        """Whether the person would have to go as far as in another change of the same cell."""
        if self.ends is not None or other.ends is not None:
            return self.ends == other.ends
        if self.after == other.after or self.after in other.others:
            return True
        if self.rung is None or other.rung is None or self.direction != other.direction:
            return False
        return self.direction == ("more" if self.rung.value > other.rung.value else "less")


class Clauses:
    """The words for changes."""

    def __init__(self, labels: Labels) -> None:
        self.labels, self.language = labels, labels.language

    def clause(self, change: Change) -> str:
        """What would have been different, as a clause after "if"."""
        label = self.labels.of(change.feature)
        if change.vague:
            return self.language.say("clauses.different", name=label.name)
        if change.after is None:
            return self.language.say("clauses.unstated", name=label.name)
        after, before = self._after(label, change), self._before(label, change, bare=True)
        if after == before:
            return self.language.say("clauses.different", name=label.name)
        told = [(change.after, after)]
        told += [(other, self._level(label, other)) for other in change.others]
        if not any(level_key(value) in label.become for value, _ in told):
            together = self.language.listed([text for _, text in told], "or")
            return self._single(label, change, change.after, together, before)
        # What it is instead of is said once, at the end.
        befores = [*[None] * len(change.others), before]
        clauses = [
            self._single(label, change, value, text, instead)
            for (value, text), instead in zip(told, befores, strict=True)
        ]
        return self.language.either(clauses)

    def _single(
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

    def consequences(self, changes: Sequence[Change]) -> list[str]:
        """What would have followed, as sentences without their full stops."""
        told = [(self.labels.of(change.feature), change) for change in changes]
        return [
            self._consequence(label, change)
            for label, change in told
            if label.follow is not False and not change.vague
        ]

    def reason(self, change: Change) -> str:
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

    def _consequence(self, label: FeatureLabel, change: Change) -> str:
        before, after = self._told(label, change.before), self._told(label, change.after)
        if change.ends is not None:
            after = self._between(label, *change.ends)
        if after is None:
            after = self.language.messages["values.missing"]
        if label.follow:
            return fill(label.follow, before=before, after=after)
        return self.language.say("clauses.follow", name=label.name, after=after, before=before)

    def _after(self, label: FeatureLabel, change: Change) -> str:
        rung = change.rung
        if change.ends is not None:
            return self._between(label, *change.ends)
        if rung is None or level_key(change.after) in label.levels:
            return self._level(label, change.after)
        value = self.number(label, rung.value)
        if rung.far is None:
            return value
        if rung.is_open:
            key = "values.at_least" if rung.far > rung.value else "values.at_most"
            return self.language.say(key, value=value)
        low, high = sorted((rung.value, rung.far))
        return self.language.say(
            "values.between",
            low=self.number(label, low, bare=True),
            high=self.number(label, high),
        )

    def _between(self, label: FeatureLabel, low: Any, high: Any) -> str:
        """A range; None is no end."""
        if low is None or high is None:
            key, end = ("values.at_most", high) if low is None else ("values.at_least", low)
            return self.language.say(key, value=self._level(label, end))
        plain = _is_number(low) and level_key(low) not in label.levels
        first = self.number(label, to_decimal(low), bare=True) if plain else self._level(label, low)
        return self.language.say("values.between", low=first, high=self._level(label, high))

    def _before(self, label: FeatureLabel, change: Change, *, bare: bool = False) -> str | None:
        """The person's own value; None if it is missing.

        Beside the value after, the unit need not be said twice: ``bare`` leaves it out.
        """
        if change.before is None:
            return None
        if level_key(change.before) in label.levels:
            return label.levels[level_key(change.before)]
        if change.rung is None:
            is_number = change.is_number and _is_number(change.before)
            if is_number and not isinstance(change.before, bool):
                return self.number(label, to_decimal(change.before), bare=bare)
            return self._level(label, change.before)
        own, shown = to_decimal(change.before), change.rung.value
        digits = DIGITS
        while (told := readable(own, digits)) != own and (told > shown) != (own > shown):
            digits += 1
        return self.number(label, told, bare=bare)

    def _told(self, label: FeatureLabel, value: Any) -> str | None:
        """A value that nobody is asked to reach: rounded, which is said."""
        if value is None:
            return None
        if level_key(value) in label.levels or isinstance(value, bool) or not _is_number(value):
            return self._level(label, value)
        exact = to_decimal(value)
        told = readable(exact, DIGITS)
        number = self.number(label, told)
        return number if told == exact else self.language.say("values.about", value=number)

    def _level(self, label: FeatureLabel, value: Any) -> str:
        if level_key(value) in label.levels:
            return label.levels[level_key(value)]
        if _is_number(value) and not isinstance(value, bool):
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


def readable(value: Decimal, digits: int) -> Decimal:
    """A number with two decimal places, or so many digits if these take more."""
    places = max(PLACES, digits - 1 - value.adjusted()) if value else 0
    if int(value.as_tuple().exponent) >= -places:
        return value
    return round(value, places)


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, str)
