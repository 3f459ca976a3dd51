"""The rows of an audit: what was released, and real rows that the release may tell apart.

Members are training rows, nonmembers are rows of the holdout, and there are equally many of both:
if the release told nothing of training, they could be exchanged. That is what every figure is
compared with. The reference is what an attacker knows of the population.

Always true: codes are equal where cells are, in all sets of rows, also of values that training
lacks; the same rows and seed give the same sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import SchemaError
from ..kernels import BoolArray, Codes, FloatArray, IntArray
from ..metrics.evaluator import Evaluator, FrameLike, ResultLike, pair
from ..metrics.matching import number_rows, shared_codes, shared_points
from ..tables.columns import changed_cells
from ..tables.schema import EncodedRows

# Real rows that each set needs.
MIN_AUDIT_ROWS = 20


@dataclass(frozen=True, eq=False)
class AuditedRows:
    """The rows of an audit."""

    evaluator: Evaluator
    rows: Mapping[str, EncodedRows]
    codes: Mapping[str, Codes]
    counted: BoolArray

    @property
    def n_each(self) -> int:
        """Number of members, and of nonmembers."""
        return len(self.rows["members"])

    def row_numbers(self) -> dict[str, IntArray]:
        """A number for each row of each set, the same for equal rows."""
        return dict(zip(self.codes, number_rows(list(self.codes.values())), strict=True))

    def points(self) -> dict[str, FloatArray]:
        """Every set as points of shape (n_rows, n_features)."""
        return dict(zip(self.rows, shared_points(list(self.rows.values())), strict=True))


def read_audited_rows(
    evaluator: Evaluator,
    released: ResultLike,
    holdout: FrameLike,
    reference: FrameLike,
    *,
    factuals: FrameLike | None,
    seed: int,
) -> AuditedRows:
    """The rows of an audit, read and checked."""
    real = {
        "training": evaluator.rows,
        "holdout": evaluator.read(holdout, "holdout"),
        "reference": evaluator.read(reference, "reference"),
    }
    _check_sizes(real)
    _check_disjoint(real)
    rng = np.random.default_rng([seed, 1])
    n_each = min(len(real["training"]), len(real["holdout"]))
    rows = {
        "released": evaluator.read(released, "released"),
        "members": _sample(real["training"], n_each, rng),
        "nonmembers": _sample(real["holdout"], n_each, rng),
        "reference": real["reference"],
    }
    counted = np.ones(rows["released"].codes.shape, dtype=bool)
    if factuals is not None:
        pairs = pair(factuals, released, evaluator)
        counted = changed_cells(pairs.before.frame, pairs.after.frame)
    codes = dict(zip(rows, shared_codes(list(rows.values())), strict=True))
    return AuditedRows(evaluator, rows, codes, counted)


def _sample(rows: EncodedRows, n_rows: int, rng: np.random.Generator) -> EncodedRows:
    return rows if len(rows) == n_rows else rows.take(np.sort(rng.permutation(len(rows))[:n_rows]))


def _check_sizes(given: Mapping[str, EncodedRows]) -> None:
    for name, rows in given.items():
        if len(rows) < MIN_AUDIT_ROWS:
            raise SchemaError(
                f"An audit needs at least {MIN_AUDIT_ROWS} rows in each of training, holdout and "
                f"reference, but {name} has {len(rows)}. Some hundreds tell much more."
            )


def _check_disjoint(given: Mapping[str, EncodedRows]) -> None:
    """Raise if rows of one set are in another, beyond what equal people explain.

    All rows are compared, not a sample: of a holdout inside a much larger training set, hardly any
    row would be in a sample of the latter.
    """
    codes = shared_codes(list(given.values()))
    number = dict(zip(given, number_rows(codes), strict=True))
    for name, others in (
        ("holdout", "training"),
        ("reference", "training"),
        ("reference", "holdout"),
    ):
        small, large = sorted((number[name], number[others]), key=len)
        n_equal = int(np.isin(small, large).sum())
        values, counts = np.unique(large, return_counts=True)
        twins = counts[np.searchsorted(values, large)] > 1
        n_expected = float(twins.mean()) * len(small)
        most = n_expected + 5 * np.sqrt(2 * n_expected) + max(3, 0.01 * len(small))
        if n_equal > most:
            which = name if small is number[name] else others
            raise SchemaError(
                f"{name} and {others} share rows: {n_equal} of {len(small)} rows of {which} are in "
                "both, where people who are equal by chance explain about "
                f"{n_expected:.0f}. Pass rows of other people."
            )
