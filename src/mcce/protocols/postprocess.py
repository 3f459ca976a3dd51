"""Step 3: what a distance and a filter of candidates must offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from ..kernels import BoolArray, FloatArray

if TYPE_CHECKING:
    from ..candidates import CandidateRows, Candidates
    from ..tables.schema import EncodedRows, Schema


class Distance(Protocol):
    """The cost of a candidate for its person, beside the number of changes.

    It ranks candidates, bounds them by ``max_distance``, measures how different several answers of
    a person are, and is a column of ``result.measures`` under its name.
    """

    @property
    def name(self) -> str:
        """Name of the column in ``result.measures``."""
        ...

    def fit(self, schema: Schema, rows: EncodedRows, decision: BoolArray) -> Self:
        """Learn from the training rows; returns itself.

        Parameters
        ----------
        schema
            The columns.
        rows
            The training rows.
        decision : (n_train,)
            True where the predictor decides as desired.
        """
        ...

    def __call__(self, candidates: Candidates) -> FloatArray:
        """Distance of each candidate to its person, shape (n_factuals, n_draws).

        At least 0 and never NaN; infinite is allowed. 0 for a candidate equal to its person. It
        depends on nothing but the two. It need not be symmetric.
        """
        ...


class CandidateFilter(Protocol):
    """A reason not to return a candidate to a person, whatever the predictor says."""

    @property
    def name(self) -> str:
        """Name of the filter in reasons."""
        ...

    def __call__(self, candidates: Candidates) -> BoolArray:
        """Which candidates pass, shape (n_factuals, n_draws)."""
        ...


class RowFilter(CandidateFilter, Protocol):
    """A filter for any rows, not only for the draws of a block."""

    def keeps(self, chosen: CandidateRows) -> BoolArray:
        """Which of the chosen rows pass.

        Parameters
        ----------
        chosen
            Rows, and the person of each.

        Returns
        -------
        (n_rows,)
            True where a row passes.
        """
        ...
