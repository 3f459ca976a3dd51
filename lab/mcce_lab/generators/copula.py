"""Step 1: a Gaussian copula with mixed margins.

Paper, section "Future steps": models other than trees. Behind every column there is a normal
number; their correlations (``margins``) are all that the model knows of how columns depend on each
other. A draw has the numbers of the mutable features given the intervals of the immutable ones and
of the decision, and with them training values.

The numbers behind the immutable features and the decision are drawn from their intervals: one after
the other first, then by sweeps of Gibbs sampling, which make them a draw from their distribution
given all intervals. With one interval the first draw is exact; otherwise the error falls
geometrically with the sweeps. The numbers of the mutable features follow exactly.

Always true: every value drawn is a training value; the model depends on the training rows as a set;
a row's numbers depend on its key and its intervals alone, to the last bit, so sums are written out,
because a matrix product may depend on the number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]

from mcce import Schema
from mcce.protocols import (
    BoolArray,
    Capabilities,
    Codes,
    DrawRequest,
    EncodedRows,
    Feature,
    FloatArray,
    IntArray,
    WordArray,
    check_whole,
    draw_keys,
    uniforms,
)

from .base import LabGenerator, demand, listed, take
from .margins import ANYWHERE, Margin, is_correlation, latent_correlations, learn_margins

# Rows that are drawn together; it changes nothing but the memory.
CHUNK = 2**15
# Points at which the likelihood of a row is computed; the same ones for every row.
N_POINTS, POINTS_SEED = 256, 0
# The smallest and the largest probability of a finite quantile.
NEVER_0_OR_1 = (5e-324, 1.0 - 2.0**-53)
# The place of a latent number in the chain, and its margin.
Placed = tuple[int, Margin]
# The ends of an interval for each row.
Bounds = tuple[FloatArray, FloatArray]


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianCopula(LabGenerator):
    """Normal numbers behind every column, conditioned on the immutable ones and the decision.

    Margins are kept as they are: numbers with their atoms, and levels. What it misses is what
    correlations miss: dependence that is not monotone, and interactions. Unordered levels get the
    order by which they go best with the other columns. Whether a number is missing is a column.

    Parameters
    ----------
    condition_on_decision
        Whether draws are conditioned on the decision.
    n_sweeps
        How often the numbers behind the immutable features and the decision are drawn again given
        each other. More are closer to their distribution and take longer. With no immutable
        feature one draw is exact.

    Attributes
    ----------
    margins_ : list of Margin
        The intervals of each column; the decision comes last.
    correlations_ : (n_margins, n_margins)
        Correlations of the numbers behind them.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [30, 40] * 10, "salary": range(20)})
    >>> rows = Schema.learn_rows(frame, immutable=["age"])
    >>> copula = GaussianCopula().fit(rows, frame["salary"].to_numpy() > 9)
    >>> copula.correlations_[1].round(2)
    array([0.16, 1.  , 0.99])
    """

    array_names: ClassVar[tuple[str, ...]] = ("margins", "correlations")
    capabilities: ClassVar[Capabilities] = Capabilities(limits=True, density=True, saving=True)

    condition_on_decision: bool = True
    n_sweeps: Annotated[int, partial(check_whole, least=0, most=10_000)] = 10

    def log_likelihood(self, rows: EncodedRows, *, decision: bool = True) -> FloatArray:
        """Log-probability of each row's mutable values given its immutable ones and a decision.

        Estimated by importance sampling at 256 points (the method of Geweke, Hajivassiliou and
        Keane), the same for every row, so it has a small error of chance.

        Parameters
        ----------
        rows
            The rows.
        decision
            The decision that they are given.

        Returns
        -------
        (n_rows,)
            Log-probabilities; minus infinity for levels that training never held.
        """
        codes = np.vstack([rows.tree_codes, np.full((1, len(rows)), decision, dtype=np.int32)])
        total = np.empty(len(rows))
        at_once = max(1, CHUNK // N_POINTS)
        for start in range(0, len(rows), at_once):
            some = slice(start, start + at_once)
            total[some] = self._log_likelihood(codes[:, some])
        n_codes = np.array([f.n_codes for f in self.schema_.features])
        unseen = (rows.tree_codes >= n_codes[:, None])[self.schema_.mutable].any(axis=0)
        return np.where(unseen, -np.inf, total)

    def _learn(self, rows: EncodedRows, is_desired: BoolArray, seed: int, verbose: bool) -> None:
        margins = learn_margins(rows, is_desired)
        codes = [*rows.tree_codes, is_desired.astype(np.int32)]
        self._keep(margins, latent_correlations(margins, codes))

    def _pack(self) -> dict[str, Any]:
        return {"margins": pack_margins(self.margins_), "correlations": self.correlations_}

    def _unpack(self, arrays: Mapping[str, Any], schema: Schema) -> None:
        self._keep(*unpack_margins(arrays, schema))

    def _rows_at_once(self) -> int:
        return CHUNK

    def _keep(self, margins: list[Margin], correlations: FloatArray) -> None:
        """Take what was learned."""
        schema = self.schema_
        self.margins_, self.correlations_ = margins, correlations
        given = {*schema.immutable.tolist()}
        if self.condition_on_decision:
            given.add(len(schema.features))
        mutable = {*schema.mutable.tolist()}
        first = [at for at, margin in enumerate(margins) if margin.position in given]
        order = first + [at for at, margin in enumerate(margins) if margin.position in mutable]
        self._order = order
        self._gaussian = Gaussian(correlations[np.ix_(order, order)], len(first))

    def _ordered(self) -> tuple[list[Margin], list[Margin]]:
        """The margins that are given and those that are drawn, in order."""
        margins, n_given = [self.margins_[at] for at in self._order], self._gaussian.n_given
        return margins[:n_given], margins[n_given:]

    def _draw(self, request: DrawRequest) -> Codes:
        """Codes of some rows, shape (n_mutable, n_rows)."""
        inputs = request.inputs
        # The words of earlier positions are those of other generators.
        latents = LatentRows(self._gaussian, request.row_keys, 3 * len(inputs))
        given, drawn = self._ordered()
        intervals = [m.bounds(inputs[m.position][request.group]) for m in given]
        latents.settle(intervals, self.n_sweeps)
        features = FeatureDraws(latents, request)
        codes = np.empty((self.schema_.mutable.size, request.group.size), dtype=np.int32)
        placed = list(enumerate(drawn, self._gaussian.n_given))
        for place, position in enumerate(self.schema_.mutable.tolist()):
            codes[place] = features.draw(position, [p for p in placed if p[1].position == position])
        return codes

    def _log_likelihood(self, codes: Codes) -> FloatArray:
        n_rows = codes.shape[1]
        points = draw_keys(np.array([POINTS_SEED], dtype=np.uint64), np.arange(N_POINTS)).ravel()
        row = np.repeat(np.arange(n_rows), N_POINTS)
        latents = LatentRows(self._gaussian, np.tile(points, n_rows), 0)
        given = np.ones(row.size)
        for at, margin in enumerate(m for part in self._ordered() for m in part):
            if at == self._gaussian.n_given:
                given = latents.mass
            latents.draw(at, [margin.bounds(codes[margin.position][row])])
        masses = [m.reshape(n_rows, N_POINTS).mean(axis=1) for m in (latents.mass, given)]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(masses[0]) - np.log(masses[1])
        return np.where(masses[1] > 0, found, -np.inf)


class FeatureDraws:
    """Features of some rows, drawn one after another."""

    def __init__(self, latents: LatentRows, request: DrawRequest) -> None:
        self.latents, self.request, self.group = latents, request, request.group

    def draw(self, position: int, margins: Sequence[Placed]) -> Codes:
        """Codes of a feature."""
        n_codes = margins[-1][1].place.size - 1
        allowed = self.request.allowed(position, n_codes)
        codes, possible = self._codes(margins, allowed)
        own, kept = self.request.kept(position, codes, possible)
        if kept.any():
            self._keep(position, margins, kept)
        return np.where(kept, own, codes)

    def _codes(
        self, margins: Sequence[Placed], allowed: BoolArray | None
    ) -> tuple[Codes, BoolArray]:
        """A code of each row, allowed where one can be drawn, and whether it could."""
        missing = np.zeros(self.group.size, dtype=bool)
        possible = np.ones(self.group.size, dtype=bool)
        codes = np.zeros(self.group.size, dtype=np.int32)
        for at, margin in margins:
            runs = None if allowed is None else self._runs(margin, allowed)
            numbers, could = self.latents.draw(at, runs)
            drawn = margin.codes[np.searchsorted(margin.cuts[1:-1], numbers, side="right")]
            if margin.is_flag:
                missing = drawn == 1
                codes[missing] = margin.place.size - 2
                possible &= could
            else:
                codes = np.where(missing, codes, drawn).astype(np.int32)
                possible &= could | missing
        return codes, possible

    def _keep(self, position: int, margins: Sequence[Placed], kept: BoolArray) -> None:
        """Draw the latent numbers of rows that keep their value from its intervals."""
        own = self.request.given[position][self.group]
        before = [self.latents.steps[at] for at, _ in margins]
        for (at, margin), steps in zip(margins, before, strict=True):
            self.latents.draw(at, [margin.bounds(own)])
            self.latents.steps[at] = np.where(kept, self.latents.steps[at], steps)

    def _runs(self, margin: Margin, allowed: BoolArray) -> list[Bounds]:
        """The intervals that each row may draw from, adjacent ones joined."""
        if margin.is_flag:
            by_interval = np.stack([allowed[:, :-1].any(axis=1), allowed[:, -1]], axis=1)
        else:
            by_interval = allowed[:, margin.codes]
        edges = np.diff(np.pad(by_interval.astype(np.int8), ((0, 0), (1, 1))), axis=1)
        whose, start = np.nonzero(edges == 1)
        end = np.nonzero(edges == -1)[1]
        count = np.bincount(whose, minlength=len(allowed))
        nth = np.arange(whose.size) - (np.cumsum(count) - count)[whose]
        # Padded with empty intervals.
        low, high = np.full((2, max(1, int(count.max(initial=0))), len(allowed)), np.inf)
        low[nth, whose], high[nth, whose] = margin.cuts[start], margin.cuts[end]
        return [(a[self.group], b[self.group]) for a, b in zip(low, high, strict=True)]


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Normal numbers with mean 0 and variance 1, of which the first ones are given.

    Parameters
    ----------
    correlations : (n_latents, n_latents)
        Their correlations, positive definite.
    n_given
        How many of them, the first ones, are known by intervals.
    """

    correlations: FloatArray
    n_given: int

    @cached_property
    def factor(self) -> FloatArray:
        """The lower Cholesky factor."""
        return np.asarray(np.linalg.cholesky(self.correlations), dtype=np.float64)

    @cached_property
    def precision(self) -> FloatArray:
        """The inverse correlations of those that are given."""
        given = self.correlations[: self.n_given, : self.n_given]
        return np.asarray(np.linalg.inv(given), dtype=np.float64)


