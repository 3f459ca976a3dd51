"""Words and numbers of the page, in the language of the labels."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from ...tables.features import to_decimal
from ..cells import CellWords
from ..labels import Labels


class PageWords:
    r"""Words and numbers of the page.

    Examples
    --------
    >>> words = PageWords(Labels.make({"language": "de"}))
    >>> words.number(0.12345), words.percent(0.125)
    ('0,123', '13\xa0%')
    """

    def __init__(self, labels: Labels) -> None:
        self.cells, self.language = CellWords(labels), labels.language

    def say(self, key: str, **values: str | None) -> str:
        """A text of the page with its placeholders replaced."""
        return self.language.say(f"report.{key}", **values)

    def count(self, key: str, number: int) -> str:
        """So many of something: the text for one of them, or for any other number."""
        return self.say(f"{key}_one" if number == 1 else key, n=self.number(number))

    def number(self, value: Any, places: int = 3) -> str:
        """A number; a dash if it is not defined."""
        if value is None or math.isnan(value):
            return "\N{EN DASH}"
        if math.isinf(value):
            return "\N{INFINITY}" if value > 0 else "\N{MINUS SIGN}\N{INFINITY}"
        shown = round(to_decimal(value), places)
        # What is not zero must not look like it.
        if not shown and value:
            shown = Decimal(f"{float(value):.1e}")
        return self.language.number(shown, places=places)

    def percent(self, share: float) -> str:
        """A share in whole percent; a dash if it is not defined."""
        return self.language.percent(share)

    def flag(self, value: bool) -> str:
        """Yes or no."""
        return self.language.messages["values.yes" if value else "values.no"]
