"""Files to files: units of people that workers read, answer and write by themselves.

Only the place of a unit goes to a worker, and only counts come back: people and answers never pass
through the process that leads the run. Files must have the same names for all workers.

Always true: a part is written whole or not at all, and only while its folder belongs to the job; a
unit that fails never stops others, also if it kills its worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from .. import errors
from ..counterfactuals import Counterfactuals
from ..errors import McceError, PredictorError, ReadError, WorkerError, shorten
from ..explainer import MCCE
from ..files.answer_tables import Layout
from ..files.parts import BlockRun, Done, PartsFolder
from ..files.people import PeopleReader
from ..files.sources import Columns, Format, open_source
from ..files.units import Unit
from ..runtime.quiet import without_prints, without_warnings
from ..runtime.tracebacks import format_traceback
from ..tables.schema import Schema
from .executor import Executor, run_all
from .shipment import Shipment

# How often a unit that failed is tried again, by whichever worker.
RETRIES = 2
# Errors that no second try changes: of columns, cells, settings and libraries. A unit that killed
# its worker has been tried again, alone.
LASTING = (
    errors.SchemaError,
    errors.ParameterError,
    errors.MissingExtraError,
    ReadError,
    WorkerError,
)
# If so many units have failed for the predictor's sake and none is done, so will the others.
PATIENCE = 10


@dataclass(frozen=True)
class Reading:
    """How people are read in all files alike."""

    keep: tuple[str, ...] = ()
    whole: frozenset[str] = frozenset()
    dtypes: Mapping[str, str] = field(default_factory=dict)
    delimiter: str = ","

    def plan(self, path: str, source: Columns, schema: Schema) -> PeopleReader:
        """How the people of a file are read."""
        return PeopleReader.plan(
            path, source, schema, keep=self.keep, dtypes=self.dtypes, whole=self.whole
        )


@dataclass(frozen=True)
class Failure:
    """Why a unit has no part."""

    kind: type[Exception]
    reason: str
    lasting: bool
    traceback: str = field(default="", repr=False, compare=False)

    @property
    def is_hopeless(self) -> bool:
        """Whether it may well be the predictor's, and so that of every unit."""
        return issubclass(self.kind, PredictorError | WorkerError)

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """What an error says."""
        trace = format_traceback(error)
        if isinstance(error, SystemExit):
            said = f"The predictor ended the program (exit {error.code})."
            return cls(PredictorError, said, False, trace)
        if not isinstance(error, McceError):
            # Its type may be one that only the worker can import.
            said = f"{type(error).__name__}: {shorten(error, 300)}"
            return cls(RuntimeError, said, False, trace)
        lasting = isinstance(error, LASTING) and not isinstance(error.__cause__, OSError)
        return cls(type(error), str(error), lasting, trace)


@dataclass(frozen=True)
class Outcome:
    """What became of a unit."""

    unit: Unit
    done: Done | None = None
    failure: Failure | None = None
    again: bool = False


@dataclass(frozen=True)
class FilesTask:
    """Answers units of people: what is sent to workers."""

    shipment: Shipment
    reading: Reading
    layout: Layout
    folder: PartsFolder
    format: Format
    block_rows: int
    constraints: Any = None

    def __call__(self, unit: Unit) -> Outcome:
        """Write the part of a unit, unless it is complete; what goes wrong is an outcome too."""
        try:
            # The table says who has no answer, and why; what a predictor prints is no result.
            with without_warnings(), without_prints():
                return Outcome(unit, done=self._write(unit))
        # A unit can fail in more ways than anybody could list, and others must not fail with it.
        except (Exception, SystemExit) as error:
            return Outcome(unit, failure=Failure.of(error))

    def _write(self, unit: Unit) -> Done:
        with (
            self.shipment.opened() as explainer,
            open_source(unit.path, unit.format, self.reading.delimiter) as source,
        ):
            reader = self.reading.plan(unit.path, source, explainer.fitted_.schema)
            work = BlockRun(_Explain(explainer, self.constraints), reader, self.layout)
            fingerprint, blocks = unit.read(source, reader.columns, self.block_rows)
            return work.write_part(blocks, self.folder, unit.number, fingerprint, self.format)


@dataclass(frozen=True)
class _Explain:
    """From rows to answers, with the constraints of the run."""

    explainer: MCCE
    constraints: Any

    def __call__(self, rows: pd.DataFrame) -> Counterfactuals[pd.DataFrame]:
        return self.explainer.explain(rows, constraints=self.constraints).to_pandas()


def explain_units(executor: Executor, task: FilesTask, units: Sequence[Unit]) -> Iterator[Outcome]:
    """Write the parts of units; those that failed are tried again after all others."""
    left = list(units)
    n_done = n_hopeless = 0
    for attempt in range(RETRIES + 1):
        again: list[Unit] = []
        for place, outcome in run_all(executor, task, left):
            if isinstance(outcome, WorkerError):
                outcome = Outcome(left[place], failure=Failure.of(outcome))
            failure = outcome.failure
            if failure is not None and not failure.lasting and attempt < RETRIES:
                outcome = replace(outcome, again=True)
                again.append(outcome.unit)
            yield outcome
            n_done += failure is None
            n_hopeless += failure is not None and failure.is_hopeless
            if failure is not None and attempt == n_done == 0 and n_hopeless == PATIENCE:
                raise failure.kind(
                    f"The first {PATIENCE} partitions failed, and none is complete, so the run was "
                    f"stopped. The last of them said: {failure.reason}"
                )
        if not again:
            return
        left = again
