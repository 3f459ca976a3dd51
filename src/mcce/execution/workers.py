"""What workers get and do: an explainer as the bytes of its file, and how people are answered.

A :class:`Task` answers partitions of a frame, a :class:`FilesTask` partitions of files. Of files,
only the place of a partition goes to a worker, and only counts come back; files must have the same
names for all workers.

Always true: no pickle of the explainer is sent; a process opens it once, so limits of a predictor
hold for all its threads, and a predictor that is not ``thread_safe`` is called by one thread at a
time. All partitions have the columns and dtypes of one layout, rows stay in their order, and the
predictor sees cells in the dtypes of training. A part is written whole or not at all, and only
while its folder belongs to the run.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd

from ..counterfactuals.result import Counterfactuals
from ..errors import (
    McceError,
    MissingExtraError,
    ParameterError,
    PredictorError,
    ReadError,
    SchemaError,
    WorkerError,
    shorten,
)
from ..explainer import MCCE, load
from ..files.answer_tables import Layout, arrow_schema, arrow_table
from ..files.partitions import Partition
from ..files.parts_folder import PartsFolder
from ..files.people_reader import PeopleReader
from ..files.runs import Done, Run
from ..files.sources import (
    DETECTED,
    Dialect,
    Format,
    KnownColumns,
    RawBlock,
    check_unique,
    open_source,
)
from ..kernels import FloatArray
from ..protocols import Callback
from ..runtime.progress import format_traceback, without_prints, without_warnings
from ..runtime.threads import one_at_a_time
from ..saving.document import is_custom
from .pools import WorkerPool

PEOPLE = "the people"
# People per partition: up to twice as cheap per person as blocks of 5,000.
PARTITION_ROWS = 20_000
# How often a failed partition is tried again, by any worker.
PARTITION_RETRIES = 2
# Errors of columns, cells, settings and libraries, which a second try does not change. A partition
# that killed its worker has been tried again, alone.
PERMANENT = (SchemaError, ParameterError, MissingExtraError, ReadError, WorkerError)
# The run stops if the predictor failed on this many partitions and none is done.
MAX_FAILED = 10
# Scalars of NumPy that Python has a type of its own for.
SCALARS = (np.bool_, np.integer, np.floating)
_opening = threading.Lock()


@dataclass(frozen=True)
class PackedExplainer:
    """An explainer on its way to workers; :meth:`pack` makes one."""

    content: bytes = field(repr=False, compare=False)
    load_predictor: Callable[[], Any] = field(compare=False)
    tolerance: float
    generator: Any = field(compare=False)
    retrained: Any = field(default=None, compare=False)
    token: str = field(default_factory=lambda: uuid4().hex)

    @classmethod
    def pack(
        cls,
        explainer: MCCE,
        load_predictor: Callable[[], Any] | None = None,
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
        return _sendable(cls(content, load_predictor, tolerance, generator, explainer.retrained_))

    @contextmanager
    def opened(self) -> Iterator[MCCE]:
        """The explainer with its predictor, the same one for all threads of the process.

        Inside, a predictor that is not ``thread_safe`` is called by one thread at a time.
        """
        # Other threads wait here: a second predictor would have limits of its own.
        with _opening:
            explainer = _open(self)
        with one_at_a_time():
            yield explainer


# Several runs may share a process.
@lru_cache(maxsize=4)
def _open(packed: PackedExplainer) -> MCCE:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "explainer.mcce")
        path.write_bytes(packed.content)
        predictor, tolerance = packed.load_predictor(), packed.tolerance
        explainer = load(
            path,
            predictor,
            generator=packed.generator,
            retrained=packed.retrained,
            tolerance=tolerance,
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


@dataclass(frozen=True)
class AnswerSettings:
    """What is done with people beyond the settings of their explainer.

    ``anonymity`` are arguments of ``anonymize``. Answers that are not ``final`` are those of
    ``explain``, neither rounded nor checked again.
    """

    constraints: Any = None
    rounding: Mapping[Hashable, float] = field(default_factory=dict)
    anonymity: Mapping[str, Any] = field(default_factory=dict)
    final: bool = True

    def answer(
        self, explainer: MCCE, rows: pd.DataFrame, callback: Callback | None = None
    ) -> Counterfactuals[pd.DataFrame]:
        """The answers to people."""
        rules = self.constraints
        result = explainer.explain(rows, constraints=rules, callback=callback)
        if self.anonymity:
            from ..privacy.anonymity import anonymize

            result = anonymize(explainer, result, constraints=rules, **self.anonymity)
        if self.final:
            result = explainer.finalize(result, rounding=self.rounding, constraints=rules)
        return result.to_pandas()


@dataclass(frozen=True)
class ReadPlan:
    """How people are read, in all partitions alike."""

    keep: tuple[str, ...] = ()
    whole: frozenset[str] = frozenset()
    dtypes: Mapping[str, str] = field(default_factory=dict)
    dialect: Dialect = DETECTED
    remedy: str | None = None

    def reader(self, path: str, columns: KnownColumns, explainer: MCCE) -> PeopleReader:
        """How the people of a table are read."""
        options = {"keep": self.keep, "dtypes": self.dtypes, "whole": self.whole}
        schema = explainer.fitted_.schema
        return PeopleReader.plan(path, columns, schema, **options, remedy=self.remedy)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Task:
    """What a worker needs to answer people."""

    packed: PackedExplainer
    read_plan: ReadPlan
    settings: AnswerSettings
    layout: Layout

    @contextmanager
    def run(self, path: str, columns: KnownColumns) -> Iterator[Run]:
        """How the people of a table are answered here."""
        # The table says better than warnings who has no answer, and why.
        with self.packed.opened() as explainer, without_warnings():
            reader = self.read_plan.reader(path, columns, explainer)
            explain = partial(self.settings.answer, explainer)
            yield Run(
                reader, self.layout, explain, partial(score, explainer), self.packed.tolerance
            )

    @classmethod
    def for_frames(
        cls,
        explainer: MCCE,
        load_predictor: Callable[[], Any] | None,
        columns: Mapping[str, bool],
        keys: Sequence[str],
        constraints: Any,
        prefix: str,
    ) -> Task:
        """The task for frames with these columns, some of them whole numbers."""
        packed = PackedExplainer.pack(explainer, load_predictor)
        whole = frozenset(name for name in keys if columns.get(name, False))
        remedy = "Mend the cell, or convert the column."
        read_plan = ReadPlan(tuple(keys), whole, remedy=remedy)
        settings = AnswerSettings(constraints, final=False)
        reader = read_plan.reader(PEOPLE, KnownColumns(list(columns)), explainer)
        with without_warnings():
            nobody = settings.answer(explainer, reader.empty())
        return cls(packed, read_plan, settings, Layout.plan(reader, nobody, prefix, numbered=False))

    def frame(self, people: pd.DataFrame) -> pd.DataFrame:
        """The table of answers to a partition that is a pandas frame."""
        names = check_unique(PEOPLE, [str(name) for name in people.columns])
        columns = [column for _, column in people.items()]
        return self._table(dict(zip(names, columns, strict=True)), _cells)

    def arrow(self, people: Any) -> Any:
        """The answers to an Arrow table, as an Arrow table."""
        names = check_unique(PEOPLE, people.column_names)
        columns = dict(zip(names, people.columns, strict=True))
        table = self._table(columns, lambda column: column.to_pylist())
        return arrow_table(table, self.arrow_schema)

    def _table(self, columns: Mapping[str, Any], cells: Callable[[Any], Any]) -> pd.DataFrame:
        with self.run(PEOPLE, KnownColumns(list(columns))) as run:
            block = RawBlock(0, {name: cells(columns[name]) for name in run.reader.columns})
            table, _ = run.answer(block)
        return table

    @property
    def arrow_schema(self) -> Any:
        """The schema of the table of answers, in Arrow."""
        return arrow_schema(self.layout.empty())


def score(explainer: MCCE, people: pd.DataFrame) -> FloatArray:
    """What the predictor says of people."""
    return explainer.decision_.score(explainer.schema_.encode(people).frame).score


def _cells(column: pd.Series[Any]) -> list[Any]:
    """The cells of a column in Python's types."""
    cells = column.tolist()
    if not any(issubclass(kind, SCALARS) for kind in set(map(type, cells))):
        return cells
    return [cell.item() if isinstance(cell, SCALARS) else cell for cell in cells]


