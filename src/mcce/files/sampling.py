"""A sample of training rows from tables that do not fit in memory.

Beyond the paper, which fits on all rows. Rows stream by in blocks; each gets a random number that
depends on the seed and its position, or its key, alone. A row is kept if its number is among the
lowest of all rows, or among the lowest ``rare`` of the accepted rows with its combination of
immutable values. So all accepted rows are kept of combinations with at most ``rare`` of them, and
accepted rows of larger ones may be over-represented too: ``strata.weight`` undoes that.

Always true: the sample does not depend on how rows are divided into blocks and files, and with a
unique key not on their order; at most 2 n_rows rows and a block are held at a time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ParameterError, SchemaError
from ..kernels import BoolArray, IntArray
from ..parameters import check_seed, check_whole
from ..predictors.decision import Decision
from ..predictors.desired import decision_on
from ..tables.columns import Kind
from ..tables.frames import FrameAdapter
from ..tables.schema import Schema
from .blocks import even_blocks
from .strata import Strata

# Rows that the predictor gets in one call, whatever the blocks are.
CALL_ROWS = 2**16


@dataclass(frozen=True, eq=False)
class TrainingSample:
    """Training rows that were kept, and what they stand for.

    Parameters
    ----------
    rows
        The rows, in the kind of frame that came.
    n_seen, n_kept
        Number of rows that streamed by, and of those in ``rows``.
    rare
        All accepted rows are kept of each combination that has at most so many of them.
    strata
        One row for each combination of immutable values and decision. The index has the values, of
        a number the lower end of its bin; the columns are ``accepted``, ``n_seen``, ``n_kept``,
        whether the stratum is ``whole``, and the ``weight`` of its rows: how many seen rows each
        stands for.
    """

    rows: Any = field(repr=False)
    n_seen: int
    n_kept: int
    rare: int
    strata: pd.DataFrame = field(repr=False)


def sample_training(
    blocks: Iterable[Any],
    n_rows: int,
    *,
    predictor: Any,
    desired: Any = None,
    immutable: Sequence[Hashable] | None = None,
    mutable: Sequence[Hashable] | None = None,
    kinds: Mapping[Hashable, Kind] | None = None,
    score_class: Hashable | None = None,
    key: Hashable | None = None,
    rare: int = 200,
    random_state: int = 0,
) -> TrainingSample:
    """A reproducible sample of training rows that stream by, for :meth:`MCCE.fit`.

    All accepted rows of rare combinations of immutable values are kept, and at least ``rare`` of
    others; the rest is a random sample of all rows. So accepted rows are over-represented, and
    ``strata`` says how much.

    Parameters
    ----------
    blocks
        Frames with the same columns and dtypes: ``pyarrow.dataset.dataset(...).to_batches()``, the
        computed partitions of a Dask frame, or ``pd.read_csv`` with ``chunksize``. They are read
        once, in order.
    n_rows
        How many rows to keep at most.
    predictor, desired, immutable, mutable, kinds, score_class
        As for :class:`mcce.MCCE`.
    key
        Name of a column that tells all rows apart, such as a customer number, and is never
        missing. It decides which rows are kept, so that their order does not matter, and is left
        out of the sample. Of rows with one key, the first are kept. None goes by the position of
        a row.
    rare
        The largest number of accepted rows of a rare combination. It is lowered until rare
        combinations take no more than half of the sample; the result says how far. Numbers go
        together in bins, four for each power of two; dates by year.
    random_state
        Seed: another one keeps other rows.

    Returns
    -------
    TrainingSample
        The rows, and what they stand for.

    Raises
    ------
    ParameterError
        If a parameter cannot have its value, there are more combinations than half of ``n_rows``,
        or no row has the desired decision.
    SchemaError
        If there are no rows, blocks differ in their columns or dtypes, or a key is missing.
    PredictorError
        If the predictor fails.

    Examples
    --------
    >>> blocks = (pd.DataFrame({"sex": ["f", "m"] * 500, "salary": range(1000)}) for _ in range(9))
    >>> sample = sample_training(
    ...     blocks, 300, predictor=lambda rows: rows["salary"] / 1000, desired=(0.9, 1.0),
    ...     immutable=["sex"], rare=50,
    ... )
    >>> sample.n_seen, sample.n_kept
    (9000, 300)
    >>> sample.strata.reset_index().round(1)
      sex  accepted  n_seen  n_kept  whole  weight
    0   f     False    4050      99  False    40.9
    1   f      True     450      50  False     9.0
    2   m     False    4050     101  False    40.1
    3   m      True     450      50  False     9.0

    One row in ten is accepted in the table, and one in three in the sample, because each sex has at
    least 50 accepted rows. Weighted, shares are those of the table:

    >>> float((sample.strata["n_kept"] * sample.strata["weight"]).sum())
    9000.0
    """
    check_whole("n_rows", n_rows, 2, 2**28)
    check_whole("rare", rare, 1, 2**28)
    check_seed(random_state)
    sampler: _Sampler | None = None
    for frame, adapter, keys in even_blocks(blocks, CALL_ROWS, key):
        if sampler is None:
            schema = Schema.learn(frame, immutable=immutable, mutable=mutable, kinds=kinds)
            schema = Schema(schema.features, adapter)
            decision = decision_on(schema, predictor, desired, score_class)
            sampler = _Sampler(schema, decision, adapter, int(n_rows), int(rare), int(random_state))
        sampler.add(frame, keys)
    if sampler is None:
        raise SchemaError(
            "There are no training rows: all blocks are empty, or there are none. Pass frames with "
            "at least one row, and an iterator that was not used up before."
        )
    return sampler.finish()


class _Sampler:
    """The rows that may still be in the sample."""

    def __init__(
        self,
        schema: Schema,
        decision: Decision,
        adapter: FrameAdapter,
        n_rows: int,
        rare: int,
        seed: int,
    ) -> None:
        self._decision, self._adapter = decision, adapter
        self._n_rows, self._rare, self._seed = n_rows, rare, seed
        self._strata = Strata(schema)
        self._n_seen = 0
        self._held: _Held | None = None
        self._waiting: list[_Held] = []
        # The highest number among the lowest n_rows, once there are so many.
        self._highest: np.uint64 | None = None

    def add(self, frame: pd.DataFrame, keys: np.ndarray | None) -> None:
        """Take a block of rows."""
        positions = np.arange(self._n_seen, self._n_seen + len(frame))
        words = _words(positions if keys is None else keys, self._seed)
        accepted = self._decision.score(frame).valid
        group = self._strata.count(frame, accepted)
        self._check_groups()
        self._n_seen += len(frame)
        # Whether a row is among the lowest of its combination is known only with all that are held.
        # Of equal numbers the first rows are lower, and those that are held came first.
        may_keep = accepted & self._strata.may_keep(group, words)
        low = True if self._highest is None else words < self._highest
        some = np.flatnonzero(may_keep | low)
        block = _Held(frame.take(some), words[some], positions[some], group[some], accepted[some])
        self._waiting.append(block)
        if sum(map(len, self._waiting)) > self._n_rows // 4:
            self._prune()

    def finish(self) -> TrainingSample:
        """The sample."""
        held = self._prune()
        if not self._strata.n_accepted:
            raise ParameterError(
                f"None of the {self._n_seen} training rows has the desired decision, so there is "
                "nothing to learn from. Check desired and score_class."
            )
        chosen, by_word = held.is_rare(self._rare), held.by_word()
        others = by_word[~chosen[by_word]][: max(self._n_rows - int(chosen.sum()), 0)]
        chosen[others] = True
        kept = held.take(by_word[chosen[by_word]])
        return TrainingSample(
            rows=self._adapter.rows_to_native(kept.frame.reset_index(drop=True)),
            n_seen=self._n_seen,
            n_kept=len(kept),
            rare=self._rare,
            strata=self._strata.table(kept.group, kept.accepted),
        )

    def _check_groups(self) -> None:
        if self._strata.n_groups > self._n_rows // 2:
            raise ParameterError(
                f"n_rows={self._n_rows} is too small: the immutable columns have more than "
                f"{self._n_rows // 2} combinations of values so far, and half of the sample is for "
                "rare ones. Pass at least twice as many rows as there are combinations, or leave "
                "columns that tell all people apart out of the data."
            )

    def _prune(self) -> _Held:
        """The rows that may still be in the sample; all others are forgotten."""
        held = _Held.joined([*([] if self._held is None else [self._held]), *self._waiting])
        self._waiting = []
        self._rare = self._strata.largest_rare(self._rare, self._n_rows // 2)
        keeps = held.is_rare(self._rare)
        self._strata.note(held.group[keeps], held.words[keeps], self._rare)
        lowest = held.by_word()[: self._n_rows]
        if lowest.size == self._n_rows:
            self._highest = held.words[lowest[-1]]
        keeps[lowest] = True
        self._held = held.take(np.flatnonzero(keeps))
        return self._held


@dataclass(frozen=True, eq=False)
class _Held:
    """Some rows, with their random numbers, positions, combinations and decisions."""

    frame: pd.DataFrame
    words: np.ndarray
    positions: IntArray
    group: IntArray
    accepted: BoolArray

    @classmethod
    def joined(cls, parts: Sequence[_Held]) -> _Held:
        frames = [part.frame for part in parts if len(part)] or [parts[0].frame]
        names = ("words", "positions", "group", "accepted")
        arrays = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
        return cls(pd.concat(frames, ignore_index=True), *arrays)

    def __len__(self) -> int:
        return self.words.size

    def take(self, places: IntArray) -> _Held:
        words, positions = self.words[places], self.positions[places]
        frame = self.frame.take(places)
        return _Held(frame, words, positions, self.group[places], self.accepted[places])

    def by_word(self) -> IntArray:
        """Places of the rows, the lowest number first, of equal ones the first row."""
        return np.lexsort((self.positions, self.words))

    def is_rare(self, rare: int) -> BoolArray:
        """Which rows are among the lowest of the accepted ones of their combination."""
        chosen, some = np.zeros(len(self), dtype=bool), np.flatnonzero(self.accepted)
        order = some[np.lexsort((self.positions[some], self.words[some], self.group[some]))]
        group = self.group[order]
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        rank = np.arange(group.size) - np.repeat(starts, np.diff(starts, append=group.size))
        chosen[order[rank < rare]] = True
        return chosen


def _words(numbers: np.ndarray, seed: int) -> np.ndarray:
    """A random number of 64 bits for each position or key, by SplitMix64."""
    with np.errstate(over="ignore"):
        return _mixed(_mixed(numbers.astype(np.uint64)) ^ _mixed(np.array([seed], dtype=np.uint64)))


def _mixed(numbers: np.ndarray) -> np.ndarray:
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
