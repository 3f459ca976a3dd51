"""The seams: what a replacement for a part of the method must offer, and what helps to write one.

:class:`Generator` replaces step 1, :class:`Distance` the ranking of step 3, :class:`Explainer` the
whole method. They are protocols, not base classes; ``mcce.testing`` checks whether an object keeps
what is promised here. The other names are rows as codes, random numbers that depend on nothing but
their keys, candidates, decisions, and checks of parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeGuard

import numpy as np

from .caching import cached_property
from .candidates import CandidateRows, Candidates, Draws
from .kernels import (
    BoolArray,
    Codes,
    DrawLimits,
    Enumerated,
    FloatArray,
    IntArray,
    Person,
    Summation,
    WordArray,
    differences,
    draw_keys,
    person_keys,
    pick,
    scaled_gap,
    uniforms,
    with_decision,
)
from .parameters import check_choice, check_count, check_flag, check_real, check_whole
from .predictors.decision import ScoredRows
from .predictors.desired import make_decision
from .runtime.progress import Progress
from .tables.columns import Kind
from .tables.features import Feature
from .tables.schema import OWN, EncodedRows, Schema

if TYPE_CHECKING:
    import pandas as pd

    from .counterfactuals.result import Counterfactuals

__all__ = [
    "OWN",
    "BoolArray",
    "Callback",
    "CandidateRows",
    "Candidates",
    "Capabilities",
    "CapableGenerator",
    "Codes",
    "Distance",
    "DrawLimits",
    "DrawRequest",
    "Draws",
    "EncodedRows",
    "Enumerated",
    "Explainer",
    "Feature",
    "FloatArray",
    "Generator",
    "IntArray",
    "Kind",
    "Person",
    "Progress",
    "ScoredRows",
    "Summation",
    "WordArray",
    "check_choice",
    "check_count",
    "check_flag",
    "check_real",
    "check_whole",
    "differences",
    "draw_keys",
    "make_decision",
    "person_keys",
    "pick",
    "scaled_gap",
    "uniforms",
]


@dataclass(frozen=True)
class Capabilities:
    """What a generator can do beyond plain draws; what is not declared is not used.

    The first two say which fields of a :class:`DrawRequest` it understands. The others come with
    members of their own, described at :class:`CapableGenerator`.

    Parameters
    ----------
    limits
        Draws stay within ``request.limits``. Without it, values that a person's constraints forbid
        are put back after the draw.
    back_off
        Draws come from at least ``request.least`` training rows. Without it, more draws come
        from the same rows.
    enumeration
        ``enumerate_rows`` lists every row that could be drawn. Needed by ``search="exact"``.
    density
        ``log_likelihood`` says how likely a row is. Needed by ``MCCE.log_likelihood``.
    visit_order
        ``visit_order_`` is the order in which the features are drawn. Without it, what levels
        accepted rows have is learned in column order.
    saving
        ``to_arrays`` and ``from_arrays``. Needed by ``MCCE.save``.
    value_tables
        ``tables_`` are the values that it draws from, always the same. Limits are in the codes
        of these tables.
    privacy
        It learns with differential privacy, see :class:`PrivateGenerator`. The explainer then keeps
        nothing else of the training rows.

    Examples
    --------
    >>> Capabilities(density=True)
    Capabilities(limits=False, back_off=False, enumeration=False, density=True, visit_order=False,
                 saving=False, value_tables=False, privacy=False)
    """

    limits: bool = False
    back_off: bool = False
    enumeration: bool = False
    density: bool = False
    visit_order: bool = False
    saving: bool = False
    value_tables: bool = False
    privacy: bool = False


@dataclass(frozen=True, eq=False)
class DrawRequest:
    """What a generator is to draw: for whom, how often, and within which limits.

    ``limits`` and ``least`` are None unless the generator declares in its :class:`Capabilities`
    that it understands them.

    Parameters
    ----------
    given : (n_features, n_groups)
        Tree codes, of which only those of the immutable features may be used.
    keys : (n_groups,)
        The random key of each group.
    draws : (n_draws,)
        Draw numbers.
    limits
        The values that each group may have; None for all. :meth:`allowed` and :meth:`kept` read it.
    least : (n_draws,), optional
        The fewest training rows with an allowed value to draw from; if there are not so many in
        all, all of them. None requires nothing.
    is_desired : (n_groups,), optional
        Whether each group gets the desired decision; None is yes for all.

    Examples
    --------
    >>> given, keys = np.zeros((3, 2), np.int32), np.arange(2, dtype=np.uint64)
    >>> request = DrawRequest(given, keys, np.arange(4))
    >>> request.row_keys.shape, request.group
    ((8,), array([0, 0, 0, 0, 1, 1, 1, 1]))
    """

    given: Codes
    keys: WordArray
    draws: IntArray
    limits: DrawLimits | None = None
    least: IntArray | None = None
    is_desired: BoolArray | None = None

    @property
    def inputs(self) -> Codes:
        """``given``, and the decision after all features, shape (n_features + 1, n_groups)."""
        is_desired = self.is_desired
        if is_desired is None:
            is_desired = np.ones(self.given.shape[1], dtype=bool)
        return with_decision(self.given, is_desired)

    @cached_property
    def row_keys(self) -> WordArray:
        """The random key of each draw of each group, group after group."""
        return draw_keys(self.keys, self.draws).ravel()

    @cached_property
    def group(self) -> IntArray:
        """The group of each draw, group after group."""
        return np.repeat(np.arange(self.keys.size), self.draws.size)

    def part(self, groups: slice, draws: slice) -> DrawRequest:
        """Some draws of some groups, for a generator that draws a few rows at a time.

        Parameters
        ----------
        groups, draws
            Which groups, and which of the draws.

        Returns
        -------
        DrawRequest
            The request for these.
        """
        limits = None if self.limits is None else self.limits.take(groups)
        return DrawRequest(
            self.given[:, groups],
            self.keys[groups],
            self.draws[draws],
            limits,
            None if self.least is None else self.least[draws],
            None if self.is_desired is None else self.is_desired[groups],
        )

    def allowed(self, position: int, n_codes: int) -> BoolArray | None:
        """Which codes of a feature each group may have.

        Parameters
        ----------
        position
            Position of the feature.
        n_codes
            Number of its codes.

        Returns
        -------
        (n_groups, n_codes) or None
            True where a group may have a code; None if all may have all.
        """
        if self.limits is None or not self.limits.is_limited(position):
            return None
        return self.limits.allow(position, np.arange(n_codes))

    def kept(self, position: int, codes: Codes, possible: BoolArray) -> tuple[Codes, BoolArray]:
        """Which draws of a feature keep the own value of their group.

        Parameters
        ----------
        position
            Position of the feature.
        codes : (n_groups * n_draws,)
            The codes drawn, group after group.
        possible : (n_groups * n_draws,)
            Whether there was an allowed code to draw.

        Returns
        -------
        own : (n_groups * n_draws,)
            The own code of each group.
        kept : (n_groups * n_draws,)
            True where it replaces the code drawn.
        """
        own = np.full(codes.size, -1, dtype=np.int32)
        kept = np.zeros(codes.size, dtype=bool)
        if self.limits is not None:
            bound = (self.limits.first[position] >= 0)[self.group]
            own = np.where(bound, self.limits.own[position][self.group], own)
            near = self.limits.are_near(position, codes.reshape(self.keys.size, -1)).ravel()
            kept = bound & (~possible | near)
        return own.astype(np.int32), kept


class Generator(Protocol):
    """Step 1: a model of the mutable features given the immutable ones and the decision.

    What else it can do, it declares in ``capabilities``; the members for that are those of
    :class:`CapableGenerator`.

    Examples
    --------
    Each mutable feature by itself, drawn from the accepted rows:

    >>> class Marginals:
    ...     capabilities = Capabilities()
    ...
    ...     def fit(self, rows, is_desired, *, seed, n_jobs, verbose):
    ...         self.mutable = rows.schema.mutable
    ...         self.values = [rows.codes[at][is_desired] for at in self.mutable]
    ...         return self
    ...
    ...     def sample(self, request):
    ...         keys = draw_keys(request.keys, request.draws)
    ...         columns = zip(self.mutable, self.values, strict=True)
    ...         return Draws(np.stack([
    ...             values[pick(keys, int(at), np.full(keys.shape, values.size))]
    ...             for at, values in columns
    ...         ]))
    >>> import pandas as pd
    >>> from mcce import MCCE
    >>> frame = pd.DataFrame({"age": [30, 40] * 10, "salary": range(20)})
    >>> explainer = MCCE(lambda rows: rows["salary"], (19, 20), generator=Marginals()).fit(frame)
    >>> explainer.explain(frame.head(1)).frame["salary"].tolist()
    [19]
    """

    @property
    def capabilities(self) -> Capabilities:
        """What it can do beyond plain draws."""
        ...

    def fit(
        self,
        rows: EncodedRows,
        is_desired: BoolArray,
        *,
        seed: int,
        n_jobs: int | None,
        verbose: bool,
    ) -> Self:
        """Learn from the training rows and their decisions.

        Parameters
        ----------
        rows
            The training rows. ``rows.codes`` are int32, shape (n_features, n_train), and
            ``rows.schema.mutable`` lists the positions of the features to model.
        is_desired : (n_train,)
            True where the predictor decides as desired.
        seed
            Seed of all that is random in the fit, from 0 to 2**64 - 1.
        n_jobs
            Threads: None for one, a number, or -1 for all cores.
        verbose
            Whether to show progress.

        Returns
        -------
        Generator
            Itself.
        """
        ...

    def sample(self, request: DrawRequest) -> Draws:
        """Draws for each group of a request.

        Parameters
        ----------
        request
            Groups of people with the same immutable codes, their random keys, and draw numbers.

        Returns
        -------
        Draws
            Its ``codes`` are int32, shape (n_mutable, n_groups, n_draws), features in column order.
            Each is a code of its feature, from 0 to ``n_codes - 1``. A draw depends on nothing but
            its draw number and what the request says of its group: immutable codes, key, decision
            and limits.
        """
        ...


class CapableGenerator(Generator, Protocol):
    """A generator with the members of all capabilities; yours needs only those it declares.

    Examples
    --------
    A generator with ``density``, which draws all values of a feature alike:

    >>> import pandas as pd
    >>> from mcce import MCCE
    >>> class Uniform:
    ...     capabilities = Capabilities(density=True)
    ...
    ...     def fit(self, rows, is_desired, *, seed, n_jobs, verbose):
    ...         self.mutable = rows.schema.mutable
    ...         self.n_codes = [rows.schema.features[at].n_codes for at in self.mutable]
    ...         return self
    ...
    ...     def sample(self, request):
    ...         keys = draw_keys(request.keys, request.draws)
    ...         pairs = zip(self.mutable, self.n_codes, strict=True)
    ...         return Draws(np.stack([pick(keys, int(at), np.full(keys.shape, n))
    ...                                for at, n in pairs]).astype(np.int32))
    ...
    ...     def log_likelihood(self, rows, *, decision=True):
    ...         seen = (rows.codes[self.mutable] >= 0).all(axis=0)
    ...         return np.where(seen, -np.log(self.n_codes).sum(), -np.inf)
    >>> frame = pd.DataFrame({"age": [30, 40] * 10, "salary": range(20)})
    >>> uniform = MCCE(lambda rows: rows["salary"], (19, 20), generator=Uniform()).fit(frame)
    >>> uniform.log_likelihood(frame.head(1)).round(2).tolist()
    [-3.69]
    """

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

        Needed for the capability ``enumeration``.

        Parameters
        ----------
        person
            The person, and what a change to each code costs.
        n_changes
            Number of mutable features in which a row differs from the person.
        n_best
            How many rows to list at most, the cheapest first; of equal ones the smallest codes.
        max_nodes
            Leaves visited at most.
        after
            Total cost and codes, shape (n_mutable,), of the last row that was listed before; the
            list goes on behind it. None begins with the cheapest.

        Returns
        -------
        Enumerated
            Codes, int32 of shape (n_mutable, n_rows), with ``OWN`` where a row keeps the person's
            own cell; the total cost of each row, ascending; and whether no leaf was left out.
        """
        ...

    def log_likelihood(self, rows: EncodedRows, *, decision: bool = True) -> FloatArray:
        """Log-probability of each row's mutable values, given its immutable ones and a decision.

        Needed for the capability ``density``.

        Parameters
        ----------
        rows
            The rows; a value that is not in the training data has the code -1.
        decision
            The decision that they are given; ``MCCE.log_likelihood`` gives the desired one.

        Returns
        -------
        (n_rows,)
            Natural logarithms, float64; minus infinity for a row that cannot be drawn.
        """
        ...

    @property
    def visit_order_(self) -> IntArray:
        """Positions of the mutable features in the order they are drawn, int64, (n_mutable,).

        Needed for the capability ``visit_order``.
        """
        ...

    def to_arrays(self) -> Mapping[str, Any]:
        """What ``fit`` learned. Needed, with ``from_arrays``, for the capability ``saving``.

        Returns
        -------
        dict
            By name: arrays, numbers, strings, and lists and dicts of these.
        """
        ...

    def from_arrays(self, arrays: Mapping[str, Any], schema: Schema) -> Self:
        """Take what :meth:`to_arrays` gave, as if fitted.

        Files may come from anybody: raise ``ValueError`` for arrays that ``fit`` could not have
        learned.

        Parameters
        ----------
        arrays
            What :meth:`to_arrays` gave; arrays have their dtypes and shapes.
        schema
            The columns of the training data.

        Returns
        -------
        Generator
            Itself.
        """
        ...

    @property
    def tables_(self) -> Sequence[pd.Series[Any]]:
        """The value of each code that it draws, one table per mutable feature, in column order.

        Needed for the capability ``value_tables``. Values ascend, missing comes last, and the
        dtypes are those of training. Every :class:`Draws` has these tables.
        """
        ...


