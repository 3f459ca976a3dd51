"""Step 1: a Gaussian copula with mixed margins.

Paper, section "Future steps": models other than trees. Behind every column there is a normal
number (``margins``); their correlations (``correlation``) are all that the model knows of how
columns depend on each other. A draw has the numbers of the mutable features given the intervals of
the immutable ones and of the decision (``latents``), and with them training values.

Always true: every value drawn is a training value; the model depends on the training rows as a set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from mcce.kernels import (
    BoolArray,
    Codes,
    FloatArray,
    draw_keys,
)
from mcce.parameters import check_flag, check_whole
from mcce.protocols import Capabilities, DrawRequest, Draws
from mcce.tables.schema import EncodedRows, Schema

from ..parts import draw_in_parts
from .arrays import pack_margins, unpack_margins
from .correlation import latent_correlations
from .features import FeatureDraws
from .latents import Gaussian, LatentRows
from .margins import Margin, learn_margins

# Rows that are drawn together; it changes nothing but the memory.
CHUNK = 2**15
# Points at which the likelihood of a row is computed; the same ones for every row.
N_POINTS, POINTS_SEED = 256, 0


class GaussianCopula(BaseEstimator):
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

    array_names = ("margins", "correlations")
    capabilities = Capabilities(limits=True, guidance=True, density=True, saving=True)

    def __init__(self, *, condition_on_decision: bool = True, n_sweeps: int = 10) -> None:
        self.condition_on_decision = condition_on_decision
        self.n_sweeps = n_sweeps

    def fit(
        self,
        rows: EncodedRows,
        decision: BoolArray,
        *,
        seed: int = 0,
        n_jobs: int | None = 1,
        verbose: bool = False,
    ) -> Self:
        """Learn the margins and correlations.

        Parameters
        ----------
        rows, decision
            As for :meth:`mcce.protocols.Generator.fit`.
        seed, n_jobs, verbose
            Ignored.

        Returns
        -------
        GaussianCopula
            Itself.
        """
        self._check()
        margins = learn_margins(rows, decision)
        codes = [*rows.descent, decision.astype(np.int32)]
        return self._keep(rows.schema, margins, latent_correlations(margins, codes))

    def to_arrays(self) -> dict[str, Any]:
        """What was learned.

        Returns
        -------
        dict
            The margins of columns, and their correlations.
        """
        return {"margins": pack_margins(self.margins_), "correlations": self.correlations_}

    def from_arrays(self, arrays: Mapping[str, Any], schema: Schema) -> Self:
        """Take what :meth:`to_arrays` gave, checked.

        Parameters
        ----------
        arrays
            What :meth:`to_arrays` gave.
        schema
            The columns of the training data.

        Returns
        -------
        GaussianCopula
            Itself, as if fitted.
        """
        self._check()
        return self._keep(schema, *unpack_margins(arrays, schema))

    def sample(self, request: DrawRequest) -> Draws:
        """Draws for each group, within its limits, that keep own values where they can.

        Parameters
        ----------
        request
            For whom to draw, and within which limits.

        Returns
        -------
        Draws
            Codes of shape (n_mutable, n_groups, n_draws).
        """
        n_mutable, n_rows = self.schema_.mutable.size, CHUNK
        return Draws(draw_in_parts(request, self._draw, n_mutable, n_rows))

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
        codes = np.vstack([rows.descent, np.full((1, len(rows)), decision, dtype=np.int32)])
        total = np.empty(len(rows))
        at_once = max(1, CHUNK // N_POINTS)
        for start in range(0, len(rows), at_once):
            some = slice(start, start + at_once)
            total[some] = self._log_likelihood(codes[:, some])
        n_codes = np.array([f.n_codes for f in self.schema_.features])
        unseen = (rows.descent >= n_codes[:, None])[self.schema_.mutable].any(axis=0)
        return np.where(unseen, -np.inf, total)

    def _check(self) -> None:
        check_flag("condition_on_decision", self.condition_on_decision)
        check_whole("n_sweeps", self.n_sweeps, 0, 10_000)

    def _keep(self, schema: Schema, margins: list[Margin], correlations: FloatArray) -> Self:
        """Take what was learned of these columns."""
        self.schema_ = schema
        self.margins_, self.correlations_ = margins, correlations
        given = {*schema.immutable.tolist()}
        if self.condition_on_decision:
            given.add(len(schema.features))
        mutable = {*schema.mutable.tolist()}
        first = [at for at, margin in enumerate(margins) if margin.position in given]
        order = first + [at for at, margin in enumerate(margins) if margin.position in mutable]
        self._order = order
        self._gaussian = Gaussian(correlations[np.ix_(order, order)], len(first))
        return self

    def _ordered(self) -> tuple[list[Margin], list[Margin]]:
        """The margins that are given and those that are drawn, in order."""
        margins, n_given = [self.margins_[at] for at in self._order], self._gaussian.n_given
        return margins[:n_given], margins[n_given:]

    def _draw(self, request: DrawRequest) -> Codes:
        """Codes of some rows, shape (n_mutable, n_rows)."""
        inputs = request.inputs
        # The words of earlier positions are those of guidance and of other generators.
        latents = LatentRows(self._gaussian, request.row_keys, 3 * len(inputs))
        given, drawn = self._ordered()
        intervals = [m.bounds(inputs[m.position][request.group]) for m in given]
        latents.settle(intervals, self.n_sweeps)
        features = FeatureDraws(latents, request)
        codes = np.empty((self.schema_.mutable.size, request.group.size), dtype=np.int32)
        placed = list(enumerate(drawn, self._gaussian.n_given))
        for row, position in enumerate(self.schema_.mutable.tolist()):
            codes[row] = features.draw(position, [p for p in placed if p[1].position == position])
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
