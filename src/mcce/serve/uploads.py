"""Uploads: the people of a file, answered in the background, with progress and files to fetch.

Each job has a folder of its own, so several processes can share jobs: a file says how far it is and
which process works on it, and removing the folder ends it.

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
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import pandas as pd
from starlette.concurrency import run_in_threadpool

from ..constraints.constraint import Constraint
from ..counterfactuals.records import plain_value
from ..counterfactuals.result import Counterfactuals
from ..errors import McceError, MissingExtraError, ParameterError, shorten
from ..files.answer_tables import Layout, stream_tables
from ..files.people_reader import PeopleReader
from ..files.sources import EXTENSIONS, Dialect, Source, find_format, open_source
from ..kernels import IntArray, check_cancellation
from ..protocols import Callback
from ..report.report_page import ReportOptions, write_page
from ..runtime.files import replacing
from ..runtime.progress import Progress
from .answering import Answerer
from .bodies import UploadForm
from .middleware import is_dead
from .pool import Call, Pool
from .refusals import RefusalError, refusal_of
from .settings import ServiceSettings

JOB = re.compile(r"[A-Za-z0-9_-]{22}")
STATE, UPLOAD = "state.json", "upload"
# Seconds between two notes of progress, and between two looks for jobs to forget.
NOTED, TENDED = 0.3, 5.0
TABLES, REPORT = ("answers.csv", "answers.parquet"), "report.html"
# People who are read, answered and counted at a time.
BLOCK = 200
# People whom the report shows one by one.
MAX_SHOWN_PEOPLE = 500
# People without an answer whom a summary lists.
MAX_LISTED = 10
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
        # What follows the unfinished jobs of this process, by name; None while one is received.
        self._followers: dict[str, asyncio.Task[None] | None] = {}

    async def add(self, form: UploadForm) -> str:
        """Begin a job, and return its name."""
        constraints = await run_in_threadpool(self.answerer.read_options, form)
        job = secrets.token_urlsafe(16)
        self._followers[job] = None
        try:
            upload = await run_in_threadpool(self._receive, job, form, constraints)
            call = Call(lambda given: [upload.run()])
            self._pool.submit(call)
        except BaseException:
            del self._followers[job]
            _forget(self.folder / job)
            raise
        self._followers[job] = asyncio.create_task(self._follow(upload, call))
        return job

    def _receive(self, job: str, form: UploadForm, constraints: Sequence[Constraint]) -> Upload:
        """Keep the file of a job, if it is a table of people and not too large."""
        name = (form.file.filename or "")[-200:]
        suffix = PurePath(name).suffix.lower()
        if suffix not in EXTENSIONS:
            message = f"the format must be clear from the name: {', '.join(EXTENSIONS)}"
            raise RefusalError.of(422, f"{message}, not compressed", "format", "body", "file")
        if len(self._folders()) >= self.limits.jobs:
            refusal = RefusalError.of(429, "too many uploads are kept: remove some", "busy")
            refusal.headers = {"Retry-After": "60"}
            raise refusal
        folder = self.folder / job
        folder.mkdir(mode=0o700)
        path = folder / f"{UPLOAD}{suffix}"
        upload = Upload(folder, name, str(path), self.answerer, form, constraints)
        upload.note("waiting")
        with path.open("xb") as file:
            shutil.copyfileobj(form.file.file, file)
        upload.n_people = upload.count()
        upload.note("waiting")
        return upload

    async def _follow(self, upload: Upload, call: Call) -> None:
        """Wait for the end of a job, and note it; the follower of a job that goes is cancelled."""
        end: dict[str, Any] = {"state": "failed"}
        try:
            try:
                end = {"state": "done", "done": upload.n_people, **await call.result}
            except RefusalError as error:
                end["error"] = error.problems[0].msg
            except Exception as error:
                # The message may quote cells.
                end["error"] = f"unexpected {type(error).__name__}"
            await run_in_threadpool(upload.end, **end)
        finally:
            self._pool.leave(call)
            del self._followers[upload.folder.name]

    def state(self, job: str) -> dict[str, Any]:
        """How far a job is."""
        # Before its state is read: a job that ends now has noted it.
        is_open, folder = job in self._followers, self.folder / job
        state = _read(folder) if JOB.fullmatch(job) else None
        if state is None:
            raise _absent()
        pid = state["pid"]
        lives = is_open if pid == os.getpid() else not is_dead(pid)
        if state["state"] in ("waiting", "running") and not lives:
            state |= {"state": "failed", "error": "the service was ended meanwhile: send it again"}
            _end(folder, state)
        return state

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
            await run_in_threadpool(self._forget_old)

    def close(self) -> None:
        """End all jobs of this process."""
        self._pool.close()

    def _cancel_removed(self) -> None:
        for job, follower in self._followers.items():
            if follower is not None and not (self.folder / job).exists():
                follower.cancel()

    def _forget_old(self) -> None:
        """Forget jobs that ended long ago, also those whose process was killed at once."""
        for folder in self._folders():
            # Others may remove it at this moment.
            with suppress(OSError):
                ended = time.time() - folder.stat().st_mtime
                begun = _read(folder) is not None and self.state(folder.name)
                is_open = begun and begun["state"] in ("waiting", "running")
                if ended > self.limits.kept_seconds and not is_open:
                    _forget(folder)

    def _folders(self) -> list[Path]:
        return [one for one in self.folder.iterdir() if JOB.fullmatch(one.name)]


@dataclass(eq=False)
class Upload:
    """A file of people in the folder of a job, and how they are answered."""

    folder: Path
    # What the file was called, and what it is called now.
    name: str
    path: str
    answerer: Answerer
    form: UploadForm
    constraints: Sequence[Constraint]
    n_people: int | None = None
    noted: float = 0.0

    def note(self, state: str, done: int = 0) -> None:
        """Note how far the job is."""
        content = {"state": state, "done": done, "total": self.n_people, "error": None}
        _write(self.folder, content | {"files": [], "summary": None, "pid": os.getpid()})
        self.noted = time.monotonic()

    @contextmanager
    def open(self) -> Iterator[tuple[Source, PeopleReader]]:
        """The people in the file; errors of ours call it by its own name."""
        form, schema = self.form, self.answerer.explainer.schema_
        keep = [form.name] if form.name else []
        try:
            with open_source(self.path, find_format(self.path), Dialect(form.delimiter)) as source:
                yield source, PeopleReader.plan(self.path, source, schema, keep=keep)
        except McceError as error:
            problem, own = refusal_of(error).problems[0], shorten(self.name, 100)[1:-1]
            message = problem.msg.replace(self.path, own)
            status = refusal_of(error).status_code
            raise RefusalError.of(status, message, problem.type, "body", "file") from None

    def count(self) -> int:
        """How many people there are; raises if the file is no table of people, or too large."""
        limits, n_people = self.answerer.settings.limits, 0
        with self.open() as (source, reader):
            if find_format(self.path) == "parquet":
                _check_size(self.path, limits.upload_bytes)
            for block in source.blocks(reader.columns, BLOCK):
                n_people += block.n_rows
                if n_people > limits.job_people:
                    raise ParameterError(
                        f"An upload may hold at most {limits.job_people:,} people, and this one "
                        "has more. Answer them with mcce explain."
                    )
            if not n_people:
                raise ParameterError("The file has no people.")
        return n_people

    def run(self) -> dict[str, Any]:
        """Answer all people block by block, and return the names of the files and a summary."""
        results: Results = []
        tables = []

        def show(progress: Progress) -> None:
            if time.monotonic() - self.noted > NOTED:
                n_done = sum(len(at) for at, _ in results)
                self.note("running", n_done + progress.n_settled)

        self.note("running")
        with self.open() as (source, reader):
            layout = self._layout(reader)
            for people in reader.blocks(source, BLOCK):
                answered = []
                for at, rows in people.groups:
                    answered.append((at, self._answers(rows, show)))
                    results.append((people.first + at, answered[-1][1]))
                tables.append(layout.table(people, answered))
            table = pd.concat(tables, ignore_index=True)
            once = table[f"{layout.prefix}rank"].fillna(1) == 1
            names = table.loc[once, self.form.name].tolist() if self.form.name else None
            made = [*self._write_tables(table), *self._write_report(results, names)]
            return {"files": made, "summary": _summary(results, names)}

    def _answers(
        self, rows: pd.DataFrame, show: Callback = lambda progress: None
    ) -> Counterfactuals[pd.DataFrame]:
        return self.answerer.find_answers(rows, self.constraints, self.form, show=show)

    def _layout(self, reader: PeopleReader) -> Layout:
        """The columns of the answers; ours have a prefix if the file has columns of their names."""
        nobody = self._answers(reader.empty())
        try:
            return Layout.plan(reader, nobody)
        except ParameterError:
            return Layout.plan(reader, nobody, PREFIX)

    def _write_tables(self, table: pd.DataFrame) -> Iterator[str]:
        """Write the answers in all formats that can be written here."""
        for path in (self.folder / name for name in TABLES):
            try:
                with path.open("xb") as stream:
                    stream_tables([table], find_format(path.name), stream)
                yield path.name
            except ImportError:
                path.unlink()

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
            write_page(self.answerer.explainer, results, self.folder / REPORT, options)
            yield REPORT

    def end(self, **end: Any) -> None:
        """Note the end of the job."""
        state = _read(self.folder)
        if state is not None:
            _end(self.folder, state | end)


def _summary(results: Results, names: list[Any] | None) -> dict[str, Any]:
    """How many people got what, and the first of those who got nothing."""
    status: Counter[str] = Counter()
    without: list[dict[str, Any]] = []
    for at, result in results:
        status.update(result.people["status"].tolist())
        reasons = zip(at.tolist(), result.people["reason_kind"].tolist(), strict=True)
        for row, kind in reasons:
            if kind and len(without) < MAX_LISTED:
                name = None if names is None else plain_value(names[row])
                without.append({"row": row + 1, "name": name, "reason_kind": kind})
    return {"counts": dict(status), "without": without}


def _check_size(path: str, most: int) -> None:
    """Raise if a Parquet file has more bytes once it is uncompressed, as it says itself."""
    import pyarrow.parquet as pq

    found = pq.read_metadata(path)
    size = sum(found.row_group(at).total_byte_size for at in range(found.num_row_groups))
    if size > most:
        raise ParameterError(
            f"The file {path!r} has {size} bytes once it is uncompressed, expected at most "
            f"{most}. Upload it in parts."
        )


def _read(folder: Path) -> dict[str, Any] | None:
    try:
        state: dict[str, Any] = json.loads((folder / STATE).read_bytes())
    except OSError:
        return None
    return state


def _write(folder: Path, state: dict[str, Any]) -> None:
    with replacing(folder / STATE) as stream:
        stream.write(json.dumps(state).encode())


def _end(folder: Path, state: dict[str, Any]) -> None:
    """Note the end of a job, which needs its upload no more."""
    for path in folder.glob(f"{UPLOAD}.*"):
        path.unlink(missing_ok=True)
    # It may have been removed.
    with suppress(OSError):
        _write(folder, state)


def _forget(folder: Path) -> None:
    """Remove a job; it loses its name first, or a thread that notes its progress could keep it."""
    with suppress(OSError):
        folder = folder.rename(folder.with_name(f".{folder.name}"))
    shutil.rmtree(folder, ignore_errors=True)


def _absent() -> RefusalError:
    return RefusalError.of(404, "there is no such job or file", "absent", "path")
