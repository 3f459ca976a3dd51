"""Processes on one machine, by joblib: for predictors that hold Python's lock.

Always true: a worker reads the explainer from a file, once; a few blocks per worker wait at a time;
blocks of a worker that dies are answered by others, and a block that kills workers is known.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import WorkerError
from ..explainer import MCCE
from ..runtime.progress import ProgressBar
from .workers import (
    PARTITION_ROWS,
    Item,
    PartitionTask,
    Result,
    check_block_rows,
    check_frame,
    check_workers,
    columns_of,
    holding_sigint,
    run_all,
    with_index,
    worker_died_error,
)

__all__ = ["explain"]

TASK = "task"
# How often in a row workers may die before they begin an item.
STARTS = 4


def explain(
    explainer: MCCE,
    people: pd.DataFrame,
    *,
    load_predictor: Callable[[], Any] | None = None,
    key: str | Sequence[str] | None = None,
    constraints: Any = None,
    workers: int | None = None,
    block_rows: int = PARTITION_ROWS,
    prefix: str = "",
) -> pd.DataFrame:
    """Answers to people in a pandas frame, by several processes.

    Parameters
    ----------
    explainer
        The fitted explainer.
    people
        Whom to explain, with the columns of training.
    load_predictor
        Returns the predictor; called once in each process. None sends the explainer's own.
    key
        The columns that identify a person; None for the labels of the index.
    constraints
        Further constraints for these people.
    workers
        Number of processes; None for as many as there are cores.
    block_rows
        People per block; answers do not depend on it.
    prefix
        What stands before the names of added columns.

    Returns
    -------
    pandas.DataFrame
        One row per answer, and one with the reason for everybody without, in the order of the
        people.

    Raises
    ------
    McceError
        If a parameter, a column or the predictor cannot be used, or workers die with a block.

    Examples
    --------
    >>> from mcce import MCCE
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), search="near").fit(bank)
    >>> explain(explainer, bank.iloc[[3, 19]], workers=1)[["index", "status", "salary"]]
       index           status  salary
    0      3         answered      70
    1     19  already desired    <NA>
    """
    check_frame(people, pd.DataFrame, "pandas frame")
    check_block_rows(block_rows)
    people, key = with_index(people, key)
    columns = columns_of(people)
    task = PartitionTask.plan(
        explainer, load_predictor, columns, key, constraints=constraints, prefix=prefix
    )
    blocks = [people.iloc[at : at + block_rows] for at in range(0, len(people), block_rows)]
    bar = ProgressBar(len(people), "explain", bool(explainer.verbose))
    tables: dict[int, pd.DataFrame] = {}
    try:
        for place, table in run_all(JoblibExecutor(workers), task.frame, blocks):
            if isinstance(table, WorkerError):
                raise table
            tables[place] = table
            bar.show(sum(len(blocks[done]) for done in tables))
    finally:
        bar.close()
    return pd.concat([task.empty_table, *(tables[at] for at in sorted(tables))], ignore_index=True)


@dataclass(frozen=True)
class JoblibExecutor:
    """Runs tasks in processes of this machine; see :class:`~mcce.execution.workers.Executor`."""

    workers: int | None = None

    def map(
        self, task: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result | WorkerError]]:
        """The results of a task for some items, as they come."""
        import joblib

        check_workers(self.workers)
        workers = joblib.effective_n_jobs(-1 if self.workers is None else self.workers)
        if workers == 1:
            yield from ((place, task(item)) for place, item in enumerate(items))
            return
        left = dict(enumerate(items))
        starts = 0
        with tempfile.TemporaryDirectory() as folder:
            stored = _TaskFile.write(task, folder)
            while left:
                try:
                    for place, result in _run(stored, left, workers):
                        del left[place]
                        yield place, result
                except BrokenProcessPool:
                    # One worker has died, and joblib ends the others with it.
                    begun = stored.begun()
                    starts = 0 if begun else starts + 1
                    if starts == STARTS:
                        raise
                    for place in begun & left.keys():
                        del left[place]
                        yield place, worker_died_error()


def _run(task: _TaskFile, items: dict[int, Any], workers: int) -> Iterator[tuple[int, Any]]:
    from joblib import Parallel, delayed

    # Blocks go through pipes: files for large arrays, joblib's way, cost more than they save.
    run = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1, max_nbytes=None)
    with holding_sigint():  # the call starts the processes
        results = run(delayed(task)(place, item) for place, item in list(items.items()))
    yield from results


@dataclass(frozen=True)
class _TaskFile:
    """A task in a file, which every process reads once instead of receiving it with every item.

    Beside it lie empty files named after the items that have begun and not ended.
    """

    folder: str

    @classmethod
    def write(cls, task: Callable[[Any], Any], folder: str) -> _TaskFile:
        from joblib.externals.loky.backend.reduction import dumps

        Path(folder, TASK).write_bytes(dumps(task))
        return cls(folder)

    def __call__(self, place: int, item: Any) -> tuple[int, Any]:
        task = _fetch(str(Path(self.folder, TASK)))
        mark = Path(self.folder, str(place))
        mark.touch()
        try:
            return place, task(item)
        finally:
            mark.unlink(missing_ok=True)

    def begun(self) -> set[int]:
        """The items that workers had when they died; they are forgotten."""
        marks = [path for path in Path(self.folder).iterdir() if path.name != TASK]
        for mark in marks:
            mark.unlink(missing_ok=True)
        return {int(mark.name) for mark in marks}


@lru_cache(maxsize=1)
def _fetch(path: str) -> Callable[[Any], Any]:
    return pickle.loads(Path(path).read_bytes())
