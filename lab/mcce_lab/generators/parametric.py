"""Step 1: a chain of plain parametric conditionals.

Paper, section "Modeling": each mutable feature is drawn given the immutable ones, the decision and
those before it; any conditional model will do. Here numbers are linear in what is given, with
normal errors, and levels follow a multinomial logistic regression. It is the textbook model that
trees are to be compared with: it smooths, and it knows no interactions, bounds or peaks.

A number that may be missing has a logistic regression of that first. What is drawn is the value of
the column's table (``cells``) nearest to the number, so dates and atoms stay what they are.

Always true: a row's numbers depend on its key and its inputs alone, to the last bit, so sums are
written out, because a matrix product may depend on the number of rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

from mcce import Schema
from mcce.protocols import (
    BoolArray,
    Capabilities,
    Codes,
    DrawRequest,
    EncodedRows,
    FloatArray,
    IntArray,
    uniforms,
)

from ..parameters import NotNegative
from .base import LabGenerator, demand, listed
from .cells import (
    draw_cells,
    draw_nearest,
    learn_cells,
    log_shares,
    middles,
    pack_cells,
    unpack_cells,
)

N_BINS = 64
# Rows that are drawn together; it changes nothing but the memory.
CHUNK = 2**15
# Smaller errors would make a number certain.
MIN_SPREAD = 1e-3


@dataclass(frozen=True, eq=False)
class Conditional:
    """The regression of a feature on the columns before it.

    Parameters
    ----------
    weights : (n_inputs + 1, n_outputs)
        Of the inputs, the intercept last: a logit for each level; or of a number logits for missing
        and there, if some are missing, and its mean in units of its standard deviation.
    error : float
        Standard deviation of what the mean leaves over, in the same unit.
    """

    weights: FloatArray
    error: float

    def outputs(self, inputs: FloatArray) -> FloatArray:
        """Logits and means, shape (n_rows, n_outputs)."""
        total = np.tile(self.weights[-1], (len(inputs), 1))
        for column, weight in zip(inputs.T, self.weights[:-1], strict=True):
            total = total + column[:, None] * weight
        return total


@dataclass(eq=False, repr=False, kw_only=True)
class ParametricChain(LabGenerator):
    """Linear regressions with normal errors and multinomial logistic ones, one after another.

    Parameters
    ----------
    penalty
        Of the squared weights, for inputs in units of their standard deviation.
    condition_on_decision
        Whether the decision is an input.

    Attributes
    ----------
    conditionals_ : list of Conditional
        The regression of each mutable feature, in their order.
    moments_ : (n_features, 2)
        Mean and standard deviation of each number; 0 and 1 for levels.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [30, 40] * 50, "salary": np.arange(100.0)})
    >>> rows = Schema.learn_rows(frame, immutable=["age"])
    >>> chain = ParametricChain().fit(rows, frame["salary"].to_numpy() >= 50)
    >>> chain.conditionals_[0].weights.shape
    (3, 1)
    """

    array_names: ClassVar[tuple[str, ...]] = ("cells", "moments", "conditionals")
    capabilities: ClassVar[Capabilities] = Capabilities(
        limits=True, density=True, saving=True, value_tables=True
    )

    penalty: NotNegative = 1.0
    condition_on_decision: bool = True

    @property
    def tables_(self) -> list[pd.Series[Any]]:
        """The values that can be drawn, one table per mutable feature."""
        return [self.cells_[position].table for position in self.schema_.mutable]

    def log_likelihood(self, rows: EncodedRows, *, decision: bool = True) -> FloatArray:
        """Log-probability of each row's mutable values given its immutable ones and a decision.

        A number counts as the value of its table that is nearest.

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
        codes, total = rows.tree_codes, np.zeros(len(rows))
        inputs = self._given(codes, np.full(len(rows), decision))
        for model, position in zip(self.conditionals_, self.schema_.mutable, strict=True):
            feature, numbers = self.schema_.features[position], self._numbers(position)
            outputs, known = model.outputs(inputs), codes[position] < feature.n_codes
            at = np.minimum(codes[position], feature.n_codes - 1)
            if numbers is None:
                total += log_shares(outputs)[np.arange(at.size), at]
            else:
                total += self._log_density(position, model, outputs, numbers[at])
            total = np.where(known, total, -np.inf)
            inputs = self._add(inputs, position, codes[position])
        return total

    def _learn(self, rows: EncodedRows, is_desired: BoolArray, seed: int, verbose: bool) -> None:
        self.cells_, self.conditionals_ = learn_cells(rows, N_BINS), []
        moments = [_moments(self._numbers(at), c) for at, c in enumerate(rows.tree_codes)]
        self.moments_: FloatArray = np.array(moments)
        inputs = self._given(rows.tree_codes, is_desired)
        for position in self.schema_.mutable.tolist():
            codes = rows.tree_codes[position]
            self.conditionals_.append(self._regress(position, inputs, codes))
            inputs = self._add(inputs, position, codes)

    def _regress(self, position: int, inputs: FloatArray, codes: Codes) -> Conditional:
        """The regression of a feature on inputs of the training rows."""
        feature, numbers = self.schema_.features[position], self._numbers(position)
        mean, deviation = self.moments_[position]
        if numbers is None:
            weights = self._logistic(inputs, codes.astype(np.int64), feature.n_codes)
            return Conditional(weights, 1.0)
        values, parts = numbers[codes], []
        there = ~np.isnan(values)
        if feature.has_missing:
            parts.append(self._logistic(inputs, there.astype(np.int64), 2))
        scaled = (values[there] - mean) / deviation
        model = Ridge(alpha=max(self.penalty, 1e-9)).fit(inputs[there], scaled)
        error = max(float((scaled - model.predict(inputs[there])).std()), MIN_SPREAD)
        parts.append(np.append(model.coef_, model.intercept_)[:, None])
        return Conditional(np.hstack(parts), error)

    def _logistic(self, inputs: FloatArray, codes: IntArray, n_levels: int) -> FloatArray:
        """Weights of a multinomial logistic regression, shape (n_inputs + 1, n_levels)."""
        weights = np.zeros((inputs.shape[1] + 1, n_levels))
        seen = np.unique(codes)
        weights[-1, np.setdiff1d(np.arange(n_levels), seen)] = -np.inf
        if seen.size < 2:
            return weights
        model = LogisticRegression(C=1 / max(self.penalty, 1e-9), max_iter=300)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(inputs, codes)
        both = np.vstack([model.coef_.T, model.intercept_])
        weights[:, seen] = both if both.shape[1] > 1 else np.hstack([np.zeros_like(both), both])
        return weights

    def _given(self, codes: Codes, decision: Any) -> FloatArray:
        """The inputs for the immutable features and the decision, shape (n_rows, n_inputs)."""
        inputs = np.empty((codes.shape[1], 0))
        if self.condition_on_decision:
            inputs = np.asarray(decision, dtype=np.float64)[:, None]
        for position in self.schema_.immutable.tolist():
            inputs = self._add(inputs, position, codes[position])
        return inputs

    def _add(self, inputs: FloatArray, position: int, codes: Codes) -> FloatArray:
        """The inputs with those for a feature: indicators, or a number and whether it is there."""
        numbers, feature = self._numbers(position), self.schema_.features[position]
        if numbers is None:
            return np.hstack([inputs, codes[:, None] == np.arange(feature.n_codes)])
        return self._add_numbers(inputs, position, numbers[codes])

    def _add_numbers(self, inputs: FloatArray, position: int, values: FloatArray) -> FloatArray:
        mean, deviation = self.moments_[position]
        missing = np.isnan(values)
        parts = [inputs, np.where(missing, 0.0, (values - mean) / deviation)[:, None]]
        if self.schema_.features[position].has_missing:
            parts.append(missing[:, None].astype(np.float64))
        return np.hstack(parts)

    def _numbers(self, position: int) -> FloatArray | None:
        """The training values of a number; None for levels, and where all are missing."""
        feature = self.schema_.features[position]
        known = feature.kind == "numeric" and feature.n_codes > feature.has_missing
        return feature.numbers if known else None

    def _rows_at_once(self) -> int:
        return CHUNK

    def _tables(self) -> list[pd.Series[Any]] | None:
        return self.tables_

    def _draw(self, request: DrawRequest) -> Codes:
        group, n_features = request.group, len(request.given)
        inputs = self._given(request.inputs[:-1], request.inputs[-1])[group]
        codes = np.empty((self.schema_.mutable.size, group.size), dtype=np.int32)
        for place, position in enumerate(self.schema_.mutable.tolist()):
            cells, known = self.cells_[position], self._numbers(position)
            outputs = self.conditionals_[place].outputs(inputs)
            if known is None:
                codes[place], shown = draw_cells(request, position, cells, outputs)
                inputs = self._add(inputs, position, shown.astype(np.int32))
                continue
            feature, (mean, deviation) = self.schema_.features[position], self.moments_[position]
            z = ndtri(uniforms(request.row_keys, position))
            numbers = mean + deviation * (outputs[:, -1] + self.conditionals_[place].error * z)
            missing = np.zeros(group.size, dtype=bool)
            if feature.has_missing:
                u = uniforms(request.row_keys, position + 3 * (n_features + 1))
                missing = u < _share_missing(outputs)
            drawn, kept = draw_nearest(request, position, cells, feature, numbers, missing)
            own = known[np.minimum(request.given[position], feature.n_codes - 1)][group]
            values = np.where(kept, own, cells.numbers(feature)[np.where(kept, 0, drawn)])
            codes[place], inputs = drawn, self._add_numbers(inputs, position, values)
        return codes

    def _log_density(
        self, position: int, model: Conditional, outputs: FloatArray, values: FloatArray
    ) -> FloatArray:
        """Log-probability of the values of the table nearest to these."""
        feature, (mean, deviation) = self.schema_.features[position], self.moments_[position]
        table = self.cells_[position].numbers(feature)
        ends = middles(table[: table.size - feature.has_missing])
        at = np.searchsorted(ends, values)
        scaled = (np.concatenate([[-np.inf], ends, [np.inf]]) - mean) / deviation
        low, high = ((scaled[at + end] - outputs[:, -1]) / model.error for end in (0, 1))
        # From the nearer tail, where small probabilities keep their digits.
        low, high = np.where(low > 0, -high, low), np.where(low > 0, -low, high)
        with np.errstate(divide="ignore"):
            found = np.log(ndtr(high) - ndtr(low))
            if feature.has_missing:
                share = _share_missing(outputs)
                found = np.where(np.isnan(values), np.log(share), found + np.log1p(-share))
        return found

    def _pack(self) -> dict[str, Any]:
        parts = [{"weights": c.weights, "error": np.array([c.error])} for c in self.conditionals_]
        return {"cells": pack_cells(self.cells_), "moments": self.moments_, "conditionals": parts}

    def _unpack(self, arrays: Mapping[str, Any], schema: Schema) -> None:
        self.cells_, moments = unpack_cells(arrays["cells"], schema), arrays["moments"]
        demand(_is_matrix(moments, len(schema.features), 2), "its moments have another shape")
        demand(np.isfinite(moments).all() and (moments[:, 1] > 0).all(), "its moments are none")
        self.moments_, self.conditionals_ = moments, []
        n_inputs = self._given(np.zeros((len(schema.features), 1), dtype=np.int32), [0]).shape[1]
        parts = listed(arrays["conditionals"], schema.mutable.size, "the regressions")
        for position, part in zip(schema.mutable.tolist(), parts, strict=True):
            feature, levels = schema.features[position], self._numbers(position) is None
            n_outputs = feature.n_codes if levels else 1 + 2 * feature.has_missing
            whole = isinstance(part, Mapping) and set(part) == {"weights", "error"}
            demand(whole, "a regression has other parts")
            demand(
                _is_matrix(part["weights"], n_inputs + 1, n_outputs)
                and _is_matrix(np.atleast_2d(part["error"]), 1, 1)
                and not np.isnan(part["weights"]).any()
                and part["error"][0] > 0,
                "a regression is not one of the columns before it",
            )
            self.conditionals_.append(Conditional(part["weights"], float(part["error"][0])))
            n_inputs += feature.n_codes if levels else 1 + feature.has_missing


def _is_matrix(given: Any, n_rows: int, n_columns: int) -> bool:
    whole = isinstance(given, np.ndarray) and given.dtype == np.float64
    return whole and given.shape == (n_rows, n_columns)


def _share_missing(outputs: FloatArray) -> FloatArray:
    """The probability that a number is missing, from logits of missing and there."""
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(outputs[:, 1] - outputs[:, 0]))


def _moments(numbers: FloatArray | None, codes: Codes) -> tuple[float, float]:
    """Mean and standard deviation of the numbers that are there, 0 and 1 if they do not vary."""
    values = np.empty(0) if numbers is None else numbers[codes]
    values = values[~np.isnan(values)]
    if not values.size:
        return 0.0, 1.0
    return float(values.mean()), float(values.std()) or 1.0