class LatentRows:
    """The latent numbers of some rows, drawn from the first to the last."""

    def __init__(self, gaussian: Gaussian, row_keys: WordArray, first_word: int) -> None:
        self.gaussian, self.row_keys, self.first_word = gaussian, row_keys, first_word
        # The numbers in units of their spread given those before, from their mean.
        self.steps: list[FloatArray] = []
        self.mass = np.ones(row_keys.size)

    def mean(self, at: int) -> FloatArray:
        """The mean of a number given those before it."""
        total = np.zeros(self.row_keys.size)
        for weight, step in zip(self.gaussian.factor[at, :at].tolist(), self.steps, strict=False):
            if weight:
                total = total + weight * step
        return total

    def spread(self, at: int) -> float:
        """The standard deviation of a number given those before it."""
        return float(self.gaussian.factor[at, at])

    def draw(self, at: int, runs: Sequence[Bounds] | None) -> tuple[FloatArray, BoolArray]:
        """A number of each row within one of several intervals, and whether it was possible."""
        mean, spread = self.mean(at), self.spread(at)
        if runs is None:
            step = ndtri(uniforms(self.row_keys, self.first_word + at))
            self.steps[at:] = [step]
            return mean + spread * step, np.ones(step.size, dtype=bool)
        scaled = [((low - mean) / spread, (high - mean) / spread) for low, high in runs]
        u = uniforms(self.row_keys, self.first_word + at)
        step, mass = within_runs(scaled, u)
        self.mass = self.mass * mass
        self.steps[at:] = [step]
        return mean + spread * step, mass > 0

    def settle(self, bounds: Sequence[Bounds], n_sweeps: int) -> None:
        """Draw the numbers that are given, all of them given all intervals."""
        numbers = [self.draw(at, [ends])[0] for at, ends in enumerate(bounds)]
        if len(bounds) < 2:
            return
        precision, n_latents = self.gaussian.precision, len(self.gaussian.correlations)
        for sweep in range(1, n_sweeps + 1):
            for at, (low, high) in enumerate(bounds):
                spread = 1.0 / np.sqrt(precision[at, at])
                mean = np.zeros(self.row_keys.size)
                for other, number in enumerate(numbers):
                    if other != at:
                        mean = mean - (precision[at, other] / precision[at, at]) * number
                u = uniforms(self.row_keys, self.first_word + sweep * n_latents + at)
                step = within((low - mean) / spread, (high - mean) / spread, u)[0]
                numbers[at] = mean + spread * step
        self.steps = []
        for at, number in enumerate(numbers):
            self.steps.append((number - self.mean(at)) / self.spread(at))


