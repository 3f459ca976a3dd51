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

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ParameterError, SchemaError, shorten
from ..kernels import BoolArray, FloatArray, IntArray, absorb
from ..parameters import check_seed, check_whole
from ..predictors.decision import Decision
from ..predictors.desired import decision_on
from ..tables.columns import Kind, as_numbers, factorize, is_missing
from ..tables.frames import FrameAdapter, read_frame
from ..tables.schema import Schema

# Rows that the predictor gets in one call, whatever the blocks are.
CALL_ROWS = 2**16
# Bins between a power of two and the next.
PER_DOUBLING = 4
ANY_WORD = np.uint64(2**64 - 1)
TrainingBlock = tuple[pd.DataFrame, FrameAdapter, np.ndarray | None]


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
        All accepted rows are kept of each combination that has at most this number of them.
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
        # Rows, each with its random number, position, combination and decision. The first were
        # pruned together, and stand in the order of their numbers.
        self._held: list[tuple[pd.DataFrame, pd.DataFrame]] = []
        # The highest number among the lowest n_rows, once there are that many.
        self._highest: np.uint64 | None = None

    def add(self, frame: pd.DataFrame, keys: np.ndarray | None) -> None:
        """Take a block of rows."""
        position = np.arange(self._n_seen, self._n_seen + len(frame))
        word = _words(position if keys is None else keys, self._seed)
        accepted = self._decision.score(frame).valid
        group = self._strata.count(frame, accepted)
        if self._strata.n_groups > self._n_rows // 2:
            raise ParameterError(
                f"n_rows={self._n_rows} is too small: the immutable columns have more than "
                f"{self._n_rows // 2} combinations of values so far, and half of the sample is for "
                "rare ones. Pass at least twice as many rows as there are combinations, or leave "
                "columns that tell all people apart out of the data."
            )
        self._n_seen += len(frame)
        # Only together with all rows held is it known which are the lowest of their combination.
        # Ties go to earlier rows, and rows that are held came earlier.
        low = True if self._highest is None else word < self._highest
        some = np.flatnonzero((accepted & self._strata.may_keep(group, word)) | low)
        about = {"word": word, "position": position, "group": group, "accepted": accepted}
        self._held.append((frame.take(some), pd.DataFrame(about).take(some)))
        if sum(len(rows) for rows, _ in self._held[1:]) > self._n_rows // 4:
            self._prune()

    def finish(self) -> TrainingSample:
        """The sample."""
        chosen = self._prune()
        if not self._strata.n_accepted:
            raise ParameterError(
                f"None of the {self._n_seen} training rows has the desired decision, so there is "
                "nothing to learn from. Check desired and score_class."
            )
        chosen[np.flatnonzero(~chosen)[: max(self._n_rows - int(chosen.sum()), 0)]] = True
        ((rows, about),) = self._held
        kept = about[chosen]
        return TrainingSample(
            rows=self._adapter.rows_to_native(rows[chosen].reset_index(drop=True)),
            n_seen=self._n_seen,
            n_kept=len(kept),
            rare=self._rare,
            strata=self._strata.table(kept["group"].to_numpy(), kept["accepted"].to_numpy()),
        )

    def _prune(self) -> BoolArray:
        """Forget rows that cannot be in the sample, and say which are the lowest accepted ones."""
        parts = [part for part in self._held if len(part[0])] or self._held[:1]
        rows, about = (pd.concat(some, ignore_index=True) for some in zip(*parts, strict=True))
        order = np.lexsort((about["position"], about["word"]))
        about = about.take(order)
        self._rare = self._strata.largest_rare(self._rare, self._n_rows // 2)
        before = about.groupby(["group", "accepted"]).cumcount().to_numpy()
        chosen = about["accepted"].to_numpy() & (before < self._rare)
        word, group = about["word"].to_numpy(), about["group"].to_numpy()
        self._strata.note(group[chosen], word[chosen], self._rare)
        if len(about) >= self._n_rows:
            self._highest = word[self._n_rows - 1]
        keeps = chosen | (np.arange(len(about)) < self._n_rows)
        self._held = [(rows.take(order[keeps]), about[keeps])]
        return chosen[keeps]


def _words(numbers: np.ndarray, seed: int) -> np.ndarray:
    """A random number of 64 bits for each position or key, by SplitMix64."""
    key = absorb(np.array([seed], dtype=np.uint64), 0)
    return absorb(absorb(numbers.astype(np.uint64), 0), key)


class Strata:
    """Combinations of immutable values, numbered as they are met, and how many rows have them."""

    def __init__(self, schema: Schema) -> None:
        self._features = [schema.features[at] for at in schema.immutable]
        self._numbered: dict[tuple[Any, ...], int] = {}
        self._seen = np.zeros((0, 2), dtype=np.int64)
        # The highest number that an accepted row of each combination may have to be kept.
        self._limit = np.zeros(0, dtype=np.uint64)

    @property
    def n_groups(self) -> int:
        """Number of combinations."""
        return len(self._numbered)

    @property
    def n_accepted(self) -> int:
        """Number of accepted rows."""
        return int(self._seen[:, 1].sum())

    def count(self, frame: pd.DataFrame, is_desired: BoolArray) -> IntArray:
        """The number of each row's combination, new ones included, after counting the rows."""
        group = self._numbers(frame)
        grown = self.n_groups - len(self._seen)
        self._seen = np.concatenate([self._seen, np.zeros((grown, 2), dtype=np.int64)])
        self._limit = np.append(self._limit, np.full(grown, ANY_WORD))
        counts = np.bincount(2 * group + is_desired, minlength=2 * self.n_groups)
        self._seen += counts.reshape(-1, 2)
        return group

    def may_keep(self, group: IntArray, words: np.ndarray) -> BoolArray:
        """Whether accepted rows that come next may be among the lowest of their combination."""
        return np.asarray(words <= self._limit[group])

    def note(self, group: IntArray, words: np.ndarray, rare: int) -> None:
        """Take the numbers of the lowest rows of each combination, ``rare`` at most."""
        highest = np.zeros(self.n_groups, dtype=np.uint64)
        np.maximum.at(highest, group, words)
        is_full = np.bincount(group, minlength=self.n_groups) >= rare
        self._limit = np.where(is_full, highest, ANY_WORD)

    def largest_rare(self, rare: int, n_rows: int) -> int:
        """The largest number of rows of each combination that fits within a number of rows."""
        counts = np.sort(self._seen[:, 1])
        low, high = 1, rare
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (
                (middle, high) if np.minimum(counts, middle).sum() <= n_rows else (low, middle - 1)
            )
        return low

    def table(self, group: IntArray, is_desired: BoolArray) -> pd.DataFrame:
        """One row for each combination and decision that was seen, given the rows that are kept."""
        kept = np.bincount(2 * group + is_desired, minlength=self._seen.size)
        cells = sorted(self._numbered, key=lambda combination: [*map(_rank, combination)])
        order = [self._numbered[combination] for combination in cells]
        # The values are no columns, whose names could be those of the counts.
        names = [feature.name for feature in self._features]
        twice = [combination for combination in cells for _ in range(2)]
        index: Any = [pd.Index(list(column), dtype=object) for column in zip(*twice, strict=True)]
        if len(names) > 1:
            index = pd.MultiIndex.from_arrays(index, names=names)
        else:
            index = index[0].rename(names[0]) if names else None
        table = pd.DataFrame(
            {
                "accepted": np.tile([False, True], self.n_groups),
                "n_seen": self._seen[order].ravel(),
                "n_kept": kept.reshape(-1, 2)[order].ravel(),
            },
            index,
        )
        table["whole"] = table["n_seen"] == table["n_kept"]
        table["weight"] = table["n_seen"] / table["n_kept"].where(table["n_kept"] > 0)
        return table[table["n_seen"] > 0]

    def _numbers(self, frame: pd.DataFrame) -> IntArray:
        """The number of each row's combination."""
        combined, columns = np.zeros(len(frame), dtype=np.int64), []
        for feature in self._features:
            codes, values = _coded(frame[feature.name], feature.kind)
            columns.append((codes, values))
            combined = np.asarray(pd.factorize(combined * len(values) + codes)[0], dtype=np.int64)
        first = np.unique(combined, return_index=True)[1].tolist()
        keys = [tuple(values[codes[row]] for codes, values in columns) for row in first]
        numbers = [self._numbered.setdefault(cells, len(self._numbered)) for cells in keys]
        return np.array(numbers)[combined]


def bin_numbers(numbers: FloatArray) -> FloatArray:
    """The lower end of each number's bin; NaN stays NaN.

    Examples
    --------
    >>> bin_numbers(np.array([1.0, 7.0, 36.0, 39.0, 40.0, -3.0, 0.0]))
    array([ 1.,  7., 32., 32., 40., -3.,  0.])
    """
    mantissa, exponent = np.frexp(numbers)
    return np.ldexp(np.floor(mantissa * 2 * PER_DOUBLING) / (2 * PER_DOUBLING), exponent)


def _coded(series: pd.Series[Any], kind: str) -> tuple[IntArray, list[Any]]:
    """A code of each cell, and the value of each code; None is that of missing cells."""
    missing = is_missing(series)
    present = series[~missing]
    if kind == "categorical":
        numbers, levels = factorize(present)
    elif present.dtype.kind == "M":
        numbers, levels = pd.factorize(present.dt.year.to_numpy())
    else:
        numbers, levels = pd.factorize(bin_numbers(as_numbers(present)))
    codes = np.full(len(series), len(levels), dtype=np.int64)
    codes[~missing] = numbers
    return codes, [*levels.tolist(), None]


def _rank(cell: Any) -> tuple[bool, bool, float, str]:
    """An order of cells of any type: numbers, then others by their text, then missing ones."""
    number = isinstance(cell, (int, float))
    return cell is None, not number, float(cell) if number else 0.0, str(cell)


def even_blocks(
    blocks: Iterable[Any], n_rows: int, key: Hashable | None = None
) -> Iterator[TrainingBlock]:
    """Blocks of equal numbers of rows, except the last."""
    waiting: list[pd.DataFrame] = []
    first: tuple[pd.DataFrame, FrameAdapter] | None = None
    n_before = 0
    for number, block in enumerate(_listed(blocks), start=1):
        frame, adapter = read_frame(_as_table(block))
        if first is None and len(frame):
            first = frame.iloc[:0], adapter
        if first is None or frame.empty:
            continue
        waiting.append(_like(frame, first[0], number))
        while sum(map(len, waiting)) >= n_rows:
            joined = pd.concat(waiting, ignore_index=True)
            rows, keys = _divided(joined.iloc[:n_rows], key, n_before)
            yield rows, first[1], keys
            n_before += n_rows
            waiting = [joined.iloc[n_rows:].reset_index(drop=True)]
    if first is not None and any(not frame.empty for frame in waiting):
        rows, keys = _divided(pd.concat(waiting, ignore_index=True), key, n_before)
        yield rows, first[1], keys


def _listed(blocks: Any) -> Iterable[Any]:
    """The blocks, unless they are a single frame."""
    if isinstance(blocks, (str, bytes, pd.DataFrame, np.ndarray)) or hasattr(blocks, "columns"):
        raise SchemaError(
            f"blocks must be an iterable of frames, got one {type(blocks).__name__}. Pass [frame] "
            "for a single frame, or an iterator over the rows of files, such as "
            "pandas.read_csv(path, chunksize=100_000)."
        )
    given: Iterable[Any] = blocks
    return given


def _as_table(block: Any) -> Any:
    """A block, as a table if it is a batch of Arrow."""
    if type(block).__name__ != "RecordBatch":
        return block
    import pyarrow as pa

    return pa.Table.from_batches([block])


def _like(frame: pd.DataFrame, first: pd.DataFrame, number: int) -> pd.DataFrame:
    """A block in the columns and dtypes of the first."""
    missing = [name for name in first.columns if name not in frame.columns]
    extra = [name for name in frame.columns if name not in first.columns]
    if missing or extra:
        raise SchemaError(
            f"Block {number} of the training rows has other columns than the first: missing "
            f"{shorten(missing, 300)}, extra {shorten(extra, 300)}. Give all blocks the same."
        )
    frame = frame[list(first.columns)]
    for name, dtype in first.dtypes.items():
        if frame[name].dtype != dtype and not _are_numbers(frame[name].dtype, dtype):
            raise SchemaError(
                f"Column {shorten(name)} of the training rows is {frame[name].dtype} in block "
                f"{number}, but {dtype} in the first one. Give all blocks the same dtypes, "
                "categories included (on the command line: --dtype)."
            )
    return frame


def _are_numbers(*dtypes: Any) -> bool:
    """Whether all are integers or floats, which a block without missing cells may tell apart."""
    return all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in dtypes)


