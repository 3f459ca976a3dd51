"""Answers: candidates that were selected, out of their blocks, with their costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from ..candidates import CandidateRows
from ..kernels import BoolArray, FloatArray, IntArray
from ..tables.schema import EncodedRows


@dataclass(frozen=True, eq=False)
class Answers:
    """Candidates selected as answers, one entry each, with their costs."""

    rows: CandidateRows
    draw: IntArray
    rank: IntArray
    score: FloatArray
    sparsity: IntArray
    gower: FloatArray

    @property
    def owner(self) -> IntArray:
        """Position of each answer's factual."""
        return self.rows.owner

    @property
    def frame(self) -> pd.DataFrame:
        """The answers as a frame."""
        return self.rows.frame

    def take(self, places: IntArray | BoolArray) -> Answers:
        """The answers at the given places."""
        arrays = (getattr(self, field.name)[places] for field in fields(self)[1:])
        return Answers(self.rows.take(places), *arrays)

    def sort(self) -> Answers:
        """The answers by factual, then rank."""
        return self.take(np.lexsort((self.rank, self.owner)))

    @classmethod
    def concat(cls, factuals: EncodedRows, parts: Sequence[Answers]) -> Answers:
        """All parts as one, by factual, then rank."""
        whole, real = np.empty(0, dtype=np.int64), np.empty(0)
        empty = cls(CandidateRows.join(factuals, []), whole, whole, real, whole, real)
        arrays = (
            np.concatenate([getattr(part, field.name) for part in (empty, *parts)])
            for field in fields(cls)[1:]
        )
        return cls(CandidateRows.join(factuals, [part.rows for part in parts]), *arrays).sort()
