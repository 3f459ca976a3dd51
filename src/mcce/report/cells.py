"""Names and values of features as pictures and tables show them: short, in the words of labels.

Always true: values that differ are written differently, unless they differ beyond what is shown of
a long text; everything is one line of bounded length.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from ..tables.columns import is_missing
from ..tables.features import to_decimal
from ..tables.text import plain
from .clauses import DIGITS, Clauses, readable
from .label_checks import level_key
from .labels import Labels

# Digits that tell all floats of 64 bits apart.
ALL_DIGITS = 17


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
        if isinstance(cell, (Real, Decimal)) and not isinstance(cell, bool):
            return self._clauses.number(label, readable(to_decimal(cell), digits))
        if isinstance(cell, (bool, np.bool_, date)):
            return self.language.value(cell)
        return plain(cell)


def cells_of(column: pd.Series[Any]) -> list[Any]:
    """Cells of a column, None if missing; floats of 32 bits keep their type."""
    missing = is_missing(column)
    return [None if none else column.iloc[at] for at, none in enumerate(missing.tolist())]