class PrivateGenerator(Generator, Protocol):
    """A generator that learns with differential privacy; nothing else reads the training rows.

    ``epsilon`` is its budget and ``ledger_`` what it spent; ``n_desired_``, the count of accepted
    rows, has noise.
    """

    epsilon: float
    ledger_: Any
    n_desired_: int

    def encode_training(self, data: Any, **names: Any) -> EncodedRows:
        """The rows that it fits on, in a schema that is public."""
        ...


def is_private(generator: Any) -> TypeGuard[PrivateGenerator]:
    """Whether a generator learns with differential privacy."""
    declared = getattr(generator, "capabilities", None)
    return isinstance(declared, Capabilities) and declared.privacy


class Distance(Protocol):
    """The cost of a candidate for its person, beside the number of changes.

    It ranks candidates, bounds them by ``max_distance``, measures how different several answers of
    a person are, and is a column of ``result.measures`` under its name. One that is a sum over
    features may derive from :class:`mcce.FeatureDistance`.

    Examples
    --------
    The largest difference in one feature, as a share of its training range:

    >>> class Largest:
    ...     name = "largest"
    ...
    ...     def fit(self, schema, rows, is_desired):
    ...         return self
    ...
    ...     def __call__(self, candidates):
    ...         block = candidates.comparison
    ...         gaps = [differences(block, at)[1] for at in range(len(block.codes))]
    ...         return np.max(gaps, axis=0)
    >>> import pandas as pd
    >>> from mcce import MCCE
    >>> frame = pd.DataFrame({"age": [30, 40] * 10, "salary": range(20)})
    >>> explainer = MCCE(lambda rows: rows["salary"], (19, 20), distance=Largest()).fit(frame)
    >>> explainer.explain(frame.head(1)).measures["largest"].tolist()
    [1.0]
    """

    @property
    def name(self) -> str:
        """Name of the column in ``result.measures``."""
        ...

    def fit(self, schema: Schema, rows: EncodedRows, is_desired: BoolArray) -> Self:
        """Learn from the training rows.

        Parameters
        ----------
        schema
            The columns.
        rows
            The training rows; ``rows.codes`` are int32, shape (n_features, n_train).
        is_desired : (n_train,)
            True where the predictor decides as desired.

        Returns
        -------
        Distance
            Itself.
        """
        ...

    def __call__(self, candidates: Candidates) -> FloatArray:
        """Distance of each candidate to its person.

        Parameters
        ----------
        candidates
            People and their candidates. :func:`differences` compares them in one feature;
            ``candidates.shape`` is (n_people, n_draws).

        Returns
        -------
        (n_people, n_draws)
            Distances, float64: at least 0 and never NaN; infinite is allowed. 0 for a candidate
            equal to its person. A distance depends on nothing but the two, and need not be
            symmetric.
        """
        ...


