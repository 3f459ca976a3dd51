"""Uploads: the people of a file, answered in the background, with progress and files to fetch.

Each job has a folder of its own, so several processes can share jobs: one file says how far it is,
another one how it ended, and removing the folder ends the job.

Always true: people get the answers that ``mcce explain`` gives them; memory holds the answers of
one upload; names of jobs cannot be guessed; jobs are few, and are removed after a time.
"""

from __future__ import annotations

import asyncio
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from starlette.concurrency import run_in_threadpool

from ..constraints.constraint import Constraint
from ..counterfactuals.result import Counterfactuals
from ..errors import McceError, MissingExtraError, ParameterError, shorten
from ..files.answer_tables import Layout, stream_tables
from ..files.parts_folder import Answered, BlockRun
from ..files.people_reader import PeopleReader, PeopleTable
from ..files.sources import check_delimiter, find_format, open_source
from ..kernels import IntArray, check_cancellation
from ..protocols import Callback
from ..report.html.report_page import ReportOptions, write_page
from ..runtime.files import replacing
from .answering import Answerer
from .bodies import UploadForm
from .middleware import is_dead
from .pool import Call, Pool
from .refusals import RefusalError, refusal_of
from .settings import ServiceSettings

JOB = re.compile(r"[A-Za-z0-9_-]{22}")
BEGUN, ENDED, UPLOAD = "begun.json", "ended.json", "upload"
# Seconds between two notes of progress, and between two looks for jobs to forget.
NOTED, TENDED = 0.3, 5.0
TABLES, REPORT = ("answers.csv", "answers.parquet"), "report.html"
# People who are read, answered and counted at a time.
BLOCK = 200
# People whom the report shows one by one.
MAX_SHOWN_PEOPLE = 500
# Before our columns, if columns of the file have their names.
PREFIX = "mcce_"
# Which people of the file, and what became of them.
Results = list[tuple[IntArray, Counterfactuals[pd.DataFrame]]]


class Uploads:
    """The uploads of a service."""

    def __init__(self, answerer: Answerer, settings: ServiceSettings) -> None:
        self.answerer, self.limits = answerer, settings.limits
        self.folder = settings.folder or Path(tempfile.mkdtemp(prefix="mcce-"))
        if settings.folder is None:
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._pool = Pool(1, self.limits.jobs, 1, self.limits.job_seconds)
        # Unfinished jobs of this process, and what follows them.
        self._open: dict[str, asyncio.Task[None] | None] = {}

    async def add(self, form: UploadForm) -> str:
        """Begin a job, and return its name."""
        constraints = await run_in_threadpool(self.answerer.read_options, form)
        job = secrets.token_urlsafe(16)
        self._open[job] = None
        try:
            upload = await run_in_threadpool(self._receive, job, form, constraints)
            n_people = await run_in_threadpool(upload.count)
            call = Call(lambda given: [upload.run(n_people)])
            self._pool.submit(call)
        except BaseException:
            del self._open[job]
            _forget(self.folder / job)
            raise
        self._open[job] = asyncio.create_task(self._follow(job, call, n_people))
        return job

    def _receive(self, job: str, form: UploadForm, constraints: Sequence[Constraint]) -> Upload:
        """Keep the file of a job."""
        name = (form.file.filename or "")[-200:]
        suffix = _format(name)
        if len(self._folders()) >= self.limits.jobs:
            refusal = RefusalError.of(429, "too many uploads are kept: remove some", "busy")
            refusal.headers = {"Retry-After": "60"}
            raise refusal
        folder = self.folder / job
        folder.mkdir(mode=0o700)
        _note_begun(folder, "waiting")
        path = folder / f"{UPLOAD}.{suffix}"
        with path.open("xb") as file:
            shutil.copyfileobj(form.file.file, file)
        return Upload(path, name, self.answerer, form, constraints)

    async def _follow(self, job: str, call: Call, n_people: int) -> None:
        """Wait for a job, and note how it ended; a job that is removed is cancelled."""
        try:
            try:
                state = _state("done", n_people, n_people, files=await call.result)
            except RefusalError as error:
                state = _state("failed", error=error.problems[0].msg)
            except Exception as error:
                # The message may quote cells.
                state = _state("failed", error=f"unexpected {type(error).__name__}")
            await run_in_threadpool(_end, self.folder / job, state)
        finally:
            self._pool.leave(call)
            del self._open[job]

    def state(self, job: str) -> dict[str, Any]:
        """How far a job is."""
        folder = self.folder / job
        begun = _read(folder / BEGUN) if JOB.fullmatch(job) else None
        if begun is None:
            raise _absent()
        pid = begun.pop("pid")
        # This comes before a look at its end: a job that ends now has noted it.
        lives = job in self._open if pid == os.getpid() else not is_dead(pid)
        ended = _read(folder / ENDED)
        if ended is None and not lives:
            ended = _state("failed", error="the service was ended meanwhile: send it again")
            _end(folder, ended)
        return ended or begun

    def file(self, job: str, name: str) -> Path:
        """A file of a job that is done."""
        if name not in self.state(job)["files"]:
            raise _absent()
        return self.folder / job / name

    async def remove(self, job: str) -> None:
        """End and forget a job."""
        await run_in_threadpool(self.state, job)
        await run_in_threadpool(_forget, self.folder / job)
        self._cancel_removed()

    async def tend(self) -> None:
        """Again and again, end jobs that another process removed, and forget old ones."""
        while True:
            await asyncio.sleep(min(TENDED, self.limits.kept_seconds))
            self._cancel_removed()
            for folder in await run_in_threadpool(self._folders):
                if await run_in_threadpool(self._is_old, folder):
                    await run_in_threadpool(_forget, folder)

    def close(self) -> None:
        """End all jobs of this process."""
        self._pool.close()

    def _cancel_removed(self) -> None:
        for job, task in self._open.items():
            if task is not None and not (self.folder / job).exists():
                task.cancel()

    def _is_old(self, folder: Path) -> bool:
        """Whether a job ended long ago, or a process was killed before it could note a job."""
        with suppress(RefusalError):
            if self.state(folder.name)["state"] in ("waiting", "running"):
                return False
        with suppress(OSError):
            return time.time() - folder.stat().st_mtime > self.limits.kept_seconds
        return False

    def _folders(self) -> list[Path]:
        return [one for one in self.folder.iterdir() if JOB.fullmatch(one.name)]


