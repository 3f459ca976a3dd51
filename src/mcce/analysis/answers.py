"""The counterfactuals of a result, and rows that differ from them in a few cells.

Takes what ``explain`` returned, or another method. Gives the cells that are changed, and rows made
of cells of the person, of the counterfactual and of training values.

Always true: a cell that is the person's own is taken from the person's row, never decoded; columns
that follow from others follow in every row that is made here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ..caching import cached_property
from ..candidates import CandidateRows
from ..constraints.collection import Constraints
from ..counterfactuals import Counterfactuals
from ..errors import ParameterError, SchemaError
from ..kernels import BoolArray, Codes, FloatArray, IntArray
from ..postprocess.validation import ROWS_PER_CALL
from ..search.consequences import ComputedColumn, Consequences, GrowingTables
from ..tables.columns import differ
from ..tables.dtypes import cast_like
from ..tables.schema import OWN, EncodedRows, Schema


@dataclass(frozen=True, eq=False)
class Answers:
    """Counterfactuals and the person of each; :meth:`read` checks them."""

    factuals: EncodedRows
    owner: IntArray
    rows: EncodedRows
    changed: BoolArray
    acted: BoolArray

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def read(
        cls, schema: Schema, result: Counterfactuals[Any], targets: Sequence[ComputedColumn]
    ) -> Answers:
        """The counterfactuals of a result, if they can be those of this schema."""
        if not isinstance(result, Counterfactuals):
            raise ParameterError(
                "result must be what explain returned, a Counterfactuals, got "
                f"{type(result).__name__}."
            )
        frame = result.to_pandas().frame
        if set(frame.columns) != set(schema.names):
            raise SchemaError(
                f"The result has the columns {list(frame.columns)!r}, but this explainer "
                f"was fitted on {schema.names!r}. Pass a result of this explainer."
            )
        factuals, rows = schema.encode(result.factuals), schema.encode(frame)
        return cls.make(factuals, result.owner, rows, targets)

    @classmethod
    def make(
        cls,
        factuals: EncodedRows,
        owner: IntArray,
        rows: EncodedRows,
        targets: Sequence[ComputedColumn],
    ) -> Answers:
        """Any rows as counterfactuals of people."""
        schema = factuals.schema
        changed = _changed(factuals.take(owner), rows)
        moved = [str(schema.names[at]) for at in schema.immutable if changed[at].any()]
        if moved:
            raise SchemaError(
                f"A row changes {moved!r}, immutable for this explainer. "
                "Pass a result of this explainer."
            )
        acted = changed[schema.mutable]
        acted[[target.row for target in targets]] = False
        return cls(factuals, owner, rows, changed[schema.mutable], acted)

    def of(self, some: slice) -> Answers:
        """The same for some of them."""
        places = np.arange(len(self))[some]
        return replace(
            self,
            owner=self.owner[places],
            rows=self.rows.take(places),
            changed=self.changed[:, places],
            acted=self.acted[:, places],
        )

    @property
    def codes(self) -> Codes:
        """The counterfactuals themselves, as codes of ``tables``."""
        return np.where(self.changed, np.arange(len(self)), OWN).astype(np.int32)

    @cached_property
    def tables(self) -> list[pd.Series[Any]]:
        """Per mutable feature the cells of the counterfactuals, and then the training values."""
        cells = [self.rows.frame.iloc[:, position] for position in self.rows.schema.mutable]
        return [
            pd.concat([cast_like(own, table), table], ignore_index=True)
            for own, table in zip(cells, self.factuals.tables, strict=True)
        ]


class AnswerVariants:
    """Rows that differ from counterfactuals in a few cells."""

    def __init__(
        self, answers: Answers, targets: Sequence[ComputedColumn], constraints: Constraints
    ) -> None:
        self.answers = answers
        self._tables = GrowingTables(answers.factuals, answers.tables)
        self._consequences = None
        if targets:
            self._consequences = Consequences(targets, answers.factuals, constraints)

    def originals(self) -> CandidateRows:
        """The counterfactuals as they are."""
        answers = self.answers
        return CandidateRows(answers.factuals, answers.owner, answers.codes, self._tables.tables)

    def place(self, row: int, numbers: FloatArray) -> Codes:
        """Codes of any numbers of a mutable feature, whether training held them or not."""
        return self._tables.place(row, numbers)

    def make(self, answer: IntArray, codes: Codes) -> CandidateRows:
        """Variants of counterfactuals, with what follows from their changes."""
        owner = self.answers.owner[answer]
        if self._consequences is not None:
            codes = self._consequences.complete(self._tables, owner, codes)
        return CandidateRows(self.answers.factuals, owner, codes, self._tables.tables)


def chunks(n_rows: IntArray) -> Iterator[slice]:
    """Consecutive counterfactuals whose rows fit into one call of the predictor.

    Without any counterfactual, one chunk of none: tables need their columns all the same.
    """
    chunk = (np.cumsum(n_rows) - n_rows) // ROWS_PER_CALL
    starts = np.flatnonzero(np.diff(chunk, prepend=-1)).tolist() or [0]
    for start, end in pairwise([*starts, n_rows.size]):
        yield slice(start, end)


def numbered(counts: IntArray) -> tuple[IntArray, IntArray]:
    """``counts`` entries for each owner: the owner, and the number among its entries from 0."""
    owner = np.repeat(np.arange(counts.size), counts)
    return owner, np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)


def _changed(factuals: EncodedRows, rows: EncodedRows) -> BoolArray:
    """Cells that are not the person's own, shape (n_features, n_rows)."""
    changed = factuals.exact != rows.exact
    unseen = (factuals.exact < 0) & (rows.exact < 0)
    for position in np.flatnonzero(unseen.any(axis=1)).tolist():
        at = np.flatnonzero(unseen[position])
        before, after = (side.frame.iloc[:, position].iloc[at] for side in (factuals, rows))
        changed[position, at] = differ(before, after)
    return changed
