"""Uploads: the people of a file, answered in the background, with progress and files to fetch.

Each job has a folder of its own, so several processes can share jobs: the state is read from a
file, and removing the folder ends the job. The process that works on a job touches that file now
and then; when it stops doing so, the others report that the job failed.

Always true: people get the answers that ``mcce explain`` gives them; memory holds the answers of
one upload; names of jobs cannot be guessed; jobs are few, and are removed after a time.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal

import pandas as pd

from ..constraints.constraint import Constraint
from ..counterfactuals.result import Counterfactuals
from ..errors import McceError, MissingExtraError, ParameterError, ReadError, shorten
from ..files.answer_tables import Layout, stream_tables
from ..files.people_reader import PeopleReader
from ..files.sources import Dialect, Format, Source, estimate_rows, find_format, open_source
from ..kernels import CancelledError, ExpiredError, IntArray, check_cancellation
from ..report.html.report_page import ReportOptions, write_page
from ..runtime.files import replacing
from .answering import Answerer
from .refusals import RefusalError, refusal_of
from .requests import UploadBody
from .settings import ServiceSettings
from .task_queue import QueuedTask, QueueLimits, TaskQueue

JOB_ID = re.compile(r"[A-Za-z0-9_-]{22}")
STATE, UPLOAD = "state.json", "upload"
# Progress is written at most so often, in seconds.
PERIOD = 0.3
# Seconds between two signs of life of a job, and after which it counts as dead without one.
BEAT, DEAD = 5.0, 60.0
TABLES, REPORT = ("answers.csv", "answers.parquet"), "report.html"
FILES = (*TABLES, REPORT)
# People who are read, answered and counted at a time.
BLOCK = 200
# People whom the report shows one by one.
MAX_SHOWN_PEOPLE = 500
PREFIX = "mcce_"
# Takes how many people are done, about how many there are, and how many more are done by now.
Show = Callable[[int, int | None, int], None]
Results = list[tuple[IntArray, Counterfactuals[pd.DataFrame]]]


@dataclass(frozen=True)
class JobState:
    """How far a job is."""

    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    done: int = 0
    total: int | None = None
    error: str | None = None
    files: list[str] = field(default_factory=list)


class RemovedError(Exception):
    """The job was removed while it ran."""


class Uploads:
    """The uploads of a service."""

    def __init__(self, answerer: Answerer, settings: ServiceSettings) -> None:
        self.answerer, self.settings, self.limits = answerer, settings, settings.limits
        self.folder = settings.folder or Path(tempfile.mkdtemp(prefix="mcce-"))
        self._clean = None
        if settings.folder is None:
            self._clean = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        seconds = self.limits.job_seconds
        # Unfinished jobs of this process, and when they began.
        self._tasks: dict[str, QueuedTask] = {}
        self._begun: dict[str, float] = {}
        self.queue = TaskQueue(QueueLimits(1, self.limits.jobs, 1, seconds, spare=1))

    def add(
        self, name: str, stream: BinaryIO, options: UploadBody, constraints: Sequence[Constraint]
    ) -> str:
        """Begin a job."""
        format_ = _format(name)
        self.tend()
        if len(self._folders()) >= self.limits.jobs:
            refusal = RefusalError.of(429, "too many uploads are kept: remove some", "busy")
            refusal.headers["Retry-After"] = "60"
            raise refusal
        job = secrets.token_urlsafe(16)
        folder = self.folder / job
        folder.mkdir(mode=0o700)
        path = folder / f"{UPLOAD}.{format_}"
        upload = Upload(str(path), self.answerer, self.settings, options, constraints)
        run = partial(self._run, upload, name)
        task = QueuedTask(lambda given: [run()], None)
        try:
            with path.open("xb") as file:
                shutil.copyfileobj(stream, file)
            with _errors_as_refusals(path, name):
                upload.check()
            self._write(folder, JobState())
            self.queue.submit(task)
        except BaseException:
            _forget(folder)
            raise
        self._tasks[job] = task
        return job

    def state(self, job: str) -> dict[str, Any]:
        """How far a job is."""
        try:
            content: dict[str, Any] = json.loads((self._find(job) / STATE).read_bytes())
        except (OSError, ValueError):
            raise _absent() from None
        return content

    def file(self, job: str, name: str) -> Path:
        """A file of a job that is done."""
        if name not in FILES or name not in self.state(job)["files"]:
            raise _absent()
        return self._find(job) / name

    def remove(self, job: str) -> None:
        """End and forget a job."""
        _forget(self._find(job))
        self._tend_own()

    def tend(self) -> None:
        """Give signs of life of the jobs of this process, and end or forget those without."""
        self._tend_own()
        for folder in self._folders():
            with suppress(OSError, RefusalError):
                age = time.time() - _last_change(folder)
                if age > self.limits.kept_seconds:
                    _forget(folder)
                elif age > DEAD and self.state(folder.name)["state"] in ("waiting", "running"):
                    self._fail(folder, "the service was ended meanwhile: send it again")

    def _tend_own(self) -> None:
        now, most = time.monotonic(), self.limits.job_seconds
        for job, task in list(self._tasks.items()):
            folder = self.folder / job
            late = now - self._begun.get(job, now) > most
            if late and folder.exists():
                self._fail(folder, f"it took longer than {most:g} s, and was stopped")
            if late or task.future.done() or not folder.exists():
                self.queue.leave(task)
                self._tasks.pop(job, None)
                self._begun.pop(job, None)
            else:
                with suppress(OSError):
                    os.utime(folder / STATE)

    def close(self) -> None:
        """End all jobs of this process and remove what it keeps."""
        self.queue.close()
        if self._clean is not None:
            self._clean()

    def _folders(self) -> list[Path]:
        return [one for one in self.folder.iterdir() if JOB_ID.fullmatch(one.name)]

    def _find(self, job: str) -> Path:
        folder = self.folder / job
        if not JOB_ID.fullmatch(job) or not folder.is_dir():
            raise _absent()
        return folder

    def _run(self, upload: Upload, name: str) -> None:
        """Answer the people of a file, and say how far it is."""
        state, written, path = JobState("running"), 0.0, Path(upload.path)
        folder = path.parent
        self._begun[folder.name] = time.monotonic()

        def show(done: int, total: int | None, n_more: int) -> None:
            nonlocal state, written
            if not folder.exists():
                raise RemovedError
            state = replace(state, done=done + n_more, total=total)
            if time.monotonic() - written > PERIOD:
                self._write(folder, state)
                written = time.monotonic()

        try:
            self._write(folder, state)
            with _errors_as_refusals(path, name):
                files = upload.run(show)
            state = replace(state, state="done", files=files, total=state.done)
        except RemovedError:
            return
        except RefusalError as error:
            state = replace(state, state="failed", error=error.problems[0].msg)
        except (CancelledError, ExpiredError):
            state = replace(state, state="failed", error="it was stopped")
        except BaseException as error:
            # Predictors may also raise SystemExit. The message may quote cells.
            state = replace(state, state="failed", error=f"unexpected {type(error).__name__}")
        path.unlink(missing_ok=True)
        with suppress(OSError, RemovedError):
            self._write(folder, state)

    def _fail(self, folder: Path, reason: str) -> None:
        """Mark a job that no process works on as failed."""
        for path in folder.glob(f"{UPLOAD}.*"):
            path.unlink(missing_ok=True)
        with suppress(OSError, RemovedError):
            self._write(folder, JobState("failed", error=reason))

    def _write(self, folder: Path, state: JobState) -> None:
        try:
            with replacing(folder / STATE) as stream:
                stream.write(json.dumps(asdict(state)).encode())
        except FileNotFoundError:
            raise RemovedError from None


def _forget(folder: Path) -> None:
    """Remove a job; it loses its name first, or a thread that writes its state could keep it."""
    with suppress(OSError):
        folder = folder.rename(folder.with_name(f".{folder.name}"))
    shutil.rmtree(folder, ignore_errors=True)


def _last_change(folder: Path) -> float:
    """When something happened to a job; a process that was killed early left it without a state."""
    try:
        return (folder / STATE).stat().st_mtime
    except OSError:
        return folder.stat().st_mtime


@contextmanager
def _errors_as_refusals(path: Path, name: str) -> Iterator[None]:
    """Turn errors about an upload into refusals that call the file by its own name."""
    try:
        yield
    except McceError as error:
        message = str(error).replace(str(path), shorten(name, 100)[1:-1])
        wrong = isinstance(error, (ReadError, ParameterError))
        refusal = refusal_of(error)
        refusal.problems = [
            replace(one, loc=("body", "file"), msg=one.msg if refusal.status == 502 else message)
            for one in refusal.problems
        ]
        refusal.status = 422 if wrong else refusal.status
        raise refusal from None


def _format(name: str) -> str:
    """The format of an upload, by its name."""
    try:
        if name.lower().endswith(".gz"):
            raise ParameterError("Uploads are not compressed. Send the file itself.")
        return find_format(name)
    except ParameterError as error:
        message = str(error).replace("Say it with --format", "Formats are")
        raise RefusalError.of(422, message, "format", "body", "file") from None


def _absent() -> RefusalError:
    return RefusalError.of(404, "there is no such job or file", "absent", "path")


@dataclass(frozen=True, eq=False)
class Upload:
    """A file of people, and how they are answered."""

    path: str
    answerer: Answerer
    settings: ServiceSettings
    options: UploadBody
    constraints: Sequence[Constraint]

    def check(self) -> None:
        """Raise if the file is no table of people with the columns of the explainer."""
        with self._open():
            pass
        if self.path.endswith(".parquet"):
            import pyarrow.parquet as pq

            found, most = pq.read_metadata(self.path), self.settings.limits.upload_bytes
            size = sum(found.row_group(at).total_byte_size for at in range(found.num_row_groups))
            if size > most:
                raise ParameterError(
                    f"The file {self.path!r} has {size} bytes once it is uncompressed, expected at "
                    f"most {most}. Upload it in parts."
                )

    def run(self, show: Show) -> list[str]:
        """Answer all people block by block and return the names of the files."""
        most, total = self.settings.limits.job_people, estimate_rows(self.path, self._format)
        tables: list[pd.DataFrame] = []
        results: Results = []
        names: list[Any] = []
        with self._open() as (source, reader):
            empty_result = self._explain(reader.empty(), lambda n_more: None)
            layout = Layout.plan(reader, empty_result, _prefix(reader, empty_result))
            for block in source.blocks(reader.columns, BLOCK):
                if block.first + block.n_rows > most:
                    raise ParameterError(
                        f"An upload may hold at most {most:,} people, and this one has more. "
                        "Answer them with mcce explain."
                    )
                people, done = reader.read(block), block.first
                answered: Results = []
                for at, rows in people.groups:
                    answered.append((at, self._explain(rows, partial(show, done, total))))
                    done += len(rows)
                show(done, total, 0)
                tables.append(layout.table(people, answered))
                results.extend((block.first + at, result) for at, result in answered)
                names.extend(cell for cells in people.kept.values() for cell in cells)
        if not tables:
            raise ParameterError("The file has no people.")
        made = self._write_tables(pd.concat(tables, ignore_index=True))
        return made + self._write_report(results, names if self.options.name else None)

    @property
    def _format(self) -> Format:
        return find_format(self.path)

    @contextmanager
    def _open(self) -> Iterator[tuple[Source, PeopleReader]]:
        """The table in the file, and how people in it are read."""
        schema, options = self.answerer.explainer.schema_, self.options
        with open_source(self.path, self._format, Dialect(options.delimiter)) as source:
            keep = [options.name] if options.name else []
            yield source, PeopleReader.plan(self.path, source, schema, keep=keep)

    def _explain(
        self, rows: pd.DataFrame, show: Callable[[int], None]
    ) -> Counterfactuals[pd.DataFrame]:
        """The answers to some people, with progress."""

        def callback(progress: Any) -> None:
            check_cancellation()
            show(len(rows) - progress.n_factuals + progress.n_settled)

        return self.answerer.explain(
            rows,
            self.constraints,
            search=self.options.search,
            n_counterfactuals=self.options.n_counterfactuals,
            callback=callback,
        )

    def _write_tables(self, table: pd.DataFrame) -> list[str]:
        """Write the answers in all formats that can be written here."""
        made = []
        for path in (Path(self.path).with_name(name) for name in TABLES):
            try:
                with path.open("xb") as stream:
                    stream_tables([table], find_format(path.name), stream)
                made.append(path.name)
            except ImportError:
                path.unlink(missing_ok=True)
        return made

    def _write_report(self, results: Results, names: list[Any] | None) -> list[str]:
        options = ReportOptions(
            labels=self.settings.words(self.options.language),
            constraints=list(self.constraints),
            n_answers=self.options.n_counterfactuals or ReportOptions.n_answers,
            max_people=MAX_SHOWN_PEOPLE,
            names=names,
            title=self.settings.title,
            callback=lambda n_shown: check_cancellation(),
        )
        try:
            write_page(self.answerer.explainer, results, Path(self.path).with_name(REPORT), options)
        except MissingExtraError:
            return []
        return [REPORT]


def _prefix(reader: PeopleReader, empty_result: Counterfactuals[pd.DataFrame]) -> str:
    """A prefix of our columns, if columns of the file have their names."""
    try:
        Layout.plan(reader, empty_result)
    except ParameterError:
        return PREFIX
    return ""
