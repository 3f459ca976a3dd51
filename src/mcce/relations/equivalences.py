"""Finding equivalences: a missing cell, level or special number that goes with another.

Conditions are sets of rows, kept as bits. Two are compared only if they hold in about equally many
rows, so the work grows with the number of conditions and hardly with their pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ..kernels import BoolArray, IntArray, check_cancellation
from .cells import values_of
from .patterns import Condition, Equivalence
from .proposals import Findings, Proposal
from .significance import log_chance
from .training import TrainingColumns

MAX_ROWS = 20_000
MAX_BROKEN = 0.02
# Up to this share of the rows in which a condition holds, or does not, may be broken.
MAX_BROKEN_OF_SIDE = 0.1
# A condition must hold, and fail, in this many rows.
MIN_ROWS = 3
MAX_LEVELS = 50
# The most frequent numbers of a column may be special, beside its smallest and largest.
N_FREQUENT = 2
ROWS_PER_PIECE = 4096


@dataclass(frozen=True)
class _CodeCondition:
    """A feature's position and one of its codes."""

    position: int
    code: int


def find_equivalences(data: TrainingColumns) -> Findings:
    """Equivalences between conditions on two columns."""
    n_rows = min(data.half, MAX_ROWS)
    codes = data.codes[:, :n_rows]
    conditions = [c for at in range(len(codes)) for c in _conditions(data, at, n_rows)]
    if len(conditions) < 2:
        return Findings((), 0)
    bits = np.stack([_bits(codes[c.position] == c.code) for c in conditions])
    proposals = []
    for first, second in _similar(conditions, bits, n_rows):
        check_cancellation()
        proposal = _confirmed(data, conditions[first], conditions[second])
        if proposal is not None:
            proposals.append(proposal)
    return Findings(tuple(proposals), len(conditions) * (len(conditions) - 1) // 2)


def _conditions(data: TrainingColumns, position: int, n_rows: int) -> Iterator[_CodeCondition]:
    """Conditions on one column that hold in some rows and fail in some."""
    feature = data.schema.features[position]
    counts = np.bincount(data.codes[position, :n_rows], minlength=feature.n_codes)
    chosen: Iterable[int] = ()
    if feature.kind == "categorical":
        chosen = range(feature.n_codes) if feature.n_codes <= MAX_LEVELS else ()
    elif position in data.numeric:
        known = counts[: feature.n_codes - feature.has_missing]
        frequent = np.argsort(-known, kind="stable")[:N_FREQUENT].tolist()
        chosen = sorted({0, known.size - 1, *frequent}) if known.size else ()
    listed = set(chosen) | ({feature.n_codes - 1} if feature.has_missing else set())
    for code in sorted(listed):
        if MIN_ROWS <= counts[code] <= n_rows - MIN_ROWS:
            yield _CodeCondition(position, code)


def _bits(holds: BoolArray) -> np.ndarray:
    padded = np.zeros(-(-holds.size // 64) * 64, dtype=bool)
    padded[: holds.size] = holds
    return np.packbits(padded).view(np.uint64)


def _similar(
    conditions: list[_CodeCondition], bits: np.ndarray, n_rows: int
) -> Iterator[tuple[int, int]]:
    """Pairs of conditions on different columns that hold in nearly the same rows."""
    counts = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    position = np.array([c.position for c in conditions])
    allowed = np.minimum(
        MAX_BROKEN * n_rows, MAX_BROKEN_OF_SIDE * np.minimum(counts, n_rows - counts)
    )
    order = np.argsort(counts, kind="stable")
    ranked = counts[order]
    pairs: list[tuple[int, int]] = []
    for place, first in enumerate(order):
        end = np.searchsorted(ranked, counts[first] + allowed[first], side="right")
        others = order[place + 1 : end]
        others = others[position[others] != position[first]]
        for start in range(0, others.size, ROWS_PER_PIECE):
            piece = others[start : start + ROWS_PER_PIECE]
            differ = np.bitwise_count(bits[piece] ^ bits[first]).sum(axis=1, dtype=np.int64)
            near: IntArray = piece[differ <= allowed[first]]
            pairs += [(min(first, other), max(first, other)) for other in near.tolist()]
    yield from sorted((int(first), int(second)) for first, second in pairs)


def _confirmed(
    data: TrainingColumns, first: _CodeCondition, second: _CodeCondition
) -> Proposal | None:
    left = data.codes[first.position, data.held_out] == first.code
    right = data.codes[second.position, data.held_out] == second.code
    n_broken, n_right = int((left != right).sum()), int(right.sum())
    smaller = min(n_right, right.size - n_right)
    if n_broken > min(MAX_BROKEN * right.size, MAX_BROKEN_OF_SIDE * smaller):
        return None
    chance = log_chance(np.where(left, n_right, right.size - n_right), n_broken)
    relation = Equivalence(_condition(data, first), _condition(data, second))
    return Proposal(relation, chance, int(right.size))


def _condition(data: TrainingColumns, condition: _CodeCondition) -> Condition:
    value = values_of(data.schema.features[condition.position])[condition.code]
    return Condition(data.schema.names[condition.position], value)