def _divided(
    frame: pd.DataFrame, key: Hashable | None, n_before: int
) -> tuple[pd.DataFrame, np.ndarray | None]:
    """Rows without their key, and the numbers of the key's cells."""
    if key is None:
        return frame, None
    if key not in frame.columns:
        raise SchemaError(
            f"key names a column that is not in the data: {shorten(key)}. The columns are "
            f"{shorten(list(frame.columns), 500)}."
        )
    missing = np.flatnonzero(is_missing(frame[key]))
    if missing.size:
        raise SchemaError(
            f"Column {shorten(key)} of the training rows, the key, is missing in row "
            f"{n_before + missing[0] + 1}. Fill it with what tells the row apart, or leave key out."
        )
    return frame.drop(columns=[key]), _key_numbers(frame[key])


def _key_numbers(keys: pd.Series[Any]) -> np.ndarray:
    """A number of 64 bits for each key; 5 and 5.0 have the same one."""
    if isinstance(keys.dtype, np.dtype) and keys.dtype.kind == "f":
        numbers = keys.to_numpy(dtype=np.float64)
        whole = (np.abs(numbers) < 2**63) & (np.trunc(numbers) == numbers)
        integers = np.where(whole, numbers, 0).astype(np.int64)
        return np.where(whole, _hashed(integers), _hashed(numbers))
    return _hashed(keys)


def _hashed(cells: Any) -> np.ndarray:
    return pd.util.hash_pandas_object(pd.Series(cells), index=False).to_numpy()