def within(low: FloatArray, high: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Standard normal numbers restricted to intervals, by inversion, and their probabilities.

    The end nearer to 0 of an interval so far out that its probability is 0 in float64.
    """
    # Mirrored to the lower tail, where small probabilities keep their digits.
    mirrored = low > 0
    a, b = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    below, above = ndtr(a), ndtr(b)
    mass = above - below
    share = np.where(mirrored, 1.0 - u, u)
    numbers = np.clip(ndtri(np.clip(below + share * mass, *NEVER_0_OR_1)), a, b)
    nearest = np.where(np.abs(a) < np.abs(b), a, b)
    numbers = np.where(mass > 0, numbers, nearest)
    return np.where(mirrored, -numbers, numbers), mass


def within_runs(runs: Sequence[Bounds], u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Standard normal numbers within one of several intervals, and the probability of all."""
    if len(runs) == 1:
        return within(*runs[0], u)
    masses = np.array([within(low, high, u)[1] for low, high in runs])
    reached = np.cumsum(masses, axis=0)
    before, total = np.vstack([np.zeros_like(u), reached[:-1]]), reached[-1]
    aim = u * total
    chosen = np.maximum((aim >= before).sum(axis=0) - 1, 0)
    rows = np.arange(u.size)
    low, high = (np.array([run[end] for run in runs])[chosen, rows] for end in (0, 1))
    mass = masses[chosen, rows]
    share = (aim - before[chosen, rows]) / np.where(mass > 0, mass, 1.0)
    share = np.clip(share, 2.0**-53, 1 - 2.0**-53)
    # Of one interval and empty ones it is what it would be without these, to the last bit.
    return within(low, high, np.where(mass == total, u, share))[0], total


def pack_margins(margins: list[Margin]) -> list[dict[str, Any]]:
    """The arrays of margins by name."""
    return [{"place": margin.place, "cuts": margin.cuts[1:-1]} for margin in margins]


def unpack_margins(arrays: Mapping[str, Any], schema: Schema) -> tuple[list[Margin], FloatArray]:
    """Margins and correlations that could have been learned of these columns."""
    places = [(at, f.n_codes, flag) for at, f in enumerate(schema.features) for flag in _flags(f)]
    places.append((len(schema.features), 2, None))
    plain = listed(arrays["margins"], len(places), "the margins")
    margins = [_margin(one, *place) for one, place in zip(plain, places, strict=True)]
    correlations = arrays["correlations"]
    whole = isinstance(correlations, np.ndarray) and correlations.dtype == np.float64
    same = whole and correlations.shape == (len(places), len(places))
    demand(same, "the correlations have another dtype or shape")
    demand(is_correlation(correlations), "the correlations are not those of anything")
    return margins, correlations


def _flags(feature: Feature) -> tuple[bool | None, ...]:
    """Which margins a feature has: True is a flag, False a number beside it, None one alone."""
    flagged = feature.kind == "numeric" and feature.has_missing and feature.n_codes > 1
    return (True, False) if flagged else (None,)


def _margin(plain: Any, position: int, n_codes: int, flag: bool | None) -> Margin:
    """One margin; the last code of a column with a flag is missing."""
    place, cuts = take(plain, "a margin", place=np.int64, cuts=np.float64)
    known = np.arange(n_codes - (flag is False))
    n_intervals = 2 if flag else known.size
    sound = (
        (place.size, cuts.size) == (n_codes + 1, n_intervals - 1)
        and bool(np.isfinite(cuts).all() and (np.diff(cuts) >= 0).all())
        and bool((place[known.size :] == ANYWHERE).all())
        and _is_placed(place[: known.size], bool(flag))
    )
    demand(sound, "the intervals of a margin are not those of a column")
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    return Margin(position, bool(flag), place, ends)


def _is_placed(place: IntArray, is_flag: bool) -> bool:
    """Whether every code has an interval: of a flag one for all but the last, else one each."""
    if is_flag:
        return bool((place[:-1] == 0).all() and place[-1] == 1)
    return np.array_equal(np.sort(place), np.arange(place.size))