@dataclass(frozen=True, eq=False)
class Upload:
    """A file of people, and how they are answered."""

    path: Path
    name: str
    answerer: Answerer
    form: UploadForm
    constraints: Sequence[Constraint]

    @contextmanager
    def open(self) -> Iterator[PeopleTable]:
        """The people in the file; errors of ours call it by its own name."""
        path, form, schema = str(self.path), self.form, self.answerer.explainer.schema_
        try:
            with open_source(path, find_format(path), check_delimiter(form.delimiter)) as source:
                keep = [form.name] if form.name else []
                yield PeopleTable(source, PeopleReader.plan(path, source, schema, keep=keep))
        except McceError as error:
            refusal, own = refusal_of(error), shorten(self.name, 100)[1:-1]
            said = refusal.problems[0]
            message = said.msg.replace(path, own)
            raise RefusalError.of(refusal.status_code, message, said.type, "body", "file") from None

    def count(self) -> int:
        """How many people there are; raises if the file is no table of people, or too large."""
        limits, n_people = self.answerer.settings.limits, 0
        with self.open() as people:
            _check_size(self.path, limits.upload_bytes)
            for block in people.raw_blocks(BLOCK):
                n_people += block.n_rows
                if n_people > limits.job_people:
                    raise ParameterError(
                        f"An upload may hold at most {limits.job_people:,} people, and this one "
                        "has more. Answer them with mcce explain."
                    )
            if not n_people:
                raise ParameterError("The file has no people.")
        return n_people

    def run(self, n_people: int) -> list[str]:
        """Answer all people block by block, and return the names of the files with answers."""
        show, n_done = self._progress(n_people), 0
        show(0)
        results: Results = []

        def explain(rows: pd.DataFrame) -> Counterfactuals[pd.DataFrame]:
            nonlocal n_done
            done_before, first = n_done, answered.n_rows
            result = self._answers(
                rows,
                lambda found: show(done_before + len(rows) - found.n_factuals + found.n_settled),
            )
            n_done += len(rows)
            results.append((first + rows.index.to_numpy(), result))
            return result

        with self.open() as people:
            layout = self._layout(people.reader)
            work = BlockRun(explain, people.reader, layout)
            answered = Answered(work, people.raw_blocks(BLOCK))
            table = pd.concat(list(answered), ignore_index=True)
            once = table[f"{layout.prefix}rank"].fillna(1) == 1
            names = table.loc[once, self.form.name].tolist() if self.form.name else None
            return [*self._write_tables(table), *self._write_report(results, names)]

    def _answers(
        self, rows: pd.DataFrame, show: Callback = lambda progress: None
    ) -> Counterfactuals[pd.DataFrame]:
        return self.answerer.find_answers(rows, self.constraints, self.form, show=show)

    def _progress(self, n_people: int) -> Callable[[int], None]:
        """Notes, now and then, how many people are done."""
        noted = 0.0

        def show(n_done: int) -> None:
            nonlocal noted
            if time.monotonic() - noted > NOTED:
                _note_begun(self.path.parent, "running", n_done, n_people)
                noted = time.monotonic()

        return show

    def _layout(self, reader: PeopleReader) -> Layout:
        """The columns of the answers; ours have a prefix if the file has columns of their names."""
        nobody = self._answers(reader.empty())
        try:
            return Layout.plan(reader, nobody)
        except ParameterError:
            return Layout.plan(reader, nobody, PREFIX)

    def _write_tables(self, table: pd.DataFrame) -> Iterator[str]:
        """Write the answers in all formats that can be written here."""
        for path in (self.path.with_name(name) for name in TABLES):
            try:
                with path.open("xb") as stream:
                    stream_tables([table], find_format(path.name), stream)
                yield path.name
            except ImportError:
                path.unlink(missing_ok=True)

    def _write_report(self, results: Results, names: list[Any] | None) -> Iterator[str]:
        settings, form = self.answerer.settings, self.form
        options = ReportOptions(
            labels=settings.words(form.language),
            constraints=list(self.constraints),
            n_answers=form.n_counterfactuals or ReportOptions.n_answers,
            max_people=MAX_SHOWN_PEOPLE,
            names=names,
            title=settings.title,
            callback=lambda n_shown: check_cancellation(),
        )
        with suppress(MissingExtraError):
            write_page(self.answerer.explainer, results, self.path.with_name(REPORT), options)
            yield REPORT


