"""What workers get and do, and the seam to the engines that run them.

A worker gets the explainer as bytes of its file (:class:`PackedExplainer`) and answers partitions
of a frame (:class:`PartitionTask`) or of files (:class:`FilesTask`). Of files, only the place of a
partition goes to a worker, and only counts come back; files must have the same names for all
workers.

Always true: a task is a function of one item that runs in any process, any number of times, with
the same outcome, so an engine may repeat it when a worker is lost; an item that kills every worker
costs its own result and no other. No pickle of the explainer is sent; a process opens it once, so
limits of a predictor hold for all its threads, and a predictor that is not ``thread_safe`` is
called by one thread at a time. All partitions have the columns and dtypes of one layout, rows stay
in their order, and the predictor sees cells in the dtypes of training. A part is written whole or
not at all, and only while its folder belongs to the run.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import uuid4
from weakref import WeakValueDictionary

import numpy as np
import pandas as pd
from pandas.api import types

from ..counterfactuals.result import Counterfactuals
from ..errors import (
    McceError,
    MissingExtraError,
    ParameterError,
    PredictorError,
    ReadError,
    SchemaError,
    WorkerError,
    missing_extra,
    shorten,
)
from ..explainer import MCCE, load
from ..files.answer_tables import Layout, arrow_schema, arrow_table
from ..files.cell_values import holds_whole
from ..files.partitions import Partition
from ..files.parts_folder import BlockRun, Done, PartsFolder
from ..files.people_reader import PeopleReader
from ..files.sources import Format, KnownColumns, RawBlock, TableColumns, check_unique, open_source
from ..parameters import check_whole
from ..runtime.progress import format_traceback, without_prints, without_warnings
from ..runtime.threads import one_at_a_time
from ..saving.document import is_custom
from ..tables.schema import Schema

PEOPLE = "the people"
# People per partition: up to twice as cheap per person as blocks of 5,000.
PARTITION_ROWS = 20_000
# Scalars of NumPy that Python has a type of its own for.
SCALARS = (np.bool_, np.integer, np.floating)
# How often a failed partition is tried again, by any worker.
PARTITION_RETRIES = 2
# Errors of columns, cells, settings and libraries, which a second try does not change. A partition
# that killed its worker has been tried again, alone.
PERMANENT = (
    SchemaError,
    ParameterError,
    MissingExtraError,
    ReadError,
    WorkerError,
)
# The run stops if the predictor failed on this many partitions and none is done.
MAX_FAILED = 10
# Explainers that a process keeps open although no thread uses them, for runs side by side.
MAX_IDLE_EXPLAINERS = 2
_opening = threading.Lock()
_kept: OrderedDict[str, MCCE] = OrderedDict()
_opened: WeakValueDictionary[str, MCCE] = WeakValueDictionary()
Item = TypeVar("Item")
Result = TypeVar("Result")
# The module and the executor of each engine.
EXECUTORS = {
    "local": ("joblib", "JoblibExecutor"),
    "dask": ("dask", "DaskExecutor"),
    "ray": ("ray", "RayExecutor"),
    "spark": ("spark", "SparkExecutor"),
}
ENGINES = tuple(EXECUTORS)
ENGINE_PACKAGES = {"dask": "distributed", "ray": "ray", "spark": "pyspark"}


@dataclass(frozen=True)
class PartitionTask:
    """Answers to partitions of people; :meth:`plan` makes one."""

    packed: PackedExplainer
    key: tuple[str, ...]
    whole: frozenset[str]
    layout: Layout
    constraints: Any = None

    @classmethod
    def plan(
        cls,
        explainer: MCCE,
        load_predictor: Callable[[], Any] | None,
        columns: Mapping[str, bool],
        key: str | Sequence[str] | None,
        *,
        constraints: Any = None,
        prefix: str = "",
    ) -> PartitionTask:
        """The task for people with these columns, after a trial with nobody."""
        keys = (key,) if isinstance(key, str) else tuple(key or ())
        if not keys:
            raise ParameterError(
                "key must name the column that identifies a person, such as a customer number, got "
                f"{key!r}. The columns are {shorten(list(columns), 500)}."
            )
        packed = PackedExplainer.pack(explainer, load_predictor)
        whole = frozenset(name for name in keys if columns.get(name, False))
        reader = _reader(explainer, list(columns), keys, whole)
        with without_warnings():
            empty_result = explainer.explain(reader.empty(), constraints=constraints)
        layout = Layout.plan(reader, empty_result, prefix, numbered=False)
        return cls(packed, keys, whole, layout, constraints)

    def table(self, columns: Mapping[str, Any]) -> pd.DataFrame:
        """The table of answers to a partition."""
        # The table says better than warnings who has no answer, and why.
        with self.packed.opened() as explainer, without_warnings():
            reader = _reader(explainer, list(columns), self.key, self.whole)
            people = reader.read(
                RawBlock(0, {name: _cells(columns[name]) for name in reader.columns})
            )
            results = [
                (at, explainer.explain(rows, constraints=self.constraints))
                for at, rows in people.groups
            ]
        return self.layout.table(people, results)

    def frame(self, people: pd.DataFrame) -> pd.DataFrame:
        """The table of answers to a partition that is a pandas frame."""
        check_unique(PEOPLE, [str(name) for name in people.columns])
        return self.table({str(name): column for name, column in people.items()})

    def arrow(self, people: Any) -> Any:
        """The answers to an Arrow table, as an Arrow table."""
        check_unique(PEOPLE, people.column_names)
        table = self.table(dict(zip(people.column_names, people.columns, strict=True)))
        return arrow_table(table, self.arrow_schema)

    @property
    def empty_table(self) -> pd.DataFrame:
        """A table of answers without rows."""
        return pd.DataFrame({n: pd.Series([], dtype=d) for n, d in self.layout.dtypes.items()})

    @property
    def arrow_schema(self) -> Any:
        """The schema of the table of answers, in Arrow."""
        return arrow_schema(self.empty_table)


def columns_of(frame: pd.DataFrame) -> dict[str, bool]:
    """The columns of a frame, for :meth:`PartitionTask.plan`.

    Examples
    --------
    >>> columns_of(pd.DataFrame({"customer": [7], "salary": [1.5]}))
    {'customer': True, 'salary': False}
    """
    return {str(name): holds_whole(dtype) for name, dtype in frame.dtypes.items()}


def with_index(
    frame: pd.DataFrame, key: str | Sequence[str] | None
) -> tuple[pd.DataFrame, str | Sequence[str]]:
    """A frame and its key; without a key, the index becomes columns, which are the key.

    Examples
    --------
    >>> with_index(pd.DataFrame({"salary": [40, 50]}, index=["a", "b"]), None)[0]
      index  salary
    0     a      40
    1     b      50
    """
    if key is not None:
        return frame, key
    names = [f"index{at or ''}" if n is None else str(n) for at, n in enumerate(frame.index.names)]
    count = Counter([*names, *map(str, frame.columns)])
    taken = [name for name in dict.fromkeys(names) if count[name] > 1]
    if taken:
        raise ParameterError(
            f"The labels of the index would be columns, but several would be named "
            f"{shorten(taken)}. Name the columns that identify a person with key, or rename the "
            "levels of the index."
        )
    return frame.rename_axis(index=names).reset_index(), names


def check_block_rows(block_rows: Any) -> None:
    """Raise unless people can be cut into blocks of this size."""
    check_whole("block_rows", block_rows, 1, 2**31 - 1)


def check_frame(people: Any, kind: type[Any], called: str) -> Any:
    """The people, if they are in the frame of an engine."""
    if not isinstance(people, kind):
        raise ParameterError(
            f"people must be a {called}, got {type(people).__module__}.{type(people).__name__}."
        )
    return people


def _reader(
    explainer: MCCE, names: list[str], key: tuple[str, ...], whole: frozenset[str]
) -> PeopleReader:
    return PeopleReader.plan(
        PEOPLE,
        KnownColumns(names, whole=whole),
        explainer.fitted_.schema,
        keep=key,
        remedy="Mend the cell, or convert the column.",
    )


def _cells(column: Any) -> Any:
    """A column of pandas as one of Arrow, or as a list of cells where Arrow would change them.

    Arrow would give objects of several types one type that depends on the others of a partition,
    and store periods and intervals as numbers.
    """
    if not isinstance(column, pd.Series):
        return column
    dtype = column.dtype
    levels = pd.Series(dtype.categories) if isinstance(dtype, pd.CategoricalDtype) else column
    if _is_plain(levels):
        try:
            import pyarrow as pa

            return pa.chunked_array([pa.array(column, from_pandas=True)])
        except (ImportError, TypeError, ValueError, OverflowError, NotImplementedError):
            pass
    return [cell.item() if isinstance(cell, SCALARS) else cell for cell in column.tolist()]


def _is_plain(column: pd.Series[Any]) -> bool:
    """Whether a column holds only booleans, numbers, times or texts."""
    if types.is_object_dtype(column.dtype):
        return types.infer_dtype(column, skipna=True) == "string"
    return column.dtype.kind in "biufmMU" or isinstance(column.dtype, pd.StringDtype)


@dataclass(frozen=True)
class FilesTask:
    """Answers partitions of files: what is sent to workers."""

    packed: PackedExplainer
    read_plan: ReadPlan
    layout: Layout
    folder: PartsFolder
    format: Format
    block_rows: int
    rounding: Mapping[Hashable, float]
    constraints: Any = None

    def __call__(self, partition: Partition) -> Outcome:
        """Write the part of a partition, unless it is complete; errors are outcomes too."""
        try:
            # The table says who has no answer, and why; what a predictor prints is no result.
            with without_warnings(), without_prints():
                return Outcome(partition, done=self._write(partition))
        # A partition can fail in countless ways, and others must not fail with it.
        except (Exception, SystemExit) as error:
            return Outcome(partition, failure=Failure.of(error))

    def _write(self, partition: Partition) -> Done:
        with (
            self.packed.opened() as explainer,
            open_source(partition.path, partition.format, self.read_plan.delimiter) as source,
        ):
            reader = self.read_plan.reader(partition.path, source, explainer.fitted_.schema)
            work = BlockRun(partial(self._explain, explainer), reader, self.layout)
            fingerprint, blocks = partition.read(source, reader.columns, self.block_rows)
            return work.write_part(blocks, self.folder, partition.number, fingerprint, self.format)

    def _explain(self, explainer: MCCE, rows: pd.DataFrame) -> Counterfactuals[pd.DataFrame]:
        """The final answers to people."""
        result = explainer.explain(rows, constraints=self.constraints)
        return explainer.finalize(result, rounding=self.rounding, constraints=self.constraints)


@dataclass(frozen=True)
class ReadPlan:
    """How people are read in all files alike."""

    keep: tuple[str, ...] = ()
    whole: frozenset[str] = frozenset()
    dtypes: Mapping[str, str] = field(default_factory=dict)
    delimiter: str = ","

    def reader(self, path: str, source: TableColumns, schema: Schema) -> PeopleReader:
        """How the people of a file are read."""
        return PeopleReader.plan(
            path, source, schema, keep=self.keep, dtypes=self.dtypes, whole=self.whole
        )


@dataclass(frozen=True)
class Outcome:
    """What became of a partition."""

    partition: Partition
    done: Done | None = None
    failure: Failure | None = None
    again: bool = False


@dataclass(frozen=True)
class Failure:
    """Why a partition has no part."""

    kind: type[Exception]
    reason: str
    permanent: bool
    traceback: str = field(default="", repr=False, compare=False)

    @property
    def is_systemic(self) -> bool:
        """Whether it is likely the predictor's, so that every partition would fail."""
        return issubclass(self.kind, PredictorError | WorkerError)

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """What an error says."""
        trace = format_traceback(error)
        if isinstance(error, SystemExit):
            reason = f"The predictor ended the program (exit {error.code})."
            return cls(PredictorError, reason, False, trace)
        if not isinstance(error, McceError):
            # Its type may be one that only the worker can import.
            reason = f"{type(error).__name__}: {shorten(error, 300)}"
            return cls(RuntimeError, reason, False, trace)
        permanent = isinstance(error, PERMANENT) and not isinstance(error.__cause__, OSError)
        return cls(type(error), str(error), permanent, trace)