class Explainer(Protocol):
    """A method that finds counterfactuals; :class:`mcce.MCCE` is one.

    Examples
    --------
    A method that answers nobody:

    >>> import pandas as pd
    >>> from mcce import Counterfactuals
    >>> class Silent:
    ...     def fit(self, X):
    ...         self.schema = Schema.learn(X)
    ...         self.decision = make_decision(lambda frame: frame["salary"], (70, 100))
    ...         return self
    ...
    ...     def explain(self, X):
    ...         known = {"schema": self.schema, "decision": self.decision}
    ...         return Counterfactuals.from_frame(X, X.iloc[:0], owner=np.empty(0, int), **known)
    >>> frame = pd.DataFrame({"salary": [40, 90]})
    >>> Silent().fit(frame).explain(frame).people["status"].tolist()
    ['no answer', 'already desired']
    """

    def fit(self, X: Any) -> Self:
        """Learn from training data.

        Parameters
        ----------
        X
            The training data: a frame with one row per person.

        Returns
        -------
        Explainer
            Itself.
        """
        ...

    def explain(self, X: Any) -> Counterfactuals[Any]:
        """Counterfactuals for every row of ``X``, or the reason why there is none.

        Parameters
        ----------
        X
            People, with the columns of the training data.

        Returns
        -------
        Counterfactuals
            In the kind of frame, columns, dtypes and order of ``X``. Every counterfactual is valid
            by a fresh call of the predictor and keeps the immutable features. Nobody's result
            depends on who else is in ``X``. :meth:`Counterfactuals.from_frame` builds such a
            result.
        """
        ...


class Callback(Protocol):
    """Called between two batches of predictor calls.

    Examples
    --------
    >>> def stop_after_1000_rows(progress: Progress) -> bool:
    ...     return progress.n_evaluated >= 1000
    """

    def __call__(self, progress: Progress) -> bool | None:
        """Take note of the progress.

        Parameters
        ----------
        progress
            People in all and settled, and rows scored so far.

        Returns
        -------
        bool or None
            True to stop: people not settled by then are reported as such.
        """
        ...
