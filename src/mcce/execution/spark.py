"""People in Spark frames, and tasks on a Spark cluster.

Always true: the explainer travels with the query, which Spark broadcasts, and a worker process
opens it once; record batches stream through in blocks; cells come and go in types that Spark has,
with the same values.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError, ParameterError, SchemaError, WorkerError, shorten
from ..explainer import MCCE
from ..files.sources import check_unique, rebatch
from ..tables.columns import is_time
from .workers import (
    PARTITION_ROWS,
    PEOPLE,
    Item,
    PartitionTask,
    Result,
    check_block_rows,
    check_frame,
    require_engine,
    worker_died_error,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["explain"]

# The most Spark jobs at a time, each of which has a thread here.
MAX_JOBS = 1000
# How often a task is tried on a cluster of this machine; others have their own settings.
TASK_ATTEMPTS = 4


def explain(
    explainer: MCCE,
    people: DataFrame,
    *,
    key: str | Sequence[str],
    load_predictor: Callable[[], Any] | None = None,
    constraints: Any = None,
    block_rows: int = PARTITION_ROWS,
    prefix: str = "",
) -> DataFrame:
    """Answers to people in a Spark frame, partition by partition; nothing is computed yet.

    Moments without a time zone in training are compared with the wall clock of Spark's session:
    ``TimestampType`` becomes what ``spark.sql.session.timeZone`` shows.

    Parameters
    ----------
    explainer
        The fitted explainer.
    people
        Whom to explain, with the columns of training.
    key
        The columns that identify a person.
    load_predictor
        Returns the predictor; called once by each worker process. None sends the explainer's own,
        pickled.
    constraints
        Further constraints for these people.
    block_rows
        The largest number of people that a worker takes at a time; answers do not depend on it.
    prefix
        What stands before the names of added columns.

    Returns
    -------
    pyspark.sql.DataFrame
        One row per answer, and one with the reason for everybody without.

    Raises
    ------
    McceError
        If a parameter or a column cannot be used.
    MissingExtraError
        If Spark is not installed.
    """
    require_engine("spark", "pyspark.sql")
    from pyspark import cloudpickle
    from pyspark.sql import DataFrame
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import IntegralType

    check_frame(people, DataFrame, "pyspark.sql.DataFrame")
    check_block_rows(block_rows)
    check_unique(PEOPLE, people.columns)
    columns = {one.name: isinstance(one.dataType, IntegralType) for one in people.schema.fields}
    _check_moments(explainer)
    task = PartitionTask.plan(
        explainer, load_predictor, columns, key, constraints=constraints, prefix=prefix
    )
    partition = _SparkPartition(cloudpickle.dumps(task), block_rows)
    return people.mapInArrow(partition, from_arrow_schema(_spark_schema(task.arrow_schema)))


@dataclass(frozen=True)
class _SparkPartition:
    """What Spark calls with the record batches of a partition."""

    content: bytes = field(repr=False)
    block_rows: int

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        task: PartitionTask = _unpack(self.content)
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


def _wall_clock(table: Any, task: PartitionTask) -> Any:
    """The table; moments that have no time zone in training have none here, either."""
    import pyarrow.compute as pc

    dtypes = task.layout.dtypes
    for at, one in enumerate(table.schema):
        dtype = dtypes.get(one.name)
        naive = getattr(dtype, "kind", "") == "M" and not hasattr(dtype, "tz")
        if naive and getattr(one.type, "tz", None) is not None:
            table = table.set_column(at, one.name, pc.local_timestamp(table.column(at)))
    return table


@dataclass(frozen=True)
class SparkExecutor:
    """Runs tasks on a Spark cluster; see :class:`~mcce.execution.workers.Executor`.

    The cluster is that of the active session, else the one that ``spark-submit`` names, else one of
    this machine for the time of the run. Each item is a Spark job with one task.
    """

    workers: int | None = None

    def map(
        self, task: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result | WorkerError]]:
        """The results of a task for some items, as they come."""
        with self._context() as context:
            from pyspark import cloudpickle

            calling = _Calling(context.broadcast(cloudpickle.dumps(task)))
            left = enumerate(items)
            # Threads start only when they are needed.
            with ThreadPoolExecutor(MAX_JOBS) as pool:

                def submit(n_items: int) -> set[Future[tuple[int, Result | WorkerError]]]:
                    return {
                        pool.submit(_run, context, calling, one) for one in islice(left, n_items)
                    }

                running = submit(_ahead(context))
                while running:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    running |= submit(max(_ahead(context) - len(running), 0))
                    yield from (one.result() for one in done)

    @contextmanager
    def _context(self) -> Iterator[Any]:
        """The context of the active session, or one for the time of the run."""
        require_engine("spark", "pyspark.sql")
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
        from pyspark.sql.utils import is_remote

        if is_remote():
            raise ParameterError(
                "Spark Connect runs no tasks, only queries: use a session with a Spark context, or "
                "mcce.execution.spark.explain for people in a frame."
            )
        # A context may be there without an active session, and is never ours to stop.
        active = SparkContext._active_spark_context
        if active is not None:
            yield active
            return
        try:
            settings = SparkConf()
            if not settings.contains("spark.master"):
                settings.setMaster(f"local[{self.workers or '*'},{TASK_ATTEMPTS}]")
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


def _ahead(context: Any) -> int:
    """How many jobs are submitted at a time: more than can run, so that autoscaling starts."""
    return min(2 * int(context.defaultParallelism), MAX_JOBS)


@dataclass(frozen=True)
class _Calling:
    """A task that workers fetch once."""

    held: Any

    def __call__(self, item: Any) -> Any:
        return _unpack(self.held.value)(item)


def _run(context: Any, calling: Callable[[Any], Any], one: tuple[int, Any]) -> tuple[int, Any]:
    from py4j.protocol import Py4JJavaError

    place, item = one
    try:
        [result] = context.parallelize([item], 1).map(calling).collect()
    except Py4JJavaError as error:
        # What a task raises is a PythonException, and a cluster that is gone aborts no stage.
        if "aborted due to stage failure" not in str(error):
            raise
        return place, worker_died_error()
    return place, result


@lru_cache(maxsize=1)
def _unpack(content: bytes) -> Any:
    from pyspark import cloudpickle

    return cloudpickle.loads(content)