def explain_partitions(
    executor: Executor, task: FilesTask, partitions: Sequence[Partition]
) -> Iterator[Outcome]:
    """Write the parts of partitions; those that failed are tried again after all others."""
    left = list(partitions)
    n_done = n_systemic = 0
    for attempt in range(PARTITION_RETRIES + 1):
        again: list[Partition] = []
        for place, outcome in run_all(executor, task, left):
            if isinstance(outcome, WorkerError):
                outcome = Outcome(left[place], failure=Failure.of(outcome))
            failure = outcome.failure
            if failure is not None and not failure.permanent and attempt < PARTITION_RETRIES:
                outcome = replace(outcome, again=True)
                again.append(outcome.partition)
            yield outcome
            n_done += failure is None
            n_systemic += failure is not None and failure.is_systemic
            if failure is not None and attempt == n_done == 0 and n_systemic == MAX_FAILED:
                raise failure.kind(
                    f"The first {MAX_FAILED} partitions failed, and none is complete, so the run "
                    f"was stopped. The last of them said: {failure.reason}"
                )
        if not again:
            return
        left = again


@dataclass(frozen=True)
class PackedExplainer:
    """An explainer on its way to workers; :meth:`pack` makes one."""

    content: bytes = field(repr=False)
    load_predictor: Callable[[], Any]
    tolerance: float = 1e-9
    generator: Any = None
    token: str = field(default_factory=lambda: uuid4().hex)

    @classmethod
    def pack(
        cls,
        explainer: MCCE,
        load_predictor: Callable[[], Any] | None = None,
        *,
        tolerance: float = 1e-9,
    ) -> PackedExplainer:
        """An explainer, ready to be sent."""
        if explainer.max_seconds is not None:
            raise ParameterError(
                "max_seconds would make answers depend on partitions and machines. Set it to None: "
                "explainer.set_params(max_seconds=None)."
            )
        if load_predictor is None:
            load_predictor = partial(_same, explainer.predictor)
        if not callable(load_predictor):
            raise ParameterError(
                "load_predictor must be a function without arguments that returns the predictor, "
                f"got {shorten(load_predictor)}."
            )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "explainer.mcce")
            explainer.save(path)
            content = path.read_bytes()
        generator = explainer.generator if is_custom(explainer.generator) else None
        return _sendable(cls(content, load_predictor, tolerance, generator))

    @contextmanager
    def opened(self) -> Iterator[MCCE]:
        """The explainer with its predictor, the same one for all threads of the process.

        Inside, a predictor that is not ``thread_safe`` is called by one thread at a time.
        """
        with one_at_a_time():
            yield self._open()

    def _open(self) -> MCCE:
        # Other threads wait here: a second predictor would have limits of its own.
        with _opening:
            explainer = _opened.get(self.token)
            if explainer is None:
                explainer = _opened[self.token] = self._load()
            _kept[self.token] = explainer
            _kept.move_to_end(self.token)
            while len(_kept) > MAX_IDLE_EXPLAINERS:
                _kept.popitem(last=False)
            return explainer

    def _load(self) -> MCCE:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "explainer.mcce")
            path.write_bytes(self.content)
            explainer = load(
                path,
                self.load_predictor(),
                generator=self.generator,
                tolerance=self.tolerance,
            )
        # A worker is one of many: threads of its own would only get in the way of others.
        return explainer.set_params(n_jobs=None, verbose=False)


