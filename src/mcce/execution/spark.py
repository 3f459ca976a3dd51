"""People in Spark frames, and tasks on a Spark cluster.

Always true: the explainer travels with the query, which Spark broadcasts, and a worker process
opens it once; record batches stream through in blocks; cells come and go in types that Spark has,
with the same values.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ..errors import MissingExtraError, ParameterError, SchemaError, shorten
from ..explainer import MCCE
from ..files.sources import check_unique, rebatch
from ..tables.columns import is_time
from .pools import Key, WorkerPool
from .workers import PEOPLE, Task

# The most Spark jobs at a time, each of which has a thread here.
MAX_JOBS = 1000
# How often a task is tried on a cluster of this machine; others have their own settings.
TASK_ATTEMPTS = 4


def columns_of(people: Any, key: Key, explainer: MCCE) -> tuple[dict[str, bool], Key]:
    """The columns of a frame, and whether they hold whole numbers; and its key."""
    from pyspark.sql.types import IntegralType

    check_unique(PEOPLE, people.columns)
    _check_moments(explainer)
    return {one.name: isinstance(one.dataType, IntegralType) for one in people.schema.fields}, key


def answers(people: Any, _: Key, task: Task, *, workers: int | None, block_rows: int) -> Any:
    """The answers to people in a Spark frame; the explainer travels with the query."""
    from pyspark import cloudpickle
    from pyspark.sql.pandas.types import from_arrow_schema

    partition = _SparkPartition(cloudpickle.dumps(task), block_rows)
    return people.mapInArrow(partition, from_arrow_schema(_spark_schema(task.arrow_schema)))


@dataclass(frozen=True)
class _SparkPartition:
    """What Spark calls with the record batches of a partition."""

    content: bytes = field(repr=False)
    block_rows: int

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        task: Task = _unpack(self.content)
        schema = _spark_schema(task.arrow_schema)
        for table in rebatch(batches, self.block_rows):
            yield from task.arrow(_wall_clock(table, task)).cast(schema).to_batches()


def _spark_schema(schema: Any) -> Any:
    """A schema of Arrow with the nearest types that Spark has."""
    import pyarrow as pa

    return pa.schema([pa.field(one.name, _held(one.type)) for one in schema])


def _held(kind: Any) -> Any:
    """The nearest type that Spark has; all but moments and durations keep every value."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_timestamp(kind):
        return pa.timestamp("us", tz=kind.tz)
    if types.is_duration(kind):
        return pa.duration("us")
    if types.is_uint64(kind):
        return pa.decimal128(20, 0)
    return pa.float32() if types.is_float16(kind) else kind


def _check_moments(explainer: MCCE) -> None:
    """Raise if answers could hold moments or durations that Spark would cut off."""
    import pyarrow as pa

    for feature in explainer.fitted_.schema.features:
        if feature.immutable or not is_time(feature.table.dtype):
            continue
        cells = pa.array(feature.known, from_pandas=True)
        try:
            cells.cast(_held(cells.type))
        except pa.ArrowInvalid as error:
            raise SchemaError(
                f"Column {feature.name!r} of the training data has values below a microsecond, "
                "which Spark does not hold. Round them before fit, such as with "
                '.dt.round("us"), or declare the column immutable.'
            ) from error


def _wall_clock(table: Any, task: Task) -> Any:
    """The table; moments that have no time zone in training have none here, either."""
    import pyarrow.compute as pc

    dtypes = task.layout.dtypes
    for at, one in enumerate(table.schema):
        dtype = dtypes.get(one.name)
        naive = getattr(dtype, "kind", "") == "M" and not hasattr(dtype, "tz")
        if naive and getattr(one.type, "tz", None) is not None:
            table = table.set_column(at, one.name, pc.local_timestamp(table.column(at)))
    return table


@contextmanager
def open_pool(task: Callable[[Any], Any], workers: int | None) -> Iterator[WorkerPool]:
    """Workers of the active session, else of the cluster that ``spark-submit`` names, or of here.

    Each item is a Spark job with one task.
    """
    with _context(workers) as context, ThreadPoolExecutor(MAX_JOBS) as pool:
        from pyspark import cloudpickle

        calling = _Calling(context.broadcast(cloudpickle.dumps(task)))
        yield WorkerPool(
            lambda item: pool.submit(_run, context, calling, item),
            lambda: min(2 * int(context.defaultParallelism), MAX_JOBS),
            (_LostError,),
        )


@contextmanager
def _context(workers: int | None) -> Iterator[Any]:
    """The context of the active session, or one for the time of the run."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote

    if is_remote():
        raise ParameterError(
            "Spark Connect runs no tasks, only queries: use a session with a Spark context, or "
            "mcce.execution.explain for people in a frame."
        )
    # A context may be there without an active session, and is never ours to stop.
    active = SparkContext._active_spark_context
    if active is not None:
        yield active
        return
    try:
        settings = SparkConf()
        if not settings.contains("spark.master"):
            settings.setMaster(f"local[{workers or '*'},{TASK_ATTEMPTS}]")
            settings.setIfMissing("spark.ui.enabled", "false")
            # Else workers would run the first Python on the path, which may lack mcce.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        session = SparkSession.builder.config(conf=settings).getOrCreate()
    except PySparkRuntimeError as error:
        raise MissingExtraError(
            f"Spark did not start: it needs Java 17 or newer ({shorten(error, 200)})."
        ) from error
    try:
        yield session.sparkContext
    finally:
        session.stop()


class _LostError(Exception):
    """The workers of a job died."""


@dataclass(frozen=True)
class _Calling:
    """A task that workers fetch once."""

    held: Any

    def __call__(self, item: Any) -> Any:
        return _unpack(self.held.value)(item)


def _run(context: Any, calling: Callable[[Any], Any], item: Any) -> Any:
    from py4j.protocol import Py4JJavaError

    try:
        [result] = context.parallelize([item], 1).map(calling).collect()
    except Py4JJavaError as error:
        # What a task raises is a PythonException, and a cluster that is gone aborts no stage.
        if "aborted due to stage failure" not in str(error):
            raise
        raise _LostError from None
    return result


@lru_cache(maxsize=1)
def _unpack(content: bytes) -> Any:
    from pyspark import cloudpickle

    return cloudpickle.loads(content)
