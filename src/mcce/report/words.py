r"""How features, cells and figures are written: in letters, tables and pictures alike.

Always true: :meth:`Words.cell` writes a number with all its digits, as the predictor accepted it;
values that differ read differently, unless a long text is cut; every text is one short line.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from ..predictors.decision import Decision, Interval
from ..tables.features import to_decimal
from ..tables.text import short_line
from .labels import FeatureLabel, Labels, level_key
from .language import fill

# Digits of numbers that nobody has to reach, if they have more than two decimal places.
DIGITS, PLACES = 3, 2
# Digits that tell all floats of 64 bits apart.
ALL_DIGITS = 17


class Words:
    r"""The words for features and cells, in the language of some labels.

    Examples
    --------
    >>> words = Words(Labels.make({"features": {"term": {"unit": "{number} months"}}}))
    >>> words.values("term", [60, None])
    ['60\xa0months', 'not stated']
    >>> words.values("rate", [0.12346, 0.12349])
    ['0.12346', '0.12349']
    >>> Words(Labels.make({"language": "de"})).figure(0.12345)
    '0,123'
    """

    def __init__(self, labels: Labels) -> None:
        self.labels, self.language = labels, labels.language

    def say(self, key: str, **values: str | None) -> str:
        """A text of the language with its placeholders replaced."""
        return self.language.say(key, **values)

    def count(self, key: str, number: int) -> str:
        """So many of something: the text for one of them, or for any other number."""
        return self.say(f"{key}_one" if number == 1 else key, n=self.figure(number))

    def verdicts(self, decision: Decision) -> tuple[str, str]:
        """The words for the desired decision, and for any other."""
        yes, no = (self.labels.decision.get(key) for key in ("yes", "no"))
        if isinstance(decision.desired, Interval):
            return yes or self.say("decision.yes"), no or self.say("decision.no")
        # Nobody who leaves is declined: labels speak for themselves.
        label = self.language.listed([self.language.value(one) for one in decision.desired], "or")
        return yes or label, no or self.say("decision.not", label=yes or label)

    def rule(self, decision: Decision) -> str:
        """What the score is, and which decision it leads to."""
        yes, no = self.verdicts(decision)
        if decision.score_bounds is None:
            key = "probability" if decision.has_scores else "label"
            return self.say(f"decision.{key}", yes=yes, no=no)
        ends = (None if math.isinf(end) else to_decimal(end) for end in decision.score_bounds)
        low, high = (None if end is None else self.language.number(end) for end in ends)
        key = "at_most" if low is None else "at_least" if high is None else "between"
        return self.say(f"decision.{key}", yes=yes, low=low, high=high)

    def title(self, feature: Hashable) -> str:
        """The name of a feature as a heading."""
        label = self.labels.of(feature)
        if label.title is not None:
            return label.title
        name = label.name
        return name[:1].upper() + name[1:] if feature in self.labels.features else name

    def cell(self, feature: Hashable, cell: Any) -> str:
        """A cell as it is, in quotation marks if it is a text without words of its own."""
        return self._text(feature, cell, quoted=True)

    def about(self, feature: Hashable, cell: Any) -> str:
        """A cell that nobody has to reach: rounded, and the text says so."""
        text, rounded = self.cell(feature, cell), self._text(feature, cell, DIGITS, quoted=True)
        return text if text == rounded else self.say("values.about", value=rounded)

    def between(self, feature: Hashable, low: Any, high: Any) -> str:
        """A range of cells as they are, of which one end may be open (None)."""
        first = (
            None if low is None else self._text(feature, low, quoted=True, bare=high is not None)
        )
        return self.language.between(first, None if high is None else self.cell(feature, high))

    def values(
        self, feature: Hashable, cells: Sequence[Any], *, quoted: bool = False, bare: bool = False
    ) -> list[str]:
        """Cells of a feature, None if missing; numbers with as few digits as tell them apart.

        ``bare`` leaves out the unit behind a number.
        """
        n_distinct = len({level_key(cell) for cell in cells})
        for digits in range(DIGITS, ALL_DIGITS + 1):
            texts = [self._text(feature, c, digits, quoted=quoted, bare=bare) for c in cells]
            if len(set(texts)) >= n_distinct:
                break
        return texts

    def row(self, cells: Mapping[Any, Mapping[str, Any]]) -> str:
        """The cells of an anonymous answer, such as "Age 20 to 30; Housing any"."""
        said = (f"{self.title(name)} {self._widened(name, cell)}" for name, cell in cells.items())
        return "; ".join(said)

    def _widened(self, name: Any, cell: Mapping[str, Any]) -> str:
        if cell["kind"] == "any":
            return self.say("values.any")
        if cell["kind"] == "range":
            return self.between(name, cell["low"], cell["high"])
        levels = [cell["low"]] if cell["levels"] is None else list(cell["levels"])
        levels = [level for level in levels if level is not None]
        levels += [None] if cell["missing"] else []
        return self.language.listed(self.values(name, levels), "or")

    def figure(self, value: Any, places: int = 3) -> str:
        """A number that is no cell; a dash if it is not defined."""
        if value is None or math.isnan(value):
            return "\N{EN DASH}"
        if math.isinf(value):
            return "\N{INFINITY}" if value > 0 else "\N{MINUS SIGN}\N{INFINITY}"
        shown = round(to_decimal(value), places)
        # A number that is not zero must not look like zero.
        if not shown and value:
            shown = Decimal(f"{float(value):.1e}")
        return self.language.number(shown, places=places)

    def flag(self, value: bool) -> str:
        """Yes or no."""
        return self.say("values.yes" if value else "values.no")

    def _text(
        self,
        feature: Hashable,
        cell: Any,
        digits: int | None = None,
        *,
        quoted: bool = False,
        bare: bool = False,
    ) -> str:
        """A cell in words; ``digits`` rounds a number so that it can be read."""
        label = self.labels.of(feature)
        if cell is None:
            return self.say("values.missing")
        if level_key(cell) in label.levels:
            return label.levels[level_key(cell)]
        if hasattr(cell, "__float__") and not isinstance(cell, (bool, np.bool_)):
            number = to_decimal(cell)
            shown = number if digits is None else _readable(number, digits)
            return self._number(label, shown, bare=bare)
        if quoted or isinstance(cell, (bool, np.bool_, date)):
            return self.language.value(cell)
        return short_line(cell)

    def _number(self, label: FeatureLabel, value: Decimal, *, bare: bool) -> str:
        """A number with its unit; ``bare`` leaves out one that would stand behind it."""
        shown = (value * to_decimal(label.scale)).normalize()
        step = Decimal(1) if label.rounding is None else to_decimal(label.rounding * label.scale)
        places = max(0, -int(step.normalize().as_tuple().exponent))
        text = self.language.number(shown, grouping=label.grouping, places=places)
        unit = label.unit[0 if shown == 1 else 1]
        return text if bare and unit.startswith("{number}") else fill(unit, number=text)


def _readable(value: Decimal, digits: int) -> Decimal:
    """A number with two decimal places, or a number of digits if these take more."""
    places = max(PLACES, digits - 1 - value.adjusted()) if value else 0
    if int(value.as_tuple().exponent) >= -places:
        return value
    return round(value, places)