@dataclass(frozen=True)
class FilesTask:
    """Answers partitions of files."""

    task: Task
    folder: PartsFolder
    format: Format
    block_rows: int

    def __call__(self, partition: Partition) -> Outcome:
        """Write the parts of a partition that are not complete; errors are outcomes too."""
        try:
            # What a predictor prints is no result.
            with without_prints():
                return Outcome(partition, list(self._write(partition)))
        # A partition can fail in countless ways, and others must not fail with it.
        except (Exception, SystemExit) as error:
            return Outcome(partition, failure=Failure.of(error))

    def _write(self, partition: Partition) -> Iterator[Done]:
        dialect = self.task.read_plan.dialect
        with (
            open_source(partition.path, partition.format, dialect) as source,
            self.task.run(partition.path, source) as run,
        ):
            blocks = partition.blocks(source, run.reader.columns, self.block_rows)
            yield from run.write_parts(blocks, self.folder, partition.file, self.format)


@dataclass(frozen=True)
class Outcome:
    """What became of a partition: its parts, or why it failed."""

    partition: Partition
    done: Sequence[Done] = ()
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


def explain_partitions(pool: WorkerPool, partitions: Sequence[Partition]) -> Iterator[Outcome]:
    """Write the parts of partitions; those that failed are tried again after all others."""
    left = list(partitions)
    n_done = n_systemic = 0
    for attempt in range(PARTITION_RETRIES + 1):
        again: list[Partition] = []
        for place, outcome in pool.run(left):
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
