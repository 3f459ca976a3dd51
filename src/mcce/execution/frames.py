"""People in frames of every engine: a partition in, a partition out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ..errors import ParameterError, shorten
from ..explainer import MCCE
from ..parameters import check_whole
from .pools import check_workers
from .workers import PARTITION_ROWS, Task

# The library of a frame, and the module here that knows it.
LIBRARIES = {"pandas": "joblib", "dask": "dask", "ray": "ray", "pyspark": "spark"}


def explain(
    explainer: MCCE,
    people: Any,
    *,
    key: str | Sequence[str] | None = None,
    load_predictor: Callable[[], Any] | None = None,
    constraints: Any = None,
    workers: int | None = None,
    block_rows: int = PARTITION_ROWS,
    prefix: str = "",
) -> Any:
    """Answers to people in a frame of pandas, Dask, Ray Data or Spark, partition by partition.

    For a pandas frame, processes of this machine share the work. The answers to others are a frame
    of the same library, of which nothing is computed yet. Dask keeps the order of people; so does
    Ray if it preserves order
    (``ray.data.DataContext.get_current().execution_options.preserve_order = True``); Spark has
    none. In Spark, moments without a time zone in training are compared with the wall clock of the
    session: ``TimestampType`` becomes what ``spark.sql.session.timeZone`` shows.

    Parameters
    ----------
    explainer
        The fitted explainer.
    people
        Whom to explain, with the columns of training.
    key
        The columns that identify a person. None, for pandas and Dask, stands for the labels of the
        index.
    load_predictor
        Returns the predictor; called once in each process, whose threads share it. None sends the
        explainer's own, pickled.
    constraints
        Further constraints for these people.
    workers
        The largest number of processes, of pandas and Ray; None for as many as there is room for.
        Dask and Spark have settings of their own.
    block_rows
        The largest number of people that a worker takes at a time; Dask's take a partition. Answers
        do not depend on it.
    prefix
        What stands before the names of added columns.

    Returns
    -------
    frame of the library of ``people``
        One row per answer, and one with the reason for everybody without.

    Raises
    ------
    McceError
        If a parameter, a column or the predictor cannot be used, or workers die with a block.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import MCCE
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), search="near").fit(bank)
    >>> explain(explainer, bank.iloc[[3, 19]], workers=1)[["index", "status", "salary"]]
       index           status  salary
    0      3         answered      70
    1     19  already desired    <NA>
    """
    check_whole("block_rows", block_rows, 1, 2**31 - 1)
    check_workers(workers)
    engine, task = plan(explainer, people, key, load_predictor, constraints, prefix)
    return engine.answers(people, key, task, workers=workers, block_rows=block_rows)


def plan(
    explainer: MCCE,
    people: Any,
    key: str | Sequence[str] | None,
    load_predictor: Callable[[], Any] | None = None,
    constraints: Any = None,
    prefix: str = "",
) -> tuple[Any, Task]:
    """The module of the engine that a frame is of, and the task for its partitions."""
    library = LIBRARIES.get(type(people).__module__.partition(".")[0].partition("_")[0])
    if library is None:
        raise ParameterError(
            "people must be a frame of pandas, Dask, Ray Data or Spark, got "
            f"{type(people).__module__}.{type(people).__name__}."
        )
    engine = import_module(f".{library}", __package__)
    columns, names = engine.columns_of(people, key, explainer)
    keys = [names] if isinstance(names, str) else list(names or ())
    if not keys:
        raise ParameterError(
            "key must name the column that identifies a person, such as a customer number, got "
            f"{key!r}. The columns are {shorten(list(columns), 500)}."
        )
    return engine, Task.for_frames(explainer, load_predictor, columns, keys, constraints, prefix)
