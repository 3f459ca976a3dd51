"""The seams: what a replacement for a part of the method must offer.

Each is one or two methods; none is a base class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from .kernels import BoolArray, Codes, FloatArray, IntArray, WordArray

if TYPE_CHECKING:
    from .candidates import CandidateRows, Candidates, Draws
    from .tables.schema import EncodedRows, Schema


class Generator(Protocol):
    """Step 1: a model of the mutable features given the immutable ones and the decision."""

    def fit(
        self, rows: EncodedRows, decision: BoolArray, *, n_jobs: int | None, verbose: bool
    ) -> Generator:
        """Learn from the training rows and their decisions; returns itself."""
        ...

    def sample(self, given: Codes, keys: WordArray, draws: IntArray) -> Draws:
        """Draws for each group with the desired decision.

        ``given`` holds descent codes, shape (n_features, n_groups), of which only the immutable
        features mean anything. A draw may depend on nothing but its group's immutable codes, its
        group's key and its draw number.

        A generator that can also draw within limits says so by a method ``sample_within`` that
        takes them as one more argument. Of any other, what is not allowed is put back afterwards.
        One that can rather keep a group's own values has a method ``sample_guided`` that takes the
        limits, or None, and a :class:`kernels.Guide`; its draws may depend on these too.
        """
        ...


class Distance(Protocol):
    """The cost of a candidate for its person, beside the number of changes."""

    @property
    def name(self) -> str:
        """How the distance is called."""
        ...

    def fit(self, schema: Schema, rows: EncodedRows, decision: BoolArray) -> Distance:
        """Learn from the training rows; returns itself."""
        ...

    def __call__(self, candidates: Candidates) -> FloatArray:
        """Distances, shape (n_people, n_draws)."""
        ...


class CandidateFilter(Protocol):
    """A reason not to return a candidate to a person, whatever the predictor says."""

    @property
    def name(self) -> str:
        """How the rule is called where it is given as a reason."""
        ...

    def __call__(self, candidates: Candidates) -> BoolArray:
        """Which candidates the rule lets pass, shape (n_people, n_draws)."""
        ...


class RowFilter(CandidateFilter, Protocol):
    """A rule that can be asked about any rows, whoever's draws they are."""

    def keeps(self, chosen: CandidateRows) -> BoolArray:
        """Which rows the rule lets pass, shape (n_chosen,)."""
        ...


@dataclass(frozen=True)
class Progress:
    """How far a call of ``explain`` has come."""

    n_people: int
    n_settled: int
    n_evaluated: int


class Callback(Protocol):
    """Looks on between two waves of questions to the predictor."""

    def __call__(self, progress: Progress) -> bool | None:
        """Return True to stop: people not settled by then are reported as such."""
        ...