def _same(predictor: Any) -> Any:
    """The predictor itself: what stands in for a function that loads it."""
    return predictor


def _sendable(packed: PackedExplainer) -> PackedExplainer:
    """The explainer, if engines can send it: all of them pickle functions whole, as joblib does."""
    from joblib.externals.loky.backend.reduction import dumps

    try:
        dumps(packed)
    except Exception as error:  # whatever a predictor raises
        raise ParameterError(
            f"The predictor cannot be sent to workers ({shorten(error, 200)}). Pass "
            "load_predictor, a function that returns it there, such as from a file."
        ) from error
    return packed


class Executor(Protocol):
    """Runs tasks somewhere."""

    def map(
        self, task: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result | WorkerError]]:
        """The results of a task for some items, as they come; :func:`run_all` calls it."""
        ...


def run_all(
    executor: Executor, task: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[tuple[int, Result | WorkerError]]:
    """The results of a task for some items; those that a worker died with run again, each alone."""
    suspects: list[int] = []
    for place, result in executor.map(task, items):
        if isinstance(result, WorkerError):
            suspects.append(place)
        else:
            yield place, result
    for place in suspects:
        yield from ((place, result) for _, result in executor.map(task, [items[place]]))


def worker_died_error() -> WorkerError:
    """What stands for the result of an item whose worker died."""
    return WorkerError(
        "The worker died: it ran out of memory, or the predictor ended its process. Give workers "
        "more memory, or cut people into smaller blocks."
    )


def find_executor(engine: str, workers: int | None = None) -> Executor:
    """The executor of an engine."""
    if engine not in ENGINES:
        raise ParameterError(f"The engine must be one of {ENGINES!r}, got {shorten(engine)}.")
    check_workers(workers)
    if engine in ENGINE_PACKAGES:
        require_engine(engine, ENGINE_PACKAGES[engine])
    module, name = EXECUTORS[engine]
    executor: Executor = getattr(import_module(f".{module}", __package__), name)(workers)
    return executor


def check_workers(workers: Any) -> None:
    """Raise unless it is a number of workers, or None."""
    if workers is not None and not (isinstance(workers, int | np.integer) and workers >= 1):
        raise ParameterError(f"The number of workers must be at least 1, got {shorten(workers)}.")


def require_engine(engine: str, *modules: str) -> None:
    """Raise an error that names the extra unless modules of an engine can be imported."""
    try:
        for module in modules:
            import_module(module)
    except ImportError as error:
        raise missing_extra(
            f"{module} ({shorten(error)})", engine, f"The engine {engine}"
        ) from error


@contextmanager
def holding_sigint() -> Iterator[None]:
    """Processes started inside never see Ctrl-C; this one sees it when the block ends."""
    if sys.platform == "win32":
        yield
        return
    # Held back, not ignored: Ctrl-C while processes start would be lost, and the run would go on.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