def _format(name: str) -> str:
    """The format of an upload, by its name."""
    try:
        if name.lower().endswith(".gz"):
            raise ParameterError("Uploads are not compressed. Send the file itself.")
        return find_format(name)
    except ParameterError as error:
        message = str(error).replace("Say it with --format", "Formats are")
        raise RefusalError.of(422, message, "format", "body", "file") from None


def _check_size(path: Path, most: int) -> None:
    """Raise if a Parquet file has more bytes once it is uncompressed, as it says itself."""
    if path.suffix != ".parquet":
        return
    import pyarrow.parquet as pq

    found = pq.read_metadata(path)
    size = sum(found.row_group(at).total_byte_size for at in range(found.num_row_groups))
    if size > most:
        raise ParameterError(
            f"The file {str(path)!r} has {size} bytes once it is uncompressed, expected at "
            f"most {most}. Upload it in parts."
        )


def _state(state: str, done: int = 0, total: int | None = None, **more: Any) -> dict[str, Any]:
    return {"state": state, "done": done, "total": total, "error": None, "files": [], **more}


def _note_begun(folder: Path, state: str, done: int = 0, total: int | None = None) -> None:
    _note(folder / BEGUN, _state(state, done, total, pid=os.getpid()))


def _note(path: Path, content: dict[str, Any]) -> None:
    with replacing(path) as stream:
        stream.write(json.dumps(content).encode())


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
    except OSError:
        return None
    return content


def _end(folder: Path, state: dict[str, Any]) -> None:
    """Note the end of a job, which needs its upload no more."""
    for path in folder.glob(f"{UPLOAD}.*"):
        path.unlink(missing_ok=True)
    # It may have been removed.
    with suppress(OSError):
        _note(folder / ENDED, state)


def _forget(folder: Path) -> None:
    """Remove a job; it loses its name first, or a thread that notes its progress could keep it."""
    with suppress(OSError):
        folder = folder.rename(folder.with_name(f".{folder.name}"))
    shutil.rmtree(folder, ignore_errors=True)


def _absent() -> RefusalError:
    return RefusalError.of(404, "there is no such job or file", "absent", "path")
