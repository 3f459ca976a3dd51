"""Counting training people whose quasi-identifiers lie in the cells of an answer.

Takes training codes, one row per quasi-identifier. A cell is a truth value per code of its feature:
whether a value is inside. Equal training rows are counted together.

Always true: counts are exact, and do not depend on the order of training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..kernels import BoolArray, Codes, IntArray


@dataclass(frozen=True, eq=False)
class Crowd:
    """The distinct training rows, and how many people have each.

    Examples
    --------
    >>> crowd = Crowd.of(np.array([[0, 0, 1], [2, 2, 0]]), [2, 3])
    >>> crowd.count([np.array([True, False]), np.array([False, False, True])])
    2
    """

    codes: Codes
    n_people: IntArray
    n_codes: Sequence[int]

    @classmethod
    def of(cls, codes: Codes, n_codes: Sequence[int]) -> Crowd:
        """The crowd of training rows, (n_features, n_rows)."""
        distinct, n_people = np.unique(codes, axis=1, return_counts=True)
        return cls(distinct, n_people, n_codes)

    def count(self, inside: Sequence[BoolArray]) -> int:
        """How many people are inside all cells; ``inside`` has a truth value per code."""
        return int(self.n_people[self._misses(inside).sum(axis=0) == 0].sum())

    def by_code(self, inside: Sequence[BoolArray], at: int) -> IntArray:
        """How many people inside all other cells have each code of one feature."""
        misses = self._misses(inside)
        misses[at] = False
        some = ~misses.any(axis=0)
        counts = np.bincount(self.codes[at][some], self.n_people[some], minlength=self.n_codes[at])
        return counts.astype(np.int64)

    def gains(self, inside: Sequence[BoolArray], level: int = 0) -> tuple[list[IntArray], bool]:
        """How many people each value of a feature would bring nearer, and whether inside."""
        misses = self._misses(inside)
        n_misses = misses.sum(axis=0)
        numbers = np.unique(n_misses[n_misses > 0])
        number = int(numbers[level]) if level < numbers.size else -1
        counts = []
        for codes, misses_it, n_codes in zip(self.codes, misses, self.n_codes, strict=True):
            some = (n_misses == number) & misses_it
            total = np.bincount(codes[some], self.n_people[some], minlength=n_codes)
            counts.append(total.astype(np.int64))
        return counts, number == 1

    def _misses(self, inside: Sequence[BoolArray]) -> BoolArray:
        """Which values are outside of their cell, (n_features, n_distinct)."""
        pairs = zip(inside, self.codes, strict=True)
        return np.stack([~cell[codes] for cell, codes in pairs])
