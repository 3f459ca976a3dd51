"""The rows of an audit: what was released, and real rows that the release may tell apart.

Members are training rows, nonmembers are rows of the holdout, and there are equally many of both:
if the release told nothing of training, they could be exchanged. That is what every figure is
compared with. The reference is what an attacker knows of the population.

Always true: codes are equal where cells are, in all sets of rows, also of values that training
lacks; the same rows and seed give the same sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import SchemaError
from ..kernels import BoolArray, Codes, FloatArray, IntArray, rows_as_bytes
from ..metrics.evaluator import Evaluator, FrameLike, ResultLike, pair, read_rows
from ..tables.columns import is_missing, plain
from ..tables.schema import EncodedRows, changed_cells

# Real rows that each set needs.
LEAST_ROWS = 20


@dataclass(frozen=True, eq=False)
class Sides:
    """The rows of an audit."""

    evaluator: Evaluator
    rows: Mapping[str, EncodedRows]
    codes: Mapping[str, Codes]
    counted: BoolArray

    @property
    def n_each(self) -> int:
        """Number of members, and of nonmembers."""
        return len(self.rows["members"])

    def row_numbers(self, positions: IntArray | None = None) -> dict[str, IntArray]:
        """A number for each row of each set, equal where rows are, in some or all features."""
        if positions is None:
            return _numbered(self.codes)
        return _numbered({name: codes[positions] for name, codes in self.codes.items()})

    def points(self) -> dict[str, FloatArray]:
        """Every set as points of shape (n_rows, n_features): scaled numbers, or codes of levels."""
        schema = self.evaluator.schema
        made = {}
        for name, rows in self.rows.items():
            points = np.empty((len(rows), len(schema.features)))
            for at, feature in enumerate(schema.features):
                levels = schema.is_level[at]
                points[:, at] = (
                    self.codes[name][at]
                    if levels
                    else feature.place(rows.exact[at], rows.numbers(at))
                )
            made[name] = points
        return made


def read_sides(
    evaluator: Evaluator,
    released: ResultLike,
    holdout: FrameLike,
    reference: FrameLike,
    *,
    factuals: FrameLike | None,
    seed: int,
) -> Sides:
    """The rows of an audit, read and checked."""
    given = {
        "training": evaluator.rows,
        "holdout": read_set(holdout, evaluator, "holdout"),
        "reference": read_set(reference, evaluator, "reference"),
    }
    _check_sizes(given)
    _check_disjoint(given)
    rng = np.random.default_rng([seed, 1])
    n_each = min(len(given["training"]), len(given["holdout"]))
    rows = {
        "released": read_set(released, evaluator, "released"),
        "members": _sample(given["training"], n_each, rng),
        "nonmembers": _sample(given["holdout"], n_each, rng),
        "reference": given["reference"],
    }
    counted = np.ones(rows["released"].exact.shape, dtype=bool)
    if factuals is not None:
        pairs = pair(factuals, released, evaluator)
        counted = changed_cells(pairs.before, pairs.after)
    codes = dict(zip(rows, shared_codes(list(rows.values())), strict=True))
    return Sides(evaluator, rows, codes, counted)


def read_set(rows: ResultLike, evaluator: Evaluator, argument: str) -> EncodedRows:
    """Rows of the training schema; errors name the argument."""
    try:
        encoded = read_rows(rows, evaluator)[1]
    except SchemaError as error:
        raise SchemaError(f"{argument} does not fit the training data. {error}") from None
    if not len(encoded):
        raise SchemaError(f"{argument} has no row that holds a value. Pass at least one.")
    return encoded


def shared_codes(parts: Sequence[EncodedRows]) -> list[Codes]:
    """Codes of each part that are equal where cells are; those of training where it has them."""
    codes = [part.exact.copy() for part in parts]
    for at in range(len(parts[0].schema.features)):
        unseen = [np.flatnonzero(own[at] < 0) for own in codes]
        if not any(places.size for places in unseen):
            continue
        pairs = list(zip(parts, unseen, strict=True))
        missing = [is_missing(part.frame.iloc[places, at]) for part, places in pairs]
        cells = [
            np.asarray(plain(part.frame.iloc[places, at]), dtype=object) for part, places in pairs
        ]
        number = pd.factorize(np.concatenate(cells), use_na_sentinel=False)[0]
        ends = np.cumsum([places.size for places in unseen])[:-1]
        each = zip(codes, unseen, missing, np.split(number, ends), strict=True)
        for own, places, none, numbers in each:
            own[at, places] = np.where(none, -1, -2 - numbers)
    return codes


def _sample(rows: EncodedRows, n: int, rng: np.random.Generator) -> EncodedRows:
    return rows if len(rows) == n else rows.take(np.sort(rng.permutation(len(rows))[:n]))


def _check_sizes(given: Mapping[str, EncodedRows]) -> None:
    for name, rows in given.items():
        if len(rows) < LEAST_ROWS:
            raise SchemaError(
                f"An audit needs at least {LEAST_ROWS} rows in each of training, holdout and "
                f"reference, but {name} has {len(rows)}. Some hundreds tell much more."
            )


def _numbered(codes: Mapping[str, Codes]) -> dict[str, IntArray]:
    """A number for each row of each set, equal where rows are."""
    keys = {name: rows_as_bytes(own.T) for name, own in codes.items()}
    _, number = np.unique(np.concatenate(list(keys.values())), return_inverse=True)
    ends = np.cumsum([len(own) for own in keys.values()])
    return dict(zip(keys, np.split(number, ends[:-1]), strict=True))


def _check_disjoint(given: Mapping[str, EncodedRows]) -> None:
    """Raise if rows of one set are in another, beyond what equal people explain.

    All rows are compared, not a sample: of a holdout inside a much larger training set, hardly any
    row would be in a sample of the latter.
    """
    number = _numbered(dict(zip(given, shared_codes(list(given.values())), strict=True)))
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
