"""Step 1: what a generator must offer, and what more it may declare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from ..candidates import Draws
from ..kernels import (
    BoolArray,
    Codes,
    Enumerated,
    FloatArray,
    Guide,
    IntArray,
    Limits,
    Person,
    WordArray,
)

if TYPE_CHECKING:
    import pandas as pd

    from ..tables.schema import EncodedRows, Schema


@dataclass(frozen=True)
class Capabilities:
    """What a generator can do beyond drawing; everything that is not declared is not used.

    Parameters
    ----------
    limits
        Draws within personal limits: :class:`LimitedGenerator`. Without it, values that a person's
        constraints forbid are put back after the draw.
    guidance
        Draws that tend to keep a person's own values: :class:`GuidedGenerator`. Needed by
        ``search="fast"`` and ``search="exact"``.
    back_off
        Draws from a wider set of training rows where few have values that a person may have:
        :class:`BackingOffGenerator`. Without it, more draws are more of the same.
    enumeration
        Lists every row that could be drawn: :class:`EnumeratingGenerator`. Needed by
        ``search="exact"``.
    density
        Knows how likely a row is: :class:`DensityGenerator`. Needed by ``MCCE.log_likelihood``.
    visit_order
        Models the features one after another: :class:`OrderedGenerator`. Without it,
        what levels accepted rows have is learned in column order.
    saving
        Turns into arrays and back: :class:`SavableGenerator`. Needed by ``MCCE.save``.
    own_values
        Draws from tables of its own, always the same: :class:`InventingGenerator`. The limits and
        the guides that it gets are in the codes of these tables.

    Examples
    --------
    >>> Capabilities(density=True)
    Capabilities(limits=False, guidance=False, back_off=False, enumeration=False, density=True,
                 visit_order=False, saving=False, own_values=False)
    """

    limits: bool = False
    guidance: bool = False
    back_off: bool = False
    enumeration: bool = False
    density: bool = False
    visit_order: bool = False
    saving: bool = False
    own_values: bool = False


class Generator(Protocol):
    """Step 1: a model of the mutable features given the immutable ones and the decision."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do beyond drawing."""
        ...

    def fit(
        self,
        rows: EncodedRows,
        decision: BoolArray,
        *,
        seed: int,
        n_jobs: int | None,
        verbose: bool,
    ) -> Self:
        """Learn from the training rows and their decisions; returns itself.

        All randomness of the fit comes from ``seed``.

        Parameters
        ----------
        rows
            The training rows.
        decision : (n_train,)
            True where the predictor decides as desired.
        seed
            Seed of the fit.
        n_jobs
            Threads, as in scikit-learn.
        verbose
            Whether to show progress.
        """
        ...

    def sample(self, given: Codes, keys: WordArray, draws: IntArray) -> Draws:
        """Draws for each group with the desired decision.

        Parameters
        ----------
        given : (n_features, n_groups)
            Descent codes, of which only those of the immutable features may be used.
        keys : (n_groups,)
            The random key of each group.
        draws : (n_draws,)
            Draw numbers.

        Returns
        -------
        Draws
            Codes of shape (n_mutable, n_groups, n_draws). A draw depends on nothing but its
            group's immutable codes, its group's key and its draw number.
        """
        ...


class LimitedGenerator(Generator, Protocol):
    """A generator with the capability ``limits``."""

    def sample_within(
        self, given: Codes, keys: WordArray, draws: IntArray, limits: Limits | None
    ) -> Draws:
        """Draws that stay within the limits of each group.

        Parameters
        ----------
        given, keys, draws
            As for :meth:`Generator.sample`.
        limits
            The values that each group may have; None for all.

        Returns
        -------
        Draws
            As for :meth:`Generator.sample`.
        """
        ...


class GuidedGenerator(Generator, Protocol):
    """A generator with the capability ``guidance``."""

    def sample_guided(
        self,
        given: Codes,
        keys: WordArray,
        draws: IntArray,
        limits: Limits | None,
        guide: Guide | None,
    ) -> Draws:
        """Draws within limits that keep a group's own values where they can.

        These draws may also depend on the limits and the guide of their group.

        Parameters
        ----------
        given, keys, draws, limits
            As for :meth:`LimitedGenerator.sample_within`.
        guide
            Each group's own values, and how often to keep them; None keeps none.

        Returns
        -------
        Draws
            As for :meth:`Generator.sample`.
        """
        ...


class BackingOffGenerator(Generator, Protocol):
    """A generator with the capability ``back_off``."""

    def sample_backed_off(
        self,
        given: Codes,
        keys: WordArray,
        draws: IntArray,
        limits: Limits | None,
        guide: Guide | None,
        least: IntArray | None,
    ) -> Draws:
        """Guided draws within limits, each value from among enough training rows.

        Parameters
        ----------
        given, keys, draws, limits, guide
            As for :meth:`GuidedGenerator.sample_guided`.
        least : (n_draws,), optional
            How many training rows whose value the group may have a value is drawn from, at least;
            all of them if there are fewer. None asks for nothing.

        Returns
        -------
        Draws
            As for :meth:`Generator.sample`.
        """
        ...


class EnumeratingGenerator(Generator, Protocol):
    """A generator with the capability ``enumeration``."""

    def enumerate_rows(
        self,
        person: Person,
        *,
        n_changes: int,
        n_best: int,
        max_nodes: int,
        after: tuple[float, Codes] | None = None,
    ) -> Enumerated:
        """The nearest rows with ``n_changes`` changes that could be drawn for a person.

        Parameters
        ----------
        person
            The person, and what each change costs.
        n_changes
            Number of changes of the rows.
        n_best
            How many rows to list, nearest first.
        max_nodes
            Leaves visited at most.
        after
            Distance and codes of the last row listed before; None begins with the nearest.

        Returns
        -------
        Enumerated
            The rows, and whether the visit ended within its budget.
        """
        ...


class DensityGenerator(Generator, Protocol):
    """A generator with the capability ``density``."""

    def log_likelihood(self, rows: EncodedRows) -> FloatArray:
        """Log-probability of each row's mutable values, given the desired decision.

        Parameters
        ----------
        rows
            The rows.

        Returns
        -------
        (n_rows,)
            Log-probabilities; minus infinity for a row that cannot be drawn.
        """
        ...


class OrderedGenerator(Generator, Protocol):
    """A generator with the capability ``visit_order``."""

    @property
    def visit_order_(self) -> IntArray:
        """Positions of the mutable features in the order they are drawn, shape (n_mutable,)."""
        ...


class SavableGenerator(Generator, Protocol):
    """A generator with the capability ``saving``."""

    def to_arrays(self) -> Mapping[str, Any]:
        """What ``fit`` learned, by name: arrays, numbers, strings, and lists and dicts of these."""
        ...

    def from_arrays(self, arrays: Mapping[str, Any], schema: Schema) -> Self:
        """Take what :meth:`to_arrays` gave, as if fitted; returns itself.

        Files may come from strangers: raise ``ValueError`` for arrays that ``fit`` could not have
        learned.

        Parameters
        ----------
        arrays
            What :meth:`to_arrays` gave.
        schema
            The columns of the training data.
        """
        ...


class InventingGenerator(Generator, Protocol):
    """A generator with the capability ``own_values``."""

    @property
    def tables_(self) -> Sequence[pd.Series[Any]]:
        """The value of each code that it draws, one table per mutable feature.

        Ascending, missing last, in the dtypes of training; those of every :class:`Draws`.
        """
        ...
