"""The distances once more, one cell at a time in plain Python."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd

from mcce import Schema
from mcce.candidates import pair_rows


def fitted(distance, train, decision, immutable=()):
    """A distance that learned from training rows, and their schema."""
    rows = Schema.learn_rows(train, immutable=list(immutable))
    return distance.fit(rows.schema, rows, np.asarray(decision, dtype=bool)), rows.schema


def between(distance, schema, one, other):
    """Distances of the rows of two frames, one by one."""
    frame = schema.encode(other).frame
    return distance(pair_rows(schema.encode(one), np.arange(len(one)), frame, 1))[:, 0]


def expected_of(oracle, people, others):
    """What an oracle says of the rows of two frames, one by one."""
    pairs = zip(people.astype(object).iterrows(), others.astype(object).iterrows(), strict=True)
    return [oracle(one, other) for (_, one), (_, other) in pairs]


class Oracle:
    """Distances between rows of a frame, by the definitions of the user guide."""

    def __init__(self, name, train, decision, *, missing="level", variant="N2", alpha=1.0):
        self.name, self.train, self.decision = name, train, np.asarray(decision)
        self.missing, self.variant, self.alpha = missing, variant, alpha
        # What shares levels have, by column.
        self.levels = {}

    def __call__(self, one: pd.Series, other: pd.Series) -> float:
        gaps = [self.gap(name, one[name], other[name]) for name in self.train.columns]
        counted = [gap for gap in gaps if gap is not None]
        if self.name in ("gower", "l1"):
            total = sum(counted)
            if self.name == "l1":
                return total
            equal = all(same(one[name], other[name]) for name in self.train.columns)
            return total / len(counted) if counted else (0.0 if equal else math.inf)
        return math.sqrt(sum(gap**2 for gap in counted))

    def gap(self, name, a, b):
        """How far two cells are apart; None if the feature does not count."""
        if self.missing == "ignore" and (pd.isna(a) or pd.isna(b)):
            return None
        if same(a, b):
            return 0.0
        if pd.isna(a) or pd.isna(b):
            return 1.0
        column = self.train[name]
        numbers = column.dropna()
        if not pd.api.types.is_numeric_dtype(column) or column.dtype == bool:
            return self.level_gap(column, a, b)
        spread = numbers.max() - numbers.min()
        if spread == 0:
            return 1.0
        return self.number_gap(column, a, b, spread)

    def number_gap(self, column, a, b, spread):
        if self.name == "hvdm":
            return abs(a - b) / (4 * np.std(column.dropna()))
        return abs(a - b) / spread

    def level_gap(self, column, a, b):
        if self.name not in ("hvdm", "ivdm"):
            return 1.0
        for level in (a, b):
            if (column.name, level) not in self.levels:
                shares = self.shares(column[column == level].index)
                self.levels[column.name, level] = shares
        p, q = (self.levels[column.name, level] for level in (a, b))
        steps = [abs(x - y) for x, y in zip(p, q, strict=True)]
        if self.variant == "N1":
            return sum(steps)
        scale = 2 if self.variant == "N3" else 1
        return math.sqrt(scale * sum(step**2 for step in steps))

    def shares(self, rows):
        """Shares of the decisions among some training rows, declined first."""
        counts, everything = Counter(self.decision[rows].tolist()), Counter(self.decision.tolist())
        size = len(rows) + self.alpha
        prior = [everything[value] / len(self.train) for value in (False, True)]
        if not size:
            return [0.0, 0.0]
        return [
            (counts[value] + self.alpha * p) / size
            for value, p in zip((False, True), prior, strict=True)
        ]


def same(a, b):
    """Equal, two missing cells being equal."""
    return (pd.isna(a) and pd.isna(b)) or (not pd.isna(a) and not pd.isna(b) and a == b)
