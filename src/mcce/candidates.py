"""Candidates: what step 2 hands to step 3 for one block of people.

Between the paper's sections "Generation" and "Post-processing": the data sets D_h of a block.
People with equal immutable values form a group and share their draws. Immutable features are not
stored: a candidate has those of its person by construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .kernels import BoolArray, Codes, Comparison, IntArray
from .schema import Rows


@dataclass(frozen=True, eq=False)
class Sampled:
    """Draws of a generator.

    Parameters
    ----------
    codes : (n_mutable, n_groups, n_draws)
        Codes of the mutable features.
    tables
        The value of each code, one table per mutable feature, ascending, missing last. None: the
        values that training held. A generator that invents values gives its own.
    """

    codes: Codes
    tables: Sequence[pd.Series[Any]] | None = None


@dataclass(frozen=True, eq=False)
class Candidates:
    """The draws of a block of people, with all that is needed to compare them.

    Parameters
    ----------
    rows
        All factuals.
    people : (n_people,)
        Positions of the block's people among the factuals.
    comparison
        Codes and values of the candidates and of the people themselves.
    draws : (n_draws,)
        Draw numbers.
    distinct : (n_groups, n_draws)
        Whether a draw is the first of its kind in its group.
    tables
        The value of each code, one table per mutable feature, in the dtypes of ``rows``.
    """

    rows: Rows
    people: IntArray
    comparison: Comparison
    draws: IntArray
    distinct: BoolArray
    tables: Sequence[pd.Series[Any]]

    @property
    def group(self) -> IntArray:
        """The group of each person, numbered from 0 in this block."""
        return self.comparison.group

    @property
    def shape(self) -> tuple[int, int]:
        """Number of people and of draws for each."""
        return self.people.size, self.draws.size

    def training_codes(self) -> Codes:
        """The codes in the training values, -1 where a generator invented the value."""
        codes = self.comparison.codes
        if self.tables is self.rows.tables:
            return codes
        features = [self.rows.schema.features[position] for position in self.rows.schema.mutable]
        known = [f.encode(table)[0] for f, table in zip(features, self.tables, strict=True)]
        return np.stack([row[drawn] for row, drawn in zip(known, codes, strict=True)])

    def frame(self, person: IntArray, draw: IntArray | Codes) -> pd.DataFrame:
        """Chosen candidates, by person and draw as numbered in this block, as rows."""
        codes = self.comparison.codes[:, self.group[person], draw]
        changed = codes != self.comparison.own_codes[:, person]
        return self.rows.compose(self.people[person], changed, codes, self.tables)
